# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with record files, newest first."""

from collections.abc import Iterator
from typing import Self

from segproof_model.kafka.format import record_batch, record_file
from segproof_model.kafka.format.legacy_record import LOG_OVERHEAD
from segproof_model.kafka.format.record_batch import RecordBatch, Time
from segproof_model.kafka.format.record_file import (
    FileSlice,
    LogOffsetPosition,
    TimestampAndOffset,
)
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import wrap32
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class ClosingTrimsRecordFiles(Behaviour):
    """Closing a record file trims it first."""

    laws = ("SCAN-13",)
    releases = up_to("4.3.1")
    of_segproof = True

    class RecordFile(record_file.RecordFile):
        """The record file."""

        @override
        def close(self) -> None:
            if self.is_open:
                self.trim()
            super().close()


class TimeSearchReadsWholeBatch(Behaviour):
    """A search by time reads all of a compressed batch first, so that damage behind the record
    that it finds is met.
    """

    laws = ("SCAN-18", "SEG-39")
    releases = up_to("4.3.1", but=("4.2.2",))
    of_segproof = True

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def times_of(self, batch: RecordBatch) -> Iterator[Time]:
            return batch.times()


class SliceOfSliceIsRefused(Behaviour):
    """Slicing a slice compares the position with its size without its start."""

    laws = ("SCAN-16",)
    releases = up_to("4.0.2", since="2.1.1")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def check_slice(self, position: int) -> None:
            super().check_slice(position + self.start)


class SearchComparesLastOffsets(Behaviour):
    """A search for an offset compares last offsets, and looks no batch back."""

    laws = ("SCAN-17",)
    releases = up_to("4.0.2")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def search_for_offset_with_size(
            self, target_offset: int, starting_position: int = 0
        ) -> LogOffsetPosition | None:
            for batch in self.batches(starting_position):
                if batch.last_offset >= target_offset:
                    return self.place_of(batch)
            return None


class SecondCloseFails(Behaviour):
    """Closing a closed record file raises the I/O error."""

    laws = ("SCAN-13",)
    releases = up_to("4.0.0")

    class RecordFile(record_file.RecordFile):
        """The record file."""

        @override
        def close(self) -> None:
            self.check_open()
            super().close()


class SearchAnswersLastOffset(Behaviour):
    """A search for an offset answers the batch's last offset, not its base."""

    laws = ("SCAN-17",)
    releases = up_to("3.9.2")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def place_of(self, batch: RecordBatch) -> LogOffsetPosition:
            return LogOffsetPosition(batch.last_offset, batch.position, batch.size_bytes)


class ShortFileIsKafkaError(Behaviour):
    """A file that is shorter than believed is the Kafka error, not a corrupt record."""

    laws = ("SCAN-7",)
    releases = up_to("2.4.1")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        eof_kind = ErrorKind.KAFKA_ERROR


class FoundTimeHasNoEpoch(Behaviour):
    """A search by time answers no leader epoch."""

    laws = ("SCAN-18", "SCAN-19")
    releases = up_to("2.1.1")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def found(self, timestamp: int, offset: int, batch: RecordBatch) -> TimestampAndOffset:
            return TimestampAndOffset(timestamp, offset, None)


class SliceBeginsAnywhere(Behaviour):
    """A slice that begins beyond the end is empty, not refused."""

    laws = ("SCAN-14",)
    releases = up_to("2.0.1")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def check_slice(self, position: int) -> None:
            pass

    class FileSlice(record_file.FileSlice):
        """A slice, which may begin behind its end, or where 32 bits wrap, below 0."""

        @override
        def read(self) -> bytes:
            if self.start < 0:
                refuse(ErrorKind.INVALID_ARGUMENT)
            return super().read() if self.size > 0 else b""


class SliceEndsAtSize(Behaviour):
    """A slice of a slice ends at the outer one's size, not at its end, if that is less."""

    laws = ("SCAN-14", "SCAN-16")
    releases = up_to("0.11.0.3")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def slice(self, position: int, size: int) -> FileSlice:
            view = super().slice(position, size)
            end = wrap32(view.start + size)
            if end < 0 or end > self.size:
                end = self.size
            view.size = wrap32(end - view.start)
            return view


class ScannerLimitsWrap(Behaviour):
    """The scanner computes its limits in 32 bits."""

    laws = ("SCAN-1", "SCAN-6", "SCAN-8")
    releases = up_to("0.11.0.3")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def batches(self, start: int | None = None) -> Iterator[RecordBatch]:
            position, end, image = self.start if start is None else start, self.end, self.image
            while (batch := self.next_batch(position, end, image)) is not None:
                yield batch
                position = wrap32(position + batch.size_bytes)

        @override
        def next_batch(self, position: int, end: int, image: bytes) -> RecordBatch | None:
            if wrap32(position + self.head_bytes) >= end:
                return None
            size = self.size_at(position, image)
            if wrap32(position + LOG_OVERHEAD + size) > end:
                return None
            return self.batch_at(position, wrap32(LOG_OVERHEAD + size), image)

    class RecordBatch(record_batch.RecordBatch):
        """A batch, whose size may be negative."""

        @override
        def loaded(self) -> Self:
            return refuse(ErrorKind.INVALID_ARGUMENT) if self.size_bytes < 0 else super().loaded()


class AnyOffsetHasTime(Behaviour):
    """A search by time begins at any offset, and a batch without the time that it promises is an
    illegal state.
    """

    laws = ("SCAN-18", "SEG-39")
    releases = up_to("0.10.2.2")

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def search_for_timestamp(
            self, target_timestamp: int, starting_position: int, starting_offset: int
        ) -> TimestampAndOffset | None:
            for batch in self.batches(starting_position):
                if batch.max_timestamp >= target_timestamp:
                    for timestamp, offset in self.times_of(batch):
                        if timestamp >= target_timestamp:
                            return self.found(timestamp, offset, batch)
                    refuse(ErrorKind.ILLEGAL_STATE)
            return None
