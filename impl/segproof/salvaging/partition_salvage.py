# SPDX-License-Identifier: Apache-2.0
"""Saving the sound batches of one partition into a new directory.

The logs get every sound batch, byte for byte. Then the new directory is loaded as a broker loads it
after a crash: so indexes, leader epochs and producer snapshots are of what was kept.

A batch with a right checksum and offsets that do not fit gets its offsets back where exactly these
are missing between its neighbours. So it is with size and magic, if its checksum proves them.
Batches that a disk wrote to a wrong place are moved back. Others, and foreign logs, are set aside.

Upstream: Kafka 4.3.1: LogSegment.recover, LogLoader.
Laws: SEG-20, EPOCH-1, LOAD-7 to LOAD-9, DISK-69.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise

from segproof.errors import SegproofError
from segproof.files import File, Files, ReadOnlyFile
from segproof.integers import INT32_MAX, now_ms
from segproof.inventory.named_ends import told_end
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.log_config import LogConfig
from segproof.kafka.partition_log import PartitionLog
from segproof.kafka.record_batch import RecordBatch
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import EPOCHS
from segproof.reading.log_order import NamedLog, in_order
from segproof.reading.log_pieces import NO_ENTRIES, Entries, LogPieces
from segproof.reading.pieces import Piece, PieceKind
from segproof.rebuilding.kept_files import copy_bytes
from segproof.rebuilding.segment_build import TWO_TIME_ENTRIES
from segproof.salvaging.contents import Contents
from segproof.salvaging.gaps import MISSING, Gap
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
    Doubt,
    doubts_of_damage,
    doubts_of_gaps,
    doubts_of_names,
    gaps_of_dense_log,
    gaps_of_zeros,
    is_loss_hidden,
    lost_cut_outs,
    take_doubts,
)
from segproof.salvaging.lost_markers import keep_transactions
from segproof.salvaging.moved_batches import KEPT, is_missing_elsewhere, parted, to_move_back
from segproof.salvaging.open_transactions import OpenTransactions
from segproof.salvaging.other_logs import (
    OtherLogs,
    doubts_of_indexes,
    first_offset_of,
    other_logs,
    right_name_of,
)
from segproof.salvaging.salvaged_partition import SET_ASIDE_WHOLE, SalvagedPartition
from segproof.salvaging.topic_ids import bring_topic_id
from segproof.stretches.kafka.mending import end_by_lengths, with_size_and_magic
from segproof.stretches.unreadable_blocks import ReadableParts

_LOSSLESS = (MISSING, PieceKind.ZEROS)
"""Gaps of these kinds are told only where offsets are lost in them."""
STEPS = 3
"""The bytes of a partition are checked, copied, and loaded: a third of each byte's progress."""
GAPS_TOLD = 10_000
"""So many gaps of a partition are told one by one; all of them are counted."""


def salvage_partition(
    partition: Partition,
    target: str,
    aside_path: str,
    files: Files,
    on_bytes: Callable[[int], None],
) -> SalvagedPartition:
    """Save the sound batches of a partition into the directory `target`, which is not there yet.

    Batches that fit nowhere go to the file `aside_path`, one behind the other.
    Raises: OSError for any trouble but blocks of a log that can't be read; SegproofError where the
    new directory can't be loaded.
    """
    told = _Salvage(partition, target, aside_path, files, on_bytes).run()
    if told.has_all_files and told.target is not None:
        new = os.path.join(target, EPOCHS)
        keep_leader_epochs(partition.path(EPOCHS), new, told.last_offset + 1, files)
    return told


class _Salvage:
    def __init__(
        self,
        partition: Partition,
        target: str,
        aside_path: str,
        files: Files,
        on_bytes: Callable[[int], None],
    ) -> None:
        own = tuple(one for one in partition.segments if one.overlap is None)
        self._strangers = [one for one in partition.segments if one.overlap is not None]
        """Segments of other partitions, or of an older copy."""
        self._partition = replace(partition, segments=own)
        self._target = target
        self._aside_path = aside_path
        self._files = files
        self._on_bytes = on_bytes
        self._told = SalvagedPartition(partition.directory, None)
        self._reached = -1
        self._before: Piece | None = None
        """The batches that were kept last, one piece."""
        self._begin = 0
        self._epoch = -1
        """The leader epoch of the last batch of the segments so far."""
        self._do_epochs_rise = True
        """Whether all batches were kept, and no leader epoch was below the one before it."""
        self._read_bytes = 0
        """Bytes of logs that were read, to be checked or to be copied."""
        self._bytes_to_read = 0
        """So many are read of the segments so far, of one without damage."""
        self._told_bytes = 0
        self._pending: list[Gap] = []
        """Gaps behind the last sound batch."""
        self._moved: list[Piece] = []
        """Batches of this segment that lie at a wrong place, and were not moved back so far."""
        self._pieces: list[Piece] = []
        """All of this segment."""
        self._contents = Contents(partition, files)
        self._transactions = OpenTransactions()
        self._held: Piece | None = None  # misplaced, between two sound batches, as far as known
        self._log: File | None = None
        """The new log that is written."""
        self._log_bytes = 0
        self._logs: list[str] = []  # the new logs so far
        self._ranges: list[tuple[int, int]] = []
        """The first offset of each new log, and the offset after its last batch."""
        self._wrong_names: list[NamedLog] = []
        """The logs whose batches are not those of their name."""
        self._aside: File | None = None
        self._aside_bytes = 0
        self._others = OtherLogs()
        self._is_loss_hidden_in_gap = False
        """Whether more offsets of a gap may be lost than its indexes tell."""
        self._doubtful: list[Doubt] = []
        """Offsets that are counted as lost, and that compaction may have taken."""
        self._is_lossless_gap = False
        """Whether a gap was told in which no offset is missing, and that holds no mere copies."""
        self._copies = 0
        """Batches that were set aside, and that are copies of batches that were kept."""
        self._place_end = 0
        """The byte of this log after the last batch that was kept where it lies."""
        self._told_end = 0
        """The offset up to which an index, a snapshot or a checkpoint says that the log went."""
        self._last_time = -1
        """The largest timestamp of what was kept, in milliseconds; -1 without any."""

    def run(self) -> SalvagedPartition:
        try:
            self._save_segments()
            for segment in self._strangers:
                self._set_aside_stranger(segment)
            if self._aside is not None:
                self._aside.sync()
        finally:
            for file in (self._log, self._aside):
                if file is not None:
                    file.close()
        self._miss_end()
        zeros = gaps_of_zeros(self._pending, self._partition, self._next_offset)
        at_end = self._contents.gaps_at_end(self._pending, self._place_end)
        ends = [one.last_lost_offset for one in at_end]
        end = max(one + 1 for one in (*ends, self._told_end - 1) if one is not None)
        self._told.is_end_lost = None in ends or (ends != [end - 1] and end > self._next_offset)
        if len(ends) == 1 or None in ends:
            self._told.lost_offsets += max(0, end - self._next_offset)
        self._lose(zeros)
        self._doubtful += doubts_of_gaps(zeros)
        self._count(at_end)
        self._miss_of_dense_log()
        harmless = self._copies + sum(one.overlap.batches for one in self._strangers if one.overlap)
        asked = self._told, self._logs, self._files, harmless
        is_hidden = is_loss_hidden(*asked, is_lossless=self._is_lossless_gap)
        is_hidden |= self._is_loss_hidden_in_gap
        self._told.are_more_lost = self._told.is_end_lost or is_hidden
        if self._told.target is None and not self._told.bytes_read:
            words = "its logs are empty, so there is nothing to save"
            self._told.left_out.append(f"{self._told.directory}: {words}")
        take_doubts(self._told, self._doubtful, self._partition, self._logs, self._files)
        if self._told.target is not None:
            self._told.left_out += bring_topic_id(self._partition, self._target, self._files)
            known = self._partition.path(EPOCHS), self._epoch, self._do_epochs_rise
            self._told.restored_epochs = restore_leader_epochs(self._logs, *known, self._files)
            self._load()
        self._tell_progress(max(self._told_bytes, self._partition.size_bytes))
        return self._told

    def _save_segments(self) -> None:
        """Save the logs in the order of their contents, and take note of those that are gone."""
        segments = self._partition.segments
        others = self._others = other_logs(segments, self._files)
        self._lose(others.lost)
        self._doubtful += doubts_of_gaps(others.lost)
        named = {
            one.base_offset: NamedLog(one.path(".log"), one.base_offset)
            for one in segments
            if ".log" in one.suffixes and one.path(".log") not in others.paths
        }
        logs = in_order([*named.values()], lambda path: ReadableParts(self._files.open(path)))
        by_name = dict(zip(named, logs, strict=True))
        self._wrong_names = [one for one in named.values() if one not in logs]
        self._told.renamed_logs = len(self._wrong_names)
        followings = dict(pairwise(logs))
        for segment in segments:
            log = by_name.get(segment.base_offset)
            if not self._pending:  # what is missing before it was compacted
                self._begin = segment.base_offset if log is None else log.base_offset
            if log is None:
                if segment.path(".log") in others.paths:
                    self._set_aside(segment.path(".log"))
                elif not segment.held_by:
                    self._miss(segment.path(".log"), 0)
                continue
            self._save_segment(log, followings.get(log), is_indexed=log in named.values())

    @property
    def _next_offset(self) -> int:
        """The offset behind what was kept; that of the segment's name if no gap is before it."""
        return max(self._reached + 1, self._begin)

    def _count_read(self, count: int) -> None:
        self._read_bytes = min(self._read_bytes + count, self._bytes_to_read)
        self._tell_progress(self._read_bytes // STEPS)

    def _tell_progress(self, done: int) -> None:
        self._on_bytes(done - self._told_bytes)
        self._told_bytes = done

    def _set_aside(self, path: str) -> None:
        """Set a log aside that is not the one of its indexes."""
        with closing(self._files.open(path)) as file:
            size = file.size()
            self._put_aside(file, 0, size, len(read_batch_headers(file, 0, size).table))
        self._pending.append(Gap(path, "misplaced", 0, size, self._next_offset, None))
        self._told.bytes_read += size

    def _set_aside_stranger(self, segment: Segment) -> None:
        """Set a log aside whole that is none of the partition's: it costs no offset."""
        path, overlap = segment.path(".log"), segment.overlap
        assert overlap is not None
        with closing(ReadableParts(self._files.open(path))) as file:
            size = file.size()
            self._put_aside(file, 0, size, overlap.batches)
        self._told.left_out.append(f"{path}: {overlap.words}. {SET_ASIDE_WHOLE}")

    # --- one segment

    def _save_segment(self, log: NamedLog, following: NamedLog | None, *, is_indexed: bool) -> None:
        """Save a log; `is_indexed` if its name is right, so that the index beside it is its own."""
        told, (path, base_offset) = self._told, log
        limit = base_offset + INT32_MAX + 1  # an index has room up to there
        next_offset = None if following is None else first_offset_of(following, self._files)
        limit = limit if following is None else min(limit, following.base_offset)
        try:
            file = ReadableParts(self._files.open(path), self._count_read)
        except OSError as error:
            told.left_out.append(f"{path}: {error.strerror}")
            self._miss(path, 0)
            return
        with closing(file):
            size = file.size()
            self._bytes_to_read += (STEPS - 1) * size
            entries = entries_beside(log, self._files) if is_indexed else NO_ENTRIES
            shown = next_offset, entries
            found = list(pieces := self._pieces_of(file, limit, *shown))
            right = right_name_of(following, next_offset, limit, found, self._files)
            if right is not None:
                self._told.renamed_logs += 1
                limit, pieces = right, self._pieces_of(file, right, *shown)
                found = list(pieces)
            self._epoch = pieces.last_epoch
            is_sound = all(one.kind in (PieceKind.SOUND, PieceKind.ZEROS) for one in found)
            self._do_epochs_rise &= is_sound and pieces.epochs_rise
            found = self._transactions.loadable(
                file, parted(file, found), has_transactions=pieces.has_transactions
            )
            self._pieces, self._place_end = found, 0
            moved = to_move_back(file, found, self._reached, limit)
            self._moved = sorted(moved, key=lambda piece: piece.first_offset)
            for piece in found:
                if piece.kind in KEPT:
                    self._keep(file, piece, base_offset)
                elif piece not in moved:
                    self._pass_over(file, piece)
            if next_offset is not None:
                self._restore_held(file, next_offset, base_offset)
            self._give_up_held(file)
            self._move_back(file, base_offset, limit)
            is_zero_end = bool(found) and found[-1].kind is PieceKind.ZEROS
            end = found[-1].start if is_zero_end else size
            is_gone = (entries.positions >= end) & (entries.offsets > self._reached)
            is_told = bool(self._pending) and self._pending[-1].path == path
            if next_offset is None and is_zero_end:
                is_told = self._pending[-1].kind != PieceKind.ZEROS
            if next_offset is None:
                at_end = self._next_offset, end
                indexed = indexed_end_of(log, found, at_end, self._files) if is_indexed else None
                self._told_end, is_lost = indexed or 0, indexed is not None
            else:
                is_gone &= entries.offsets < next_offset
                is_lost = bool(is_gone.any()) and not has_other_index(log, self._files)
            last = self._pieces[-1] if self._pieces else None
            if not is_told and not is_lost and next_offset is not None:
                names = [one.base_offset for one in self._partition.segments]
                told_of = log if is_indexed else None, base_offset, self._reached, names
                is_lost = is_cut(file, last, *told_of, self._files)
            if is_lost and not is_told:
                self._miss(path, end)
            told.bytes_read += size
            told.unreadable_bytes += file.unreadable_bytes
        self._count_read(self._bytes_to_read)
        if self._log is not None:
            self._log.close()  # what is loaded is made durable, all at once
            self._log = None

    def _pieces_of(
        self, file: ReadOnlyFile, limit: int, next_offset: int | None, entries: Entries
    ) -> LogPieces:
        return LogPieces(
            file, 0, file.size(), reached=self._reached, limit=limit, next_offset=next_offset,
            entries=entries, epoch=self._epoch, before=self._before,
        )  # fmt: skip

    # --- what is kept

    def _keep(self, file: ReadOnlyFile, piece: Piece, base_offset: int) -> None:
        first_offset = self._first_offset_of(file, piece)
        self._restore_held(file, first_offset, base_offset)
        self._give_up_held(file)
        self._move_back(file, base_offset, piece.first_offset)
        if not self._pending and self._place_end < piece.start and self._next_offset < first_offset:
            place = self._place_end, piece.start - self._place_end
            self._pending.append(
                Gap(file.path, PieceKind.MISPLACED.value, *place, self._next_offset, None)
            )
        self._close_gaps(first_offset, file.path, base_offset)
        position = self._copy(file, piece, base_offset)
        self._place_end = piece.end
        if piece.kind is PieceKind.RESTORABLE:
            self._restore_header(piece, position)

    def _first_offset_of(self, file: ReadOnlyFile, piece: Piece) -> int:
        """Return the first offset of the first batch of a piece that follows a gap.

        A compressed message of magic 0 or 1 says its last offset: the first one is read from it.
        """
        if self._pending and piece.kind is PieceKind.SOUND:
            row = read_batch_headers(file, piece.start, piece.end).table[0]
            if row["magic"] < 2 and row["attributes"] & 7:
                size = int(row["size_bytes"])
                message = RecordBatch(file, piece.start, size, int(row["magic"]), in_file=True)
                with suppress(SegproofError):
                    return max(self._next_offset, message.base_offset)
        return piece.first_offset

    def _restore_held(self, file: ReadOnlyFile, following: int, base_offset: int) -> None:
        """Keep a misplaced batch where exactly its offsets are missing before `following`."""
        held = self._held
        if held is None or not self._fits_between(file, held, following):
            return
        del self._pending[-1]
        self._held = None
        restored = held._replace(first_offset=self._next_offset, last_offset=following - 1)
        position = self._copy(file, restored, base_offset)
        assert self._log is not None
        self._log.pwrite(restored.first_offset.to_bytes(8, "big"), position)
        self._told.restored_batches += 1

    def _restore_header(self, piece: Piece, position: int) -> None:
        """Write the right size, magic and base offset of a batch into the new log."""
        assert self._log is not None
        header = with_size_and_magic(self._log.pread(piece.size_bytes, position))[:17]
        base_offset = piece.first_offset.to_bytes(8, "big")
        self._told.restored_batches += header[:8] != base_offset
        self._told.restored_headers += 1
        header[:8] = base_offset
        self._log.pwrite(bytes(header), position)

    def _move_back(self, file: ReadOnlyFile, base_offset: int, below: int) -> None:
        """Copy the batches that lie at a wrong place and belong before the offset `below`."""
        while self._moved and self._moved[0].last_offset < below:
            moved = self._moved.pop(0)
            self._close_gaps(moved.first_offset, file.path, base_offset)
            self._copy(file, moved, base_offset)
            self._told.moved_batches += moved.batches

    def _fits_between(self, file: ReadOnlyFile, held: Piece, following: int) -> bool:
        """Return whether exactly the offsets of a misplaced batch are missing, and nowhere else.

        A copy of another batch has the offsets of that one. A batch whose own offsets are missing
        where bytes are lost belongs there.
        """
        magic, attributes = file.pread(2, held.start + 16)
        is_covered = magic == 2 or (
            attributes & 7 == 0 and end_by_lengths(file, held.start) == held.end
        )
        missing = following - self._next_offset
        is_exact = held.batches == 1 and held.last_offset - held.first_offset + 1 == missing
        return (
            is_covered
            and is_exact
            and not is_missing_elsewhere(held, self._pieces, self._next_offset)
            and not self._contents.is_twice(file, held)
        )

    def _copy(self, file: ReadOnlyFile, piece: Piece, base_offset: int) -> int:
        """Copy sound batches behind those that were kept; return where they begin."""
        told = self._told
        if told.target is None:
            self._files.make_directory(self._target)
            told.target, told.first_offset = self._target, piece.first_offset
        if self._log is None:
            # A name says where a segment begins, as far as its batches allow it.
            is_right = self._reached < base_offset <= piece.first_offset
            name = segment_file_name(base_offset if is_right else piece.first_offset, ".log")
            path = os.path.join(self._target, name)
            if self._logs:
                self._told.lost_between_logs += max(0, int(name[:20]) - self._reached - 1)
            self._logs.append(path)
            self._ranges.append((int(name[:20]), int(name[:20])))
            self._log, self._log_bytes = self._files.open(path, writable=True, create=True), 0
        position = self._log_bytes
        copy_bytes(file, piece.start, piece.end, self._log, position)
        self._log_bytes += piece.size_bytes
        self._before, self._reached = piece, piece.last_offset
        self._ranges[-1] = self._ranges[-1][0], self._reached + 1
        told.last_offset = piece.last_offset
        told.bytes_kept += piece.size_bytes
        told.batches += piece.batches
        told.records += piece.records
        self._last_time = max(self._last_time, piece.max_timestamp)
        return position

    # --- what is not

    def _pass_over(self, file: ReadOnlyFile, piece: Piece) -> None:
        last = self._pending[-1] if self._pending else None
        is_joined = last is not None and (
            last.path == file.path and last.position + last.size_bytes == piece.start
        )
        self._give_up_held(file)
        kind = piece.kind.value
        if kind in (PieceKind.MISPLACED, PieceKind.UNLOADABLE):
            self._held = piece
            if is_joined or kind == PieceKind.UNLOADABLE:
                self._give_up_held(file)
        is_alike = last is not None and last.kind == kind
        if is_joined and last is not None and (is_alike or len(self._pending) >= GAPS_TOLD):
            size = piece.end - last.position
            self._pending[-1] = last._replace(size_bytes=size, last_lost_offset=None)
            return
        begin, first = self._next_offset, piece.first_offset
        is_one = not self._pending and kind == PieceKind.MISPLACED and piece.batches == 1
        is_bit = is_one and first > begin and (first ^ begin).bit_count() == 1
        end = begin + piece.last_offset - first if is_bit else None
        self._pending.append(Gap(file.path, kind, piece.start, piece.size_bytes, begin, end))

    def _miss(self, path: str, position: int) -> None:
        """Take note that a log, or its end, is not there."""
        self._pending.append(Gap(path, MISSING, position, 0, self._next_offset, None))

    def _miss_end(self) -> None:
        """Take note of an end of the log that is gone: a snapshot or a checkpoint names it."""
        is_sound = all(one.kind == PieceKind.ZEROS for one in self._pending)
        told = self._partition, self._next_offset, self._files
        named = told_end(*told, is_sound=is_sound and not self._told_end)
        self._told.doubts += named.doubts
        end = max(named.at_least, self._others.end)
        self._told_end = max(self._told_end, end)
        if (end or named.named) and is_sound:
            self._miss(*last_log_of(self._partition, self._files))

    def _give_up_held(self, file: ReadOnlyFile) -> None:
        """Put a misplaced batch, if one is held, into the file of those that fit nowhere."""
        held, self._held = self._held, None
        if held is not None:
            self._put_aside(file, held.start, held.end, held.batches)

    def _put_aside(self, file: ReadOnlyFile, start: int, end: int, batches: int) -> None:
        if self._aside is None:
            self._aside = self._files.open(self._aside_path, writable=True, create=True)
        copy_bytes(file, start, end, self._aside, self._aside_bytes)
        self._aside_bytes += end - start
        self._told.set_aside_batches += batches

    def _close_gaps(self, first_offset: int, path: str, base_offset: int) -> None:
        """Tell the offsets that are lost in the gaps so far: a sound batch follows them."""
        lost = first_offset - self._next_offset
        is_lost = lost > 0
        pending = [one for one in self._pending if is_lost or one.kind not in _LOSSLESS]
        if pending:
            self._told.lost_offsets += max(0, lost)
            if is_lost:
                ends, begin = (self._next_offset, first_offset), NamedLog(path, base_offset)
                self._doubtful += doubts_of_damage(self._pending, ends, begin, self._files)
        copies = 0 if is_lost else self._contents.copies_in(pending)
        self._copies += copies
        self._is_lossless_gap |= bool(pending) and not is_lost and not copies
        self._count([one._replace(last_lost_offset=first_offset - 1) for one in pending])

    def _count(self, gaps: Sequence[Gap]) -> None:
        told = self._told
        told.gap_count += len(gaps)
        told.gaps += gaps[: GAPS_TOLD - len(told.gaps)]
        self._pending = []

    def _miss_of_dense_log(self) -> None:
        """Take note of offsets that logs lack, as their indexes show, or else all other logs."""
        if self._told.renamed_logs:  # gaps are told of other names
            self._told.doubts += doubts_of_names(self._wrong_names, self._ranges, self._told.gaps)
            return
        partition, logs, files = self._partition, self._logs, self._files
        own = [one for one in partition.segments if one.path(".log") not in self._others.all]
        with suppress(OSError):  # a log that can't be opened is left out
            self._told.doubts += doubts_of_indexes(own, files)
        cuts, unproven = lost_cut_outs(own, logs, files)
        args = partition, logs, self._told.gaps, [one for _, one in cuts]
        is_apart = self._told.lost_between_logs > 0
        lost, self._told.unproven_offsets = gaps_of_dense_log(*args, files, are_apart=is_apart)
        self._told.unproven_offsets += unproven
        self._lose(lost)
        for path, one in cuts:
            self._told.lost_offsets += one.lost
            self._is_loss_hidden_in_gap |= one.lost > 0 and not one.is_exact
            last = one.end_offset - 1 if one.lost == one.size else None
            self._count([Gap(path, MISSING, one.position, 0, one.first_offset, last)])

    def _lose(self, gaps: Sequence[Gap]) -> None:
        """Tell gaps whose lost offsets are known."""
        for one in gaps:
            if one.last_lost_offset is not None:
                self._told.lost_offsets += one.last_lost_offset + 1 - one.first_lost_offset
        self._count(gaps)

    # --- the new directory

    def _load(self) -> None:
        """Load the new logs as a broker does after a crash, make them durable, and close them.

        That reads what was written and makes each checksum again: the old file may have changed
        since its batches were checked. Producers expire as they did while the log was written, not
        by the time of the salvage. An index takes no more room than a log: a disk may be full.
        """
        told, now, last = self._told, now_ms(), self._last_time
        sizes = (status.size_bytes for one in self._logs if (status := self._files.status(one)))
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
        keep_producers(self._partition, told, self._logs, self._files)
        keep_transactions(self._partition, told, self._files)
