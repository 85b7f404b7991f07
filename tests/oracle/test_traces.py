# SPDX-License-Identifier: Apache-2.0
"""Histories in which a profile and its release once parted, as short as they could be made.

A new one comes from the folder `traces` where `segproof replay` saved it, under a name that begins
with its structure and says what it shows; `docs/results/defects.md` has the story.
"""

from pathlib import Path

import pytest

from segproof_harness.histories.replay import replay_trace
from segproof_harness.histories.traces import read_trace

TRACES = sorted((Path(__file__).parent / "traces").glob("*.jsonl"))

pytestmark = pytest.mark.needs("java", "jpype")


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("path", "release"),
    [pytest.param(path, read_trace(path).profile_name, id=path.stem) for path in TRACES],
)
def test_no_divergence_any_more(path: Path, release: str) -> None:
    """The release answers as the model does under the profile of the trace."""
    result = replay_trace(path, ("model", release))
    assert [] == [finding.message for finding in result.findings]
    assert result.counters.histories == 1
