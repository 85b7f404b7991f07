# SPDX-License-Identifier: Apache-2.0
"""The model against the real classes of each release, on new histories in each run."""

from collections.abc import Callable
from typing import NoReturn

import pytest

from segproof_harness.conformance.release_histories import SLOW, plan, run_task
from segproof_harness.releases.jars import problem_of
from segproof_harness.releases.pinned import RELEASES, Release
from segproof_harness.structures.structure import STRUCTURE_IDS
from segproof_tests.exploring import SEED, rounds

COUNT = 20

pytestmark = pytest.mark.needs("java", "jpype")


@pytest.mark.parametrize("release", RELEASES.values(), ids=lambda release: release.name)
def test_the_release_answers_as_the_model(
    release: Release, not_run: Callable[[str], NoReturn]
) -> None:
    """No answer, kind of error or byte differs."""
    problem = problem_of(release)
    if problem is not None:
        not_run(f"oracle {release.name}: {problem}")
    structures = [task.structure for task in plan([release], STRUCTURE_IDS, count=1)]
    for number in rounds(release.name, len(RELEASES)):
        structure = structures[number % len(structures)]
        count = max(1, COUNT // SLOW.get(structure, 1))
        seed = SEED * 1_000_000 + number * COUNT
        (task,) = plan([release], [structure], count=count, seed=seed)
        run = run_task(task, ends=False)
        assert not run.divergences, "\n".join(run.reproduce)
