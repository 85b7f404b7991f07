# SPDX-License-Identifier: Apache-2.0
"""Framing: what is found in the bytes of a log, whatever happened to them."""

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from segproof.errors import CorruptRecordError
from segproof.kafka.batch_table import read_batch_headers
from segproof.stretches.kafka.desk import Desk, Fate
from segproof.stretches.kafka.facts import (
    EDGE_BATCHES,
    Entries,
    Facts,
    LogFacts,
    NeedsBatches,
    Part,
    Reach,
    Rows,
)
from segproof.stretches.kafka.framing import LogSource, frame_partition, open_stretches
from segproof.stretches.kafka.header_rows import rows_of
from segproof_harness.files.shipped_directories import DATA, partition_of
from segproof_tests.memory_logs import batch

BASE = 1000
COUNT = 60


class Bytes:
    """A log in memory; the blocks at `lost` positions can't be read."""

    path = "00000000000000001000.log"

    def __init__(self, data: bytes, lost: frozenset[int] = frozenset()) -> None:
        self._data, self._lost = bytes(data), lost

    def size(self) -> int:
        """Return the number of bytes."""
        return len(self._data)

    def pread(self, size: int, position: int) -> bytes:
        """Return bytes; fail as a disk does."""
        first, last = position // 4096, (position + max(size, 1) - 1) // 4096
        if any(4096 * block in self._lost for block in range(first, last + 1)):
            raise OSError(errno.EIO, "broken", self.path)
        return self._data[position : position + size]

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Fill a buffer."""
        part = self.pread(len(buffer), position)
        buffer[: len(part)] = part
        return len(part)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield one range: nothing is a hole."""
        yield start, min(end, len(self._data))

    def close(self) -> None:
        """Do nothing."""


def whole_log(count: int = COUNT) -> tuple[bytes, list[int]]:
    """Return a log with batches of one to three records, and where each of them begins."""
    data, starts, offset = b"", list[int](), BASE
    for number in range(count):
        starts.append(len(data))
        records = 1 + number % 3
        data += batch(records, offset, 1000 + number)
        offset += records
    return data, starts


def source_of(data: bytes, entries: Entries | None = None, **more: Any) -> LogSource:
    """Return a log to be read."""
    found = LogSource(BASE, None, lambda: Bytes(data))
    if entries is not None:
        found = replace(found, entries=lambda: entries)
    return replace(found, **more)


def entries_of(data: bytes, starts: list[int], step: int = 4) -> Entries:
    """Return an index entry for some of the batches."""
    table = read_batch_headers(data).table
    rows = np.arange(0, len(starts), step)
    return Entries(table["last_offset"][rows].astype(np.int64), np.array(starts)[rows])


def opened(facts: Facts, *logs: LogSource) -> Rows:
    """Return the rows with a row for each batch."""
    parts = [
        Part(number, pieces=int(row["batches"]))
        for number, row in enumerate(facts.rows)
        if row["batches"] > 1
    ]
    return open_stretches(facts, NeedsBatches(tuple(parts)), logs).rows


def test_a_sound_log_is_few_rows() -> None:
    """Its edges are rows of their own; opened again, all of its batches are there."""
    data, starts = whole_log()
    log = source_of(data, entries_of(data, starts))
    facts = frame_partition([log, log])
    assert 2 * (2 * EDGE_BATCHES + 1) == len(facts.rows)
    assert [COUNT - 2 * EDGE_BATCHES] * 2 == facts.rows["batches"][EDGE_BATCHES::17].tolist()
    rows = opened(facts, log, log)
    wanted = rows_of(read_batch_headers(data).table, Reach.SIZES)
    wanted["is_indexed"][::4], wanted["led"][::4] = True, 1
    assert (wanted == rows[:COUNT]).all()
    wanted["log"] = 1
    assert (wanted == rows[COUNT:]).all()
    stretch, inner = facts.rows[EDGE_BATCHES], wanted[EDGE_BATCHES:-EDGE_BATCHES]
    assert int(inner["records"].sum()) == stretch["records"]
    assert (0, inner["least"].min()) == (stretch["leaps"], stretch["least"])
    assert LogFacts(BASE, None, len(data), len(data)) == facts.logs[0]


DAMAGES: dict[str, Callable[[bytearray, int], None]] = {
    "a bit of a value": lambda log, at: log.__setitem__(at + 70, log[at + 70] ^ 4),
    "a magic": lambda log, at: log.__setitem__(at + 16, 3),
    "a size": lambda log, at: log.__setitem__(at + 9, 1),
    "a block": lambda log, at: log.__setitem__(slice(at, at + 512), b"\x07" * 512),
    "a hole": lambda log, at: log.__delitem__(slice(at + 5, at + 505)),
}


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("name", DAMAGES)
def test_batches_around_damage_are_found(name: str, is_indexed: bool) -> None:
    """All of them, and one whose size or magic is wrong; each with what led to it."""
    data, starts = whole_log()
    log = bytearray(data)
    DAMAGES[name](log, starts[30])
    entries = entries_of(data, starts) if is_indexed and name != "a hole" else None
    source = source_of(bytes(log), entries)
    rows = opened(frame_partition([source]), source)
    firsts = read_batch_headers(data).table["base_offset"]
    lost = {"a bit of a value": 1, "a magic": 0, "a size": 0}.get(name, 6)
    assert COUNT - lost <= len(rows) <= COUNT - lost + 2
    assert set(rows["first"]) <= set(firsts.tolist())
    assert {Reach.SIZES} == set(rows["reach"][~rows["is_mended"]].tolist())
    assert (lost == 0) == rows["is_mended"].any()
    if not lost:
        wanted = rows_of(read_batch_headers(data).table, Reach.SIZES)[30]
        (mended,) = rows[rows["is_mended"]]
        assert [wanted[one] for one in ("start", "end", "first", "magic", "mark")] == [
            mended[one] for one in ("start", "end", "first", "magic", "mark")
        ]


def test_compressed_messages_have_the_first_offset_that_is_inside() -> None:
    """A header of magic 1 states the last one."""
    log = min(partition_of(DATA / "kafka" / "v1-gzip").glob("*.log"))
    source = source_of(log.read_bytes())
    rows = opened(frame_partition([source]), source)
    assert {0, 1} >= set(rows["magic"].tolist())
    assert (rows["first"][1:] > rows["last"][:-1]).all()
    assert (rows["last"] > rows["first"]).any()


def test_two_damages_leave_a_part_that_only_a_search_or_the_index_reaches() -> None:
    """Sizes lead from neither end there."""
    data, starts = whole_log()
    log = bytearray(data)
    for row in (20, 40):
        DAMAGES["a block"](log, starts[row])
    for entries, reaches in (
        (None, [Reach.SIZES, Reach.SEARCH, Reach.SIZES]),
        (entries_of(data, starts), [Reach.SIZES, Reach.ENTRY, Reach.SIZES]),
    ):
        rows = frame_partition([source_of(bytes(log), entries)]).rows
        assert sorted(set(reaches)) == sorted(set(rows["reach"].tolist()) - {0}) or entries is None
        assert reaches[1] in rows["reach"]


def test_what_ends_a_log() -> None:
    """Zeros, a batch that is cut off, an index that goes further, a writer that is at work."""
    data, starts = whole_log()
    entries = entries_of(data, starts)
    (zeros,) = frame_partition([source_of(data + bytes(5000))]).logs
    assert (len(data), len(data) + 5000) == (zeros.zeros_from, zeros.size)
    cut = len(data) - 10
    (torn,) = frame_partition([source_of(data[:cut], entries)]).logs
    assert (starts[-1], BASE + 2 * COUNT - 3) == (torn.torn_from, torn.torn_offset)
    (gone,) = frame_partition([source_of(data[: starts[30]], entries)]).logs
    assert (None, entries.offsets[-1]) == (gone.torn_from, gone.indexed_to)
    (whole,) = frame_partition([source_of(data, entries)]).logs
    assert -1 == whole.indexed_to
    (live,) = frame_partition([source_of(data, end=starts[30])]).logs
    assert starts[30] == live.size
    (other,) = frame_partition([source_of(data[: starts[30]], entries._replace(
        positions=entries.positions + 1))]).logs  # fmt: skip
    assert -1 == other.indexed_to


def test_a_missing_log_is_not_opened_and_has_no_batch() -> None:
    """What lies beside it does not touch, and an empty log at the end breaks nothing."""

    def refuse() -> Bytes:
        raise FileNotFoundError

    log = b"".join(batch(BASE + number) for number in range(3))
    gone = LogSource(BASE + 3, BASE + 9, refuse, is_missing=True)
    last = LogSource(BASE + 9, None, lambda: Bytes(b""))
    for logs, is_broken in (([gone, last], True), ([last], False)):
        facts = frame_partition([LogSource(BASE, logs[0].base_offset, lambda: Bytes(log)), *logs])
        assert [one is gone for one in logs] == [one.is_missing for one in facts.logs[1:]]
        assert 3 == facts.rows["batches"].sum()
        desk = Desk(facts)
        desk.decide(list(range(len(facts.rows))), Fate.KEPT)
        assert is_broken == desk.is_end_broken()


def test_a_block_that_the_disk_does_not_return_is_counted() -> None:
    """What lies there is missing, and it is no end of zeros; progress is told of every byte."""
    data, _ = whole_log(200)
    told = list[int]()
    lost = replace(source_of(data), open=lambda: Bytes(data, frozenset({8192})))
    facts = frame_partition([lost], told.append)
    assert (4096, len(data)) == (facts.logs[0].unreadable_bytes, facts.logs[0].zeros_from)
    assert len(data) == sum(told)
    assert 150 < facts.rows["batches"].sum() < 200
    end = replace(source_of(data[:8200]), open=lambda: Bytes(data[:8200], frozenset({8192})))
    (log,) = frame_partition([end]).logs
    assert 8200 == log.zeros_from


def test_bytes_made_to_cost_time_are_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value full of headers whose sizes lead far: what is not searched is a fact."""
    for name in ("WORK_BYTES", "WORK_BYTES_OF_A_BYTE"):
        monkeypatch.setattr(f"segproof.stretches.kafka.framing.{name}", 2)
    data, starts = whole_log()
    header = bytearray(data[:61])
    hostile = b"".join(
        bytes(header[:8]) + (20_000 - 61 * number).to_bytes(4, "big") + bytes(header[12:])
        for number in range(300)
    )
    log = data[: starts[2] + 3] + hostile + bytes(9000) + data[starts[3] :]
    (facts,) = frame_partition([source_of(log)]).logs
    assert facts.unsearched_from is not None
    assert starts[2] < facts.unsearched_from < len(log)


def test_an_opened_stretch_tells_that_its_last_batch_lacks_a_key() -> None:
    """Only of the stretch this was asked; its batches come from headers."""
    data, _ = whole_log()
    facts = frame_partition([source_of(data)])
    facts.rows["is_keyless"][EDGE_BATCHES] = True
    rows = opened(facts, source_of(data))
    assert [COUNT - EDGE_BATCHES - 1] == np.flatnonzero(rows["is_keyless"]).tolist()


def test_a_log_that_changed_meanwhile_is_not_opened() -> None:
    """Its headers are not those that were found before."""
    data, starts = whole_log()
    facts = frame_partition([source_of(data)])
    with pytest.raises(CorruptRecordError, match="changed meanwhile"):
        opened(facts, source_of(data[: starts[40]] + b"\7" * 300))


def test_random_bytes_hold_nothing() -> None:
    """Chance makes no batch."""
    facts = frame_partition([source_of(Random(7).randbytes(100_000))])
    assert 0 == len(facts.rows)
