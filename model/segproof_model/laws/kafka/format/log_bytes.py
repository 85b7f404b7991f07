# SPDX-License-Identifier: Apache-2.0
"""How the laws of files read the bytes of a log and of the indexes beside it.

In a damaged log, only batches with right checksums are judged.
"""

from collections.abc import Iterator, Sequence

from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import int32_at
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format.batch_bytes import entries_of, records_of
from segproof_model.laws.kept_answers import kept


@kept
def batches_of(log: bytes, codecs: Codecs = NO_CODECS) -> list[RecordBatch]:
    """Return the batches up to the first unreadable place."""
    found: list[RecordBatch] = []
    records, position = MemoryRecords(b"", codecs=codecs), 0
    for entry in entries_of(log):
        least = 61 if entry[16] == 2 else 26
        if entry[16] > 2 or position + least > len(log):
            break
        found.append(records.batch_of(entry, position, len(entry), in_file=False))
        position += len(entry)
    return found


def end_of(log: bytes) -> int:
    """Return the position after the last of these batches."""
    return sum(batch.size_bytes for batch in batches_of(log))


@kept
def valid_batches(log: bytes, codecs: Codecs = NO_CODECS) -> list[RecordBatch]:
    """Return the batches whose size and checksum are right."""
    return [batch for batch in batches_of(log, codecs) if outcome_of(batch.is_valid) is True]


@kept
def valid_batches_anywhere(log: bytes) -> list[RecordBatch]:
    """Return the batches whose size and checksum are right, wherever they begin."""
    found: list[RecordBatch] = []
    position = 0
    while position + 26 <= len(log):
        size = 12 + int32_at(log, position + 8)
        one = valid_batches(log[position : position + size]) if size >= 26 else []
        is_one = len(one) == 1 and one[0].size_bytes == size
        found += one if is_one else []
        position += size if is_one else 1
    return found


def is_wrapper(batch: RecordBatch) -> bool:
    """Return whether the batch is a compressed message, whose first offset its header lacks."""
    return batch.is_legacy and batch.compression != "none"


def first_offset(batch: RecordBatch) -> int:
    """Return the base offset by the header alone; a message stands at its last offset."""
    return batch.last_offset if batch.is_legacy else batch.base_offset


def with_records(log: bytes, codecs: Codecs) -> list[tuple[RecordBatch, list[Record]]]:
    """Return the valid batches that have records which can all be read, and these."""
    both = [(batch, records_of(batch)) for batch in valid_batches(log, codecs)]
    return [(batch, found) for batch, found in both if not isinstance(found, Raised) and found]


def ends_without_key(batches: Sequence[RecordBatch]) -> bool:
    """Return whether the last batch of records has one without a key."""
    holding = [
        one for one in batches if one.is_legacy or (one.record_count > 0 and not one.is_control)
    ]
    records = records_of(holding[-1]) if holding else []
    return not isinstance(records, Raised) and any(record.key is None for record in records)


def marker_in(batch: RecordBatch) -> str | None:
    """Return how a control batch ends a transaction: ABORT or COMMIT; None if it does not."""
    record = outcome_of(lambda: next(batch.records(), None))
    key = (not isinstance(record, Raised) and record and record.key) or bytes(3)
    return {b"\0\0": "ABORT", b"\0\1": "COMMIT"}.get(key[2:4] if key[0] < 128 else b"")


Ended = tuple[int, int, int, str, int | None, int]


def ended_transactions(logs: Sequence[bytes], codecs: Codecs) -> Iterator[Ended]:
    """Yield of each transaction with a marker in one of the logs: the log's number, the producer,
    the marker's offset and kind, the begin of its first batch, and the marker before it or -1."""
    begun: dict[int, int] = {}
    markers: dict[int, int] = {}
    for number, log in enumerate(logs):
        for batch in valid_batches(log, codecs):
            producer, offset = batch.producer_id, first_offset(batch)
            kind = marker_in(batch) if batch.is_control else None
            if kind is not None:
                begin, previous = begun.pop(producer, None), markers.get(producer, -1)
                yield number, producer, offset, kind, begin, previous
                markers[producer] = offset
            elif batch.is_transactional and not batch.is_control:
                begun.setdefault(producer, offset)
