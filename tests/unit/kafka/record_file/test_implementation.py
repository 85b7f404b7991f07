# SPDX-License-Identifier: Apache-2.0
"""The record file and the bulk reader: scans, slices, cutting, searches, tables, checksums."""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    OffsetOutOfRangeError,
    SegproofError,
)
from segproof.files import REAL_FILES
from segproof.kafka import Record, write_batch, write_empty_batch
from segproof.kafka.batch_table import BatchScan, check_batches, read_batch_headers
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.kafka.record_file import RecordFile, scan_memory


def batch(
    base: int, count: int = 1, *, timestamp: int = 100, magic: int = 2, **more: object
) -> bytes:
    """A batch of `count` records whose timestamps rise from `timestamp`."""
    records = [Record(base + i, timestamp + i, b"k", b"v%d" % i) for i in range(count)]
    return write_batch(records, base_offset=base, magic=magic, **more)  # type: ignore[arg-type]


LOG = batch(0, 3) + batch(3, 2, timestamp=50) + batch(9, 1, timestamp=500)
ENDS = [len(batch(0, 3)), len(batch(0, 3) + batch(3, 2)), len(LOG)]
MIXED = (
    batch(0, magic=0)
    + batch(1, 4, magic=1, compression="gzip")
    + batch(5, 3)
    + batch(8, 2, compression="lz4")
    + write_empty_batch(10, 12, 7)
    + batch(13, magic=1)
)


@pytest.fixture
def log(tmp_path: Path) -> RecordFile:
    """An open file that holds LOG."""
    path = tmp_path / "0.log"
    path.write_bytes(LOG)
    return RecordFile.open(path, writable=True)


def last_offsets(log: RecordFile) -> list[int]:
    """The last offset of each batch."""
    return [batch.last_offset for batch in log]


def test_append_and_scan(tmp_path: Path) -> None:
    """SCAN-5, SCAN-11: appended bytes are the file, and batches tile it."""
    with RecordFile.open(tmp_path / "0.log", create=True) as log:
        assert log.append(LOG) == len(LOG) == log.size_in_bytes()
        assert [(b.position, b.position + b.size_bytes) for b in log] == [
            (0, ENDS[0]), (ENDS[0], ENDS[1]), (ENDS[1], ENDS[2]),
        ]  # fmt: skip
        assert last_offsets(log) == [2, 4, 9]
        log.flush()
    assert (tmp_path / "0.log").read_bytes() == LOG


@pytest.mark.parametrize("zeros", range(20))
def test_zero_tails(tmp_path: Path, zeros: int) -> None:
    """SCAN-1, SCAN-2, SCAN-3: up to 17 zero bytes end a scan, 18 are corrupt-record."""
    path = tmp_path / "0.log"
    path.write_bytes(LOG + bytes(zeros))
    log = RecordFile.open(path)
    batches = log.batches()
    assert len([next(batches) for _ in range(3)]) == 3
    if zeros < 18:
        assert next(batches, None) is None
    else:
        with pytest.raises(CorruptRecordError):
            next(batches)
    table = read_batch_headers(log.file)
    assert (len(table.table), table.end_position) == (3, len(LOG))
    assert (table.error is None) == (zeros < 18)
    log.close()


@given(cut=st.integers(0, len(LOG)))
def test_a_cut_batch_ends_the_scan(cut: int) -> None:
    """SCAN-1: a partial batch is no error, in memory, in tables and in checks."""
    whole = sum(end <= cut for end in ENDS)
    data = LOG[:cut]
    assert len(list(scan_memory(data))) == whole
    table, end_position, error = read_batch_headers(data)
    assert (len(table), end_position, error) == (whole, ([0, *ENDS])[whole], None)
    scan = check_batches(data)
    assert [valid for part in scan for valid in part.crc_valid.tolist()] == [True] * whole
    assert (scan.end_position, scan.error) == (end_position, None)


@given(st.lists(st.sampled_from([0, 1, 2, 2]), max_size=6), st.integers(0, 40))
def test_headers_in_memory_are_those_of_a_file(magics: list[int], cut: int) -> None:
    """SCAN-1: looked at where they are, also where an old message, smaller than a header, is last.

    A file's headers are read into a buffer with room behind it; bytes of a caller have none.
    """
    parts = [
        write_empty_batch(n, n, -1) if m == 2 else batch(n, magic=m) for n, m in enumerate(magics)
    ]
    data = b"".join(parts)
    data = data[: max(len(data) - cut, 0)]
    expected = read_batch_headers(_source(data))
    for found in (read_batch_headers(data), read_batch_headers(memoryview(data))):
        assert expected.table.tolist() == found.table.tolist()
        assert expected.end_position == found.end_position
        assert str(expected.error) == str(found.error)


def test_a_size_near_the_limit_does_not_wrap(tmp_path: Path) -> None:
    """SCAN-6: position + 12 + size is not computed in 32 bits."""
    data = LOG + struct.pack(">qiib", 10, 2**31 - 20, -1, 2) + bytes(60)
    path = tmp_path / "0.log"
    path.write_bytes(data)
    with RecordFile.open(path) as log:
        assert last_offsets(log) == [2, 4, 9]
    assert read_batch_headers(data)[1:] == (len(LOG), None)


def test_an_unknown_magic_is_refused(tmp_path: Path) -> None:
    """SCAN-4 as this implementation has it: only 0, 1 and 2 are formats."""
    data = LOG + batch(10)[:16] + b"\x03" + batch(10)[17:]
    path = tmp_path / "0.log"
    path.write_bytes(data)
    with RecordFile.open(path) as log, pytest.raises(CorruptRecordError, match="magic 3"):
        last_offsets(log)
    error = read_batch_headers(data).error
    assert error is not None
    assert (error.kind, error.law, error.position) == ("corrupt-record", "SCAN-4", len(LOG))


def test_a_file_that_became_shorter(log: RecordFile) -> None:
    """SCAN-7, SCAN-10: the end of file inside the believed size is an error, not the end."""
    believed = log.size_in_bytes()
    log.file.truncate(ENDS[0] + 5)
    with pytest.raises(CorruptRecordError, match="shorter"):
        last_offsets(log)
    table = read_batch_headers(log.file, 0, believed)
    assert (len(table.table), table.end_position) == (1, ENDS[0])
    assert table.error is not None
    assert table.error.law == "SCAN-7"
    log.file.pwrite(LOG[: ENDS[0] + 30], 0)
    batches = log.batches(ENDS[0])
    with pytest.raises(SegproofError) as caught:
        _ = next(batches).max_timestamp
    assert (caught.value.kind, caught.value.law) == ("kafka-error", "SCAN-10")


def test_a_slice_is_not_appended_to(log: RecordFile) -> None:
    """It only reads; closing it leaves the file open, and a cut of the file ends its slices too."""
    view = log.slice(ENDS[0], 2**31 - 1)
    with pytest.raises(InvalidArgumentError):
        view.append(b"x")
    view.close()
    inner = view.slice(0, 9)
    assert inner.read() == LOG[ENDS[0] :][:9]
    log.truncate_to(ENDS[0])
    with pytest.raises(OffsetOutOfRangeError):
        inner.read()


def test_preallocation(tmp_path: Path) -> None:
    """SCAN-13, SCAN-20: the tail is not read, and closing cuts it."""
    path = tmp_path / "0.log"
    log = RecordFile.open(path, create=True, init_file_size=4096, preallocate=True)
    assert (log.size_in_bytes(), path.stat().st_size) == (0, 4096)
    log.append(LOG)
    assert last_offsets(log) == [2, 4, 9]
    assert log.slice(0, 4096).read() == log.read() == LOG
    log.close()
    assert path.read_bytes() == LOG
    log.close()
    with pytest.raises(OSError, match="closed"):
        log.append(b"x")
    with pytest.raises(SegproofError):
        list(log)


def test_a_read_only_file_is_not_changed(tmp_path: Path) -> None:
    """Opening to read creates nothing, and refuses what would write."""
    path = tmp_path / "0.log"
    with pytest.raises(FileNotFoundError):
        RecordFile.open(path)
    assert not path.exists()
    path.write_bytes(LOG)
    with RecordFile.open(path) as log:
        with pytest.raises(OSError, match="reading"):
            log.append(b"x")
        with pytest.raises(OSError, match="reading"):
            log.truncate_to(0)
    assert path.read_bytes() == LOG


def test_append_beyond_31_bits(tmp_path: Path) -> None:
    """SCAN-11: above 2147483647 bytes nothing is written."""
    log = RecordFile(REAL_FILES.open(str(tmp_path / "x"), writable=True, create=True), 2**31 - 2)
    with pytest.raises(InvalidArgumentError):
        log.append(b"xx")
    assert log.to_bytes() == b""


def test_memory_scanner_order() -> None:
    """SCAN-9: size before magic, magic before a partial batch, below 17 bytes the end."""
    assert list(scan_memory(struct.pack(">qi", 0, 20))) == []
    for data in (
        struct.pack(">qi", 0, 13),
        struct.pack(">qiib", 0, 10**6, 0, 3),
        LOG + struct.pack(">qiib", 0, 0, 0, 2),
    ):
        with pytest.raises(CorruptRecordError):
            list(scan_memory(data))
    with pytest.raises(CorruptRecordError):
        list(scan_memory(LOG, ENDS[0] - 13))


@pytest.mark.parametrize("chunk_bytes", [61, 100, 177, 1 << 19])
def test_tables_say_what_batches_say(chunk_bytes: int) -> None:
    """One gather over many headers equals one batch after another, for all three formats."""
    names = (
        "position", "size_bytes", "last_offset", "max_timestamp", "producer_id", "producer_epoch",
        "base_sequence", "partition_leader_epoch", "crc", "attributes", "magic",
    )  # fmt: skip
    scan = BatchScan(_source(MIXED), 0, len(MIXED), deep=True, chunk_bytes=chunk_bytes)
    parts = list(scan)
    table = np.concatenate([part.table for part in parts])
    batches = list(scan_memory(MIXED))
    assert len(table) == len(batches) == 6
    for row, one in zip(table, batches, strict=True):
        assert [int(row[name]) for name in names] == [getattr(one, name) for name in names]
    assert table["base_offset"].tolist() == [0, 4, 5, 8, 10, 13]
    assert table["record_count"].tolist() == [1, -1, 3, 2, 0, 1]
    assert all(part.crc_valid.all() and not part.errors for part in parts)
    summaries = np.concatenate([part.summaries for part in parts if part.summaries is not None])
    assert summaries.tolist() == [
        (1, 0, -1, True), (4, 4, 103, True), (3, 7, 102, True), (2, 9, 101, True),
        (0, -1, -1, True), (1, 13, 100, True),
    ]  # fmt: skip
    headers = read_batch_headers(MIXED)
    assert (headers.end_position, headers.error) == (len(MIXED), None)
    assert headers.table.tolist() == table.tolist()


@given(position=st.integers(0, len(MIXED) - 1), bit=st.integers(0, 7))
def test_one_flipped_bit(position: int, bit: int) -> None:
    """A checked scan and single batches agree on every one-bit change, and none gets lost."""
    data = bytearray(MIXED)
    data[position] ^= 1 << bit
    expected, is_corrupt = [], False
    try:
        for one in _file_scan(bytes(data)):
            expected.append((one.position, one.is_valid()))
    except CorruptRecordError:
        is_corrupt = True
    for max_batch_bytes in (1 << 20, 70):
        scan = BatchScan(
            _source(bytes(data)),
            0,
            len(data),
            deep=True,
            chunk_bytes=64,
            max_batch_bytes=max_batch_bytes,
        )
        found = [
            pair
            for part in scan
            for pair in zip(part.table["position"].tolist(), part.crc_valid.tolist(), strict=True)
        ]
        assert found == expected
        assert is_corrupt == isinstance(scan.error, CorruptRecordError)


def _file_scan(data: bytes) -> Iterator[RecordBatch]:
    log = RecordFile(_source(data), len(data))  # type: ignore[arg-type]
    return log.batches()


def test_a_count_that_lies() -> None:
    """2^31 - 1 records claimed: the checksum is right, reading stops where the bytes do."""
    image = bytearray(batch(0, 3))
    image[57:61] = (2**31 - 1).to_bytes(4, "big")
    (part,) = check_batches(bytes(image), deep=True)
    assert part.errors[0].kind == "invalid-record"
    assert part.errors[0].position == 0
    assert not part.crc_valid[0]


def test_a_batch_beyond_the_buffer_is_summed_in_pieces() -> None:
    """Memory stays bounded, the checksum is still made, and the records are not claimed read."""
    large = batch(0, 200) + batch(200, 1)
    scan = BatchScan(
        _source(large), 0, len(large), deep=True, chunk_bytes=100, max_batch_bytes=1000
    )
    parts = list(scan)
    assert [part.crc_valid.tolist() for part in parts] == [[True], [True]]
    assert "too large" in str(parts[0].errors[0])
    assert scan.end_position == len(large)


def test_a_decompression_bomb_is_refused() -> None:
    """The limit holds in a scan, and the error names the batch."""
    bomb = write_batch([Record(0, 0, None, bytes(3 << 20))], base_offset=0, compression="zstd")
    (part,) = check_batches(LOG + bomb, len(LOG), deep=True, limit=1 << 20)
    assert part.crc_valid.tolist() == [True]
    assert "grows beyond 1048576 bytes" in str(part.errors[0])
    assert part.errors[0].position == len(LOG)
    with pytest.raises(SegproofError):
        list(read_batch(bomb).records(limit=1 << 20))


class _Memory:
    path = "in memory"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def size(self) -> int:
        return len(self.data)

    def pread(self, size: int, position: int) -> bytes:
        return self.data[position : position + size]

    def pread_into(self, buffer: memoryview, position: int) -> int:
        part = self.data[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)


def _source(data: bytes) -> _Memory:
    return _Memory(data)
