# SPDX-License-Identifier: Apache-2.0
"""A log that is written, cut, rolled and shortened at random, with a journal of its states.

What is read beside it is right if one of the states that the journal names explains it. The journal
is a file outside of the log's directory: a line is written before each step, and one behind it.

    python -m segproof_tests.live_writer DIR JOURNAL --seed 1 --seconds 5 --rate 500
"""

import argparse
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

from segproof.kafka import (
    LogConfig,
    PartitionLog,
    Record,
    read_batch,
    write_batch,
    write_end_transaction_marker,
)

__all__ = ["Journal", "LiveWriter", "State", "Stored", "main"]

CONFIG = LogConfig(
    segment_bytes=6000,
    index_interval_bytes=300,
    segment_index_bytes=360,
    retention_bytes=30_000,
    retention_ms=-1,
    file_delete_delay_ms=20,
)
STEPS = (
    ("append_plain", 12),
    ("append_idempotent", 8),
    ("append_transactional", 8),
    ("end_transaction", 4),
    ("new_leader", 1),
    ("roll", 2),
    ("truncate_to", 2),
    ("truncate_fully", 1),
    ("update_high_watermark", 4),
    ("delete_old_segments", 4),
    ("delete_pending_files", 3),
    ("reopen", 1),
    ("recover", 1),
)
"""What is done, and how often."""
PRODUCERS = 3


@dataclass(frozen=True, slots=True)
class Stored:
    """One batch as the writer appended it."""

    base_offset: int
    last_offset: int
    crc: int
    timestamps: tuple[int, ...]
    """Of its records, in order, in ms since 1970."""


@dataclass(frozen=True, slots=True)
class State:
    """The batches of the log, and where its directory may begin at that moment."""

    batches: tuple[Stored, ...] = ()
    starts: tuple[int, ...] = (0,)
    """Base offsets of segments of which one is the first; more than one while some are removed."""
    may_be_empty: bool = False
    """Whether there may be no segment at all."""

    def first_at(self, target: int) -> set[int | None]:
        """Return the base offsets of which one is that of the first batch to reach an offset.

        None: the offset is below the log, or beyond it.
        """
        found: set[int | None] = {None} if self.may_be_empty else set()
        for start in self.starts:
            reach = (one for one in self.batches if one.last_offset >= max(target, start))
            found.add(None if target < start else next((one.base_offset for one in reach), None))
        return found

    def first_since(self, timestamp: int) -> set[tuple[int, int] | None]:
        """Return timestamps and offsets of which one is the first record's from a time on."""
        found: set[tuple[int, int] | None] = {None} if self.may_be_empty else set()
        for start in self.starts:
            records = (
                (time, one.base_offset + number)
                for one in self.batches
                if one.last_offset >= start
                for number, time in enumerate(one.timestamps)
            )
            found.add(next((each for each in records if each[0] >= timestamp), None))
        return found


class Journal:
    """Reads the states of a log from the journal of its writer; used by one thread.

    `begin` before a question and `end` behind its answer, which gives the states that may have
    answered it: from the last one that was made before to the last one that was begun.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 -- open as long as the journal
        self._rest = b""
        self._states = [State()]
        self._made = 0
        self.ever: set[tuple[int, int, int]] = set()
        """Base offset, last offset and checksum of each batch that was ever appended."""

    def begin(self) -> State:
        """Return the state that was made last."""
        self._read()
        self._states = self._states[self._made :]
        self._made = 0
        return self._states[0]

    def end(self) -> list[State]:
        """Return the states that there were since `begin`."""
        self._read()
        return self._states

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            action, *values = json.loads(line)
            if action == "made":
                self._states.append(_made(self._states[-1], *values))
                self._made = len(self._states) - 1
                continue
            self._states += after(self._states[-1], action, values)
            if action == "append":
                self.ever.add((values[0], values[1], values[2]))


def _made(state: State, first: int) -> State:
    """Return the state behind a step; `first` is the base offset of the first segment."""
    kept = tuple(each for each in state.batches if each.last_offset >= first)
    return State(kept, (first,))


def after(state: State, action: str, values: list[Any]) -> list[State]:
    """Return the states that a step goes through, in order."""
    if action == "append":
        base_offset, last_offset, crc, timestamps = values
        stored = Stored(base_offset, last_offset, crc, tuple(timestamps))
        return [replace(state, batches=(*state.batches, stored))]
    if action == "cut":
        return [_cut(state, offset) for offset in values[0]]
    if action == "empty":
        gone = State((), (values[0],), may_be_empty=True)
        return [*after(state, "cut", [values[1]]), gone]
    assert action == "drop"
    return [replace(state, starts=tuple(values[0]))]


def _cut(state: State, offset: int) -> State:
    return replace(state, batches=tuple(one for one in state.batches if one.last_offset < offset))


class LiveWriter:
    """Does random steps on the log of a directory, and keeps the journal."""

    def __init__(
        self,
        folder: str,
        journal: str,
        seed: int,
        config: LogConfig = CONFIG,
        steps: tuple[tuple[str, int], ...] = STEPS,
    ) -> None:
        self.log = PartitionLog.open(folder, config, create=True)
        self._folder = folder
        self._config = config
        self._drawn = random.Random(seed)
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._names = [name for name, weight in steps for _ in range(weight)]
        self._leader_epoch = 0
        self.steps = 0

    def step(self) -> str:
        """Do one step; return its name."""
        name = self._drawn.choice(self._names)
        action: Callable[[], None] = getattr(self, f"_{name}")
        action()
        self._note("made", self.log.log_segments.base_offsets()[0])
        self.steps += 1
        return name

    def run(self, seconds: float, rate: float, stop: threading.Event) -> None:
        """Do so many steps a second, at most, for some seconds or until told to stop."""
        begin = time.monotonic()
        while (now := time.monotonic() - begin) < seconds and not stop.is_set():
            if self.steps > now * rate:
                time.sleep(1 / rate)
            self.step()

    def close(self) -> None:
        """Close the log and the journal."""
        self.log.close()
        os.close(self._journal)

    def _note(self, *values: Any) -> None:
        os.write(self._journal, json.dumps(values).encode() + b"\n")

    # --- appending

    def _batch(self, **more: Any) -> bytes:
        now, drawn = time.time_ns() // 1_000_000, self._drawn
        records = [
            Record(number, now - drawn.randrange(40), None, drawn.randbytes(drawn.randrange(200)))
            for number in range(drawn.randrange(1, 6))
        ]
        compression = drawn.choice(("none", "none", "gzip", "lz4"))
        return write_batch(records, base_offset=0, compression=compression, **more)

    def _append(self, data: bytes, **more: Any) -> None:
        batch, base = read_batch(data), self.log.log_end_offset
        times = [record.timestamp for record in batch.records()]
        self._note("append", base, base + batch.last_offset, batch.crc, times)
        self.log.append_as_leader(data, self._leader_epoch, **more)

    def _sequence(self, producer_id: int) -> tuple[int, int]:
        """Return the epoch and the next sequence number of a producer."""
        known = self.log.producer_state_manager.last_entry(producer_id)
        if known is None or not known.batch_metadata:
            return (0 if known is None else known.producer_epoch), 0
        return known.producer_epoch, known.batch_metadata[-1].last_seq + 1

    def _append_plain(self) -> None:
        self._append(self._batch())

    def _append_idempotent(self) -> None:
        self._append_of(self._drawn.randrange(PRODUCERS), False)

    def _append_transactional(self) -> None:
        self._append_of(100 + self._drawn.randrange(PRODUCERS), True)

    def _append_of(self, producer_id: int, is_transactional: bool) -> None:
        epoch, sequence = self._sequence(producer_id)
        self._append(
            self._batch(
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=is_transactional,
            )
        )

    def _end_transaction(self) -> None:
        is_open = sorted(
            each.producer_id
            for each in self.log.producer_state_manager.active_producers.values()
            if each.current_txn_first_offset is not None
        )
        if not is_open:
            return
        producer_id = self._drawn.choice(is_open)
        marker = write_end_transaction_marker(
            self._drawn.choice(("ABORT", "COMMIT")),
            offset=0,
            timestamp=time.time_ns() // 1_000_000,
            producer_id=producer_id,
            producer_epoch=self._sequence(producer_id)[0],
            coordinator_epoch=0,
        )
        self._append(marker, origin="coordinator", transaction_version=1)

    def _new_leader(self) -> None:
        self._leader_epoch += self._drawn.randrange(1, 3)

    # --- segments

    def _roll(self) -> None:
        if self.log.log_segments.active_segment.size:
            self.log.roll()

    def _truncate_to(self) -> None:
        first, end = self.log.log_segments.base_offsets()[0], self.log.log_end_offset
        # As a follower does: to where a batch begins.
        wanted = self._drawn.randrange(max(first, end - 60), end + 1)
        target = self._batch_start(wanted)
        above = [base for base in self.log.log_segments.base_offsets() if base > target]
        self._note("cut", [*above[::-1], target])
        self.log.truncate_to(target)

    def _batch_start(self, offset: int) -> int:
        """Return where the batch begins that holds the offset or is the first behind it."""
        found = self.log.read(offset, 1) if offset < self.log.log_end_offset else None
        records = None if found is None else found.records
        return offset if records is None else read_batch(records.read()).base_offset

    def _truncate_fully(self) -> None:
        bases = self.log.log_segments.base_offsets()
        target = self.log.log_end_offset + self._drawn.randrange(3)
        self._note("empty", target, bases[::-1])
        self.log.truncate_fully_and_start_at(target)

    def _update_high_watermark(self) -> None:
        self.log.update_high_watermark(self.log.log_end_offset)

    def _delete_old_segments(self) -> None:
        bases = self.log.log_segments.base_offsets()
        self._note("drop", [*bases, self.log.log_end_offset])
        self.log.delete_old_segments()

    def _delete_pending_files(self) -> None:
        self.log.delete_pending_files()

    def _reopen(self) -> None:
        start = self.log.log_start_offset
        self.log.close()
        self.log = PartitionLog.open(self._folder, self._config, start, create=True)

    def _recover(self) -> None:
        """Begin anew as a process that was killed: the last segments are indexed anew."""
        start, point = self.log.log_start_offset, self.log.recovery_point
        self.log.close_handlers()
        self.log = PartitionLog.open(self._folder, self._config, start, point, False, create=True)


def main() -> None:
    """Write for some seconds; a SIGTERM ends it in good order behind the step that it is in."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder")
    parser.add_argument("journal")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--without", default="", help="steps that are not done, with commas")
    options = parser.parse_args()
    left_out = options.without.split(",")
    steps = tuple(each for each in STEPS if each[0] not in left_out)
    writer = LiveWriter(options.folder, options.journal, options.seed, steps=steps)
    writer.run(options.seconds, options.rate, stop)
    writer.close()


if __name__ == "__main__":
    main()
