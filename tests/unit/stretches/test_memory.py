# SPDX-License-Identifier: Apache-2.0
"""What placing holds of a partition of a terabyte: rows for what is odd, not for batches."""

import tracemalloc

import numpy as np
import pytest

from segproof.stretches.kafka.condensing import Opener
from segproof.stretches.kafka.facts import (
    EDGE_BATCHES,
    Facts,
    LogFacts,
    NeedsBatches,
    Reach,
    Rows,
)
from segproof.stretches.kafka.placing import place_all
from segproof_tests.partition_facts import row_of, told

LOGS = 1024
BATCHES = 1 << 17
BATCH_BYTES = 1 << 13
LOG_BYTES = BATCHES * BATCH_BYTES
BLOCK = 1 << 13
"""Batches that a scan yields at once."""
MEMORY_MAX = 256 << 20


def batches_of(log: int, start: int, stop: int) -> Rows:
    """Return the batches [start, stop) of a log, of ten records each; every 1000th is compacted."""
    rows = np.repeat(row_of(0, 9, 1), stop - start)
    numbers = np.arange(start, stop)
    rows["log"], rows["start"] = log, numbers * BATCH_BYTES
    rows["end"] = rows["start"] + BATCH_BYTES
    rows["first"] = 20 * BATCHES * log + 10 * numbers + 10 * (numbers // 1000)
    rows["last"] = rows["first"] + 9
    rows["mark"] = numbers
    rows["least"] = BATCH_BYTES // 10
    return rows


def stretch_of(log: int, start: int, stop: int) -> Rows:
    """Return the row that stands for the batches [start, stop) of a log."""
    row = batches_of(log, start, start + 1)
    last = batches_of(log, stop - 1, stop)
    row["end"], row["last"] = last["end"], last["last"]
    row["batches"] = row["records"] = stop - start
    row["leaps"] = (stop - 1) // 1000 - start // 1000
    return row


def log_rows(log: int, start: int = 0, stop: int = BATCHES) -> list[Rows]:
    """Return the rows of batches that touch, as framing makes them."""
    head, tail = start + EDGE_BATCHES, stop - EDGE_BATCHES
    return [
        batches_of(log, start, head), stretch_of(log, head, tail), batches_of(log, tail, stop)
    ]  # fmt: skip


def opened(facts: Facts, needs: NeedsBatches) -> Facts:
    """Return the facts with the rows asked for; batches come in blocks, as from a file."""
    rows, done = list[Rows](), 0
    for part in needs.parts:
        stretch = facts.rows[part.row : part.row + 1]
        begin = int(stretch["start"][0]) // BATCH_BYTES
        end, log = int(stretch["end"][0]) // BATCH_BYTES, int(stretch["log"][0])
        opener = Opener(stretch, part)
        for at in range(begin, end, BLOCK):
            opener.add(batches_of(log, at, min(at + BLOCK, end)))
        rows += facts.rows[done : part.row], opener.rows()
        done = part.row + 1
    return Facts(facts.logs, np.concatenate([*rows, facts.rows[done:]]))


@pytest.mark.slow
def test_a_terabyte_with_one_damage_is_few_rows() -> None:
    """In one log 100 batches are broken; a batch found there has offsets of another log's gap."""
    names = [20 * BATCHES * log for log in range(LOGS)]
    logs = tuple(
        LogFacts(name, after, LOG_BYTES, LOG_BYTES)
        for name, after in zip(names, [*names[1:], None], strict=True)
    )
    odd = batches_of(700, 50_000, 50_001)
    odd["first"] = odd["last"] = int(batches_of(300, 999, 1000)["last"][0]) + 3
    odd["reach"], odd["mark"] = Reach.SEARCH, 0xFFFFFFFF
    odd["start"] += 50 * BATCH_BYTES
    odd["end"] = odd["start"] + 100
    rows = list[Rows]()
    for log in range(LOGS):
        if log == 700:
            rows += [*log_rows(log, 0, 50_000), odd, *log_rows(log, 50_100)]
        else:
            rows += log_rows(log)
    facts = Facts(logs, np.concatenate(rows))
    begun = len(facts.rows)
    tracemalloc.start()
    facts, placement = place_all(facts, opened)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (LOGS + 1) * (2 * EDGE_BATCHES + 1) + 1 == begun
    assert begun + 1 == len(facts.rows)  # log 300 is cut at the gap
    assert LOGS * BATCHES - 100 + 1 == facts.rows["batches"].sum()
    assert 1 == told(facts, placement).count("aside")
    assert [1010] == [(gap.last_lost or 0) + 1 - gap.first_lost for gap in placement.gaps]
    assert peak + facts.rows.nbytes < MEMORY_MAX // 8
