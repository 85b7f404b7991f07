# SPDX-License-Identifier: Apache-2.0
"""Contracts of records of the commit log: which keys of one are indexed.

Each is held against the definition, written down in the contract itself.

Mirrors: impl/segproof/kernels/rocketmq_records.py.
"""

from typing import Any

from segproof.kernels import rocketmq_index, rocketmq_records
from segproof_tests.contracts import Mutant, contract

RECORDS = "segproof.kernels.rocketmq_records"

_absolute_hash = rocketmq_index.absolute_hash.interpreted
_hash_of_units: Any = rocketmq_index.hash_of_units.interpreted
_hash_keys: Any = rocketmq_records.hash_keys.interpreted
_TOPIC = 84
"""The one letter of the topic."""


@contract(
    f"{RECORDS}:hash_keys",
    "RMQSVC-14 RMQSVC-15",
    "any 4 ASCII bytes of keys",
    Mutant("buffer[end] != 32", "buffer[end] > 32"),
    Mutant("start = end + 1", "start = end + 2"),
    Mutant("if end > start", "if end >= start"),
)
def keys_of_spaces(keys: bytes) -> bool:
    """Keys end at single spaces, and each that is not empty has the hash of the composed key.

    pre: len(keys) == 4
    pre: all(byte < 128 for byte in keys)
    post: _
    """
    hashes, messages = [-2] * 9, [-2] * 9
    count = _hash_keys([_TOPIC, *keys], _row(0, 4), 0, hashes, messages)
    expected: list[list[int]] = [[]]
    for byte in keys:
        if byte == 32:
            expected.append([])
        else:
            expected[-1].append(byte)
    wanted = [_absolute_hash(_hash_of_units([_TOPIC, 35, *key])) for key in expected if key]
    return hashes[:count] == wanted and messages[:count] == [0] * len(wanted)


@contract(
    f"{RECORDS}:hash_keys",
    "RMQSVC-13",
    "every flag of 32 bits",
    Mutant("% 4 == 3", "% 4 >= 2"),
)
def rolled_back_records(flags: int) -> bool:
    """A record has no keys exactly if both bits of its transaction are set.

    pre: -(2**31) <= flags < 2**31
    post: _
    """
    hashes, messages = [-2] * 9, [-2] * 9
    count = _hash_keys([_TOPIC, 97, 32, 98], _row(flags, 3), 0, hashes, messages)
    is_rolled_back = flags // 4 % 2 == 1 and flags // 8 % 2 == 1
    return bool(count == (0 if is_rolled_back else 2))


def _row(flags: int, length: int) -> list[int]:
    """Return what was read of a record: its topic, and so many bytes of keys behind it."""
    row = [-1] * 16
    row[4], row[8], row[9], row[10], row[11] = flags, 0, 1, 1, length
    return row
