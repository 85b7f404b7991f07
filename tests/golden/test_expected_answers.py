# SPDX-License-Identifier: Apache-2.0
"""Real files that ship with the package, and what the real classes answered about them.

Every recorded answer is compared: entries, batches, lookups by offset and time, upper bounds,
aborted transactions. First through the functions, then through the command line itself.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from segproof_harness.cli import run
from segproof_harness.conformance.recorded_answers import compare_scenario, older_releases
from segproof_harness.files.shipped_directories import load_expected, partition_of, scenarios
from segproof_model.releases import release_named
from segproof_tests.printed_rows import Capsys

SCENARIOS = scenarios()
PROFILE = "kafka-4.3.1"


def name(scenario: Path) -> str:
    """Return a scenario's name, for a test's id."""
    return scenario.name


def rows(capsys: Capsys, *arguments: str) -> list[dict[str, Any]]:
    """Run a command line and return the objects it printed."""
    assert 0 == run([*arguments, "--format", "jsonl"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_enough_scenarios_are_carried() -> None:
    """The five directories that the project promises to carry are there."""
    promised = {"plain", "txn-a", "v1-gzip", "compacted", "unclean-before"}
    assert promised <= {scenario.name for scenario in SCENARIOS}


ANSWERED = (
    "ABSIDX-4", "OFFIDX-1", "OFFIDX-11", "OFFIDX-15", "TIMEIDX-1", "TIMEIDX-10", "TXNIDX-1",
    "TXNIDX-7", "TXNIDX-10", "TXNIDX-11", "BATCH-1", "BATCH-4", "SCAN-5", "SCAN-17", "SCAN-18",
)  # fmt: skip
"""Laws without which some recorded answer would differ."""


@pytest.mark.checks(*ANSWERED)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_model_answers_as_the_release_did(scenario: Path) -> None:
    """Under the profile of a release every recorded answer of it is equal, zero tails and all."""
    newest = compare_scenario(scenario, release_named(PROFILE))
    assert [] == newest.mismatches
    assert newest.compared["offset_queries"] > 300
    assert newest.compared["time_queries"] > 150
    for release in older_releases(scenario):
        older = compare_scenario(scenario, release_named(f"kafka-{release}"), release)
        assert [] == older.mismatches
        assert older.total > 1000


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_implementation_answers_as_the_release_did(scenario: Path) -> None:
    """Wherever the index files have no zero tail, our own answers equal the recorded ones."""
    tally = compare_scenario(scenario, None)
    assert [] == tally.mismatches
    assert tally.total > 1000


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_dump_shows_the_recorded_entries(scenario: Path, capsys: Capsys) -> None:
    """`dump` of each file gives the entries and batches; under a profile the zero tail too."""
    partition = partition_of(scenario)
    for segment in load_expected(scenario)["segments"]:
        stem = partition / f"{segment['base']:020d}"
        entries = rows(capsys, "dump", f"{stem}.index")
        assert segment["index"] == [list(row.values()) for row in entries]
        as_found = rows(capsys, "dump", f"{stem}.index", "--profile", PROFILE)
        assert segment["index_entries_count"] == len(as_found)
        times = rows(capsys, "dump", f"{stem}.timeindex")
        assert segment["timeindex"] == [[row["timestamp"], row["offset"]] for row in times]
        for profile in ("segproof", PROFILE):
            batches = rows(capsys, "dump", f"{stem}.log", "--profile", profile)
            assert [batch[:6] for batch in segment["batches"]] == [
                [
                    row[field]
                    for field in (
                        "base_offset", "last_offset", "position", "size", "magic", "compression",
                    )
                ]
                for row in batches
            ]  # fmt: skip
            assert [batch[15] for batch in segment["batches"]] == [
                row["record_count"] for row in batches
            ]


@pytest.mark.parametrize("profile", ["segproof", PROFILE])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_lookup_finds_the_first_batch_that_reaches_the_offset(
    scenario: Path, profile: str, tmp_path: Path, capsys: Capsys
) -> None:
    """Across segments `lookup` gives the first recorded batch whose last offset is not below."""
    segments = load_expected(scenario)["segments"]
    batches = [
        (segment["base"], *batch[:4]) for segment in segments for batch in segment["batches"]
    ]
    first, end = batches[0][0], batches[-1][2] + 1
    targets = sorted({first, end - 1, *range(first, end, max(1, (end - first) // 60))})
    asked = tmp_path / "offsets"
    asked.write_text("".join(f"{target}\n" for target in targets), encoding="ascii")
    answers = rows(
        capsys, "lookup", str(partition_of(scenario)), "--offsets", str(asked), "--profile", profile
    )
    assert targets == [row["target"] for row in answers]
    for row in answers:
        base, base_offset, _, position, size = next(
            batch for batch in batches if batch[2] >= row["target"]
        )
        found = [row[f"batch_{field}"] for field in ("base_offset", "position", "size")]
        assert [base_offset, position, size] == found
        assert base == row["segment_base_offset"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name)
def test_lookup_by_time_finds_the_first_record_of_the_first_segment(
    scenario: Path, capsys: Capsys
) -> None:
    """A timestamp is answered by the first segment that reaches it, with the recorded record."""
    segments = load_expected(scenario)["segments"]
    largest = [max(batch[6] for batch in segment["batches"]) for segment in segments]
    for number, segment in enumerate(segments):
        own = [
            query
            for query in segment["time_queries"]
            if not segment["time_zero_tail"]
            and max(largest[:number], default=-1) < query[0] <= largest[number]
        ][:10]
        for query in own:
            answer = rows(
                capsys, "lookup", str(partition_of(scenario)), "--timestamp", str(query[0])
            )[0]
            assert [query[0], *query[3]] == [
                answer["target"], answer["timestamp"], answer["offset"],
            ]  # fmt: skip
