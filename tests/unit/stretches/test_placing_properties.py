# SPDX-License-Identifier: Apache-2.0
"""Properties of placing: draw the facts of a partition, draw damages, know what was there."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.stretches.kafka.desk import Fate
from segproof.stretches.kafka.facts import Facts, LogFacts, NeedsBatches, Reach, Rows
from segproof.stretches.kafka.placing import Placement, place, place_all
from segproof_tests.partition_facts import Batches, condensed, kept_batches, row_of

Batch = tuple[int, int, int]
"""Content, first and last offset."""


def logs_of(batches: list[Rows], borders: set[int], named: int | None = None) -> Facts:
    """Return the facts of logs in which these batches touch; `borders` begin a log each."""
    rows, at, sizes = np.concatenate(batches), 0, list[int]()
    names = [int(rows["first"][0]) if named is None else named]
    for number in range(len(rows)):
        if number in borders and number:
            sizes.append(at)
            names.append(int(rows["first"][number]))
            at = 0
        size = int(rows["end"][number] - rows["start"][number])
        rows["log"][number], rows["start"][number], rows["end"][number] = len(sizes), at, at + size
        at += size
    sizes.append(at)
    logs = (
        LogFacts(name, after, size, size)
        for name, after, size in zip(names, [*names[1:], None], sizes, strict=True)
    )
    return Facts(tuple(logs), rows)


@st.composite
def sound(draw: st.DrawFn, least: int = 3, is_dense: bool | None = None) -> Facts:
    """Draw the facts of a partition without damage."""
    count = draw(st.integers(least, 40))
    dense = draw(st.booleans()) if is_dense is None else is_dense
    first, rows = draw(st.sampled_from((0, 5, 1000, 1 << 33))), list[Rows]()
    epoch = 0
    for mark in range(1, count + 1):
        first += 0 if dense else draw(st.sampled_from((0, 0, 0, 1, 7)))
        last = first + draw(st.integers(0, 5))
        row = row_of(first, last, mark, draw(st.integers(61, 64)))
        epoch += draw(st.sampled_from((0, 0, 0, 0, 1)))
        row["epoch"] = epoch
        rows.append(row)
        first = last + 1
    return logs_of(rows, draw(st.sets(st.integers(1, count - 1), max_size=3)))


def with_damage(draw: st.DrawFn, facts: Facts) -> Facts:
    """Return the facts after one damage that the log itself can explain."""
    rows = facts.rows.copy()
    row, other = (draw(st.integers(0, len(rows) - 1)) for _ in range(2))
    kind = draw(st.sampled_from(("gone", "bit", "copy over", "swap", "part gone")))
    if kind == "gone":
        return replace(facts, rows=np.delete(rows, row))
    if kind == "part gone":
        return replace(facts, rows=np.delete(rows, slice(row, row + 3)))
    if kind == "bit":
        shift_by_bit(rows, row, draw(st.integers(0, 40)))
        return replace(facts, rows=rows)
    one, two = rows[row].copy(), rows[other].copy()
    sizes = one["end"] - one["start"], two["end"] - two["start"]
    if sizes[1] > sizes[0] or (kind == "swap" and sizes[0] != sizes[1]):
        return facts
    rows["end"][row] = one["start"] + sizes[1]
    for name in ("first", "last", "mark"):
        rows[name][row] = two[name]
        if kind == "swap":
            rows[name][other] = one[name]
    rows["reach"][row] = Reach.SEARCH
    return replace(facts, rows=rows)


def shift_by_bit(rows: Rows, row: int, bit: int) -> None:
    """Change one bit of a base offset."""
    shift = (int(rows["first"][row]) ^ 1 << bit) - int(rows["first"][row])
    rows["first"][row] += shift
    rows["last"][row] += shift


@st.composite
def damaged(draw: st.DrawFn, most: int = 4) -> tuple[Facts, Facts]:
    """Draw a partition, and the same with a few damages."""
    good = bad = draw(sound())
    for _ in range(draw(st.integers(1, most))):
        if len(bad.rows) > 1:
            bad = with_damage(draw, bad)
    return good, bad


def placed(facts: Facts) -> Placement:
    """Return the placement of facts that have no stretches."""
    answer = place(facts)
    assert isinstance(answer, Placement)
    return answer


def kept_of(facts: Facts) -> list[Batch]:
    """Return what is kept of facts without stretches, in the order of offsets."""
    return kept_batches(facts, facts, placed(facts))


def stated_by(facts: Facts) -> list[Batch]:
    """Return what each batch states."""
    rows = facts.rows
    return list(zip(*(rows[name].tolist() for name in ("mark", "first", "last")), strict=True))


def names_of(facts: Facts) -> set[str]:
    """Return the names of the rules that decided."""
    placement = placed(facts)
    return {placement.why(row).name for row in range(len(facts.rows))}


@given(damaged(), st.integers(0, 3))
def test_stretches_change_nothing(drawn: tuple[Facts, Facts], edge: int) -> None:
    """Placing with stretches, opened where it asks, keeps what placing of all batches keeps."""
    whole = drawn[1]
    few = condensed(whole, edge)
    expected = placed(whole)
    facts, placement = place_all(few, Batches(whole).open)
    assert kept_batches(whole, whole, expected) == kept_batches(facts, whole, placement)
    assert [(one.first_lost, one.last_lost) for one in expected.gaps] == [
        (one.first_lost, one.last_lost) for one in placement.gaps
    ]
    fates = np.repeat(placement.fates, facts.rows["batches"])
    rules = np.repeat(placement.rules, facts.rows["batches"])
    assert (expected.fates == fates).all()
    assert (expected.rules == rules).all()


@given(sound(least=2))
def test_all_of_a_sound_log_is_kept(facts: Facts) -> None:
    """Where it lies, with the offsets that it has; and nothing is opened for it."""
    placement = placed(facts)
    assert {Fate.KEPT} == set(placement.fates.tolist())
    assert stated_by(facts) == kept_batches(facts, facts, placement)
    assert () == placement.gaps
    assert not isinstance(place(condensed(facts, 1)), NeedsBatches)


@given(damaged())
def test_kept_offsets_rise_and_gaps_are_what_none_has(drawn: tuple[Facts, Facts]) -> None:
    """No offset is kept twice; each row has a fate; a gap holds no kept offset."""
    placement = placed(drawn[1])
    assert Fate.UNDECIDED not in placement.fates
    kept = kept_batches(drawn[1], drawn[1], placement)
    assert all(one[2] < two[1] for one, two in pairwise(kept))
    for gap in placement.gaps:
        last = gap.first_lost if gap.last_lost is None else gap.last_lost
        assert gap.first_lost <= last
        assert not any(one[1] <= last and gap.first_lost <= one[2] for one in kept)


@given(damaged())
def test_placing_what_was_placed_changes_nothing(drawn: tuple[Facts, Facts]) -> None:
    """The new log is sound, as far as facts say."""
    placement = placed(drawn[1])
    if not len(placement.kept):
        return
    rows = drawn[1].rows[placement.kept].copy()
    spans = rows["last"] - rows["first"]
    rows["first"] = placement.firsts[placement.kept]
    rows["last"] = rows["first"] + spans
    again = logs_of([rows], set())
    assert stated_by(again) == kept_of(again) or "odd end" in names_of(again)


@given(damaged(most=1))
def test_an_offset_that_is_kept_is_the_true_one_or_the_stored_one(
    drawn: tuple[Facts, Facts],
) -> None:
    """After one damage. Of several, two may agree on a third place: nothing tells these apart."""
    good, bad = drawn
    known = {*stated_by(bad), *stated_by(good)}
    assert [] == [one for one in kept_of(bad) if one not in known]


@given(sound(least=5), st.data())
def test_one_bit_of_one_base_offset_comes_back(facts: Facts, data: st.DataObject) -> None:
    """Between neighbours that leave nothing out around it."""
    rows, row = facts.rows.copy(), data.draw(st.integers(1, len(facts.rows) - 2))
    is_dense = rows["first"][row] == rows["last"][row - 1] + 1
    is_dense &= rows["first"][row + 1] == rows["last"][row] + 1
    shift_by_bit(rows, row, data.draw(st.integers(0, 40)))
    if is_dense:
        assert stated_by(facts) == kept_of(replace(facts, rows=rows))


@given(sound(least=4, is_dense=True), st.data())
def test_two_batches_that_changed_places_come_back(facts: Facts, data: st.DataObject) -> None:
    """Each where its offsets are missing."""
    row = data.draw(st.integers(0, len(facts.rows) - 2))
    order = np.arange(len(facts.rows))
    order[[row, row + 1]] = row + 1, row
    rows = facts.rows[order]
    rows["epoch"] = 0
    bad = logs_of([rows], set(), named=int(rows["first"].min()))
    assert stated_by(facts) == kept_of(bad)


@given(sound(), st.data())
def test_a_batch_that_is_gone_costs_itself_only(facts: Facts, data: st.DataObject) -> None:
    """All others stay, but for an end that looks like one wrong bit."""
    row = data.draw(st.integers(0, len(facts.rows) - 1))
    bad = replace(facts, rows=np.delete(facts.rows, row))
    truth = stated_by(facts)
    assert truth[:row] + truth[row + 1 :] == kept_of(bad) or "odd end" in names_of(bad)


@given(sound(least=12), st.data())
def test_a_hole_far_away_changes_no_fate(facts: Facts, data: st.DataObject) -> None:
    """A wrong bit is decided by what lies around it, unless it points into the hole."""
    near = data.draw(st.integers(1, 3))
    far = data.draw(st.integers(near + 5, len(facts.rows) - 2))
    one, rows = facts.rows.copy(), facts.rows
    shift_by_bit(one, near, data.draw(st.integers(0, 40)))
    if rows["last"][far - 1] < one["last"][near] and one["first"][near] < rows["first"][far + 1]:
        return
    alone = placed(replace(facts, rows=one))
    both = placed(replace(facts, rows=np.delete(one, far)))
    assert (alone.fates[: near + 3] == both.fates[: near + 3]).all()
    assert (alone.firsts[: near + 3] == both.firsts[: near + 3]).all()


@given(damaged())
def test_checksums_are_names_only(drawn: tuple[Facts, Facts]) -> None:
    """Another checksum for each content changes no fate: no rule looks at bytes."""
    rows = drawn[1].rows.copy()
    rows["mark"] = rows["mark"] * np.uint32(2654435761)
    one, two = placed(drawn[1]), placed(replace(drawn[1], rows=rows))
    assert (one.fates == two.fates).all()
    assert (one.rules == two.rules).all()


@given(sound(least=10, is_dense=True))
def test_another_topics_block_is_not_kept_where_epochs_tell(
    facts: Facts,
) -> None:
    """Two foreign batches between two damages, whose epoch is above that of what follows."""
    rows = facts.rows.copy()
    rows["epoch"] = 3
    rows["reach"][4:6], rows["epoch"][4:6] = Reach.SEARCH, 7
    rows["mark"][4:6] += 1000
    bad = logs_of([rows], set())
    bad = replace(bad, rows=np.delete(bad.rows, (3, 6)))
    assert {one for one in stated_by(bad) if one[0] < 1000} == set(kept_of(bad))


@pytest.mark.slow
@given(sound(least=3), st.integers(0, 4), st.data())
def test_overlapping_logs_are_opened_only_where_they_meet(
    facts: Facts, edge: int, data: st.DataObject
) -> None:
    """A second copy of a part of the log, as another stretch: all fates as with every batch."""
    start = data.draw(st.integers(0, len(facts.rows) - 1))
    stop = data.draw(st.integers(start + 1, len(facts.rows)))
    shift = data.draw(st.integers(-3, 3))
    copy = facts.rows[start:stop].copy()
    copy["first"] += shift
    copy["last"] += shift
    copy["mark"] += 0 if shift == 0 else 1000
    whole = logs_of([facts.rows, copy], {len(facts.rows)}, named=int(facts.rows["first"][0]))
    logs = (whole.logs[0], replace(whole.logs[1], base_offset=whole.logs[0].base_offset))
    whole = replace(whole, logs=(replace(logs[0], next_base_offset=None), logs[1]))
    expected = placed(whole)
    few, placement = place_all(condensed(whole, edge), Batches(whole).open)
    fates = np.repeat(placement.fates, few.rows["batches"])
    assert (expected.fates == fates).all()
