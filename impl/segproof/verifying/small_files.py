# SPDX-License-Identifier: Apache-2.0
"""The small files of a partition and of a data directory, judged by themselves.

Upstream: Kafka 4.3.1: ProducerStateManager, LeaderEpochCheckpointFile, PartitionMetadataFile,
    OffsetCheckpointFile, CleanShutdownFileHandler.
Laws: PROD-3, CKPT-3, CKPT-4, EPOCH-1, META-2; DISK-35, DISK-40; those of node_files and of
    metadata_snapshots.
Not covered: files above SMALL_FILE_BYTES; a warning says so.
"""

import json
import posixpath
from collections.abc import Sequence
from typing import TypeVar

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import changes, reads, removes
from segproof.inventory.small_files import (
    SMALL_FILE_BYTES,
    Entries,
    Oversized,
    Parsed,
    last_offset,
    odd_epoch,
    parse,
    parse_epochs,
    parse_offsets,
    parse_producers,
)
from segproof.kafka.checkpoint_file import EpochEntry, TopicPartitionOffset, read_text_file
from segproof.kafka.partition_metadata_file import read_partition_metadata
from segproof.kafka.producer_snapshot import ProducerStateEntry
from segproof.reading.file_names import (
    BROKER_FILE,
    CLEAN_SHUTDOWN_MARKER,
    CLEANER,
    EPOCHS,
    HIGH_WATERMARK,
    METADATA,
    OFFSET_CHECKPOINTS,
    QUORUM_STATE,
    RECOVERY,
    REMOTE_EPOCH_SUFFIXES,
    SNAPSHOT_SUFFIX,
    START,
)
from segproof.verifying.metadata_snapshots import check_metadata_snapshot, is_metadata_snapshot
from segproof.verifying.node_files import check_node_properties, check_quorum_state
from segproof.wording.reporting import PathReporter
from segproof.wording.rules import REMAKE_SNAPSHOT, SALVAGE, declare

declare("partition-log", Severity.WARNING, REMAKE_SNAPSHOT, "PROD-3")
declare("partition-log", Severity.ERROR, REMAKE_SNAPSHOT, "DISK-35")
declare("partition-log", Severity.ERROR,
    SALVAGE.after("a salvage makes leader-epoch-checkpoint new from the batches: "),
    "CKPT-3", "CKPT-4")  # fmt: skip
declare("partition-log", Severity.ERROR,
    changes("write `version: 0` and `topic_id: ID` into it, with the id in the same file of another"
    " partition of this topic, here or on another broker", only_if="the topic was not deleted and"
    " created again since", if_wrong="the broker takes the log for that of another topic and sets"
    " it aside under a name that ends in -stray", copy_step="stop the broker, which takes the whole"
    " data directory offline with this file, and copy the file away"), "META-2")  # fmt: skip
declare("partition-log", Severity.ERROR,
    SALVAGE.after("a salvage makes the file new from the batches: "), "EPOCH-1")  # fmt: skip
declare("partition-log", Severity.NOTE, reads("nothing: the broker writes it again"), "DISK-55")
declare("partition-log", Severity.NOTE,
    reads("nothing: the file's presence is what counts. If the power failed after the stop, verify"
    " all logs of this directory before the broker starts: with the marker it recovers none"),
    "DISK-40")  # fmt: skip

_COPY = "stop the broker and copy the file away"
_SOUND = "every partition of this directory is sound for `segproof verify`"
_OF_ANOTHER = "remove this file, and take none from another broker: it does not fit. "
REMEDIES = {
    RECOVERY: removes(
        f"{_OF_ANOTHER}The next start recovers every log from its begin, unless the stop was clean",
        only_if=_SOUND, copy_step=_COPY,
        if_wrong="the recovery cuts a damaged log at its first damage, and what follows is lost",
    ),
    START: removes(
        f"{_OF_ANOTHER}Each log then begins at its first segment",
        only_if="records that were deleted by their offset (DeleteRecords) may be read again",
        copy_step=_COPY,
        if_wrong="consumers get records that were deleted; no record is lost",
    ),
    HIGH_WATERMARK: removes(
        f"{_OF_ANOTHER}The broker learns its high watermarks again, from the leaders or from its"
        " followers",
        only_if="the file can't be read, as verify says", copy_step=_COPY,
        if_wrong="consumers wait until the high watermarks are known again; no record is lost",
    ),
    CLEANER: removes(
        f"{_OF_ANOTHER}The log cleaner begins at the start of each log again",
        only_if="the file can't be read, as verify says", copy_step=_COPY,
        if_wrong="the log cleaner reads each log once more; no record is lost",
    ),
}  # fmt: skip
"""What to do about each checkpoint of offsets that can't be read."""
COSTS = {
    "CKPT-3": "; with it the broker takes the whole data directory offline",
    "CKPT-4": "; with it the broker fails at its start, or takes the offsets of all its partitions"
    " as unknown",
}
EMPTIED = {
    RECOVERY: "after an unclean stop it recovers every log from its begin",
    START: "each log begins at its first segment",
    HIGH_WATERMARK: "it learns its high watermarks again",
    CLEANER: "it begins to compact at the start of each log",
}
"""What a checkpoint without an entry costs."""
HINT_OF_OLD = reads(
    "nothing, if a release before 2.0 wrote the file: loading drops the epoch that had no batch"
)
PARTITION = "partition-log"
Content = TypeVar("Content")


def _told(report: PathReporter, law: str, parsed: Parsed[Content]) -> Content | None:
    """Return what a file says; report why it can't be read. One that is gone says nothing."""
    error = parsed.error
    if isinstance(error, Oversized):
        report.add(
            law,
            f"the file has {error.size_bytes} bytes and was not looked into: more than"
            f" {SMALL_FILE_BYTES} are not read",
            expected=SMALL_FILE_BYTES,
            actual=error.size_bytes,
            severity=Severity.WARNING,
            hint=reads("compare the file with that of another replica: none of this size is known"),
        )
    elif isinstance(error, SegproofError):
        expected, actual = (
            value if isinstance(value, int) else None for value in (error.expected, error.actual)
        )
        law = error.law if error.law in ("CKPT-4", "META-2", "PROD-3") else law
        report.add(
            law,
            f"Kafka cannot read this file: {error.message}{COSTS.get(law, '')}",
            position=error.position,
            expected=expected,
            actual=actual,
            hint=REMEDIES.get(posixpath.basename(report.path)),
        )
    elif error is not None:
        report.unreadable(error)
    return parsed.content


def _entries(report: PathReporter, parsed: Parsed[Entries[Content]]) -> list[Content] | None:
    """Return the entries of a checkpoint; report why it can't be read, or has no count of them."""
    content = _told(report, "CKPT-3", parsed)
    if content is None:
        return None
    if content.stump is not None:
        cost = EMPTIED.get(posixpath.basename(report.path), "it knows no epoch")
        is_blank = not content.stump.strip()
        what = "is empty" if is_blank else "ends before the number of its entries"
        report.add(
            "DISK-55",
            f"the file {what}: a broker makes it so before its first write; else it was cut, as by"
            f" a power loss. Kafka reads no entry in it: {cost}",
            expected="a version, a number, and as many entries",
            actual=f"{len(content.stump)} bytes",
        )
    return content.entries


def check_producers(
    report: PathReporter, offset: int, files: Files
) -> Sequence[ProducerStateEntry] | None:
    """Judge a snapshot of that offset; return its entries, or None where it can't be read."""
    found = _told(report, "PROD-3", parse_producers(report.path, files))
    for entry in found or ():
        last = last_offset(entry)
        if last >= offset:
            report.add(
                "DISK-35",
                f"the snapshot is of the producers before offset {offset}, and it says of producer"
                f" {entry.producer_id} that it has written offset {last}",
                expected=f"below {offset}",
                actual=last,
            )
    return found


def check_epochs(report: PathReporter, files: Files) -> list[EpochEntry] | None:
    """Judge a `leader-epoch-checkpoint`; return its entries, or None if they can't be read or don't
    rise.
    """
    entries = _entries(report, parse_epochs(report.path, files))
    odd = odd_epoch(entries or ())
    if entries is None or odd is None:
        return entries
    two = entries[odd]
    if odd == 0:
        report.add(
            "EPOCH-1",
            f"the first entry is epoch {two.epoch} from offset {two.start_offset}: Kafka"
            " refuses negative numbers and does not load the partition",
            expected="numbers from 0 on",
            actual=f"{two.epoch} {two.start_offset}",
        )
        return None
    one = entries[odd - 1]
    # Before 2.0 an epoch that had no batch kept its entry.
    is_old = one.epoch < two.epoch and one.start_offset == two.start_offset
    report.add(
        "EPOCH-1",
        f"entry {odd + 1} is epoch {two.epoch} from offset {two.start_offset}, behind epoch"
        f" {one.epoch} from offset {one.start_offset}: loading drops what conflicts with a"
        " later entry",
        expected=f"an epoch above {one.epoch} and an offset above {one.start_offset}",
        actual=f"{two.epoch} {two.start_offset}",
        severity=Severity.WARNING if is_old else Severity.ERROR,
        hint=HINT_OF_OLD if is_old else None,
    )
    return None


def check_offsets(report: PathReporter, parsed: Parsed[Entries[TopicPartitionOffset]]) -> None:
    """Judge a checkpoint of offsets as it was read."""
    _entries(report, parsed)


def check_metadata(report: PathReporter, files: Files) -> None:
    """Judge a `partition.metadata`."""
    path = report.path
    parsed = parse(
        path, files, lambda: read_partition_metadata(read_text_file(files, path), source=path)
    )
    _told(report, "META-2", parsed)


def check_marker(report: PathReporter, files: Files) -> None:
    """Judge the marker of a clean stop, which since 3.8 holds the broker's epoch as JSON."""
    parsed = parse(report.path, files, lambda: read_text_file(files, report.path))
    data = _told(report, "DISK-40", parsed)
    if not data:
        return
    try:
        content = json.loads(data)
        is_right = all(type(content[name]) is int for name in ("version", "brokerEpoch"))
    except (ValueError, TypeError, KeyError, RecursionError):
        is_right = False
    if not is_right:
        report.add(
            "DISK-40",
            "the marker of a clean stop holds no broker epoch: the broker takes the stop as clean"
            " and its former epoch as unknown",
            expected='{"version": 0, "brokerEpoch": NUMBER}',
            actual=data[:80].decode("ascii", "replace"),
        )


def check_small_remote_file(report: PathReporter, suffix: str, offset: int, files: Files) -> bool:
    """Judge one small file of a remote segment by itself; return whether its suffix is of one.

    `offset` is the end of the segment, exclusive, to which its producer snapshot belongs.
    """
    if suffix == SNAPSHOT_SUFFIX:
        check_producers(report, offset, files)
    elif suffix in REMOTE_EPOCH_SUFFIXES:
        check_epochs(report, files)
    else:
        return False
    return True


def check_small_file(report: PathReporter, offset: int | None, files: Files) -> bool:
    """Judge one small file by itself; return whether its name is of one.

    `offset` is what the name of a snapshot says.
    """
    name = posixpath.basename(report.path)
    if offset is not None:
        check_producers(report, offset, files)
    elif name == EPOCHS:
        check_epochs(report, files)
    elif name == METADATA:
        check_metadata(report, files)
    elif name in OFFSET_CHECKPOINTS:
        check_offsets(report, parse_offsets(report.path, files))
    elif name == CLEAN_SHUTDOWN_MARKER:
        check_marker(report, files)
    elif name == QUORUM_STATE:
        check_quorum_state(report, files)
    elif name == BROKER_FILE:
        check_node_properties(report, files)
    elif is_metadata_snapshot(name):
        check_metadata_snapshot(report, files)
    else:
        return False
    return True
