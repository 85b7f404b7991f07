# SPDX-License-Identifier: Apache-2.0
"""A damaged commit log as it was placed: each message at the offset that it gets, and the gaps.

Laws: RMQLOG-1 to RMQLOG-3, RMQDISK-24, RMQDISK-25.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from heapq import merge
from typing import NamedTuple

import numpy as np

from segproof.counts import plural, verb
from segproof.files import Files, ReadOnlyFile, first_byte
from segproof.integers import INT32_MAX
from segproof.reading.log_gaps import Gap
from segproof.reading.log_names import Misnamed, are_names_right
from segproof.reading.placed_log import placed
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, log_file_name
from segproof.rocketmq.message import BLANK_BYTES
from segproof.stretches.rocketmq.desk import KEEPING, Fate
from segproof.stretches.rocketmq.facts import Int64s, Met
from segproof.stretches.rocketmq.framing import LogReading, See
from segproof.stretches.rocketmq.message_blocks import LogReader, MessageBlock
from segproof.stretches.rocketmq.placing import RULES
from segproof.stretches.spans import Span, SpanKind
from segproof.stretches.unreadable_blocks import BLOCK_BYTES, ReadableParts

PAGE_BYTES = 4096
"""A broker's mappedFileSizeCommitLog is a multiple of this, unless somebody chose an odd one."""
OF_MOVED = ".moved"
"""Ends the path of a file of moved messages alone whose name another file has. No disk has it."""
OF_OTHERS = ("other store", "other log")
"""The rules that find messages of another store."""
_KINDS = {
    Fate.KEPT: SpanKind.SOUND,
    Fate.FILLER: SpanKind.SOUND,
    Fate.RESTORED: SpanKind.RESTORED,
    Fate.MOVED: SpanKind.MOVED,
    Fate.COPY: SpanKind.ASIDE,
    Fate.ASIDE: SpanKind.ASIDE,
}
NAMED = next(number for number, rule in enumerate(RULES) if rule.name == "file name")


class Filler(NamedTuple):
    """A message that an earlier salvage put in the place of lost ones."""

    start: int
    """Its offset."""
    end: int


class LeftRange(NamedTuple):
    """Messages of the old log, one after the other in a file, that are not kept."""

    path: str
    position: int
    size_bytes: int
    messages: int
    says: int
    """The offset that the first of them says."""
    is_of_others: bool
    """Whether they are of another store: several say one distance that nothing confirms, or units
    contradict them. Else the offset of one message is damaged, or it is a copy."""

    def words(self) -> str:
        """Return what they are, and where they lie."""
        counted = plural(self.messages, "message")
        where = f"in {self.size_bytes} bytes from byte {self.position} on"
        if self.is_of_others:
            return (
                f"{self.path}: {counted} of another store, or of an earlier file, {where}: they"
                " were copied over this log, and queues, index and numbers of this store know none"
                " of them; look which store lacks them"
            )
        return (
            f"{self.path}: {counted} {where} {verb(self.messages, 'is', 'are')} not in the new"
            " store: other messages have the offsets that they say, or nothing tells their place"
        )


class _Span(NamedTuple):
    """Bytes of a file, all of them messages that are kept one after the other."""

    offset: int
    """That the first of them gets."""
    file: int
    start: int
    end: int


class LogInOrder:
    """A commit log as it was placed.

    Cost: the log is read once, what damage touches once more, queues and index once or a few times;
    `pieces` reads what is kept once more. Memory: as `placed`. Raises: OSError.
    """

    def __init__(
        self,
        log: CommitLog,
        files: Files,
        *,
        open_file: Callable[[str], ReadOnlyFile],
        advance: Callable[[int], None] = lambda count: None,
        see: See = lambda block: None,
    ) -> None:
        """`see` gets each block of messages as it is first read, before it is placed."""
        self._disk = log
        self._files = files
        self._open_file = open_file
        self._unreadable: dict[str, set[int]] = {}
        """By path of a file, where the blocks begin that could not be read."""
        found = placed(log, files, open_file=self.open, advance=advance, see=see)
        self.placement = found
        self._rows, self._fates = found.facts.rows, found.fates
        self._messages = self._rows["messages"].astype(np.int64)
        self._spans = self._joined()
        self.log = self._in_order()
        """The files of the log in order, as long as what they get."""

    # --- what was decided

    @property
    def unreadable_bytes(self) -> int:
        """Bytes that the disk did not give."""
        return BLOCK_BYTES * sum(map(len, self._unreadable.values()))

    def open(self, path: str) -> ReadOnlyFile:
        """Open a file of the log; blocks that the disk does not give are zeros. Raises: OSError."""
        found = ReadableParts(self._open_file(path))
        found.unreadable = self._unreadable.setdefault(path, found.unreadable)
        return found

    def count(self, fate: Fate) -> int:
        """Return how many messages have a fate; moved ones only if not all of their file are."""
        has_it = self._fates == fate
        if fate is Fate.MOVED:
            has_it &= self.placement.rules != NAMED
        return int(self._messages[has_it].sum())

    @property
    def bytes_put_in(self) -> int:
        """How many bytes were put in before the last moved message; negative: taken out."""
        moved = np.flatnonzero((self._fates == Fate.MOVED) & (self.placement.rules != NAMED))
        if not len(moved):
            return 0
        row = int(moved[-1])
        lies = self._disk.log_files[self._rows["file"][row]].start + self._rows["start"][row]
        return int(lies - self.placement.offsets[row])

    def misnamed(self) -> list[Misnamed]:
        """Return the files that have another place than their names say."""
        begins = self.placement.begins.tolist()
        wrong = [
            (one, begin)
            for one, begin in zip(self._disk.log_files, begins, strict=True)
            if begin not in (-1, one.start)
        ]
        is_swapped = {one.start for one, _ in wrong} == {begin for _, begin in wrong}
        return [Misnamed(one.path, one.start, begin, is_swapped) for one, begin in wrong]

    def renamed(self) -> CommitLog:
        """Return the files of the log on disk that have a place in it, each where it begins."""
        log, begins = self._disk, self.placement.begins.tolist()
        found = zip(log.log_files, begins, strict=True)
        files = sorted(one._replace(start=begin) for one, begin in found if begin >= 0)
        return CommitLog(log.store_path, log.mapped_file_size, tuple(files), self._files)

    def without_place(self) -> list[LogFile]:
        """Return the files that have no place in the log, with the names that they have."""
        begins = self.placement.begins.tolist()
        return [one for one, at in zip(self._disk.log_files, begins, strict=True) if at < 0]

    def copy_of(self, one: LogFile) -> LogFile | None:
        """Return the file that a file without a place copies; None if it copies none, or has
        replaced a file of the log."""
        known, rows = self.renamed(), self._rows_in(one)
        kept = self.placement.kept
        if not (len(rows) and len(kept)) or (self._fates[rows] != Fate.COPY).any():
            return None
        size = self._disk.mapped_file_size
        first, last = (known.file_of(int(self.placement.offsets[row])) for row in kept[[0, -1]])
        if (one.start - known.min_offset) % size or (
            first is not None and last is not None and first.start < one.start < last.start
        ):
            return None
        return known.file_of(int(self._rows["said"][rows[0]]))

    def _rows_in(self, one: LogFile) -> Int64s:
        return np.flatnonzero(self._rows["file"] == self._disk.log_files.index(one))

    def count_in(self, one: LogFile) -> Counter[Fate]:
        """Count the messages of a file by their fates."""
        rows = self._rows_in(one)
        found = Counter[Fate]()
        for fate, messages in zip(
            self._fates[rows].tolist(), self._messages[rows].tolist(), strict=True
        ):
            found[Fate(fate)] += messages
        return found

    def is_kept_after_blank(self, path: str) -> bool:
        """Return whether messages after a blank end of a file are kept, or of another log."""
        number = [one.path for one in self._disk.log_files].index(path)
        rows = (self._rows["file"] == number) & self._rows["is_after_blank"]
        return bool(np.isin(self._fates[rows], (*KEEPING, Fate.ASIDE)).any())

    def copied(self) -> Iterator[LeftRange]:
        """Yield the copies of messages that are kept elsewhere."""
        return self._ranges(np.flatnonzero(self._fates == Fate.COPY))

    def left(self) -> Iterator[LeftRange]:
        """Yield the messages that were set aside."""
        return self._ranges(np.flatnonzero(self._fates == Fate.ASIDE))

    def _ranges(self, rows: Int64s) -> Iterator[LeftRange]:
        of_others = [number for number, rule in enumerate(RULES) if rule.name in OF_OTHERS]
        parts = self._rows[rows]
        is_theirs = np.isin(self.placement.rules[rows], of_others)
        is_cut = (np.diff(rows) > 1) | np.diff(is_theirs)
        is_cut |= np.diff(parts["said"] - parts["start"]) != 0
        is_cut |= (parts["file"][1:] != parts["file"][:-1]) | (
            parts["start"][1:] != parts["end"][:-1]
        )
        for some in np.split(np.arange(len(rows)), np.flatnonzero(is_cut) + 1):
            if len(some):
                one, messages = parts[some[0]], int(self._messages[rows[some]].sum())
                path, start = self._disk.log_files[one["file"]].path, int(one["start"])
                size, says = int(parts["end"][some[-1]]) - start, int(one["said"])
                is_other = bool(is_theirs[some[0]]) or messages > 1
                yield LeftRange(path, start, size, messages, says, is_other)

    def units_met(self) -> tuple[int, int]:
        """Return how many of the first units that lead into each file lead to their message, and
        how many lead to another one, or to zeros at the end of the file."""
        facts = self.placement.facts
        met, offsets = facts.units["met"], facts.units["offset"]
        is_wrong = met == Met.AGAINST
        for one in facts.files:
            is_zero = (offsets >= one.start + one.zeros_from) & (offsets < one.start + one.size)
            is_wrong |= is_zero & (met == Met.NOTHING)
        return int((met == Met.AGREES).sum()), int(is_wrong.sum())

    # --- the log

    @property
    def end(self) -> int:
        """The offset after the last message that is kept; 0 without any."""
        return max((end for _, end in self.kept_ranges()), default=0)

    @property
    def kept_messages(self) -> int:
        """How many messages are kept."""
        return int(self._messages[self.placement.kept].sum())

    @property
    def is_all_in_place(self) -> bool:
        """Whether each message is kept where it lies, but for fillers."""
        return bool(np.isin(self._fates, (Fate.KEPT, Fate.FILLER)).all())

    def kept_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the offsets of what is kept, the second exclusive, in order; in one file each."""
        for one in self._spans:
            yield one.offset, one.offset + one.end - one.start

    def time_before(self, offset: int) -> int:
        """Return the store time of the last message before an offset at which a row begins; -1
        without any."""
        kept = self.placement.kept
        at = int(np.searchsorted(self.placement.offsets[kept], offset)) - 1
        return int(self._rows["times"][kept[at], 0]) if at >= 0 else -1

    def pieces(self, start: int = 0) -> Iterator[MessageBlock | Gap | Filler]:
        """Yield what is kept, what is lost, and fillers, in the order of their offsets; no more
        than what begins at `start` or after it.

        A block holds until the next piece is asked for. Raises: OSError.
        """
        fillers = self._fillers()
        gaps = self._gaps(fillers)
        for at, one in merge(_ordered(self._spans), _ordered(fillers), gaps, key=_first):
            if at < start:
                continue
            if isinstance(one, _Span):
                yield from self._blocks(one)
            else:
                yield one

    def sound_messages(self) -> Iterator[MessageBlock]:
        """Yield what is kept, read once more. Raises: OSError."""
        for one in self._spans:
            yield from self._blocks(one)

    def kept_on_disk(self) -> Iterator[MessageBlock]:
        """Yield what is kept in the order of its offsets, each block where it lies on disk."""
        for one in self._spans:
            found = self._disk.log_files[one.file]
            yield from self._blocks(one._replace(offset=found.start + one.start))

    def gaps(self) -> Iterator[Gap]:
        """Yield what is lost, without fillers, in the order of offsets."""
        return (gap for _, gap in self._gaps(self._fillers()))

    def spans(self) -> Iterator[Span]:
        """Yield the bytes of the only file of the log in spans, by position, but for its blank end
        and what lies after that and is not kept. The log is read once more. Raises: OSError."""
        at, starts = 0, self._rows["start"]
        for block in LogReading(self._disk, self._files, open_file=self.open).blocks():
            begins = block.lies_at - self._disk.min_offset
            rows = np.searchsorted(starts, begins, "right") - 1
            kinds = self._fates[rows]
            for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(kinds)) + 1):
                fate, start = Fate(kinds[part[0]]), int(begins[part[0]])
                if fate in (Fate.INSIDE, Fate.CUT):
                    continue
                yield from self._without_messages(at, start)
                times = block.store_timestamps[part]
                offsets = self.placement.offsets[rows[part[[0, -1]]]] + begins[part[[0, -1]]]
                first, last = (offsets - starts[rows[part[[0, -1]]]]).tolist()
                at = int(begins[part[-1]] + block.sizes[part[-1]])
                yield Span(
                    _KINDS[fate], start, at, len(part), len(part), first, last,
                    int(times.min()), int(times.max()),
                )  # fmt: skip
        yield from self._without_messages(at, self._disk.log_files[0].size_bytes)

    def _without_messages(self, start: int, end: int) -> Iterator[Span]:
        """Yield the spans of the bytes [start, end), in which no message is kept."""
        (one,) = self.placement.facts.files
        if one.blank_from is not None and end == one.size:
            end = min(end, one.blank_from)
        zeros = one.zeros_from
        unsearched = zeros if one.unsearched_from is None else min(one.unsearched_from, zeros)
        for kind, begin, border in (
            (SpanKind.BROKEN, 0, unsearched),
            (SpanKind.UNSEARCHED, unsearched, zeros),
            (SpanKind.ZEROS, zeros, one.size),
        ):
            if max(start, begin) < min(end, border):
                yield Span(kind, max(start, begin), min(end, border))

    def _joined(self) -> list[_Span]:
        kept = self.placement.kept
        rows, offsets = self._rows[kept], self.placement.offsets[kept]
        ends = offsets + rows["end"] - rows["start"]
        is_cut = (rows["file"][1:] != rows["file"][:-1]) | (rows["start"][1:] != rows["end"][:-1])
        is_cut |= offsets[1:] != ends[:-1]
        firsts = np.append(0, np.flatnonzero(is_cut) + 1)[: len(kept)]
        lasts = np.append(firsts[1:], len(kept))[: len(firsts)] - 1
        columns = (offsets[firsts], rows["file"][firsts], rows["start"][firsts], rows["end"][lasts])
        return [_Span(*one) for one in zip(*(each.tolist() for each in columns), strict=True)]

    def _blocks(self, span: _Span) -> Iterator[MessageBlock]:
        """Yield the messages of a span, read once more. Raises: OSError if one is not there."""
        found = self._disk.log_files[span.file]
        by = span.offset - found.start - span.start
        with closing(self.open(found.path)) as file:
            reader = LogReader(self._disk, self._files)
            only = found._replace(size_bytes=span.end)
            for block in reader.blocks_of(file, only, span.start):
                yield block._replace(offset=block.offset + by)
                if reader.end_offset - found.start >= span.end:
                    return
        words = (
            "messages that were sound before are not there: the log was changed, or its disk fails"
        )
        raise OSError(errno.EIO, f"{words}. Copy it to another disk and try again", found.path)

    def _in_order(self) -> CommitLog:
        log, size = self._disk, self._disk.mapped_file_size
        begins = zip(log.log_files, self.placement.begins.tolist(), strict=True)
        files = {begin: one._replace(start=begin) for one, begin in begins if begin >= 0}
        taken, step = {one.path for one in log.log_files}, min(files, default=0) % size
        folder = os.path.join(log.store_path, COMMIT_LOG)
        for span in self._spans:
            begin = span.offset - (span.offset - step) % size
            needed = span.offset + span.end - span.start - begin
            path = os.path.join(folder, log_file_name(begin))
            missing = LogFile(begin, path + OF_MOVED * (path in taken), 0)
            one = files.get(begin, missing)
            files[begin] = one._replace(size_bytes=max(one.size_bytes, needed))
        in_order = tuple(one for _, one in sorted(files.items()))
        return CommitLog(log.store_path, size, in_order, self._files)

    def _fillers(self) -> list[Filler]:
        rows = np.flatnonzero(self._fates == Fate.FILLER)
        begins: Int64s = self.placement.begins[self._rows["file"][rows]]
        starts = begins + self._rows["start"][rows]
        sizes = self._rows["end"][rows] - self._rows["start"][rows]
        found = zip(starts.tolist(), (starts + sizes).tolist(), begins.tolist(), strict=True)
        return sorted(Filler(start, end) for start, end, begin in found if begin >= 0)

    def _gaps(self, fillers: list[Filler]) -> Iterator[tuple[int, Gap]]:
        """Yield the gaps, each after its offset, without the fillers in them."""
        number = 0
        for gap in self.placement.gaps:
            at = gap.start
            while number < len(fillers) and fillers[number].start < gap.end:
                filler = fillers[number]
                if at < filler.start:
                    yield at, Gap(gap.kind, self._path_at(at), at, filler.start)
                at = max(at, filler.end)
                number += 1
            if at < gap.end:
                yield at, Gap(gap.kind, self._path_at(at), at, gap.end)

    def _path_at(self, offset: int) -> str:
        """Return the path of the file with an offset, or of the one before it."""
        starts = [one.start for one in self.log.log_files]
        at = int(np.searchsorted(starts, offset, "right")) - 1
        return self.log.log_files[max(at, 0)].path


def with_right_names(log: CommitLog, files: Files) -> tuple[CommitLog, list[Misnamed]]:
    """Return the log, each file of it at the offset that its messages say; and the moved files.

    Cost: as `are_names_right`; where they are not, as `LogInOrder`. Raises: OSError.
    """
    if are_names_right(log, files):
        return log, []
    found = LogInOrder(log, files, open_file=files.open)
    return found.renamed(), found.misnamed()


def with_blank_room(log: CommitLog, files: Files) -> CommitLog:
    """Return the log with room for the last messages of its only file, which may be cut, and for a
    blank end after them. Bytes may be gone before them: they say how many. Raises: OSError."""
    if len(log.log_files) != 1 or log.log_files[0].size_bytes != log.mapped_file_size:
        return log
    alone = log.log_files[0]
    at = max(0, alone.size_bytes - BLANK_BYTES)
    with closing(ReadableParts(files.open(alone.path))) as file:
        is_cut = alone.size_bytes % PAGE_BYTES != 0
        if not is_cut and first_byte(file, at, alone.size_bytes) is None:
            return log
    longer = CommitLog(log.store_path, alone.size_bytes + BLANK_BYTES, (alone,), files)
    framed = LogReading(longer, files, open_file=lambda path: ReadableParts(files.open(path)))
    end, is_named, last = 0, False, list[int]()
    for block in framed.blocks():
        says = (block.phy_offsets - block.lies_at).tolist()
        is_named |= not end and says[0] == 0
        last = [*last, *says][-2:]
        end = int(block.ends_at[-1]) - alone.start
    gone = last[-1] if is_named and last[:1] == last[1:] else 0
    gone = gone if 0 <= gone <= alone.size_bytes else 0
    if end + gone <= at:
        return log
    size = min(INT32_MAX, max(end + gone, alone.size_bytes) + BLANK_BYTES)
    return CommitLog(log.store_path, size, (alone,), files)


def _ordered(pieces: Sequence[_Span | Filler]) -> Iterator[tuple[int, _Span | Filler | Gap]]:
    for one in pieces:
        yield one[0], one


def _first(one: tuple[int, object]) -> int:
    return one[0]
