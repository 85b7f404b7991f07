# SPDX-License-Identifier: Apache-2.0
"""The rules about single messages and runs of them: where each is kept.

Laws: RMQLOG-1 to RMQLOG-3, RMQDISK-24, RMQDISK-25, RMQDISK-50.
"""

from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from segproof.layouts.rocketmq import MESSAGE_BYTES_MIN
from segproof.rocketmq.message import BLANK_BYTES
from segproof.stretches.rocketmq.desk import KEEPING, Desk, Fate
from segproof.stretches.rocketmq.facts import NO_TIME, Int64s, Met, Units, agree, meet
from segproof.stretches.rocketmq.file_rules import FILES_BEYOND, SECTOR_BYTES, in_place
from segproof.stretches.rocketmq.witnesses import (
    NEAR_MESSAGES,
    are_units_ours,
    is_part_of_other,
    witness,
)

FLIPPED_BITS_MAX = 2
"""An offset that differs from the place in at most this many bits is damaged. Two random offsets of
63 bits differ in so few bits with a chance of 1 in 4.6e15; a memory fault changes one or two."""
ENOUGH_UNITS = 16
"""With fewer units at hand all that lead to the messages are asked for. One unit may be damaged; of
16 not most."""
UINT64_MASK = (1 << 64) - 1


def place(desk: Desk) -> None:
    """Keep messages that say the offset at which they lie."""
    here = in_place(desk)
    here = here[np.argsort(desk.said[here], kind="stable")]
    starts, ends = desk.said[here], desk.said[here] + desk.sizes[here]
    reached = np.append(-1, np.maximum.accumulate(ends)[:-1]) if len(here) else ends
    has_room = desk.rows["end"][here] <= desk.facts.file_bytes - BLANK_BYTES
    fits = (starts >= reached) & has_room
    desk.need(here[~fits].tolist())
    kept = here[fits]
    names = np.array([one.start for one in desk.facts.files], np.int64)
    is_named = desk.begins[desk.files[kept]] == names[desk.files[kept]]
    desk.decide(kept[is_named], Fate.KEPT)
    desk.decide(kept[~is_named], Fate.MOVED)
    desk.rules[kept[~is_named]] = desk.name_rule
    desk.taken.begin(desk.said[kept], desk.said[kept] + desk.sizes[kept], kept)


def after_blank(desk: Desk) -> None:
    """Keep what lies after a blank end that is none; leave what an earlier recovery has cut off."""
    is_after = desk.rows["is_after_blank"] & (desk.fates == Fate.UNDECIDED)
    is_after &= (desk.said == desk.lies()) & desk.in_step[desk.files]
    for number in np.unique(desk.files[is_after]).tolist():
        runs = np.unique(desk.run_of[is_after & (desk.files == number)]).tolist()
        before = np.flatnonzero(np.isin(desk.fates, KEEPING) & (desk.files == number))
        least = _last_time(desk, before)
        is_kept = False
        for run in runs:
            first, stop = int(desk.run_firsts[run]), int(desk.run_stops[run])
            end = int(desk.said[stop - 1] + desk.sizes[stop - 1])
            is_kept |= desk.times_of(first, stop) >= least
            is_kept |= desk.evidence(int(desk.said[first]), end)[Met.AGREES] > 0
            for row in range(first, stop):
                at, length = int(desk.said[row]), int(desk.sizes[row])
                has_room = desk.file_begin(row) is not None
                if not is_kept:
                    desk.decide([row], Fate.CUT)
                elif has_room and not desk.taken.over(at, at + length):
                    desk.keep(row, Fate.KEPT, at)
                else:
                    desk.need([row])


def _last_time(desk: Desk, rows: Int64s) -> int:
    """Return the middle one of the last store times of some rows; -1 without rows."""
    times = list[int]()
    for row in rows[::-1][:3].tolist():
        times += [one for one in desk.rows["times"][row].tolist() if one != NO_TIME]
    times = sorted(times[:3])
    return times[len(times) // 2] if times else -1


def offset(desk: Desk) -> None:
    """Put right the offset of a message that lies between messages in their places."""
    is_of_row = (desk.fates == Fate.UNDECIDED) & (desk.run_messages[desk.run_of] > 1)
    rows = np.flatnonzero(is_of_row)
    said, ends = desk.said[rows], desk.said[rows] + desk.sizes[rows]
    bound = _suspects(desk)
    left = desk.undecided()
    starts, stops = desk.said[left], desk.said[left] + desk.sizes[left]
    beside = set(left[np.isin(starts, stops) | np.isin(stops, starts)].tolist())
    for row, is_touched in bound.items():
        lies = int(desk.lies()[row])
        end = lies + int(desk.sizes[row])
        is_free = not (desk.taken.over(lies, end) or ((said < end) & (lies < ends)).any())
        if is_free and _belongs_here(desk, row, lies, beside, is_touched=is_touched):
            desk.keep(row, Fate.RESTORED, lies)


def _suspects(desk: Desk) -> dict[int, bool]:
    """Return the rows of one message that say another offset than their place. True for those that
    touch on both sides what is kept, another such row, or the begin or the end of their file."""
    rows, lies = desk.rows, desk.lies()
    is_alone = desk.run_messages[desk.run_of] == 1
    is_alone &= (desk.fates == Fate.UNDECIDED) & (desk.said != lies) & (lies >= 0)
    is_alone &= desk.in_step[desk.files] & (desk.begins[desk.files] >= 0)
    is_alone &= rows["end"] <= desk.facts.file_bytes - BLANK_BYTES
    alone = np.flatnonzero(is_alone).tolist()
    is_firm = np.isin(desk.fates, KEEPING)
    bound = set[int]()
    for row in alone:
        is_begin = rows["start"][row] == 0
        is_next = row > 0 and _touch_in_file(desk, row - 1, row)
        if is_begin or (is_next and (is_firm[row - 1] or row - 1 in bound)):
            bound.add(row)
    for row in reversed(alone):
        file = desk.facts.files[rows["file"][row]]
        is_end = rows["end"][row] in (file.blank_from, file.zeros_from)
        is_next = row + 1 < len(rows) and _touch_in_file(desk, row, row + 1)
        if not (is_end or (is_next and (is_firm[row + 1] or row + 1 in bound))):
            bound.discard(row)
    return {row: row in bound for row in alone}


def _touch_in_file(desk: Desk, row: int, other: int) -> bool:
    one, two = desk.rows[row], desk.rows[other]
    return bool(one["file"] == two["file"] and one["end"] == two["start"])


def _belongs_here(
    desk: Desk, row: int, lies: int, beside: Collection[int], *, is_touched: bool
) -> bool:
    """Return whether a message belongs where it lies, and not where it says.

    `beside`: rows that touch another one without a fate, as both say.
    """
    said, size, one = int(desk.said[row]), int(desk.sizes[row]), desk.rows[row : row + 1]
    here = desk.units_in(lies, lies + 1)
    here = here[here["queue"] != 0]  # others say that a message lies here, and not which one
    if len(here) and not (here["size"] == size).any():
        return False
    if agree(here, np.repeat(one, len(here)), here["offset"]).any():
        return True
    if not is_touched:
        return False
    if not _is_of_our_broker(desk, row) or is_part_of_other(desk, lies, lies + size):
        return False
    there = desk.units_in(said, said + 1)
    if agree(there, np.repeat(one, len(there)), there["offset"]).any():
        return False
    over = desk.taken.over(said, said + size)
    if _same(desk, row, over):
        return False
    desk.need(over)
    has_room = not over and desk.file_begin(row) is not None
    if _wrong_bits(said, lies) <= FLIPPED_BITS_MAX:
        fits_there = has_room and (row in beside or desk.taken.touches(said, said + size))
        is_doubted = fits_there or _is_of_other_file(desk, row) or _is_alike(desk, row, over)
        return not is_doubted or _goes_on(desk, row, lies)
    is_block = has_room and (said - lies) % SECTOR_BYTES == 0
    return not is_block and not len(here) and _goes_on(desk, row, lies)


def _wrong_bits(one: int, other: int) -> int:
    return ((one ^ other) & UINT64_MASK).bit_count()


def _is_of_other_file(desk: Desk, row: int) -> bool:
    """Return whether the only message of a file says the same position in another one of the log:
    the numbers of two files often differ in one bit or two."""
    if not _is_alone(desk, row):
        return False
    begin = desk.claims()[row : row + 1]
    is_begin = desk.begins_of(begin) == begin
    return bool((is_begin & (desk.settled[0] <= begin) & (begin <= desk.settled[-1])).all())


def _is_alone(desk: Desk, row: int) -> bool:
    return bool(np.count_nonzero(desk.files == desk.files[row]) == 1)


def _same(desk: Desk, row: int, over: list[int]) -> bool:
    """Return whether the messages of a row are kept at the offset that it says."""
    if len(over) != 1:
        return False
    one, other = desk.rows[row], desk.rows[over[0]]
    is_there = desk.offsets[over[0]] == desk.said[row]
    is_alike = one["mark"] == other["mark"] and one["messages"] == other["messages"]
    return bool(is_there and is_alike and desk.sizes[row] == desk.sizes[over[0]])


def _is_alike(desk: Desk, row: int, over: list[int]) -> bool:
    """Return whether what is kept where a message says was made and stored with it, and is as long:
    it may be a copy of that one, with a damaged field."""
    one, two = desk.rows[row], desk.rows[over[0]] if over else None
    return two is not None and bool(
        desk.sizes[row] == desk.sizes[over[0]]
        and one["said"] == desk.offsets[over[0]]
        and one["born"] == two["born"]
        and one["times"][0] == two["times"][0]
    )


def _is_of_our_broker(desk: Desk, row: int) -> bool:
    """Return whether the broker that stored a message has stored one that is kept, if any is."""
    hosts = desk.rows["host"][np.isin(desk.fates, KEEPING)]
    return not len(hosts) or bool((hosts == desk.rows["host"][row]).any())


def _goes_on(desk: Desk, row: int, offset: int) -> bool:
    """Return whether queues say more for a message at an offset than against it."""
    before, after = (
        desk.taken.rows_before(offset),
        desk.taken.rows_after(offset + int(desk.sizes[row])),
    )
    found = witness(desk, [row], offset - int(desk.said[row]), before, after)
    return found.right > found.wrong


def copy(desk: Desk) -> None:
    """Leave what is kept at the offset that it says."""
    for row in desk.undecided().tolist():
        _judge_taken(desk, row)


def _judge_taken(desk: Desk, row: int) -> bool:
    """Return whether messages have the offsets that a row says; leave it if it is their copy."""
    said, size = int(desk.said[row]), int(desk.sizes[row])
    over = desk.taken.over(said, said + size)
    if not over:
        return False
    if _same(desk, row, over):
        desk.decide([row], Fate.COPY)
        return True
    hosts = desk.rows["host"][over]
    covered = sum(
        min(said + size, int(desk.offsets[one] + desk.sizes[one]))
        - max(said, int(desk.offsets[one]))
        for one in over
    )
    if (hosts == desk.rows["host"][row]).any() or covered < size:
        desk.need([row, *over])
    return True


def moved(desk: Desk) -> None:
    """Keep messages at the offset that they say, the longest part first."""
    parts = sorted(_free_parts(desk), key=lambda each: (-_messages(desk, each), each[0]))
    doubted = list[list[int]]()
    for part in parts:
        if not _put(desk, part):
            doubted.append(part)
    for part in doubted:  # what was moved since may touch it
        _put(desk, part)


def _messages(desk: Desk, rows: list[int]) -> int:
    return int(desk.rows["messages"][rows].sum())


def _free_parts(desk: Desk) -> Iterator[list[int]]:
    """Yield rows of one run that follow each other, whose offsets are free in one file."""
    part, begin_of_part = list[int](), -1
    for row in desk.undecided().tolist():
        said, size = int(desk.said[row]), int(desk.sizes[row])
        begin = desk.file_begin(row)
        if begin is None:
            desk.need([row])  # there may be room for its first messages
        is_free = begin is not None and not desk.taken.over(said, said + size)
        is_near = begin is not None and _is_in_reach(desk, begin)
        goes_on = part and part[-1] + 1 == row and desk.run_of[part[-1]] == desk.run_of[row]
        if part and not (goes_on and begin == begin_of_part and is_free and is_near):
            yield part
            part = []
        if is_free and is_near:
            part.append(row)
            begin_of_part = begin if begin is not None else -1
    if part:
        yield part


def _is_in_reach(desk: Desk, begin: int) -> bool:
    far = FILES_BEYOND * desk.facts.file_bytes
    settled = desk.settled
    return bool(settled[0] - far <= begin < settled[-1] + desk.facts.file_bytes + far)


def _put(desk: Desk, part: list[int]) -> bool:
    """Keep a part where it says if that is believed; return whether all of it is decided."""
    left = [row for row in part if desk.fates[row] == Fate.UNDECIDED]
    free = [row for row in left if not _judge_taken(desk, row)]
    if len(free) < len(left):
        edges = np.flatnonzero(np.diff(free) > 1) + 1
        decided = [_put(desk, one.tolist()) for one in np.split(np.array(free, int), edges)]
        return all(decided)
    if not (left and _is_believed(desk, left)):
        return not left
    for row in left:
        desk.keep(row, Fate.MOVED, int(desk.said[row]))
    return True


def _is_believed(desk: Desk, part: list[int]) -> bool:
    """Return whether messages belong where they say: the offsets there are free."""
    said = int(desk.said[part[0]])
    end = int(desk.said[part[-1]] + desk.sizes[part[-1]])
    found = desk.evidence(said, end)
    if found.total() < ENOUGH_UNITS:
        found = Counter(desk.units_in(said, end)["met"].tolist())
    if found[Met.AGREES] and _has_rival(desk, part, said, end):
        desk.need(part)
        found = _met_by(desk, part, desk.units_in(said, end))
    right, wrong = found[Met.AGREES], found[Met.AGAINST]
    if right or wrong:
        return right > 0 and right >= wrong
    if is_part_of_other(desk, said, end):
        return False
    begin = desk.file_begin(part[0])
    if begin is None or begin < desk.settled[0]:
        return False  # an expired file has a free place too
    if not _is_of_our_broker(desk, part[0]):
        return False
    ours = are_units_ours(desk, said, end)
    if len(desk.units) and not ours and not np.isin(desk.fates, KEEPING).any():
        units = desk.units_in(begin, begin + desk.facts.file_bytes)
        ends = units["offset"] + units["size"]
        return bool(((units["offset"] == end) | (ends == said)).any())
    if _messages(desk, part) <= NEAR_MESSAGES and (ours or not len(desk.units)):
        known = witness(desk, part, 0, desk.taken.rows_before(said), desk.taken.rows_after(end))
        if known.right or known.wrong:
            return known.right > known.wrong
    is_first = said == begin == desk.begins[desk.files[part[0]]] and _is_alone(desk, part[0])
    if is_first or _is_moved_alike(desk, part[0]) or desk.taken.touches(said, end):
        return True
    row = desk.rows[part[0]]
    is_last = desk.facts.files[row["file"]].blank_from == row["end"] == end - begin
    lies = int(desk.lies()[part[0]])
    is_block = (said - lies) % SECTOR_BYTES == 0
    if _wrong_bits(said, lies) <= FLIPPED_BITS_MAX:
        is_block &= any(True for _ in desk.taken.rows_after(end))
    is_within = begin <= desk.settled[-1]
    are_some = _messages(desk, part) > 1 or _is_joined(desk, part, said, end)
    return bool(is_last or (is_within and (is_block or are_some)))


def _others_left(desk: Desk, part: list[int]) -> Int64s:
    """Return the rows without a fate that are not in a part."""
    return np.asarray(np.setdiff1d(desk.undecided(), part))


def _has_rival(desk: Desk, part: list[int], said: int, end: int) -> bool:
    """Return whether a row that is not in a part, and has no fate, says some of its offsets."""
    left = _others_left(desk, part)
    starts = desk.said[left]
    return bool(((starts < end) & (said < starts + desk.sizes[left])).any())


def _met_by(desk: Desk, part: list[int], units: Units) -> Counter[int]:
    """Count by `Met` what the messages of a part alone say of units."""
    found = units.copy()
    found["met"] = Met.NOTHING
    meet(found, desk.rows[part])
    return Counter(found["met"].tolist())


def _is_joined(desk: Desk, part: list[int], said: int, end: int) -> bool:
    """Return whether a part touches messages of its file that are not decided, as both say."""
    left = _others_left(desk, part)
    left = left[desk.files[left] == desk.files[part[0]]]
    starts = desk.said[left]
    return bool(((starts == end) | (starts + desk.sizes[left] == said)).any())


def _is_moved_alike(desk: Desk, row: int) -> bool:
    """Return whether moved messages of the same file say the same begin of that file."""
    is_alike = (desk.files == desk.files[row]) & (desk.claims() == desk.claims()[row])
    return bool((is_alike & (desk.fates == Fate.MOVED)).any())


def room(desk: Desk) -> None:
    """Set messages aside until no gap in a file is too small for a message.

    A gap grows by a whole message where one is set aside, so that it is never too small then.
    """
    kept = np.flatnonzero(np.isin(desk.fates, KEEPING))
    kept = kept[np.argsort(desk.offsets[kept], kind="stable")]
    starts = desk.offsets[kept]
    begins = desk.begins_of(starts)
    ends = np.append(-1, (starts + desk.sizes[kept])[:-1]) if len(kept) else starts
    room = starts - np.maximum(begins, ends)
    last = -1
    for at in np.flatnonzero((room > 0) & (room < MESSAGE_BYTES_MIN)).tolist():
        if at and last == at - 1:
            continue
        last, victim = at, int(kept[at])
        if at and ends[at] > begins[at] and desk.fates[victim] == Fate.KEPT:
            before = int(kept[at - 1])
            if desk.fates[before] != Fate.KEPT:
                last, victim = at - 1, before
        if desk.rows["messages"][victim] > 1:
            desk.need([victim])
        else:
            desk.decide([victim], Fate.ASIDE)


def nowhere(desk: Desk) -> None:
    """Set aside what is left."""
    desk.decide(desk.undecided(), Fate.ASIDE)
