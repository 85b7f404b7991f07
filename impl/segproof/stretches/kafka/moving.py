# SPDX-License-Identifier: Apache-2.0
"""Blocks that a disk wrote to a wrong place: whether one belongs where its offsets are missing.

Offsets alone do not tell: a block of another topic falls into a hole by chance. So something else
has to speak for the hole, and nothing may contradict it.

Laws: BATCH-3, BATCH-19.
"""

from collections.abc import Iterator

import numpy as np

from segproof.stretches.kafka.desk import Desk, Fate, Hole
from segproof.stretches.kafka.facts import EDGE_BATCHES, Int64s, Rows
from segproof.stretches.kafka.strangers import contradicts, sequences_agree

SECTOR_BYTES = 512
"""A disk writes a block to a wrong place at a multiple of this. Another topic's batch begins at the
right byte of a sector by a chance of one in 512."""


def blocks(desk: Desk, rows: Int64s | None = None) -> Iterator[tuple[list[int], Hole]]:
    """Yield blocks of undecided rows, each with the hole around its offsets.

    The rows of a block follow each other, their offsets rise, and no kept row has offsets between
    them. The caller may decide a block before the next one is made; a block whose hole was filled
    by that is cut again. `rows` are those to be cut into blocks; without it, all.
    """
    rows = np.flatnonzero(desk.fates == Fate.UNDECIDED) if rows is None else rows
    places = desk.holes(rows)
    rows, places = rows[places >= 0], places[places >= 0]
    begins = (rows[1:] != rows[:-1] + 1) | (places[1:] != places[:-1])
    begins |= desk.rows["first"][rows[1:]] <= desk.rows["last"][rows[:-1]]
    for block in np.split(rows, np.flatnonzero(begins) + 1):
        hole = _hole_of(desk, block.tolist()) if len(block) else None
        if hole is not None:
            yield block.tolist(), hole
        elif len(block) > 1:
            yield from blocks(desk, block)


def _hole_of(desk: Desk, rows: list[int]) -> Hole | None:
    return desk.around(int(desk.rows["first"][rows[0]]), int(desk.rows["last"][rows[-1]]))


def belongs(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether a block belongs into the hole of its offsets."""
    bounds = _lost_in(desk, block, hole)
    if bounds is None:
        return False
    first, last = int(desk.rows["first"][block[0]]), int(desk.rows["last"][block[-1]])
    fills = bounds == (first, last) and (
        lies_beside(desk, block, hole) or _takes_up(desk, block, hole)
    )
    is_lone = int(desk.rows["batches"][block].sum()) == 1
    speaks = fills
    if not is_lone:
        speaks = fills or _follows_copy(desk, block)
    if not is_lone and bounds != (first, last):
        fills_most = last - first > (bounds[1] - bounds[0]) // 2
        speaks = speaks or fills_most or _has_room(desk, block, hole)
    speaks = speaks or _fill_together(desk, block, hole) or _is_exchanged(desk, block, hole)
    speaks = speaks or _is_moved_by_sectors(desk, block, hole)
    around = _around(desk, block, hole)
    if contradicts(*around) or goes_on_otherwise(desk, block):
        return False
    return speaks or sequences_agree(*around) is True


def goes_on_otherwise(desk: Desk, block: list[int], times: int = 1) -> bool:
    """Return whether a batch beside the block that goes on with it has offsets of a kept one.

    Then the two are of another log, if more is said for the kept one than for either, and that
    batch is no copy. The run of the kept one is more than so many `times` as long.
    """
    rows, weight = desk.rows, int(desk.run_weights[block].max())
    evidence = int(desk.evidence[block].max())
    for one, other, beside in (
        (block[0] - 1, block[0], block[0] - 1),
        (block[-1], block[-1] + 1, block[-1] + 1),
    ):
        if not 0 <= beside < len(rows) or desk.fates[beside] != Fate.UNDECIDED:
            continue
        goes_on = rows["last"][one] + 1 == rows["first"][other] and desk.touches(one, other)
        there = _kept_there(desk, beside) if goes_on else desk.kept[:0]
        if desk.content_of(beside) in map(desk.content_of, there.tolist()):
            continue
        most = times * max(int(desk.run_weights[beside]), weight)
        is_less = most < desk.run_weights[there]
        is_less |= np.maximum(desk.evidence[beside], evidence) < desk.evidence[there]
        if bool(is_less.any()):
            return True
    return False


def _kept_there(desk: Desk, row: int) -> Int64s:
    """Return kept rows with offsets of a row, EDGE_BATCHES at most: the first ones."""
    first, last = int(desk.rows["first"][row]), int(desk.rows["last"][row])
    begin = int(np.searchsorted(desk.kept_firsts, first, "right"))
    begin -= bool(begin and desk.last(int(desk.kept[begin - 1])) >= first)
    end = int(np.searchsorted(desk.kept_firsts, last, "right"))
    return desk.kept[begin : min(end, begin + EDGE_BATCHES)]


def _around(desk: Desk, block: list[int], hole: Hole) -> tuple[Rows, Rows, Rows, Rows]:
    place = _place_in(desk, hole)
    earlier = desk.edge(desk.kept[max(0, place - EDGE_BATCHES) : place], is_end=True)
    later = desk.edge(desk.kept[place : place + EDGE_BATCHES], is_end=False)
    return earlier, desk.edge(block, is_end=False), desk.edge(block, is_end=True), later


def lies_there(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether a block lies where it belongs: an entry of a wrong index spoke against it.

    The rows around that place are those that were not moved there themselves.
    """
    before, after = _in_place_around(desk, _place_in(desk, hole))
    is_later = before < 0 or desk.kept[before] < block[0]
    return is_later and (after == len(desk.kept) or block[-1] < int(desk.kept[after]))


def lies_beside(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether a block lies beside a row of its log that its hole is beside."""
    logs = desk.rows["log"]
    beside = [row for row in (hole.before, hole.after) if row in (block[0] - 1, block[-1] + 1)]
    return any(logs[row] == logs[block[0]] for row in beside)


def _lost_in(desk: Desk, block: list[int], hole: Hole) -> tuple[int, int] | None:
    """Return the missing offsets around a block, if bytes are lost there too.

    Where the kept rows around touch, compaction left these offsets out; unless it never left any
    out, or the block lies beside its place.
    """
    first, last = int(desk.rows["first"][block[0]]), int(desk.rows["last"][block[-1]])
    is_beside = lies_beside(desk, block, hole)
    if hole.before is None or hole.after is None:
        is_broken = desk.is_end_broken() if hole.after is None else desk.is_begin_broken()
        if is_broken:
            return hole.first, hole.last
        leads_on = first == hole.first if hole.after is None else last == hole.last
        return (first, last) if is_beside and leads_on else None
    is_lost = is_beside or not desk.touches(hole.before, hole.after) or not desk.is_compacted()
    return (hole.first, hole.last) if is_lost else None


def _fill_together(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether a block and other undecided batches fill a hole, each offset once."""
    if hole.before is None or hole.after is None:
        return False
    inside = desk.undecided_in(hole)
    ends = [hole.first - 1, *desk.rows["last"][inside].tolist()]
    firsts = desk.rows["first"][inside].tolist()
    are_all = [one + 1 for one in ends] == [*firsts, hole.last + 1]
    return are_all and len(inside) > len(block)


def _follows_copy(desk: Desk, block: list[int]) -> bool:
    """Return whether a copy of a kept batch lies beside the block, and no offset between them."""
    rows = desk.rows
    for one, other, beside in (
        (block[0] - 1, block[0], block[0] - 1),
        (block[-1], block[-1] + 1, block[-1] + 1),
    ):
        if not 0 <= beside < len(rows) or beside not in desk.copies:
            continue
        if rows["last"][one] + 1 == rows["first"][other] and desk.touches(one, other):
            return True
    return False


def _place_in(desk: Desk, hole: Hole) -> int:
    """Return the place in `desk.kept` of what fills a hole."""
    return 0 if hole.before is None else desk.place_of(hole.before) + 1


def _in_place_around(desk: Desk, place: int) -> tuple[int, int]:
    """Return the places in `desk.kept` around one of the nearest rows that were not moved there.

    Before the first row that is -1, after the last one the number of rows.
    """
    before, after = place - 1, place
    while before >= 0 and desk.fates[desk.kept[before]] == Fate.MOVED:
        before -= 1
    while after < len(desk.kept) and desk.fates[desk.kept[after]] == Fate.MOVED:
        after += 1
    return before, after


def _bytes_around(desk: Desk, place: int) -> tuple[int, int]:
    """Return which bytes among those of all logs lie at a place in `desk.kept`."""
    before, after = _in_place_around(desk, place)
    start = 0 if before < 0 else desk.end_of(int(desk.kept[before]))
    is_last = after == len(desk.kept)
    return start, int(desk.log_starts[-1]) if is_last else desk.begin_of(int(desk.kept[after]))


def _is_exchanged(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether another block lies where this one belongs, and belongs where this one lies.

    The two have changed places. The other one was moved, or is not decided so far.
    """
    if hole.before is None or hole.after is None:
        return False
    begin, end = _bytes_around(desk, _place_in(desk, hole))
    bounds = desk.begin_of(block[0]), desk.end_of(block[-1])
    first, after = np.searchsorted(desk.begins, (begin, end)).tolist()
    for row in range(first, after):
        if row in block or desk.fates[row] not in (Fate.MOVED, Fate.UNDECIDED):
            continue
        around = _bytes_of_place(desk, row)
        if around is not None and around[0] <= bounds[0] and bounds[1] <= around[1]:
            return True
    return False


def _bytes_of_place(desk: Desk, row: int) -> tuple[int, int] | None:
    """Return which bytes lie where a row belongs, by its offsets; None if it belongs nowhere."""
    if desk.fates[row] == Fate.MOVED:
        return _bytes_around(desk, desk.place_of(row))
    hole = _hole_of(desk, [row])
    if hole is None or hole.before is None or hole.after is None:
        return None
    return _bytes_around(desk, _place_in(desk, hole))


def _is_moved_by_sectors(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether a block that leads on at one side of its hole lies whole sectors from there.

    A disk writes to a wrong place by whole sectors. A block that touches that row was not moved: an
    entry speaks against it, unless compaction removed the record of the entry.
    """
    rows = desk.rows
    for beside, border, own, is_next in (
        (hole.before, "end", int(rows["start"][block[0]]), rows["first"][block[0]] == hole.first),
        (hole.after, "start", int(rows["end"][block[-1]]), rows["last"][block[-1]] == hole.last),
    ):
        if beside is None or not is_next or desk.fates[beside] == Fate.MOVED:
            continue
        distance = own - int(rows[border][beside])
        is_here = not distance and rows["log"][beside] == rows["log"][block[0]]
        if not distance % SECTOR_BYTES and not (is_here and not desk.is_compacted()):
            return True
    return False


def _room(desk: Desk, block: list[int], hole: Hole) -> tuple[int, int]:
    """Return how many bytes a block takes up, and how many the hole has.

    The hole lies between two kept rows that are in their place. Blocks that were moved into the
    hole already take room in it. At the end of the partition offsets would be missing before the
    block: each takes as many bytes as in the densest batch.
    """
    place = _place_in(desk, hole)
    before, after = _in_place_around(desk, place)
    wanted = sum(map(desk.bytes_of, [*block, *desk.kept[before + 1 : after].tolist()]))
    start, end = _bytes_around(desk, place)
    if after == len(desk.kept) and before >= 0:  # no offset after it bounds the hole
        missing = int(desk.rows["first"][block[0]]) - desk.last(int(desk.kept[before])) - 1
        wanted += missing * desk.fewest_bytes()
    return wanted, end - start


def _has_room(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether the hole is as long as the block, in bytes.

    If a search found all that lies between them, two blocks may have changed places: then it is.
    """
    before, after = _in_place_around(desk, _place_in(desk, hole))
    begin = end = block[0]
    if after < len(desk.kept) and desk.kept[after] < block[0]:
        begin = int(desk.kept[after])
    elif before >= 0 and block[-1] < desk.kept[before]:
        begin, end = block[-1] + 1, int(desk.kept[before]) + 1
    if begin < end and desk.led_before[begin] == desk.led_before[end]:
        return True
    wanted, room = _room(desk, block, hole)
    return wanted <= room


def _takes_up(desk: Desk, block: list[int], hole: Hole) -> bool:
    """Return whether the hole has as many bytes as the block, which has all of its offsets.

    Or none, as where a block was cut out and written elsewhere.
    """
    wanted, room = _room(desk, block, hole)
    return room in (0, wanted)
