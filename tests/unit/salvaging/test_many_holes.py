# SPDX-License-Identifier: Apache-2.0
"""Lost markers in logs with a hole after each batch, as compaction leaves them."""

import gc
from collections.abc import Iterable
from pathlib import Path

import pytest

from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.transaction_index import AbortedTxn
from segproof.salvaging import partition_salvage, saved_transactions
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof.salvaging.saved_transactions import SavedLog
from segproof_tests.partition_files import name_of, write_segment
from segproof_tests.transactions import batch, entries, marker, plain, saved

FEW = 16
"""So many producers, and as many holes in each transaction; then two and three times as many."""


def references(roots: Iterable[object]) -> int:
    """Return how often all that is held refers to something."""
    count, left, seen = 0, [*roots], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        held = gc.get_referents(one)
        count += len(held)
        left += held
    return count


def in_turn(producers: int) -> bytes:
    """Return two batches of each producer, all of the first ones first, with a hole after each."""
    return b"".join(
        batch(2 * (turn * producers + producer), turn, producer=producer)
        for turn in range(2)
        for producer in range(producers)
    )


def log_of(data: bytes, gap_count: int = 0) -> SavedLog:
    """Return what is known of a saved log that begins with offset 0; its gaps are not kept."""
    told = SalvagedPartition("in", "out", first_offset=0, gap_count=gap_count)
    log = SavedLog(told, takes_untold=True)
    log.add(read_batch_headers(data).table)
    return log


def test_each_producer_holds_as_much() -> None:
    """Between two batches of one lie as many holes as there are producers."""
    counts = []
    for producers in (FEW, 2 * FEW, 3 * FEW):
        log = log_of(in_turn(producers))
        transactions = log.transactions()
        breaks = [place for one in transactions for place in one.breaks]
        assert [producers] * producers == [place.lost.room for place in breaks[::2]]
        assert (2 * producers - 1, producers) == (len(log.lost), len(transactions))
        counts.append(references(transactions))
    few, more, most = counts
    assert most - more <= more - few + 8


def test_lost_are_the_offsets_between_those_saved() -> None:
    """What lies before the first batch or after the last one is no hole."""
    log = log_of(in_turn(2))
    assert [False, True] * 3 + [False, False] == [log.is_lost(one) for one in range(8)]
    assert not log.is_lost(-1)


def test_where_holes_are_passed_over_no_count_explains_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record fills the first hole; the second one, which had the marker, is not looked at."""
    monkeypatch.setattr(partition_salvage, "GAPS_TOLD", 1)
    monkeypatch.setattr(saved_transactions, "UNTOLD_MAX", 0)
    data = [batch(0, 0), batch(1, 1), batch(2, 0, producer=8), marker(3, "COMMIT"), batch(4, 2)]
    data += [marker(5, "ABORT"), marker(6, "ABORT", producer=8)]
    for lost in (1, 3):
        data[lost] = data[lost][:-1] + bytes([data[lost][-1] ^ 1])
    told, _ = saved(write_segment(tmp_path / "t-0", b"".join(data)), tmp_path / "out")
    assert "From offset 3 on others may have lost theirs" in told.lost_markers[0]
    assert any("producer 7 that begins at offset 0 may be lost" in one for one in told.lost_markers)


@pytest.mark.parametrize(("most", "partial"), [(1, [True]), (2, [False, True]), (3, [False] * 2)])
def test_a_break_says_if_a_hole_in_it_is_passed_over(
    most: int, partial: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holes before the first one that is passed over are known, all of them."""
    monkeypatch.setattr(saved_transactions, "UNTOLD_MAX", most)
    breaks = [one.breaks[:1] for one in log_of(in_turn(2), gap_count=1).transactions()]
    assert partial == [place.is_partial for places in breaks for place in places]


@pytest.mark.parametrize("most", [1, 2])
def test_more_holes_than_are_looked_at_are_told(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more gaps than are told each hole may be one; what is told is the least then."""
    monkeypatch.setattr(partition_salvage, "GAPS_TOLD", 1)
    monkeypatch.setattr(saved_transactions, "UNTOLD_MAX", most)
    data = [batch(0, 0), marker(1, "ABORT"), batch(2, 1), marker(3, "ABORT"), batch(4, 2)]
    data += [marker(5, "COMMIT"), batch(6, 3), marker(7, "COMMIT")]
    for lost in (1, 3, 5):
        data[lost] = data[lost][:-1] + bytes([data[lost][-1] ^ 1])
    folder = write_segment(tmp_path / "t-0", b"".join(data))
    old = [AbortedTxn(0, 7, one, one + 1, one + 2) for one in (0, 2)]
    (folder / name_of(0, ".txnindex")).write_bytes(b"".join(one.to_bytes() for one in old))
    told, target = saved(folder, tmp_path / "out")
    assert (3, 1) == (told.gap_count, len(told.gaps))
    assert [(0, 1), (2, 3)] == [one[2:4] for one in entries(target)]
    words = [one for one in told.lost_markers if "at least the transactions that" in one]
    assert (most < 2) == bool(words)
    if words:
        assert told.lost_markers[0] == words[0]
        assert "From offset 5 on others may have lost theirs: decide by" in words[0]


@pytest.mark.checks("PROD-9", "TXNIDX-7", "DISK-74")
@pytest.mark.parametrize("most", [0, 3, 9])
@pytest.mark.parametrize(
    ("end", "entry", "other"),
    [
        ([batch(9, 0), batch(14, 1), marker(15, "COMMIT")], (9, 12), 2),
        ([batch(9, 0), batch(14, 1), marker(15, "ABORT")], (14, 15), 3),
        ([batch(9, 0), plain(14), plain(16), batch(17, 1), marker(19, "ABORT")], (17, 19), 4),
    ],
)
def test_an_old_entry_is_kept_however_many_holes_there_are(
    end: list[bytes],
    entry: tuple[int, int],
    other: int,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a second salvage too; that some of the `other` holes were passed over is said."""
    monkeypatch.setattr(saved_transactions, "UNTOLD_MAX", most)
    folder = write_segment(tmp_path / "t-0", b"".join([*map(plain, (0, 2, 4)), *end]))
    old = AbortedTxn(0, 7, *entry, entry[1] + 1)
    (folder / name_of(0, ".txnindex")).write_bytes(old.to_bytes())
    for number in range(2):
        told, target = saved(folder, tmp_path / f"out{number}")
        assert [(0, 7, *entry)] == [one[:4] for one in entries(target)]
        assert any("producer 7 that begins at offset 9 is lost" in one for one in told.lost_markers)
        assert (most < other) == ("From offset" in told.lost_markers[0])
        folder = Path(target)


def test_a_hole_in_the_log_before_is_taken_where_an_entry_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the last one before the begin of the entry, and the only one that is taken."""
    monkeypatch.setattr(saved_transactions, "UNTOLD_MAX", 0)
    told = SalvagedPartition("in", "out", first_offset=0)
    log = SavedLog(told, takes_untold=True, known=[AbortedTxn(0, 7, 8, 9, 10)])
    for offsets in ((0, 2, 4), (5, 6), (7, 8, 9, 11)):
        log.add(read_batch_headers(b"".join(map(plain, offsets))).table)
    assert ([(3, 3)], 1) == ([(one.first, one.last) for one in log.lost], log.first_not_taken)
