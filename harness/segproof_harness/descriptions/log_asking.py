# SPDX-License-Identifier: Apache-2.0
"""What the log of a release is not asked, since not the log decides there, or Java's codecs do.

Used by: descriptions.partition_log.
"""

from collections.abc import Sequence
from typing import Any

from segproof_harness.codecs import CODECS
from segproof_harness.descriptions import alike
from segproof_harness.structures import Event
from segproof_model.kafka.early_validator import early_validated
from segproof_model.kafka.log_validator import CURRENT_MAGIC
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import scan_memory
from segproof_model.language.outcomes import ErrorKind, Raised


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
    has_log = getattr(event.after, "profile", None) is not None
    may = ask is None or not has_log or ask(event, event.operation.arguments)
    return may and alike.is_asked(event)


def _has_lost_its_file(log: Any) -> bool:
    segments = getattr(log, "log_segments", None)
    if segments is None or log.profile.empty_segment_is_replaced:
        return False
    return segments.active_segment.names[0] not in log.directory


def _may_begin(event: Event, given: Any) -> bool:
    """Not to begin beyond a high watermark that its replica knows, and its log does not."""
    state: Any = event.after
    knows: bool = state.profile.log_knows_high_watermark
    return knows or event.outcome.error != ErrorKind.OUT_OF_RANGE


def _may_read(event: Event, given: Any) -> bool:
    """Not what is committed of a log that knows no transactions."""
    state: Any = event.after
    knows: bool = state.profile.log_knows_producers
    return knows or given["isolation"] != "txn_committed"


def _may_lead(event: Event, given: Any) -> bool:
    """Not what a leader would compress anew: what Java's codecs make of the same bytes is not what
    the codecs of histories make."""
    state: Any = event.after
    profile, records = state.profile, given["call"][0]
    if profile.leader_keeps_messages:
        return not _is_compressed_anew(event, records)
    if profile.leader_takes_one_batch:
        return True
    batches = scan_memory(records, codecs=CODECS).batches
    is_kept = state.config.compression_type == "producer"
    return not (_are_unlike(batches) or (is_kept and _wrap_messages(batches)))


def _may_follow(event: Event, given: Any) -> bool:
    """Not batches of two producers that begin a transaction at one offset: which of both counts,
    goes by the order of a hash."""
    batches = scan_memory(given["call"][0], codecs=CODECS).batches
    begun = {(one.base_offset, one.producer_id) for one in batches if one.is_transactional is True}
    return len(begun) == len({offset for offset, _ in begun})


def _are_unlike(batches: Sequence[RecordBatch]) -> bool:
    """Return whether there are several batches, unlike ones or such as are compressed anew."""
    are_old = all(one.is_legacy for one in batches)
    are_plain = all(one.magic == CURRENT_MAGIC and one.compression == "none" for one in batches)
    return len(batches) > 1 and not (are_old or are_plain)


def _wrap_messages(batches: Sequence[RecordBatch]) -> bool:
    """Return whether there is a wrapper of messages, which a leader writes as a batch."""
    return any(one.is_legacy and one.compression != "none" for one in batches)


def _is_compressed_anew(event: Event, data: bytes) -> bool:
    """Return whether a leader that knows messages only writes a wrapper of them."""
    state: Any = event.before
    scan = scan_memory(data, codecs=CODECS, profile=state.profile)
    if not scan.batches or any(isinstance(one.compression, Raised) for one in scan.batches):
        return False
    done = early_validated(
        scan.batches, state.log_end_offset, state.now_ms, state.config, CODECS, state.profile
    )
    if isinstance(done, Raised) or not done.is_rewritten:
        return False
    return any(one.compression != "none" for one in scan_memory(done.records).batches)


ASKED = {
    "append_as_follower": _may_follow,
    "append_as_leader": _may_lead,
    "maybe_increment_log_start_offset": _may_begin,
    "read": _may_read,
}
"""What decides, by operation; others are asked always."""
