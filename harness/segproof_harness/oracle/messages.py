# SPDX-License-Identifier: Apache-2.0
"""What parent and child tell each other, and which adapter serves which structure.

Used by: oracle.process, oracle.child.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from segproof_harness.oracle.releases import Release
from segproof_harness.outcomes import Outcome

SCRATCH_PREFIX = "segproof-oracle-"
"""How the name of a child's scratch folder begins."""
ADAPTERS = {
    "record-batch": "segproof_harness.oracle.kafka.record_batch:RecordBatch",
    "record-file": "segproof_harness.oracle.kafka.record_file:RecordFile",
    "offset-index": "segproof_harness.oracle.kafka.indexes:OffsetIndex",
    "time-index": "segproof_harness.oracle.kafka.indexes:TimeIndex",
    "transaction-index": "segproof_harness.oracle.kafka.transaction_index:TransactionIndex",
    "partition-log": "segproof_harness.oracle.kafka.partition_log:PartitionLog",
    "log-segment": "segproof_harness.oracle.kafka.log_segment:LogSegment",
    "index-file": "segproof_harness.oracle.rocketmq.index_file:IndexFile",
    "index-service": "segproof_harness.oracle.rocketmq.index_service:IndexService",
    "store-checkpoint": "segproof_harness.oracle.rocketmq.store_checkpoint:StoreCheckpoint",
    "commit-log": "segproof_harness.oracle.rocketmq.commit_log:CommitLog",
    "consume-queue": "segproof_harness.oracle.rocketmq.consume_queue:ConsumeQueue",
    "message-store": "segproof_harness.oracle.rocketmq.message_store:MessageStore",
}
"""The class `module:Name` that serves a structure; it is imported in the child alone."""
SINCE = {
    "partition-log": (2, 0),
    "transaction-index": (0, 11),
}
"""The first version whose classes serve a structure, where not all do."""


def reason_without(structure_id: str, release: Release) -> str | None:
    """Return why a release does not serve a structure, in words, or None if it does."""
    if structure_id not in ADAPTERS:
        return f"{structure_id} has no oracle"
    first = SINCE.get(structure_id, ())
    if release.number < first:
        return f"{structure_id} is served from {'.'.join(map(str, first))} on"
    return None


@dataclass(frozen=True, slots=True)
class Absent:
    """What the real class has not: it is neither drawn nor compared."""

    left_out: frozenset[str]
    """Operations."""
    unobserved: frozenset[str]
    """Accessors."""


@dataclass(frozen=True, slots=True)
class Look:
    """Accessors and files at one step."""

    observed: Mapping[str, Outcome]
    image: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one operation answered, and what it left, where that was looked at."""

    outcome: Outcome
    look: Look | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by its fields, which is quick."""
        return Seen, (self.outcome, self.look)


@dataclass(frozen=True, slots=True)
class Failed:
    """The child could not do it: an error of the harness, not of the release."""

    text: str
