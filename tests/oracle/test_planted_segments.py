# SPDX-License-Identifier: Apache-2.0
"""Defects planted in the model of the segment are caught by the real class.

The first is a wrong comparison; the others are behaviours of older releases, which no law
sees. The implementation is not asked.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.oracle.planted import first_finding, flip

from segproof.findings import Finding
from segproof_harness.histories.compare import Comparison
from segproof_model.kafka.broker.producer_releases import MarkerAloneCompletes
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_releases import CallIsIndexedAsAWhole
from segproof_model.kafka.format.memory_records import MemoryRecords

RELEASE = "kafka-4.3.1"
SEEDS = 15
LENGTH = 60

pytestmark = pytest.mark.needs("java", "jpype", RELEASE)


def _reach_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch be indexed where the bytes before it reach the interval: >= instead of >."""
    append = LogSegment.append

    def wrong(segment: LogSegment, largest_offset: int, records: MemoryRecords) -> None:
        config = segment.config
        narrower = replace(config, index_interval_bytes=config.index_interval_bytes - 1)
        segment.config = narrower
        try:
            append(segment, largest_offset, records)
        finally:
            segment.config = config

    monkeypatch.setattr(LogSegment, "append", wrong)


def _index_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let append look for an entry once a call, as it did up to 4.0.0."""
    flip(monkeypatch, RELEASE, CallIsIndexedAsAWhole)


def _begin_by_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a marker without an open transaction begin and end one, as it did up to 2.4."""
    flip(monkeypatch, RELEASE, MarkerAloneCompletes)


def _first_finding() -> Finding | None:
    return first_finding("log-segment", RELEASE, SEEDS, LENGTH, "model", RELEASE)


@pytest.mark.parametrize("plant", [_reach_the_interval, _index_each_call, _begin_by_a_marker])
def test_planted(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the defect the real class agrees; with it the class does not.

    The laws are not asked: they see the first defect, too.
    """
    monkeypatch.setattr(Comparison, "_broken_law", lambda *arguments: None)
    assert _first_finding() is None
    plant(monkeypatch)
    found = _first_finding()
    assert found is not None
    assert f" of {RELEASE} is " in found.message
