# SPDX-License-Identifier: Apache-2.0
"""Wrong command lines: each gets one plain sentence, and what to type."""

import re
import shlex
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA

PARTITION = str(KAFKA / "plain" / "plain-0")


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
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
        ("dump a b", "dump takes no further argument: b"),
        ("verify --jobs", "--jobs requires an argument"),
    ],
)
def test_a_wrong_word_is_named(
    arguments: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The complaint has the value, the nearest known word, and no words of a library."""
    first, *rest = told(capsys, *arguments.split())
    assert f"segproof: {expected}" == first
    assert all(re.fullmatch(r"  all (options|verbs): `segproof .*-h`", line) for line in rest)


@pytest.mark.parametrize("verb", ["salvage", "report"])
def test_a_missing_option_is_said_with_a_command_to_paste(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example is the own command line with the option; where it can write, it works."""
    monkeypatch.chdir(tmp_path)
    first, second, _ = told(capsys, verb, PARTITION)
    assert re.match(rf"segproof: {verb} needs --out (DIR|FILE): \S", first)
    command = second.removeprefix("  example: `segproof ").removesuffix("`")
    words = [word.replace("/mnt/", "") for word in shlex.split(command)]
    assert 0 == cli.run(words)
    assert [Path(words[-1])] == [path.relative_to(tmp_path) for path in tmp_path.iterdir()]
