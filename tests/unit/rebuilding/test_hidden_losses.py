# SPDX-License-Identifier: Apache-2.0
"""Losses that new indexes would hide: a rebuild refuses, and leaves what shows them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.kafka.batch_table import read_batch_headers
from segproof.repair import rebuild
from segproof_tests.older_copies import put_back
from segproof_tests.partition_files import (
    aged,
    batches_of,
    copied_partition,
    looked_at,
    name_of,
    rename_segment,
)
from segproof_tests.rows import paired
from segproof_tests.small_logs import batch

INDEXES = (".index", ".timeindex")


def cut(folder: Path, base: int, first: int, last: int | None) -> None:
    """Remove the batches with these numbers from a log."""
    log = folder / name_of(base, ".log")
    data = log.read_bytes()
    starts = [*read_batch_headers(data).table["position"].tolist(), len(data)]
    end = len(data) if last is None else starts[last]
    log.write_bytes(data[: starts[first]] + data[end:])


def without_indexes(folder: Path, base: int, *suffixes: str) -> None:
    """Remove batches from the middle of a closed log, and indexes of it."""
    cut(folder, base, 6, 8)
    for suffix in suffixes:
        (folder / name_of(base, suffix)).unlink()


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the middle, no index": ("DISK-63", lambda at: without_indexes(at, 252, *INDEXES)),
    "the middle": ("DISK-70", lambda at: without_indexes(at, 252)),
    "the end of a closed log": ("DISK-25", lambda at: cut(at, 252, 6, None)),
    "all of a closed log": ("DISK-25", lambda at: cut(at, 252, 0, None)),
    "an older copy": ("DISK-25", lambda at: put_back(at, 252, 8)),
    "the end of the last log": ("SEG-7", lambda at: cut(at, 693, 4, None)),
}


@pytest.mark.checks("DISK-63", "DISK-70", "DISK-25", "SEG-7")
@pytest.mark.parametrize(
    ("damage", "way"),
    [*paired(DAMAGES, ["in place"]), *paired(DAMAGES, ["all files", "out", "dry run"])],
)
def test_no_new_index_hides_a_loss(damage: str, way: str, tmp_path: Path) -> None:
    """It ended with 0, and `verify` said "sound" of what it had made."""
    law, make = DAMAGES[damage]
    folder = copied_partition("plain", tmp_path)
    make(folder)
    summary, _ = looked_at(folder)
    assert not summary.is_sound
    before = {path: path.read_bytes() for path in folder.iterdir()}
    out = None if way != "out" else tmp_path / "out" / folder.name
    done = rebuild(
        folder, out, in_place=out is None, all_files=way == "all files", dry_run=way == "dry run"
    )
    assert law in {one.law for one in done.findings}
    assert not any("segproof rebuild" in one.hint for one in done.findings)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
    assert out is None or not out.exists()
    assert looked_at(folder)[0] == summary


@pytest.mark.checks("DISK-25", "SEG-7")
def test_a_tail_that_is_cut_is_given_up(tmp_path: Path) -> None:
    """The caller has asked for a log without its end: it is told how many bytes that costs."""
    folder = copied_partition("plain", tmp_path)
    cut(folder, 693, 4, None)
    log = folder / name_of(693, ".log")
    log.write_bytes(log.read_bytes() + b"torn")
    done = rebuild(aged(folder), tmp_path / "out" / folder.name, cut_tail=True)
    assert (done.findings, done.cut_bytes) == ((), 4)


@pytest.mark.checks("BATCH-3", "DUMP-6", "DISK-6")
@pytest.mark.parametrize("is_last", [True, False])
def test_a_cut_leaves_no_sound_batch_out(is_last: bool, tmp_path: Path) -> None:
    """It left out all that follows a damaged batch, ended with 0, and kept the entries of an index
    with preallocated zeros: they led beyond the new log."""
    folder, out = copied_partition("plain", tmp_path), tmp_path / "out" / "plain-0"
    log = folder / name_of(693, ".log")
    data = bytearray(log.read_bytes())
    starts = read_batch_headers(bytes(data)).table["position"].tolist()
    data[starts[-1 if is_last else -4] + 70] ^= 1
    log.write_bytes(data[:-5] if is_last else data)
    for suffix, size in zip(INDEXES, (8, 12), strict=True):
        index = folder / name_of(693, suffix)
        index.write_bytes(index.read_bytes().rstrip(bytes(1)).ljust(size * 400, bytes(1)))
    done = rebuild(aged(folder), out, cut_tail=True)
    if not is_last:
        assert ["BATCH-3"] == [one.law for one in done.findings]
        assert not out.exists()
        return
    assert (done.findings, done.cut_bytes) == ((), len(data) - 5 - starts[-1])
    assert looked_at(out)[0].is_sound


def torn(last: bytes, values: bytes) -> bytes:
    """Return a batch in the place of the last one, cut off, with bytes in its value."""
    base = int.from_bytes(last[:8], "big")
    return batch(base, values + bytes(99))[:-9]


TAILS: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "a batch is torn": (lambda last: last[:-5], True),
    "batches lie in the value of a torn one": (
        lambda last: torn(last, batch(3)),
        True,
    ),
    "its size is wrong, and its checksum proves another": (
        lambda last: last[:10] + bytes([last[10] ^ 1]) + last[11:],
        False,
    ),
    "a batch with offsets of other logs follows it": (
        lambda last: b"?" * 70 + batch(3),
        False,
    ),
}


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("tail", TAILS)
def test_a_cut_leaves_out_only_what_is_no_batch(tail: str, tmp_path: Path) -> None:
    """All batches before the cut stay where they lie, and no batch is after it."""
    make, is_cut = TAILS[tail]
    folder, out = copied_partition("plain", tmp_path), tmp_path / "out" / "plain-0"
    log = folder / name_of(693, ".log")
    data = log.read_bytes()
    start = read_batch_headers(data).table["position"].tolist()[-1]
    log.write_bytes(data[:start] + make(data[start:]))
    done = rebuild(aged(folder), out, cut_tail=True)
    assert is_cut == (not done.findings) == out.exists()
    assert not any("--cut-tail" in one.hint for one in done.findings)
    assert not is_cut or (out / log.name).read_bytes() == data[:start]


@pytest.mark.checks("BATCH-3")
def test_copies_in_the_value_of_a_torn_batch_are_parts_of_it(tmp_path: Path) -> None:
    """A mirrored log has such values: their batches may be those that the log holds too."""
    folder, out = copied_partition("plain", tmp_path), tmp_path / "out" / "plain-0"
    log = folder / name_of(693, ".log")
    *whole, last = batches_of(log.read_bytes())
    log.write_bytes(b"".join(whole) + torn(last, b"".join(whole[:2])))
    done = rebuild(aged(folder), out, cut_tail=True)
    assert not done.findings
    assert (out / log.name).read_bytes() == b"".join(whole)


@pytest.mark.checks("SEG-7", "DISK-9")
@pytest.mark.parametrize("suffix", INDEXES)
@pytest.mark.parametrize("image", [bytes(range(1, 97)), b"\x7f" * 96])
def test_wild_bytes_are_no_lost_end(image: bytes, suffix: str, tmp_path: Path) -> None:
    """It was "at least 151652451 offsets lost", of an index that was overwritten."""
    folder = copied_partition("plain", tmp_path)
    (folder / name_of(693, suffix)).write_bytes(image)
    assert looked_at(folder)[0].lost_at_least == 0
    assert rebuild(folder, in_place=True).findings == ()
    assert looked_at(folder)[0].is_sound


def swapped(folder: Path, one: int, other: int) -> None:
    """Exchange the names of two logs."""
    rename_segment(folder, one, 1, ".log")
    rename_segment(folder, other, one, ".log")
    rename_segment(folder, 1, other, ".log")


NAMES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "the log alone, one too low": ("DISK-65", lambda at: rename_segment(at, 342, 341, ".log")),
    "the log alone, one too high": ("DISK-65", lambda at: rename_segment(at, 342, 343, ".log")),
    "the segment, one too low": (
        "DISK-65",
        lambda at: rename_segment(at, 342, 341, ".log", *INDEXES),
    ),
    "two logs": ("DISK-62", lambda at: swapped(at, 252, 342)),
}


@pytest.mark.checks("DISK-62", "DISK-65")
@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("way", ["in place", "out"])
def test_no_index_is_made_for_a_wrong_name(case: str, way: str, tmp_path: Path) -> None:
    """It made indexes for the wrong name and ended with 0, or said "roll a new segment"."""
    law, make = NAMES[case]
    folder = copied_partition("plain", tmp_path)
    make(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    out = None if way == "in place" else tmp_path / "out" / folder.name
    done = rebuild(aged(folder), out, in_place=out is None)
    assert {law} == {one.law for one in done.findings}
    assert all("segproof salvage" in one.hint for one in done.findings)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
    assert out is None or not out.exists()
