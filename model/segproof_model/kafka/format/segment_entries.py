# SPDX-License-Identifier: Apache-2.0
"""What the indexes of a segment are told of a batch: offsets, the largest timestamp, transactions.

Upstream: Kafka 4.4.0, LogSegment. Otherwise: log_segment_releases, log_segment_releases_before_2.
Laws: SEG-2, SEG-4, SEG-8, SEG-9, SEG-27, SEG-49.
"""

from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.segment_files import SegmentFiles
from segproof_model.kafka.format.time_index import TimestampOffset
from segproof_model.kafka.format.transaction_index import AbortedTxn, CompletedTxn
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class SegmentEntries(SegmentFiles):
    """A segment as an append and a recovery index it."""

    # --- the largest timestamp -----------------------------------------------------------------

    def read_max_timestamp_and_offset_so_far(self) -> TimestampOffset:
        """Return the largest timestamp; unknown, it is the last time entry's (SEG-8, SEG-49)."""
        if self.max_timestamp_and_offset_so_far is None:
            self.max_timestamp_and_offset_so_far = self.time_index.last_entry
        return self.max_timestamp_and_offset_so_far

    @property
    def max_timestamp_so_far(self) -> int:
        """The largest timestamp of an appended batch; -1 if there is none (SEG-8, SEG-49)."""
        return self.read_max_timestamp_and_offset_so_far().timestamp

    @property
    def offset_of_max_timestamp_so_far(self) -> int:
        """The offset that was appended with the largest timestamp."""
        return self.read_max_timestamp_and_offset_so_far().offset

    def take_maximum(self, found: TimestampOffset) -> None:
        """Remember what is larger than the largest so far: the next time entry says it (SEG-8)."""
        if found.timestamp > self.max_timestamp_so_far:
            self.max_timestamp_and_offset_so_far = found

    def maximum_of(self, batch: RecordBatch) -> TimestampOffset:
        """Return the largest timestamp of a batch, with its last offset."""
        return TimestampOffset(batch.max_timestamp, batch.last_offset)

    def write_maximum(self, skip_full_check: bool = True) -> None:
        """Add the time entry of the largest timestamp, if it grew since the last (SEG-9)."""
        maximum = self.read_max_timestamp_and_offset_so_far()
        self.time_index.maybe_append(*maximum, skip_full_check)

    # --- entries -------------------------------------------------------------------------------

    def key_of(self, batch: RecordBatch) -> int:
        """Return the offset under which a batch is indexed (SEG-4)."""
        return batch.last_offset

    def enter_indexes(self, offset: int, position: int) -> None:
        """Add an offset entry, and the time entry of the largest timestamp if it grew (SEG-9)."""
        self.offset_index.append(offset, position)
        self.write_maximum(skip_full_check=False)

    def can_convert_to_relative_offset(self, offset: int) -> bool:
        """Return whether the offset index, which is loaded, can hold an offset."""
        return self.offset_index.can_append_offset(offset)

    def ensure_offset_in_range(self, offset: int) -> None:
        """Refuse an offset too far from the base (SEG-2, SEG-27)."""
        if not self.can_convert_to_relative_offset(offset):
            refuse(ErrorKind.SEGMENT_OVERFLOW)

    def update_txn_index(self, completed_txn: CompletedTxn, last_stable_offset: int) -> None:
        """Enter a transaction into the index, if it was aborted."""
        if completed_txn.is_aborted:
            producer_id, first, last, _ = completed_txn
            self.txn_index.append(AbortedTxn(0, producer_id, first, last, last_stable_offset))
