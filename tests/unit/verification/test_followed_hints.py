# SPDX-License-Identifier: Apache-2.0
"""Each hint that has a command is followed to its end, as a person would who pastes the command.

For each law a real directory is damaged. bash reads the commands of the hint as they are printed.
Afterwards no message is gone that was somewhere before, which a reader tells that shares no code
with the product; `verify` shows the finding no more; and it shows no new error.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity
from segproof.hints import Hint, removes, writes
from segproof.verification import RULES, verify
from segproof.wording.rules import with_paths
from segproof_harness import cli
from segproof_harness.laws.broken_files import EXAMPLES, damaged_copy
from segproof_harness.laws.broken_stores import INDEX, small
from segproof_harness.laws.file_damages import Example, cut, overwrite, remove
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.followed_hints import errors_of, run_command
from segproof_tests.hint_commands import followed_commands
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.plain_reader import files_in, messages_in
from segproof_tests.printed_rows import Capsys

DECIDES = re.compile(
    r"\b(?:nothing|compare|look|check|verify again|find|give|keep|leave|read|say|ask|see"
    r"|copy this file away|copy the directory away|Only if|copy this directory away)\b"
)
"""What a person does or decides, where no command helps."""
FURTHER = {
    "the index files are gone": small(
        "the index files are gone", lambda folder: shutil.rmtree(folder / "index")
    ),
    "an index file is empty": small("an index file is empty", cut(INDEX, 1384)),
    "the checkpoint is gone": small("the checkpoint is gone", remove("checkpoint")),
    "the queues are gone": small(
        "the queues are gone", lambda folder: shutil.rmtree(folder / "consumequeue")
    ),
}
"""More situations than one for each law, whose hints have commands as well."""
LOG = "00000000000000000000.log"
STORE_LOG = "commitlog/00000000000000000000"
QUICK = frozenset({"DISK-6", "DISK-37", "SEG-7", "DUMP-6", "RMQDISK-24", "RMQDISK-16"})


@dataclass(frozen=True, slots=True)
class Situation:
    """A damaged directory, and what `verify` finds in it."""

    path: Path
    """The partition or the store, below the directory `data`."""
    example: Example
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> set[str]:
        """The laws that errors name."""
        return errors_of(self.findings)


def situation_of(example: Example, folder: Path) -> Situation:
    """Damage a directory below `folder`, which is the working directory."""
    data = folder / "data"
    data.mkdir()
    path = damaged_copy(example, data)
    shown = path.relative_to(folder) / example.below
    return Situation(path, example, tuple(verify(shown, deep=example.deep)))


def follow(hint: str, folder: Path, capsys: Capsys) -> Iterator[Path]:
    """Do what the commands of a hint say; yield the directories that they have made."""
    for command in followed_commands(hint):
        there = {path for path in folder.rglob("*") if path.is_dir()}
        run_command(command, folder, capsys)
        made = {path for path in folder.rglob("*") if path.is_dir()} - there
        yield from sorted(path for path in made if path.parent in there | {folder})


def whole(made: Path, old: Path) -> Path:
    """Return what a broker gets in the end: of index files alone, a copy of the store with them."""
    target = next((path for path in made.rglob("*") if path.name == old.name), made)
    if old.name != "store" or (target / "commitlog").exists():
        return made
    copy = made.parent / "whole" / old.name
    shutil.copytree(old, copy)
    shutil.rmtree(copy / "index", ignore_errors=True)
    shutil.copytree(target, copy / "index")
    return copy.parent


def check_followed(found: Finding, situation: Situation, folder: Path, capsys: Capsys) -> None:
    """Follow a hint, and fail for what it costs, and for what it leaves."""
    old = situation.path
    files, before = files_in(old), messages_in(old)
    results = [whole(made, old) for made in follow(found.hint, folder, capsys)]
    assert files == files_in(old), f"the hint of {found.law} changes what is there"
    assert results, f"the hint of {found.law} makes nothing"
    for made in results:
        # A log and the one that was made of it have the same batches: a copy needs them once.
        lost = before.keys() - messages_in(made).keys()
        assert not lost, f"the hint of {found.law} loses {len(lost)} messages"
        after = tuple(verify(made, deep=situation.example.deep))
        still = [one for one in after if one.law == found.law and one.is_defect]
        assert still == [], f"the hint of {found.law} leaves {still[0].message}"
        assert errors_of(after) <= situation.errors, f"the hint of {found.law} makes new errors"


NAMES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in (*EXAMPLES, *FURTHER)
]


@pytest.mark.parametrize("name", NAMES)
def test_a_followed_hint_loses_nothing_and_ends_the_finding(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """Where a hint has no command, it says by what a person decides."""
    monkeypatch.chdir(tmp_path)
    situation = situation_of({**EXAMPLES, **FURTHER}[name], tmp_path)
    findings = [one for one in situation.findings if one.law == name or name in FURTHER]
    assert findings
    for number, found in enumerate({one.hint: one for one in findings}.values()):
        if not followed_commands(found.hint):
            assert DECIDES.search(found.hint), found.hint
            continue
        folder = tmp_path / f"{number}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        # The paths of a hint are those from where `verify` ran.
        (folder / "data").mkdir()
        path = damaged_copy(situation.example, folder / "data")
        check_followed(found, replace(situation, path=path), folder, capsys)


@pytest.mark.parametrize("name", ["plain", "plain-x", "plain-+3"])
def test_a_folder_without_the_name_of_a_partition_is_saved(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """The command that was printed always failed: a salvage asks for the name TOPIC-N."""
    monkeypatch.chdir(tmp_path)
    damaged_copy(EXAMPLES["BATCH-3"], tmp_path).rename(name)
    before = messages_in(tmp_path / name)
    found = next(one for one in verify(name) if one.law == "BATCH-3")
    made = [*follow(found.hint, tmp_path, capsys)]
    assert not before.keys() - messages_in(made[-1]).keys()
    assert [one.name for one in made[-1].iterdir() if "-" in one.name and one.is_dir()] == [
        "plain-3" if name.endswith("+3") else "TOPIC-0"
    ]


TORN = "00000000000000000693.log"
REFUSED = {
    "a batch in the middle": EXAMPLES["BATCH-3"],
    "the last batch": Example("the last batch is cut in half", cut(TORN, 1000), "plain"),
    "a batch of the last log": Example(
        "a batch of the last log is broken", overwrite(TORN, 70, b"##"), "plain"
    ),
    "a record of a store": EXAMPLES["RMQDISK-24"],
    "the end of a store": small(
        "the magic of the last record is 0", overwrite(STORE_LOG, 1632, bytes(4))
    ),
}
"""Directories that `rebuild` refuses: its findings have hints of their own."""


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_hint_of_rebuild_is_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """It cuts a tail only where no sound batch, or message, follows."""
    monkeypatch.chdir(tmp_path)
    situation = situation_of(REFUSED[name], tmp_path)
    place = str(situation.path.relative_to(tmp_path))
    assert cli.run(["rebuild", place, "--out", "made", "--format", "jsonl"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = [Finding(**{**line, "severity": Severity(line["severity"])}) for line in lines]
    assert len(told) == 1
    check_followed(told[0], situation, tmp_path, capsys)
    assert ("--cut-tail" in told[0].hint) is (name == "the last batch")


def test_laws_with_a_command_have_an_example() -> None:
    """So that each of them is followed; DISK-7 and DISK-18 take gigabytes."""
    told = {law for law, rule in RULES.items() if "`segproof " in rule.hint}
    assert {"DISK-7"} >= {
        law for law in told if law not in EXAMPLES and followed_commands(RULES[law].hint)
    }
    assert len({law for law in told & EXAMPLES.keys() if followed_commands(RULES[law].hint)}) > 40


HARMFUL = [
    ("BATCH-3", removes("`rm DIR/00000000000000000060.log`", only_if="it is so",
     if_wrong="it is lost", copy_step="copy it"), "changes what is there"),
    ("BATCH-3", writes("`segproof rebuild DIR --out DIR2 --cut-tail`"), "ended with|messages"),
    ("DISK-37", writes("`segproof rebuild DIR --out DIR2`"), "leaves"),
    ("SEG-7", writes("`segproof rebuild DIR --in-place`"), "changes what is there"),
    ("SEG-7", writes("`segproof rebuild data --out 'DIR2`"), "unexpected EOF"),
    ("RMQDISK-24", writes("`segproof rebuild STORE --out DIR2 --cut-tail`"), "leaves"),
    ("RMQDISK-16", removes("`rm -r STORE/commitlog`", only_if="it is so",
     if_wrong="it is lost", copy_step="copy it"), "changes what is there"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("law", "hint", "words"), HARMFUL)
def test_a_planted_hint_that_harms_is_caught(
    law: str,
    hint: Hint,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    """One that removes, cuts, mends nothing, or has a command that bash does not read."""
    monkeypatch.chdir(tmp_path)
    situation = situation_of(EXAMPLES[law], tmp_path)
    found = next(one for one in situation.findings if one.law == law)
    place = str(situation.path.relative_to(tmp_path))
    text = hint if "segproof" in hint else hint.replace("DIR", place).replace("STORE", place)
    planted = with_paths(Hint(text, hint.effect), found.path, found.reproduce.split()[2])
    with pytest.raises(AssertionError, match=words):
        check_followed(replace(found, hint=planted), situation, tmp_path, capsys)


def test_a_lost_message_is_seen(tmp_path: Path) -> None:
    """The reader that counts messages sees one changed byte, in a batch and in a message."""
    for law, change in (
        ("SEG-7", overwrite(LOG, 90, b"#")),
        ("RMQDISK-16", overwrite(STORE_LOG, 230, b"#")),
    ):
        folder = tmp_path / law
        folder.mkdir()
        path = damaged_copy(EXAMPLES[law], folder)
        before = messages_in(path)
        change(path)
        assert (before - messages_in(path)).total() == 1


def test_a_folder_that_a_broker_has_set_aside_is_saved_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """A salvage refuses the folder itself: the printed command failed."""
    monkeypatch.chdir(tmp_path)
    whole = copied_partition("plain", tmp_path / "data")
    aside = whole.rename(tmp_path / "data" / f"plain-0.{7:032x}-stray")
    put_bytes(aside / name_of(60, ".log"), 90_000, bytes(9000))
    found = next(one for one in verify(aside) if "segproof salvage" in one.hint)
    for command in followed_commands(found.hint):
        run_command(command, tmp_path, capsys)
    assert (tmp_path / "saved" / "plain-0").is_dir()
