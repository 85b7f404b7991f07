# SPDX-License-Identifier: Apache-2.0
"""Histories that once diverged, as short as they could be made: each runs clean for ever.

A new one comes from the folder `traces` where `segproof replay` saved it, under a name that begins
with its structure and says what it shows; `docs/results/defects.md` has the story.
"""

from pathlib import Path

import pytest

from segproof_harness.histories.replay import replay_trace

TRACES = sorted((Path(__file__).parent / "traces").glob("*.jsonl"))


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_no_divergence_any_more(trace: Path) -> None:
    """Model and implementation agree, and all laws hold."""
    result = replay_trace(trace)
    assert [] == [finding.message for finding in result.findings]
    assert result.counters.histories == 1
