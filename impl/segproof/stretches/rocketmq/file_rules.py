# SPDX-License-Identifier: Apache-2.0
"""The rules about whole files, and about messages that were never stored where they lie.

Laws: RMQDISK-25, RMQDISK-44, RMQDISK-55.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from segproof.stretches.rocketmq.desk import Bools, Desk, Fate
from segproof.stretches.rocketmq.facts import Int64s, Met, Reach, Units, marks_of
from segproof.stretches.rocketmq.witnesses import (
    NEAR_MESSAGES,
    are_of_other_log,
    are_units_ours,
    can_go_on,
    witness,
)

SECTOR_BYTES = 512
"""A disk writes blocks of a multiple of this, at a multiple of it. So a misplaced block moves its
messages by such a distance, and a wrong bit moves them by one with a chance of 1 in 512."""
FILES_BEYOND = 8
"""At most this many files before the first one, or after the last one, get messages: a wrong offset
may say any file, and each needs a file of its own size. Eight lost files in a row are rare."""
RIGHT_MIN = 3
"""Units that must agree with other files before a file is called another store's: with fewer the
queues may be another store's. Also the units that are enough against a file with none for it."""


def filler(desk: Desk) -> None:
    """Leave what an earlier salvage put in the place of lost messages."""
    desk.decide(np.flatnonzero(desk.rows["is_filler"]), Fate.FILLER)


def inside(desk: Desk) -> None:
    """Leave messages that are a part of the body of a broken one."""
    claims = desk.claims()[desk.run_firsts]
    run_files = desk.files[desk.run_firsts]
    for number, file in enumerate(desk.facts.files):
        runs = np.flatnonzero(run_files == number) if file.torn else np.empty(0, np.int64)
        within = _within(desk, runs, file.torn)
        outside = {file.start, *claims[np.setdiff1d(runs, within)].tolist()}
        for run in within:
            rows = np.arange(desk.run_firsts[run], desk.run_stops[run])
            by = int(claims[run]) - file.start
            if int(claims[run]) in outside or by % SECTOR_BYTES == 0:
                continue
            end = int(desk.said[rows[-1]] + desk.sizes[rows[-1]])
            if not desk.evidence(int(desk.said[rows[0]]), end)[Met.AGREES]:
                desk.decide(rows, Fate.INSIDE)


def _within(desk: Desk, runs: Int64s, torn: Sequence[tuple[int, int]]) -> list[int]:
    """Return the runs that a search found in the bytes of broken messages; `torn` are these."""
    if not len(runs):
        return []
    begins, ends = np.array(sorted(torn), np.int64).T
    reached = np.append(-1, np.maximum.accumulate(ends))
    firsts = desk.rows[desk.run_firsts[runs]]
    reached = reached[np.searchsorted(begins, firsts["start"])]
    is_within = desk.rows["end"][desk.run_stops[runs] - 1] <= reached
    found: list[int] = runs[is_within & (firsts["reach"] == Reach.SEARCH)].tolist()
    return found


def file_name(desk: Desk) -> None:
    """Let files begin where most of their messages say."""
    size, files = desk.facts.file_bytes, desk.facts.files
    names = [one.start for one in files]
    steps = Counter(name % size for name in names)
    step = max(steps, key=lambda one: (steps[one], one == 0), default=0)
    told = dict(_claims_of_files(desk))
    by = {begin - names[number] for number, (begin, _) in told.items()}
    least = min((begin for begin, _ in told.values()), default=-1)
    is_whole = len(by) == 1 and least >= 0
    is_whole &= len(told) > 1 or (len(files) == 1 and least % size == 0)
    if is_whole:
        step = (step + min(by)) % size
    claimed = {begin for number, (begin, _) in told.items() if begin != names[number]}
    moves = {
        number: begin
        for number, (begin, _) in told.items()
        if begin != names[number]
        and (begin % size == step or len(files) == 1)
        and (
            is_whole
            or (_is_near(desk, begin) and begin % size == step)
            or _is_known(desk, number, begin)
        )
        and (names[number] in claimed or not _is_denied(desk, number, begin))
    }
    strong = {number for number in moves if told[number][1] > 1}
    strong |= {number for number in moves if _is_known(desk, number, moves[number])}
    strong |= _with_each_others_names(moves, names)
    stays = {names[number] for number in told if number not in moves}
    while True:
        wanted = {begin for number, begin in moves.items() if number in strong}
        taken = set[int]()
        kept = dict[int, int]()
        for number in sorted(moves, key=lambda one: (-told[one][1], one)):
            is_backed = number in strong or names[number] in wanted
            if moves[number] not in stays | taken and is_backed:
                kept[number] = moves[number]
                taken.add(moves[number])
        if kept == moves:
            break
        stays |= {names[number] for number in moves if number not in kept}
        moves = kept
        strong &= kept.keys()
    by_all = min(by) if is_whole and len(moves) == len(told) else 0
    begins = np.array([moves.get(number, name + by_all) for number, name in enumerate(names)])
    owners = {begin: number for number, begin in moves.items()}
    left = sorted({names[number] for number in moves} - owners.keys(), reverse=True)
    for number, name in enumerate(names):
        if number not in moves and name in owners:
            # A file without a message, whose name another one takes, gets one that is left.
            begins[number] = left.pop() if left else -1
    step = begins[0] % size if len(files) == 1 else step
    desk.settle(begins, begins % size == step)


def _with_each_others_names(moves: dict[int, int], names: list[int]) -> set[int]:
    """Return the files that say each other's names; `moves` has where files say that they begin."""
    found, owners = set(moves), {name: number for number, name in enumerate(names)}
    while True:
        wanted = {moves[number] for number in found}
        both = {one for one in found if owners.get(moves[one]) in found and names[one] in wanted}
        if both == found:
            return found
        found = both


def _claims_of_files(desk: Desk) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield for each file with messages where most of them say that it begins, and how many do;
    where no begin has more than half of them, or one says that of its name, the name's."""
    open_rows = desk.undecided()
    counts: dict[int, Counter[int]] = {}
    found = zip(
        desk.files[open_rows].tolist(), desk.claims()[open_rows].tolist(),
        desk.rows["messages"][open_rows].tolist(), strict=True,
    )  # fmt: skip
    for number, begin, messages in found:
        counts.setdefault(number, Counter())[begin] += messages
    for number, one in counts.items():
        begin, messages = one.most_common(1)[0]
        name = desk.facts.files[number].start
        is_most = 2 * messages > one.total() and not one[name]
        yield number, (begin, messages) if is_most else (name, one[name])


def _is_near(desk: Desk, begin: int) -> bool:
    """Return whether a file of this log may begin at an offset: not far away."""
    size, files = desk.facts.file_bytes, desk.facts.files
    far = FILES_BEYOND * size
    return begin >= 0 and files[0].start - far <= begin < files[-1].start + size + far


def _is_known(desk: Desk, number: int, begin: int) -> bool:
    """Return whether units lead to where a file says that it begins, and only there."""
    size, files = desk.facts.file_bytes, desk.facts.files
    here = desk.evidence(files[number].start, files[number].start + size)
    return _is_led_to(desk, begin) and not here[Met.AGREES]


def _is_denied(desk: Desk, number: int, begin: int) -> bool:
    """Return whether units lead to where the name of a file says, and none to where it says that it
    begins."""
    name, size = desk.facts.files[number].start, desk.facts.file_bytes
    return desk.evidence(name, name + size).total() > 0 and not _is_led_to(desk, begin)


def _is_led_to(desk: Desk, begin: int) -> bool:
    """Return whether a unit leads to its message in the file that begins at an offset."""
    units = desk.units_in(begin, begin + desk.facts.file_bytes) if begin >= 0 else desk.units[:0]
    return bool((units["met"] == Met.AGREES).any())


def in_place(desk: Desk) -> Int64s:
    """Return the rows that say the offset at which they lie, and are in no blank end."""
    is_here = (desk.fates == Fate.UNDECIDED) & (desk.said == desk.lies())
    is_here &= desk.in_step[desk.files] & ~desk.rows["is_after_blank"]
    return np.flatnonzero(is_here)


def other_store(desk: Desk) -> None:
    """Doubt a file if units say that other messages lie in it."""
    here = in_place(desk)
    size, doubted, ours = desk.facts.file_bytes, list[int](), 0
    for number in np.unique(desk.files[here]).tolist():
        begin = int(desk.begins[number])
        found = desk.evidence(begin, begin + size)
        right, wrong = found[Met.AGREES], found[Met.AGAINST]
        if _are_of_others(right, wrong) or _has_other_numbers(desk, here, number, right, wrong):
            doubted.append(number)
        elif right > wrong:
            ours += right
    if ours < RIGHT_MIN:
        return
    for number in doubted:
        begin, rows = int(desk.begins[number]), here[desk.files[here] == number]
        met = desk.units_in(begin, begin + size)["met"]
        right, wrong = (int(np.count_nonzero(met == one)) for one in (Met.AGREES, Met.AGAINST))
        is_other = _are_of_others(right, wrong)
        if not (is_other or _has_other_numbers(desk, here, number, right, wrong)):
            continue
        is_known = [
            desk.evidence(said, said + length)[Met.AGREES] > 0
            for said, length in zip(
                desk.said[rows].tolist(), desk.sizes[rows].tolist(), strict=True
            )
        ]
        known = rows[np.array(is_known, np.bool_)]
        desk.need(known.tolist())
        desk.decide(np.setdiff1d(rows, known), Fate.ASIDE)


def _are_of_others(right: int, wrong: int) -> bool:
    return are_of_other_log(right, wrong) if right else wrong >= RIGHT_MIN


def _has_other_numbers(desk: Desk, here: Int64s, number: int, right: int, wrong: int) -> bool:
    """Return whether a unit contradicts a file, none has offset and size of a message of it, and
    the numbers of its first messages do not go on where the log before it ends."""
    if right or not wrong or number == desk.files[here[0]]:
        return False
    rows = here[desk.files[here] == number]
    desk.need(rows[:1].tolist())
    rows = rows[np.cumsum(desk.rows["messages"][rows]) <= NEAR_MESSAGES]
    begin = int(desk.begins[number])
    if _lead_to(desk.units_in(begin, begin + desk.facts.file_bytes), desk, rows).any():
        return False
    before = here[desk.said[here] < begin]
    before = before[np.argsort(-desk.said[before], kind="stable")]
    known = witness(desk, rows.tolist(), 0, before.tolist(), ())
    return known.wrong > known.right


def _lead_to(units: Units, desk: Desk, rows: Int64s | list[int]) -> Bools:
    """Return which units have offset and size of a row."""
    of_rows = marks_of([desk.said[rows], desk.sizes[rows]])
    return np.asarray(np.isin(marks_of([units["offset"], units["size"]]), of_rows))


def other_log(desk: Desk) -> None:
    """Doubt messages beside broken bytes that units, numbers or addresses contradict."""
    here = in_place(desk)
    here = here[np.argsort(desk.said[here], kind="stable")]
    at = {row: number for number, row in enumerate(here.tolist())}
    for rows in _broken_around(desk, here):
        first, last = at[rows[0]], at[rows[-1]]
        before = here[max(0, first - NEAR_MESSAGES) : first][::-1]
        after = here[last + 1 : last + 1 + NEAR_MESSAGES]
        if _is_of_other_log(desk, rows, before, after):
            desk.decide(rows, Fate.ASIDE)


def _broken_around(desk: Desk, here: Int64s) -> Iterator[list[int]]:
    """Yield the rows in place that touch, of all brokers, if bytes beside are broken."""
    rows, files = desk.rows, desk.facts.files
    is_here = np.zeros(len(rows) + 1, np.bool_)
    is_here[here] = True
    is_next = (rows["file"][1:] == rows["file"][:-1]) & (rows["start"][1:] == rows["end"][:-1])
    is_next = np.append(is_next, False)
    is_joined = is_next & is_here[:-1] & is_here[1:]
    ends = np.array([(one.blank_from or -1, one.zeros_from) for one in files], np.int64)
    lasts = np.flatnonzero(is_here[:-1] & ~is_joined)
    firsts = np.flatnonzero(is_here[:-1] & ~np.append(False, is_joined[:-1]))
    is_end = (ends[desk.files[lasts]] == rows["end"][lasts, None]).any(axis=1)
    is_broken = ~(is_next[lasts] | is_end) | ~(is_next[firsts - 1] | (rows["start"][firsts] == 0))
    for first, last in zip(firsts[is_broken].tolist(), lasts[is_broken].tolist(), strict=True):
        yield list(range(first, last + 1))


def _do_know(units: Units) -> bool:
    """Return whether one of some units leads to its message. An entry of the index, which says an
    offset alone, does not if a unit says that another message lies there."""
    agree, is_whole = units["met"] == Met.AGREES, units["size"] > 0
    against = units["offset"][is_whole & (units["met"] == Met.AGAINST)]
    return bool((agree & (is_whole | ~np.isin(units["offset"], against))).any())


def _is_of_other_log(desk: Desk, rows: list[int], before: Int64s, after: Int64s) -> bool:
    start, end = int(desk.said[rows[0]]), int(desk.said[rows[-1]] + desk.sizes[rows[-1]])
    if int(desk.rows["messages"][rows].sum()) > NEAR_MESSAGES:
        return False
    at_hand = desk.units[slice(*np.searchsorted(desk.units["offset"], [start, end]))]
    if _do_know(at_hand[at_hand["size"] > 0]):
        return False
    units = desk.units_in(start, end)
    if _do_know(units):
        return False
    ours = are_units_ours(desk, start, end)
    known = witness(desk, rows, 0, before.tolist(), after.tolist(), is_here=True)
    right, wrong = known if ours or not len(desk.units) else (0, 0)
    units = units[units["size"] > 0]
    is_of = _lead_to(units, desk, rows)
    right += int(np.count_nonzero(is_of))
    wrong += ours * int(np.count_nonzero(~is_of))
    hosts = desk.rows["host"]
    if len(before) and not (hosts[rows] == hosts[before[0]]).any():
        is_back = len(after) and hosts[before[0]] == hosts[after[0]]
        wrong += is_back or (not len(after) and ours and not can_go_on(desk, rows, before))
    return bool(wrong > right)
