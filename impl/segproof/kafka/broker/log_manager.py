# SPDX-License-Identifier: Apache-2.0
"""A log directory: the logs in it, and the files beside them that say from where to recover.

Upstream: Kafka, LogManager, CleanShutdownFileHandler (4.3.1).
Layout: a directory `topic-partition` for each log; the checkpoints of checkpoint_file; and
    `.kafka_cleanshutdown`, one line of JSON, which is there only after a clean shutdown.
    `.lock` is locked while the logs are open, as by a broker.
Laws: LOAD-11, LOAD-13, CKPT-1 to CKPT-6, META-1, META-2.
Unlike upstream: a checkpoint that can't be read ends loading, where upstream takes its offsets
    for 0; a directory with another name is passed by, where upstream ends; the clean mark is never
    there for logs that were not all loaded and closed by this manager.
Not covered: several log directories, deleting topics (directories ending in -delete, -future or
    -stray are left alone), the log of a controller's metadata, the high watermarks of replicas.
"""

import contextlib
import os
import re
import uuid
from collections.abc import Callable
from functools import partial
from operator import index as to_int
from types import MappingProxyType
from typing import Self

from segproof.closing import attempt_all, told_state, undone_if_it_fails
from segproof.errors import (
    IndexClosedError,
    IndexStateError,
    InvalidArgumentError,
    ReadOnlyError,
    SegproofError,
)
from segproof.files import REAL_FILES, File, SharedFiles
from segproof.integers import INT32_MAX, now_ms
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.checkpoint_file import OffsetCheckpointFile, write_atomically
from segproof.kafka.log_config import LogConfig
from segproof.kafka.partition_metadata_file import PartitionMetadataFile
from segproof.kafka.write_format import NEWEST_FORMAT, WriteFormat

TopicPartition = tuple[str, int]
"""A topic and the number of a partition."""

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN = b'{"version":0,"brokerEpoch":-1}'
"""What the newest releases write; all of them only ask whether the file is there."""
LOCK_FILE = ".lock"
PARTITION_METADATA = "partition.metadata"
METADATA_TOPIC = "__cluster_metadata"
"""Its log is kept by the quorum of controllers, by other rules; a broker's manager passes it by."""
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_DIRECTORY = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})")


class LogManager:
    """The logs of one log directory.

    Without `writable` the logs are read as they lie, without a lock, also beside a broker. With
    `writable=True` they may be changed, and are locked; with `create=True` a missing directory is
    made too. `load_logs` opens those that are there, `get_or_create_log` one of them or a new one.
    A process that ends with `shutdown` spares the next one all recovery. One thread may change it.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        config: LogConfig,
        *,
        writable: bool = False,
        create: bool = False,
        files: SharedFiles = REAL_FILES,
        time: Callable[[], int] = now_ms,
        write_format: WriteFormat = NEWEST_FORMAT,
    ) -> None:
        self.log_dir = os.fspath(log_dir)
        self.writable = writable or create
        """Whether the logs may be changed."""
        self.config = config
        self._files = files
        self._time = time
        self._write_format = write_format
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._lost: set[TopicPartition] = set()
        self._lock: File | None = None
        self._is_closed = False
        self._is_loaded = False
        if create:
            files.make_directory(self.log_dir)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        is_open = not self._is_closed
        state = told_state(f"{len(self._logs)} logs", is_open=is_open, writable=self.writable)
        return f"LogManager({self.log_dir!r}, {state})"

    @property
    def logs(self) -> MappingProxyType[TopicPartition, PartitionLog]:
        """The open logs by topic and partition; a view of the present state."""
        return MappingProxyType(self._logs)

    def load_logs(self) -> MappingProxyType[TopicPartition, PartitionLog]:
        """Open every log of the directory, and return them.

        The mark of a clean shutdown is removed before the first log is touched, so a crash while
        loading is followed by recovery (LOAD-11).

        Raises, with nothing changed: SegproofError where another process has the directory locked;
        CorruptCheckpointError and NumberFormatError for a checkpoint that can't be read. As
        `PartitionLog.open`: then the logs opened before are closed again. A second call changes
        nothing.
        """
        self._check_open()
        if self._is_loaded:
            return self.logs
        self._lock = self._locked() if self.writable else None
        try:
            self._load()
        except BaseException:
            for log in self._logs.values():
                log.close_handlers()
            self._logs = {}
            self._unlock()
            raise
        self._is_loaded = True
        return self.logs

    def _load(self) -> None:
        recovery_points = self._read(RECOVERY_POINT_FILE)
        start_offsets = self._read(LOG_START_FILE)
        found = self._found()
        mark = self._path(CLEAN_SHUTDOWN_FILE)
        is_clean = self._files.status(mark) is not None
        if is_clean and self.writable:
            self._files.remove(mark)
            self._files.sync_directory(self.log_dir)
        for partition, name in found.items():
            start = start_offsets.get(partition, 0)
            point = recovery_points.get(partition, 0)
            self._logs[partition] = self._opened(name, start, point, is_clean)
        self._lost = (recovery_points.keys() | start_offsets.keys()) - found.keys()

    def _locked(self) -> File:
        """Take the lock that a broker takes. Raises: SegproofError where another process has it."""
        path = self._path(LOCK_FILE)
        made = self._files.create_new(path)
        if made is not None:
            made.close()
        lock = self._files.lock_file(path)
        if lock is None:
            raise SegproofError(
                "another process has locked the log directory: a broker runs here",
                path=path,
                hint="stop the broker, or work on a copy of the directory",
            )
        return lock

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _read(self, name: str) -> dict[TopicPartition, int]:
        """Return the offsets of a checkpoint; none where there is no file."""
        path = self._path(name)
        if self._files.status(path) is None:
            return {}
        offsets = OffsetCheckpointFile(path, files=self._files).read()
        # Upstream takes a negative offset as it is; nothing lies there.
        return {partition: max(offset, 0) for partition, offset in offsets.items()}

    def _found(self) -> dict[TopicPartition, str]:
        """Return the names of the logs' directories; other directories and files are no logs."""
        found: dict[TopicPartition, str] = {}
        for name in self._files.list_directory(self.log_dir):
            match = _DIRECTORY.fullmatch(name)
            if match is None or int(match[2]) > INT32_MAX or not _is_topic(match[1]):
                continue
            status = self._files.status(self._path(name))
            if status is not None and status.is_directory:
                found[match[1], int(match[2])] = name
        return found

    def _opened(self, name: str, start: int, point: int, is_clean: bool) -> PartitionLog:
        return PartitionLog.open(
            self._path(name),
            self.config,
            start,
            point,
            is_clean,
            writable=self.writable,
            files=self._files,
            time=self._time,
            write_format=self._write_format,
        )

    def get_or_create_log(
        self, topic: str, partition: int, topic_id: uuid.UUID | None = None
    ) -> PartitionLog:
        """Return the log of a partition, or make one that begins with offset 0.

        One that was closed meanwhile is opened again. `topic_id` is what the cluster calls the
        topic; it goes to a `partition.metadata` that is missing, before any record does. Without
        that file a broker of a cluster with KRaft takes the log for a stray one when it starts, and
        sets it aside: give the id where a broker shall use the log.

        Raises, with nothing changed: InvalidArgumentError for a name, a number or an id that Kafka
        does not allow; SegproofError where the log is one of another topic; what
        `PartitionMetadataFile.read` raises. As `load_logs`, which it calls first; OSError.
        """
        self._check_open()
        partition = to_int(partition)
        if not _is_topic(topic) or not 0 <= partition <= INT32_MAX:
            raise InvalidArgumentError(
                "no topic or partition of Kafka is called so",
                path=self.log_dir,
                expected="1 to 249 of the characters a-z A-Z 0-9 . _ -, and 0 to 2147483647",
                actual=(topic, partition),
            )
        self.load_logs()
        file = os.path.join(self._path(f"{topic}-{partition}"), PARTITION_METADATA)
        metadata = PartitionMetadataFile(file, create=self.writable, files=self._files)
        new_id = None if topic_id is None else _id_to_write(metadata, topic_id)
        log = self._logs.get((topic, partition))
        if log is not None and not log.is_closed:
            if new_id is not None:
                metadata.write(new_id)
            return log
        return self._made_or_opened(topic, partition, metadata, new_id)

    def _made_or_opened(
        self, topic: str, partition: int, metadata: PartitionMetadataFile, new_id: uuid.UUID | None
    ) -> PartitionLog:
        """Make the log of a partition, or open one that was closed; its id goes first."""
        known = self._logs.get((topic, partition))
        name, start, point = f"{topic}-{partition}", 0, 0
        is_new = self._files.status(self._path(name)) is None
        if is_new:
            self._check_writable()
            self._forget(topic, partition)
            self._files.make_directory(self._path(name))
            self._files.sync_directory(self.log_dir)
        elif known is not None:
            start, point = known.log_start_offset, known.recovery_point
        if new_id is not None:
            metadata.write(new_id)
        log = self._logs[topic, partition] = self._opened(name, start, point, is_new)
        return log

    def _forget(self, topic: str, partition: int) -> None:
        """Take what the checkpoints say of a former log of this name out of them.

        Else a crash would let the new log begin where the former one did, and lose what is below.
        """
        known = self._logs.pop((topic, partition), None)
        if known is not None or (topic, partition) in self._lost:
            self._write_checkpoints()

    def checkpoint_log_recovery_offsets(self) -> None:
        """Write down up to which offset each log is durable.

        Raises: IndexStateError before the logs are loaded; OSError.
        """
        self._check_loaded()
        self._write(
            RECOVERY_POINT_FILE, {key: log.recovery_point for key, log in self._present().items()}
        )

    def checkpoint_log_start_offsets(self) -> None:
        """Write down where each log begins that begins inside a segment.

        Raises: as `checkpoint_log_recovery_offsets`.
        """
        self._check_loaded()
        self._write(
            LOG_START_FILE,
            {
                key: log.log_start_offset
                for key, log in self._present().items()
                if log.log_start_offset > log.log_segments.base_offsets()[0]
            },
        )

    def _write_checkpoints(self) -> None:
        self.checkpoint_log_recovery_offsets()
        self.checkpoint_log_start_offsets()
        self._lost = set()

    def _present(self) -> dict[TopicPartition, PartitionLog]:
        """Return the logs whose directories were not removed, by name."""
        return {
            key: log
            for key, log in sorted(self._logs.items())
            if not log.is_closed or self._files.status(log.dir) is not None
        }

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        OffsetCheckpointFile(self._path(name), create=True, files=self._files).write(offsets)

    def shutdown(self) -> None:
        """Make every log durable and close it, then write both checkpoints and the clean mark.

        The mark comes last, and only where all else has succeeded and no log was closed by somebody
        else, who may have left it as it was. A second call does nothing, and neither does one
        before the logs were loaded: the files of the last run count on. Logs that were opened for
        reading are only closed.
        Raises: the first error, once every log is closed.
        """
        if self._is_closed or not self._is_loaded:
            self._is_closed = True
            return
        if not self.writable:
            self._is_closed = True
            attempt_all(*(log.close for log in self._logs.values()))
            return
        is_all_ours = not any(log.is_closed for log in self._present().values())
        try:
            attempt_all(*(partial(self._close, log) for log in self._logs.values()))
            self._write_checkpoints()
            if is_all_ours:
                write_atomically(self._files, self._path(CLEAN_SHUTDOWN_FILE), CLEAN_SHUTDOWN)
        finally:
            self._is_closed = True
            self._unlock()

    def _close(self, log: PartitionLog) -> None:
        """Make a log durable and close it, unless it is closed already."""
        if log.is_closed:
            return
        with undone_if_it_fails(log.close_handlers):
            # What closing would write and cut, while it can still be made durable.
            with contextlib.suppress(SegproofError):
                log.log_segments.active_segment.on_become_inactive_segment()
            log.flush(True)
            log.close()

    def _path(self, name: str) -> str:
        return os.path.join(self.log_dir, name)

    def _check_open(self) -> None:
        if self._is_closed:
            raise IndexClosedError("the log manager is shut down", path=self.log_dir)

    def _check_writable(self) -> None:
        if not self.writable:
            raise ReadOnlyError(
                "the log directory was opened for reading",
                path=self.log_dir,
                hint="open it with writable=True",
            )

    def _check_loaded(self) -> None:
        self._check_open()
        self._check_writable()
        if not self._is_loaded:
            raise IndexStateError(
                "the logs are not loaded",
                path=self.log_dir,
                hint="load_logs comes first, or the offsets of all logs would be forgotten",
            )


def _id_to_write(file: PartitionMetadataFile, topic_id: uuid.UUID) -> uuid.UUID | None:
    """Return the id, or None if the file has it. Raises: SegproofError for another topic's."""
    if topic_id.int == 0:
        raise InvalidArgumentError("the topic id is zero", law="META-2", path=file.file)
    if not file.exists():
        return topic_id
    known = file.read().topic_id
    if known != topic_id:
        raise SegproofError(
            "the log belongs to a topic with another id",
            path=file.file,
            expected=str(known),
            actual=str(topic_id),
        )
    return None


def _is_topic(name: str) -> bool:
    """Return whether a topic may be called so whose log is kept here."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..", METADATA_TOPIC)
