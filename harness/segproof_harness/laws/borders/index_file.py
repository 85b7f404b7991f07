# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of one index file of RocketMQ."""

import struct

from segproof.findings import Severity
from segproof_harness.laws.borders.border import Border, Due, Files
from segproof_harness.laws.borders.store_files import (
    INDEX,
    ROOM,
    SLOTS,
    TIME,
    Entry,
    border,
    index_file,
    place_of,
    put,
    store,
)

NOTE, WARNING = Severity.NOTE, Severity.WARNING
ENTRIES = (Entry(1, 0), Entry(5, 10, 1), Entry(2, 20, 2))
"""Three entries; the first two belong to slot 1, the third to slot 2."""
RIGHT = index_file(ENTRIES)
SIZE = len(RIGHT)
EMPTY = bytes(SIZE)
ANY_INT = "0 to 2147483647"
CLOCK_SECONDS = 20 * 366 * 86_400


def _index(data: bytes) -> Files:
    return store(index=data)


def _of(*entries: Entry, **header: int) -> Files:
    return _index(index_file(entries, **header))


def _byte(position: int, value: int = 1, data: bytes = RIGHT) -> Files:
    return _index(put(data, position, bytes([value])))


def _int(position: int, value: int, data: bytes = RIGHT) -> Files:
    return _index(put(data, position, struct.pack(">i", value)))


def _at(
    position: int | None, expected: object = None, actual: object = None,
    severity: Severity = Severity.ERROR,
) -> Due:  # fmt: skip
    return Due(INDEX, position, expected, actual, severity)


def _slot(slot: int) -> int:
    return 40 + 4 * slot


def _name(part: str, lawful: str, unlawful: str) -> Border:
    """Return the border of one part of the name, which is a time."""
    files = [store(index=None) | {f"index/{name}": RIGHT} for name in (lawful, unlawful)]
    due = Due(f"index/{unlawful}", severity=NOTE)
    return border("RMQDISK-3", f"the {part} is in range, or not", files[0], files[1], due)


def _entries(count: int) -> tuple[Entry, ...]:
    """Return that many entries of slot 1."""
    return tuple(Entry(1, 10 * number, number) for number in range(count))


def _seconds(*seconds: int, end: int = TIME + 2000) -> Files:
    rows = [one._replace(seconds=late) for one, late in zip(ENTRIES, seconds, strict=True)]
    return _index(index_file(rows, end=end))


NOT_COUNTED = "its law leaves out the entry of an unfinished put"
BETWEEN = "its law takes each number up to that of the entries"

BORDERS = (
    # length and name
    border(
        "RMQDISK-1", "the file has whole entries, or a byte more",
        _index(EMPTY), _index(EMPTY + b"\0"), _at(None, None, SIZE + 1),
        not_by_the_model="it is not given the slots of a file of another length",
    ),
    border(
        "RMQDISK-1", "the file has room for two entries, or one",
        _index(bytes(40 + 4 * SLOTS + 40)), _index(bytes(40 + 4 * SLOTS + 20)),
        _at(None, None, 40 + 4 * SLOTS + 20),
        not_by_the_model="it is given N of one, too",
    ),
    border(
        "RMQDISK-1", "the smallest file has 84 bytes, or 80",
        _index(bytes(84)), _index(bytes(80)), _at(None, None, 80), is_given=False,
        not_by_the_model="it is given a number of slots",
    ),
    border(
        "RMQDISK-2", "one end of the header fits a number of slots, or none",
        _of(*ENTRIES, end_offset=21), _of(*ENTRIES, begin_offset=1, end_offset=21),
        _at(None, severity=WARNING), is_given=False,
    ),
    _name("month up to 12", "20231231221320000", "20231331221320000"),
    _name("month from 1 on", "20230131221320000", "20230031221320000"),
    _name("day up to 31", "20230131221320000", "20230132221320000"),
    _name("day from 1 on", "20230101221320000", "20230100221320000"),
    _name("day of February", "20240229221320000", "20240230221320000"),
    _name("day of April", "20230430221320000", "20230431221320000"),
    _name("hour", "20231114231320000", "20231114241320000"),
    _name("minute", "20231114225920000", "20231114226020000"),
    _name("second", "20231114221360000", "20231114221361000"),
    # the count
    border(
        "RMQDISK-4", "the count is that of all entries, or one more",
        _of(*_entries(ROOM - 1)), _of(*_entries(ROOM - 1), count=ROOM + 1),
        _at(36, ROOM, ROOM + 1),
    ),
    border(
        "RMQDISK-4", "the count is 0, or negative",
        _index(EMPTY), _int(36, -1, EMPTY), _at(36, ROOM, -1),
    ),
    border(
        "RMQDISK-5", "after a header without entries all is zero, or the first byte is not",
        _index(EMPTY), _byte(40, data=EMPTY), _at(40, 0),
    ),
    border(
        "RMQDISK-5", "after a header without entries all is zero, or the last byte is not",
        _index(EMPTY), _byte(SIZE - 1, data=EMPTY), _at(SIZE - 1, 0),
    ),
    border(
        "RMQDISK-5", "the header counts entry 1, or none",
        _of(ENTRIES[0]), _of(ENTRIES[0], count=1), _at(_slot(1) + 3, 0),
    ),
    border(
        "RMQDISK-6", "the last byte of the next entry is not zero, or the byte after it",
        _byte(place_of(5) - 1), _byte(place_of(5)), _at(place_of(5), 0),
        _at(place_of(4), severity=NOTE), not_by_the_model=NOT_COUNTED,
    ),
    border(
        "RMQDISK-6", "after the next entry all is zero, or the first byte is not",
        _index(RIGHT), _byte(place_of(5)), _at(place_of(5), 0),
    ),
    border(
        "RMQDISK-6", "after the next entry all is zero, or the last byte is not",
        _index(RIGHT), _byte(SIZE - 1), _at(SIZE - 1, 0),
    ),
    border(
        "RMQDISK-6", "the entry after the last is zero, or its first byte is not",
        _index(RIGHT), _byte(place_of(4)), _at(place_of(4), severity=NOTE),
        not_by_the_model=NOT_COUNTED,
    ),
    border(
        "RMQDISK-7", "entry 0 is zero, or its first byte is not",
        _index(RIGHT), _byte(place_of(0)), _at(place_of(0), 0, severity=WARNING),
    ),
    border(
        "RMQDISK-7", "entry 0 is zero, or its last byte is not",
        _index(RIGHT), _byte(place_of(1) - 1), _at(place_of(0), 0, severity=WARNING),
    ),
    # slots and chains
    border(
        "RMQDISK-8", "the slot leads to the last entry, or one beyond",
        _int(_slot(2), 3), _int(_slot(2), 4), _at(_slot(2), "0 to 3", 4),
    ),
    border(
        "RMQDISK-8", "the first slot is 0, or negative",
        _index(RIGHT), _int(_slot(0), -1), _at(_slot(0), "0 to 3", -1),
    ),
    border(
        "RMQDISK-8", "the last slot is 0, or leads one entry beyond the last",
        _index(RIGHT), _int(_slot(3), 4), _at(_slot(3), "0 to 3", 4),
    ),
    border(
        "RMQDISK-9", "the second entry names the first, or itself",
        _index(RIGHT), _of(ENTRIES[0], ENTRIES[1]._replace(previous=2), ENTRIES[2]),
        _at(place_of(2), "0 to 1", 2),
    ),
    border(
        "RMQDISK-9", "the first entry names none, or itself",
        _index(RIGHT), _of(ENTRIES[0]._replace(previous=1), *ENTRIES[1:]),
        _at(place_of(1), "0 to 0", 1),
    ),
    border(
        "RMQDISK-9", "the last entry names none, or a negative one",
        _index(RIGHT), _of(*ENTRIES[:2], ENTRIES[2]._replace(previous=-1)),
        _at(place_of(3), "0 to 2", -1),
    ),
    border(
        "RMQDISK-10", "the hash is 0, or negative",
        _of(ENTRIES[0]._replace(key_hash=0)), _of(ENTRIES[0]._replace(key_hash=-1)),
        _at(place_of(1), ANY_INT, -1),
    ),
    border(
        "RMQDISK-10", "the head of slot 2 has a hash of this slot, or of the next",
        _index(RIGHT), _int(place_of(3), 3), _at(_slot(2), 2, 3),
    ),
    border(
        "RMQDISK-10", "the second entry names one of its slot, or of another",
        _index(RIGHT), _int(place_of(1), 2), _at(place_of(2), 1, 2),
    ),
    border(
        "RMQDISK-11", "a slot leads to the last entry, or is empty",
        _index(RIGHT), _int(_slot(2), 0), _at(place_of(3), 1, 0),
    ),
    border(
        "RMQDISK-11", "the second entry names the first, or none",
        _index(RIGHT), _of(ENTRIES[0], ENTRIES[1]._replace(previous=0), ENTRIES[2]),
        _at(place_of(1), 1, 0),
    ),
    border(
        "RMQDISK-11", "one entry names the first, or two do",
        _of(Entry(1, 0), Entry(1, 1), Entry(1, 2)),
        _of(Entry(1, 0), Entry(1, 1), Entry(1, 2, 0, 1)),
        [_at(place_of(1), 1, 2), _at(place_of(2), 1, 0)],
    ),
    border(
        "RMQDISK-12", "the slot count is that of the slots in use, or one less",
        _of(*ENTRIES, slots=2), _of(*ENTRIES, slots=1), _at(32, 2, 1, WARNING),
    ),
    border(
        "RMQDISK-12", "the slot count is that of the entries, or one more",
        _of(*ENTRIES, slots=3), _of(*ENTRIES, slots=4), _at(32, 2, 4, WARNING),
    ),
    border(
        "RMQDISK-12", "the slot count lies between, or below",
        _of(*_entries(3), slots=2), _of(*_entries(3), slots=0), _at(32, 1, 0, WARNING),
        _at(32, 1, 2, NOTE), not_by_the_model=BETWEEN,
    ),
    # times
    border(
        "RMQDISK-13", "the difference is 0, or negative",
        _seconds(0, 0, 2), _seconds(0, -1, 2), _at(place_of(2), ANY_INT, -1),
    ),
    border(
        "RMQDISK-13", "the difference of the first entry is 0, or negative",
        _seconds(0, 1, 2), _seconds(-1, 1, 2), _at(place_of(1), ANY_INT, -1),
    ),
    border(
        "RMQDISK-13", "the last difference fits the end, or is one less",
        _seconds(0, 1, 2), _seconds(0, 1, 1), _at(place_of(3), 2, 1),
    ),
    border(
        "RMQDISK-13", "the last difference fits the end, or is one more",
        _seconds(0, 1, 2), _seconds(0, 1, 3), _at(place_of(3), 2, 3),
    ),
    border(
        "RMQDISK-13", "the end is the last millisecond of its second, or the next",
        _seconds(0, 1, 2, end=TIME + 2999), _seconds(0, 1, 2, end=TIME + 3000),
        _at(place_of(3), 3, 2),
    ),
    border(
        "RMQDISK-13", "the last difference is 0, and the end in the first second, or the next",
        _seconds(0, 0, 0, end=TIME + 999), _seconds(0, 0, 0, end=TIME + 1000),
        _at(place_of(3), 1, 0),
    ),
    border(
        "RMQDISK-14", "the second entry reads as the end, or a second later",
        _seconds(0, 2, 2), _seconds(0, 3, 2), _at(place_of(2), "at most 2", 3, NOTE),
    ),
    border(
        "RMQDISK-14", "the first entry reads later than the end, or the second",
        _seconds(3, 2, 2), _seconds(0, 3, 2), _at(place_of(2), "at most 2", 3, NOTE),
    ),
    border(
        "RMQDISK-14", "the entry reads 20 years after the end, or a second more",
        _seconds(0, 2 + CLOCK_SECONDS, 2), _seconds(0, 3 + CLOCK_SECONDS, 2),
        _at(place_of(2), "at most 2", 3 + CLOCK_SECONDS, WARNING),
        _at(place_of(2), "at most 2", 2 + CLOCK_SECONDS, NOTE),
    ),
    # offsets
    border(
        "RMQDISK-15", "the second offset is the same, or one less",
        _of(Entry(1, 10), Entry(1, 10, 1)), _of(Entry(1, 10), Entry(1, 9, 1)),
        _at(place_of(2), "10 or more", 9),
    ),
    border(
        "RMQDISK-15", "the first offset is 0, or negative",
        _of(Entry(1, 0), Entry(1, 10, 1)), _of(Entry(1, -1), Entry(1, 10, 1)),
        _at(place_of(1), "0 or more", -1),
    ),
    border(
        "RMQDISK-16", "the begin offset is that of the first entry, or one more",
        _index(RIGHT), _of(*ENTRIES, begin_offset=1), _at(16, 0, 1),
    ),
    border(
        "RMQDISK-16", "the end offset is that of the last entry, or one less",
        _index(RIGHT), _of(*ENTRIES, end_offset=19), _at(24, 20, 19),
    ),
    border(
        "RMQDISK-16", "with one entry begin and end are one time, or a millisecond apart",
        _of(ENTRIES[0]), _index(index_file(ENTRIES[:1], end=TIME + 1)), _at(8, TIME, TIME + 1),
    ),
    border(
        "RMQDISK-16", "with two entries begin and end may differ, or with one",
        _index(index_file(ENTRIES[:2], end=TIME + 1001)),
        _index(index_file(ENTRIES[:1], end=TIME + 1)), _at(8, TIME, TIME + 1),
    ),
    border(
        "RMQDISK-16", "without entries begin and end offset are the same, or not",
        _index(EMPTY), _byte(31, data=EMPTY), _at(0),
    ),
    border(
        "RMQDISK-16", "without entries begin and end timestamp are the same, or not",
        _index(EMPTY), _byte(15, data=EMPTY), _at(0),
    ),
)  # fmt: skip
