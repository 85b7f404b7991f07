# SPDX-License-Identifier: Apache-2.0
"""Logs that are known to be whole: their rows are as a reading finds them, and are not read."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segproof.files import REAL_FILES
from segproof.findings import Summary
from segproof.integers import INT32_MAX
from segproof.kafka.batch_table import read_batch_headers
from segproof.repair import salvage
from segproof.stretches.kafka.facts import EDGE_BATCHES, Entries, FramedLog
from segproof.stretches.kafka.framing import LogSource, frame_partition
from segproof.stretches.kafka.whole_logs import WholeLog, frame_whole
from segproof.verification import verify
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.watched_files import READS, WatchedFiles
from segproof_harness.laws.borders.border import write_files
from segproof_harness.laws.borders.log_files import batch, name, offset_entries, time_entries

BATCHES, BASES = 300, (0, 300, 600, 900)
LOG = "00000000000000000300.log"
NOT_KNOWN = {"records", "min_time", "max_time"}


def log_of(base: int, **options: Any) -> bytes:
    """Return a log with one record in a batch, of 1 KB; every third one has two."""
    log, offset = b"", base
    while offset < base + BATCHES:
        times = (offset, offset + 1)[: 1 + (offset % 3 == 0)]
        log += batch(offset, *times, value=bytes(1000), partition_leader_epoch=3, **options)
        offset += len(times)
    return log


def entries_of(log: bytes) -> Entries:
    """Return entries for every fifth batch."""
    table = read_batch_headers(log).table[5::5]
    return Entries(table["last_offset"].astype(np.int64), table["position"].astype(np.int64))


def files_of(bases: tuple[int, ...] = BASES) -> dict[str, bytes]:
    """Return the files of a partition."""
    files = dict[str, bytes]()
    for base in bases:
        log = log_of(base)
        offsets, positions = (one.tolist() for one in entries_of(log))
        distances = [one - base for one in offsets]
        times = [*zip(offsets, distances, strict=True), (base + BATCHES - 1, BATCHES - 1)]
        files[name(base, ".log")] = log
        files[name(base, ".index")] = offset_entries(*zip(distances, positions, strict=True))
        files[name(base, ".timeindex")] = time_entries(*times)
    return files


def framed(path: Path, log: bytes, **changed: Any) -> FramedLog | None:
    """Return the rows of a log that is known to be whole, but for what is `changed`."""
    path.write_bytes(log)
    count = len(read_batch_headers(log).table)
    known = WholeLog(300, 600, len(log), count, 500)._replace(**changed)
    return frame_whole(REAL_FILES.open(str(path)), known, entries_of(log))


def test_the_rows_are_those_that_a_reading_finds(tmp_path: Path) -> None:
    """All that is known of them."""
    log, path = log_of(300), tmp_path / LOG
    path.write_bytes(log)
    source = LogSource(300, 600, lambda: REAL_FILES.open(str(path)), lambda: entries_of(log))
    facts = frame_partition([source])
    assert len(facts.rows) == 2 * EDGE_BATCHES + 1
    found = framed(path, log, least=int(facts.rows["least"][EDGE_BATCHES]))
    assert found is not None
    assert facts.logs == (found.log,)
    for one in set(facts.rows.dtype.names or ()) - NOT_KNOWN:
        assert facts.rows[one].tolist() == found.rows[one].tolist(), one


@pytest.mark.parametrize(
    "changed",
    [
        {"base_offset": 299},
        {"next_base_offset": 601},
        {"next_base_offset": None, "base_offset": 300 - INT32_MAX},
        {"size": 1001},
        {"batches": 4 * EDGE_BATCHES - 1},
    ],
)
def test_a_log_that_is_not_as_it_was_is_read(changed: dict[str, Any], tmp_path: Path) -> None:
    """Another name, another length; or it is short."""
    assert framed(tmp_path / LOG, log_of(300), **changed) is None


def test_a_log_with_few_entries_is_read(tmp_path: Path) -> None:
    """Nothing leads to its last batches."""
    path, log = tmp_path / LOG, log_of(300)
    path.write_bytes(log)
    entries = Entries(*(one[: EDGE_BATCHES - 1] for one in entries_of(log)))
    known = WholeLog(300, 600, len(log), 225, 500)
    assert frame_whole(REAL_FILES.open(str(path)), known, entries) is None


class CountingFiles(WatchedFiles):
    """Files that count the bytes that are asked for."""

    calls_of_files = WatchedFiles.calls_of_files | READS

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read: Counter[str] = Counter()

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Count."""
        if call in READS:
            wanted, position = arguments
            size = wanted if call == "pread" else len(wanted)
            self.bytes_read[path] += max(0, min(size, handle.inner.size() - position))


def damaged(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return them with a batch in the middle of the second log that can't be read."""
    log = bytearray(files[LOG])
    log[len(log) // 2 + 500] ^= 1
    return files | {LOG: bytes(log)}


def summary_of(folder: Path | str, **more: Any) -> Summary:
    """Return the summary of a partition."""
    told = list[Summary]()
    list(verify(folder, on_summary=told.append, **more))
    return told[-1]


def test_the_other_logs_of_a_damaged_partition_are_read_once() -> None:
    """Their ends alone are read again, to count what is lost."""
    files, images = CountingFiles(), damaged(files_of())
    for path, data in images.items():
        write_file(files, f"/t-0/{path}", data)
    assert summary_of("/t-0", files=files).lost_offsets == 2
    for base in BASES:
        log = name(base, ".log")
        times = files.bytes_read[f"/t-0/{log}"] / len(images[log])
        assert (times < 1.8) == (log != LOG), (log, times)


def _without(name: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: {one: data for one, data in files.items() if one != name}


def _with(
    name: str, data: Callable[[bytes], bytes]
) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: files | {name: data(files[name])}


FIRST = "00000000000000000000"


@pytest.mark.parametrize(
    "changed",
    [
        lambda files: files,
        _without(f"{FIRST}.index"),
        _without(f"{FIRST}.timeindex"),
        _without(f"{FIRST}.log"),
        _with(f"{FIRST}.index", lambda data: data[:-16]),
        _with(f"{FIRST}.index", lambda data: data[:20] + b"\0\0\0\1" + data[24:]),
        _with(f"{FIRST}.log", lambda data: data[:-1100]),
        _with(f"{FIRST}.log", lambda data: data[:20] + b"\1" + data[21:]),
        _with(
            f"{FIRST}.log", lambda data: log_of(0, producer_id=7, base_sequence=0, producer_epoch=0)
        ),
        lambda files: files_of((0, 600, 900)),
    ],
)
def test_verify_counts_what_a_salvage_tells(
    changed: Callable[[dict[str, bytes]], dict[str, bytes]], tmp_path: Path
) -> None:
    """Also if a log beside the damaged one is not whole."""
    files = changed(files_of())
    write_files(damaged(files) if LOG in files else files, tmp_path / "t-0")
    (told,) = salvage(tmp_path / "t-0", tmp_path / "out")
    found = summary_of(tmp_path / "t-0")
    assert (found.lost_at_least, found.unproven_offsets) == (
        told.lost_offsets, told.unproven_offsets,
    )  # fmt: skip
