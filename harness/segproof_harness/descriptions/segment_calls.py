# SPDX-License-Identifier: Apache-2.0
"""How a segment's operations are called and their answers shown, on the model and on others.

Used by: descriptions.log_segment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache as ImplEpochs
from segproof.kafka.producer_state import ProducerStateManager as ImplProducers
from segproof.kafka.record_file import RecordFile as ImplRecordFile
from segproof_harness.codecs import CODECS
from segproof_harness.descriptions import segments as draw
from segproof_harness.descriptions.batches import attempt
from segproof_harness.descriptions.indexes import base_of
from segproof_harness.generation import (
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    Choose,
    one_in,
)
from segproof_harness.memory_files import MemoryFiles
from segproof_harness.operations import Value
from segproof_harness.structures import (
    Situation,
)
from segproof_model.directory import Directory
from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.offset_index import OffsetPosition
from segproof_model.kafka.producer_append_info import CompletedTxn
from segproof_model.kafka.producer_state import ProducerStateManager
from segproof_model.kafka.record_file import RecordFile, scan_memory
from segproof_model.kafka.segment_parts import CORRUPT_INDEX, UNMAPPED
from segproof_model.kafka.segment_recovery import Recovered
from segproof_model.kafka.segment_rolling import RollParams
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import SEGPROOF

SOURCE = "source.log"


# --- writing -------------------------------------------------------------------------------------


def draw_call_by_size(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw one append; a log that is large already mostly gets none."""
    if len(draw.log_of(situation)) > draw.LOG_BYTES_MAX and not one_in(choose, 3):
        return base_of(situation), b"", None, None
    return draw.draw_call(choose, situation)


def is_call(value: Value) -> bool:
    """Return whether a value read from a trace is one append."""
    if not isinstance(value, tuple) or len(value) != 4:
        return False
    offset, records, *pair = value
    return (
        type(offset) is int
        and INT64_MIN <= offset <= INT64_MAX
        and isinstance(records, bytes)
        and len(records) <= draw.SMALL_MAX
        and all(one is None or is_int64(one) for one in pair)
    )


def is_int64(value: Value) -> bool:
    """Return whether a value read from a trace is a 64-bit integer."""
    return type(value) is int and INT64_MIN <= value <= INT64_MAX


def is_small(value: Value) -> bool:
    """Return whether a value read from a trace is bytes, and not too many."""
    return isinstance(value, bytes) and len(value) <= draw.SMALL_MAX


def with_call(arguments: Mapping[str, Value]) -> Mapping[str, Any]:
    """Return the arguments of `append`."""
    call = arguments["call"]
    assert isinstance(call, tuple)
    names = ("largest_offset", "records", "largest_timestamp", "shallow_offset_of_max_timestamp")
    return dict(zip(names, call, strict=True))


def append_many(segment: LogSegment, records: bytes) -> Step[LogSegment]:
    """Append each batch by a call of its own; if one is refused, none is there."""
    if segment.is_refused:
        return Step(segment, UNMAPPED)
    if not records:
        return Step(segment)
    loaded = segment.with_indexes_for_append()
    if isinstance(loaded.outcome, Raised):
        return loaded
    segment = loaded.after
    scan = scan_memory(records, codecs=CODECS, profile=segment.profile)
    ends = [batch.position + batch.size_bytes for batch in scan.batches]
    is_small = any(batch.magic == 2 and batch.size_bytes < 61 for batch in scan.batches)
    if scan.error is not None or is_small or ends[-1:] != [len(records)]:
        return _only_loaded(segment, segment, Raised(ErrorKind.CORRUPT_RECORD))
    after = segment
    for batch, end in zip(scan.batches, ends, strict=True):
        last_offset = batch.last_offset
        if isinstance(last_offset, Raised):
            return _only_loaded(segment, after, last_offset)
        step = after.append(last_offset, records[batch.position : end])
        if isinstance(step.outcome, Raised):
            return _only_loaded(segment, step.after, step.outcome)
        after = step.after
    return Step(after)


def _only_loaded(before: LogSegment, after: LogSegment, outcome: Raised) -> Step[LogSegment]:
    return before.unless_refused(Step(after, outcome))


def file_arguments(arguments: Mapping[str, Value]) -> Mapping[str, Any]:
    """Return the arguments of `append_from_file`, with the model's record file."""
    image = arguments["records"]
    assert isinstance(image, bytes)
    directory = Directory(((SOURCE, image),))
    opened = RecordFile.open(
        SOURCE, False, True, directory=directory, profile=SEGPROOF, codecs=CODECS
    )
    return {"records": opened.after, "start": arguments["start"]}


def _memory_of(image: bytes) -> MemoryFiles:
    files = MemoryFiles()
    file = files.open(f"/{SOURCE}", writable=True, create=True)
    file.pwrite(image, 0)
    file.close()
    return files


def append_from_file(segment: Any, records: RecordFile, start: int) -> Any:
    """Call `append_from_file` with a record file of the implementation."""
    files = _memory_of(records.image)
    with ImplRecordFile.open(f"/{SOURCE}", False, True, files=files) as source:
        return segment.append_from_file(source, start)


def source(choose: Choose, situation: Situation) -> bytes:
    """Draw the bytes of a log to copy from."""
    return b"" if one_in(choose, 12) else draw.draw_appended(choose, situation)


def txn_arguments(arguments: Mapping[str, Value]) -> Mapping[str, Any]:
    """Return the arguments of `update_txn_index`."""
    fields = arguments["completed_txn"]
    assert isinstance(fields, tuple)
    return {**arguments, "completed_txn": CompletedTxn(*fields)}


def is_txn(value: Value) -> bool:
    """Return whether a value read from a trace is a completed transaction."""
    return (
        isinstance(value, tuple)
        and len(value) == 4
        and all(is_int64(one) for one in value[:3])
        and isinstance(value[3], bool)
    )


# --- recovery ------------------------------------------------------------------------------------


def epochs(choose: Choose, situation: Situation) -> Value:
    """Draw the epochs known before a recovery; None for no cache of them."""
    base = base_of(situation)
    if base < 0:
        return None  # no epoch begins there
    return choose.one_of((None, (), ((0, base),), ((0, base), (4, base + 2))))


def is_epochs(value: Value) -> bool:
    """Return whether a value read from a trace is such a list, or None."""
    return value is None or (
        isinstance(value, tuple)
        and len(value) <= 8
        and all(
            isinstance(one, tuple)
            and len(one) == 2
            and type(one[0]) is int
            and 0 <= one[0] < 2**31
            and is_int64(one[1])
            and one[1] >= 0
            for one in value
        )
    )


def recover_arguments(arguments: Mapping[str, Value]) -> Mapping[str, Any]:
    """Return the arguments of `recover`, as the model has them."""
    producers = epochs = None
    if arguments["with_producers"]:
        producers = ProducerStateManager.open("", profile=SEGPROOF).after
    if arguments["epochs"] is not None:
        epochs = LeaderEpochFileCache.in_memory(profile=SEGPROOF)
        assert isinstance(arguments["epochs"], tuple)
        for epoch, start_offset in arguments["epochs"]:
            epochs = epochs.assign(epoch, start_offset).after
    return {"producer_state_manager": producers, "leader_epoch_cache": epochs}


def recover_model(
    segment: LogSegment, producer_state_manager: Any, leader_epoch_cache: Any
) -> Step[Recovered]:
    """Recover, with the producer state and the epochs under the segment's profile."""
    given = (
        None if one is None else replace(one, profile=segment.profile)
        for one in (producer_state_manager, leader_epoch_cache)
    )
    return segment.recover(*given)


def recover_impl(segment: Any, producer_state_manager: Any, leader_epoch_cache: Any) -> Any:
    """Recover, with a producer state and a cache of epochs in memory."""
    producers = epochs = None
    if producer_state_manager is not None:
        producers = ImplProducers.open("/", files=MemoryFiles())
    if leader_epoch_cache is not None:
        epochs = ImplEpochs.in_memory()
        for epoch, start_offset in leader_epoch_cache.entries:
            epochs.assign(epoch, start_offset)
    return (segment.recover(producers, epochs), *_shown_state(producers, epochs))


def _shown_state(producers: Any, epochs: Any) -> tuple[Any, Any]:
    """Return what a recovery has taught the producer state and the cache of epochs."""
    known = None
    if producers is not None:
        by_id = sorted(producers.active_producers.items())
        known = (
            tuple(entry for _, entry in by_id),
            tuple(producers.ongoing_txns),
            tuple(producers.unreplicated_txns),
            producers.map_end_offset,
        )
    return known, None if epochs is None else tuple(epochs.epoch_entries())


def settled(step: Step[Any]) -> Step[LogSegment]:
    """Return the segment that was recovered, and beside the outcome what was taught."""
    after, outcome = step.after, step.outcome
    if not isinstance(outcome, Raised):
        taught = _shown_state(after.producer_state_manager, after.leader_epoch_cache)
        outcome = (outcome, *taught)
    return Step(after.segment, outcome)


# --- reading -------------------------------------------------------------------------------------


def show_fetched(info: Any) -> Any:
    """Return what a read found as plain values, the bytes included."""
    if info is None:
        return None
    records = info.records
    shown = None
    if records is not None:
        shown = (records.start, records.size_in_bytes(), attempt(records.read))
    metadata, aborted = tuple(info.fetch_offset_metadata), info.aborted_transactions
    return metadata, shown, info.first_entry_incomplete, aborted


def _each(segment: LogSegment, calls: Iterable[Any]) -> Step[LogSegment]:
    """Return the answers of single calls as columns, or the error that the bulk twin meets first.

    That looks at the index before the log. -1 stands for no answer.
    """
    after = segment
    rows: list[Any] = []
    errors: list[Raised] = []
    for call in calls:
        step = call(after)
        after = step.after
        if isinstance(step.outcome, Raised):
            errors.append(step.outcome)
        rows.append((-1, -1) if step.outcome is None else step.outcome)
    if errors:
        return Step(after, CORRUPT_INDEX if CORRUPT_INDEX in errors else errors[0])
    return Step(after, tuple(zip(*rows, strict=True)) if rows else ((), ()))


def read_many(segment: LogSegment, start_offsets: tuple[int, ...]) -> Step[LogSegment]:
    """Look for each offset alone."""
    if segment.is_refused:
        return Step(segment, UNMAPPED)
    loaded = segment.ask_offset_index(lambda index: None)
    asks = [partial(_place_of, offset=offset) for offset in start_offsets]
    return loaded if isinstance(loaded.outcome, Raised) else _each(loaded.after, asks)


def _place_of(segment: LogSegment, offset: int) -> Step[LogSegment]:
    step = segment.translate_offset(offset)
    found = step.outcome
    return Step(step.after, found[1:]) if isinstance(found, tuple) else step


def find_many(
    segment: LogSegment, timestamps: tuple[int, ...], starting_offset: int
) -> Step[LogSegment]:
    """Look for each timestamp alone."""
    if segment.is_refused:
        return Step(segment, UNMAPPED)
    loaded = segment.with_indexes()
    asks = [
        partial(_time_of, timestamp=timestamp, starting_offset=starting_offset)
        for timestamp in timestamps
    ]
    return loaded if isinstance(loaded.outcome, Raised) else _each(loaded.after, asks)


def _time_of(segment: LogSegment, timestamp: int, starting_offset: int) -> Step[LogSegment]:
    step = segment.find_offset_by_timestamp(timestamp, starting_offset)
    found = step.outcome
    return Step(step.after, found[:2]) if isinstance(found, tuple) else step


def is_numbers(value: Value) -> bool:
    """Return whether a value read from a trace is a tuple of 64-bit integers."""
    return isinstance(value, tuple) and len(value) <= 10_000 and all(map(is_int64, value))


def fetch_arguments(arguments: Mapping[str, Value]) -> Mapping[str, Any]:
    """Return the arguments of `fetch_upper_bound_offset`."""
    place = arguments["start_offset_position"]
    assert isinstance(place, tuple)
    return {**arguments, "start_offset_position": OffsetPosition(*place)}


def is_place(value: Value) -> bool:
    """Return whether a value read from a trace is an offset with a position."""
    return (
        is_numbers(value)
        and isinstance(value, tuple)
        and len(value) == 2
        and INT32_MIN <= value[1] < 2**31
    )


def roll_arguments(arguments: Mapping[str, Value]) -> Mapping[str, Any]:
    """Return the arguments of `should_roll`."""
    fields = arguments["roll_params"]
    assert isinstance(fields, tuple)
    return {"roll_params": RollParams(*fields)}


def is_roll(value: Value) -> bool:
    """Return whether a value read from a trace is the parameters of a roll."""
    return is_numbers(value) and isinstance(value, tuple) and len(value) == 6
