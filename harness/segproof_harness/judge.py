# SPDX-License-Identifier: Apache-2.0
"""A second opinion on `verify`: the model's laws, one by one, on the files of a small directory.

The verifier checks in one vectorised pass; here every law is its predicate of the model, as short
and as slow as that. Where the two part, one of them is wrong.

Not covered: names (FILE-n), rights and change meanwhile (DISK-1, -2), sizes (DISK-7), what a data
directory says of its partitions (DISK-38, -43), and laws that only a note speaks of.
Used by: the verb `verify --against model`, tests/stateful/kafka/test_verification.py.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity
from segproof.lookup import segment_file_name
from segproof.verification import VERIFIED_LAWS, verify
from segproof_harness.codecs import CODECS as ALL_CODECS
from segproof_harness.reading.rows import segment_files
from segproof_harness.reading.segments import BATCH_LIMIT_BYTES, limited
from segproof_model.directory import Directory
from segproof_model.kafka.checkpoint_file import epoch_of, read_checkpoint
from segproof_model.kafka.partition_metadata_file import read_partition_metadata
from segproof_model.kafka.producer_snapshot import read_snapshot
from segproof_model.kafka.record_batch import RecordBatch, end_transaction_marker
from segproof_model.kafka.segment_names import offset_of_name
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws import disk, disk_log, offset_index, time_index, transaction_index
from segproof_model.laws.registry import LAWS

LIMIT_BYTES = 8 << 20
"""Larger directories take the model too long."""
CODECS = replace(ALL_CODECS, limit_bytes=BATCH_LIMIT_BYTES)
DIRECTORY_LAWS = frozenset(
    {"DISK-3", "DISK-4", "DISK-5", "DISK-20", "DISK-27", "DISK-41", "DISK-42", "LOAD-1"}
)
RECORD_LAWS = frozenset(
    {"BATCH-9", "BATCH-10", "BATCH-11", "BATCH-15", "BATCH-16", "BATCH-18", "DISK-18"}
)
"""Laws about reading a batch: the model says them by what reading raises."""
NOT_JUDGED = frozenset(
    {"FILE-1", "FILE-2", "DISK-1", "DISK-2", "DISK-6", "DISK-7", "DISK-38", "DISK-43"} | {"LOAD-19"}
)
ONLY_NOTES = frozenset(
    {"DISK-3", "DISK-19", "DISK-20", "DISK-26", "DISK-33", "DISK-39", "DISK-40", "DISK-41"}
    | {"LOAD-1"}
)
SMALL_FILE = re.compile(r"leader-epoch-checkpoint|partition\.metadata|[0-9]+\.snapshot")
ENTRY_SIZES = {".log": 1, ".index": 8, ".timeindex": 12}
MODULES = (offset_index, time_index, transaction_index)
"""Importing them enters their laws into the register."""


class Judge:
    """What the model says of one directory, law by law."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.directory = Directory(tuple(sorted(files.items())))
        self._files = files
        named = [match for match in map(disk.SEGMENT_NAME.fullmatch, files) if match is not None]
        self._bases = sorted({int(match[1]) for match in named})
        self._snapshots = {
            offset: data
            for name, data in sorted(files.items())
            if name.endswith(".snapshot") and isinstance(offset := offset_of_name(name), int)
        }
        self._logs = [each for each in self._bases if segment_file_name(each, ".log") in files]

    def breaks(self, law_id: str) -> bool:
        """Return whether the directory breaks a law that can be judged."""
        if law_id in DIRECTORY_LAWS:
            return not LAWS[law_id].predicate(self.directory)
        if law_id in LOG_LAWS:
            return not LOG_LAWS[law_id](self)
        if law_id == "DISK-12":
            pairs = [
                (self._read(base, ".log"), self._read(base, ".txnindex")) for base in self._bases
            ]
            return not disk.abort_marker_has_its_entry(pairs, CODECS)
        return not all(self._segment_holds(law_id, base) for base in self._bases)

    def broken(self) -> list[str]:
        """Return the laws that the directory breaks, of those that make a defect."""
        of_kafka = {law for law in VERIFIED_LAWS if not law.startswith("RMQ")}
        return [law for law in sorted(of_kafka - NOT_JUDGED - ONLY_NOTES) if self.breaks(law)]

    def _read(self, base_offset: int, suffix: str) -> bytes:
        return self._files.get(segment_file_name(base_offset, suffix), b"")

    # --- the whole log

    @property
    def logs(self) -> list[bytes]:
        """The logs of all segments, in order."""
        return [self._read(base, ".log") for base in self._logs]

    @property
    def end_offset(self) -> int:
        """The offset behind the last batch that can be read."""
        offsets = [self._logs[-1]] if self._logs else [0]
        for log in self.logs[-1:]:
            last = (disk.number(one.last_offset) for one in disk.valid_batches(log))
            offsets += [each + 1 for each in last]
        return max(offsets)

    @property
    def checkpoint(self) -> bytes | None:
        """The bytes of `leader-epoch-checkpoint`, if there is one."""
        return self._files.get("leader-epoch-checkpoint")

    def epochs_rise(self) -> bool:
        """Return whether the entries of the leader epoch checkpoint, if readable, rise."""
        entries = read_checkpoint(self.checkpoint or b"", epoch_of)
        return isinstance(entries, Raised) or disk_log.epochs_rise(entries)

    def checkpoint_is_read(self, kind: ErrorKind) -> bool:
        """Return whether reading the leader epoch checkpoint ends without that error."""
        return read_checkpoint(self.checkpoint or b"", epoch_of) != Raised(kind)

    def metadata_is_read(self) -> bool:
        """Return whether `partition.metadata`, if there, is readable."""
        data = self._files.get("partition.metadata")
        return data is None or not isinstance(read_partition_metadata(data), Raised)

    def snapshots_are_read(self) -> bool:
        """Return whether all snapshots are readable."""
        return not any(isinstance(read_snapshot(data), Raised) for data in self._snapshots.values())

    def snapshots_know(self) -> bool:
        """Return whether no snapshot speaks of an offset behind it."""
        return all(
            disk_log.snapshot_knows_what_is_before_it(data, offset)
            for offset, data in self._snapshots.items()
        )

    def snapshots_agree(self) -> bool:
        """Return whether all snapshots in the log are as it says."""
        start = self._logs[0] if self._logs else 0
        return all(
            disk_log.snapshot_is_as_the_log_says(
                self.logs,
                start,
                disk_log.is_whole_before(self.logs, self._logs, offset),
                disk_log.is_read_before(self.logs, self._logs, offset),
                data,
                offset,
                CODECS,
            )
            for offset, data in self._snapshots.items()
            if start < offset <= self.end_offset
        )

    def snapshots_are_inside(self) -> bool:
        """Return whether no snapshot is behind the end of the log."""
        return disk_log.snapshots_are_of_offsets_in_the_log(self._snapshots, self.end_offset)

    def _segment_holds(self, law_id: str, base: int) -> bool:
        following = next((other for other in self._logs if other > base), None)
        log, index = self._read(base, ".log"), self._read(base, ".index")
        times, aborted = self._read(base, ".timeindex"), self._read(base, ".txnindex")
        whole = index[: len(index) // 8 * 8]
        holds: dict[str, Callable[[], bool]] = {
            "OFFIDX-1": lambda: LAWS["OFFIDX-1"].predicate(index, base),
            "OFFIDX-2": lambda: LAWS["OFFIDX-2"].predicate(index, base),
            "TIMEIDX-1": lambda: LAWS["TIMEIDX-1"].predicate(times, base),
            "TIMEIDX-7": lambda: LAWS["TIMEIDX-7"].predicate(times, base),
            "TXNIDX-1": lambda: LAWS["TXNIDX-1"].predicate(aborted, base),
            "SEG-7": lambda: disk.entry_points_at_batch(log, whole, base),
            "LOG-4": lambda: following is None or disk.segments_do_not_overlap(log, following),
            "DUMP-6": lambda: disk.log_ends_with_a_batch(log),
            "SCAN-2": lambda: disk.log_ends_with_a_batch(log),
            "SCAN-10": lambda: disk.log_ends_with_a_batch(log),
            "DISK-6": lambda: all(
                disk.closed_file_has_no_zero_tail(self._read(base, suffix), size, True)
                for suffix, size in ENTRY_SIZES.items()
            ),
            "DISK-8": lambda: disk.positions_strictly_increase(whole),
            "DISK-9": lambda: disk.entry_tells_largest_timestamp(log, times, base),
            "DISK-10": lambda: (
                following is None or disk.closed_segment_tells_its_largest_timestamp(log, times)
            ),
            "DISK-11": lambda: disk.aborted_transaction_has_its_marker(log, aborted, CODECS),
            "DISK-13": lambda: disk.batch_offsets_rise_within_segment(log, base),
            "DISK-14": lambda: disk.count_fits_the_offsets(log),
            "DISK-15": lambda: disk.unused_attribute_bits_are_zero(log),
            "DISK-16": lambda: disk.record_offsets_rise_within_batch(log, CODECS),
            "DISK-17": lambda: disk.max_timestamp_is_the_largest(log, CODECS),
            "DISK-19": lambda: disk.offsets_have_no_gaps(log, base, following),
            "DISK-21": lambda: disk.aborted_transactions_are_in_range(aborted, base),
            "DISK-22": lambda: disk.time_entries_are_in_range(times, base),
            "DISK-23": lambda: disk.magic_is_known(log),
            "DISK-24": lambda: (
                segment_file_name(base, ".index") not in self._files
                or disk.offset_index_goes_on_with_its_log(log, index, times, base)
            ),
            "DISK-25": lambda: disk.no_offsets_are_lost_between_segments(log, following, CODECS),
            "BATCH-2": lambda: _checksums_are_right(log, is_legacy=True),
            "BATCH-3": lambda: _checksums_are_right(log, is_legacy=False),
            "BATCH-14": lambda: _checksums_are_right(log, is_legacy=False),
            "BATCH-19": lambda: _controls_are_right(log),
        }
        if law_id in RECORD_LAWS:
            return all(map(_records_are_right, disk.valid_batches(log, CODECS)))
        return holds[law_id]()


LOG_LAWS: dict[str, Callable[[Judge], bool]] = {
    "DISK-28": lambda judge: disk_log.leader_epochs_never_fall(judge.logs),
    "DISK-29": lambda judge: disk_log.producer_epochs_never_fall(judge.logs),
    "DISK-30": lambda judge: disk_log.sequence_numbers_do_not_come_again(judge.logs),
    "DISK-31": lambda judge: disk_log.sequence_numbers_go_on(judge.logs),
    "DISK-32": lambda judge: disk_log.every_transaction_has_ended(judge.logs, CODECS),
    "DISK-33": lambda judge: disk_log.every_marker_ends_a_transaction(judge.logs, CODECS),
    "DISK-34": lambda judge: disk_log.coordinator_epochs_never_fall(judge.logs, CODECS),
    "DISK-44": lambda judge: disk_log.batches_stay_in_their_transaction(judge.logs),
    "DISK-35": Judge.snapshots_know,
    "DISK-36": Judge.snapshots_are_inside,
    "DISK-37": lambda judge: (
        judge.checkpoint is None
        or disk_log.checkpoint_tells_the_epochs(judge.logs, judge.checkpoint)
    ),
    "PROD-3": Judge.snapshots_are_read,
    "PROD-14": Judge.snapshots_agree,
    "CKPT-3": lambda judge: judge.checkpoint_is_read(ErrorKind.IO_ERROR),
    "CKPT-4": lambda judge: judge.checkpoint_is_read(ErrorKind.NUMBER_FORMAT),
    "EPOCH-1": Judge.epochs_rise,
    "META-2": Judge.metadata_is_read,
}
"""The laws that take the whole log, or a small file beside it."""


def _checksums_are_right(log: bytes, is_legacy: bool) -> bool:
    batches = [batch for batch in disk.batches_of(log) if batch.is_legacy is is_legacy]
    return all(batch.is_valid() is True for batch in batches)


def _records_are_right(batch: RecordBatch) -> bool:
    records = batch.records()
    if isinstance(records, Raised) or (batch.record_count == 0 and batch.size_bytes != 61):
        return False
    offsets = [record.offset for record in records]
    rise = offsets == sorted(set(offsets))
    return not batch.is_legacy or (rise and offsets[-1] == batch.last_offset)


def _controls_are_right(log: bytes) -> bool:
    for batch in disk.valid_batches(log, CODECS):
        kind = disk.control_type(batch) if batch.is_control else None
        if isinstance(kind, Raised):
            return False
        if kind in ("ABORT", "COMMIT"):
            record = batch.records_until_error().records[0]
            if batch.record_count != 1 or isinstance(end_transaction_marker(record), Raised):
                return False
    return True


def partitions_below(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the directories at or below `path` that hold a log."""
    for folder, _, names in os.walk(path):
        if any(name.endswith(".log") for name in names):
            yield Path(folder)


def contents_of(path: Path) -> bytes:
    """Return the bytes of a regular file. Raises OSError, for a named pipe too."""
    file = REAL_FILES.open(os.fspath(path))
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def disagreements(directory: Path) -> Iterator[Finding]:
    """Yield a finding for each law on which `verify` and the model part.

    A law that is reported must be broken; where no defect is reported, every law must hold.
    Raises: OSError; ValueError for a directory above LIMIT_BYTES; TooLargeError for a batch above
    BATCH_LIMIT_BYTES.
    """
    paths = [Path(file.path) for file in segment_files(os.fspath(directory))]
    paths += [path for path in directory.iterdir() if SMALL_FILE.fullmatch(path.name)]
    size = sum(path.stat().st_size for path in paths)
    if size > LIMIT_BYTES:
        raise ValueError(
            f"{directory}: {size} bytes are more than the model is given, {LIMIT_BYTES}"
        )
    judge = Judge({path.name: contents_of(path) for path in paths})
    findings = list(verify(directory, deep=True))
    found = {each.law for each in findings}
    with limited(os.fspath(directory)):
        for law_id in sorted({each.law for each in findings if each.is_defect} - NOT_JUDGED):
            if not judge.breaks(law_id):
                yield disagreement(law_id, directory, reported=True)
        if any(each.is_defect for each in findings):
            return
        for law_id in judge.broken():
            if law_id not in found:
                yield disagreement(law_id, directory, reported=False)


def disagreement(law_id: str, directory: Path, *, reported: bool) -> Finding:
    """Return the finding that `verify` and the model part on a law."""
    says = "broken" if reported else "not broken"
    return Finding(
        law_id,
        Severity.ERROR,
        LAWS[law_id].structure,
        os.fspath(directory),
        None,
        "not broken" if reported else "broken",
        says,
        f"verify calls this law {says}, and the model's predicate says otherwise",
        "keep the files and report a defect of segproof",
        f"segproof verify {directory} --deep --against model",
    )
