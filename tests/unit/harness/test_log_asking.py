# SPDX-License-Identifier: Apache-2.0
"""What a release is not asked about a log."""

from typing import Any

import pytest

from segproof_harness.structures.kafka.unasked_steps import is_asked
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.steps import Event
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.language.files import Files
from segproof_model.language.states import apply, opened
from segproof_model.releases import release_named


@pytest.mark.parametrize(
    ("release", "error", "expected"),
    [
        ("kafka-0.11.0.3", "invalid-offset", False),
        ("kafka-0.11.0.3", None, True),
        ("kafka-4.4.0", "invalid-offset", True),
    ],
)
def test_a_roll_that_removes_its_own_file_is_not_asked(
    release: str, error: str | None, expected: bool
) -> None:
    """The real class reads on from what it has open, and the model has nothing to read."""
    log: Any = opened(release_named(release).kind(PartitionLog), Files(), "", LogConfig()).after
    name = log.log_segments.active_segment.names[0]
    after = apply(log, lambda draft: draft.files.remove(name)).after
    roll = Operation("roll", {"expected_next_offset": 5})
    assert expected is is_asked(Event(log, roll, after, Outcome(error=error)))
