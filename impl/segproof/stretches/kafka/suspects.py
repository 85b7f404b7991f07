# SPDX-License-Identifier: Apache-2.0
"""Suspects: batches whose place states another base offset than they do.

Laws: BATCH-3, EPOCH-1.
"""

from collections import Counter

import numpy as np

from segproof.integers import INT64_MAX
from segproof.stretches.kafka.desk import Desk, Fate
from segproof.stretches.kafka.facts import Int64s
from segproof.stretches.kafka.strangers import is_other_kind


def note_suspects(desk: Desk) -> None:
    """Note the batches whose place states another base offset, to the last offset.

    No byte before a suspect or after it is lost: on each side it touches a batch, or its log begins
    or ends there, and the name of a log states the offset.
    """
    rows, due = desk.rows, _due(desk)
    is_stated = (due >= 0) & (due != desk.firsts) & (desk.fates == Fate.UNDECIDED)
    is_stated &= rows["is_movable"] & (rows["batches"] == 1)
    stated = np.flatnonzero(is_stated)
    near = np.flatnonzero(np.isin(rows["mark"], rows["mark"][stated])) if len(stated) else stated
    counts = Counter(map(desk.content_of, near.tolist()))
    suspects = {  # a copy lies where it does not belong
        row: int(due[row]) for row in stated.tolist() if counts[desk.content_of(row)] == 1
    }
    if _leaves_out(desk, stated):
        suspects = {
            row: first for row, first in suspects.items()
            if (first ^ int(desk.firsts[row])).bit_count() == 1 or _is_far(desk, row)
        }  # fmt: skip
    desk.suspects = suspects


def _leaves_out(desk: Desk, stated: Int64s) -> bool:
    """Return whether offsets are left out between rows that touch; those of suspects don't count.

    Then a batch may fit exactly by chance, since its neighbour's offset is wrong.
    """
    rows, numbers = desk.rows, np.arange(len(desk.rows))
    is_apart = (rows["first"][1:] > rows["last"][:-1] + 1) & desk.touch(numbers[:-1], numbers[1:])
    is_apart &= ~np.isin(numbers[1:], stated) & ~np.isin(numbers[:-1], stated)
    return bool(is_apart.any() or rows["leaps"].any())


def _is_far(desk: Desk, row: int) -> bool:
    """Return whether a batch contradicts two batches on one side, or the name of a log.

    A batch contradicts only one if it is right, and that one has a wrong offset.
    """
    rows, log = desk.rows, desk.logs[desk.rows["log"][row]]
    first, last = int(rows["first"][row]), int(rows["last"][row])
    if first < log.base_offset or log.limit <= last:
        return True
    after, before = rows[row + 1 : row + 3], rows[max(0, row - 2) : row]
    is_after = int(after["batches"][after["first"] <= last].sum()) > 1
    return is_after or int(before["batches"][before["last"] >= first].sum()) > 1


def _due(desk: Desk) -> Int64s:
    """Return the base offset that its place states for each row, to the last offset; or -1."""
    rows, spans, numbers = desk.rows, desk.spans, np.arange(len(desk.rows))
    if not len(rows):
        return spans
    touches = desk.touch(numbers[:-1], numbers[1:])
    before = np.append(-1, np.where(touches, rows["last"][:-1] + 1, -1))
    is_within = np.append(rows["log"][:-1] == rows["log"][1:], False)
    after = np.append(np.where(touches, rows["first"][1:], -1), -1)
    at_end = np.where(~is_within & desk.ends_log(numbers), desk.nexts[rows["log"]], -1)
    after = np.where(is_within, after, at_end)
    is_exact = (before >= 0) & (spans >= 0) & (before + spans + 1 == after)
    named = np.array([log.base_offset for log in desk.logs], np.int64)[rows["log"]]
    is_first = (rows["start"] == 0) & (spans >= 0)
    is_named = is_first & (named + spans + 1 == after)
    bits = rows["first"] ^ named
    is_bit = is_first & (rows["first"] < named) & (bits & (bits - 1) == 0)
    is_bit &= (after >= 0) | desk.ends_log(numbers)  # before damage it may be any topic's
    is_named |= is_bit & (named + spans < np.where(after < 0, INT64_MAX, after))
    return np.where(is_exact, before, np.where(is_named, named, -1))


def contradicts_beside(desk: Desk, row: int) -> bool:
    """Return whether magic or leader epoch of a suspect contradict the batches that touch it."""
    own, begin, end = desk.rows[row : row + 1], row, row + 1
    begin -= row > 0 and desk.touches(row - 1, row)
    end += end < len(desk.rows) and desk.touches(row, end)
    return is_other_kind(desk.rows[begin:row], own, own, desk.rows[row + 1 : end])


def _is_name_left(desk: Desk, row: int) -> bool:
    """Return whether another log has the offset of a suspect as its name, and no batch for it."""
    rows, own = desk.rows, desk.rows["log"][row]
    first, last = int(rows["first"][row]), int(rows["last"][row])
    return any(
        log.base_offset == first and last < log.limit and number != own
        and not ((rows["log"] == number) & (rows["start"] == 0) & (rows["first"] == first)).any()
        for number, log in enumerate(desk.logs)
    )  # fmt: skip


def is_elsewhere(desk: Desk, row: int) -> bool:
    """Return whether the offsets in the header of a suspect may be missing elsewhere.

    If a single bit explains its offsets, exactly these have to be missing there.
    Outside of all that is kept every offset is missing. There it counts if the suspect leads on, or
    if it states offsets as near as the partition is long, and no single bit explains them: then it
    may be a copy of a batch that is lost there.
    """
    first, last = int(desk.rows["first"][row]), int(desk.rows["last"][row])
    if _is_name_left(desk, row):
        return True
    hole = desk.around(first, last)
    if hole is None:
        return False
    is_bit = (first ^ desk.suspects[row]).bit_count() == 1
    if hole.before is not None and hole.after is not None:
        is_exact = (hole.first, hole.last) == (first, last)
        is_missing = not desk.touches(hole.before, hole.after) or not desk.is_compacted()
        return is_missing and (is_exact or not is_bit)
    if (first == hole.first) if hole.after is None else (last == hole.last):
        return True
    begin, end = int(desk.firsts[desk.kept[0]]), desk.last(int(desk.kept[-1]))
    away = first - end if hole.after is None else begin - last
    return away <= end - begin and not is_bit
