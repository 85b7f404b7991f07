# SPDX-License-Identifier: Apache-2.0
"""The file segproof.toml: findings to ignore, defaults of options, and mistakes in it."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from segproof_harness import cli
from segproof_harness.cli.configuration import BYTES_MAX, FILE_NAME, VARIABLE
from segproof_harness.pytest_plugin import AssertSound
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.printed_rows import Capsys

LOST = '[[ignore]]\nlaw = "disk-5"\nreason = "restored"\n'


@pytest.fixture
def partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a partition with two notes, and one lost index, in the working directory."""
    folder = copied_partition("plain", tmp_path)
    (folder / name_of(60, ".index")).unlink()
    monkeypatch.chdir(tmp_path)
    return Path(folder.name)


def write(text: str, path: str = FILE_NAME) -> None:
    """Write a configuration file."""
    Path(path).write_text(text, encoding="utf-8")


def verify(capsys: Capsys, partition: Path, *options: str, code: int = 0) -> tuple[list[Any], str]:
    """Return the objects that `verify --format jsonl` writes, and what it says on stderr."""
    assert code == cli.run(["verify", str(partition), "--jobs", "1", "--format", "jsonl", *options])
    shown = capsys.readouterr()
    return [json.loads(line) for line in shown.out.splitlines()], shown.err


def test_an_ignored_finding_is_counted_and_raises_no_exit_code(
    partition: Path, capsys: Capsys
) -> None:
    """The verdict stays that of the files; --no-ignore shows all, and notes are not touched."""
    before, _ = verify(capsys, partition, code=1)
    write(LOST + f'path = "{partition}"\n')
    after, closing = verify(capsys, partition)
    assert "/segproof.toml: 1 finding of DISK-5 in plain-0 ignored: restored\n" in closing
    assert "0 errors, 0 warnings, 2 notes in " in closing
    assert "1 finding ignored, --no-ignore shows them\n" in closing
    assert {**before[-1], "ignored": 1} == after[-1]
    assert [one for one in before[:-1] if "DISK-5" not in str(one)] == after[:-1]
    assert before == verify(capsys, partition, "--no-ignore", code=1)[0]


def test_every_report_leaves_ignored_findings_out(
    partition: Path, capsys: Capsys, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SARIF has no result of them, JUnit no case, the page no cause; text and page count them."""
    write(LOST)
    words = ["verify", str(partition), "--jobs", "1", "--no-notes"]
    assert 0 == cli.run([*words, "--format", "sarif"])
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert ([], 1) == (told["results"], told["properties"]["summaries"][0]["ignored"])
    assert 0 == cli.run([*words, "--format", "junit"])
    suites = ElementTree.fromstring(capsys.readouterr().out)
    assert ["verify"] == [case.get("name") for case in suites.iter("testcase")]
    assert 0 == cli.run(words)
    counted = "; 1 warning; 1 finding ignored by the configuration file"
    assert capsys.readouterr().out.endswith(f"{counted}\n")
    page = tmp_path_factory.mktemp("page") / "page.html"
    assert 0 == cli.run(["report", *words[1:], "--out", str(page)])
    assert counted in page.read_text(encoding="utf-8")
    assert "DISK-5" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("pattern", "is_ignored"),
    [
        ("plain-0", True),
        ("plain-*", True),
        ("*-0/*60.log", True),
        ("{folder}", True),
        ("{folder}/plain-0/*.log", True),
        ("plain", False),
        ("*.index", False),
        ("{folder}/plain-0/0.log", False),
        ("plain-0/*/*", False),
        ("plain-1", None),
        ("*-9/plain-*/*60.log", None),
        ("/plain-0", None),
        ("{folder}/other", None),
    ],
)
def test_a_path_names_a_file_or_a_folder_with_all_its_files(
    pattern: str, is_ignored: bool | None, partition: Path, capsys: Capsys
) -> None:
    """A relative one fits the end of the path. An entry that matches nothing is named, unless it
    means a place that was not checked (None)."""
    write(LOST + f'path = "{pattern.format(folder=Path.cwd())}"\n')
    _, closing = verify(capsys, partition, "--no-notes", code=0 if is_ignored else 1)
    assert (is_ignored is False) == (": matched no finding of this run\n" in closing)
    restricted = verify(capsys, partition, "--law", "SEG-7")[1]
    assert "matched no finding" not in restricted


def test_an_entry_ignores_up_to_its_last_day(partition: Path, capsys: Capsys) -> None:
    """After that the finding is back, and a line says why."""
    write(LOST + "until = 9999-12-31\n")
    assert "ignored: restored" in verify(capsys, partition)[1]
    write(LOST + "until = 2020-02-29\n")
    _, closing = verify(capsys, partition, code=1)
    assert "DISK-5: no longer ignored, since 2020-02-29 has passed\n" in closing


def test_options_have_their_defaults_from_the_nearest_file(
    partition: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line wins, then --config, then the variable, then the file above."""
    write('[verify]\nno-notes = true\nlaw = ["DISK-5"]\nfail-on = "error"\nmax-findings = 7\n')
    monkeypatch.chdir(partition)
    assert ["DISK-5"] == verify(capsys, Path())[0][-1]["laws"]
    assert ["SEG-7"] == verify(capsys, Path(), "--law", "SEG-7")[0][-1]["laws"]
    assert 1 == cli.run(["verify", ".", "--fail-on", "warning"])
    capsys.readouterr()
    write("[verify]\ndeep = true\n", "other.toml")
    monkeypatch.setenv(VARIABLE, "no/such.toml")
    assert verify(capsys, Path(), "--config", "other.toml", code=1)[0][-1]["deep"]
    assert 0 == cli.run(["--config", "../segproof.toml", "verify", "."])
    assert 2 == cli.run(["verify", "."])
    assert "segproof: no/such.toml: no such file or directory\n" in capsys.readouterr().err
    assert 0 == cli.run(["verify", "--help"])
    write('[ls]\nformat = "jsonl"\n', "other.toml")
    capsys.readouterr()
    assert 0 == cli.run(["ls", ".", "--config", "other.toml"])
    assert capsys.readouterr().out.startswith('{"kind": "partition"')


def test_assert_sound_takes_only_what_to_ignore(partition: Path, assert_sound: AssertSound) -> None:
    """An option once let a test pass that should fail, and with `watch` one did not end."""
    write('[verify]\nlaw = ["SEG-7"]\nwatch = 1\n')
    with pytest.raises(pytest.fail.Exception, match="DISK-5"):
        assert_sound(partition)
    with pytest.raises(pytest.fail.Exception, match="give --watch on the command line"):
        assert_sound(partition, "--config", FILE_NAME)
    write(LOST)
    assert_sound(partition)


def test_no_color_wins_over_the_file(
    partition: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment stands above the file, and below the command line."""
    write('[verify]\ncolor = "always"\n')
    for value, options, is_colored in (
        ("", "", True),
        ("1", "", False),
        ("1", "--color always", True),
    ):
        monkeypatch.setenv("NO_COLOR", value)
        assert 1 == cli.run(["verify", str(partition), *options.split()])
        assert is_colored == ("\x1b[" in capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[verifi]", "[verifi]: no verb 'verifi'; did you mean verify?"),
        ("[oracle.chek]", "[oracle.chek]: no verb 'chek'; did you mean check?"),
        ("[ls]\ndeep = true", "[ls]: no option 'deep'; known: segments, format"),
        ("verify = 1", "verify: give the options of this verb below a line [verify]"),
        ('[verify]\nfail_on = "error"', "[verify]: no option 'fail_on'; did you mean fail-on?"),
        ("[verify]\njobs = 0", "[verify]: jobs: "),
        ('[verify]\nformat = "xml"', "[verify]: format: "),
        ("[verify]\njobs = [1]", "[verify]: jobs: write text or a number, not [1]"),
        ("[verify]\njobs = true", "[verify]: jobs: write text or a number, not true"),
        ('[verify]\ndeep = "yes"', '[verify]: deep: write true or false, not "yes"'),
        ('[verify]\nlaw = "SEG-7"', "[verify]: law: write a list "),
        ('[verify]\nlaw = ["SGE-7"]', "[verify]: law: verify does not check SGE-7; did you mean"),
        ("\ufeff[verify]\njobs = 0", "[verify]: jobs: 0 is too small"),
        ("[rebuild]\nin-place = true", "give --in-place on the command line: it changes data"),
        ("[verify]\nwatch = 3", "give --watch on the command line: with it the call does not end"),
        ("ignore = 1", "ignore: begin each entry with a line [[ignore]]"),
        (LOST + '[[ignore]]\nlaw = "SEG-7"', "[[ignore]] 2: has no reason"),
        (LOST + "untill = 2026-12-31", "[[ignore]] 1: no key 'untill'; did you mean until?"),
        (LOST + 'until = "2026-12-31"', "[[ignore]] 1: until: write a day without quotes"),
        (LOST + 'path = "a/**"', "[[ignore]] 1: path: name a file, or a folder"),
        (LOST + 'path = "."', "[[ignore]] 1: path: name a file, or a folder"),
        (LOST + 'path = "../plain-0"', "[[ignore]] 1: path: name a file, or a folder"),
        (LOST.replace("disk-5", "DIKS-5"), "[[ignore]] 1: law: verify does not check DIKS-5; did"),
        ("[verify", "no TOML: "),
        ("a = " + "[\n" * 100_000, "nested too deep"),
        ("[verify]\na" + ".a" * 50_000 + " = 1", "line 2 has more than 1000 bytes"),
        ("#" * (BYTES_MAX + 1), f"more than {BYTES_MAX} bytes"),
    ],
    ids=lambda text: text[:30],
)
def test_a_mistake_names_the_file_and_the_key(
    text: str, words: str, partition: Path, capsys: Capsys
) -> None:
    """One line, exit code 2, and nothing is checked."""
    write(text, "wrong.toml")
    assert 2 == cli.run(["verify", str(partition), "--config", "wrong.toml"])
    shown = capsys.readouterr()
    assert "" == shown.out
    assert shown.err.startswith("segproof: wrong.toml: ")
    assert words in shown.err
    assert 1 == shown.err.count("\n")


def test_a_file_of_other_bytes_or_a_directory_is_refused(partition: Path, capsys: Capsys) -> None:
    """A log that is given in place of a configuration file, for instance."""
    for path in (str(partition / name_of(0, ".log")), str(partition)):
        assert 2 == cli.run(["verify", str(partition), "--config", path])
        shown = capsys.readouterr().err
        assert (1, True) == (shown.count("\n"), shown.startswith(f"segproof: {path}: "))


def test_a_file_that_was_found_is_named_with_its_options(
    partition: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lie in a directory above, forgotten; one that the user names is known."""
    write('[verify]\nfail-on = "error"\nno-notes = true\n')
    (Path.cwd() / "below").mkdir()
    monkeypatch.chdir("below")
    words = ["verify", str(Path("..", partition))]
    assert 0 == cli.run(words)
    found = Path("..", FILE_NAME).resolve()
    assert f"segproof: options from {found}: fail-on, no-notes\n" in capsys.readouterr().err
    assert 0 == cli.run([*words, "--config", str(found)])
    assert "options from" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words", "section", "keys"),
    [
        ('[verify]\nsummary = true\nformat = "junit"', ["verify", "t-0"], "verify",
         "summary, format"),
        ('[replay]\nsubjects = "model,no"', ["replay"], "replay", "subjects"),
        ('[rebuild]\nout = "x"\nbackup = "y"\nall = true', ["rebuild", "t-0"], "rebuild",
         "out, backup"),
        ('[oracle.run]\nstructure = "none"', ["oracle", "run"], "oracle.run", "structure"),
    ],
    ids=["two options", "a value", "not a third one", "a verb below a verb"],
)  # fmt: skip
def test_a_refusal_says_where_its_options_were_set(
    text: str,
    words: list[str],
    section: str,
    keys: str,
    partition: Path,
    capsys: Capsys,
) -> None:
    """A verb found out that a value does not fit, and named an option that was not typed."""
    write(text, "own.toml")
    paths = [str(partition) if one == "t-0" else one for one in words]
    assert 2 == cli.run([*paths, "--config", "own.toml"])
    refusal, origin = capsys.readouterr().err.splitlines()
    assert f"  set in own.toml: [{section}]: {keys}" == origin
    assert refusal.startswith("segproof: ")


def test_an_option_of_the_command_line_has_no_section(partition: Path, capsys: Capsys) -> None:
    """Where both say it, the command line counts; a path that is missing has nothing to do."""
    write('[verify]\nformat = "junit"')
    assert 2 == cli.run(["verify", str(partition), "--watch", "3", "--format", "sarif"])
    assert 2 == cli.run(["verify", "no-such-path"])
    assert "set in" not in capsys.readouterr().err
