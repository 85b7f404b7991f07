# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a segment: its names, its files, and the offsets of its batches."""

from collections.abc import Sequence

from segproof.findings import Severity
from segproof_harness.laws.borders.border import (
    DIRECTORY,
    Border,
    Due,
    Files,
    Folder,
    Link,
    Zeros,
)
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    followed,
    message,
    name,
    offset_entries,
    patched,
    segment,
    time_entries,
    with_byte,
)

LOG_NAME, INDEX, TIMES = (name(BASE, suffix) for suffix in (".log", ".index", ".timeindex"))
FIRST, SECOND = batch(BASE), batch(BASE + 1)
SIZE = len(FIRST)
INT32_MAX = 2147483647
WIDE = batch(BASE, 1, 1)
MARKER = "../.kafka_cleanshutdown"
"""The marker of a clean stop, beside the partition."""
NOTE, WARNING = Severity.NOTE, Severity.WARNING
LIMITS = f"{BASE} to {BASE + INT32_MAX}"


def _log(*batches: bytes) -> Files:
    return segment(b"".join(batches))


def _tail(suffix: str, data: bytes, zeros: int, *, is_closed: bool) -> Files:
    """Return a segment of two batches whose file of this suffix ends in zeros."""
    images = {".log": FIRST + SECOND, ".index": offset_entries((1, SIZE))}
    images[".timeindex"] = time_entries((1, 0))
    images[suffix] = data + bytes(zeros)
    files = {name(BASE, one): content for one, content in images.items()}
    return followed(files, BASE + 2) if is_closed else files


def _tails(suffix: str, data: bytes, entry: int) -> list[Border]:
    """Return the borders of a file with zeros at its end."""
    file, end = name(BASE, suffix), len(data)
    due = Due(file, end, end, end + entry)
    note = Due(file, end, end, end + entry, NOTE)
    open_tail = _tail(suffix, data, entry, is_closed=False)
    return [
        Border(
            "DISK-6", f"the closed {suffix} ends with its last entry, or {entry} zeros",
            _tail(suffix, data, 0, is_closed=True), _tail(suffix, data, entry, is_closed=True),
            due,
        ),
        Border(
            "DISK-6", f"the {suffix} with {entry} zeros is open, or a later segment follows",
            open_tail, _tail(suffix, data, entry, is_closed=True), due, still=note,
        ),
        Border(
            "DISK-6", f"the {suffix} with {entry} zeros is open, or the broker has stopped",
            open_tail, {**open_tail, MARKER: b""}, due, still=note,
            not_by_the_model="it takes each segment as closed",
        ),
    ]  # fmt: skip


def _of_another_log(offsets: int, times: int, *, right: int = 0, end: int = BASE + 10) -> Files:
    """Return a closed segment whose indexes have `right` entries, and wrong entries after them.

    The offset index has `offsets` wrong entries, the time index `times`. The next segment begins at
    the offset `end`.
    """
    positions = [(at, at * SIZE) for at in range(right)]
    positions += [(at, at * SIZE + 1) for at in range(right, right + offsets)]
    stamps = [(1, 0)] if right else []
    stamps += [(2 + at, right + at) for at in range(times)]
    files = {
        LOG_NAME: b"".join(batch(BASE + at) for at in range(9)),
        INDEX: offset_entries(*positions),
        TIMES: time_entries(*stamps),
    }
    return followed(files, end)


def _timed_beyond(time: int) -> Files:
    """Return a closed segment of batches at 5 ms, and time entries behind it, the first of `time`.

    The three other ones, and all 4 entries of the offset index, are wrong.
    """
    files = {
        LOG_NAME: b"".join(batch(BASE + at, 5) for at in range(9)),
        INDEX: offset_entries(*((at, at * SIZE + 1) for at in range(4))),
        TIMES: time_entries((time, 9), (6, 10), (7, 11), (8, 12)),
    }
    return followed(files, BASE + 10)


def _of_another_open_log(time: int) -> Files:
    """Return an open segment whose last batch has a time, and wrong entries up to the time 5.

    Room is left in the files of both indexes, as a broker leaves it.
    """
    positions = [(at, at * SIZE + 1) for at in range(4)]
    stamps = [(2 + at, at) for at in range(4)]
    return {
        LOG_NAME: b"".join(batch(BASE + at, time if at == 8 else 1) for at in range(9)),
        INDEX: offset_entries(*positions) + bytes(8),
        TIMES: time_entries(*stamps) + bytes(12),
    }


def _cut_out(
    *positions: tuple[int, int],
    times: Sequence[tuple[int, int]] = (),
    step: int = 1,
    damaged: int | None = None,
    end: int | None = BASE + 6,
) -> Files:
    """Return a segment of the offsets 0 to 5 from its base offset, without 2, and its indexes.

    A batch has the time 10, and `step` more for each one before it; one may be damaged. The next
    segment begins at the offset `end`. If `end` is None, no segment follows.
    """
    batches = [batch(BASE + at, 10 + step * at) for at in (0, 1, 3, 4, 5)]
    if damaged is not None:
        place = damaged - 1
        batches[place] = with_byte(batches[place], SIZE - 1, batches[place][-1] ^ 1)
    index, time_index = offset_entries(*positions), time_entries(*times)
    files = {LOG_NAME: b"".join(batches), INDEX: index, TIMES: time_index}
    return files if end is None else followed(files, end)


CUT_OUT = Due(LOG_NAME, 2 * SIZE, 0, "up to 1")


def _large(suffix: str) -> list[Border]:
    """Return the border of the size that 31 bits address; an index of zeros takes no room."""
    file = name(BASE, suffix)
    return [
        Border(
            "DISK-7", f"the {suffix} has 2147483647 bytes, or one more",
            {LOG_NAME: FIRST, file: Zeros(INT32_MAX)}, {LOG_NAME: FIRST, file: Zeros(1 << 31)},
            Due(file, INT32_MAX, INT32_MAX, 1 << 31),
        )
    ]  # fmt: skip


BORDERS = (
    # names
    Border(
        "FILE-1", "the name has 20 digits, or 19",
        _log(FIRST), {f"{BASE:019d}.log": FIRST},
        Due(f"{BASE:019d}.log", None, LOG_NAME, f"{BASE:019d}.log"),
    ),
    Border(
        "FILE-1", "the name has 20 digits, or 21",
        _log(FIRST), {f"{BASE:021d}.log": FIRST},
        Due(f"{BASE:021d}.log", None, LOG_NAME, f"{BASE:021d}.log"),
    ),
    Border(
        "FILE-1", "the largest 64-bit offset has 20 digits, or 19",
        {f"{(1 << 63) - 1:020d}.index": b"", f"{(1 << 63) - 1:020d}.log": b""},
        {f"{(1 << 63) - 1:020d}.log": b"", f"{(1 << 63) - 1}.index": b""},
        Due(
            f"{(1 << 63) - 1}.index", None, f"{(1 << 63) - 1:020d}.index",
            f"{(1 << 63) - 1}.index",
        ),
    ),
    Border(
        "FILE-2", "the offset is the largest of 64 bits, or one more",
        {f"{(1 << 63) - 1:020d}.log": b""}, {f"{1 << 63:020d}.log": b""},
        Due(f"{1 << 63:020d}.log", None, "an offset in 20 digits", f"{1 << 63:020d}.log"),
    ),
    Border(
        "FILE-2", "the offset is the smallest of 64 bits, or one less",
        {f"{-(1 << 63)}.log": b""}, {f"{-(1 << 63) - 1}.log": b""},
        Due(f"{-(1 << 63) - 1}.log", None, "an offset in 20 digits", f"{-(1 << 63) - 1}.log"),
    ),
    Border(
        "FILE-2", "digits stand before the first dot, or one letter among them",
        _log(FIRST), {**_log(FIRST), f"{BASE:019d}x.log": FIRST},
        Due(f"{BASE:019d}x.log", None, "an offset in 20 digits", f"{BASE:019d}x.log"),
    ),
    Border(
        "FILE-2", "digits stand before the first dot, or nothing does",
        _log(FIRST), {**_log(FIRST), ".log": FIRST},
        Due(".log", None, "an offset in 20 digits", ".log"),
    ),
    # the files of a segment
    Border(
        "DISK-4", "the log of an index is there, or not",
        segment(b"", b""), {INDEX: b"", name(BASE + 1, ".log"): b""},
        Due(INDEX, None, f"{DIRECTORY}/{LOG_NAME}"),
    ),
    Border(
        "DISK-4", "the log of a time index is there, or that of the next offset",
        segment(b"", times=b""), {TIMES: b"", name(BASE + 1, ".log"): b""},
        Due(TIMES, None, f"{DIRECTORY}/{LOG_NAME}"),
    ),
    Border(
        "DISK-5", "a closed segment has its offset index, or not",
        followed(segment(FIRST, b"", b""), BASE + 1), followed(segment(FIRST, None, b""), BASE + 1),
        Due(LOG_NAME, None, f"{DIRECTORY}/{INDEX}", None, WARNING),
    ),
    Border(
        "DISK-5", "a closed segment has its time index, or not",
        followed(segment(FIRST, b"", b""), BASE + 1), followed(segment(FIRST, b""), BASE + 1),
        Due(LOG_NAME, None, f"{DIRECTORY}/{TIMES}", None, WARNING),
    ),
    Border(
        "DISK-5", "the segment without an offset index is the last, or another follows",
        segment(FIRST, None, b""), followed(segment(FIRST, None, b""), BASE + 1),
        Due(LOG_NAME, None, f"{DIRECTORY}/{INDEX}", None, WARNING),
    ),
    Border(
        "DISK-1", "the offset index is a file, or a directory",
        segment(FIRST, b""), {LOG_NAME: FIRST, INDEX: Folder()},
        Due(INDEX, None, None, "not a regular file"),
    ),
    Border(
        "DISK-1", "a link leads to a log, or to nothing",
        {LOG_NAME: Link("../other"), "../other": FIRST}, {LOG_NAME: Link("../other")},
        Due(LOG_NAME, None, None, "a symbolic link to nothing"),
    ),
    # zeros at the end, and sizes
    *_tails(".log", FIRST + SECOND, 1),
    *_tails(".log", FIRST + SECOND, 100),
    *_tails(".index", offset_entries((1, SIZE)), 8),
    *_tails(".timeindex", time_entries((1, 0)), 12),
    Border(
        "DISK-6", "a closed time index is one entry of zeros, or two",
        _tail(".timeindex", b"", 12, is_closed=True), _tail(".timeindex", b"", 24, is_closed=True),
        Due(TIMES, 0, 0, 24),
    ),
    *_large(".log"), *_large(".index"), *_large(".timeindex"),
    # offsets
    # indexes of another log
    Border(
        "DISK-69", "3 entries of the offset index lead to no batch, or 4",
        _of_another_log(3, 4), _of_another_log(4, 4), Due(LOG_NAME, 0, BASE, BASE + 10),
    ),
    Border(
        "DISK-69", "3 entries of the time index have a time of no batch, or 4",
        _of_another_log(4, 3), _of_another_log(4, 4), Due(LOG_NAME, 0, BASE, BASE + 10),
    ),
    Border(
        "DISK-69", "beside 3 wrong entries one behind the log has a time of it, or one before",
        _timed_beyond(5), _timed_beyond(4), Due(LOG_NAME, 0, BASE, BASE + 10),
    ),
    Border(
        "DISK-69", "of the entries 3 times as many are wrong as right, or one more",
        _of_another_log(6, 7, right=2), _of_another_log(7, 7, right=2),
        Due(LOG_NAME, 0, BASE, BASE + 10),
    ),
    Border(
        "DISK-69", "the next segment begins after the last batch, or one offset later",
        _of_another_log(4, 4, end=BASE + 9), _of_another_log(4, 4),
        Due(LOG_NAME, 0, BASE, BASE + 10),
    ),
    Border(
        "DISK-69", "the log goes on after a truncation with the time of its entries, or before it",
        _of_another_open_log(5), _of_another_open_log(4), Due(LOG_NAME, 0, BASE, BASE + 4),
        not_by_the_model="it takes each segment as closed",
    ),
    # batches that are gone between others
    Border(
        "DISK-70", "a later time is of the last offset before a gap, or of its first",
        _cut_out(times=[(12, 1)]), _cut_out(times=[(12, 2)]), CUT_OUT,
    ),
    Border(
        "DISK-70", "after an entry of a known time, the next one is of a lower offset, or the same",
        _cut_out(times=[(11, 2), (12, 1)]), _cut_out(times=[(11, 2), (12, 2)]), CUT_OUT,
    ),
    Border(
        "DISK-70", "a later time is of the first offset after a gap, or of its last",
        _cut_out(times=[(12, 3)]), _cut_out(times=[(12, 2)]), CUT_OUT,
    ),
    Border(
        "DISK-70", "the time for an offset of a gap is that of a batch, or of none",
        _cut_out(times=[(13, 2)]), _cut_out(times=[(12, 2)]), CUT_OUT,
    ),
    Border(
        "DISK-70", "the time for an offset of a gap is less than one before, or more",
        _cut_out(times=[(10, 2)], step=2), _cut_out(times=[(13, 2)], step=2), CUT_OUT,
    ),
    Border(
        "DISK-70", "the time entry is as late as the one before, or later",
        _cut_out(times=[(12, 1), (12, 2)]), _cut_out(times=[(11, 1), (12, 2)]), CUT_OUT,
    ),
    Border(
        "DISK-70", "the entry after has an earlier offset, or the same",
        _cut_out(times=[(12, 2), (13, 1)]), _cut_out(times=[(12, 2), (13, 2)]), CUT_OUT,
    ),
    Border(
        "DISK-70", "in the last segment, no entry of a batch follows, or one does",
        _cut_out(times=[(12, 2)], end=None), _cut_out(times=[(12, 2), (13, 3)], end=None), CUT_OUT,
    ),
    Border(
        "DISK-70", "one entry has a position that is too large, or two have",
        _cut_out((1, SIZE), (3, 3 * SIZE)), _cut_out((3, 3 * SIZE), (4, 4 * SIZE)), CUT_OUT,
    ),
    Border(
        "DISK-70", "two positions are too large by two distances, or by one",
        _cut_out((3, 3 * SIZE), (4, 4 * SIZE + 1)), _cut_out((3, 3 * SIZE), (4, 4 * SIZE)), CUT_OUT,
    ),
    Border(
        "DISK-70", "the position before the gap is too large too, or right",
        _cut_out((0, SIZE), (3, 3 * SIZE), (4, 4 * SIZE)),
        _cut_out((0, 0), (3, 3 * SIZE), (4, 4 * SIZE)), CUT_OUT,
    ),
    Border(
        "DISK-70", "the last position is right, or too large",
        _cut_out((3, 3 * SIZE), (4, 4 * SIZE), (5, 4 * SIZE)),
        _cut_out((3, 3 * SIZE), (4, 4 * SIZE), (5, 5 * SIZE)), CUT_OUT,
    ),
    Border(
        "DISK-70", "the batch after the gap is damaged, or sound",
        _cut_out(times=[(12, 2)], damaged=3), _cut_out(times=[(12, 2)]), CUT_OUT,
    ),
    Border(
        "DISK-13", "the first batch begins at the base offset, or before",
        _log(WIDE), _log(patched(WIDE, base_offset=BASE - 1)),
        Due(LOG_NAME, 0, "1000 or more", 999),
    ),
    Border(
        "DISK-13", "the batch below the base has a wrong checksum, or the right one",
        _log(with_byte(batch(BASE - 1), 20, batch(BASE - 1)[20] ^ 1)), _log(batch(BASE - 1)),
        Due(LOG_NAME, 0, LIMITS, 999),
    ),
    Border(
        "DISK-13", "the first batch ends with the base offset, or before",
        _log(FIRST), _log(batch(BASE - 1)), Due(LOG_NAME, 0, LIMITS, 999),
    ),
    Border(
        "DISK-13", "the second batch begins after the first, or with its last offset",
        _log(WIDE, batch(BASE + 2)), _log(WIDE, batch(BASE + 1)),
        Due(LOG_NAME, len(WIDE), "1002 or more", BASE + 1),
    ),
    Border(
        "DISK-13", "the last of three batches begins after the second, or with it",
        _log(FIRST, SECOND, batch(BASE + 2)), _log(FIRST, SECOND, SECOND),
        Due(LOG_NAME, 2 * SIZE, "1002 or more", BASE + 1),
    ),
    Border(
        "DISK-13", "the second message of magic 1 has the next offset, or the same",
        _log(message(BASE, b"v"), message(BASE + 1, b"v")),
        _log(message(BASE, b"v"), message(BASE, b"v")),
        Due(LOG_NAME, len(message(BASE, b"v")), "1001 or more", BASE),
    ),
    Border(
        "DISK-13", "the last offset is 2147483647 above the base, or one more",
        _log(batch(BASE + INT32_MAX)), _log(batch(BASE + INT32_MAX + 1)),
        Due(LOG_NAME, 0, LIMITS, BASE + INT32_MAX + 1),
    ),
    Border(
        "DISK-13", "the last of two offsets is 2147483647 above the base, or one more",
        _log(patched(FIRST, base_offset=BASE + INT32_MAX - 1, last_offset_delta=1)),
        _log(patched(FIRST, base_offset=BASE + INT32_MAX, last_offset_delta=1)),
        Due(LOG_NAME, 0, LIMITS, BASE + INT32_MAX + 1),
    ),
)  # fmt: skip
