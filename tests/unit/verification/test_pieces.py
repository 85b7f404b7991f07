# SPDX-License-Identifier: Apache-2.0
"""A log that is read in pieces gets the findings of `verify`, wherever it is cut and damaged."""

import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import SegproofError, TooLargeError
from segproof.files import REAL_FILES, Files
from segproof.findings import Finding
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.kafka import Record, write_batch
from segproof.kafka.batch_table import BatchScan, CheckedBatches, check_batches
from segproof.verification import verify
from segproof.verifying import log_blocks, segment_checks
from segproof.verifying.log_blocks import Block, blocks_of
from segproof.verifying.partition_verification import PartitionCheck
from segproof.verifying.path_verification import plan
from segproof.verifying.segment_carry import carried_from_bytes, carried_to_bytes
from segproof.verifying.segment_verification import SteadyCheck
from segproof.verifying.split_logs import (
    batches_from_bytes,
    batches_to_bytes,
    cuts_of,
    log_state,
    piece_of,
    scan_in_pieces,
)
from segproof.wording.reporting import Wanted
from segproof_harness.files.shipped_directories import KAFKA
from segproof_tests.corruptions import CORRUPTIONS, Corruption, positions
from segproof_tests.partition_files import in_memory, name_of
from segproof_tests.small_logs import batch

Cut = Callable[[Segment, int, Files], list[int]]


def by_index(piece_bytes: int) -> Cut:
    """Return what cuts a log where its offset index says that batches begin."""
    return lambda segment, size, files: cuts_of(segment, size, piece_bytes, files)


def anywhere(generator: random.Random) -> Cut:
    """Return what cuts a log at random bytes: what a damaged index may say."""
    return lambda segment, size, files: sorted(
        generator.sample(range(1, size), min(size - 1, generator.randrange(6)))
    )


def pieces_of(
    segment: Segment, cuts: list[int], size: int, wanted: Wanted, files: Files
) -> Iterator[tuple[int, Iterable[CheckedBatches]]]:
    """Yield the pieces of a log, as they come from other machines."""
    for start, end in zip([0, *cuts], [*cuts, size], strict=True):
        sent = [batches_to_bytes(part) for part in piece_of(segment, start, end, wanted, files)]
        yield start, map(batches_from_bytes, sent)


def found_in_pieces(path: str, wanted: Wanted, cut: Cut, files: Files) -> list[Finding]:
    """Return the findings of all that lies at a path, each log cut, each carry sent as bytes."""
    works, findings = plan(path, wanted, files)
    for work in works:
        assert isinstance(work, Partition)
        joined = PartitionCheck(work, wanted, files)
        for segment in work.segments:
            scan = None
            state = log_state(segment, files)
            if state is not None and state.size_bytes > 1:
                cuts = cut(segment, state.size_bytes, files)
                scan = scan_in_pieces(pieces_of(segment, cuts, state.size_bytes, wanted, files))
            check = SteadyCheck(segment, wanted, files, scan)
            for _ in check.run():
                pass
            findings += check.findings
            sent, seen = carried_from_bytes(carried_to_bytes(check.carry, segment.seen))
            assert segment.seen == seen
            joined.add(segment, sent)
        findings += joined.finish()
    return findings


@pytest.mark.slow
@pytest.mark.parametrize(
    "corruption",
    [one for one in CORRUPTIONS if one.file.endswith((".log", ".index"))],
    ids=lambda one: one.name,
)
def test_each_corruption_is_told_in_the_same_words(corruption: Corruption, tmp_path: Path) -> None:
    """Cut at what the index says, right or wrong, into pieces of a few batches."""
    path = str(corruption.make(tmp_path))
    for each in (tmp_path, *tmp_path.rglob("*")):
        os.utime(each, ns=(10**18, 10**18))  # else the verifier waits for a writer
    wanted = Wanted(deep=corruption.needs_deep)
    whole = list(verify(path, deep=corruption.needs_deep))
    assert whole == found_in_pieces(path, wanted, by_index(500), REAL_FILES)


@pytest.mark.parametrize("scenario", sorted(path.name for path in KAFKA.iterdir()))
def test_cuts_lie_at_batches_of_sound_logs(scenario: str) -> None:
    """The pieces are about as large as asked for, and every cut is used."""
    for log in sorted((KAFKA / scenario).glob("*/*.log")):
        (work,), _ = plan(str(log), Wanted(), REAL_FILES)
        assert isinstance(work, Partition)
        data = log.read_bytes()
        cuts = cuts_of(work.segments[0], len(data), 8192, REAL_FILES)
        assert set(cuts) <= set(positions(data))
        assert all(4096 <= b - a for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)) or (
            not cuts
        )
        if len(data) > 40_000 and log.with_suffix(".index").stat().st_size > 40:
            assert cuts


class Logged:
    """Files that count the bytes that are read of logs."""

    def __init__(self) -> None:
        self.count = 0

    def scan(self, *arguments: Any, **options: Any) -> BatchScan:
        """Return a scan, and count how long its range is."""
        self.count += arguments[2] - arguments[1]
        return BatchScan(*arguments, **options)


def test_a_piece_that_fits_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge of a sound log reads none of its batches; of a wrong cut, what is not proved."""
    path = str(next((KAFKA / "plain").glob("*/*252.log")))
    size = Path(path).stat().st_size
    (work,), _ = plan(path, Wanted(), REAL_FILES)
    assert isinstance(work, Partition)
    (segment,) = work.segments
    cuts = cuts_of(segment, size, 8192, REAL_FILES)
    assert len(cuts) > 2
    for wrong, expected in ((0, 0), (1, cuts[1] - cuts[0])):
        own = [cuts[0] + wrong, *cuts[1:]]
        pieces = [
            (start, list(parts))
            for start, parts in pieces_of(segment, own, size, Wanted(), REAL_FILES)
        ]
        logged = Logged()
        with monkeypatch.context() as patch:
            patch.setattr(segment_checks, "BatchScan", logged.scan)
            check = SteadyCheck(segment, Wanted(), REAL_FILES, scan_in_pieces(pieces))
            for _ in check.run():
                pass
        assert not [one for one in check.findings if one.is_defect]
        # Up to the wrong cut, and on to the next one, of which it begins at the same batch again.
        assert expected <= logged.count <= 2 * expected


def log_of(generator: random.Random) -> bytes:
    """Return a log of small batches, some compressed, some of an old format, perhaps damaged."""
    data, offset = b"", 0
    for _ in range(generator.randrange(1, 40)):
        count = generator.randrange(1, 4)
        records = [Record(offset + at, 1000 + offset, None, b"v" * 9) for at in range(count)]
        magic = generator.choice((2, 2, 2, 1, 0))
        codec = generator.choice(("none", "none", "gzip"))
        data += write_batch(records, base_offset=offset, magic=magic, compression=codec)
        offset += count
    changed = bytearray(data)
    for _ in range(generator.randrange(3)):
        changed[generator.randrange(len(changed))] = generator.choice((0, 2, 13, 255))
    return bytes(changed[: generator.choice((len(changed), generator.randrange(len(changed)))) + 1])


@pytest.mark.slow
@given(st.integers(0, 1 << 40))
def test_random_cuts_of_random_logs(seed: int) -> None:
    """Logs of a few batches, damaged anywhere and cut anywhere, with indexes of nonsense."""
    generator = random.Random(seed)
    images = {
        ".log": log_of(generator),
        ".index": generator.randbytes(generator.choice((0, 8, 80))),
        ".timeindex": generator.randbytes(generator.choice((0, 12, 120))),
    }
    files = in_memory({name_of(0, suffix): data for suffix, data in images.items()}, "/t-0")
    deep = generator.random() < 0.5
    rows, chunk = generator.choice((1, 2, 5, 8192)), generator.choice((300, 1 << 19))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_blocks, "BLOCK_ROWS", rows)
        patch.setattr(log_blocks, "BLOCK_BYTES", generator.choice((1, 500, 1 << 25)))
        whole = list(verify("/t-0", deep=deep, files=files))
        patch.setattr(segment_checks, "BatchScan", partial(BatchScan, chunk_bytes=chunk))
        for cut in (by_index(200), anywhere(generator)):
            assert whole == found_in_pieces("/t-0", Wanted(deep=deep), cut, files)


@given(st.integers(0, 1 << 40))
def test_blocks_do_not_depend_on_chunks(seed: int) -> None:
    """However a scan comes by its batches, the blocks are the same."""
    generator = random.Random(seed)
    data = log_of(generator)
    segment = Segment("/t-0", 0, frozenset((".log",)), None, False, frozenset((".log",)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_blocks, "BLOCK_ROWS", generator.choice((1, 3, 8192)))
        patch.setattr(log_blocks, "BLOCK_BYTES", generator.choice((1, 500, 1 << 25)))
        expected = [told(block) for block in blocks_of(check_batches(data), segment)]
        for chunk_bytes in (100, 1000):
            scan = BatchScan(Bytes(data), 0, len(data), deep=False, chunk_bytes=chunk_bytes)
            assert expected == [told(block) for block in blocks_of(scan, segment)]


class Bytes:
    """A log in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def size(self) -> int:
        """Return its length."""
        return len(self.data)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Copy bytes."""
        part = self.data[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)


def told(block: Block) -> list[Any]:
    """Return what a block holds, comparable."""
    columns = (block.first, block.last, block.before, block.reach, block.is_loose)
    return [block.table.tolist(), block.end_position, *(column.tolist() for column in columns)]


def test_errors_travel() -> None:
    """What a finding tells of an error is the same behind bytes."""
    checked = next(iter(check_batches(batch(0))))
    wrong = SegproofError("m", law="BATCH-9", position=3, expected=2, actual="a", hint="h")
    large = TooLargeError("n", expected=(1, 2))
    sent = batches_from_bytes(batches_to_bytes(checked._replace(errors={0: wrong, 7: large})))
    assert vars(wrong) == vars(sent.errors[0])
    assert not isinstance(sent.errors[0], TooLargeError)
    assert vars(large) | {"expected": "(1, 2)"} == vars(sent.errors[7])
    assert isinstance(sent.errors[7], TooLargeError)


def test_an_index_that_cannot_be_read_cuts_nothing(tmp_path: Path) -> None:
    """Without it, or with a folder in its place, the log is one piece."""
    log = tmp_path / f"{0:020d}.log"
    shutil.copyfile(next((KAFKA / "plain").glob("*/*252.log")), log)
    for suffixes in (frozenset((".log",)), frozenset((".log", ".index"))):
        segment = Segment(str(tmp_path), 0, suffixes, None, False, frozenset((".log",)))
        assert [] == cuts_of(segment, log.stat().st_size, 1000, REAL_FILES)
    log.with_suffix(".index").mkdir()
    assert [] == cuts_of(segment, log.stat().st_size, 1000, REAL_FILES)
