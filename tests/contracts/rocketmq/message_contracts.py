# SPDX-License-Identifier: Apache-2.0
"""Contracts of records of the commit log: how long one is, and which keys of it are indexed.

Each is held against the definition, written down in the contract itself.

Mirrors: impl/segproof/kernels/rocketmq_records.py.
Used by: registry.
"""

from typing import Any

from segproof.kernels import rocketmq_index, rocketmq_records

_absolute_hash = rocketmq_index.absolute_hash.interpreted
_hash_of_units: Any = rocketmq_index.hash_of_units.interpreted
_hash_keys: Any = rocketmq_records.hash_keys.interpreted
_read_message: Any = rocketmq_records.read_message.interpreted
_NAMES = b"KEYSUNIQ_KEYTAGS"
_TOPIC = 84
"""The one letter of the topic."""


def _signed(data: list[int]) -> int:
    """Return a big-endian number in two's complement."""
    number = 0
    for byte in data:
        number = number * 256 + byte
    return number - 256 ** len(data) if data[0] >= 128 else number


def sum_of_sizes(data: bytes, flags: int, is_old: bool, has_body: bool, is_cut: bool) -> bool:
    """A record is sound exactly if its length is the sum of its fields, none of them negative.

    pre: len(data) == 5
    pre: flags in (16, 32)
    post: _
    """
    body = [0, 0, 0, 1, 66] if has_body else [0, 0, 0, 0]
    magic = [0, 0, 0, 167 if is_old else 171]
    # One host has 20 bytes, the other 8; what lies between size, flags and body says nothing.
    head = [*magic, *bytes(31), flags, *bytes(56), *body]
    total = 4 + len(head) + len(data) + (1 if is_cut else 0)
    record = [0, 0, 0, total, *head, *data]
    size = _read_message(record, 0, len(record), _NAMES, 0, [0] * 16)
    is_sound = not is_cut and _adds_up(list(data), 1 if is_old else 2)
    return bool(size == (total if is_sound else -1))


def _adds_up(rest: list[int], width: int) -> bool:
    """Whether these are the length of a topic, the topic, that of properties, and properties."""
    topic_length = _signed(rest[:width])
    for length in range(len(rest) - width - 1):
        if topic_length == length:
            tail = rest[width + length :]
            return max(_signed(tail[:2]), 0) == len(tail) - 2
    return False


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
