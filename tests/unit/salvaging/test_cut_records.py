# SPDX-License-Identifier: Apache-2.0
"""Which records are cut out of broken batches, and what is said to speak for each."""

import errno
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from segproof.checksums import crc32c
from segproof.files import REAL_FILES, File
from segproof.kafka.record import Record
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.salvaging import cut_records
from segproof.salvaging.cut_records import MENDED_BYTES_MAX, Evidence, cut_batches, flipped_bit
from segproof.salvaging.gaps import Gap
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import batch_of, record
from segproof_tests.checksum_work import summed_sizes
from segproof_tests.partition_files import batches_of

HEADER_BYTES = 61


@cache
def real_batches() -> list[bytes]:
    """Return the batches of records, of magic 2, in the logs that real brokers wrote."""
    logs = (path.read_bytes() for path in sorted(KAFKA.glob("*/*/*.log")))
    found = (batch for log in logs for batch in batches_of(log) if batch[16] == 2)
    return [batch for batch in found if not read_batch(batch).is_control]


def plain_batch(records: int, size_bytes: int = 0) -> bytes:
    """Return a real batch without compression of so many records and bytes, or more."""
    for batch in real_batches():
        read = read_batch(batch)
        is_large = len(batch) >= size_bytes and (read.record_count or 0) >= records
        if is_large and read.compression == "none":
            return batch
    raise AssertionError("no such batch")


def records_by_offset(batch: RecordBatch) -> dict[int, Record]:
    """Return the records of a batch."""
    return {record.offset: record for record in batch.records()}


def cut(
    bad: bytes, whole: bytes, folder: Path, files: Any = REAL_FILES
) -> list[tuple[Evidence, dict[int, Record]]]:
    """Return what is cut out of a log of one broken batch; the sound one says which offsets."""
    log = folder / "00000000000000000000.log"
    log.write_bytes(bad)
    sound = read_batch(whole)
    gap = Gap(str(log), "broken", 0, len(bad), sound.base_offset, sound.last_offset)
    return [(one.evidence, records_by_offset(one.batch)) for one in cut_batches(gap, files=files)]


def damaged(batch: bytes, random: Random) -> bytes:
    """Return a batch with one damage of any kind, of the same length."""
    data = bytearray(batch)
    at = random.randrange(len(data))
    end = min(len(data), at + random.randint(1, 600))
    kind = random.randrange(6)
    if kind == 0:
        data[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        data[at:end] = bytes(end - at)
    elif kind == 2:
        data[at:end] = random.randbytes(end - at)
    elif kind == 3:
        for _ in range(random.randint(2, 4)):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == 4:
        data[random.randrange(8, HEADER_BYTES)] ^= random.randint(1, 255)
    else:
        data[at:end] = data[at:end][::-1]
    return bytes(data)


@pytest.mark.slow
@pytest.mark.checks("BATCH-3")
def test_a_record_that_the_checksum_speaks_for_is_the_original(tmp_path: Path) -> None:
    """Of random damages of real batches. Each kind of evidence comes up; no offset is made up."""
    random, seen = Random(7), Counter[Evidence]()
    plain = [one for one in real_batches() if read_batch(one).compression == "none"]
    for _ in range(400):
        whole = random.choice(plain)
        known = records_by_offset(read_batch(whole))
        for evidence, records in cut(damaged(whole, random), whole, tmp_path):
            seen[evidence] += len(records)
            assert records.keys() <= known.keys()
            if evidence is Evidence.CHECKSUM:
                assert records == known
    assert set(Evidence) == set(seen)


@pytest.mark.checks("BATCH-16")
def test_records_around_a_broken_one_are_cut_out(tmp_path: Path) -> None:
    """The lengths inside of one record no longer fit; chains from both ends reach up to it."""
    whole = plain_batch(5)
    known = records_by_offset(read_batch(whole))
    place = read_batch(whole).record_columns()
    bad = bytearray(whole)
    at = int(place.value_positions[2])
    bad[at - 2 : at] = b"\xff\xff"
    found = dict(cut(bytes(bad), whole, tmp_path))
    offsets = sorted(known)
    assert {offsets[1]} == found[Evidence.UNKNOWN].keys()  # the damage may begin in its value
    assert {*offsets} - {*offsets[1:3]} == found[Evidence.ELSEWHERE].keys()
    assert known.items() >= (found[Evidence.UNKNOWN] | found[Evidence.ELSEWHERE]).items()


@pytest.mark.checks("BATCH-16")
@pytest.mark.parametrize(
    ("behind", "kept"),
    [([5], {0, 5}), ([6], {0}), ([4, 5], {0, 4, 5}), ([5, 5], {0, 5}), ([1], {0, 1}), ([0], {0})],
)
def test_offsets_rise_within_those_of_a_batch(
    behind: list[int], kept: set[int], tmp_path: Path
) -> None:
    """Of a batch that lacks records, up to the offset 5, whose second record is broken."""
    records = [record(delta, value=b"value") for delta in (0, 3, *behind)]
    count = len(records)
    whole = batch_of(0, b"".join(records), record_count=count, last_offset_delta=5)
    records[1] = b"\xff" * len(records[1])
    found = cut(whole[:HEADER_BYTES] + b"".join(records), whole, tmp_path)
    assert sorted(kept) == sorted(offset for _, each in found for offset in each)


@pytest.mark.checks("BATCH-16")
@pytest.mark.parametrize("kind", ["zeros", "garbage"])
def test_a_record_that_reaches_into_the_damage_is_only_framed(kind: str, tmp_path: Path) -> None:
    """Wherever one damage begins: what is said to lie elsewhere is as it was."""
    random, seen = Random(3), 0
    whole = plain_batch(6, 1500)
    known = records_by_offset(read_batch(whole))
    for start in range(HEADER_BYTES, len(whole) - 1, 7):
        end = min(len(whole), start + random.choice((90, 512, len(whole))))
        size = end - start
        damage = bytes(size) if kind == "zeros" else random.randbytes(size)
        for evidence, records in cut(whole[:start] + damage + whole[end:], whole, tmp_path):
            if evidence is not Evidence.UNKNOWN:
                assert records.items() <= known.items(), (start, end)
                seen += len(records)
    assert seen > 100


def test_damage_inside_a_value_is_in_an_unknown_place(tmp_path: Path) -> None:
    """All records are framed whole, and one of them has other bytes than it had."""
    whole = plain_batch(3)
    place = read_batch(whole).record_columns()
    bad = bytearray(whole)
    at = int(place.value_positions[1])
    bad[at] ^= 255
    ((evidence, records),) = cut(bytes(bad), whole, tmp_path)
    known = records_by_offset(read_batch(whole))
    assert Evidence.UNKNOWN is evidence
    assert 1 == sum(record != known[offset] for offset, record in records.items())


def test_one_bit_of_a_compressed_batch_is_put_back(tmp_path: Path) -> None:
    """The codec then reads what the checksum covers."""
    whole = next(one for one in real_batches() if read_batch(one).compression == "lz4")
    bad = bytearray(whole)
    bad[len(bad) // 2] ^= 4
    assert [(Evidence.CHECKSUM, records_by_offset(read_batch(whole)))] == cut(
        bytes(bad), whole, tmp_path
    )


@pytest.mark.checks("BATCH-3")
def test_a_wrong_size_a_wrong_magic_and_a_bit_of_the_checksum_cost_no_record(
    tmp_path: Path,
) -> None:
    """Size and magic are not under the checksum, which so holds. Of a long batch too."""
    whole = next(one for one in real_batches() if len(one) > MENDED_BYTES_MAX)
    known = [(Evidence.CHECKSUM, records_by_offset(read_batch(whole)))]
    for at, mask in ((8, 127), (10, 1), (16, 2), (17, 128), (20, 1)):
        bad = bytearray(whole)
        bad[at] ^= mask
        assert known == cut(bytes(bad), whole, tmp_path), at


def test_the_work_for_small_broken_batches_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them may reach to the end of the gap; together that took quadratic time."""
    summed = summed_sizes(monkeypatch)
    monkeypatch.setattr(cut_records, "TRIED_BYTES", 0)
    monkeypatch.setattr(cut_records, "MENDED_BYTES_MAX", 0)
    whole = plain_batch(1)
    one = whole[:8] + (100).to_bytes(4, "big") + whole[12:23] + b"\xff" * 89
    assert [] == cut(one * 500, whole, tmp_path)
    assert 500 < len(summed)
    assert sum(summed) < 20 * len(one) * 500


def test_each_single_bit_has_its_own_difference() -> None:
    """And none of them looks as a flip of two."""
    data = Random(2).randbytes(300)
    for at in range(0, 300, 7):
        bad = bytearray(data)
        bad[at] ^= 32
        assert (at, 5) == flipped_bit(crc32c(data) ^ crc32c(bad), 300)
        bad[299 - at] ^= 1
        if at != 299 - at:
            assert flipped_bit(crc32c(data) ^ crc32c(bad), 300) is None


class _BadBlock(type(REAL_FILES)):  # type: ignore[misc]
    """A file system whose second block of each file can't be read."""

    def open(self, path: str, **options: Any) -> File:
        file: Any = super().open(path, **options)

        class Bad(type(file)):  # type: ignore[misc]
            __slots__ = ()

            def pread(self, size: int, position: int) -> bytes:
                if position < 8192 and position + size > 4096:
                    raise OSError(errno.EIO, "Input/output error", path)
                return super().pread(size, position)  # type: ignore[no-any-return]

        return Bad(file._descriptor, path)


def test_no_record_of_an_unreadable_block_is_cut_out(tmp_path: Path) -> None:
    """Zeros stand for it: a record framed by lengths before it would have them in its value."""
    whole = plain_batch(4, 12000)
    ((evidence, records),) = cut(whole, whole, tmp_path, _BadBlock())
    known = records_by_offset(read_batch(whole))
    assert Evidence.ELSEWHERE is evidence
    assert 0 < len(records) < len(known)
    assert records.items() <= known.items()
