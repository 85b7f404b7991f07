# SPDX-License-Identifier: Apache-2.0
"""Saving every sound message of a damaged store of RocketMQ into a new store, which a broker loads.

Upstream: RocketMQ 4.7.0 to 5.5.1: DefaultMessageStore, CommitLog, ConsumeQueue, IndexService.
Laws: RMQLOG-5, RMQDISK-17 to RMQDISK-40.
Not covered: extension files of queues; queues and indexes kept in RocksDB; timers.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import Files, SharedFiles
from segproof.findings import Finding
from segproof.integers import INT64_MAX
from segproof.layouts.rocketmq import MESSAGE
from segproof.processes import Meter, Progress
from segproof.reading.commit_log_damage import LOST_FILES_MAX
from segproof.reading.index_times import IndexTimes
from segproof.reading.log_gaps import GAPS_MAX, Gap, GapKind
from segproof.reading.log_in_order import OF_MOVED, PAGE_BYTES, Filler, LogInOrder
from segproof.reading.log_rows import linked_folders
from segproof.reading.queue_units import LostMessages, lost_together, messages_in
from segproof.reading.store_layouts import check_layout, no_log_in
from segproof.reading.store_reach import ends_of, later_messages
from segproof.reading.store_times import Bounds, TimesAround, likely_times
from segproof.reading.unfinished import unfinished_store
from segproof.reading.unknown_files import unknown_files
from segproof.rebuilding.safe_places import (
    begin_salvage,
    check_apart,
    check_empty,
    check_finished,
    check_outside,
    end_salvage,
)
from segproof.rebuilding.store_geometry import (
    NewGeometry,
    index_of_this_log,
    keep_guess,
    new_geometry,
    told_geometry,
)
from segproof.rebuilding.store_rebuild import CheckPlace, IndexWanted, rebuild_from_log
from segproof.rebuilding.store_releases import counts_puts_in_old_index, tags_in_old_index
from segproof.rocketmq.commit_log import COMMIT_LOG, STORE_TIME_V4, STORE_TIME_V6, CommitLog
from segproof.rocketmq.geometry import index_file_names
from segproof.rocketmq.index_service import CHECKPOINT, INDEX
from segproof.rocketmq.index_table import read_stored_header
from segproof.rocketmq.message import BORN_HOST_V6
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof.salvaging.commit_log_copy import CommitLogCopy
from segproof.salvaging.consume_queue_copy import ConsumeQueueCopy, queue_file_size
from segproof.salvaging.offsets_beyond import offsets_beyond
from segproof.salvaging.oversized_files import RestsOfFiles, with_file_size
from segproof.salvaging.salvaged_store import SalvagedStore, StoreGap
from segproof.salvaging.settled_times import settle_times
from segproof.salvaging.store_extras import Extras
from segproof.stretches.rocketmq.desk import Fate
from segproof.stretches.rocketmq.message_blocks import Int64Array, LogReader, MessageBlock
from segproof.stretches.rocketmq.witnesses import are_of_other_log

__all__ = ["SalvagedStore", "StoreGap"]


class StoreJudges(NamedTuple):
    """What the salvage of a store asks of `verify`."""

    log: Callable[[str, Files], tuple[CommitLog, list[Finding]]]
    """Returns the commit log of a store, and what is found of the names in its folder."""
    check: CheckPlace


def save_store(
    store: str,
    target: str,
    judges: StoreJudges,
    new_sizes: tuple[int | None, int | None, int | None],
    on_progress: Progress | None,
    files: SharedFiles,
) -> SalvagedStore:
    """Save every sound message of a store into `target`; see `segproof.repair.salvage_store`.

    `new_sizes` are the slots and entries of index files, and the bytes of files of the log.
    """
    hash_slot_num, index_num, mapped_file_size = new_sizes
    check_apart(store, target, "old one")
    check_outside(target, files)
    check_finished(store, unfinished_store(store, files))
    check_empty(target, files)
    beside = check_layout(store, files)
    log, odd_files = judges.log(store, files)
    if not log.log_files:
        raise no_log_in(store, files)
    log = with_file_size(log, mapped_file_size, files)
    rests = RestsOfFiles(log, files)
    run = _Salvage(rests.log, target, files, on_progress, rests)
    run.told.log_folders = linked_folders(rests.log)
    run.tell_unknown()
    run.told.left_out += [f"{one.path}: {one.message}" for one in odd_files]
    if beside is not None:
        run.told.left_out.append(f"{beside.path}: {beside.words}; nothing of it was saved")
    begin_salvage(target, files)
    run.copy()
    if run.told.target is not None:
        run.settle()
        run.index(new_geometry(store, hash_slot_num, index_num, files), judges.check)
        run.bring_extras()
        run.checkpoint()
    else:
        run.leave_extras()
    end_salvage(target, files)
    return run.told


class _Stored(NamedTuple):
    """The times of some messages of a file that were kept."""

    start: int
    """Of the file."""
    times: Int64Array
    born: Int64Array
    places: Int64Array
    """Where each lies in the log."""
    times_at: Int64Array
    """Where its store time does."""
    is_behind_gap: bool
    fillers: list[int]
    """The places of the messages that fill a gap before them: they get the time of the first."""


class _Salvage:
    """One run."""

    def __init__(
        self, log: CommitLog, target: str, files: SharedFiles, on_progress: Progress | None,
        rests: RestsOfFiles,
    ) -> None:  # fmt: skip
        self.told = SalvagedStore(log.store_path, None, mapped_file_size=log.mapped_file_size)
        self._target = target
        self._files = files
        self._rests = rests
        self.told.bytes_read = sum(one.size_bytes for one in log.log_files)
        self._meter = Meter(on_progress, 2 * self.told.bytes_read)
        self._in_order = LogInOrder(log, rests, open_file=rests.open, advance=self._meter.add)
        self._log = self._in_order.log
        self._tell_placed()
        self._new_log = CommitLogCopy(target, log.mapped_file_size, files)
        self._queues = ConsumeQueueCopy(
            self._in_order.renamed(), target, queue_file_size(log.store_path, files), files
        )  # fmt: skip
        self._gaps: list[Gap] = []
        self._zeros: list[Gap] = []
        """Zeros at the end so far: a gap if anything follows."""
        self._end = 0
        """Offset after the last message that was kept."""
        self._time = -1
        """The latest likely time of the messages so far, but for older ones behind a gap."""
        self._newest = -1
        """The largest store time of the messages so far, as they say."""
        self._times = TimesAround[_Stored]()
        self._old_times = IndexTimes(os.path.join(log.store_path, INDEX), files)
        self._restored: set[int] = set()
        """The places of messages that got a likely store time."""
        self._ends: dict[str, int] = {}
        """By path of a file: the offset behind its last message, or its last gap."""

    # --- log and queues

    def _tell_placed(self) -> None:
        """Tell what became of the messages of the old log."""
        told, placed = self.told, self._in_order
        told.moved_messages = placed.count(Fate.MOVED)
        told.copied_messages = placed.count(Fate.COPY)
        told.restored_messages = placed.count(Fate.RESTORED)
        told.fillers = placed.count(Fate.FILLER)
        told.misnamed_files = placed.misnamed()
        told.unreadable_bytes = placed.unreadable_bytes
        length = self._log.mapped_file_size - placed.bytes_put_in
        is_alone, is_odd = len(self._log.log_files) == 1, self._log.mapped_file_size % PAGE_BYTES
        if is_alone and is_odd and not length % PAGE_BYTES:
            told.file_size_by_messages = length

    def tell_unknown(self) -> None:
        """Tell of files whose messages do not go on where the log before them ends."""
        on_disk = {one.path for one in self._rests.log.log_files}
        files = tuple(one for one in self._log.log_files if one.path in on_disk)
        log = CommitLog(self._log.store_path, self._log.mapped_file_size, files, self._files)
        unknown = unknown_files(log, self._files, self._in_order.pieces)
        self.told.left_out += [one.words_of_salvage() for one in unknown]

    def copy(self) -> None:
        """Copy all that is kept, and make its queues."""
        told = self.told
        for piece in self._in_order.pieces():
            if isinstance(piece, Gap):
                self._zeros.append(piece)
                if piece.kind is not GapKind.ZEROS:
                    self._close_gaps()
            elif isinstance(piece, Filler):
                # It is made new from the messages around: so a second salvage changes no byte.
                self._queues.lose(piece.end - piece.start)
            else:
                self._close_gaps()
                self._keep(piece)
                self._meter.add(int(piece.sizes.sum()))
        for one, around in self._times.finish():
            self._judge_times(one, around)
        self._new_log.close()
        self._queues.close()
        told.restored_times = len(self._restored)
        told.queues, told.stand_ins = len(self._queues), self._queues.stand_ins
        told.unqueued_messages, told.lost_numbers = self._queues.unqueued, self._queues.lost
        self._tell_gaps()
        is_end_known = any(one.offset >= self._end and one.messages for one in told.gaps)
        if not is_end_known and not told.restored_times:
            later, told.is_end_lost = later_messages(
                self._log.store_path, self._newest, self._files
            )
            told.left_out += later
            told.is_lost_exact &= not later
        self._tell_left()

    def _tell_left(self) -> None:
        """Tell which messages of the old log are not in the new one."""
        right, wrong = self._in_order.units_met()
        ranges = list(self._in_order.left())
        told, others = self.told, [one for one in ranges if one.is_of_others]
        is_alone = wrong > 0 == right and not told.gap_count
        if (is_alone or are_of_other_log(right, wrong)) and not others:
            told.is_lost_exact &= not is_alone
            told.left_out.append(_words_of_other_log(self._log.store_path, right, wrong))
        told.foreign_messages = sum(one.messages for one in others)
        told.misplaced_messages = sum(one.messages for one in ranges) - told.foreign_messages
        for one in ranges:
            path, position = self._rests.place_of(one.path, one.position)
            told.left_out.append(one._replace(path=path, position=position).words())

    def _keep(self, block: MessageBlock) -> None:
        told, places = self.told, block.lies_at
        times, file = block.store_timestamps, self._log.file_of(int(places[0]))
        assert file is not None
        start = file.start
        self._newest = max(self._newest, int(times.max()))
        if told.target is None:
            told.target, told.first_offset = self._target, int(places[0])
            self._queues.begin(start)
            # What lies before it in its file is filled as well.
        first, end = block.span
        data: bytes | bytearray | memoryview = memoryview(block.data)[first:end]
        wrong = np.flatnonzero(block.phy_offsets != places)
        if len(wrong):
            data = bytearray(data)
            for number in wrong.tolist():
                place = int(places[number])
                MESSAGE["physical_offset"].put(data, place, place - int(places[0]))
        self._ends[file.path] = self._end = int(block.ends_at[-1])
        time = int(sorted(times[:3])[len(times[:3]) // 2])
        fillers = self._new_log.put(start, int(places[0]), memoryview(data), time)
        for number, place in enumerate(places.tolist()):
            self._queues.put(block.message(number), place)
        born = block.born_timestamps(np.arange(len(places)))
        times_at = places + np.where(block.flags & BORN_HOST_V6, STORE_TIME_V6, STORE_TIME_V4)
        has_gaps = bool(self._gaps)
        stored = _Stored(start, times.copy(), born, places, times_at, has_gaps, fillers)
        for one, around in self._times.add(stored, stored.times):
            self._judge_times(one, around)
        told.messages += len(places)
        told.bytes_kept += end - first
        told.last_offset = int(places[-1])

    def _judge_times(self, stored: "_Stored", around: Bounds) -> None:
        """Put the likely time into messages that have another one."""
        told = self._old_times.told(stored.places)
        likely = likely_times(stored.times, stored.born.__getitem__, around, told)
        for row in np.flatnonzero(likely != stored.times).tolist():
            self._restored.add(int(stored.places[row]))
            self._new_log.restore(stored.start, int(stored.times_at[row]), int(likely[row]))
        for place in stored.fillers:
            for at in (place + MESSAGE["born_timestamp"].place, place + STORE_TIME_V4):
                self._new_log.restore(stored.start, at, int(likely[0]))
        if stored.is_behind_gap:
            self.told.older_messages += int(np.count_nonzero(likely < self._time))
        self._time = max(self._time, int(likely.max()))

    def _close_gaps(self) -> None:
        for gap in self._zeros:
            self._queues.lose(gap.size_bytes)
            self._ends[gap.path] = gap.end
            last = self._gaps[-1] if self._gaps else None
            is_joined = last is not None and (last.kind, last.end) == (gap.kind, gap.start)
            is_joined = is_joined and self.told.gap_count == len(self._gaps)
            self.told.gap_count += not is_joined
            if last is not None and is_joined:
                self._gaps[-1] = last._replace(end=gap.end)
            elif len(self._gaps) < GAPS_MAX:
                self._gaps.append(gap)
        self._zeros.clear()

    def _tell_gaps(self) -> None:
        """Tell each gap, with the messages that the old queues lead to."""
        counts: list[LostMessages] | None = None
        with suppress(OSError):
            self._close_end()
            counts = self._messages_in(self._gaps, self._end)
        starts = {one.path: one.start for one in self._log.log_files}
        for number, gap in enumerate(self._gaps):
            count = None if counts is None else counts[number]
            told = (None, False) if count is None else count
            path, position = self._rests.place_of(gap.path, gap.start - starts[gap.path])
            kind = GapKind.MISSING if path.endswith(OF_MOVED) else gap.kind
            place = (kind.value, position, gap.start, gap.size_bytes)
            self.told.gaps.append(StoreGap(path.removesuffix(OF_MOVED), *place, *told))
        if counts is not None and self.told.gap_count == len(counts):
            self.told.lost_messages, self.told.is_lost_exact = lost_together(counts)
        with suppress(OSError):
            self._tell_overwritten()

    def _tell_overwritten(self) -> None:
        """Tell what files had whose names others have now, before the first file. Raises: OSError.

        A broker removes its oldest files itself, so these messages may not be lost.
        """
        size, first = self._log.mapped_file_size, self._log.min_offset
        wrong = [one for one in self.told.misnamed_files if one.named + size <= first]
        wrong.sort(key=lambda one: one.named)
        gaps = [Gap(GapKind.MISSING, one.path, one.named, one.named + size) for one in wrong]
        counts = messages_in(self._log.store_path, gaps, self._files) or []
        for one, count in zip(wrong, counts, strict=False):
            if count.known:
                self.told.is_lost_exact = False
                self.told.left_out.append(
                    f"{one.path}: its messages begin at offset {one.start}, and by its name at"
                    f" {one.named}: {plural(count.known, 'message')} of the file of this name, as"
                    " queues and index tell, expired before, or that file was overwritten; look"
                    " for it on a replica"
                )

    def _messages_in(
        self, gaps: list[Gap], sound_end: int = INT64_MAX
    ) -> list[LostMessages] | None:
        """Return how many messages are lost in each gap, as `verify` counts. Raises: OSError."""
        return messages_in(
            self._log.store_path,
            gaps,
            self._files,
            sound_end,
            self._in_order.sound_messages,
            are_some_ours=self._in_order.units_met()[0] > 0,
        )

    def _close_end(self) -> None:
        """Take the ends of files for gaps, as far as the old queues lead there. Raises: OSError."""
        last, size = self._log.log_files[-1], self._log.mapped_file_size
        files = range(last.start + size, INT64_MAX - size, size)[: LOST_FILES_MAX + 1]
        ends = pairwise([last.start + last.size_bytes, *files])
        behind = [Gap(GapKind.MISSING, last.path, *one) for one in ends if one[0] < one[1]]
        if not self.told.bytes_read:  # no file tells how long the files of this log are
            reached = ends_of(self._log.store_path, self._files)[1]
            behind = [Gap(GapKind.MISSING, last.path, last.start, max(last.start, reached) + 1)]
        possible = self._zeros + behind
        counts = self._messages_in(possible) or []
        reached = max((number for number, lost in enumerate(counts, 1) if lost.known), default=0)
        ended = {one.path for one in self._zeros}
        self._zeros = possible[:reached]
        self._close_gaps()
        # A blank end may be damage itself, of the last message of its file.
        begins = ((self._ends.get(one.path, one.start), one) for one in self._log.log_files)
        rests = [
            Gap(GapKind.BROKEN, one.path, begin, one.start + one.size_bytes)
            for begin, one in begins
            if one.path not in ended
        ]
        counts = self._messages_in(rests) or []
        lost = [gap for gap, count in zip(rests, counts, strict=False) if count.known]
        self.told.gap_count += len(lost)
        self._gaps = sorted([*self._gaps, *lost[: GAPS_MAX - len(self._gaps)]], key=_start_of)

    # --- what belongs to it

    def settle(self) -> None:
        """Let no time be impossible beside those that were restored. Raises: OSError."""
        if self.told.restored_times:
            size = self._log.mapped_file_size
            log = CommitLog.open(self._target, size, files=self._files)
            old_index = os.path.join(self._log.store_path, INDEX)
            self._restored |= settle_times(log, old_index, self._files)
            self.told.restored_times = len(self._restored)
            blocks = LogReader(log, self._files).blocks()
            self._time = max(int(block.store_timestamps.max()) for block in blocks)

    def index(self, new: NewGeometry, check: CheckPlace) -> None:
        """Make the index of what was kept. Raises: SegproofError; OSError."""
        geometry = new.geometry
        self.told.hash_slot_num, self.told.index_num = geometry
        self.told.geometry_from = new.origin.value
        log = CommitLog.open(self._target, self._log.mapped_file_size, files=self._files)
        tags, counts_puts = True, False
        try:
            paths = index_of_this_log(self._log.store_path, self._files)
            tags = tags_in_old_index(paths[::-1], geometry, log, self._files) is not False
            counts_puts = counts_puts_in_old_index(paths, geometry, self._files)
        except (OSError, SegproofError):
            pass  # a damaged index tells nothing: it is made as by the newest release
        wanted = IndexWanted(
            check=check, index_tags=tags, count_puts=counts_puts, keep_times=True,
            told_geometry=told_geometry(self._target, *geometry, self._files, is_moved=False),
        )  # fmt: skip
        rebuilt = rebuild_from_log(
            self._target, None, wanted, self._log.mapped_file_size, self._files
        )
        if rebuilt.findings:
            one = rebuilt.findings[0]
            raise SegproofError(
                one.message, law=one.law, path=one.path, position=one.position,
                hint="report it, with the log if you can",
            )  # fmt: skip
        if new.is_guess:
            keep_guess(self._target, geometry, self._files)
        self.told.index_files = len(rebuilt.files)
        self.told.index_entries = sum(one.entries for one in rebuilt.files)

    def leave_extras(self) -> None:
        """Tell of all beside a log without a sound message: no store is made of it."""
        extras = Extras(self._log.store_path, self._target, self._files)
        extras.leave_all()
        self.told.left_out += extras.left_out

    def bring_extras(self) -> None:
        """Copy what a broker keeps beside its messages; tell what is left out."""
        extras = Extras(self._log.store_path, self._target, self._files)
        extras.bring_config()
        told = self.told
        is_whole = not told.gap_count and not told.unreadable_bytes
        extras.bring_timers(self._end, is_whole=is_whole)
        log = CommitLog.open(self._target, self._log.mapped_file_size, files=self._files)
        extras.bring_batch_queues(log, self._end)
        told.is_end_lost |= bool(extras.timers_beyond)
        extras.tell_others()
        extras.sync_folders()
        told.left_out += extras.left_out
        told.config_lacks = extras.config_lacks
        told.has_database_of_queues = extras.has_database_of_queues
        end_of = partial(self._queues.end_of, are_some_lost=not is_whole)
        told.offsets_beyond = offsets_beyond(self._log.store_path, end_of, self._files)

    def checkpoint(self) -> None:
        """Write the checkpoint of a store that was stopped cleanly."""
        with StoreCheckpoint.open(
            os.path.join(self._target, CHECKPOINT), create=True, files=self._files
        ) as checkpoint:
            checkpoint.set_physic_msg_timestamp(max(0, self._time))
            # Without a message in a queue no broker sets this time, and RMQDISK-37 asks for queues.
            if self.told.queues:
                checkpoint.set_logics_msg_timestamp(max(0, self._time))
            for end in _full_index_ends(os.path.join(self._target, INDEX), self._files):
                checkpoint.set_index_msg_timestamp(end)
            checkpoint.flush()


def _words_of_other_log(store_path: str, right: int, wrong: int) -> str:
    """Return what a salvage leaves out of a store whose queues and index are of another log.

    `right` and `wrong` count the first places in its files that they lead to.
    """
    doubt = "" if are_of_other_log(right, wrong) else ", or these are damaged"
    return (
        f"{os.path.join(store_path, COMMIT_LOG)}: this log is not that of index"
        f" and queues: it is of another store, was emptied or begun again{doubt}; of the first"
        f" {right + wrong} places in it that they lead to, {wrong} have no"
        " message of theirs. The messages of the former log are not in the new store, and no"
        " queue that only they had: look for the former log, and keep the old store"
    )


def _start_of(gap: Gap) -> int:
    return gap.start


def _full_index_ends(folder: str, files: Files) -> Iterator[int]:
    """Yield the end timestamps of the index files before the last one: they are full."""
    names = index_file_names(files.list_directory(folder))
    for name in names[:-1]:
        with closing(files.open(os.path.join(folder, name))) as file:
            header = read_stored_header(file)
        if header is not None and header.end_timestamp > 0:
            yield header.end_timestamp
