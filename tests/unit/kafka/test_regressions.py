# SPDX-License-Identifier: Apache-2.0
"""Defects that were once in this implementation, one test each; docs/results/defects.md lists them.

The docstring of a test tells the incident.
"""

import gzip
import os
import struct
import zlib
from pathlib import Path

import pytest

import segproof
from segproof.compression import decompress
from segproof.errors import InvalidArgumentError, InvalidRecordError, SegproofError
from segproof.files import REAL_FILES
from segproof.kafka import OffsetIndex, Record, RecordFile, read_batch, write_batch
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.log_config import LogConfig
from segproof_harness.cli.common import release
from segproof_harness.laws.borders.log_files import batch_of
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.language.files import Files
from segproof_model.releases import SEGPROOF


@pytest.mark.parametrize("beyond", [0, 1, 2, 2**40])
def test_target_beyond_every_key_of_a_damaged_index(tmp_path: Path, beyond: int) -> None:
    """A target too far for 31 bits was clamped to 2147483647, which can be a key itself."""
    data = struct.pack(">iiii", 2**31 - 1, 7, 2**31 - 1, 9)
    (tmp_path / "x").write_bytes(data)
    target = 100 + 2**31 - 1 + beyond
    index = OffsetIndex(tmp_path / "x", 100)
    model = SEGPROOF.kind(ModelOffsetIndex)(Files({"x": data}), "x", 100, writable=False)
    assert tuple(model.lookup(target)) == tuple(index.lookup(target))
    assert (9 if beyond else 7) == index.lookup(target).position
    assert [index.lookup(target).position] == index.lookup_many([target])[1].tolist()


@pytest.mark.parametrize("magic", [0, 1])
def test_offset_of_a_message_whose_key_cannot_be_read(magic: int) -> None:
    """Asking for the base offset of an uncompressed message read its key and value too."""
    data = bytearray(write_batch([Record(7, 1000, b"k", b"v")], base_offset=7, magic=magic))
    at = 18 if magic == 0 else 26
    data[at : at + 4] = (1000).to_bytes(4, "big")
    batch = read_batch(bytes(data))
    assert 7 == batch.base_offset
    assert [(1000 if magic else -1, 7)] == list(batch.times())
    with pytest.raises(InvalidArgumentError):
        list(batch.records())


def test_second_close_of_a_record_file(tmp_path: Path) -> None:
    """A second close flushed a file that was closed, and raised OSError."""
    log = RecordFile.open(tmp_path / "0.log", create=True)
    log.append(b"x")
    log.close()
    log.close()
    assert not log.is_open


def test_a_closed_file_is_not_mapped(tmp_path: Path) -> None:
    """The descriptor of a closed file is -1, for which mmap hands out memory without a file."""
    file = REAL_FILES.open(str(tmp_path / "x"), writable=True, create=True)
    file.truncate(16)
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.map(16)


def test_reading_from_before_the_file(tmp_path: Path) -> None:
    """`preadv` at position -1 reads at the handle's own position, so wrong bytes came back."""
    (tmp_path / "x").write_bytes(b"first bytes")
    file = REAL_FILES.open(str(tmp_path / "x"))
    with pytest.raises(OSError, match="Invalid argument"):
        file.pread_into(memoryview(bytearray(4)), -1)
    file.close()


def test_gzip_distance_before_the_first_byte() -> None:
    """A distance that reaches before the data was taken for zeros, and the records were wrong."""
    body = bytes.fromhex("030200")
    header = bytes.fromhex("1f8b0800000000000003")
    stream = header + body + struct.pack("<II", zlib.crc32(bytes(3)), 3)
    with pytest.raises(SegproofError, match="distance"):
        decompress("gzip", stream)


def test_base_offset_where_the_file_ends_inside_the_header(tmp_path: Path) -> None:
    """The scanner had read the base offset, yet asking the batch for it needed all 61 bytes."""
    data = bytearray(write_batch([Record(7, 1000, None, b"v")], base_offset=7)[:40])
    data[8:12] = (20).to_bytes(4, "big")
    (tmp_path / "0.log").write_bytes(data)
    with RecordFile.open(os.fspath(tmp_path / "0.log")) as log:
        (batch,) = log.batches()
        assert 7 == batch.base_offset
        with pytest.raises(SegproofError) as caught:
            _ = batch.last_offset
        assert "kafka-error" == caught.value.kind


def test_overlong_length_inside_compressed_records() -> None:
    """It was the invalid argument that it is in an uncompressed batch, not an invalid record."""
    records = b"\xff" * 5 + b"\1"
    for codec, stored, error in (
        (0, records, InvalidArgumentError),
        (1, gzip.compress(records, mtime=0), InvalidRecordError),
    ):
        batch = read_batch(batch_of(0, stored, attributes=codec))
        with pytest.raises(error):
            list(batch.records())
        with pytest.raises(error):
            batch.check_records()


def test_an_unknown_isolation_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    """A consumer's word for it was only called unknown."""
    with PartitionLog.open(tmp_path / "t-0", LogConfig(), create=True) as log:
        for known in ("log_end", "high_watermark", "txn_committed"):
            assert log.read(0, 100, known).records is None
            with pytest.raises(InvalidArgumentError, match=rf"'read_committed' .*\b{known}\b"):
                log.read(0, 100, "read_committed")
        with pytest.raises(InvalidArgumentError, match="not one of replication, client, coord"):
            log.producer_state_manager.prepare_update(5, "broker")  # type: ignore[arg-type]


def test_the_package_says_its_version() -> None:
    """It was only known to the distribution."""
    assert segproof.__version__ == release()
    assert "__version__" in dir(segproof)
