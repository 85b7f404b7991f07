# SPDX-License-Identifier: Apache-2.0
"""The logs of a partition in their order, read once, and each batch with its fate.

Laws: DISK-69, PROD-8.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import NamedTuple

import numpy as np

from segproof.files import Files, status_of
from segproof.integers import INT64_MAX
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.inventory.small_files import known_epochs
from segproof.kafka.batch_table import BatchScan
from segproof.reading.file_names import EPOCHS
from segproof.reading.index_origins import shows_name
from segproof.reading.log_order import NamedLog, in_order
from segproof.salvaging.gaps import Gap
from segproof.salvaging.lost_ends import entries_beside
from segproof.salvaging.new_logs import KeptBatches
from segproof.salvaging.open_transactions import OpenTransactions
from segproof.salvaging.other_logs import OtherLogs, SegmentJudge, other_logs
from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import (
    NO_ENTRIES,
    Facts,
    FramedLog,
    Int64s,
    NeedsBatches,
    Part,
    Rows,
)
from segproof.stretches.kafka.framing import LogSource, frame_partition, open_stretches
from segproof.stretches.kafka.in_place import IN_PLACE, LogFates, rows_of_log
from segproof.stretches.kafka.placing import Placement, place_all
from segproof.stretches.kafka.rules import RULES
from segproof.stretches.unreadable_blocks import ReadableParts

PROOF_BATCHES = 2
"""So many batches of a log prove its name wrong: a single one may have the wrong offset itself."""


UNLOADABLE, COPY, FOREIGN, ODD_END = "unloadable", "copy", "foreign", "odd end"
"""Names of rules in `stretches.kafka.rules`."""
_COST_NO_DOUBT = [n for n, rule in enumerate(RULES) if rule.name in (UNLOADABLE, COPY)]


@dataclass(frozen=True, slots=True)
class PlacedLog:
    """One log of a partition, or the place of one that can't be saved."""

    path: str
    base_offset: int
    """The offset in its name, or in the name that it should have."""
    next_base_offset: int | None
    """The same of the next log that is read; None for the last one."""
    is_indexed: bool = False
    """Whether its name is right, so that the index beside it is its own."""
    is_other: bool = False
    """Whether it is a log that is not the one of its indexes, and is set aside whole."""
    is_gone: bool = False
    """Whether it is not there, and a file beside it says that it was."""
    error: str = ""
    """Why it can't be opened; empty if it can be."""

    @property
    def named(self) -> NamedLog:
        """Return its path and its base offset."""
        return NamedLog(self.path, self.base_offset)

    @property
    def is_read(self) -> bool:
        """Return whether its batches are read."""
        return not (self.is_other or self.is_gone or self.error)


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """What lies in the logs of a partition, and what becomes of it."""

    logs: tuple[PlacedLog, ...]
    """In the order of their contents; `Facts.logs` has one for each."""
    facts: Facts
    placement: Placement
    others: OtherLogs
    wrong_names: tuple[NamedLog, ...]
    """The logs whose batches are not those of their name."""
    renamed_logs: int
    new_logs: Int64s
    """For each kept row, in the order of offsets, the number of the log whose place it comes to."""

    def end_of(self, number: int) -> int | None:
        """Return the offset with which the next log begins; None for the last one."""
        following = _following(self.logs, number)
        return None if following is None else _begin_of(self.facts, self.logs, following)

    @property
    def blank_begin(self) -> int | None:
        """Return the offset in the name of the first log if no batch is in it; else None."""
        is_blank = self.logs[0].is_read and not rows_of_log(self.facts, 0)
        return self.logs[0].base_offset if is_blank else None

    @property
    def last_log(self) -> PlacedLog | None:
        """Return the last log that is read; None without one."""
        return next((one for one in reversed(self.logs) if one.is_read), None)

    @property
    def is_end_blank(self) -> bool:
        """Return whether the last log that is read has nothing but zeros."""
        last = self.last_log
        known = None if last is None else self.facts.logs[self.logs.index(last)]
        if known is None or known.unreadable_bytes:
            return False
        return known.size > 0 == known.zeros_from

    def kept_in(self, number: int) -> list[KeptBatches]:
        """Return what comes into the new log in the place of a log, in the order of offsets.

        A batch that stays lies in its own; one that is moved, in the first one after all before it
        that goes as far. Batches that touch and stay as they are come together; of those that are
        moved, only if no offset is missing between them.
        """
        first, end = np.searchsorted(self.new_logs, (number, number + 1)).tolist()
        kept = self.placement.kept[first:end]
        if not len(kept):
            return []
        rows, fates = self.facts.rows[kept], self.placement.fates[kept]
        firsts = self.placement.firsts[kept]
        is_plain = np.isin(fates, (Fate.KEPT, Fate.MOVED)) & ~rows["is_mended"]
        is_dense = rows["last"][:-1] + 1 == rows["first"][1:]
        joins = is_plain[:-1] & is_plain[1:] & (fates[:-1] == fates[1:])
        joins &= (rows["end"][:-1] == rows["start"][1:]) & (rows["log"][:-1] == rows["log"][1:])
        joins &= (fates[1:] == Fate.KEPT) | is_dense
        begins = np.flatnonzero(np.append(True, ~joins))
        ends = np.append(begins[1:], len(kept)) - 1
        columns = (
            rows["log"][begins], rows["start"][begins], rows["end"][ends], firsts[begins],
            (firsts + rows["last"] - rows["first"])[ends],
            np.add.reduceat(rows["batches"], begins), np.add.reduceat(rows["records"], begins),
            (firsts != rows["first"])[begins], rows["is_mended"][begins],
            (fates == Fate.MOVED)[begins],
        )  # fmt: skip
        return list(starmap(KeptBatches, zip(*(one.tolist() for one in columns), strict=True)))

    def fates_of(self, number: int) -> LogFates:
        """Return the rows of a log with what becomes of them."""
        return LogFates.of(self.facts, self.placement, number)

    def leaving(self, number: int) -> list[int]:
        """Return the rows of a log that do not stay where they lie, in their order."""
        own = rows_of_log(self.facts, number)
        is_leaving = ~np.isin(self.placement.fates[own.start : own.stop], IN_PLACE)
        return (own.start + np.flatnonzero(is_leaving)).tolist()

    def last_run(self, number: int) -> tuple[int, int] | None:
        """Return the bytes of the batches that touch at the end of a log, and stay as they are.

        They are none in an empty log. Return None if the log ends otherwise.
        """
        rows, end = self.facts.rows, self.facts.logs[number].size
        start = end
        for row in reversed(rows_of_log(self.facts, number)):
            is_kept = self.placement.fates[row] == Fate.KEPT and not rows["is_mended"][row]
            if rows["end"][row] != start or not is_kept:
                break
            start = int(rows["start"][row])
        return (start, end) if start < end or not end else None

    def last_time(self, number: int | None = None) -> int:
        """Return the largest timestamp that is kept, of one log or of all; -1 without one."""
        kept = self.placement.kept
        kept = kept if number is None else kept[self.new_logs == number]
        return int(self.facts.rows["max_time"][kept].max(initial=-1))

    def left_out(self) -> int:
        """Return how many offsets are left out between the batches that are kept."""
        rows, firsts, lasts = self._kept_offsets()
        inside = (lasts - firsts + 1 - rows["offsets"]).sum()
        return int(inside + (firsts[1:] - lasts[:-1] - 1).sum())

    def lone_hole(self, told: Collection[Gap]) -> int:
        """Return how many offsets are missing between two logs, or before the first batch.

        0 if they are told as gaps, or if others are missing too: the log cleaner leaves offsets out
        at many places, and hardly at one border alone.
        """
        rows, firsts, lasts = self._kept_offsets()
        if rows["leaps"].any() or not len(rows):
            return 0
        begins = np.append(self.logs[0].base_offset, lasts[:-1] + 1)
        is_hole = begins < firsts
        for gap in told:
            is_hole &= (gap.first_lost_offset > begins) | (begins > (gap.last_lost_offset or 0))
        (holes,) = np.nonzero(is_hole)
        is_border = np.append(True, self.new_logs[1:] != self.new_logs[:-1])
        return int((firsts - begins)[holes[0]]) if len(holes) == 1 and is_border[holes[0]] else 0

    @property
    def is_cut_apart(self) -> bool:
        """Return whether of two batches that go on with each other one stays, and one is set aside.

        Both are of one topic, so another topic's batches may have stayed.
        """
        rows, rules = self.facts.rows, self.placement.rules
        stays = np.isin(self.placement.fates, IN_PLACE)
        goes = (self.placement.fates == Fate.ASIDE) & ~np.isin(rules, _COST_NO_DOUBT)
        is_same = (rows["end"][:-1] == rows["start"][1:]) & (rows["log"][:-1] == rows["log"][1:])
        is_same &= rows["last"][:-1] + 1 == rows["first"][1:]
        is_cut = (stays[:-1] & goes[1:]) | (goes[:-1] & stays[1:])
        return bool((is_same & is_cut).any())

    @property
    def is_below_name(self) -> bool:
        """Return whether a batch that stays in its log lies before the name of that log.

        Then either the name is wrong, or another log should lie under it.
        """
        rows, _, lasts = self._kept_offsets()
        names = np.array([one.base_offset for one in self.logs], np.int64)[rows["log"]]
        stays = np.isin(self.placement.fates[self.placement.kept], IN_PLACE)
        return bool((stays & (lasts < names)).any())

    def _kept_offsets(self) -> tuple[Rows, Int64s, Int64s]:
        """Return the rows that are kept, each with its first and last offset."""
        rows = self.facts.rows[self.placement.kept]
        firsts = self.placement.firsts[self.placement.kept]
        return rows, firsts, firsts + rows["last"] - rows["first"]

    def epochs(self) -> tuple[int, bool]:
        """Return the leader epoch of the last kept batch, and whether none is below one before it.

        Batches before magic 2 have none; -1 if no other is kept.
        """
        rows = self.facts.rows[self.placement.kept]
        epochs = rows["epoch"][rows["magic"] == 2]
        return (int(epochs[-1]) if len(epochs) else -1), bool((epochs[:-1] <= epochs[1:]).all())


def place_partition(
    partition: Partition, files: Files, judge: SegmentJudge, on_bytes: Callable[[int], None]
) -> PlacedPartition:
    """Read the logs of a partition, and decide what becomes of each batch.

    `on_bytes` is called with the number of bytes that were read since the call before. Of what the
    judge knows to be sound, only headers are read.
    Memory: as `frame_partition` and `place`. Raises: OSError for any trouble but logs that can't be
    opened, and blocks that the disk does not return; CorruptRecordError if a log changes meanwhile.
    """
    others = other_logs(partition.segments, files, judge)
    named = {
        one.base_offset: NamedLog(one.path(".log"), one.base_offset)
        for one in partition.segments
        if ".log" in one.suffixes and not one.is_passed_by and one.path(".log") not in others.paths
    }
    ordered = in_order(
        [*named.values()],
        lambda path: ReadableParts(files.open(path)),
        batches_min=PROOF_BATCHES,
    )
    by_name = dict(zip(named, ordered, strict=True))
    bases = [one.base_offset for one in ordered]
    following = dict(zip(ordered, [*bases, None][1:], strict=True))
    logs = list[PlacedLog]()
    for segment in partition.segments:
        log = by_name.get(segment.base_offset)
        if log is not None:
            is_right, error = log in named.values(), _error_of(log.path, files)
            logs.append(PlacedLog(*log, following[log], is_right, error=error))
        elif segment.path(".log") in others.paths or not segment.held_by:
            logs.append(_lost_log(segment, others, files))
    logs.sort(key=lambda log: log.base_offset)
    sources = [_source(log, files, judge) for log in logs]
    facts = frame_partition(sources, on_bytes)
    wrong = tuple(one for one in named.values() if one not in ordered)
    right = _right_names(logs, facts, files)
    for number, name in right.items():
        after = _following(logs, number)
        assert after is not None
        logs[number] = replace(logs[number], next_base_offset=name)
        logs[after] = replace(logs[after], base_offset=name)
    bounds = [
        replace(one, base_offset=log.base_offset, next_base_offset=log.next_base_offset)
        for one, log in zip(facts.logs, logs, strict=True)
    ]
    facts, placement = _placed(
        replace(facts, logs=tuple(bounds), epochs=_epochs_of(partition, files)), sources
    )
    return PlacedPartition(
        tuple(logs), facts, placement, others, wrong, len(wrong) + len(right),
        _new_logs(logs, facts, placement),
    )  # fmt: skip


def _epochs_of(partition: Partition, files: Files) -> tuple[tuple[int, int], ...]:
    """Return the leader epochs of a partition, each with its first offset, as its file says."""
    entries = known_epochs(partition.path(EPOCHS), files) if EPOCHS in partition.others else []
    return tuple((one.epoch, one.start_offset) for one in entries)


def _lost_log(segment: Segment, others: OtherLogs, files: Files) -> PlacedLog:
    path, bounds = segment.path(".log"), (segment.base_offset, segment.next_base_offset)
    is_other = path in others.paths
    error = _error_of(path, files) if segment.is_passed_by else ""
    return PlacedLog(path, *bounds, is_other=is_other, is_gone=not is_other, error=error)


def _error_of(path: str, files: Files) -> str:
    """Return why a log can't be opened; empty if it can be."""
    try:
        files.open(path).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _source(log: PlacedLog, files: Files, judge: SegmentJudge) -> LogSource:
    return LogSource(
        log.base_offset, log.next_base_offset, partial(files.open, log.path),
        lambda: entries_beside(log.named, files) if log.is_indexed else NO_ENTRIES,
        is_missing=not log.is_read, sound_to=judge.sound_to(log.path),
        framed=_framed(log, files, judge),
    )  # fmt: skip


def _framed(log: PlacedLog, files: Files, judge: SegmentJudge) -> FramedLog | None:
    """Return what is known of a log if it was read under the same names, and is as long still."""
    known, status = judge.framed(log.path), status_of(files, log.path)
    if known is None or status is None or not log.is_indexed:
        return None
    is_same = known.is_of(log.base_offset, log.next_base_offset, status.size_bytes)
    return known if is_same else None


# --- names


def _following(logs: Sequence[PlacedLog], number: int) -> int | None:
    """Return the number of the log whose name ends a log; None for the last one."""
    later = range(number + 1, len(logs))
    return next((one for one in later if not (logs[one].is_other or logs[one].is_gone)), None)


def _begin_of(facts: Facts, logs: Sequence[PlacedLog], number: int) -> int:
    """Return where a log begins, by its name and its first batch: the later one.

    What compaction took away at its begin lies before that. The name alone is the limit of the log
    before: a base offset may be wrong.
    """
    base, first = logs[number].base_offset, _first_of(facts, number)
    return base if first is None else max(base, first)


def _first_of(facts: Facts, number: int) -> int | None:
    """Return the offset of a log's first batch; None if it is not at byte 0.

    Also None if the batch after it has an earlier offset: one of the two is wrong.
    """
    numbers = rows_of_log(facts, number)
    own = facts.rows[numbers.start : numbers.stop]
    is_known = len(own) > 0 and not own["start"][0]
    is_known &= not (own["first"][1:2] <= own["last"][:1]).any()
    return int(own["first"][0]) if is_known else None


def _right_names(logs: Sequence[PlacedLog], facts: Facts, files: Files) -> dict[int, int]:
    """Return the right name of the log that follows, for each whose last batches contradict it.

    They lie between that name and the first offset of the next log. They may have wrong base
    offsets if the index of the next log was made under its name. So is a name wrong that is above
    the first offset of the next log, if this is the one after the last batch.
    """
    found = dict[int, int]()
    for number, log in enumerate(logs):
        following, limit = _following(logs, number), log.next_base_offset
        own = rows_of_log(facts, number)
        if following is None or limit is None or not own:
            continue
        row = facts.rows[own[-1]]
        last, begin = int(row["last"]), _begin_of(facts, logs, following)
        if row["end"] != facts.logs[number].size:
            continue
        first = _first_of(facts, following)
        if first == last + 1 < limit:
            found[number] = first
        if not limit <= last < begin:
            continue
        if last == begin - 1 or not shows_name(logs[following].named, files):
            found[number] = begin
    return found


# --- fates


def _new_logs(logs: Sequence[PlacedLog], facts: Facts, placement: Placement) -> Int64s:
    kept, firsts = placement.kept, placement.firsts[placement.kept]
    ends = [  # nothing is saved in the place of a log that is not read
        (INT64_MAX if one.next_base_offset is None else one.next_base_offset) if one.is_read else 0
        for one in logs
    ]
    by_name = np.searchsorted(np.maximum.accumulate(np.array(ends, np.int64)), firsts, "right")
    is_in_place = np.isin(placement.fates[kept], IN_PLACE)
    found: Int64s = np.maximum.accumulate(np.where(is_in_place, facts.rows["log"][kept], by_name))
    return found


class _Refused(NamedTuple):
    """A batch with which no broker loads the log that is kept."""

    row: int
    log: int
    position: int
    first_offset: int


def _placed(facts: Facts, sources: Sequence[LogSource]) -> tuple[Facts, Placement]:
    """Return the fates of all batches: a broker loads a log of those that are kept."""

    def opened(facts: Facts, needs: NeedsBatches) -> Facts:
        return open_stretches(facts, needs, sources)

    while True:
        facts, placement = place_all(facts, opened)
        refused = _refused(facts, placement, sources)
        if not refused:
            return facts, placement
        inside = defaultdict[int, list[int]](list)
        for one in refused:
            if facts.rows["batches"][one.row] > 1:
                inside[one.row].append(one.first_offset)
        parts = tuple(Part(row, tuple(inside[row])) for row in sorted(inside))
        facts = opened(facts, NeedsBatches(parts)) if parts else facts
        rows = facts.rows.copy()
        for one in refused:
            is_it = (rows["log"] == one.log) & (rows["start"] == one.position)
            rows["is_loadable"][is_it] = False
        facts = replace(facts, rows=rows)


def _refused(facts: Facts, placement: Placement, sources: Sequence[LogSource]) -> list[_Refused]:
    """Return the kept batches of producers that lie outside of their open transactions."""
    rows, found, transactions = facts.rows, list[_Refused](), OpenTransactions()
    with ExitStack() as stack:
        files = dict[int, ReadableParts]()
        for row in placement.kept.tolist():
            is_asked = rows["is_transactional"][row] or transactions.is_any_open
            if not is_asked or rows["is_mended"][row]:
                continue
            number = int(rows["log"][row])
            if number not in files:
                stack.close()
                file = ReadableParts(sources[number].open())
                files = {number: stack.enter_context(closing(file))}
            start, end = int(rows["start"][row]), int(rows["end"][row])
            for table in BatchScan(files[number], start, end, deep=False).tables():
                for one in table[transactions.refused(table)]:
                    place = int(one["position"]), int(one["base_offset"])
                    found.append(_Refused(row, number, *place))
    return found
