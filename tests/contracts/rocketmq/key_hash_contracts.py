# SPDX-License-Identifier: Apache-2.0
"""Contracts of the key hash: units, characters of UTF-8, the absolute value, slots, whole keys.

The model's hash takes texts, and looks at them by Python's own encoder. Here its definition is held
against units, and against characters that the contract itself writes as UTF-8, number by number.

Mirrors: model/segproof_model/rocketmq/format/key_hash.py, impl/segproof/kernels/{rocketmq_index,
    rocketmq_records}.py.
"""

from typing import Any

from segproof.kernels import rocketmq_index, rocketmq_records
from segproof_model.language.integers import wrap32
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


def _definition(units: list[int]) -> int:
    """Return Java's String.hashCode, written out: s[0]*31^(n-1) + ... + s[n-1], in 32 bits."""
    return wrap32(sum(unit * 31 ** (len(units) - 1 - n) for n, unit in enumerate(units)))


def _kept(hashed: int) -> int:
    """Return what an entry keeps of a signed hash, as the model has it."""
    return max(wrap32(abs(hashed)), 0)


def _is_character(code: int) -> bool:
    """Whether a code point is one that UTF-8 encodes."""
    return 0 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF


def _utf8(code: int) -> list[int]:
    """Return the bytes of a code point, from the table of UTF-8."""
    if code < 0x80:
        return [code]
    tail = 0x80 + code % 64
    if code < 0x800:
        return [0xC0 + code // 64, tail]
    middle = 0x80 + code // 64 % 64
    if code < 0x10000:
        return [0xE0 + code // 4096, middle, tail]
    return [0xF0 + code // 262144, 0x80 + code // 4096 % 64, middle, tail]


def _units(code: int) -> list[int]:
    """Return the UTF-16 units of a code point."""
    if code < 0x10000:
        return [code]
    return [0xD800 + (code - 0x10000) // 1024, 0xDC00 + code % 1024]


@contract(
    f"{INDEX}:hash_of_units",
    "RMQHASH-1",
    "any 0 to 5 UTF-16 units",
    Mutant("hashed * 31 + unit", "hashed * 33 + unit"),
    Mutant("4294967295", "2147483647"),
)
def hash_of_few_units(units: list[int]) -> bool:
    """The hash of UTF-16 units is Java's polynomial in 31, whatever the units are.

    pre: len(units) <= 5
    pre: all(0 <= unit < 65536 for unit in units)
    post: _
    """
    return wrap32(_hash_of_units(units)) == _definition(units)


@contract(
    f"{INDEX}:add_unit",
    "RMQHASH-1",
    "every hash of 32 bits, every UTF-16 unit: so texts of any length",
    Mutant("* 31 +", "* 31 -"),
    Mutant("4294967295", "2147483647"),
)
def unit_by_unit(hashed: int, unit: int) -> bool:
    """One more unit changes the hash as Java's loop does, so that texts of any length agree.

    pre: -(2**31) <= hashed < 2**31
    pre: 0 <= unit < 65536
    post: _
    """
    return wrap32(_add_unit(hashed % 2**32, unit)) == wrap32(31 * hashed + unit)


@contract(
    f"{INDEX}:absolute_hash",
    "RMQHASH-2",
    "every hash of 32 bits",
    Mutant("hashed < 2147483648", "hashed <= 2147483648"),
    Mutant("        return 0\n", "        return 2147483647\n"),
    Mutant("4294967296 - hashed", "4294967295 - hashed"),
)
def absolute_value(hashed: int) -> bool:
    """What an entry keeps of a hash is its absolute value, and 0 for the one that has none.

    pre: -(2**31) <= hashed < 2**31
    post: _
    """
    kept = _absolute_hash(hashed % 2**32)
    return kept == _kept(hashed) and 0 <= kept < 2**31


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


@contract(
    f"{INDEX}:utf8_character",
    "RMQHASH-1",
    "every code point, from UTF-8 and from Python's texts with their lone surrogates",
    Mutant("first < 194", "first <= 194"),
    Mutant("code > 1114111", "code >= 1114111"),
    Mutant("55296 <= code", "55296 < code"),
    Mutant("byte >= 192", "byte >= 191"),
)
def characters_are_read(code: int, is_text: bool) -> bool:
    """Every code point is read as itself; surrogates in Python's texts only.

    pre: 0 <= code <= 1114111
    post: _
    """
    data = _utf8(code)
    found = _utf8_character(data, 0, len(data), int(is_text))
    if not (is_text or _is_character(code)):
        return bool(found == -1)
    return bool(found == 8 * code + len(data))


@contract(
    f"{INDEX}:utf8_character",
    "RMQHASH-1",
    "any 4 raw bytes, ending after 1 to 4 of them",
    Mutant("code < least or ", ""),
    Mutant("position + size > end", "position + size > end + 1"),
    Mutant("code < 57344", "code < 57343"),
)
def nothing_else_is_read(data: bytes, end: int) -> bool:
    """What is read as a character is what UTF-8 writes for it, and ends before the end.

    pre: len(data) == 4
    pre: 1 <= end <= 4
    post: _
    """
    found = _utf8_character(data, 0, end, 0)
    if found == -1:
        return True
    code, size = found // 8, found % 8
    written = _utf8(code)
    if not _is_character(code) or size != len(written) or size > end:
        return False
    return all(data[n] == written[n] for n in range(size))


@contract(
    f"{INDEX}:hash_of_utf8",
    "RMQHASH-1 RMQHASH-2",
    "any 0 to 6 ASCII letters",
    Mutant("two * 961", "two * 31"),
    Mutant("three * 31 + four", "three * 31"),
    Mutant("position + 4 <= end", "position + 3 <= end"),
)
def hash_of_ascii(data: bytes, start: int) -> bool:
    """Four at a time and one by one, ASCII is hashed as its units are.

    pre: len(data) == 6
    pre: 0 <= start <= 6
    pre: all(byte < 128 for byte in data)
    post: _
    """
    units = [data[n] for n in range(start, 6)]
    return bool(_hash_of_utf8(data, start, 6, 0) == _kept(_definition(units)))


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
