# SPDX-License-Identifier: Apache-2.0
"""What parent and child tell each other, and which adapter serves which structure.

A whole history goes to the child, and what was seen comes back, as plain tuples: objects of our
own are pickled ten times as slowly, and there are hundreds in each.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from segproof_harness.releases.pinned import Release
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.steps import Setup

SCRATCH_PREFIX = "segproof-oracle-"
"""How the names of a child's folders begin."""
LIBRARIES = "SEGPROOF_ORACLE_LIBRARIES"
"""Variable of the environment: the folder where a child's JVM unpacks libraries to execute. A JVM
that is killed leaves them there, up to 13 MB, so the folder is removed with the child."""
BEGINNINGS = frozenset({"history", "start"})
"""What a history begins with; before it, no child holds anything that is needed."""
ADAPTERS = {
    "record-batch": "segproof_harness.releases.kafka.record_batch:RecordBatch",
    "record-file": "segproof_harness.releases.kafka.record_file:RecordFile",
    "offset-index": "segproof_harness.releases.kafka.indexes:OffsetIndex",
    "time-index": "segproof_harness.releases.kafka.indexes:TimeIndex",
    "transaction-index": "segproof_harness.releases.kafka.transaction_index:TransactionIndex",
    "partition-log": "segproof_harness.releases.kafka.partition_log:PartitionLog",
    "log-segment": "segproof_harness.releases.kafka.log_segment:LogSegment",
    "index-file": "segproof_harness.releases.rocketmq.index_file:IndexFile",
    "index-service": "segproof_harness.releases.rocketmq.index_service:IndexService",
    "store-checkpoint": "segproof_harness.releases.rocketmq.store_checkpoint:StoreCheckpoint",
    "commit-log": "segproof_harness.releases.rocketmq.commit_log:CommitLog",
    "consume-queue": "segproof_harness.releases.rocketmq.consume_queue:ConsumeQueue",
    "message-store": "segproof_harness.releases.rocketmq.message_store:MessageStore",
}
"""The class `module:Name` that serves a structure; it is imported in the child alone."""
SINCE = {
    "transaction-index": (0, 11),
    **dict.fromkeys(("commit-log", "consume-queue", "message-store"), (4,)),
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


PlainSetup = tuple[Mapping[str, Value], Mapping[str, bytes]]
"""The fields of a Setup."""
PlainCall = tuple[str, Mapping[str, Value]]
"""The fields of an Operation."""
PlainOutcome = tuple[Any, str | None, str]
"""The fields of an Outcome."""
PlainLook = tuple[Mapping[str, PlainOutcome], Mapping[str, bytes]]
"""The fields of a Look."""
PlainSeen = tuple[PlainOutcome, PlainLook | None]
"""What one operation answered, and what it left, where that was looked at."""


def plain_setup(setup: Setup) -> PlainSetup:
    """Return what a history begins with as it goes to the child."""
    return setup.arguments, setup.files


def plain_calls(operations: Iterable[Operation]) -> list[PlainCall]:
    """Return operations as they go to the child."""
    return [(operation.name, operation.arguments) for operation in operations]


def plain_seen(outcome: Outcome, look: Look | None) -> PlainSeen:
    """Return what was seen at one step as it comes from the child."""
    plain = outcome.value, outcome.error, outcome.detail
    return plain, None if look is None else _plain_look(look)


def _plain(outcome: Outcome) -> PlainOutcome:
    return outcome.value, outcome.error, outcome.detail


def _plain_look(look: Look) -> PlainLook:
    return {name: _plain(outcome) for name, outcome in look.observed.items()}, look.image


def from_plain_seen(seen: PlainSeen) -> tuple[Outcome, Look | None]:
    """Return the outcome of one step, and the look at what it left, if there was one."""
    outcome, look = seen
    return Outcome(*outcome), None if look is None else _from_plain_look(look)


def _from_plain_look(look: PlainLook) -> Look:
    observed, image = look
    return Look({name: Outcome(*outcome) for name, outcome in observed.items()}, image)


@dataclass(frozen=True, slots=True)
class Failed:
    """The child could not do it: an error of the harness, not of the release."""

    text: str
