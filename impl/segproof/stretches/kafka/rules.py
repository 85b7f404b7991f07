# SPDX-License-Identifier: Apache-2.0
"""The rules of placing, in the order in which they are asked.

Each rule decides rows that none before it has decided. No rule opens a file, and none looks at
bytes: so tests draw facts whose truth they know.

Laws: BATCH-3, BATCH-19, EPOCH-1, PROD-3.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from segproof.integers import INT64_MAX
from segproof.stretches.kafka.desk import Desk, Fate, Group
from segproof.stretches.kafka.facts import NO_ROWS, Int64s, Part, Reach, Rows
from segproof.stretches.kafka.moving import belongs, blocks, lies_beside, lies_there
from segproof.stretches.kafka.rising_chain import heaviest_chain
from segproof.stretches.kafka.room import forget_room, without_room
from segproof.stretches.kafka.strangers import contradicts

DENSE_BATCHES_MIN = 17
"""Batches in a row that leave no offset out, so that compaction is not at work in the log.
Compaction leaves out offsets here and there: two in a row prove little, and with 100 no short log
would be asked."""
ODD_JUMP_MIN = 64
"""Offsets that a last batch leaves out, at least, if one bit of its base offset is wrong. A gap of
1 or 2 offsets, which compaction or a salvage has left, is one bit of the offset half of the time;
one of 64 to 127 in one of 128 cases."""
FIRM = 1 << 40
"""How many times a batch that sizes lead to outweighs one that a search found, and one whose offset
an index entry or a name states outweighs others. A log has less than 2^31 bytes, and a batch weighs
5 at most: all that a search found weighs less than one such batch.
"""
KIND = ["epoch", "magic"]
"""What all batches of a leader share."""
WEIGHT = 3
"""Weight of a batch; each neighbour that leaves no offset out between adds 1. So two batches that
go on never outweigh two that do not, and one more."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the decision table."""

    rule_id: str
    name: str
    why: str
    """What is decided, and the reason."""
    spares: str
    """Sentences: what looks alike, and is left to other rules."""
    apply: Callable[[Desk], None]


def _unloadable(desk: Desk) -> None:
    desk.decide(np.flatnonzero(~desk.rows["is_loadable"]), Fate.ASIDE)
    _note_suspects(desk)


# --- suspects: the place states another base offset


def _note_suspects(desk: Desk) -> None:
    """Note the batches whose place states another base offset, to the last offset.

    Nothing before a suspect and after it is lost: it touches batches there, or names of logs.
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


def _falling(desk: Desk) -> None:
    rows = desk.rows
    is_falling = ((desk.spans < 0) | (rows["first"] < 0)) & (desk.fates == Fate.UNDECIDED)
    is_falling[list(desk.suspects)] = False
    desk.decide(np.flatnonzero(is_falling), Fate.ASIDE)


# --- the heaviest chain


def _rising(desk: Desk) -> None:
    """Keep the heaviest chain of rising offsets, without the suspects that it confirms.

    A suspect is confirmed if both its neighbours are kept. Others go back into the choice.
    """
    while True:
        chain = _chain(desk)
        is_kept = np.zeros(len(desk.rows) + 1, np.bool_)  # one more: after the last row
        is_kept[chain], is_kept[-1] = True, True
        released = []
        for row in desk.suspects:
            is_inner = row + 1 < len(desk.rows) and desk.touches(row, row + 1)
            base_offset = desk.logs[desk.rows["log"][row]].base_offset
            is_named = desk.rows["start"][row] == 0 and desk.suspects[row] == base_offset
            if not ((is_kept[row - 1] or is_named) and (is_kept[row + 1] or not is_inner)):
                released.append(row)
        if not released:
            break
        for row in released:
            del desk.suspects[row]
    desk.decide(chain, Fate.KEPT)


def _chain(desk: Desk) -> Int64s:
    """Return the rows of the heaviest chain of rising offsets, of those that are not decided."""
    rows = desk.rows
    bases = np.array([log.base_offset for log in desk.logs], np.int64)
    limits = np.array([log.limit for log in desk.logs], np.int64)
    is_able = (desk.fates == Fate.UNDECIDED) & (rows["last"] < limits[rows["log"]])
    is_able &= (desk.spans >= 0) & (rows["first"] >= 0) & ~rows["is_misindexed"]
    is_able[list(desk.suspects)] = False
    able = np.flatnonzero(is_able)
    firsts, lasts, own = rows["first"][able], rows["last"][able], rows[able]
    if bool((firsts[1:] > lasts[:-1]).all()):
        return able
    # What nothing contradicts is in every heaviest chain.
    reached = np.append(-1, np.maximum.accumulate(lasts)[:-1])
    following = np.append(np.minimum.accumulate(firsts[::-1])[-2::-1], INT64_MAX)
    is_free = (reached < firsts) & (lasts < following)
    evidence = _evidence(desk)[able]
    evidence[(own["start"] == 0) & (firsts == bases[own["log"]])] = 2  # its name states it
    evidence[[one for one in _one_bit_off(own, bases) if not own["is_indexed"][one]]] = 0
    evidence[desk.is_other_epoch[able]] = -1
    is_dense = lasts[:-1] + 1 == firsts[1:]
    joints = 2 * (own["batches"] - 1 - own["leaps"])
    is_begun = (own["start"] == 0) & (firsts == bases[own["log"]])
    goes_on, is_told = np.append(False, is_dense), ~is_free
    with_one = goes_on & ~np.append(False, is_told[:-1])  # one is free, and kept for sure
    with_next = np.append(is_dense & ~is_told[1:], False)
    weights = WEIGHT * own["batches"] + joints + (is_begun | with_one) + with_next
    told = np.flatnonzero(is_told)
    sizes = desk.run_weights[able][told]
    most = int(sizes @ own["batches"][told]) + 1
    units = [most * FIRM ** (level + 1) for level in evidence[told].tolist()]
    heavy = [
        weight * unit + size * batches
        for weight, unit, size, batches in zip(
            weights[told].tolist(), units, sizes.tolist(), own["batches"][told].tolist(),
            strict=True,
        )
    ]  # fmt: skip
    is_joined = goes_on[told] & (np.append(-2, told[:-1]) + 1 == told)
    together = zip(is_joined.tolist(), [0, *units], units, strict=False)
    pairs = [is_one * (before + unit) for is_one, before, unit in together]
    chain = heaviest_chain(firsts[told].tolist(), lasts[told].tolist(), heavy, pairs)
    is_free[told[chain]] = True
    return able[is_free]


def _one_bit_off(rows: Rows, bases: Int64s) -> list[int]:
    """Return which batches contradict DENSE_BATCHES_MIN after them, and fit with one bit less.

    `bases` are the offsets in the names of the logs.
    """
    found = list[int]()
    is_alone = (rows["batches"][:-1] == 1) & (rows["last"][:-1] >= rows["first"][1:])
    for row in np.flatnonzero(is_alone).tolist():
        first, last = int(rows["first"][row]), int(rows["last"][row])
        after = rows[row + 1 : row + 1 + DENSE_BATCHES_MIN]
        before = int(rows["last"][row - 1] if row else bases[rows["log"][row]] - 1)
        room = int(after["first"][0]) - (last - first)
        is_bit = any(before < first - (1 << bit) < room for bit in range(63) if first >> bit & 1)
        if is_bit and after["batches"][after["first"] <= last].sum() >= DENSE_BATCHES_MIN:
            found.append(row)
    return found


def _exact_place(desk: Desk) -> None:
    """Keep the suspects whose own offsets are not missing elsewhere."""
    rows = [row for row in desk.suspects if not _is_elsewhere(desk, row)]
    desk.restore(rows, [desk.suspects[row] for row in rows])


def _is_elsewhere(desk: Desk, row: int) -> bool:
    """Return whether the offsets that a suspect states may be missing elsewhere.

    If a single bit explains its offsets, exactly these have to be missing there.
    Outside of all that is kept every offset is missing. There it counts if the suspect leads on, or
    if it states offsets as near as the partition is long, and no single bit explains them: then it
    may be a copy of a batch that is lost there.
    """
    first, last = int(desk.rows["first"][row]), int(desk.rows["last"][row])
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


def _foreign(desk: Desk) -> None:
    """Set blocks aside beside damage that contradict what is kept around them.

    What was set aside contradicts nothing any more, so the blocks around it are compared again.
    """
    groups = desk.groups() if len(desk.kept) else []
    if forget_room(desk, groups):
        groups = desk.groups()
    desk.set_aside([*_below_names(desk, groups), *_denied(desk, groups)])
    while len(desk.kept):
        groups = desk.groups()
        strange = _strange(desk, groups) or without_room(desk, groups)
        if not strange:
            break
        desk.set_aside(strange)
        if desk.asked:
            break


def _strange(desk: Desk, groups: list[Group]) -> list[int]:
    """Return the rows of the groups that contradict those around them, and weigh less.

    Two neighbours that contradict each other tell of nothing between them. Their bytes count
    together if they are of one epoch and one magic, and no group is smaller than both. One
    neighbour is enough at an end of the partition, where no group between two is strange, and no
    other group is of the same epoch, or the group after the neighbour contradicts too.
    """
    levels = _evidence(desk).tolist()
    weights = [
        sum(desk.bytes_of(row) * FIRM ** levels[row] for row in group.rows) for group in groups
    ]
    strange, less_sure = list[int](), list[int]()
    for number in range(1, len(groups) - 1):
        if not groups[number].is_at_damage:
            continue
        before, own, after = (group.rows for group in groups[number - 1 : number + 2])
        earlier, later = desk.edge(before, is_end=True), desk.edge(after, is_end=False)
        ends = desk.edge(own, is_end=False), desk.edge(own, is_end=True)
        if contradicts(earlier, *ends, later) and not contradicts(earlier, later, later, NO_ROWS):
            around = weights[number - 1], weights[number + 1]
            is_one = earlier[KIND][-1] == later[KIND][0]
            is_led = weights[number] >= FIRM > min(around)  # what a search found tells nothing
            if is_led:
                continue
            if weights[number] < min(around):
                strange += own
            elif is_one and weights[number] < sum(around):
                less_sure += own
    strange = strange or less_sure
    if strange or len(groups) < 2:
        return strange
    kinds = [desk.rows[KIND][group.rows[0]] for group in groups]
    for is_end, inner in (False, range(1, len(groups))), (True, range(len(groups) - 2, -1, -1)):
        end = -1 if is_end else 0
        if groups[end].is_at_damage:
            against = _against_end(desk, groups, [groups[number].rows for number in inner], is_end)
            weight = sum(weights[number] for number in inner[:against])
            if weights[end] < weight and (against > 1 or kinds.count(kinds[end]) == 1):
                strange += groups[end].rows
    return strange


def _against_end(desk: Desk, groups: list[Group], others: list[list[int]], is_end: bool) -> int:
    """Return how many other groups contradict the first or the last one, from the nearest on."""
    rows = groups[-1 if is_end else 0].rows
    ends = desk.edge(rows, is_end=False), desk.edge(rows, is_end=True)
    for number, other in enumerate(others):
        beside = desk.edge(other, is_end=is_end)
        if not contradicts(*((beside, *ends, NO_ROWS) if is_end else (NO_ROWS, *ends, beside))):
            return number
    return len(others)


def _evidence(desk: Desk) -> NDArray[np.int8]:
    """Return how good the evidence is that a batch lies in its place.

    2: an index entry states its offset; 1: sizes or an index lead to it, and it is not below the
    name of its log; else 0. A name above all that lies in the log tells nothing, unless other logs
    that lie within their names have these offsets, and as many bytes.
    """
    rows = desk.rows
    bases = np.array([log.base_offset for log in desk.logs], np.int64)[rows["log"]]
    is_led, sizes = rows["reach"] > Reach.SEARCH, rows["end"] - rows["start"]
    is_named = (rows["first"] >= bases) & is_led
    has_named = np.bincount(rows["log"], is_named, len(desk.logs)) > 0
    is_believed = is_named.copy()
    for log in np.unique(rows["log"][~has_named[rows["log"]]]).tolist():
        is_own = (rows["log"] == log) & is_led
        first = rows["first"].min(where=is_own, initial=INT64_MAX)
        last = rows["last"].max(where=is_own, initial=-1)
        takers = np.unique(
            rows["log"][is_named & (rows["first"] <= last) & (first <= rows["last"])]
        )
        is_less = sizes[is_named & np.isin(rows["log"], takers)].sum() < sizes[is_own].sum()
        is_believed |= is_own & bool(not len(takers) or is_less)
    evidence: NDArray[np.int8] = is_believed.astype(np.int8)
    evidence[rows["is_indexed"]] = 2
    return evidence


def _below_names(desk: Desk, groups: list[Group]) -> list[int]:
    """Return the rows of groups below their log's name, if the log has more bytes that are not."""
    if not len(desk.kept):
        return []
    bases = np.array([log.base_offset for log in desk.logs], np.int64)[desk.rows["log"]]
    is_below = desk.firsts + desk.spans < bases
    if not is_below[desk.kept].any():
        return []
    sizes = desk.rows["end"] - desk.rows["start"]
    named = desk.kept[~is_below[desk.kept]]
    named_bytes = np.bincount(desk.rows["log"][named], sizes[named], len(desk.logs))
    parts = [
        [row for row in group.rows if desk.rows["log"][row] == log]
        for group in groups if group.is_at_damage
        for log in np.unique(desk.rows["log"][group.rows]).tolist()
    ]  # fmt: skip
    return [
        row for part in parts for row in part
        if is_below[part].all() and sizes[part].sum() < named_bytes[desk.rows["log"][row]]
    ]  # fmt: skip


def _denied(desk: Desk, groups: list[Group]) -> list[int]:
    """Return the rows of groups that the index contradicts, or the checkpoint of leader epochs.

    These are groups behind damage: elsewhere index or checkpoint are damaged, unless two entries
    lead into a group. A single batch may have a wrong epoch, which no checksum covers.
    """
    led, misled, batches = (desk.rows[name] for name in ("led", "misled", "batches"))
    is_behind = ~desk.is_led_from_begin
    return [
        row for group in groups if group.is_at_damage
        if (misled[group.rows].sum() > 1 - is_behind[group.rows[0]] and not led[group.rows].any())
        or (
            is_behind[group.rows[0]]
            and desk.is_other_epoch[group.rows].all()
            and batches[group.rows].sum() > 1
        )
        for row in group.rows
    ]  # fmt: skip


def _copies(desk: Desk) -> None:
    """Set aside what has the content and the offsets of a kept batch."""
    left = np.array(desk.undecided(), np.int64)
    if not len(left):
        return
    rows = desk.rows
    near = desk.kept[np.isin(rows["mark"][desk.kept], rows["mark"][left])].tolist()
    seen = {(*desk.content_of(row)[:2], int(desk.firsts[row])) for row in near}
    copies = [row for row in left.tolist() if desk.content_of(row) in seen]
    desk.copies.update(copies)
    desk.decide(copies, Fate.ASIDE)


def _inside_torn(desk: Desk) -> None:
    for row in desk.undecided():
        log = desk.logs[desk.rows["log"][row]]
        if log.torn_from is not None and desk.rows["start"][row] > log.torn_from:
            desk.decide([row], Fate.INSIDE)


def _moved(desk: Desk) -> None:
    before = -1
    while before < len(desk.kept):  # what was moved may speak for others
        before = len(desk.kept)
        for is_near in (True, False):  # a near block comes before a far one
            for block, hole in blocks(desk):
                if is_near <= lies_beside(desk, block, hole) and belongs(desk, block, hole):
                    desk.decide(block, Fate.KEPT if lies_there(desk, block, hole) else Fate.MOVED)


def _odd_end(desk: Desk) -> None:
    """Set the last batch of a dense log aside if one bit of its base offset is wrong."""
    if not len(desk.kept):
        return
    row, before = int(desk.kept[-1]), int(desk.kept[-2:][0])
    is_last = row == len(desk.rows) - 1 and not desk.rows["is_indexed"][row]
    if is_last and desk.rows["leaps"][row]:
        desk.ask(Part(row, tail=1))
        return
    log = desk.logs[desk.rows["log"][row]]
    if desk.rows["start"][row] == 0 and desk.firsts[row] == log.base_offset:
        return  # the log's name states it too
    if log.next_base_offset is not None:
        return  # it is the last one of a log that is placed alone, or the next one is empty
    is_odd = is_odd_jump(desk.last(before) + 1, int(desk.firsts[row]))
    # A hole between explains the jump.
    if not (is_last and is_odd and desk.touches(before, row)):
        return
    if desk.rows["is_keyless"][before] or _are_dense(desk, desk.kept[-2::-1].tolist()):
        desk.set_aside([row])


def is_odd_jump(due: int, first: int) -> bool:
    """Return whether `first` is one bit away from `due`, and ODD_JUMP_MIN or more above it."""
    return first - due >= ODD_JUMP_MIN and (first ^ due).bit_count() == 1


def _are_dense(desk: Desk, rows: list[int]) -> bool:
    """Return whether DENSE_BATCHES_MIN batches leave no offset out; `rows` begins with the last."""
    left, following = DENSE_BATCHES_MIN, -1
    for row in rows:
        batches = int(desk.rows["batches"][row])
        if following not in (-1, desk.last(row) + 1):
            return False
        if desk.rows["leaps"][row]:
            if batches <= left:
                return False
            desk.ask(Part(row, tail=left))
            return False
        left, following = left - batches, int(desk.firsts[row])
        if left <= 0:
            return True
    return False


def _far_end(desk: Desk) -> None:
    """Set a mended last batch aside that leaves out more offsets than bytes are lost before it."""
    if len(desk.kept) < 2 or not desk.rows["is_mended"][desk.kept[-1]]:
        return
    row, before = int(desk.kept[-1]), int(desk.kept[-2])
    if desk.logs[desk.rows["log"][row]].next_base_offset is not None:
        return  # it ends before that
    lost_bytes = desk.begin_of(row) - desk.end_of(before)
    if desk.firsts[row] - desk.last(before) - 1 > max(0, lost_bytes):
        desk.set_aside([row])


def _nowhere(desk: Desk) -> None:
    desk.decide(desk.undecided(), Fate.ASIDE)


RULES = (
    Rule("PLACE-1", "unloadable",
         "A control batch that is no marker is set aside: no broker loads a log with it.",
         "A control batch without records stays: compaction leaves such batches, and a broker loads"
         " them.",
         _unloadable),
    Rule("PLACE-2", "falling",
         "A batch that ends before it begins, or before offset 0, is set aside: it fits nowhere by"
         " its own offsets.",
         "A negative base offset is left to PLACE-4 if the batch touches both neighbours, and has"
         " exactly the offsets that are missing between them.", _falling),
    Rule("PLACE-3", "rising",
         "Most batches whose offsets rise are kept where they lie, since a log's offsets rise."
         " Batches that sizes lead to come before all that a search found, apart from one that"
         " contradicts many and whose base offset has one bit too many. Those whose offset an index"
         " entry or the log's name states come before these. Those come last whose leader epoch had"
         " other offsets, as the checkpoint of epochs states. Of two runs that weigh the same, the"
         " one to which entries lead has the offsets of both, or else the longer one. A batch is"
         " not kept if an entry for its position states an offset that is missing before it.",
         "An index states nothing if more of its entries are wrong than right. A batch in a value"
         " of a broken record weighs less than the batches of the log, since a search found it. A"
         " name above all that lies in its log tells nothing, unless other logs have these offsets"
         " by their names, and as many bytes.",
         _rising),
    Rule("PLACE-4", "exact place",
         "A batch that touches both neighbours gets the base offset that these state, if exactly"
         " its offsets are missing between them: no checksum covers a base offset. The name of a"
         " log is the neighbour of its first batch, which gets it as base offset too if it states"
         " one below that, one bit is the difference, and no damage follows. In a compacted log one"
         " bit must be the difference, or the batch must contradict more than one neighbour.",
         "A copy gets no other base offset, and neither does a batch whose own offsets are missing"
         " elsewhere. A place states nothing if more offsets are missing there than the batch has.",
         _exact_place),
    Rule("PLACE-5", "foreign",
         "A block beside damage is set aside if it contradicts what is kept around it: its"
         " leader epoch falls, its producer's sequence does not follow, both sides have another"
         " magic, the magic falls, a broker's timestamp is a day off, its log's name is above it,"
         " or a search found it and more offsets than bytes are missing beside it after a record"
         " without a key, behind which compaction leaves nothing out. What it contradicts has more"
         " bytes to which sizes lead, or else more bytes. At an end of the partition one neighbour"
         " is enough. So is a block behind damage set aside into which an entry of a right index"
         " leads with another offset than it has, and none with one that it has; two such entries"
         " are needed if no byte is lost before it. A block behind damage is set aside too if its"
         " leader epoch had other offsets, as the partition's checkpoint of epochs states.",
         "Two neighbours that contradict each other tell nothing of a block between them. A new"
         " leader and a new producer contradict nothing. Nor does a lone batch whose epoch is one"
         " bit off, since no checksum covers an epoch; nor a timestamp of a client; nor a sequence"
         " that begins with 0 again. If offsets are missing between two groups, and no damage"
         " is beside them, or sizes lead to both, they were lost before: missing offsets tell"
         " nothing there. Nor do they where a batch with as many offsets, which is not kept,"
         " lies beside one of the two: it changed places with another one. The checkpoint tells"
         " nothing of an epoch that begins elsewhere in the log, right after the epoch before.",
         _foreign),
    Rule("PLACE-6", "copy",
         "The same content with the same offsets is kept once, and set aside once more.",
         "The same bytes at another base offset are no copy: a producer may send the same twice.",
         _copies),
    Rule("PLACE-7", "inside torn",
         "A batch after the beginning of one that the log cuts off is set aside if its offsets do"
         " not rise: mostly it is a part of that batch's value, so its bytes count as broken.",
         "A batch whose offsets rise stays: a disk may have written it there. So does a batch after"
         " a wrong size: lengths and size do not agree there.", _inside_torn),
    Rule("PLACE-8", "moved",
         "A block goes where its offsets are missing, if bytes are missing there too, nothing"
         " around contradicts it, and one thing speaks for it: it has more than half of the"
         " missing offsets, or fills the hole together with others (a single batch far off fills it"
         " byte for byte, if sizes lead to what lies between); the hole has room for its bytes; a"
         " copy of a kept batch leads on to it; sequences do; another block lies where it belongs,"
         " and belongs where it lies; it lies whole sectors from the batch that it follows. It"
         " stays out if the batch beside it continues its offsets, and a longer run of batches, or"
         " one to which entries lead, has these offsets: then both are of another log.",
         "Another topic's block with higher offsets is not moved, since no bytes are missing for"
         " it. Nor is an old copy of what compaction removed, since the batches around its place"
         " touch; nor a single batch for which none of these speaks.", _moved),
    Rule("PLACE-9", "odd end",
         "The last batch of a dense log is set aside if it alone leaves a power of two of offsets"
         " out: one bit of its base offset is wrong. A log is dense if its last batches leave no"
         " offset out, or if a record of one of them has no key: compaction removes such records,"
         " and has left nothing out after one.",
         "A last batch with such a jump stays in a compacted log, and after a hole. It stays if an"
         " index entry or the log's name states its offset, and if another log follows. A jump of"
         f" less than {ODD_JUMP_MIN} offsets stays: compaction or a salvage leaves such.",
         _odd_end),
    Rule("PLACE-10", "far end",
         "A last batch whose size or magic was wrong is set aside if it leaves out more offsets"
         " than bytes are lost before it: an offset needs a byte at least, so its base offset is"
         " wrong too.",
         "A last batch stays if its size and magic were right, if the damage before it is long"
         " enough, and if another log follows.",
         _far_end),
    Rule("PLACE-11", "nowhere",
         "What is left is set aside: it contradicts what is kept, or nothing states its place.",
         "It spares nothing, since no later rule decides batches.", _nowhere),
)  # fmt: skip
"""The decision table."""
_COPY, _INSIDE, _MOVED = RULES[5:8]
ORDER = (*RULES[:5], _INSIDE, _COPY, _MOVED, _COPY, *RULES[8:])
"""The rules in the order in which they are asked: a copy in the value of a torn batch is a part of
it, and copies of what was moved are looked for again."""
