# SPDX-License-Identifier: Apache-2.0
"""What the log of a release is not asked, since not the log decides there, or Java's codecs do."""

from collections.abc import Sequence
from typing import Any

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.kafka import codec_differences
from segproof_harness.structures.kafka.batch_drawing import whole_batches
from segproof_harness.structures.steps import Event
from segproof_model.kafka.broker.log_validator import CURRENT_MAGIC, LogValidator
from segproof_model.kafka.broker.log_validator_releases import SeveralBatchesAreTaken
from segproof_model.kafka.broker.log_validator_releases_before_0_11 import LeaderKeepsMessages
from segproof_model.kafka.broker.partition_log_releases_before_2 import LogKnowsNoProducers
from segproof_model.kafka.broker.partition_log_releases_before_2_3 import (
    EmptySegmentIsNotReplaced,
    ReplicaKnowsHighWatermark,
)
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, outcome_of
from segproof_model.laws.register import has


def is_asked(event: Event) -> bool:
    """Return whether a release is asked this step; not one that leaves a log without a segment, or
    with one whose file is gone.

    In the oldest releases truncating a closed log does the first, and a roll that fails the second:
    it removes files that stand in its way, those that it goes on reading among them.
    """
    segments = getattr(event.after, "log_segments", None)
    if segments is not None and not segments.number_of_segments:
        return False
    if event.outcome.error is not None and _has_lost_its_file(event.after):
        return False
    ask = ASKED.get(event.operation.name)
    may = ask is None or segments is None or ask(event, event.operation.arguments)
    return may and codec_differences.is_asked(event)


def _has_lost_its_file(log: Any) -> bool:
    segments = getattr(log, "log_segments", None)
    if segments is None or not has(log, EmptySegmentIsNotReplaced):
        return False
    return segments.active_segment.names[0] not in log.files


def _may_begin(event: Event, given: Any) -> bool:
    """Not to begin beyond a high watermark that its replica knows, and its log does not."""
    is_told = has(event.after, ReplicaKnowsHighWatermark)
    return not is_told or event.outcome.error != ErrorKind.OUT_OF_RANGE


def _may_read(event: Event, given: Any) -> bool:
    """Not what is committed of a log that knows no transactions."""
    return not has(event.after, LogKnowsNoProducers) or given["isolation"] != "txn_committed"


def _may_lead(event: Event, given: Any) -> bool:
    """Not what a leader would compress anew: what Java's codecs make of the same bytes is not what
    the codecs of histories make."""
    state: Any = event.after
    records, *_ = given["call"]
    if has(state, LeaderKeepsMessages):
        return not _is_compressed_anew(event, records)
    if not has(state, SeveralBatchesAreTaken):
        return True
    batches = whole_batches(records)
    is_kept = state.config.compression_type == "producer"
    return not (_are_unlike(batches) or (is_kept and _wrap_messages(batches)))


def _may_follow(event: Event, given: Any) -> bool:
    """Not batches of two producers that begin a transaction at one offset: which of both counts,
    goes by the order of a hash."""
    records, _ = given["call"]
    batches = whole_batches(records)
    begun = {
        (one.base_offset, outcome_of(getattr, one, "producer_id"))
        for one in batches
        if outcome_of(getattr, one, "is_transactional") is True
    }
    return len(begun) == len({offset for offset, _ in begun})


def _are_unlike(batches: Sequence[RecordBatch]) -> bool:
    """Return whether there are several batches, unlike ones or such as are compressed anew."""
    are_old = all(one.is_legacy for one in batches)
    are_plain = all(one.magic == CURRENT_MAGIC and _codec_of(one) == "none" for one in batches)
    return len(batches) > 1 and not (are_old or are_plain)


def _wrap_messages(batches: Sequence[RecordBatch]) -> bool:
    """Return whether there is a wrapper of messages, which a leader writes as a batch."""
    return any(one.is_legacy and _codec_of(one) != "none" for one in batches)


def _codec_of(batch: RecordBatch) -> object:
    """Return the codec's name; an error, of an unknown one."""
    return outcome_of(getattr, batch, "compression")


def _is_compressed_anew(event: Event, data: bytes) -> bool:
    """Return whether a leader that knows messages only writes a wrapper of them."""
    log: Any = event.before
    records = log.kind(MemoryRecords)(data, codecs=CODECS)
    try:
        if next(records.batches(), None) is None:
            return False
        leader = log.kind(LogValidator)(records, log.files.now_ms, log.config, -1, "client")
        done = leader.validate_messages_and_assign_offsets(log.log_end_offset)
    except Refused:
        return False
    if not done.message_size_maybe_changed:
        return False
    return any(_codec_of(one) != "none" for one in whole_batches(done.validated_records))


ASKED = {
    "append_as_follower": _may_follow,
    "append_as_leader": _may_lead,
    "maybe_increment_log_start_offset": _may_begin,
    "read": _may_read,
}
"""What decides, by operation; others are asked always."""
