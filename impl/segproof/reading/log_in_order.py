# SPDX-License-Identifier: Apache-2.0
"""A damaged commit log as it was placed: each message at the offset that it gets, and the gaps.

Laws: RMQLOG-1 to RMQLOG-3, RMQDISK-24, RMQDISK-25.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from heapq import merge
from typing import NamedTuple

import numpy as np

from segproof.counts import plural, verb
from segproof.files import Files, ReadOnlyFile
from segproof.reading.log_names import Misnamed
from segproof.reading.placed_log import placed
from segproof.reading.store_pieces import Gap
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, log_file_name
from segproof.stretches.rocketmq.desk import Fate
from segproof.stretches.rocketmq.facts import Int64s, Met
from segproof.stretches.rocketmq.message_blocks import LogReader, MessageBlock
from segproof.stretches.rocketmq.placing import RULES
from segproof.stretches.unreadable_blocks import BLOCK_BYTES, ReadableParts

OF_MOVED = ".moved"
"""Ends the path of a file of moved messages alone whose name another file has. No disk has it."""
OF_OTHERS = ("other store", "other log")
"""The rules that find messages of another store."""
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
    is_of_others: bool
    """Whether they are of another store: several say one distance that nothing confirms, or units
    contradict them. Else the offset of one message is damaged."""

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
    ) -> None:
        self._disk = log
        self._files = files
        self._open_file = open_file
        self._unreadable: dict[str, set[int]] = {}
        """By path of a file, where the blocks begin that could not be read."""
        found = placed(log, files, open_file=self.open, advance=advance)
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

    def left(self) -> Iterator[LeftRange]:
        """Yield the messages that were set aside."""
        of_others = [number for number, rule in enumerate(RULES) if rule.name in OF_OTHERS]
        rows = np.flatnonzero(self._fates == Fate.ASIDE)
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
                size = int(parts["end"][some[-1]]) - start
                is_other = bool(is_theirs[some[0]]) or messages > 1
                yield LeftRange(path, start, size, messages, is_other)

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

    def pieces(self) -> Iterator[MessageBlock | Gap | Filler]:
        """Yield what is kept, what is lost, and fillers, in the order of their offsets.

        A block holds until the next piece is asked for. Raises: OSError.
        """
        fillers = self._fillers()
        gaps = self._gaps(fillers)
        for _, one in merge(_ordered(self._spans), _ordered(fillers), gaps, key=_first):
            if isinstance(one, _Span):
                yield from self._blocks(one)
            else:
                yield one

    def sound_messages(self) -> Iterator[MessageBlock]:
        """Yield what is kept, read once more. Raises: OSError."""
        for one in self._spans:
            yield from self._blocks(one)

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
        found = self._disk.log_files[span.file]
        by = span.offset - found.start - span.start
        with closing(self.open(found.path)) as file:
            reader = LogReader(self._disk, self._files)
            only = found._replace(size_bytes=span.end)
            for block in reader.blocks_of(file, only, span.start):
                yield block._replace(offset=block.offset + by)
                if reader.end_offset - found.start >= span.end:
                    break

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

    def _gaps(self, fillers: list[Filler]) -> Iterator[tuple[int, _Span | Filler | Gap]]:
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


def _ordered(pieces: Sequence[_Span | Filler]) -> Iterator[tuple[int, _Span | Filler | Gap]]:
    for one in pieces:
        yield one[0], one


def _first(one: tuple[int, object]) -> int:
    return one[0]
