# SPDX-License-Identifier: Apache-2.0
"""Kafka's FileRecords as the harness calls it.

Upstream: FileRecords, FileLogInputStream.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from jpype import JBoolean, JException, JInt, JLong

from segproof_harness.releases.jvm import Adapter, kind_of, named_alike
from segproof_harness.releases.kafka.answers import found_place, timestamp_and_offset
from segproof_harness.releases.kafka.batches_before_0_11 import batches_from, batches_of
from segproof_harness.releases.kafka.classes import largest_record
from segproof_harness.releases.kafka.records import (
    Batch,
    bytes_of,
    java_errors,
    record_class,
    wrapped,
)
from segproof_model.kafka.format.record_file_releases import (
    SearchAnswersLastOffset,
    SearchComparesLastOffsets,
)
from segproof_model.language.integers import wrap32
from segproof_model.releases import release_named

UNKNOWN_CODEC = "Unknown compression type"
"""How the error of a codec that Kafka does not know begins."""


class OwnFile(NamedTuple):
    """A file that was opened besides."""

    path: str

    def size(self) -> int:
        """Return its size in bytes."""
        return os.stat(self.path).st_size

    def truncate(self, size: int) -> None:
        """Cut it."""
        os.truncate(self.path, size)


class RecordFile(Adapter):
    """The record file, or a slice of one."""

    kinds: ClassVar[Mapping[str, str]] = {
        "java.nio.channels.NonWritableChannelException": "io-error",
    }
    """A file that is open for reading only refuses a write: an OSError in ours."""
    calls: ClassVar = named_alike("size_in_bytes", "truncate_to", "trim", "flush", "close")

    def __init__(self, real: Any) -> None:
        self._real = real

    @classmethod
    def open(
        cls,
        file: str,
        mutable: bool,
        file_already_exists: bool,
        init_file_size: int,
        preallocate: bool,
        files: Any,
    ) -> "RecordFile":
        """Open or create the file."""
        real = record_class(cls.jvm, "FileRecords").open(
            cls.jvm.file(file),
            JBoolean(mutable),
            JBoolean(file_already_exists),
            JInt(init_file_size),
            JBoolean(preallocate),
        )
        return cls(real)

    start = property(lambda self: int(self.jvm.field(self._real, "start")))
    end = property(lambda self: wrap32(self.start + self.size_in_bytes()))
    is_open = property(lambda self: bool(self._real.channel().isOpen()))

    def append(self, records: bytes) -> int:
        """Call append."""
        memory = record_class(self.jvm, "MemoryRecords")
        return int(self._real.append(memory.readableRecords(wrapped(self.jvm, records))))

    def read(self) -> bytes | None:
        """Read all of it by readInto, into a buffer that is not larger than the file."""
        with java_errors():
            size = min(max(0, self.size_in_bytes()), int(self._real.channel().size()))
            buffer = self.jvm.java("java.nio.ByteBuffer").allocate(JInt(size))
            self._real.readInto(buffer, JInt(0))
        return bytes_of(buffer)

    def batches(self, start: int | None = None) -> Iterator[Batch]:
        """Iterate over the batches. Raises RefusedError where the class raises."""
        with java_errors():
            for real in batches_of(self._real) if start is None else self._batches_from(start):
                yield Batch(real, int(real.position()))

    def _batches_from(self, start: int) -> Any:
        return batches_from(record_class(self.jvm, "FileRecords"), self._real, start)

    def search_for_offset_with_size(self, target_offset: int, starting_position: int) -> Any:
        """Call searchForOffsetWithSize, or what it is called later.

        Where it reads base offsets, an error of a batch is named as in reading that batch alone.
        """
        names = ("searchForOffsetFromPosition", "searchForOffsetWithSize")
        name = next(name for name in names if hasattr(self._real, name))
        try:
            call = getattr(self._real, name)
            return found_place(call(JLong(target_offset), JInt(starting_position)))
        except JException:
            self._read_base_offsets(target_offset, starting_position)
            raise

    def _read_base_offsets(self, target_offset: int, starting_position: int) -> None:
        """Read the base offsets that a search reads, for their errors."""
        release = release_named(self.jvm.release.name)
        if release.has(SearchAnswersLastOffset):
            return
        ends_at_first = release.has(SearchComparesLastOffsets)
        for batch in self.batches(starting_position):
            if not ends_at_first or batch.last_offset >= target_offset:
                batch.base_offset  # noqa: B018  # read for its error
                if ends_at_first:
                    return

    def search_for_timestamp(
        self, target_timestamp: int, starting_position: int, starting_offset: int
    ) -> Any:
        """Call searchForTimestamp, which takes no offset before 0.11.

        An error of a batch is named as in reading that batch alone, but for a codec's, which has
        its name; a broken promise of a time ends the search before 0.11.
        """
        takes_offset = self.jvm.release.number >= (0, 11)
        more = [JLong(starting_offset), *largest_record(self.jvm)] if takes_offset else []
        try:
            return timestamp_and_offset(
                self._real.searchForTimestamp(
                    JLong(target_timestamp), JInt(starting_position), *more
                )
            )
        except JException as error:
            kind = kind_of(error, {})
            if kind == "kafka-error" or (kind == "illegal-state" and not takes_offset):
                raise
            for batch in self.batches(starting_position):
                if batch.max_timestamp >= target_timestamp:
                    batch.read_times()
                    if UNKNOWN_CODEC in str(error) and batch.record_count == 0:
                        raise  # alone it is not opened
            raise

    def largest_timestamp_after(self, starting_position: int) -> Any:
        """Call largestTimestampAfter."""
        return timestamp_and_offset(self._real.largestTimestampAfter(JInt(starting_position)))

    def slice(self, position: int, size: int) -> "RecordFile":
        """Call slice, called read up to 1.1."""
        call = self._real.slice if hasattr(self._real, "slice") else self._real.read
        return type(self)(call(JInt(position), JInt(size)))

    @property
    def file(self) -> "OwnFile":
        """The file as another process has it."""
        return OwnFile(str(self._real.file().getPath()))
