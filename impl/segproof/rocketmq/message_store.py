# SPDX-License-Identifier: Apache-2.0
"""A store as far as its key index goes: loading, feeding the index from the log, finding messages.

Upstream: RocketMQ 5.5.1: DefaultMessageStore, CommitLog.recoverNormally, recoverAbnormally.
Laws: RMQSVC-4, RMQCKPT-5, RMQLOG-5.
Not covered: writing messages and consume queues; cutting the log; the marker of a running store is
  read and never written.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, NamedTuple, Self

from segproof.closing import Closing
from segproof.files import REAL_FILES, Files
from segproof.integers import INT64_MIN, now_ms
from segproof.rocketmq.commit_log import MAPPED_FILE_BYTES, CommitLog, LogFile
from segproof.rocketmq.consume_queue import max_physic_offset
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import DispatchRequest, Message, dispatch_request_of
from segproof.rocketmq.store_checkpoint import StoreCheckpoint, StoredCheckpoint

ABORT: Final = "abort"
"""The file that is there while a store runs, or when it was not shut down."""
QUERY_ROUNDS: Final = 3
RECOVERED_FILES: Final = 10
"""A recovery that does not ask the index goes back over so many files of the log at most."""


@dataclass(frozen=True, slots=True)
class MessageStoreConfig:
    """Options of a broker, by their names."""

    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    mapped_file_size_commit_log: int = MAPPED_FILE_BYTES
    message_index_enable: bool = True
    message_index_safe: bool = False
    """Whether a recovery begins where the index ends, and not only where the queues do."""
    max_msgs_num_batch: int = 64
    default_query_max_num: int = 32
    """What a broker takes as the number of messages for a query by unique key."""


class QueryMessageResult(NamedTuple):
    """What a query by key found."""

    messages: tuple[Message, ...]
    """In the order of the log; messages with another key of the same hash are among them."""
    index_last_update_timestamp: int
    """Of the index where it found something; else 0."""
    index_last_update_phyoffset: int


class MessageStore(Closing):
    """The commit log, the checkpoint and the index of one store.

    Made by `open`, for reading, or for writing its index where that was asked for: `recover` and
    `do_dispatch` write.
    """

    def __init__(
        self,
        store_path: str,
        config: MessageStoreConfig,
        commit_log: CommitLog,
        index_service: IndexService,
        files: Files,
    ) -> None:
        self.store_path = store_path
        self.config = config
        self.commit_log = commit_log
        self.index_service = index_service
        self._files = files

    @classmethod
    def open(
        cls,
        store_path: str | os.PathLike[str],
        config: MessageStoreConfig | None = None,
        *,
        writable: bool = False,
        create: bool = False,
        index_tags: bool = True,
        files: Files = REAL_FILES,
        time: Callable[[], int] = now_ms,
        zone: tzinfo | None = None,
    ) -> Self:
        """Open a store for reading; its index lists nothing until `load`.

        With `writable=True` its index may be changed. With `create=True` it is writable, and a
        missing store is made.
        Raises: InvalidArgumentError for a size of log files outside 1..2^31-1; OSError.
        """
        store = os.fspath(store_path)
        options = MessageStoreConfig() if config is None else config
        log = CommitLog.open(store, options.mapped_file_size_commit_log, files=files)
        service = IndexService.open(
            store,
            options.max_hash_slot_num,
            options.max_index_num,
            writable=writable,
            create=create,
            index_tags=index_tags,
            files=files,
            time=time,
            zone=zone,
        )
        service.max_msgs_num_batch = options.max_msgs_num_batch
        return cls(store, options, log, service, files)

    def __repr__(self) -> str:
        return f"MessageStore({self.store_path!r}, {self.commit_log!r}, {self.index_service!r})"

    def close(self) -> None:
        """Shut down the index and the checkpoint."""
        self.index_service.close()

    @property
    def store_checkpoint(self) -> StoreCheckpoint:
        """The checkpoint, which the index service holds."""
        return self.index_service.store_checkpoint

    @property
    def last_exit_ok(self) -> bool:
        """Whether the store was shut down cleanly. Laws: RMQCKPT-5."""
        return self._files.status(os.path.join(self.store_path, ABORT)) is None

    def load(self) -> bool:
        """List the index files; return whether these and all files of the log could be taken.

        Every file of the log has the configured length; only an empty last one is passed over.
        Raises: as `IndexService.load`.
        """
        log_files = self.commit_log.log_files
        if log_files and self._length_of(log_files[-1]) == 0:
            log_files = log_files[:-1]
        size = self.commit_log.mapped_file_size
        if any(self._length_of(log_file) != size for log_file in log_files):
            return False
        return self.index_service.load(self.last_exit_ok)

    def _length_of(self, log_file: LogFile) -> int:
        status = self._files.status(log_file.path)
        return -1 if status is None else status.size_bytes

    # --- feeding the index

    def do_dispatch(self, request: DispatchRequest) -> None:
        """Tell the index of a message, if there is one. It may be told again after an error.

        Raises: as `IndexService.build_index`.
        """
        if self.config.message_index_enable:
            self.index_service.build_index(request)

    def recover(self) -> None:
        """Tell the index of the messages that it may lack.

        After a clean exit these are the ones behind what the consume queues have reached, else all
        from the newest file on that surely begins before what is durable. It goes back over ten
        files at most, but over all where it has to begin at the end of the index: after an exit
        that was not clean, with `message_index_safe`, or if the index is shortened.
        Laws: RMQLOG-5. Raises: as `do_dispatch`, and as `CommitLog.scan`; ReadOnlyError.
        """
        self.index_service.check_writable()
        is_clean = self.last_exit_ok
        reached = max_physic_offset(self.store_path, self._files) if is_clean else -1
        start = first_recovered_file(
            self.commit_log, self.store_checkpoint.values, is_clean, reached, self._index_end()
        )
        if start is None:
            return
        for _, result in self.commit_log.scan(start.start):
            if result.message is None:
                return
            request = dispatch_request_of(result.message)
            if request.commit_log_offset >= reached or not is_clean:
                self.do_dispatch(request)

    def _index_end(self) -> int | None:
        """Return the offset up to which the index has all, if a recovery has to ask."""
        is_asked = self.config.message_index_safe or self.index_service.is_shortened
        if not (self.config.message_index_enable and is_asked):
            return None
        index_files = self.index_service.index_files
        return index_files[-1].end_phy_offset if index_files else INT64_MIN - 1  # before all

    # --- finding messages

    def query_message(
        self, topic: str | None, key: str | None, max_num: int, begin: int, end: int
    ) -> QueryMessageResult:
        """Return the messages with a key and a store time from `begin` to `end`, both inclusive.

        Offsets at which the log has no record are passed over. Where none is left, and offset 0 is
        among them, the first message of the log is taken for that at 0, as upstream does: the next
        of three rounds asks up to its time, which may lie behind `end`.
        Raises: as `IndexService.query_offset`, and as `CommitLog.scan`.
        """
        found: tuple[Message, ...] = ()
        update = (0, 0)
        for _ in range(QUERY_ROUNDS):
            answer = self.index_service.query_offset(topic, key, max_num, begin, end)
            if not answer.phy_offsets:
                break
            messages = [self.commit_log.look_message(one) for one in sorted(answer.phy_offsets)]
            found, update = tuple(one for one in messages if one is not None), answer[1:]
            if found or min(answer.phy_offsets) != 0:
                break
            first = self.commit_log.look_message(self.commit_log.min_offset)
            if first is None:
                break
            end = first.store_timestamp
        return QueryMessageResult(found, *update)


def first_recovered_file(
    log: CommitLog,
    checkpoint: StoredCheckpoint,
    is_clean: bool,
    reached: int,
    index_end: int | None = None,
) -> LogFile | None:
    """Return the newest file that a recovery may begin with.

    `reached` is where in the log the queues end together. `index_end` is the offset of the last
    message in the index, after which the recovery does not begin. It goes back ten files at most,
    but over all for `index_end` after an exit that was not clean. None without files. Raises: as
    `CommitLog.scan`.
    """
    log_files = log.log_files
    if log_files and log_files[-1].size_bytes == 0:
        log_files = log_files[:-1]

    def is_before(log_file: LogFile) -> bool:
        message = log.check(log_file.start).message
        if message is None or message.store_timestamp == 0:
            return False
        if index_end is not None and message.physical_offset > index_end:
            return False
        if is_clean:
            return message.physical_offset <= reached
        if checkpoint.logics_physical_offset > 0:
            return message.physical_offset <= checkpoint.logics_physical_offset
        return message.store_timestamp <= checkpoint.logics_msg_timestamp

    is_far = index_end is not None and not is_clean
    most = len(log_files) if is_far else RECOVERED_FILES
    for back, log_file in enumerate(reversed(log_files), 1):
        if log_file is log_files[0] or back == most or is_before(log_file):
            return log_file
    return None
