# SPDX-License-Identifier: Apache-2.0
"""The log segment, described for the harness.

Mirrors: segproof_model/kafka/format/log_segment.py, segproof/kafka/segments/log_segment.py.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from segproof.kafka.log_config import LogConfig as ImplLogConfig
from segproof.kafka.write_format import WriteFormat
from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.choices import INT32_MAX, INT64_MAX, MAGIC_NEWEST, Choose, within
from segproof_harness.structures.kafka import codec_differences, segment_operations
from segproof_harness.structures.kafka import segment_drawing as draw
from segproof_harness.structures.kafka.abstract_index import base_of
from segproof_harness.structures.kafka.batch_drawing import whole_batches
from segproof_harness.structures.kafka.segment_states import SOMETIMES
from segproof_harness.structures.kinds import (
    FLAG,
    INT32,
    INT64,
    SIZE,
    SIZE_MAX,
    TIME_MS,
    Bytes,
    Integer,
    OneOf,
    Optional,
    Record,
    Row,
    Together,
)
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Event, Setup, Situation
from segproof_harness.structures.structure import Parameter, Structure, creating, operation
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_releases import CallIsIndexedAsAWhole
from segproof_model.kafka.format.log_segment_releases_before_2 import FirstOffsetIsKey
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.releases import SEGPROOF

INDEX_KEYS = ("last_offset", "first_offset")
ENTRIES = ("batch", "append")
INDEX_BYTES = (240, 1200, 120, 1200, 60, 240, 24)
SMALL = (12, 0, 8)
"""Sizes of an index without room for two entries: such a segment takes hardly anything."""


# --- opening -------------------------------------------------------------------------------------


def _draw_setup(choose: Choose) -> Setup:
    base_offset = choose.one_of(draw.BASE_OFFSETS)
    arguments: dict[str, Value] = {
        "base_offset": base_offset,
        "index_interval_bytes": choose.one_of((0, 1, 100, 4096)),
        "segment_index_bytes": choose.one_of(SMALL if choose.one_in(6) else INDEX_BYTES),
        "index_key": INDEX_KEYS[choose.weighted((3, 1))],
        "entries": ENTRIES[choose.weighted((3, 1))],
        "file_already_exists": False,
        "init_file_size": choose.one_of((0, 1000)),
        "preallocate": choose.one_in(6),
        "file_suffix": "",
        "roll_jitter_ms": choose.one_of((0, 0, 7)),
        "now_ms": 1_000_000,
        "modified_ms": 5_000,
        "damage": (),
    }
    if choose.boolean():
        return Setup(arguments)
    arguments["file_already_exists"] = True
    stem, log = segment_file_name(base_offset, ""), b""
    for _ in range(choose.integer(0, 3)):
        offset = draw.next_offset(whole_batches(log), base_offset)
        log += draw.draw_batches(choose, max(0, offset))
    if choose.boolean():
        log += draw.draw_at_the_border(choose, base_offset)
    files = {f"{stem}.log": log}
    kinds = (".index", ".timeindex", ".txnindex")
    for kind in kinds if choose.magic_max == MAGIC_NEWEST else kinds[:2]:
        if choose.one_in(3):
            files[stem + kind] = draw.draw_index(choose, base_offset, kind)
    return Setup(arguments, files)


def _again_or(name: str, values: tuple[Value, ...]) -> Any:
    def drawn(choose: Choose, situation: Situation) -> Value:
        return choose.one_of(values) if choose.one_in(6) else situation.opened[name]

    return drawn


def _suffix_now(choose: Choose, situation: Situation) -> Value:
    """Draw the suffix that the log has now, mostly."""
    stem = segment_file_name(base_of(situation), ".log")
    found = [suffix for suffix in draw.SUFFIXES if stem + suffix in situation.files]
    if found and not choose.one_in(12):
        return found[0]
    return choose.one_of(draw.SUFFIXES)


def _some_now(choose: Choose, situation: Situation) -> int:
    step = choose.one_of((1, 0, 1_000, 60_000, -5))
    return within(situation.now_ms + step, 0, TIME_MS.high)


SUFFIX = OneOf(draw.SUFFIXES)
OPENING = (
    Parameter("base_offset", INT64),
    Parameter(
        "index_interval_bytes",
        Integer(0, SIZE_MAX),
        _again_or("index_interval_bytes", (0, 1, 100, 4096)),
    ),
    Parameter(
        "segment_index_bytes",
        Integer(0, SIZE_MAX),
        _again_or("segment_index_bytes", (1200, 240, 120, 60, 12)),
    ),
    Parameter("index_key", OneOf(INDEX_KEYS)),
    Parameter("entries", OneOf(ENTRIES)),
    Parameter("file_already_exists", FLAG, lambda choose, situation: not choose.one_in(12)),
    Parameter("init_file_size", SIZE, lambda choose, _: choose.one_of((0, 1000, -1))),
    Parameter("preallocate", FLAG, lambda choose, situation: choose.one_in(6)),
    Parameter("file_suffix", SUFFIX, _suffix_now),
    Parameter("roll_jitter_ms", INT64),
    Parameter("now_ms", TIME_MS, _some_now),
    Parameter("modified_ms", TIME_MS, lambda choose, _: choose.one_of((5_000, 0))),
    Parameter("damage", draw.damages(OneOf(draw.KINDS)), draw.draw_damage_to_files),
)
OPTIONS = ("index_interval_bytes", "segment_index_bytes")
FORMAT = ("index_key", "entries")
ASIDE = (*OPTIONS, *FORMAT, "damage", "now_ms", "modified_ms", "directory", "clock")


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in ASIDE}


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in OPTIONS}


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(
        _with_format(release, arguments).kind(LogSegment),
        files,
        "",
        config=LogConfig(**_options(arguments)),
        codecs=CODECS,
        modified_ms=arguments["modified_ms"],
        **_plain(arguments),
    )


def _with_format(release: Release, arguments: Mapping[str, Any]) -> Release:
    """Return segproof with the entries that were asked for; a release has its own."""
    if release.name != SEGPROOF.name:
        return release
    if release.has(FirstOffsetIsKey) != (arguments["index_key"] == "first_offset"):
        release = release.flipped(FirstOffsetIsKey)
    if release.has(CallIsIndexedAsAWhole) != (arguments["entries"] == "append"):
        release = release.flipped(CallIsIndexedAsAWhole)
    return release


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    folder = arguments["directory"]
    name = segment_file_name(arguments["base_offset"], ".log") + arguments["file_suffix"]
    if files.status(f"{folder}/{name}") is not None:
        files.set_modified(f"{folder}/{name}", arguments["modified_ms"] * 10**6)
    return impl_class.open(
        folder,
        config=ImplLogConfig(**_options(arguments)),
        files=files,
        time=arguments["clock"],
        write_format=WriteFormat(arguments["index_key"], arguments["entries"]),
        **creating(impl_class.open),
        **_plain(arguments),
    )


def _damage(arguments: Mapping[str, Any], images: Mapping[str, bytes]) -> Mapping[str, bytes]:
    stem = segment_file_name(arguments["base_offset"], "")
    return draw.damaged(arguments["damage"], stem, arguments["file_suffix"], images)


# --- the table -----------------------------------------------------------------------------------

OFFSET = Parameter("offset", INT64, draw.some_offset)
RECORDS = Bytes(draw.SMALL_MAX)
OFFSETS = Row(INT64, 10_000)
EPOCHS = Row(Record(epoch=Integer(0, INT32_MAX), start_offset=Integer(0, INT64_MAX)), 8)


def _some_suffix(choose: Choose, situation: Situation) -> str:
    return choose.one_of(draw.SUFFIXES)


WRITING = (
    operation(
        "append",
        40,
        "SEG-4 SEG-3 SEG-8 SEG-9 SEG-10",
        Parameter(
            "call",
            Together(
                largest_offset=INT64,
                records=RECORDS,
                largest_timestamp=Optional(INT64),
                shallow_offset_of_max_timestamp=Optional(INT64),
            ),
            draw.draw_append,
        ),
        errors={"segment-overflow": "SEG-2"},
        call_model=segment_operations.append,
    ),
    operation(
        "append_many",
        10,
        "SEG-26 SEG-25",
        Parameter("records", RECORDS, draw.draw_appended),
        errors={"segment-overflow": "SEG-2"},
        call_model=segment_operations.append_many,
    ),
    operation(
        "append_from_file",
        8,
        "SEG-42",
        Parameter("records", RECORDS, draw.draw_source),
        Parameter("start", INT32, lambda choose, _: choose.one_of((0, 0, 61))),
        errors={"segment-overflow": "SEG-2"},
        call_model=segment_operations.append_from_file,
        call_impl=segment_operations.append_from_file_of_impl,
    ),
    operation("truncate_to", 6, "SEG-31 SEG-32 SEG-33 SEG-34", OFFSET),
    operation(
        "recover",
        8,
        "SEG-20 SEG-22 SEG-23 SEG-24 SEG-28 SEG-30",
        Parameter("with_producers", FLAG, lambda choose, _: choose.boolean()),
        Parameter(
            "epochs",
            Optional(EPOCHS),
            draw.some_epochs,
        ),
        errors={"segment-overflow": "SEG-27"},
        call_model=segment_operations.recover,
        call_impl=segment_operations.recover_of_impl,
    ),
    operation(
        "update_txn_index",
        8,
        "FILE-3 TXNIDX-5",
        Parameter(
            "completed_txn",
            Record(producer_id=INT64, first_offset=INT64, last_offset=INT64, is_aborted=FLAG),
            draw.some_txn,
        ),
        Parameter("last_stable_offset", INT64, draw.some_offset),
    ),
    operation(
        "resize_indexes",
        2,
        "ABSIDX-8 ABSIDX-9",
        Parameter("size", SIZE, lambda choose, _: choose.one_of((*INDEX_BYTES, 0, -1))),
    ),
    operation("on_become_inactive_segment", 3, "SEG-38"),
)

READING = (
    operation(
        "translate_offset",
        6,
        "SEG-12",
        OFFSET,
        Parameter(
            "starting_file_position",
            INT32,
            lambda choose, situation: draw.some_place(choose, situation) if choose.one_in(3) else 0,
        ),
        errors={"corrupt-index": "SEG-7"},
    ),
    operation(
        "read",
        12,
        "SEG-15 SEG-14 SEG-16 SEG-17 SEG-18 SEG-13",
        Parameter("start_offset", INT64, draw.some_offset),
        Parameter("max_size", INT32, draw.some_max_size),
        Parameter("max_position", Optional(INT64), draw.some_max_position),
        Parameter("min_one_message", FLAG, lambda choose, _: choose.boolean()),
        errors={"corrupt-index": "SEG-7"},
        show=segment_operations.show_fetched,
    ),
    operation(
        "read_many",
        5,
        "SEG-12",
        Parameter("start_offsets", OFFSETS, draw.several(draw.some_offset)),
        errors={"corrupt-index": "SEG-7"},
        call_model=segment_operations.read_many,
    ),
    operation(
        "find_offset_by_timestamp",
        6,
        "SEG-39",
        Parameter("timestamp_ms", INT64, draw.some_timestamp),
        Parameter("starting_offset", INT64, draw.some_offset),
        errors={"corrupt-index": "SEG-7"},
    ),
    operation(
        "find_offset_by_timestamp_many",
        4,
        "SEG-39",
        Parameter("timestamps", OFFSETS, draw.several(draw.some_timestamp)),
        Parameter("starting_offset", INT64, draw.some_offset),
        errors={"corrupt-index": "SEG-7"},
        call_model=segment_operations.find_many,
    ),
    operation(
        "fetch_upper_bound_offset",
        8,
        "SEG-19",
        Parameter("start_offset_position", Record(offset=INT64, position=INT32), draw.some_fetch),
        Parameter("fetch_size", INT32, draw.some_fetch_size),
    ),
    operation(
        "collect_aborted_txns",
        8,
        "TXNIDX-10 TXNIDX-11",
        Parameter("fetch_offset", INT64, draw.some_txn_border),
        Parameter("upper_bound_offset", INT64, draw.some_txn_border),
    ),
    operation("read_next_offset", 4, "SEG-35", errors={"corrupt-index": "SEG-7"}),
    operation("has_overflow", 8, "SEG-41", errors={"corrupt-index": "SEG-7"}),
    operation("max_timestamp_so_far", 3, "SEG-49 SEG-8"),
    operation("offset_of_max_timestamp_so_far", 3, "SEG-8"),
    operation("largest_timestamp", 2, "SEG-40"),
    operation("largest_record_timestamp", 1, "SEG-40"),
)

ROLLING = (
    operation(
        "should_roll",
        8,
        "SEG-37",
        Parameter(
            "roll_params",
            Record(
                max_segment_ms=INT64,
                max_segment_bytes=INT64,
                max_timestamp_in_messages=INT64,
                max_offset_in_messages=INT64,
                messages_size=INT64,
                now=INT64,
            ),
            draw.some_roll,
        ),
    ),
    operation(
        "time_waited_for_roll",
        3,
        "SEG-36",
        Parameter("now", INT64, _some_now),
        Parameter("message_timestamp", INT64, draw.some_timestamp),
    ),
    operation("get_first_batch_timestamp", 2, "SEG-36"),
    operation("now", 4, "", Parameter("now_ms", TIME_MS, _some_now), sets_clock=True),
)

FILES = (
    operation(
        "sanity_check",
        2,
        "SEG-43",
        Parameter("time_index_file_newly_created", FLAG, lambda choose, _: choose.one_in(4)),
    ),
    operation("flush", 1, "SEG-48"),
    operation(
        "change_file_suffixes",
        3,
        "SEG-46",
        Parameter("old_suffix", SUFFIX, _some_suffix),
        Parameter("new_suffix", SUFFIX, _some_suffix),
    ),
    operation("has_suffix", 1, "SEG-46", Parameter("suffix", SUFFIX, _some_suffix)),
    operation("set_last_modified", 2, "SEG-40", Parameter("ms", TIME_MS, _some_now)),
    operation("close", 2, "SEG-44", ends=True),
    operation("close_handlers", 1, "SEG-45", ends=True),
    operation("delete_if_exists", 1, "SEG-47", ends=True),
)


def _parts(state: LogSegment) -> Iterable[Any]:
    indexes = state.lazy_offset_index.index, state.lazy_time_index.index
    return [state.log, state.txn_index, *(index for index in indexes if index is not None)]


def _is_asked(event: Event) -> bool:
    """Return whether a release is asked: not to rename a deleted segment to the name of another
    file, whose time of modification it then tells, and which no state knows."""
    before: Any = event.before
    after: Any = event.after
    if event.does("change_file_suffixes") and before is not None:
        is_gone = before.log.name not in before.files
        if is_gone and after.log.name in after.files:
            return False
    return codec_differences.is_asked(event)


LOG_SEGMENT = Structure(
    structure_id="log-segment",
    model="segproof_model.kafka.format.log_segment:LogSegment",
    opening=OPENING,
    draw_setup=_draw_setup,
    operations=(*WRITING, *READING, *ROLLING, *FILES),
    observed=(
        "size",
        "bytes_since_last_index_entry",
        "rolling_based_timestamp",
        "created_ms",
        "last_modified",
    ),
    sometimes=SOMETIMES,
    is_usable=lambda state: state.log.is_open,
    open_model=_open_model,
    open_impl=_open_impl,
    takes_directory=True,
    takes_clock=True,
    damage=_damage,
    parts=_parts,
    is_asked=_is_asked,
    laws=("SEG-49", "FILE-4"),
)
