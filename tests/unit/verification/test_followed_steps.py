# SPDX-License-Identifier: Apache-2.0
"""Each hint of a rule that changes or removes files is followed, though it has no command.

So are those of checkpoints that a broker makes new, and of a log under another name.

`STEPS` says in code what a person does whose precondition holds, on a copy of a damaged directory.
Afterwards every message is in the copy that was there before, `verify` shows the finding no more,
and it shows no new error.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity
from segproof.hints import Effect
from segproof.verification import RULES, verify
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.broken_files import EXAMPLES, damaged_copy
from segproof_harness.laws.file_damages import Example
from segproof_tests.plain_reader import files_in, messages_in

Step = Callable[[Path], None]
"""Takes the path of the last finding of the law, in the copy."""
ID = "version: 0\ntopic_id: "
SNAPSHOT_OF_ANOTHER_NODE = KAFKA / "compacted" / "logdir" / "bootstrap.checkpoint"
QUICK = frozenset({"DISK-48", "DISK-53", "FILE-2", "RMQDISK-51"})


def data_of(path: Path) -> Path:
    """Return the directory of all that is given, which is a parent of a path in it."""
    return next(one for one in (path, *path.parents) if one.name == "data")


def move_out(path: Path) -> None:
    """Move a file or a folder to another place."""
    away = data_of(path).parent / "away"
    away.mkdir()
    shutil.move(path, away)


def _later_snapshot(path: Path) -> None:
    offset, epoch = map(int, path.name.split(".")[0].split("-"))
    new = path.with_name(f"{offset + 1:020d}-{epoch:010d}.checkpoint")
    shutil.copyfile(SNAPSHOT_OF_ANOTHER_NODE, new)
    move_out(path)


def _snapshot_of_the_start(path: Path) -> None:
    start = min(int(one.stem) for one in path.glob("*.log"))
    new = path / f"{start:020d}-0000000001.checkpoint"
    shutil.copyfile(SNAPSHOT_OF_ANOTHER_NODE, new)


def _ids_of_the_node(path: Path) -> None:
    path.write_text(
        "version=1\nnode.id=1\ncluster.id=I2eXt9rvSnyhct8BYmW6-w\n"
        "directory.id=oG5Q4DkSR7CYBX0qVIYs0g\n"
    )


def _write_topic_id(path: Path) -> None:
    """Take the id of another partition of the topic, or of the cluster's answer."""
    others = (one for one in path.parent.parent.glob(f"*/{path.name}") if one != path)
    told = next((one.read_text() for one in others), ID + "AAAAAAAAAAAAAAAAAAAAAQ")
    path.write_text(told)


def _name_by_first_batch(path: Path) -> None:
    first = int.from_bytes(path.read_bytes()[:8], "big")
    new = path.with_name(f"{first:020d}.log")
    assert not new.exists()
    path.rename(new)


def _correct_start(path: Path) -> None:
    """Write where each log begins; the finding is of the partition, or of the checkpoint."""
    file = data_of(path) / "log-start-offset-checkpoint"
    head, *lines = file.read_text().splitlines()[1:]
    for number, line in enumerate(lines):
        topic, partition, _ = line.split()
        logs = (data_of(path) / f"{topic}-{partition}").glob("*.log")
        lines[number] = f"{topic} {partition} {min(int(one.stem) for one in logs)}"
    file.write_text("\n".join(["0", head, *lines, ""]))


def _from_a_backup(path: Path) -> None:
    own = {"topicName": "TopicTest", "readQueueNums": 4, "writeQueueNums": 4}
    topics = {"dataVersion": {"counter": 1}, "topicConfigTable": {"TopicTest": own}}
    path.write_text(json.dumps(topics))


def _write_end(path: Path) -> None:
    path.write_text(path.read_text().replace("999999", "12"))


STEPS: dict[str, Step] = {
    "DISK-43": _correct_start,
    "DISK-47": move_out,
    "DISK-48": move_out,
    "DISK-49": _write_topic_id,
    "DISK-51": _later_snapshot,
    "DISK-52": _snapshot_of_the_start,
    "DISK-53": Path.unlink,
    "DISK-54": _ids_of_the_node,
    "FILE-1": _name_by_first_batch,
    "FILE-2": _name_by_first_batch,
    "META-2": _write_topic_id,
    "RMQDISK-39": move_out,
    "RMQDISK-43": _from_a_backup,
    "RMQDISK-51": Path.unlink,
    "RMQDISK-54": _write_end,
    "RMQDISK-57": _from_a_backup,
}
"""What the hint of the rule of a law asks for, by its law."""


def check_step(law: str, step: Step, folder: Path, further: Example | None = None) -> str:
    """Follow a hint on a copy, and fail for what it costs, and for what it leaves; return it."""
    example = further or EXAMPLES[law]
    (folder / "data").mkdir()
    path = damaged_copy(example, folder / "data")
    data = folder / "copy" / "data"
    shutil.copytree(folder / "data", data)
    part = path.relative_to(folder / "data") / example.below
    shown = Path(os.path.normpath(data / part))
    before, files = messages_in(data), _contents(data)
    findings = tuple(verify(shown, deep=example.deep))
    found = [one for one in findings if one.law == law][-1]
    step(Path(found.path))
    after = _contents(data)
    kept = {name: one for name, one in files.items() if name in after}
    is_removed = "remove" in found.hint and RULES[law].hint.effect is not Effect.CHANGES_FILES
    assert files != after, f"the hint of {law} changes nothing"
    assert not is_removed or kept == after, f"the hint of {law} removes, and changes files"
    lost = before.keys() - messages_in(data).keys()
    assert not lost, f"the hint of {law} loses {len(lost)} messages"
    again = tuple(verify(shown, deep=example.deep))
    still = [one for one in again if one.law == law and one.is_defect]
    assert still == [], f"the hint of {law} leaves {still[0].message}"
    new = _errors(again) - _errors(findings)
    assert not new, f"the hint of {law} makes new errors: {new}"
    return found.hint


def _contents(data: Path) -> dict[str, bytes]:
    """Return the content of each file, and the name of each folder."""
    folders = (one for one in data.rglob("*") if one.is_dir())
    return files_in(data) | {str(one.relative_to(data)): b"" for one in folders}


def _errors(findings: Iterable[Finding]) -> set[str]:
    return {one.law for one in findings if one.severity is Severity.ERROR}


@pytest.mark.parametrize(
    "law", [pytest.param(law, marks=() if law in QUICK else pytest.mark.slow) for law in STEPS]
)
def test_a_followed_step_loses_nothing_and_ends_the_finding(law: str, tmp_path: Path) -> None:
    """Such hints were prose that nothing tried."""
    check_step(law, STEPS[law], tmp_path)


def test_each_hint_that_changes_files_has_its_steps() -> None:
    """A new rule needs a line in `STEPS`."""
    changing = (Effect.CHANGES_FILES, Effect.REMOVES)
    assert STEPS.keys() == {law for law, rule in RULES.items() if rule.hint.effect in changing}


CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_broken_checkpoint_of_a_data_directory_may_be_removed(name: str, tmp_path: Path) -> None:
    """The file has a hint of its own: a broker makes it new."""

    def damage(path: Path) -> None:
        (path.parent / name).write_bytes(bytes(40))

    broken = Example("a checkpoint is zeros", damage, "plain", below="..")
    assert "remove" in check_step("CKPT-3", Path.unlink, tmp_path, broken)


def test_a_copy_of_a_log_under_another_name_may_be_moved_out(tmp_path: Path) -> None:
    """The hint says so where the logs have each of its batches."""

    def damage(path: Path) -> None:
        shutil.copyfile(path / "00000000000000000162.log", path / "first.log")

    copied = Example("a copy of a log is named first.log", damage, "plain")
    assert "move it out" in check_step("FILE-2", move_out, tmp_path, copied)


def _remove_partition(path: Path) -> None:
    shutil.rmtree(next(one for one in data_of(path).iterdir() if one.name == "plain-0"))


def _change_beside(path: Path) -> None:
    path.unlink()
    (data_of(path) / "plain-0" / "00000000000000000693.index").write_bytes(b"")


@pytest.mark.parametrize(
    ("law", "step", "words"),
    [
        ("FILE-2", Path.unlink, "loses"),
        ("DISK-53", _remove_partition, "loses|removes"),
        ("DISK-53", _change_beside, "changes files"),
        ("DISK-53", lambda path: path.write_bytes(b"{}"), "changes files|leaves"),
        ("FILE-2", lambda path: None, "changes nothing"),
    ],
)
def test_a_planted_step_that_harms_is_caught(
    law: str, step: Step, words: str, tmp_path: Path
) -> None:
    """One that removes, changes another file, mends nothing, or does nothing."""
    with pytest.raises(AssertionError, match=words):
        check_step(law, step, tmp_path)
