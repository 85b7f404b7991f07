# SPDX-License-Identifier: Apache-2.0
"""How a segment's operations are called and their answers shown, on the model and on others."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache as ImplEpochs
from segproof.kafka.producer_state import ProducerStateManager as ImplProducers
from segproof.kafka.record_file import RecordFile as ImplRecordFile
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.structures.kafka.batch_drawing import attempt
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_deviations import (
    FailedSegmentChangeIsUndone,
    IndexesAreLoadedFirst,
    undone_but_for_loading,
)
from segproof_model.kafka.format.log_segment_releases import Told, append_told
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import BATCH_HEADER_BYTES
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse
from segproof_model.laws.register import has
from segproof_model.releases import SEGPROOF

SOURCE = "source.log"


# --- writing -------------------------------------------------------------------------------------


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


def append_from_file_of_impl(segment: Any, records: bytes, start: int) -> Any:
    """Let the implementation copy from a file that lies elsewhere."""
    files = MemoryFiles()
    write_file(files, f"/{SOURCE}", records)
    with ImplRecordFile.open(f"/{SOURCE}", files=files) as copied:
        return segment.append_from_file(copied, start)


# --- recovery ------------------------------------------------------------------------------------


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
    known = None if producers is None else show_producers(producers)
    return removed, known, None if cache is None else tuple(cache.epoch_entries())


def show_producers(manager: Any) -> Any:
    """Return what a producer state knows as plain values."""
    by_id = sorted(manager.active_producers.items())
    return (
        tuple(entry for _, entry in by_id),
        tuple(manager.ongoing_txns),
        tuple(manager.unreplicated_txns),
        manager.map_end_offset,
    )


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
