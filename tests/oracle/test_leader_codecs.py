# SPDX-License-Identifier: Apache-2.0
"""What a real leader makes of batches that it compresses with the codec of its topic.

Java's codecs make other bytes than those that histories are drawn with, so that no other history
has such a topic: positions, indexes and rolls behind such a batch would differ. Here what does not
go by them is drawn: answers are compared, and what the log holds when it is read again.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

import pytest

from segproof_harness.histories.workloads import choose_for, draw_operation
from segproof_harness.releases.pinned import RELEASES
from segproof_harness.releases.release_subject import OracleSubject
from segproof_harness.structures.kafka.batch_drawing import whole_batches
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.releases import release_named

PARTITION_LOG = "partition-log"
ASKED = {
    "append_as_leader": 12, "append_as_follower": 2, "truncate_to": 1, "now": 1,
    "fetch_offset_by_timestamp": 2, "update_high_watermark": 1, "producer_state_manager": 1,
    "maybe_increment_log_start_offset": 1, "leader_epoch_cache": 1, "others": 0,
}  # fmt: skip
"""Operations whose answers do not go by positions and sizes, and how often they are drawn."""
STEPS = 60
KEPT = {
    "message_timestamp_type", "message_timestamp_before_max_ms", "message_timestamp_after_max_ms",
    "cleanup_policy",
}  # fmt: skip
"""Drawn options that do not go by sizes either."""
RELEASES_ASKED = ("kafka-4.4.0", "kafka-4.3.1", "kafka-3.9.2", "kafka-2.8.2", "kafka-0.11.0.3")
CODEC_NAMES = ("gzip", "snappy", "lz4", "zstd")
ZSTD_SINCE = (2, 1)
CASES = [
    pytest.param(release, codec, 70 + number, marks=pytest.mark.needs(release))
    for number, release in enumerate(RELEASES_ASKED)
    for codec in CODEC_NAMES
    if codec != "zstd" or RELEASES[release].number >= ZSTD_SINCE
]
FIELDS = (
    "base_offset", "last_offset", "magic", "compression", "timestamp_type", "max_timestamp",
    "partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence", "record_count",
    "is_transactional", "is_control",
)  # fmt: skip


def read_again(files: Mapping[str, bytes]) -> list[tuple[Any, ...]]:
    """Return the fields and records of all batches of a log."""
    logs = [data for name, data in sorted(files.items()) if name.endswith(".log")]
    batches = [batch for data in logs for batch in whole_batches(data)]
    return [
        (*(getattr(batch, name) for name in FIELDS), batch.is_valid(), list(batch.records()))
        for batch in batches
    ]


@pytest.mark.needs("java", "jpype")
@pytest.mark.checks("LOG-10", "BATCH-20")
@pytest.mark.parametrize(("release", "codec", "seed"), CASES)
def test_what_a_leader_compresses(release: str, codec: str, seed: int) -> None:
    """Each answer is that of the model; so are the batches of the log, but for their bytes."""
    structure = structure_named(PARTITION_LOG)
    model = ModelSubject(structure, release_named(release))
    choose = choose_for(PARTITION_LOG, seed, [model.release])
    drawn = structure.draw_setup(choose)
    given: Any = drawn.arguments["options"]
    options = tuple(one for one in given if one[0] in KEPT)
    setup = Setup({**drawn.arguments, "options": (*options, ("compression_type", codec))})
    opened = model.start(setup)
    operations: list[Operation] = []
    expected: list[Outcome] = []
    while len(operations) < STEPS:
        operation, after = draw_operation(choose, model, ASKED), copy(model)
        outcome = after.apply(operation)
        assert after.event is not None
        if structure.is_asked(after.event):
            model = after
            operations.append(operation)
            expected.append(outcome)
    real = OracleSubject(structure, RELEASES[release])
    real.prepare(setup, operations, STEPS)
    assert opened == real.start(setup)
    for operation, outcome in zip(operations, expected, strict=True):
        assert outcome == real.apply(operation), operation
    wanted = read_again(model.image())
    assert wanted == read_again(real.image())
    assert sum(one[3] == codec for one in wanted) > 5
    real.stop()
