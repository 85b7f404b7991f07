# SPDX-License-Identifier: Apache-2.0
"""What `verify` promises beside finding damage: it never raises, writes, maps or grows."""

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import InvalidArgumentError
from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity
from segproof.kafka import Record, write_batch, write_empty_batch
from segproof.kafka.producer_snapshot import write_snapshot
from segproof.processes import Progress
from segproof.verification import RULES, VERIFIED_LAWS, verify
from segproof.verifying.log_check import LogCheck
from segproof.verifying.producer_checks import ProducerCheck
from segproof.verifying.segment_checks import LOG_CHECKS
from segproof.verifying.transaction_checks import TransactionMarkers
from segproof.wording.reporting import FINDINGS_PER_LAW, Described, Reporter, Wanted
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import (
    aborted,
    batch,
    marker,
    offset_entries,
    time_entries,
)
from segproof_harness.structures.structure import STRUCTURE_IDS
from segproof_tests.altered_files import altered, defects_on
from segproof_tests.partition_files import copied_partition, write_segment
from segproof_tests.reported_findings import state_of
from segproof_tests.small_logs import log_of

DATA = KAFKA
ZERO = "0" * 20


def defects(path: Path, deep: bool = False) -> list[str]:
    """Return the laws of errors and warnings."""
    return [finding.law for finding in verify(path, deep=deep) if finding.is_defect]


# --- the call


def test_bad_arguments_are_refused_at_once() -> None:
    """A law that is not verified, no jobs and a negative position raise before any reading."""
    with pytest.raises(InvalidArgumentError, match="ABSIDX-7"):
        verify("/nowhere", laws=["ABSIDX-7"])
    wrong: list[dict[str, Any]] = [{"jobs": 0}, {"position": -1}]
    for options in wrong:
        with pytest.raises(InvalidArgumentError):
            verify("/nowhere", **options)


def test_missing_path_raises(tmp_path: Path) -> None:
    """A path that is not there is the caller's mistake, not a finding."""
    with pytest.raises(FileNotFoundError):
        list(verify(tmp_path / "nothing"))


def test_law_and_position_restrict(tmp_path: Path) -> None:
    """Only the law and the byte asked for are reported."""
    log = log_of(0, 4)
    size = len(batch(0))
    entries = offset_entries((1, size + 1), (2, 2 * size + 1))
    folder = write_segment(tmp_path / "t-0", log, index=entries)
    assert [0, 8] == [one.position for one in verify(folder, laws=["SEG-7"])]
    assert [8] == [one.position for one in verify(folder, laws=["SEG-7"], position=8)]
    assert [] == list(verify(folder, laws=["OFFIDX-2"]))
    assert [8] == [one.position for one in verify(folder / f"{ZERO}.index", position=8)]


def test_single_file_reports_on_itself_only(tmp_path: Path) -> None:
    """The siblings are read for the comparison, and not reported on."""
    folder = write_segment(tmp_path / "t-0", batch(0)[:-1] + b"!", index=bytes(7), timeindex=b"")
    assert {"BATCH-3"} == set(defects(folder / f"{ZERO}.log"))
    assert {"OFFIDX-1"} == set(defects(folder / f"{ZERO}.index"))
    assert [] == defects(folder / f"{ZERO}.timeindex")


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file name without a folder, and the present directory, are found."""
    folder = write_segment(tmp_path / "t-0", batch(0), index=bytes(7))
    monkeypatch.chdir(folder)
    assert ["OFFIDX-1"] == [one.law for one in verify(f"{ZERO}.index")]
    assert ["OFFIDX-1"] == [one.law for one in verify(".")]


def test_progress_reaches_the_total(tmp_path: Path) -> None:
    """Progress counts bytes, never falls, and ends with what there is to read."""
    seen: list[tuple[int, int]] = []
    show: Progress = lambda done, total: seen.append((done, total))  # noqa: E731
    for jobs in (1, 2):
        seen.clear()
        list(verify(DATA / "plain", on_progress=show, jobs=jobs))
        assert seen
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1] > 1_600_000


def test_iteration_may_be_abandoned() -> None:
    """Whoever has seen enough closes the iterator, with processes too."""
    for jobs in (1, 2):
        found = verify(DATA, jobs=jobs)
        assert next(found).law in VERIFIED_LAWS
        found.close()  # type: ignore[attr-defined]


# --- findings


def test_finding_as_json() -> None:
    """The fields and their order are those of every output; what is expected is text."""
    finding = Finding("SEG-7", Severity.ERROR, "offset-index", "/t", 8, "1", "two", "m", "h", "r")
    line = (
        '{"law": "SEG-7", "severity": "error", "structure": "offset-index", "path": "/t", '
        '"position": 8, "expected": "1", "actual": "two", "message": "m", "hint": "h", '
        '"reproduce": "r"}'
    )
    assert line == finding.to_json_line()
    assert finding.to_json() == json.loads(line)


def test_many_findings_are_counted() -> None:
    """Behind the first hundred of a law in a file only a count is kept, and no word is made."""
    import numpy as np

    made: list[int] = []

    def describe(row: int) -> Described:
        made.append(row)
        return Described("wrong")

    reporter = Reporter(Wanted())
    reporter.at("/x").add_rows("SEG-7", np.arange(10_000), describe)
    found = reporter.finish()
    assert FINDINGS_PER_LAW == len(made)
    assert FINDINGS_PER_LAW + 1 == len(found)
    assert str(10_000 - FINDINGS_PER_LAW) == found[-1].actual
    assert found[-1].position is None


def test_every_rule_says_what_to_do() -> None:
    """Each law has a structure of the project and a hint."""
    assert set(RULES) == VERIFIED_LAWS
    for rule in RULES.values():
        assert rule.structure in STRUCTURE_IDS
        assert rule.hint


# --- directories


def test_data_directory(tmp_path: Path) -> None:
    """Partitions are found by their content; every foreign and every pending name is a note."""
    data = tmp_path / "data"
    write_segment(data / "topic-0", batch(0), index=b"", timeindex=b"")
    write_segment(data / "topic-1.0123456789abcdef0123456789abcdef-future", batch(0))
    write_segment(data / "gone-0.0123456789abcdef0123456789abcdef-delete", b"garbage")
    (data / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (data / "notes.txt").write_text("")
    inside = data / "topic-0"
    (inside / "leader-epoch-checkpoint").write_text("0\n0\n")
    (inside / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    (inside / f"{ZERO}.snapshot").write_bytes(write_snapshot(()))
    (inside / f"{ZERO[:-1]}9.log.deleted").write_text("")
    (inside / f"{ZERO[:-1]}9.index.swap").write_text("")
    (inside / "vim.swp").write_text("")
    found = [(one.law, one.severity, Path(one.path).name) for one in verify(data)]
    assert {
        ("DISK-3", Severity.NOTE, "notes.txt"),
        ("DISK-3", Severity.NOTE, "vim.swp"),
        ("LOAD-1", Severity.NOTE, "gone-0.0123456789abcdef0123456789abcdef-delete"),
        ("DISK-41", Severity.NOTE, "topic-1.0123456789abcdef0123456789abcdef-future"),
        ("LOAD-1", Severity.NOTE, f"{ZERO[:-1]}9.log.deleted"),
        ("LOAD-1", Severity.NOTE, f"{ZERO[:-1]}9.index.swap"),
    } == {one for one in found if one[0] != "DISK-45"}
    assert {
        "gone-0.0123456789abcdef0123456789abcdef-delete",
        f"{ZERO[:-1]}9.log.deleted",
        f"{ZERO[:-1]}9.index.swap",
    } == {name for law, _, name in found if law == "DISK-45"}


@pytest.mark.checks("FILE-1", "FILE-2", "LOAD-1")
@pytest.mark.parametrize(
    ("name", "law", "words"),
    [
        ("foo.cleaned", "FILE-2", "its start fails; releases up to 1.1 remove"),
        ("foo.log.cleaned", "FILE-2", "its start fails; releases up to 1.1 remove"),
        ("foo.swap", "FILE-2", "its start fails; releases up to 2.8 pass it by"),
        ("foo.log.swap", "FILE-2", "its start fails"),
        ("foo.snapshot", "FILE-2", "its start fails"),
        ("foo.index", "FILE-2", "its start fails"),
        ("leader-epoch-checkpoint.swap", "FILE-2", "its start fails"),
        ("5.foo.log", "FILE-1", "a broker does not find this file"),
        ("5.log.swap", "FILE-1", "a broker does not find this file"),
        ("foo.deleted", "LOAD-1", "Kafka deletes it"),
        ("0.log.cleaned", "LOAD-1", "Kafka deletes it"),
        ("5.swap", "LOAD-1", "Kafka renames it to 5"),
        ("foo.checkpoint.deleted", "DISK-3", "no file of a partition"),
    ],
)
def test_odd_names(tmp_path: Path, name: str, law: str, words: str) -> None:
    """A name with which Kafka can't load is an error, with what to do; others say what it makes of
    them. `foo.cleaned` was a note, and Kafka was said to delete `foo.log.cleaned`."""
    write_segment(tmp_path / "topic-0", batch(0), index=b"", timeindex=b"")
    (tmp_path / "topic-0" / name).write_bytes(b"")
    (found,) = (one for one in verify(tmp_path) if not one.is_not_looked_into)
    assert (law, law.startswith("FILE")) == (found.law, found.severity is Severity.ERROR)
    assert words in found.message
    assert "whose next start fails with this file" in found.hint or law != "FILE-2"


@pytest.mark.checks("LOAD-19")
def test_a_smaller_index_size(tmp_path: Path) -> None:
    """An index of the last segment that does not fit the option is told; a zero tail and a part of
    an entry are not."""
    folder = tmp_path / "topic-0"
    entry = (1).to_bytes(4, "big") + (70).to_bytes(4, "big")
    write_segment(folder, batch(0) + batch(1), index=entry + bytes(16), timeindex=b"")
    assert [] == list(verify(folder, laws=["LOAD-19"]))
    assert [] == list(verify(folder, laws=["LOAD-19"], segment_index_bytes=15))
    (found,) = verify(tmp_path, laws=["LOAD-19"], segment_index_bytes=7)
    assert (Severity.WARNING, "its start fails" in found.message) == (found.severity, True)
    assert "--segment-index-bytes 7" in found.reproduce
    (folder / "00000000000000000000.index").write_bytes(entry + b"cut")
    assert [] == list(verify(folder, laws=["LOAD-19"], segment_index_bytes=8))
    with pytest.raises(InvalidArgumentError):
        verify(folder, segment_index_bytes=3)


def test_directory_of_nothing(tmp_path: Path) -> None:
    """A path without any file of Kafka's is no clean verdict; a loop of links ends."""
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "picture.png").write_bytes(b"")
    assert ["DISK-20"] == defects(tmp_path)
    assert ["DISK-20"] == defects(tmp_path / "picture.png")


def refusing(refused: str, error: OSError | None = None, cut: int | None = None) -> Any:
    """Return real files of which some can't be listed or opened, or shrink behind their size."""
    sizes: dict[str, int] = {}

    def list_directory(path: str) -> list[str]:
        if path.endswith(refused) and error:
            raise error
        return REAL_FILES.list_directory(path)

    def open_file(path: str, *, writable: bool = False, create: bool = False) -> Any:
        assert not writable
        assert not create
        if path.endswith(refused) and error:
            raise error
        file = REAL_FILES.open(path)
        if cut is None or not path.endswith(refused):
            return file
        size = sizes.setdefault(path, file.size())  # as it was before the first look
        os.truncate(path, cut)
        return altered(file, size=lambda: size)

    return altered(list_directory=list_directory, open=open_file)


@pytest.mark.parametrize("suffix", ["log", "index", "timeindex", "txnindex"])
def test_refused_vanished_and_shrunk_files(tmp_path: Path, suffix: str) -> None:
    """A file without rights, one that vanishes and one that shrinks are a finding each."""
    for number, (files, law) in enumerate(
        [
            (refusing(f".{suffix}", PermissionError(13, "Permission denied")), "DISK-1"),
            (refusing(f".{suffix}", OSError(5, "Input/output error")), "DISK-1"),
            (refusing(f".{suffix}", FileNotFoundError(2, "gone")), "DISK-2"),
            (refusing(f"1014.{suffix}", cut=100), "DISK-2"),
            (refusing(f"1014.{suffix}", cut=0), "DISK-2"),
        ]
    ):
        found = defects_on(files, copied_partition("txn-a", tmp_path / str(number)), deep=True)
        assert law in {one.law for one in found}
        assert suffix in {one.path.rpartition(".")[2] for one in found if one.law == law}


def test_refused_directory(tmp_path: Path) -> None:
    """A directory without rights inside another is a finding, the other ones are verified."""
    write_segment(tmp_path / "bad-0", batch(0))
    write_segment(tmp_path / "good-0", batch(0), index=bytes(7))
    files = refusing("bad-0", PermissionError(13, "Permission denied"))
    assert ["DISK-1", "OFFIDX-1"] == [one.law for one in defects_on(files, tmp_path)]


def test_special_files_are_not_waited_for(tmp_path: Path) -> None:
    """A pipe, a directory and a dangling link named as logs are findings."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    os.mkfifo(folder / f"{ZERO}.log")
    (folder / f"{ZERO[:-1]}1.log").mkdir()
    (folder / f"{ZERO[:-1]}2.log").symlink_to("/nonexistent/log")
    *_, link = found = [one for one in verify(folder) if one.law in ("DISK-1", "DISK-2")]
    assert ["DISK-1", "DISK-1", "DISK-1"] == [one.law for one in found]
    assert "it cannot be read: a symbolic link to nothing" == link.message


# --- huge, empty, garbage


def test_one_is_not_told_as_many(tmp_path: Path) -> None:
    """Small files had "1 entries", and a batch that "follow"."""
    damaged = bytearray(batch(0) + batch(1))
    damaged[8:12] = (20).to_bytes(4, "big")
    folder = write_segment(tmp_path / "t-0", bytes(damaged), index=bytes(7) + b"\1\1")
    words = " ".join(one.message for one in verify(folder))
    assert "9 bytes are 1 entry of 8 bytes and 1 byte more" in words
    assert "; 1 sound batch follows, from byte " in words
    assert [] == re.findall(r"\b1 [a-z ]*(?:bytes|entries|batches|records)\b", words)


def test_empty_files(tmp_path: Path) -> None:
    """A segment that was just made, with four empty files, is healthy."""
    folder = write_segment(tmp_path / "t-0", b"", index=b"", timeindex=b"", txnindex=b"")
    assert [] == list(verify(folder, deep=True))


@pytest.mark.parametrize("suffix", ["log", "index", "timeindex", "txnindex"])
@pytest.mark.parametrize("size", [1, 7, 11, 17, 18, 33, 60, 61, 1000, 100_000])
def test_garbage_is_found_and_never_raised(tmp_path: Path, suffix: str, size: int) -> None:
    """Any file of random bytes makes findings, whatever its length."""
    import random

    garbage = random.Random(size).randbytes(size)
    folder = write_segment(tmp_path / "t-0", log_of(0, 9))
    (folder / f"{ZERO}.{suffix}").write_bytes(garbage)
    assert defects(folder, deep=True)


@pytest.mark.slow
def test_huge_sparse_index_takes_no_memory(tmp_path: Path) -> None:
    """An index of 100 GB is a finding, in a moment; only what Kafka can map is read."""
    folder = write_segment(tmp_path / "t-0", batch(0))
    with (folder / f"{ZERO}.index").open("wb") as file:
        file.truncate(1 << 20)
        file.seek((100 << 30) - 1)
        file.write(b"!")
    assert "DISK-7" in defects(folder)


MEASURE = """
import sys
from segproof.verification import verify
found = [one.law for one in verify(sys.argv[1], deep=True)]
# ru_maxrss would begin with the peak of the process that started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(int(peak.split()[1]) // 1024, *sorted(set(found)))
"""


@pytest.mark.slow
def test_memory_stays_small(tmp_path: Path) -> None:
    """Garbage indexes, a batch of 40 MiB and one that says 2^31 - 1 records: below 200 MiB."""
    large = batch(1, value=bytes(40 << 20))
    log = batch(0) + large + batch(2)
    garbage = bytes(range(256)) * (64 << 10)
    folder = write_segment(
        tmp_path / "t-0", log, index=garbage, timeindex=garbage, txnindex=garbage
    )
    environment = {**os.environ, "SEGPROOF_KERNELS": "interpreted"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder)], capture_output=True, text=True,
        check=True, env=environment,
    )  # fmt: skip
    mebibytes, *laws = done.stdout.split()
    assert int(mebibytes) < 200
    assert {"OFFIDX-2", "TIMEIDX-7", "DISK-11", "DISK-18"} <= set(laws)


@pytest.mark.slow
def test_a_limit_decides_what_is_looked_into(tmp_path: Path) -> None:
    """What is only too large, plain or inflated, is a warning that says so; a limit above reads it.

    The command of such a finding carries the limit.
    """
    small = [batch(0)]
    plain = batch(1, value=bytes(18 << 20))
    packed = batch(2, value=bytes(70 << 20), compression="gzip")
    folder = write_segment(tmp_path / "t-0", b"".join([*small, plain, packed]))
    found = list(verify(folder, deep=True))
    assert [("DISK-18", "warning")] * 2 == [(each.law, each.severity.value) for each in found]
    assert all("were not looked into" in each.message for each in found)
    assert all("--limit-bytes" in each.hint for each in found)
    assert [] == list(verify(folder, deep=True, limit=80 << 20))
    below = list(verify(folder, deep=True, limit=70 << 20, jobs=1))
    assert [len(small[0]) + len(plain)] == [each.position for each in below]
    assert f"--deep --limit-bytes {70 << 20} --law DISK-18" in below[0].reproduce
    assert 3 > len(list(verify(folder, deep=True, limit=1)))
    with pytest.raises(InvalidArgumentError, match="limit"):
        verify(folder, deep=True, limit=0)


def test_import_is_light() -> None:
    """Importing the verifier loads neither numba nor a test tool nor Spark."""
    code = "import sys, segproof.verification; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set() == {"numba", "pyspark", "hypothesis", "typer", "rich"} & set(done.stdout.split())


# --- what healthy logs may look like


def test_key_conventions(tmp_path: Path) -> None:
    """First and last offsets are keys, also of an append of several batches."""
    parts = [batch(offset, *2 * [5 * offset + 10]) for offset in (0, 2, 4, 6)]
    size = len(parts[0])
    for keys in ((3, 7), (2, 4), (5, 7), (2, 6)):
        positions = (size, 2 * size) if keys != (2, 6) else (size, 3 * size)
        entries = b"".join(
            struct.pack(">ii", key, at) for key, at in zip(keys, positions, strict=True)
        )
        folder = write_segment(tmp_path / f"t{keys[0]}{keys[1]}-0", b"".join(parts), index=entries)
        assert [] == defects(folder)


def test_time_entry_conventions(tmp_path: Path) -> None:
    """The record's own offset, the first and the last offset of its batch are all right."""
    log = batch(0, 10) + batch(1, *4 * [30]) + batch(5, 20)
    for offset in (1, 2, 4):
        entry = time_entries((30, offset))
        folder = write_segment(tmp_path / f"t{offset}-0", log, timeindex=entry)
        assert [] == defects(folder)
    for offset in (0, 5, 6):
        entry = time_entries((30, offset))
        folder = write_segment(tmp_path / f"u{offset}-0", log, timeindex=entry)
        assert ["DISK-9"] == defects(folder)


@pytest.mark.checks("DISK-9")
def test_time_entry_of_the_first_batch_that_has_the_time(tmp_path: Path) -> None:
    """A producer's time is entered where it is first met; a lookup would pass over that batch."""
    records = [Record(1 + row, 30, None, b"v") for row in range(2)]
    by_broker = write_batch(
        records, base_offset=1, timestamp_type="LogAppendTime", log_append_time=30
    )
    ties = batch(0, 10) + batch(1, 30, 30) + batch(3, 30) + batch(4, 30)
    for offset, laws in ((1, []), (2, []), (3, ["DISK-9"]), (4, ["DISK-9"])):
        entry = time_entries((30, offset))
        folder = write_segment(tmp_path / f"t{offset}-0", ties, timeindex=entry)
        assert laws == defects(folder)
    later = write_batch(
        [Record(3, 30, None, b"v")], base_offset=3, timestamp_type="LogAppendTime",
        log_append_time=30,
    )  # fmt: skip
    folder = write_segment(
        tmp_path / "a-0", batch(0, 10) + by_broker + later, timeindex=entry[:11] + b"\3"
    )
    assert [] == defects(folder)


def test_lone_zero_time_entry(tmp_path: Path) -> None:
    """Timestamp 0 at the base offset is an entry, where it is all that the index holds."""
    folder = write_segment(tmp_path / "t-0", batch(0, 0), index=b"", timeindex=bytes(12))
    (folder / f"{ZERO[:-1]}1.log").write_bytes(b"")
    assert [] == defects(folder)


def test_empty_batch_and_gap(tmp_path: Path) -> None:
    """What compaction leaves is healthy; a gap is one note with its size."""
    log = write_empty_batch(0, 4, 10) + batch(9)
    folder = write_segment(tmp_path / "t-0", log)
    assert [("DISK-19", Severity.NOTE, "4")] == [
        (one.law, one.severity, one.actual) for one in verify(folder, deep=True)
    ]


@pytest.mark.usefixtures("processes_for_little")
def test_transaction_across_segments(tmp_path: Path) -> None:
    """An abort marker whose transaction began in an earlier segment needs its entry too."""
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    data = batch(0, is_transactional=True, **producer)
    folder = write_segment(tmp_path / "t-0", data, index=b"", timeindex=time_entries((1, 0)))
    second = folder / f"{ZERO[:-1]}1.log"
    second.write_bytes(marker(1))
    for jobs in (1, 2):
        found = [one for one in verify(folder, jobs=jobs) if one.is_defect]
        assert ["DISK-12"] == [one.law for one in found]
        assert str(folder) in found[0].reproduce
    # Alone, the segment does not know that the transaction has records.
    assert [] == defects(second)
    second.with_suffix(".txnindex").write_bytes(aborted(0, 1))
    assert [] == defects(folder)


def test_bytes_and_times_stay(tmp_path: Path) -> None:
    """Verification opens nothing for writing and changes no file, name or time."""
    folder = copied_partition("plain", tmp_path)
    before = state_of(folder)
    assert [] == defects_on(refusing("nothing"), folder, deep=True)
    assert before == state_of(folder)


def leaves(kind: type[LogCheck]) -> set[type[LogCheck]]:
    """Return the classes below one that have no subclass."""
    below = kind.__subclasses__()
    return {leaf for each in below for leaf in leaves(each)} if below else {kind}


def test_every_check_of_a_log_is_run() -> None:
    """A check is in the list, or in the check of the producers' state, which runs two."""
    parts = {ProducerCheck, TransactionMarkers}
    assert leaves(LogCheck) == parts | set(LOG_CHECKS)
