# SPDX-License-Identifier: Apache-2.0
"""How the plain log of a partition is driven."""

from collections.abc import Iterator, Mapping
from typing import Any

from segproof_harness.descriptions.log_arguments import logs_among
from segproof_harness.operations import Operation, Value
from segproof_harness.plain import Plain
from segproof_harness.plain.batches import CODECS
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.laws.register import Transition, broken_state_laws

CHECKPOINTED = ("log_start_offset", "recovery_point", "last_shutdown_clean")


def judged_open(options: Any, **given: Any) -> Mapping[str, Any]:
    """Return what a log is constructed with, but for the times of its files."""
    known = {name: given[name] for name in (*CHECKPOINTED, "draw")}
    return {"dir": "", "config": LogConfig(**dict(options)), **known, "codecs": CODECS}


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Load a log from the files, at the time that the arguments say."""
    kind: Any = release.kind(PartitionLog)
    given: dict[str, Any] = dict(arguments)
    modified_ms = dict.fromkeys(logs_among(files), given["modified_ms"])
    at_hand = Files(files.images, given["now_ms"])
    return opened(kind, at_hand, **judged_open(**given), modified_ms=modified_ms)


def also_broken(step: Transition) -> Iterator[str]:
    """Yield the laws that parts of a log break: of one that is not closed, since up to 2.0 a roll
    makes files anew whose segment it then refuses.
    """
    log = step.after
    if not isinstance(log, PartitionLog):
        return
    yield from broken_state_laws(log.leader_epoch_cache)
    for segment in () if log.local_log.is_closed else log.log_segments:
        lazy = segment.lazy_offset_index.index, segment.lazy_time_index.index
        for part in (segment, segment.log, segment.txn_index, *lazy):
            if part is not None:
                yield from broken_state_laws(part)


# --- operations of the harness: functions of a draft --------------------------------------------


def log_segments(log: PartitionLog) -> Any:
    """Return base offset and size of each segment."""
    return tuple([(one.base_offset, one.size) for one in log.log_segments])


def producer_state_manager(log: PartitionLog) -> Any:
    """Return what is known of producers and transactions."""
    manager = log.producer_state_manager
    entries = tuple([entry for _, entry in sorted(manager.active_producers.items())])
    waiting = tuple(manager.ongoing_txns), tuple(manager.unreplicated_txns)
    return entries, *waiting, manager.map_end_offset


def leader_epoch_cache(log: PartitionLog) -> Any:
    """Return the epochs."""
    return tuple(log.leader_epoch_cache.epoch_entries())


# --- what is compared ----------------------------------------------------------------------------

BOUNDS = "log_start_offset log_end_offset recovery_point high_watermark_metadata first_unstable"
SEGMENT = (
    "base_offset size created_ms roll_jitter_ms bytes_since_last_index_entry"
    " rolling_based_timestamp is_closed names last_modified"
)
INDEX = "name length entries is_mapped position"
PRODUCERS = "map_end_offset last_snapshot_offset oldest_txn_last_timestamp"


def named(state: Any, names: str) -> Any:
    """Return attributes; None of an index that is not loaded."""
    return None if state is None else [getattr(state, name) for name in names.split()]


def seen_of_segment(segment: Any, known: Any, is_value: bool) -> Any:
    """Return what a segment of either model holds. `known`: its largest timestamp."""
    return (
        None if known == (-1, -1) and is_value else known,
        named(segment, SEGMENT),
        named(segment.log, "name size is_open"),
        named(segment.lazy_offset_index.index, f"{INDEX} last_offset"),
        named(segment.lazy_time_index.index, f"{INDEX} remembered_entry"),
        named(segment.txn_index, "name is_open position last_offset is_closed"),
    )


def seen_of_parts(log: Any, segments: Any, pending: Any) -> dict[str, Any]:
    """Return what a log of either model holds."""
    manager, epochs = log.producer_state_manager, log.leader_epoch_cache
    held = dict(zip(BOUNDS.split(), named(log, BOUNDS), strict=True))
    names = [(due_ms, name) for due_ms, deleted, *_ in pending for name in deleted]
    return {
        **held,
        "segments": segments,
        "pending": names,
        "epochs": (list(map(tuple, epochs.epoch_entries())), epochs.is_write_pending),
        "snapshots": dict(manager.snapshots),
        "producers": (named(manager, PRODUCERS), repr(producer_state_manager(log))),
    }


def seen(log: Any) -> Any:
    """Return what the plain log holds."""
    segments = [
        seen_of_segment(one, one.max_timestamp_and_offset_so_far, is_unknown_a_value(log))
        for one in log.log_segments
    ]
    local = log.local_log
    held = seen_of_parts(log, segments, local.pending_deletions)
    return {**held, "log_end": local.log_end, "is_closed": local.is_closed}


def is_unknown_a_value(log: Any) -> bool:
    """Return whether a largest timestamp of -1 counts as unknown."""
    return any(one.__name__ == "UnknownMaximumIsAValue" for one in log.release.behaviours)


def seen_of_old(log: Any) -> Any:
    """Return what the older log holds."""
    is_value = log.profile.unknown_maximum_is_a_value
    segments = [seen_of_segment(one, one.max_pair, is_value) for one in log.log_segments]
    held = seen_of_parts(log, segments, log.pending_deletions)
    return {**held, "log_end": log.log_end, "is_closed": log.is_closed}


def has(release: Release, operation: Operation) -> bool:
    """Return whether a release has an operation: not one that lets a log begin later which begins
    with its first segment, nor batches of producers that it does not know.
    """
    names = {behaviour.__name__ for behaviour in release.behaviours}
    if operation.name == "maybe_increment_log_start_offset":
        return "LogBeginsWithSegment" not in names
    call: Any = operation.arguments.get("call", (b"",))
    return "LogKnowsNoProducers" not in names or call[0][16:17] != b"\2"


PLAIN = Plain(
    open_it,
    {
        "log_segments": log_segments,
        "producer_state_manager": producer_state_manager,
        "leader_epoch_cache": leader_epoch_cache,
    },
    {
        name: lambda shown: shown
        for name in ("log_segments", "producer_state_manager", "leader_epoch_cache")
    },
    seen,
    seen_of_old,
    has=has,
    kind=PartitionLog,
    judged={"open": judged_open},
    also_broken=also_broken,
)
