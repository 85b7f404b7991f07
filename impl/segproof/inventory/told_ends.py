# SPDX-License-Identifier: Apache-2.0
"""Files that say that a log ends exactly where it does, against one that says that it went on.

A clean stop leaves both checkpoints at the end of the log: what was flushed, and what is
replicated. A snapshot or an epoch beyond that end may be a stray then. It proves no loss: a broker
writes the checkpoints every few seconds, so they may be older than the file.

Two folders may have exchanged names. Checkpoints go by the name, and snapshots and leader epochs
move with the folder. No file proves an exchange, so the loss that there is without one is told too.

Upstream: Kafka 4.3.1: LogManager.checkpointLogRecoveryOffsets,
ReplicaManager.checkpointHighWatermarks.
Laws: DISK-36, DISK-38, DISK-64.
"""

import posixpath
from collections.abc import Mapping

from segproof.counts import plural
from segproof.files import Files
from segproof.hints import Hint, reads
from segproof.inventory.segment_listing import parent_of
from segproof.inventory.small_files import known_offsets
from segproof.reading.cleaner_traces import UP_TO
from segproof.reading.file_names import (
    CLEANER,
    HIGH_WATERMARK,
    RECOVERY,
    NameKind,
    partition_of,
    read_file_name,
)
from segproof.reading.folder_names import names_of
from segproof.reading.log_order import offsets_of

EXCHANGED_MAX = 8
"""At most this many other partitions are looked into for an exchanged name."""
_HINT_OF_TOPICS = reads(
    "compare the topic ids in partition.metadata of both folders with those of `kafka-topics.sh"
    " --describe`, and their records (`segproof dump`), before a broker starts here: if the ids are"
    " exchanged, one with KRaft sets both folders aside as -stray"
)
_HINT_OF_ONE_TOPIC = reads(
    "compare the records of both folders (`segproof dump`) with those of other replicas before a"
    " broker starts here: partitions of one topic have one topic id, so it takes each as named"
)
IF_NAMED_RIGHT = ", if this folder has its own name"
"""The end of the `actual` of a finding whose loss is none if two folders have exchanged names."""

ALL_ZEROS = (
    "zeros are all that it has, so nothing of it can be read, and no .index beside it tells how far"
    " it went. A broker with log.preallocate has such a log before its first batch; else an unknown"
    " number of offsets is lost"
)
"""What is known of a last log of zeros alone without an offset index, in words."""
AGREED = f"{RECOVERY} and {HIGH_WATERMARK} both say that the log ends there, so no loss is counted"


def is_end_agreed(offsets: Mapping[str, int], end_offset: int) -> bool:
    """Return whether both checkpoints say that a log ends at this offset, exclusive.

    `offsets` are those of the partition in the checkpoints of its data directory, by file name. The
    log must end with a sound batch, and no index may lead beyond it.
    """
    return end_offset > 0 and {end_offset} == {offsets.get(RECOVERY), offsets.get(HIGH_WATERMARK)}


def told_offset(offset: int, *, is_agreed: bool) -> int | str:
    """Return the `actual` of a finding about a file that names an offset beyond the end."""
    return f"{UP_TO}{offset}" if is_agreed else offset


def exchanged_with(directory: str, offsets: Mapping[str, int], reached: int, files: Files) -> str:
    """Return the folder with which a partition may have exchanged its name; empty for none.

    `offsets` are those of the partition in the checkpoints beside it, and `reached` is where its
    log ends; no file in the folder names a later offset. Both checkpoints say of the other
    partition that it ends there, and the log of the other one ends where they say that this one
    does. An empty log is no evidence: each new partition ends at 0.
    """
    own, told = partition_of(directory), offsets.get(RECOVERY, 0)
    if own is None or told != offsets.get(HIGH_WATERMARK) or not 0 < reached < told:
        return ""
    if offsets.get(CLEANER, 0) > told:
        return ""
    parent = parent_of(directory)
    ends: list[set[tuple[str, int]]] = []
    for name in (RECOVERY, HIGH_WATERMARK):
        entries = known_offsets(posixpath.join(parent, name), files)
        ends.append({(one.topic, one.partition) for one in entries if one.offset == reached})
    known = sorted(ends[0] & ends[1] - {(own.topic, own.partition)})
    folders = (posixpath.join(parent, f"{topic}-{number}") for topic, number in known)
    for folder in list(folders)[:EXCHANGED_MAX]:
        if _end_of(folder, files) == told:
            return folder
    return ""


def words_of_exchanged(folder: str, lost: int) -> str:
    """Return in words that a partition and another one may have each other's folder.

    `lost` offsets are lost if they have not.
    """
    return (
        f"this folder and {folder} may have exchanged names: the log of each ends where {RECOVERY}"
        f" and {HIGH_WATERMARK} say of the other one. If they have not,"
        f" {plural(lost, 'offset', 'is', 'are')} lost"
    )


def hint_of_exchanged(directory: str, folder: str) -> Hint:
    """Return what to do where two folders may have exchanged names."""
    own, other = partition_of(directory), partition_of(folder)
    is_one_topic = own is not None and other is not None and own.topic == other.topic
    return _HINT_OF_ONE_TOPIC if is_one_topic else _HINT_OF_TOPICS


def _end_of(folder: str, files: Files) -> int | None:
    """Return the offset after the last sound batch of a partition's last log, or None."""
    known = ((read_file_name(name), name) for name in names_of(folder, files))
    logs = [
        (one.base_offset, name)
        for one, name in known
        if one.kind is NameKind.SEGMENT and one.suffix == ".log"
    ]
    if not logs:
        return None
    base, name = max(logs)
    try:
        offsets = offsets_of(posixpath.join(folder, name), files)
    except OSError:
        return None
    return base if offsets is None else offsets[1] + 1
