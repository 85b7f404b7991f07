# SPDX-License-Identifier: Apache-2.0
"""Up to where a log may be read: its high watermark, and its last stable offset.

Upstream: Kafka 4.4.0, UnifiedLog. Otherwise: partition_log_releases, those before 2.8 and 2.3,
    partition_log_deviations.
Laws: LOG-6, LOG-7, PROD-10.
"""

from typing import Literal

from segproof_model.kafka.broker.log_parts import LogParts
from segproof_model.kafka.format.log_offset_metadata import LogOffsetMetadata
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, Released, refuse

Isolation = Literal["log_end", "high_watermark", "txn_committed"]


class ReadBounds(Released):
    """The bounds of one log, which keeps them."""

    def __init__(self, log: LogParts) -> None:
        self.log, self.local_log = log, log.local_log

    def of(self, isolation: Isolation) -> LogOffsetMetadata:
        """Return the offset that a reader does not pass, with its place."""
        if isolation == "log_end":
            return self.local_log.log_end
        if isolation == "high_watermark":
            return self.fetch_high_watermark_metadata()
        return self.fetch_last_stable_offset_metadata()

    # --- the high watermark --------------------------------------------------------------------

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, not outside of the log; return what it has become."""
        if high_watermark < self.log.log_start_offset:
            metadata = LogOffsetMetadata(self.log.log_start_offset)
        elif high_watermark >= self.local_log.log_end_offset:
            metadata = self.local_log.log_end
        else:
            metadata = LogOffsetMetadata(high_watermark)
        self.update_high_watermark_metadata(metadata)
        return metadata.message_offset

    def update_high_watermark_with_log_end_offset(self) -> None:
        """Place the high watermark at the end of the log, if it is not before it."""
        if self.log.high_watermark >= self.local_log.log_end_offset:
            self.update_high_watermark_metadata(self.local_log.log_end)

    def update_high_watermark_metadata(self, metadata: LogOffsetMetadata) -> None:
        """Set the high watermark; completed transactions below it are no longer unstable."""
        if metadata.message_offset < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)
        self.log.high_watermark_metadata = metadata
        self.log.producer_state_manager.on_high_watermark_updated(metadata.message_offset)
        self.maybe_increment_first_unstable_offset()

    def fetch_high_watermark_metadata(self) -> LogOffsetMetadata:
        """Return the high watermark with its place, which becomes what is found, be it lower."""
        self.local_log.check_if_memory_mapped_buffer_closed()
        if self.log.high_watermark_metadata.segment_base_offset < 0:
            found = self.maybe_convert_to_offset_metadata(self.log.high_watermark)
            self.update_high_watermark_metadata(found)
        return self.log.high_watermark_metadata

    # --- the first unstable offset -------------------------------------------------------------

    def maybe_increment_first_unstable_offset(self) -> None:
        """Look anew at where the earliest transaction begins that is open or not replicated.

        The place of one that was begun since the producers were loaded is known.
        """
        log = self.log
        self.local_log.check_if_memory_mapped_buffer_closed()
        offset = log.producer_state_manager.first_unstable_offset()
        if offset is None:
            log.first_unstable = None
            return
        known = [place for place in log.txn_places if place.message_offset == offset]
        if known and offset >= log.log_start_offset:
            log.first_unstable = known[0]
        else:
            bound = max(offset, log.log_start_offset)
            log.first_unstable = self.maybe_convert_to_offset_metadata(bound)

    def fetch_last_stable_offset_metadata(self) -> LogOffsetMetadata:
        """Return the last stable offset with its place, which becomes what is found."""
        high_watermark = self.fetch_high_watermark_metadata()
        unstable = self.log.first_unstable
        if unstable is None or unstable.message_offset >= high_watermark.message_offset:
            return high_watermark
        return self.placed(unstable)

    def placed(self, unstable: LogOffsetMetadata) -> LogOffsetMetadata:
        """Return the first unstable offset with its place, which it keeps."""
        if unstable.segment_base_offset < 0:
            unstable = self.maybe_convert_to_offset_metadata(unstable.message_offset)
            self.log.first_unstable = unstable
        return unstable

    def maybe_convert_to_offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """Return an offset with its place, as a read finds it; alone if it is out of range."""
        try:
            return self.local_log.convert_to_offset_metadata(offset)
        except Refused as error:
            if error.kind != ErrorKind.OUT_OF_RANGE:
                raise
            return LogOffsetMetadata(offset)
