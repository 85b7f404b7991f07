# SPDX-License-Identifier: Apache-2.0
"""Kafka's own dump tool on what segproof writes: it says what `dump` and `verify` say.

The tool is that of 4.2.1; that of 4.3.1 has two defects of its own, one of which is shown here.
"""

import base64
import json
import shutil
import struct
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.kafka import LogConfig, LogSegment, WriteFormat, read_snapshot
from segproof.reading.file_names import segment_file
from segproof.verification import verify
from segproof_harness.reading.log_file_rows import Shown
from segproof_harness.reading.segment_file_rows import rows_of
from segproof_harness.releases.dump_tool import batch_of, dump_tool
from segproof_harness.releases.jars import class_path
from segproof_harness.releases.pinned import RELEASES, TOOLS
from segproof_harness.releases.written_logs import TOPICS, write_logs
from segproof_tests.small_logs import batch

pytestmark = pytest.mark.needs("java")

COMMAND = (sys.executable, "-m", "segproof_harness.cli")
TOOL = RELEASES["kafka-4.2.1"]
RECORDS_MAX = 12
"""A batch that we write for these tests has no more records."""
TIMES = ("CreateTime", "LogAppendTime", "NoTimestampType")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory, not_run: Any) -> Path:
    """The logs that segproof writes for a broker."""
    try:
        class_path(TOOL)
        class_path(TOOLS)
    except FileNotFoundError as error:
        not_run(str(error))
    folder = tmp_path_factory.mktemp("dumped")
    write_logs(folder, {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in TOPICS})
    return folder


def files_of(disk: Path, suffix: str) -> list[Path]:
    """Return all files with a suffix, which is the end of a name."""
    found = sorted(disk.glob(f"*-0/*{suffix}"))
    assert found
    return found


def dumped(path: Path) -> list[dict[str, Any]]:
    """Return the rows of `segproof dump`, by the command line."""
    told = subprocess.run(
        [*COMMAND, "dump", str(path), "--format", "jsonl"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in told.stdout.splitlines()]


@pytest.mark.checks("BATCH-1", "BATCH-6")
def test_batches_and_records_are_told_alike(disk: Path) -> None:
    """Each batch with its header and checksum, each record with its sizes, of every file."""
    files = files_of(disk, ".log")
    told = dump_tool(TOOL, files, "--deep-iteration", "--print-data-log")
    assert told.complaints == []
    records = 0
    for path in files:
        file = segment_file(str(path))
        assert file is not None
        ours = [*rows_of(file, Shown(with_records=True))]
        theirs = told.rows[str(path)]
        assert [int(row["offset"]) for row in theirs if "|" in row] == [
            row["offset"] for row in ours if "magic" not in row
        ]
        batches = [batch_of(row) for row in theirs if "|" not in row and "position" in row]
        shown = [row for row in ours if "magic" in row]
        assert len(batches) == len(shown)
        for mine, its in zip(shown, batches, strict=True):
            assert {name: mine[name] for name in its} == its
        for mine, its in zip(
            (row for row in ours if "magic" not in row),
            (row for row in theirs if "|" in row),
            strict=True,
        ):
            records += 1
            assert record_of(mine) == its_record(its)
    assert records > 3000


def record_of(row: dict[str, Any]) -> tuple[object, ...]:
    """Return what the tool can say of one of our rows."""
    sizes = [
        -1 if row[name] is None else len(base64.b64decode(row[name])) for name in ("key", "value")
    ]
    names = ",".join(header["key"] for header in row["headers"])
    return (row["offset"], row["timestamp"], *sizes, f"[{names}]")


def its_record(row: dict[str, str]) -> tuple[object, ...]:
    """Return the same of one of the tool's rows."""
    (kind,) = [name for name in TIMES if name in row]
    sizes = int(row["keySize"]), int(row["valueSize"])
    return (int(row["offset"]), int(row[kind]), *sizes, row.get("headerKeys", "[]"))


@pytest.mark.parametrize(
    ("suffix", "names"),
    [
        ("[0-9].index", {"offset": "offset", "position": "position"}),
        (".timeindex", {"timestamp": "timestamp", "offset": "offset"}),
        (
            ".txnindex",
            {
                "producer_id": "producerId",
                "first_offset": "firstOffset",
                "last_offset": "lastOffset",
                "last_stable_offset": "lastStableOffset",
            },
        ),
    ],
)
@pytest.mark.checks("OFFIDX-1", "TIMEIDX-1", "TXNIDX-1")
def test_entries_are_told_alike(suffix: str, names: dict[str, str], disk: Path) -> None:
    """Each entry of each index; and the tool, comparing them with their logs, has no complaint."""
    files = files_of(disk, suffix)
    told = dump_tool(TOOL, files)
    assert told.complaints == []
    count = 0
    for path in files:
        file = segment_file(str(path))
        assert file is not None
        ours = [{name: row[name] for name in names} for row in rows_of(file)]
        rows = told.rows[str(path)]
        theirs = [{name: int(row[its]) for name, its in names.items()} for row in rows]
        assert ours == theirs, path
        count += len(ours)
    assert count > 20
    first = next(path for path in files if path.stat().st_size)
    assert [{name: row[name] for name in names} for row in dumped(first)] == [
        {name: int(row[its]) for name, its in names.items()} for row in told.rows[str(first)]
    ]


@pytest.mark.checks("PROD-1", "PROD-2")
def test_producers_are_told_alike(disk: Path) -> None:
    """Each entry of each snapshot."""
    files = files_of(disk, ".snapshot")
    told = dump_tool(TOOL, files)
    assert told.complaints == []
    for path in files:
        ours = [
            (
                one.producer_id,
                one.producer_epoch,
                one.coordinator_epoch,
                one.current_txn_first_offset,
                one.last_timestamp,
                one.last_seq,
                one.last_offset,
            )
            for one in read_snapshot(path.read_bytes())
        ]
        theirs = [
            (
                int(row["producerId"]),
                int(row["producerEpoch"]),
                int(row["coordinatorEpoch"]),
                optional(row["currentTxnFirstOffset"]),
                int(row["lastTimestamp"]),
                int(row.get("lastSequence", -1)),
                int(row.get("lastOffset", -1)),
            )
            for row in told.rows[str(path)]
        ]
        assert sorted(ours) == sorted(theirs), path


def optional(text: str) -> int | None:
    """Read what Java calls an OptionalLong."""
    return None if text == "OptionalLong.empty" else int(text[len("OptionalLong[") : -1])


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only"])
def test_the_tool_and_verify_find_nothing(option: str, disk: Path) -> None:
    """Sound files are sound to both."""
    files = [*files_of(disk, "[0-9].index"), *files_of(disk, ".timeindex")]
    told = dump_tool(TOOL, files, option)
    assert (told.complaints, told.returncode) == ([], 0)
    if option == "--index-sanity-check":
        assert len(files) == told.stdout.count(" passed sanity check.")
    assert [one for one in verify(disk, deep=True) if one.is_defect] == []


def edit(path: Path, position: int, data: bytes) -> None:
    """Write some bytes over others."""
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)


def cut(path: Path, count: int) -> None:
    """Take bytes away at the end."""
    path.write_bytes(path.read_bytes()[:-count])


def add(path: Path, position: int, layout: str, delta: int) -> None:
    """Add to a number of a file."""
    (value,) = struct.unpack_from(layout, path.read_bytes(), position)
    edit(path, position, struct.pack(layout, value + delta))


DAMAGES: dict[str, tuple[str, Callable[[Path], None], tuple[str, ...], str]] = {
    "a flipped byte of a batch": (
        ".log",
        lambda path: edit(path, 70, bytes([path.read_bytes()[70] ^ 1])),
        ("--deep-iteration",),
        "BATCH-3",
    ),
    "a log cut inside its last batch": (
        ".log",
        lambda path: cut(path, 9),
        ("--deep-iteration",),
        "DUMP-6",
    ),
    "an offset index that points astray": (
        ".index",
        lambda path: add(path, 12, ">i", 5),
        ("--verify-index-only",),
        "SEG-7",
    ),
    "an offset index that points behind what it names": (
        ".index",
        lambda path: add(path, 0, ">i", -RECORDS_MAX),
        ("--verify-index-only",),
        "SEG-7",
    ),
    "an offset index of an odd length": (
        ".index",
        lambda path: cut(path, 3),
        ("--index-sanity-check",),
        "OFFIDX-1",
    ),
    "a time index with another timestamp": (
        ".timeindex",
        lambda path: add(path, 12, ">q", 1),
        ("--verify-index-only",),
        "DISK-9",
    ),
    "a time index out of order": (
        ".timeindex",
        lambda path: add(path, 24, ">q", -100_000),
        (),
        "TIMEIDX-7",
    ),
    "a snapshot with another checksum": (
        ".snapshot",
        lambda path: add(path, 2, ">I", -1),
        (),
        "PROD-3",
    ),
}


def chosen(partition: Path, what: str) -> Path:
    """Return the file of a partition that a damage is done to."""
    return sorted(partition.glob(f"*{DAMAGES[what][0]}"))[2]


@pytest.mark.parametrize("options", {each[2]: None for each in DAMAGES.values()})
def test_the_tool_does_not_complain_before_the_damage(options: tuple[str, ...], disk: Path) -> None:
    """Each file, as long as it is sound."""
    asked = [what for what, each in DAMAGES.items() if each[2] == options]
    files = {chosen(disk / "transactions-0", what) for what in asked}
    assert dump_tool(TOOL, sorted(files), *options).complaints == []


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_seen_by_both(what: str, disk: Path, tmp_path: Path) -> None:
    """Where the tool can see a damage, so does `verify`, in the same file."""
    _, harm, options, law = DAMAGES[what]
    partition = tmp_path / "transactions-0"
    shutil.copytree(disk / partition.name, partition)
    path = chosen(partition, what)
    harm(path)
    told = dump_tool(TOOL, [path], *options)
    assert told.complaints
    found = [one for one in verify(partition, deep=True) if one.is_defect]
    assert (law, str(path)) in {(one.law, one.path) for one in found}, found


@pytest.mark.needs(TOOL.name)
def test_the_tool_blames_sound_indexes_of_older_releases(tmp_path: Path) -> None:
    """Up to 3.9.0, and in 4.0.0, an append of several batches gets one entry: of its last offset.

    The entry leads to the first of the batches, and no lookup goes astray: `verify` is content. The
    tool wants the last offset of that batch, and reports a mismatch.
    """
    partition = tmp_path / "t-0"
    partition.mkdir()
    config, form = LogConfig(index_interval_bytes=100), WriteFormat(entries="append")
    with LogSegment.open(partition, 0, config, write_format=form, create=True) as segment:
        for first in range(0, 40, 4):
            offsets = range(first, first + 4)
            batches = [batch(n, key=b"k") for n in offsets]
            segment.append(first + 3, b"".join(batches))
    files = sorted(partition.glob("*.index"))
    assert dump_tool(TOOL, files, "--verify-index-only").complaints
    assert [one for one in verify(partition, deep=True) if one.is_defect] == []


def test_the_newest_tool_complains_of_sound_logs(disk: Path) -> None:
    """A defect of 4.3.1: of each log that does not begin at offset 0 it says that offsets are gone.

    `Non-consecutive offsets: -1 is followed by BASE`. 4.2.1 says nothing. When this fails with a
    newer release, that one can be the tool of these tests.
    """
    files = sorted((disk / "transactions-0").glob("*.log"))
    old = dump_tool(TOOL, files, "--deep-iteration")
    new = dump_tool(TOOLS, files, "--deep-iteration")
    assert old.complaints == []
    assert len(files) - 1 == len(new.complaints)
    for path in files[1:]:
        assert f"-1 is followed by {int(path.stem)}" in new.stderr
