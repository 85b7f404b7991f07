# SPDX-License-Identifier: Apache-2.0
"""The verdict that `verify` gives on each partition, store and file."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.kafka.batch_table import read_batch_headers
from segproof.verification import VERIFIED_LAWS, verify
from segproof.verifying import summarising
from segproof.verifying.loss_count import OF_BYTES
from segproof.verifying.segment_carry import LogCarry, carried_from_bytes, carried_to_bytes
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ
from segproof_harness.laws.broken_files import EXAMPLES, damaged_copy
from segproof_tests.altered_files import altered
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.reported_findings import verified

SECOND = name_of(60, "")


def summaries(path: Path, **options: Any) -> list[Summary]:
    """Return the summaries of a run."""
    _, told = verified(path, **options)
    return told


def summary_of(path: Path, **options: Any) -> Summary:
    """Return the only summary of a run."""
    (told,) = summaries(path, **options)
    return told


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a private copy of a partition that a broker wrote."""
    return copied_partition("plain", tmp_path)


def test_a_sound_partition(copy: Path) -> None:
    """It says how much was checked, and where the log begins and ends. Notes do not count."""
    told = summary_of(copy)
    sizes = [
        path.stat().st_size
        for path in copy.iterdir()
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex")
    ]
    assert (Verdict.SOUND, "partition", str(copy)) == (told.verdict, told.kind, told.path)
    assert (sum(sizes), 9) == (told.bytes_checked, told.segments)
    assert (0, 746, 0) == (told.first_offset, told.end_offset, told.lost_offsets)
    assert 0 < told.batches < 746
    assert (0, 0, 2) == (told.errors, told.warnings, told.notes)
    assert told.is_sound


@pytest.mark.parametrize(
    ("law", "verdict"),
    [
        ("OFFIDX-2", Verdict.INDEX_DAMAGE_ONLY),
        ("DISK-9", Verdict.INDEX_DAMAGE_ONLY),
        ("DISK-5", Verdict.INDEX_DAMAGE_ONLY),
        ("BATCH-3", Verdict.READABLE_WITH_GAPS),
        ("DISK-25", Verdict.READABLE_WITH_GAPS),
        ("DISK-4", Verdict.READABLE_WITH_GAPS),
        ("PROD-3", Verdict.READABLE_WITH_DEFECTS),
        ("CKPT-3", Verdict.READABLE_WITH_DEFECTS),
        ("RMQDISK-11", Verdict.INDEX_DAMAGE_ONLY),
        ("RMQDISK-33", Verdict.INDEX_DAMAGE_ONLY),
        ("RMQDISK-30", Verdict.READABLE_WITH_DEFECTS),
        ("RMQDISK-37", Verdict.READABLE_WITH_DEFECTS),
        ("RMQDISK-26", Verdict.READABLE_WITH_GAPS),
        ("RMQDISK-20", Verdict.READABLE_WITH_DEFECTS),
    ],
)
def test_the_verdict_on_real_files_that_were_damaged(
    law: str, verdict: Verdict, tmp_path: Path
) -> None:
    """What is made new from the log, what is lost, and all other damage are told apart."""
    folder = damaged_copy(EXAMPLES[law], tmp_path)
    told = summary_of(folder, deep=EXAMPLES[law].deep)
    assert verdict == told.verdict
    assert told.errors + told.warnings


@pytest.mark.parametrize(
    ("base", "is_cut", "verdict"),
    [
        (60, False, Verdict.INDEX_DAMAGE_ONLY),
        (60, True, Verdict.READABLE_WITH_DEFECTS),
        (693, False, Verdict.READABLE_WITH_DEFECTS),
    ],
)
@pytest.mark.checks("SEG-7")
def test_an_index_that_points_beyond_its_log(
    copy: Path, base: int, is_cut: bool, verdict: Verdict
) -> None:
    """The log may have lost its end: then a new index would hide that. A log that has each offset
    up to the next segment has lost none.
    """
    index, log = (copy / name_of(base, suffix) for suffix in (".index", ".log"))
    data = bytearray(index.read_bytes().rstrip(b"\0"))
    data += bytes(-len(data) % 8)
    data[-4:] = (1 << 30).to_bytes(4, "big")
    index.write_bytes(data)
    if is_cut:
        with closing(REAL_FILES.open(str(log))) as file:
            starts = read_batch_headers(file, 0, file.size()).table["position"]
        log.write_bytes(log.read_bytes()[: int(starts[-1])])
    assert verdict is summary_of(copy).verdict


def test_a_partition_without_a_readable_batch(copy: Path) -> None:
    """It is unreadable, and how many offsets are lost is not known."""
    for path in copy.glob("*.log"):
        path.write_bytes(b"\xff" * path.stat().st_size)
    told = summary_of(copy)
    assert (Verdict.UNREADABLE, None) == (told.verdict, told.lost_offsets)
    assert 0 == told.batches


def test_lost_offsets_are_counted_where_they_are_known(tmp_path: Path) -> None:
    """Between two segments, and in a damaged batch if a sound one or the next segment follows it.
    What a recovery would delete is counted too, with all later segments. A torn tail, which a
    killed broker leaves, is no loss."""
    told = summary_of(damaged_copy(EXAMPLES["DISK-25"], tmp_path / "a"))
    assert (True, 0) == ((told.lost_offsets or 0) > 0, told.batches_behind_damage)
    told = summary_of(damaged_copy(EXAMPLES["BATCH-3"], tmp_path / "b"))
    logs = sorted((tmp_path / "b").rglob("*.log"))
    later = [len(read_batch_headers(log.read_bytes()).table) for log in logs[1:]]
    assert (3, 11 + sum(later)) == (told.lost_offsets, told.batches_behind_damage)
    copy = copied_partition("plain", tmp_path / "c")
    logs = sorted(copy.glob("*.log"))
    flip_last_byte(logs[1])
    told = summary_of(copy)
    later = [len(read_batch_headers(log.read_bytes()).table) for log in logs[2:]]
    assert (Verdict.READABLE_WITH_GAPS, sum(later)) == (told.verdict, told.batches_behind_damage)
    assert told.lost_offsets in range(1, 20)
    flip_last_byte(logs[-1])
    assert summary_of(copy).lost_offsets is None
    gone = copied_partition("plain", tmp_path / "e")
    (gone / f"{SECOND}.log").unlink()
    assert 162 - 60 == summary_of(gone).lost_offsets
    torn = copied_partition("plain", tmp_path / "d")
    log = max(torn.glob("*.log"))
    log.write_bytes(log.read_bytes()[:-5])
    told = summary_of(torn)
    assert (Verdict.READABLE_WITH_DEFECTS, 0) == (told.verdict, told.lost_offsets)


def flip_last_byte(path: Path) -> None:
    """Damage the last batch of a log."""
    flip_bits(path, -1)


def damaged_data(tmp_path: Path) -> Path:
    """Return a data directory of sound and damaged partitions, a store, and foreign files."""
    data = tmp_path / "data"
    for name in ("OFFIDX-2", "BATCH-3"):
        folder = damaged_copy(EXAMPLES[name], tmp_path / name)
        shutil.copytree(folder, data / f"{name.lower()}-0")
    shutil.copytree(copied_partition("txn-a", tmp_path), data / "sound-0")
    (data / "sound-0" / "notes.txt").write_text("x")
    (data / "notes.txt").write_text("x")
    (data / "recovery-point-offset-checkpoint").write_text("7\n")
    return data


def test_each_partition_has_its_findings_before_its_summary(tmp_path: Path) -> None:
    """In one process and in two. Those of names in a partition too; the others come first."""
    data = damaged_data(tmp_path)
    streams = []
    for jobs in (1, 2):
        stream: list[Finding | Summary] = []
        add: Callable[[Summary], None] = stream.append
        for finding in verify(data, jobs=jobs, on_summary=add):
            stream.append(finding)
        streams.append(stream)
    assert streams[0] == streams[1]
    waiting: list[Finding] = []
    seen = []
    for one in streams[0]:
        if isinstance(one, Finding):
            waiting.append(one)
            continue
        seen.append((Path(one.path).name, one.kind))
        assert all(finding.path.startswith(one.path) for finding in waiting)
        counted = [one.errors, one.warnings, one.notes]
        assert counted == [
            sum(finding.severity is severity for finding in waiting) for severity in Severity
        ]
        waiting.clear()
    assert [] == waiting
    assert ("data", "directory") == seen[0]
    assert {("batch-3-0", "partition"), ("offidx-2-0", "partition"), ("sound-0", "partition")} == {
        *seen[1:]
    }


def test_single_files_and_paths_without_any(copy: Path, tmp_path: Path) -> None:
    """A file has a summary of its own; a folder with nothing of Kafka's is not sound."""
    told = summary_of(copy / f"{SECOND}.index")
    assert ("file", Verdict.SOUND, 1) == (told.kind, told.verdict, told.segments)
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n0\n")
    told = summary_of(tmp_path / "leader-epoch-checkpoint")
    assert ("file", Verdict.SOUND, 4) == (told.kind, told.verdict, told.bytes_checked)
    (tmp_path / "empty").mkdir()
    (tmp_path / "picture.png").write_bytes(b"png")
    for name in ("empty", "picture.png"):
        told = summary_of(tmp_path / name)
        assert (Verdict.UNREADABLE, 0) == (told.verdict, told.bytes_checked)
    (store,) = summaries(ROCKETMQ / "small-5.5.1" / "store")
    assert ("store", Verdict.SOUND) == (store.kind, store.verdict)
    assert store.batches
    assert store.bytes_checked
    assert (0, True) == (store.first_offset, (store.end_offset or 0) > 0)
    assert "index folder" == summary_of(ROCKETMQ / "small-5.5.1" / "store" / "index").kind


def test_a_directory_that_cannot_be_listed_is_unreadable(tmp_path: Path) -> None:
    """It has a line of its own, and the rest of the data directory is judged by itself."""
    data = tmp_path / "data"
    for name in ("bad-0", "bad-1"):
        shutil.copytree(copied_partition("txn-a", tmp_path / name), data / name)

    def list_directory(path: str) -> list[str]:
        if path.endswith("data/bad-0"):
            raise PermissionError(13, "Permission denied", path)
        return REAL_FILES.list_directory(path)

    told = summaries(data, files=altered(list_directory=list_directory))
    assert [("bad-0", Verdict.UNREADABLE), ("bad-1", Verdict.SOUND)] == [
        (Path(one.path).name, one.verdict) for one in told
    ]


def test_only_laws_that_are_verified_make_a_verdict() -> None:
    """A law that is misspelt in these sets would count for nothing."""
    named = summarising.LOSSES | summarising.ENDS_LOST | summarising.INDEX_LAWS
    assert OF_BYTES < summarising.LOSSES
    assert named < VERIFIED_LAWS
    assert summarising.CONTRADICTIONS < summarising.INDEX_LAWS
    assert not summarising.LOSSES & summarising.INDEX_LAWS


def test_what_a_segment_has_checked_travels_as_bytes() -> None:
    """Spark keeps what segments hand on."""
    carry = LogCarry(bytes_checked=7, batches=3, sound_batches=2, is_pointed_beyond=True)
    again, _ = carried_from_bytes(carried_to_bytes(carry, ()))
    names = ("bytes_checked", "batches", "sound_batches", "is_pointed_beyond")
    assert [7, 3, 2, True] == [getattr(again, name) for name in names]


def test_a_summary_as_json() -> None:
    """All fields by name, the verdict as a word."""
    told = summary_of(KAFKA / "plain" / "plain-0").to_json()
    assert ("sound", "partition", 9) == (told["verdict"], told["kind"], told["segments"])
