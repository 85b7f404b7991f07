# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a partition: its names, and its segments beside each other."""

from segproof.findings import Severity
from segproof.kafka.producer_snapshot import write_snapshot
from segproof_harness.laws.borders.border import Border, Due, Files, Folder, Link
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    followed,
    marker,
    message,
    name,
    offset_entries,
    segment,
    time_entries,
    with_byte,
)

LOG_NAME, INDEX, TIMES = (name(BASE, suffix) for suffix in (".log", ".index", ".timeindex"))
EPOCHS = "leader-epoch-checkpoint"
THREE = batch(BASE), batch(BASE + 1), batch(BASE + 2)
LOG = b"".join(THREE)
FLIPPED = with_byte(LOG, len(THREE[0]) + 20, LOG[len(THREE[0]) + 20] ^ 1)
"""The checksum of the second batch is wrong."""
SIZE, END = len(THREE[0]), len(LOG)
LAST = BASE + 3
"""The offset after the three batches."""
NOTE, WARNING = Severity.NOTE, Severity.WARNING
MANY = 17
"""Batches without a gap, after which compaction explains none."""
NO_PRODUCERS = write_snapshot(())
ID = "0123456789abcdef" * 2
DEEPEST = "/".join("a" * 16)


def _log(*batches: bytes) -> Files:
    return segment(b"".join(batches))


def _gap(position: int | None, missing: int, severity: Severity = NOTE) -> Due:
    return Due(LOG_NAME, position, 0, missing, severity)


def _keyless(offset: int, *keys: bytes | None) -> bytes:
    """Return the batches of one record with these keys."""
    return b"".join(batch(offset + number, key=key) for number, key in enumerate(keys))


def _cut(log: bytes, next_base: int, *entries: tuple[int, int]) -> Files:
    """Return a closed log with an offset index."""
    return followed(segment(log, offset_entries(*entries)), next_base)


def _older(last_position: int) -> Files:
    """Return three batches before a gap, the last one at a position of about 8 KiB.

    Zeros end their offset index, which has no entry.
    """
    wide = batch(BASE + 1, value=bytes(8000))
    value = bytes(8000 + last_position - SIZE - len(wide))
    return followed(
        segment(THREE[0] + batch(BASE + 1, value=value) + THREE[2], bytes(16)), LAST + 1
    )


def _two(base: int, second: bytes) -> Files:
    """Return a log of three batches, and one of another name beside it."""
    return {LOG_NAME: LOG, name(base, ".log"): second}


def _dense(
    log: bytes,
    next_base: int,
    index: bytes | None = None,
    times: bytes | None = None,
    first: bytes = LOG,
) -> Files:
    """Return a closed log with these indexes, between another one and an empty last one."""
    before = segment(first, b"", b"")
    return followed({**before, **segment(log, index, times, base=LAST)}, next_base)


def _jump(missing: int, batches: int = MANY + 1) -> Files:
    """Return a log whose last batch begins after that many missing offsets."""
    log = [batch(BASE + number) for number in range(batches)]
    return _log(*log, batch(BASE + batches + missing))


def _epochs(*entries: tuple[int, int], leader_epochs: tuple[int, ...] = (5, 6)) -> Files:
    """Return a log with one batch for each leader epoch, beside the entries of a checkpoint."""
    lines = ["0", str(len(entries)), *(f"{epoch} {offset}" for epoch, offset in entries)]
    batches = [
        batch(BASE + number, partition_leader_epoch=epoch)
        for number, epoch in enumerate(leader_epochs)
    ]
    return {**_log(*batches), EPOCHS: ("\n".join(lines) + "\n").encode("ascii")}


def _index_bytes(index: bytes, times: bytes = b"") -> Files:
    return segment(LOG, index, times)


def _names(*names: str) -> Files:
    return {**_log(), **dict.fromkeys(names, b"")}


def _named(law: str, bound: str, lawful: str, unlawful: str) -> Border:
    """Return the border between the names of two empty files."""
    return Border(law, bound, _names(lawful), _names(unlawful), Due(unlawful, severity=NOTE))


def _swap(offset: int, cleaned: int | None, log: bytes = b"") -> Files:
    """Return a log that waits to take its place, beside a file of the cleaner."""
    files = {**segment(log, base=BASE), name(offset, ".log.swap"): batch(offset)}
    return files if cleaned is None else {**files, name(cleaned, ".log.cleaned"): b""}


def _lost(offset: int) -> Due:
    return Due(name(offset, ".log.swap"), None, f"a log with offset {offset}", None, WARNING)


def _alone(missing: int, suffix: str = ".log.cleaned") -> Due:
    words = f"a sound batch with offset {missing} in a log"
    return Due(name(BASE, suffix), None, words, None, WARNING)


BORDERS = (
    # names
    _named("DISK-3", "the name is Kafka's, or has one letter more", EPOCHS, f"{EPOCHS}s"),
    _named("DISK-3", "the name is Kafka's, or lacks a letter", EPOCHS, EPOCHS[:-1]),
    _named("DISK-3", "the suffix is Kafka's, or another", "0.deleted", "0.removed"),
    *(
        _named(
            "LOAD-1", f"the log has its own name, or waits as {suffix}",
            LOG_NAME, name(BASE + 1, f".log{suffix}"),
        )
        for suffix in (".deleted", ".cleaned", ".swap")
    ),
    Border(
        "DISK-61", "the file is Kafka's, or the mark of a rebuild that was ended",
        _names(EPOCHS), _names("segproof-rebuild.incomplete"), Due(""),
    ),
    Border(
        "DISK-62", "the first offset of the second log is above the first log's, or below",
        {name(BASE, ".log"): THREE[0], name(LAST, ".log"): batch(LAST)},
        {name(BASE, ".log"): batch(LAST), name(LAST, ".log"): THREE[0]},
        [
            Due(name(LAST, ".log"), None, name(BASE, ".log"), name(LAST, ".log")),
            Due(name(BASE, ".log"), None, name(LAST, ".log"), name(BASE, ".log")),
        ],
    ),
    Border(
        "DISK-65", "the name is the offset after the log before, or one less",
        _two(LAST, batch(LAST)), _two(LAST - 1, batch(LAST)),
        Due(name(LAST - 1, ".log"), None, name(LAST, ".log"), name(LAST - 1, ".log")),
    ),
    Border(
        "DISK-65", "the name is the first offset, or one more",
        _two(LAST, batch(LAST)), _two(LAST + 1, batch(LAST)),
        Due(name(LAST + 1, ".log"), None, name(LAST, ".log"), name(LAST + 1, ".log")),
    ),
    Border(
        "DISK-65", "below the name begins a batch of a gap, or the offset after the log before",
        _two(LAST + 2, batch(LAST + 1)), _two(LAST + 2, batch(LAST)),
        Due(name(LAST + 2, ".log"), None, name(LAST, ".log"), name(LAST + 2, ".log")),
    ),
    Border(
        "DISK-65", "an index without a log has the offset of another log, or its first",
        {**_two(LAST + 2, batch(LAST + 1)), name(LAST, ".index"): b""},
        {**_two(LAST + 2, batch(LAST + 1)), name(LAST + 1, ".index"): b""},
        Due(name(LAST + 2, ".log"), None, name(LAST + 1, ".log"), name(LAST + 2, ".log")),
    ),
    Border(
        "DISK-65", "within the log before, its batches begin there too, or after it",
        _two(LAST - 1, batch(LAST - 1)), _two(LAST - 1, batch(LAST)),
        Due(name(LAST - 1, ".log"), None, name(LAST, ".log"), name(LAST - 1, ".log")),
    ),
    _named("DISK-41", "the checkpoint has its name, or was being written", EPOCHS, f"{EPOCHS}.tmp"),
    *(
        Border(
            "DISK-41", f"the directory is of a partition, or ends in -{state}",
            {**_log(LOG), f"../t-1/{LOG_NAME}": LOG},
            {**_log(LOG), f"../t-1.{ID}-{state}/{LOG_NAME}": LOG},
            Due(f"../t-1.{ID}-{state}", severity=NOTE), below="..",
            not_by_the_model="it is given the names inside of a partition only",
        )
        for state in ("future", "stray")
    ),
    *(
        _named(
            "DISK-45", f"the log has its own name, or waits as {suffix}",
            LOG_NAME, name(BASE + 1, f".log{suffix}"),
        )
        for suffix in (".deleted", ".cleaned")
    ),
    _named("DISK-45", "the checkpoint has its name, or was being written", EPOCHS, f"{EPOCHS}.tmp"),
    Border(
        "DISK-45", "the lock file of the broker is empty, or has a byte",
        {**_log(LOG), "../.lock": b""}, {**_log(LOG), "../.lock": b"x"},
        Due("../.lock", severity=NOTE), below="..",
        not_by_the_model="it is given the names inside of a partition only",
    ),
    Border(
        "DISK-42", "the .cleaned file is of an offset above the swap, or of the same",
        _swap(BASE - 5, BASE - 4), _swap(BASE - 5, BASE - 5), _lost(BASE - 5),
    ),
    Border(
        "DISK-42", "without a .cleaned file, or with one below the swap",
        _swap(BASE - 5, None), _swap(BASE - 5, BASE - 6), _lost(BASE - 5),
    ),
    Border(
        "DISK-42", "the swap begins with the last offset of a log, or after it",
        _swap(BASE + 2, 0, LOG), _swap(LAST, 0, LOG), _lost(LAST),
    ),
    Border(
        "DISK-42", "the swap begins with the log, or before",
        _swap(BASE, 0, LOG), _swap(BASE - 1, 0, LOG), _lost(BASE - 1),
    ),
    Border(
        "DISK-27", "the second log has the next offset, or the same",
        {**_log(LOG), f"{LAST}.log": b""}, {**_log(LOG), f"{BASE}.log": b""},
        Due(f"{BASE}.log", None, BASE, LOG_NAME),
    ),
    Border(
        "DISK-20", "a directory holds a log, or another file",
        _log(), {"notes.txt": b""}, Due(""),
    ),
    Border(
        "DISK-20", "the path is a partition, or a file that is not Kafka's",
        {f"a/{LOG_NAME}": b""}, {"a": b""}, Due("a"), below="a",
        not_by_the_model="it is given the names in one directory",
    ),
    Border(
        "DISK-26", "a directory lies 16 levels down, or 17",
        {DEEPEST: Folder()}, {f"{DEEPEST}/a": Folder()}, Due(f"{DEEPEST}/a", severity=NOTE),
    ),
    Border(
        "DISK-26", "two directories are beside each other, or one is a link to the other",
        {f"a-0/{LOG_NAME}": b"", f"b-0/{LOG_NAME}": b""},
        {f"a-0/{LOG_NAME}": b"", "b-0": Link("a-0")}, Due("b-0"),
    ),
    # the active segment's indexes
    Border(
        "LOAD-19", "the offset index has the entries of segment.index.bytes, or one more",
        _index_bytes(offset_entries((0, 0), (1, SIZE))),
        _index_bytes(offset_entries((0, 0), (1, SIZE), (2, 2 * SIZE))),
        Due(INDEX, None, 16, 24, WARNING), options={"segment_index_bytes": 16},
    ),
    Border(
        "LOAD-19", "behind those entries lies a part of one, or a whole one",
        _index_bytes(offset_entries((0, 0), (1, SIZE)) + b"\0\0\0\2\0\0\1"),
        _index_bytes(offset_entries((0, 0), (1, SIZE)) + b"\0\0\0\2\0\0\1\1"),
        Due(INDEX, None, 16, 24, WARNING), options={"segment_index_bytes": 23},
    ),
    Border(
        "LOAD-19", "behind those entries lie zeros, or an entry",
        _index_bytes(offset_entries((0, 0), (1, SIZE)) + bytes(8)),
        _index_bytes(offset_entries((0, 0), (1, SIZE)) + b"\0\0\0\2\0\0\0\0"),
        Due(INDEX, None, 16, 24, WARNING), options={"segment_index_bytes": 16},
    ),
    Border(
        "LOAD-19", "the time index has the entries of segment.index.bytes, or one more",
        _index_bytes(b"", time_entries((1, 0))), _index_bytes(b"", time_entries((1, 0), (2, 1))),
        Due(TIMES, None, 12, 24, WARNING), options={"segment_index_bytes": 23},
    ),
    Border(
        "LOAD-19", "the longer index is of a closed segment, or of the last",
        followed(_index_bytes(offset_entries((0, 0), (1, SIZE))), LAST),
        _index_bytes(offset_entries((0, 0), (1, SIZE))), Due(INDEX, None, 8, 16, WARNING),
        options={"segment_index_bytes": 8},
    ),
    # segments beside each other
    Border(
        "LOG-4", "the last offset is below the next base, or the same",
        followed(_log(LOG), LAST), followed(_log(LOG), LAST - 1),
        Due(LOG_NAME, 2 * SIZE, f"less than {LAST - 1}", LAST - 1),
    ),
    Border(
        "LOG-4", "the offset of a message of magic 1 is below the next base, or the same",
        followed(_log(message(BASE, b"v")), BASE + 1),
        followed(_log(message(BASE, b"v"), message(BASE + 1, b"v")), BASE + 1),
        Due(LOG_NAME, len(message(BASE, b"v")), f"less than {BASE + 1}", BASE + 1),
    ),
    Border(
        "LOG-4", "the batch beyond the next base has a wrong checksum, or the right one",
        followed(_log(LOG[:-1] + bytes([LOG[-1] ^ 1])), LAST - 1), followed(_log(LOG), LAST - 1),
        Due(LOG_NAME, 2 * SIZE, f"less than {LAST - 1}", LAST - 1),
    ),
    # gaps
    Border(
        "DISK-19", "the second batch begins at the next offset, or after it",
        _log(batch(BASE), batch(BASE + 1)), _log(batch(BASE), batch(BASE + 2)), _gap(SIZE, 1),
    ),
    Border(
        "DISK-19", "the first batch begins at the base offset, or after it",
        _log(batch(BASE)), _log(batch(BASE + 1)), _gap(0, 1),
    ),
    Border(
        "DISK-19", "the next segment begins after the last batch, or one offset later",
        followed(_log(LOG), LAST), followed(_log(LOG), LAST + 1), _gap(None, 1),
    ),
    Border(
        "DISK-19", "a gap of two bits before the last batch, or of one",
        _jump((1 << 12) + (1 << 13)), _jump(1 << 12), _gap((MANY + 1) * SIZE, 1 << 12, WARNING),
        still=_gap((MANY + 1) * SIZE, (1 << 12) + (1 << 13)),
    ),
    Border(
        "DISK-19", "16 batches before the gap, or 17",
        _jump(1 << 12, MANY - 1), _jump(1 << 12, MANY), _gap(MANY * SIZE, 1 << 12, WARNING),
        still=_gap((MANY - 1) * SIZE, 1 << 12),
    ),
    Border(
        "DISK-19", "the index has an entry for the last batch, or for the one before",
        {**_jump(1 << 12), INDEX: offset_entries((MANY + 1 + (1 << 12), (MANY + 1) * SIZE))},
        {**_jump(1 << 12), INDEX: offset_entries((MANY, MANY * SIZE))},
        _gap((MANY + 1) * SIZE, 1 << 12, WARNING), still=_gap((MANY + 1) * SIZE, 1 << 12),
    ),
    Border(
        "DISK-42", "a .cleaned log begins within a log, or before all logs",
        {**_two(LAST + 5, b""), name(BASE, ".log.cleaned"): LOG},
        {name(LAST + 5, ".log"): b"", name(BASE, ".log.cleaned"): LOG},
        _alone(BASE),
    ),
    Border(
        "DISK-42", "a .cleaned log before all logs has no batch, or one",
        {name(LAST + 5, ".log"): b"", name(BASE, ".log.cleaned"): bytes(90)},
        {name(LAST + 5, ".log"): b"", name(BASE, ".log.cleaned"): THREE[0]},
        _alone(BASE),
    ),
    Border(
        "DISK-42", "another log reaches the last offset of a .cleaned log, or the one before",
        {
            name(BASE, ".log"): THREE[0], name(BASE + 1, ".log"): THREE[1] + THREE[2],
            name(BASE, ".log.cleaned"): THREE[0] + THREE[2],
        },
        {
            name(BASE, ".log"): THREE[0], name(BASE + 1, ".log"): THREE[1],
            name(BASE, ".log.cleaned"): THREE[0] + THREE[2],
        },
        _alone(BASE + 2),
    ),
    Border(
        "DISK-42", "the log of a .cleaned log is sound, or one checksum is wrong",
        {**_log(LOG), name(BASE, ".log.cleaned"): LOG},
        {**_log(FLIPPED), name(BASE, ".log.cleaned"): LOG}, _alone(BASE + 1),
    ),
    Border(
        "DISK-42", "of the batch with the wrong checksum a .cleaned log has none, or a copy",
        {**_log(FLIPPED), name(BASE, ".log.cleaned"): THREE[0] + THREE[2]},
        {**_log(FLIPPED), name(BASE, ".log.cleaned"): THREE[0] + THREE[1]}, _alone(BASE + 1),
    ),
    Border(
        "DISK-42", "the log has the batch after the damage in a .cleaned log, or lost it",
        {**_log(LOG), name(BASE, ".log.cleaned"): bytes(30) + THREE[1]},
        {**_log(FLIPPED), name(BASE, ".log.cleaned"): bytes(30) + THREE[1]}, _alone(BASE + 1),
    ),
    Border(
        "DISK-42", "after its damage a log has the batch of a .cleaned log, or not",
        {**_log(bytes(30) + LOG), name(BASE, ".log.cleaned"): THREE[2]},
        {**_log(bytes(30) + THREE[0] + THREE[1]), name(BASE, ".log.cleaned"): THREE[2]},
        _alone(BASE + 2),
    ),
    Border(
        "DISK-42", "the log of a .swap log that is deleted is sound, or one checksum is wrong",
        {**_log(LOG), name(BASE, ".log.swap"): LOG, name(BASE, ".log.cleaned"): b""},
        {**_log(FLIPPED), name(BASE, ".log.swap"): LOG, name(BASE, ".log.cleaned"): b""},
        _alone(BASE + 1, ".log.swap"),
    ),
    Border(
        "DISK-25", "without a key, the next segment begins after the last batch, or later",
        followed(_log(_keyless(BASE, None)), BASE + 1),
        followed(_log(_keyless(BASE, None)), BASE + 2),
        Due(LOG_NAME, len(_keyless(BASE, None)), BASE + 1, BASE + 2, WARNING),
    ),
    Border(
        "DISK-25", "the last record before a gap has a key, or none",
        followed(_log(_keyless(BASE, None, b"k")), BASE + 3),
        followed(_log(_keyless(BASE, b"k", None)), BASE + 3),
        Due(LOG_NAME, len(_keyless(BASE, b"k", None)), BASE + 2, BASE + 3, WARNING),
    ),
    Border(
        "DISK-25", "the key is empty, or null",
        followed(_log(_keyless(BASE, b"")), BASE + 2),
        followed(_log(_keyless(BASE, None)), BASE + 2),
        Due(LOG_NAME, len(_keyless(BASE, None)), BASE + 1, BASE + 2, WARNING),
    ),
    Border(
        "DISK-25", "a marker follows a record with a key, or without",
        followed(_log(_keyless(BASE, b"k"), marker(BASE + 1)), BASE + 3),
        followed(_log(_keyless(BASE, None), marker(BASE + 1)), BASE + 3),
        Due(
            LOG_NAME, len(_keyless(BASE, None) + marker(BASE + 1)), BASE + 2, BASE + 3, WARNING
        ),
    ),
    Border(
        "DISK-25", "an entry of the gap points at the last batch, or at the end of the log",
        _cut(LOG, LAST + 2, (3, 2 * SIZE)), _cut(LOG, LAST + 2, (3, END)),
        Due(LOG_NAME, END, LAST, LAST + 2),
    ),
    Border(
        "DISK-25", "an entry beyond the end is for the last offset, or for the first of the gap",
        _cut(LOG, LAST + 2, (2, END)), _cut(LOG, LAST + 2, (3, END)),
        Due(LOG_NAME, END, LAST, LAST + 2),
    ),
    Border(
        "DISK-25", "an entry beyond the end is for the next segment, or the last of the gap",
        _cut(LOG, LAST + 2, (5, END)), _cut(LOG, LAST + 2, (4, END)),
        Due(LOG_NAME, END, LAST, LAST + 2),
    ),
    Border(
        "DISK-25", "zeros follow the last batch before the next offset, or before a gap",
        followed(segment(LOG + bytes(90)), LAST), followed(segment(LOG + bytes(90)), LAST + 1),
        Due(LOG_NAME, END, LAST, LAST + 1),
    ),
    Border(
        "DISK-25", "an entry leads to zeros of the last log, for its last offset or the next",
        segment(LOG + bytes(90), offset_entries((2, END))),
        segment(LOG + bytes(90), offset_entries((3, END))),
        Due(LOG_NAME, END, LAST, LAST + 1),
    ),
    Border(
        "DISK-25", "zeros end the offset index before the next offset, or before a gap",
        followed(segment(LOG, bytes(16)), LAST), followed(segment(LOG, bytes(16)), LAST + 1),
        Due(LOG_NAME, END, LAST, LAST + 1),
    ),
    Border(
        "DISK-25", "before a gap the time index has a lone entry, or zeros end it",
        followed(segment(LOG, b"", time_entries((1, 0))), LAST + 1),
        followed(segment(LOG, b"", time_entries((1, 0)) + bytes(12)), LAST + 1),
        Due(LOG_NAME, END, LAST, LAST + 1),
    ),
    Border(
        "DISK-25", "the log with zeros in its index lacks its first offset, or none",
        followed(segment(LOG[SIZE:], bytes(16)), LAST + 1),
        followed(segment(LOG, bytes(16)), LAST + 1),
        Due(LOG_NAME, END, LAST, LAST + 1),
    ),
    Border(
        "DISK-25", "the last batch is more than two distances after the last entry, or two",
        _older(2 * 4096 + 1), _older(2 * 4096), Due(LOG_NAME, 2 * 4096 + SIZE, LAST, LAST + 1),
    ),
    Border(
        "DISK-25", "beside an empty log are zeros for as many entries as it lacks offsets, or more",
        followed(segment(b"", bytes(8 * 3)), LAST), followed(segment(b"", bytes(8 * 4)), LAST),
        Due(LOG_NAME, 0, BASE, LAST),
    ),
    # gaps of one segment among whole ones
    Border(
        "DISK-63", "the last offset before the next segment is in a batch, or in none",
        _dense(batch(LAST), LAST + 1), _dense(batch(LAST), LAST + 2),
        Due(name(LAST, ".log"), SIZE, 0, "up to 1", WARNING),
    ),
    Border(
        "DISK-63", "the base offset is in a batch, or in none",
        _dense(batch(LAST), LAST + 1), _dense(batch(LAST + 1), LAST + 2),
        Due(name(LAST, ".log"), SIZE, 0, "up to 1", WARNING),
    ),
    Border(
        "DISK-63", "the segment has both indexes, or no time index",
        _dense(batch(LAST), LAST + 2, b"", b""), _dense(batch(LAST), LAST + 2, b""),
        Due(name(LAST, ".log"), SIZE, 0, "up to 1", WARNING),
    ),
    Border(
        "DISK-63", "the segment has both indexes, or no offset index",
        _dense(batch(LAST), LAST + 2, b"", b""), _dense(batch(LAST), LAST + 2, None, b""),
        Due(name(LAST, ".log"), SIZE, 0, "up to 1", WARNING),
    ),
    Border(
        "DISK-63", "with its indexes, the log has a batch, or none",
        _dense(batch(LAST), LAST + 2, b"", b""), _dense(b"", LAST + 2, b"", b""),
        Due(name(LAST, ".log"), 0, 0, "up to 2", WARNING),
    ),
    Border(
        "DISK-63", "a snapshot is of the next segment, or of one offset less",
        {**_dense(batch(LAST), LAST + 2, b"", b""), name(LAST + 2, ".snapshot"): NO_PRODUCERS},
        {**_dense(batch(LAST), LAST + 2, b"", b""), name(LAST + 1, ".snapshot"): NO_PRODUCERS},
        Due(name(LAST, ".log"), SIZE, 0, "up to 1", WARNING),
    ),
    Border(
        "DISK-63", "a snapshot is of the last batch, or of the offset after it",
        {**_dense(batch(LAST), LAST + 2, b"", b""), name(LAST, ".snapshot"): NO_PRODUCERS},
        {**_dense(batch(LAST), LAST + 2, b"", b""), name(LAST + 1, ".snapshot"): NO_PRODUCERS},
        Due(name(LAST, ".log"), SIZE, 0, "up to 1", WARNING),
    ),
    Border(
        "DISK-63", "at its end it lacks less than half of what the other segment has, or more",
        _dense(batch(LAST) + batch(LAST + 1), LAST + 3, b"", b""),
        _dense(batch(LAST) + batch(LAST + 1), LAST + 4, b"", b""),
        Due(name(LAST, ".log"), 2 * SIZE, 0, "up to 2", WARNING),
    ),
    Border(
        "DISK-63", "its log has less than half of the other one's bytes, or more",
        _dense(batch(LAST), LAST + 4, b"", b""),
        _dense(batch(LAST) + batch(LAST + 1), LAST + 5, b"", b""),
        Due(name(LAST, ".log"), 2 * SIZE, 0, "up to 3", WARNING),
    ),
    Border(
        "DISK-63", "it lacks offsets between its batches too, or at its end only",
        _dense(batch(LAST) + batch(LAST + 2), LAST + 6, b"", b""),
        _dense(batch(LAST) + batch(LAST + 1), LAST + 5, b"", b""),
        Due(name(LAST, ".log"), 2 * SIZE, 0, "up to 3", WARNING),
    ),
    Border(
        "DISK-63", "the segment before lacks an offset, or is whole",
        _dense(batch(LAST), LAST + 2, first=THREE[1] + THREE[2]),
        _dense(batch(LAST), LAST + 2),
        Due(name(LAST, ".log"), SIZE, 0, "up to 1", WARNING),
        still=Due(name(LAST, ".log"), SIZE, 0, "up to 1", NOTE),
    ),
    Border(
        "DISK-63", "a batch is in the last segment only, or in none",
        {**followed(segment(b""), LAST), name(LAST, ".log"): batch(LAST)},
        followed(segment(b""), LAST),
        Due(LOG_NAME, 0, 0, "up to 3", WARNING), still=Due(LOG_NAME, 0, 0, "up to 3", NOTE),
    ),
    # leader epochs in the checkpoint
    Border(
        "DISK-64", "the last epoch begins at the end of the log, or one offset later",
        _epochs((5, BASE), (6, BASE + 1), (7, BASE + 2)),
        _epochs((5, BASE), (6, BASE + 1), (7, BASE + 3)),
        Due(EPOCHS, None, f"{BASE + 2} or less", BASE + 3, WARNING),
    ),
    Border(
        "DISK-37", "the checkpoint has the epoch of the batches, or one less",
        _epochs((5, BASE), (6, BASE + 1)), _epochs((4, BASE), (6, BASE + 1)),
        Due(LOG_NAME, 0, 4, 5),
    ),
    Border(
        "DISK-37", "the second epoch begins with its batch, or one offset later",
        _epochs((5, BASE), (6, BASE + 1)), _epochs((5, BASE), (6, BASE + 2)),
        Due(LOG_NAME, len(batch(BASE)), 5, 6),
    ),
    Border(
        "DISK-37", "the second epoch begins after the batches of the first, or with the last",
        _epochs((5, BASE), (6, BASE + 2), leader_epochs=(5, 5, 6)),
        _epochs((5, BASE), (6, BASE + 1), leader_epochs=(5, 5, 6)), Due(LOG_NAME, 0, 6, 5),
    ),
    Border(
        "DISK-37", "the first entry is after the batch, or at its last offset",
        _epochs((6, BASE + 1)), _epochs((6, BASE)), Due(LOG_NAME, 0, 6, 5),
    ),
    Border(
        "DISK-37", "without an entry, no batch has an epoch, or one has 0",
        _epochs(leader_epochs=(-1,)), _epochs(leader_epochs=(0,)),
        Due(EPOCHS, None, 0, None, WARNING),
    ),
)  # fmt: skip
