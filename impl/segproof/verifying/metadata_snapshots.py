# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a cluster's metadata: whether each is whole, and whether the log begins within one.

A snapshot holds batches, as a log does. The first record of its first batch is a header, the last
batch is a footer. Kafka checks each checksum, but reads a snapshot that was cut as far as whole
batches go, without an error: such a node goes on with a part of the metadata.

Upstream: Kafka 4.3.1: RecordsSnapshotReader, RecordsIterator, KafkaRaftLog, BootstrapDirectory.
Laws: DISK-51, DISK-52, DISK-41.
Not covered: what the records of metadata say.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import File, Files, holds_zeros
from segproof.findings import Severity
from segproof.hints import changes, reads, writes
from segproof.kafka.batch_table import CONTROL, BatchScan
from segproof.kafka.record import control_record_type
from segproof.kafka.record_batch import RecordBatch
from segproof.layouts.kafka import (
    BATCH,
    HEADER_UP_TO_MAGIC_BYTES,
    LEGACY_MIN_BYTES,
)
from segproof.reading.file_names import (
    BOOTSTRAP,
    METADATA_TOPIC,
    FileName,
    NameKind,
    partition_of,
)
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import declare

COPY_SNAPSHOT = changes(
    "put a snapshot of this or a later offset from another node of the same cluster beside it, and"
    " move this one out of the directory",
    only_if="the other nodes agree on a leader, and verify finds that snapshot whole",
    if_wrong="the node goes on with other metadata than the cluster, and treats topics as deleted",
    copy_step="keep this node stopped, and copy its directory away",
)
OF_BOOTSTRAP = changes(
    "replace it by the file of another controller of this cluster",
    only_if="the log of the cluster's metadata has records: then nothing is taken from this file",
    if_wrong="the cluster begins with other features than it was formatted with",
    copy_step="keep this node stopped, and copy the file away",
)
OF_PARTIAL = reads("nothing, if another snapshot here is whole")
OF_WHOLE_PARTIAL = writes(
    "copy this file away before the node starts, if no other snapshot here is whole"
)
declare("partition-log", Severity.ERROR, COPY_SNAPSHOT, "DISK-51")
declare("partition-log", Severity.ERROR,
    changes("write a snapshot of this or a later offset of another node of this cluster here",
    only_if="the missing snapshot is not found in lost+found or in copies of this directory",
    if_wrong="the node goes on with other metadata than the cluster, and treats topics as deleted",
    copy_step="keep this node stopped, and copy its directory away"), "DISK-52")  # fmt: skip

_SNAPSHOT = re.compile(r"([0-9]{20,})-([0-9]{10,})\.checkpoint(\.part)?", re.ASCII)
CONTROL_BATCH_MAX_BYTES = 1 << 20
"""Upstream's header and footer have some 80 bytes."""


class SnapshotName(NamedTuple):
    """What the name of a snapshot says, in the order in which Kafka compares snapshots."""

    epoch: int
    offset: int
    """The offset after the last record of the log that is in the snapshot."""
    is_partial: bool


def snapshot_name(name: str) -> SnapshotName | None:
    """Return what a name says; None if it is not that of a snapshot of metadata."""
    match = _SNAPSHOT.fullmatch(name)
    return match and SnapshotName(int(match[2]), int(match[1]), match[3] is not None)


def is_metadata_snapshot(name: str) -> bool:
    """Return whether a file is a snapshot of metadata, or the first one of a cluster, by name."""
    return name == BOOTSTRAP or snapshot_name(name) is not None


@dataclass(frozen=True, slots=True)
class Contents:
    """What reading a snapshot showed."""

    records: int = 0
    """Records of metadata in the batches that Kafka reads."""
    batches: int = 0
    problem: str = ""
    """Why it is not whole; empty if it is."""
    position: int | None = None
    is_silent: bool = False
    """Whether Kafka takes what is there without an error."""


def read_snapshot(path: str, files: Files, limit: int | None = None) -> Contents:
    """Read a snapshot. Raises: OSError."""
    with closing(files.open(path)) as file:
        return _Reading(file, limit).read()


class _Reading:
    """One reading of a snapshot; it ends at the first thing that is wrong."""

    def __init__(self, file: File, limit: int | None) -> None:
        self._file = file
        self._size = file.size()
        self._limit = limit
        self._records = self._batches = 0
        self._last: np.void | None = None

    def read(self) -> Contents:
        """Return what the file holds."""
        if not self._size:
            return self._wrong("the file is empty", 0)
        scan = BatchScan(self._file, 0, self._size, deep=False, limit=self._limit)
        for checked in scan:
            found = self._take(checked.table, checked.crc_valid)
            if found is not None:
                return found
        return self._end(scan)

    def _take(self, table: np.ndarray, crc_valid: np.ndarray) -> Contents | None:
        """Take some batches; return what is wrong with the first bad one."""
        is_first = self._last is None
        bad = np.flatnonzero(~crc_valid | (table["magic"] != 2))
        good = table[: bad[0]] if len(bad) else table
        self._records += int(good["record_count"][good["attributes"] & CONTROL == 0].sum())
        self._batches += len(good)
        if len(bad):
            row = table[bad[0]]
            words = "the checksum of a batch is wrong: bytes in it were changed"
            if row["magic"] != 2:
                words = f"a batch has magic {row['magic']}"
            return self._wrong(words, int(row["position"]))
        if is_first and not self._is_control(table[0], "SNAPSHOT_HEADER"):
            return self._wrong("its first batch is no header of a snapshot", 0)
        self._last = table[-1].copy()
        return None

    def _end(self, scan: BatchScan) -> Contents:
        position, rest = scan.end_position, self._size - scan.end_position
        if rest > 0 and holds_zeros(self._file, position, self._size):
            what = f"{plural(rest, 'byte')} from here to its end are zeros"
            return self._wrong(what, position, self._is_taken_for_cut(position))
        if rest > 0 and scan.error is not None:
            return self._wrong(f"no batch can be read here: {scan.error.message}", position)
        if rest > 0:
            what = f"it ends within a batch: {plural(rest, 'byte')} are left of it"
            return self._wrong(what, position, self._is_taken_for_cut(position))
        assert self._last is not None
        if not self._is_control(self._last, "SNAPSHOT_FOOTER"):
            return self._wrong("it has no footer: it was cut between two batches", position, True)
        return Contents(self._records, self._batches)

    def _is_taken_for_cut(self, position: int) -> bool:
        """Return whether Kafka takes these last bytes for the begin of a batch that was cut.

        It looks at the size where 12 bytes are there, and at the magic where 17 are.
        """
        head = self._file.pread(HEADER_UP_TO_MAGIC_BYTES, position)
        size = BATCH["size"]
        if len(head) >= size.end and size.end + size.of(head) < LEGACY_MIN_BYTES:
            return False
        return len(head) < HEADER_UP_TO_MAGIC_BYTES or head[BATCH["magic"].place] <= 2

    def _wrong(self, problem: str, position: int, is_silent: bool = False) -> Contents:
        # Without a whole batch there is no header, which Kafka asks for.
        return Contents(
            self._records, self._batches, problem, position, is_silent and self._batches > 0
        )

    def _is_control(self, row: np.void, kind: str) -> bool:
        """Return whether the first record of a batch is a control record of this kind."""
        if not row["attributes"] & CONTROL:
            return False
        position, size = int(row["position"]), int(row["size_bytes"])
        batch = RecordBatch(self._file, position, size, 2, in_file=True)
        try:
            record = next(batch.records(limit=CONTROL_BATCH_MAX_BYTES), None)
            return record is not None and control_record_type(record.key) == kind
        except SegproofError:
            return False


def check_metadata_snapshot(
    report: PathReporter, files: Files, *, newest: str = ""
) -> Contents | None:
    """Judge a snapshot; return what it holds, None if it can't be read.

    `newest` is the name of the one that Kafka loads, where this is an older one.
    """
    name = posixpath.basename(report.path)
    known = snapshot_name(name)
    try:
        found = read_snapshot(report.path, files, report.reporter.wanted.limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        report.unreadable(error)
        return None
    if known is not None and known.is_partial:
        _report_partial(report, found)
        return found
    if not found.problem:
        return found
    held = plural(found.records, "record")
    before = ""
    if found.batches:
        before = f"; {plural(found.batches, 'sound batch', 'lies', 'lie')} before it, with {held}"
    if name == BOOTSTRAP:
        cost = "a controller that reads it does not start"
    elif newest:
        cost = f"Kafka loads {newest} instead"
    elif found.is_silent:
        cost = (
            f"Kafka does not notice: a node that loads it starts with a part of the cluster's"
            f" metadata, {held}, and treats what is missing as deleted"
        )
    else:
        cost = "a node that loads it does not start"
    report.add(
        "DISK-51",
        f"the snapshot of the cluster's metadata can't be read whole: {found.problem}{before};"
        f" {cost}",
        position=found.position,
        severity=Severity.WARNING if newest else None,
        hint=OF_BOOTSTRAP if name == BOOTSTRAP else None,
    )
    return found


def _report_partial(report: PathReporter, found: Contents) -> None:
    state = "is not whole" if found.problem else f"is whole, with {plural(found.records, 'record')}"
    report.add(
        "DISK-41",
        "a snapshot of the cluster's metadata that was being written or fetched: it"
        f" {state}; Kafka deletes it at its next start",
        hint=OF_PARTIAL if found.problem else OF_WHOLE_PARTIAL,
    )


def check_metadata_snapshots(
    directory: str, kinds: Mapping[str, FileName], files: Files, reporter: Reporter
) -> None:
    """Judge the snapshots in the directory of a partition, and where its log begins."""
    names = {name: known for name in kinds if (known := snapshot_name(name)) is not None}
    whole = {name: known for name, known in names.items() if not known.is_partial}
    starts = [
        known.base_offset
        for known in kinds.values()
        if known.kind is NameKind.SEGMENT and known.suffix == ".log"
    ]
    start = min(starts, default=0)
    # Kafka forgets snapshots from before the start of the log.
    able = {name: known for name, known in whole.items() if known.offset >= start} or whole
    newest = max(able, key=lambda name: able[name], default="")
    for name in names:
        report = reporter.at(posixpath.join(directory, name), "partition-log")
        is_older = name in whole and name != newest
        check_metadata_snapshot(report, files, newest=newest if is_older else "")
    own = partition_of(directory)
    if own is not None and own.topic == METADATA_TOPIC and starts:
        _check_start(start, whole.values(), reporter.at(directory))


def _check_start(start: int, snapshots: Iterable[SnapshotName], report: PathReporter) -> None:
    """Judge whether a snapshot holds what was before the start of the log of metadata."""
    reach = max((one.offset for one in snapshots), default=None)
    if start == 0 or (reach is not None and reach >= start):
        return
    has = "without a snapshot" if reach is None else f"and the snapshots reach only offset {reach}"
    report.add(
        "DISK-52",
        f"the log of the cluster's metadata begins at offset {start}, {has}: Kafka refuses to"
        " start, since what was before is in no file here",
        expected=f"a snapshot of offset {start} or more",
        actual=reach,
    )
