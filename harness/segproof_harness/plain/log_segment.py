# SPDX-License-Identifier: Apache-2.0
"""How the plain log segment is driven: alone, with a producer state and epochs of its own."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_harness.plain.batches import CODECS
from segproof_harness.plain.offset_index import PLAIN as OFFSET_INDEX
from segproof_harness.plain.time_index import PLAIN as TIME_INDEX
from segproof_harness.plain.transaction_index import PLAIN as TXN_INDEX
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_deviations import (
    FailedSegmentChangeIsUndone,
    IndexesAreLoadedFirst,
    undone_but_for_loading,
)
from segproof_model.kafka.format.log_segment_releases import (
    CallIsIndexedAsAWhole,
    Told,
    UnknownMaximumIsAValue,
    append_told,
)
from segproof_model.kafka.format.log_segment_releases_before_2 import FirstOffsetIsKey
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import BATCH_HEADER_BYTES
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.behaviours import Behaviour, Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Step
from segproof_model.language.states import Refused, opened, refuse
from segproof_model.releases import SEGPROOF

OPTIONS = "index_interval_bytes", "segment_index_bytes"
NO_SEGMENT = "now_ms", "index_key", "entries", "damage", *OPTIONS
SOURCE = "source.log"


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open a segment; segproof writes the entries that the history asks for."""
    given: dict[str, Any] = dict(arguments)
    if release.name == SEGPROOF.name:
        if given["index_key"] == "first_offset":
            release = release.flipped(FirstOffsetIsKey)
        if given["entries"] != "batch":
            release = release.flipped(CallIsIndexedAsAWhole)
    return opened(
        release.kind(LogSegment),
        Files(files.images, given["now_ms"]),
        "",
        config=LogConfig(**{name: given[name] for name in OPTIONS}),
        codecs=CODECS,
        **{name: value for name, value in given.items() if name not in NO_SEGMENT},
    )


# --- operations of the harness: functions of a draft --------------------------------------------


def has(segment: LogSegment, behaviour: type[Behaviour]) -> bool:
    """Return whether a segment's release has a behaviour."""
    return segment.release is not None and segment.release.has(behaviour)


def records_of(segment: LogSegment, data: bytes) -> MemoryRecords:
    """Return bytes as records in memory."""
    return segment.kind(MemoryRecords)(data, codecs=CODECS)


def append(segment: LogSegment, call: tuple[int, bytes, int | None, int | None]) -> None:
    """Append, and tell of the largest timestamp where that is asked for."""
    largest_offset, records, *largest = call
    append_told(segment, largest_offset, records_of(segment, records), Told(None, *largest))


def append_nothing(segment: LogSegment) -> None:
    """Refuse what a closed segment refuses."""
    segment.append(segment.base_offset, records_of(segment, b""))


def append_many(segment: LogSegment, records: bytes) -> None:
    """Append each batch by a call of its own; in segproof, if one is refused, none is there."""
    append_nothing(segment)
    if not records:
        return
    if has(segment, IndexesAreLoadedFirst):
        load_indexes(segment)
        segment.read_max_timestamp_and_offset_so_far()
    with as_a_whole(segment):
        try:
            batches = list(records_of(segment, records).batches())
        except Refused:
            refuse(ErrorKind.CORRUPT_RECORD)
        ends = [batch.position + batch.size_bytes for batch in batches]
        smallest = min((one.size_bytes for one in batches if not one.is_legacy), default=61)
        if smallest < BATCH_HEADER_BYTES or ends[-1:] != [len(records)]:
            refuse(ErrorKind.CORRUPT_RECORD)
        for batch, end in zip(batches, ends, strict=True):
            data = records[batch.position : end]
            segment.append(batch.last_offset, records_of(segment, data))


def load_indexes(segment: LogSegment) -> None:
    """Load both indexes."""
    segment.lazy_offset_index.get()
    segment.lazy_time_index.get()


def as_a_whole(segment: LogSegment) -> AbstractContextManager[None]:
    """Undo everything after an error, where the release does so."""
    is_whole = has(segment, FailedSegmentChangeIsUndone)
    return undone_but_for_loading(segment) if is_whole else nullcontext()


def append_from_file(segment: LogSegment, records: bytes, start: int) -> int:
    """Copy from a file that lies elsewhere."""
    elsewhere = Files({SOURCE: records})
    source = segment.kind(RecordFile)(elsewhere, SOURCE, False, True, codecs=CODECS)
    return segment.append_from_file(source, start)


def recover(
    segment: LogSegment, with_producers: bool, epochs: tuple[tuple[int, int], ...] | None
) -> Any:
    """Recover, and return what was taught beside the number of bytes.

    A release always has a producer state.
    """
    producers: ProducerStateManager | None = None
    if with_producers or not is_segproof(segment):
        producers = segment.kind(ProducerStateManager)(Files())
    cache: LeaderEpochFileCache | None = None
    if epochs is not None:
        cache = segment.kind(LeaderEpochFileCache)(Files(), None)
        for epoch, start_offset in epochs:
            cache.assign(epoch, start_offset)
    removed = segment.recover(producers, cache)
    return (
        removed,
        None if producers is None else known_of(producers),
        None if cache is None else tuple(cache.epoch_entries()),
    )


def is_segproof(segment: LogSegment) -> bool:
    """Return whether a segment is segproof's, whatever entries it writes."""
    return segment.release is not None and segment.release.name == SEGPROOF.name


def known_of(producers: ProducerStateManager) -> Any:
    """Return what is known of producers and transactions."""
    entries = tuple([entry for _, entry in sorted(producers.active_producers.items())])
    waiting = tuple(producers.ongoing_txns), tuple(producers.unreplicated_txns)
    return entries, *waiting, producers.map_end_offset


def each_of(ask: Callable[[int], Any], asked: Iterable[int]) -> Any:
    """Return the answers of single calls as columns, or the error that a bulk twin meets first."""
    rows: list[Any] = []
    errors: list[ErrorKind] = []
    for one in asked:
        try:
            found = ask(one)
            rows.append((-1, -1) if found is None else tuple(found))
        except Refused as error:
            errors.append(error.kind)
    if errors:
        refuse(ErrorKind.CORRUPT_INDEX if ErrorKind.CORRUPT_INDEX in errors else errors[0])
    return tuple(zip(*rows, strict=True)) if rows else ((), ())


def read_many(segment: LogSegment, start_offsets: tuple[int, ...]) -> Any:
    """Look for each offset alone."""
    append_nothing(segment)
    segment.lazy_offset_index.get()

    def place(offset: int) -> Any:
        found = segment.translate_offset(offset)
        return None if found is None else found[1:]

    return each_of(place, start_offsets)


def find_many(segment: LogSegment, timestamps: tuple[int, ...], starting_offset: int) -> Any:
    """Look for each timestamp alone."""
    append_nothing(segment)
    if has(segment, IndexesAreLoadedFirst):
        load_indexes(segment)

    def place(timestamp: int) -> Any:
        found = segment.find_offset_by_timestamp(timestamp, starting_offset)
        return None if found is None else found[:2]

    return each_of(place, timestamps)


def judged_append(call: tuple[Any, ...]) -> Mapping[str, Any]:
    """Return the arguments of an append by name."""
    names = "largest_offset", "records", "largest_timestamp", "offset_of_max_timestamp"
    return dict(zip(names, call, strict=True))


# --- what is compared ----------------------------------------------------------------------------

OWN = (
    "base_offset size created_ms roll_jitter_ms bytes_since_last_index_entry"
    " rolling_based_timestamp is_closed names last_modified"
)


def seen_of_parts(segment: Any) -> Any:
    """Return the counters of both models' segments, the largest timestamp left out."""
    indexes = segment.lazy_offset_index.index, segment.lazy_time_index.index
    return (
        [getattr(segment, name) for name in OWN.split()],
        (segment.log.name, segment.log.size, segment.log.is_open),
        None if indexes[0] is None else OFFSET_INDEX.seen(indexes[0]),
        None if indexes[1] is None else TIME_INDEX.seen(indexes[1]),
        TXN_INDEX.seen(segment.txn_index),
    )


def seen(segment: LogSegment) -> Any:
    """Return the counters; where (-1, -1) counts as unknown it is seen as that."""
    known = segment.max_timestamp_and_offset_so_far
    if known == (-1, -1) and has(segment, UnknownMaximumIsAValue):
        known = None
    return known, segment.files.now_ms, segment.log.modified_ms, seen_of_parts(segment)


def seen_of_old(segment: Any) -> Any:
    """Return the same of the older model."""
    known = segment.max_pair
    if known == (-1, -1) and segment.profile.unknown_maximum_is_a_value:
        known = None
    return known, segment.now_ms, segment.modified_ms, seen_of_parts(segment)


PLAIN = Plain(
    open_it,
    {
        "append": append,
        "append_many": append_many,
        "append_from_file": append_from_file,
        "recover": recover,
        "read_many": read_many,
        "find_offset_by_timestamp_many": find_many,
    },
    seen=seen,
    seen_of_old=seen_of_old,
    kind=LogSegment,
    judged={"append": judged_append},
)
