# SPDX-License-Identifier: Apache-2.0
"""The logs of one log directory, and the files beside them that tell where each begins and ends.

Mirrors: impl/segproof/kafka/log_manager.py.
Upstream: Kafka, LogManager, OffsetCheckpointFile, CleanShutdownFileHandler (4.3.1).
Layout: a partition's directory is named `topic-partition`. `recovery-point-offset-checkpoint` and
    `log-start-offset-checkpoint` are checkpoints of offsets; `.kafka_cleanshutdown` is JSON with a
    version and the broker's epoch, and its existence is what counts.
Laws: LOAD-11, LOAD-13, META-1, META-2.
Not covered: several log directories, one that fails, directories named `-delete`, `-stray` or
    `-future`, which are left alone; the lock of the directory; a directory without files, which a
    `Directory` has no name for; up to 2.7 the marker goes after loading, up to 3.6 it is empty.
Used by: the harness.
"""

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from segproof_model.directory import Directory
from segproof_model.kafka.checkpoint_file import OffsetCheckpointFile
from segproof_model.kafka.compression import NO_CODECS, Codecs
from segproof_model.kafka.log_config import LogConfig
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.partition_metadata_file import PartitionMetadataFile
from segproof_model.kafka.segment_parts import run
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'
OTHER_DIRECTORIES = ("-delete", "-stray", "-future")
REMOTE_INDEXES = "remote-log-index-cache"
METADATA_TOPIC = "__cluster_metadata"
"""Its log is kept by the quorum of controllers; loading passes it by."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LogManager:
    """The state of a log directory.

    >>> manager = LogManager.open("", LogConfig(segment_index_bytes=96)).after
    >>> manager = manager.load_logs().after.get_or_create_log("t", 0).after.shutdown().after
    >>> ".kafka_cleanshutdown" in manager.directory, "t-0/" + 20 * "0" + ".log" in manager.directory
    (True, True)
    """

    profile: Profile = field(repr=False)
    directory: Directory = field(repr=False)
    codecs: Codecs = field(compare=False, repr=False)
    log_dir: str
    """Name of the log directory, or empty."""
    config: LogConfig = field(repr=False)
    draw: int
    """A random number >= 0; whoever drives the logs changes it."""
    now_ms: int
    """What a clock would say; only whoever drives the logs changes it."""
    logs: tuple[tuple[TopicPartition, PartitionLog], ...] = ()
    """Each log by topic and partition."""
    is_loaded: bool = False
    """Whether every log could be loaded; else the next start is one after a crash."""
    had_clean_shutdown: bool = False
    """Whether loading found the marker; then the next stop writes it again, loaded or not."""

    @classmethod
    def open(
        cls,
        log_dir: str,
        config: LogConfig,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
        codecs: Codecs = NO_CODECS,
        now_ms: int = 0,
        draw: int = 0,
    ) -> "Step[LogManager]":
        """Begin with a directory; missing checkpoints are made, empty, and no log is loaded."""
        manager = cls(profile, directory, codecs, log_dir, config, draw, now_ms)
        return Step(
            replace(
                manager, directory=manager._checkpoint(RECOVERY_POINTS).directory
            )._with_starts()
        )

    def _with_starts(self) -> Self:
        return self.sees(self._checkpoint(LOG_STARTS).directory)

    @property
    def prefix(self) -> str:
        """What stands before the name of each file."""
        return f"{self.log_dir}/" if self.log_dir else ""

    def sees(self, directory: Directory) -> Self:
        """Return the same state over this directory."""
        logs = tuple((key, log.sees(directory)) for key, log in self.logs)
        return replace(self, directory=directory, logs=logs)

    def at(self, now_ms: int) -> Self:
        """Return the same state at this time of the clock."""
        logs = tuple((key, replace(log, now_ms=now_ms)) for key, log in self.logs)
        return replace(self, now_ms=now_ms, logs=logs)

    def log_of(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition."""
        return dict(self.logs).get((topic, partition))

    def with_log(self, topic: str, partition: int, log: PartitionLog) -> Self:
        """Return the state with this log, new or changed."""
        logs = {**dict(self.logs), (topic, partition): log}
        return replace(self, logs=tuple(sorted(logs.items(), key=_by_name))).sees(log.directory)

    def _checkpoint(self, name: str) -> OffsetCheckpointFile:
        return OffsetCheckpointFile.open(
            self.prefix + name, directory=self.directory, profile=self.profile
        ).after

    # --- starting ------------------------------------------------------------------------------

    def load_logs(self) -> Step[Self]:
        """Load the log of every partition (LOAD-11, LOAD-13).

        The marker of a clean stop is removed first. A checkpoint that cannot be read tells
        nothing: its offsets are 0. A name that is none of a partition raises the Kafka error.
        """
        marker = self.prefix + CLEAN_SHUTDOWN
        is_clean = marker in self.directory
        after = replace(self, had_clean_shutdown=is_clean).sees(self.directory.remove(marker))
        recovery_points = after._checkpoint(RECOVERY_POINTS).read()
        starts = after._checkpoint(LOG_STARTS).read()
        partitions = after._partitions()
        if isinstance(partitions, Raised):
            return Step(after, partitions)
        step: Step[Self] = Step(after)
        for key in partitions:
            start = 0 if isinstance(starts, Raised) else starts.get(key, 0)
            known = 0 if isinstance(recovery_points, Raised) else recovery_points.get(key, 0)
            step = step.after._opened(key, start, known, is_clean)
            if isinstance(step.outcome, Raised):
                return step
        return Step(replace(step.after, is_loaded=True))

    def _partitions(self) -> list[TopicPartition] | Raised:
        """Return topic and partition of each directory, by name."""
        names = {
            name.removeprefix(self.prefix).partition("/")[0]
            for name in self.directory
            if name.startswith(self.prefix) and "/" in name.removeprefix(self.prefix)
        }
        found: list[TopicPartition] = []
        for name in sorted(names):
            if name.endswith(OTHER_DIRECTORIES) or name == REMOTE_INDEXES:
                continue
            parts = re.fullmatch(r"(.+)-([0-9]+)", name, re.ASCII)
            if parts is None or int(parts[2]) > INT32_MAX:
                return KAFKA_ERROR
            if parts[1] != METADATA_TOPIC:
                found.append((parts[1], int(parts[2])))
        return found

    def _opened(
        self, key: TopicPartition, log_start_offset: int, recovery_point: int, is_clean: bool
    ) -> Step[Self]:
        """Open the log of one partition."""
        topic, partition = key
        step = PartitionLog.open(
            f"{self.prefix}{topic}-{partition}",
            self.config,
            log_start_offset,
            recovery_point,
            is_clean,
            directory=self.directory,
            profile=self.profile,
            codecs=self.codecs,
            now_ms=self.now_ms,
            draw=self.draw,
        )
        if isinstance(step.after, Directory):
            return Step(self.sees(step.after), step.outcome)
        return Step(self.with_log(topic, partition, step.after))

    def get_or_create_log(
        self, topic: str, partition: int, topic_id: bytes | None = None
    ) -> Step[Self]:
        """Return the log of a partition, begun at offset 0 if there is none.

        `topic_id`, 16 bytes, goes to a `partition.metadata` that is missing. Without that file a
        broker of a cluster with KRaft takes the log for a stray one when it starts. A log with the
        id of another topic raises the Kafka error.
        """
        step: Step[Self] = Step(self)
        if topic_id is not None:
            step = self._with_topic_id(f"{topic}-{partition}", topic_id)
        if not isinstance(step.outcome, Raised) and step.after.log_of(topic, partition) is None:
            step = step.after._opened((topic, partition), 0, 0, True)
        if isinstance(step.outcome, Raised):
            return step
        return Step(step.after, step.after.log_of(topic, partition))

    def _with_topic_id(self, name: str, topic_id: bytes) -> Step[Self]:
        file = PartitionMetadataFile.open(
            f"{self.prefix}{name}/partition.metadata",
            directory=self.directory,
            profile=self.profile,
        ).after
        if file.exists():
            known = file.read()
            if isinstance(known, Raised):
                return Step(self, known)
            return Step(self, None if known.topic_id == topic_id else KAFKA_ERROR)
        written = file.write(topic_id)
        return Step(self.sees(written.after.directory), written.outcome)

    # --- what a start will need ----------------------------------------------------------------

    def checkpoint_log_recovery_offsets(self) -> Step[Self]:
        """Write the recovery point of every log."""
        return self._written(RECOVERY_POINTS, {key: log.recovery_point for key, log in self.logs})

    def checkpoint_log_start_offsets(self) -> Step[Self]:
        """Write the start of every log that does not begin with its first segment."""
        starts = {
            key: log.log_start_offset
            for key, log in self.logs
            if not log.log_segments.is_empty
            and log.log_start_offset > log.log_segments.base_offsets()[0]
        }
        return self._written(LOG_STARTS, starts)

    def _written(self, name: str, offsets: dict[TopicPartition, int]) -> Step[Self]:
        step = self._checkpoint(name).write(offsets)
        return Step(self.sees(step.after.directory), step.outcome)

    def shutdown(self) -> Step[Self]:
        """Flush and close every log, write the checkpoints, and then the marker (LOAD-11).

        Without the marker if not every log was loaded, unless the stop before was a clean one: a
        log that was not touched is as clean as it was.
        """
        keys = [key for key, _ in self.logs]
        step = run(
            self,
            *(partial(type(self)._closed, key=key) for key in keys),
            lambda one: one.checkpoint_log_recovery_offsets(),
            lambda one: one.checkpoint_log_start_offsets(),
        )
        is_clean = self.is_loaded or self.had_clean_shutdown
        if isinstance(step.outcome, Raised) or not is_clean:
            return step
        marker = self.prefix + CLEAN_SHUTDOWN
        return Step(step.after.sees(step.after.directory.write(marker, CLEAN_SHUTDOWN_CONTENT)))

    def _closed(self, key: TopicPartition) -> Step[Self]:
        log = dict(self.logs)[key]
        step = run(
            log,
            lambda one: one.prepare_active_segment_for_close(),
            lambda one: one.flush(True),
            lambda one: one.close(),
        )
        return Step(self.with_log(*key, step.after), step.outcome)


def _by_name(item: tuple[TopicPartition, PartitionLog]) -> TopicPartition:
    return item[0]
