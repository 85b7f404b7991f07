# SPDX-License-Identifier: Apache-2.0
"""Rebuilt indexes of real directories against what the real LogSegment.recover made of them.

`expected.json` has the entries of a recovery by Kafka 4.3.1 with the interval and the index size
that it names, from the producer snapshot of each segment.
"""

from pathlib import Path
from typing import Any

import pytest

from segproof import rebuild, verify
from segproof.kafka import OffsetIndex, TimeIndex, TransactionIndex
from segproof_harness.files.shipped_directories import load_expected, partition_of, scenarios

SCENARIOS = scenarios()
SIZES = {".index": 8, ".timeindex": 12, ".txnindex": 34}
"""Bytes of an entry."""


def recovered(segment: dict[str, Any]) -> list[Any]:
    """Return offset entries, time entries and aborted transactions after the real recovery."""
    recover = segment["recover"]
    same = {"same as index": segment["index"], "same as timeindex": segment["timeindex"]}
    tables = [recover[column] for column in ("index", "timeindex")]
    return [*(same[one] if isinstance(one, str) else one for one in tables), recover["aborted"]]


def entries(stem: Path, base: int) -> list[Any]:
    """Return the same of the files of a segment."""
    with (
        OffsetIndex(f"{stem}.index", base) as offsets,
        TimeIndex(f"{stem}.timeindex", base) as times,
        TransactionIndex(base, f"{stem}.txnindex") as txns,
    ):
        aborted = [list(one[1:]) for one in txns]
        return [[list(one) for one in offsets], [list(one) for one in times], aborted]


@pytest.mark.checks("SEG-22", "SEG-23", "SEG-30")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_rebuild_gives_what_the_real_recovery_gives(scenario: Path, tmp_path: Path) -> None:
    """Every entry of every segment is equal, and the new directory verifies clean."""
    expected = load_expected(scenario)
    out = tmp_path / "t-0"
    done = rebuild(
        partition_of(scenario),
        out,
        index_interval_bytes=expected["index_interval_bytes"],
        max_index_bytes=expected["segment_index_bytes"],
    )
    assert done.findings == ()
    assert expected["segments"]
    for segment in expected["segments"]:
        base = segment["base"]
        assert recovered(segment) == entries(out / f"{base:020d}", base)
    assert [] == [str(one) for one in verify(out, deep=True) if one.is_defect]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_rebuild_keeps_the_entries_that_a_broker_wrote(scenario: Path, tmp_path: Path) -> None:
    """Without an interval too: only the zeros at the end of an index in use are cut off."""
    done = rebuild(partition_of(scenario), tmp_path / "t-0", all_files=True)
    stems = [path.stem for path in partition_of(scenario).glob("*.log")]
    built = {Path(one.path).name for one in done.files}
    assert {f"{stem}{suffix}" for stem in stems for suffix in (".index", ".timeindex")} <= built
    if scenario.name == "v1-gzip":  # 1.1.1 entered one first offset for each append
        assert {"default"} == {one.interval_from for one in done.files}
        return
    for one in done.files:
        assert one.interval_from == "old index"
        assert one.old_entries is not None
        assert one.entries - one.old_entries in (0, 1)  # the last time entry, written at the roll
        old = (partition_of(scenario) / Path(one.path).name).read_bytes()
        kept = SIZES[Path(one.path).suffix] * one.old_entries
        assert old[:kept] == Path(one.path).read_bytes()[:kept]
        assert b"" == old[kept:].strip(b"\0")
