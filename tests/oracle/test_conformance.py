# SPDX-License-Identifier: Apache-2.0
"""The model under each release's profile answers as that very release, on random histories.

SEGPROOF_ORACLE_HISTORIES sets how many histories each release and structure gets; the newest
release of each system gets four times as many. `tox -m explore` draws new ones, for as long
as asked.
"""

import os
from collections.abc import Iterator

import pytest

from segproof_harness.conformance.release_histories import LENGTH, SLOW, plan, run_task
from segproof_harness.releases.pinned import RELEASES, Release
from segproof_harness.structures.structure import STRUCTURE_IDS

HISTORIES = int(os.environ.get("SEGPROOF_ORACLE_HISTORIES", "1"))
NEWEST = {
    system: next(one for one in RELEASES.values() if one.system == system)
    for system in ("kafka", "rocketmq")
}

pytestmark = pytest.mark.needs("java", "jpype")


def _tasks() -> Iterator[tuple[Release, str]]:
    for release in RELEASES.values():
        for task in plan([release], STRUCTURE_IDS, count=1):
            yield release, task.structure


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("release", "structure"),
    [pytest.param(*task, id=f"{task[0].name}-{task[1]}") for task in _tasks()],
)
def test_release(release: Release, structure: str) -> None:
    """No answer, kind of error or byte differs."""
    count = HISTORIES * (4 if release in NEWEST.values() else 1)
    count = max(1, count // SLOW.get(structure, 1))
    length = max(1, LENGTH // SLOW.get(structure, 1))
    (task,) = plan([release], [structure], count=count, length=length, seed=1_000_000)
    run = run_task(task, ends=False)
    assert not run.divergences, "\n".join(run.reproduce)
    assert run.histories == count
    assert run.answers_compared >= run.operations > 0
