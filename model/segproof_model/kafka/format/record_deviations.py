# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with records, batches and record files."""

from segproof_model.kafka.format import memory_records, record_file
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.behaviours import Behaviour, override
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, refuse


class HugeSizeEndsScan(Behaviour):
    """A size near 2^31 ends the scan of records in memory, as any that is beyond their end, and is
    no invalid argument.
    """

    laws = ("SCAN-9",)
    of_segproof = True

    class MemoryRecords(memory_records.MemoryRecords):
        """Records in memory."""

        @override
        def next_batch(self, position: int) -> RecordBatch | None:
            try:
                return super().next_batch(position)
            except Refused as error:
                return refuse(error.kind) if error.kind == ErrorKind.CORRUPT_RECORD else None


class MagicIsCheckedInFiles(Behaviour):
    """The file scanner refuses a magic outside 0..2."""

    laws = ("SCAN-4",)
    of_segproof = True

    class RecordRange(record_file.RecordRange):
        """A file or a slice."""

        @override
        def batch_at(self, position: int, size_bytes: int, image: bytes) -> RecordBatch:
            batch = super().batch_at(position, size_bytes, image)
            return batch if 0 <= batch.magic <= 2 else refuse(ErrorKind.CORRUPT_RECORD)


class EmptyChangeIsRefused(Behaviour):
    """A record file that can't be written refuses to append no bytes and to cut none, and one that
    is open for reading only is closed without a truncation.
    """

    laws = ("SCAN-11", "SCAN-12", "SCAN-13")
    of_segproof = True

    class RecordFile(record_file.RecordFile):
        """The record file."""

        @override
        def append(self, records: bytes) -> int:
            if not records:
                self.check_writable()
            return super().append(records)

        @override
        def truncate_to(self, target_size: int) -> int:
            if 0 <= target_size <= self.size:
                self.check_writable()
            return super().truncate_to(target_size)

        @override
        def close(self) -> None:
            if self.is_open and not self.writable:
                self.is_open = False
            else:
                super().close()


class HugePreallocationIsRefused(Behaviour):
    """A file that is to have 2 GiB or more is refused before it is made.

    It bends no law: Kafka's size is an `int`, so no release can be asked for as many bytes.
    """

    of_segproof = True

    class RecordFile(record_file.RecordFile):
        """The record file."""

        @override
        def preallocate(self, size: int) -> None:
            if size > INT32_MAX:
                refuse(ErrorKind.INVALID_ARGUMENT)
            super().preallocate(size)
