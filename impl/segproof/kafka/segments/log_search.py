# SPDX-License-Identifier: Apache-2.0
"""Looking for one offset or one timestamp in a log, with few reads and without batch objects.

The answers are those of `RecordFile.search_for_offset_with_size` and `search_for_timestamp`. What
is not decided at once here (old compressed messages, damaged headers) is asked of those.

Upstream: Kafka 4.3.1: FileRecords.searchForOffsetFromPosition, searchForTimestamp.
Laws: SCAN-17, SCAN-18.
"""

import numpy as np

from segproof.errors import CorruptIndexError
from segproof.hints import writes
from segproof.integers import INT64_MAX, make_tuple
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.record_file import LogOffsetPosition, RecordFile, TimestampAndOffset
from segproof.kernels.segment_search import SEARCH_FOUND, SEARCH_NONE, SEARCH_ODD, find_time
from segproof.layouts import kafka as layouts

_START = layouts.BATCH.struct(only=("base_offset", "size", "magic", "last_offset_delta"))
_SIZE_AND_EPOCH = layouts.BATCH.struct("size", "partition_leader_epoch")
_LOOKED_AT_BYTES = _START.size
"""So much of a batch tells its size, its offsets, and whether it is an old compressed message."""
_CODEC_AT = layouts.MESSAGE_1["attributes"].place
_NEW_SIZE_MIN = layouts.BATCH_HEADER_BYTES - layouts.LOG_OVERHEAD_BYTES
_OLD_SIZE_MIN = layouts.LEGACY_MIN_BYTES - layouts.LOG_OVERHEAD_BYTES
"""The smallest size fields of a batch of magic 2, and of a message."""
_SLACK_BYTES = 1024
_FIRST_BYTES_MAX = 16 << 10
_WINDOW_BYTES_MAX = 1 << 16
_BATCH_BYTES_MAX = 1 << 20
"""A larger batch is read by the slow way, which holds no second copy of it."""
_UNITS_OF_A_SEARCH = 3
"""So many units of a kernel's work are in one search for a timestamp."""


class ReadAhead:
    """How many bytes of a log a search reads at first, which no answer depends on."""

    __slots__ = ("next_bytes", "usual_bytes")

    def __init__(self, index_interval_bytes: int) -> None:
        """Begin with as much as usually lies between two index entries."""
        self.usual_bytes = min(index_interval_bytes + _SLACK_BYTES, _FIRST_BYTES_MAX)
        self.next_bytes = self.usual_bytes
        """For the next search: that, or a header where the last one met a larger batch."""

    def note(self, batch_bytes: int) -> None:
        """Note the size of a batch that a search ended with."""
        self.next_bytes = (
            self.usual_bytes if batch_bytes < self.usual_bytes else layouts.BATCH_HEADER_BYTES
        )


def astray(offset_index: OffsetIndex, position: int, end: int) -> CorruptIndexError:
    """Return the error for an index that points outside of a log of `end` bytes."""
    _, positions = offset_index.to_numpy()
    return CorruptIndexError(
        "the index points outside of the log",
        law="SEG-7",
        path=offset_index.file,
        position=8 * int(np.argmax(positions == position)),
        expected=f"0 to {end}",
        actual=position,
        hint=writes("rebuild the index from the log, into a new directory"),
    )


def checked_start(offset_index: OffsetIndex, offset: int, log: RecordFile) -> int:
    """Look again for where to search, after a position outside of the log: it may have been cut.

    A truncation cuts the index first, so what the index tells now lies inside of the log.
    Raises: CorruptIndexError if it still does not.
    """
    position = offset_index.lookup(offset).position
    end = log.end  # after the index: an append writes the log first
    if not 0 <= position <= end:
        raise astray(offset_index, position, end)
    return position


def find_batch_in(
    log: RecordFile, position: int, target_offset: int, read_ahead: ReadAhead
) -> LogOffsetPosition | None:
    """Return where the first batch from `position` on is whose last offset reaches the target.

    Raises: what `search_for_offset_with_size` raises.
    """
    end = log.end
    if position < 0 or not log.is_open:
        return log.search_for_offset_with_size(target_offset, position)
    file, at, start = log.file, position, position
    want, usual_bytes = read_ahead.next_bytes, read_ahead.usual_bytes
    data = file.pread(min(want, end - start), start) if start < end else b""
    unpack, limit = _START.unpack_from, end - layouts.HEADER_UP_TO_MAGIC_BYTES
    before: tuple[int, int, int, int] | None = None
    while at < limit:
        if at - start + _LOOKED_AT_BYTES > len(data):
            if before is not None and before[3] >= usual_bytes:
                want = layouts.BATCH_HEADER_BYTES
            else:
                want = min(max(want * 2, usual_bytes), _WINDOW_BYTES_MAX)
            start = at
            data = file.pread(min(want, end - start), start)
            if len(data) < _LOOKED_AT_BYTES:
                return log.search_for_offset_with_size(target_offset, position)
        base, size, magic, delta = unpack(data, at - start)
        if size < _OLD_SIZE_MIN or not 0 <= magic <= 2:
            return log.search_for_offset_with_size(target_offset, position)
        if at > end - layouts.LOG_OVERHEAD_BYTES - size:
            break
        if base >= target_offset:
            if magic < 2 and data[at - start + _CODEC_AT] & 7:
                return log.search_for_offset_with_size(target_offset, position)
            if base > target_offset and before is not None and before[0] >= target_offset:
                read_ahead.note(before[3])
                return make_tuple(LogOffsetPosition, before[1:])
            read_ahead.note(size)
            return make_tuple(LogOffsetPosition, (base, at, size + layouts.LOG_OVERHEAD_BYTES))
        last = base + delta if magic == 2 else base
        if last > INT64_MAX or (
            size < _NEW_SIZE_MIN if magic == 2 else data[at - start + _CODEC_AT] & 7
        ):
            return log.search_for_offset_with_size(target_offset, position)
        before = (last, base, at, size + layouts.LOG_OVERHEAD_BYTES)
        at += layouts.LOG_OVERHEAD_BYTES + size
    if before is not None and before[0] >= target_offset:
        return make_tuple(LogOffsetPosition, before[1:])
    return None


def find_record_in(
    log: RecordFile,
    position: int,
    target_timestamp: int,
    starting_offset: int,
    read_ahead: ReadAhead,
) -> TimestampAndOffset | None:
    """Return the first record from `position` on at or after both the timestamp and the offset.

    Raises: what `search_for_timestamp` raises.
    """
    at, end, want = position, log.end, read_ahead.next_bytes
    if not find_time.is_compiled:
        find_time.announce(_UNITS_OF_A_SEARCH)
    pread, find = log.file.pread, find_time.call
    while 0 <= at < end and want <= _BATCH_BYTES_MAX and log.is_open:
        if want > end - at:
            want = end - at
        data = pread(want, at)
        filled = len(data)
        status, timestamp, offset, found = find(
            data, 0, filled, end - at, target_timestamp, starting_offset
        )
        if status == SEARCH_FOUND:
            size, epoch = _SIZE_AND_EPOCH.unpack_from(data, found + layouts.BATCH["size"].place)
            read_ahead.note(size)
            leader_epoch = None if epoch == -1 else epoch
            return make_tuple(TimestampAndOffset, (timestamp, offset, leader_epoch))
        if status == SEARCH_NONE:
            return None
        if status == SEARCH_ODD or filled < want or (found == 0 and want == end - at):
            break
        # The next batch is likely as large as those before it.
        likely = min(found + layouts.BATCH_HEADER_BYTES, _BATCH_BYTES_MAX)
        at, want = at + found, max(timestamp, read_ahead.usual_bytes, likely)
    return log.search_for_timestamp(target_timestamp, position, starting_offset)
