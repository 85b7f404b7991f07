# SPDX-License-Identifier: Apache-2.0
"""Histories in which a profile and its release once parted, as short as they could be made.

A new one comes from the folder `traces` where `segproof replay` saved it, under a name that begins
with its structure and says what it shows; `docs/results/defects.md` has the story.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from segproof_harness.histories.replay import replay_trace
from segproof_harness.histories.traces import read_trace
from segproof_harness.releases.jars import problem_of
from segproof_harness.releases.pinned import release_named

TRACES = sorted((Path(__file__).parent / "traces").glob("*.jsonl"))

pytestmark = pytest.mark.needs("java", "jpype")


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_no_divergence_any_more(path: Path, not_run: Callable[[str], NoReturn]) -> None:
    """The release answers as the model does under the profile of the trace."""
    release = release_named(read_trace(path).profile_name)
    problem = problem_of(release)
    if problem is not None:
        not_run(f"oracle {release.name}: {problem}")
    result = replay_trace(path, ("model", release.name))
    assert [] == [finding.message for finding in result.findings]
    assert result.counters.histories == 1
