# SPDX-License-Identifier: Apache-2.0
"""Which store times of a commit log can be right; no checksum covers them.

A broker stores messages one after the other, so a time lies between those around it. Clocks step
back, and were wrong for a while: so only what is an hour outside is wrong by itself, and a time
next to it is no error. What an index says of a message is a second witness, and the born time, by
the clock of a producer, a third one: a time that is within a second of it is right, whatever lies
around it.

Upstream: RocketMQ 5.5.1: CommitLog.asyncPutMessage, IndexFile.putKey.
Laws: RMQDISK-40.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from segproof.files import Files
from segproof.rocketmq.store_checkpoint import StoredCheckpoint

Int64Array = NDArray[np.int64]
Item = TypeVar("Item")

LEAST: Final = -(1 << 62)
MOST: Final = 1 << 62
"""Where there is no bound. Differences of what lies between have room in 64 bits."""
CLOCK_MS: Final = 3_600_000
"""A clock may step back so far."""
SECOND_MS: Final = 1000
LAST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
AROUND: Final = 3
"""So many messages on each side say what lies around a time: one of them may be wrong."""
KNOWN_BYTES = 40
"""What each release writes; with fewer bytes nothing is judged."""


class Bounds(NamedTuple):
    """A first and a last time for each message, both inclusive."""

    first: Int64Array
    last: Int64Array

    @staticmethod
    def none(count: int) -> "Bounds":
        """Return those that take every time."""
        return Bounds(np.full(count, LEAST, np.int64), np.full(count, MOST, np.int64))

    def only(self, rows: Int64Array) -> "Bounds":
        """Return those of some messages."""
        return Bounds(self.first[rows], self.last[rows])

    def nearest(self, times: Int64Array) -> Int64Array:
        """Return the time in the bounds that is nearest to each."""
        return np.clip(times, self.first, self.last)

    def distances(self, times: Int64Array) -> Int64Array:
        """Return how far each time is outside."""
        return _distances(times, self.nearest(times))


class TimesAround(Generic[Item]):
    """Takes the messages of a log in order, some with each item; hands out what is around them.

    Four times are around one: that before it, that behind it, and the middle one of three on each
    side. Of two messages either may be wrong: they have no bounds. An item waits until three later
    messages are there.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Item, Int64Array]] = []
        self._before = np.zeros(0, np.int64)
        """Up to three times that were handed out last."""

    def add(self, item: Item, times: Int64Array) -> Iterator[tuple[Item, Bounds]]:
        """Take the store times of the next messages; yield what waits no more."""
        self._waiting.append((item, times))
        while sum(len(later) for _, later in self._waiting[1:]) >= AROUND:
            yield self._next()

    def finish(self) -> Iterator[tuple[Item, Bounds]]:
        """Yield the rest."""
        while self._waiting:
            yield self._next()

    def _next(self) -> tuple[Item, Bounds]:
        item, times = self._waiting.pop(0)
        count, before = len(times), self._before
        behind = np.concatenate([times[:0], *(later for _, later in self._waiting)])[:AROUND]
        row = np.concatenate([before, times, behind])
        earlier = _filled(row, LEAST)
        self._before = earlier[: len(before) + count][-AROUND:]
        if len(row) < AROUND:
            return item, Bounds.none(count)
        later = _filled(row[::-1], MOST)[::-1]
        one, other = (
            [each[place : place + count] for place in range(2 * AROUND + 1)]
            for each in (
                np.pad(side, (AROUND - len(before), AROUND - len(behind)), "edge")
                for side in (earlier, later)
            )
        )
        one, other = one[:AROUND], other[AROUND + 1 :]
        limits = np.array([_middle(*one), one[-1], _middle(*other), other[0]])
        if not len(before):
            limits[:2, :1] = LEAST
        if not len(behind):
            limits[2:, -1:] = MOST
        return item, Bounds(limits.min(axis=0), limits.max(axis=0))


def _filled(row: Int64Array, bound: int) -> Int64Array:
    """Return the times with the one before in the place of each that no clock gives; `bound` where
    that lies before all others."""
    is_possible = (row > 0) & (row <= LAST_MS)
    if is_possible.all():
        return row
    places = np.maximum.accumulate(np.where(is_possible, np.arange(len(row)), -1))
    filled: Int64Array = np.where(places < 0, bound, row[places])
    # What was handed out before may be filled already.
    return np.where((places < 0) & (np.abs(row) == MOST), row, filled)


def _are_impossible(times: Int64Array, born: Int64Array) -> NDArray[np.bool_]:
    """Return which times no clock gives, whatever lies around them."""
    no_time: NDArray[np.bool_] = (times < 0) | (times > LAST_MS)
    no_time |= (times == 0) & (born > CLOCK_MS)
    seconds = np.where((times > 0) & (times < LAST_MS // SECOND_MS), times * SECOND_MS, MOST)
    return no_time | ((born > CLOCK_MS) & (_distances(seconds, born) <= CLOCK_MS))


def _of_other_unit(times: Int64Array, born: Int64Array, guess: Int64Array) -> Int64Array:
    """Return the time that each is in seconds, micro- or nanoseconds, where that is within an hour
    of the born time; else the guess."""
    seconds = np.where((times > 0) & (times < LAST_MS // SECOND_MS), times, 0) * SECOND_MS
    units = [(seconds, seconds + SECOND_MS - 1)]
    units += [(times // scale, times // scale) for scale in (SECOND_MS, SECOND_MS**2)]
    for first, last in units:
        is_it = (born > CLOCK_MS) & (first > 0) & (_distances(first, born) <= CLOCK_MS)
        guess = np.where(is_it, np.clip(born, first, last), guess)
    return guess


def likely_times(
    times: Int64Array, born_of: Callable[[Int64Array], Int64Array], around: Bounds, told: Bounds
) -> Int64Array:
    """Return the most likely store times of messages: mostly their own.

    `around` are the bounds by the messages around each, `told` those by the index, of every time
    where it says nothing. `born_of` is given numbers of messages and returns their born times.
    """
    is_told = told.first > LEAST
    is_doubted = (told.distances(times) > 0) | (~is_told & (around.distances(times) > CLOCK_MS))
    odd = np.flatnonzero((times <= 0) | (times > LAST_MS) | (times < LAST_MS // SECOND_MS))
    if len(odd):
        is_doubted[odd] |= _are_impossible(times[odd], born_of(odd))
    rows = np.flatnonzero(is_doubted)
    likely = times.copy()
    if len(rows):
        likely[rows] = _likely(times[rows], born_of(rows), around.only(rows), told.only(rows))
    return likely


def _likely(times: Int64Array, born: Int64Array, around: Bounds, told: Bounds) -> Int64Array:
    guess = around.nearest(np.clip(born, 1, LAST_MS))
    indexed = told.nearest(guess)
    far, far_indexed = around.distances(times), around.distances(indexed)
    late, late_indexed = _distances(times, born), _distances(indexed, born)
    is_nearer = (far == 0) & (far_indexed == 0)
    is_nearer &= late_indexed < np.minimum(SECOND_MS, late - SECOND_MS)
    is_believed = (told.last < MOST) & ((far_indexed < far) | is_nearer)
    likely = np.where(is_believed, indexed, times)
    is_own = (born > 0) & (_distances(likely, born) < SECOND_MS)
    found = np.where((around.distances(likely) > CLOCK_MS) & ~is_own, guess, likely)
    guess = _of_other_unit(times, born, guess)
    indexed = told.nearest(guess)
    indexed = np.where((indexed > 0) & (indexed <= LAST_MS), indexed, guess)
    return np.where(_are_impossible(times, born), indexed, found)


def _distances(one: Int64Array, other: Int64Array) -> Int64Array:
    return np.abs(np.clip(one, LEAST, MOST) - np.clip(other, LEAST, MOST))


def _middle(one: Int64Array, two: Int64Array, three: Int64Array) -> Int64Array:
    """Return the middle one of three, each."""
    return np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), three))


def read_checkpoint(path: str, files: Files) -> StoredCheckpoint:
    """Return what the checkpoint says; zeros without one."""
    nothing = StoredCheckpoint(0, 0, 0, 0, 0, 0)
    try:
        with closing(files.open(path)) as file:
            return StoredCheckpoint.read_from(file) if file.size() >= KNOWN_BYTES else nothing
    except OSError:
        return nothing
