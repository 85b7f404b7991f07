# SPDX-License-Identifier: Apache-2.0
"""A damaged log by itself: no batch that is whole is passed over, and none is made up."""

from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from segproof.files import REAL_FILES, ReadOnlyFile
from segproof.kafka import Record, write_batch
from segproof.reading.log_placement import placement_of_log
from segproof.stretches.kafka import framing, mending
from segproof.stretches.kafka.facts import NO_ENTRIES, Entries
from segproof.stretches.spans import SpanKind
from segproof_harness.salvage_draws.kafka_damages import damage_partition
from segproof_harness.salvage_draws.kafka_partitions import known_partition
from segproof_harness.salvage_draws.kafka_reader import framed, is_sound
from segproof_tests.partition_files import batches_of, copied_partition, name_of
from segproof_tests.small_logs import batch, log_of

LOGS = {"plain": 60, "txn-a": 1014, "v1-gzip": 1000, "compacted": 4104}


def spans_of(
    path: Path,
    data: bytes,
    base: int = 0,
    next_base: int | None = None,
    entries: Entries = NO_ENTRIES,
) -> list[tuple[str, int, int]]:
    """Return kind, start and end of each span of a log."""
    path.write_bytes(data)
    with closing(REAL_FILES.open(str(path))) as file:
        placed = placement_of_log(file, base, next_base, entries=entries)
    return [(one.kind.value, one.start, one.end) for one in placed.spans()]


@pytest.mark.checks("BATCH-2", "BATCH-3")
@pytest.mark.parametrize("scenario", LOGS)
def test_no_whole_batch_is_lost_to_random_damage(scenario: str, tmp_path: Path) -> None:
    """Real logs of all formats, damaged at random."""
    name = name_of(LOGS[scenario], ".log")
    log = (copied_partition(scenario, tmp_path) / name).read_bytes()
    for seed in range(25):
        damaged = damage_partition(known_partition(scenario, {0: log}), b"", Random(seed))
        check_spans(log, bytes(damaged.files[0]), tmp_path / "damaged.log")


def check_spans(log: bytes, bad: bytes, path: Path) -> None:
    """Hold the spans of a damaged log against what the sound one had.

    They touch. What is called a batch has a right checksum, and the offsets of the sound ones rise.
    Each batch of the sound log that is whole in the damaged one is in a span of batches.
    """
    path.write_bytes(bad)
    with closing(REAL_FILES.open(str(path))) as file:
        spans = list(placement_of_log(file, 0, None).spans())
    assert [0, *(one.end for one in spans)] == [*(one.start for one in spans), len(bad)]
    found, reached = [], -1
    for span in spans:
        if span.batches and span.kind is not SpanKind.MENDED:
            own = list(framed(bad[span.start : span.end]))
            assert len(own) == span.batches
            assert all(map(is_sound, own))
            found += batches_of(bad[span.start : span.end])
        if span.kind in (SpanKind.SOUND, SpanKind.MENDED, SpanKind.RESTORED):
            assert reached < span.first_offset <= span.last_offset
            reached = span.last_offset
    assert [] == [one[:8].hex() for one in batches_of(log) if one in bad and one not in found]


@pytest.mark.checks("BATCH-2")
def test_the_smallest_message_behind_damage_is_found_at_the_end(tmp_path: Path) -> None:
    """It is shorter than a header of magic 2."""
    small = [batch(offset, None, magic=0) for offset in range(3)]
    assert [26] * 3 == list(map(len, small))
    found = spans_of(tmp_path / "log", small[0] + b"?" * 26 + small[2])
    assert [("sound", 0, 26), ("broken", 26, 52), ("sound", 52, 78)] == found


@pytest.mark.checks("BATCH-3")
def test_of_batches_with_wrong_base_offsets_the_fewest_are_misplaced(tmp_path: Path) -> None:
    """One offset too high, even beside damage, makes no batch behind it doubtful."""
    high = (1 << 40).to_bytes(8, "big")
    wrong = high + batch(1)[8:]
    rest = log_of(3, 9)
    size = len(wrong)
    log = batch(0) + wrong + batch(2) + rest
    assert [
        ("sound", 0, size),
        ("restored", size, 2 * size),
        ("sound", 2 * size, len(log)),
    ] == spans_of(tmp_path / "log", log)
    beside = batch(0) + wrong + b"?" * size + rest
    assert [
        ("sound", 0, size),
        ("aside", size, 2 * size),
        ("broken", 2 * size, 3 * size),
        ("sound", 3 * size, len(log)),
    ] == spans_of(tmp_path / "log", beside)


@pytest.mark.checks("BATCH-3")
def test_of_two_batches_with_the_same_offsets_the_one_that_goes_on_is_sound(
    tmp_path: Path,
) -> None:
    """A low bit of a base offset makes a batch overlap its neighbour; once that was misplaced."""
    log = (copied_partition("plain", tmp_path) / name_of(60, ".log")).read_bytes()
    start, whole = 0, batches_of(log)
    for one in whole[:-1]:  # nothing behind the last one speaks for it
        for mask in (1, 2, 4):
            bad = bytearray(log)
            bad[start + 7] ^= mask
            told = spans_of(tmp_path / "log", bytes(bad), 60, 162)
            others = [(first, end) for kind, first, end in told if kind != "sound"]
            assert [(start, start + len(one))] == others, (start, mask)
        start += len(one)


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("before", [0, 3])
def test_a_wrong_bit_before_damage_misplaces_no_run_behind_it(before: int, tmp_path: Path) -> None:
    """Sizes lead to that batch alone, as damage follows, and the log ends broken."""
    whole = [batch(offset) for offset in range(0, 80, 2)]
    broken = [one[:8] + b"\x7f" + one[9:66] + b"?" + one[67:] for one in whole]
    high = bytes(5) + b"\x20" + whole[before][6:]
    log = b"".join([*whole[:before], high, broken[before + 1], *whole[before + 2 : -1], broken[-1]])
    size = len(high)
    start, end = size * before, len(log) - size
    sound = [("sound", 0, start)] if before else []
    assert [
        *sound,
        ("aside", start, start + size),
        ("broken", start + size, start + 2 * size),
        ("sound", start + 2 * size, end),
        ("broken", end, len(log)),
    ] == spans_of(tmp_path / "log", log)


@pytest.mark.checks("BATCH-3")
def test_the_head_of_many_batches_speaks_against_no_batch_before_it(tmp_path: Path) -> None:
    """Its own base offset may be the wrong one: those behind it fit behind both."""
    wide = [
        write_batch(
            [Record(offset + row, 1000, None, b"v") for row in range(5)], base_offset=offset
        )
        for offset in (12, 29)
    ]
    low = bytes(7) + b"\x0d" + wide[1][8:]  # offsets 13 to 17
    keyed = write_batch([Record(0, 1000, b"k", b"v")], base_offset=0)  # compaction works here
    before, rest = keyed + wide[0], log_of(34, 64)
    log = before + low + rest
    start, end = len(before), len(before + low)
    assert [
        ("sound", 0, start),
        ("aside", start, end),
        ("sound", end, len(log)),
    ] == spans_of(tmp_path / "log", log)


@pytest.mark.checks("DUMP-6")
def test_a_batch_within_a_broken_value_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    """Its offset does not fit between the batches around the broken one: it is misplaced."""
    outer = bytearray(batch(5, batch(900) * 2))
    outer[8], outer[17] = 0x7F, outer[17] ^ 3
    before, after = log_of(0, 5), batch(6) + batch(7)
    log = before + outer + after
    end, inner = len(before) + len(outer), log.index(batch(900))
    assert [
        ("sound", 0, len(before)),
        ("broken", len(before), inner),
        ("aside", inner, inner + 2 * len(batch(900))),
        ("broken", inner + 2 * len(batch(900)), end),
        ("sound", end, len(log)),
    ] == spans_of(tmp_path / "log", log)


@pytest.mark.checks("SEG-7")
def test_an_entry_of_the_index_leads_on_where_too_much_looks_like_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search may give up before it: the entry is looked at first."""
    monkeypatch.setattr(framing, "WORK_BYTES", 1 << 12)
    monkeypatch.setattr(framing, "WORK_BYTES_OF_A_BYTE", 0)
    fake = (2).to_bytes(8, "big") + (3000).to_bytes(4, "big") + batch(2)[12:61]
    bad = b"\xff" * 20 + fake * 200
    log = batch(0) + bad + batch(3) + batch(4)
    start, end = len(batch(0)), len(batch(0) + bad)
    blind = spans_of(tmp_path / "log", log)
    assert ["sound", "broken", "unsearched"] == [one[0] for one in blind]
    entries = Entries(np.array([3]), np.array([end]))
    told = spans_of(tmp_path / "log", log, entries=entries)
    assert ["sound", "broken", "unsearched", "sound"] == [one[0] for one in told]
    assert [("sound", 0, start), ("sound", end, len(log))] == [told[0], told[-1]]


@pytest.mark.checks("SEG-7")
def test_a_search_that_gave_up_costs_no_sound_batch_behind_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the entry on, sizes lead through any number of blocks of the log."""
    monkeypatch.setattr(framing, "WORK_BYTES", 1 << 12)
    monkeypatch.setattr(framing, "WORK_BYTES_OF_A_BYTE", 0)
    fake = (2).to_bytes(8, "big") + (3000).to_bytes(4, "big") + batch(2)[12:61]
    rest = [batch(offset, bytes(70_000)) for offset in range(4, 600)]
    head = batch(0) + b"\xff" * 20 + fake * 200
    log = b"".join([head, batch(3), *rest])
    entries = Entries(np.array([3]), np.array([len(head)]))
    told = spans_of(tmp_path / "log", log, entries=entries)
    assert ("sound", len(head), len(log)) == told[-1]


def test_each_entry_of_the_index_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many gaps there are: behind each of them lie entries that lead to broken batches."""
    looked = list[int]()

    def count(file: ReadOnlyFile, position: int) -> int:
        looked.append(position)
        return mending.end_at(file, position)

    monkeypatch.setattr(framing, "end_at", count)
    bad = b"?" * 8 + (48).to_bytes(4, "big") + b"?" * 48
    batches = [batch(offset) if offset % 3 else bad for offset in range(150)]
    starts = np.cumsum([0, *map(len, batches)])[:-1]
    entries = Entries(np.arange(150)[::3], starts[::3])
    told = spans_of(tmp_path / "log", b"".join(batches), entries=entries)
    assert 100 == len(told)
    for position in starts[::3].tolist():
        assert looked.count(position) <= 2  # once more as what may follow a batch


@pytest.mark.checks("BATCH-19")
@pytest.mark.parametrize("offset", [5000, 1 << 60, (1 << 64) - 7])
def test_a_batch_of_elsewhere_is_found_behind_a_broken_one(offset: int, tmp_path: Path) -> None:
    """Its checksum holds, though its offset is of another segment or has a wrong bit: it stays."""
    broken = batch(1)[:12] + b"?" * 60
    away = offset.to_bytes(8, "big") + batch(2)[8:]
    told = spans_of(tmp_path / "log", batch(0) + broken + away + batch(3), next_base=100)
    start = len(batch(0) + broken)
    assert ("aside", start, start + len(away)) in told


def test_a_control_batch_that_is_no_marker_is_a_span_of_its_own(tmp_path: Path) -> None:
    """No broker loads a log with it."""
    odd = write_batch([Record(1, 1000, b"\0", b"")], base_offset=1, is_control=True,
                      is_transactional=True, producer_id=7, producer_epoch=0)  # fmt: skip
    kinds = [one[0] for one in spans_of(tmp_path / "log", batch(0) + odd + batch(2))]
    assert ["sound", "aside", "sound"] == kinds


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("base_offset", [-1, 0, 5000, 1 << 62])
@pytest.mark.parametrize("scenario", ["v1-gzip", "plain"])
def test_an_old_message_with_any_offset_is_found_behind_a_break(
    base_offset: int, scenario: str, tmp_path: Path
) -> None:
    """Once it was looked for only if its offset lies within the log."""
    name = name_of(LOGS[scenario], ".log")
    batches = batches_of((copied_partition(scenario, tmp_path) / name).read_bytes())[:12]
    wild = base_offset.to_bytes(8, "big", signed=True) + batches[8][8:]
    log = [*batches[:4], b"?" * 99, *batches[5:8], b"?" * 99, wild, b"?" * 99]
    spans = spans_of(tmp_path / "a.log", b"".join(log), next_base=1 << 30)
    known = {end - start for kind, start, end in spans if kind in ("sound", "aside")}
    assert len(wild) in known
    assert sum(map(len, batches[5:8])) in known


class CountedFile:
    """A file that counts the bytes that are read."""

    def __init__(self, path: Path) -> None:
        self.file, self.read_bytes = REAL_FILES.open(str(path)), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def pread(self, size: int, position: int) -> bytes:
        """Read, and count what was read."""
        data = self.file.pread(size, position)
        self.read_bytes += len(data)
        return data


@pytest.mark.parametrize("last", [b"x", batch(2)])
def test_a_hole_before_damage_is_passed_over(last: bytes, tmp_path: Path) -> None:
    """Each byte of 4 GiB of zeros was looked at as the start of a batch, twice: 3 minutes."""
    log, far = batch(0) + batch(1), 1 << 32
    path = tmp_path / "log"
    path.write_bytes(log)
    with path.open("r+b") as file:
        file.seek(far)
        file.write(last)
    counted: Any = CountedFile(path)
    found = list(placement_of_log(counted, 0, None).spans())
    counted.close()
    assert counted.read_bytes < 64 << 20
    kinds = [(one.kind.value, one.start) for one in found]
    rest = [("sound", far)] if len(last) > 1 else []
    assert [("sound", 0), ("broken", len(log)), *rest] == kinds
