# SPDX-License-Identifier: Apache-2.0
"""Wrong command lines: each gets one plain sentence, and what to type."""

import re
import shlex
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA
from segproof_tests.printed_rows import Capsys

COMMAND = re.compile(r" +(segproof|spark-submit|echo|--decoder) ")
PARTITION = str(KAFKA / "plain" / "plain-0")


def told(capsys: Capsys, *arguments: str) -> list[str]:
    """Run a wrong command line and return the lines of its complaint."""
    assert 2 == cli.run(arguments)
    printed = capsys.readouterr()
    assert "" == printed.out
    return printed.err.splitlines()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("verfy .", "segproof has no verb 'verfy'; did you mean verify?"),
        ("oracle lst", "oracle has no verb 'lst'; did you mean list?"),
        ("verify . --sumary", "verify has no option --sumary; did you mean --summary?"),
        ("verify . --jobs x", "--jobs: 'x' is no whole number"),
        ("verify . --watch x", "--watch: 'x' is no number"),
        (
            "explain kafka-4.4.0 Log",
            "no class 'Log' that this release has otherwise; it is the newest",
        ),
        ("verify . --jobs 0", "--jobs: 0 is too small; the least is 1"),
        ("replay --length 100001", "--length: 100001 is too large; the most is 100000"),
        (
            "dump . --format json",
            "--format: 'json' is not one of 'text', 'jsonl', 'csv', 'parquet'; did you mean jsonl?",
        ),
        (
            "dump . --from 2x",
            "--from: '2x' is no offset and no time; write 4711 or 2026-11-21T01:00Z",
        ),
        ("dump . --from 5 --to 5", "--to must be larger than --from: it is exclusive"),
        ("dump a b", "dump takes no further argument: b"),
        ("verify --jobs", "--jobs requires an argument"),
    ],
)
def test_a_wrong_word_is_named(arguments: str, expected: str, capsys: Capsys) -> None:
    """The complaint has the value, the nearest known word, and no words of a library."""
    first, *rest = told(capsys, *arguments.split())
    assert f"segproof: {expected}" == first
    assert all(re.fullmatch(r"  all (options|verbs): `segproof .*-h`", line) for line in rest)


@pytest.mark.parametrize("verb", ["salvage", "report"])
def test_a_missing_option_is_said_with_a_command_to_paste(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """The example is the own command line with the option; where it can write, it works."""
    monkeypatch.chdir(tmp_path)
    first, second, _ = told(capsys, verb, PARTITION)
    assert re.match(rf"segproof: {verb} needs --out (DIR|FILE): \S", first)
    command = second.removeprefix("  example: `segproof ").removesuffix("`")
    words = [word.replace("/mnt/", "") for word in shlex.split(command)]
    assert 0 == cli.run(words)
    assert [Path(words[-1])] == [path.relative_to(tmp_path) for path in tmp_path.iterdir()]


def verbs() -> list[tuple[str, ...]]:
    """Return each verb, and each below another one, as the words of its call."""
    command = cli._command(cli._entry_points())
    found: list[tuple[str, ...]] = [()]
    for name, verb in command.commands.items():
        found.append((name,))
        found += [(name, below) for below in getattr(verb, "commands", {})]
    return found


def test_each_help_speaks_of_values_and_not_of_python(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No type of Python, no x in a bound, no sentence cut off; only commands are long lines."""
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        for words in verbs():
            assert 0 == cli.run([*words, "-h"])
            shown = capsys.readouterr().out
            wrong = re.findall(r"<(?:list\[|int|str|path|Path).*|\bx[<>]=.*|.*\.\.\.$", shown, re.M)
            assert [] == [line for line in wrong if not line.startswith("Usage: ")], words
            wide = [line for line in shown.splitlines() if len(line) > columns]
            assert all(COMMAND.match(line) for line in wide), words
