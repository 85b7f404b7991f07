# SPDX-License-Identifier: Apache-2.0
"""What the names in a data directory and in a partition directory mean.

Upstream: Kafka 4.3.1: LogFileUtils, UnifiedLog, LogManager, Snapshots.
Laws: FILE-1, FILE-2, LOAD-1, DISK-3.
"""

import re
from enum import Enum
from typing import NamedTuple

from segproof.kafka.segment_names import segment_file_name

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
SNAPSHOT_SUFFIX = ".snapshot"
CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"
METADATA_TOPIC = "__cluster_metadata"
"""Its log is kept by the quorum of controllers, by rules of its own."""
INT64_MAX = (1 << 63) - 1

_PENDING = re.compile(r"\.(deleted|cleaned|swap)$")
_TEMPORARY = re.compile(r"\.tmp$")
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_KNOWN_IN_PARTITION = re.compile(
    r"leader-epoch-checkpoint|partition\.metadata|quorum-state|remote_log_snapshot"
    r"|[0-9]{20,}\.snapshot"
    r"|[0-9]{20,}-[0-9]{10,}\.checkpoint(\.part)?",
    re.ASCII,
)
_KNOWN_IN_DATA_DIRECTORY = frozenset(
    {
        CLEAN_SHUTDOWN_MARKER,
        ".lock",
        "bootstrap.checkpoint",
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "lost+found",
    }
)
_PARTITION = re.compile(
    r"(?P<topic>.+)-(?P<partition>[0-9]+)(\.[0-9a-f]{32}-(?P<state>delete|future|stray))?",
    re.ASCII | re.DOTALL,
)


class NameKind(Enum):
    """What a name in a partition directory stands for."""

    SEGMENT = "a file of a segment"
    MISNAMED = "a file of a segment whose name is not a padded base offset (FILE-1)"
    NO_OFFSET = "a file without an offset in its name, where Kafka wants one (FILE-2)"
    PENDING = "a file that the broker is about to remove or to put in place (LOAD-1)"
    KNOWN = "a file of the partition that is no segment's"
    FOREIGN = "no file of Kafka's (DISK-3)"


class FileName(NamedTuple):
    """The meaning of one name; offset and suffix where it has them."""

    kind: NameKind
    base_offset: int = 0
    suffix: str = ""


class PartitionName(NamedTuple):
    """The meaning of a directory's name."""

    topic: str
    partition: int
    state: str
    """`delete`, `future`, `stray`, or empty for a partition in use."""


def read_file_name(name: str) -> FileName:
    """Return what a name in a partition directory stands for."""
    if _KNOWN_IN_PARTITION.fullmatch(_TEMPORARY.sub("", name)):
        return _known(name)
    bare = _PENDING.sub("", name)
    head, dot, _ = name.partition(".")
    offset = _offset_of(head) if dot else None
    if name.endswith(".deleted"):
        is_kept = name.endswith(".checkpoint.deleted") and not _KNOWN_IN_PARTITION.fullmatch(bare)
        return FileName(NameKind.FOREIGN if is_kept else NameKind.PENDING, offset or 0)
    suffix = next((one for one in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX) if bare.endswith(one)), "")
    if not suffix and bare == name:
        return FileName(NameKind.FOREIGN)
    if offset is None:
        return FileName(NameKind.NO_OFFSET, suffix=suffix)
    if name.endswith(".cleaned") or suffix not in SEGMENT_SUFFIXES:
        return FileName(NameKind.KNOWN if bare == name else NameKind.PENDING, offset, suffix)
    if bare != segment_file_name(offset, suffix):
        return FileName(NameKind.MISNAMED, offset, suffix + name[len(bare) :])
    return FileName(NameKind.SEGMENT if bare == name else NameKind.PENDING, offset, suffix)


def _offset_of(digits: str) -> int | None:
    """Return the offset that stands before a name's first dot, or None."""
    if not _NUMBER.fullmatch(digits) or not -INT64_MAX - 1 <= int(digits) <= INT64_MAX:
        return None
    return int(digits)


def _known(name: str) -> FileName:
    """Return what a file of the partition's own is; of a snapshot its offset too."""
    head, _, tail = name.partition(".")
    offset = _offset_of(head) if tail == "snapshot" else None
    if offset is None:
        return FileName(NameKind.KNOWN)
    return FileName(NameKind.KNOWN, offset, SNAPSHOT_SUFFIX)


def read_partition_name(name: str) -> PartitionName | None:
    """Return topic, partition and state that a directory is named by, or None."""
    match = _PARTITION.fullmatch(name)
    if match is None:
        return None
    return PartitionName(match["topic"], int(match["partition"]), match["state"] or "")


def is_known_in_data_directory(name: str) -> bool:
    """Return whether a broker keeps a file of this name beside its partitions."""
    return _TEMPORARY.sub("", name) in _KNOWN_IN_DATA_DIRECTORY
