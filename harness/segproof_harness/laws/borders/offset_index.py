# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of an offset index."""

from itertools import pairwise

from segproof.findings import Severity
from segproof_harness.laws.borders.border import Border, Due, Files
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    message,
    name,
    offset_entries,
    segment,
    time_entries,
    wrapper,
)

INDEX = name(BASE, ".index")
BATCHES = batch(BASE), batch(BASE + 1), batch(BASE + 2)
LOG = b"".join(BATCHES)
SIZE = len(BATCHES[0])
"""Bytes of each of the three batches, which have one record each."""
END = len(LOG)
WIDE = batch(BASE, 1, 1, 1)
"""A batch of the offsets 0 to 2 from the base."""
BLOCK = 1 << 15
"""Entries that are read at once; the first of a block is compared with the one before it."""
IN_FILE = f"0 to {END - 1}"
BATCH_KEY = "the first or last offset of a batch"


def _index(*entries: tuple[int, int], log: bytes = LOG) -> Files:
    return segment(log, offset_entries(*entries))


def _bytes(data: bytes) -> Files:
    return segment(LOG, data)


def _blocks(falls_by: int) -> Files:
    """Return an index of a block and one entry more, whose offset is so much too low."""
    entries = [(number + 1, number + 1) for number in range(BLOCK + 1)]
    last, position = entries.pop()
    return _index(*entries, (last - falls_by, position))


def _block_positions(falls_by: int) -> Files:
    entries = [(number + 1, number + 1) for number in range(BLOCK + 1)]
    last, position = entries.pop()
    return _index(*entries, (last, position - falls_by))


def _long(stretch: int, *entries: tuple[int, int], timed: int = 0) -> Files:
    """Return a log whose last batch begins so many bytes after the last of some entries."""
    last, distance = max([0, *(position for _, position in entries)]), len(entries)
    if last:
        # One batch fills the bytes up to each entry, and one the rest.
        positions = [0, *(position for _, position in entries), last + stretch]
    else:
        positions = [0, stretch]
    batches = []
    for row, (start, end) in enumerate(pairwise(positions)):
        batches.append(_of_size(BASE + row, end - start))
    after = distance + 1
    batches += [batch(BASE + after + number, 2 + number) for number in range(max(1, timed))]
    times = time_entries(*((2 + number, after + number) for number in range(timed)))
    return segment(b"".join(batches), offset_entries(*entries), times)


def _of_size(offset: int, size: int) -> bytes:
    """Return a batch of exactly that many bytes."""
    value = size - len(batch(offset, value=b""))
    while len(made := batch(offset, value=bytes(value))) > size:
        value -= 1
    if len(made) < size:
        # A longer length field skipped a size: the key takes the byte.
        made = batch(offset, key=b"key" + bytes(size - len(made)), value=bytes(value))
    assert len(made) == size
    return made


def _timed(before: int, beyond: int = 0) -> Files:
    """Return a log of 11 batches; an entry for the second, which is long, and 9 for times.

    `before` of these are for the second batch's offset, `beyond` for offsets after the log.
    """
    log = batch(BASE) + _of_size(BASE + 1, 65 << 10)
    log += b"".join(batch(BASE + number, 1 + number) for number in range(2, 11))
    offsets = [*range(2 - before, 11 - before)]
    times = [(number, one + beyond * (one == 10)) for number, one in enumerate(offsets, 1)]
    return segment(log, offset_entries((1, SIZE)), time_entries(*times))


def _left(*entries: tuple[int, int], time: int | None = None, zeros: int = 0) -> Files:
    """Return a log of 4 batches and its index, whose file is longer than what is counted.

    `time` is that of a time entry for the offset after the log.
    """
    log = b"".join(batch(BASE + number, 1 + number) for number in range(4)) + bytes(zeros)
    times = None if time is None else time_entries((time, 4)) + bytes(12)
    return segment(log, offset_entries(*entries) + bytes(8), times)


def _goes_on(size: int, *sound: tuple[int, int]) -> Files:
    """Return a log of that many bytes after the last of some entries, which a wrong one follows.

    The file of the index is longer than what is counted.
    """
    last, position = (sound or ((0, 0),))[-1]
    log = b"".join(BATCHES[: last + 1])
    log += _of_size(BASE + last + 1, position + size - len(log))
    return segment(log, offset_entries(*sound, (last + 1, position + 1)) + bytes(8))


MIB = 1 << 20
SLOW = "it is slow for so many bytes"
BORDERS = (
    # whole entries
    Border(
        "OFFIDX-1", "an empty file, or one byte",
        _bytes(b""), _bytes(b"\1"), Due(INDEX, 0, 0, 1),
    ),
    Border(
        "OFFIDX-1", "an entry, or one byte less",
        _bytes(offset_entries((1, SIZE))), _bytes(offset_entries((1, SIZE))[:-1]),
        Due(INDEX, 0, 0, 7),
    ),
    Border(
        "OFFIDX-1", "two entries, or one byte more",
        _index((1, SIZE), (2, 2 * SIZE)),
        _bytes(offset_entries((1, SIZE), (2, 2 * SIZE)) + b"\0"),
        Due(INDEX, 16, 16, 17),
    ),
    # order of offsets
    Border(
        "OFFIDX-2", "the first offset is the base, or below",
        _index((0, 0)), _index((-1, 0)), Due(INDEX, 0, "1000 or more", 999),
    ),
    Border(
        "OFFIDX-2", "the second offset is one more, or the same",
        _index((1, SIZE), (2, 2 * SIZE)), _index((1, SIZE), (1, 2 * SIZE)),
        Due(INDEX, 8, "more than 1001", 1001),
    ),
    Border(
        "OFFIDX-2", "the last of three offsets is one more, or the same",
        _index((0, 0), (1, SIZE), (2, 2 * SIZE)), _index((0, 0), (1, SIZE), (1, 2 * SIZE)),
        Due(INDEX, 16, "more than 1001", 1001),
    ),
    Border(
        "OFFIDX-2", "the first offset of the second block is one more, or the same",
        _blocks(0), _blocks(1),
        Due(INDEX, 8 * BLOCK, f"more than {BASE + BLOCK}", BASE + BLOCK),
        not_by_the_model=SLOW,
    ),
    # order of positions
    Border(
        "DISK-8", "the second position is one more, or the same",
        _index((1, SIZE), (2, SIZE + 1)), _index((1, SIZE), (2, SIZE)),
        Due(INDEX, 8, f"more than {SIZE}", SIZE),
    ),
    Border(
        "DISK-8", "the second position follows byte 0, or is byte 0 again",
        _index((0, 0), (1, 1)), _index((0, 0), (1, 0)), Due(INDEX, 8, "more than 0", 0),
    ),
    Border(
        "DISK-8", "the first position of the second block is one more, or the same",
        _block_positions(0), _block_positions(1),
        Due(INDEX, 8 * BLOCK, f"more than {BLOCK}", BLOCK),
        not_by_the_model=SLOW,
    ),
    # where entries point
    Border(
        "SEG-7", "the position is the first byte of a batch, or one after it",
        _index((1, SIZE)), _index((1, SIZE + 1)),
        Due(INDEX, 0, "the first byte of a batch", SIZE + 1),
    ),
    Border(
        "SEG-7", "the position is the first byte of a batch, or one before it",
        _index((0, 0), (1, SIZE)), _index((0, 0), (1, SIZE - 1)),
        Due(INDEX, 8, "the first byte of a batch", SIZE - 1),
    ),
    Border(
        "SEG-7", "the position is byte 0, or below",
        _index((0, 0)), _index((0, -1)), Due(INDEX, 0, IN_FILE, -1),
    ),
    Border(
        "SEG-7", "the position is that of the last batch, or the end of the log",
        _index((2, 2 * SIZE)), _index((2, END)), Due(INDEX, 0, IN_FILE, END),
    ),
    Border(
        "SEG-7", "the position is the last batch's, or the last byte of the log",
        _index((2, 2 * SIZE)), _index((2, END - 1)),
        Due(INDEX, 0, "the first byte of a batch", END - 1),
    ),
    Border(
        "SEG-7", "the batch before the position ends below the offset, or with it",
        _index((2, 2 * SIZE)), _index((1, 2 * SIZE)),
        Due(INDEX, 0, "the batch of the offset, or one before it", 2 * SIZE),
    ),
    Border(
        "SEG-7", "the offset is the last one of the log, or one more",
        _index((2, 0)), _index((3, 0)), Due(INDEX, 0, BATCH_KEY, BASE + 3),
    ),
    Border(
        "SEG-7", "the offset is the first of its batch, or the second of three",
        _index((0, 0), log=WIDE), _index((1, 0), log=WIDE), Due(INDEX, 0, BATCH_KEY, BASE + 1),
    ),
    Border(
        "SEG-7", "the offset is the last of its batch, or the second of three",
        _index((2, 0), log=WIDE), _index((1, 0), log=WIDE), Due(INDEX, 0, BATCH_KEY, BASE + 1),
    ),
    Border(
        "SEG-7", "a log without a batch has no entry, or one at byte 0",
        _index(log=b""), segment(b"", offset_entries((1, 0))),
        Due(INDEX, 0, "no entry: the log is empty", 0),
    ),
    Border(
        "SEG-7", "the offset is inside of a compressed message, or between two plain ones",
        _index((1, 0), log=wrapper(BASE + 2, *(message(number, b"v") for number in range(3)))),
        _index((1, 0), log=message(BASE, b"v") + message(BASE + 2, b"v")),
        Due(INDEX, 0, BATCH_KEY, BASE + 1),
    ),
    # entries that a truncation left
    Border(
        "SEG-7", "of three entries two lead to no batch, or one: sound ones follow it",
        _left((1, SIZE + 1), (2, 2 * SIZE + 1), (3, 3 * SIZE)),
        _left((1, SIZE + 1), (2, 2 * SIZE), (3, 3 * SIZE)),
        Due(INDEX, 0, "the first byte of a batch", SIZE + 1),
        still=Due(INDEX, 0, None, 2, Severity.NOTE),
    ),
    Border(
        "SEG-7", "of the entries from the broken one on one is sound, or two are",
        _left((1, SIZE + 1), (2, 2 * SIZE)),
        _left((1, SIZE + 1), (2, 2 * SIZE), (3, 3 * SIZE)),
        Due(INDEX, 0, "the first byte of a batch", SIZE + 1),
        still=Due(INDEX, 0, None, 1, Severity.NOTE),
    ),
    Border(
        "SEG-7", "an entry beyond the log has the largest time of the log, or a larger one",
        _left((3, 3 * SIZE), (4, 4 * SIZE), time=4), _left((3, 3 * SIZE), (4, 4 * SIZE), time=5),
        Due(INDEX, 8, None, 1, Severity.WARNING), still=Due(INDEX, 8, None, 1, Severity.NOTE),
    ),
    Border(
        "SEG-7", "an entry after a truncation leads to the end of the file, or to zeros there",
        _left((3, 3 * SIZE), (4, 4 * SIZE), time=4),
        _left((3, 3 * SIZE), (4, 4 * SIZE), time=4, zeros=90),
        Due(INDEX, 8, None, 1, Severity.WARNING), still=Due(INDEX, 8, None, 1, Severity.NOTE),
    ),
    Border(
        "SEG-7", "the log goes on for 2 MiB without a sound entry, or for one byte more",
        _goes_on(2 * MIB), _goes_on(2 * MIB + 1),
        Due(INDEX, 0, "the first byte of a batch", 1),
        still=Due(INDEX, 0, None, 1, Severity.NOTE), not_by_the_model=SLOW,
    ),
    Border(
        "SEG-7", "the log goes on for 2 MiB after the last sound entry, or for one byte more",
        _goes_on(2 * MIB, (1, SIZE)), _goes_on(2 * MIB + 1, (1, SIZE)),
        Due(INDEX, 8, "the first byte of a batch", SIZE + 1),
        still=Due(INDEX, 8, None, 1, Severity.NOTE), not_by_the_model=SLOW,
    ),
    # where the index ends
    Border(
        "DISK-24", "without an entry the last batch begins at 16 MiB, or one byte later",
        _long(16 * MIB), _long(16 * MIB + 1),
        Due(INDEX, 0, 16 * MIB, 16 * MIB + 1, Severity.WARNING), not_by_the_model=SLOW,
    ),
    Border(
        "DISK-24", "8 of the widest gap after the last entry, or one byte more",
        _long(8 * (2 * MIB + 8), (1, 2 * MIB + 8)),
        _long(8 * (2 * MIB + 8) + 1, (1, 2 * MIB + 8)),
        Due(INDEX, 8, 8 * (2 * MIB + 8), 8 * (2 * MIB + 8) + 1, Severity.WARNING),
        not_by_the_model=SLOW,
    ),
    Border(
        "DISK-24", "9 time entries there, and the last batch at 64 KiB, or later",
        _long((64 << 10) - 8 * SIZE, timed=9), _long((64 << 10) - 8 * SIZE + 1, timed=9),
        Due(INDEX, 0, 64 << 10, (64 << 10) + 1, Severity.WARNING),
    ),
    Border(
        "DISK-24", "more than 64 KiB with 8 time entries, or 9",
        _long(65 << 10, timed=8), _long(65 << 10, timed=9),
        Due(INDEX, 0, 64 << 10, (65 << 10) + 8 * SIZE, Severity.WARNING),
    ),
    Border(
        "DISK-24", "one of 9 time entries is for the offset of the last entry, or for a later one",
        _timed(1), _timed(0), Due(INDEX, 8, 64 << 10, (65 << 10) + 8 * SIZE, Severity.WARNING),
    ),
    Border(
        "DISK-24", "one of 9 time entries is for an offset beyond the log, or for the last one",
        _timed(0, beyond=1), _timed(0),
        Due(INDEX, 8, 64 << 10, (65 << 10) + 8 * SIZE, Severity.WARNING),
    ),
)  # fmt: skip
