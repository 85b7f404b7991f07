# SPDX-License-Identifier: Apache-2.0
"""The message-key index of a store: its files in order, and what is asked of all of them.

Upstream: RocketMQ 5.5.1, IndexService. Otherwise: index_service_releases,
    index_service_deviations.
Layout: `<store>/index/<17 digits>`, the time of creation; `<store>/checkpoint`.
Laws: RMQSVC-1 to RMQSVC-25.
Not covered: threads: a full file is flushed before the next call, not beside it; a time zone other
    than UTC; a file deleted while another object has it mapped too.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import ClassVar, NamedTuple

from segproof_model.language.files import Files, path_in
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, State, refusal, refuse
from segproof_model.rocketmq.broker.store_checkpoint import StoreCheckpoint
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.key_hash import build_key
from segproof_model.rocketmq.format.message import DispatchRequest

INDEX = "index"
CHECKPOINT = "checkpoint"
MAX_MSGS_NUM_BATCH = 64
"""So many offsets at most are found by one query."""
DESTROY_INTERVAL_MS = 3000
TRANSACTION_BITS = ROLLBACK = 12
TAGS = "TAGS"
TAG_TYPE = "T"


class QueryOffsetResult(NamedTuple):
    """What a query finds."""

    phy_offsets: tuple[int, ...]
    """Offsets in the log, newest file and newest entry first."""
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


def file_name_of(now_ms: int) -> str:
    """Return the name of a file that is created at a time (RMQSVC-7).

    >>> file_name_of(1795223767450)
    '20261121011607450'
    """
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=now_ms)
    return f"{moment:%Y%m%d%H%M%S}{now_ms % 1000:03d}"


def tokens_of(keys: str | None) -> list[str]:
    """Return the keys between single spaces, but for empty ones (RMQSVC-15).

    >>> tokens_of("  a  b\\tc  d ")
    ['a', 'b\\tc', 'd']
    """
    return [token for token in (keys or "").split(" ") if token]


def paths_below(files: Iterable[str], folder: str) -> list[str]:
    """Return the paths in a folder as Java sorts them: by UTF-16 units (RMQSVC-1)."""
    start = len(folder) + 1
    found = {
        folder + "/" + name[start:].partition("/")[0]
        for name in files
        if name.startswith(folder + "/")
    }
    return sorted(found, key=lambda path: path.encode("utf-16-be", "surrogatepass"))


class IndexService(State):
    """The service; it lists no file until `load`.

    >>> service = IndexService(Files(now_ms=1795223767450), "", 4, 6)
    >>> service.build_index(
    ...     DispatchRequest("T", 0, 100, 0, 1795223767000, 0, "k", None, 0, 0, None)
    ... )
    >>> service.query_offset("T", "k", 64, 0, 2**63 - 1)
    QueryOffsetResult(phy_offsets=(0,), index_last_update_timestamp=1795223767000, \
index_last_update_phyoffset=0)
    """

    passed_over: ClassVar[tuple[ErrorKind, ...]] = (ErrorKind.NUMBER_FORMAT,)
    """Errors of a file that loading passes over."""
    not_indexed: ClassVar[tuple[int, ...]] = (ROLLBACK,)
    """Messages with these transaction bits are not indexed."""

    def __init__(
        self,
        files: Files,
        store_path: str,
        hash_slot_num: int = 5_000_000,
        index_num: int = 20_000_000,
        max_msgs_num_batch: int = MAX_MSGS_NUM_BATCH,
    ) -> None:
        """Open the service, and the store's checkpoint, which is made if it is missing."""
        self.files, self.store_path = files, store_path
        self.hash_slot_num, self.index_num = hash_slot_num, index_num
        self.max_msgs_num_batch = max_msgs_num_batch
        """So many offsets at most are found by one query."""
        self.store_checkpoint = self.kind(StoreCheckpoint)(files, path_in(store_path, CHECKPOINT))
        self.index_files: tuple[IndexFile, ...] = ()
        """The listed files, oldest first."""
        self.is_shortened = False
        """Whether load deleted a file that the checkpoint covers, which upstream never does."""

    @property
    def total_size(self) -> int:
        """The size of the first file times the number of files (RMQSVC-24)."""
        return self.index_files[0].file_size * len(self.index_files) if self.index_files else 0

    def check_open(self) -> None:
        """Refuse any use of what was closed for good, which upstream knows nothing of."""
        if not self.store_checkpoint.is_mapped:
            refuse(ErrorKind.UNMAPPED)

    # --- the list ------------------------------------------------------------------------------

    def load(self, last_exit_ok: bool) -> bool:
        """List the files of the folder; return whether all could be (RMQSVC-1 to -5).

        After an exit that was not clean, files that the checkpoint does not cover are deleted.
        """
        self.check_open()
        for path in paths_below(self.files, path_in(self.store_path, INDEX)):
            failed = refusal(partial(self.load_file, path, last_exit_ok))
            if failed is not None and failed.kind is ErrorKind.IO_ERROR:
                return False
            if failed is not None and failed.kind not in self.passed_over:
                raise failed
        return True

    def load_file(self, path: str, last_exit_ok: bool) -> None:
        """List one file, or delete it."""
        file = self.open_file(path, 0, 0)
        file.load()
        if last_exit_ok or self.is_covered(file):
            self.index_files = (*self.index_files, file)
        else:
            file.destroy(0)

    def is_covered(self, file: IndexFile) -> bool:
        """Return whether the checkpoint says that a file is durable (RMQSVC-4)."""
        return bool(file.end_timestamp <= self.store_checkpoint.index_msg_timestamp)

    def open_file(self, path: str, end_phy_offset: int, end_timestamp: int) -> IndexFile:
        """Open an index file, or make it."""
        return self.kind(IndexFile)(
            self.files, path, self.hash_slot_num, self.index_num, end_phy_offset, end_timestamp
        )

    def get_and_create_last_index_file(self) -> None:
        """List a new file if the last one is full, or if there is none (RMQSVC-6).

        A full one is flushed. Upstream returns what is then the last file of the list.
        """
        self.check_open()
        last = len(self.index_files) - 1
        if last >= 0 and not self.index_files[last].is_write_full:
            return
        end_phy_offset = self.index_files[last].end_phy_offset if last >= 0 else 0
        end_timestamp = self.index_files[last].end_timestamp if last >= 0 else 0
        file = self.create_file(self.new_path(self.files.now_ms), end_phy_offset, end_timestamp)
        self.index_files = (*self.index_files, file)
        refusal(partial(self.flush, last))

    def retry_get_and_create_index_file(self) -> None:
        """Do the same; the trying again of upstream is never reached (RMQSVC-8)."""
        self.get_and_create_last_index_file()

    def create_file(self, path: str, end_phy_offset: int, end_timestamp: int) -> IndexFile:
        """Make a file; upstream hides an error by giving back a lock that it lacks (RMQSVC-8)."""
        try:
            return self.open_file(path, end_phy_offset, end_timestamp)
        except Refused:
            refuse(ErrorKind.LOCK_STATE)

    def new_path(self, now_ms: int) -> str:
        """Return the path of a file that is created now (RMQSVC-7, RMQSVC-9)."""
        return path_in(self.store_path, INDEX, file_name_of(now_ms))

    def flush(self, position: int) -> None:
        """Flush the file at a position of the list; another position does nothing (RMQSVC-10).

        A full one gives the checkpoint its end timestamp, if that is above 0.
        """
        self.check_open()
        if not 0 <= position < len(self.index_files):
            return
        file = self.index_files[position]
        file.flush()
        if file.is_write_full and file.end_timestamp > 0:
            self.store_checkpoint.set_index_msg_timestamp(file.end_timestamp)
            self.store_checkpoint.flush()

    # --- messages ------------------------------------------------------------------------------

    def build_index(self, request: DispatchRequest) -> None:
        """Enter the keys of a message (RMQSVC-11 to RMQSVC-16)."""
        self.retry_get_and_create_index_file()
        if request.commit_log_offset < self.index_files[-1].end_phy_offset:
            return
        if request.sys_flag & TRANSACTION_BITS not in self.not_indexed:
            for key in self.keys_of(request):
                self.put_key(key, request)

    def keys_of(self, request: DispatchRequest) -> list[str]:
        """Return the composed keys of a message, in the order of their entries (RMQSVC-14)."""
        keys = tokens_of(request.keys)
        if request.uniq_key is not None:
            keys.insert(0, request.uniq_key)
        tags = dict(request.properties_map or ()).get(TAGS)
        if tags:
            keys.append(build_key(TAG_TYPE, tags))
        return [build_key(request.topic, key) for key in keys]

    def put_key(self, key: str, request: DispatchRequest) -> None:
        """Put into the last file, or into a new one after a full one (RMQSVC-25)."""
        entry = key, request.commit_log_offset, request.store_timestamp
        while not self.index_files[-1].put_key(*entry):
            self.check_room()
            self.retry_get_and_create_index_file()

    def check_room(self) -> None:
        """Refuse a put that is tried for ever: no file has room, or the last one has."""
        if self.index_num <= 1 or not self.index_files[-1].is_write_full:
            refuse(ErrorKind.ENDLESS)

    # --- queries -------------------------------------------------------------------------------

    def query_offset(
        self,
        topic: str | None,
        key: str | None,
        max_num: int,
        begin: int,
        end: int,
        index_type: str | None = None,
    ) -> QueryOffsetResult:
        """Return the offsets of a key, newest first; both times are inclusive (RMQSVC-17 to -20).

        With the type `T` the key is the tags of a message.
        """
        self.check_open()
        self.check_wanted(max_num, index_type)
        wanted = min(max_num, self.max_msgs_num_batch)
        asked = self.key_asked(topic, key, index_type)
        found: tuple[int, ...] = ()
        for file in self.files_asked():
            if file.is_time_matched(begin, end):
                try:
                    found = file.select_phy_offset(found, asked, wanted, begin, end)
                except Refused as error:
                    if error.kind is not ErrorKind.ARITHMETIC:
                        raise
                    break  # without slots there is no more to find
            if file.begin_timestamp < begin or len(found) >= wanted:
                break
        if not self.index_files:
            return QueryOffsetResult(found, 0, 0)
        last = self.index_files[-1]
        return QueryOffsetResult(found, last.end_timestamp, last.end_phy_offset)

    def check_wanted(self, max_num: int, index_type: str | None) -> None:
        """Refuse a negative number of offsets (RMQSVC-20)."""
        if max_num < 0:
            refuse(ErrorKind.INVALID_ARGUMENT)

    def key_asked(self, topic: str | None, key: str | None, index_type: str | None) -> str:
        """Return the composed key that is looked for."""
        return build_key(topic, build_key(TAG_TYPE, key) if index_type == TAG_TYPE else key)

    def files_asked(self) -> list[IndexFile]:
        """Return the files that a query looks at, newest first (RMQSVC-19)."""
        return list(reversed(self.index_files))

    # --- the end -------------------------------------------------------------------------------

    def delete_expired_file(self, offset: int) -> None:
        """Delete the oldest files that end before `offset`, never the last (RMQSVC-21, -22)."""
        self.check_open()
        for file in self.index_files[:-1]:
            if file.end_phy_offset >= offset or not file.destroy(DESTROY_INTERVAL_MS):
                break
            self.index_files = self.index_files[1:]

    def destroy(self) -> None:
        """Delete every listed file, and list none (RMQSVC-23)."""
        for file in self.index_files:
            file.destroy(DESTROY_INTERVAL_MS)
        self.index_files = ()

    def shutdown(self) -> None:
        """Shut every file down, and list none (RMQSVC-23)."""
        for file in self.index_files:
            refusal(file.shutdown)
        self.index_files = ()

    def close(self) -> None:
        """Shut the service and the checkpoint down."""
        self.shutdown()
        self.store_checkpoint.shutdown()
