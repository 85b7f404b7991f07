# SPDX-License-Identifier: Apache-2.0
"""What one segment hands on to the check of its partition, and this as bytes.

The bytes are JSON with arrays behind it. They travel between machines and lie in files, so they are
plain data: reading them runs nothing.
"""

import json
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.files import FileStatus
from segproof.inventory.segments import FileState
from segproof.reading.cut_outs import CutOutGap
from segproof.reading.keyless_records import EndBatch
from segproof.reading.log_damage import LogDamage
from segproof.stretches.kafka.facts import FramedLog

_FIRST = (
    "epoch", "position", "kind", "data_epoch", "data_position", "base_sequence", "last_sequence",
    "timestamp", "missing",
)  # fmt: skip
_LAST = (
    "epoch", "kind", "data_epoch", "base_sequence", "last_sequence", "last_offset", "timestamp",
    "missing",
)  # fmt: skip
PRODUCER = np.dtype(
    [(name, np.int64) for name in ("producer_id", *(f"first_{one}" for one in _FIRST), *_LAST)]
)
"""One producer: `first_` of its first batch or marker, the rest of the last one. Where `data_` is
in a name, and for all about sequence numbers and offsets, the first or last batch that is no
marker; -1 without one. `missing`: how many offsets are missing before it. `epoch`, `kind` and
`timestamp` are of whatever came last; a `kind` is the bits TRANSACTIONAL and CONTROL."""
ProducerTable = NDArray[np.void]


def empty_table() -> ProducerTable:
    """Return the table of no producers."""
    return np.zeros(0, PRODUCER)


class EpochRun(NamedTuple):
    """Batches of one epoch, one behind the other."""

    epoch: int
    first_offset: int
    last_offset: int
    position: int
    """Byte of the first of them in its log."""


class LoneMarkers(NamedTuple):
    """Markers that end no transaction: how many, and where the first one is."""

    number: int = 0
    first_offset: int = -1
    position: int | None = None

    def plus(self, offset: int, position: int) -> "LoneMarkers":
        """Return them with one more."""
        if self.number:
            return self._replace(number=self.number + 1)
        return LoneMarkers(1, offset, position)


class MarkerTimes(NamedTuple):
    """Timestamps of the first and the last marker, which a broker's clock has made; or None."""

    first: int | None = None
    last: int | None = None


class Coordinators(NamedTuple):
    """Coordinator epochs of a producer's first and last marker, and where the first one is."""

    first: int
    last: int
    offset: int
    position: int


@dataclass(slots=True)
class TransactionCarry:
    """What one segment says about transactions that cross its borders. Travels to processes."""

    opened: dict[int, int] = field(default_factory=dict)
    """Producer id to first offset of each transaction that is open at the end."""
    ended: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    """Producer id to its first marker without data before it here: offset, byte, and whether it is
    an abort that the transaction index does not have."""
    closed: set[int] = field(default_factory=set)
    """The producers with a marker here."""
    lone: LoneMarkers = field(default_factory=LoneMarkers)
    """The markers behind another one of their producer, with no data between."""
    times: MarkerTimes = field(default_factory=MarkerTimes)
    since: dict[int, int] = field(default_factory=dict)
    """Producer id to the timestamp of the first marker behind the first offset of its open
    transaction, where there is one."""
    coordinators: dict[int, Coordinators] = field(default_factory=dict)
    """By producer id."""
    begins: dict[int, int] = field(default_factory=dict)
    """Producer id to the first offset of what its first marker here aborted, by the transaction
    index."""
    lost: set[tuple[int, int]] = field(default_factory=set)
    """Producer id and first offset of each transaction whose marker is lost, as reported."""
    is_complete: bool = True
    """Whether all of the log was read."""


@dataclass(slots=True)
class Cut:
    """What is known of producers at an offset inside a segment, by this segment alone."""

    offset: int
    producers: ProducerTable
    opened: dict[int, int]
    closed: set[int]
    missing: int
    unread: int


@dataclass(slots=True)
class LogCarry:
    """What one segment says that others are held against. Travels to processes."""

    transactions: TransactionCarry = field(
        default_factory=lambda: TransactionCarry(is_complete=False)
    )
    producers: ProducerTable = field(default_factory=empty_table)
    left_out: int = 0
    """How often producers were not followed, for want of room."""
    runs: list[EpochRun] = field(default_factory=list)
    missing: int = 0
    """Offsets in no batch, and batches that can't be read."""
    unread: int = 0
    """Batches that can't be read."""
    end_offset: int | None = None
    """The offset behind the last batch, or the base offset; None where the log was not read."""
    is_read: bool = False
    """Whether all of the log was read."""
    cuts: list[Cut] = field(default_factory=list)
    bytes_checked: int = 0
    """Of the log and the index files."""
    batches: int = 0
    sound_batches: int = 0
    """Those with a right checksum."""
    missing_offsets: int = 0
    """Offsets in no batch, up to the next segment where the log was read whole."""
    has_sound_gap: bool = False
    """Whether offsets are in no batch between two sound batches, one after the other."""
    is_pointed_beyond: bool = False
    """Whether the offset index points behind the end of the log, which may have lost its end."""
    indexed_end: int | None = None
    """Of the last log: the offset up to which its indexes say that it went; None: not beyond it."""
    foreign_end: int | None = None
    """The offset up to which the log that its indexes were made of went; None: that is this one."""
    cut_outs: list[CutOutGap] = field(default_factory=list)
    """Gaps that held batches, as the indexes show."""
    is_gap_told: bool = False
    """Whether a finding says that offsets between its end and the next segment are lost."""
    ends: list[EndBatch] = field(default_factory=list)
    """Its first and its last sound batch of records."""
    end_position: int = 0
    """The byte after the last batch."""
    first_offset: int | None = None
    """The first offset of the first batch; None without any."""
    is_blank: bool = False
    """Whether the log has bytes, and none of them is of a batch that can be read."""
    damage: LogDamage | None = None
    """What the first damage of the log costs; None: all batches are sound."""
    least: int = 0
    """The fewest bytes that an offset has in any batch, if all are of magic 2 and one epoch, and of
    no transaction; else 0."""
    framed: FramedLog | None = None
    """All that was found of a damaged log. It does not travel as bytes: then it is read again."""
    status: FileStatus | None = None
    """That of the log before it was read, if it was at rest; it does not travel either."""


Seen = tuple[FileState, ...]
PLAIN = (
    "left_out", "missing", "unread", "end_offset", "is_read", "bytes_checked", "batches",
    "sound_batches", "missing_offsets", "is_pointed_beyond", "is_gap_told", "end_position",
    "is_blank", "first_offset", "indexed_end", "has_sound_gap", "foreign_end",
    "least",
)  # fmt: skip
"""The fields of a carry that are plain numbers, or None."""


def carried_to_bytes(carry: LogCarry, seen: Seen) -> bytes:
    """Return a carry, and what the files of its segment were when it was made, as bytes."""
    runs = np.array([tuple(run) for run in carry.runs], np.int64).reshape(-1, 4)
    tables = [carry.producers, *(cut.producers for cut in carry.cuts)]
    told = {
        "producers": [len(table) for table in tables],
        "runs": len(runs),
        "transactions": _transactions_to_json(carry.transactions),
        "plain": [getattr(carry, name) for name in PLAIN],
        "cuts": [
            [cut.offset, [*cut.opened.items()], sorted(cut.closed), cut.missing, cut.unread]
            for cut in carry.cuts
        ],
        "damage": carry.damage,
        "cut_outs": carry.cut_outs,
        "ends": carry.ends,
        "seen": [[*state.identity, state.size_bytes] for state in seen],
    }
    arrays = [table.tobytes() for table in (*tables, runs)]
    return b"".join([json.dumps(told).encode(), b"\n", *arrays])


def carried_from_bytes(data: bytes) -> tuple[LogCarry, Seen]:
    """Return what `carried_to_bytes` was given. Raises: ValueError, KeyError, TypeError."""
    at = data.index(b"\n") + 1
    told = json.loads(data[:at])

    def array(dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        nonlocal at
        found = np.frombuffer(data, dtype, count, at).copy()
        at += found.nbytes
        return found

    tables: list[ProducerTable] = [array(empty_table().dtype, n) for n in told["producers"]]
    runs = array(np.dtype(np.int64), told["runs"] * 4).reshape(-1, 4)
    carry = LogCarry(
        _transactions_from_json(told["transactions"]),
        tables[0],
        runs=[EpochRun(*run) for run in runs.tolist()],
        cuts=[
            Cut(offset, table, dict(opened), set(closed), missing, unread)
            for table, (offset, opened, closed, missing, unread) in zip(
                tables[1:], told["cuts"], strict=True
            )
        ],
        **dict(zip(PLAIN, told["plain"], strict=True)),
        damage=None if told["damage"] is None else LogDamage.from_json(told["damage"]),
        cut_outs=[CutOutGap(*one) for one in told["cut_outs"]],
        ends=[EndBatch(*one) for one in told["ends"]],
    )
    seen = tuple(FileState((device, inode), size) for device, inode, size in told["seen"])
    return carry, seen


def _transactions_to_json(carry: TransactionCarry) -> list[Any]:
    values = (getattr(carry, one.name) for one in fields(carry))
    return [
        [*one.items()] if isinstance(one, dict) else sorted(one) if isinstance(one, set) else one
        for one in values
    ]


def _transactions_from_json(told: list[Any]) -> TransactionCarry:
    opened, ended, closed, lone, times, since, coordinators, begins, lost, is_complete = told
    return TransactionCarry(
        dict(opened),
        {producer_id: (offset, at, gone) for producer_id, (offset, at, gone) in ended},
        set(closed),
        LoneMarkers(*lone),
        MarkerTimes(*times),
        dict(since),
        {producer_id: Coordinators(*each) for producer_id, each in coordinators},
        dict(begins),
        {(producer_id, first) for producer_id, first in lost},
        is_complete,
    )
