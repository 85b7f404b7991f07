# SPDX-License-Identifier: Apache-2.0
"""A log that was longer once: each file that shows it is heard, whatever else is wrong."""

import os
import shutil
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.files import REAL_FILES, ReadOnlyFile
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.kafka import Record, write_batch
from segproof.kafka.batch_table import BatchScan, check_batches
from segproof.kafka.producer_snapshot import write_snapshot
from segproof.reading import indexed_ends
from segproof.reading.indexed_ends import KeptEnd, indexed_end
from segproof.repair import salvage
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import marker, time_entries
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.language.files import Files
from segproof_model.language.states import opened
from segproof_model.laws.kafka.broker.producers_on_disk import epochs_begin_in_the_log
from segproof_model.releases import NEWEST_KAFKA
from segproof_tests.partition_files import (
    aged,
    batches_of,
    copied_partition,
    name_of,
    write_segment,
)
from segproof_tests.reported_findings import verified

WARNING, ERROR = Severity.WARNING, Severity.ERROR
RECOVERY, WATERMARK = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"


def looked(path: Path) -> tuple[dict[str, Finding], Summary]:
    """Return the first finding of each law, and the summary of the partition."""
    found, summaries = verified(path)
    return {one.law: one for one in reversed(found)}, summaries[-1]


def batch(offset: int, *, size: int = 10, count: int = 1, producer: int = -1) -> bytes:
    """Return a batch; with a producer, one of a transaction."""
    records = [Record(offset + n, 1000 + offset, None, b"v" * size) for n in range(count)]
    more = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    kept = {**more, "is_transactional": True} if producer >= 0 else {}
    return write_batch(records, base_offset=offset, **kept)  # type: ignore[arg-type]


def cut_last(log: Path, batches: int, more: int = 0) -> None:
    """Cut so many batches off a log, and leave some bytes of the first of them."""
    kept = batches_of(log.read_bytes())[:-batches]
    os.truncate(log, sum(map(len, kept)) + more)


@pytest.mark.checks("DISK-32", "DISK-36", "DUMP-6")
@pytest.mark.slow
@pytest.mark.parametrize("torn", [0, 17, 39])
def test_a_torn_tail_hides_no_proof_of_a_longer_log(torn: int, tmp_path: Path) -> None:
    """A snapshot beyond the end was left out where half of the last batch was there."""
    folder = copied_partition("txn-a", tmp_path)
    cut_last(max(folder.glob("*.log")), 1, torn)
    found, summary = looked(folder)
    assert WARNING is found["DISK-36"].severity
    assert "before offset 2413, and this snapshot is of offset 2414" in found["DISK-36"].message
    assert WARNING is found["DISK-32"].severity
    assert "the marker may have been there" in found["DISK-32"].message
    assert (Verdict.READABLE_WITH_GAPS, 1) == (summary.verdict, summary.lost_at_least)


@pytest.mark.checks("DISK-9", "DUMP-6")
def test_the_time_of_a_torn_batch_proves_no_more_than_it(tmp_path: Path) -> None:
    """Its own entry is there: a broker that is killed leaves both so."""
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    log.with_suffix(".index").unlink()
    cut_last(log, 1, 100)
    assert Verdict.READABLE_WITH_DEFECTS is looked(folder)[1].verdict
    (told,) = salvage(folder, tmp_path / "out")
    assert not told.lost_offsets


@pytest.mark.parametrize(("headers", "end"), [(12, None), (4, 13)])
def test_entries_are_compared_with_the_last_batches_of_a_log(
    headers: int, end: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headers of all batches were in memory, read once for each index. Here the entries for the
    first 8 of 12 batches are wrong, and only an index that is mostly right states an end."""
    monkeypatch.setattr(indexed_ends, "HEADERS_MAX", headers)
    parts, path, reads = [batch(offset) for offset in range(12)], tmp_path / "0.log", []
    path.write_bytes(b"".join(parts))
    begins = [0, *accumulate(map(len, parts))]
    offsets = np.zeros(13, [("offset", np.int32), ("position", np.int32)])
    offsets["offset"], offsets["position"] = range(13), begins
    offsets["position"][:8] += range(1, 9)
    times = np.zeros(12, [("timestamp", np.int64), ("offset", np.int32)])
    times["timestamp"], times["offset"] = range(1000, 1012), range(12)
    kept = KeptEnd(0, 12, begins[-1], False, False, 1011, [(0, begins[6]), (begins[6], begins[-1])])

    def checked(log: ReadOnlyFile, *part: int) -> BatchScan:
        reads.append(part)
        return check_batches(log, *part)

    monkeypatch.setattr(indexed_ends, "check_batches", checked)
    with closing(REAL_FILES.open(str(path))) as log:
        told = indexed_end(log, kept, lambda: [offsets], lambda: [times])
    assert (end, [*kept.whole]) == (told, reads)


@pytest.mark.checks("DISK-36", "DISK-38", "DISK-64")
@pytest.mark.parametrize("law", ["DISK-36", "DISK-38", "DISK-64"])
@pytest.mark.parametrize("against", ["both", "recovery point", "high watermark", "torn tail"])
def test_a_claim_against_both_checkpoints_is_no_loss(
    law: str, against: str, tmp_path: Path
) -> None:
    """It was "at least 4563 offsets lost", by an epoch file of another broker."""
    folder = copied_partition("plain", tmp_path / "data")
    if law == "DISK-36":
        (folder / name_of(800, ".snapshot")).write_bytes(write_snapshot(()))
    if law == "DISK-38":
        (folder.parent / CLEANER).write_text("0\n1\nplain 0 800\n")
    if law == "DISK-64":
        (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4 800\n")
    for name, own in ((RECOVERY, "recovery point"), (WATERMARK, "high watermark")):
        if against in (own, "both", "torn tail"):
            (folder.parent / name).write_text("0\n1\nplain 0 746\n")
    if against == "torn tail":
        log = max(folder.glob("*.log"))
        log.write_bytes(log.read_bytes() + b"torn")
    found, summary = looked(aged(folder))
    (told,) = salvage(folder, tmp_path / "out")
    is_epoch = law == "DISK-64"  # it may be of another log, so no number is known
    is_no_loss = against == "both"
    assert ("so no loss is counted" in found[law].message) == is_no_loss
    assert (0 if is_no_loss or is_epoch else 54) == summary.lost_at_least == told.lost_offsets
    assert is_no_loss == told.has_all_files == bool(told.doubts)
    assert (0 if is_no_loss else None) == summary.lost_offsets
    gaps, defects = Verdict.READABLE_WITH_GAPS, Verdict.READABLE_WITH_DEFECTS
    assert summary.verdict is (defects if is_no_loss else gaps)


@pytest.mark.checks("DISK-64")
def test_epochs_of_another_partition_cost_no_offset(tmp_path: Path) -> None:
    """Two partitions had each other's file: "at least 1668 offsets lost", of a whole log."""
    folder = copied_partition("plain", tmp_path / "data")
    epochs = KAFKA / "txn-a" / "txn-a-0" / "leader-epoch-checkpoint"
    shutil.copyfile(epochs, folder / epochs.name)
    for name in (RECOVERY, WATERMARK):
        (folder.parent / name).write_text("0\n1\nplain 0 746\n")
    found, summary = looked(aged(folder))
    assert "both say that the log ends there" in found["DISK-64"].message
    assert (Verdict.READABLE_WITH_DEFECTS, 0) == (summary.verdict, summary.lost_offsets)
    (told,) = salvage(folder, tmp_path / "out")
    assert (0, False) == (told.lost_offsets, told.is_end_lost)
    assert 0 == cli.run(["dump", str(folder), "--format", "csv"])


@pytest.mark.checks("DISK-64")
@pytest.mark.parametrize(("flushed", "replicated"), [(0, 746), (693, 746), (746, 745)])
def test_a_high_watermark_alone_proves_no_end(
    flushed: int, replicated: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A loss of power takes what was never flushed, and leaves it so: it was "no loss"."""
    folder = copied_partition("plain", tmp_path / "data")
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 800\n")
    for name, end in ((RECOVERY, flushed), (WATERMARK, replicated)):
        (folder.parent / name).write_text(f"0\n1\nplain 0 {end}\n")
    found, summary = looked(aged(folder))
    assert "so no loss is counted" not in found["DISK-64"].message
    assert (Verdict.READABLE_WITH_GAPS, None, 0) == (
        summary.verdict, summary.lost_offsets, summary.lost_at_least,
    )  # fmt: skip
    (told,) = salvage(folder, tmp_path / "out")
    assert (0, True) == (told.lost_offsets, told.is_end_lost)
    assert 1 == cli.run(["dump", str(folder), "--format", "csv"])
    assert "names offset 800: the log has lost its end" in capsys.readouterr().err


@pytest.mark.checks("DISK-38")
def test_the_cleaner_had_been_further(tmp_path: Path) -> None:
    """Two segments are gone with all their files, and nothing else tells: it was "sound"."""
    folder = copied_partition("plain", tmp_path / "data")
    (folder.parent / CLEANER).write_text("0\n1\nplain 0 693\n")
    for path in folder.glob("*"):
        if path.name[:20] in ("00000000000000000602", "00000000000000000693"):
            path.unlink()
    found, summary = looked(folder)
    assert (WARNING, 693 - 602) == (found["DISK-38"].severity, summary.lost_at_least)
    (told,) = salvage(folder, tmp_path / "out")
    assert summary.lost_at_least == told.lost_offsets


@pytest.mark.checks("DISK-38", "DUMP-6")
@pytest.mark.parametrize("name", [RECOVERY, WATERMARK, CLEANER])
def test_a_torn_tail_hides_no_checkpoint(name: str, tmp_path: Path) -> None:
    """The recovery point says what was durable; a sound batch after damage counts as there."""
    log = write_segment(tmp_path / "t-0", batch(0) + batch(1) + batch(2)[:40]) / name_of(0, ".log")
    for offset, laws in {2: set[str](), 3: {"DISK-38"}}.items():
        (tmp_path / name).write_text(f"0\n1\nt 0 {offset}\n")
        found, summary = looked(log.parent)
        assert laws == {"DISK-38"} & found.keys()
        assert summary.lost_at_least == len(laws)
    log.write_bytes(batch(0) + b"?" * 50 + batch(2))
    assert "DISK-38" not in looked(log.parent)[0]
    (tmp_path / name).write_text("0\n1\nt 0 4\n")
    assert "before offset 3, and" in looked(log.parent)[0]["DISK-38"].message


@pytest.mark.checks("DISK-32")
def test_a_transaction_of_an_earlier_segment_is_open_where_the_tail_is_torn(tmp_path: Path) -> None:
    """Its marker may be in the torn bytes, so it was not told at all."""
    end = marker(2, "COMMIT")
    folder = write_segment(tmp_path / "t-0", batch(0, producer=7))
    for tail, severities in {end[:40]: [WARNING], end: [], b"": [Severity.NOTE]}.items():
        write_segment(folder, batch(1) + tail, 1)
        found = verify(folder, laws=["DISK-32"])
        assert severities == [one.severity for one in found]


@pytest.mark.slow
@pytest.mark.checks("DISK-9", "SEG-7")
def test_entries_beyond_the_end_warn_until_the_log_goes_on(tmp_path: Path) -> None:
    """A log that was cut between two batches was called sound, and salvage said "everything kept".

    A follower that truncated its log goes on with later batches: then it is a note.
    """
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    cut_last(log, 3)
    found, summary = looked(folder)
    assert {"SEG-7": WARNING, "DISK-9": WARNING} == {
        law: one.severity for law, one in found.items() if one.is_defect
    }
    assert "ends before offset 726, and it held offset 745" in found["SEG-7"].message
    assert Verdict.READABLE_WITH_GAPS is summary.verdict
    assert (None, 20) == (summary.lost_offsets, summary.lost_at_least)
    (told,) = salvage(folder, tmp_path / "out")
    assert (True, 20) == (told.is_end_lost, told.lost_offsets)
    assert [(str(log), "missing", log.stat().st_size)] == [one[:3] for one in told.gaps]
    records = [Record(726, 1 << 41, None, b"later")]
    log.write_bytes(log.read_bytes() + write_batch(records, base_offset=726))
    found, summary = looked(folder)
    assert Verdict.SOUND is summary.verdict
    assert {"SEG-7", "DISK-9"} <= found.keys()
    (told,) = salvage(folder, tmp_path / "later")
    assert told.is_whole


@pytest.mark.checks("DISK-9", "SEG-7")
@pytest.mark.parametrize("kept", [".index", ".timeindex", "both", "torn", "torn .timeindex"])
def test_an_index_of_the_last_log_counts_what_is_gone(kept: str, tmp_path: Path) -> None:
    """With trimmed indexes, and after a torn tail, `verify` counted nothing and told to make the
    indexes new, and `salvage` named no number."""
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    whole = log.read_bytes()
    cut_last(log, 3)
    if kept.startswith("torn"):
        log.write_bytes(whole[: log.stat().st_size + 100])
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        path = log.with_suffix(suffix)
        data = path.read_bytes()
        end = len(data.rstrip(bytes(1)))
        path.write_bytes(data[: end + -end % size])
        if "." in kept and not kept.endswith(suffix):
            path.unlink()
    found, summary = looked(folder)
    (told,) = salvage(folder, tmp_path / "out")
    assert Verdict.READABLE_WITH_GAPS is summary.verdict
    assert (None, 20) == (summary.lost_offsets, summary.lost_at_least)
    assert (True, 20) == (told.is_end_lost, told.lost_offsets)
    assert all("rebuild" not in one.hint for one in found.values() if one.is_defect)


@pytest.mark.checks("DISK-9", "SEG-7")
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_one_wrong_field_of_an_index_is_no_loss(suffix: str, tmp_path: Path) -> None:
    """An entry that contradicts itself says nothing of the end of the log."""
    folder = copied_partition("plain", tmp_path)
    path = max(folder.glob("*.log")).with_suffix(suffix)
    data = bytearray(path.read_bytes())
    size = 8 if suffix == ".index" else 12
    at = len(data.rstrip(bytes(1))) // size * size
    data[at + size - 8 + (2 if suffix == ".index" else 6)] ^= 1
    path.write_bytes(data)
    _, summary = looked(folder)
    assert 0 == summary.lost_offsets
    (told,) = salvage(folder, tmp_path / "out")
    assert told.is_whole


@pytest.mark.checks("DISK-9")
@pytest.mark.parametrize(("time", "is_lost"), [(1002, False), (1003, True)])
def test_a_time_beyond_the_log_is_kept(time: int, is_lost: bool, tmp_path: Path) -> None:
    """An entry behind the last batch with a later time than each batch shows what was there."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / name_of(0, ".log")).write_bytes(b"".join(map(batch, range(3))))
    (folder / name_of(0, ".timeindex")).write_bytes(time_entries((1001, 1), (time, 3)))
    assert is_lost == ("may have lost its end" in looked(folder)[0]["DISK-9"].hint)


@pytest.mark.checks("DISK-36", "DISK-38")
@pytest.mark.parametrize("witness", ["snapshot", RECOVERY, WATERMARK])
def test_salvage_tells_of_an_end_that_only_a_small_file_names(witness: str, tmp_path: Path) -> None:
    """It said "everything kept"."""
    folder = write_segment(tmp_path / "data" / "t-0", batch(0) + batch(1))
    if witness == "snapshot":
        (folder / name_of(3, ".snapshot")).write_bytes(write_snapshot(()))
    else:
        (tmp_path / "data" / witness).write_text("0\n1\nt 0 3\n")
    (told,) = salvage(folder, tmp_path / "out")
    assert (told.is_end_lost, told.is_whole, told.lost_offsets) == (True, False, 1)
    (told,) = salvage(write_segment(tmp_path / "sound" / "t-1", batch(0)), tmp_path / "out2")
    assert told.is_whole


@pytest.mark.checks("DISK-64")
@given(st.integers(0, 3), st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
def test_an_epoch_begins_in_the_log(count: int, starts: list[int]) -> None:
    """An epoch may begin at the end of the log. `verify` and `salvage` ignored one beyond."""
    lines = [f"{number} {start}\n" for number, start in enumerate(sorted(starts))]
    checkpoint = "".join(["0\n", f"{len(lines)}\n", *lines])
    with TemporaryDirectory() as place:
        folder = write_segment(Path(place, "t-0"), b"".join(map(batch, range(count))))
        (folder / "leader-epoch-checkpoint").write_text(checkpoint)
        found = list(verify(folder, laws=["DISK-64"]))
        assert epochs_begin_in_the_log(checkpoint.encode(), count) == (not found)
        if count:
            (told,) = salvage(folder, Path(place, "out"))
            assert told.is_end_lost == bool(found)


@pytest.mark.checks("DISK-64", "DUMP-6")
def test_a_torn_tail_hides_no_epoch(tmp_path: Path) -> None:
    """The tail was a warning of its own, and nothing else told that the log went on."""
    folder = copied_partition("plain", tmp_path)
    log = max(folder.glob("*.log"))
    cut_last(log, 3, 40)
    for suffix in (".index", ".timeindex"):
        log.with_suffix(suffix).unlink()
    checkpoint = folder / "leader-epoch-checkpoint"
    for start, is_lost in {726: False, 746: True}.items():
        checkpoint.write_text(f"0\n2\n0 0\n1 {start}\n")
        found, summary = looked(folder)
        assert ("DISK-64" in found, summary.lost_at_least) == (is_lost, 0)
        assert is_lost == (summary.verdict is Verdict.READABLE_WITH_GAPS)
    (told,) = salvage(folder, tmp_path / "out")
    assert (told.is_end_lost, told.is_whole) == (True, False)


@pytest.mark.checks("DISK-64")
def test_an_epoch_that_the_batches_contradict_is_of_another_log(tmp_path: Path) -> None:
    """How many offsets are lost it does not say."""
    folder = copied_partition("compacted", tmp_path)
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 99999\n")
    found, summary = looked(folder)
    assert "of another log" in found["DISK-64"].message
    assert (summary.lost_offsets, summary.lost_at_least) == (None, 0)
    (told,) = salvage(folder, tmp_path / "out")
    assert told.is_end_lost


@pytest.mark.checks("DISK-13")
@pytest.mark.parametrize(
    ("batches", "words", "is_cut"),
    [
        ([*range(40), *range(40)], "cuts this segment at byte 0", True),
        ([*range(0, 80, 2), 79], "keeps both batches", False),
    ],
)
def test_what_an_unclean_start_does_to_batches_that_overlap(
    batches: list[int], words: str, is_cut: bool, tmp_path: Path
) -> None:
    """The hint said that a broker "may cut the log here": it cuts all of it, or nothing."""
    folder, stored = tmp_path / "t-0", [batch(one, size=300, count=2) for one in batches]
    if is_cut:
        stored = [batch(one, size=300) for one in batches]
    write_segment(folder, b"".join(stored), index=b"", timeindex=b"")
    write_segment(folder, batch(200), 200, index=b"", timeindex=b"")
    (found, *_) = verify(folder, laws=["DISK-13"])
    assert ERROR is found.severity
    assert words in found.hint
    images = {path.name: path.read_bytes() for path in folder.iterdir()}
    kind, config = NEWEST_KAFKA.kind(PartitionLog), LogConfig()
    log: Any = opened(kind, Files(images), "", config, last_shutdown_clean=False).after
    left = {name: len(log.files.image(name)) for name in log.files if name.endswith(".log")}
    whole = {name_of(0, ".log"): sum(map(len, stored)), name_of(200, ".log"): len(batch(200))}
    assert left == ({name_of(0, ".log"): 0} if is_cut else whole)
