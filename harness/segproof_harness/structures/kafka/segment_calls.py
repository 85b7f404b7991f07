# SPDX-License-Identifier: Apache-2.0
"""How a segment's operations are called and their answers shown, on the model and on others."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache as ImplEpochs
from segproof.kafka.producer_state import ProducerStateManager as ImplProducers
from segproof.kafka.record_file import RecordFile as ImplRecordFile
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.structures.choices import (
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    Choose,
    one_in,
)
from segproof_harness.structures.kafka import segment_drawing as draw
from segproof_harness.structures.kafka.abstract_index import base_of
from segproof_harness.structures.kafka.batch_drawing import attempt
from segproof_harness.structures.operations import Value
from segproof_harness.structures.structure import (
    Situation,
)
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_segment import LogSegment, RollParams
from segproof_model.kafka.format.log_segment_deviations import (
    FailedSegmentChangeIsUndone,
    IndexesAreLoadedFirst,
    undone_but_for_loading,
)
from segproof_model.kafka.format.log_segment_releases import Told, append_told
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.record_batch import BATCH_HEADER_BYTES
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.kafka.format.segment_recovery import CompletedTxn
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse
from segproof_model.laws.register import has
from segproof_model.releases import SEGPROOF

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


def _records(segment: LogSegment, data: bytes) -> MemoryRecords:
    return segment.kind(MemoryRecords)(data, codecs=CODECS)


def append(
    segment: LogSegment,
    largest_offset: int,
    records: bytes,
    largest_timestamp: int | None,
    shallow_offset_of_max_timestamp: int | None,
) -> None:
    """Append to the model, and tell of the largest timestamp where that is asked for."""
    told = Told(None, largest_timestamp, shallow_offset_of_max_timestamp)
    append_told(segment, largest_offset, _records(segment, records), told)


def _check_open(segment: LogSegment) -> None:
    """Refuse what a closed segment refuses."""
    segment.append(segment.base_offset, _records(segment, b""))


def append_many(segment: LogSegment, records: bytes) -> None:
    """Append each batch by a call of its own; in segproof, if one is refused, none is there."""
    _check_open(segment)
    if not records:
        return
    if has(segment, IndexesAreLoadedFirst):
        _load_indexes(segment)
        segment.read_max_timestamp_and_offset_so_far()
    with _as_a_whole(segment):
        try:
            batches = list(_records(segment, records).batches())
        except Refused:
            refuse(ErrorKind.CORRUPT_RECORD)
        ends = [batch.position + batch.size_bytes for batch in batches]
        is_small = any(not one.is_legacy and one.size_bytes < BATCH_HEADER_BYTES for one in batches)
        if is_small or ends[-1:] != [len(records)]:
            refuse(ErrorKind.CORRUPT_RECORD)
        for batch, end in zip(batches, ends, strict=True):
            data = records[batch.position : end]
            segment.append(batch.last_offset, _records(segment, data))


def _load_indexes(segment: LogSegment) -> None:
    segment.lazy_offset_index.get()
    segment.lazy_time_index.get()


def _as_a_whole(segment: LogSegment) -> AbstractContextManager[None]:
    """Undo everything after an error, where the release does so."""
    is_whole = has(segment, FailedSegmentChangeIsUndone)
    return undone_but_for_loading(segment) if is_whole else nullcontext()


def append_from_file(segment: LogSegment, records: bytes, start: int) -> int:
    """Let the model copy from a file that lies elsewhere."""
    elsewhere = Files({SOURCE: records})
    copied = segment.kind(RecordFile)(elsewhere, SOURCE, False, True, codecs=CODECS)
    return segment.append_from_file(copied, start)


def _memory_of(image: bytes) -> MemoryFiles:
    files = MemoryFiles()
    file = files.open(f"/{SOURCE}", writable=True, create=True)
    file.pwrite(image, 0)
    file.close()
    return files


def append_from_file_of_impl(segment: Any, records: bytes, start: int) -> Any:
    """Let the implementation copy from a file that lies elsewhere."""
    files = _memory_of(records)
    with ImplRecordFile.open(f"/{SOURCE}", False, True, files=files) as copied:
        return segment.append_from_file(copied, start)


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


def recover(
    segment: LogSegment, with_producers: bool, epochs: tuple[tuple[int, int], ...] | None
) -> Any:
    """Let the model recover; return what was taught beside the number of bytes.

    A release always has a producer state.
    """
    producers = cache = None
    is_segproof = segment.release is not None and segment.release.name == SEGPROOF.name
    if with_producers or not is_segproof:
        producers = segment.kind(ProducerStateManager)(Files())
    if epochs is not None:
        cache = segment.kind(LeaderEpochFileCache)(Files(), None)
    return _recovered(segment, producers, cache, epochs)


def recover_of_impl(
    segment: Any, with_producers: bool, epochs: tuple[tuple[int, int], ...] | None
) -> Any:
    """Let the implementation recover, with producer state and epochs in memory."""
    producers = ImplProducers.open("/", files=MemoryFiles()) if with_producers else None
    cache = None if epochs is None else ImplEpochs.in_memory()
    return _recovered(segment, producers, cache, epochs)


def _recovered(
    segment: Any, producers: Any, cache: Any, epochs: tuple[tuple[int, int], ...] | None
) -> Any:
    """Recover, and return what was taught beside the number of bytes."""
    for epoch, start_offset in epochs or ():
        cache.assign(epoch, start_offset)
    removed = segment.recover(producers, cache)
    known = None
    if producers is not None:
        by_id = sorted(producers.active_producers.items())
        known = (
            tuple(entry for _, entry in by_id),
            tuple(producers.ongoing_txns),
            tuple(producers.unreplicated_txns),
            producers.map_end_offset,
        )
    return removed, known, None if cache is None else tuple(cache.epoch_entries())


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


def _each(ask: Callable[[int], Any], asked: Iterable[int]) -> Any:
    """Return the answers of single calls as columns, or the error that the bulk twin meets first.

    That looks at the index before the log. -1 stands for no answer.
    """
    rows: list[Any] = []
    errors: list[ErrorKind] = []
    for one in asked:
        try:
            found = ask(one)
            rows.append((-1, -1) if found is None else found)
        except Refused as error:
            errors.append(error.kind)
    if errors:
        refuse(ErrorKind.CORRUPT_INDEX if ErrorKind.CORRUPT_INDEX in errors else errors[0])
    return tuple(zip(*rows, strict=True)) if rows else ((), ())


def read_many(segment: LogSegment, start_offsets: tuple[int, ...]) -> Any:
    """Look for each offset alone."""
    _check_open(segment)
    segment.lazy_offset_index.get()

    def place(offset: int) -> Any:
        found = segment.translate_offset(offset)
        return None if found is None else found[1:]

    return _each(place, start_offsets)


def find_many(segment: LogSegment, timestamps: tuple[int, ...], starting_offset: int) -> Any:
    """Look for each timestamp alone."""
    _check_open(segment)
    if has(segment, IndexesAreLoadedFirst):
        _load_indexes(segment)

    def place(timestamp: int) -> Any:
        found = segment.find_offset_by_timestamp(timestamp, starting_offset)
        return None if found is None else found[:2]

    return _each(place, timestamps)


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
