# SPDX-License-Identifier: Apache-2.0
"""Commit logs on disk, framed and placed: the facts are right, and the decision asks for enough."""

import struct
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from segproof.files import REAL_FILES
from segproof.reading.placed_log import placed
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, log_file_name
from segproof.rocketmq.message import encode_message
from segproof.stretches.rocketmq.desk import KEEPING, Fate, Placement
from segproof.stretches.rocketmq.facts import Facts, joined
from segproof.stretches.rocketmq.framing import LogReading
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import log_images, message_of
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.store_files import LOG_BYTES, drawn_messages, long_store


def log_of(store: Path) -> CommitLog:
    """Return the log of a store whose files have LOG_BYTES."""
    return CommitLog.open(store, LOG_BYTES)


def in_detail(store: Path, facts: Facts) -> Facts:
    """Return facts with a row for each message."""
    many = np.flatnonzero(facts.rows["messages"] > 1).tolist()
    return LogReading(log_of(store), REAL_FILES).messages(facts, many)


def kept_in(store: Path) -> tuple[Placement, list[tuple[int, int]]]:
    """Return the placement of a store's log; mark and offset of each message that is kept."""
    found = placed(log_of(store), REAL_FILES)
    whole, kept = in_detail(store, found.facts).rows, list[tuple[int, int]]()
    for row in found.kept.tolist():
        one = found.facts.rows[row]
        is_in = (whole["file"] == one["file"]) & (one["start"] <= whole["start"])
        is_in &= whole["end"] <= one["end"]
        by = int(found.offsets[row] - one["said"])
        kept += zip(
            whole["mark"][is_in].tolist(), (whole["said"][is_in] + by).tolist(), strict=True
        )
    return found, kept


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store whose log has several files."""
    return long_store(tmp_path / "store", 24)


def files_of(store: Path) -> list[Path]:
    """Return the files of a log in order."""
    return sorted((store / COMMIT_LOG).iterdir())


def test_a_sound_log_has_a_row_for_each_file(store: Path) -> None:
    """All of it is kept, in detail it is the same log."""
    found, kept = kept_in(store)
    assert found.facts.rows["messages"].sum() == len(kept) == 24
    assert len(found.facts.rows) == len(found.facts.files) > 2
    assert set(found.fates.tolist()) == {Fate.KEPT}
    detailed = in_detail(store, found.facts).rows
    assert len(detailed) == 24
    assert (joined(detailed) == found.facts.rows).all()
    assert [one.blank_from is None for one in found.facts.files][:-1] == [False] * (
        len(found.facts.files) - 1
    )


def test_files_with_each_others_names_keep_all_messages(store: Path) -> None:
    """Each at its own offset."""
    _, before = kept_in(store)
    one, other = files_of(store)[1:3]
    data = one.read_bytes(), other.read_bytes()
    one.write_bytes(data[1])
    other.write_bytes(data[0])
    found, kept = kept_in(store)
    assert kept == before
    assert {Fate(fate) for fate in found.fates.tolist()} == {Fate.KEPT, Fate.MOVED}


@pytest.mark.parametrize("count", [8, -8, 512])
def test_messages_after_bytes_that_were_put_in_or_taken_out(store: Path, count: int) -> None:
    """All that are whole are kept at their own offsets."""
    _, before = kept_in(store)
    path = files_of(store)[1]
    data = path.read_bytes()
    at = 700
    there = data[:at] + bytes(count) + data[at:] if count > 0 else data[:at] + data[at - count :]
    path.write_bytes(there[:LOG_BYTES].ljust(LOG_BYTES, b"\0"))
    _, kept = kept_in(store)
    assert {*kept} <= {*before}
    whole = [one for one in before if one[1] < LOG_BYTES or one[1] >= 2 * LOG_BYTES]
    assert {*whole} <= {*kept}
    assert len(kept) >= len(before) - 4  # the broken one, and those that left the file


def test_a_copy_of_a_file_is_left(store: Path) -> None:
    """Nothing of it is kept twice."""
    _, before = kept_in(store)
    paths = files_of(store)
    last = paths[-1]
    (last.parent / log_file_name(int(last.name) + LOG_BYTES)).write_bytes(paths[1].read_bytes())
    found, kept = kept_in(store)
    assert kept == before
    assert Fate.COPY in found.fates.tolist()


def test_a_log_in_a_broken_body_is_left(tmp_path: Path) -> None:
    """What a message carries is not what the log has."""
    inner = [one for image in log_images(drawn_messages(3), 4096, 1 << 20).values()
             for one in [image.rstrip(b"\0")]]  # fmt: skip
    messages = [message_of(body=b"first"), message_of(body=b"x" + inner[0]), message_of(body=b"z")]
    ((name, image),) = log_images(messages, 4096).items()
    broken = image.replace(b"x" + inner[0][:4], b"y" + inner[0][:4], 1)
    write_file(REAL_FILES, str(tmp_path / COMMIT_LOG / name), broken)
    found = placed(CommitLog.open(tmp_path, 4096), REAL_FILES)
    assert [Fate(fate) for fate in found.fates.tolist()] == [Fate.KEPT, Fate.INSIDE, Fate.KEPT]
    assert found.facts.rows["messages"].tolist() == [1, 3, 1]


def test_a_wrong_clock_moves_no_message(store: Path) -> None:
    """Store times have no checksum, and decide no place."""
    _, before = kept_in(store)
    path = files_of(store)[1]
    put_bytes(path, 56, struct.pack(">q", 1))
    _, kept = kept_in(store)
    assert [offset for _, offset in kept] == [offset for _, offset in before]


def test_a_saved_store_is_placed_as_it_lies(store: Path, tmp_path: Path) -> None:
    """What stands in the place of lost messages is no message."""
    path = files_of(store)[1]
    put_bytes(path, 300, bytes(400))
    before = kept_in(store)[1]
    out = tmp_path / "out"
    saved = salvage_store(store, out, mapped_file_size=LOG_BYTES)
    found, kept = kept_in(out)
    assert [offset for _, offset in kept] == [offset for _, offset in before]
    assert len(kept) == saved.messages
    assert {Fate(fate) for fate in found.fates.tolist()} == {Fate.KEPT, Fate.FILLER}


def test_a_message_without_the_body_of_its_checksum_is_none(tmp_path: Path) -> None:
    """A broker reads it, and consumers get an empty body."""
    messages = [message_of(body=b"first"), message_of(body=b""), message_of(body=b"last")]
    ((name, image),) = log_images(messages, 4096).items()
    at = len(encode_message(replace(messages[0], physical_offset=0)))
    data = bytearray(image)
    data[at + 8 : at + 12] = (crc32(b"gone") & 0x7FFFFFFF).to_bytes(4, "big")
    write_file(REAL_FILES, str(tmp_path / COMMIT_LOG / name), bytes(data))
    found = placed(CommitLog.open(tmp_path, 4096), REAL_FILES)
    assert found.facts.rows["messages"].tolist() == [1, 1]
    assert all(fate in KEEPING for fate in found.fates.tolist())
    empty = len(encode_message(messages[1]))
    assert (found.gaps[0].start, found.gaps[0].end) == (at, at + empty)
