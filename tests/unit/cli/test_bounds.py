# SPDX-License-Identifier: Apache-2.0
"""What a small file may ask of the verbs: bounds on what batches inflate to and records show."""

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from segproof.compression import Inflation
from segproof.files import REAL_FILES, data_end, first_byte
from segproof.kafka import Record, RecordHeader, write_batch
from segproof.kafka.record_batch import read_batch
from segproof.kernels.dispatch import Kernel
from segproof.kernels.legacy_records import walk_legacy_messages
from segproof.kernels.records import next_header
from segproof.repair import rebuild_index
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.memory_stores import message_of, write_log
from segproof_model.kafka.format.compression import (
    GZIP,
    LZ4,
    LZ4_FLAGS,
    LZ4_MAGIC,
    SNAPPY,
    SNAPPY_HEADER,
    inflate,
    inflate_until_damage,
)
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.small_logs import batch

NotRun = Callable[[str], None]

MIB = 1 << 20


def bomb(offset: int, compression: str, size_bytes: int = MIB - 64, magic: int = 2) -> bytes:
    """Return a batch with one record of zeros: about a thousand bytes for each MiB."""
    record = Record(offset, 1_700_000_000_000, None, bytes(size_bytes))
    return write_batch([record], base_offset=offset, compression=compression, magic=magic)


def log(folder: Path, *batches: bytes) -> Path:
    """Write a partition of one segment."""
    partition = folder / "topic-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").write_bytes(b"".join(batches))
    return partition


def test_what_a_batch_may_inflate_to_goes_by_its_size() -> None:
    """So bombs cost in proportion to their bytes, and each batch is judged by itself."""
    assert [MIB, MIB, 16 * MIB, 64 * MIB] == [
        Inflation().limit_of(size) for size in (61, MIB // 128, MIB // 8, 100 * MIB)
    ]
    assert MIB == Inflation(MIB).limit_of(100 * MIB)


def test_the_batches_of_a_file_share_what_bombs_take() -> None:
    """Each small batch might take the least limit: 1 MiB of them were 8 GiB, and once 24."""
    inflation = Inflation()
    inflation.count(100, 12_800)
    inflation.count(MIB, 128 * MIB)
    assert [MIB] * 64 == [take_all(inflation, 0) for _ in range(64)]
    assert [12_800, 12_800] == [take_all(inflation, 100) for _ in range(2)]
    assert 64 * MIB == inflation.limit_of(MIB)
    wished = Inflation(9 * MIB)
    assert [9 * MIB] * 20 == [take_all(wished, 100) for _ in range(20)]


def take_all(inflation: Inflation, stored_bytes: int) -> int:
    """Inflate a batch to its limit."""
    limit = inflation.limit_of(stored_bytes)
    inflation.count(stored_bytes, limit)
    return limit


@pytest.mark.parametrize("is_refused", [False, True])
def test_verify_and_dump_count_what_they_inflate(
    is_refused: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    """Eight bombs in a thousand bytes: what is allowed beyond their sizes is soon used up."""
    monkeypatch.setattr("segproof.compression.UNCOMPRESSED_LIMIT_BYTES", 4 * MIB)
    size = 2 * MIB if is_refused else MIB - 64
    partition = log(tmp_path, *(bomb(offset, "zstd", size) for offset in range(8)))
    found = [one for one in verify(partition, deep=True, jobs=1) if one.is_defect]
    least = 0 if is_refused else 4
    assert 8 - least == len(found)
    assert {"DISK-18"} == {one.law for one in found}
    limits = [int(str(one.expected).split()[2]) for one in found]
    assert 40_000 > limits[-1]
    assert (4 if is_refused else 0) == limits.count(MIB)
    command = ["dump", str(partition), "--records", "--format", "jsonl"]
    assert 1 == cli.run([*command, "--on-damage", "skip"])
    shown = capsys.readouterr()
    assert least == shown.out.count('"headers"')
    assert 8 - least == shown.err.count("--limit-bytes")
    assert 0 == cli.run(["dump", str(partition), "--records", "--limit-bytes", str(4 * MIB)])


def test_a_file_of_bombs_is_verified_in_proportion_to_its_size(tmp_path: Path) -> None:
    """Sixty bombs of 64 MiB in 3.9 MB took a minute: now each is named, and none is inflated."""
    partition = log(tmp_path, *(bomb(offset, "gzip", 9 * MIB) for offset in range(3)))
    found = [one for one in verify(partition, deep=True) if one.is_defect]
    assert ["DISK-18"] * 3 == [one.law for one in found]
    limits = [int(str(one.expected).split()[2]) for one in found]
    assert all(MIB <= limit < 2 * MIB for limit in limits)
    assert all("--limit-bytes" in (one.hint or "") for one in found)
    assert [] == [one for one in verify(partition, deep=True, limit=16 * MIB) if one.is_defect]


def test_a_record_that_is_too_large_to_show_is_named(tmp_path: Path, capsys: Capsys) -> None:
    """Two million headers took 784 MB: such a record is left out, and those behind it are shown."""
    header = RecordHeader("", None)
    partition = log(
        tmp_path,
        write_batch([Record(0, 1, None, b"", (header,) * 70_000)], base_offset=0),
        write_batch(
            [Record(1, 1, None, bytes(9 * MIB)), Record(2, 1, b"key", b"")],
            base_offset=1,
        ),
    )
    command = ["dump", str(partition), "--records", "--format", "jsonl"]
    assert 1 == cli.run([*command, "--on-damage", "skip"])
    shown = capsys.readouterr()
    offsets = [row["offset"] for row in map(json.loads, shown.out.splitlines()) if "offset" in row]
    assert [2] == offsets
    assert "the record of offset 0, with 70000 headers, is not shown" in shown.err
    assert "the record of offset 1, of 9437184 bytes, is not shown" in shown.err
    assert 2 == shown.err.count("--limit-bytes")
    assert 0 == cli.run(["dump", str(partition), "--records", "--limit-bytes", str(10 * MIB)])


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_profile_reads_no_batch_beyond_a_limit(
    compression: str, tmp_path: Path, capsys: Capsys
) -> None:
    """A gzip batch of 39 KB took a GB: the model's records are objects, each with its own."""
    small = batch(1, b"", b"key")
    partition = log(tmp_path, bomb(0, compression, 4 * MIB), small)
    for suffix in ("index", "timeindex"):
        (partition / f"00000000000000000000.{suffix}").touch()
    profile = ("--profile", "kafka-4.3.1")
    shown = ("dump", str(partition), "--records", "--format", "jsonl", *profile)
    assert 1 == cli.run([*shown, "--on-damage", "keep"])
    found = capsys.readouterr()
    rows = [row for row in map(json.loads, found.out.splitlines()) if "offset" in row]
    assert [1] == [row["offset"] for row in rows if "headers" in row]
    assert "byte 0" in found.err
    assert "more than 3145728 bytes" in found.err
    assert "--limit-bytes" in found.err
    assert 0 == cli.run([*shown, "--limit-bytes", str(8 * MIB)])
    capsys.readouterr()
    (partition / "00000000000000000000.timeindex").write_bytes(bytes(6) + b"\xff" * 2 + bytes(4))
    assert 1 == cli.run(["lookup", str(partition), "--timestamp", "1", *profile])
    assert "more than 3145728 bytes" in capsys.readouterr().out
    (partition / "00000000000000000000.timeindex").unlink()
    cli.run(["verify", str(partition), "--against", "model"])
    assert "model: not run" in capsys.readouterr().err


def test_what_a_message_wraps_is_counted_within_the_limit(tmp_path: Path, capsys: Capsys) -> None:
    """Its offset and its count are in what it inflates to: 10 MB of bombs took a minute."""
    partition = log(tmp_path, bomb(7, "gzip", 9 * MIB, magic=1))
    shown = ("dump", str(partition), "--format", "jsonl")
    for more, base_offset, count in (((), None, None), (("--limit-bytes", str(16 * MIB)), 7, 1)):
        assert 0 == cli.run([*shown, *more])
        row = json.loads(capsys.readouterr().out)
        assert (base_offset, 7, count) == (
            row["base_offset"], row["last_offset"], row["record_count"],
        )  # fmt: skip


def test_a_profile_shows_no_record_with_too_many_headers(tmp_path: Path, capsys: Capsys) -> None:
    """The row of a record takes several times the memory of its headers."""
    record = Record(0, 1, None, b"", (RecordHeader("", None),) * 70_000)
    partition = log(tmp_path, write_batch([record, Record(1, 1, None, b"")], base_offset=0))
    shown = ("dump", str(partition), "--records", "--format", "jsonl", "--profile", "kafka-4.3.1")
    assert 1 == cli.run([*shown, "--on-damage", "keep"])
    found = capsys.readouterr()
    assert '"offset": 1' in found.out
    assert "the record of offset 0, with 70000 headers, is not shown" in found.err
    assert 0 == cli.run([*shown, "--limit-bytes", str(MIB)])


def test_headers_and_plain_messages_cost_few_calls_of_kernels() -> None:
    """A kernel that is called for each header, or thrice for each message, took seconds a MB."""
    headers = (RecordHeader("a", b"b"), RecordHeader("", None)) * 500
    columns = read_batch(
        write_batch([Record(0, 1, None, b"", headers)], base_offset=0)
    ).record_columns()
    before = next_header._work
    assert headers == columns.headers(0)
    assert 1000 * 2 + 500 * 2 == columns.size_bytes(0, 1000)
    assert before == next_header._work
    message = read_batch(batch(7, key=b"k", magic=1))
    before = walk_legacy_messages._work
    assert 7 == message.base_offset
    assert 1 == len(message.record_columns())
    assert 1 >= walk_legacy_messages._work - before


def test_tiny_members_and_blocks_are_inflated_one_by_one() -> None:
    """What was left over was copied for each of them: 4 MB of nothing took minutes."""
    count = 200_000
    members = zlib.compress(b"a", wbits=31) + zlib.compress(b"", wbits=31) * count
    assert b"a" == inflate(GZIP, members, 2, CODECS)
    block = bytes(cramjam.snappy.compress_raw(b"a"))
    blocks = (len(block).to_bytes(4, "big") + block) * count
    assert b"a" * count == inflate(SNAPPY, SNAPPY_HEADER + blocks, 2, CODECS)
    frame = LZ4_MAGIC + bytes([LZ4_FLAGS, 64, 0]) + b"\1\0\0\x80a" * count + bytes(4)
    assert b"a" * count == inflate(LZ4, frame, 0, CODECS)
    data = zlib.compress(bytes(range(256)) * 40, 0, wbits=31)
    assert bytes(range(256)) * 80 == inflate(GZIP, data * 2, 2, CODECS)
    for cut in (data[:-5], data[:-1] + b"\1"):
        found = inflate_until_damage(GZIP, data + cut, 2, CODECS)
        assert (bytes(range(256)) * 80, True) == found


def test_a_snappy_block_that_states_too_much_is_damaged() -> None:
    """It can't grow to that, and is no question of a limit; releases answer for it."""
    for stated in (b"\x80\x80\x80\x40", b"\xff\xff\xff\xff\x0f"):
        found = outcome_of(inflate, SNAPPY, stated + b"\0a", 2, CODECS)
        assert Raised(ErrorKind.KAFKA_ERROR) == found
    block = bytes(cramjam.snappy.compress_raw(bytes(60 * MIB)))
    assert bytes(60 * MIB) == inflate(SNAPPY, block, 2, CODECS)


SPARSE_BYTES = 10 << 40


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_a_hole_is_not_read(suffix: str, tmp_path: Path, capsys: Capsys, not_run: NotRun) -> None:
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
    if suffix != ".log":
        with path.open("r+b") as file:
            file.seek(SPARSE_BYTES)
            file.write(b"x" * 40)
        cli.run(["dump", str(path)])
        assert "behind a hole, are not shown" in capsys.readouterr().err
    for question in (("--offset", "0"), ("--timestamp", "0")):
        assert cli.run(["lookup", str(partition), *question]) in (0, 1)
    built = tmp_path / "built"
    cli.run(["rebuild", str(partition), "--out", str(built)])
    assert sum(each.stat().st_blocks * 512 for each in built.rglob("*")) < MIB


def test_the_hole_of_a_log_of_rocketmq_is_no_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
    not_run: NotRun,
) -> None:
    """For twelve messages and a hole of 10 TB the kernels were compiled, in 17 s."""
    store = tmp_path / "store"
    messages = [message_of("T", {"KEYS": "k"}) for _ in range(12)]
    write_log(REAL_FILES, str(store), messages, 10_000)
    log_file = store / "commitlog" / "00000000000000000000"
    try:
        os.truncate(log_file, SPARSE_BYTES)
    except OSError as error:
        not_run(f"the file system refuses a file of 10 TB: {error}")
    with log_file.open("rb") as file:
        if os.lseek(file.fileno(), SPARSE_BYTES - 1, os.SEEK_HOLE) >= SPARSE_BYTES:
            not_run("the file system tells no holes")
    announced: list[int] = []
    monkeypatch.setattr(Kernel, "announce", lambda _, work: announced.append(work))
    assert 12 == rebuild_index(store, tmp_path / "built", 8, 50).messages
    assert 1000 > max(announced)
    assert 1 == cli.run(["dump", str(log_file), "--profile", "rocketmq-4.9.8"])
    assert "not read into memory" in capsys.readouterr().err


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
