# SPDX-License-Identifier: Apache-2.0
"""All index files of a store: the newest one takes entries, queries ask them from newest to oldest.

Upstream: RocketMQ 5.5.1: IndexService, QueryOffsetResult.
Laws: RMQSVC-1 to RMQSVC-8, RMQSVC-10 to RMQSVC-25.
Not covered: the thread that flushes a file which is full: here that is done before the call that
  rolled returns; the key index in RocksDB.
"""

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from segproof.closing import Closing, told_state
from segproof.counts import plural
from segproof.errors import (
    CorruptIndexError,
    IndexClosedError,
    InvalidArgumentError,
    NumberFormatError,
    ReadOnlyError,
)
from segproof.files import REAL_FILES, Files
from segproof.integers import now_ms
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.key_hash import build_key
from segproof.rocketmq.message import ROLLED_BACK, TAGS, DispatchRequest
from segproof.rocketmq.store_checkpoint import StoreCheckpoint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INDEX: Final = "index"
CHECKPOINT: Final = "checkpoint"
MAX_MSGS_NUM_BATCH: Final = 64
"""A query answers no more than so many offsets."""
TAG_TYPE: Final = "T"
DESTROY_INTERVAL_MS: Final = 3000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class QueryOffsetResult(NamedTuple):
    """What a query found."""

    phy_offsets: tuple[int, ...]
    """Positions in the commit log: of the newest file first, of the newest entry first."""
    index_last_update_timestamp: int
    """Store time of the last entry of the newest file, in milliseconds; 0 without files."""
    index_last_update_phyoffset: int


def index_file_name(time_ms: int, zone: tzinfo | None = None) -> str:
    """Return the name of a file that is made at a time: 17 digits, in the zone (None: local).

    Laws: RMQSVC-7. Raises: InvalidArgumentError for a time outside the years 1 to 9999.
    """
    try:
        moment = (EPOCH + timedelta(milliseconds=time_ms)).astimezone(zone)
    except OverflowError as error:
        raise InvalidArgumentError("a time without a name", actual=time_ms) from error
    return (
        f"{moment.year:04d}{moment.month:02d}{moment.day:02d}{moment.hour:02d}"
        f"{moment.minute:02d}{moment.second:02d}{moment.microsecond // 1000:03d}"
    )


def _no_room(file: IndexFile) -> CorruptIndexError:
    return CorruptIndexError(
        "an entry could not be put into a file that has room", law="RMQSVC-25", path=file.file_name
    )


class IndexService(Closing):
    """The index files of `<store>/index`, oldest first, and the checkpoint of the store.

    Made by `open`, for reading, or for writing where that was asked for. Read: `load`,
    `query_offset`, `index_files`. Write: `build_index`, `put_hashes`, `flush`, `destroy`,
    `delete_expired_file`, `get_and_create_last_index_file`.
    """

    store_checkpoint: StoreCheckpoint
    """The checkpoint of the store."""

    def __init__(
        self,
        store_path: str,
        hash_slot_num: int,
        index_num: int,
        store_checkpoint: StoreCheckpoint,
        index_tags: bool,
        files: Files,
        time: Callable[[], int],
        zone: tzinfo | None,
    ) -> None:
        self.writable = store_checkpoint.writable
        """Whether the index may be changed."""
        self.store_path = store_path
        self.hash_slot_num = hash_slot_num
        self.index_num = index_num
        self.store_checkpoint = store_checkpoint
        self.index_tags = index_tags
        """Whether messages with tags get an entry for them, as releases from 5.4.0 on make it."""
        self.max_msgs_num_batch = MAX_MSGS_NUM_BATCH
        self.is_shortened = False
        """Whether `load` removed a file up to the checkpoint's index time, which upstream keeps."""
        self._directory = os.path.join(store_path, INDEX)
        self._files = files
        self._time = time
        self._zone = zone
        self._list: list[IndexFile] = []
        self._is_closed = False
        self._has_lost = False
        """Whether a flush failed: what it was to write may be lost, whatever is flushed later."""

    @classmethod
    def open(
        cls,
        store_path: str | os.PathLike[str],
        hash_slot_num: int = 5_000_000,
        index_num: int = 20_000_000,
        *,
        writable: bool = False,
        create: bool = False,
        index_tags: bool = True,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
        zone: tzinfo | None = None,
    ) -> Self:
        """Open the index of a store for reading; no index file is listed until `load`.

        With `writable=True` it may be changed, and its files, the checkpoint too, are made as they
        are needed. With `create=True` it is writable, and a missing store is made. Slots and
        entries are those of every file. Raises: OSError; FileNotFoundError also for a store without
        a checkpoint, if it is opened for reading.
        """
        store = os.fspath(store_path)
        if not create and files.status(store) is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such store", store)
        makes = {"create": writable or create}
        checkpoint = StoreCheckpoint.open(os.path.join(store, CHECKPOINT), **makes, files=files)
        return cls(store, hash_slot_num, index_num, checkpoint, index_tags, files, time, zone)

    def __repr__(self) -> str:
        is_open = not self._is_closed
        state = told_state(plural(len(self._list), "file"), is_open=is_open, writable=self.writable)
        return f"IndexService({self.store_path!r}, {state})"

    @property
    def index_files(self) -> tuple[IndexFile, ...]:
        """The files, oldest first."""
        return tuple(self._list)

    @property
    def total_size(self) -> int:
        """Bytes of all files, if each is as long as the first one. Laws: RMQSVC-24."""
        return self._list[0].file_size * len(self._list) if self._list else 0

    # --- loading and ending

    def load(self, last_exit_ok: bool) -> bool:
        """List the files of the folder again, by name; return whether all could be.

        After an exit that was not clean, each file is removed that is not surely durable, by the
        checkpoint's index time. Files are flushed in the order of their messages, so those are
        durable up to the first full one that ends exactly at that time. Where none does, each file
        counts as durable that ends before it. One without entries never does. A service that is
        open for reading leaves the others out. A name that is no number is passed over. At a folder
        whose name is a number, and at any other I/O error, it ends with False, with the files
        listed so far, and with none removed.
        Laws: RMQSVC-1 to RMQSVC-4.
        Raises: CorruptIndexError for a file of another length, with the files listed so far;
        IndexClosedError.
        """
        self._check_open()
        self.is_shortened = False
        before, self._list = self._list, []
        for file in before:
            file.shutdown()
        status = self._files.status(self._directory)
        if status is None or not status.is_directory:
            return True
        names = self._files.list_directory(self._directory)
        for name in sorted(names, key=lambda one: one.encode("utf-16-be", "surrogatepass")):
            if not self.writable and self._is_empty(name):
                continue  # made by a crash; a writer gives it its length
            try:
                file = self._open_file(name, 0, 0, create=False)
            except NumberFormatError:
                continue
            except OSError:
                return False
            self._list.append(file)
        if not last_exit_ok:
            self._keep(self._durable_files())
        return True

    def _durable_files(self) -> list[IndexFile]:
        """Return which of the listed files were surely flushed, in the order of their messages."""
        time = self.store_checkpoint.index_msg_timestamp
        begun = [file for file in self._list if file.index_count > 1]
        begun.sort(key=lambda file: file.end_phy_offset)
        for number, file in enumerate(begun, 1):
            if file.is_write_full() and file.end_timestamp == time:
                return begun[:number]  # the checkpoint was perhaps written before the next flush
        return [file for file in begun if file.end_timestamp <= time]

    def _keep(self, durable: list[IndexFile]) -> None:
        """Remove the other files; a service that is open for reading leaves them out."""
        time, kept = self.store_checkpoint.index_msg_timestamp, {id(file) for file in durable}
        others = [file for file in self._list if id(file) not in kept]
        self.is_shortened = any(file.end_timestamp <= time for file in others)
        self._list = [file for file in self._list if id(file) in kept]
        for file in others:
            if self.writable:
                file.destroy(0)
            else:
                file.close()

    def _is_empty(self, name: str) -> bool:
        status = self._files.status(os.path.join(self._directory, name))
        return status is not None and status.is_regular and status.size_bytes == 0

    def shutdown(self) -> None:
        """Flush and close every file; none is listed any more. Laws: RMQSVC-23."""
        while self._list:
            self._list.pop().shutdown()

    def close(self) -> None:
        """Shut down the service, and the checkpoint with it; it can't be used any more."""
        self._is_closed = True
        self.shutdown()
        self.store_checkpoint.shutdown()

    def _check_open(self) -> None:
        if self._is_closed:
            raise IndexClosedError("the index service is closed", path=self._directory)

    def check_writable(self) -> None:
        """Return if the index may be changed. Raises: ReadOnlyError, IndexClosedError."""
        self._check_open()
        if not self.writable:
            raise ReadOnlyError(
                "the index of the store was opened for reading",
                path=self._directory,
                hint="open it with writable=True",
            )

    def destroy(self) -> None:
        """Remove every listed file; none is listed any more. Laws: RMQSVC-23.

        Raises: ReadOnlyIndexError for the first of them.
        """
        while self._list:
            self._list[0].destroy(DESTROY_INTERVAL_MS)
            self._list.pop(0)

    def delete_expired_file(self, offset: int) -> None:
        """Remove the first files whose entries all lie below an offset, but never the last file.

        The first one that is held by a reader ends it, and stays listed. Laws: RMQSVC-21, -22.
        Raises: ReadOnlyError; IndexClosedError.
        """
        self.check_writable()
        while len(self._list) > 1 and self._list[0].end_phy_offset < offset:
            if not self._list[0].destroy(DESTROY_INTERVAL_MS):
                break
            self._list.pop(0)

    def flush(self, position: int) -> None:
        """Write the file at a position of the list; without such a position nothing happens.

        Of a full one the checkpoint keeps the end time, whether or not it is later than the one
        before. After a flush that failed it stays, for what that was to write may be lost though
        the next one succeeds: a recovery enters it again. Laws: RMQSVC-10.
        Raises: ReadOnlyError; IndexClosedError; OSError.
        """
        self.check_writable()
        if 0 <= position < len(self._list):
            self._flush(self._list[position])

    def _flush(self, file: IndexFile) -> None:
        newest = file.end_timestamp if file.is_write_full() else 0
        try:
            file.flush()
        except OSError:
            self._has_lost = True
            raise
        if newest > 0 and not self._has_lost:
            self._files.sync_directory(self._directory)  # its name, before it is counted on
            self.store_checkpoint.set_index_msg_timestamp(newest)
            self.store_checkpoint.flush()

    # --- the file that takes entries

    def retry_get_and_create_index_file(self) -> IndexFile:
        """Return the file for the next entry. Raises: OSError; nothing is tried twice."""
        return self.get_and_create_last_index_file()

    def get_and_create_last_index_file(self) -> IndexFile:
        """Return the last file, or a new one if that is full or missing.

        A new one begins with the end of the full one, which is then flushed. Its name is the time,
        or the next one that is free. Laws: RMQSVC-6 to RMQSVC-10.
        Raises: ReadOnlyError; IndexClosedError; OSError.
        """
        self.check_writable()
        last = self._list[-1] if self._list else None
        if last is not None and not last.is_write_full():
            return last
        end = (0, 0) if last is None else (last.end_phy_offset, last.end_timestamp)
        file = self._open_file(self._free_name(), *end, create=True)
        self._list.append(file)
        if last is not None:
            self._flush(last)
        return file

    def _free_name(self) -> str:
        time_ms = self._time()
        while True:
            name = index_file_name(time_ms, self._zone)
            if self._files.status(os.path.join(self._directory, name)) is None:
                return name
            time_ms += 1

    def _open_file(
        self, name: str, end_phy_offset: int, end_timestamp: int, *, create: bool
    ) -> IndexFile:
        return IndexFile.open(
            os.path.join(self._directory, name),
            self.hash_slot_num,
            self.index_num,
            end_phy_offset,
            end_timestamp,
            writable=self.writable,
            create=create,
            files=self._files,
            time=self._time,
        )

    # --- building

    def build_index(self, request: DispatchRequest) -> None:
        """Enter the keys of a message: the unique one, then the others, then its tags.

        What lies before the end of the index is passed over. What lies at its end has entries
        already, as many as the index ends with: only the keys behind these are entered.
        Laws: RMQSVC-11 to RMQSVC-16. Raises: CorruptIndexError; ReadOnlyError; OSError.
        """
        file = self.retry_get_and_create_index_file()
        if request.commit_log_offset < file.end_phy_offset:
            return
        if request.sys_flag & ROLLED_BACK == ROLLED_BACK:
            return
        keys = self._keys_of(request)
        if request.commit_log_offset == file.end_phy_offset:
            keys = keys[self._entries_at_end(request.commit_log_offset, len(keys)) :]
        for key in keys:
            self._put_key(key, request.commit_log_offset, request.store_timestamp)

    def _keys_of(self, request: DispatchRequest) -> list[str]:
        topic = request.topic
        keys = [] if request.uniq_key is None else [build_key(topic, request.uniq_key)]
        keys += [build_key(topic, key) for key in (request.keys or "").split(" ") if key]
        tags = dict(request.properties_map or ()).get(TAGS)
        if tags and self.index_tags:
            keys.append(build_key(topic, f"{TAG_TYPE}#{tags}"))
        return keys

    def _entries_at_end(self, phy_offset: int, limit: int) -> int:
        """Return how many of the last entries are of an offset, counting up to `limit`."""
        count = 0
        for file in reversed(self._list):
            for index in range(len(file), 0, -1):
                if count == limit or file.entry(index).phy_offset != phy_offset:
                    return count
                count += 1
        return count

    def _put_key(self, key: str, phy_offset: int, store_timestamp: int) -> None:
        file = self.retry_get_and_create_index_file()
        if not file.put_key(key, phy_offset, store_timestamp):
            raise _no_room(file)

    def put_hashes(
        self,
        hashes: "NDArray[np.int64]",
        phy_offsets: "NDArray[np.int64]",
        store_timestamps: "NDArray[np.int64]",
    ) -> None:
        """Put an entry for each hash of a key, beginning new files as `build_index` does.

        Raises: CorruptIndexError; OSError.
        """
        done = 0
        while done < len(hashes):
            file = self.retry_get_and_create_index_file()
            part = slice(done, None)
            count = file.put_hashes(hashes[part], phy_offsets[part], store_timestamps[part])
            if count == 0:
                raise _no_room(file)
            done += count

    # --- asking

    def query_offset(
        self,
        topic: str | None,
        key: str | None,
        max_num: int,
        begin: int,
        end: int,
        index_type: str | None = None,
    ) -> QueryOffsetResult:
        """Return the offsets of messages with a key, or with tags for the type "T".

        `begin` and `end` are store times, both inclusive, to the second; at most `max_num` offsets
        are found, and never more than 64. Different keys of one hash are all found.
        Laws: RMQSVC-17 to RMQSVC-20.
        Raises: InvalidArgumentError for a negative number; WrongTypeError for a topic or key that
        is no text; CorruptIndexError; IndexClosedError.
        """
        self._check_open()
        if max_num < 0:
            raise InvalidArgumentError("how many offsets are wanted is negative", actual=max_num)
        wanted = min(max_num, self.max_msgs_num_batch)
        asked = build_key(topic, build_key(TAG_TYPE, key) if index_type == TAG_TYPE else key)
        found: list[int] = []
        update = (0, 0)
        if self._list:
            update = (self._list[-1].end_timestamp, self._list[-1].end_phy_offset)
        for file in reversed(self._list):
            if not file.is_available or file.index_count <= 1:
                continue
            if file.is_time_matched(begin, end):
                file.select_phy_offset(found, asked, wanted, begin, end)
            if file.begin_timestamp < begin or len(found) >= wanted:
                break
        return QueryOffsetResult(tuple(found), *update)
