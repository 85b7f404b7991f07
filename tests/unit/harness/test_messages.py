# SPDX-License-Identifier: Apache-2.0
"""What goes to the oracle's child and comes back: nothing is lost on the way."""

import pickle

import pytest

from segproof_harness.releases.child_messages import Look, from_plain_seen, plain_calls, plain_seen
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.outcomes import Outcome

REFUSED = Outcome(error="invalid-offset", detail="Attempt to append an offset 1")
LOOK = Look({"entries": Outcome(0), "last_offset": REFUSED}, {"a.index": b"\0" * 8, "b": b""})


@pytest.mark.parametrize("look", [None, LOOK, Look({}, {})])
@pytest.mark.parametrize("outcome", [Outcome(), Outcome((1, (True, b"x"))), REFUSED])
def test_what_was_seen_comes_back(outcome: Outcome, look: Look | None) -> None:
    """Values with their types, kinds of error, messages, accessors and bytes are all there."""
    seen, looked = from_plain_seen(pickle.loads(pickle.dumps(plain_seen(outcome, look))))
    assert (outcome, outcome.detail) == (seen, seen.detail)
    assert look == looked


def test_operations_go_by_name_and_arguments() -> None:
    """An operation is its name and its arguments."""
    append = Operation("append", {"offset": 5, "position": 120})
    (sent,) = pickle.loads(pickle.dumps(plain_calls([append])))
    assert append == Operation(*sent)
