# SPDX-License-Identifier: Apache-2.0
"""What `verify` checks if it is asked for files that have changed since a time."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from segproof.findings import Finding, Summary
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_tests.partition_files import copied_partition
from segproof_tests.printed_rows import Capsys

OLD_S, SINCE_S = 1_700_000_000, 1_750_000_000
NAMES = ("plain", "txn-a", "compacted")


def aged(folder: Path, changed: Iterable[Path] = ()) -> Path:
    """Return a folder with old files, but for those that have changed."""
    for path in folder.rglob("*"):
        os.utime(path, (OLD_S, OLD_S))
    os.utime(folder, (OLD_S, OLD_S))
    for path in changed:
        os.utime(path, (SINCE_S, SINCE_S))
    return folder


def found_since(path: Path) -> tuple[list[Finding], list[Summary], list[tuple[str, int]]]:
    """Return the findings, the summaries, and what was left out."""
    summaries: list[Summary] = []
    left_out: list[tuple[str, int]] = []
    found = verify(
        path,
        on_summary=summaries.append,
        since_ms=SINCE_S * 1000,
        on_left_out=lambda *told: left_out.append(told),
    )
    return list(found), summaries, left_out


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_partition_is_checked_from_its_first_changed_segment_on(
    name: str, tmp_path: Path
) -> None:
    """Whichever segment that is, what is left out before it makes no defect of the rest."""
    folder = copied_partition(name, tmp_path)
    logs = sorted(folder.glob("*.log"))
    for number, log in enumerate(logs):
        found, (summary,), left_out = found_since(aged(folder, [log.with_suffix(".index")]))
        assert not any(one.is_defect for one in found)
        assert len(logs) - number == summary.segments
        assert int(log.stem) == summary.first_offset
        assert ([(str(folder), number)] if number else []) == left_out
    assert 1 < len(logs)


def test_damage_is_found_in_changed_segments_alone(tmp_path: Path) -> None:
    """The time of a file decides, and not its content."""
    folder = copied_partition("plain", tmp_path)
    old, changed = sorted(folder.glob("*.index"))[1:3]
    for path in (old, changed):
        path.write_bytes(b"\1" * 16)
    found, _, _ = found_since(aged(folder, [changed]))
    assert {str(changed)} == {one.path for one in found if one.is_defect}
    assert ([], []) == found_since(aged(folder))[:2]


@pytest.mark.slow
def test_a_store_is_checked_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """One changed file of a queue is enough; a removed one has changed its folder."""
    assert 0 == cli.run(["demo", "--copy-to", str(tmp_path / "dumps")])
    store = tmp_path / "dumps" / "rocketmq" / "small-4.9.8"
    assert ([], [], [(str(store), 0)]) == found_since(aged(store))
    queue = next(path for path in store.rglob("consumequeue/*/*/*") if path.is_file())
    (summary,) = found_since(aged(store, [queue]))[1]
    assert ("store", 12) == (summary.kind, summary.batches)
    aged(store)
    queue.unlink()
    assert 1 == len(found_since(store)[1])


def test_the_verb_says_what_it_left_out(tmp_path: Path, capsys: Capsys) -> None:
    """On stderr, in the verdict and as JSON."""
    folder = copied_partition("plain", tmp_path)
    last = max(folder.glob("*.log"))
    aged(folder)
    os.utime(last)
    words = ["verify", str(tmp_path), "--summary", "--jobs", "1"]
    assert 0 == cli.run([*words, "--since", "2h"])
    shown = capsys.readouterr()
    assert "; only files changed since 20" in shown.out
    assert "not checked: 8 segments of 1 partition older than 20" in shown.err
    assert 0 == cli.run([*words, "--since", "2025-06-15T15:06:40Z", "--format", "jsonl"])
    assert "2025-06-15T15:06:40.000Z" == json.loads(capsys.readouterr().out)["since"]
    aged(folder)
    assert 0 == cli.run([*words, "--since", "1d"])
    shown = capsys.readouterr()
    assert ("", True) == (shown.out, "not checked: 9 segments of 1 partition older" in shown.err)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("2x", "'2x' is no time; write 2h, 7d, 2026-"),
        ("9999-01-01T00:00Z", "lies in the future"),
        ("999999999d", "lies before 1970"),
        ("2026-01-01", "has no time zone"),
    ],
)
def test_a_time_that_cannot_be_meant_is_usage(given: str, words: str, capsys: Capsys) -> None:
    """With a time in the future nothing would be checked."""
    path = str(partition_of(next(iter(scenarios()))))
    assert 2 == cli.run(["verify", path, "--since", given])
    assert words in capsys.readouterr().err
