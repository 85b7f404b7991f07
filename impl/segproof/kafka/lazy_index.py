# SPDX-License-Identifier: Apache-2.0
"""An index that is opened when it is first needed: until then only its path is known.

Upstream: Kafka, LazyIndex (4.3.1).
Laws: LAZY-1 to LAZY-6.
"""

import os
import threading
from typing import Generic, TypeVar

from segproof.closing import told_state
from segproof.errors import IndexClosedError
from segproof.files import REAL_FILES, Files
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.time_index import TimeIndex

Index = TypeVar("Index", OffsetIndex, TimeIndex)


class LazyIndex(Generic[Index]):
    """An offset index or a time index, opened by the first `get`, as its class opens it.

    Made by `for_offset` and `for_time`. Once opened, every call goes to the index.
    """

    def __init__(
        self,
        kind: type[Index],
        file: str | os.PathLike[str],
        base_offset: int | None,
        max_index_size: int,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> None:
        self._kind: type[Index] = kind
        self._file = os.fspath(file)
        self._base_offset = base_offset
        self._max_index_size = max_index_size
        self._writable, self._create = writable, create
        self._files = files
        self._index: Index | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    @staticmethod
    def for_offset(
        file: str | os.PathLike[str],
        base_offset: int | None = None,
        max_index_size: int = -1,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> "LazyIndex[OffsetIndex]":
        """Return an offset index that is not opened yet; no file is looked at."""
        return LazyIndex(
            OffsetIndex,
            file,
            base_offset,
            max_index_size,
            writable=writable,
            create=create,
            files=files,
        )

    @staticmethod
    def for_time(
        file: str | os.PathLike[str],
        base_offset: int | None = None,
        max_index_size: int = -1,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> "LazyIndex[TimeIndex]":
        """Return a time index that is not opened yet; no file is looked at."""
        return LazyIndex(
            TimeIndex,
            file,
            base_offset,
            max_index_size,
            writable=writable,
            create=create,
            files=files,
        )

    def __repr__(self) -> str:
        if self._index is not None:
            return f"LazyIndex({self._index!r})"
        state = told_state(
            "not opened yet", is_open=not self._is_closed, writable=self._writable or self._create
        )
        return f"LazyIndex({self._file!r}, {state})"

    @property
    def file(self) -> str:
        """The path, whether or not the file exists yet."""
        return self._file if self._index is None else self._index.file

    @property
    def is_loaded(self) -> bool:
        """Whether the index was opened."""
        return self._index is not None

    def get(self) -> Index:
        """Return the index; the first call opens it, or, with `create`, makes a missing file.

        Of many threads that call at once, one opens it (LAZY-3); later calls return the same, also
        once it is closed (LAZY-5).

        Raises: what opening raises, and the next call tries again; IndexClosedError if this was
        closed before the index was needed.
        """
        index = self._index
        return self._load() if index is None else index

    def _load(self) -> Index:
        with self._lock:
            if self._index is None:
                if self._is_closed:
                    raise IndexClosedError("the index is closed", law="LAZY-5", path=self._file)
                self._index = self._kind(
                    self._file,
                    self._base_offset,
                    self._max_index_size,
                    writable=self._writable,
                    create=self._create,
                    files=self._files,
                )
            return self._index

    def release(self) -> None:
        """Close an open index that the next `get` opens again as it is; nobody may read meanwhile.

        Not one whose file holds more than its entries, or whose last entry is all zeros, which
        would be taken for the tail of a file that was never trimmed.
        """
        with self._lock:
            index = self._index
            if index is None or self._is_closed or not index.is_whole:
                return
            self._file = index.file
            self._index = None
            index.close_handler()

    def rename_to(self, file: str | os.PathLike[str]) -> None:
        """Move the file, over an existing one too. Laws: LAZY-1, LAZY-2.

        If the index is not open, a missing file is no error and only the path changes.

        Raises: OSError if the move fails; the path has not changed then.
        """
        with self._lock:
            if self._index is not None:
                self._index.rename_to(file)
                return
            try:
                self._files.rename(self._file, os.fspath(file))
            except FileNotFoundError:
                if self._files.status(self._file) is not None:
                    raise
            self._file = os.fspath(file)

    def update_parent_dir(self, parent_dir: str | os.PathLike[str]) -> None:
        """Follow the directory that was moved to `parent_dir`; no file is touched (LAZY-1)."""
        with self._lock:
            if self._index is not None:
                self._index.update_parent_dir(parent_dir)
            else:
                self._file = os.path.join(parent_dir, os.path.basename(self._file))

    def delete_if_exists(self) -> bool:
        """Remove the file, closing an open index; return whether there was a file.

        If the index is not open, a later `get` makes a new file (LAZY-6).
        """
        with self._lock:
            if self._index is not None:
                return self._index.delete_if_exists()
            return self._files.remove(self._file)

    def close(self) -> None:
        """Close an open index; no file is made for one that is not (LAZY-1).

        A second close does nothing.
        """
        with self._lock:
            self._is_closed = True
            if self._index is not None:
                self._index.close()

    def close_handler(self) -> None:
        """As `close`, but the file keeps its length."""
        with self._lock:
            self._is_closed = True
            if self._index is not None:
                self._index.close_handler()
