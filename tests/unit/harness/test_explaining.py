# SPDX-License-Identifier: Apache-2.0
"""Differences of subjects that releases explain: the behaviour is named, once a history."""

import pytest

from segproof_harness.histories.compare import Comparison
from segproof_harness.histories.release_differences import SEVERAL, Expected, behaviours_of
from segproof_harness.histories.replay import comparison, replay_seeds
from segproof_harness.histories.traces import Trace
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.steps import Setup
from segproof_harness.subjects.model import ModelSubject
from segproof_model.kafka.format.index_deviations import FailedIndexChangeIsUndone
from segproof_model.kafka.format.index_releases import EntryIsRelative

OPENED: dict[str, Value] = {
    "file": "segment.index",
    "base_offset": 100,
    "max_index_size_bytes": 80,
    "writable": True,
}
APPEND = Operation("append", {"offset": 105, "position": 7})


def _trace(*operations: Operation) -> Trace:
    return Trace("offset-index", "segproof", Setup(OPENED), operations)


def _parted(trace: Trace, profile: str) -> Comparison:
    comparing = comparison(
        trace.structure_id, "segproof", ("impl", f"model:{profile}"), image_every=1
    )
    assert comparing.run(trace) is None
    return comparing


def test_the_behaviour_is_named() -> None:
    """An entry whose offset is relative in 2.0.1 differs by that behaviour and no other."""
    trace = _trace(APPEND, Operation("entry", {"n": 0}))
    comparing = _parted(trace, "kafka-2.0.1")
    assert comparing.parting is not None
    assert (comparing.parting.step, comparing.parting.operation_name) == (2, "entry")
    assert behaviours_of(trace, comparing.parting) == (EntryIsRelative,)


def test_only_the_first_difference_counts() -> None:
    """A history counts once, however often its subjects differ; an equal one does not count."""
    entry = Operation("entry", {"n": 0})
    expected = Expected()
    for trace in (_trace(APPEND, entry, entry), _trace(APPEND)):
        comparing = _parted(trace, "kafka-2.0.1")
        if comparing.parting is not None:
            expected.add(comparing.parting, lambda trace=trace: trace)  # type: ignore[misc]
    assert list(expected.histories.values()) == [1]
    assert expected.lines() == [
        "expected: kafka-2.0.1 differs from segproof first by EntryIsRelative: 1 history"
    ]


def test_files_alone_may_differ() -> None:
    """A resize that fails alike everywhere, but has cut the file in a release."""
    more = Operation("append", {"offset": 106, "position": 8})
    trace = _trace(APPEND, more, Operation("resize", {"new_size": 8}))
    comparing = _parted(trace, "kafka-4.3.1")
    assert comparing.parting is not None
    assert (comparing.parting.step, comparing.parting.expected) == (3, None)
    assert FailedIndexChangeIsUndone in behaviours_of(trace, comparing.parting)


@pytest.mark.slow
def test_a_run_tells_them() -> None:
    """Seeds that part are counted by behaviours; each is explained by one of them, or several."""
    result = replay_seeds("offset-index", "segproof", range(12), 50, ("impl", "model:kafka-2.0.1"))
    assert not result.findings
    assert 6 <= sum(result.expected.histories.values()) <= 12
    single = [names for _, _, names in result.expected.histories if names != SEVERAL]
    assert "ZeroTailIsFree" in " ".join(single)


def test_a_behaviour_alone_may_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that does not end with one behaviour alone shows that one."""
    trace = _trace(APPEND, Operation("entry", {"n": 0}))
    comparing = _parted(trace, "kafka-2.0.1")
    step = ModelSubject.apply

    def step_or_none(self: ModelSubject, operation: Operation) -> Outcome:
        if self.release.has(EntryIsRelative) and operation.name == "entry":
            raise TimeoutError
        return step(self, operation)

    assert comparing.parting is not None
    monkeypatch.setattr(ModelSubject, "apply", step_or_none)
    assert behaviours_of(trace, comparing.parting) == (EntryIsRelative,)
