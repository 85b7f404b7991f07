# SPDX-License-Identifier: Apache-2.0
"""The model of every release obeys the laws, in random histories of every structure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segproof_harness.histories.compare import Comparison, Divergence
from segproof_harness.histories.workloads import make_history
from segproof_harness.laws.every_law import LAWS
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

STEPS = 25
JUDGED_CLASSES = {
    kind for name in STRUCTURE_IDS for kind in structure_named(name).model_class().mro()
}
JUDGED = [
    one.law_id
    for one in LAWS.values()
    if one.of in JUDGED_CLASSES and one.scope in ("state", "step")
]
"""The laws of the structures themselves; those of their parts are judged as well."""


def divergence(structure_id: str, release: str, seed: int) -> Divergence | None:
    """Return the first step of a history of a release that breaks a law."""
    history = make_history(structure_id, release, seed, STEPS)
    return Comparison(structure_named(structure_id), release, []).run(history)


@pytest.mark.slow
@pytest.mark.checks(*JUDGED)
@pytest.mark.parametrize(
    ("structure_id", "release"),
    [(one, name) for one in STRUCTURE_IDS for name in structure_named(one).profile_names],
)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32))
def test_each_release_obeys_the_laws(structure_id: str, release: str, seed: int) -> None:
    """No step breaks a law, from any files on, and no state that it leaves."""
    assert None is divergence(structure_id, release, seed)


@pytest.mark.checks("LOG-5", "LOG-7", "LOG-11", "LOG-12", "LOG-22")
@pytest.mark.parametrize(
    ("release", "seed"),
    [
        pytest.param("kafka-2.4.1", 4, id="LOG-5 of a read at the bound in 2.4"),
        pytest.param("kafka-2.4.1", 2, id="LOG-7 of a read at the bound in 2.4"),
        pytest.param("kafka-2.0.1", 868, id="LOG-11 of a roll onto an empty segment in 2.0"),
        pytest.param("kafka-2.0.1", 16, id="LOG-12 of a roll onto an empty segment in 2.0"),
        pytest.param("kafka-2.0.1", 1988, id="LOG-22 of an append before a rolled segment in 2.0"),
    ],
)
def test_what_a_law_once_blamed_a_release_for(release: str, seed: int) -> None:
    """Without its exception for old releases the law is broken by this history."""
    assert None is divergence("partition-log", release, seed)
