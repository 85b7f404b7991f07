# SPDX-License-Identifier: Apache-2.0
"""The files of one segment: opened, renamed, made durable, closed and removed together.

Upstream: Kafka, LogSegment (4.3.1).
Laws: FILE-3, FILE-4, SEG-43, SEG-45 to SEG-48.
"""

import contextlib
import errno
import os
from collections.abc import Callable
from operator import index as to_int
from typing import Self

from segproof.closing import Closing, attempt_all, undone_if_it_fails
from segproof.errors import (
    IndexClosedError,
    InvalidArgumentError,
    ReadOnlyError,
    SegproofError,
)
from segproof.files import REAL_FILES, Files, FileStatus
from segproof.integers import in_range, now_ms
from segproof.kafka.lazy_index import LazyIndex
from segproof.kafka.log_config import LogConfig
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.record_file import RecordFile
from segproof.kafka.segment_names import segment_file_name
from segproof.kafka.segments.log_search import ReadAhead
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kafka.transaction_index import TransactionIndex
from segproof.kafka.write_format import NEWEST_FORMAT, WriteFormat
from segproof.kernels.index_rules import whole_entries


class SegmentFiles(Closing):
    """The files of a segment, and what is remembered beside them.

    The offset and the time index are opened when they are first needed.
    """

    def __init__(
        self,
        log: RecordFile,
        lazy_indexes: tuple[LazyIndex[OffsetIndex], LazyIndex[TimeIndex]],
        txn_index: TransactionIndex,
        base_offset: int,
        config: LogConfig,
        *,
        files: Files,
        time: Callable[[], int],
        write_format: WriteFormat,
        roll_jitter_ms: int,
    ) -> None:
        self.log = log
        """The record file."""
        self.writable = log.writable
        """Whether the segment may be changed."""
        self._lazy_offset_index, self._lazy_time_index = lazy_indexes
        self.txn_index = txn_index
        """The aborted transactions; its file is made by the first one."""
        self._files = files
        self._is_closed = False
        self.base_offset = base_offset
        """The first offset that may lie in it."""
        self.config = config
        self.write_format = write_format
        self._is_batch_indexed = write_format.entries == "batch"
        self._is_first_offset_key = write_format.index_key == "first_offset"
        self.roll_jitter_ms = roll_jitter_ms
        """So much earlier than others it is rolled, in ms."""
        self._time = time
        self.created_ms = time()
        """The wall clock when it was opened, or became empty, in ms since 1970."""
        self.bytes_since_last_index_entry = 0
        """Bytes from the last indexed batch on, that included; 0 after opening."""
        self.rolling_based_timestamp: int | None = None
        """The largest timestamp of the first batch, once it was asked for."""
        self._max_pair: TimestampOffset | None = None
        self._released_pair: TimestampOffset | None = None
        """The last time entry when the indexes were released."""
        self._read_ahead = ReadAhead(config.index_interval_bytes)

    @classmethod
    def open(
        cls,
        dir: str | os.PathLike[str],  # noqa: A002 -- Kafka's name
        base_offset: int,
        config: LogConfig,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        file_suffix: str = "",
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
        write_format: WriteFormat = NEWEST_FORMAT,
        roll_jitter_ms: int = 0,
    ) -> Self:
        """Open the segment in a directory for reading; the index files are opened when needed.

        With `writable=True` it may be changed, and a missing index is made when it is needed. With
        `create=True` it is writable, and a missing `.log` is made. With `preallocate` a new log has
        `init_file_size` bytes, and its logical size is 0. `time` tells the ms since 1970. The log
        is not read: the largest timestamp is that of the last time entry, until `recover` or
        `truncate_to` (SEG-49). Laws: FILE-3, FILE-4.

        Raises: OSError; SegproofError for a log above 2147483647 bytes; InvalidArgumentError for a
        base offset outside 64 bits.
        """
        base_offset, folder = in_range(base_offset, "the base offset"), os.fspath(dir)

        def path(suffix: str) -> str:
            return os.path.join(folder, segment_file_name(base_offset, suffix) + file_suffix)

        log = RecordFile.open(
            path(".log"),
            writable=writable,
            create=create,
            file_already_exists=file_already_exists,
            init_file_size=init_file_size,
            preallocate=preallocate,
            files=files,
        )
        with undone_if_it_fails(log.file.close):
            txn_index = TransactionIndex(
                base_offset, path(".txnindex"), create=log.writable, files=files
            )
        size = config.segment_index_bytes
        lazy_indexes = (
            LazyIndex.for_offset(
                path(".index"), base_offset, size, create=log.writable, files=files
            ),
            LazyIndex.for_time(
                path(".timeindex"), base_offset, size, create=log.writable, files=files
            ),
        )
        return cls(
            log,
            lazy_indexes,
            txn_index,
            base_offset,
            config,
            files=files,
            time=time,
            write_format=write_format,
            roll_jitter_ms=roll_jitter_ms,
        )

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index, opened by the first use. Raises: what opening raises."""
        return self._lazy_offset_index.get()

    @property
    def time_index(self) -> TimeIndex:
        """The time index, opened by the first use. Raises: what opening raises."""
        return self._lazy_time_index.get()

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return self.log.size_in_bytes()

    @property
    def last_modified(self) -> int:
        """When the log was last changed, in ms since 1970; 0 if its file is gone."""
        status = self._files.status(self.log.name)
        return 0 if status is None else status.modified_ns // 10**6

    def set_last_modified(self, ms: int) -> None:
        """Set the modification time of the log and of both index files, in ms since 1970.

        Raises, with nothing changed: FileNotFoundError if one of them is missing.
        """
        self._refuse_read_only()
        paths = self._paths()[:3]
        for path in paths:
            self._status(path)
        for path in paths:
            self._files.set_modified(path, to_int(ms) * 10**6)

    def _status(self, path: str) -> FileStatus:
        status = self._files.status(path)
        if status is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
        return status

    def resize_indexes(self, size: int) -> None:
        """Give both indexes a length of `size` bytes, rounded down to whole entries.

        Raises, with nothing changed: InvalidArgumentError below what either of them holds;
        IndexClosedError.
        """
        self._check_writable()
        size = to_int(size)
        offset_index, time_index = self.offset_index, self.time_index
        if whole_entries(size, TimeIndex.ENTRY_SIZE) < time_index.size_in_bytes:
            time_index.resize(size)
        offset_index.resize(size)
        time_index.resize(size)

    def sanity_check(self, time_index_file_newly_created: bool) -> None:
        """Check that there is an offset index, and the transaction index; law: SEG-43.

        A time index that was just made is cut to length 0.

        Raises, with nothing changed: FileNotFoundError; InvalidArgumentError for a time index with
        entries, if it was just made; CorruptIndexError; IndexClosedError.
        """
        self._check_open()
        self._status(self._lazy_offset_index.file)
        is_new = time_index_file_newly_created
        if is_new:
            self._refuse_read_only()
        if is_new and self.time_index.entries:
            self.time_index.resize(0)  # refused
        self.txn_index.sanity_check()
        if is_new:
            self.time_index.resize(0)

    def flush(self) -> None:
        """Make the log and the indexes durable; this opens both indexes (SEG-48).

        Raises: IndexClosedError, OSError.
        """
        self._check_open()
        self.log.flush()
        self.offset_index.flush()
        self.time_index.flush()
        self.txn_index.flush()

    def has_suffix(self, suffix: str) -> bool:
        """Return whether the names of all four files end with `suffix`."""
        return all(path.endswith(suffix) for path in self._paths())

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """Rename all files, those that exist, from one suffix to another. Laws: SEG-46, LAZY-1.

        Raises: InvalidArgumentError, with nothing changed, if a name does not end with the old
        one; OSError, also where there is no log.
        """
        self._refuse_read_only()
        for path in self._paths():
            if not path.endswith(old_suffix):
                raise InvalidArgumentError(
                    f"the name does not end with {old_suffix!r}", law="SEG-46", path=path
                )
        log, *others = (path.removesuffix(old_suffix) + new_suffix for path in self._paths())
        self._files.rename(self.log.name, log)
        self.log.file.path = log
        offset_index, time_index, txn_index = others
        self._lazy_offset_index.rename_to(offset_index)
        self._lazy_time_index.rename_to(time_index)
        self.txn_index.rename_to(txn_index)

    def delete_if_exists(self) -> None:
        """Close everything and remove the files; a missing one is no error. Law: SEG-47.

        Each is attempted. Raises: the first OSError.
        """
        self._refuse_read_only()
        self._is_closed = True
        attempt_all(
            self._delete_log,
            self._lazy_offset_index.delete_if_exists,
            self._lazy_time_index.delete_if_exists,
            self.txn_index.delete_if_exists,
        )

    def release_indexes(self) -> None:
        """Close the indexes until they are needed again: each takes two open files.

        Only while nobody reads the segment. Indexes that were not trimmed stay open.
        """
        self._check_open()
        if self._lazy_time_index.is_loaded:
            self._released_pair = self.time_index.last_entry
        self._lazy_offset_index.release()
        self._lazy_time_index.release()

    def close(self) -> None:
        """Write the last time entry if it is known, cut and close all files; laws: SEG-44, LAZY-1.

        A second close does nothing. Raises: the first OSError, once all were closed.
        """
        if self._is_closed:
            return
        is_written = self._max_pair in (None, self._released_pair)
        if (
            self.writable
            and self._max_pair is not None
            and (self._lazy_time_index.is_loaded or not is_written)
        ):
            # Upstream only logs it: the entry can be made again from the log.
            with contextlib.suppress(SegproofError, OSError):
                self.time_index.maybe_append(*self._max_pair, True)
        self._close_files()

    def close_handlers(self) -> None:
        """Close all files as they are; nothing is written or cut. Law: SEG-45."""
        self._is_closed = True
        attempt_all(
            self._lazy_offset_index.close_handler,
            self._lazy_time_index.close_handler,
            self._close_log_handle,
            self.txn_index.close,
        )

    def _close_files(self) -> None:
        """Close all files, cut behind what they hold. Raises: the first error of several."""
        self._is_closed = True
        attempt_all(
            self._lazy_offset_index.close,
            self._lazy_time_index.close,
            self.log.close,
            self.txn_index.close,
        )

    def _close_log_handle(self) -> None:
        self.log.is_open = False
        self.log.file.close()

    def _delete_log(self) -> None:
        self._close_log_handle()
        self._files.remove(self.log.name)

    def _paths(self) -> list[str]:
        """Return the paths of log, offset index, time index and transaction index."""
        lazy = (self._lazy_offset_index.file, self._lazy_time_index.file)
        return [self.log.name, *lazy, self.txn_index.file]

    def _check_open(self) -> None:
        if self._is_closed:
            raise self._closed()

    def _check_writable(self) -> None:
        self._check_open()
        self._refuse_read_only()

    def _refuse_read_only(self) -> None:
        if not self.writable:
            raise ReadOnlyError(
                "the segment was opened for reading",
                path=self.log.name,
                hint="open it with writable=True",
            )

    def _closed(self) -> IndexClosedError:
        return IndexClosedError("the segment is closed", law="ABSIDX-15", path=self.log.name)
