# SPDX-License-Identifier: Apache-2.0
"""The bytes of a log from the first to the last, with what becomes of them."""

from dataclasses import replace
from typing import Never

import numpy as np
import pytest

from segproof.reading.log_damage import damage_of_log
from segproof.reading.log_placement import LogPlacement
from segproof.stretches.kafka.facts import Facts, FramedLog
from segproof.stretches.kafka.placing import place_all
from segproof_tests.partition_facts import BYTES, facts_of


def unopened(*_: object) -> Never:
    """Open no stretch."""
    raise AssertionError("each batch is a row already")


def placed(line: str, **log: int) -> LogPlacement:
    """Return the fates of a line of facts whose first log differs in some of its own."""
    facts = facts_of(line)
    first = replace(facts.logs[0], **log)  # type: ignore[arg-type]
    facts = Facts((first, *facts.logs[1:]), facts.rows)
    return LogPlacement(*place_all(facts, unopened), FramedLog(first, facts.rows))


@pytest.mark.parametrize(
    ("line", "log", "expected"),
    [
        ("0..3", {}, "sound 0-4"),
        ("0..3", {"size": 9, "zeros_from": 4}, "sound 0-4 zeros 4-9"),
        ("0-9 ~ 20-29", {}, "sound 0-1 broken 1-2 sound 2-3"),
        ("0-9 10-19* 20-29", {}, "sound 0-1 mended 1-2 sound 2-3"),
        ("0-9 5010-5019 20-29", {}, "sound 0-1 restored 1-2 PLACE-4 sound 2-3"),
        ("0-9 ~ 20-29 30-39 10-19 40-49", {},
         "sound 0-1 broken 1-2 sound 2-4 moved 4-5 PLACE-8 sound 5-6"),
        ("0-9m1 10-19 20-29 ~ 0-9m1 30-39", {},
         "sound 0-3 broken 3-4 aside 4-5 PLACE-6 sound 5-6"),
        ("0-9 10-19 20-29 30-39 >", {}, "sound 0-4 torn 4-5"),
        ("0-9m1 10-19 20-29 > 0-9m1? 1-2?", {}, "sound 0-3 torn 3-6"),
        ("0-9 ~ ~ ~", {"unsearched_from": 2}, "sound 0-1 broken 1-2 unsearched 2-4"),
    ],
)  # fmt: skip
def test_spans_touch_and_say_what_becomes_of_batches(
    line: str, log: dict[str, int], expected: str
) -> None:
    """Bytes are counted in batches, and each span has the rule that decided it."""
    fates = placed(line, **{name: number * BYTES for name, number in log.items()})
    spans = [*fates.spans()]
    ends = [0, *(one.end for one in spans)]
    assert [one.start for one in spans] == ends[:-1]
    assert fates.facts.logs[0].size == ends[-1]
    told = [
        f"{one.kind} {one.start // BYTES}-{one.end // BYTES}"
        + f" {one.rule_id}" * (one.rule_id not in ("", "PLACE-3"))
        for one in spans
    ]
    assert expected == " ".join(told)


def test_offsets_are_lost_where_bytes_are_too() -> None:
    """A later damage costs no offset of an earlier one; what a batch is moved to is not lost."""
    fates = placed("0-9 ~ 20-29 ~ 50-59")
    assert (30, 59, None) == (
        (first := damage_of_log(fates, BYTES, _is_lost)).lost_offsets, first.last_sound_offset,
        first.broken_from,
    )  # fmt: skip
    second = damage_of_log(fates, 3 * BYTES, _is_lost)
    assert (20, 1, BYTES) == (second.lost_offsets, second.broken_places, second.broken_bytes)
    proven = damage_of_log(fates, BYTES, lambda _begin, _end, first, _following: first == 10)
    assert (10, 20) == (proven.lost_offsets, proven.unproven_offsets)
    moved = damage_of_log(placed("0-9 ~ 20-29 30-39 10-19 40-49 ~"), BYTES, _is_lost)
    assert (0, 1, 3, 6 * BYTES) == (
        moved.lost_offsets, moved.moved_batches, moved.sound and moved.sound.batches,
        moved.broken_from,
    )  # fmt: skip
    assert "1 sound batch lies in a wrong place of the log, and can be saved" in moved.words()


def test_a_batch_that_is_moved_away_from_the_end_hides_no_loss_there() -> None:
    """What came after 39 is lost, though the last bytes of the log are a batch that is kept."""
    fates = placed("0-9 20-29 30-39 ~ 10-19")
    damage = damage_of_log(fates, 3 * BYTES, _is_lost)
    assert (1, True, 3 * BYTES) == (damage.moved_batches, damage.ends_broken, damage.broken_from)
    assert [(40, None)] == [(gap.first_lost, gap.last_lost) for gap in fates.placement.gaps]


def _is_lost(*_: int) -> bool:
    return True


def test_times_are_of_the_batches_that_have_one() -> None:
    """Rows that are joined keep the smallest one; -1 is none."""
    facts = facts_of("0..2")
    rows = facts.rows.copy()
    rows["min_time"], rows["max_time"] = (-1, 700, 500), (-1, 800, 600)
    facts = Facts(facts.logs, rows)
    placement = LogPlacement(*place_all(facts, unopened), FramedLog(facts.logs[0], rows))
    (span,) = placement.spans()
    assert (500, 800) == (span.min_timestamp, span.max_timestamp)
    assert np.all(rows["batches"] == 1)
