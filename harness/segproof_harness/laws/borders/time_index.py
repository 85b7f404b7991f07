# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a time index."""

from typing import Any

from segproof.findings import Severity
from segproof_harness.laws.borders.border import Border, Due, Files
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    followed,
    name,
    segment,
    time_entries,
    with_byte,
)

TIMES = name(BASE, ".timeindex")
LOG = batch(BASE, 10) + batch(BASE + 1, 20) + batch(BASE + 2, 30)
FALLING = batch(BASE, 10) + batch(BASE + 1, 30) + batch(BASE + 2, 20)
WIDE = batch(BASE, 10) + batch(BASE + 1, 20, 20, 20) + batch(BASE + 4, 30)
"""The middle batch has the offsets 1 to 3 from the base."""
BLOCK = 1 << 15
"""Entries that are read at once; the first of a block is compared with the one before it."""
OF_A_BATCH = "an offset of a batch"
EARLIER = "an offset of the earlier batch"


def _times(*entries: tuple[int, int], log: bytes = LOG) -> Files:
    return segment(log, times=time_entries(*entries))


def _bytes(data: bytes) -> Files:
    return segment(LOG, times=data)


def _blocks(timestamp_falls_by: int = 0, offset_falls_by: int = 0) -> Files:
    """Return an index of a block and one entry more, whose fields are so much too low."""
    entries = [(number + 1, number) for number in range(BLOCK + 1)]
    timestamp, offset = entries.pop()
    return _times(*entries, (timestamp - timestamp_falls_by, offset - offset_falls_by))


def _same_time(**options: Any) -> bytes:
    """Return two batches of the same timestamp."""
    return batch(BASE, 10, **options) + batch(BASE + 1, 10, **options)


def _closed(log: bytes, *entries: tuple[int, int], end: int = 3) -> Files:
    return followed(segment(log, times=time_entries(*entries)), BASE + end)


def _left(bound: str, damaged: tuple[int, int]) -> Border:
    """Return the border at which an entry that no broker writes says that the index is damaged.

    The last entry is beyond the log, as after a truncation. The unlawful fields are one too low.
    """
    lawful = (damaged[0] + (damaged[0] < 0), damaged[1] + (damaged[1] < 0))
    log = batch(BASE, lawful[0]) + batch(BASE + 1, 20) + batch(BASE + 2, 30)
    files = [
        segment(log, times=time_entries(first, (30, 3)) + bytes(12)) for first in (lawful, damaged)
    ]
    wrong = Due(TIMES, 0, OF_A_BATCH if damaged[1] < 0 else 0, damaged[0])
    return Border(
        "DISK-9", f"beside an entry beyond the log {bound}", files[0], files[1],
        [wrong, Due(TIMES, 12, OF_A_BATCH, 30)], still=Due(TIMES, 12, None, 1, Severity.NOTE),
    )  # fmt: skip


BY_BROKER: dict[str, Any] = {"timestamp_type": "LogAppendTime", "log_append_time": 10}
SLOW = "it is slow for so many entries"

BORDERS = (
    # whole entries
    Border(
        "TIMEIDX-1", "an empty file, or one byte",
        _bytes(b""), _bytes(b"\1"), Due(TIMES, 0, 0, 1),
    ),
    Border(
        "TIMEIDX-1", "an entry, or one byte less",
        _times((10, 0)), _bytes(time_entries((10, 0))[:-1]), Due(TIMES, 0, 0, 11),
    ),
    Border(
        "TIMEIDX-1", "two entries, or one byte more",
        _times((10, 0), (20, 1)), _bytes(time_entries((10, 0), (20, 1)) + b"\0"),
        Due(TIMES, 24, 24, 25),
    ),
    # order
    Border(
        "TIMEIDX-7", "the second timestamp is one more, or the same",
        _times((10, 0), (11, 1)), _times((10, 0), (10, 1)), Due(TIMES, 12, "more than 10", 10),
    ),
    Border(
        "TIMEIDX-7", "the last of three timestamps is one more, or the same",
        _times((10, 0), (20, 1), (21, 2)), _times((10, 0), (20, 1), (20, 2)),
        Due(TIMES, 24, "more than 20", 20),
    ),
    Border(
        "TIMEIDX-7", "the second offset is the same, or one less",
        _times((10, 1), (20, 1)), _times((10, 1), (20, 0)),
        Due(TIMES, 12, "1001 or more", BASE),
    ),
    Border(
        "TIMEIDX-7", "the first timestamp of the second block is one more, or the same",
        _blocks(), _blocks(timestamp_falls_by=1),
        Due(TIMES, 12 * BLOCK, f"more than {BLOCK}", BLOCK), not_by_the_model=SLOW,
    ),
    Border(
        "TIMEIDX-7", "the first offset of the second block is the same, or less",
        _blocks(offset_falls_by=1), _blocks(offset_falls_by=2),
        Due(TIMES, 12 * BLOCK, f"{BASE + BLOCK - 1} or more", BASE + BLOCK - 2),
        not_by_the_model=SLOW,
    ),
    # range
    Border(
        "DISK-22", "the timestamp is 0, or below",
        _times((0, 0)), _times((-1, 0)), Due(TIMES, 0, "0 or more", -1),
    ),
    Border(
        "DISK-22", "the offset is the base, or below",
        _times((10, 0)), _times((10, -1)), Due(TIMES, 0, "1000 or more", 999),
    ),
    Border(
        "DISK-22", "the timestamp of the second entry is 0, or below",
        _times((10, 0), (0, 1)), _times((10, 0), (-1, 1)), Due(TIMES, 12, "0 or more", -1),
    ),
    # what the log says
    Border(
        "DISK-9", "the timestamp is the batch's largest, or one less",
        _times((10, 0)), _times((9, 0)), Due(TIMES, 0, 10, 9),
    ),
    Border(
        "DISK-9", "the timestamp is the batch's largest, or one more",
        _times((30, 2)), _times((31, 2)), Due(TIMES, 0, 30, 31),
    ),
    Border(
        "DISK-9", "the offset is the first of its batch, or one before",
        _times((20, 1), log=WIDE), _times((20, 0), log=WIDE), Due(TIMES, 0, 10, 20),
    ),
    Border(
        "DISK-9", "the offset is the last of its batch, or one after",
        _times((20, 3), log=WIDE), _times((20, 4), log=WIDE), Due(TIMES, 0, 30, 20),
    ),
    Border(
        "DISK-9", "the offset is the last of the log, or one after",
        _times((30, 2)), _times((30, 3)), Due(TIMES, 0, OF_A_BATCH, 30),
    ),
    Border(
        "DISK-9", "no earlier timestamp is larger, or one is by 1",
        _times((30, 2), log=batch(BASE, 29) + batch(BASE + 1, 10) + batch(BASE + 2, 30)),
        _times((30, 2), log=batch(BASE, 31) + batch(BASE + 1, 10) + batch(BASE + 2, 30)),
        Due(TIMES, 0, 31, 30),
    ),
    Border(
        "DISK-9", "an earlier batch has a timestamp one less, or the same",
        _times((10, 1), log=batch(BASE, 9) + batch(BASE + 1, 10)),
        _times((10, 1), log=_same_time()), Due(TIMES, 0, EARLIER, 10),
    ),
    Border(
        "DISK-9", "the same timestamp as before is the broker's, or the client's",
        _times((10, 1), log=_same_time(**BY_BROKER)), _times((10, 1), log=_same_time()),
        Due(TIMES, 0, EARLIER, 10),
    ),
    Border(
        "DISK-9", "an entry is behind a log whose first checksum is wrong, or behind a sound one",
        _times((20, 1), (31, 3), log=with_byte(LOG, 20, LOG[20] ^ 1)), _times((20, 1), (31, 3)),
        Due(TIMES, 12, OF_A_BATCH, 31), still=Due(TIMES, None, None, 1, Severity.NOTE),
    ),
    # entries that a truncation left
    _left("the first entry is of the base, or of an offset below", (10, -1)),
    _left("the first entry has the timestamp 0, or one below", (-1, 0)),
    # closed segments
    Border(
        "DISK-10", "the last entry has the largest timestamp, or is not there",
        _closed(LOG, (20, 1), (30, 2)), _closed(LOG, (20, 1)), Due(TIMES, 0, 30, 20),
    ),
    Border(
        "DISK-10", "there is an entry with the largest timestamp, or none at all",
        _closed(LOG, (30, 2)), _closed(LOG), Due(TIMES, 0, 30, -1),
    ),
    Border(
        "DISK-10", "the last entry has the largest timestamp, or that of the last batch",
        _closed(FALLING, (10, 0), (30, 1)), _closed(FALLING, (10, 0), (20, 2)),
        Due(TIMES, 12, 30, 20),
    ),
    Border(
        "DISK-10", "the segment is the last one, or another follows",
        _times((20, 1)), _closed(LOG, (20, 1)), Due(TIMES, 0, 30, 20),
    ),
    Border(
        "DISK-10", "without an entry, no batch has a timestamp, or one has 0",
        _closed(batch(BASE, -1), end=1), _closed(batch(BASE, 0), end=1), Due(TIMES, 0, 0, -1),
    ),
)  # fmt: skip
