# SPDX-License-Identifier: Apache-2.0
"""What readers see of a log, and how they read: a tuple that the writer replaces, never changes.

Upstream: Kafka 4.3.1: LocalLog.read, addAbortedTransactions; UnifiedLog.read.
Laws: LOG-5 to LOG-8.
Not covered: remote storage. Upstream's high watermark falls to the base offset of the batch that
    holds it when it is first read up to; here reading changes nothing.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar, get_args

from segproof.errors import InvalidArgumentError, OffsetOutOfRangeError
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.checkpoint_file import EpochEntry
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.offset_index import OffsetPosition
from segproof.kafka.segments.log_segment import FetchDataInfo, LogSegment
from segproof.kafka.transaction_index import AbortedTxn
from segproof.kernels.log_rules import max_position_of, stable_bound

Isolation = Literal["log_end", "high_watermark", "txn_committed"]

Answer = TypeVar("Answer")


class LogView(NamedTuple):
    """All that a reader needs to know of a log, at one moment."""

    segments: LogSegments
    """Never changed once it is here."""
    log_start_offset: int
    """The first offset that may be read, inclusive."""
    log_end: LogOffsetMetadata
    """Where the next record will lie."""
    high_watermark: LogOffsetMetadata
    """Where what is replicated ends, exclusive; its place may be unknown."""
    epochs: tuple[EpochEntry, ...]
    """At which offset each leader epoch began."""
    first_unstable_offset: int = -1
    """Where the earliest open transaction begins; -1: no transaction is open."""
    removals: int = 0
    """How often something was removed, or the log closed: what began before and ended after such a
    moment begins again."""
    is_closed: bool = False


def read_consistently(current: Callable[[], LogView], read: Callable[[LogView], Answer]) -> Answer:
    """Return what `read` says of a view, once nothing was removed while it read.

    The writer publishes a view before it removes what that no longer holds, and a record file
    counts its cuts before a byte goes. So a reader goes round once more for each removal, and never
    waits.
    """
    while True:
        view = current()
        log = view.segments.active_segment.log
        cuts = log.cuts
        try:
            answer = read(view)
        except Exception:
            if current().removals == view.removals and log.cuts == cuts:
                raise
            continue
        if current().removals == view.removals and log.cuts == cuts:
            return answer


def read_view(
    view: LogView, start_offset: int, max_length: int, isolation: str, min_one_message: bool
) -> FetchDataInfo:
    """Return the records from `start_offset` on. Laws: LOG-5 to LOG-8.

    Raises: OffsetOutOfRangeError; InvalidArgumentError for an unknown isolation.
    """
    if isolation not in get_args(Isolation):
        raise InvalidArgumentError(
            f"isolation {isolation!r} is unknown, not one of {', '.join(get_args(Isolation))}",
            expected=get_args(Isolation),
            actual=isolation,
            hint="a consumer's read_committed is txn_committed, read_uncommitted high_watermark",
        )
    if start_offset < view.log_start_offset:
        raise _out_of_range(view, start_offset)
    bound = _bound_of(view, isolation)
    with_aborted = isolation == "txn_committed"
    segment = view.segments.floor_segment(start_offset)
    if start_offset > view.log_end.message_offset or segment is None:
        raise _out_of_range(view, start_offset)
    if start_offset >= bound.message_offset:
        place = bound if start_offset == bound.message_offset else _place_of(view, start_offset)
        return FetchDataInfo(place, None, False, () if with_aborted else None)
    while segment is not None:
        limit = max_position_of(
            segment.base_offset,
            segment.size,
            bound.segment_base_offset,
            bound.relative_position_in_segment,
        )
        info = segment.read(start_offset, max_length, None if limit < 0 else limit, min_one_message)
        if info is not None:
            return _with_aborted(view, start_offset, segment, info) if with_aborted else info
        segment = view.segments.higher_segment(segment.base_offset)
    return FetchDataInfo(view.log_end, None)


def _out_of_range(view: LogView, offset: int) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        "the log does not hold this offset",
        law="LOG-5",
        expected=f"{view.log_start_offset} to {view.log_end.message_offset}",
        actual=offset,
    )


def _bound_of(view: LogView, isolation: str) -> LogOffsetMetadata:
    """Return where a read of this isolation ends, exclusive."""
    if isolation == "log_end":
        return view.log_end
    high_watermark = view.high_watermark
    if high_watermark.relative_position_in_segment < 0:
        high_watermark = _place_if_known(view, high_watermark.message_offset)
    if isolation == "high_watermark":
        return high_watermark
    stable = stable_offset_of(view)
    if stable == view.high_watermark.message_offset:
        return high_watermark
    return _place_if_known(view, stable)


def _place_if_known(view: LogView, offset: int) -> LogOffsetMetadata:
    try:
        return _place_of(view, offset)
    except OffsetOutOfRangeError:
        return LogOffsetMetadata(offset)


def _place_of(view: LogView, offset: int) -> LogOffsetMetadata:
    """Return where the batch lies that holds an offset, with its base offset.

    Raises: OffsetOutOfRangeError.
    """
    if offset < view.log_start_offset:
        raise _out_of_range(view, offset)
    return read_view(view, offset, 1, "log_end", False).fetch_offset_metadata


def stable_offset_of(view: LogView) -> int:
    """Return the last stable offset, exclusive."""
    return stable_bound(view.high_watermark.message_offset, view.first_unstable_offset)


def _with_aborted(
    view: LogView, start_offset: int, segment: LogSegment, info: FetchDataInfo
) -> FetchDataInfo:
    """Return the records with the aborted transactions that meet them. Law: LOG-8."""
    place = info.fetch_offset_metadata
    size = 0 if info.records is None else info.records.size_in_bytes()
    start = OffsetPosition(place.message_offset, place.relative_position_in_segment)
    upper_bound = segment.fetch_upper_bound_offset(start, size)
    if upper_bound is None:
        higher = view.segments.higher_segment(segment.base_offset)
        upper_bound = view.log_end.message_offset if higher is None else higher.base_offset
    aborted = _collect(view, segment, start_offset, upper_bound)
    return info._replace(aborted_transactions=tuple(aborted))


def collect_aborted_transactions(
    view: LogView, start_offset: int, upper_bound_offset: int
) -> list[AbortedTxn]:
    """Return the aborted transactions that meet the offsets up to the upper bound, exclusive."""
    segment = view.segments.floor_segment(start_offset)
    return [] if segment is None else _collect(view, segment, start_offset, upper_bound_offset)


def _collect(
    view: LogView, segment: LogSegment, start_offset: int, upper_bound: int
) -> list[AbortedTxn]:
    found: list[AbortedTxn] = []
    for one in (segment, *view.segments.higher_segments(segment.base_offset)):
        result = one.collect_aborted_txns(start_offset, upper_bound)
        found.extend(result.aborted_transactions)
        if result.is_complete:
            break
    return found
