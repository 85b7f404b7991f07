# SPDX-License-Identifier: Apache-2.0
"""The message-key index of a store: its files in order, and what is asked of all of them.

Mirrors: impl/segproof/rocketmq/index_service.py.
Upstream: RocketMQ IndexService (4.7.0 to 5.5.1).
Layout: `<store>/index/<17 digits>`, the time of creation; `<store>/checkpoint`.
Laws: RMQSVC-1 to RMQSVC-25.
Not covered: threads: a full file is flushed before the next call, not beside it; a time zone other
    than UTC; a file deleted while another object has it mapped too.
Used by: message_store, the harness.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self, TypeVar

from segproof_model.directory import Directory
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.commit_log import path_in
from segproof_model.rocketmq.index_file import IndexFile
from segproof_model.rocketmq.key_hash import build_key
from segproof_model.rocketmq.message import DispatchRequest
from segproof_model.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_model.values import replace

INDEX = "index"
CHECKPOINT = "checkpoint"
MAX_MSGS_NUM_BATCH = 64
"""So many offsets at most are found by one query."""
DESTROY_INTERVAL_MS = 3000
TRANSACTION_BITS = ROLLBACK = 12
COMMIT = 8
TAGS = "TAGS"
TAG_TYPE = "T"
CORRUPT = Raised(ErrorKind.CORRUPT_INDEX)
CLOSED = Raised(ErrorKind.UNMAPPED)
IO_ERROR = Raised(ErrorKind.IO_ERROR)
NUMBER_FORMAT = Raised(ErrorKind.NUMBER_FORMAT)
ENDLESS = Raised(ErrorKind.ENDLESS)
Value = TypeVar("Value")


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


def keys_of(request: DispatchRequest, profile: Profile) -> list[str]:
    """Return the composed keys of a message, in the order of their entries (RMQSVC-14)."""
    has_own = request.uniq_key is not None and profile.rmq_unique_key_indexed
    own = [request.uniq_key] if has_own else []
    tags = dict(request.properties_map or ()).get(TAGS)
    if tags and profile.rmq_tags_indexed:
        tagged = [build_key(request.topic, build_key(TAG_TYPE, tags))]
    else:
        tagged = []
    return [build_key(request.topic, key) for key in own + tokens_of(request.keys)] + tagged


@dataclass(frozen=True, slots=True)
class IndexService:
    """The state of the service; it lists no file until `load`.

    >>> service = IndexService.open("", 4, 6, now_ms=1795223767450).after
    >>> asked = DispatchRequest("T", 0, 100, 0, 1795223767000, 0, "k", None, 0, 0, None)
    >>> service = service.build_index(asked).after
    >>> service.query_offset("T", "k", 64, 0, 2**63 - 1).outcome
    QueryOffsetResult(phy_offsets=(0,), index_last_update_timestamp=1795223767000, \
index_last_update_phyoffset=0)
    """

    profile: Profile
    store_path: str
    hash_slot_num: int
    index_num: int
    directory: Directory
    checkpoint: StoreCheckpoint
    """Its directory is not kept; ask `store_checkpoint`."""
    files: tuple[IndexFile, ...] = ()
    """Their directories are not kept; ask `index_files`."""
    now_ms: int = 0
    """What a clock says; it names new files."""
    max_msgs_num_batch: int = MAX_MSGS_NUM_BATCH
    """So many offsets at most are found by one query."""

    @classmethod
    def open(
        cls,
        store_path: str,
        hash_slot_num: int = 5_000_000,
        index_num: int = 20_000_000,
        *,
        directory: Directory = Directory(),
        profile: Profile = ROCKETMQ_5_5_1,
        now_ms: int = 0,
    ) -> "Step[IndexService]":
        """Open the service, and the store's checkpoint, which is made if it is missing."""
        opened = StoreCheckpoint.open(
            path_in(store_path, CHECKPOINT), directory=directory, profile=profile
        ).after
        bare = replace(opened, directory=Directory())
        return Step(
            cls(
                profile,
                store_path,
                hash_slot_num,
                index_num,
                opened.directory,
                bare,
                now_ms=now_ms,
            )
        )

    @property
    def index_files(self) -> tuple[IndexFile, ...]:
        """The listed files, oldest first."""
        return tuple(self._seen(file) for file in self.files)

    @property
    def store_checkpoint(self) -> StoreCheckpoint:
        """The checkpoint of the store."""
        return replace(self.checkpoint, directory=self.directory)

    @property
    def total_size(self) -> int:
        """The size of the first file times the number of files (RMQSVC-24)."""
        return self.files[0].file_size * len(self.files) if self.files else 0

    @property
    def is_closed(self) -> bool:
        """Whether it was closed for good, which upstream knows nothing of; then all is refused."""
        return not self.checkpoint.is_mapped

    def _seen(self, file: IndexFile) -> IndexFile:
        """Return a listed file with the directory and the time of now."""
        if file.directory is self.directory and file.now_ms == self.now_ms:
            return file
        return replace(file, directory=self.directory, now_ms=self.now_ms)

    def _with(self, position: int, file: IndexFile) -> Self:
        """Return the service with another state of the file at a position of the list."""
        files = (*self.files[:position], _bare(file), *self.files[position + 1 :])
        return replace(self, directory=file.directory, files=files)

    def load(self, last_exit_ok: bool) -> Step[Self]:
        """List the files of the folder; the outcome is whether all could be (RMQSVC-1 to -5).

        After an exit that was not clean, files that the checkpoint does not cover are deleted.
        """
        if self.is_closed:
            return Step(self, CLOSED)
        service = self._emptied() if self.profile.rmq_load_replaces else self
        for path in _children(self.directory, path_in(self.store_path, INDEX)):
            step = service._loaded(path, last_exit_ok)
            service = step.after
            if step.outcome == IO_ERROR:
                return Step(service, False)
            is_skipped = step.outcome == NUMBER_FORMAT and self.profile.rmq_strange_name_skipped
            if step.outcome is not None and not is_skipped:
                return step
        return Step(service, True)

    def _loaded(self, path: str, last_exit_ok: bool) -> Step[Self]:
        """List one file, or delete it, or say why it cannot be read."""
        opened = self._opened(path, 0, 0)
        if not isinstance(opened.after, IndexFile):
            return Step(replace(self, directory=opened.after), opened.outcome)
        loaded = opened.after.load()
        service = replace(self, directory=loaded.after.directory)
        if isinstance(loaded.outcome, Raised):
            return Step(service, loaded.outcome)
        file = loaded.after
        if not last_exit_ok and file.end_timestamp > self.checkpoint.index_msg_timestamp:
            return Step(replace(service, directory=file.destroy(0).after.directory))
        return Step(replace(service, files=(*service.files, _bare(file))))

    def _opened(
        self, path: str, end_phy_offset: int, end_timestamp: int
    ) -> Step[IndexFile] | Step[Directory]:
        return IndexFile.open(
            path,
            self.hash_slot_num,
            self.index_num,
            end_phy_offset,
            end_timestamp,
            directory=self.directory,
            profile=self.profile,
            now_ms=self.now_ms,
        )

    def _new_path(self) -> str:
        """Return the path of a file that is created now (RMQSVC-7, RMQSVC-9)."""
        now_ms = self.now_ms
        path = path_in(self.store_path, INDEX, file_name_of(now_ms))
        while self.profile.rmq_names_distinct and _is_taken(self.directory, path):
            now_ms += 1
            path = path_in(self.store_path, INDEX, file_name_of(now_ms))
        return path

    def get_and_create_last_index_file(self) -> Step[Self]:
        """List a new file if the last one is full or there is none (RMQSVC-6).

        The outcome is the last file of the list. The full one is flushed.
        """
        if self.is_closed:
            return Step(self, CLOSED)
        last = len(self.files) - 1
        if self.files and not self.files[last].is_write_full():
            return Step(self, self._seen(self.files[last]))
        seeds = (
            (self.files[last].end_phy_offset, self.files[last].end_timestamp)
            if self.files
            else (0, 0)
        )
        opened = self._opened(self._new_path(), *seeds)
        if not isinstance(opened.after, IndexFile):
            service = replace(self, directory=opened.after)
            return Step(service, self._creation_error(opened.outcome))
        files = (*self.files, _bare(opened.after))
        service = replace(self, directory=opened.after.directory, files=files)
        service = service.flush(last).after
        return Step(service, service._seen(service.files[-1]))

    def _creation_error(self, found: object) -> object:
        """Return what a caller sees of a file that cannot be created (RMQSVC-8)."""
        kind = self.profile.rmq_creation_error
        return found if kind is ErrorKind.IO_ERROR else Raised(kind)

    def retry_get_and_create_index_file(self) -> Step[Self]:
        """Do the same; the trying again of upstream is never reached (RMQSVC-8)."""
        return self.get_and_create_last_index_file()

    def flush(self, position: int) -> Step[Self]:
        """Flush the file at a position of the list; another position does nothing (RMQSVC-10).

        A full one gives the checkpoint its end timestamp, if that is above 0.
        """
        if self.is_closed:
            return Step(self, CLOSED)
        if not 0 <= position < len(self.files):
            return Step(self)
        file = self._seen(self.files[position])
        timestamp = file.end_timestamp if file.is_write_full() else 0
        flushed = file.flush()
        service = self._with(position, flushed.after)
        if timestamp <= 0 or isinstance(flushed.outcome, Raised):
            return Step(service, flushed.outcome)
        set_step = service.store_checkpoint.set_index_msg_timestamp(timestamp)
        written = set_step.after.flush()
        bare = replace(written.after, directory=Directory())
        service = replace(service, directory=written.after.directory, checkpoint=bare)
        return Step(service, written.outcome)

    def build_index(self, request: DispatchRequest) -> Step[Self]:
        """Enter the keys of a message (RMQSVC-11 to RMQSVC-16)."""
        step = self.retry_get_and_create_index_file()
        if isinstance(step.outcome, Raised):
            return step
        service = step.after
        last = service.files[-1]
        if request.commit_log_offset < last.end_phy_offset:
            return Step(service)
        ignored = (ROLLBACK,) if self.profile.rmq_committed_indexed else (COMMIT, ROLLBACK)
        if request.sys_flag & TRANSACTION_BITS in ignored:
            return Step(service)
        equal = request.commit_log_offset == last.end_phy_offset
        present = service._entries_of(request.commit_log_offset) if equal else 0
        for key in keys_of(request, self.profile)[present:]:
            put = service._put(key, request.commit_log_offset, request.store_timestamp)
            service = put.after
            if isinstance(put.outcome, Raised):
                return put
        return Step(service)

    def _entries_of(self, phy_offset: int) -> int:
        """Return how many of the newest entries are those of one message (RMQSVC-12)."""
        if not self.profile.rmq_message_indexed_once:
            return 0
        entries = [entry.phy_offset for file in self.index_files for entry in file.entries_list()]
        count = 0
        while count < len(entries) and entries[-1 - count] == phy_offset:
            count += 1
        return count

    def _put(self, key: str, phy_offset: int, store_timestamp: int) -> Step[Self]:
        """Put into the last file, or into a new one after a full one (RMQSVC-25)."""
        service = self
        while True:
            last = len(service.files) - 1
            put = service._seen(service.files[last]).put_key(key, phy_offset, store_timestamp)
            service = service._with(last, put.after)
            if isinstance(put.outcome, Raised) or put.outcome:
                return Step(service, put.outcome if isinstance(put.outcome, Raised) else None)
            if not put.after.is_write_full():
                return Step(service, CORRUPT if self.profile.rmq_failing_put_raises else ENDLESS)
            if self.index_num <= 1:
                return Step(service, ENDLESS)
            rolled = service.retry_get_and_create_index_file()
            if isinstance(rolled.outcome, Raised):
                return rolled
            service = rolled.after

    def query_offset(
        self,
        topic: str | None,
        key: str | None,
        max_num: int,
        begin: int,
        end: int,
        index_type: str | None = None,
    ) -> Step[Self]:
        """Return the offsets of a key, newest first; both times are inclusive (RMQSVC-17 to -20).

        With the type `T` the key is the tags of a message.
        """
        if self.is_closed:
            return Step(self, CLOSED)
        if max_num < 0:
            return Step(self, Raised(ErrorKind.INVALID_ARGUMENT))
        if max_num == INT32_MAX and not self._is_capped_first(index_type):
            return Step(self, Raised(ErrorKind.OUT_OF_MEMORY))
        wanted = min(max_num, self.max_msgs_num_batch)
        tagged = index_type == TAG_TYPE and self.profile.rmq_tags_indexed
        asked = build_key(topic, build_key(TAG_TYPE, key) if tagged else key)
        found: tuple[int, ...] = ()
        service = self
        for position in self._positions_asked():
            file = service._seen(service.files[position])
            if file.is_time_matched(begin, end):
                step = file.select_phy_offset(found, asked, wanted, begin, end)
                service = service._with(position, step.after)
                if not isinstance(step.outcome, tuple):
                    return service._ended(found, step.outcome)
                found = step.outcome
            if file.begin_timestamp < begin or len(found) >= wanted:
                break
        return service._answer(found)

    def _is_capped_first(self, index_type: str | None) -> bool:
        """Return whether a query cuts the wanted number before it makes its list (RMQSVC-20)."""
        capped = self.profile.rmq_query_list_capped_first
        return capped == "all" or (capped == "untyped" and index_type is None)

    def _positions_asked(self) -> list[int]:
        """Return the positions of the files that a query looks at, newest first (RMQSVC-19)."""
        hides = self.profile.rmq_empty_file_hides
        return [
            position
            for position in reversed(range(len(self.files)))
            if hides or (self.files[position].index_count > 1 and self.files[position].is_available)
        ]

    def _ended(self, found: tuple[int, ...], outcome: object) -> Step[Self]:
        """Return what comes of an error inside a query: upstream what was found before it."""
        caught = (ErrorKind.ARITHMETIC, ErrorKind.NULL)
        if isinstance(outcome, Raised) and outcome.kind in caught:
            return self._answer(found)
        return Step(self, outcome)

    def _answer(self, found: tuple[int, ...]) -> Step[Self]:
        """Return the result of a query, with what the last file says of itself (RMQSVC-18)."""
        if not self.files:
            return Step(self, QueryOffsetResult(found, 0, 0))
        last = self.files[-1]
        return Step(self, QueryOffsetResult(found, last.end_timestamp, last.end_phy_offset))

    def delete_expired_file(self, offset: int) -> Step[Self]:
        """Delete the oldest files that end before `offset`, never the last (RMQSVC-21, -22)."""
        if self.is_closed:
            return Step(self, CLOSED)
        service = self
        for file in self.files[:-1]:
            if file.end_phy_offset >= offset:
                break
            destroyed = service._seen(service.files[0]).destroy(DESTROY_INTERVAL_MS)
            service = service._with(0, destroyed.after)
            if not destroyed.outcome:
                break
            service = replace(service, files=service.files[1:])
        return Step(service)

    def destroy(self) -> Step[Self]:
        """Delete every listed file, and list none (RMQSVC-23)."""
        service = self
        for position in range(len(self.files)):
            destroyed = service._seen(service.files[position]).destroy(DESTROY_INTERVAL_MS)
            service = service._with(position, destroyed.after)
        return Step(replace(service, files=()))

    def shutdown(self) -> Step[Self]:
        """Shut every file down and list none; 4.x does nothing (RMQSVC-23)."""
        return Step(self._emptied() if self.profile.rmq_shutdown_clears_list else self)

    def close(self) -> Step[Self]:
        """Shut the service and the checkpoint down."""
        service = self.shutdown().after
        closed = service.store_checkpoint.shutdown()
        bare = replace(closed.after, directory=Directory())
        ended = replace(service, directory=closed.after.directory, checkpoint=bare)
        return Step(ended, closed.outcome)

    def _emptied(self) -> Self:
        """Return the service with every file shut down and none listed."""
        service = self
        for position in range(len(self.files)):
            closed = service._seen(service.files[position]).shutdown()
            service = service._with(position, closed.after)
        return replace(service, files=())


def _bare(file: IndexFile) -> IndexFile:
    """Return a file as the list keeps it: without directory and time."""
    return replace(file, directory=Directory(), now_ms=0)


def _children(directory: Directory, folder: str) -> list[str]:
    """Return the paths in a folder as upstream sorts them: by UTF-16 units (RMQSVC-1)."""
    start = len(folder) + 1
    found = {
        folder + "/" + name[start:].partition("/")[0]
        for name in directory
        if name.startswith(folder + "/")
    }
    return sorted(found, key=lambda path: path.encode("utf-16-be", "surrogatepass"))


def _is_taken(directory: Directory, path: str) -> bool:
    return any(name == path or name.startswith(path + "/") for name in directory)
