# SPDX-License-Identifier: Apache-2.0
"""Whole logs that claim offsets of other logs of their partition, and are not its own.

A segment begins where the one before it ends. A log of another topic, or an older copy, that was
put into the folder begins and ends elsewhere: inside of logs that go on without it. So of logs that
overlap those belong together that hold the most offsets one after the other. What is before and
after them, the leader epochs, and indexes that were not closed speak for one side or the other.

A log is none of them if all entries of both of its indexes are wrong, and it overlaps one whose
entries are all right.

A single batch beyond the next log is no such log: no checksum covers a base offset. A log that has
the batches of the next one as far as both overlap is kept, if it ends no later: nothing is lost
where the names separate them.

Laws: LOG-4.
"""

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import Files, ReadOnlyFile
from segproof.kafka.batch_table import BatchTable, check_batches, read_batch_headers
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.asked_entries import asked_entries
from segproof.reading.index_entries import entries_found
from segproof.reading.index_origins import MISLED, RIGHT, shares_of_entries
from segproof.reading.leader_epochs import epochs_begin
from segproof.reading.log_order import NamedLog
from segproof.reading.offset_entries import entries_in
from segproof.stretches.kafka.facts import UNKNOWN_NAME
from segproof.stretches.kafka.framing import LogSource
from segproof.stretches.kafka.header_rows import first_offsets
from segproof.stretches.kafka.in_place import LogFates, headers_of, place_log
from segproof.stretches.kafka.single_batch import batch_at

ASKED_MIN = 4
"""Fewer entries of an index do not tell whether a log is the one of its index."""
TIMES_AS_MANY = 1.5
"""Where nothing else decides, other logs are kept in the place of a log only if they hold this many
times its offsets."""


class Overlap(NamedTuple):
    """A log that is not one of its partition."""

    first: int
    end: int
    """The offset after its last batch."""
    batches: int
    others: tuple[str, ...]
    """The names of the logs that have offsets of it."""
    same: int
    """How many of its batches these have too."""

    @property
    def words(self) -> str:
        """Return what it is, in words that follow its path."""
        others = self.others[0]
        if len(self.others) > 1:
            others += f" and {plural(len(self.others) - 1, 'other log')}"
        kind = "it is of another topic, or an older copy"
        if self.same:
            part = "all" if self.same == self.batches else f"{self.same} of {self.batches}"
            kind = f"it is a copy of this partition ({part} of its batches are in these logs too)"
        return (
            f"it overlaps {others}: {kind}. It has {plural(self.batches, 'batch')} with offsets"
            f" {self.first} to {self.end - 1}, and the others fit together without it"
        )


class _Claim:
    """A log, and the offsets that it claims."""

    def __init__(self, directory: str, base: int, following: int | None, files: Files) -> None:
        self._directory, self.base, self._files = directory, base, files
        self._following = following
        self.is_last = following is None

    @cached_property
    def _end_and_state(self) -> tuple[int | None, bool]:
        end, is_open = None, False
        with suppress(OSError, SegproofError), closing(self._open(".log")) as log:
            position, is_open = self._last_entry(log)
            end = _end_from(log, position)
            if end is None and position:
                end = _end_from(log, 0)
            if end is None and log.size():
                placed = self._placed
                end = int(placed.rows["last"][placed.is_sound].max(initial=-1)) + 1 or None
        return end, is_open

    @property
    def end(self) -> int | None:
        """The offset after the last batch; None without any, or if the log can't be read."""
        return self._end_and_state[0]

    @property
    def is_open(self) -> bool:
        """Whether zeros end its offset index: a broker has not closed it."""
        return self._end_and_state[1]

    def _open(self, suffix: str) -> ReadOnlyFile:
        name = segment_file_name(self.base, suffix)
        return self._files.open(posixpath.join(self._directory, name))

    @cached_property
    def _placed(self) -> LogFates:
        return place_log(LogSource(UNKNOWN_NAME, None, partial(self._open, ".log")))

    def _last_entry(self, log: ReadOnlyFile) -> tuple[int, bool]:
        """Return the position that the last entry of the index leads to, if its batch is right.

        And whether zeros end the index.
        """
        with suppress(OSError), closing(self._open(".index")) as file:
            index = entries_found(file, ".index")
            is_open = index.count < index.slots
            for offset, position in index.last().tolist():
                batch = batch_at(log, position, log.size())
                if batch is not None and batch.last == self.base + offset:
                    return position, is_open
            return 0, is_open
        return 0, False

    @cached_property
    def table(self) -> BatchTable:
        """The headers of the sound batches, whose offsets rise.

        The batches beyond the next log are left out if offsets are missing before them: of a
        single one the base offset may be wrong, and several beside damage may be a block of another
        topic, if they have less than half of the bytes, or the next log begins as its name says.
        """
        empty = read_batch_headers(b"").table
        with suppress(OSError, SegproofError), closing(self._open(".log")) as log:
            placed = self._placed
            table = np.concatenate([empty, *headers_of(log, placed.rows[placed.is_sound])])
            own = len(table)
            if self._following is not None:
                own = int(np.searchsorted(table["last_offset"], self._following))
            if 0 < own < len(table) and _is_stray(log, table, own, self._is_next_named):
                return table[:own]
            return table
        return empty

    def _is_next_named(self) -> bool:
        """Return whether the next log begins with a batch whose offset is its name."""
        assert self._following is not None
        name = segment_file_name(self._following, ".log")
        with (
            suppress(OSError),
            closing(self._files.open(posixpath.join(self._directory, name))) as log,
        ):
            batch = batch_at(log, 0, log.size())
            return batch is not None and batch.first == self._following
        return False

    @cached_property
    def is_of_its_index(self) -> bool:
        """Whether at least a quarter of the index entries that are looked up are right.

        A log is not doubted if its index has fewer than ASKED_MIN entries.
        """
        path = posixpath.join(self._directory, segment_file_name(self.base, ".index"))
        entries = entries_in(path, self.base, self._files)
        if len(entries.positions) < ASKED_MIN:
            return True
        with suppress(OSError, SegproofError), closing(self._open(".log")) as log:
            right = [one.is_right for one in asked_entries(log, entries)]
            return 4 * sum(right) >= len(right)
        return True

    @cached_property
    def led(self) -> tuple[float | None, float | None]:
        """Which part of the entries of its offset index is right, and of its time index."""
        path = posixpath.join(self._directory, self.name)
        with suppress(OSError, SegproofError):
            return shares_of_entries(NamedLog(path, self.base), self.table, self._files)
        return None, None

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first offset, and the one after the last."""
        table = self.table
        if not len(table):
            return self.base, self.base
        return int(first_offsets(table[:1])[0]), int(table["last_offset"][-1]) + 1

    @cached_property
    def batches(self) -> set[tuple[int, int, int]]:
        """First offset, last offset and checksum of each batch."""
        table = self.table
        fields = first_offsets(table), table["last_offset"], table["crc"]
        return set(zip(*(one.tolist() for one in fields), strict=True))

    @cached_property
    def epochs(self) -> tuple[int, int]:
        """The leader epochs of the first and the last batch; -1 where it is not known."""
        epochs = self.table["partition_leader_epoch"]
        return (int(epochs[0]), int(epochs[-1])) if len(epochs) else (-1, -1)

    @property
    def name(self) -> str:
        """The name of the log."""
        return segment_file_name(self.base, ".log")

    @property
    def reach(self) -> int:
        """The offset after the last batch, read exactly where the next log begins before it."""
        if self._following is not None and (self.end or 0) > self._following:
            return self.span[1]
        return self.end or self.base


class _Score(NamedTuple):
    """Evidence for some logs, the strongest first."""

    support: int = 0
    """What is before and after them, less what speaks against a log, and breaks between them."""
    links: int = 0
    """How often one begins where the one before it ends."""
    offsets: int = 0

    def plus(self, other: "_Score") -> "_Score":
        """Return the sum of both."""
        return _Score(*(one + more for one, more in zip(self, other, strict=True)))

    def minus(self, other: "_Score") -> "_Score":
        """Return the difference."""
        return _Score(*(one - less for one, less in zip(self, other, strict=True)))


def overlapping_logs(
    directory: str, bases: Sequence[int], snapshots: Collection[int], files: Files
) -> Mapping[int, Overlap]:
    """Return the logs of a partition that are not its own, by base offset.

    `bases` are those of all logs, sorted, and `snapshots` the offsets of the producer snapshots.
    Cost: of each log the end of its index, and the batches that follow its last entry; a log that
    overlaps another one is read whole. Raises: never.
    """
    if len(bases) < 2:
        return {}
    snapshots = {*snapshots} - {*bases}  # a snapshot at a base offset tells no more than the log
    followings = [*bases[1:], None]
    claims = [_Claim(directory, *one, files) for one in zip(bases, followings, strict=True)]
    found: dict[int, Overlap] = {}
    # The last log overlaps none that is after it: it is not read, since a broker may write it.
    claims = [one for one in claims if one.is_last or one.end is not None]
    groups = [*_groups(claims)]
    odd = [
        one for group, *_ in groups for one in group
        if not one.is_of_its_index
        or (one.led == MISLED and any(
            other.led == RIGHT and _do_overlap(one, other) for other in group
        ))
    ]  # fmt: skip
    if odd:  # they lie where another log was
        claims = [one for one in claims if one not in odd]
        groups = [*_groups(claims)]
    is_dense = _is_dense(claims, [one for group, *_ in groups for one in group]) if groups else True
    for group, before, after in groups:
        if any(one.span[0] < one.base for one in group):
            continue  # the name of a log is wrong
        start = epochs_begin(directory, files) or 0 if before is None else None
        found |= _Group(group, before, after, start, snapshots, is_dense).strangers()
    return found


def _groups(
    claims: Sequence[_Claim],
) -> Iterator[tuple[list[_Claim], _Claim | None, _Claim | None]]:
    """Yield the logs that overlap each other, with the log before them, and the one after."""
    at = 0
    while at < len(claims):
        stop, reach = at + 1, 0
        while stop < len(claims):
            reach = max(reach, claims[stop - 1].reach)
            if reach <= claims[stop].base:
                break
            stop += 1
        group = [one for one in claims[at:stop] if stop > at + 1 and len(one.table)]
        if len(group) > 1:
            after = claims[stop] if stop < len(claims) else None
            yield group, claims[at - 1] if at else None, after
        at = stop


def _is_dense(claims: Sequence[_Claim], grouped: Sequence[_Claim]) -> bool:
    """Return whether the logs that overlap no other one begin where the ones before them end."""
    pairs = [pair for pair in pairwise(claims) if not any(one in grouped for one in pair)]
    return 2 * sum(one.end == other.base for one, other in pairs) >= len(pairs)


class _Group:
    """Logs that overlap each other."""

    def __init__(
        self,
        logs: list[_Claim],
        before: _Claim | None,
        after: _Claim | None,
        start: int | None,
        snapshots: Collection[int],
        is_dense: bool,
    ) -> None:
        self._is_dense = is_dense
        self._logs = sorted(logs, key=lambda one: (one.span, one.base))
        self._before, self._after = before, after
        self._start, self._snapshots = start, snapshots
        self._scores = [self._score(one) for one in self._logs]

    def strangers(self) -> dict[int, Overlap]:
        """Return the logs that are not of the partition, by base offset."""
        ahead, kept = self._best(range(len(self._logs)), self._begin_score)
        ends = [one.plus(self._end_score(log)) for one, log in zip(ahead, self._logs, strict=True)]
        is_named = [one.span[0] == one.base for one in self._logs]  # decides between equals
        last = max(range(len(ends)), key=lambda number: (ends[number], is_named[number]))
        own = []
        at: int | None = last
        while at is not None:
            own.append(self._logs[at])
            at = kept[at]
        found = {}
        back = self._best(range(len(self._logs) - 1, -1, -1), self._end_score)[0]
        for number, log in enumerate(self._logs):
            if log in own:
                continue
            others = [one for one in own if _do_overlap(one, log)]
            with_it = ahead[number].plus(back[number]).minus(self._scores[number])
            if others and self._is_stranger(log, own, ends[last], with_it):
                found[log.base] = _overlap_of(log, sorted(others, key=lambda one: one.base))
        return found

    def _is_stranger(
        self, log: _Claim, own: Sequence[_Claim], best: _Score, with_it: _Score
    ) -> bool:
        """Return whether a log that is not among the best ones is none of the partition."""
        first, end = log.span
        is_within = own[-1].span[0] <= first and end <= own[0].span[1]
        if not is_within and _may_be_kept(log, own):
            return False
        if log.batches <= set().union(*(one.batches for one in own)):
            return True
        more = best.support - with_it.support
        if more > 1 or (more == 1 and best.links >= with_it.links):
            return True
        # At an end of the partition a log of another one may be as long as it likes.
        is_between = self._before is not None and self._after is not None
        if more or (not is_between and not (is_within and self._is_dense)):
            return False
        if is_within:
            return (self._before or self._after) is not None
        return not self._is_dense and best.offsets >= TIMES_AS_MANY * with_it.offsets

    def _best(
        self, order: Sequence[int], border: Callable[[_Claim], _Score]
    ) -> tuple[list[_Score], list[int | None]]:
        """Return for each log the best score of logs that end with it, and the one before it.

        In the order of offsets, or in the reverse one; `border` is the score of the outermost log.
        """
        scores = [_Score()] * len(self._logs)
        before: list[int | None] = [None] * len(self._logs)
        for at, number in enumerate(order):
            log = self._logs[number]
            best, last = border(log), None
            for other in order[:at]:
                if _do_overlap(log, self._logs[other]):
                    continue
                joined = scores[other].plus(self._junction(log, self._logs[other]))
                if joined > best:
                    best, last = joined, other
            scores[number], before[number] = best.plus(self._scores[number]), last
        return scores, before

    def _score(self, log: _Claim) -> _Score:
        """Return what a log says for itself."""
        is_odd = log.is_open and self._after is not None
        first, last = log.epochs
        if self._before is not None and 0 <= first < self._before.epochs[1]:
            is_odd = True
        if self._after is not None and last > self._after.epochs[0] >= 0:
            is_odd = True
        return _Score(-is_odd, 0, log.span[1] - log.span[0])

    def _junction(self, one: _Claim, other: _Claim) -> _Score:
        """Return whether one of two logs goes on where the other one ends."""
        first, following = sorted((one, other), key=lambda log: log.span)
        if not self._is_dense:
            return _Score()
        is_exact = first.span[1] == following.base
        return _Score(-(not is_exact), is_exact)

    def _begin_score(self, log: _Claim) -> _Score:
        """Return whether a log begins where the partition, or the log before it, says.

        Its name alone does not tell that, unless compaction may have taken its first batches.
        """
        before = self._start if self._before is None else self._before.end
        return _Score(before == log.base and (not self._is_dense or log.span[0] == log.base))

    def _end_score(self, log: _Claim) -> _Score:
        """Return whether a log ends where the log after it begins, or where a snapshot says."""
        end = log.span[1]
        return _Score(end in self._snapshots if self._after is None else end == self._after.base)


def _is_stray(
    log: ReadOnlyFile, table: BatchTable, own: int, is_next_named: Callable[[], bool]
) -> bool:
    """Return whether the batches of a log after the first `own` ones tell nothing of it."""
    sizes = table["size_bytes"]
    if first_offsets(table[own:])[0] <= table["last_offset"][own - 1] + 1:
        return False
    ends = table["position"] + sizes
    is_beside_damage = table["position"][own] != ends[own - 1] or ends[-1] != log.size()
    is_less = 2 * int(sizes[own:].sum()) < int(sizes.sum())
    return own == len(table) - 1 or (is_beside_damage and (is_less or is_next_named()))


def _do_overlap(one: _Claim, other: _Claim) -> bool:
    (first, end), (other_first, other_end) = one.span, other.span
    return first < other_end and other_first < end


def _may_be_kept(log: _Claim, own: Sequence[_Claim]) -> bool:
    """Return whether a log and those that overlap it can be separated by names without a loss.

    It has offsets that they lack. Of two that overlap, the one before ends first, and the other one
    has its batches from there on.
    """
    for other in own:
        if not _do_overlap(log, other):
            continue
        one, following = sorted((log, other), key=lambda claim: claim.base)
        first = following.span[0]
        both = {batch for batch in one.batches if batch[1] >= first}
        if one.span[1] > following.span[1] or not both <= following.batches:
            return False
    return True


def _overlap_of(log: _Claim, others: Sequence[_Claim]) -> Overlap:
    same = log.batches & set().union(*(one.batches for one in others))
    names = tuple(one.name for one in others)
    return Overlap(*log.span, len(log.table), names, len(same))


def _end_from(log: ReadOnlyFile, position: int) -> int | None:
    """Return the offset after the last batch from a position on; None where one is damaged."""
    size, end, reached = log.size(), None, -1
    scan = check_batches(log, position, size)
    for rows in scan:
        lasts = rows.table["last_offset"]
        if not rows.crc_valid.all() or int(lasts[0]) <= reached or (np.diff(lasts) <= 0).any():
            return None
        reached = int(lasts[-1])
        end = reached + 1
    return end if scan.end_position == size else None
