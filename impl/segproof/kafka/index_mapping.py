# SPDX-License-Identifier: Apache-2.0
"""How an index file is opened, mapped, mapped again at another length, and given to readers.

One writer, any number of readers, no lock. The writer publishes one tuple, (bytes, entries); a
reader takes that tuple once and works on it. Before the file is cut or unmapped the writer
publishes a private copy and releases its view; a reader that was caught in between meets a
ValueError, takes the new tuple and begins again. So no reader ever touches a page that is gone.

Upstream: Kafka, AbstractIndex (4.3.1).
Laws: ABSIDX-1, ABSIDX-2, ABSIDX-4, ABSIDX-11, ABSIDX-15, ABSIDX-16.
Not covered: a second process that cuts a file which is open for writing here.
"""

import os
from collections.abc import Callable
from contextlib import closing
from operator import index as to_int
from typing import ClassVar, TypeVar

import numpy as np

from segproof.closing import undone_if_it_fails
from segproof.errors import IndexClosedError, InvalidArgumentError, ReadOnlyIndexError
from segproof.files import File, Files, Mapping, unmap
from segproof.integers import INT32_MAX
from segproof.kernels.index_rules import whole_entries

LENGTH_MAX = INT32_MAX
"""Kafka maps an index file whole, and says its length as an int32."""

Answer = TypeVar("Answer")
Published = tuple[memoryview, int]
"""The bytes of the file, and how many entries they begin with."""


class IndexMapping:
    """The bytes of one index file: a mapping that is written, or a private copy that is read.

    Not used directly: see `AbstractIndex`, which knows what the entries mean.
    """

    ENTRY_SIZE: ClassVar[int]

    length: int
    """The file's length in bytes; grows and shrinks with `resize`."""
    _entries_at_close = 0
    _cuts = 0
    """How often entries were given up, whose slots are then written again."""

    def __init__(
        self,
        file: str | os.PathLike[str],
        max_index_size_bytes: int,
        *,
        writable: bool,
        create: bool,
        files: Files,
    ) -> None:
        self.file = os.fspath(file)
        self.max_index_size_bytes = to_int(max_index_size_bytes)
        self._check_size(self.max_index_size_bytes, "ABSIDX-1")
        self.writable = writable or create
        """Whether it may change the file."""
        self._files = files
        self._published: Published | None = None
        self._handle: File | None = None
        self._mapping: Mapping | None = None
        if self.writable:
            self._open_for_writing(create)
        else:
            self._open_for_reading()

    # Opening

    def _check_size(self, size: int, law: str) -> None:
        if size > LENGTH_MAX:
            raise InvalidArgumentError(
                f"an index file has at most {LENGTH_MAX} bytes",
                law=law,
                path=self.file,
                expected=f"at most {LENGTH_MAX}",
                actual=size,
            )

    def _open_for_writing(self, create: bool) -> None:
        size = self._whole(self.max_index_size_bytes)
        is_new = create and self._files.status(self.file) is None
        if is_new and self.max_index_size_bytes < self.ENTRY_SIZE:
            raise InvalidArgumentError(
                f"a new index needs a maximum size of at least {self.ENTRY_SIZE} bytes",
                law="ABSIDX-2",
                path=self.file,
                actual=self.max_index_size_bytes,
            )
        created = self._files.create_new(self.file) if create else None
        self._handle = created or self._files.open(self.file, writable=True)
        try:
            if created is not None:
                created.truncate(size)
            self.length = self._checked_length(self._handle)
            self._map(0)
        except BaseException:
            self._handle.close()
            if created is not None:
                self._files.remove(self.file)
            raise
        view, _ = self._current()
        self._publish(view, 0 if created is not None else self._count_entries(view))

    def _open_for_reading(self) -> None:
        with closing(self._files.open(self.file)) as handle:
            # Never a mapping: another process may cut the file, and touching a page that is gone
            # kills the reader.
            # An array of numpy lies in large pages, which are read into 4 times as fast.
            data = np.empty(self._checked_length(handle), np.uint8).data
            self.length = handle.pread_into(data, 0)
        view = data[: self.length]
        self._publish(view, self._count_entries(view))

    def _checked_length(self, handle: File) -> int:
        length = handle.size()
        if length > LENGTH_MAX:
            raise InvalidArgumentError(
                f"an index file has at most {LENGTH_MAX} bytes, this one has {length}",
                law="ABSIDX-4",
                path=self.file,
                hint="it is no index file, or it is damaged",
            )
        return length

    def _count_entries(self, view: memoryview) -> int:
        """Return how many entries the bytes of a file begin with."""
        raise NotImplementedError

    def _whole(self, size: int) -> int:
        """Round to whole entries, toward zero as Java does."""
        return whole_entries(size, self.ENTRY_SIZE)

    # What readers see

    def _current(self) -> Published:
        published = self._published
        if published is None:
            raise self._closed()
        return published

    def _closed(self) -> IndexClosedError:
        return IndexClosedError("the index is closed", law="ABSIDX-15", path=self.file)

    def _reading(self, read: Callable[[Published], Answer]) -> Answer:
        """Return `read` of what is published, again if the bytes were replaced meanwhile."""
        while True:
            cuts = self._cuts
            published = self._current()
            try:
                answer = read(published)
            except Exception:  # a released view; compiled kernels say it their own way
                if self._published is published:
                    raise
            else:
                if self._cuts == cuts:
                    return answer

    def _publish(self, view: memoryview, entries: int) -> None:
        assert 0 <= entries * self.ENTRY_SIZE <= self.length
        self._published = (view, entries)

    @property
    def entries(self) -> int:
        """The number of entries; after closing, the last one known."""
        published = self._published
        return self._entries_at_close if published is None else published[1]

    @property
    def is_whole(self) -> bool:
        """Whether the file ends with its last entry, and that is not all zeros."""
        view, entries = self._current()
        last = view[max(0, entries - 1) * self.ENTRY_SIZE :]
        return len(view) == entries * self.ENTRY_SIZE and (not entries or any(last))

    # Mapping

    def _check_writable(self, operation: str) -> None:
        if not self.writable:
            raise ReadOnlyIndexError(
                f"{operation} of an index that is open for reading",
                law="ABSIDX-11",
                path=self.file,
                hint="open it with writable=True",
            )

    def _map(self, entries: int) -> None:
        assert self._handle is not None
        self._mapping = self._handle.map(self.length)
        self._publish(self._mapping.view(), entries)

    def _remap(self, view: memoryview, entries: int, size: int) -> None:
        """Give the file another length while readers go on with a copy."""
        assert self._handle is not None
        self._published = (memoryview(bytearray(view[: entries * self.ENTRY_SIZE])), entries)
        try:
            self._unmap(view)
            self._handle.truncate(size)
            self.length = size
        finally:
            self._map_again(entries)

    def _map_again(self, entries: int) -> None:
        """Map; without a mapping nothing written would reach the file, so close then."""
        with undone_if_it_fails(self.close_handler):
            self._map(entries)

    def _unmap(self, view: memoryview) -> None:
        """Unmap once no reader is inside; a reader that comes later finds the view released."""
        mapping, self._mapping = self._mapping, None
        unmap(view, mapping)

    def close_handler(self) -> None:
        """Unmap; the file keeps its length (ABSIDX-16)."""
        published = self._published
        if published is None:
            return
        self._entries_at_close = published[1]
        self._published = None
        try:
            self._unmap(published[0])
        finally:
            if self._handle is not None:
                self._handle.close()
                self._handle = None
