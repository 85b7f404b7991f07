# SPDX-License-Identifier: Apache-2.0
"""Verify what only the whole log of a partition shows: producers, epochs, snapshots, checkpoints.

Each segment hands on what it saw; here this is joined in order, and compared with the small files.
If the files of the partition have changed since they were listed, a defect is reported only if a
second look at the whole partition finds it too.

Upstream: Kafka since 0.11.0: LogManager, LogLoader, UnifiedLog, ProducerStateManager.
Laws: DISK-28 to DISK-34, DISK-36 to DISK-38, DISK-43, DISK-44, DISK-62 to DISK-65, DISK-71;
PROD-14, and those of small_files.
Not covered: what is before the first batch of a log, and behind batches that can't be read.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace

from segproof.files import Files
from segproof.findings import Finding, Severity
from segproof.hints import changes, reads, writes
from segproof.integers import INT64_MAX
from segproof.inventory.partitions import Partition, partition_again
from segproof.inventory.segment_listing import ALL_FILES, Listings
from segproof.inventory.segments import Segment
from segproof.inventory.told_ends import (
    AGREED,
    IF_NAMED_RIGHT,
    exchanged_with,
    hint_of_exchanged,
    is_end_agreed,
    told_offset,
    words_of_exchanged,
)
from segproof.kafka.producer_snapshot import ProducerStateEntry
from segproof.reading.file_names import (
    CLEANER,
    EPOCHS,
    HIGH_WATERMARK,
    RECOVERY,
    SNAPSHOT_SUFFIX,
    START,
    read_file_name,
)
from segproof.reading.index_origins import is_of_other_index
from segproof.reading.live_writer import STEP_PAUSES_SECONDS, wait_for_a_step
from segproof.reading.log_order import NamedLog
from segproof.reading.packed_segments import with_unpacked
from segproof.verifying.dense_logs import DenseLog
from segproof.verifying.epoch_checks import (
    check_against_checkpoint,
    check_end_of_checkpoint,
    compare_epochs,
)
from segproof.verifying.open_at_gaps import LogEnd, OpenAtGaps
from segproof.verifying.producer_checks import (
    PRODUCERS_MAX,
    compare_producers,
    has_numbers,
    join_producers,
)
from segproof.verifying.segment_carry import (
    Cut,
    EpochRun,
    LogCarry,
    ProducerTable,
    empty_table,
)
from segproof.verifying.segment_verification import SteadyCheck, is_vanished, key_of
from segproof.verifying.small_files import PARTITION, check_epochs, check_producers
from segproof.verifying.snapshot_checks import KnownProducers, check_snapshot
from segproof.verifying.swapped_names import NamedRange, check_names
from segproof.verifying.transaction_checks import CarriedTransactions
from segproof.wording.reporting import PathReporter, Reporter, Wanted
from segproof.wording.rules import declare
from segproof.wording.segment_files import hint_of

declare("partition-log", Severity.WARNING,
    writes("copy this file away before the broker's next start removes it, and compare the end of"
    " the log with another replica"), "DISK-36")  # fmt: skip
declare("partition-log", Severity.WARNING,
    reads("compare the end of the log with another replica"), "DISK-38")  # fmt: skip
declare("partition-log", Severity.WARNING,
    reads("nothing, if this partition never had a record: a broker that is killed while it makes a"
    " partition leaves such a folder. Else look for its logs in the other log directories, in"
    " lost+found (verify of that folder tells which logs are in it) and on another replica, before"
    " a broker starts here"), "DISK-71")  # fmt: skip
declare("partition-log", Severity.ERROR,
    changes("correct the line of this partition in the checkpoint to the offset at which its log"
    " begins", only_if="other replicas have records below the offset in the checkpoint",
    if_wrong="consumers get records again that kafka-delete-records.sh has deleted",
    copy_step="copy the directory away before a broker starts here"), "DISK-43")  # fmt: skip

RUNS_MAX = 1 << 16
"""Stretches of batches of one leader epoch that are compared with the checkpoint."""
OF_ONE_STEP = frozenset({"DISK-32", "DISK-36", "DISK-37", "DISK-64"})
"""Laws that are broken while a broker is truncating: the log is cut first, the small files then.
One that appends puts new leader epochs into their file before the batches into the log. A
transaction counts as one without its marker (DISK-32) where such a file, or a batch that is being
written, shows a lost end."""


class PartitionCheck:
    """Verifies one partition: `add` its segments in order, then `finish` returns the findings."""

    def __init__(self, partition: Partition, wanted: Wanted, files: Files) -> None:
        self._partition = partition
        self._wanted = wanted
        self._files = with_unpacked(files)
        self._log = _joined(partition, wanted, self._files)
        self._segments: list[Segment] = []

    def add(self, segment: Segment, carry: LogCarry) -> None:
        """Take the next segment, with what its files were when it was checked."""
        self._segments.append(segment)
        self._log.add(segment, carry)

    def finish(self) -> list[Finding]:
        """Return the findings; look at the partition again where needed."""
        self._partition = replace(self._partition, segments=tuple(self._segments))
        found = self._without_removed(self._log.finish())
        for number, pause in enumerate(STEP_PAUSES_SECONDS):
            if not any(one.is_defect for one in found):
                break
            was_changed = number == 0 and not self._partition.is_unchanged(self._files)
            may_be_a_step = any(one.law in OF_ONE_STEP for one in found) and self._wait(pause)
            if not (was_changed or may_be_a_step):
                break
            known = {key_of(one) for one in found}
            again = self._without_removed(list(self._next_look()))
            found = [one for one in again if not one.is_defect or key_of(one) in known]
        return found

    def _wait(self, pause_seconds: float) -> bool:
        """Wait so long if the log was changed a moment ago; return whether it was."""
        paths = [self._partition.directory]
        paths += [segment.path(".log") for segment in self._partition.segments[-1:]]
        return wait_for_a_step(paths, self._files, pause_seconds)

    def _without_removed(self, found: list[Finding]) -> list[Finding]:
        """Return what was found but of small files that were removed since they were listed."""
        if not any(is_vanished(one) for one in found):
            return found
        try:
            names = self._files.list_directory(self._partition.directory)
        except OSError:
            return found
        there = {self._partition.path(name) for name in names}
        return [one for one in found if not is_vanished(one) or one.path in there]

    def _next_look(self) -> Iterator[Finding]:
        try:
            partition = partition_again(self._partition, self._files)
        except OSError:
            return
        log = _joined(partition, self._wanted, self._files)
        first = self._segments[0].base_offset if self._segments else 0
        listings = Listings(self._files)
        for segment in partition.segments:
            if segment.base_offset < first:
                continue  # older than what is to be checked
            steady = SteadyCheck(segment, self._wanted, self._files, listings=listings)
            for _ in steady.run():
                pass
            log.add(segment, steady.carry)
        yield from log.finish()


def _joined(partition: Partition, wanted: Wanted, files: Files) -> "_JoinedLog | _RemoteLogs":
    is_remote = any(segment.stem for segment in partition.segments)
    return (_RemoteLogs if is_remote else _JoinedLog)(partition, wanted, files)


class _RemoteLogs:
    """What each segment of a directory of tiered storage says, by itself."""

    def __init__(self, partition: Partition, wanted: Wanted, files: Files) -> None:
        self._partition = partition
        self._wanted = wanted
        self._files = files
        self._found: list[Finding] = []

    def add(self, segment: Segment, carry: LogCarry) -> None:
        """Judge a segment, with its producer snapshot and its checkpoint of leader epochs."""
        own = replace(self._partition, segments=(segment,), others=())
        log = _JoinedLog(own, self._wanted, self._files)
        log.add(segment, carry)
        end = carry.end_offset if carry.is_read else None
        for name in self._partition.others:
            if name.startswith(f"{segment.stem}."):
                log.take_small_file(name, INT64_MAX if end is None else end)
        self._found += log.finish()

    def finish(self) -> list[Finding]:
        """Return the findings."""
        return self._found


class _JoinedLog:
    """What the segments of a partition say together."""

    def __init__(self, partition: Partition, wanted: Wanted, files: Files) -> None:
        self._partition = partition
        self._files = files
        self._reporter = Reporter(wanted, hint=next((hint_of(o) for o in partition.segments), None))
        self._directory = partition.directory
        self._is_remote = any(segment.stem for segment in partition.segments)
        self._transactions = CarriedTransactions(
            self._directory, self._reporter, is_whole=not self._is_remote
        )
        self._has_numbers = has_numbers(self._directory)
        self._producers = empty_table()
        self._left_out = 0
        self._missing = 0
        self._unread = 0
        self._runs: list[tuple[str, EpochRun]] = []
        self._last_run: EpochRun | None = None
        self._start_offset: int | None = None
        empty_end = 0 if partition.lacks_log else None
        self._end_offset: int | None = empty_end
        self._is_read = True
        self._reached: int | None = empty_end
        """The offset after the last sound batch, also one after damage; None if the last log was
        not read."""
        self._is_end_damaged = self._is_pointed_beyond = False
        self._is_whole = all(segment.judged == ALL_FILES for segment in partition.segments)
        names = ((name, read_file_name(name)) for name in partition.others)
        strangers = {one.base_offset for one in partition.segments if one.overlap}
        self._snapshot_names = {
            known.base_offset: name
            for name, known in names
            if known.suffix == SNAPSHOT_SUFFIX and known.base_offset not in strangers
        }
        self._snapshots = sorted(self._snapshot_names)
        self._epochs = EPOCHS if EPOCHS in partition.others else None
        self._last_start = 0
        """Where the last leader epoch begins, as the checkpoint says."""
        self._ranges: list[NamedRange | None] = []
        self._dense = DenseLog(partition, self._snapshots, files)
        self._at_gaps = OpenAtGaps(self._directory, self._reporter)
        self._last_log: tuple[str, int] | None = None
        """The log before, and the byte after its last batch."""

    # --- one segment after the other

    def add(self, segment: Segment, carry: LogCarry) -> None:
        """Take the next segment."""
        if segment.held_by or segment.overlap:
            return  # the log has another name, or is none of the partition's
        self._take_range(segment, carry)
        self._dense.add(segment, carry)
        if carry.end_offset is None:
            # Without its log nothing is known of it.
            self._missing += 1
            self._unread += 1
            self._is_read, self._reached = False, None
            self._transactions.add(segment, carry.transactions)
            return
        if self._start_offset is None:
            self._start_offset = segment.base_offset
        elif self._end_offset is not None:
            self._missing += max(0, segment.base_offset - self._end_offset)
            self._check_snapshots(segment.base_offset)
            if self._end_offset < segment.base_offset and self._last_log is not None:
                gap = LogEnd(*self._last_log, self._end_offset, segment.base_offset - 1)
                self._at_gaps.take_gap(gap, self._transactions.open)
        path = segment.path(".log")
        compare_producers(
            self._producers, carry.producers, self._has_numbers, self._at(path), self._missing
        )  # fmt: skip
        for cut in carry.cuts:
            self._check_cut(cut)
        joined = join_producers(self._producers, carry.producers, self._missing)
        self._producers, self._left_out = joined[0], self._left_out + joined[1] + carry.left_out
        self._missing += carry.missing + (not carry.is_read)
        self._unread += carry.unread + (not carry.is_read)
        self._transactions.add(segment, carry.transactions)
        self._at_gaps.take(carry.transactions)
        self._last_log = path, carry.end_position
        if carry.is_gap_told:
            self._dense.lost.add(path)
        self._take_epochs(path, carry.runs)
        self._end_offset, self._is_read = carry.end_offset, carry.is_read
        damage = carry.damage
        self._is_end_damaged = damage is not None and damage.ends_broken
        self._reached = carry.end_offset
        if damage is not None and not carry.is_read:
            self._reached = max(carry.end_offset, damage.last_sound_offset + 1)
        self._is_pointed_beyond = carry.is_pointed_beyond

    def _take_range(self, segment: Segment, carry: LogCarry) -> None:
        if ".log" not in segment.suffixes or (carry.is_read and not carry.batches):
            return
        first, end, known = carry.first_offset, carry.end_offset, None
        if carry.is_read and carry.damage is None and first is not None and end is not None:
            known = NamedRange(segment.path(".log"), segment.base_offset, first, end)
        self._ranges.append(known)

    def _take_epochs(self, path: str, runs: list[EpochRun]) -> None:
        compare_epochs(self._last_run, runs, self._at(path))
        if runs:
            self._last_run = runs[-1]
        self._runs += [(path, run) for run in runs[: max(0, RUNS_MAX - len(self._runs))]]

    def _check_snapshots(self, base_offset: int) -> dict[int, int]:
        """Judge the snapshots up to where a segment begins, by all segments before it.

        Return where the transactions begin, by producer, that have ended by the last of them, and
        not by the log.
        """
        ended = dict[int, int]()
        while self._snapshots and self._snapshots[0] <= base_offset:
            offset = self._snapshots.pop(0)
            if self._end_offset is not None and self._end_offset <= offset:
                is_open = self._transactions.open
                known = self._known(self._producers, is_open, self._missing, self._unread)
                ended = check_snapshot(*self._snapshot(offset), known)
                self._at_gaps.told |= ended.items()
            else:
                self._snapshot(offset)  # before the log, or one of too many inside a segment
        return ended

    def _check_cut(self, cut: Cut) -> None:
        """Judge a snapshot inside the segment that is about to be joined."""
        while self._snapshots and self._snapshots[0] < cut.offset:
            self._snapshot(self._snapshots.pop(0))
        if not self._snapshots or self._snapshots[0] != cut.offset:
            return
        self._snapshots.pop(0)
        producers, left_out = join_producers(self._producers.copy(), cut.producers, self._missing)
        is_open = self._transactions.open_at(cut.opened, cut.closed)
        missing, unread = self._missing + cut.missing + left_out, self._unread + cut.unread
        known = self._known(producers, is_open, missing, unread)
        self._at_gaps.told |= check_snapshot(*self._snapshot(cut.offset), known).items()

    def _known(
        self, producers: ProducerTable, is_open: dict[int, int], missing: int, unread: int
    ) -> KnownProducers:
        start = self._start_offset or 0
        if unread:
            is_open = {}  # the markers may be among what can't be read
        is_whole = not missing and not self._left_out
        return KnownProducers(producers, is_open, start, is_whole)

    def _snapshot(self, offset: int) -> tuple[PathReporter, Sequence[ProducerStateEntry] | None]:
        """Return the entries of a snapshot, judged by itself, and what takes its findings."""
        path = self._partition.path(self._snapshot_names[offset])
        # Only the log of a remote segment tells which offset its snapshot is of.
        shown_by = self._directory if self._is_remote else path
        report = self._reporter.at(path, PARTITION, shown_by=shown_by)
        return self._at(path), check_producers(report, offset, self._files)

    def _at(self, path: str) -> PathReporter:
        """Return what takes findings that the whole partition shows."""
        return self._reporter.at(path, shown_by=self._directory)

    def take_small_file(self, name: str, end_offset: int) -> None:
        """Take the snapshot of the producers before an offset, or the checkpoint of epochs."""
        if name.endswith(SNAPSHOT_SUFFIX):
            self._snapshot_names[end_offset] = name
            self._snapshots.append(end_offset)
        else:
            self._epochs = name

    # --- the end

    def finish(self) -> list[Finding]:
        """Return the findings."""
        end = self._end_offset
        if not self._is_whole:
            return []  # a single file was given
        entries = None
        if self._epochs is not None:
            path = self._partition.path(self._epochs)
            entries = check_epochs(self._reporter.at(path, PARTITION), self._files)
        if entries and not self._is_remote:
            self._last_start = entries[-1].start_offset
        if self._partition.lacks_log:
            self._reporter.at(self._directory).add(
                "DISK-71",
                "no log is in the folder of this partition: at its next start Kafka makes an empty"
                " one, and if this broker becomes the leader, the other replicas cut theirs",
                expected="1 log or more",
                actual=0,
            )
        if end is not None:
            self._take_ends_elsewhere()
            ended = self._check_snapshots(end)
            self._transactions.finish(is_end_lost=self._is_end_lost(), ended=ended)
            if self._reached is not None:
                self._report_stray(self._reached)
                self._check_offsets(self._reached)
        for offset in self._snapshots:
            self._snapshot(offset)
        if not self._is_remote:
            names = self._partition, self._ranges, self._reporter, self._files
            if not check_names(*names):
                self._dense.report(self._reporter)
            self._at_gaps.report(self._dense.lost)
        if self._epochs is not None and entries is not None:
            path = self._partition.path(self._epochs)
            check_against_checkpoint(entries, self._runs, path, self._reporter, self._directory)
            if self._reached is not None and not self._is_remote:
                start = dict(self._partition.offsets).get(START, 0)
                told = max(self._reached, start), self._ends(self._reached), self._at(path)
                is_agreed = self._is_end_agreed
                check_end_of_checkpoint(entries, self._last_run, *told, is_agreed=is_agreed)
        if self._left_out:
            self._reporter.at(self._directory).add(
                "DISK-31",
                f"the log has more than {PRODUCERS_MAX} producers: the batches of the others were"
                " not compared with each other",
                expected=PRODUCERS_MAX,
                severity=Severity.NOTE,
                hint=reads(
                    "nothing: each producer takes memory, and these are as many as are followed"
                ),
            )
        return self._reporter.finish()

    def _take_ends_elsewhere(self) -> None:
        """Take the end of a log that has an earlier name than the index that was made of it."""
        for one in self._ranges:
            if one is None or self._reached is None or one.end <= self._reached:
                continue
            with suppress(OSError), closing(self._files.open(one.path)) as log:
                if is_of_other_index(log, NamedLog(one.path, one.base_offset), self._files):
                    self._reached = one.end

    def _is_end_lost(self) -> bool:
        """Return whether the log is damaged at its end, or a file shows that it was longer."""
        if self._reached is None or self._is_end_damaged or self._is_pointed_beyond:
            return True
        if self._is_end_agreed:
            return False
        told = dict(self._partition.offsets)
        known = [told.get(name, 0) for name in (RECOVERY, HIGH_WATERMARK, CLEANER)]
        known += [*self._snapshots, self._last_start]
        return max(known) > max(self._reached, told.get(START, 0))

    @property
    def _is_end_agreed(self) -> bool:
        """Whether the checkpoints of the data directory say that the log ends where it does."""
        return (
            self._is_end_whole
            and self._reached is not None
            and is_end_agreed(dict(self._partition.offsets), self._reached)
        )

    @property
    def _is_end_whole(self) -> bool:
        """Whether the log was read to a whole end, and no index leads beyond it."""
        return self._is_read and not self._is_end_damaged and not self._is_pointed_beyond

    def _ends(self, reached: int) -> str:
        """Return where the log ends, in words."""
        if self._partition.lacks_log:
            return "no log is here"
        what = "the log" if self._is_read else "the last sound batch of the log"
        return f"{what} ends before offset {reached}"

    def _report_stray(self, reached: int) -> None:
        for offset in self._snapshots:
            if offset <= reached:
                continue
            self._at(self._partition.path(self._snapshot_names[offset])).add(
                "DISK-36",
                f"{self._ends(reached)}, and this snapshot is of offset {offset}: the"
                " log has lost its end, or the file is a stray; loading removes it"
                + (f". {AGREED}" if self._is_end_agreed else ""),
                expected=f"{reached} or less",
                actual=told_offset(offset, is_agreed=self._is_end_agreed),
            )

    def _check_offsets(self, reached: int) -> None:
        """Judge what the checkpoints of the data directory say of this log."""
        told = dict(self._partition.offsets)
        start, end = told.get(START, 0), self._end_offset or 0
        if start > end and not self._partition.lacks_log:
            self._reporter.at(self._directory).add(
                "DISK-43",
                f"the log ends before offset {end}, and {START} says that it begins at {start}: at"
                " its next start Kafka deletes every segment here and goes on with an empty one"
                + (f". {AGREED}" if self._is_end_agreed else ""),
                expected=f"{start} or more",
                actual=told_offset(end, is_agreed=self._is_end_agreed),
            )
        beyond = [
            name
            for name in (RECOVERY, HIGH_WATERMARK, CLEANER)
            if told.get(name, 0) > max(reached, start)
        ]
        other = ""
        if beyond and self._is_end_whole and max((self._last_start, *self._snapshots)) <= reached:
            other = exchanged_with(self._directory, told, reached, self._files)
        for name in beyond:
            words = WORDS[name]
            if other:
                words = f": {words_of_exchanged(other, told[name] - reached)}"
            elif self._is_end_agreed:
                words = f": its line is wrong, or the log has lost its end. {AGREED}"
            self._reporter.at(self._directory).add(
                "DISK-38",
                f"{self._ends(reached)}, and {name} says {told[name]}{words}",
                expected=f"{reached} or less",
                actual=f"{told[name]}{IF_NAMED_RIGHT}"
                if other
                else told_offset(told[name], is_agreed=self._is_end_agreed),
                hint=hint_of_exchanged(self._directory, other) if other else None,
            )


WORDS = {
    RECOVERY: ": what lies between was on the disk once, and is gone; Kafka takes the end of the"
    " log instead",
    HIGH_WATERMARK: ": consumers may have read what lies between, and it is gone; Kafka takes the"
    " end of the log instead",
    CLEANER: ": the log cleaner has been that far, and what lies between is gone; Kafka begins to"
    " compact at the start of the log again",
}
