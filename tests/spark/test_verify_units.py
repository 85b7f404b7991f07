# SPDX-License-Identifier: Apache-2.0
"""Units, logs and partitions as the tasks of `spark verify` check them. No Spark is started."""

import json
import os
import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from segproof.verification import partition_places, verify
from segproof.wording.reporting import Wanted
from segproof_spark.result_rows import finding_row
from segproof_spark.verify import checkpoint
from segproof_spark.verify.checkpoint import Checkpoint, open_checkpoint
from segproof_spark.verify.plan import (
    Known,
    PieceUnit,
    Plan,
    SegmentUnit,
    WholeUnit,
    make_plan,
    units_of,
)
from segproof_spark.verify.rows import LOG_END, Row, batches_of_rows, rows_of_batches
from segproof_spark.verify.tasks import Verifying, with_command
from segproof_tests.real_copies import copy_of, copy_partitions, flip

OLD_NS = 10**18
SMALL = 16_000
"""Bytes of a task that cut the real segments into pieces."""


def age(directory: Path) -> None:
    """Make all files old: the verifier waits for a writer where one was there a moment ago."""
    for each in (directory, *directory.rglob("*")):
        os.utime(each, ns=(OLD_NS, OLD_NS))


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    """Return a folder with a data directory of real partitions, some damaged, and two stores."""
    data = copy_partitions(tmp_path / "data")
    copy_of("rocketmq/rolled-4.9.8/store", tmp_path / "rolled-4.9.8", shutil.copyfile)
    damage(data / "plain-plain-0", "*252.index", 3, 19, 31)
    damage(data / "plain-plain-0", "*252.log", 9000)
    damage(data / "txn-a-txn-a-0", "*1014.log", 53)
    (data / "plain-plain-0" / "stranger").touch()
    age(tmp_path)
    return tmp_path


def damage(directory: Path, name: str, *places: int) -> None:
    """Change some bytes of a file."""
    flip(next(directory.glob(name)), *places, bits=0x15)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a checkpoint, beside the data."""
    return tmp_path_factory.mktemp("checkpoint")


def staged(
    plan: Plan, wanted: Wanted, checkpoint: Checkpoint | None = None
) -> tuple[list[Row], dict[str, int]]:
    """Return the rows of findings that the stages bring, and the sums of what tasks told."""
    verifying = Verifying(wanted, tuple(plan.partitions), checkpoint)
    rows = [row for task in plan.tasks for row in sent(verifying.check_units([task]))]
    rows = [*sent(verifying.check_logs(in_order(rows)))]
    rows = [*sent(verifying.join_partitions(in_order(rows)))]
    told = [json.loads(row.payload or b"") for row in rows if row.kind == "task"]
    sums = {name: sum(each[name] for each in told) for name in told[0]}
    return [row for row in rows if row.kind == "finding"], sums


def sent(rows: Iterable[Row]) -> Iterator[Row]:
    """Return rows that went through Arrow."""
    return rows_of_batches(batches_of_rows(rows))


def in_order(rows: Sequence[Row]) -> Iterator[Row]:
    """Return rows as Spark sorts them, rows without a key first."""
    return iter(sorted(rows, key=lambda row: tuple(-1 if x is None else x for x in row[:4])))


def told_of(rows: Iterable[Row]) -> list[str]:
    """Return the findings of some rows, in an order of their own."""
    return sorted(repr(finding_row(row.finding or {})) for row in rows)


def whole(path: Path, **options: Any) -> list[str]:
    """Return what `verify` says."""
    return sorted(repr(one.to_json()) for one in verify(path, **options))


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("task_bytes", [None, 1, 3000, SMALL, 1 << 21])
def test_however_it_is_cut_the_findings_are_the_same(
    data_directory: Path, task_bytes: int | None, deep: bool
) -> None:
    """Whole partitions, segments, pieces: what `verify` finds, and nothing twice."""
    wanted = Wanted(deep=deep)
    plan = make_plan([str(data_directory)], wanted, 2, task_bytes)
    expected = whole(data_directory, deep=deep)
    found, _ = staged(plan, wanted)
    assert expected == told_of(found)
    assert any("'BATCH-3'" in one for one in expected)
    assert (plan.logs > 10, bool(plan.partitions)) == {
        None: (False, False), 1: (True, True), 3000: (True, True), SMALL: (True, True),
        1 << 21: (False, True),
    }[task_bytes]  # fmt: skip


def test_a_plan_holds_everything_once(data_directory: Path) -> None:
    """Kinds of units by the bytes of a task; pieces lie behind each other up to the log's end."""
    path = str(data_directory)
    kinds = {type(unit) for task in make_plan([path], Wanted(), 2).tasks for unit in units_of(task)}
    assert {Known, WholeUnit} == kinds
    plan = make_plan([path], Wanted(), 2, SMALL)
    units = [unit for task in plan.tasks for unit in units_of(task)]
    assert {Known, WholeUnit, SegmentUnit, PieceUnit} == {type(unit) for unit in units}
    ends: dict[tuple[int, int], int] = {}
    for unit in sorted(
        (unit for unit in units if isinstance(unit, PieceUnit)), key=lambda one: one.start
    ):
        assert ends.get((unit.partition, unit.number), 0) == unit.start
        ends[unit.partition, unit.number] = unit.end
        assert unit.end - unit.start >= SMALL // 2
    assert plan.logs == len(ends)


def test_laws_positions_and_single_files(data_directory: Path) -> None:
    """What is asked for is asked for in every unit; a file alone is cut too."""
    log = next((data_directory / "data" / "plain-plain-0").glob("*252.log"))
    for path, laws, position in (
        (data_directory, {"SEG-7", "DISK-31"}, None),
        (log, None, None),
        (log, {"BATCH-3"}, 0),
        (log.with_suffix(".index"), None, None),
    ):
        wanted = Wanted(None if laws is None else frozenset(laws), position)
        found, _ = staged(make_plan([str(path)], wanted, 2, SMALL), wanted)
        assert whole(path, laws=laws, position=position) == told_of(found)


def test_what_is_not_read_and_what_ends_a_start_is_told_here_too(
    data_directory: Path, tmp_path: Path
) -> None:
    """Files that no check reads, links out, another layout, and a partition in two paths."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, directory in ((one, "a"), (two, "b")):
        shutil.copytree(data_directory / "data" / "plain-plain-0", folder / "plain-0")
        told = f"version=1\nnode.id=1\ncluster.id=c\ndirectory.id={directory * 22}\n"
        (folder / "meta.properties").write_text(told)
    (two / "plain-0" / "partition.metadata").unlink(missing_ok=True)
    (one / "lost+found").mkdir()
    (one / "plain-0" / "remote_log_snapshot").write_bytes(b"x")
    (one / "plain-0" / "leader-epoch-checkpoint").unlink(missing_ok=True)
    (one / "plain-0" / "leader-epoch-checkpoint").symlink_to(one / "meta.properties")
    (one / "redpanda" / "t" / "0_1").mkdir(parents=True)
    (one / "redpanda" / "t" / "0_1" / "0-1-v1.log").write_bytes(b"x")
    found, _ = staged(make_plan([str(tmp_path)], Wanted(), 2, SMALL), Wanted())
    laws = {row.finding["law"] for row in found if row.finding}
    assert {"DISK-45", "DISK-46", "DISK-47", "DISK-48", "DISK-49"} <= laws
    assert whole(tmp_path) == told_of(found)
    paths = [str(one), str(two)]
    found, _ = staged(make_plan(paths, Wanted(), 2, SMALL), Wanted())
    beside = partition_places(paths)
    assert sorted(whole(one, beside=beside) + whole(two, beside=beside)) == told_of(found)


# --- what changes meanwhile


def test_a_log_that_changed_since_its_pieces_were_read(data_directory: Path) -> None:
    """Pieces of another state of the file do not count; nor does one without its end."""
    wanted = Wanted()
    plan = make_plan([str(data_directory)], wanted, 2, SMALL)
    verifying = Verifying(wanted, tuple(plan.partitions))
    rows = [row for task in plan.tasks for row in verifying.check_units([task])]
    chosen = random.Random(1)
    lost = [row for row in rows if row.kind != LOG_END or chosen.random() < 0.5]
    assert 0 < len(rows) - len(lost) < sum(row.kind == LOG_END for row in rows)
    joined = verifying.join_partitions(in_order([*verifying.check_logs(in_order(lost))]))
    assert whole(data_directory) == told_of(row for row in joined if row.kind == "finding")
    for log in data_directory.glob("data/plain-plain-0/*.log"):
        data = bytearray(log.read_bytes())
        if len(data) > 500:
            data[300] ^= 1
            log.write_bytes(data)
            os.utime(log, ns=(OLD_NS, OLD_NS + 1))
    joined = verifying.join_partitions(in_order([*verifying.check_logs(in_order(rows))]))
    now = told_of(row for row in joined if row.kind == "finding")
    expected = whole(data_directory)
    # Segments that were checked as a whole before the change are not checked again.
    changed = {one for one in expected if "BATCH-3" in one and "plain-plain-0" in one}
    pieced = {
        unit.segment.path(".log")
        for task in plan.tasks
        for unit in units_of(task)
        if isinstance(unit, PieceUnit)
    }
    told = {one for one in changed if any(path in one for path in pieced)}
    assert len(told) > 1
    assert told <= set(now)


def test_a_path_that_vanishes_meanwhile(data_directory: Path) -> None:
    """Partitions, segments and stores that go between the plan and the check end no task."""
    wanted = Wanted()
    for task_bytes in (None, SMALL):
        plan = make_plan([str(data_directory)], wanted, 2, task_bytes)
        moved = data_directory.with_name(data_directory.name + "-moved")
        data_directory.rename(moved)
        try:
            found, _ = staged(plan, wanted)
        finally:
            moved.rename(data_directory)
        assert {"DISK-1", "DISK-2"} & {(row.finding or {})["law"] for row in found}


def test_one_file_that_cannot_be_read(data_directory: Path) -> None:
    """A folder in the place of a log is a finding; all others are done."""
    log = next((data_directory / "data" / "plain-plain-0").glob("*342.log"))
    log.unlink()
    log.mkdir()
    age(data_directory)
    plan = make_plan([str(data_directory)], Wanted(), 2, SMALL)
    found, _ = staged(plan, Wanted())
    told = told_of(found)
    assert any("DISK-1" in one and str(log) in one for one in told)
    assert whole(data_directory) == told


# --- the checkpoint


@pytest.mark.parametrize("task_bytes", [None, SMALL])
def test_what_did_not_change_is_not_read_again(
    data_directory: Path, folder: Path, task_bytes: int | None
) -> None:
    """The second run reads nothing, and finds the same; the third reads what changed."""
    wanted = Wanted()
    kept = open_checkpoint(str(folder), wanted)
    path = str(data_directory)
    first, told = staged(make_plan([path], wanted, 2, task_bytes), wanted, kept)
    assert whole(data_directory) == told_of(first)
    assert 0 == told["units_recalled"]
    again, told = staged(make_plan([path], wanted, 2, task_bytes), wanted, kept)
    assert told_of(first) == told_of(again)
    assert told["units"] - 1 == told["units_recalled"]  # the names are looked at each time
    assert 0 == told["bytes_read"]
    damage(data_directory / "data" / "txn-a-txn-a-0", "*1014.log", 300)
    age(data_directory)
    third, told = staged(make_plan([path], wanted, 2, task_bytes), wanted, kept)
    assert whole(data_directory) == told_of(third)
    assert told_of(first) != told_of(third)
    assert 0 < told["units"] - 1 - told["units_recalled"] < told["units"] // 3
    other = Wanted(deep=True)
    asked = open_checkpoint(kept.place, other)
    _, told = staged(make_plan([path], other, 2, task_bytes), other, asked)
    assert 0 == told["units_recalled"]


def test_a_damaged_checkpoint_counts_as_none(data_directory: Path, folder: Path) -> None:
    """Files that were cut, changed, emptied, or belong to another unit."""
    wanted = Wanted()
    kept = open_checkpoint(str(folder), wanted)
    plan = make_plan([str(data_directory)], wanted, 2, SMALL)
    expected = told_of(staged(plan, wanted, kept)[0])
    written = sorted(folder.iterdir())
    assert all(path.suffix == ".unit" for path in written)
    sound = [path.read_bytes() for path in written]
    for number, (path, data) in enumerate(zip(written, sound, strict=True)):
        wrong = (data[: len(data) // 2], b"", data.replace(b"findings", b"finding5"), b"\0" * 99)
        path.write_bytes([*wrong, sound[number - 1]][number % 5])
    found, told = staged(plan, wanted, kept)
    assert expected == told_of(found)
    assert 0 == told["units_recalled"]


def test_trouble_is_not_kept(data_directory: Path, folder: Path) -> None:
    """A unit whose file could not be read, or was changed a moment ago, is read again."""
    wanted = Wanted()
    kept = open_checkpoint(str(folder), wanted)
    partition = data_directory / "data" / "plain-plain-0"
    for each in partition.iterdir():
        os.utime(each)
    for _ in range(2):
        found, _ = staged(make_plan([str(partition)], wanted, 2), wanted, kept)
        assert found
        assert [] == list(folder.iterdir())


def test_a_checkpoint_that_cannot_be_written_is_counted(data_directory: Path, folder: Path) -> None:
    """What is found does not depend on it; nothing is left of what could not be put in place."""
    kept = open_checkpoint(str(folder / "gone"), Wanted())
    plan = make_plan([str(data_directory)], Wanted(), 2, SMALL)
    expected, told = staged(plan, Wanted(), kept)
    assert 0 == told["units_unkept"]
    for path in (folder / "gone").iterdir():
        path.unlink()
        path.mkdir()
        (path / "x").touch()
    found, again = staged(plan, Wanted(), kept)
    assert told_of(expected) == told_of(found)
    assert again["units_unkept"] > 10
    assert not any("tmp" in path.name for path in (folder / "gone").iterdir())
    shutil.rmtree(folder / "gone")
    (folder / "gone").touch()
    found, again = staged(plan, Wanted(), kept)
    assert told_of(expected) == told_of(found)
    assert (0, True) == (again["units_recalled"], again["units_unkept"] > 10)


def test_a_folder_that_came_is_a_change(data_directory: Path, folder: Path) -> None:
    """An empty folder in a store changes what is checked, and so do files beside an index file."""
    kept = open_checkpoint(str(folder), Wanted())
    store = data_directory / "rolled-4.9.8"
    index = min((store / "index").iterdir())
    for path, new in ((store, store / "consumequeue" / "new"), (index, None)):
        plan = make_plan([str(path)], Wanted(), 2)
        _, first = staged(plan, Wanted(), kept)
        _, again = staged(plan, Wanted(), kept)
        assert (0, 1) == (first["units_recalled"], again["units_recalled"])
        if new is None:
            shutil.copyfile(index, index.with_name("20991231235959999"))
        else:
            new.mkdir()
        age(data_directory)
        _, third = staged(plan, Wanted(), kept)
        assert 0 == third["units_recalled"]


def test_another_verifier_takes_nothing_over(
    data_directory: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Findings of other sources of the same release do not count."""
    plan = make_plan([str(data_directory)], Wanted(), 2)
    staged(plan, Wanted(), open_checkpoint(str(folder), Wanted()))
    monkeypatch.setattr(checkpoint, "digest_of_sources", lambda packages: "other")
    _, told = staged(plan, Wanted(), open_checkpoint(str(folder), Wanted()))
    assert 0 == told["units_recalled"]
    monkeypatch.undo()
    _, told = staged(plan, Wanted(), open_checkpoint(str(folder), Wanted()))
    assert told["units_recalled"] > 0


def test_files_without_a_modification_time_are_read_again(
    data_directory: Path, folder: Path
) -> None:
    """A store that does not tell when a file was changed does not tell that it was not."""
    kept = open_checkpoint(str(folder), Wanted())
    partition = data_directory / "data" / "plain-plain-0"
    for each in partition.iterdir():
        os.utime(each, ns=(0, 0))
    staged(make_plan([str(partition)], Wanted(), 2), Wanted(), kept)
    assert [] == list(folder.iterdir())


def test_findings_behind_a_url_name_the_verb_that_reads_it(data_directory: Path) -> None:
    """The same findings by `file://`, each with a command of `segproof spark verify`."""
    path = data_directory / "data"
    url = f"file://{path}"
    for task_bytes in (None, SMALL):
        found, _ = staged(make_plan([url], Wanted(), 2, task_bytes), Wanted())
        told = [finding_row(row.finding or {}) for row in found]
        assert all(one["reproduce"].startswith("segproof spark verify file:///") for one in told)
        laws = sorted((one["law"], one["path"].removeprefix("file://")) for one in told)
        assert sorted((one.law, one.path) for one in verify(path)) == laws
    assert with_command(
        {
            "hint": "`segproof rebuild 's3://b/a b' --out 'rebuilt/a b'`, or copy it",
            "reproduce": "segproof verify 's3://b/a b/0.log' --law X-1",
        },
        "s3://b/a?region=eu",
    ) == {
        "hint": "`segproof rebuild`, or copy it",
        "reproduce": "segproof spark verify 's3://b/a b/0.log''?region=eu' --law X-1",
    }


def test_segments_travel_with_all_that_is_known_of_them(data_directory: Path) -> None:
    """What was known only of a log by itself, or of one of another partition, was left behind."""
    own, other = (data_directory / "data" / name for name in ("plain-plain-0", "txn-a-txn-a-0"))
    foreign = shutil.copy(next(own.glob("*517.log")), other)
    shutil.copyfile(next(own.glob("*252.log")), own / "252.log")
    (data_directory / "data" / "empty-0").mkdir()
    age(data_directory)
    for path in (own / "252.log", data_directory):
        for task_bytes in (None, SMALL):
            found, _ = staged(make_plan([str(path)], Wanted(), 2, task_bytes), Wanted())
            assert whole(path) == told_of(found)
    assert {"LOG-4"} == {one.law for one in verify(other) if one.path == foreign}
