# SPDX-License-Identifier: Apache-2.0
"""The logs of one log directory, and the files beside them that tell where each begins and ends.

Upstream: Kafka 4.4.0, LogManager, OffsetCheckpointFile, CleanShutdownFileHandler.
Layout: a partition's directory is named `topic-partition`. `recovery-point-offset-checkpoint` and
    `log-start-offset-checkpoint` are checkpoints of offsets; `.kafka_cleanshutdown` is JSON with a
    version and the broker's epoch, and its existence is what counts.
Laws: LOAD-11, LOAD-13, META-1, META-2.
Not covered: several log directories, one that fails, directories named `-delete`, `-stray` or
    `-future`, which are left alone; the lock of the directory; a directory without files, which
    `Files` has no name for.
"""

import re

from segproof_model.kafka.broker.checkpoint_file import OffsetCheckpointFile
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.broker.partition_metadata_file import PartitionMetadataFile
from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, State, refuse

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'
OTHER_DIRECTORIES = ("-delete", "-stray", "-future")
REMOTE_INDEXES = "remote-log-index-cache"
METADATA_TOPIC = "__cluster_metadata"
"""Its log is kept by the quorum of controllers; loading passes it by."""

TopicPartition = tuple[str, int]


class LogManager(State):
    """A log directory.

    >>> manager = LogManager(Files(), "", LogConfig(segment_index_bytes=96))
    >>> manager.load_logs()
    >>> manager.get_or_create_log("t", 0).log_end_offset
    0
    >>> manager.shutdown()
    >>> ".kafka_cleanshutdown" in manager.files, "t-0/" + 20 * "0" + ".log" in manager.files
    (True, True)
    """

    not_compared = frozenset({"codecs"})

    def __init__(
        self,
        files: Files,
        log_dir: str,
        config: LogConfig,
        *,
        codecs: Codecs = NO_CODECS,
        draw: int = 0,
    ) -> None:
        """Begin without a log; missing checkpoints are made, empty. `log_dir`: a name, or empty."""
        self.files, self.config, self.codecs = files, config, codecs
        self.draw = draw
        """A random number >= 0; whoever drives the logs changes it."""
        self.prefix = f"{log_dir}/" if log_dir else ""
        """What stands before the name of each file."""
        checkpoint = self.kind(OffsetCheckpointFile)
        self.recovery_points = checkpoint(files, self.prefix + RECOVERY_POINTS)
        self.log_starts = checkpoint(files, self.prefix + LOG_STARTS)
        self.partitions: tuple[TopicPartition, ...] = ()
        """Topic and partition of each log, rising."""
        self.logs: tuple[PartitionLog, ...] = ()
        """Their logs."""
        self.is_loaded = False
        """Whether every log could be loaded; else the next start is one after a crash."""
        self.had_clean_shutdown = False
        """Whether loading found the marker; then the next stop writes it again, loaded or not."""

    def log_of(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition."""
        return dict(zip(self.partitions, self.logs, strict=True)).get((topic, partition))

    # --- starting ------------------------------------------------------------------------------

    def load_logs(self) -> None:
        """Load the log of every partition (LOAD-11, LOAD-13).

        The marker of a clean stop is removed first. A checkpoint that cannot be read tells
        nothing: its offsets are 0. A name that is none of a partition raises the Kafka error.
        """
        self.had_clean_shutdown = self.files.remove(self.prefix + CLEAN_SHUTDOWN)
        recovery_points, starts = offsets_in(self.recovery_points), offsets_in(self.log_starts)
        for key in self.partitions_found():
            start, recovery_point = starts.get(key, 0), recovery_points.get(key, 0)
            self.load_log(key, start, recovery_point, self.had_clean_shutdown)
        self.is_loaded = True

    def partitions_found(self) -> list[TopicPartition]:
        """Return topic and partition of each directory, by name."""
        short = [
            name.removeprefix(self.prefix) for name in self.files if name.startswith(self.prefix)
        ]
        found: list[TopicPartition] = []
        for name in sorted({name.partition("/")[0] for name in short if "/" in name}):
            if name.endswith(OTHER_DIRECTORIES) or name == REMOTE_INDEXES:
                continue
            parts = re.fullmatch(r"(.+)-([0-9]+)", name, re.ASCII)
            if parts is None or int(parts[2]) > INT32_MAX:
                refuse(ErrorKind.KAFKA_ERROR)
            if parts[1] != METADATA_TOPIC:
                found.append((parts[1], int(parts[2])))
        return found

    def load_log(
        self, key: TopicPartition, log_start_offset: int, recovery_point: int, is_clean: bool
    ) -> None:
        """Load the log of one partition, or begin it."""
        log = self.kind(PartitionLog)(
            self.files,
            self.directory_of(*key),
            self.config,
            log_start_offset,
            recovery_point,
            is_clean,
            codecs=self.codecs,
            draw=self.draw,
        )
        logs = {**dict(zip(self.partitions, self.logs, strict=True)), key: log}
        self.partitions = tuple(sorted(logs))
        self.logs = tuple([logs[known] for known in self.partitions])

    def directory_of(self, topic: str, partition: int) -> str:
        """Return the name of a partition's directory."""
        return f"{self.prefix}{topic}-{partition}"

    def get_or_create_log(
        self, topic: str, partition: int, topic_id: bytes | None = None
    ) -> PartitionLog:
        """Return the log of a partition; a new one begins at offset 0.

        `topic_id`, 16 bytes, goes to a `partition.metadata` that is missing. Without that file a
        broker of a cluster with KRaft takes the log for a stray one when it starts. A log with the
        id of another topic raises the Kafka error.
        """
        if topic_id is not None:
            self.assign_topic_id(topic, partition, topic_id)
        if self.log_of(topic, partition) is None:
            self.load_log((topic, partition), 0, 0, True)
        log = self.log_of(topic, partition)
        assert log is not None
        return log

    def assign_topic_id(self, topic: str, partition: int, topic_id: bytes) -> None:
        """Write the id of a partition's topic, or compare it with the one that is known."""
        name = f"{self.directory_of(topic, partition)}/partition.metadata"
        file = self.kind(PartitionMetadataFile)(self.files, name)
        if not file.exists():
            file.write(topic_id)
        elif file.read().topic_id != topic_id:
            refuse(ErrorKind.KAFKA_ERROR)

    # --- what a start will need ----------------------------------------------------------------

    def checkpoint_log_recovery_offsets(self) -> None:
        """Write the recovery point of every log."""
        points = [log.recovery_point for log in self.logs]
        self.recovery_points.write(dict(zip(self.partitions, points, strict=True)))

    def checkpoint_log_start_offsets(self) -> None:
        """Write the start of every log that does not begin with its first segment."""
        starts = {
            key: log.log_start_offset
            for key, log in zip(self.partitions, self.logs, strict=True)
            if not log.log_segments.is_empty
            and log.log_start_offset > log.log_segments.base_offsets()[0]
        }
        self.log_starts.write(starts)

    def shutdown(self) -> None:
        """Flush and close every log, write the checkpoints, and then the marker (LOAD-11).

        Without the marker if not every log was loaded, unless the stop before was a clean one: a
        log that was not touched is as clean as it was.
        """
        for log in self.logs:
            log.prepare_active_segment_for_close()
            log.flush(True)
            log.close()
        self.checkpoint_log_recovery_offsets()
        self.checkpoint_log_start_offsets()
        if self.is_loaded or self.had_clean_shutdown:
            self.files.write(self.prefix + CLEAN_SHUTDOWN, CLEAN_SHUTDOWN_CONTENT)


def offsets_in(checkpoint: OffsetCheckpointFile) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint; none of one that cannot be read."""
    try:
        return checkpoint.read()
    except Refused:
        return {}
