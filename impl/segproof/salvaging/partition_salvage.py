# SPDX-License-Identifier: Apache-2.0
"""Saving the sound batches of one partition into a new directory.

The logs get every batch that `stretches.kafka.rules` keeps, byte for byte but for what is proved:
its base offset, its size, its magic. Then the new directory is loaded as a broker loads it after a
crash: so indexes, leader epochs and producer snapshots are of what was kept. Other batches, and
foreign logs, are set aside.

Upstream: Kafka 4.3.1: LogSegment.recover, LogLoader.
Laws: SEG-20, EPOCH-1, LOAD-7 to LOAD-9, DISK-69.
"""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace

from segproof.errors import SegproofError
from segproof.files import Files, ReadOnlyFile
from segproof.integers import now_ms
from segproof.inventory.named_ends import told_end
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.inventory.told_ends import ALL_ZEROS
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.log_config import LogConfig
from segproof.reading.file_names import EPOCHS
from segproof.reading.indexed_ends import KeptEnd
from segproof.rebuilding.kept_files import copy_bytes
from segproof.rebuilding.segment_build import TWO_TIME_ENTRIES
from segproof.salvaging.gap_ledger import GapLedger
from segproof.salvaging.gaps import Gap, LogGap
from segproof.salvaging.kept_producers import keep_producers
from segproof.salvaging.leader_epochs import keep_leader_epochs, restore_leader_epochs
from segproof.salvaging.lost_ends import (
    entries_beside,
    has_other_index,
    indexed_end_of,
    is_cut,
    last_log_of,
)
from segproof.salvaging.lost_gaps import (
    doubts_of_empty_end,
    doubts_of_gaps,
    doubts_of_names,
    gaps_of_dense_log,
    gaps_of_zeros,
    is_loss_hidden,
    lost_cut_outs,
    take_doubts,
    untold_offsets,
)
from segproof.salvaging.lost_markers import keep_transactions
from segproof.salvaging.new_logs import Copy, KeptBatches, NewLogs
from segproof.salvaging.other_logs import SegmentJudge, doubts_of_indexes
from segproof.salvaging.placed_logs import (
    COPY,
    FOREIGN,
    ODD_END,
    UNLOADABLE,
    PlacedLog,
    PlacedPartition,
    place_partition,
)
from segproof.salvaging.planned_logs import PlannedFiles
from segproof.salvaging.salvaged_partition import SET_ASIDE_WHOLE, SalvagedPartition
from segproof.salvaging.topic_ids import bring_topic_id
from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import NO_ENTRIES, LogFacts
from segproof.stretches.kafka.in_place import byte_ranges_of
from segproof.stretches.kafka.log_spans import without_batches
from segproof.stretches.spans import SpanKind
from segproof.stretches.unreadable_blocks import ReadableParts

STEPS = 3
"""The bytes of a partition are checked, copied, and loaded: a third of each byte's progress."""
GAPS_TOLD = 10_000
"""So many gaps of a partition are told one by one; all of them are counted."""
PLANNED = "planned"
"""The name of a new directory that is not made."""
_GAPS = {
    SpanKind.BROKEN: LogGap.BROKEN,
    SpanKind.TORN: LogGap.BROKEN,
    SpanKind.UNSEARCHED: LogGap.UNSEARCHED,
    SpanKind.ZEROS: LogGap.ZEROS,
}


def salvage_partition(
    partition: Partition,
    target: str,
    aside_path: str,
    judge: SegmentJudge,
    files: Files,
    on_bytes: Callable[[int], None],
) -> SalvagedPartition:
    """Save the sound batches of a partition into the directory `target`, which is not there yet.

    Batches that fit nowhere go to the file `aside_path`, one behind the other.
    Raises: OSError for any trouble but blocks of a log that can't be read; SegproofError where the
    new directory can't be loaded.
    """
    told = _Salvage(partition, target, aside_path, judge, files, on_bytes).run()
    if told.has_all_files and told.target is not None:
        new = os.path.join(target, EPOCHS)
        keep_leader_epochs(partition.path(EPOCHS), new, told.last_offset + 1, files)
    return told


def planned_salvage(partition: Partition, judge: SegmentJudge, files: Files) -> SalvagedPartition:
    """Return what a salvage would tell of a partition that has a log. Nothing is written.

    Memory: as a salvage. Raises: OSError; SegproofError where a log changes meanwhile.
    """
    with closing(PlannedFiles(files)) as planned:
        target = partition.path(PLANNED)
        salvage = _Salvage(
            partition, target, f"{target}.aside", judge, planned, lambda _: None, planned.copy
        )
        return salvage.keep()[0]


class _Salvage:
    """`copy` copies batches into the new files, which `files` makes."""

    def __init__(
        self,
        partition: Partition,
        target: str,
        aside_path: str,
        judge: SegmentJudge,
        files: Files,
        on_bytes: Callable[[int], None],
        copy: Copy = copy_bytes,
    ) -> None:
        own = tuple(one for one in partition.segments if one.overlap is None)
        self._all = partition.segments
        self._strangers = [one for one in partition.segments if one.overlap is not None]
        """Segments of other partitions, or of an older copy."""
        self._partition = replace(partition, segments=own)
        self._target, self._files, self._on_bytes = target, files, on_bytes
        self._judge = judge
        self._told = SalvagedPartition(partition.directory, None)
        self._done_bytes = 0
        """Bytes of logs that were read or copied."""
        self._told_bytes = 0
        self._ledger = GapLedger(self._told, files, GAPS_TOLD)
        self._new = NewLogs(self._told, target, aside_path, files, self._count_bytes, copy)
        self._last_aside = -1
        """The largest offset of what was set aside, but copies, foreign batches and such with a
        wrong bit: the log may have reached it."""
        self._left: list[int] = []
        """The rows of the log that do not stay where they lie, and were not looked at so far; the
        first one at the end."""
        self._was_moved = False
        """Whether the last row that was kept was moved."""
        self._place_end = 0
        """The byte of the log after the last batch that was kept where it lies."""
        self._told_end = 0
        """The offset up to which an index, a snapshot or a checkpoint says that the log went."""

    def run(self) -> SalvagedPartition:
        """Save the partition."""
        told, placed = self.keep()
        if told.target is not None:
            told.left_out += bring_topic_id(self._partition, self._target, self._files)
            known = self._partition.path(EPOCHS), *placed.epochs()
            told.restored_epochs = restore_leader_epochs(self._new.paths, *known, self._files)
            self._load(placed.last_time())
        self._tell_progress(max(self._told_bytes, self._partition.size_bytes))
        return told

    def keep(self) -> tuple[SalvagedPartition, PlacedPartition]:
        """Make the new logs, and count what is lost."""
        told, ledger, logs = self._told, self._ledger, self._new.paths
        placed = place_partition(self._partition, self._files, self._judge, self._count_bytes)
        told.renamed_logs = placed.renamed_logs
        ledger.lose(placed.others.lost)
        ledger.doubtful += doubts_of_gaps(placed.others.lost)
        try:
            for number in range(len(placed.logs)):
                self._save_log(placed, number)
            for segment in self._strangers:
                self._set_aside_stranger(segment)
            self._new.finish()
        finally:
            self._new.close()
        self._count_end(placed)
        self._miss_of_dense_log(placed)
        harmless = ledger.copies + sum(
            one.overlap.batches for one in self._strangers if one.overlap
        )
        left_out = placed.left_out()
        if self._is_damaged(placed) and not told.unproven_offsets:
            told.unproven_offsets = placed.lone_hole(told.gaps)
        is_hidden = is_loss_hidden(told, left_out, harmless, is_lossless=ledger.is_any_lossless)
        told.are_more_lost |= told.is_end_lost or is_hidden or self._is_name_untold()
        told.are_more_lost |= self._last_aside >= ledger.next_offset
        told.are_more_lost |= placed.is_below_name or placed.is_cut_apart
        if told.target is None and not told.bytes_read:
            words = "its logs are empty, so there is nothing to save"
            told.left_out.append(f"{told.directory}: {words}")
        take_doubts(told, ledger.doubtful, self._partition, logs, left_out, self._files)
        return told, placed

    def _is_damaged(self, placed: PlacedPartition) -> bool:
        """Return whether anything but left out offsets speaks for a loss."""
        told = self._told
        is_mended = told.restored_batches + told.restored_headers + told.moved_batches > 0
        is_odd = any(one.indexed_to >= 0 for one in placed.facts.logs)
        is_odd |= any(one.held_by or one.overlap for one in self._all)
        return told.gap_count > 0 or is_mended or is_odd

    def _is_name_untold(self) -> bool:
        """Return whether a log that is set aside whole has a name whose offset no new log has.

        The right log of that name may have been there; it is lost then.
        """
        names = [one.base_offset for one in self._strangers]
        return any(not any(base <= name < end for base, end in self._new.ranges) for name in names)

    def _count_bytes(self, count: int) -> None:
        self._done_bytes += count
        done = min(self._done_bytes, (STEPS - 1) * self._partition.size_bytes)
        self._tell_progress(max(self._told_bytes, done // STEPS))

    def _tell_progress(self, done: int) -> None:
        self._on_bytes(done - self._told_bytes)
        self._told_bytes = done

    # --- one log

    def _save_log(self, placed: PlacedPartition, number: int) -> None:
        log, ledger, told = placed.logs[number], self._ledger, self._told
        ledger.begin_log(log.base_offset)
        if log.is_other:
            self._set_aside(log.path)
        elif not log.is_read:
            if log.error:
                told.left_out.append(f"{log.path}: {log.error}")
            ledger.miss(log.path, 0)
        else:
            facts = placed.facts.logs[number]
            told.bytes_read += facts.size
            told.unreadable_bytes += facts.unreadable_bytes
            with closing(ReadableParts(self._files.open(log.path))) as file:
                self._save_batches(placed, number, file)
                self._look_after_end(placed, number, file)
        self._new.end_log()

    def _save_batches(self, placed: PlacedPartition, number: int, file: ReadOnlyFile) -> None:
        """Copy what comes into the new log in the place of a log, and pass over the rest of it."""
        log, kept = placed.logs[number], placed.kept_in(number)
        borders, border = list[int](), placed.facts.logs[number].size
        for one in reversed(kept):
            border = border if one.is_moved else one.start
            borders.append(border)
        self._left = placed.leaving(number)[::-1]
        at = self._place_end = 0
        for one, border in zip(kept, reversed(borders), strict=True):
            self._pass_over(placed, number, file, at, border)
            at = border
            if one.is_moved or one.log != number:
                with closing(ReadableParts(self._files.open(placed.logs[one.log].path))) as old:
                    self._keep(old, one, log, border)
                continue
            is_last = one == kept[-1] and number == placed.new_logs[-1]
            self._keep(file, one, log, border, is_last=is_last)
            at = self._place_end = one.end
        facts = placed.facts.logs[number]
        self._pass_over(placed, number, file, at, facts.size)
        if facts.next_base_offset is not None:
            self._note_hole(file.path, facts.zeros_from, facts.next_base_offset)

    def _note_hole(
        self, path: str, end: int, following: int, *, is_beside_moved: bool = False
    ) -> None:
        """Take note of offsets missing before `following` where a block lay that was moved away.

        Or beside one that was moved there: no byte before `end` is left of these then.
        """
        ledger, start = self._ledger, self._place_end
        is_odd = not ledger.pending and (start < end or is_beside_moved)
        if is_odd and ledger.next_offset < following:
            ledger.pass_over(Gap(path, LogGap.MISPLACED.value, start, end - start, 0, None))

    def _keep(
        self,
        old: ReadOnlyFile,
        kept: KeptBatches,
        log: PlacedLog,
        border: int,
        *,
        is_last: bool = False,
    ) -> None:
        """Copy batches into the place of `log`; all bytes of it before `border` are told.

        `is_last`: no batch of the partition follows. A single one after lost offsets may look as if
        one bit of its base offset were wrong. So a new log begins with it, whose name states that.
        """
        is_beside_moved = self._was_moved or kept.is_moved
        self._note_hole(log.path, border, kept.first_offset, is_beside_moved=is_beside_moved)
        self._was_moved = kept.is_moved
        is_begin_lost = self._ledger.pending and self._ledger.next_offset < kept.first_offset
        due = self._told.last_offset + 1
        is_bit = (kept.first_offset ^ due).bit_count() == 1
        if is_begin_lost and is_last and kept.batches == 1 and is_bit:
            self._new.end_log()
        self._ledger.keep(kept.first_offset, kept.last_offset, log.named, is_moved=kept.is_moved)
        # A name below its first batch would say that no byte is lost between.
        self._new.keep(old, kept, kept.first_offset if is_begin_lost else log.base_offset)

    def _pass_over(
        self, placed: PlacedPartition, number: int, file: ReadOnlyFile, start: int, end: int
    ) -> None:
        """Take note of the bytes [start, end) of a log, in which no batch stays where it lies."""
        rows, placement, ledger = placed.facts.rows, placed.placement, self._ledger
        facts, at, starts = placed.facts.logs[number], start, rows["start"]
        while self._left and starts[self._left[-1]] < end:
            row = self._left.pop()
            fate, one = placement.fates[row], rows[row]
            if fate == Fate.INSIDE:  # its bytes are told as broken ones
                self._new.put_aside(file, int(one["start"]), int(one["end"]), int(one["batches"]))
                continue
            self._pass_broken(file.path, facts, at, int(one["start"]))
            at = int(one["end"])
            if fate != Fate.ASIDE:
                continue
            rule, batches = placement.why(row).name, int(one["batches"])
            kind = LogGap.UNLOADABLE if rule == UNLOADABLE else LogGap.MISPLACED
            gap = Gap(file.path, kind.value, int(one["start"]), at - int(one["start"]), 0, None)
            is_one = batches == 1 and kind is LogGap.MISPLACED
            offsets = (int(one["first"]), int(one["last"])) if is_one else None
            ledger.pass_over(gap, batches if rule == COPY else 0, offsets)
            if rule not in (COPY, FOREIGN, ODD_END):
                self._last_aside = max(self._last_aside, int(one["last"]))
            self._new.put_aside(file, int(one["start"]), at, batches)
        self._pass_broken(file.path, facts, at, end)

    def _pass_broken(self, path: str, facts: LogFacts, start: int, end: int) -> None:
        for one in without_batches(facts, start, end):
            kind = _GAPS[one.kind]
            self._ledger.pass_over(Gap(path, kind.value, one.start, one.size_bytes, 0, None))

    def _look_after_end(self, placed: PlacedPartition, number: int, file: ReadOnlyFile) -> None:
        """Take note if a log has lost its end, as an index, a name or the next log shows."""
        log, facts, ledger = placed.logs[number], placed.facts.logs[number], self._ledger
        following, reached = placed.end_of(number), ledger.next_offset - 1
        last = ledger.pending[-1] if ledger.pending else None
        is_told = last is not None and last.path == log.path
        if following is None:
            is_told &= last is not None and last.kind != LogGap.ZEROS
            indexed = None
            if facts.unsearched_from is None:
                end = self._kept_end(placed, number)
                indexed = indexed_end_of(log.named, end, self._files, is_indexed=log.is_indexed)
            self._told_end, is_lost = indexed or 0, indexed is not None
        else:
            entries = entries_beside(log.named, self._files) if log.is_indexed else NO_ENTRIES
            is_gone = (entries.positions >= facts.zeros_from) & (entries.offsets < following)
            is_gone &= entries.offsets > reached
            is_lost = bool(is_gone.any()) and not has_other_index(log.named, self._files)
            run = None if self._was_moved else placed.last_run(number)
            if not is_told and not is_lost and run is not None:
                names = [one.base_offset for one in self._partition.segments]
                name = next((one for one in names if one > log.base_offset), -1)
                told = log.named, (reached + 1, name), self._files
                is_lost = is_cut(file, run, *told, is_indexed=log.is_indexed)
        if is_lost and not is_told:
            ledger.miss(log.path, facts.zeros_from)

    def _kept_end(self, placed: PlacedPartition, number: int) -> KeptEnd:
        log, facts, fates = placed.logs[number], placed.facts.logs[number], placed.fates_of(number)
        position = fates.stays_to()
        is_broken, is_damaged = (one < facts.zeros_from for one in (position, fates.odd_from()))
        return KeptEnd(
            log.base_offset, self._ledger.next_offset, position, is_broken, is_damaged,
            placed.last_time(number), byte_ranges_of(fates.rows[fates.is_whole]),
        )  # fmt: skip

    # --- other logs

    def _set_aside(self, path: str) -> None:
        """Set a log aside that is not the one of its indexes."""
        with closing(ReadableParts(self._files.open(path))) as file:
            size = file.size()
            self._new.put_aside(file, 0, size, len(read_batch_headers(file, 0, size).table))
        self._ledger.pass_over(Gap(path, LogGap.MISPLACED.value, 0, size, 0, None))
        self._told.bytes_read += size

    def _set_aside_stranger(self, segment: Segment) -> None:
        """Set a log aside whole that is none of the partition's: it costs no offset."""
        path, overlap = segment.path(".log"), segment.overlap
        assert overlap is not None
        with closing(ReadableParts(self._files.open(path))) as file:
            self._new.put_aside(file, 0, file.size(), overlap.batches)
        self._told.left_out.append(f"{path}: {overlap.words}. {SET_ASIDE_WHOLE}")

    # --- what is lost

    def _count_end(self, placed: PlacedPartition) -> None:
        """Count what is lost at the end of the partition.

        That is in its last gaps, or gone: a snapshot or a checkpoint names it.
        """
        told, ledger = self._told, self._ledger
        is_sound = all(one.kind == LogGap.ZEROS for one in ledger.pending)
        named = told_end(
            self._partition, ledger.next_offset, self._files,
            is_sound=is_sound and not self._told_end,
        )  # fmt: skip
        told.doubts += named.doubts
        end = max(named.at_least, placed.others.end)
        self._told_end = max(self._told_end, end)
        if (end or named.named) and is_sound:
            ledger.miss(*last_log_of(self._partition, self._files))
        next_offset = ledger.next_offset
        zeros = gaps_of_zeros(ledger.pending, self._partition, next_offset)
        last = placed.last_log
        # Copies alone do not end the log if its own name goes on after all that was kept.
        is_ended = last is not None and (self._place_end or last.base_offset <= told.last_offset)
        at_end = ledger.at_end(last.path if last and is_ended else "", self._place_end)
        ends = [one.last_lost_offset for one in at_end]
        end = max(one + 1 for one in (*ends, self._told_end - 1) if one is not None)
        told.is_end_lost = None in ends or (ends != [end - 1] and end > next_offset)
        next_offset = max([next_offset, *((one.last_lost_offset or 0) + 1 for one in zeros)])
        if len(ends) == 1 or None in ends:
            told.lost_offsets += max(0, end - next_offset)
        indexed = {one.path(".log") for one in self._partition.segments if ".index" in one.suffixes}
        if placed.is_end_blank and not at_end and last and last.path not in indexed:
            told.doubts.append(f"{last.path}: {ALL_ZEROS}")
            told.are_more_lost = True
        ledger.lose(zeros)
        ledger.doubtful += doubts_of_gaps(zeros)
        ledger.count(at_end)

    def _miss_of_dense_log(self, placed: PlacedPartition) -> None:
        """Take note of offsets that logs lack, as their indexes show, or else all other logs."""
        told, new, files, ledger = self._told, self._new, self._files, self._ledger
        if told.renamed_logs or placed.is_below_name:  # names and indexes prove no loss then
            told.doubts += doubts_of_names(placed.wrong_names, new.ranges, told.gaps)
            begin = placed.blank_begin
            told.unproven_offsets += untold_offsets(new.paths, told.gaps, begin, files)
            begin = told.first_offset if begin is None else begin
            early = [one for one in placed.wrong_names if one.base_offset < begin]
            told.are_more_lost |= any(doubts_of_names(early, new.ranges, told.gaps))
            return
        own = [one for one in self._partition.segments if one.path(".log") not in placed.others.all]
        with suppress(OSError):  # a log that can't be opened is left out
            told.doubts += doubts_of_indexes(own, files)
        cuts, unproven = lost_cut_outs(own, new.paths, told.gaps, files, self._judge)
        args = self._partition, new.paths, told.gaps, [one for _, one in cuts]
        is_apart = told.lost_between_logs > 0
        lost, told.unproven_offsets = gaps_of_dense_log(*args, files, are_apart=is_apart)
        told.unproven_offsets += unproven
        ledger.lose(lost)
        end = placed.last_log
        if told.unproven_offsets and end is not None and not placed.kept_in(placed.logs.index(end)):
            told.doubts += doubts_of_empty_end(end.named, told.last_offset + 1)
        for path, one in cuts:
            told.lost_offsets += one.lost
            told.are_more_lost |= one.lost > 0 and not one.is_exact
            last = one.end_offset - 1 if one.lost == one.size else None
            ledger.count([Gap(path, LogGap.MISSING.value, one.position, 0, one.first_offset, last)])

    # --- the new directory

    def _load(self, last: int) -> None:
        """Load the new logs as a broker does after a crash, make them durable, and close them.

        That reads what was written and makes each checksum again: the old file may have changed
        since its batches were checked. Producers expire as they did while the log was written, not
        by the time of the salvage: `last` is the largest timestamp of what was kept. An index takes
        no more room than a log: a disk may be full.
        """
        told, now, logs = self._told, now_ms(), self._new.paths
        sizes = (status.size_bytes for one in logs if (status := self._files.status(one)))
        room = min(LogConfig().segment_index_bytes, max(sizes, default=0) + TWO_TIME_ENTRIES)
        log = PartitionLog.open(
            self._target, LogConfig(segment_index_bytes=room), writable=True, files=self._files,
            last_shutdown_clean=False, time=lambda: now if last < 0 else min(now, last),
        )  # fmt: skip
        try:
            end = log.log_end_offset
            told.open_transactions = len(log.producer_state_manager.ongoing_txns)
            log.log_segments.active_segment.on_become_inactive_segment()
            log.flush(True)
        finally:
            log.close()
        if end != told.last_offset + 1:
            raise SegproofError(
                f"the new log ends before offset {end}, and what was kept ends with"
                f" {told.last_offset}: a broker would cut it there",
                law="SEG-20",
                path=self._target,
                hint="stop the broker, if one is at work here, and save again; else report it",
            )
        keep_producers(self._partition, told, logs, self._files)
        keep_transactions(self._partition, told, self._files)
