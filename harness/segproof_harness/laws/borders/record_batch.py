# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of one batch: its header, its checksum and its records."""

import gzip

from segproof.checksums import crc32, crc32c
from segproof.findings import Severity
from segproof.kafka import write_empty_batch
from segproof_harness.laws.borders.border import Border, Due, Files
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    batch_of,
    message,
    name,
    patched,
    record,
    segment,
    with_byte,
    wrapper,
)
from segproof_harness.laws.file_damages import int32

LOG_NAME = name(BASE, ".log")
FIRST = batch(BASE)
SIZE = len(FIRST)
TWO = batch_of(BASE, record(0) + record(1), record_count=2, last_offset_delta=1)
"""Two of the smallest records, in 14 bytes."""
EMPTY = write_empty_batch(BASE, BASE, 1)
OLD = message(BASE, b"value")
OLDEST = message(BASE, b"value", magic=0)
FIELDS = "0 in all bits but 0 to 6 (magic 2) or 0 to 3"
LZ4, ZSTD = 3, 4


def _log(*parts: bytes) -> Files:
    return segment(b"".join(parts))


def _at(position: int, expected: object = None, actual: object = None) -> Due:
    return Due(LOG_NAME, position, expected, actual)


def _sums(data: bytes, position: int = 0) -> Due:
    """Return the finding of a batch with a wrong checksum: the one of its bytes, and the stored."""
    is_new = data[16] == 2
    made = crc32c(data[21:]) if is_new else crc32(data[16:])
    at = 17 if is_new else 12
    return _at(position, f"{made:#010x}", f"0x{data[at : at + 4].hex()}")


def _checksum(law: str, data: bytes, lawful: int, unlawful: int, bound: str) -> Border:
    """Return the border between a byte that the checksum leaves out, and one that it covers."""
    changed = [with_byte(data, place, data[place] ^ 1) for place in (lawful, unlawful)]
    return Border(law, bound, _log(changed[0]), _log(changed[1]), _sums(changed[1]))


def _changed(data: bytes, *places: int) -> bytes:
    for place in places:
        data = with_byte(data, place, data[place] ^ 1)
    return data


def _deep(law: str, bound: str, lawful: bytes, unlawful: bytes, due: Due) -> Border:
    return Border(law, bound, _log(lawful), _log(unlawful), due, deep=True)


def _bits() -> list[Border]:
    """Return a border for each attribute bit that no release uses."""
    borders = []
    for bit in range(7, 16):
        value = (1 << bit) - (1 << 16 if bit == 15 else 0)
        borders.append(
            Border(
                "DISK-15", f"no bit of magic 2 is set, or bit {bit}",
                _log(FIRST), _log(patched(FIRST, attributes=value)),
                Due(LOG_NAME, 0, FIELDS, value, Severity.WARNING),
            )
        )  # fmt: skip
    for magic, data in enumerate((OLDEST, OLD)):
        for bit in range(4, 8):
            value = (1 << bit) - (1 << 8 if bit == 7 else 0)
            borders.append(
                Border(
                    "DISK-15", f"no bit of magic {magic} is set, or bit {bit}",
                    _log(data), _log(patched(data, attributes=value)),
                    Due(LOG_NAME, 0, FIELDS, value, Severity.WARNING),
                )
            )  # fmt: skip
    return borders


def _records(*records: bytes, count: int | None = None, last: int = 1, latest: int = 1) -> bytes:
    return batch_of(
        BASE, b"".join(records), record_count=len(records) if count is None else count,
        last_offset_delta=last, max_timestamp=latest,
    )  # fmt: skip


MOST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""


def _timed(timestamp: int) -> bytes:
    """Return a batch of one record at that time; its offset is not right in a longer log."""
    return patched(FIRST, base_timestamp=timestamp, max_timestamp=timestamp)


def _gzipped(body: bytes) -> bytes:
    """Return a batch of two records whose bytes are compressed so."""
    return batch_of(BASE, body, record_count=2, last_offset_delta=1, attributes=1)


def _long(size: int) -> bytes:
    """Return two records, the second with a value of that many zeros."""
    return record(0) + record(1, 0, bytes(size))


def _only_of_right_sums() -> list[Border]:
    """Return a border for each law of headers: the checksum is wrong, or right."""
    return [
        Border(
            law, "the checksum is wrong, or right", _log(_changed(data, 20)), _log(data),
            Due(LOG_NAME, 0, expected, actual, severity),
        )
        for law, data, expected, actual, severity in (
            ("BATCH-15", patched(EMPTY + b"\0", size=50), 61, 62, Severity.ERROR),
            ("BATCH-16", patched(EMPTY, record_count=-1), "0 to 0", -1, Severity.ERROR),
            ("BATCH-18", patched(FIRST, attributes=5), "0 to 4", 5, Severity.ERROR),
            ("DISK-14", patched(TWO, last_offset_delta=0), "at most 1", 2, Severity.ERROR),
            ("DISK-15", patched(FIRST, attributes=128), FIELDS, 128, Severity.WARNING),
        )
    ]  # fmt: skip


PAIR = record(0) + record(1)
GZIPPED = gzip.compress(PAIR, mtime=0)
INNER = [message(number, b"value") for number in range(3)]
ABSOLUTE = [message(BASE + number, b"value", magic=0) for number in range(3)]
LAST = BASE + 2

BORDERS = (
    # size
    Border(
        "BATCH-14", "a batch of magic 2 has 61 bytes, or 60",
        _log(EMPTY, batch(BASE + 1)),
        _log(EMPTY[:8] + int32(48) + EMPTY[12:60], batch(BASE + 1)),
        _at(0, "61 or more", 60),
    ),
    Border(
        "BATCH-14", "a batch with a wrong checksum has 61 bytes, or 60",
        _log(_changed(EMPTY, 60), batch(BASE + 1)),
        _log(EMPTY[:8] + int32(48) + EMPTY[12:60], batch(BASE + 1)), _at(0, "61 or more", 60),
    ),
    # checksums
    Border(
        "BATCH-2", "the batch with a wrong checksum is of magic 2, or 1",
        _log(_changed(FIRST, SIZE - 1)), _log(_changed(OLD, len(OLD) - 1)),
        _sums(_changed(OLD, len(OLD) - 1)),
    ),
    Border(
        "BATCH-3", "the batch with a wrong checksum is of magic 1, or 2",
        _log(_changed(OLD, len(OLD) - 1)), _log(_changed(FIRST, SIZE - 1)),
        _sums(_changed(FIRST, SIZE - 1)),
    ),
    *_only_of_right_sums(),
    _checksum("BATCH-3", FIRST, 15, 21, "a bit differs in byte 15, the leader epoch, or byte 21"),
    _checksum("BATCH-3", FIRST, 15, SIZE - 1, "a bit differs in byte 15, or the last one"),
    _checksum("BATCH-3", FIRST, 12, 17, "a bit differs in byte 12, or the stored checksum"),
    _checksum("BATCH-3", FIRST, 7, 20, "a bit differs in byte 7, or the stored checksum"),
    Border(
        "BATCH-3", "the second batch is as it was, or its last byte differs",
        _log(FIRST, batch(BASE + 1)), _log(FIRST, _changed(batch(BASE + 1), SIZE - 1)),
        _sums(_changed(batch(BASE + 1), SIZE - 1), SIZE),
    ),
    _checksum("BATCH-2", OLD, 7, 16, "a bit differs in byte 7, the offset, or byte 16"),
    _checksum("BATCH-2", OLD, 7, len(OLD) - 1, "a bit differs in byte 7, or the last one"),
    _checksum("BATCH-2", OLD, 7, 12, "a bit differs in byte 7, or the stored checksum"),
    _checksum("BATCH-2", OLDEST, 7, 15, "a bit differs in byte 7, or its last byte"),
    # attributes
    Border(
        "BATCH-11", "a message of magic 1 has codec 3, or 4",
        _log(patched(OLD, attributes=LZ4)), _log(patched(OLD, attributes=ZSTD)),
        _at(0),
    ),
    Border(
        "BATCH-11", "a message of magic 0 has codec 3, or 4",
        _log(patched(OLDEST, attributes=LZ4)),
        _log(patched(OLDEST, attributes=ZSTD)), _at(0),
    ),
    Border(
        "BATCH-11", "codec 4 in magic 2, or in magic 1",
        _log(patched(FIRST, attributes=ZSTD)), _log(patched(OLD, attributes=ZSTD)),
        _at(0),
    ),
    Border(
        "BATCH-18", "the codec is 4, or 5",
        _log(patched(FIRST, attributes=4)), _log(patched(FIRST, attributes=5)),
        _at(0, "0 to 4", 5),
    ),
    Border(
        "BATCH-18", "the codec is 0 with all bits above it, or 7",
        _log(patched(FIRST, attributes=0x78)), _log(patched(FIRST, attributes=7)),
        _at(0, "0 to 4", 7),
    ),
    Border(
        "BATCH-18", "the codec of a message is 3, or 5",
        _log(patched(OLD, attributes=3)), _log(patched(OLD, attributes=5)),
        _at(0, "0 to 4", 5),
    ),
    Border(
        "DISK-15", "bits 0 to 6 of magic 2 are set, or bit 7 too",
        _log(patched(FIRST, attributes=0x7F)), _log(patched(FIRST, attributes=0xFF)),
        Due(LOG_NAME, 0, FIELDS, 0xFF, Severity.WARNING),
    ),
    Border(
        "DISK-15", "bits 0 to 3 of magic 1 are set, or bit 4 too",
        _log(patched(OLD, attributes=0x0F)), _log(patched(OLD, attributes=0x1F)),
        Due(LOG_NAME, 0, FIELDS, 0x1F, Severity.WARNING),
    ),
    *_bits(),
    # counts
    Border(
        "BATCH-15", "a batch without records has 61 bytes, or 62",
        _log(EMPTY), _log(patched(EMPTY + b"\0", size=50)), _at(0, 61, 62),
    ),
    Border(
        "BATCH-15", "a batch of 68 bytes has one record, or none",
        _log(batch_of(BASE, record(0))), _log(batch_of(BASE, record(0), record_count=0)),
        _at(0, 61, 68),
    ),
    Border(
        "BATCH-16", "the record count is 0, or negative",
        _log(EMPTY), _log(patched(EMPTY, record_count=-1)), _at(0, "0 to 0", -1),
    ),
    Border(
        "BATCH-16", "14 bytes for two records of 7, or three",
        _log(TWO), _log(patched(TWO, record_count=3)), _at(0, "0 to 2", 3),
    ),
    Border(
        "BATCH-16", "20 bytes for two records, or three",
        _log(batch_of(BASE, bytes(20), record_count=2)),
        _log(batch_of(BASE, bytes(20), record_count=3)), _at(0, "0 to 2", 3),
    ),
    Border(
        "DISK-14", "two records in two offsets, or in one",
        _log(TWO), _log(patched(TWO, last_offset_delta=0)), _at(0, "at most 1", 2),
    ),
    Border(
        "DISK-14", "a batch without records has one offset, or none",
        _log(EMPTY), _log(patched(EMPTY, last_offset_delta=-1)), _at(0, "at most 0", 0),
    ),
    Border(
        "DISK-14", "one record in one offset, or in none",
        _log(FIRST), _log(patched(FIRST, last_offset_delta=-1)), _at(0, "at most 0", 1),
    ),
    *(
        Border(
            "DISK-57", bound, _log(*map(_timed, lawful)), _log(*map(_timed, unlawful)),
            Due(LOG_NAME, 0, expected, unlawful[0], Severity.WARNING),
        )
        for bound, lawful, unlawful, expected in (
            ("a time is none, or below that", (-1,), (-2,), "-1 or more"),
            ("beside a usual time one has 13 digits, or 14", (10**13 - 1, 10**12),
             (10**13, 10**12), f"less than {10**13}"),
            ("a time is below those that are seconds of 2001, or the first", (10**9 - 1,),
             (10**9,), f"{42 * 10**8} or more"),
            ("a time is above those that are seconds of 2103, or the last", (42 * 10**8,),
             (42 * 10**8 - 1,), f"{42 * 10**8} or more"),
            ("another time is in the last millisecond of history, or after it",
             (10**9, 10**12 - 1), (10**9, 10**12), f"{42 * 10**8} or more"),
            ("another time is in the first millisecond of history, or before it",
             (10**9, 42 * 10**8), (10**9, 10**9 - 1), f"{42 * 10**8} or more"),
        )
    ),
    Border(
        "DISK-57", "a time is the last of the year 9999, or one more",
        _log(_timed(MOST_MS)), _log(_timed(MOST_MS + 1)),
        Due(LOG_NAME, 0, f"at most {MOST_MS}", MOST_MS + 1, Severity.WARNING),
        still=Due(LOG_NAME, 0, f"less than {10**13}", MOST_MS, Severity.NOTE),
    ),
    Border(
        "DISK-57", "beside the last time of the year 9999 is the same, or one more",
        _log(_timed(MOST_MS), _timed(MOST_MS)), _log(_timed(MOST_MS), _timed(MOST_MS + 1)),
        [
            Due(LOG_NAME, len(FIRST), f"at most {MOST_MS}", MOST_MS + 1, Severity.WARNING),
            Due(LOG_NAME, 0, f"less than {10**13}", MOST_MS, Severity.NOTE),
        ],
        still=Due(LOG_NAME, 0, f"less than {10**13}", MOST_MS, Severity.NOTE),
    ),
    Border(
        "DISK-57", "beside a time of 14 digits one has 12 digits, or 13",
        _log(_timed(10**13), _timed(10**12 - 1)), _log(_timed(10**13), _timed(10**12)),
        Due(LOG_NAME, 0, f"less than {10**13}", 10**13, Severity.WARNING),
        still=Due(LOG_NAME, 0, f"less than {10**13}", 10**13, Severity.NOTE),
    ),
    Border(
        "DISK-57", "a time is 1, or 0", _log(_timed(1)), _log(_timed(0)),
        Due(LOG_NAME, 0, "not 0", 0, Severity.NOTE),
    ),
    # records, which only a deep run reads
    _deep(
        "BATCH-16", "a record has the length that it says, or one byte less",
        _records(record(0), record(1)), _records(b"\x0a" + record(0)[1:], record(1)), _at(0),
    ),
    _deep(
        "BATCH-16", "the last record ends with the batch, or one byte before",
        _records(record(0), record(1)), _records(record(0), record(1), b"\0", count=2), _at(0),
    ),
    _deep(
        "BATCH-16", "the last record ends with the batch, or one byte after",
        _records(record(0), record(1, 0, b"v")), _records(record(0), record(1, 0, b"v")[:-1]),
        _at(0),
    ),
    _deep(
        "DISK-16", "the last record has the last offset, or the next one",
        _records(record(0), record(1)), _records(record(0), record(2)),
        _at(0, BASE + 2, BASE + 1),
    ),
    _deep(
        "DISK-16", "the second offset is one more, or the same",
        _records(record(0), record(1)), _records(record(0), record(0)), _at(0, BASE, BASE + 1),
    ),
    _deep(
        "DISK-16", "the first record has the base offset, or the one before",
        _records(record(0), record(1)), _records(record(-1), record(1)),
        _at(0, BASE + 1, BASE + 1),
    ),
    _deep(
        "DISK-16", "the last record has the last offset but one, or the next one",
        _records(record(0), record(1), last=2), _records(record(0), record(3), last=2),
        _at(0, BASE + 3, BASE + 2),
    ),
    _deep(
        "DISK-17", "the largest timestamp is that of the records, or one less",
        _records(record(0), record(1, 2), latest=3), _records(record(0), record(1, 2), latest=2),
        _at(0, 3, 2),
    ),
    _deep(
        "DISK-17", "the largest timestamp is that of the records, or one more",
        _records(record(0, 2), record(1), latest=3), _records(record(0, 2), record(1), latest=4),
        _at(0, 3, 4),
    ),
    _deep(
        "DISK-17", "a batch without records has any timestamp, or one record has another",
        EMPTY, _records(record(0), last=0, latest=2), _at(0, 1, 2),
    ),
    _deep(
        "DISK-18", "a compressed block is whole, or lacks its last byte",
        _gzipped(GZIPPED), _gzipped(GZIPPED[:-1]), _at(0),
    ),
    Border(
        "DISK-18", "the records inflate to the limit, or to one byte more",
        _log(_gzipped(gzip.compress(_long(500)))), _log(_gzipped(gzip.compress(_long(501)))),
        Due(LOG_NAME, 0, f"at most {len(_long(500))} bytes", None, Severity.WARNING), deep=True,
        options={"limit": len(_long(500))}, not_by_the_model="it has no limit",
    ),
    # messages inside others
    _deep(
        "BATCH-9", "the offset of a wrapper of magic 0 is its last message's, or one more",
        wrapper(LAST, *ABSOLUTE, magic=0), wrapper(LAST + 1, *ABSOLUTE, magic=0),
        _at(0, LAST, LAST + 1),
    ),
    _deep(
        "BATCH-9", "the offset of a wrapper of magic 0 is its last message's, or one less",
        wrapper(LAST, *ABSOLUTE, magic=0), wrapper(LAST - 1, *ABSOLUTE, magic=0),
        _at(0, LAST, LAST - 1),
    ),
    _deep(
        "BATCH-9", "the inner offsets of magic 1 rise, or two are the same",
        wrapper(LAST, *INNER), wrapper(LAST, INNER[0], INNER[2], INNER[2]), _at(0, LAST, LAST),
    ),
    _deep(
        "BATCH-10", "the offset of a wrapper of magic 1 is its last inner one, or less",
        wrapper(1002, message(1001, b"v"), message(1002, b"v")),
        wrapper(1001, message(1001, b"v"), message(1002, b"v")), _at(0, "at least 1002", 1001),
    ),
    _deep(
        "DISK-56", "the checksum of an inner message is right, or one bit is not",
        wrapper(LAST, *INNER), wrapper(LAST, INNER[0], with_byte(INNER[1], 12, INNER[1][12] ^ 1),
                                       INNER[2]), _at(0, 0, 1),
    ),
    _deep(
        "DISK-56", "the inner messages fill the value, or one byte is left",
        wrapper(LAST, *INNER), wrapper(LAST, *INNER, b"\1"), _at(0, 0, 1),
    ),
    _deep(
        "DISK-56", "one checksum of inner messages of magic 0 is right, or none is",
        wrapper(LAST, *ABSOLUTE, magic=0),
        wrapper(LAST, *(with_byte(one, 15, one[15] ^ 1) for one in ABSOLUTE), magic=0),
        _at(0, 0, 3),
    ),
    _deep(
        "BATCH-11", "a wrapper holds a message, or nothing",
        wrapper(BASE, INNER[0]), wrapper(BASE), _at(0),
    ),
    _deep(
        "BATCH-11", "a wrapper has a value, or null",
        wrapper(BASE, INNER[0]), message(BASE, None, attributes=1), _at(0),
    ),
    _deep(
        "BATCH-11", "the message in a wrapper is plain, or compressed",
        wrapper(BASE, INNER[0]), wrapper(BASE, wrapper(0, INNER[0])), _at(0),
    ),
    _deep(
        "BATCH-11", "the size of an inner message is 14, or 13",
        wrapper(BASE, message(BASE, None, magic=0), magic=0),
        wrapper(
            BASE, message(BASE, None, magic=0), message(BASE, None, 0)[:8] + int32(13) + bytes(13),
            magic=0,
        ), _at(0),
    ),
    _deep(
        "BATCH-18", "the length of a record ends with its fifth byte, or goes on",
        _records(b"\x8c\x80\x80\x80\x00" + record(0)[1:], record(1)),
        _records(b"\x8c\x80\x80\x80\x80\x00" + record(0)[1:], record(1)), _at(0),
    ),
)  # fmt: skip
