# SPDX-License-Identifier: Apache-2.0
"""Rows made of batch headers: one for each batch, or few where nothing is odd.

Laws: BATCH-3, BATCH-12.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, BatchTable, stacked
from segproof.stretches.kafka.facts import ROW, Bools, Int64s, LogFacts, Reach, Rows

ROWS_TOGETHER = 1 << 14
"""Headers that are made rows at once, at least: 2 MiB with the columns made of them."""
CODEC, APPEND_TIME = 7, 8
"""Bits of the attributes: the codec, and that the broker wrote the timestamps."""


def rows_of(table: BatchTable, reach: Reach) -> Rows:
    """Return a row for each batch of a table, as far as its header states it."""
    rows = np.zeros(len(table), ROW)
    is_new, attributes, sizes = table["magic"] == 2, table["attributes"], table["size_bytes"]
    rows["start"], rows["end"] = table["position"], table["position"] + sizes
    rows["first"], rows["last"] = first_offsets(table), table["last_offset"]
    deltas = np.maximum(table["last_offset_delta"], 0).astype(np.int64)
    rows["batches"], rows["offsets"] = 1, deltas + 1
    rows["records"] = np.where(is_new, np.clip(table["record_count"], 0, deltas + 1), 1)
    rows["least"] = np.maximum(1, sizes // (deltas + 1))
    rows["mark"], rows["magic"], rows["reach"] = table["crc"], table["magic"], reach
    rows["epoch"] = table["partition_leader_epoch"]
    rows["producer"], rows["sequence"] = table["producer_id"], table["base_sequence"]
    rows["producer_epoch"], rows["max_time"] = table["producer_epoch"], table["max_timestamp"]
    rows["min_time"] = table["base_timestamp"]
    rows["is_loadable"] = True
    rows["is_movable"] = state_first_offset(table)
    rows["is_append_time"] = (table["magic"] > 0) & (attributes & APPEND_TIME != 0)
    rows["is_transactional"] = is_new & (attributes & TRANSACTIONAL != 0)
    return rows


def first_offsets(table: BatchTable) -> Int64s:
    """Return the first offset of each batch; of a message of magic 0 or 1 its last one."""
    return np.where(table["magic"] == 2, table["base_offset"], table["last_offset"])


def state_first_offset(table: BatchTable) -> Bools:
    """Return which batches state their first offset: compressed messages of magic 0 and 1 don't."""
    known: Bools = (table["magic"] == 2) | (table["attributes"] & CODEC == 0)
    return known


def may_not_load(table: BatchTable) -> Bools:
    """Return which batches a broker may not load, although their checksums are right.

    These are control batches, and messages of magic 0 and 1 that wrap others.
    """
    attributes = table["attributes"]
    odd: Bools = np.where(table["magic"] == 2, attributes & CONTROL, attributes & CODEC) != 0
    return odd


def plain_rows_of(table: BatchTable, reach: Reach, log: LogFacts, edge: int) -> Rows | None:
    """Return the first and the last `edge` batches, and one stretch of all between them.

    Return None unless the batches are of one run, as `condensing.runs_begin` says, and of magic 2.
    This takes a third of the time of a row for each batch.
    """
    if len(table) <= 4 * edge:
        return None
    firsts, lasts, sizes = table["base_offset"], table["last_offset"], table["size_bytes"]
    starts, epochs, deltas = table["position"], table["partition_leader_epoch"], lasts - firsts
    is_plain = log.base_offset <= firsts[0] and lasts[-1] < log.limit
    is_plain &= bool((table["magic"] == 2).all() and (deltas >= 0).all())
    is_plain &= bool((firsts[1:] > lasts[:-1]).all() and (epochs == epochs[0]).all())
    is_plain &= bool((starts[1:] == starts[:-1] + sizes[:-1]).all())
    if not is_plain or bool((table["attributes"] & CONTROL).any()):
        return None
    rows = rows_of(stacked([table[: edge + 1], table[-edge:]]), reach)
    inner, one = table[edge : len(table) - edge], rows[edge : edge + 1]
    spans = deltas[edge : len(table) - edge] + 1
    one["end"], one["last"] = rows["start"][edge + 1], inner["last_offset"][-1]
    one["max_time"] = inner["max_timestamp"].max()
    times = inner["base_timestamp"]
    one["min_time"] = min(times[times >= 0].tolist(), default=-1)
    one["batches"], one["offsets"] = len(inner), spans.sum()
    one["records"] = np.minimum(np.maximum(inner["record_count"], 0), spans).sum()
    one["least"] = max(1, int((inner["size_bytes"] // spans).min()))
    one["leaps"] = np.count_nonzero(inner["base_offset"][1:] != inner["last_offset"][:-1] + 1)
    one["is_append_time"] = bool((inner["attributes"] & APPEND_TIME).all())
    one["is_transactional"] = bool((inner["attributes"] & TRANSACTIONAL).any())
    return rows


def together(tables: Iterable[BatchTable]) -> Iterator[BatchTable]:
    """Yield tables that follow each other as few ones: numpy costs as much for a short one."""
    held, count = list[BatchTable](), 0
    for table in tables:
        held.append(table)
        count += len(table)
        if count >= ROWS_TOGETHER:
            yield stacked(held)
            held, count = [], 0
    if held:
        yield stacked(held)


def equal_parts(flags: Bools, table: BatchTable) -> Iterator[tuple[bool, BatchTable]]:
    """Yield the parts of a table in which a flag is equal."""
    breaks = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(table)]
    for start, end in pairwise(breaks):
        if start < end:
            yield bool(flags[start]), table[start:end]
