# SPDX-License-Identifier: Apache-2.0
"""The log of a partition, described for the harness.

Mirrors: segproof_model/kafka/broker/partition_log.py, segproof/kafka/broker/partition_log.py.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from segproof.kafka.log_config import LogConfig as ImplLogConfig
from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.choices import Choose
from segproof_harness.structures.kafka import appended_records as records
from segproof_harness.structures.kafka import log_drawing as draw
from segproof_harness.structures.kafka import unasked_steps
from segproof_harness.structures.kafka.log_states import SOMETIMES
from segproof_harness.structures.kafka.segment_drawing import damages
from segproof_harness.structures.kafka.segment_operations import show_fetched, show_producers
from segproof_harness.structures.kinds import FLAG, INT32, INT64, NAME, TIME_MS, OneOf, Optional
from segproof_harness.structures.structure import Parameter, Structure, creating, operation
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened

ISOLATIONS = ("log_end", "high_watermark", "txn_committed")


# --- opening -------------------------------------------------------------------------------------


OPENING = (
    Parameter("options", draw.OPTIONS, draw.changed_options),
    Parameter("log_start_offset", records.OFFSET, draw.checkpointed_start),
    Parameter("recovery_point", records.OFFSET, draw.checkpointed_recovery_point),
    Parameter(
        "last_shutdown_clean",
        FLAG,
        lambda choose, situation: choose.boolean() and situation.state is not None,
    ),
    Parameter("draw", records.OFFSET, lambda choose, _: choose.integer(0, 5000)),
    Parameter("now_ms", TIME_MS, draw.some_now),
    Parameter(
        "modified_ms",
        TIME_MS,
        lambda choose, situation: max(0, situation.now_ms - choose.one_of((0, 500, 2_000))),
    ),
    Parameter("damage", damages(NAME), draw.draw_damage),
)
PLAIN = ("log_start_offset", "recovery_point", "last_shutdown_clean")


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in PLAIN}


def _constructed(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a log is constructed with, but for the times of its files."""
    config = LogConfig(**dict(arguments["options"]))
    given = {"dir": "", "config": config, "codecs": CODECS, "draw": arguments["draw"]}
    return {**given, **_plain(arguments)}


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    modified_ms = dict.fromkeys(draw.logs_among(files), arguments["modified_ms"])
    kind = release.kind(PartitionLog)
    return opened(kind, files, **_constructed(arguments), modified_ms=modified_ms)


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    folder = arguments["directory"]
    for name in draw.logs_among(files.list_directory(folder)):
        files.set_modified(f"{folder}/{name}", arguments["modified_ms"] * 10**6)
    return impl_class.open(
        folder,
        ImplLogConfig(**dict(arguments["options"])),
        files=files,
        time=arguments["clock"],
        draw=lambda: arguments["draw"],
        **creating(impl_class.open),
        **_plain(arguments),
    )


# --- what is shown -------------------------------------------------------------------------------


def _show_segments(segments: Any) -> Any:
    return tuple((one.base_offset, one.size) for one in segments)


def _show_epochs(cache: Any) -> Any:
    return tuple(cache.epoch_entries())


def _show_parts(parts: Any) -> Any:
    """Return the base offsets of the segments that a split has made."""
    return tuple(one if isinstance(one, int) else one.base_offset for one in parts)


# --- the table -----------------------------------------------------------------------------------


def _in_two(choose: Choose, situation: Any) -> bool:
    return choose.boolean()


def _truncate_fully(log: Any, new_offset: int, begins_earlier_by: int | None) -> Any:
    """Truncate all; the log begins so far before the new offset, or at it."""
    earlier = begins_earlier_by
    start = None if earlier is None else max(0, new_offset - earlier)
    return log.truncate_fully_and_start_at(new_offset, start)


def _delete_replicated(log: Any) -> int:
    """Let all of the log be replicated, without which retention removes nothing; then remove."""
    log.update_high_watermark(log.log_end_offset)
    return int(log.delete_old_segments())


APPENDING = (
    operation(
        "append_as_leader",
        36,
        "LOG-9 LOG-10 LOG-11",
        Parameter("call", records.LEADER_CALL, records.draw_leader_call),
        errors={
            "invalid-producer-epoch": "PROD-8",
            "out-of-order-sequence": "PROD-8",
            "invalid-transaction-state": "PROD-9",
            "record-batch-too-large": "LOG-10",
        },
    ),
    operation(
        "append_as_follower",
        22,
        "LOG-9 LOG-21 LOG-11",
        Parameter("call", records.FOLLOWER_CALL, records.draw_follower_call),
        errors={"offset-order": "LOG-21"},
    ),
)

READING = (
    operation(
        "read",
        24,
        "LOG-6 LOG-5 LOG-7 LOG-8",
        Parameter("start_offset", INT64, draw.some_offset),
        Parameter("max_length", INT32, draw.some_length),
        Parameter(
            "isolation",
            OneOf(ISOLATIONS),
            lambda choose, _: choose.one_of((*ISOLATIONS, ISOLATIONS[-1])),
        ),
        Parameter("min_one_message", FLAG, _in_two),
        errors={"out-of-range": "LOG-5"},
        show=show_fetched,
    ),
    operation(
        "fetch_offset_by_timestamp",
        8,
        "LOG-15 LOG-16",
        Parameter("target_timestamp", INT64, draw.some_timestamp),
    ),
    operation(
        "collect_aborted_transactions",
        3,
        "LOG-8",
        Parameter("start_offset", INT64, draw.some_offset),
        Parameter("upper_bound_offset", INT64, draw.some_offset),
    ),
    operation("log_segments", 3, "LOG-1 LOG-4", reads=_show_segments),
    operation("producer_state_manager", 3, "PROD-14 PROD-10", reads=show_producers),
    operation("leader_epoch_cache", 2, "LOAD-15", reads=_show_epochs),
)

CUTTING = (
    operation("truncate_to", 6, "LOG-13 LOG-14", Parameter("target_offset", INT64, draw.some_cut)),
    operation(
        "truncate_fully_and_start_at",
        1,
        "LOG-14",
        Parameter("new_offset", records.OFFSET, draw.some_new_offset),
        Parameter(
            "begins_earlier_by",
            Optional(records.OFFSET),
            lambda choose, _: choose.one_of((None, None, None, 0, 1, 30)),
        ),
        call=_truncate_fully,
    ),
    operation(
        "roll",
        5,
        "LOG-11 LOG-12",
        Parameter("expected_next_offset", Optional(records.OFFSET), draw.some_expected),
        errors={"kafka-error": "LOG-12"},
    ),
    operation(
        "split_overflowed_segment",
        4,
        "LOG-19 LOG-20",
        Parameter("base_offset", INT64, draw.some_base),
        errors={"invalid-argument": "LOG-20"},
        show=_show_parts,
    ),
)

BOUNDS = (
    operation(
        "update_high_watermark",
        14,
        "PROD-10 LOG-6",
        Parameter("high_watermark", INT64, draw.some_high_watermark),
    ),
    operation(
        "maybe_increment_log_start_offset",
        4,
        "LOG-5",
        Parameter("new_log_start_offset", INT64, draw.some_start),
        errors={"out-of-range": "LOG-5"},
    ),
    operation("delete_old_segments", 6, "LOG-17 LOG-18"),
    operation("delete_replicated_segments", 16, "LOG-17 LOG-18", call=_delete_replicated),
    operation("delete_pending_files", 3, "LOAD-1", show=lambda answer: None),
    operation("remove_expired_producers", 8, "PROD-12"),
    operation("flush", 3, "LOAD-13", Parameter("force_flush_active_segment", FLAG, _in_two)),
    operation("now", 8, "", Parameter("now_ms", TIME_MS, draw.some_now), sets_clock=True),
    operation("close", 3, "LOAD-16", ends=True),
    operation("close_handlers", 1, "LOAD-16", ends=True),
)


def _parts(state: PartitionLog) -> Iterable[Any]:
    yield state.leader_epoch_cache
    if state.local_log.is_closed:
        return  # up to 2.0 a roll makes files anew whose segment it then refuses
    for segment in state.log_segments:
        yield segment
        yield segment.log
        yield segment.txn_index
        for lazy in (segment.lazy_offset_index, segment.lazy_time_index):
            if lazy.index is not None:
                yield lazy.index


PARTITION_LOG = Structure(
    structure_id="partition-log",
    model="segproof_model.kafka.broker.partition_log:PartitionLog",
    opening=OPENING,
    draw_setup=draw.draw_setup,
    operations=(*APPENDING, *READING, *CUTTING, *BOUNDS),
    observed=(
        "log_start_offset",
        "log_end_offset",
        "high_watermark",
        "last_stable_offset",
        "recovery_point",
        "size",
    ),
    sometimes=SOMETIMES,
    is_usable=lambda state: not state.local_log.is_closed,
    open_model=_open_model,
    constructed=_constructed,
    open_impl=_open_impl,
    takes_directory=True,
    takes_clock=True,
    damage=draw.with_damage,
    parts=_parts,
    is_asked=unasked_steps.is_asked,
    laws=("LOAD-7", "LOAD-1", "LOAD-2", "LOAD-4", "LOAD-5", "LOAD-8", "LOAD-13", "LOAD-14"),
)
