# SPDX-License-Identifier: Apache-2.0
"""Building the index files of one segment beside the places where they shall be.

The entries are those of a recovery of the segment; nothing is cut, and a log whose valid batches
end before its last byte is a finding.

Upstream: Kafka 4.3.1: LogSegment.recover.
Laws: SEG-20 to SEG-24, SEG-30.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

from segproof.errors import IndexFullError, InvalidArgumentError, SegproofError
from segproof.files import SharedFiles
from segproof.findings import Finding
from segproof.integers import INT32_MAX, INT64_MAX
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BatchTable
from segproof.kafka.offset_index import OffsetIndex
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record_file import RecordFile
from segproof.kafka.segment_names import segment_file_name
from segproof.kafka.segments.segment_recovery import SegmentRecovery
from segproof.kafka.time_index import TimeIndex
from segproof.kafka.transaction_index import TransactionIndex
from segproof.reading.equal_files import is_as_long, is_same, starts_with
from segproof.reading.offset_entries import entries_in
from segproof.rebuilding.broken_logs import finding_of
from segproof.rebuilding.dry_files import DryFiles
from segproof.rebuilding.intervals import IntervalBounds
from segproof.rebuilding.judged_indexes import ASKED, INDEX_SUFFIXES, KEPT, Defect, Verify
from segproof.rebuilding.kept_files import backup_of, copy_bytes
from segproof.rebuilding.old_indexes import old_entries, old_positions
from segproof.rebuilding.partition_files import BESIDE
from segproof.rebuilding.safe_places import log_changed
from segproof.rebuilding.transactions import Transactions
from segproof.stretches.kafka.framing import LogSource
from segproof.stretches.kafka.in_place import place_log

IntervalSource = Literal["given", "old index", "other segments", "default"]
TWO_TIME_ENTRIES = 24
PASSES = 2
"""How often each log is read: to judge the old files, and to build new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How partitions are rebuilt; see `rebuild`. Small and plain: it travels to processes."""

    in_place: bool = False
    index_interval_bytes: int | None = None
    max_index_bytes: int = 10485760
    index_key: Literal["last_offset", "first_offset"] = "last_offset"
    cut_tail: bool = False
    copy: bool = False
    all_files: bool = False
    dry_run: bool = False
    backup: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether sound files are made new too: what says how entries are made is for all."""
        is_told = self.index_interval_bytes is not None or self.index_key == "first_offset"
        return self.all_files or is_told

    def check(self, out: object, jobs: int) -> None:
        """Return if the options go together. Raises: InvalidArgumentError."""
        in_place = self.in_place or (self.dry_run and out is None)
        if (out is None) != in_place:
            raise InvalidArgumentError("give either a new directory or in_place")
        if in_place and (self.cut_tail or self.copy):
            raise InvalidArgumentError(
                "in place no log is cut or copied: only a new directory takes cut_tail and copy"
            )
        if self.backup is not None and not in_place:
            raise InvalidArgumentError("only in place old files are replaced, and kept in a backup")
        interval = self.index_interval_bytes
        if not 0 <= (interval or 0) <= INT32_MAX:
            raise InvalidArgumentError(
                f"an index interval is 0 to {INT32_MAX} bytes", actual=interval
            )
        if not TWO_TIME_ENTRIES <= self.max_index_bytes <= INT32_MAX:
            raise InvalidArgumentError(
                f"an index has {TWO_TIME_ENTRIES} to {INT32_MAX} bytes",
                actual=self.max_index_bytes,
            )
        if jobs < 1:
            raise InvalidArgumentError("jobs must be 1 or more", actual=jobs)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of all segments."""

    options: Options
    target: str
    """The directory of the new files."""
    index_interval_bytes: int
    """The interval where the old index of a segment does not tell another one."""
    interval_source: IntervalSource
    verify: Verify


@dataclass(frozen=True, slots=True)
class RebuiltFile:
    """One index file: made new, or kept as it is."""

    path: str
    entries: int
    """After the rebuild."""
    old_entries: int | None
    """None where there was no sound old file; zeros at its end count as none."""
    changed: bool
    """Whether a byte differs from the old file. A dry run: whether one would."""
    index_interval_bytes: int | None
    """The interval that decided which batches have an entry; None where the old entries stay."""
    interval_from: IntervalSource | None
    """Who said so: `given`, `old index` (of this segment), `other segments`, `default`; None for a
    file that is kept."""
    law: str | None = None
    """The law that the old file breaks; None for a file that is kept, and where all are built."""
    why: str = KEPT
    """Why the file was made new, or kept, in words."""
    backup: str | None = None
    """Where the old file is kept; None without an old file, without a backup, and if it stays."""
    was_there: bool = True
    """Whether there was an old file, sound or not."""

    @property
    def is_kept(self) -> bool:
        """Whether the old file stays, since it is sound."""
        return self.why == KEPT


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """The indexes of a segment, whole and durable beside their places; or why there are none."""

    segment: Segment
    indexes: tuple[RebuiltFile, ...]
    valid_bytes: int
    """Where the log's batches end."""
    end_offset: int
    """The offset behind the last of them."""
    finding: Finding | None = None

    @property
    def is_cut(self) -> bool:
        """Whether something follows the log's batches."""
        return self.valid_bytes < self.segment.log_bytes


def keep_segment(segment: Segment, wanted: Wanted, files: SharedFiles) -> BuiltSegment:
    """Return a segment whose index files are all sound and stay as they are."""
    kept = tuple(
        _kept(segment, suffix, wanted, files)
        for suffix in INDEX_SUFFIXES
        if suffix in segment.suffixes
    )
    return BuiltSegment(segment, kept, segment.log_bytes, segment.base_offset)


def _kept(segment: Segment, suffix: str, wanted: Wanted, files: SharedFiles) -> RebuiltFile:
    count = old_entries(segment, suffix, files)
    path = os.path.join(wanted.target, segment_file_name(segment.base_offset, suffix))
    return RebuiltFile(path, count or 0, count, False, None, None)


def build_segment(
    segment: Segment,
    wanted: Wanted,
    defects: Mapping[str, Defect] | None,
    producers: ProducerStateManager,
    files: SharedFiles,
    on_bytes: Callable[[int], None],
) -> BuiltSegment:
    """Read the log once, twice only where its old index tells an interval of its own.

    `defects` says which files are wrong, by suffix: the others stay as they are. None: all files
    are made new. `producers` is the producer state at the base, and that at the end afterwards.
    Raises: InvalidArgumentError for an index that is too small; OSError.
    """
    with ExitStack() as opened:
        if wanted.options.dry_run:
            files = opened.enter_context(closing(DryFiles(files, in_memory=True)))
        log = opened.enter_context(RecordFile.open(segment.path(".log"), files=files))
        if log.size_in_bytes() != segment.log_bytes:
            raise log_changed(log.name)
        build = _Build(segment, wanted, defects, log, files, on_bytes)
        return opened.enter_context(closing(build)).run(producers)


class _Build:
    """The three new files of one segment, open."""

    def __init__(
        self,
        segment: Segment,
        wanted: Wanted,
        defects: Mapping[str, Defect] | None,
        log: RecordFile,
        files: SharedFiles,
        on_bytes: Callable[[int], None],
    ) -> None:
        self._segment = segment
        self._wanted, self._options = wanted, wanted.options
        self._defects = defects
        self._log = log
        self._files = files
        self._on_bytes = on_bytes
        self._bytes_told = 0
        self._end_offset = segment.base_offset
        self._end_position = 0
        # An index is reserved whole; each entry is of a batch, which has more bytes than it.
        most = wanted.options.max_index_bytes
        base, room = segment.base_offset, min(most, log.size_in_bytes() + TWO_TIME_ENTRIES)
        for suffix in (".index", ".timeindex", ".txnindex"):
            files.remove(self._beside(suffix))
        self._txn_index = TransactionIndex(
            base, self._beside(".txnindex"), create=True, files=files
        )
        self._offset_index = OffsetIndex(
            self._beside(".index"), base, room, create=True, files=files
        )
        try:
            self._time_index = TimeIndex(
                self._beside(".timeindex"), base, room, create=True, files=files
            )
        except BaseException:
            self._offset_index.close_handler()
            raise

    def close(self) -> None:
        """Close the files as they are."""
        self._offset_index.close_handler()
        self._time_index.close_handler()
        self._txn_index.close()

    def _beside(self, suffix: str) -> str:
        return os.path.join(
            self._wanted.target, segment_file_name(self._segment.base_offset, suffix) + BESIDE
        )

    def run(self, producers: ProducerStateManager) -> BuiltSegment:
        """Build all, and tell how; see `build_segment`."""
        wanted = self._wanted
        interval, source = wanted.index_interval_bytes, wanted.interval_source
        positions = None if source == "given" else old_positions(self._segment, self._files)
        bounds = None if positions is None else IntervalBounds(positions)
        transactions = Transactions(self._log.file, producers, self._txn_index)

        def take(table: BatchTable) -> None:
            transactions.add(table)
            if bounds is not None:
                bounds.add(table)
            self._tell(table)

        valid_bytes, error = self._recover(interval, take)
        if bounds is not None and bounds.is_known:
            source = "old index"
            if not bounds.has(interval):
                interval = bounds.choose()
                valid_bytes, error = self._recover(interval, None)
        self._end_position = valid_bytes
        finding, indexes = self._judge(valid_bytes, error), list[RebuiltFile]()
        if finding is None:
            self._finish()
            indexes += self._indexes(interval, source)
        segment, end_offset = self._segment, self._end_offset
        return BuiltSegment(segment, tuple(indexes), valid_bytes, end_offset, finding)

    def _tell(self, table: BatchTable) -> None:
        done = int(table["position"][-1] + table["size_bytes"][-1])
        self._on_bytes(done - self._bytes_told)
        self._bytes_told = done
        self._end_offset = int(table["last_offset"][-1]) + 1

    def _recover(
        self, interval: int, take: Callable[[BatchTable], None] | None
    ) -> tuple[int, SegproofError | None]:
        """Fill both indexes; return where the valid batches end, and what ended them."""
        self._offset_index.reset()
        self._time_index.reset()
        recovery = SegmentRecovery(
            self._log,
            self._offset_index,
            self._time_index,
            self._txn_index,
            interval,
            is_first_offset_key=self._options.index_key == "first_offset",
            producer_state_manager=None,
            leader_epoch_cache=None,
            torn_from=INT64_MAX,
            on_batches=take,
        )
        try:
            recovery.run()
            self._time_index.maybe_append(*recovery.max_pair, True)
        except IndexFullError as full:
            raise InvalidArgumentError(
                f"an index of {self._options.max_index_bytes} bytes does not hold the entries of"
                f" this log, one for each {interval} bytes",
                law=full.law,
                path=self._log.name,
                hint="give more bytes for an index, or a larger interval",
            ) from full
        except SegproofError as error:
            return recovery.valid_bytes, error
        return recovery.valid_bytes, None

    def _judge(self, valid_bytes: int, error: SegproofError | None) -> Finding | None:
        """Return what is wrong with the log, if its tail may not just be left out."""
        size = self._log.size_in_bytes()
        if error is None and valid_bytes == size:
            return None
        is_last = error is None and self._segment.next_base_offset is None
        may_cut = is_last and self._is_torn_from(valid_bytes)
        if may_cut and self._options.cut_tail:
            return None
        verify = partial(self._wanted.verify, files=self._files)
        return finding_of(self._segment, valid_bytes, error, verify, may_cut=may_cut)

    def _is_torn_from(self, position: int) -> bool:
        """Return whether all batches before a byte of the log stay there, and none lies after it.

        The log is placed by itself: it is the last one, and what lies in others changes nothing of
        that.
        """
        path, base = self._segment.path(".log"), self._segment.base_offset
        placed = place_log(
            LogSource(
                base, None, partial(self._files.open, path),
                lambda: entries_in(self._segment.path(".index"), base, self._files),
            )
        )  # fmt: skip
        return placed.odd_from() == position and placed.is_broken_from(position)

    def _finish(self) -> None:
        """Trim the files and make them durable."""
        if ".txnindex" in self._segment.suffixes:
            created = self._files.create_new(self._beside(".txnindex"))
            if created is not None:
                created.close()
        self._offset_index.close()
        self._time_index.close()
        self._txn_index.close()
        for suffix in INDEX_SUFFIXES:
            path = self._beside(suffix)
            if self._files.status(path) is None:
                continue
            self._trim_old(suffix)
            self._take_access(path)
            # It may be for reading only now, as the log is.
            with closing(self._files.open(path)) as file:
                file.sync()

    def _trim_old(self, suffix: str) -> None:
        """Take the entries of the old file where only the zeros behind them are wrong."""
        defect = self._defect(suffix)
        if defect is None or defect.kept_bytes is None:
            return
        with (
            closing(self._files.open(self._segment.path(suffix))) as old,
            closing(self._files.open(self._beside(suffix), writable=True)) as new,
        ):
            new.truncate(0)
            copy_bytes(old, 0, defect.kept_bytes, new, 0)

    def _take_access(self, path: str) -> None:
        try:
            self._files.take_access(path, self._log.name)
        except PermissionError:
            # In its own directory a new file may be the user's; in the broker's it must not be.
            if self._wanted.target == self._segment.directory:
                raise

    def _indexes(self, interval: int, source: IntervalSource) -> Iterator[RebuiltFile]:
        entries = {
            ".index": self._offset_index.entries,
            ".timeindex": self._time_index.entries,
        }
        status = self._files.status(self._beside(".txnindex"))
        if status is not None or ".txnindex" in self._segment.suffixes:
            size_bytes = 0 if status is None else status.size_bytes
            entries[".txnindex"] = size_bytes // TransactionIndex.ENTRY_SIZE
        for suffix, count in entries.items():
            defect = self._defect(suffix)
            if defect is None:
                self._files.remove(self._beside(suffix))
                if suffix in self._segment.suffixes:
                    yield _kept(self._segment, suffix, self._wanted, self._files)
                continue
            old = self._segment.path(suffix)
            is_same_as_old = False
            with suppress(OSError):  # what can't be read is no old file
                is_same_as_old = is_same(old, self._beside(suffix), self._files)
            path = os.path.join(
                self._wanted.target, segment_file_name(self._segment.base_offset, suffix)
            )
            before = old_entries(self._segment, suffix, self._files)
            kept = None
            if self._options.backup is not None and not is_same_as_old:
                kept = backup_of(old, self._options.backup)
            if suffix not in self._segment.suffixes:
                kept = None
            law, why, kept_bytes = defect
            if kept_bytes is not None:
                yield RebuiltFile(
                    path, before or 0, before, True, None, "old index", law, why, kept
                )
                continue
            yield RebuiltFile(
                path,
                count,
                before,
                not is_same_as_old,
                interval,
                source,
                law,
                why,
                kept,
                suffix in self._segment.suffixes,
            )

    def _defect(self, suffix: str) -> Defect | None:
        """Return why a file is made new; None if it is kept."""
        if self._defects is None:
            return Defect(None, ASKED)
        if self._end_position < self._segment.log_bytes:
            found = self._defects.get(suffix, Defect(None, "the log is cut"))
            return found._replace(kept_bytes=None)
        return self._defects.get(suffix) or self._cut_short(suffix)

    def _cut_short(self, suffix: str) -> Defect | None:
        """Return a defect if an offset index lacks the last of the entries that are made again.

        Without a sound time index beside it nothing else shows that.
        """
        old, new = self._segment.path(suffix), self._beside(suffix)
        if suffix != ".index" or is_as_long(old, new, self._files):
            return None
        if not starts_with(new, old, self._files):
            return None
        return Defect("DISK-24", "it has only the first of the entries: it was cut short")
