# SPDX-License-Identifier: Apache-2.0
"""What is appended to a partition's log: drawn so that most of it is taken, and some is refused."""

from collections.abc import Callable, Mapping
from typing import Any

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.choices import INT32_MAX, MAGIC_NEWEST, Choose, within
from segproof_harness.structures.kafka.batch_drawing import draw_damaged, whole_batches
from segproof_harness.structures.kafka.segment_drawing import SMALL_MAX
from segproof_harness.structures.kinds import INT32, Bytes, Integer, OneOf, Together
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Situation
from segproof_model.kafka.format.batch_writing import (
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.kafka.format.compression import COMPRESSIONS
from segproof_model.kafka.format.record import Record

LEADER_CALL = Together(
    records=Bytes(SMALL_MAX),
    leader_epoch=INT32,
    origin=OneOf(("client", "coordinator")),
    transaction_version=INT32,
)
FOLLOWER_CALL = Together(records=Bytes(SMALL_MAX), leader_epoch=INT32)
PRODUCERS = (1, 2, 3)
RECORDS_MAX = 9
"""Of a batch that is sent again."""
OFFSET_MAX = 2**62
OFFSET = Integer(0, OFFSET_MAX)
SMALLEST_BYTES = 69
"""Of a batch of one record with a key of one byte and an empty value."""
SIZED_MAX = 2_000
SIZE_BYTES_MAX = 6_000
"""From this size on, histories append less."""


# --- single batches ------------------------------------------------------------------------------


def _records(
    choose: Choose, offset: int, now_ms: int, count: int, is_sparse: bool = False
) -> list[Record]:
    """Draw records around the time, seldom large or far from it; `is_sparse`: with gaps."""
    records = []
    for _ in range(count):
        kind = choose.weighted((30, 3, 1, 1))
        timestamp = now_ms - choose.integer(0, 200)
        if kind:
            timestamp = (timestamp, -1, now_ms + 50, now_ms + 4_000_000)[kind]
        size = choose.integer(0, 12) if not choose.one_in(30) else choose.one_of((150, 900))
        key = None if choose.one_in(8) else b"k"
        records.append(Record(offset, max(-1, timestamp), key, bytes([65 + size % 26]) * size))
        offset += 1 + (choose.integer(0, 3) if is_sparse else 0)
    return records


def _codec(choose: Choose) -> str:
    return COMPRESSIONS[choose.one_of((0, 0, 0, 0, 0, 0, 1, 2, 3, 4))]


def _no_codec(choose: Choose) -> str:
    """Draw none: a leader would write the records anew with it."""
    return "none"


def _written(batch: Any) -> bytes:
    assert isinstance(batch, bytes), batch
    return batch


def _plain(
    choose: Choose,
    offset: int,
    now_ms: int,
    magic: int,
    codecs: Callable[[Choose], str] = _codec,
    **more: Any,
) -> bytes:
    is_stamped = magic > 0 and choose.one_in(12)
    codec = codecs(choose)
    is_sparse = "partition_leader_epoch" in more and choose.one_in(5)
    return _written(
        write_batch(
            _records(choose, offset, now_ms, choose.one_of((1, 2, 1, 3)), is_sparse),
            magic=magic,
            base_offset=offset,
            compression="none" if codec == "zstd" and magic < 2 else codec,
            timestamp_type="LogAppendTime" if is_stamped else "CreateTime",
            log_append_time=now_ms if is_stamped else None,
            codecs=CODECS,
            **(more if magic == 2 else {}),
        )
    )


def _next_of(choose: Choose, entry: Any) -> tuple[int, int, int]:
    """Draw (epoch, sequence, records) that continue a producer; sometimes not."""
    count = choose.one_of((1, 2, 3))
    if entry is None:
        return choose.one_of((0, 0, 1)), choose.one_of((0, 0, 0, INT32_MAX - 1)), count
    epoch = max(0, entry.producer_epoch)
    sequence = 0 if entry.last_seq < 0 else (entry.last_seq + 1) % 2**31
    kind = choose.weighted((24, 4, 2, 2, 2))
    if kind == 1 and entry.batch_metadata:
        known = choose.one_of(entry.batch_metadata)
        # What sequence numbers alone say of a batch can be no number of records.
        return epoch, max(0, known.first_seq), within(known.offset_delta + 1, 1, RECORDS_MAX)
    if kind == 2:
        return epoch, (sequence + choose.integer(1, 3)) % 2**31, count
    if kind == 3:
        return max(0, epoch - 1), sequence, count
    if kind == 4:
        return min(epoch + 1, 2**15 - 1), choose.one_of((0, 0, 0, 1)), count
    return epoch, sequence, count


def _of_producer(
    choose: Choose,
    offset: int,
    now_ms: int,
    producers: Mapping[int, Any],
    leader_epoch: int = -1,
    may_begin: bool = True,
) -> bytes:
    """Draw a batch of a producer; in a transaction if one is open, mostly."""
    producer_id = choose.one_of(PRODUCERS)
    entry = producers.get(producer_id)
    epoch, sequence, count = _next_of(choose, entry)
    is_open = entry is not None and entry.current_txn_first_offset is not None
    is_transactional = choose.one_in(10) != is_open if is_open else choose.boolean()
    return _written(
        write_batch(
            _records(choose, offset, now_ms, count),
            base_offset=offset,
            compression=_codec(choose),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            partition_leader_epoch=leader_epoch,
            is_transactional=is_transactional and may_begin,
            codecs=CODECS,
        )
    )


def _marker(
    choose: Choose, offset: int, now_ms: int, producers: Mapping[int, Any], leader_epoch: int = -1
) -> bytes:
    """Draw the end of a transaction, mostly of one that is open."""
    is_open = [one for one in PRODUCERS if _first_offset(producers.get(one)) is not None]
    known = [one for one in PRODUCERS if one in producers]
    candidates = is_open or known or list(PRODUCERS)
    producer_id = choose.one_of(candidates if not choose.one_in(8) else PRODUCERS)
    entry = producers.get(producer_id)
    epoch = 0 if entry is None else max(0, entry.producer_epoch)
    return _written(
        write_end_transaction_marker(
            choose.one_of(("ABORT", "COMMIT")),
            offset=offset,
            timestamp=now_ms,
            producer_id=producer_id,
            producer_epoch=within(epoch + choose.one_of((0, 0, 0, 0, 1, 1, -1)), 0, 2**15 - 1),
            coordinator_epoch=choose.one_of((0, 0, 1, 5)),
            partition_leader_epoch=leader_epoch,
        )
    )


def _first_offset(entry: Any) -> int | None:
    return None if entry is None else entry.current_txn_first_offset


def _border_sizes(choose: Choose, state: Any) -> list[int]:
    """Return with how many bytes more a segment is full, or retention has something to remove."""
    sizes = [segment.size for segment in state.log_segments]
    if choose.one_in(3):
        return [state.config.segment_bytes - sizes[-1]]
    return [state.config.retention_bytes - sum(sizes[place:]) for place in range(1, len(sizes))]


def _up_to_a_border(choose: Choose, offset: int, state: Any) -> bytes:
    """Draw a batch of one record that is as large as a border allows, or one byte beside it."""
    borders = [one for one in _border_sizes(choose, state) if SMALLEST_BYTES < one < SIZED_MAX]
    size = SMALLEST_BYTES
    if borders:
        size = choose.one_of(borders) + choose.one_of((0, 0, -1, 1))
    # Longer lengths take one byte more: first that of the value, then that of the record.
    value = bytes(size - SMALLEST_BYTES - (size > 126) - (size > 134))
    batch = write_batch([Record(offset, state.files.now_ms, b"k", value)], base_offset=offset)
    return _written(batch)


# --- calls ---------------------------------------------------------------------------------------


def _producers(situation: Situation) -> Mapping[int, Any]:
    state = situation.state
    return {} if state is None else state.producer_state_manager.active_producers


def _latest_epoch(situation: Situation) -> int:
    state = situation.state
    latest = None if state is None else state.leader_epoch_cache.latest_epoch()
    return 0 if latest is None else int(latest)


def _is_large(choose: Choose, situation: Situation) -> bool:
    state = situation.state
    return state is not None and state.size > SIZE_BYTES_MAX and not choose.one_in(4)


def draw_leader_call(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw (records, leader epoch, origin, transaction version) of an append as leader."""
    state = situation.state
    epoch = min(_latest_epoch(situation) + choose.one_of((0, 0, 0, 0, 1)), INT32_MAX)
    if state is None or _is_large(choose, situation):
        return b"", epoch, "client", -1
    now, producers = state.files.now_ms, _producers(situation)
    if choose.magic_max < MAGIC_NEWEST:
        return _messages(choose, now, state.config.compression_type), epoch, "client", -1
    kind = choose.weighted((8, 12, 8, 2, 1, 1, 1, 12))
    if kind == 0:
        return _plain(choose, 0, now, 2), epoch, "client", -1
    if kind == 7:
        return _up_to_a_border(choose, 0, state), epoch, "client", -1
    if kind == 1:
        return _of_producer(choose, 0, now, producers), epoch, "client", -1
    if kind == 2:
        version = choose.one_of((0, 1, 2, 1, -1)) if choose.one_in(3) else choose.integer(0, 2)
        origin = "coordinator" if not choose.one_in(20) else "client"
        return _marker(choose, 0, now, producers), epoch, origin, version
    if kind == 3:
        is_kept = state.config.compression_type == "producer"
        return _legacy(choose, now, _no_codec if is_kept else _codec), epoch, "client", -1
    batch = _plain(choose, choose.one_of((0, 0, 5)), now, 2)
    if kind == 4:
        return draw_damaged(choose, batch), epoch, "client", -1
    if kind == 5:
        return batch + _plain(choose, 0, now, 2), epoch, "client", -1
    return choose.one_of((b"", batch, batch[:30], batch[:-1])), epoch, "client", -1


def _messages(choose: Choose, now_ms: int, compression_type: str) -> bytes:
    """Draw what a leader is given that knows messages of magic 0 and 1 only.

    What it would compress anew is left out, as its codecs make other bytes.
    """
    codecs = _no_codec if compression_type == "producer" else _codec
    kind = choose.weighted((14, 6, 3, 2, 1, 1))
    if kind == 1:
        return _legacy(choose, now_ms, _no_codec)
    if kind == 2:
        return _plain(choose, choose.one_of((0, 5)), now_ms, choose.integer(0, 1), codecs)
    batch = _plain(choose, 0, now_ms, 1)
    if kind == 3:
        return draw_damaged(choose, batch)
    if kind == 4:
        return batch + _plain(choose, 0, now_ms, 1)
    return choose.one_of((b"", batch[:30], batch[:-1])) if kind == 5 else batch


def _legacy(choose: Choose, now_ms: int, codecs: Callable[[Choose], str]) -> bytes:
    """Draw some messages of magic 0 or 1, seldom of both."""
    magic, messages, offset = choose.integer(0, 1), b"", 0
    for _ in range(choose.one_of((1, 1, 2))):
        magic = magic if not choose.one_in(12) else 1 - magic
        messages += _plain(choose, offset, now_ms, magic, codecs)
        offset = end_of(messages, offset)
    return messages


def draw_follower_call(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw (records, leader epoch) of an append as follower: batches that have their offsets."""
    state = situation.state
    epoch = _latest_epoch(situation)
    if state is None or _is_large(choose, situation):
        return b"", epoch
    if choose.one_in(6):
        epoch = min(epoch + 1, INT32_MAX)
    offset = state.log_end_offset + choose.one_of((0, 0, 0, 0, 1, 7))
    if choose.one_in(20):
        offset = max(0, offset - choose.integer(1, 9))
    elif choose.one_in(30):
        active = state.log_segments.active_segment.base_offset
        offset = max(offset, active + INT32_MAX + choose.integer(-3, 2))
    records = b""
    for _ in range(choose.one_of((1, 1, 2, 3))):
        offset = min(offset, OFFSET_MAX)
        records += _replicated(choose, offset, situation, epoch)
        offset = end_of(records, offset) + choose.one_of((0, 0, 0, 2))
        offset -= 1 if choose.one_in(40) else 0
    if choose.one_in(30):
        records = records[: choose.integer(0, len(records))]
    return records, epoch - (1 if choose.one_in(30) else 0)


def _replicated(choose: Choose, offset: int, situation: Situation, leader_epoch: int) -> bytes:
    now, producers = situation.state.files.now_ms, _producers(situation)
    if choose.magic_max < MAGIC_NEWEST:
        batch = _plain(choose, offset, now, 0 if choose.one_in(6) else 1)
        return draw_damaged(choose, batch) if choose.one_in(20) else batch
    epoch = leader_epoch + (1 if choose.one_in(20) else 0)
    kind = choose.weighted((8, 8, 6, 2, 1, 1))
    if kind == 0:
        return _plain(choose, offset, now, 2, partition_leader_epoch=epoch)
    if kind == 1:
        return _of_producer(choose, offset, now, producers, epoch)
    if kind == 2:
        return _marker(choose, offset, now, producers, epoch)
    if kind == 3:
        return _plain(choose, offset, now, choose.integer(0, 1))
    if kind == 4:
        last = offset + choose.integer(0, 5)
        return _written(write_empty_batch(offset, last, now, partition_leader_epoch=epoch))
    return draw_damaged(choose, _plain(choose, offset, now, 2, partition_leader_epoch=epoch))


def end_of(records: bytes, offset: int) -> int:
    """Return the offset behind the last batch; without one, the offset."""
    batches = whole_batches(records)
    last = batches[-1].last_offset if batches else offset - 1
    return within(last + 1, 0, OFFSET_MAX)


def draw_stored(choose: Choose, offset: int, now_ms: int, count: int) -> bytes:
    """Draw so many batches as they lie in a log, from the offset on."""
    log = b""
    for _ in range(count):
        if choose.magic_max < MAGIC_NEWEST:
            log += _plain(choose, offset, now_ms, 0 if choose.one_in(6) else 1)
        elif choose.one_in(3):
            log += _of_producer(choose, offset, now_ms, {}, 0, may_begin=False)
        else:
            log += _plain(choose, offset, now_ms, 2, partition_leader_epoch=0)
        offset = end_of(log, offset)
    return log
