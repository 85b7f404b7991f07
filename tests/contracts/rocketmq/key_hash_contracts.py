# SPDX-License-Identifier: Apache-2.0
"""Contracts of the key hash: units, characters of UTF-8, the absolute value, slots, whole keys.

The model's hash takes texts, and looks at them by Python's own encoder. Here its definition is held
against units, and against characters that the contract itself writes as UTF-8, number by number.

Mirrors: model/segproof_model/rocketmq/format/key_hash.py, impl/segproof/kernels/{rocketmq_index,
    rocketmq_records}.py.
"""

from typing import Any

from segproof.kernels import rocketmq_index, rocketmq_records
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_tests.contracts import Mutant, contract

INDEX = "segproof.kernels.rocketmq_index"

_absolute_hash = rocketmq_index.absolute_hash.interpreted
_add_unit = rocketmq_index.add_unit.interpreted
_hash_of_units: Any = rocketmq_index.hash_of_units.interpreted
_hash_of_utf8: Any = rocketmq_index.hash_of_utf8.interpreted
_slot_position = rocketmq_index.slot_position.interpreted
_utf8_character: Any = rocketmq_index.utf8_character.interpreted
_key_hash: Any = rocketmq_records.key_hash.interpreted
_extend_hash: Any = rocketmq_records.extend_hash.interpreted


def _units(code: int) -> list[int]:
    """Return the UTF-16 units of a code point."""
    if code < 0x10000:
        return [code]
    return [0xD800 + (code - 0x10000) // 1024, 0xDC00 + code % 1024]


@contract(
    f"{INDEX}:slot_position",
    "RMQHASH-3 RMQIDX-1 RMQIDX-5",
    "every hash of 31 bits; 1, 2, 3, 5000000 and 536870891 slots",
    Mutant("hash_slot_num * 4", "hash_slot_num * 8"),
    Mutant("40 +", "44 +"),
)
def slot_of_hash(key_hash: int, hash_slot_num: int) -> bool:
    """A hash has its slot where the model has it, and 32 bits hold the place.

    pre: 0 <= key_hash < 2**31
    pre: hash_slot_num in (1, 2, 3, 5_000_000, 536_870_891)
    post: _
    """
    model = object.__new__(SEGPROOF.kind(IndexFile))
    model.hash_slot_num = hash_slot_num
    position = model.slot_position(model.slot_of(key_hash))
    return bool(_slot_position(key_hash, hash_slot_num) == position)


class _Character:
    """What `utf8_character` returns, 8 * code point + bytes, before it is multiplied out."""

    def __init__(self, code: int, size: int) -> None:
        self.code, self.size = code, size

    def __lt__(self, least: int) -> bool:
        return False

    def __floordiv__(self, eight: int) -> int:
        return self.code

    def __mod__(self, eight: int) -> int:
        return self.size


def _reads(kernel: Any, code: int, size: int) -> None:
    """Let a kernel read this character; that it is read from its bytes is confirmed above."""
    character = _Character(code, size)

    def read(data: list[int], position: int, *_: int) -> object:
        letter = data[position]
        return character if letter >= 128 else _Character(letter, 1)

    kernel.__globals__["utf8_character"] = read


@contract(
    f"{INDEX}:hash_of_utf8",
    "RMQHASH-1 RMQHASH-2",
    "any code point but ASCII, behind 0 to 4 letters and before one",
    Mutant("code >= 65536", "code > 65536"),
    Mutant("code % 1024", "code % 512"),
    Mutant("    code = 56320 + code", "    code = 56321 + code"),
)
def hash_of_characters(letters: int, code: int) -> bool:
    """Any character, wherever it stands among ASCII, is hashed as its units.

    pre: 0 <= letters <= 4
    pre: 128 <= code <= 1114111
    post: _
    """
    for count in range(5):
        if letters == count:
            text = [97] * count
            _reads(_hash_of_utf8, code, 2)
            found = _hash_of_utf8([*text, 200, 200, 98], 0, count + 3, 0)
            return bool(found == _absolute_hash(_hash_of_units([*text, *_units(code), 98])))
    return False


@contract(
    "segproof.kernels.rocketmq_records:key_hash",
    "RMQHASH-1 RMQHASH-2 RMQHASH-5",
    "a topic of three letters, a key of any code point but ASCII, and a letter",
    Mutant("code >= 65536", "code > 65536", "extend_hash"),
    Mutant("absolute_hash(hashed)", "hashed"),
)
def hash_of_composed_key(code: int) -> bool:
    """A key behind a topic and # has the hash of the composed key, from pieces of a record.

    pre: 128 <= code <= 1114111
    post: _
    """
    _reads(_key_hash.__globals__["extend_hash"], code, 2)
    record = [84, 84, 84, 200, 200, 107]
    topic_hash = _add_unit(_extend_hash(record, 0, 3, 0), 35)
    found = _key_hash(record, 3, 6, topic_hash)
    return bool(found == _absolute_hash(_hash_of_units([84, 84, 84, 35, *_units(code), 107])))
