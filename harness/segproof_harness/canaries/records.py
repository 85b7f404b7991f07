# SPDX-License-Identifier: Apache-2.0
"""Planted defects of record files and record batches."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from segproof.errors import InvalidRecordError
from segproof.files import REAL_FILES, File, Files
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.record_file import RecordFile
from segproof.kernels.records import decode_int32
from segproof.layouts.kafka import BATCH_HEADER_BYTES
from segproof_harness.canaries.register import canary
from segproof_harness.structures.kafka.record_batch import Implementation


@canary("K-24", "record-file", "SCAN-14", "SCAN-16")
class K24RecordFile(RecordFile):
    """The end of a slice of a slice is bounded by a relative size."""

    def slice(self, position: int, size: int) -> RecordFile:
        """Return a view whose end is bounded by a size that counts from the slice's start."""
        right = super().slice(position, size)
        end = min(self.start + position + size, self.size_in_bytes())
        view = K24RecordFile(self.file, max(0, end - right.start), start=right.start, is_slice=True)
        view.is_open = self.is_open
        return view


class _OtherScanner(RecordFile):
    """A record file with another scanner."""

    def is_size_refused(self, size: int) -> bool:
        """Return whether a size field is corrupt."""
        return size < 14

    def is_beyond(self, position: int, size: int) -> bool:
        """Return whether a batch ends behind the range."""
        return position > self.end - 12 - size

    def _batch_at(self, position: int, limit: int) -> RecordBatch | None:
        if not (self.is_open and 0 <= position < self.end - 17):
            return super()._batch_at(position, limit)
        header = self.file.pread(BATCH_HEADER_BYTES, position)
        if len(header) < 17 or header[16] > 2:
            return super()._batch_at(position, limit)
        size = decode_int32(header, 8)
        if self.is_size_refused(size):
            return super()._batch_at(position, limit)
        if self.is_beyond(position, size):
            return None
        return RecordBatch(self.file, position, 12 + size, header[16], in_file=True, header=header)


@canary("K-26", "record-file", "SCAN-6")
class K26RecordFile(_OtherScanner):
    """The scanner's limits wrap at 32 bits."""

    def is_beyond(self, position: int, size: int) -> bool:
        """Return whether the wrapped end lies behind the range."""
        return (position + 12 + size + 2**31) % 2**32 - 2**31 > self.end


@canary("K-27", "record-file", "SCAN-2", "SCAN-3")
class K27RecordFile(_OtherScanner):
    """The scanner refuses only negative sizes, not those below 14."""

    def is_size_refused(self, size: int) -> bool:
        """Return whether a size field is negative."""
        return size < 0


class _ShortFile:
    """A file that reads at most nine bytes a call, as a device may."""

    def __init__(self, file: File) -> None:
        self._file = file

    def pread(self, size: int, position: int) -> bytes:
        return self._file.pread(min(size, 9), position)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@canary("K-28", "record-file", "SCAN-7")
class K28RecordFile(RecordFile):
    """A short read is taken for the end of the file."""

    @classmethod
    def open(
        cls, file: Any, *, create: bool = False, files: Files = REAL_FILES, **named: Any
    ) -> "K28RecordFile":
        """Open, on a device that reads nine bytes a call."""
        whole = RecordFile.open(file, create=create, files=files, **named)
        short: Any = _ShortFile(whole.file)
        return cls(short, whole.size_in_bytes(), writable=whole.writable)


@canary("K-30a", "record-file", "SCAN-13")
class K30aRecordFile(RecordFile):
    """A preallocated file is closed without trimming."""

    def close(self) -> None:
        """End the use of the file, with its preallocated tail."""
        if self.is_open and not self.is_slice:
            self.is_open = False
            self.file.close()


@canary("K-30b", "record-file", "SCAN-20")
class K30bRecordFile(RecordFile):
    """Reading is bounded by the physical length of the file."""

    def read(self) -> bytes:
        """Return the bytes of the file, a preallocated tail too."""
        return self.file.pread(self.file.size(), self.start)


class _Lenient:
    """A batch whose reader does not notice bytes behind the last record."""

    def __init__(self, batch: RecordBatch) -> None:
        self._batch = batch

    def records(self) -> Iterator[Any]:
        try:
            yield from self._batch.records()
        except InvalidRecordError as error:
            if "left behind" not in error.message:
                raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)


@canary("K-29c", "record-batch", "BATCH-16")
class K29cBatches(Implementation):
    """Bytes behind the last record of a batch are not noticed."""

    @classmethod
    def functions(cls) -> Any:
        """Return the functions, with a lenient reader."""
        right = super().functions()
        lenient = {"read_batch": lambda data: _Lenient(right.read_batch(data))}
        return SimpleNamespace(**{**vars(right), **lenient})


@canary("K-43", "record-batch", "BATCH-5")
class K43Batches(Implementation):
    """Sequence numbers are added and subtracted without wrapping to 0."""

    @classmethod
    def functions(cls) -> Any:
        """Return the functions, with plain addition of sequences."""
        known = vars(super().functions())
        known["increment_sequence"] = lambda sequence, change: sequence + change
        known["decrement_sequence"] = lambda sequence, change: sequence - change
        return SimpleNamespace(**known)
