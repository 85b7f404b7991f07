# SPDX-License-Identifier: Apache-2.0
"""An output of `salvage` or `rebuild` that was ended: never sound, and refused as an input.

A salvage that a full disk had ended became "sound" by the hints of `verify` and a rebuild in place:
65 of 80 partitions were gone.
"""

import errno
import re
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.reading.unfinished import MARKER, SALVAGE_MARKER
from segproof.rebuilding import directory_rebuild
from segproof.rebuilding.partition_files import PartitionFiles
from segproof.rebuilding.segment_build import Options
from segproof.repair import rebuild_all, rebuild_index, salvage, salvage_store
from segproof.verification import verify
from segproof_tests.partition_files import copied_partition
from segproof_tests.reported_findings import state_of, verified
from segproof_tests.store_files import copied_store


def unfinished(path: Path) -> tuple[list[Finding], list[Summary]]:
    """Return the findings of an unfinished output, and the summaries."""
    summaries: list[Summary] = []
    found = [one for one in verify(path, on_summary=summaries.append) if one.law == "DISK-61"]
    return found, summaries


@pytest.fixture
def salvaged(tmp_path: Path) -> Path:
    """A data directory that a salvage has not ended: one of its two partitions is there."""
    copied_partition("plain", tmp_path / "out")
    (tmp_path / "out" / SALVAGE_MARKER).touch()
    return tmp_path / "out"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A sound store."""
    return copied_store(tmp_path / "store")


@pytest.mark.checks("DISK-61")
@pytest.mark.parametrize("inner", ["", "plain-0", "plain-0/00000000000000000000.log"])
def test_a_salvage_that_was_ended_is_never_sound(salvaged: Path, inner: str) -> None:
    """Nor is a partition in it, or one file of it."""
    found, summaries = unfinished(salvaged / inner)
    assert found
    assert {Severity.ERROR} == {one.severity for one in found}
    assert "segproof salvage" in str(found[0].hint)
    assert Verdict.SOUND not in {one.verdict for one in summaries}
    (salvaged / SALVAGE_MARKER).unlink()
    found, summaries = unfinished(salvaged / inner)
    assert ([], {Verdict.SOUND}) == (found, {one.verdict for one in summaries})


@pytest.mark.checks("DISK-61")
@pytest.mark.parametrize(
    "inner",
    [
        "recovery-point-offset-checkpoint",
        "plain-0/.",
        "plain-0/leader-epoch-checkpoint",
        "plain-0/partition.metadata",
        "plain-0/00000000000000000060.snapshot",
        "plain-0/00000000000000000060.timeindex",
        "plain-0/00000000000000000060.log",
    ],
)
@pytest.mark.parametrize("is_linked", [False, True])
def test_each_path_into_a_salvage_that_was_ended(
    salvaged: Path, inner: str, tmp_path: Path, *, is_linked: bool
) -> None:
    """A single small file was sound, and so was a link to a partition."""
    (salvaged / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (salvaged / "plain-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: 2AGMcbJSQ0yuSOEYLRTi4A\n"
    )
    path = f"{salvaged}/{inner}"
    if is_linked:
        is_partition = inner.endswith(".")
        link = tmp_path / "elsewhere" / ("link-0" if is_partition else Path(inner).name)
        link.parent.mkdir()
        link.symlink_to(path)
        path = str(link)
        if is_partition:
            (told,) = rebuild_all([link], tmp_path / "new", Options())
            assert "salvage" in str(told.error)
            with pytest.raises(InvalidArgumentError, match="ended here before it was whole"):
                list(salvage(link, tmp_path / "again"))
    found, summaries = verified(path)
    assert "DISK-61" in {one.law for one in found}
    assert not any(one.is_sound for one in summaries)
    assert summaries
    (salvaged / SALVAGE_MARKER).unlink()
    assert "DISK-61" not in {one.law for one in verify(path)}


@pytest.mark.checks("DISK-61")
@pytest.mark.parametrize("inner", ["", "plain-0"])
@pytest.mark.parametrize("is_dry", [False, True])
def test_no_verb_takes_a_salvage_that_was_ended(
    salvaged: Path, inner: str, is_dry: bool, tmp_path: Path
) -> None:
    """Neither in place nor into a new directory; all stays as it is."""
    (salvaged / "plain-0" / "00000000000000000060.index").write_bytes(b"wrong!!!")
    before = state_of(salvaged)
    for options, out in (
        (Options(in_place=True, dry_run=is_dry), None),
        (Options(dry_run=is_dry), "new"),
    ):
        target = None if out is None else tmp_path / out
        told = list(rebuild_all([salvaged / inner], target, options))
        assert all(one.error is not None and "salvage" in one.error for one in told)
        assert told
    with pytest.raises(InvalidArgumentError, match="ended here before it was whole"):
        list(salvage(salvaged / inner, tmp_path / "again"))
    assert before == state_of(salvaged)


@pytest.mark.checks("DISK-61")
def test_a_rebuild_that_was_ended_is_never_sound_and_no_input(tmp_path: Path) -> None:
    """Its mark lies in the partition."""
    partition = copied_partition("plain", tmp_path / "data")
    (partition / MARKER).touch()
    for path in (partition, partition.parent):
        found, summaries = unfinished(path)
        assert [Severity.ERROR] == [one.severity for one in found]
        assert Verdict.SOUND not in {one.verdict for one in summaries}
    (told,) = rebuild_all([partition], None, Options(in_place=True))
    assert "rebuild" in str(told.error)
    with pytest.raises(InvalidArgumentError, match="ended here before it was whole"):
        list(salvage(partition, tmp_path / "out"))


@pytest.mark.checks("DISK-61")
@pytest.mark.parametrize("ends_by", ["a kill", "a full disk"])
def test_a_rebuild_of_several_partitions_that_was_ended(
    ends_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partitions that it had made were sound, and nothing told of the others. The same command
    makes the others, and takes the mark away."""
    data, out = tmp_path / "data", tmp_path / "out"
    for name in ("compacted", "plain"):
        copied_partition(name, data)
    write = vars(directory_rebuild)["rebuild_partition"]

    def full(partition: PartitionFiles, *given: Any, **named: Any) -> Any:
        if partition.directory.endswith("plain-0"):
            raise OSError(errno.ENOSPC, "no space left on device")
        return write(partition, *given, **named)

    if ends_by == "a kill":
        made = rebuild_all([data], out)
        next(made)
        made.close()  # type: ignore[attr-defined]
    else:
        monkeypatch.setattr(directory_rebuild, "rebuild_partition", full)
        assert [True, False] == [one.error is None for one in rebuild_all([data], out)]
        monkeypatch.undo()
    (found,) = [one for one in unfinished(out)[0] if one.path.endswith(MARKER)]
    assert (Severity.ERROR, True) == (found.severity, "Not here: plain-0" in found.message)
    assert ("Whole, of another one: compacted-0" in found.message) == (ends_by == "a full disk")
    again = {Path(one.path).name: one.error is None for one in rebuild_all([data], out)}
    assert {"compacted-0": False, "plain-0": True} == again
    assert ([], 2) == (unfinished(out)[0], len(list(out.iterdir())))
    assert 1 == len(list(rebuild_all([data / "plain-0"], tmp_path / "alone")))
    assert not (tmp_path / "alone" / MARKER).exists()


@pytest.mark.checks("DISK-61")
def test_a_rebuild_that_makes_nothing_leaves_nothing(tmp_path: Path) -> None:
    """Each partition is refused: the new directory is not there."""
    partition = copied_partition("plain", tmp_path / "data")
    log = partition / "00000000000000000060.log"
    log.write_bytes(log.read_bytes()[:-7] + b"damaged")
    (told,) = rebuild_all([partition.parent], tmp_path / "out")
    assert told.done.findings
    assert not (tmp_path / "out").exists()


@pytest.mark.checks("DISK-61")
def test_a_store_of_a_salvage_that_was_ended(store: Path, tmp_path: Path) -> None:
    """The mark lies in the store itself, and no verb takes it."""
    assert {Verdict.SOUND} == {one.verdict for one in unfinished(store)[1]}
    (store / SALVAGE_MARKER).touch()
    found, summaries = unfinished(store)
    assert [Severity.ERROR] == [one.severity for one in found]
    assert Verdict.SOUND not in {one.verdict for one in summaries}
    before = state_of(store)
    with pytest.raises(SegproofError, match="ended here before it was whole"):
        rebuild_index(store, in_place=True)
    with pytest.raises(SegproofError, match="ended here before it was whole"):
        rebuild_index(store, tmp_path / "index")
    with pytest.raises(SegproofError, match="ended here before it was whole"):
        salvage_store(store, tmp_path / "again")
    assert before == state_of(store)


@pytest.mark.checks("DISK-61")
def test_a_rebuild_in_place_of_a_store_that_was_ended_is_run_again(
    store: Path, tmp_path: Path
) -> None:
    """The store is whole: the same rebuild removes the folder, and a salvage may save it."""
    (store / MARKER / "index").mkdir(parents=True)
    (store / MARKER / "checkpoint").touch()
    found, _ = unfinished(store)
    assert [Severity.ERROR] == [one.severity for one in found]
    salvage_store(store, tmp_path / "saved")
    rebuild_index(store, hash_slot_num=64, index_num=256, in_place=True)
    assert [] == unfinished(store)[0]


@pytest.mark.checks("DISK-61")
def test_a_new_index_of_a_store_that_is_not_whole(store: Path, tmp_path: Path) -> None:
    """A rebuild into a new directory leaves its working folder beside the index files."""
    shutil.copytree(store / "index", tmp_path / "index")
    (tmp_path / "index" / MARKER).mkdir()
    found, summaries = unfinished(tmp_path / "index")
    assert [Severity.ERROR] == [one.severity for one in found]
    assert Verdict.SOUND not in {one.verdict for one in summaries}


def ended_second_salvage(tmp_path: Path) -> Path:
    """Return a directory into which one salvage has written, and a second one that was killed."""
    first = copied_partition("plain", tmp_path / "one")
    second = copied_partition("txn-a", tmp_path / "two")
    out = tmp_path / "out"
    assert all(told.is_whole for told in salvage(first, out))
    steps = salvage(second, out)
    next(steps)  # it has written the partition, and not ended
    assert isinstance(steps, Generator)
    steps.close()
    assert (out / SALVAGE_MARKER).exists()
    (out / "salvage-set-aside.txn-a-0.log").touch()
    return out


@pytest.mark.checks("DISK-61")
def test_a_partition_of_an_earlier_salvage_is_whole(tmp_path: Path) -> None:
    """Its source may be gone. Only what the second salvage has written is a part."""
    out = ended_second_salvage(tmp_path)
    found, summaries = unfinished(out)
    verdicts = {one.path: one.verdict for one in summaries}
    assert verdicts.pop(str(out / "plain-0")) is Verdict.SOUND
    assert verdicts.pop(str(out / "txn-a-0")) is Verdict.READABLE_WITH_GAPS
    assert {str(out / "txn-a-0"), str(out / SALVAGE_MARKER)} == {one.path for one in found}
    (mark,) = (one for one in found if one.path.endswith(SALVAGE_MARKER))
    assert "Partitions of it: txn-a-0. Whole, of another one: plain-0" in mark.message
    again = list(salvage(out / "plain-0", tmp_path / "again"))
    assert [True] == [one.is_whole for one in again]
    with pytest.raises(InvalidArgumentError, match="ended here before it was whole"):
        list(salvage(out / "txn-a-0", tmp_path / "third"))


@pytest.mark.checks("DISK-61")
def test_the_printed_step_leaves_what_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the finding and in the refusal of a salvage; then the second one can be ended."""
    out = ended_second_salvage(tmp_path)
    whole = state_of(out / "plain-0")
    with pytest.raises(FileExistsError, match="mkdir") as refused:
        list(salvage(tmp_path / "two", out))
    (mark,) = (one for one in unfinished(out)[0] if one.path.endswith(SALVAGE_MARKER))
    commands = re.findall("`(mkdir [^`]+)`", f"{mark.hint} {refused.value}")
    assert len(commands) == 2
    assert len(set(commands)) == 1
    monkeypatch.chdir(tmp_path)
    subprocess.run(["bash", "-c", commands[0]], check=True)
    assert ["plain-0"] == [one.name for one in out.iterdir()]
    assert all(told.is_whole for told in salvage(tmp_path / "two", out))
    assert {Verdict.SOUND} == {one.verdict for one in unfinished(out)[1]}
    assert whole == state_of(out / "plain-0")
    kept = {one.name for one in (tmp_path / "out.unfinished").iterdir()}
    assert {SALVAGE_MARKER, "txn-a-0", "salvage-set-aside.txn-a-0.log"} == kept


@pytest.mark.checks("DISK-61")
def test_a_part_is_never_readable_with_defects_alone(salvaged: Path, store: Path) -> None:
    """That verdict says that no record is known to be lost: here an unknown number is."""
    (store / SALVAGE_MARKER).touch()
    for path in (salvaged / "plain-0", store):
        (summary,) = unfinished(path)[1]
        assert (Verdict.READABLE_WITH_GAPS, None) == (summary.verdict, summary.lost_offsets)
