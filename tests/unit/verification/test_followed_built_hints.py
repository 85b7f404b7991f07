# SPDX-License-Identifier: Apache-2.0
"""Each hint that a function builds has a situation that makes it, and is followed to its end.

So is each constant that changes or removes files and that a check gives in the place of a rule's.

bash reads the commands as they are printed. Where a hint that changes files prints no command,
`Situation.step` says in code what a person does. Afterwards no message is gone that was there
before; the damaged directory is as it was, unless the hint changes files; `verify` tells the
finding no more, and no new error.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from segproof.findings import Finding
from segproof.hints import Effect, Hint
from segproof.verification import verify
from segproof_tests import given_hints, partition_hints, store_hints
from segproof_tests.built_hints import Situation, built_by, finding_with
from segproof_tests.followed_hints import errors_of, run_command
from segproof_tests.hint_commands import commands_in, is_run, unknown_commands
from segproof_tests.hint_places import built_places, constants, places_in
from segproof_tests.hint_words import faults_of
from segproof_tests.plain_reader import readable_in
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import state_of

SITUATIONS = {
    f"{one.place}: {one.words}": one
    for one in (
        *partition_hints.SITUATIONS,
        *store_hints.SITUATIONS,
        *given_hints.SITUATIONS,
    )
}
CHANGING = (Effect.CHANGES_FILES, Effect.REMOVES)


def found_in(situation: Situation, folder: Path) -> tuple[Hint, Finding | None, list[Finding]]:
    """Return the hint that a situation makes, with the finding that has it, and all findings."""
    hints, findings = built_by(situation, folder)
    assert hints, f"no hint is built at {situation.place}"
    if not situation.law:
        return hints[0], None, findings
    for hint in hints:
        found = finding_with(hint, situation.law, findings)
        if found is not None:
            return hint, found, findings
    raise AssertionError(f"no finding of {situation.law} has the hint of {situation.place}")


def _state(folder: Path) -> tuple[object, ...]:
    """Return the state of each file, and the names of files, links and folders."""
    return state_of(folder), sorted(folder.rglob("*"))


def check_followed(
    hint: Hint, found: Finding, before: list[Finding], situation: Situation, folder: Path,
    capsys: Capsys,
) -> None:  # fmt: skip
    """Follow the hint of a finding, and fail for what it costs, and for what it leaves."""
    commands = [one for one in commands_in(found.hint) if is_run(one)]
    place = situation.place
    is_changing = hint.effect in CHANGING
    assert commands or situation.step or not is_changing, f"nobody follows the hint of {place}"
    data = folder / "data"
    readable, state, there = readable_in(folder), _state(data), {*folder.iterdir()}
    for command in commands:
        run_command(command, folder, capsys)
    if situation.step is not None:
        situation.step(folder)
    lost = readable - readable_in(folder)
    assert not lost, f"the hint of {place} loses {len(lost)} messages"
    changed = state != _state(data)
    assert changed is is_changing, f"the hint of {place} changes what is there, or nothing"
    made = sorted(one for one in {*folder.iterdir()} - there if one.is_dir())
    if is_changing:
        again = situation.shown()
    else:
        again = [one for path in made for one in verify(path.name, deep=situation.deep)]
        lacking = readable_in(*(folder / one for one in situation.holds)) - readable_in(*made)
        assert not lacking, f"what the hint of {place} makes lacks {len(lacking)} messages"
    begin = found.hint.partition("`")[0]
    still = [one for one in again if one.is_defect and one.hint.startswith(begin)]
    assert not still, f"the hint of {place} leaves {still[0].message}"
    new = errors_of(again) - errors_of(before)
    assert not new, f"the hint of {place} makes new errors: {new}"


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_built_hint_is_followed(
    name: str, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the page nor a test had any of these hints, since no constant has their words."""
    folder = tmp_path / "here"
    folder.mkdir()
    hint, found, findings = found_in(SITUATIONS[name], folder)
    assert unknown_commands(hint) == []
    assert faults_of(hint) == []
    if found is not None:
        monkeypatch.chdir(folder)
        check_followed(hint, found, findings, SITUATIONS[name], folder, capsys)


def test_each_built_hint_has_a_situation() -> None:
    """A call that builds a hint in a function, and that no situation reaches, is named here."""
    places = {one.name for one in built_places()}
    assert len(places) > 30
    followed = {one.place for one in SITUATIONS.values()} - constants().keys()
    assert followed ^ places == set()


def test_each_constant_that_changes_files_has_a_situation() -> None:
    """The steps of rules were followed, and no constant that a check gives in their place."""
    changing = {name for name, hint in constants().items() if hint.effect in CHANGING}
    assert len(changing) > 10
    followed = {one.place for one in SITUATIONS.values()} & constants().keys()
    assert followed & given_hints.ELSEWHERE.keys() == set()
    assert (followed | given_hints.ELSEWHERE.keys()) ^ changing == set()


NEW_PLACE = """
def steps(path):
    return writes(f"copy {path} away: `cp -a {path} kept`")
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (NEW_PLACE, 1),
        ("def one():\n    return HINT.after('first ')\n", 1),
        ("def one():\n    return reads(WORDS)\n", 1),
        ("def one():\n    return [writes(words) for words in PARTS]\n", 1),
        ("make = lambda path: writes(f'copy {path} away')\n", 1),
        ("class One:\n    def two(self):\n        return lambda: Hint(self.words, effect)\n", 1),
        ("def one():\n    return writes('copy it away with `cp -a DIR DIR2`')\n", 1),
        ("def one():\n    return changes('x', only_if='a', if_wrong='b', copy_step='c')\n", 1),
        ("def one(path):\n    return steps(path, writes(f'a {path}'), reads('b ' + path))\n", 2),
        ("def one():\n    return reads('nothing: no broker reads it')\n", 0),
        ("HINT = writes('copy the file away')\n", 0),
    ],
)
def test_a_new_place_is_seen(text: str, count: int, tmp_path: Path) -> None:
    """Also in a lambda, in a list, and where the words or the hint are those of a constant."""
    (tmp_path / "new.py").write_text(text)
    assert len(places_in(tmp_path / "new.py", tmp_path)) == count


INNER = "verifying/inner_folders._steps: a log lies in a folder in its partition"
PACKED = f"{store_hints.PUT_BACK}: a file of the log lies in a folder in it, packed as .gz"
TWO_FOLDERS = "reading/joined_logs.how_to_join: later files of the log lie in another folder"
NO_ID = "verifying/sibling_files._write_id: a partition lacks its topic id"
FIRST_LOG = f"data/store/commitlog/{0:020d}"
INTO = "data/store/commitlog/d2/*.gz >"
HARMFUL = [
    (INNER, "rm -r data/t-0/old", "loses"),
    (INNER, "mv data/t-0/old/* data/t-0", "changes what is there"),
    (INNER, "cp -a data/t-0 copied", "leaves"),
    (INNER, "cp -a data/t-0/old copied", "lacks"),
    (INNER, "cp -a data/t-0 data/t-1 copied", "ended with 1"),
    (INNER, "install -d joined", "lacks"),
    (PACKED, f"gzip -dc {INTO} {FIRST_LOG}", "loses"),
    (PACKED, f"gzip -dc {INTO} kept", "changes what is there, or nothing"),
    (PACKED, "gzip -d data/store/commitlog/d2/*.gz", "leaves"),
    (PACKED, "segproof verify DIR2", "ended with 2"),
    (TWO_FOLDERS, "ln -s $PWD/data/other/* data/store/commitlog/", "changes what is there"),
    (TWO_FOLDERS, "install -d NEW/commitlog && ln -s data/other/* NEW/commitlog/", "lacks"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command", "words"), HARMFUL)
def test_a_planted_built_hint_that_harms_is_caught(
    name: str, command: str, words: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys,
) -> None:  # fmt: skip
    """One that removes, overwrites, makes too little, or has a command that does not run."""
    folder = tmp_path / "here"
    folder.mkdir()
    hint, found, findings = found_in(SITUATIONS[name], folder)
    assert found is not None
    begin = found.hint.partition("`")[0]
    planted = replace(found, hint=f"{begin}`{command}`")
    monkeypatch.chdir(folder)
    with pytest.raises(AssertionError, match=words):
        check_followed(hint, planted, findings, SITUATIONS[name], folder, capsys)


def _remove_what_the_link_leads_to(folder: Path) -> None:
    (folder / "data" / "b" / "t-0").unlink()
    shutil.rmtree(folder / "data" / "a" / "t-0")


def _remove_the_log_too(folder: Path) -> None:
    for path in (folder / "data" / "t-0").iterdir():
        path.unlink()


def _write_another_bootstrap(folder: Path) -> None:
    (folder / "data" / given_hints.SNAPSHOT.name).write_bytes(bytes(99))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constant", "step", "words"),
    [
        ("verifying/log_directories.HINT_OF_LINK", _remove_what_the_link_leads_to, "loses"),
        ("verifying/partition_names.MOVE_OUT_INDEX", _remove_the_log_too, "loses"),
        ("verifying/metadata_snapshots.OF_BOOTSTRAP", _write_another_bootstrap, "loses"),
        ("reading/config_lacks.FEWER", lambda folder: None, "or nothing"),
    ],
)
def test_a_planted_step_that_harms_is_caught(
    constant: str, step: Callable[[Path], object], words: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys,
) -> None:  # fmt: skip
    """One that removes what is not told, mends nothing, or does nothing."""
    known = next(one for one in given_hints.SITUATIONS if one.place == constant)
    situation = replace(known, step=step)
    hint, found, findings = found_in(situation, tmp_path)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=words):
        check_followed(hint, found, findings, situation, tmp_path, capsys)


def test_a_built_hint_that_nobody_follows_is_caught(tmp_path: Path, capsys: Capsys) -> None:
    """One that changes files, prints no command and has no step."""
    situation = replace(SITUATIONS[NO_ID], step=None)
    hint, found, findings = found_in(situation, tmp_path)
    assert found is not None
    with pytest.raises(AssertionError, match="nobody follows"):
        check_followed(hint, found, findings, situation, tmp_path, capsys)
