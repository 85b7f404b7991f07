# SPDX-License-Identifier: Apache-2.0
"""What a log asks of batches before it takes them, and what a leader writes into them.

Mirrors: impl/segproof/kafka/log_validator.py.
Upstream: Kafka, LogValidator, UnifiedLog.analyzeAndValidateRecords, LogAppendInfo (4.3.1).
Laws: LOG-10, LOG-21.
Not covered: writing another format than magic 2, which older releases are told to; which of two
    errors is told where messages are wrong in different ways; the delete horizon of a batch that is
    compressed anew, and a coordinator's batch without records, of which nothing would be left.
Used by: partition_appending.
"""

from collections.abc import Sequence
from typing import NamedTuple

from segproof_model.kafka.batch_writing import LOG_APPEND_TIME_BIT, write_batch
from segproof_model.kafka.compression import Codecs, crc32, crc32c
from segproof_model.kafka.legacy_record import LegacyRecord, read_messages
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.producer_append_info import AppendOrigin
from segproof_model.kafka.record import Record
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import Scan
from segproof_model.language.integers import INT32_MAX, int32_bytes, int64_bytes
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import Profile
from segproof_model.values import replace

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
ILLEGAL_STATE = Raised(ErrorKind.ILLEGAL_STATE)
"""Stands for upstream's UnsupportedOperationException: it has skipped the keys it then needs."""
INVALID_RECORD = Raised(ErrorKind.INVALID_RECORD)
INVALID_TIMESTAMP = Raised(ErrorKind.INVALID_TIMESTAMP)
OFFSET_ORDER = Raised(ErrorKind.OFFSET_ORDER)
RECORD_TOO_LARGE = Raised(ErrorKind.RECORD_TOO_LARGE)
UNKNOWN_OFFSET = -1
NO_TIMESTAMP = -1
CURRENT_MAGIC = 2


class LogAppendInfo(NamedTuple):
    """What became of a call of append."""

    first_offset: int
    """-1 if unknown: the first batch that a follower was given is of magic 0 or 1."""
    last_offset: int
    """Inclusive."""
    max_timestamp: int
    log_append_time: int
    """The broker's time in ms that every record got; -1 if they keep their own."""
    log_start_offset: int
    valid_bytes: int
    """Bytes of the batches that were looked at, as they were given."""
    last_offset_of_first_batch: int
    """As it was given."""

    @property
    def first_or_last_offset(self) -> int:
        """The first offset; unknown, the last one of the first batch."""
        is_unknown = self.first_offset == UNKNOWN_OFFSET
        return self.last_offset_of_first_batch if is_unknown else self.first_offset


class Validated(NamedTuple):
    """The batches as a leader writes them."""

    records: bytes
    last_offset: int
    max_timestamp: int
    offset_of_maximum: int
    """The first offset with that timestamp; the last one of records that are compressed, written
    anew, or that all get the broker's time."""
    is_rewritten: bool
    """Whether the records were written anew, so that their size may have changed."""


def analyzed(
    scan: Scan,
    origin: AppendOrigin,
    leader_epoch: int,
    log_start_offset: int,
    max_message_bytes: int,
    profile: Profile,
) -> LogAppendInfo | Raised:
    """Check every batch on its own, and the order of the offsets that a follower is given.

    What a follower finds of an epoch later than its leader's, and all behind, is not looked at; in
    releases where a follower is not told that epoch, it is.
    """
    is_given = origin == "replication"
    is_bounded = is_given and profile.follower_knows_epoch
    info = LogAppendInfo(
        UNKNOWN_OFFSET, -1, NO_TIMESTAMP, NO_TIMESTAMP, log_start_offset, 0, UNKNOWN_OFFSET
    )
    is_rising, is_skipping = True, False
    for batch in scan.batches:
        if origin == "client" and not batch.is_legacy and batch.base_offset != 0:
            return INVALID_RECORD
        epoch = batch.partition_leader_epoch
        if isinstance(epoch, Raised):
            return epoch
        is_skipping = is_skipping or (is_bounded and epoch > leader_epoch)
        if is_skipping:
            continue
        last_offset = batch.last_offset
        if isinstance(last_offset, Raised):
            return last_offset
        is_rising = is_rising and last_offset > info.last_offset
        step = _with_batch(info, batch, max_message_bytes, profile)
        if isinstance(step, Raised):
            return step
        info = step
        if profile.order_checked_each_batch and is_given and not is_rising:
            return order_refusal(scan, profile)
    if scan.error is not None:
        return scan.error
    return info if is_rising or not is_given else order_refusal(scan, profile)


def order_refusal(scan: Scan, profile: Profile, named: int = INT32_MAX) -> Raised:
    """Why offsets that a follower is given are refused for their order.

    Kafka names those of the first records, up to `named`; what it can't read of these is its error
    instead.
    """
    if not profile.order_error_names_records:
        return OFFSET_ORDER
    for batch in scan.batches:
        found = batch.records_until_error()
        named -= len(found.records)
        if named <= 0:
            return OFFSET_ORDER
        if found.error is not None:
            return found.error
    return scan.error or OFFSET_ORDER


def _with_batch(
    info: LogAppendInfo, batch: RecordBatch, max_message_bytes: int, profile: Profile
) -> LogAppendInfo | Raised:
    """Check one batch, and add what it says."""
    if batch.size_bytes > max_message_bytes:
        return RECORD_TOO_LARGE
    if batch.is_valid() is not True:
        return Raised(profile.ensure_valid_kind)
    last_offset, max_timestamp = batch.last_offset, batch.max_timestamp
    for field in (last_offset, max_timestamp, batch.compression):
        if isinstance(field, Raised):
            return field
    assert not isinstance(last_offset, Raised)
    assert not isinstance(max_timestamp, Raised)
    if info.valid_bytes == 0:
        first_offset = UNKNOWN_OFFSET if batch.is_legacy else batch.base_offset
        assert not isinstance(first_offset, Raised)
        info = info._replace(first_offset=first_offset, last_offset_of_first_batch=last_offset)
    return info._replace(
        last_offset=last_offset,
        max_timestamp=max(info.max_timestamp, max_timestamp),
        valid_bytes=info.valid_bytes + batch.size_bytes,
    )


def validated(
    batches: Sequence[RecordBatch],
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    leader_epoch: int,
    origin: AppendOrigin,
    codecs: Codecs,
    profile: Profile,
) -> Validated | Raised:
    """Check the records that a leader is given, and give them offsets, epoch and timestamps.

    A batch of magic 2 keeps its records as they are, unless the log wants another codec, or they
    are compressed and do not count from 0; messages of magic 0 and 1 become one batch.
    """
    source, target = _compressions(batches, config)
    first = batches[0]
    takes_one = profile.leader_takes_one_batch and (not first.is_legacy or source != "none")
    if len(batches) > 1 and takes_one:
        return INVALID_RECORD
    records: list[Record] = []
    for batch in batches:
        found = _batch_refusal(first, batch, origin, profile) or _taken(
            batch, source != "none", now_ms, config, profile
        )
        if isinstance(found, Raised):
            return found
        records += found
    is_kept = source == target or (source == "none" and first.is_control is True)
    if is_kept and first.magic == CURRENT_MAGIC and (source, target) != ("none", "none"):
        is_kept = [record.offset for record in records] == list(range(len(records)))
        if not is_kept and source != "none" and profile.uncounted_batch == "fails":
            return ILLEGAL_STATE
    if is_kept and all(one.magic == CURRENT_MAGIC for one in batches):
        return _all_stamped(batches, first_offset, now_ms, config, leader_epoch)
    return _rewritten(first, records, target, first_offset, now_ms, config, leader_epoch, codecs)


def _compressions(batches: Sequence[RecordBatch], config: LogConfig) -> tuple[str, str]:
    """Return the codec that the batches come in, the last one's that has any, and the log's."""
    source = next(
        (one.compression for one in reversed(batches) if one.compression != "none"), "none"
    )
    assert not isinstance(source, Raised)
    known = {"producer": source, "uncompressed": "none"}
    return source, known.get(config.compression_type, config.compression_type)


def _taken(
    batch: RecordBatch, is_compressed: bool, now_ms: int, config: LogConfig, profile: Profile
) -> list[Record] | Raised:
    """Return the records of a batch, or why it is refused for one of them."""
    found = batch.records_until_error()
    foreign = _foreign_messages(batch)
    if isinstance(foreign, Raised):
        return foreign
    if is_compressed and batch.magic > 0 and profile.uncounted_batch == "refused":
        foreign += [place for place, one in enumerate(found.records) if one.offset != place]
    refused = found.error or _record_refusal(batch, found.records, foreign, now_ms, config, profile)
    return refused or list(found.records)


def _batch_refusal(
    first: RecordBatch, batch: RecordBatch, origin: AppendOrigin, profile: Profile
) -> Raised | None:
    """Why a batch is not taken, if so."""
    if batch.magic != first.magic and profile.batches_share_magic:
        return INVALID_RECORD
    base_offset, last_offset = batch.base_offset, batch.last_offset
    if isinstance(base_offset, Raised) or isinstance(last_offset, Raised):
        return base_offset if isinstance(base_offset, Raised) else INVALID_RECORD
    if origin != "client":
        return None
    count = batch.record_count
    is_counted = count == last_offset - base_offset + 1
    is_right = count != 0 and (is_counted or not profile.leader_compares_count)
    if not (batch.is_legacy or is_right):
        return INVALID_RECORD
    base_sequence, producer_id = batch.base_sequence, batch.producer_id
    has_sequence = isinstance(base_sequence, int) and base_sequence >= 0
    is_complete = has_sequence or not (isinstance(producer_id, int) and producer_id > -1)
    return None if is_complete and not batch.is_control else INVALID_RECORD


def _foreign_messages(batch: RecordBatch) -> list[int] | Raised:
    """Check the messages inside a compressed one; return the places of those of another magic.

    They are not checked, nor what lies behind a message that is compressed itself.
    """
    if not batch.is_legacy or batch.compression == "none":
        return []
    wrapper = LegacyRecord(batch.data)
    foreign = []
    for place, message in enumerate(read_messages(wrapper, batch.codecs, batch.profile).messages):
        entry = message.stored.entry
        if message.stored.magic != wrapper.magic:
            foreign.append(place)
        elif crc32(entry[16:]).to_bytes(4, "big") != entry[12:16]:
            return CORRUPT_RECORD
    return foreign


def _record_refusal(
    batch: RecordBatch,
    records: Sequence[Record],
    foreign: Sequence[int],
    now_ms: int,
    config: LogConfig,
    profile: Profile,
) -> Raised | None:
    """Why the records of a batch are not taken, if so; `foreign` ones are of another magic, or do
    not have the offset that releases want that look at it."""
    is_compacted = "compact" in config.cleanup_policy
    refusals = [
        INVALID_RECORD
        if place in foreign or (is_compacted and record.key is None)
        else _timestamp_refusal(batch, record.timestamp, now_ms, config, profile)
        for place, record in enumerate(records)
    ]
    found = [one for one in refusals if one is not None]
    if INVALID_TIMESTAMP in found and not profile.first_refused_names_error:
        return INVALID_TIMESTAMP
    return found[0] if found else None


def _timestamp_refusal(
    batch: RecordBatch, timestamp: int, now_ms: int, config: LogConfig, profile: Profile
) -> Raised | None:
    """Why the timestamp of a record is not taken, if so: it is too far from now, or given by
    another log, which some releases look at only where there is no time to compare."""
    is_given = batch.timestamp_type == "LogAppendTime"
    if config.message_timestamp_type == "CreateTime" and timestamp != NO_TIMESTAMP:
        before, after = (
            config.message_timestamp_before_max_ms,
            config.message_timestamp_after_max_ms,
        )
        is_old = now_ms - timestamp > before
        is_early = timestamp - now_ms > (after if profile.early_has_own_limit else before)
        if is_old or is_early:
            return INVALID_TIMESTAMP
        is_given = is_given and profile.given_time_is_refused
    return INVALID_TIMESTAMP if is_given else None


def _all_stamped(
    batches: Sequence[RecordBatch],
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    leader_epoch: int,
) -> Validated:
    """Write into the header of each batch; only older releases take more than one."""
    done: list[Validated] = []
    for batch in batches:
        records = batch.records_until_error().records
        done.append(_stamped(batch, records, first_offset, now_ms, config, leader_epoch))
        first_offset = done[-1].last_offset + 1
    is_given = config.message_timestamp_type == "LogAppendTime"
    newest = done[-1] if is_given else max(done, key=lambda one: one.max_timestamp)
    return newest._replace(
        records=b"".join(one.records for one in done), last_offset=done[-1].last_offset
    )


def _stamped(
    batch: RecordBatch,
    records: Sequence[Record],
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    leader_epoch: int,
) -> Validated:
    """Write offset, epoch and timestamp into the header, and the checksum of the new header."""
    is_given = config.message_timestamp_type == "LogAppendTime"
    max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    max_timestamp = max(max_timestamp, NO_TIMESTAMP)
    if is_given:
        max_timestamp = now_ms
    last_offset = first_offset + len(records) - 1
    data = batch.data
    delta = int.from_bytes(data[23:27], "big", signed=True)
    attributes = data[22] % 128 & ~LOG_APPEND_TIME_BIT | (LOG_APPEND_TIME_BIT if is_given else 0)
    if (batch.timestamp_type == "LogAppendTime", batch.max_timestamp) != (is_given, max_timestamp):
        data = (
            data[:21]
            + bytes([0, attributes])
            + data[23:35]
            + int64_bytes(max_timestamp)
            + data[43:]
        )
    framed = data[8:12] + int32_bytes(leader_epoch) + data[16:17]
    checksum = crc32c(data[21:]).to_bytes(4, "big")
    stamped = int64_bytes(last_offset - delta) + framed + checksum + data[21:]
    is_alike = is_given or batch.compression != "none"
    maximum = _offset_of_maximum(records, first_offset, is_alike)
    return Validated(stamped, last_offset, max_timestamp, maximum, is_rewritten=False)


def _offset_of_maximum(records: Sequence[Record], first_offset: int, is_alike: bool) -> int:
    """Return the first offset with the largest timestamp; the last one if they are alike."""
    timestamps = [record.timestamp for record in records]
    if is_alike or not timestamps or max(timestamps) == NO_TIMESTAMP:
        return first_offset + len(timestamps) - 1
    return first_offset + timestamps.index(max(timestamps))


def _rewritten(
    first: RecordBatch,
    records: Sequence[Record],
    compression: str,
    first_offset: int,
    now_ms: int,
    config: LogConfig,
    leader_epoch: int,
    codecs: Codecs,
) -> Validated | Raised:
    """Write the records as one batch of magic 2 with this codec."""
    producer_id, producer_epoch = first.producer_id, first.producer_epoch
    base_sequence, is_transactional = first.base_sequence, first.is_transactional
    for field in (producer_id, producer_epoch, base_sequence, is_transactional):
        if isinstance(field, Raised):
            return field
    numbered = [replace(one, offset=first_offset + i) for i, one in enumerate(records)]
    is_given = config.message_timestamp_type == "LogAppendTime"
    batch = write_batch(
        numbered,
        base_offset=first_offset,
        compression=compression,
        timestamp_type=config.message_timestamp_type,
        log_append_time=now_ms if is_given else None,
        producer_id=producer_id,  # type: ignore[arg-type]  # the loop has ruled Raised out
        producer_epoch=producer_epoch,  # type: ignore[arg-type]
        base_sequence=base_sequence,  # type: ignore[arg-type]
        partition_leader_epoch=leader_epoch,
        is_transactional=is_transactional,  # type: ignore[arg-type]
        codecs=codecs,
    )
    if isinstance(batch, Raised):
        return batch
    largest = max(record.timestamp for record in numbered)
    end = numbered[-1].offset
    return Validated(batch, end, now_ms if is_given else largest, end, is_rewritten=True)
