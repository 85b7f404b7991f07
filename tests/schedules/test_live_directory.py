# SPDX-License-Identifier: Apache-2.0
"""Verify, lookup and dump beside a second process that writes the log: no answer of no moment.

The writer notes each state of the log before it makes it. What is read meanwhile must be right in
one of the states from the last one made before the question to the last one begun when it was
answered; and a healthy log has no defect at any moment. Each test looks for some seconds, and on a
busy machine on until it has looked often enough to say: no counterexample in so many looks.
"""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from segproof.errors import IndexClosedError, OffsetOutOfRangeError, SegproofError
from segproof.kafka.record_batch import read_batch
from segproof.lookup import PartitionReader
from segproof.verification import verify
from segproof_harness.reading.segment_file_rows import rows_of, segment_files
from segproof_tests import live_writer
from segproof_tests.live_writer import STEPS, Journal, LiveWriter, State

SECONDS = 2.0
PATIENCE_SECONDS = 90.0
RATE = 400.0


def goes_on(begin: float, is_enough: bool) -> bool:
    """Return whether to look again: for some seconds, and longer until it is enough."""
    passed = time.monotonic() - begin
    return passed < SECONDS or (not is_enough and passed < PATIENCE_SECONDS)


class Writing:
    """Another process that writes the log `place`/t-0, with the journal `place`/journal."""

    def __init__(self, place: Path, seed: int, without: str = "") -> None:
        command = [
            sys.executable, live_writer.__file__, f"{place}/t-0",
            f"{place}/journal", "--seed", str(seed), "--seconds", str(PATIENCE_SECONDS),
            "--rate", str(RATE), "--without", without,
        ]  # fmt: skip
        self._process = subprocess.Popen(command)
        journal = place / "journal"
        while self._process.poll() is None and not (
            journal.exists() and journal.stat().st_size > 2000
        ):
            time.sleep(0.01)
        self._begin = time.monotonic()

    def __enter__(self) -> "Writing":
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.wait()

    def goes_on(self, is_enough: bool) -> bool:
        """Return whether to look again; when that is over the writer has ended, and well."""
        assert self._process.poll() in (None, 0)
        if self._process.returncode is None and goes_on(self._begin, is_enough):
            return True
        self._process.terminate()
        assert 0 == self._process.wait()
        return False


@pytest.mark.parametrize("seed", [1, 2])
def test_verify_finds_no_defect_beside_a_writer(tmp_path: Path, seed: int) -> None:
    """A log that is appended to, rolled, cut and shortened is healthy at every moment."""
    looks = 0
    # While a recovery makes indexes anew they are as incomplete as verify says.
    with Writing(tmp_path, seed, "recover") as writer:
        while writer.goes_on(looks > 3):
            found = verify(tmp_path / "t-0", deep=looks % 2 == 1)
            assert [] == [one for one in found if one.is_defect]
            looks += 1
    assert looks > 3
    assert [] == [one for one in verify(tmp_path / "t-0", deep=True) if one.is_defect]


def test_verify_finds_damage_beside_a_writer(tmp_path: Path) -> None:
    """Looking again forgives nothing: a wrong entry of a closed segment is found at each look."""
    folder = tmp_path / "t-0"
    looks = 0
    with Writing(tmp_path, 3, "truncate_to,truncate_fully,delete_old_segments,recover") as writer:
        while len(list(folder.glob("*.log"))) < 4:
            time.sleep(0.01)
        index = min(folder.glob("*.index"))
        with index.open("r+b") as file:
            entry = file.read(8)
            file.seek(4)
            file.write((int.from_bytes(entry[4:], "big") + 1).to_bytes(4, "big"))
        while writer.goes_on(looks > 3):
            found = [one for one in verify(folder) if one.is_defect]
            assert {("SEG-7", str(index))} == {(one.law, one.path) for one in found}
            looks += 1
    assert looks > 3


def question(state: State, drawn: random.Random) -> tuple[str, int]:
    """Return an offset or a timestamp to look up."""
    batch = drawn.choice(state.batches)
    if drawn.randrange(2):
        return "timestamp", drawn.choice(batch.timestamps) + drawn.choice((-1, 0, 0, 1))
    end = state.batches[-1].last_offset
    return "offset", drawn.choice((batch.base_offset, batch.last_offset, end, end + 1, end + 9))


def check_lookup(reader: PartitionReader, journal: Journal, what: str, target: int) -> bool:
    """Ask, hold the answer against the states of that time; return whether something was found."""
    if what == "offset":
        answer = reader.lookup_offset(target)
        found: object = answer.batch_base_offset
        states = journal.end()
        assert found in set().union(*(state.first_at(target) for state in states)), answer
    else:
        told = reader.lookup_timestamp(target)
        found = None if told.offset is None else (told.timestamp, told.offset)
        states = journal.end()
        assert found in set().union(*(state.first_since(target) for state in states)), told
    return found is not None


@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.checks("LOG-1", "LOG-15")
def test_each_lookup_is_explained_by_one_state(tmp_path: Path, seed: int) -> None:
    """An answer is that of a state of its time; a miss too, and no error says that files differ."""
    drawn = random.Random(seed)
    found = asked = 0
    with Writing(tmp_path, seed) as writer, Journal(f"{tmp_path}/journal") as journal:
        while writer.goes_on(asked > 20 and found > 5):
            state = journal.begin()
            if not state.batches:
                continue
            what, target = question(state, drawn)
            with PartitionReader(tmp_path / "t-0") as reader:
                found += check_lookup(reader, journal, what, target)
            asked += 1
    assert asked > 20
    assert found > 5


def test_dump_shows_batches_that_were_written(tmp_path: Path) -> None:
    """The rows of a log are whole batches of the writer, each behind the one before it."""
    rows = 0
    with (
        Writing(tmp_path, 6, "truncate_to,truncate_fully") as writer,
        Journal(f"{tmp_path}/journal") as journal,
    ):
        while writer.goes_on(rows > 20):
            for file in segment_files(f"{tmp_path}/t-0"):
                before = -1
                try:
                    for row in rows_of(file):
                        if file.suffix != ".log":
                            continue
                        assert row["crc_valid"]
                        assert before < row["base_offset"]
                        before = row["last_offset"]
                        journal.end()
                        ever = {(base, last) for base, last, _ in journal.ever}
                        assert (row["base_offset"], before) in ever
                        rows += 1
                except FileNotFoundError:
                    assert not os.path.exists(file.path)
    assert rows > 20


def test_readers_in_threads_of_the_writer(tmp_path: Path) -> None:
    """Readers of the files, and of the log itself, in threads beside the one that writes."""
    steps = tuple(each for each in STEPS if each[0] not in ("reopen", "recover"))
    writer = LiveWriter(f"{tmp_path}/t-0", f"{tmp_path}/journal", 7, steps=steps)
    for _ in range(20):
        writer.step()
    stop, failures = threading.Event(), list[str]()
    looks = [0, 0]

    def look_up() -> None:
        drawn = random.Random(7)
        with Journal(f"{tmp_path}/journal") as journal:
            while not stop.is_set():
                state = journal.begin()
                if not state.batches:
                    continue
                what, target = question(state, drawn)
                with PartitionReader(tmp_path / "t-0") as reader:
                    check_lookup(reader, journal, what, target)
                looks[0] += 1

    def read() -> None:
        drawn = random.Random(8)
        with Journal(f"{tmp_path}/journal") as journal:
            while not stop.is_set():
                state = journal.begin()
                if not state.batches:
                    continue
                target = drawn.choice(state.batches).base_offset
                try:
                    records = writer.log.read(target, 1).records
                    data = b"" if records is None else records.read()
                except (OffsetOutOfRangeError, IndexClosedError):
                    continue
                journal.end()
                if data:
                    batch = read_batch(data)
                    assert batch.is_valid()
                    assert (batch.base_offset, batch.last_offset, batch.crc) in journal.ever
                    assert batch.last_offset >= target
                looks[1] += 1

    def guarded(look: object) -> None:
        try:
            look()  # type: ignore[operator]
        except (AssertionError, OSError, SegproofError) as error:
            failures.append(repr(error))
            stop.set()

    # Often, or who waits for the disk at each step hardly ever has its turn.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    threads = [threading.Thread(target=guarded, args=(one,)) for one in (look_up, read)]
    for thread in threads:
        thread.start()
    begin = time.monotonic()
    while goes_on(begin, min(looks) > 10) and not stop.is_set():
        writer.step()
    stop.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    writer.close()
    assert [] == failures
    assert min(looks) > 10
