# SPDX-License-Identifier: Apache-2.0
"""What releases before 2.0 do otherwise with a segment, newest first."""

from contextlib import suppress

from segproof_model.kafka.format import log_segment, segment_recovery
from segproof_model.kafka.format.legacy_record import LOG_OVERHEAD
from segproof_model.kafka.format.log_segment_releases import Told, batches_until_error
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX, wrap64
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse


class FarOffsetIsInvalidArgument(Behaviour):
    """An offset too far above the base is an invalid argument, but one that is far below, or found
    by a recovery, is taken.
    """

    laws = ("OFFIDX-6", "OFFIDX-7", "SEG-2", "SEG-27", "LOAD-6")
    releases = up_to("1.1.1")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def can_convert_to_relative_offset(self, offset: int) -> bool:
            self.lazy_offset_index.get()
            return wrap64(offset - self.base_offset) <= INT32_MAX

        @override
        def ensure_offset_in_range(self, offset: int) -> None:
            if not self.can_convert_to_relative_offset(offset):
                refuse(ErrorKind.INVALID_ARGUMENT)

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        @override
        def check_offset(self, offset: int) -> None:
            pass


class FirstOffsetIsKey(Behaviour):
    """The offset index keeps the first offset of a call or batch, not the last one."""

    laws = ("SEG-4",)
    releases = up_to("1.1.1")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def key_of(self, batch: RecordBatch) -> int:
            return batch.base_offset

        def key_of_call(self, largest_offset: int, records: MemoryRecords, told: Told) -> int:
            """Where a call is indexed as a whole, its first offset, if that is told or found."""
            if told.first_offset is not None:
                return told.first_offset
            for batch in batches_until_error(records):
                return self.key_or(batch, largest_offset)
            return largest_offset

        def key_or(self, batch: RecordBatch, largest_offset: int) -> int:
            """Return the first offset; a caller who can't read it says the largest one."""
            try:
                return self.key_of(batch)
            except Refused:
                return largest_offset


class TruncationNeedsMatch(Behaviour):
    """A truncation behind the last batch leaves the indexes alone, too."""

    laws = ("SEG-31", "SEG-32", "SEG-33", "SEG-34")
    releases = up_to("0.11.0.3")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def truncate_to(self, offset: int) -> int:
            return 0 if self.translate_offset(offset) is None else super().truncate_to(offset)


class InactiveSegmentIsLeft(Behaviour):
    """A segment that becomes inactive cuts nothing."""

    laws = ("SEG-38",)
    releases = up_to("0.11.0.3")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def on_become_inactive_segment(self) -> None:
            self.write_maximum()


class TimeSearchBeginsAtEntry(Behaviour):
    """A search by time begins at the indexed offset, whichever is asked for."""

    laws = ("SEG-39",)
    releases = up_to("0.10.2.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def find_offset_by_timestamp(
            self, timestamp_ms: int, starting_offset: int
        ) -> TimestampAndOffset | None:
            position = self.indexed_place(self.time_index.lookup(timestamp_ms).offset)
            return self.log.search_for_timestamp(timestamp_ms, position, starting_offset)


class DatingPassesMissingFiles(Behaviour):
    """Setting when a segment was modified passes over a file that is gone."""

    laws = ("SEG-40",)
    releases = up_to("0.10.2.2")

    class LogSegment(log_segment.LogSegment):
        """The segment."""

        @override
        def set_last_modified(self, ms: int) -> None:
            with suppress(Refused):
                super().set_last_modified(ms)


class RecoveryLimitsMessages(Behaviour):
    """A recovery ends at a message larger than max.message.bytes, as at a damaged one."""

    laws = ("SEG-20", "LOAD-7")
    releases = up_to("0.10.2.2")

    class SegmentRecovery(segment_recovery.SegmentRecovery):
        """A recovery."""

        @override
        def checked(self, batch: RecordBatch) -> RecordBatch:
            if batch.size_bytes - LOG_OVERHEAD > self.segment.config.max_message_bytes:
                refuse(ErrorKind.CORRUPT_RECORD)
            return super().checked(batch)
