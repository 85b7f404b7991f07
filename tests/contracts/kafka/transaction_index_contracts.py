# SPDX-License-Identifier: Apache-2.0
"""Contracts of the transaction index: entries, and which of them a range of offsets meets.

The search of the implementation runs over a list of entries in the place of a file; reading them
from a file is the business of the entry contracts and of the machines.

Mirrors: model/segproof_model/kafka/format/transaction_index.py,
    impl/segproof/kafka/transaction_index.py.
"""

import struct

from segproof.kafka import transaction_index as implementation
from segproof_model.kafka.format import transaction_index as model
from segproof_model.language.files import Files
from segproof_model.language.integers import int64_at, wrap64
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

ENTRY = implementation._ENTRY.format
"""The layout by which the index reads and writes an entry."""


@contract(
    "segproof.kafka.transaction_index:_ENTRY",
    "TXNIDX-1",
    "any 34 raw bytes",
    Mutant("ABORTED_TXN.struct()", '__import__("struct").Struct("<hqqqq")', "*"),
)
def entry_decode(data: bytes) -> bool:
    """Read an entry: int16, then int64 after int64, by a layout that is the model's too.

    pre: len(data) == 34
    post: _
    """
    version = int.from_bytes(data[:2], "big", signed=True)
    expected = (version, *(int64_at(data, place) for place in (2, 10, 18, 26)))
    return expected == struct.unpack(ENTRY, data) and model.LAYOUT.format == ENTRY


@contract(
    "segproof.kafka.transaction_index:_ENTRY",
    "TXNIDX-1",
    "every int16 version, every four int64",
    Mutant("ABORTED_TXN.struct()", '__import__("struct").Struct("<hqqqq")', "*"),
)
def entry_encode(
    version: int, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
) -> bool:
    """Write an entry, byte for byte; the model's wraps leave its numbers as they are.

    pre: -(2**15) <= version < 2**15
    pre: -(2**63) <= producer_id < 2**63
    pre: -(2**63) <= first_offset < 2**63
    pre: -(2**63) <= last_offset < 2**63
    pre: -(2**63) <= last_stable_offset < 2**63
    post: _
    """
    numbers = (producer_id, first_offset, last_offset, last_stable_offset)
    written = version.to_bytes(2, "big", signed=True)
    for number in numbers:
        if wrap64(number) != number:
            return False
        # The model's int64_bytes without its wrap, which would hide the bytes.
        written += number.to_bytes(8, "big", signed=True)
    return written == struct.pack(ENTRY, version, *numbers)


@contract(
    "segproof.kafka.transaction_index:aborted_txns_in_range",
    "TXNIDX-10 TXNIDX-11",
    "any 2 entries of any offsets, any range",
    Mutant("first_offset < upper", "first_offset <= upper"),
    Mutant("stable_offset >= upper", "stable_offset > upper"),
)
def range_overlap(
    one: tuple[int, int, int], other: tuple[int, int, int], fetch_offset: int, upper_bound: int
) -> bool:
    """Return the entries that meet the range, up to the one that makes the answer complete.

    post: _
    """
    rows = ((1, *one), (2, *other))
    entries = [implementation.AbortedTxn(0, *row) for row in rows]
    found = implementation.aborted_txns_in_range(entries, fetch_offset, upper_bound)
    expected = _Listed([model.AbortedTxn(0, *row) for row in rows]).collect_aborted_txns(
        fetch_offset, upper_bound
    )
    return tuple(expected) == tuple(found)


class _Listed(SEGPROOF.kind(model.TransactionIndex)):  # type: ignore[misc]  # as it is made
    """The model with its entries given."""

    def __init__(self, entries: list[model.AbortedTxn]) -> None:
        super().__init__(Files(), "x", 0)
        self.listed = entries

    def entries_list(self) -> list[model.AbortedTxn]:
        """Return the given entries."""
        return self.listed
