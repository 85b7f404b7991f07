# SPDX-License-Identifier: Apache-2.0
"""Batches whose size or magic alone is wrong are put back where their checksum proves them."""

from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest

from segproof.files import REAL_FILES
from segproof.kafka import Record, write_batch
from segproof.kafka.batch_table import read_batch_headers
from segproof.reading.log_placement import LogPlacement, placement_of_log
from segproof.repair import salvage
from segproof.stretches.kafka.in_place import IN_PLACE
from segproof_tests.checksum_work import summed_sizes
from segproof_tests.partition_files import batches_of, copied_partition, name_of
from segproof_tests.small_logs import batch

LOGS = {"plain": 60, "txn-a": 1014, "compacted": 4104, "v1-gzip": 1000}


def with_bytes(data: bytes, position: int, wrong: bytes) -> bytes:
    """Return data with other bytes at a position."""
    return data[:position] + wrong + data[position + len(wrong) :]


def placed(path: Path, *batches: bytes, next_offset: int | None = None) -> LogPlacement:
    """Return what becomes of a log that is named as its first batch states."""
    path.write_bytes(b"".join(batches))
    table = read_batch_headers(batches[0]).table
    with closing(REAL_FILES.open(str(path))) as file:
        return placement_of_log(file, int(table["base_offset"][0]), next_offset)


def kinds_of(path: Path, *batches: bytes, next_offset: int | None = None) -> list[str]:
    """Return the kinds of the spans of a log."""
    return [one.kind.value for one in placed(path, *batches, next_offset=next_offset).spans()]


def mended(path: Path, *batches: bytes, next_offset: int | None = None) -> list[int]:
    """Return the last offsets of the mended batches that are kept in a log."""
    found = placed(path, *batches, next_offset=next_offset)
    rows, fates = found.facts.rows, found.placement.fates
    is_kept = rows["is_mended"] & np.isin(fates, IN_PLACE)
    lasts = found.placement.firsts + rows["last"] - rows["first"]
    return [int(last) for last in lasts[is_kept]]


@pytest.mark.checks("BATCH-2", "BATCH-3", "SEG-20")
@pytest.mark.parametrize("scenario", LOGS)
def test_each_batch_with_a_wrong_size_or_magic_is_put_back_byte_for_byte(
    scenario: str, tmp_path: Path
) -> None:
    """Real logs, markers and compressed batches too: the first, the last, every third one.

    The checksum of an old message covers its magic.
    """
    original, bad = (copied_partition(scenario, tmp_path / one) for one in ("original", "bad"))
    path = bad / name_of(LOGS[scenario], ".log")
    batches = batches_of(path.read_bytes())
    random, wrong = Random(7), [*range(0, len(batches) - 1, 3), len(batches) - 1]
    log = batches.copy()
    for number in wrong:
        sizes = ((8, b"\x7f"), (9, b"\x01"), (8, b"\xff\xff\xff\xff"), (8, b"\0\0\0\x31"))
        magics = ((16, b"\0"), (16, b"\1"), (16, b"\3"), (16, b"\xff"))
        at, value = random.choice(sizes if batches[number][16] < 2 else sizes + magics)
        log[number] = with_bytes(batches[number], at, value)
    path.write_bytes(b"".join(log))
    (told,) = salvage(bad, tmp_path / "out")
    assert (told.is_whole, told.restored_headers) == (True, len(wrong))
    for one in original.glob("*.log"):
        assert one.read_bytes() == (tmp_path / "out" / bad.name / one.name).read_bytes(), one.name


def test_a_batch_is_put_back_only_where_its_offsets_fit(tmp_path: Path) -> None:
    """A wrong base offset comes back with the size where exactly its offsets are missing."""
    path = tmp_path / "log"
    wrong = with_bytes(batch(1), 8, b"\x7f")
    high = (1 << 40).to_bytes(8, "big") + wrong[8:]
    assert [1] == mended(path, batch(0), wrong, batch(2))
    assert [1] == mended(path, batch(0), wrong, batch(9))
    assert [1] == mended(path, batch(0), high, batch(2))
    assert [] == mended(path, batch(0), high, batch(3))
    gone = batch(1)[:40]
    assert [] == mended(path, batch(0), gone, high, batch(2))  # it may have been another one
    assert [] == mended(path, batch(0), high, gone, batch(2))
    assert [5] == mended(path, batch(4), wrong, batch(6))
    assert [] == mended(path, batch(4), wrong, batch(7))
    assert [] == mended(path, batch(0), batch(1), wrong, batch(2))
    far = with_bytes(batch(7), 8, b"\x7f")  # at the end of a log
    assert [7] == mended(path, batch(6), far)
    assert [] == mended(path, batch(5), far)
    assert [7] == mended(path, batch(5), far, next_offset=9)
    assert [] == mended(path, batch(5), far, next_offset=6)


def test_a_batch_with_a_second_damage_stays_broken(tmp_path: Path) -> None:
    """In its content, or in its checksum. A neighbour with a wrong magic is put back."""
    path = tmp_path / "log"
    magic = with_bytes(batch(2), 16, b"\1")
    assert [1, 2] == mended(path, batch(0), with_bytes(batch(1), 16, b"\0"), magic, batch(3))
    content = with_bytes(batch(1), 65, b"?")
    assert [2] == mended(path, batch(0), content, magic, batch(3))
    for at in (17, 22, 30, 60, 66):
        twice = with_bytes(batch(1), at, bytes([batch(1)[at] ^ 1]))
        assert [] == mended(path, batch(0), with_bytes(twice, 8, b"\x7f"), batch(2))


@pytest.mark.checks("BATCH-3", "SEG-20")
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_with_a_wrong_size_is_put_back_beside_other_damage(
    compression: str, tmp_path: Path
) -> None:
    """Its records, a header, the last zeros or one byte of its size show where it ends."""
    path = tmp_path / "log"
    whole = [batch(at, b"a value " * 20, compression=compression) for at in range(6)]
    wrong = [with_bytes(one, 8, b"\x7f\1\2\3") for one in whole]
    bad = [with_bytes(one, 66, b"?") for one in wrong]
    byte = with_bytes(wrong[2], 8, whole[2][8:11] + bytes([whole[2][11] ^ 0x55]))
    gone = b"?" * 50
    assert [1] == mended(path, whole[0], wrong[1], bad[2], whole[3])
    assert [3] == mended(path, whole[0], bad[1], bad[2], wrong[3], bad[4], whole[5])
    assert [1, 3] == mended(path, whole[0], wrong[1], bad[2], wrong[3], bad[4])
    assert [2] == mended(path, whole[0], gone, wrong[2], whole[3])
    assert [2] == mended(path, whole[0], gone, byte, gone, whole[4])
    assert [2, 3] == mended(path, whole[0], gone, wrong[2], wrong[3])
    assert [1] == mended(path, whole[0], wrong[1], bytes(9000))
    assert "zeros" == kinds_of(path, whole[0], wrong[1], bytes(9000))[-1]
    assert ([2] if compression == "none" else []) == mended(path, *whole[:2], wrong[2], gone)


@pytest.mark.checks("BATCH-2", "SEG-20")
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_lengths_of_an_old_message_say_its_size(
    compression: str, magic: int, tmp_path: Path
) -> None:
    """Beside any damage, if its offsets fit; a second damage makes the checksum wrong."""
    path, count = tmp_path / "log", 1 if compression == "none" else 3
    whole = [
        write_batch([Record(last - back, 1000 if magic else -1, None, b"value")
                     for back in reversed(range(count))],
                    base_offset=last - count + 1, compression=compression, magic=magic)
        for last in range(2, 20, count)
    ]  # fmt: skip
    lasts = range(2, 20, count)
    wrong = [with_bytes(one, 8, b"\x7f\1\2\3") for one in whole]
    gone = b"?" * 50
    assert [lasts[1], lasts[2]] == mended(path, whole[0], wrong[1], wrong[2], whole[3])
    assert [lasts[2]] == mended(path, whole[0], gone, wrong[2], gone, whole[4])
    assert [lasts[2]] == mended(path, *whole[:2], wrong[2], gone)
    assert [lasts[1]] == mended(path, whole[0], wrong[1])
    assert [] == mended(path, whole[0], wrong[3])  # offsets are missing before it
    assert [] == mended(path, *whole[:2], wrong[0], whole[2])
    high = (1 << 40).to_bytes(8, "big") + wrong[1][8:]
    # What wraps messages of magic 0 has their offset, and they say it under its checksum.
    told = [lasts[1]] if compression == "none" or not magic else []
    assert told == mended(path, whole[0], high, whole[2])
    for at in (12, 16, 17, 20, len(wrong[1]) - 1):
        twice = with_bytes(wrong[1], at, bytes([wrong[1][at] ^ 1]))
        assert [] == mended(path, whole[0], twice, whole[2])


@pytest.mark.checks("BATCH-3", "BATCH-9")
def test_messages_in_a_wrapper_of_magic_0_say_its_offset(tmp_path: Path) -> None:
    """One bit made it one too low: then it was kept, and its offsets fell below those before it."""

    def wrapper(first: int, last: int, magic: int = 0) -> bytes:
        time = 1000 if magic else -1
        records = [Record(offset, time, None, b"value") for offset in range(first, last + 1)]
        return write_batch(records, base_offset=first, compression="gzip", magic=magic)

    path = tmp_path / "log"
    log = [wrapper(0, 2), wrapper(3, 5), wrapper(6, 8)]
    low, far = ((one).to_bytes(8, "big") + log[1][8:] for one in (4, 1 << 40))
    assert [5] == mended(path, log[0], low, log[2])
    assert [8] == mended(path, *log[:2], (1 << 40).to_bytes(8, "big") + log[2][8:])
    assert [5] == mended(path, log[0], far, log[2])
    assert [] == mended(path, *log)
    new = [wrapper(0, 2, 1), wrapper(3, 5, 1), wrapper(6, 8, 1)]
    assert [] == mended(path, *new[:2], (9).to_bytes(8, "big") + new[2][8:])  # no offset inside
    sent = wrapper(0, 2)[8:]  # numbered from 0, as a producer sends them
    assert [] == mended(path, log[0], (5).to_bytes(8, "big") + sent, log[2])


def test_batches_in_a_value_of_a_mended_one_are_part_of_it(tmp_path: Path) -> None:
    """Its checksum says more than theirs. So none of them is told as misplaced."""
    outer = with_bytes(batch(5, batch(900) * 2), 8, b"\x7f")
    found = placed(tmp_path / "log", batch(4), outer, batch(6), batch(7))
    (_, one, _) = spans = [*found.spans()]
    assert ["sound", "mended", "sound"] == [each.kind for each in spans]
    assert (5, 5, 1) == (one.first_offset, one.last_offset, one.records)


@pytest.mark.parametrize("wrong", [(8, b"\x7f"), (16, b"\1")])
def test_a_batch_in_a_value_does_not_take_the_place_of_the_batch_around_it(
    wrong: tuple[int, bytes], tmp_path: Path
) -> None:
    """Also where its offset fits, in a log with gaps as compaction leaves them."""
    for offset, *inner in ((5, 5), (50, 7), (50, 7, 8, 9)):
        outer = with_bytes(batch(offset, b"".join(map(batch, inner))), *wrong)
        log = batch(4), outer, batch(offset + 1), batch(offset + 2)
        assert [offset] == mended(tmp_path / "log", *log)


def test_a_broken_batch_behind_a_mended_one_that_holds_a_batch_is_not_passed_over(
    tmp_path: Path,
) -> None:
    """The piece behind the batch in the value begins in the mended one, and goes on."""
    path = tmp_path / "log"
    outer = with_bytes(batch(5, batch(900)), 16, b"\1")
    assert [5, 6] == mended(path, batch(4), outer, with_bytes(batch(6), 8, b"\x7f"), batch(7))
    assert [5] == mended(path, batch(4), outer, with_bytes(batch(6), 66, b"?"), batch(7))


def test_a_copy_elsewhere_is_not_moved_back_beside_the_restored_batch(tmp_path: Path) -> None:
    """Else its offsets would be in the log twice."""
    bad = tmp_path / "t-0"
    bad.mkdir()
    wrong = with_bytes(batch(1), 8, b"\x7f")
    log = [batch(0), wrong, batch(2), batch(3), batch(1), batch(4)]
    (bad / name_of(0, ".log")).write_bytes(b"".join(log))
    (told,) = salvage(bad, tmp_path / "out")
    assert (5, 1, 0, 1) == (
        told.batches, told.restored_headers, told.moved_batches, told.set_aside_batches
    )  # fmt: skip


@pytest.mark.checks("DUMP-6", "SEG-20")
@pytest.mark.parametrize("next_offset", [None, 4])
@pytest.mark.parametrize("size", [b"\x7f", b"\0\0\1"])
def test_a_batch_behind_a_wrong_size_is_set_aside(
    size: bytes, next_offset: int | None, tmp_path: Path
) -> None:
    """Its records end before the size does, or the size is too large for any: it is not torn."""
    broken = with_bytes(with_bytes(batch(2), 8, size), 66, b"?")
    log = batch(0), batch(1), broken, batch(0)
    assert ["sound", "broken", "aside"] == kinds_of(tmp_path / "log", *log, next_offset=next_offset)


@pytest.mark.checks("DUMP-6")
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_in_a_value_of_a_torn_batch_are_part_of_it(magic: int, tmp_path: Path) -> None:
    """Its lengths lead behind the log, to where its size does. With another size they do not."""
    records = [Record(2, 1000 if magic else -1, None, batch(0) * 3)]
    torn = write_batch(records, base_offset=2, magic=magic)[:-2]
    path, before = tmp_path / "log", (batch(0), batch(1))
    assert ["sound", "torn"] == kinds_of(path, *before, torn)
    wrong = with_bytes(torn, 9, b"\1")
    assert ["sound", "broken", "aside", "broken"] == kinds_of(path, *before, wrong)


def test_batches_that_stand_alone_do_not_use_up_the_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many broken ones between them each is tried up to the next ones only."""
    monkeypatch.setattr("segproof.stretches.kafka.framing.WORK_BYTES", 4 << 20)
    log = [batch(offset) for offset in range(201)]
    log[1::2] = [with_bytes(with_bytes(one, 8, b"\x7f"), 66, b"?") for one in log[1::2]]
    log[199] = with_bytes(batch(199), 8, b"\x7f")
    assert [199] == mended(tmp_path / "log", *log)


def test_sizes_that_lead_behind_the_log_do_not_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No checksum is made for them, so they cost none of those that a search may make."""
    monkeypatch.setattr("segproof.stretches.kafka.framing.WORK_BYTES", 1 << 20)
    log = [batch(offset) for offset in range(101)]
    log[1::2] = [with_bytes(one, 8, b"\x7f") for one in log[1::2]]
    assert [*range(1, 100, 2)] == mended(tmp_path / "log", *log)


def test_the_work_for_broken_batches_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes that lead from one broken batch to the next make no quadratic number of checksums."""
    summed = summed_sizes(monkeypatch)
    monkeypatch.setattr("segproof.stretches.kafka.framing.WORK_BYTES", 0)
    one = with_bytes(batch(1), 30, b"?")
    log = [batch(0), *[one] * 2000, batch(2)]
    assert [] == mended(tmp_path / "log", *log)
    assert len(one) < sum(summed) < 20 * len(one) * 2000
