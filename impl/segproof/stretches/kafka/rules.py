# SPDX-License-Identifier: Apache-2.0
"""The rules of placing, in the order in which they are asked.

Each rule decides rows that none before it has decided. No rule opens a file, and none looks at
bytes: so tests draw facts whose truth they know.

Laws: BATCH-3, BATCH-19, EPOCH-1, PROD-3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from segproof.integers import INT64_MAX
from segproof.stretches.kafka.desk import KIND, Desk, Fate, Group
from segproof.stretches.kafka.facts import NO_ROWS, Int64s, Part, Rows
from segproof.stretches.kafka.moving import (
    belongs,
    blocks,
    goes_on_otherwise,
    lies_beside,
    lies_there,
)
from segproof.stretches.kafka.rising_chain import heaviest_chain
from segproof.stretches.kafka.room import forget_room, without_room
from segproof.stretches.kafka.strangers import contradicts
from segproof.stretches.kafka.suspects import contradicts_beside, is_elsewhere, note_suspects

DENSE_BATCHES_MIN = 17
"""Batches in a row that leave no offset out, so that compaction is not at work in the log.
Compaction leaves out offsets here and there: two in a row prove little, and with 100 no short log
would be asked."""
ODD_JUMP_MIN = 64
"""Offsets that a last batch leaves out, at least, if one bit of its base offset is wrong. A gap of
1 or 2 offsets, which compaction or a salvage has left, is one bit of the offset half of the time;
one of 64 to 127 in one of 128 cases."""
FAR_JUMP_MIN = 1 << 28
"""Offsets that a last batch leaves out, at least, if several bits of its base offset are wrong."""
RECORDS_PER_BYTE_MAX = 256
"""Equal records, compressed: less than a bit for each."""
FIRM = 1 << 40
"""How many times a batch that sizes lead to outweighs one that a search found, and one whose offset
an index entry or a name states outweighs others. A log has less than 2^31 bytes, and a batch weighs
5 at most: all that a search found weighs less than one such batch.
"""
REST_TIMES = 2
"""How many times as long a run is, at least, if what goes on with a batch that lost against it is
of another log too. Of two runs of like length either may be the foreign one."""
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
    note_suspects(desk)


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
    evidence = desk.evidence[able]
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
    most = int(sizes.max()) * FIRM
    units = [
        size * most ** (level + 1)
        for size, level in zip(sizes.tolist(), evidence[told].tolist(), strict=True)
    ]
    heavy = [weight * unit for weight, unit in zip(weights[told].tolist(), units, strict=True)]
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
    """Keep the suspects whose own offsets are missing nowhere else, if no neighbour contradicts."""
    rows = [
        row for row in desk.suspects
        if not any(told(desk, row) for told in (is_elsewhere, contradicts_beside))
    ]  # fmt: skip
    desk.restore(rows, [desk.suspects[row] for row in rows])


def _foreign(desk: Desk) -> None:
    """Set blocks aside beside damage that contradict what is kept around them.

    What was set aside contradicts nothing any more, so the blocks around it are compared again.
    """
    groups = desk.groups() if len(desk.kept) else []
    if forget_room(desk, groups):
        groups = desk.groups()
    denied = [*_denied(desk, groups), *_denied(desk, _joined(desk, groups))]
    desk.set_aside([*_below_names(desk, groups), *denied])
    desk.set_aside(_rests(desk))
    while len(desk.kept):
        groups = desk.groups()
        strange = _strange(desk, groups) or _strange(desk, _joined(desk, groups))
        strange = strange or without_room(desk, groups)
        if not strange:
            break
        desk.set_aside(strange)
        if desk.asked:
            break


def _joined(desk: Desk, groups: list[Group]) -> list[Group]:
    """Return the groups joined over changes of the epoch; none if no two are."""
    joined = desk.groups(is_joined=True) if groups else []
    return joined if len(joined) < len(groups) else []


def _strange(desk: Desk, groups: list[Group]) -> list[int]:
    """Return the rows of the groups that contradict those around them, and weigh less.

    Two neighbours that contradict each other tell of nothing between them. Their bytes count
    together if they are of one epoch and one magic, and no group is smaller than both. One
    neighbour is enough at an end of the partition, where no group between two is strange, and no
    other group is of the same epoch, or the group after the neighbour contradicts too.
    """
    levels = np.where(desk.is_other_epoch, 0, desk.evidence).tolist()
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
    kinds = desk.rows[KIND]
    for is_end, inner in (False, range(1, len(groups))), (True, range(len(groups) - 2, -1, -1)):
        end = -1 if is_end else 0
        if groups[end].is_at_damage:
            against = _against_end(desk, groups, [groups[number].rows for number in inner], is_end)
            weight = sum(weights[number] for number in inner[:against])
            # Of groups of several epochs only the near end counts against what a search found.
            near = [groups[number].rows for number in inner]
            near = near if weights[end] >= FIRM else [[rows[end]] for rows in near]
            others = [row for rows in near for row in rows]
            is_new = not (kinds[others] == kinds[groups[end].rows[-1 - end]]).any()
            if weights[end] < weight and (against > 1 or is_new):
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


def _rests(desk: Desk) -> list[int]:
    """Return kept rows that go on with a row whose offsets others have, for which more is said.

    They are of one block with that row, and damage ends it. A block to which entries lead is none,
    and the row is no copy of what is kept.
    """
    rows, kept = desk.rows, np.sort(desk.kept)
    goes_on = np.flatnonzero(rows["last"][:-1] + 1 == rows["first"][1:])
    goes_on = goes_on[desk.touch(goes_on, goes_on + 1)]
    is_left = desk.fates == Fate.UNDECIDED
    if not (is_left[goes_on] != is_left[goes_on + 1]).any():
        return []
    is_joined = np.isin(kept[:-1], goes_on) & (kept[1:] == kept[:-1] + 1)
    found = list[int]()
    for block in np.split(kept, np.flatnonzero(~is_joined) + 1):
        is_led = rows["led"][block].any() or rows["is_indexed"][block].any()
        if _is_at_damage(desk, int(block[0]), int(block[-1])) and not is_led:
            found += block.tolist() * goes_on_otherwise(desk, block.tolist(), REST_TIMES)
    return found


def _is_at_damage(desk: Desk, first: int, last: int) -> bool:
    """Return whether bytes are lost before some rows in their log, or after them."""
    if desk.rows["start"][first] and not desk.touches(first - 1, first):
        return True
    is_last = last == len(desk.rows) - 1
    return desk.is_end_broken() if is_last else not desk.touches(last, last + 1)


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
    is_last_kept = is_last or _ends_what_lies_there(desk, row)
    if is_last and desk.rows["leaps"][row]:
        desk.ask(Part(row, tail=1))
        return
    log = desk.logs[desk.rows["log"][row]]
    if desk.rows["start"][row] == 0 and desk.firsts[row] == log.base_offset:
        return  # the log's name states it too
    if log.next_base_offset is not None:
        return  # it is the last one of a log that is placed alone, or the next one is empty
    due, first = desk.last(before) + 1, int(desk.firsts[row])
    # A hole between explains a jump of one bit.
    is_odd = is_odd_jump(due, first) and desk.touches(before, row)
    is_same = desk.rows["log"][before] == desk.rows["log"][row]
    lost_bytes = int(desk.rows["start"][row]) - (int(desk.rows["end"][before]) if is_same else 0)
    is_far = is_far_jump(max(due, log.base_offset), first, lost_bytes)
    is_odd |= row > 0 and desk.touches(row - 1, row) and is_odd_jump(desk.last(row - 1) + 1, first)
    if not (is_last_kept and (is_odd or is_far)):
        return
    if desk.rows["is_keyless"][before] or _are_dense(desk, desk.kept[-2::-1].tolist()):
        desk.set_aside([row])


def _ends_what_lies_there(desk: Desk, row: int) -> bool:
    """Return whether no batch behind a row stays there, and no entry states its offset."""
    stay = desk.fates[row + 1 :] == Fate.KEPT
    return not (desk.rows["is_indexed"][row] or stay.any())


def is_odd_jump(due: int, first: int) -> bool:
    """Return whether `first` is one bit away from `due`, and ODD_JUMP_MIN or more above it."""
    return first - due >= ODD_JUMP_MIN and (first ^ due).bit_count() == 1


def is_far_jump(due: int, first: int, lost_bytes: int = 0) -> bool:
    """Return whether more offsets lie between two batches than their lost bytes can have had."""
    return first - due >= max(FAR_JUMP_MIN, lost_bytes * RECORDS_PER_BYTE_MAX)


def _are_dense(desk: Desk, rows: list[int]) -> bool:
    """Return whether DENSE_BATCHES_MIN batches leave no offset out; `rows` begins with the last.

    What is missing where bytes are lost too tells nothing.
    """
    left, after = DENSE_BATCHES_MIN, -1
    for row in rows:
        batches = int(desk.rows["batches"][row])
        goes_on = after < 0 or desk.last(row) + 1 == desk.firsts[after]
        if not goes_on and desk.touches(row, after):
            return False
        if desk.rows["leaps"][row]:
            if batches <= left:
                return False
            desk.ask(Part(row, tail=left))
            return False
        left, after = left - batches, row
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
         " other offsets, as the checkpoint of epochs states. A batch weighs as much as all that"
         " touch it and go on with its offsets: so of two runs the one to which entries lead has"
         " the offsets of both, or else the longer one. A batch is not kept if an entry for its"
         " position states an offset that is missing before it.",
         "An index states nothing if more of its entries are wrong than right. If a batch lies in"
         " the value of a broken record, a search found it, so it weighs less than the batches of"
         " the log. A log's name that is above all offsets in the log tells nothing, unless other"
         " logs have these offsets by their names: two of them, or one with as many bytes.",
         _rising),
    Rule("PLACE-4", "exact place",
         "A batch that touches both neighbours gets the base offset that these state, if exactly"
         " its offsets are missing between them: no checksum covers a base offset. The name of a"
         " log is the neighbour of its first batch, which gets it as base offset too if it states"
         " one below that, one bit is the difference, and no damage follows. In a compacted log one"
         " bit must be the difference, or the batch must contradict more than one neighbour.",
         "A copy gets no other base offset. Neither does a batch whose own offsets are missing"
         " elsewhere, or that states the name of another log, at whose begin no batch states it;"
         " nor one whose magic or leader epoch contradicts the batches that it touches. A place"
         " states nothing if more offsets are missing there than the batch has.",
         _exact_place),
    Rule("PLACE-5", "foreign",
         """\
A block beside damage is set aside if it contradicts what is kept around it:

- its leader epoch falls;
- its magic falls, or both sides have another magic;
- its producer's sequence does not follow;
- it goes on with a batch whose offsets another run has, for which more is said: sizes lead to it,
  or it is more than twice as long;
- a broker's timestamp is a day off;
- the name of its log is above it;
- a search found it, and more offsets than bytes are missing beside it after a record without a key,
  behind which compaction leaves nothing out.

What it contradicts has more bytes to which sizes lead, or else more bytes. Batches that touch are
one block; if their magic or leader epoch changes, each part of the block is asked first. At an end
of the partition one neighbour is enough.

A block behind damage is set aside, too,

- if an entry of a right index leads into it with another offset than it has, and none with one that
  it has; two such entries are needed if no byte is lost before it;
- if its leader epoch had other offsets, as the partition's checkpoint of epochs states.""",
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
         """\
A block goes where its offsets are missing, if bytes are missing there too, nothing around
contradicts it, and one thing speaks for it:

- it has all of the missing offsets, and lies beside them, or has as many bytes as are missing
  there, or no byte is;
- it has several batches and more than half of the missing offsets, or the hole has room for them
  (also if a search found all that lies between: two blocks may have changed places);
- it fills the hole together with others;
- a copy of a kept batch leads on to it;
- sequences do;
- another block lies where it belongs, and belongs where it lies;
- it lies whole sectors from the batch that it follows.

It stays out if the batch beside it continues its offsets, and kept batches have that batch's
offsets: of a longer run, or of one to which entries lead; or sizes lead to them within the name of
their log, and not so to that batch. Then both are of another log.""",
         "Another topic's block with higher offsets is not moved, since no bytes are missing for"
         " it. Nor is a block that touches the batch with which it goes on: an entry speaks against"
         " it, unless compaction removed the record of that entry. Nor is an old copy"
         " of what compaction removed, since the batches around its place"
         " touch; nor a single batch for which none of these speaks.", _moved),
    Rule("PLACE-9", "odd end",
         "The last batch of a dense log is set aside if it alone leaves a power of two of offsets"
         f" out: one bit of its base offset is wrong. So it is if it leaves {FAR_JUMP_MIN:,} out or"
         f" more, and {RECORDS_PER_BYTE_MAX} or more for each byte that is lost before it: several"
         " bits are wrong. Batches that leave the log may lie behind it. A log is dense if its last"
         " batches leave no offset out but where bytes are lost too, or if a record"
         " of one of them has no key: compaction removes such records, and has left nothing out"
         " after one.",
         "A last batch with such a jump stays in a compacted log, and with a jump of one bit after"
         " a hole. It stays if an index entry or the log's name states its offset, and if another"
         f" log follows. A jump of less than {ODD_JUMP_MIN} offsets stays: compaction or a salvage"
         " leaves such.",
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
