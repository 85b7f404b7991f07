# SPDX-License-Identifier: Apache-2.0
"""What `verify` says of parts that are gone or met twice, against the model, on drawn files.

The machine of test_verification.py damages small files; these laws speak of large stretches and of
directories, so here logs and indexes are drawn in whole batches and entries.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from segproof.files import FileStatus
from segproof.kafka import Record, write_batch, write_empty_batch
from segproof.verification import verify
from segproof_harness.files.codecs import CODECS
from segproof_harness.laws.borders.log_files import marker, offset_entries, time_entries
from segproof_harness.laws.judged_directory import DirectoryJudge
from segproof_model.laws.kafka.broker.partition_on_disk import (
    directories_are_met_once,
    no_offsets_are_lost_between_segments,
)
from segproof_tests.partition_files import in_memory, name_of
from segproof_tests.small_logs import batch

FOLDER = "/data/t-0"
SHARE = 4
"""Files of megabytes take their time; so there are fewer of them."""
VALUES = (1 << 10, 10 << 10, 24 << 10)


BATCHES = [batch(0, bytes(size), magic=0) for size in VALUES]
"""Messages whose header holds nothing but the offset, so that it can be written over."""
MEBIBYTE = batch(0, bytes((1 << 20) - 26), magic=0)


def log_of(base_offset: int, sizes: list[int]) -> tuple[bytes, list[int]]:
    """Return a log of messages of these sizes, and where each begins."""
    log, starts = bytearray(), []
    for row, size in enumerate(sizes):
        starts.append(len(log))
        log += (base_offset + row).to_bytes(8, "big") + BATCHES[size][8:]
    return bytes(log), starts


@pytest.mark.checks("DISK-24")
@given(
    sizes=st.lists(st.sampled_from((2, 1, 0)), min_size=8, max_size=16),
    indexed=st.sets(st.integers(1, 5), max_size=2),
    timed=st.sampled_from((9, 8, 10, 14, 0)),
    ahead=st.sampled_from((1, 0, 2, 6)),
    is_closed=st.booleans(),
    zeros=st.integers(0, 2),
)
def test_end_of_an_offset_index(
    sizes: list[int], indexed: set[int], timed: int, ahead: int, is_closed: bool, zeros: int
) -> None:
    """Of whole logs with any entries: verify reports the law exactly where the model breaks it."""
    base = 100
    log, starts = log_of(base, sizes)
    rows = [row for row in sorted(indexed) if row < len(sizes)]
    last = rows[-1] if rows else -1
    images = {
        name_of(base, ".log"): log,
        name_of(base, ".index"): offset_entries(*((row, starts[row]) for row in rows))
        + bytes(8 * zeros),
        name_of(base, ".timeindex"): time_entries(
            *((1 + row, max(0, last + ahead + row // 2)) for row in range(timed))
        ),
    }
    if is_closed:
        images[name_of(base + len(sizes), ".log")] = b""
    broken = DirectoryJudge(images).breaks("DISK-24")
    event(f"broken: {broken}")
    assert broken == bool(list(verify(FOLDER, laws=["DISK-24"], files=in_memory(images, FOLDER))))


@pytest.mark.checks("DISK-24")
@settings(max_examples=max(1, settings().max_examples // SHARE))
@given(
    places=st.lists(st.integers(1, 5), max_size=3, unique=True).map(sorted),
    end=st.sampled_from((1, 17, 18, 19, 22, 23, 24)) | st.integers(1, 30),
)
def test_stretches_of_megabytes(places: list[int], end: int) -> None:
    """The same with messages of 1 MiB."""
    log = b"".join(row.to_bytes(8, "big") + MEBIBYTE[8:] for row in range(end))
    entries = offset_entries(*((row, row << 20) for row in places if row < end))
    images = {name_of(0, ".log"): log, name_of(0, ".index"): entries}
    held = [0, *(row for row in places if row < end)]
    widest = max((after - before for before, after in pairwise(held)), default=0)
    expected = end - 1 - held[-1] > max(16, 8 * widest)
    event(f"broken: {expected}")
    assert expected == DirectoryJudge(images).breaks("DISK-24")
    assert expected == bool(list(verify(FOLDER, laws=["DISK-24"], files=in_memory(images, FOLDER))))


def _piece(kind: str, offset: int, compression: str) -> bytes:
    if kind == "marker":
        return marker(offset, "COMMIT")
    if kind == "empty":
        return write_empty_batch(offset, offset, 1)
    keys: dict[str, tuple[bytes | None, ...]] = {
        "keyed": (b"k", b""), "keyless": (None, None), "mixed": (b"k", None),
        "bad": (None,), "legacy": (None,),
    }  # fmt: skip
    records = [Record(offset + row, 1, key, b"v") for row, key in enumerate(keys[kind])]
    magic = 1 if kind == "legacy" else 2
    data = write_batch(records, base_offset=offset, magic=magic, compression=compression)
    return data[:-1] + bytes([data[-1] ^ 1]) if kind == "bad" else data


KINDS = ("keyed", "keyless", "mixed", "legacy", "marker", "empty", "bad")


@pytest.mark.checks("DISK-25")
@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=5),
    compression=st.sampled_from(("none", "gzip", "lz4")),
    gap=st.integers(0, 2),
    behind=st.integers(-1, 3),
    cut=st.sampled_from((0, 0, 0, 1, 30)),
    zeros=st.sampled_from((0, 0, 1, 40)),
    entry=st.none() | st.tuples(st.integers(1, 9), st.integers(-1, 1)),
    tails=st.tuples(st.integers(0, 2), st.sampled_from((None, 0, 1, 2))),
)
def test_offsets_between_segments(
    kinds: list[str],
    compression: str,
    gap: int,
    behind: int,
    cut: int,
    zeros: int,
    entry: tuple[int, int] | None,
    tails: tuple[int, int | None],
) -> None:
    """Of any closed segment: verify reports the law exactly where the model breaks it."""
    log, offset = b"", 10
    for kind in kinds:
        log += _piece(kind, offset, compression)
        offset += gap + (2 if kind in ("keyed", "keyless", "mixed") else 1)
    following = max(11, offset - gap + behind)
    log = log[: max(0, len(log) - cut)]
    log += bytes(zeros)
    images = {name_of(10, ".log"): log, name_of(following, ".log"): b""}
    index = times = b""
    if entry is not None:
        index = offset_entries((entry[0], max(0, len(log) - zeros + entry[1])))
        index += bytes(8 * tails[0])
        images[name_of(10, ".index")] = index
    if tails[1] is not None:
        times = time_entries((1000, 1)) + bytes(12 * tails[1])
        images[name_of(10, ".timeindex")] = times
    told = (index, times), 10, following, CODECS
    broken = not no_offsets_are_lost_between_segments(log, *told)
    event(f"broken: {broken}")
    assert broken == DirectoryJudge(images).breaks("DISK-25")
    assert broken == bool(list(verify(FOLDER, laws=["DISK-25"], files=in_memory(images, FOLDER))))


class Graph:
    """Directories that are in each other as drawn; `verify` asks for nothing else of it."""

    def __init__(self, inside: Mapping[int, list[int]]) -> None:
        self._inside = inside

    @staticmethod
    def _directory(path: str) -> int | None:
        last = path.rsplit("/", 1)[-1]
        return int(last.rsplit("_", 1)[-1]) if "_" in last else None

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a directory; nothing else is there."""
        directory = self._directory(path)
        if directory is None:
            return None
        return FileStatus(0, True, False, 0, (1, directory + 1))

    def list_directory(self, path: str) -> list[str]:
        """Return a name for each directory in a directory."""
        directory = self._directory(path)
        assert directory is not None
        return [f"{row}_{each}" for row, each in enumerate(self._inside.get(directory, []))]


graphs = st.dictionaries(
    st.integers(0, 5), st.lists(st.integers(1, 6) | st.integers(0, 6), max_size=3), max_size=5
)


@pytest.mark.checks("DISK-26")
@given(graph=graphs, chain=st.sampled_from((0, 1, 12, 15, 16, 17, 18)))
def test_directories_in_each_other(graph: dict[int, list[int]], chain: int) -> None:
    """Of any directories in each other: the walk ends, and tells where the model says that one is
    met twice or lies too deep."""
    inside = {each: list(row) for each, row in graph.items()}
    links = {100 + row: [101 + row] for row in range(chain)}
    links[100 + chain] = [0]
    files: Any = Graph({**inside, **links})
    broken = not directories_are_met_once({**inside, **links}, 100)
    event(f"broken: {broken}")
    laws = {one.law for one in verify("/top_100", laws=["DISK-26"], files=files)}
    assert ({"DISK-20", "DISK-26"} if broken else {"DISK-20"}) == laws
