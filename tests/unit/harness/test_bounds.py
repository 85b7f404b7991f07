# SPDX-License-Identifier: Apache-2.0
"""What a small file may ask of the verbs: bounds on what batches inflate to and records show."""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.compression import InflationBudget, compress, decompress
from segproof.errors import TooLargeError
from segproof.files import REAL_FILES, data_end, first_byte
from segproof.kafka.record_batch import Record, RecordHeader, write_batch
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.memory_files import MemoryFiles

NotRun = Callable[[str], None]

MIB = 1 << 20


def bomb(offset: int, compression: str) -> bytes:
    """Return a batch of about a thousand bytes that inflates to a little less than 1 MiB."""
    record = Record(offset, 1_700_000_000_000, None, bytes(MIB - 64))
    return write_batch([record], base_offset=offset, compression=compression)


def log(folder: Path, *batches: bytes) -> Path:
    """Write a partition of one segment."""
    partition = folder / "topic-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").write_bytes(b"".join(batches))
    return partition


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_budget_is_for_all_that_is_inflated(compression: str) -> None:
    """Bombs are refused once they took what all may take; what grows little is read after them."""
    large, small = bytes(MIB), bytes(range(256)) * 16
    budget = InflationBudget(MIB)
    packed = compress(compression, large)
    allowed = 2 + 128 * 20 * len(packed) // MIB
    for _ in range(allowed):
        with contextlib.suppress(TooLargeError):
            assert large == decompress(compression, packed, limit=budget)
    if len(packed) < MIB // 128:  # snappy and lz4 never shrink so much
        with pytest.raises(TooLargeError, match="and 128 more for each stored byte"):
            decompress(compression, packed, limit=budget)
    assert small == decompress(compression, compress(compression, small), limit=budget)


def test_a_file_of_bombs_is_verified_in_proportion_to_its_size(tmp_path: Path) -> None:
    """Sixty bombs of 64 MiB in 3.9 MB took a minute: now the others are named, none is silent."""
    partition = log(tmp_path, *(bomb(offset, "gzip") for offset in range(20)))
    found = [one for one in verify(partition, deep=True, limit=MIB) if one.is_defect]
    assert {"DISK-18"} == {one.law for one in found}
    assert 15 < len(found) < 20
    assert all("1048576 bytes, and 128 more" in one.message for one in found)
    assert all("--limit-bytes" in (one.hint or "") for one in found)
    assert [] == [one for one in verify(partition, deep=True) if one.is_defect]


def test_a_record_that_is_too_large_to_show_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two million headers took 784 MB: such a record is left out, and those behind it are shown."""
    header = RecordHeader("", None)
    partition = log(
        tmp_path,
        write_batch([Record(0, 1, None, b"", (header,) * 70_000)], base_offset=0),
        write_batch(
            [Record(1, 1, None, bytes(9 * MIB)), Record(2, 1, b"key", b"")],
            base_offset=1,
            compression="gzip",
        ),
    )
    assert 1 == cli.run(["dump", str(partition), "--records", "--format", "jsonl"])
    shown = capsys.readouterr()
    offsets = [row["offset"] for row in map(json.loads, shown.out.splitlines()) if "offset" in row]
    assert [2] == offsets
    assert "the record of offset 0, with 70000 headers, is not shown" in shown.err
    assert "the record of offset 1, of 9437184 bytes, is not shown" in shown.err
    assert 2 == shown.err.count("--limit-bytes")
    assert 0 == cli.run(["dump", str(partition), "--records", "--limit-bytes", str(10 * MIB)])


SPARSE_BYTES = 10 << 40


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_a_hole_is_not_read(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], not_run: NotRun
) -> None:
    """A sparse file of 10 TB kept the verbs busy for minutes: what is in no block is passed over.

    Without the hole's bounds this test takes hours; it asserts what is said of it.
    """
    partition = log(tmp_path, bomb(0, "zstd"))
    path = partition / f"00000000000000000000{suffix}"
    try:
        with path.open("ab") as file:
            file.truncate(SPARSE_BYTES)
    except OSError as error:
        not_run(f"the file system refuses a file of 10 TB: {error}")
    with path.open("rb") as file:
        if os.lseek(file.fileno(), path.stat().st_size - 1, os.SEEK_HOLE) >= SPARSE_BYTES:
            not_run("the file system tells no holes")
    assert any(one.path == str(path) for one in verify(partition))
    cli.run(["dump", str(partition)])
    shown = capsys.readouterr()
    assert ("too large" if suffix == ".log" else "behind the last") in shown.err
    for question in (("--offset", "0"), ("--timestamp", "0")):
        assert cli.run(["lookup", str(partition), *question]) in (0, 1)
    built = tmp_path / "built"
    cli.run(["rebuild", str(partition), "--out", str(built)])
    assert sum(each.stat().st_blocks * 512 for each in built.rglob("*")) < MIB


def test_data_ranges_of_real_files_and_of_memory(tmp_path: Path) -> None:
    """All bytes that are not zero lie in a range, on either kind of files."""
    memory = MemoryFiles()
    memory.make_directory("/a")
    for files, path in ((REAL_FILES, str(tmp_path / "file")), (memory, "/a/file")):
        file = files.open(path, writable=True, create=True)
        assert [] == list(file.data_ranges(0, 100))
        file.truncate(3 * MIB)
        assert first_byte(file, 0, 3 * MIB) is None
        file.pwrite(b"x", 2 * MIB)
        assert 2 * MIB == first_byte(file, 0, 3 * MIB)
        assert 2 * MIB == first_byte(file, 2 * MIB, 2 * MIB + 1)
        assert first_byte(file, 2 * MIB + 1, 3 * MIB) is None
        assert first_byte(file, 0, 2 * MIB) is None
        assert 2 * MIB < data_end(file) <= 3 * MIB
        file.close()
