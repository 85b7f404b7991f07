# SPDX-License-Identifier: Apache-2.0
"""Closed segments that lack offsets, and nothing but the rest of the log to tell of a loss."""

import os
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Severity, Summary, Verdict
from segproof.kafka.batch_table import read_batch_headers
from segproof.repair import salvage
from segproof.salvaging.salvage import SalvagedPartition
from segproof.verification import verify
from segproof.verifying import cut_out_checks
from segproof_harness.laws.borders.border import write_files
from segproof_harness.laws.judged_directory import CODECS
from segproof_model.laws.kafka.broker.partition_on_disk import dense_logs_lack_no_offsets
from segproof_tests.partition_files import (
    aged,
    copied_partition,
    keyless_partition,
    looked_at,
    name_of,
    without_first_key,
    write_segment,
)
from segproof_tests.small_logs import batch

BASES = (0, 3, 6, 9)


def dense(*offsets: int, keyless: int | None = None) -> bytes:
    """Return batches of one record, each with a key but that of one offset."""
    return b"".join(batch(at, key=None if at == keyless else b"k") for at in offsets)


def saved(folder: Path) -> SalvagedPartition:
    """Return what a salvage tells."""
    with TemporaryDirectory() as out:
        (told,) = salvage(folder, Path(out, "saved"))
    return told


def remove(folder: Path, base: int, *suffixes: str) -> None:
    """Remove files of a segment."""
    for suffix in suffixes:
        (folder / name_of(base, suffix)).unlink()


INDEXES = (".index", ".timeindex")
DAMAGES = {
    "emptied": (0, 0, 78, (342, 419)),
    "the first batch is left": (0, 31929, 66, (354, 419)),
    "the first batch is gone": (31929, None, 12, (342, 353)),
}


@pytest.mark.checks("DISK-63", "DISK-5", "DISK-19")
@pytest.mark.parametrize("gone", [INDEXES, (".index",), (".timeindex",)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_dense_log_lost_offsets(damage: str, gone: tuple[str, ...], tmp_path: Path) -> None:
    """It was "index damage only", "no record is lost", "everything kept"."""
    folder = keyless_partition("plain", tmp_path)
    start, end, lost, offsets = DAMAGES[damage]
    log = folder / name_of(342, ".log")
    left = log.read_bytes()[start:end]
    log.write_bytes(without_first_key(left) if start else left)
    remove(folder, 342, *gone)
    told, found = looked_at(folder)
    assert (told.verdict, told.lost_offsets) == (Verdict.READABLE_WITH_GAPS, lost)
    assert not any("no record is lost" in one.hint for one in found)
    kept = saved(folder)
    assert (kept.is_whole, kept.lost_offsets, kept.are_more_lost) == (False, lost, False)
    if set(gone) == set(INDEXES):
        (one,) = (one for one in found if one.law == "DISK-63")
        assert (one.severity, one.actual, one.position) == (
            Severity.WARNING, str(lost), log.stat().st_size,
        )  # fmt: skip
        (gap,) = kept.gaps
        assert (gap.first_lost_offset, gap.last_lost_offset) == offsets


@pytest.mark.checks("DISK-63", "DISK-5")
def test_a_whole_log_loses_nothing_with_its_indexes(tmp_path: Path) -> None:
    """The log has every offset: the words of DISK-5 hold. Without it its snapshot shows the loss:
    it was "sound"."""
    folder = keyless_partition("plain", tmp_path)
    remove(folder, 342, *INDEXES)
    told, found = looked_at(folder)
    assert told.verdict is Verdict.INDEX_DAMAGE_ONLY
    assert all("no record is lost" in one.hint for one in found if one.law == "DISK-5")
    assert saved(folder).is_whole
    remove(folder, 342, ".log")
    told, _ = looked_at(folder)
    assert (told.verdict, told.lost_offsets) == (Verdict.READABLE_WITH_GAPS, 78)
    assert saved(folder).lost_offsets == 78


@pytest.mark.checks("DISK-63", "DISK-4")
def test_logs_of_two_segments_are_gone_and_their_indexes_stay(tmp_path: Path) -> None:
    """Each offset counts once, also beside a segment that DISK-63 tells of."""
    folder = keyless_partition("plain", tmp_path)
    for base in (342, 420):
        remove(folder, base, ".log")
    (folder / name_of(162, ".log")).write_bytes(b"")
    remove(folder, 162, *INDEXES)
    lost = (517 - 342) + (252 - 162)
    told, _ = looked_at(folder)
    assert (told.lost_offsets, saved(folder).lost_offsets) == (lost, lost)


@pytest.mark.checks("DISK-63", "DISK-19")
@pytest.mark.parametrize("gone", [(60,), (342,), (342, 420), (162, 517)])
def test_whole_segments_of_a_dense_log_are_gone(gone: tuple[int, ...], tmp_path: Path) -> None:
    """It was "sound": all files of a segment were moved away, with its snapshot."""
    folder = keyless_partition("plain", tmp_path)
    bases = sorted(int(path.name[:20]) for path in folder.glob("*.log"))
    ends = dict(pairwise(bases))
    for base in gone:
        remove(folder, base, ".log", *INDEXES, ".snapshot")
    lost = sum(ends[base] - base for base in gone)
    told, found = looked_at(folder)
    assert (told.verdict, told.lost_offsets) == (Verdict.READABLE_WITH_GAPS, lost)
    assert {one.severity for one in found if one.law == "DISK-63"} == {Severity.WARNING}
    kept = saved(folder)
    assert (kept.is_whole, kept.lost_offsets, kept.are_more_lost) == (False, lost, False)


@pytest.mark.checks("DISK-63")
def test_a_checkpoint_of_the_cleaner_explains_a_gap(tmp_path: Path) -> None:
    """The log was compacted, as the checkpoint says: nothing speaks of a loss."""
    folder = keyless_partition("plain", tmp_path)
    remove(folder, 342, ".log", *INDEXES, ".snapshot")
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    for offset, lost in ((420, 0), (0, 78)):
        checkpoint.write_text(f"0\n1\nplain 0 {offset}\n")
        told: list[Summary] = []
        for path in (tmp_path, checkpoint):
            os.utime(path, (10**9, 10**9))
        for _ in verify(aged(folder), on_summary=told.append):
            pass
        assert [one.lost_at_least for one in told] == [lost]


@pytest.mark.checks("DISK-63")
@pytest.mark.parametrize("scenario", ["compacted", "v1-gzip"])
def test_a_shorter_log_was_compacted(scenario: str, tmp_path: Path) -> None:
    """Gaps that compaction has left, or that lie between appends, are no lost segment."""
    told, found = looked_at(copied_partition(scenario, tmp_path))
    assert told.lost_at_least == 0
    assert "DISK-63" not in {one.law for one in found}


@pytest.mark.checks("DISK-63", "BATCH-3")
@pytest.mark.parametrize("suffixes", [(".snapshot",), ()])
@pytest.mark.parametrize("number", [0, 3, 13])
def test_a_damaged_batch_hides_no_lost_segment(
    number: int, suffixes: tuple[str, ...], tmp_path: Path
) -> None:
    """It was 2 offsets, and 97 more were gone after the damaged log."""
    folder = keyless_partition("plain", tmp_path)
    remove(folder, 420, ".log", *INDEXES, *suffixes)
    log = folder / name_of(342, ".log")
    data = bytearray(log.read_bytes())
    row = read_batch_headers(bytes(data)).table[number]
    data[int(row["position"]) + 70] ^= 8
    log.write_bytes(data)
    lost = int(row["last_offset"] - row["base_offset"]) + 1 + 97
    told, _ = looked_at(folder)
    assert (told.verdict, told.lost_offsets) == (Verdict.READABLE_WITH_GAPS, lost)
    kept = saved(folder)
    assert (kept.lost_offsets, kept.are_more_lost) == (lost, False)


@pytest.mark.checks("DISK-63", "DISK-13")
@pytest.mark.parametrize("seed", range(6))
def test_batches_in_a_wrong_order_are_not_lost(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two neighbours have changed places, without an index: none of their offsets is lost."""
    random = Random(seed)
    folder = keyless_partition("plain", tmp_path)
    remove(folder, 342, *INDEXES)
    log = folder / name_of(342, ".log")
    data, table = log.read_bytes(), read_batch_headers(log.read_bytes()).table
    batches = [
        data[at : at + size]
        for at, size in zip(table["position"].tolist(), table["size_bytes"].tolist(), strict=True)
    ]
    at = random.randrange(1, len(batches) - 5)
    batches[at : at + 2] = batches[at + 1], batches[at]
    lost, gone = 0, len(batches) - 3
    if seed % 2:
        del batches[gone]
        lost = int(table["last_offset"][gone] - table["base_offset"][gone]) + 1
    log.write_bytes(b"".join(batches))
    told, _ = looked_at(folder)
    assert (told.lost_offsets or 0, told.lost_at_least) == (lost, lost)
    assert told.missing_offsets == lost
    assert saved(folder).lost_offsets == lost
    monkeypatch.setattr(cut_out_checks, "BATCHES_MAX", 1)
    told, _ = looked_at(folder)
    # Of too many batches no order is made: more may be told than is missing, and never less.
    assert told.missing_offsets > lost


@pytest.mark.checks("DISK-63", "SCAN-2")
def test_after_broken_sizes_all_is_counted(tmp_path: Path) -> None:
    """The log can't be read to its end in one go: a salvage reads on after the broken batch."""
    folder = keyless_partition("plain", tmp_path)
    remove(folder, 420, ".log", *INDEXES, ".snapshot")
    log = folder / name_of(342, ".log")
    data = bytearray(log.read_bytes())
    at = int(read_batch_headers(bytes(data)).table["position"][3])
    data[at : at + 100] = bytes(100)
    log.write_bytes(data)
    told, _ = looked_at(folder)
    assert told.lost_offsets == saved(folder).lost_offsets > 498 - 420


@pytest.mark.checks("DISK-63", "DISK-5")
def test_in_a_compacted_log_it_is_not_known(tmp_path: Path) -> None:
    """Other segments have gaps too: neither a loss nor "index damage only" is proved."""
    folder = copied_partition("compacted", tmp_path)
    (folder / name_of(4104, ".log")).write_bytes(b"")
    remove(folder, 4104, *INDEXES)
    told, found = looked_at(folder)
    assert (told.verdict, told.lost_at_least) == (Verdict.READABLE_WITH_DEFECTS, 0)
    (one,) = (one for one in found if one.law == "DISK-63")
    assert (one.severity, one.actual) == (Severity.NOTE, f"up to {5235 - 4104}")
    assert "not known" in one.message
    assert not any("no record is lost" in one.hint for one in found)
    kept = saved(folder)
    assert (kept.lost_offsets, kept.unproven_offsets) == (0, 5235 - 4104)


@pytest.mark.checks("DISK-25", "DISK-6")
@pytest.mark.parametrize("zeroed", [(0,), (3,), (6,), (3, 6), (0, 3, 6, 9), (6, 9)])
def test_zeros_in_place_of_closed_logs(zeroed: tuple[int, ...], tmp_path: Path) -> None:
    """The summary told offsets by names alone, and no loss of closed logs."""
    folder = tmp_path / "t-0"
    for base in BASES:
        log = dense(*range(base, base + 3))
        log = bytes(len(log)) if base in zeroed else log
        write_segment(folder, log, base, index=b"", timeindex=b"")
    lost = 3 * len({*zeroed} - {9})
    told, _ = looked_at(folder)
    left = [base for base in BASES if base not in zeroed]
    assert told.lost_at_least == lost
    assert told.verdict is (Verdict.READABLE_WITH_GAPS if left else Verdict.UNREADABLE)
    shown = (left[0], left[-1] + 3) if left else (None, None)
    assert (told.first_offset, told.end_offset) == shown
    kept = saved(folder)
    assert (kept.lost_offsets, kept.is_whole) == (lost, False)


@st.composite
def partitions(draw: st.DrawFn) -> dict[str, bytes]:
    """Draw logs of up to three offsets each, with and without indexes and snapshots."""
    files: dict[str, bytes] = {}
    keyless = draw(st.sampled_from([None, 0]))
    for base in BASES:
        offsets = draw(st.sets(st.sampled_from(range(base, base + 3))))
        is_whole = draw(st.booleans())
        files[name_of(base, ".log")] = (
            dense(*range(base, base + 3), keyless=keyless) if is_whole else dense(*sorted(offsets))
        )
        for suffix in draw(st.sets(st.sampled_from(INDEXES))):
            files[name_of(base, suffix)] = b""
    for offset in draw(st.sets(st.integers(1, 9), max_size=2)):
        files[name_of(offset, ".snapshot")] = b""
    return files


@pytest.mark.checks("DISK-63")
@given(partitions())
def test_agrees_with_the_law(files: dict[str, bytes]) -> None:
    """It is reported if and only if the model's law is broken; the counts are those of salvage."""
    with TemporaryDirectory() as place:
        folder = Path(place, "t-0")
        write_files(files, folder)
        found = list(verify(aged(folder), laws=["DISK-63"]))
        assert dense_logs_lack_no_offsets(files, CODECS) == (not found)
        kept = saved(folder) if any(data for data in files.values()) else None
    if kept is not None:
        told = [one.actual or "" for one in found]
        unknown = [one for one in told if one.startswith("up to ")]
        assert kept.lost_offsets == sum(int(one) for one in told if one not in unknown)
        assert kept.unproven_offsets == sum(int(one.removeprefix("up to ")) for one in unknown)


def checkpoint_of(topic: str, folder: Path) -> None:
    """Write the cleaner's checkpoint beside a partition, with one of a topic."""
    (folder.parent / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 0 420\n")


@pytest.mark.checks("DISK-63")
@pytest.mark.parametrize("keyless", [0, 7, None])
@pytest.mark.parametrize("cleaned", [False, True])
def test_a_record_without_a_key_before_a_gap(
    keyless: int | None, cleaned: bool, tmp_path: Path
) -> None:
    """A segment was gone, all of its files: it was "sound" if no whole one was left beside it.

    Without such a record nothing excludes that compaction took the segment, and a checkpoint of
    the cleaner speaks for it.
    """
    folder = tmp_path / "data" / "t-0"
    for offsets in ((0, 1, 2), (6, 7, 8)):
        images = {"index": b"", "timeindex": b""}
        write_segment(folder, dense(*offsets, keyless=keyless), offsets[0], **images)
    if cleaned:
        (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 6\n")
    summary, found = looked_at(aged(folder))
    is_lost = keyless == 0 and not cleaned
    told = saved(folder)
    assert (3 if is_lost else 0) == summary.lost_at_least == told.lost_offsets
    assert is_lost == (summary.verdict is Verdict.READABLE_WITH_GAPS)
    assert is_lost == ("DISK-63" in {one.law for one in found})


@pytest.mark.checks("DISK-63")
def test_a_segment_of_transactions_is_gone(tmp_path: Path) -> None:
    """Two segments stay, and the first record has no key."""
    folder = copied_partition("txn-a", tmp_path)
    remove(folder, 1014, ".log", *INDEXES, ".snapshot")
    for path in folder.glob(f"{1014:020d}.*"):
        path.unlink()
    summary, found = looked_at(aged(folder))
    assert (Verdict.READABLE_WITH_GAPS, 718) == (summary.verdict, summary.lost_offsets)
    assert any("from 1014 up to the next" in one.message for one in found)
    told = saved(folder)
    assert (718, 0) == (told.lost_offsets, told.unproven_offsets)


CAUSES = {
    "emptied, no index": (342, 78, (".index", ".timeindex")),
    "emptied, empty indexes": (342, 78, ()),
    "gone": (342, 78, (".log", ".index", ".timeindex", ".snapshot")),
    "gone, a snapshot stays": (342, 78, (".log", ".index", ".timeindex")),
}


def lacking(cause: str, tmp_path: Path, *, is_keyless: bool) -> tuple[Path, int]:
    """Return a partition that lacks a segment's offsets, and how many."""
    make = keyless_partition if is_keyless else copied_partition
    folder = make("plain", tmp_path)
    base, count, gone = CAUSES[cause]
    for suffix in (".log", *INDEXES):
        (folder / name_of(base, suffix)).write_bytes(b"")
    remove(folder, base, *gone)
    return folder, count


@pytest.mark.checks("DISK-63")
@pytest.mark.parametrize("cause", CAUSES)
def test_where_all_records_have_keys_it_is_not_known(cause: str, tmp_path: Path) -> None:
    """It was a certain loss: a follower of a compacted leader has such a log."""
    folder, count = lacking(cause, tmp_path, is_keyless=False)
    told, found = looked_at(folder)
    assert (told.verdict, told.lost_offsets, told.lost_at_least, told.unproven_offsets) == (
        Verdict.READABLE_WITH_DEFECTS, None, 0, count,
    )  # fmt: skip
    (one,) = (one for one in found if one.law == "DISK-63")
    assert (one.severity, one.actual) == (Severity.WARNING, f"up to {count}")
    assert "cleanup.policy" in one.message
    kept = saved(folder)
    assert (kept.lost_offsets, kept.are_more_lost, kept.unproven_offsets) == (0, False, count)


@pytest.mark.checks("DISK-63")
@pytest.mark.parametrize(
    ("cause", "trace"),
    [
        *(("gone", one) for one in ("checkpoint", "topic", "removed log", "waiting index")),
        ("emptied, no index", "checkpoint"), ("emptied, empty indexes", "topic"),
        ("gone, a snapshot stays", "removed log"),
    ],
)  # fmt: skip
def test_a_trace_of_the_cleaner_explains_a_gap(cause: str, trace: str, tmp_path: Path) -> None:
    """It was a loss with "compaction has not taken them", beside the checkpoint of the cleaner."""
    folder, _ = lacking(cause, tmp_path, is_keyless=False)
    if trace == "checkpoint":
        checkpoint_of("plain", folder)
    elif trace == "topic":
        folder = folder.rename(tmp_path / "__consumer_offsets-0")
    elif trace == "removed log":
        (folder / f"{name_of(0, '.log')}.deleted").write_bytes(b"")
    else:
        (folder / f"{name_of(60, '.index')}.swap").write_bytes(b"")
    told, found = looked_at(folder)
    assert (told.lost_at_least, told.lost_offsets or 0) == (0, 0)
    assert told.verdict is not Verdict.READABLE_WITH_GAPS
    assert {one.severity for one in found if one.law == "DISK-63"} <= {Severity.NOTE}
    assert saved(folder).lost_offsets == 0


@pytest.mark.checks("DISK-63")
@pytest.mark.parametrize("cause", CAUSES)
def test_a_checkpoint_of_another_partition_explains_nothing(cause: str, tmp_path: Path) -> None:
    """A record without a key excludes compaction, and only an own trace speaks for it."""
    folder, count = lacking(cause, tmp_path, is_keyless=True)
    checkpoint_of("other", folder)
    told, _ = looked_at(folder)
    assert (told.verdict, told.lost_offsets) == (Verdict.READABLE_WITH_GAPS, count)
    assert saved(folder).lost_offsets == count


@pytest.mark.checks("DISK-63", "DISK-60")
def test_a_removed_log_holds_what_is_missing(tmp_path: Path) -> None:
    """It was "all of whose files are gone", beside the file that has the records."""
    folder = keyless_partition("plain", tmp_path)
    for suffix in (".log", *INDEXES):
        path = folder / name_of(342, suffix)
        path.rename(f"{path}.deleted")
    told, found = looked_at(folder)
    assert (told.lost_at_least, told.unproven_offsets) == (0, 78)
    (one,) = (one for one in found if one.law == "DISK-63")
    assert f"{name_of(342, '.log')}.deleted may hold them" in one.message


@pytest.mark.checks("DISK-63")
@pytest.mark.parametrize("path", [".", "..", "../plain-0", "60/.."])
def test_the_path_may_be_any(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint above the partition was not found by the path `.`."""
    folder, _ = lacking("gone", tmp_path, is_keyless=False)
    checkpoint_of("plain", folder)
    (folder / "60").mkdir()
    monkeypatch.chdir(folder / "60" if path == ".." else folder)
    told: list[Summary] = []
    assert not [one for one in verify(path, on_summary=told.append) if one.law == "DISK-63"]
    assert [one.verdict for one in told] == [Verdict.SOUND]
