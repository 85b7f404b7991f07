# SPDX-License-Identifier: Apache-2.0
"""What a real leader makes of batches that it compresses with the codec of its topic.

Java's codecs make other bytes than those that histories are drawn with, so that no history has such
a topic: positions, indexes and rolls behind such a batch would differ. Here the answers are
compared, and what the log holds when it is read again.

Used by: the tox environment `oracle`.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from segproof_harness.codecs import CODECS
from segproof_harness.operations import Operation
from segproof_harness.oracle.releases import RELEASES
from segproof_harness.outcomes import Outcome
from segproof_harness.structures import Setup, structure_named
from segproof_harness.subjects import ModelSubject, OracleSubject
from segproof_harness.workloads import choose_for, draw_operation
from segproof_model.kafka.record_file import scan_memory
from segproof_model.profiles import profile_named

PARTITION_LOG = "partition-log"
ONLY = {"append_as_leader": 9, "now": 1, "others": 0}
APPENDS = 60
FIELDS = (
    "base_offset", "last_offset", "magic", "compression", "timestamp_type", "max_timestamp",
    "partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence", "record_count",
    "is_transactional", "is_control",
)  # fmt: skip


def read_again(files: Mapping[str, bytes]) -> list[tuple[Any, ...]]:
    """Return the fields and records of all batches of a log."""
    logs = [data for name, data in sorted(files.items()) if name.endswith(".log")]
    batches = [batch for data in logs for batch in scan_memory(data, codecs=CODECS).batches]
    return [
        (*(getattr(batch, name) for name in FIELDS), batch.is_valid(), batch.records())
        for batch in batches
    ]


@pytest.mark.needs("java", "jpype", "kafka-4.3.1", "kafka-2.8.2")
@pytest.mark.checks("LOG-10", "BATCH-20")
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("release", ["kafka-4.3.1", "kafka-2.8.2"])
def test_what_a_leader_compresses(release: str, codec: str) -> None:
    """Each answer is that of the model; so are the batches of the log, but for their bytes."""
    structure = structure_named(PARTITION_LOG)
    model = ModelSubject(structure, profile_named(release))
    choose = choose_for(PARTITION_LOG, 40, [model.profile])
    drawn = structure.draw_setup(choose)
    kept = {"message_timestamp_type", "message_timestamp_before_max_ms", "cleanup_policy"}
    given: Any = drawn.arguments["options"]
    options = tuple(one for one in given if one[0] in kept)
    setup = Setup({**drawn.arguments, "options": (*options, ("compression_type", codec))})
    opened = model.start(setup)
    operations: list[Operation] = []
    expected: list[Outcome] = []
    while len(operations) < APPENDS:
        operation = draw_operation(choose, model, ONLY)
        outcome = model.apply(operation)
        assert model.event is not None
        operations.append(operation)
        expected.append(outcome)
    real = OracleSubject(structure, RELEASES[release])
    real.prepare(setup, operations, APPENDS)
    assert opened == real.start(setup)
    for operation, outcome in zip(operations, expected, strict=True):
        assert outcome == real.apply(operation), operation
    wanted = read_again(model.image())
    assert wanted == read_again(real.image())
    assert sum(one[3] == codec for one in wanted) > 10
    real.stop()
