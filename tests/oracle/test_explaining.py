# SPDX-License-Identifier: Apache-2.0
"""What explains a difference from a real release is asked of the history that parted."""

from collections.abc import Callable
from typing import NoReturn

import pytest

from segproof_harness.histories.compare import Parting
from segproof_harness.histories.release_differences import Expected
from segproof_harness.histories.replay import replay_seeds
from segproof_harness.histories.traces import Trace
from segproof_harness.releases.jars import problem_of
from segproof_harness.releases.pinned import release_named

pytestmark = pytest.mark.needs("java", "jpype")
NAME = "rocketmq-5.5.1"


def test_the_history_is_the_one_that_parted(
    monkeypatch: pytest.MonkeyPatch, not_run: Callable[[str], NoReturn]
) -> None:
    """Steps that the release is not asked are in neither of the two."""
    problem = problem_of(release_named(NAME))
    if problem is not None:
        not_run(f"oracle {NAME}: {problem}")
    looked_at: list[tuple[str, str]] = []

    def add(self: Expected, parting: Parting, make_trace: Callable[[], Trace]) -> None:
        operation = make_trace().operations[parting.step - 1]
        looked_at.append((operation.name, parting.operation_name))

    monkeypatch.setattr(Expected, "add", add)
    result = replay_seeds("index-service", "segproof", range(12), 50, ("impl", NAME))
    assert not result.findings
    assert len(looked_at) >= 6
    assert [one for one, _ in looked_at] == [other for _, other in looked_at]
