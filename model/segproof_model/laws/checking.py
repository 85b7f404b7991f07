# SPDX-License-Identifier: Apache-2.0
"""Which laws are broken: what machines, replays and `verify`'s tests call.

The laws of the scope `pure` judge the arguments and the answer of one function; whoever has the
answer calls `LAWS[law_id].predicate` with them.

Used by: the harness.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from segproof_model.kafka.lazy_index import LazyIndex
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.log_manager import LogManager
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.log_segments import LogSegments
from segproof_model.kafka.offset_index import OffsetIndex
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.record_file import RecordFile
from segproof_model.kafka.time_index import TimeIndex
from segproof_model.kafka.transaction_index import TransactionIndex
from segproof_model.language.outcomes import Step
from segproof_model.laws.registry import LAWS, Law, Scope, Transition
from segproof_model.profiles import Profile
from segproof_model.rocketmq.commit_log import CommitLog
from segproof_model.rocketmq.consume_queue import ConsumeQueue
from segproof_model.rocketmq.index_file import IndexFile
from segproof_model.rocketmq.index_service import IndexService
from segproof_model.rocketmq.message_store import MessageStore
from segproof_model.rocketmq.reference_resource import ReferenceResource
from segproof_model.rocketmq.store_checkpoint import StoreCheckpoint

__all__ = [
    "broken_file_laws",
    "broken_state_laws",
    "broken_step_laws",
    "laws_of",
    "opening",
    "structure_of",
]

SHARED = {
    "offset-index": ("abstract-index",),
    "time-index": ("abstract-index",),
    "store-checkpoint": ("index-service",),
    "consume-queue": ("index-service",),
}
"""The structures whose laws a structure obeys beside its own."""
STRUCTURES: Mapping[type, str] = {
    OffsetIndex: "offset-index",
    TimeIndex: "time-index",
    TransactionIndex: "transaction-index",
    RecordFile: "record-file",
    LogSegment: "log-segment",
    LazyIndex: "log-segment",
    LeaderEpochFileCache: "leader-epoch-cache",
    LogManager: "partition-log",
    LogSegments: "partition-log",
    PartitionLog: "partition-log",
    IndexFile: "index-file",
    IndexService: "index-service",
    StoreCheckpoint: "store-checkpoint",
    CommitLog: "commit-log",
    ConsumeQueue: "consume-queue",
    MessageStore: "message-store",
    ReferenceResource: "index-file",
}


@cache
def laws_of(structure: str, scope: Scope | None = None) -> tuple[Law, ...]:
    """Return the laws that a structure obeys, all or those of one scope."""
    obeyed = (structure, *SHARED.get(structure, ()))
    return tuple(
        known
        for known in LAWS.values()
        if known.structure in obeyed and scope in (None, known.scope)
    )


def structure_of(state: Any) -> str:
    """Return the structure of a state. Raises TypeError for anything else."""
    kind: type = type(state)
    return _structure_of_kind(kind)


@cache
def _structure_of_kind(kind: type) -> str:
    for known, structure in STRUCTURES.items():
        if issubclass(kind, known):
            return structure
    raise TypeError(f"{kind.__name__} is no state of a structure with laws")


def opening(
    structure: str, arguments: Mapping[str, Any], directory: Any, profile: Profile, step: Step[Any]
) -> Transition:
    """Return the transition of an opening, with all that the laws need beside its arguments."""
    known = {**arguments, "directory": directory, "profile": profile, "structure": structure}
    return Transition(None, "open", {"writable": True, **known}, step.after, step.outcome)


def broken_state_laws(state: Any) -> list[str]:
    """Return the ids of the laws that a state breaks."""
    laws = laws_of(structure_of(state), "state")
    return [known.law_id for known in laws if not known.predicate(state)]


def broken_step_laws(transition: Transition) -> list[str]:
    """Return the ids of the laws that a step breaks; an opening has no state before."""
    if transition.before is None:
        structure = transition.arguments["structure"]
    else:
        structure = structure_of(transition.before)
    laws = laws_of(structure, "step")
    return [known.law_id for known in laws if not known.predicate(transition)]


def broken_file_laws(structure: str, image: bytes, base_offset: int) -> list[str]:
    """Return the ids of the laws that the bytes of a file break."""
    laws = laws_of(structure, "file")
    return [known.law_id for known in laws if not known.predicate(image, base_offset)]
