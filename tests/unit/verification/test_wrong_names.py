# SPDX-License-Identifier: Apache-2.0
"""A log under a wrong name: no record is lost by it, and no verb says so."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Verdict
from segproof.kafka import Record, write_batch
from segproof.kafka.batch_table import read_batch_headers
from segproof.repair import salvage
from segproof.verification import verify
from segproof.verifying import segment_checks
from segproof_harness import cli
from segproof_harness.laws.borders.border import write_files
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_model.laws.kafka.broker.partition_on_disk import names_are_the_first_offsets
from segproof_tests.partition_files import (
    aged,
    copied_partition,
    in_memory,
    looked_at,
    name_of,
    rename_segment,
    write_segment,
)
from segproof_tests.reported_findings import verified
from segproof_tests.small_logs import batch, log_of

LOGS = (0, 60, 162, 252, 342, 420, 517, 602, 693)
INDEXES = (".index", ".timeindex")


@pytest.mark.checks("DISK-65", "DISK-62", "DISK-4")
@pytest.mark.parametrize(
    ("old", "new", "with_indexes"),
    [
        (693, 700, True), (693, 690, False), (693, 603, True), (693, 5, False),
        (693, 99999, False), (342, 350, True), (342, 350, False), (342, 330, True),
        (342, 419, False), (342, 253, True), (342, 421, False), (342, 421, True), (342, 61, False),
        (60, 70, False), (60, 1, True), (0, 5, False), (0, 59, True), (0, 59, False),
    ],
)  # fmt: skip
def test_only_the_name_is_wrong(old: int, new: int, with_indexes: bool, tmp_path: Path) -> None:
    """Offsets were "lost", and a salvage told "part kept" of an output equal to the original."""
    folder = copied_partition("plain", tmp_path)
    contents = [(folder / name_of(base, ".log")).read_bytes() for base in LOGS]
    rename_segment(folder, old, new, ".log", *(INDEXES if with_indexes else ()))
    told, found = looked_at(folder)
    assert (told.lost_offsets, told.lost_at_least) == (0, 0)
    assert told.verdict is Verdict.READABLE_WITH_DEFECTS
    assert (told.first_offset, told.end_offset) == (min(old, new) if old == 0 else 0, 746)
    laws = {one.law for one in found if one.path.endswith(name_of(new, ".log"))}
    assert laws & {"DISK-62", "DISK-65", "DISK-13"}
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.is_whole, saved.lost_offsets, saved.are_more_lost) == (True, 0, False)
    logs = sorted((tmp_path / "out" / folder.name).glob("*.log"))
    assert [int(log.stem) for log in logs] == list(LOGS)
    assert [log.read_bytes() for log in logs] == contents
    assert saved.renamed_logs == 1


@pytest.mark.checks("DISK-69", "DISK-62")
@pytest.mark.parametrize("scenario", ["compacted", "plain", "v1-gzip"])
def test_logs_that_changed_names_without_their_indexes(scenario: str, tmp_path: Path) -> None:
    """Of a compacted partition one log was set aside as that of another topic, and "lost"."""
    folder = copied_partition(scenario, tmp_path)
    logs = [path for path in sorted(folder.glob("*.log")) if path.stat().st_size]
    contents = {path.name: path.read_bytes() for path in logs}
    for number, (one, two) in enumerate([(0, 1), (0, -1), (-2, -1)]):
        logs[one].write_bytes(contents[logs[two].name])
        logs[two].write_bytes(contents[logs[one].name])
        (saved,) = salvage(folder, tmp_path / str(number))
        assert (0, 0) == (saved.set_aside_batches, saved.lost_offsets)
        told, found = looked_at(folder)
        assert (0, saved.unproven_offsets) == (told.lost_at_least, told.unproven_offsets)
        assert "DISK-69" not in {one.law for one in found}
        for path in logs:
            assert (
                contents[path.name]
                == (tmp_path / str(number) / folder.name / path.name).read_bytes()
            )
            path.write_bytes(contents[path.name])


PUT_OVER = {
    "the next log": ("plain", 342, 252, 90, 0, False),
    "a log after others, over the first one": ("txn-a", 1732, 0, 1014, 0, False),
    "an earlier log": ("plain", 0, 517, 85, 0, False),
    "the last log": ("plain", 693, 602, 91, 0, False),
    "over the last log, whose end is not known": ("plain", 602, 693, 53, 0, True),
    "over a compacted log": ("compacted", 4104, 0, 0, 4104, False),
    "the last compacted log": ("compacted", 5235, 4104, 0, 1131, False),
}
"""Scenario, the log that was moved, over which one; how many offsets are lost and how many may be,
and whether more of them may be."""


@pytest.mark.checks("DISK-69", "DISK-4", "DISK-36", "DISK-64")
@pytest.mark.parametrize(
    ("name", "with_index"),
    [
        *((name, True) for name in PUT_OVER),
        ("the next log", False),
        ("over a compacted log", False),
    ],
)
def test_what_a_moved_log_holds_is_not_lost(name: str, with_index: bool, tmp_path: Path) -> None:
    """Both verbs count what was under the name: "2802 offsets lost" were 1372, or "not known"."""
    scenario, source, target, lost, unproven, are_more = PUT_OVER[name]
    folder = copied_partition(scenario, tmp_path)
    batches = looked_at(folder)[0].batches
    gone = len(read_batch_headers((folder / name_of(target, ".log")).read_bytes()).table)
    rename_segment(folder, source, target, ".log")
    if not with_index:
        for suffix in INDEXES:
            (folder / name_of(source, suffix)).unlink()
    told, _ = looked_at(folder)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (told.lost_at_least, told.unproven_offsets) == (lost, unproven)
    assert told.lost_offsets == (None if are_more or unproven else lost)
    assert (saved.lost_offsets, saved.unproven_offsets) == (lost, unproven)
    assert (saved.are_more_lost, saved.doubts, saved.set_aside_batches) == (are_more, [], 0)
    assert saved.batches == batches - gone


@pytest.mark.checks("DISK-65", "LOG-4")
@pytest.mark.parametrize("suffixes", [(".log",), (".log", *INDEXES)])
@pytest.mark.parametrize(("old", "new"), [(4104, 4000), (4104, 4094), (4104, 50), (5235, 4200)])
def test_a_low_name_after_a_gap_of_compaction(
    old: int, new: int, suffixes: tuple[str, ...], tmp_path: Path
) -> None:
    """`verify` said that no record is lost, and the salvage that it names took 7 batches out."""
    folder = copied_partition("compacted", tmp_path)
    contents = [path.read_bytes() for path in sorted(folder.glob("*.log"))]
    rename_segment(folder, old, new, *suffixes)
    told, found = looked_at(folder)
    assert "DISK-65" in {one.law for one in found}
    (saved,) = salvage(folder, tmp_path / "out")
    assert (told.lost_at_least, told.unproven_offsets) == (0, saved.unproven_offsets)
    assert (saved.is_whole, saved.are_more_lost, saved.doubts) == (True, False, [])
    assert (saved.renamed_logs, saved.set_aside_batches) == (1, 0)
    logs = sorted((tmp_path / "out" / folder.name).glob("*.log"))
    assert [int(log.stem) for log in logs] == [0, 4104, 5235]
    assert [log.read_bytes() for log in logs] == contents


@pytest.mark.checks("DISK-65", "LOG-4")
@pytest.mark.parametrize("made_under", [20, 30])
def test_the_index_tells_a_low_name_from_a_wrong_base_offset(
    made_under: int, tmp_path: Path
) -> None:
    """A batch of the log before says offset 25: the name 20 is wrong, or this offset is."""
    logs = [(*range(9), 25), range(30, 36)]
    data = [[batch(n, key=b"k") for n in offsets] for offsets in logs]
    size, distance = len(data[1][0]), 30 - made_under
    index = offset_entries(*((distance + at, at * size) for at in range(1, 6)))
    folder = tmp_path / "t-0"
    write_segment(folder, b"".join(data[0]), index=b"", timeindex=b"")
    write_segment(folder, b"".join(data[1]), 20, index=index)
    _, found = looked_at(folder)
    (saved,) = salvage(folder, tmp_path / "out")
    is_low = made_under == 30
    assert ("DISK-65" in {one.law for one in found}, saved.set_aside_batches) == (
        is_low,
        1 - is_low,
    )
    assert saved.renamed_logs == is_low


@pytest.mark.parametrize(
    ("source", "name", "lost"),
    [
        (602, 0, (0, 59)),
        (693, 602, (602, 692)),
        (342, 252, (252, 341)),
        (602, 252, (252, 341)),
        (342, 420, (420, 516)),
        (693, 517, (517, 601)),
    ],
)
def test_a_log_in_the_place_of_another_one_may_have_cost_it(
    source: int, name: int, lost: tuple[int, int], tmp_path: Path
) -> None:
    """A salvage "kept everything" where a log had taken the place of another one, now gone."""
    folder = copied_partition("plain", tmp_path)
    for path in folder.glob(f"{source:020d}.*"):
        path.replace(folder / name_of(name, path.suffix))
    (saved,) = salvage(folder, tmp_path / "out")
    words = f"no log here has the offsets {lost[0]} to {lost[1]}"
    assert (False, True) == (saved.is_whole, any(words in one for one in saved.doubts))
    assert cli.run(["salvage", str(folder), "--out", str(tmp_path / "again")]) == 1


@st.composite
def partitions(draw: st.DrawFn) -> dict[str, bytes]:
    """Draw logs of one to three offsets, with and without gaps between, one under a drawn name."""
    files: dict[str, bytes] = {}
    at = draw(st.integers(0, 3))
    total = draw(st.integers(1, 4))
    wrong = draw(st.integers(0, total))
    for number in range(total):
        count = draw(st.integers(1, 3))
        apart = draw(st.sampled_from([1, 2, 5, -1, -2, -5])) if number == wrong else 0
        name = max(0, at + apart)
        log = log_of(at, at + count, key=b"k")
        files.setdefault(name_of(name, ".log"), log)
        if draw(st.booleans()):
            files[name_of(at, ".index")] = b""
        at += count + draw(st.sampled_from([0, 0, 2]))
    return files


@pytest.mark.checks("DISK-65")
@given(partitions())
def test_agrees_with_the_law(files: dict[str, bytes]) -> None:
    """It is reported if and only if the model's law is broken."""
    with TemporaryDirectory() as place:
        folder = Path(place, "t-0")
        write_files(files, folder)
        _, found = looked_at(folder)
    told = [one for one in found if one.law == "DISK-65"]
    assert names_are_the_first_offsets(files) == (not told)


@pytest.mark.checks("DISK-65")
def test_only_a_doubtful_end_asks_all_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each log of a compacted partition begins after its name: each was asked of each."""
    images = dict[str, bytes]()
    for base in range(0, 400, 10):
        log = batch(base + 3, key=b"k", time=9)
        images |= {name_of(base, ".log"): log, name_of(base, ".index"): b""}
        images[name_of(base, ".timeindex")] = time_entries((9, 3))
    asked = list[int]()
    monkeypatch.setattr(segment_checks, "_begins_elsewhere", lambda *one: asked.append(one[1]))
    found = list(verify("/data/t-0", files=in_memory(images, "/data/t-0")))
    assert not [one for one in found if one.is_defect]
    assert [] == asked


@pytest.mark.checks("DISK-13")
@pytest.mark.parametrize("name", [421, 422, 431, 432, 480, 516])
def test_a_copy_of_a_log_under_another_name_costs_nothing(name: int, tmp_path: Path) -> None:
    """ "1 offset is in no batch: they are lost", though the saved partition has all 746."""
    folder = copied_partition("plain", tmp_path)
    original = (folder / name_of(420, ".log")).read_bytes()
    (folder / name_of(name, ".log")).write_bytes(original)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.lost_offsets, saved.unproven_offsets, saved.are_more_lost) == (0, 0, False)
    told, found = looked_at(tmp_path / "out" / folder.name)
    assert (told.verdict, told.first_offset, told.end_offset) == (Verdict.SOUND, 0, 746)
    assert told.missing_offsets == 0
    assert not [one for one in found if one.is_defect]


@pytest.mark.checks("DISK-69")
@pytest.mark.parametrize(
    ("others", "own"),
    [
        (range(25, 35), range(40)),  # below the name 40, which the end of the log before confirms
        (range(90, 95), range(50, 60)),  # after the next name, and most batches are within
    ],
)
def test_another_topics_block_at_the_begin_gives_a_log_no_name(
    others: range, own: range, tmp_path: Path
) -> None:
    """It was named by that block, and the log before it then ended too late: it was set aside."""
    folder = tmp_path / "t-0"
    write_segment(folder, log_of(0, 40))
    block = log_of(others.start, others.stop)
    write_segment(folder, block + bytes(70) + log_of(50, 80), 40)
    write_segment(folder, log_of(80, 90), 80)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.renamed_logs, saved.set_aside_batches) == (0, len(others))
    data = b"".join(one.read_bytes() for one in sorted((tmp_path / "out" / "t-0").glob("*.log")))
    kept = read_batch_headers(data).table["base_offset"].tolist()
    assert kept == [*range(40), *range(50, 90)]
    assert {*own} <= {*kept}


@pytest.mark.checks("DISK-69")
def test_the_offsets_of_a_lost_log_are_told_beside_one_with_a_wrong_name(tmp_path: Path) -> None:
    """A wrong name hid the loss of another log: "everything kept", and no word more."""
    folder = tmp_path / "t-0"
    for name, first, end in ((1, 0, 40), (40, 40, 80), (120, 120, 160)):
        write_segment(folder, log_of(first, end, key=b"k"), name)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (1, 120, 40) == (saved.renamed_logs, saved.batches, saved.unproven_offsets)


@pytest.mark.checks("DISK-69")
def test_two_logs_with_each_others_contents_and_a_name_too_high_are_both_saved(
    tmp_path: Path,
) -> None:
    """The log that has the name of the first offset kept it, and one of the two was set aside."""
    folder = tmp_path / "t-0"
    write_segment(folder, log_of(40, 80))
    write_segment(folder, log_of(0, 40), 5000)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.is_whole, saved.renamed_logs, saved.batches) == (True, 2, 80)
    logs = sorted((tmp_path / "out" / folder.name).glob("*.log"))
    assert [int(log.stem) for log in logs] == [0, 40]


@pytest.mark.checks("DISK-69", "DISK-63")
@pytest.mark.parametrize("third", [162, 252, 517])
def test_a_log_under_the_name_of_another_hides_no_loss_of_a_third(
    third: int, tmp_path: Path
) -> None:
    """The index of its right name was taken for that of a lost log, which had cost the rest."""
    folder = copied_partition("plain", tmp_path)
    (folder / name_of(60, ".log")).replace(folder / name_of(0, ".log"))
    for path in folder.glob(f"{third:020d}.*"):
        if path.suffix != ".snapshot":
            path.unlink()
    lost = 60 + LOGS[LOGS.index(third) + 1] - third
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.lost_offsets + saved.unproven_offsets, saved.are_more_lost) == (lost, False)
    told, _ = looked_at(folder)
    assert told.lost_at_least + told.unproven_offsets == lost


def one_batch_logs(folder: Path) -> list[int]:
    """Write 12 logs of one batch each, of 2 or 3 records with keys; return their names."""
    counts = [2, 3, 2, 2, 3, 3, 2, 3, 2, 2, 3, 2]
    bases = [sum(counts[:number]) for number in range(len(counts))]
    for base, count in zip(bases, counts, strict=True):
        records = [
            Record(offset, 1000 + offset, b"k", b"v") for offset in range(base, base + count)
        ]
        write_segment(folder, write_batch(records, base_offset=base), base)
    return bases


@pytest.mark.checks("DISK-65", "DISK-69")
@pytest.mark.parametrize(
    ("log", "name", "lost"),
    [
        (2, 15, (6, 9)),  # the name of another one, which is gone, as is a third
        (2, 15, (6,)),
        (4, 4125, ()),  # at the end of the partition, though it is of the middle
        (0, 4125, ()),
    ],
)
def test_a_log_of_one_batch_under_a_later_name_keeps_its_offsets(
    log: int, name: int, lost: tuple[int, ...], tmp_path: Path
) -> None:
    """Its batch got the name as base offset, though its own offsets were missing; or was set aside.

    Or 4095 offsets before its name were told as perhaps lost.
    """
    folder = tmp_path / "t-0"
    bases = one_batch_logs(folder)
    own = [(folder / name_of(base, ".log")).read_bytes() for base in bases]
    (folder / name_of(bases[log], ".log")).replace(folder / name_of(name, ".log"))
    for number in lost[1:]:
        (folder / name_of(bases[number], ".log")).unlink()
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.restored_batches, saved.set_aside_batches) == (0, 0)
    offsets = sum(bases[number + 1] - bases[number] for number in lost)
    assert saved.lost_offsets + saved.unproven_offsets == offsets
    data = b"".join(one.read_bytes() for one in sorted((tmp_path / "out" / "t-0").glob("*.log")))
    assert data == b"".join(one for number, one in enumerate(own) if number not in lost)


@pytest.mark.checks("DISK-62", "DISK-69")
@pytest.mark.parametrize("destroyed", [bytes(2000), b"no batch" * 250, b""])
@pytest.mark.parametrize(("lost", "name"), [(0, 40), (40, 80), (80, 40), (40, 0), (80, 0), (0, 80)])
def test_a_destroyed_log_takes_the_name_that_is_left(
    lost: int, name: int, destroyed: bytes, tmp_path: Path
) -> None:
    """A log has its name, and it has that log's: the right one was set aside, 40 sound batches.

    Or the offsets of the destroyed one were told as none, or twice.
    """
    folder = tmp_path / "t-0"
    for base in (0, 40, 80):
        write_segment(folder, log_of(base, base + 40, key=b"k"), base)
    (folder / name_of(name, ".log")).replace(folder / name_of(lost, ".log"))
    (folder / name_of(name, ".log")).write_bytes(destroyed)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.batches, saved.set_aside_batches, saved.renamed_logs) == (80, 0, 2)
    told, _ = looked_at(folder)
    counts = saved.lost_offsets + saved.unproven_offsets, told.lost_at_least + told.unproven_offsets
    if lost < 80:
        assert counts == (40, 40)
    elif destroyed.strip(b"\0"):  # nothing tells how far the last log went
        assert saved.are_more_lost


@pytest.mark.checks("DISK-62", "DISK-13")
@pytest.mark.parametrize("wrong", [39 ^ 1 << 14, 39 ^ 1 << 6])
def test_a_wrong_last_offset_keeps_no_log_under_a_wrong_name(wrong: int, tmp_path: Path) -> None:
    """It made the log overlap all others: the names stayed, and 78 sound batches were set aside."""
    folder = tmp_path / "t-0"
    write_segment(folder, log_of(40, 80), 0)
    write_segment(folder, log_of(0, 38) + bytes(70) + batch(wrong), 40)
    (saved,) = salvage(folder, tmp_path / "out")
    assert (saved.renamed_logs, saved.batches, saved.lost_offsets) == (2, 78, 2)
    assert saved.set_aside_batches == 1


@pytest.mark.checks("DISK-1", "LOG-4", "DISK-5")
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_what_is_no_file_is_no_log(kind: str, tmp_path: Path) -> None:
    """A folder between two logs ended the one before it: its offsets were told as claimed twice.

    And a rebuild was to make the indexes of the folder.
    """
    folder = aged(copied_partition("plain", tmp_path))
    odd = folder / name_of(100, ".log")
    if kind == "folder":
        odd.mkdir()
    elif kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to(odd)
    found, (told,) = verified(folder)
    laws = {"DISK-1", "LOG-4"} if kind == "link" else {"DISK-1"}  # a link may have led to a log
    assert laws == {one.law for one in found if one.is_defect}
    assert (0, 0, 0) == (told.lost_offsets, told.lost_at_least, told.unproven_offsets)
    assert 150 == told.batches
    (saved,) = salvage(folder, tmp_path / "out")
    assert (150, 0, 0) == (saved.batches, saved.lost_offsets, saved.set_aside_batches)
    assert [str(odd) in one for one in saved.left_out] == [True]


@pytest.mark.checks("DISK-1")
def test_a_folder_in_the_place_of_a_log_has_cost_its_offsets(tmp_path: Path) -> None:
    """What lies beside it, and the next name, tell that a log was there."""
    folder = copied_partition("plain", tmp_path)
    (folder / name_of(162, ".log")).unlink()
    (folder / name_of(162, ".log")).mkdir()
    assert looked_at(folder)[0].lost_offsets == 90
    (saved,) = salvage(folder, tmp_path / "out")
    assert (129, 90) == (saved.batches, saved.lost_offsets)
