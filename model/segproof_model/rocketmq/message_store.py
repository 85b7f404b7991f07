# SPDX-License-Identifier: Apache-2.0
"""A store as far as its key index goes: loading, feeding the index from the log, finding messages.

Mirrors: impl/segproof/rocketmq/message_store.py, rebuilding/rocketmq_index.py.
Upstream: RocketMQ DefaultMessageStore, CommitLog.recoverNormally and recoverAbnormally (4.7.0 to
    5.5.1).
Laws: RMQSVC-2, RMQSVC-4, RMQCKPT-5, RMQLOG-5, RMQLOG-7.
Not covered: writing messages and queues; cutting the log and the queues; running flags; the marker
    of a running store is read and never written; in 4.3.2 a file of the log that is not empty and
    has another length, which it passes over with all behind it.
Used by: the harness.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.language.outcomes import Raised, Step
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.commit_log import (
    COMMIT_LOG,
    MAPPED_FILE_SIZE,
    CommitLog,
    LogFile,
    log_file_name,
    path_in,
)
from segproof_model.rocketmq.consume_queue import CONSUME_QUEUE, UNIT_SIZE, ConsumeQueue
from segproof_model.rocketmq.index_service import MAX_MSGS_NUM_BATCH, IndexService
from segproof_model.rocketmq.message import (
    MAGIC_V1,
    MAGIC_V2,
    DispatchRequest,
    Message,
    dispatch_request_of,
)
from segproof_model.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_model.values import replace

ABORT = "abort"
"""The file that is there while a store runs, or when it was not shut down."""
QUERY_ROUNDS = 3
RECOVERED_FILES = 10
"""Where each part is asked, a recovery goes back over so many files of the log at most."""


@dataclass(frozen=True, slots=True)
class MessageStoreConfig:
    """Options of a broker, by their names."""

    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    mapped_file_size_commit_log: int = MAPPED_FILE_SIZE
    message_index_enable: bool = True
    message_index_safe: bool = False
    """Whether a recovery begins where the index files are known to be durable."""
    max_msgs_num_batch: int = MAX_MSGS_NUM_BATCH
    default_query_max_num: int = 32


class QueryMessageResult(NamedTuple):
    """What a query by key found."""

    messages: tuple[Message, ...]
    """In the order of the log; those of another key of the same hash are among them."""
    index_last_update_timestamp: int
    """Of the index where it found something; else 0."""
    index_last_update_phyoffset: int


@dataclass(frozen=True, slots=True)
class MessageStore:
    """The state of a store."""

    profile: Profile
    store_path: str
    config: MessageStoreConfig
    commit_log: CommitLog
    index_service: IndexService

    @classmethod
    def open(
        cls,
        store_path: str,
        config: MessageStoreConfig | None = None,
        *,
        directory: Directory = Directory(),
        profile: Profile = ROCKETMQ_5_5_1,
        now_ms: int = 0,
    ) -> "Step[MessageStore] | Step[Directory]":
        """Open a store; its index lists nothing until `load`."""
        options = MessageStoreConfig() if config is None else config
        size = options.mapped_file_size_commit_log
        log = CommitLog.open(store_path, size, directory=directory, profile=profile)
        if not isinstance(log.after, CommitLog):
            return Step(log.after, log.outcome)
        service = IndexService.open(
            store_path,
            options.max_hash_slot_num,
            options.max_index_num,
            directory=directory,
            profile=profile,
            now_ms=now_ms,
        ).after
        service = replace(service, max_msgs_num_batch=options.max_msgs_num_batch)
        return Step(cls(profile, store_path, options, log.after, service))

    @property
    def directory(self) -> Directory:
        """The directory of all files."""
        return self.index_service.directory

    @property
    def store_checkpoint(self) -> StoreCheckpoint:
        """The checkpoint, which the index service holds."""
        return self.index_service.store_checkpoint

    @property
    def last_exit_ok(self) -> bool:
        """Whether the store was shut down cleanly (RMQCKPT-5)."""
        return path_in(self.store_path, ABORT) not in self.directory

    def load(self) -> Step[Self]:
        """List the index files; the outcome is whether these and the log could be taken.

        Every file of the log has the configured length; newer releases pass over an empty last
        one. Releases up to 5.0.0 don't look at what loading the index answers (RMQSVC-2).
        """
        if not self.log_is_whole:
            return Step(self, False)
        loaded = self.index_service.load(self.last_exit_ok)
        if isinstance(loaded.outcome, Raised):
            outcome: object = loaded.outcome
        else:
            outcome = loaded.outcome is True or not self.profile.rmq_load_result_used
        return Step(replace(self, index_service=loaded.after), outcome)

    def load_and_recover(self) -> Step[Self]:
        """Load and recover; the outcome is that of loading.

        Releases recover also where only the index could not be loaded (RMQSVC-2).
        """
        loaded = self.load()
        if loaded.outcome is True or (
            loaded.outcome is False and self.log_is_whole and self.profile.rmq_recovers_unloaded
        ):
            recovered = loaded.after.recover()
            failed = isinstance(recovered.outcome, Raised)
            return recovered if failed else Step(recovered.after, loaded.outcome)
        return loaded

    @property
    def log_is_whole(self) -> bool:
        """Whether every file of the log has its length, or is an empty last one (RMQLOG-3)."""
        lengths = [self._length_of(file) for file in self.commit_log.files]
        if lengths and lengths[-1] == 0 and self.profile.rmq_empty_log_file_passed:
            lengths.pop()
        return all(length == self.commit_log.mapped_file_size for length in lengths)

    def _length_of(self, file: LogFile) -> int:
        path = path_in(self.store_path, COMMIT_LOG, log_file_name(file.start))
        return len(self.directory.read(path) or b"")

    def do_dispatch(self, request: DispatchRequest) -> Step[Self]:
        """Tell the index of a message, if there is one (RMQLOG-5)."""
        if not self.config.message_index_enable:
            return Step(self)
        built = self.index_service.build_index(request)
        return Step(replace(self, index_service=built.after), built.outcome)

    def recover(self) -> Step[Self]:
        """Tell the index of the messages that it may lack (RMQLOG-5).

        After a clean exit these are the ones behind what the consume queues have reached, else all
        from the newest file on that surely begins before what is durable.
        """
        is_clean = self.last_exit_ok
        reached = max_physic_offset(self.store_path, self.directory, self.profile)
        dispatches = self.profile.rmq_normal_recovery_dispatches
        least = reached + self.profile.rmq_recovery_passes_first if is_clean else -(2**63)
        if is_clean and not dispatches and not self.profile.rmq_reads_on_from_queues:
            return Step(self)
        if is_clean and not dispatches:
            start, least = max(reached, self.commit_log.min_offset), -(2**63)
        else:
            start = self._start_of(is_clean, reached)
        store = self
        for _, result in self.commit_log.scan(start):
            if result.message is None:
                break
            request = dispatch_request_of(result.message, profile=self.profile)
            if request.commit_log_offset >= least:
                step = store.do_dispatch(request)
                if isinstance(step.outcome, Raised):
                    return step
                store = step.after
        return Step(store)

    def _start_of(self, is_clean: bool, reached: int) -> int:
        """Return where the file begins that a recovery begins with, the first one at the latest."""
        files = self.commit_log.files
        if files and self.profile.rmq_empty_log_file_passed and not files[-1].data:
            files = files[:-1]
        if not files:
            return 0
        at_most = RECOVERED_FILES if self.profile.rmq_recovery_asks_each else len(files)
        looked_at = list(reversed(files))[:at_most]
        found = (file for file in looked_at if self._is_before(file, is_clean, reached))
        return next(found, looked_at[-1]).start

    def _is_before(self, file: LogFile, is_clean: bool, reached: int) -> bool:
        """Return whether a file begins before what is durable."""
        if self.profile.rmq_recovery_asks_each:
            return self._is_before_each(file, is_clean, reached)
        if is_clean:
            return file.start <= reached
        head = file.data[:8].ljust(8, b"\0")
        magics = (MAGIC_V1, MAGIC_V2) if self.profile.rmq_magic_v2 else (MAGIC_V1,)
        time = self.commit_log.pickup_store_timestamp(file.start, 76)
        if int.from_bytes(head[4:], "big", signed=True) not in magics or time == 0:
            return False
        return time <= self._least_time()

    def _least_time(self) -> int:
        """Return up to when all is durable that a recovery is to care for."""
        checkpoint = self.store_checkpoint
        safe = self.config.message_index_enable and self.config.message_index_safe
        return checkpoint.min_timestamp_index if safe else checkpoint.min_timestamp

    def _is_before_each(self, file: LogFile, is_clean: bool, reached: int) -> bool:
        message = self.commit_log.check(file.start).message
        if message is None or message.store_timestamp == 0:
            return False
        checkpoint = self.store_checkpoint
        safe = self.config.message_index_enable and self.config.message_index_safe
        if safe and message.store_timestamp > checkpoint.index_msg_timestamp:
            return False
        if is_clean:
            return message.physical_offset <= reached
        if not self.profile.rmq_recovery_trusts_queues:
            return message.store_timestamp <= self._least_time()
        if checkpoint.logics_physical_offset > 0:
            return message.physical_offset <= checkpoint.logics_physical_offset
        return message.store_timestamp <= checkpoint.logics_msg_timestamp

    def query_message(
        self, topic: str | None, key: str | None, max_num: int, begin: int, end: int
    ) -> Step[Self]:
        """Return the messages with a key and a store time from `begin` to `end`, both inclusive.

        Where the newest ones are no longer in the log, older ones are looked for, twice. Offsets at
        which the log has no record are passed over.
        """
        store = self
        update = (0, 0)
        last = end
        found: list[Message] = []
        for _ in range(QUERY_ROUNDS):
            asked = store.index_service.query_offset(topic, key, max_num, begin, last)
            store = replace(store, index_service=asked.after)
            if not isinstance(asked.outcome, tuple):
                return Step(store, asked.outcome)
            offsets, *rest = asked.outcome
            if not offsets:
                break
            update = (rest[0], rest[1])
            looked_up = [self.commit_log.look_message(offset) for offset in sorted(offsets)]
            if looked_up[0] is not None:
                last = looked_up[0].store_timestamp
            found = [message for message in looked_up if message is not None]
            if found or last < begin:
                break
        return Step(store, QueryMessageResult(tuple(found), *update))


def max_physic_offset(
    store_path: str, directory: Directory, profile: Profile = ROCKETMQ_5_5_1
) -> int:
    """Return where in the log the queues of a store end together; -1 without a message."""
    prefix = path_in(store_path, CONSUME_QUEUE) + "/"
    names = [name[len(prefix) :].split("/") for name in directory if name.startswith(prefix)]
    furthest = -1
    for topic, queue_id in {(parts[0], parts[1]) for parts in names if len(parts) == 3}:
        first = min(name for name in directory if name.startswith(f"{prefix}{topic}/{queue_id}/"))
        length = len(directory.read(first) or b"")
        size = max(UNIT_SIZE, length - length % UNIT_SIZE)
        folder = f"{prefix}{topic}/{queue_id}"
        queue = ConsumeQueue.read(folder, size, directory=directory, profile=profile)
        furthest = max(furthest, queue.max_physic_offset)
    return furthest


def rebuild_index(
    store_path: str,
    hash_slot_num: int = 5_000_000,
    index_num: int = 20_000_000,
    *,
    directory: Directory = Directory(),
    profile: Profile = ROCKETMQ_5_5_1,
    now_ms: int = 0,
) -> Step[IndexService]:
    """Return an empty service that was told of every message of the log (RMQLOG-7).

    Each file gets a later time as its name than the one before.
    """
    service = IndexService.open(
        store_path, hash_slot_num, index_num, profile=profile, now_ms=now_ms
    ).after
    log = CommitLog.open(store_path, directory=directory, profile=profile).after
    assert isinstance(log, CommitLog)
    for _, result in log.scan():
        if result.message is not None:
            service = replace(service, now_ms=now_ms + len(service.files))
            step = service.build_index(dispatch_request_of(result.message, profile=profile))
            if isinstance(step.outcome, Raised):
                return step
            service = step.after
    return Step(service)
