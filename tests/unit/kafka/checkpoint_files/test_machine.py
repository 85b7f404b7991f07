# SPDX-License-Identifier: Apache-2.0
"""Text checkpoints and partition.metadata against their model, on drawn bytes and failing disks."""

import errno
import os
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.kafka import checkpoint_file, partition_metadata_file
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.watched_files import CHANGES, WatchedFiles
from segproof_harness.structures.outcomes import of_model, outcome_of
from segproof_model.kafka.broker.checkpoint_file import (
    LeaderEpochCheckpointFile,
    OffsetCheckpointFile,
    TopicPartitionOffset,
)
from segproof_model.kafka.broker.partition_metadata_file import (
    PartitionMetadata,
    PartitionMetadataFile,
)
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import apply, opened
from segproof_model.laws.kafka.broker import partition_metadata_file as metadata_laws  # noqa: F401
from segproof_model.laws.kafka.broker.checkpoint_file import Call, crash_leaves_old_or_new
from segproof_model.releases import RELEASES, SEGPROOF
from segproof_tests.model_steps import lawful

JUDGED = [one for one in RELEASES.values() if not one.name.startswith("rocketmq")]
NUMBERS = st.integers(-3, 9).map(str) | st.sampled_from(
    ["2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807",
     "9223372036854775808", "-9223372036854775808", "+5", "007", "", "x", "1_0", "0x1",
     "\u0663", "\uff11", "\U0001d7ce", "-", "+-1", "0" * 5000 + "1", "9" * 5000]
)  # fmt: skip
SPACES = st.sampled_from([" ", "  ", "\t", "\v", "\f", " \t", "\u00a0", "\x1c", ""])
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", ""])
TOPICS = st.text(max_size=4) | st.sampled_from(["t", "a.b", "__x", "a b", "a\nb", "\ud800", "\x85"])
PARSES: Any = {2: checkpoint_file.epoch_of, 3: checkpoint_file.OFFSET_FORMATTER.from_string}


def model_of(kind: Any, release: Release, images: dict[str, bytes]) -> Any:
    """Return a release's model of the file `file` among these."""
    return opened(release.kind(kind), Files(images), "file").after


def checkpoint_of(fields: int, release: Release, data: bytes) -> Any:
    """Return a release's model of a checkpoint with these bytes."""
    if fields == 2:
        return model_of(LeaderEpochCheckpointFile, release, {"file": data})
    return model_of(OffsetCheckpointFile, release, {"file": data}).checkpoint


def image_of(rows: list[tuple[int, ...]]) -> bytes:
    """Return a valid file."""
    return checkpoint_of(2, SEGPROOF, b"").image_of(rows)  # type: ignore[no-any-return]


@st.composite
def checkpoints(draw: st.DrawFn, fields: int) -> bytes:
    """Draw a file that is nearly a checkpoint: right but for some lines, and some bytes."""
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        row = [draw(NUMBERS) for _ in range(fields)]
        if draw(st.integers(0, 5)) == 0:
            row = row[: draw(st.integers(0, fields))] + ["7"] * draw(st.integers(0, 1))
        rows.append(draw(SPACES).join(row) + draw(st.sampled_from(["", "", " ", "\t "])))
    count = str(len(rows)) if draw(st.booleans()) else draw(NUMBERS)
    version = "0" if draw(st.integers(0, 3)) else draw(NUMBERS)
    text = "".join(line + draw(ENDS) for line in (version, count, *rows))
    data = text.encode()
    if draw(st.integers(0, 3)) == 0 and data:
        place = draw(st.integers(0, len(data) - 1))
        data = data[:place] + draw(st.binary(max_size=2)) + data[place + draw(st.integers(0, 2)) :]
    return data


def sound(fields: int) -> st.SearchStrategy[bytes]:
    """Draw a valid file, then change one byte of it, or none."""
    row = st.tuples(*[st.integers(0, 99)] * fields)
    files = st.lists(row, max_size=4).map(image_of)
    return st.tuples(files, st.integers(0, 40), st.none() | st.integers(0, 255)).map(changed)


def changed(drawn: tuple[bytes, int, int | None]) -> bytes:
    """Return the data with the byte at a place replaced, if one is given."""
    data, place, byte = drawn
    if byte is None or not data:
        return data
    place %= len(data)
    return data[:place] + bytes([byte]) + data[place + 1 :]


@pytest.mark.checks("CKPT-1", "CKPT-2", "CKPT-3")
@pytest.mark.parametrize("fields", [2, 3])
@given(data=st.data())
def test_reads(fields: int, data: st.DataObject) -> None:
    """Any bytes are read by both sides alike, and lawfully in every release."""
    content = data.draw(checkpoints(fields) | sound(fields) | st.binary(max_size=40))
    compare_reads(fields, content)


def compare_reads(fields: int, content: bytes) -> None:
    """Judge what every release reads; hold the implementation against segproof's model."""
    outcomes = {
        release: lawful(checkpoint_of(fields, release, content), "read").outcome
        for release in JUDGED
    }
    actual = outcome_of(lambda: checkpoint_file.read_checkpoint(content, PARSES[fields]))
    assert of_model(outcomes[SEGPROOF]) == actual


@pytest.mark.checks("CKPT-4")
@given(partition=NUMBERS.filter(bool), offset=NUMBERS.filter(bool))
def test_numbers_of_an_entry(partition: str, offset: str) -> None:
    """A field that is no number of its bits has an error of its own."""
    compare_reads(3, f"0\n1\nt {partition} {offset} \n".encode())


@pytest.mark.checks("CKPT-1", "CKPT-6")
@given(
    offsets=st.dictionaries(
        st.tuples(TOPICS, st.integers(-(2**31), 2**31)), st.integers(-(2**63), 2**63), max_size=4
    )
)
def test_writes(offsets: dict[tuple[str, int], int]) -> None:
    """What is written is read again, or refused; both sides write the same bytes."""
    files = MemoryFiles()
    files.make_directory("/d")
    file = checkpoint_file.OffsetCheckpointFile("/d/file", create=True, files=files)
    model = model_of(OffsetCheckpointFile, SEGPROOF, {})
    entries = [TopicPartitionOffset(*key, offset) for key, offset in offsets.items()]
    written = lawful(model.checkpoint, "write", entries=entries)
    step = apply(model, "write", offsets)
    assert step.outcome == written.outcome
    assert step.after.files == written.after.files
    assert of_model(step.outcome) == outcome_of(lambda: file.write(offsets))
    assert step.after.files.images == files.images("/d")
    lawful(step.after.checkpoint, "read")
    found = list(step.after.read().items())
    assert found == list(file.read().items())
    assert isinstance(step.outcome, Raised) or found == list(offsets.items())


NOTED = {"open": "create", "pwrite": "write", "sync_directory": "sync-directory"}
"""What the law calls a call, where it has another name."""


class RecordingFiles(WatchedFiles):
    """Files in memory that note each change, and fail at one of them, or at none."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.fails_at = -1

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Note a change that is about to be made, or raise."""
        if call not in CHANGES - {"create_new"} and arguments != (True,):
            return
        if len(self.calls) == self.fails_at:
            self.fails_at = -1
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        argument = arguments[0] if call in ("pwrite", "rename") else None
        told = bytes(argument) if isinstance(argument, memoryview) else argument
        self.calls.append((NOTED.get(call, call), path, told))


def write_checkpoint_file(files: MemoryFiles, number: int) -> None:
    """Write one offset to a checkpoint."""
    checkpoint_file.OffsetCheckpointFile("/d/file", create=True, files=files).write(
        {("t", 0): number}
    )


def write_metadata_file(files: MemoryFiles, number: int) -> None:
    """Write a topic id."""
    file = partition_metadata_file.PartitionMetadataFile("/d/file", create=True, files=files)
    file.write(uuid.UUID(int=number))


@pytest.mark.checks("CKPT-5")
@pytest.mark.parametrize("write", [write_checkpoint_file, write_metadata_file])
@given(numbers=st.tuples(st.integers(1, 2**63 - 1), st.integers(1, 99)), fails_at=st.integers(0, 9))
def test_crash_or_failure_of_a_write(
    write: Callable[[MemoryFiles, int], None], numbers: tuple[int, int], fails_at: int
) -> None:
    """Whichever call fails, the file has its old bytes or the new ones, and no `.tmp` stays."""
    whole = MemoryFiles()
    whole.make_directory("/d")
    write(whole, numbers[0])
    old = whole.images("/d")["file"]
    write(whole, numbers[1])
    new = whole.images("/d")["file"]
    files = RecordingFiles()
    files.make_directory("/d")
    write(files, numbers[0])
    files.calls.clear()
    files.fails_at = fails_at
    outcome = outcome_of(lambda: write(files, numbers[1]))
    assert (outcome.error is not None) == (fails_at < 6)
    assert crash_leaves_old_or_new("/d/file", new, files.calls)
    assert files.images("/d") == {"file": old if fails_at < 5 else new}
    if outcome.error is None:
        made = [call[0] for call in files.calls]
        assert ["create", "truncate", "write", "sync", "rename", "sync-directory"] == made


METADATA = st.tuples(
    st.sampled_from(["version", "x", ""]),
    st.sampled_from([": ", ": ", ":", ":\t ", "::  "]),
    NUMBERS,
    ENDS,
    st.sampled_from(["topic_id", "y"]),
    st.sampled_from([": ", ": ", ":", " : "]),
    st.text("AZaz09-_=+ ", max_size=25)
    | st.text("ABCwxyz09-_", min_size=22, max_size=22)
    | st.sampled_from(["A" * 22, "A" * 21 + "B", "A" * 21 + "Q", "A" * 22 + "=="]),
    st.sampled_from(["", "\n", "\nmore", " ", ": "]),
).map(lambda parts: "".join(parts).encode())


@pytest.mark.checks("META-1", "META-2")
@given(
    content=METADATA
    | st.binary(max_size=40)
    | st.tuples(
        st.binary(min_size=16, max_size=16).map(lambda raw: PartitionMetadata(0, raw).to_bytes()),
        st.integers(0, 44),
        st.none() | st.integers(0, 255),
    ).map(changed)
)
def test_metadata_reads(content: bytes) -> None:
    """Any bytes are read by both sides alike, and lawfully in every release."""
    outcomes = {
        release: lawful(model_of(PartitionMetadataFile, release, {"file": content}), "read").outcome
        for release in JUDGED
    }
    actual = outcome_of(lambda: _plain(partition_metadata_file.read_partition_metadata(content)))
    assert of_model(outcomes[SEGPROOF]) == actual


def _plain(metadata: Any) -> tuple[int, bytes]:
    return metadata.version, metadata.topic_id.bytes


@pytest.mark.checks("META-1", "META-2")
@given(number=st.integers(0, 2**128 - 1) | st.sampled_from([0, 1, 2**128 - 1]))
def test_metadata_writes(number: int) -> None:
    """Both sides write the same bytes, which are read again; neither writes the zero id."""
    files = MemoryFiles()
    files.make_directory("/d")
    topic_id = uuid.UUID(int=number)
    file = partition_metadata_file.PartitionMetadataFile("/d/file", create=True, files=files)
    model = model_of(PartitionMetadataFile, SEGPROOF, {})
    assert not model.exists()
    assert not file.exists()
    assert of_model(apply(model, "delete").outcome) == outcome_of(file.delete)
    assert of_model(apply(model, "read").outcome) == outcome_of(file.read)
    step = lawful(model, "write", topic_id=topic_id.bytes)
    assert of_model(step.outcome) == outcome_of(lambda: file.write(topic_id))
    assert step.after.files.images == files.images("/d")
    assert file.exists() == step.after.exists() == (number != 0)
    if number:
        assert (0, topic_id) == file.read()
        assert (0, topic_id.bytes) == lawful(step.after, "read").outcome
        file.delete()
        assert apply(step.after, "delete").after.files.images == files.images("/d") == {}
