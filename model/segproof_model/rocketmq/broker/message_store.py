# SPDX-License-Identifier: Apache-2.0
"""A store as far as its key index goes: loading, feeding the index from the log, finding messages.

Upstream: RocketMQ 5.5.1, DefaultMessageStore, CommitLog.recoverNormally and recoverAbnormally.
    Otherwise: message_store_releases, message_store_deviations.
Laws: RMQSVC-2, RMQSVC-4, RMQCKPT-5, RMQLOG-5, RMQLOG-7.
Not covered: writing messages and queues; cutting the log and the queues; running flags; the marker
    of a running store is read and never written.
"""

from typing import ClassVar, NamedTuple

from segproof_model.language.files import Files, path_in
from segproof_model.language.integers import INT64_MIN
from segproof_model.language.states import State
from segproof_model.rocketmq.broker.index_service import MAX_MSGS_NUM_BATCH, IndexService
from segproof_model.rocketmq.broker.store_checkpoint import StoreCheckpoint
from segproof_model.rocketmq.format.commit_log import MAPPED_FILE_SIZE, CommitLog
from segproof_model.rocketmq.format.consume_queue import CONSUME_QUEUE, UNIT_SIZE, ConsumeQueue
from segproof_model.rocketmq.format.message import DispatchRequest, Message

ABORT = "abort"
"""The file that is there while a store runs, or when it was not shut down."""


class MessageStoreConfig(NamedTuple):
    """Options of a broker, by their names."""

    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    mapped_file_size_commit_log: int = MAPPED_FILE_SIZE
    message_index_enable: bool = True
    message_index_safe: bool = False
    """Whether a recovery begins where the index files are known to be durable."""
    max_msgs_num_batch: int = MAX_MSGS_NUM_BATCH


DEFAULTS = MessageStoreConfig()


class QueryMessageResult(NamedTuple):
    """What a query by key found."""

    messages: tuple[Message, ...]
    """In the order of the log; those of another key of the same hash are among them."""
    index_last_update_timestamp: int
    """Of the index where it found something; else 0."""
    index_last_update_phyoffset: int


class MessageStore(State):
    """A store; its index lists nothing until `load`.

    >>> store = MessageStore(Files(), "store", MessageStoreConfig(4, 6, 1000))
    >>> store.load_and_recover(), store.query_message("T", "k", 32, 0, 1000)
    (True, QueryMessageResult(messages=(), index_last_update_timestamp=0, \
index_last_update_phyoffset=0))
    """

    recovered_files: ClassVar[int | None] = 10
    """A recovery goes back over so many files of the log at most."""

    def __init__(
        self, files: Files, store_path: str, config: MessageStoreConfig = DEFAULTS
    ) -> None:
        """Open the log and the index service."""
        self.files, self.store_path, self.config = files, store_path, config
        size = config.mapped_file_size_commit_log
        self.commit_log = self.kind(CommitLog)(files, store_path, size)
        self.index_service = self.kind(IndexService)(
            files,
            store_path,
            config.max_hash_slot_num,
            config.max_index_num,
            config.max_msgs_num_batch,
        )

    @property
    def store_checkpoint(self) -> StoreCheckpoint:
        """The checkpoint, which the index service holds."""
        return self.index_service.store_checkpoint

    @property
    def last_exit_ok(self) -> bool:
        """Whether the store was shut down cleanly (RMQCKPT-5)."""
        return path_in(self.store_path, ABORT) not in self.files

    @property
    def is_index_safe(self) -> bool:
        """Whether a recovery asks up to where the index is durable."""
        return self.config.message_index_enable and self.config.message_index_safe

    # --- loading -------------------------------------------------------------------------------

    def load_and_recover(self) -> bool:
        """Load and recover; return what loading answers.

        It recovers also where only the index could not be loaded (RMQSVC-2).
        """
        loaded = self.load()
        if self.log_is_whole:
            self.recover()
        return loaded

    def load(self) -> bool:
        """List the index files; return whether these and the log could be taken (RMQSVC-2)."""
        return self.log_is_whole and self.index_service.load(self.last_exit_ok)

    @property
    def log_is_whole(self) -> bool:
        """Whether each file of the log has the configured length (RMQLOG-3)."""
        size = self.commit_log.mapped_file_size
        return all(len(self.commit_log.image(start)) == size for start in self.log_starts())

    def log_starts(self) -> list[int]:
        """Return where the files of the log begin, without an empty last one."""
        starts = self.commit_log.starts()
        return starts[:-1] if starts and not self.commit_log.image(starts[-1]) else starts

    # --- recovering ----------------------------------------------------------------------------

    def recover(self) -> None:
        """Pass the messages to the index that it may lack (RMQLOG-5)."""
        if self.last_exit_ok:
            self.recover_normally()
        else:
            self.recover_abnormally()

    def recover_normally(self) -> None:
        """Dispatch the messages behind the one that begins where the consume queues end."""
        reached = self.max_physic_offset()
        self.dispatch_from(self.start_of_recovery(reached), reached + 1)

    def recover_abnormally(self) -> None:
        """Dispatch all messages from the newest file that surely begins before the durable end."""
        self.dispatch_from(self.start_of_recovery())

    def max_physic_offset(self) -> int:
        """Return the largest offset of the log that a queue has reached; -1 without a message."""
        prefix = path_in(self.store_path, CONSUME_QUEUE) + "/"
        first_files: dict[str, str] = {}
        for name in self.files:
            if name.startswith(prefix) and name.count("/", len(prefix)) == 2:
                first_files.setdefault(name.rpartition("/")[0], name)
        furthest = -1
        for folder, first in first_files.items():
            size = len(self.files.image(first)) // UNIT_SIZE * UNIT_SIZE
            queue = self.kind(ConsumeQueue)(self.files, folder, max(size, UNIT_SIZE))
            furthest = max(furthest, queue.max_physic_offset)
        return furthest

    def start_of_recovery(self, reached: int | None = None) -> int:
        """Return where the file begins that a recovery begins with, the first one at the latest.

        `reached` is where the queues end after a clean exit.
        """
        looked_at = self.files_looked_at(reached)
        matched = (start for start in looked_at if self.is_matched(start, reached))
        return next(matched, looked_at[-1] if looked_at else 0)

    def files_looked_at(self, reached: int | None) -> list[int]:
        """Return where the files begin that a recovery may begin with, newest first."""
        return self.log_starts()[::-1][: self.recovered_files]

    def is_matched(self, start: int, reached: int | None) -> bool:
        """Return whether index and queues have all before a file, by its first message."""
        message = self.commit_log.check(start).message
        if message is None or message.store_timestamp == 0:
            return False
        return self.index_has(message) and self.queues_have(message, reached)

    def index_has(self, message: Message) -> bool:
        """Return whether the index is durable up to a message, if that is asked."""
        durable = self.store_checkpoint.index_msg_timestamp
        return not self.is_index_safe or message.store_timestamp <= durable

    def queues_have(self, message: Message, reached: int | None) -> bool:
        """Return whether the queues have a message; after a kill the checkpoint says so."""
        checkpoint = self.store_checkpoint
        if reached is not None:
            return message.physical_offset <= reached
        if checkpoint.logics_physical_offset > 0:
            return message.physical_offset <= checkpoint.logics_physical_offset
        return message.store_timestamp <= checkpoint.logics_msg_timestamp

    def dispatch_from(self, start: int, least: int = INT64_MIN) -> None:
        """Pass the messages of the log from an offset on to the index, up to the first damage.

        A message that says that it lies before `least` is passed over.
        """
        for _, result in self.commit_log.scan(start):
            if result.message is None:
                return
            request = result.message.dispatch_request()
            if request.commit_log_offset >= least:
                self.do_dispatch(request)

    def do_dispatch(self, request: DispatchRequest) -> None:
        """Pass a message to the index, if the store has an index (RMQLOG-5)."""
        if self.config.message_index_enable:
            self.index_service.build_index(request)

    # --- queries -------------------------------------------------------------------------------

    def query_message(
        self, topic: str | None, key: str | None, max_num: int, begin: int, end: int
    ) -> QueryMessageResult:
        """Return the messages with a key and a store time from `begin` to `end`, both inclusive.

        Offsets at which the log has no record are passed over. Where none is left, and offset 0 is
        among them, upstream takes the first message of the log for that at 0 and asks up to its
        time, which may lie behind `end`; three times in all.
        """
        known: tuple[Message, ...] = ()
        update = (0, 0)
        for _ in range(3):
            asked = self.index_service.query_offset(topic, key, max_num, begin, end)
            if not asked.phy_offsets:
                break
            messages = map(self.commit_log.look_message, sorted(asked.phy_offsets))
            known, update = tuple(one for one in messages if one is not None), asked[1:]
            first = self.commit_log.look_message(self.commit_log.min_offset)
            if known or min(asked.phy_offsets) != 0 or first is None:
                break
            end = first.store_timestamp
        return QueryMessageResult(known, *update)


def rebuild_index(
    files: Files,
    commit_log: CommitLog,
    store_path: str = "",
    hash_slot_num: int = 5_000_000,
    index_num: int = 20_000_000,
) -> IndexService:
    """Return a service over other files that was told of every message of the log (RMQLOG-7).

    Each index file gets a later time as its name than the one before.
    """
    service = commit_log.kind(IndexService)(files, store_path, hash_slot_num, index_num)
    begun_ms = files.now_ms
    for _, result in commit_log.scan():
        if result.message is not None:
            files.now_ms = begun_ms + len(service.index_files)
            service.build_index(result.message.dispatch_request())
    return service
