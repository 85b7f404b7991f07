# SPDX-License-Identifier: Apache-2.0
"""What the names in a data directory and in a partition directory mean.

Upstream: Kafka 4.3.1: LogFileUtils, UnifiedLog, LogManager, Snapshots, RemoteIndexCache; of its
    tests LocalTieredStorage.
Laws: FILE-1, FILE-2, LOAD-1, DISK-3.
"""

import posixpath
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from segproof.errors import NumberFormatError
from segproof.integers import INT64_MAX, parse_int
from segproof.kafka.segment_names import segment_file_name

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
SNAPSHOT_SUFFIX = ".snapshot"
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip")
"""What people pack files with before they put them aside."""
CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"
EPOCHS = "leader-epoch-checkpoint"
METADATA = "partition.metadata"
QUORUM_STATE = "quorum-state"
RECOVERY, START, HIGH_WATERMARK, CLEANER = OFFSET_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
BROKER_FILE = "meta.properties"
"""What a broker of Kafka keeps in each of its data directories."""
BOOTSTRAP = "bootstrap.checkpoint"
METADATA_TOPIC = "__cluster_metadata"
"""Its log is kept by the quorum of controllers, by rules of its own."""
SET_ASIDE_FILE = "salvage-set-aside.{}.log"
CUT_RECORDS_FILE = "salvage-records.{}.jsonl"
"""What a salvage writes beside its partitions, each with the name of one; no broker reads it."""
REMOTE_INDEX_CACHE = "remote-log-index-cache"
"""The directory where a broker keeps indexes of segments that are in tiered storage."""
PACKED_SUFFIXES = (".rsm-manifest", ".indexes")
"""Of files of a remote segment that a storage plugin has packed."""
REMOTE_EPOCH_SUFFIXES = (".leader_epoch_checkpoint", ".leader-epoch-checkpoint")

_SEGMENT_FILE = re.compile(
    r"(-?[0-9]+)(\.log|\.index|\.timeindex|\.txnindex)(\.(?:deleted|cleaned|swap))?"
)
_PENDING = re.compile(r"\.(deleted|cleaned|swap)$")
_TEMPORARY = re.compile(r"\.tmp$")
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
KNOWN_IN_PARTITION = re.compile(
    r"leader-epoch-checkpoint|partition\.metadata|quorum-state|remote_log_snapshot"
    r"|[0-9]{20,}\.snapshot"
    r"|[0-9]{20,}-[0-9]{10,}\.checkpoint(\.part)?",
    re.ASCII,
)
KNOWN_IN_DATA_DIRECTORY = frozenset(
    {CLEAN_SHUTDOWN_MARKER, ".lock", BOOTSTRAP, BROKER_FILE, *OFFSET_CHECKPOINTS}
)
REMOTE_NAME = re.compile(
    r"(?P<stem>(?P<offset>[0-9]{1,20})(?:_|(?P<dash>-))[A-Za-z0-9_-]{21}[AQgw])"
    r"(?P<suffix>\.log|\.index|\.timeindex|\.txnindex|\.snapshot|\.leader[_-]epoch[_-]checkpoint"
    r"|\.indexes|\.rsm-manifest)(?P<passing>\.deleted|\.tmp)?",
    re.ASCII,
)
_PARTITION = re.compile(
    r"(?P<topic>.+)-(?P<partition>[0-9]+)(\.[0-9a-f]{32}-(?P<state>delete|future|stray))?",
    re.ASCII | re.DOTALL,
)


REDPANDA_FILE = re.compile(
    r"[0-9]+-[0-9]+-v[0-9]+\.(log|base_index|compaction_index)(\..*)?", re.ASCII | re.DOTALL
)
"""A segment of Redpanda: base offset, term and version. Its headers of batches are its own."""


_LIKE_A_LOG = re.compile(
    r".*\.log|.*[0-9].*\.(?i:log)([^a-zA-Z].*)?"
    r"|[0-9]{20}(?!\.(index|timeindex|txnindex|snapshot|checkpoint)).*",
    re.ASCII | re.DOTALL,
)
STATES = ("delete", "future", "stray")
"""What the names of folders end with that a broker has put aside."""
Key = tuple[str, int]
"""A topic and the number of a partition."""


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


class RemoteName(NamedTuple):
    """What the name of a file of a segment in tiered storage says."""

    base_offset: int
    stem: str
    """What stands before the suffix: the base offset, `_` or `-`, and the id of the segment."""
    suffix: str
    passing: str
    """`.deleted` or `.tmp` behind the suffix, or nothing."""


class PartitionName(NamedTuple):
    """The meaning of a directory's name."""

    topic: str
    partition: int
    state: str
    """`delete`, `future`, `stray`, or empty for a partition in use."""


def read_file_name(name: str) -> FileName:
    """Return what a name in a partition directory stands for."""
    if KNOWN_IN_PARTITION.fullmatch(_TEMPORARY.sub("", name)):
        return _known(name)
    bare = _PENDING.sub("", name)
    head, dot, _ = name.partition(".")
    offset = _offset_of(head) if dot else None
    if name.endswith(".deleted"):
        is_kept = name.endswith(".checkpoint.deleted") and not KNOWN_IN_PARTITION.fullmatch(bare)
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


def is_like_a_log(name: str, known: FileName) -> bool:
    """Return whether a file may be a log under a name that no broker reads.

    That is a log under another number or in other letters, a copy with something more in its name,
    or 20 digits without the name of another file.
    """
    is_stray = known.kind in (NameKind.FOREIGN, NameKind.MISNAMED, NameKind.NO_OFFSET)
    is_pending = name.endswith((".deleted", ".cleaned", ".swap"))
    return is_stray and not is_pending and _LIKE_A_LOG.fullmatch(name) is not None


def read_remote_name(name: str) -> RemoteName | None:
    """Return what the name of a file of a remote segment says, or None for another name.

    A broker's cache of indexes puts `_` between offset and id. `-` stands in copies of whole
    segments: of Kafka's LocalTieredStorage, and of storage plugins that name objects like it.
    """
    match = REMOTE_NAME.fullmatch(name)
    if match is None or int(match["offset"]) > INT64_MAX:
        return None
    if not match["dash"] and match["suffix"] not in SEGMENT_SUFFIXES[1:]:
        return None
    return RemoteName(int(match["offset"]), match["stem"], match["suffix"], match["passing"] or "")


def name_in_segment(base_offset: int, suffix: str, stem: str = "") -> str:
    """Return the name of a segment's file; `stem` is what it begins with in tiered storage."""
    return stem + suffix if stem else segment_file_name(base_offset, suffix)


def is_of_cache(stem: str) -> bool:
    """Return whether the stem of a remote segment's file is one of a broker's cache of indexes."""
    return stem.lstrip("0123456789").startswith("_")


def is_of_remote_segment(path: str) -> bool:
    """Return whether a file is one of a segment in tiered storage, by its name.

    Such files are copied and fetched as a whole: no recovery cuts them.
    """
    return read_remote_name(posixpath.basename(path)) is not None


def is_index_cache(directory: str) -> bool:
    """Return whether a directory is a broker's cache of indexes, by its name."""
    return posixpath.basename(posixpath.normpath(directory)) == REMOTE_INDEX_CACHE


def holds_remote_segments(directory: str, names: Collection[str]) -> bool:
    """Return whether a directory with these names is one of segments in tiered storage.

    A partition of a broker's is not: there, such a name is a stray.
    """
    if is_index_cache(directory):
        return True
    if partition_of(directory) is not None:
        return False
    return any(map(read_remote_name, names)) and not any(
        read_file_name(name).kind is NameKind.SEGMENT for name in names
    )


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


def partition_of(directory: str) -> PartitionName | None:
    """Return what the name of a directory says, as `read_partition_name`.

    The path may be `.`, or end with `..`: the name is that of the directory itself.
    """
    return read_partition_name(posixpath.basename(posixpath.abspath(directory)))


def starts_with_folder(name: str) -> bool:
    """Return whether a broker starts with a folder of this name in its log directory (DISK-47).

    As Kafka reads names, of all releases: a topic, `-`, and a number that Java reads as an int;
    before the endings `-delete`, `-future` and `-stray` stands a dot and some letters. Only the
    cache of remote indexes has a name of its own.
    """
    if name == REMOTE_INDEX_CACHE:
        return True
    ending = next((one for one in ("delete", "future", "stray") if name.endswith(f"-{one}")), "")
    if ending and not re.fullmatch(rf"\S+-\S+\.\S+-{ending}", name, re.ASCII):
        return False
    topic, dash, number = (name.rpartition(".")[0] if ending else name).rpartition("-")
    try:
        parse_int(number, 32)
    except NumberFormatError:
        return False
    return bool(topic and dash)


def is_of_salvage(name: str) -> bool:
    """Return whether a salvage writes files of this name beside its partitions."""
    kinds = (SET_ASIDE_FILE, CUT_RECORDS_FILE)
    return name.startswith(tuple(one.partition("{")[0] for one in kinds))


def is_of_redpanda(name: str) -> bool:
    """Return whether a file is one of a segment of Redpanda, by its name."""
    return REDPANDA_FILE.fullmatch(name) is not None


def is_known_in_data_directory(name: str) -> bool:
    """Return whether a broker keeps a file of this name beside its partitions."""
    return _TEMPORARY.sub("", name) in KNOWN_IN_DATA_DIRECTORY


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file of a segment, told by its name."""

    path: str
    base_offset: int
    suffix: str


def segment_file(path: str) -> SegmentFile | None:
    """Return what the name says, or None if it is no name of a log or an index."""
    name = posixpath.basename(path)
    remote = read_remote_name(name)
    if remote is not None and remote.suffix in SEGMENT_SUFFIXES:
        return SegmentFile(path, remote.base_offset, remote.suffix)
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or abs(int(match[1])) >= 1 << 63:
        return None
    return SegmentFile(path, int(match[1]), match[2])


def key_of(name: str) -> Key | None:
    """Return topic and number of a partition in use, as Kafka reads a folder's name."""
    topic, _, number = name.rpartition("-")
    if not topic or name.endswith(tuple(f"-{one}" for one in STATES)):
        return None
    try:
        return topic, parse_int(number, 32)
    except NumberFormatError:
        return None
