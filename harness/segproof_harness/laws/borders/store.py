# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a store of RocketMQ: log, index and queues beside each other."""

import struct
import zlib

from segproof.findings import Severity
from segproof.rocketmq.message import blank_head
from segproof_harness.laws.borders.border import Border, Due, Files
from segproof_harness.laws.borders.store_files import (
    CHECKPOINT,
    END,
    ENTRIES,
    INDEX,
    KEYS,
    LOG,
    LOG_BYTES,
    MESSAGES,
    OFFSETS,
    QUEUE,
    QUEUE_UNITS,
    RECORDS,
    ROOM,
    SIZE,
    SLOTS,
    SOUND,
    TIME,
    TOPIC,
    UNITS,
    Entry,
    border,
    checkpoint,
    index_file,
    log_of,
    place_of,
    put,
    queue_of,
    record,
    store,
    unit,
)

NOTE, WARNING = Severity.NOTE, Severity.WARNING
HOUR_MS = 3_600_000
NEXT_INDEX = "index/20231114221330000"
NEXT_LOG = f"commitlog/{LOG_BYTES:020d}"
NEXT_QUEUE = f"consumequeue/{TOPIC}/0/{20 * QUEUE_UNITS:020d}"
WHOLE_LOG = log_of(*RECORDS)
LAST = TIME + 2000


def _full(size: int = LOG_BYTES) -> bytes:
    """Return the log with a blank end at the end of its records."""
    return log_of(*RECORDS, blank_head(size - END))


def _full_index(*, first: int = 0, begin: int = TIME, room: int = ROOM) -> bytes:
    """Return a full index file, whose entries are a byte and a second apart."""
    return index_file(
        [Entry(1, first + number, number) for number in range(room - 1)], begin=begin, room=room
    )


def _two_indexes(first: bytes, second: bytes, index_time: int = 0) -> Files:
    return store(index=first, checkpoint=checkpoint(0, 0, index_time)) | {NEXT_INDEX: second}


def _log(data: bytes) -> Files:
    return store(log=data)


def _changed(number: int, **fields: int) -> Files:
    """Return the store with other fields in one of its records."""
    rows = list(RECORDS)
    rows[number] = record(number, OFFSETS[number], **fields)
    return _log(log_of(*rows))


def _bodiless(checksum: int) -> Files:
    """Return the store with a checksum in its second record, which has no body."""
    longer = f"KEYS\x01k1\x02a\x01{'b' * (len(b'body') - 3)}\x02"
    row = record(1, OFFSETS[1], body=b"", properties=longer)
    row = row[:8] + struct.pack(">i", checksum) + row[12:]
    return _log(log_of(RECORDS[0], row, RECORDS[2]))


def _entry(number: int, **fields: int) -> Files:
    """Return the store with another entry, counted from 0."""
    rows = list(ENTRIES)
    rows[number] = rows[number]._replace(**fields)
    return store(index=index_file(rows))


def _unit(number: int, data: bytes) -> Files:
    """Return the store with another unit in its queue."""
    units = list(UNITS)
    units[number] = data
    return store(queue=queue_of(*units))


def _alone(*times: int) -> Files:
    """Return a log alone, of messages with these store times, all born at the first."""
    rows = [record(number, SIZE * number, time=time) for number, time in enumerate(times)]
    return {LOG: log_of(*rows)}


def _checkpoint(data: bytes) -> Files:
    return store(checkpoint=data)


def _negative(place: int) -> Border:
    before, after = [LAST] * place, [LAST] * (2 - place)
    zero, negative = (checkpoint(*before, one, *after) for one in (0, -1))
    return border(
        "RMQDISK-20", f"time {place + 1} is 0, or negative",
        _checkpoint(zero), _checkpoint(negative),
        Due(CHECKPOINT, 8 * place, "0 or more", -1, WARNING),
    )  # fmt: skip


def _foreign(law: str, bound: str, lawful: str, unlawful: str, severity: Severity) -> Border:
    """Return the border between the names of two files of zeros."""
    content = b"" if law == "RMQDISK-38" else bytes(LOG_BYTES)
    if law == "RMQDISK-38":
        content = index_file(ENTRIES)
    files = [{**SOUND, one: content} for one in (lawful, unlawful)]
    return border(law, bound, files[0], files[1], Due(unlawful, severity=severity))


WRONG_BODY = put(RECORDS[2], 88, bytes([RECORDS[2][88] ^ 1]))
BODY_CRC = zlib.crc32(b"body") & 0x7FFFFFFF
OTHER_CRC = zlib.crc32(bytes([b"body"[0] ^ 1]) + b"ody") & 0x7FFFFFFF
AROUND = [TIME] * 3
LATER = tuple(one + 2 * HOUR_MS for one in AROUND)

BORDERS = (
    # index files beside each other
    border(
        "RMQDISK-17", "the second file begins with the end of the first, or before",
        _two_indexes(_full_index(), _full_index(first=6)),
        _two_indexes(_full_index(), _full_index(first=5)),
        Due(NEXT_INDEX, 16, "6 or more", 5),
    ),
    border(
        "RMQDISK-18", "the second file has the length of the first, or an entry less",
        _two_indexes(_full_index(), _full_index(first=6)),
        _two_indexes(_full_index(), _full_index(first=6, room=ROOM - 1)),
        Due(NEXT_INDEX, None, 56 + 20 * ROOM, 36 + 20 * ROOM, WARNING),
    ),
    border(
        "RMQDISK-19", "the first of two files is full, or has room for one entry",
        _two_indexes(_full_index(), _full_index(first=6)),
        _two_indexes(
            index_file([Entry(1, one, one) for one in range(ROOM - 2)]), _full_index(first=6)
        ),
        Due(INDEX, 36, ROOM, ROOM - 1, WARNING),
    ),
    border(
        "RMQDISK-19", "the file with room is the last, or another follows",
        SOUND, {**SOUND, NEXT_INDEX: _full_index(first=END)},
        Due(INDEX, 36, ROOM, MESSAGES + 1, WARNING),
    ),
    # checkpoint and marker
    border(
        "RMQDISK-20", "the checkpoint has 4096 bytes, or 4095",
        SOUND, _checkpoint(checkpoint()[:-1]), Due(CHECKPOINT, None, 4096, 4095, WARNING),
    ),
    border(
        "RMQDISK-20", "the checkpoint has 4096 bytes, or 4097",
        SOUND, _checkpoint(checkpoint() + b"\0"), Due(CHECKPOINT, None, 4096, 4097, WARNING),
    ),
    border(
        "RMQDISK-20", "the checkpoint has a byte less than its fields, or all of them",
        _checkpoint(checkpoint(-1, 0, 0, 0, 0)[:39]),
        _checkpoint(checkpoint(-1, 0, 0, 0, 0)[:40]),
        [
            Due(CHECKPOINT, None, 4096, 40, WARNING),
            Due(CHECKPOINT, 0, "0 or more", -1, WARNING),
        ],
        Due(CHECKPOINT, None, 4096, 39, WARNING),
    ),
    border(
        "RMQDISK-20", "the checkpoint is there, or not",
        SOUND, store(checkpoint=None), Due(CHECKPOINT, severity=WARNING),
    ),
    _negative(0), _negative(1), _negative(2),
    border(
        "RMQDISK-21", "the time of the index is its end, or a millisecond later",
        SOUND, _checkpoint(checkpoint(LAST, LAST, LAST + 1)),
        Due(CHECKPOINT, 16, f"at most {LAST}", LAST + 1, WARNING),
    ),
    border(
        "RMQDISK-21", "without an index the time is 0, or 1",
        store(index=None, checkpoint=checkpoint(LAST, LAST, 0)),
        store(index=None, checkpoint=checkpoint(LAST, LAST, 1)),
        Due(CHECKPOINT, 16, None, 1, WARNING),
    ),
    border(
        "RMQDISK-21", "the time is the end of a full file, or a millisecond before",
        _two_indexes(_full_index(), _full_index(first=6), TIME + 6000),
        _two_indexes(_full_index(), _full_index(first=6), TIME + 5999),
        Due(CHECKPOINT, 16, TIME + 6000, TIME + 5999, NOTE),
        not_by_the_model="its law is about times that are too late",
    ),
    border(
        "RMQDISK-53", "the time of the log is that of the newest message, or a millisecond later",
        _checkpoint(checkpoint(LAST, LAST, 0)), _checkpoint(checkpoint(LAST + 1, LAST, 0)),
        Due(CHECKPOINT, 0, f"at most {LAST}", LAST + 1, WARNING),
    ),
    border(
        "RMQDISK-53", "the time of queues is that of the newest message, or a millisecond later",
        _checkpoint(checkpoint(0, LAST, 0)), _checkpoint(checkpoint(0, LAST + 1, 0)),
        Due(CHECKPOINT, 8, f"at most {LAST}", LAST + 1, WARNING),
    ),
    border(
        "RMQDISK-53", "the later time is in a file with a byte less than its fields, or with all",
        _checkpoint(checkpoint(LAST + 1, LAST, 0)[:39]),
        _checkpoint(checkpoint(LAST + 1, LAST, 0)[:40]),
        Due(CHECKPOINT, 0, f"at most {LAST}", LAST + 1, WARNING),
    ),
    border(
        "RMQDISK-22", "the marker is not there, or of 0 bytes",
        SOUND, {**SOUND, "abort": b""}, Due("abort", None, None, 0, NOTE),
    ),
    # the log
    border(
        "RMQDISK-23", "the second file begins where the first ends, or later",
        {**_log(_full()), NEXT_LOG: bytes(LOG_BYTES)},
        {**_log(_full()), f"commitlog/{LOG_BYTES + 1:020d}": bytes(LOG_BYTES)},
        Due(f"commitlog/{LOG_BYTES + 1:020d}", 0, LOG_BYTES, LOG_BYTES + 1),
    ),
    border(
        "RMQDISK-23", "the second file has the length of the first, or one byte less",
        {**_log(_full()), NEXT_LOG: bytes(LOG_BYTES)},
        {**_log(_full()), NEXT_LOG: bytes(LOG_BYTES - 1)},
        Due(NEXT_LOG, 0, LOG_BYTES, LOG_BYTES - 1),
    ),
    border(
        "RMQDISK-24", "the magic of the second record is right, or one bit is not",
        SOUND, _log(put(WHOLE_LOG, SIZE + 7, bytes([RECORDS[1][7] ^ 1]))), Due(LOG, SIZE),
    ),
    border(
        "RMQDISK-24", "the magic of the first record is right, or one bit is not",
        SOUND, _log(put(WHOLE_LOG, 4, bytes([RECORDS[0][4] ^ 1]))), Due(LOG, 0),
    ),
    border(
        "RMQDISK-24", "the size of the last record is that of its fields, or one more",
        SOUND, _log(put(WHOLE_LOG, 2 * SIZE, struct.pack(">i", SIZE + 1))), Due(LOG, 2 * SIZE),
    ),
    border(
        "RMQDISK-24", "a blank end takes the rest of the file, or one byte less",
        _log(_full()), _log(_full(LOG_BYTES - 1)), Due(LOG, END, severity=WARNING),
    ),
    border(
        "RMQDISK-24", "a blank end takes the rest of the file, or one byte more",
        _log(_full()), _log(_full(LOG_BYTES + 1)), Due(LOG, END, severity=WARNING),
    ),
    border(
        "RMQDISK-25", "the record says where it is, or one byte later",
        SOUND, _changed(1, physical_offset=SIZE + 1), Due(LOG, SIZE, SIZE, SIZE + 1),
    ),
    border(
        "RMQDISK-25", "the first record says offset 0, or -1",
        SOUND, _changed(0, physical_offset=-1), Due(LOG, 0, 0, -1),
    ),
    border(
        "RMQDISK-26", "the body is as its checksum says, or one bit is not",
        SOUND, _log(log_of(*RECORDS[:2], WRONG_BODY)), Due(LOG, 2 * SIZE, BODY_CRC, OTHER_CRC),
    ),
    border(
        "RMQDISK-55", "a message without a body has the checksum 0, or 1",
        _bodiless(0), _bodiless(1), Due(LOG, SIZE, 0, 1),
    ),
    border(
        "RMQDISK-27", "zeros follow the last record, or the last byte is not zero",
        SOUND, _log(put(WHOLE_LOG, LOG_BYTES - 1, b"\1")), Due(LOG, END, None, LOG_BYTES - 1),
    ),
    border(
        "RMQDISK-27", "zeros follow the last record, or the ninth byte is not zero",
        SOUND, _log(put(WHOLE_LOG, END + 8, b"\1")), Due(LOG, END, None, END + 8),
    ),
    border(
        "RMQDISK-27", "a file without a blank end is the last with records, or not",
        {**SOUND, NEXT_LOG: bytes(LOG_BYTES)},
        {**SOUND, NEXT_LOG: log_of(record(3, LOG_BYTES))}, Due(LOG, END),
    ),
    # the index and the log
    border(
        "RMQDISK-28", "the last entry leads to the last record, or to the end of the log",
        SOUND, _entry(2, offset=END), Due(INDEX, place_of(3), f"below {END}", END),
    ),
    border(
        "RMQDISK-29", "the entry leads to a record, or one byte after its begin",
        SOUND, _entry(1, offset=SIZE + 1), Due(INDEX, place_of(2), "a message", SIZE + 1),
    ),
    border(
        "RMQDISK-29", "the last entry leads to a record, or to the last byte of the log",
        SOUND, _entry(2, offset=END - 1), Due(INDEX, place_of(3), "a message", END - 1),
    ),
    border(
        "RMQDISK-30", "the entry has the hash of the key, or another one of its slot",
        SOUND, _entry(1, key_hash=ENTRIES[1].key_hash + SLOTS),
        Due(INDEX, place_of(2), ENTRIES[1].key_hash, ENTRIES[1].key_hash + SLOTS),
    ),
    border(
        "RMQDISK-31", "the key of the second message has its entry, or not",
        SOUND, store(index=index_file((ENTRIES[0], ENTRIES[2]))), Due(LOG, SIZE, KEYS[1]),
    ),
    border(
        "RMQDISK-31", "the key of the last message has its entry, or another hash has",
        SOUND, _entry(2, key_hash=ENTRIES[2].key_hash + SLOTS), Due(LOG, 2 * SIZE, KEYS[2]),
    ),
    border(
        "RMQDISK-31", "the key of the first message has its entry, or another hash has",
        SOUND, _entry(0, key_hash=ENTRIES[0].key_hash + SLOTS), Due(LOG, 0, KEYS[0]),
    ),
    border(
        "RMQDISK-32", "the difference is that of the store time, or one second more",
        SOUND, _entry(1, seconds=2), Due(INDEX, place_of(2), 1, 2),
    ),
    border(
        "RMQDISK-32", "the begin is the first store time, or a millisecond before",
        SOUND, store(index=index_file(begin=TIME - 1, end=LAST)), Due(INDEX, 0, TIME, TIME - 1),
    ),
    border(
        "RMQDISK-32", "the end is the last store time, or a millisecond later",
        SOUND, store(index=index_file(end=LAST + 1)), Due(INDEX, 8, LAST, LAST + 1),
    ),
    border(
        "RMQDISK-33", "the last message is indexed, or not",
        SOUND, store(index=index_file(ENTRIES[:2])), Due("", None, None, 1, WARNING),
    ),
    border(
        "RMQDISK-33", "the first message is indexed, or not",
        SOUND, store(index=index_file(ENTRIES[1:], begin=TIME + 1000)),
        Due("", None, None, 1, WARNING),
    ),
    border(
        "RMQDISK-33", "the last message has an entry of another key, or none",
        _entry(2, key_hash=ENTRIES[2].key_hash + SLOTS), store(index=index_file(ENTRIES[:2])),
        Due("", None, None, 1, WARNING),
    ),
    border(
        "RMQDISK-33", "the first message has an entry of another key, or none",
        _entry(0, key_hash=ENTRIES[0].key_hash + SLOTS),
        store(index=index_file(ENTRIES[1:], begin=TIME + 1000)), Due("", None, None, 1, WARNING),
    ),
    border(
        "RMQDISK-34", "a key has one entry, or two",
        SOUND, store(index=index_file((*ENTRIES[:2], ENTRIES[1], ENTRIES[2]))),
        Due(LOG, SIZE, severity=NOTE),
    ),
    border(
        "RMQDISK-40", "a store time is an hour after those around it, or a millisecond more",
        _alone(*AROUND, TIME + HOUR_MS, *AROUND), _alone(*AROUND, TIME + HOUR_MS + 1, *AROUND),
        Due(LOG, 3 * SIZE, TIME, TIME + HOUR_MS + 1),
    ),
    border(
        "RMQDISK-40", "a store time is an hour before those around it, or a millisecond more",
        _alone(*AROUND, TIME - HOUR_MS, *AROUND), _alone(*AROUND, TIME - HOUR_MS - 1, *AROUND),
        Due(LOG, 3 * SIZE, TIME, TIME - HOUR_MS - 1),
    ),
    border(
        "RMQDISK-40", "a store time is less than a second after the born time, or a second",
        _alone(*LATER, TIME + 999, *LATER), _alone(*LATER, TIME + 1000, *LATER),
        Due(LOG, 3 * SIZE, LATER[0], TIME + 1000),
    ),
    # the queues
    border(
        "RMQDISK-35", "the size of the last unit is 1, or 0",
        _unit(2, unit(OFFSETS[2], 1)), _unit(2, unit(OFFSETS[2], 0)), Due(QUEUE, 40),
    ),
    border(
        "RMQDISK-35", "the offset of the first unit is 0, or negative",
        SOUND, _unit(0, unit(-1)), Due(QUEUE, 0),
    ),
    border(
        "RMQDISK-35", "zeros follow the last unit, or the last byte is not zero",
        SOUND, store(queue=queue_of(*UNITS)[:-1] + b"\1"), Due(QUEUE, 20 * (QUEUE_UNITS - 1)),
    ),
    border(
        "RMQDISK-35", "the file has whole units, or one byte less",
        SOUND, store(queue=queue_of(*UNITS)[:-1]), Due(QUEUE, 20 * (QUEUE_UNITS - 1)),
    ),
    border(
        "RMQDISK-35", "the second file begins where the first ends, or later",
        store(queue=queue_of(*UNITS, count=3)) | {
            f"consumequeue/{TOPIC}/0/{60:020d}": bytes(60)
        },
        store(queue=queue_of(*UNITS, count=3)) | {
            f"consumequeue/{TOPIC}/0/{80:020d}": bytes(60)
        },
        Due(f"consumequeue/{TOPIC}/0/{80:020d}", 0),
    ),
    border(
        "RMQDISK-35", "the units end in the last file, or in one before it",
        SOUND, store() | {NEXT_QUEUE: bytes(20 * QUEUE_UNITS)}, Due(QUEUE, 60),
    ),
    border(
        "RMQDISK-35", "a second queue's file has the same length, or a unit less",
        store() | {f"consumequeue/{TOPIC}/1/{0:020d}": bytes(20 * QUEUE_UNITS)},
        store() | {f"consumequeue/{TOPIC}/1/{0:020d}": bytes(20 * QUEUE_UNITS - 20)},
        Due(
            f"consumequeue/{TOPIC}/1/{0:020d}", 20 * QUEUE_UNITS - 20, 20 * QUEUE_UNITS,
            20 * QUEUE_UNITS - 20,
        ),
    ),
    border(
        "RMQDISK-36", "the second unit leads one byte further, or to the same",
        _unit(1, unit(1)), _unit(1, unit(0, SIZE + 1)), Due(QUEUE, 20, "above 0", 0),
    ),
    border(
        "RMQDISK-36", "the last unit leads one byte further, or to the same",
        _unit(2, unit(SIZE + 1)), _unit(2, unit(SIZE, SIZE + 1)),
        Due(QUEUE, 40, f"above {SIZE}", SIZE),
    ),
    border(
        "RMQDISK-37", "the unit leads to its record, or one byte after its begin",
        SOUND, _unit(1, unit(SIZE + 1)), Due(QUEUE, 20, SIZE, SIZE + 1),
    ),
    border(
        "RMQDISK-37", "the unit has the size of its record, or one more",
        SOUND, _unit(1, unit(SIZE, SIZE + 1)), Due(QUEUE, 20, SIZE, SIZE),
    ),
    border(
        "RMQDISK-37", "the last record has its unit, or not",
        SOUND, store(queue=queue_of(*UNITS[:2])), Due(QUEUE, None, None, 1, WARNING),
    ),
    border(
        "RMQDISK-37", "the last unit has its record, or leads to the end of the log",
        SOUND, store(queue=queue_of(*UNITS, unit(END))), Due(QUEUE, 60, None, END),
    ),
    border(
        "RMQDISK-50", "the tags code is that of no tags, or 1",
        SOUND, _unit(1, unit(SIZE, code=1)), Due(QUEUE, 20, 0, 1),
    ),
    border(
        "RMQDISK-50", "the tags code is that of no tags, or -1",
        SOUND, _unit(0, unit(0, code=-1)), Due(QUEUE, 0, 0, -1),
    ),
    border(
        "RMQDISK-50", "the code leads to an extension file, or is the least of a hash",
        _unit(1, unit(SIZE, code=-(1 << 31) - 1)), _unit(1, unit(SIZE, code=-(1 << 31))),
        Due(QUEUE, 20, 0, -(1 << 31)),
    ),
    # names
    border(
        "RMQDISK-51", "no file says that the slots are a guess, or one does",
        {**SOUND, "segproof-index.guesses": b""}, {**SOUND, "segproof-index.guessed": b""},
        Due("segproof-index.guessed", severity=WARNING),
    ),
    border(
        "RMQDISK-41", "the lock file is empty, or has a byte",
        {**SOUND, "lock": b""}, {**SOUND, "lock": b"x"}, Due("lock", severity=NOTE),
    ),
    border(
        "RMQDISK-41", "a file of the store has a known name, or one letter more",
        SOUND, {**SOUND, "checkpoints": b""}, Due("checkpoints", severity=NOTE),
    ),
    _foreign(
        "RMQDISK-38", "the name is 17 digits, or 18",
        INDEX, "index/202311142213200001", WARNING,
    ),
    _foreign(
        "RMQDISK-38", "the name is 17 digits, or 16 and a letter",
        INDEX, "index/2023111422132000x", NOTE,
    ),
    border(
        "RMQDISK-39", "the name of a log file is 20 digits, or 19",
        SOUND, {**SOUND, f"commitlog/{LOG_BYTES:019d}": b""},
        Due(f"commitlog/{LOG_BYTES:019d}"),
    ),
    border(
        "RMQDISK-39", "the name of a queue's file is 20 digits, or 21",
        SOUND, {**SOUND, f"consumequeue/{TOPIC}/0/{200:021d}": b""},
        Due(f"consumequeue/{TOPIC}/0/{200:021d}"),
    ),
)  # fmt: skip
