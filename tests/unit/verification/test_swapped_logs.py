# SPDX-License-Identifier: Apache-2.0
"""Logs that wait as `.swap` for their place are data: they are read, judged and saved."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import SegproofError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.kafka import Record, write_batch
from segproof.kafka.log_config import LogConfig
from segproof.kafka.partition_log import PartitionLog
from segproof.rebuilding.directory_rebuild import rebuild_all
from segproof.salvaging.salvage import salvage
from segproof.verification import verify
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws.every_law import LAWS
from segproof_tests.partition_files import name_of, write_segment
from segproof_tests.reported_findings import state_of

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def log(first: int, end: int) -> bytes:
    """Return batches of one record each."""
    return b"".join(
        write_batch([Record(n, 1000 + n, b"k", b"value")], base_offset=n) for n in range(first, end)
    )


def compacted(folder: Path, *, cut: int = 0, kept: int = 0) -> Path:
    """Write a partition whose cleaning of the segments 0 and 4 was cut off, and that goes on at 8.

    `cut`: bytes that the `.swap` log lacks; `kept`: how many of the old logs have their names yet,
    the last ones: the first goes first.
    """
    write_segment(folder, log(8, 10), 8, index=b"", timeindex=b"")
    swap = log(0, 3) + log(5, 8)
    (folder / name_of(0, ".log.swap")).write_bytes(swap[: len(swap) - cut])
    for number, (first, end) in enumerate(((0, 4), (4, 8))):
        suffix = ".log" if number >= 2 - kept else ".log.deleted"
        (folder / name_of(first, suffix)).write_bytes(log(first, end))
    return folder


def looked(path: Path) -> tuple[list[Finding], Summary]:
    """Return the errors and warnings, and the summary."""
    told: list[Summary] = []
    found = [one for one in verify(path, on_summary=told.append) if one.is_defect]
    return found, told[-1]


@pytest.mark.checks("LOAD-1", "LOAD-2", "DISK-58", "DISK-59")
@pytest.mark.parametrize("kept", [0, 1])
def test_a_whole_swap_is_data(kept: int, tmp_path: Path) -> None:
    """Its batches count, `salvage` keeps them, and a broker's start gives the same log."""
    folder = compacted(tmp_path / "t-0", kept=kept)
    found, summary = looked(folder)
    assert [] == found
    assert (Verdict.SOUND, 8, 0) == (summary.verdict, summary.batches, summary.first_offset)
    before = state_of(folder)
    (told,) = salvage(folder, tmp_path / "out")
    assert before == state_of(folder)
    assert (8, 0, 9) == (told.batches, told.first_offset, told.last_offset)
    assert not [one for one in told.left_out if ".log.swap" in one]
    PartitionLog.open(str(folder), LogConfig(), last_shutdown_clean=False, writable=True).close()
    loaded = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
    saved = (path.read_bytes() for path in sorted((tmp_path / "out" / "t-0").glob("*.log")))
    assert loaded == b"".join(saved)


@pytest.mark.checks("DISK-59", "DUMP-6", "LOAD-1")
def test_a_torn_swap_is_damage_and_its_deleted_logs_are_copies(tmp_path: Path) -> None:
    """It was sound, with "nothing" as the hint, and `salvage` left it out without a gap."""
    folder = compacted(tmp_path / "t-0", cut=10)
    swap = folder / name_of(0, ".log.swap")
    found, summary = looked(folder)
    assert {("DUMP-6", ERROR, swap.name)} | {
        ("DISK-59", WARNING, name_of(base, ".log.deleted")) for base in (0, 4)
    } == {(one.law, one.severity, Path(one.path).name) for one in found}
    assert (Verdict.READABLE_WITH_GAPS, 1) == (summary.verdict, summary.lost_offsets)
    hints = {one.path: one.hint for one in verify(folder, laws=["LOAD-1"])}
    assert "copy this file away" in hints[str(swap)]
    assert "copy this file away" in hints[str(folder / name_of(4, ".log.deleted"))]
    (told,) = salvage(folder, tmp_path / "out")
    assert (7, 1) == (told.batches, told.gap_count)
    assert not told.is_whole
    assert 2 == sum(".log.deleted" in one for one in told.left_out)
    (alone,) = (one for one in verify(swap) if one.is_defect)
    assert ("DUMP-6", str(swap)) == (alone.law, alone.path)


@pytest.mark.checks("DISK-58")
def test_a_torn_swap_replaces_sound_logs(tmp_path: Path) -> None:
    """The old logs hold all: they are judged and saved, and Kafka's start would delete them."""
    folder = compacted(tmp_path / "t-0", cut=10, kept=2)
    found, summary = looked(folder)
    found = [one for one in found if one.law != "DISK-5"]
    assert [("DISK-58", ERROR)] == [(one.law, one.severity) for one in found]
    assert "deletes" in found[0].message
    assert (10, 0) == (summary.batches, summary.first_offset)
    (told,) = salvage(folder, tmp_path / "out")
    assert (10, 0) == (told.batches, told.lost_offsets)
    shutil.rmtree(folder)
    assert {"DISK-5"} == {one.law for one in looked(compacted(folder, kept=2))[0]}


@pytest.mark.parametrize("kept", [0, 2])
def test_rebuild_refuses_what_a_start_completes(kept: int, tmp_path: Path) -> None:
    """It makes no index for it, and destroys none of the files."""
    folder = compacted(tmp_path / "t-0", kept=kept)
    before = state_of(folder)
    try:
        told = list(rebuild_all([folder], tmp_path / "out"))
    except SegproofError:
        told = []
    assert not any(path.suffix == ".log" for path in (tmp_path / "out").rglob("*")), told
    assert before == state_of(folder)


@pytest.mark.checks("DISK-58", "DISK-59")
@given(
    swaps=st.dictionaries(st.integers(0, 5), st.integers(0, 12), max_size=2),
    logs=st.sets(st.integers(0, 5), max_size=2),
    deleted=st.sets(st.integers(0, 5), max_size=3),
)
def test_swaps_are_judged_as_the_laws_say(
    swaps: dict[int, int], logs: set[int], deleted: set[int]
) -> None:
    """Whatever lies beside each other; a swap of base N has one batch, less some bytes."""
    files, contents = MemoryFiles(), {}
    for base, cut in swaps.items():
        whole = log(base, base + 1)
        contents[base] = whole[: len(whole) - cut]
        write_file(files, f"t-0/{name_of(base, '.log.swap')}", contents[base])
    for base in logs:
        write_file(files, f"t-0/{name_of(base, '.log')}", log(base, base + 1))
    for base in deleted:
        write_file(files, f"t-0/{name_of(base, '.log.deleted')}", b"")
    if not (swaps or logs or deleted):
        return
    found = list(verify("t-0", files=files, laws=["DISK-58", "DISK-59"]))
    held = LAWS["DISK-59"].predicate(contents, logs, deleted)
    assert held == (not [one for one in found if one.law == "DISK-59"])
    is_whole = LAWS["DISK-58"].predicate
    torn = {base for base in logs & swaps.keys() if not is_whole(contents[base])}
    assert torn == {
        int(Path(one.path).name.partition(".")[0]) for one in found if one.law == "DISK-58"
    }
