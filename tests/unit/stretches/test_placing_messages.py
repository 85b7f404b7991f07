# SPDX-License-Identifier: Apache-2.0
"""Properties of placing the messages of a commit log: the truth is drawn, then the damage."""

from dataclasses import replace
from itertools import pairwise
from operator import eq

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from segproof.stretches.rocketmq.desk import Fate, Gap, GapKind, Needs, Placement
from segproof.stretches.rocketmq.facts import Facts, FileFacts, Met, joined, meet
from segproof.stretches.rocketmq.placing import RULES, place
from segproof_tests.drawn_stretches import (
    FILE_BYTES,
    FIRST_MS,
    OTHERS,
    Drawn,
    DrawnFile,
    DrawnLog,
    changed,
    damaged_logs,
    fates_by_message,
    kept_of,
    placed,
    placed_in_steps,
    renamed,
    rows_of,
    shifted,
    units_of,
    whole_logs,
    without,
    without_file,
    written_over,
)
from segproof_tests.message_examples import EXAMPLES, Example, log_of, told_fates


def truth_of(log: DrawnLog) -> list[tuple[int, int]]:
    """Return the name and the offset of each message that the log had, in order."""
    return sorted(log.truth.items(), key=lambda one: one[1])


def rules_of(found: Placement) -> set[str]:
    """Return the names of the rules that decided."""
    return {RULES[number].name for number in found.rules.tolist()}


@given(whole_logs())
def test_all_of_a_whole_log_is_kept_in_place(log: DrawnLog) -> None:
    """Nothing is lost but the zeros at the end, and no unit is doubted."""
    found = placed(log.facts())
    assert set(found.fates.tolist()) == {Fate.KEPT}
    assert kept_of(found) == truth_of(log)
    assert [gap.kind for gap in found.gaps] == [GapKind.ZEROS] * len(found.gaps)
    assert len(found.gaps) <= 1


@given(damaged_logs())
def test_kept_messages_rise_and_do_not_overlap(log: DrawnLog) -> None:
    """Each leaves room for the blank end of its file, and no gap is too small for a message."""
    found = placed(log.facts())
    starts = found.offsets[found.kept]
    ends = starts + (found.facts.rows["end"] - found.facts.rows["start"])[found.kept]
    room = starts[1:] - ends[:-1]
    assert (room >= 0).all()
    assert (starts % FILE_BYTES <= FILE_BYTES - 99).all()
    is_in_file = starts[1:] // FILE_BYTES == ends[:-1] // FILE_BYTES
    assert ((room == 0) | (room >= 91) | ~is_in_file).all()


@given(damaged_logs())
def test_every_message_has_one_fate_and_gaps_have_no_kept_one(log: DrawnLog) -> None:
    """Gaps lie in order, apart from each other and from what is kept."""
    found = placed(log.facts())
    assert Fate.UNDECIDED not in found.fates.tolist()
    sizes = (found.facts.rows["end"] - found.facts.rows["start"])[found.kept].tolist()
    starts = found.offsets[found.kept].tolist()
    spans = [(at, at + size) for at, size in zip(starts, sizes, strict=True)]
    spans += [(gap.start, gap.end) for gap in found.gaps]
    spans.sort()
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


@given(damaged_logs())
def test_a_kept_offset_is_the_true_or_the_stored_one(log: DrawnLog) -> None:
    """Nothing is invented."""
    stored = {(one.name, one.said) for one in log.messages}
    assert {*kept_of(placed(log.facts()))} <= stored | {*log.truth.items()}


@given(damaged_logs())
def test_placing_what_was_placed_changes_nothing(log: DrawnLog) -> None:
    """A second salvage keeps each message where the first one did."""
    found = placed(log.facts())
    by_name = {one.name: one for one in log.messages}
    kept = kept_of(found)
    assume(kept)
    begins = sorted({offset - offset % FILE_BYTES for _, offset in kept})
    at = {begin: number for number, begin in enumerate(begins)}
    messages = [
        replace(
            by_name[name], file=at[said - said % FILE_BYTES], start=said % FILE_BYTES, said=said
        )
        for name, said in kept
    ]
    ends = {one.file: one.end for one in messages}
    files = [DrawnFile(begin, ends[at[begin]], begin != begins[-1]) for begin in begins]
    again = DrawnLog(tuple(files), tuple(messages), log.units, log.truth)
    assert kept_of(placed(again.facts())) == kept


@given(damaged_logs())
def test_few_rows_are_placed_as_every_message_is(log: DrawnLog) -> None:
    """Rows of many messages, and a part of the units, decide the same, with what they ask for."""
    whole = log.facts()
    told = fates_by_message(placed(whole), whole)
    assert fates_by_message(placed_in_steps(whole), whole) == told


@given(whole_logs(least=8), st.data())
def test_a_broken_message_costs_itself_only(log: DrawnLog, data: st.DataObject) -> None:
    """All others are kept where they lie."""
    names = data.draw(st.sets(st.sampled_from(range(len(log.messages))), min_size=1, max_size=3))
    found = placed(without(log, names).facts())
    assert kept_of(found) == [one for one in truth_of(log) if one[0] not in names]


@given(whole_logs(least=12), st.data())
def test_files_that_changed_names_come_back(log: DrawnLog, data: st.DataObject) -> None:
    """Each message says its place, and so each file its name."""
    names = data.draw(st.permutations([one.start for one in log.files]))
    found = placed(renamed(log, names).facts())
    assert kept_of(found) == truth_of(log)
    assert rules_of(found) <= {"in place", "file name", "moved"}


@given(whole_logs(least=8), st.data())
def test_messages_that_were_shifted_come_back(log: DrawnLog, data: st.DataObject) -> None:
    """All that still lie whole in their file are moved to where they say, if several are shifted
    alike, or units know them."""
    one = data.draw(st.sampled_from(log.messages))
    count = data.draw(st.sampled_from((8, -8, 100, 512)))
    bad = shifted(log, one.file, one.start, count)
    moved = [each for each in bad.messages if each.start + bad.files[each.file].start != each.said]
    assume(len(moved) > 1 or log.units)
    truth = [(each.name, log.truth[each.name]) for each in bad.messages]
    assert kept_of(placed(bad.facts())) == sorted(truth, key=lambda each: each[1])


@given(whole_logs(least=3), st.data())
def test_one_bit_of_one_offset_comes_back(log: DrawnLog, data: st.DataObject) -> None:
    """The message touches its neighbours, or the begin of its file."""
    one = data.draw(st.sampled_from(log.messages))
    bad = changed(log, one.name, said=one.said ^ 1 << data.draw(st.integers(0, 62)))
    assert kept_of(placed(bad.facts())) == truth_of(log)


@given(damaged_logs(), st.data())
def test_a_wrong_clock_changes_no_place(log: DrawnLog, data: st.DataObject) -> None:
    """But after a blank end, where the middle one of three times decides."""
    assume(log.messages)
    one = data.draw(st.sampled_from(log.messages))
    wrong = changed(log, one.name, time=data.draw(st.sampled_from((0, 1, 1 << 60))))
    assume(not log.facts().rows["is_after_blank"].any())
    first, second = placed(log.facts()), placed(wrong.facts())
    assert (first.fates == second.fates).all()
    assert kept_of(first) == kept_of(second)


@given(whole_logs(least=8), st.data())
def test_a_block_of_another_broker_is_set_aside(log: DrawnLog, data: st.DataObject) -> None:
    """Whatever offsets its messages say, if some of this broker's are kept."""
    one = data.draw(st.sampled_from(log.messages))
    block = [each for each in log.messages if each.file == one.file and each.start >= one.start]
    far = data.draw(st.sampled_from((91, 100, FILE_BYTES, 1 << 40)))
    block = [
        replace(each, name=each.name + 10_000, said=each.said + far, host=OTHERS, number=10**6)
        for each in block[: data.draw(st.integers(1, 3))]
    ]
    number = data.draw(st.integers(0, len(log.files) - 1))
    bad = written_over(log, number, data.draw(st.integers(0, 1500)), block)
    assume(any(each.host != OTHERS for each in bad.messages))
    lies = [bad.files[each.file].start + each.start for each in bad.messages]
    said = [each.said if each.host == OTHERS else -1 for each in bad.messages]
    assume(not any(map(eq, lies, said)))  # if it also touches on both sides, nothing tells
    assert all(name < 10_000 for name, _ in kept_of(placed(bad.facts())))


@given(whole_logs(least=10), st.data())
def test_a_block_that_was_written_twice_is_kept_once(log: DrawnLog, data: st.DataObject) -> None:
    """And what it was written over is lost, no more."""
    one = data.draw(st.sampled_from(log.messages))
    block = [each for each in log.messages if each.file == one.file and each.start >= one.start]
    number = data.draw(st.integers(0, len(log.files) - 1))
    at = 512 * data.draw(st.integers(0, 3)) + one.start % 512
    bad = written_over(log, number, at, block[:3])
    names = {each.name for each in bad.messages}
    kept = kept_of(placed(bad.facts()))
    assert kept == [each for each in truth_of(log) if each[0] in names]


@given(whole_logs(least=20), st.data())
def test_a_file_that_is_missing_is_a_gap(log: DrawnLog, data: st.DataObject) -> None:
    """And messages of it that lie elsewhere are put there, if there are two."""
    assume(len(log.files) > 2)
    number = data.draw(st.integers(1, len(log.files) - 2))
    gone = [one for one in log.messages if one.file == number]
    kept = tuple(one for one in log.messages if one.file != number)
    bad = without_file(replace(log, messages=kept), number)
    begin = log.files[number].start
    assert Gap(GapKind.MISSING, begin, begin + FILE_BYTES) in placed(bad.facts()).gaps
    assume(len(gone) > 1)
    bad = written_over(bad, 0, gone[0].start, gone[:2])
    there = {*kept_of(placed(bad.facts()))}
    assert {(one.name, one.said) for one in gone[:2] if one.end <= FILE_BYTES} <= there


@pytest.mark.parametrize("bit", [11, 12, 20, 40, 62])
@pytest.mark.parametrize("has_unit", [False, True])
def test_a_store_of_one_message_keeps_it_where_it_lies(bit: int, has_unit: bool) -> None:
    """One message whose offset is wrong renames no file."""
    one = Drawn(0, 0, 0, 120, 1 << bit, FIRST_MS)
    units = ((0, 120, 1, 0),) * has_unit
    log = DrawnLog((DrawnFile(0, 120, is_blank=False),), (one,), units, {0: 0})
    found = placed(log.facts())
    assert kept_of(found) == [(0, 0)]
    assert found.fates.tolist() == [Fate.RESTORED]


def cut_off_log(age: int, times: tuple[int, ...] = (9, 10, 11)) -> Facts:
    """Return a log with three messages, a blank end, and one message of an age after that."""
    before = [
        Drawn(at, 0, 500 * at, 500, 500 * at, FIRST_MS + time) for at, time in enumerate(times)
    ]
    after = Drawn(9, 0, 1600, 200, 1600, FIRST_MS + age)
    files = (DrawnFile(0, 1500, is_blank=True), DrawnFile(FILE_BYTES, 100, is_blank=False))
    last = Drawn(3, 1, 0, 100, FILE_BYTES, FIRST_MS + 20)
    return DrawnLog(files, (*before, after, last)).facts()


def test_what_a_recovery_has_cut_off_is_left() -> None:
    """It is older than the messages before the blank end; younger ones show that this is damage."""
    assert placed(cut_off_log(5)).fates.tolist() == [0, 0, 0, Fate.CUT, 0]
    assert placed(cut_off_log(12)).fates.tolist() == [0, 0, 0, Fate.KEPT, 0]
    assert placed(cut_off_log(12, (9, 10, 10**12))).fates.tolist() == [0, 0, 0, Fate.KEPT, 0]


def test_a_log_in_a_body_is_no_part_of_the_log() -> None:
    """Unless its messages say the begin of the file that others say, or lie whole sectors away."""
    first = Drawn(0, 0, 0, 200, 0, FIRST_MS)
    inner = [Drawn(at, 0, 300 + 100 * at, 100, 9000 + 100 * at, FIRST_MS) for at in (1, 2)]
    file = DrawnFile(0, 800, is_blank=False, torn=((200, 800),))
    log = DrawnLog((file,), (first, *inner))
    assert placed(log.facts()).fates.tolist() == [0, Fate.INSIDE, Fate.INSIDE]
    moved = [replace(one, said=one.start + 512) for one in inner]
    fates = placed(replace(log, messages=(first, *moved)).facts()).fates.tolist()
    assert Fate.INSIDE not in fates


def test_a_file_that_units_contradict_is_set_aside() -> None:
    """As long as the units agree with other files; else the queues are another store's."""
    files = tuple(DrawnFile(FILE_BYTES * at, 1200, is_blank=at < 2) for at in range(3))
    own = [Drawn(at, at // 6, 200 * (at % 6), 200, FILE_BYTES * (at // 6) + 200 * (at % 6),
                 FIRST_MS + at, number=at) for at in range(18)]  # fmt: skip
    units = tuple((one.said, one.size, 1, one.number) for one in own)
    others = [replace(one, number=one.number + 500) for one in own[6:12]]
    log = DrawnLog(files, (*own[:6], *others, *own[12:]), units)
    found = placed(log.facts())
    assert found.fates.tolist() == [0] * 6 + [Fate.ASIDE] * 6 + [0] * 6
    none = tuple((at, size, queue, number + 900) for at, size, queue, number in units)
    assert set(placed(replace(log, units=none).facts()).fates.tolist()) == {Fate.KEPT}


def numbered(numbers: tuple[int, ...], broken: tuple[int, ...] = ()) -> tuple[Drawn, ...]:
    """Return messages of one queue that follow each other; those at some places are broken."""
    messages = (Drawn(at, 0, 120 * at, 120, 120 * at, FIRST_MS + at, number=number)
                for at, number in enumerate(numbers))  # fmt: skip
    return tuple(one for one in messages if one.name not in broken)


FILE = DrawnFile(0, 1200, is_blank=False)


def test_numbers_tell_a_block_of_another_log() -> None:
    """Between two numbers that rise; where these do not rise either, they say nothing."""
    wrong = numbered((0, 1, 2, 9, 9, 5, 6), broken=(2, 5))
    asides = [Fate.KEPT] * 2 + [Fate.ASIDE] * 2 + [Fate.KEPT]
    assert placed(DrawnLog((FILE,), wrong).facts()).fates.tolist() == asides
    equal = numbered((0,) * 7, broken=(2, 5))
    assert placed(DrawnLog((FILE,), equal).facts()).fates.tolist() == [Fate.KEPT] * 5


@pytest.mark.parametrize("number", [3, 7])
def test_a_message_is_moved_as_its_number_says(number: int) -> None:
    """Its sector is free where it says; but a number that the queue has elsewhere is not there."""
    own = numbered((0, 1, 2, 3, 4, 5, 6), broken=(3, 5))
    alone = Drawn(99, 0, 120 * 5, 120, 120 * 3, FIRST_MS, number=number)
    log = DrawnLog((FILE,), (*own[:4], alone, *own[4:]))
    fate = placed(log.facts()).fates.tolist()[4]
    assert fate == (Fate.MOVED if number == 3 else Fate.ASIDE)


def test_a_number_that_is_taken_outweighs_one_that_goes_on() -> None:
    """Of a block that a disk wrote whole sectors away, and that touches kept messages there."""
    own = numbered((0, 1, 2, 3, 4), broken=(1, 2))
    block = [Drawn(90 + at, 0, 632 + 120 * at, 120, 120 + 120 * at, FIRST_MS, number=1)
             for at in range(2)]  # fmt: skip
    fates = placed(DrawnLog((FILE,), (*own, *block)).facts()).fates.tolist()
    assert fates[3:] == [Fate.ASIDE] * 2
    block[1] = replace(block[1], number=2)
    fates = placed(DrawnLog((FILE,), (*own, *block)).facts()).fates.tolist()
    assert fates[3:] == [Fate.MOVED] * 2


@pytest.mark.parametrize(("number", "fate"), [(3, 0), (1, Fate.ASIDE), (9, Fate.ASIDE)])
def test_a_broker_with_another_address_goes_on_in_its_queues(number: int, fate: int) -> None:
    """At the end of the log: its numbers rise, and leave out no more than lies in the damage."""
    own = numbered((0, 1, 2, 3, number, number + 1), broken=(3,))
    messages = (*own[:3], *(replace(one, host=OTHERS) for one in own[3:]))
    log = DrawnLog((FILE,), messages, ((0, 120, 1, 0),))
    if number == 3:  # nothing is missing but what was broken
        log = replace(log, messages=(*messages[:3], *(replace(one, number=one.number + 1)
                                                      for one in messages[3:])))  # fmt: skip
    assert placed(log.facts()).fates.tolist() == [0, 0, 0, fate, fate]


def test_a_block_with_messages_of_two_addresses_is_one_block() -> None:
    """A broker says its address in 4 bytes or in 16; each message was asked by itself."""
    own = numbered((0, 1, 2, 3, 4, 5, 6, 7), broken=(2, 5))
    block = [replace(own[2], host=OTHERS, number=0), replace(own[3], host=OTHERS + 1, queue=5)]
    log = DrawnLog((FILE,), (*own[:2], *block, *own[4:]))
    asides = [Fate.KEPT] * 2 + [Fate.ASIDE] * 2 + [Fate.KEPT] * 2
    assert placed(log.facts()).fates.tolist() == asides


def test_an_entry_at_an_offset_of_another_message_knows_none() -> None:
    """Both say the same offset by chance, and a unit has another size there."""
    own = numbered((0, 1, 2, 0, 1, 5, 6), broken=(2, 5))
    units = (*((one.said, 120, 1, one.number) for one in (own[0], own[1], own[4])),
             (360, 130, 1, 4), (360, 0, 0, 0))  # fmt: skip
    found = placed(DrawnLog((FILE,), own, units).facts())
    assert found.fates.tolist() == [Fate.KEPT] * 2 + [Fate.ASIDE] * 2 + [Fate.KEPT]


def test_all_files_of_a_log_that_was_moved_get_its_distance() -> None:
    """The next file, which a broker makes before it needs it, has no message that says it."""
    own = [Drawn(at, at // 2, 100 * (at % 2), 100, FILE_BYTES * (at // 2) + 100 * (at % 2),
                 FIRST_MS + at) for at in range(4)]  # fmt: skip
    files = tuple(DrawnFile(FILE_BYTES * at + 77, used, is_blank=at == 0)
                  for at, used in enumerate((200, 200, 0)))  # fmt: skip
    found = placed(DrawnLog(files, tuple(own)).facts())
    assert found.begins.tolist() == [0, FILE_BYTES, 2 * FILE_BYTES]


def test_messages_with_room_are_moved_without_those_that_have_none() -> None:
    """The only file was cut off, and is shorter than the files of its log were."""
    size = FILE_BYTES // 16
    own = [Drawn(at, 0, size * (at - 4 * (at > 3)), size, size * at, FIRST_MS + at, number=at)
           for at in (0, *range(5, 16))]  # fmt: skip
    facts = DrawnLog((DrawnFile(0, 12 * size, is_blank=False),), tuple(own)).facts()
    for found in (placed(facts), placed_in_steps(facts)):
        assert int((found.fates == Fate.MOVED).sum()) == 10


def test_a_unit_restores_an_offset_whatever_is_broken_around() -> None:
    """One that leads to the message by offset, size, queue and number."""
    own = numbered((0, 1, 2, 3, 4), broken=(1, 3))
    log = DrawnLog((FILE,), (own[0], replace(own[1], said=777_777), own[2]))
    assert placed(log.facts()).fates.tolist()[1] == Fate.ASIDE
    known = replace(log, units=((240, 120, 1, 2),))
    assert placed(known.facts()).fates.tolist()[1] == Fate.RESTORED


def test_a_copy_at_the_end_of_moved_messages_costs_only_itself() -> None:
    """Of messages whose file changed names with another one, the last is there twice."""
    files = (DrawnFile(0, 360, is_blank=False), DrawnFile(FILE_BYTES, 600, is_blank=False))
    own = [Drawn(at, 1, 120 * at, 120, 120 * at, FIRST_MS + at, number=at) for at in range(2)]
    moved = [Drawn(9 + at, 0, 120 * at, 120, FILE_BYTES + 120 * at, FIRST_MS + at, number=9 + at)
             for at in range(2)]  # fmt: skip
    again = [replace(one, start=one.start + 120) for one in moved[1:]]
    after = [Drawn(20 + at, 0, 360 + 120 * at, 120, FILE_BYTES + 240 + 120 * at, FIRST_MS + 9,
                   number=11 + at) for at in range(4)]  # fmt: skip
    log = DrawnLog(files, (*moved, *again, *after, *own))
    fates = [Fate(fate) for fate in placed(log.facts()).fates.tolist()]
    assert sorted(fates) == [Fate.MOVED] * 8 + [Fate.COPY]


def test_a_unit_of_the_same_size_knows_a_message_with_a_damaged_queue() -> None:
    """It is the only message of the last file, and its queue is none of the log."""
    files = (DrawnFile(0, 600, is_blank=True), DrawnFile(FILE_BYTES, 200, is_blank=False))
    own = [Drawn(at, 0, 200 * at, 200, 200 * at, FIRST_MS + at, number=at) for at in range(3)]
    last = Drawn(3, 1, 0, 200, FILE_BYTES, FIRST_MS + 3, number=3)
    units = tuple((one.said, one.size, 1, one.number) for one in (*own, last))
    log = DrawnLog(files, (*own, replace(last, queue=9)), units)
    assert set(placed(log.facts()).fates.tolist()) == {Fate.KEPT}


@pytest.mark.parametrize("queue", [1, 2])
def test_a_copy_one_bit_away_from_its_place_is_a_copy(queue: int) -> None:
    """Its offset is no damaged one: what says this offset was made and stored with it. A field of
    the copy may be damaged."""
    own = [Drawn(at, 0, 256 * at, 256, 256 * at, FIRST_MS + at, number=at) for at in range(6)]
    own[3] = replace(own[2], start=768, queue=queue, name=2 if queue == 1 else 9)
    log = DrawnLog((DrawnFile(0, 1536, is_blank=False),), tuple(own))
    facts = log.facts()
    fate = Fate.COPY if queue == 1 else Fate.ASIDE
    for found in (placed(facts), placed_in_steps(facts)):
        assert fates_by_message(found, facts)[3][0] == fate


def test_nothing_is_moved_in_a_log_that_no_unit_knows() -> None:
    """All of it is of another store, and lies where this one's messages lay."""
    block = [Drawn(at, 0, 100 + 200 * at, 200, 612 + 200 * at, FIRST_MS, number=at)
             for at in range(2)]  # fmt: skip
    log = DrawnLog((DrawnFile(0, 600, is_blank=False),), tuple(block))
    assert set(placed(log.facts()).fates.tolist()) == {Fate.MOVED}
    known = replace(log, units=((0, 150, 3, 0), (150, 90, 3, 1)))
    assert set(placed(known.facts()).fates.tolist()) == {Fate.ASIDE}
    touched = replace(log, units=((1012, 150, 3, 0),))
    assert set(placed(touched.facts()).fates.tolist()) == {Fate.MOVED}


def test_all_messages_without_room_are_asked_for_at_once() -> None:
    """Each took a round of its own, in which the log was placed again."""
    files = tuple(DrawnFile(FILE_BYTES * at, 900, is_blank=at < 3) for at in range(4))
    messages = [
        Drawn(10 * file + at, file, start, 200, FILE_BYTES * file + start, FIRST_MS + 10 * file)
        for file in range(4)
        for at, start in enumerate((0, 200, 450, 650))
    ]
    units = tuple((one.said, one.size, one.queue, one.number) for one in messages)
    facts = DrawnLog(files, tuple(messages), units).facts()
    few = replace(facts, rows=joined(facts.rows))
    needs = place(few)
    assert isinstance(needs, Needs)
    assert needs.rows == (1, 3, 5, 7)
    fates = [Fate.KEPT, Fate.KEPT, Fate.ASIDE, Fate.KEPT] * 4
    assert placed(facts).fates.tolist() == fates


@given(st.data())
def test_units_meet_the_messages_at_their_offset(data: st.DataObject) -> None:
    """One that agrees counts, of however many that say this offset, in blocks as well."""
    row = st.tuples(st.sampled_from((0, 100, 150)), st.sampled_from((100, 120)),
                    st.sampled_from((1, 2)), st.sampled_from((0, 1)))  # fmt: skip
    rows = data.draw(st.lists(row, max_size=8))
    wanted = data.draw(st.lists(st.tuples(
        st.sampled_from((0, 100, 130, 150, 260)), st.sampled_from((0, 100, 120)),
        st.sampled_from((0, 1, 2)), st.sampled_from((0, 1)),
    )))  # fmt: skip
    units = units_of(tuple(wanted))
    parts = np.array_split(np.arange(len(rows)), data.draw(st.integers(1, 2)))
    found = rows_of([Drawn(at, 0, 200 * at, size, said, FIRST_MS, queue, number)
                     for at, (said, size, queue, number) in enumerate(rows)],
                    (FileFacts(0, FILE_BYTES, FILE_BYTES),))  # fmt: skip
    for part in parts:
        meet(units, found[part])
    for unit in units.tolist():
        assert unit[-1] == _met_by(unit[:-1], [[rows[at] for at in part] for part in parts])


def _met_by(unit: tuple[int, int, int, int], blocks: list[list[tuple[int, int, int, int]]]) -> Met:
    """Return what a unit meets, message by message."""
    offset, size, queue, number = unit
    met = Met.NOTHING
    for block in blocks:
        said = max((one[0] for one in block if one[0] <= offset), default=-1)
        for one in block:
            if one[0] == said and offset < one[0] + one[1]:
                is_its = one[0] == offset and (
                    not size or (one[1] == size and (not queue or one[2:] == (queue, number)))
                )
                met = Met.AGREES if is_its or met == Met.AGREES else Met.AGAINST
    return met


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.rule}: {one.words}")
def test_an_example_of_a_rule(example: Example) -> None:
    """Each message has the fate that the example tells; the rule decides one of its own example."""
    found = placed(log_of(example).facts())
    assert told_fates(found.fates.tolist()) == example.told
    assert example.is_spared or example.rule in rules_of(found)


def with_unit(line: str, unit: tuple[int, int, int, int]) -> list[str]:
    """Return the fates in an example of one file, without one more unit and with it."""
    log = log_of(Example("", "", ((0, line),), ""))
    both = (log, replace(log, units=(*log.units, unit)))
    return [told_fates(placed(one.facts()).fates.tolist()) for one in both]


def test_nothing_is_moved_into_a_message_that_a_unit_knows() -> None:
    """A unit knows a message that begins before the place, and no message says its offset."""
    line, unit = "a{0} ~ ~ ~ ~ b{0} e=256 f=384 ~ g{0}", (128, 512, 999, 1)
    moved, left = "kept kept moved moved kept", "kept kept aside aside kept"
    assert [moved, left] == with_unit(line.format("+"), unit)
    assert [moved, moved] == with_unit(line.format("-"), unit)  # the units are another store's


def test_no_offset_is_put_right_where_a_unit_leads_into_the_message() -> None:
    """Another message lay there, whose unit is all that is left of it."""
    unit = (192, 91, 999, 1)
    restored, left = "kept restored kept", "kept aside kept"
    assert [restored, left] == with_unit("a+ b=32896 c+", unit)
    assert [restored, restored] == with_unit("a- b=32896 c-", unit)


def test_every_rule_says_why_and_what_it_spares() -> None:
    """In sentences, under names that differ."""
    assert len({one.name for one in RULES}) == len(RULES)
    assert all(one.why.endswith(".") and one.spares.endswith(".") for one in RULES)
    assert {one.rule for one in EXAMPLES} == {one.name for one in RULES}
