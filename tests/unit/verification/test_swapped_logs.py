# SPDX-License-Identifier: Apache-2.0
"""Logs that wait as `.swap` for their place are data: they are read, judged and saved."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segproof.errors import SegproofError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.kafka import Record, write_batch
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.log_config import LogConfig
from segproof.kafka.record_batch import read_batch
from segproof.reading.partition_reader import PartitionReader
from segproof.repair import rebuild_all, salvage
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws.every_law import LAWS
from segproof_tests.partition_files import name_of, write_segment
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import state_of
from segproof_tests.small_logs import log_of

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def compacted(folder: Path, *, cut: int = 0, kept: int = 0) -> Path:
    """Write a partition whose cleaning of the segments 0 and 4 was cut off, and that goes on at 8.

    `cut`: bytes that the `.swap` log lacks; `kept`: how many of the old logs have their names yet,
    the last ones: the first goes first.
    """
    write_segment(folder, log_of(8, 10), 8, index=b"", timeindex=b"")
    swap = log_of(0, 3) + log_of(5, 8)
    (folder / name_of(0, ".log.swap")).write_bytes(swap[: len(swap) - cut])
    for number, (first, end) in enumerate(((0, 4), (4, 8))):
        suffix = ".log" if number >= 2 - kept else ".log.deleted"
        (folder / name_of(first, suffix)).write_bytes(log_of(first, end))
    return folder


def looked(path: Path) -> tuple[list[Finding], Summary]:
    """Return the errors and warnings, and the summary."""
    told: list[Summary] = []
    found = [one for one in verify(path, on_summary=told.append) if one.is_defect]
    return found, told[-1]


def law_ids(path: Path) -> set[str]:
    """Return the laws that errors and warnings name."""
    return {one.law for one in looked(path)[0]}


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
    assert (Verdict.READABLE_WITH_GAPS, 1) == (summary.verdict, summary.lost_at_least)
    hints = {one.path: one.hint for one in verify(folder, laws=["LOAD-1"])}
    assert "copy this file away" in hints[str(swap)]
    assert "as DISK-59 says" in hints[str(folder / name_of(4, ".log.deleted"))]
    assert 1 == len({one.hint for one in found if one.law == "DISK-59"})
    (told,) = salvage(folder, tmp_path / "out")
    assert (7, 1) == (told.batches, told.gap_count)
    assert not told.is_whole
    assert 2 == sum(".log.deleted" in one for one in told.left_out)
    (alone,) = (one for one in verify(swap) if one.is_defect)
    assert ("DUMP-6", str(swap)) == (alone.law, alone.path)


@pytest.mark.checks("DISK-59")
@pytest.mark.parametrize("lost", [None, 0, 4])
def test_removed_logs_are_saved_together(
    lost: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was to be copied into an empty folder: seven records of the first report stayed behind.

    Where one of them is gone, the `.swap` log has records that the others lack: they go apart.
    """
    monkeypatch.chdir(tmp_path)
    folder = compacted(tmp_path / "data" / "t-0", cut=10)
    if lost is not None:
        (folder / name_of(lost, ".log.deleted")).unlink()
    (hint,) = {one.hint for one in verify("data") if one.law == "DISK-59"}
    commands = re.findall("`([^`]+)`", hint)
    assert commands[-1].startswith("segproof salvage removed/")
    for command in commands[:-1]:
        subprocess.run(["bash", "-c", command], check=True)
    source = commands[-1].split()[2]
    assert Path(source).name == "t-0"
    (told,) = salvage(source, tmp_path / "out")
    assert told.is_whole
    offsets = {None: {*range(10)}, 0: {*range(4, 8)}, 4: {*range(4)}}[lost]
    assert offsets == offsets_in(tmp_path / "out")
    assert ("which is left out of the copy" in hint) == (lost is None)
    unread = {one.hint for one in verify("data") if one.law == "DISK-45"}
    assert all("DISK-59" in one for one in unread)


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


SIZE = len(log_of(0, 1))


@pytest.mark.checks("DISK-58", "DISK-59")
@given(
    swaps=st.dictionaries(st.integers(0, 5), st.integers(0, 12), max_size=2),
    logs=st.dictionaries(st.integers(0, 5), st.sampled_from((0, 0, 5, SIZE + 5)), max_size=3),
    deleted=st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=3),
)
def test_swaps_are_judged_as_the_laws_say(
    swaps: dict[int, int], logs: dict[int, int], deleted: dict[int, int]
) -> None:
    """Whatever lies beside each other; a swap of base N has one batch, less some bytes.

    A log has two batches, and one may have a changed byte; removed logs have some batches.
    A log that has the offset of a torn swap is an old log of it.
    """
    files, contents = MemoryFiles(), {}
    for base, cut in swaps.items():
        whole = log_of(base, base + 1)
        contents[base] = whole[: len(whole) - cut]
        write_file(files, f"t-0/{name_of(base, '.log.swap')}", contents[base])
    held = {base: log_of(base, base + 2) for base in logs}
    for base, changed in logs.items():
        if changed:
            data = held[base]
            held[base] = data[:-changed] + bytes([data[-changed] ^ 1]) + data[-changed + 1 :]
        write_file(files, f"t-0/{name_of(base, '.log')}", held[base])
    removed = {base: log_of(base, base + count) for base, count in deleted.items()}
    for base, data in removed.items():
        write_file(files, f"t-0/{name_of(base, '.log.deleted')}", data)
    if not (swaps or logs or deleted):
        return
    found = list(verify("t-0", files=files, laws=["DISK-58", "DISK-59", "DISK-60"]))
    told = {Path(one.path).name for one in found if one.law == "DISK-59"}
    others = {Path(one.path).name for one in found if one.law == "DISK-60"}
    for base, data in removed.items():
        holds = LAWS["DISK-59"].predicate(contents, held, {base: data})
        name = name_of(base, ".log.deleted")
        assert holds != (name in told or (name in others and not holds))
    is_whole = LAWS["DISK-58"].predicate
    torn = {one for one in swaps if {one, one - 1} & logs.keys() and not is_whole(contents[one])}
    assert torn == {
        int(Path(one.path).name.partition(".")[0]) for one in found if one.law == "DISK-58"
    }


def offsets_in(path: Path) -> set[int]:
    """Return the offsets of all batches in the logs of a directory."""
    found = set()
    for one in path.rglob("*.log"):
        data, at = one.read_bytes(), 0
        while at < len(data):
            batch = read_batch(data[at:])
            found |= set(range(batch.base_offset, batch.last_offset + 1))
            at += batch.size_bytes
    return found


@pytest.mark.checks("DISK-60", "LOAD-2")
@pytest.mark.parametrize("at", range(4, 8))
def test_a_damaged_swap_hides_no_sound_log(at: int, tmp_path: Path) -> None:
    """`verify` and `salvage` left a log out that begins within a damaged `.swap` log."""
    folder = write_segment(tmp_path / "t-0", log_of(4, 8), 4, index=b"", timeindex=b"")
    write_segment(folder, log_of(8, 10), 8, index=b"", timeindex=b"")
    swap = bytearray(log_of(0, 8))
    size = len(swap) // 8
    swap[at * size + size - 3] ^= 1
    (folder / name_of(0, ".log.swap")).write_bytes(swap)
    found, _ = looked(folder)
    (one,) = (one for one in found if one.law == "DISK-60")
    assert name_of(4, ".log") == Path(one.path).name
    assert "is damaged before its last offset" in one.message
    list(salvage(folder, tmp_path / "out"))
    assert set(range(10)) == offsets_in(tmp_path / "out" / "t-0")


@pytest.mark.checks("LOAD-2")
@pytest.mark.parametrize("bit", [5, 31, 40, 62])
@pytest.mark.parametrize("is_old_there", [True, False])
def test_a_wrong_offset_in_a_swap_hides_no_log(
    bit: int, is_old_there: bool, tmp_path: Path
) -> None:
    """No checksum covers a base offset: with one wrong bit the `.swap` log seemed to hold all."""
    folder = write_segment(tmp_path / "t-0", log_of(0, 4), index=b"", timeindex=b"")
    write_segment(folder, log_of(8, 10), 8, index=b"", timeindex=b"")
    swap = bytearray(log_of(4, 8))
    last = len(swap) // 4 * 3
    swap[last : last + 8] = (7 ^ 1 << bit).to_bytes(8, "big")
    (folder / name_of(4, ".log.swap")).write_bytes(swap)
    if is_old_there:  # and damaged
        write_segment(folder, log_of(4, 5) + b"?" + log_of(5, 8), 4)
    (told,) = salvage(folder, tmp_path / "out")
    assert {8, 9} <= offsets_in(tmp_path / "out" / "t-0")
    assert set(range(10)) == offsets_in(tmp_path / "out"), told


@pytest.mark.checks("LOAD-2")
@pytest.mark.parametrize("old", [b"", log_of(4, 8)[:-9], log_of(4, 6) + b"?" + log_of(6, 8)])
def test_a_whole_swap_counts_where_the_log_of_its_name_is_empty_or_damaged(
    old: bytes, tmp_path: Path
) -> None:
    """The log of 0 bytes was a loss of 1131 offsets, and `salvage` left the `.swap` log out."""
    folder = write_segment(tmp_path / "t-0", log_of(0, 4), index=b"", timeindex=b"")
    write_segment(folder, old, 4, index=bytes(8), timeindex=b"")
    write_segment(folder, log_of(8, 10), 8, index=b"", timeindex=b"")
    (folder / name_of(4, ".log.swap")).write_bytes(log_of(4, 8))
    found, summary = looked(folder)
    assert {"DISK-5", "DISK-10"} >= {one.law for one in found}  # the indexes are empty
    assert (10, 0) == (summary.batches, summary.lost_offsets)
    (told,) = salvage(folder, tmp_path / "out")
    assert (10, 0, 0) == (told.batches, told.lost_offsets, told.gap_count)
    assert not told.left_out


@pytest.mark.checks("DISK-45", "LOAD-2", "OFFIDX-1")
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_waits_is_checked_like_the_one_it_becomes(
    suffix: str, tmp_path: Path
) -> None:
    """It was listed, and any bytes in it were sound."""
    folder = write_segment(tmp_path / "t-0", log_of(4, 8), 4, index=b"", timeindex=b"")
    (folder / name_of(0, ".log.swap")).write_bytes(log_of(0, 4))
    index = folder / name_of(0, f"{suffix}.swap")
    index.write_bytes(b"")
    found, summary = looked(folder)
    assert (suffix == ".timeindex", 0) == (
        "DISK-10" in {one.law for one in found},
        summary.not_looked_into,
    )
    index.write_bytes(bytes(7))
    found, summary = looked(folder)
    laws = {"OFFIDX-1"} if suffix == ".index" else {"TIMEIDX-1", "DISK-10"}
    assert {(law, str(index)) for law in laws} == {(one.law, one.path) for one in found}
    assert Verdict.INDEX_DAMAGE_ONLY is summary.verdict
    assert law_ids(index) == laws - {"DISK-10"}  # alone it is not known to be closed
    assert law_ids(folder / name_of(0, ".log.swap")) == set()
    # Beside the log of its name the .swap log is not needed, and its index is not read.
    (folder / name_of(0, ".log")).write_bytes(log_of(0, 4))
    assert (set(), 1) == (
        {one.law for one in looked(folder)[0]} - {"DISK-5"},
        looked(folder)[1].not_looked_into,
    )


@pytest.mark.checks("LOAD-2", "LOG-1")
def test_a_lookup_says_that_records_wait(tmp_path: Path, capsys: Capsys) -> None:
    """`lookup` answered with the next segment, and `dump` left the records out, without a word."""
    folder = compacted(tmp_path / "t-0")
    asked = [
        ["lookup", str(folder), "--offset", "2"],
        ["lookup", str(folder), "--timestamp", "1002"],
        ["lookup", str(folder), "--offset", "2", "--profile", "kafka-4.3.1"],
        ["dump", str(folder)],
        ["dump", str(folder), "--on-damage", "skip"],
        ["dump", str(folder), "--format", "csv"],
    ]
    for words in asked:
        assert 0 != cli.run(words), words
        assert "records wait in this file" in capsys.readouterr().err, words
    with pytest.raises(SegproofError, match="LOAD-2"):
        PartitionReader(folder)
    # With the old logs in their places nothing is missing; a dump names what it leaves out.
    whole = compacted(tmp_path / "u-0", kept=2)
    assert 0 == cli.run(["lookup", str(whole), "--offset", "2"]), capsys.readouterr().err
    assert 0 == cli.run(["dump", str(whole)])
    assert "a starting broker puts this file in the place of others" in capsys.readouterr().err


@pytest.mark.checks("LOAD-2")
@given(
    gone=st.integers(0, 3),
    kept=st.sets(st.integers(0, 9), min_size=1),
    flips=st.lists(st.integers(0, 1000), max_size=2),
)
@example(gone=1, kept={0, 1, 2, 7}, flips=[194])
def test_a_salvage_keeps_what_the_logs_in_place_hold(
    gone: int, kept: set[int], flips: list[int]
) -> None:
    """A cleaning of three logs is cut off after `gone` of them, and bytes of its log are flipped.

    What a log in its place holds is saved, unless a whole `.swap` log replaces it.
    """
    swap = bytearray(b"".join(log_of(n, n + 1) for n in sorted(kept | {9})))
    size = len(swap) // len(kept | {9})
    for at in flips:
        swap[(at % len(kept | {9})) * size + 40] ^= 1
    is_whole = LAWS["DISK-58"].predicate(bytes(swap))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "t-0"
        write_segment(folder, log_of(12, 14), 12)
        (folder / name_of(0, ".log.swap")).write_bytes(swap)
        for number, (first, end) in enumerate(((0, 4), (4, 8), (8, 10))):
            suffix = ".log" if number >= gone else ".log.deleted"
            (folder / name_of(first, suffix)).write_bytes(log_of(first, end))
        list(salvage(folder, Path(name) / "out"))
        saved = offsets_in(Path(name) / "out")
    in_place = set(range(4 * gone if gone < 3 else 10, 10))
    due = {12, 13} | (kept | {9} if is_whole and gone else in_place)
    assert due <= saved


@pytest.mark.checks("LOAD-2")
@pytest.mark.parametrize("kept", [{7}, {5, 7}, {4, 5, 6, 7}])
def test_a_damaged_swap_takes_no_record_of_a_log_in_place(kept: set[int], tmp_path: Path) -> None:
    """Its sound begin has the offsets of the log, in a batch that compaction wrote again."""

    def written(offsets: Iterable[int]) -> bytes:
        records = [Record(one, 1000 + one, b"%d" % one, b"value") for one in sorted(offsets)]
        return write_batch(records, base_offset=4)

    folder = write_segment(tmp_path / "t-0", written(range(4, 8)), 4)
    write_segment(folder, log_of(8, 10), 8)
    swap = log_of(0, 4) + written(kept) + log_of(8, 9)
    (folder / name_of(0, ".log.swap")).write_bytes(swap[:-1] + b"?")
    (told,) = salvage(folder, tmp_path / "out")
    logs = sorted((tmp_path / "out" / "t-0").glob("*.log"))
    assert log_of(0, 4) + written(range(4, 8)) + log_of(8, 10) == b"".join(
        one.read_bytes() for one in logs
    )
    assert (kept != {4, 5, 6, 7}) == told.set_aside_batches  # what both hold is taken once
