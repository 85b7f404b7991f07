# SPDX-License-Identifier: Apache-2.0
"""A partition's log as a world of crashes: what it promised is there, and it goes on where it ends.

The world keeps its recovery point and its log start in checkpoints, as a log manager does; it
writes them at once after a truncation, as Kafka's manager does. It notes itself up to which offset
a call promised that all is durable.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from segproof.closing import undone_if_it_fails
from segproof.errors import IndexClosedError
from segproof.kafka import (
    LogConfig,
    OffsetCheckpointFile,
    PartitionLog,
    Record,
    write_batch,
    write_end_transaction_marker,
)
from segproof_harness.crashes.kafka.log_answers import (
    Batch,
    batches_of,
    derived_of,
    wrong_answers,
)
from segproof_harness.crashes.worlds import Fault, Operation
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.machine.simulated_files import SimulatedFiles

__all__ = ["Found", "PartitionLogWorld", "Promised"]

START_MS = 1_000_000
DATA, DIRECTORY = "/data", "/data/t-0"
TOPIC = ("t", 0)
CAPACITY_BYTES = 1 << 18
NEVER = 2**63 - 1


class Promised(NamedTuple):
    """What is known of a log between two operations."""

    batches: tuple[Batch, ...]
    """All batches in order, those too that retention removed."""
    first: int
    """Index of the first of them that has to be there."""
    durable: int
    """This many of them have to be there after a crash."""
    end: int
    """The log end offset."""


class Found(NamedTuple):
    """What a load after a crash found."""

    batches: tuple[Batch, ...]
    start: int
    end: int
    next_offset: int
    """The offset that the next append got."""
    faults: tuple[Fault, ...]


class PartitionLogWorld:
    """One log, opened by its checkpoints; both classes may be other implementations."""

    weights: dict[str, int] = {  # noqa: RUF012 -- nobody changes it
        "append": 12, "transaction": 3, "follower": 2, "flush": 4, "roll": 3, "truncate": 3,
        "truncate_fully": 1, "retain": 3, "write_checkpoints": 4, "remove_pending": 1, "restart": 1,
    }  # fmt: skip

    next_steps: tuple[Operation, ...] = (
        Operation("append", 1),
        Operation("flush", 1),
        Operation("append", 3),
    )

    log_class: type[PartitionLog] = PartitionLog
    checkpoint_class: type[OffsetCheckpointFile] = OffsetCheckpointFile

    def __init__(self, draw: random.Random) -> None:
        self.now_ms = START_MS
        self.config = LogConfig(
            segment_bytes=draw.choice((300, 600, 1200)),
            index_interval_bytes=draw.choice((1, 100)),
            segment_index_bytes=draw.choice((120, 480)),
            preallocate=draw.random() < 0.2,
            file_delete_delay_ms=draw.choice((0, 1000)),
            retention_bytes=draw.choice((-1, 700)),
            flush_messages=draw.choice((NEVER, NEVER, 3)),
        )
        self._batches: tuple[Batch, ...] = ()
        self._sequences: dict[int, int] = {}
        self._epoch = 0
        self._durable = 0
        """Up to which offset, exclusive, a call that returned has promised that all is durable."""
        self._was_retained = self._was_truncated = False

    # --- start and load

    def begin(self, files: SimulatedFiles) -> None:
        """Make an empty log."""
        self.files: Any = files
        files.make_directory(DATA)
        files.settle()
        self.log = self.opened(files, is_clean=False)

    def opened(self, files: MemoryFiles, *, is_clean: bool) -> PartitionLog:
        """Open the log by what the checkpoints say."""
        return self.log_class.open(
            DIRECTORY,
            self.config,
            self._checkpoint(files, "log-start").read().get(TOPIC, 0),
            self._checkpoint(files, "recovery-point").read().get(TOPIC, 0),
            is_clean,
            create=True,
            files=files,
            time=lambda: self.now_ms,
        )

    def _checkpoint(self, files: MemoryFiles, name: str) -> OffsetCheckpointFile:
        return self.checkpoint_class(f"{DATA}/{name}-offset-checkpoint", create=True, files=files)

    def load(self, files: MemoryFiles) -> PartitionLog:
        """Load as after a crash."""
        return self.opened(files, is_clean=False)

    def look_at(self, loaded: PartitionLog, files: MemoryFiles) -> Found:
        """Compare the answers with the records, then append one more batch."""
        log = loaded
        faults = [*wrong_answers(log), *self._wrong_remains(log, files)]
        start, end = log.log_start_offset, log.log_end_offset
        # Nobody reads what lies before the log start, and a recovery does not look at it.
        batches = tuple(one for one in batches_of(log) if one.next_offset > start)
        info = log.append_as_leader(self._batch(random.Random(0), 1), self._epoch)
        log.close_handlers()
        return Found(batches, start, end, info.first_offset, tuple(faults))

    def _wrong_remains(self, log: PartitionLog, files: MemoryFiles) -> Iterator[Fault]:
        """Yield what differs from a log that is made from the `.log` files alone."""
        if self._was_retained or log.log_segments.base_offsets()[0]:
            return  # what was removed in front is known to the one log alone
        twin = MemoryFiles(CAPACITY_BYTES)
        twin.make_directory(DIRECTORY)
        for name, data in files.images(DIRECTORY).items():
            if name.endswith(".log"):
                write_file(twin, f"{DIRECTORY}/{name}", data)
        other = self.opened(twin, is_clean=False)
        expected = derived_of(other)
        for what, value in derived_of(log).items():
            if what == "epochs" and self._was_truncated:
                continue  # an epoch that began in what was cut stays
            if value != expected[what]:
                words = f"{what}: {value}, and of the records alone {expected[what]}"
                yield Fault("derived", words)
        other.close_handlers()

    # --- operations

    def apply(self, operation: Operation) -> None:
        """Do one operation."""
        self.now_ms += 7
        draw = random.Random(operation.number)
        self._epoch += draw.random() < 0.2
        end, base = self.log.log_end_offset, self.log.log_segments.active_segment.base_offset
        getattr(self, f"_{operation.name}")(draw)
        self._note_append(end, base)

    def promise(self, offset: int) -> None:
        """Note that what lies below an offset is acknowledged as durable."""
        self._durable = max(self._durable, offset)

    def _note_append(self, end: int, base: int) -> None:
        """Note what an operation promised if it rolled the log, or appended `flush_messages`.

        `end` is where the log ended before it, and `base` where its last segment began.
        """
        log = self.log
        if log.log_segments.active_segment.base_offset > base:
            self.promise(log.log_segments.active_segment.base_offset)
        unflushed = log.log_end_offset - max(self._durable, log.log_start_offset)
        if log.log_end_offset > end and unflushed >= self.config.flush_messages:
            self.promise(log.log_end_offset)

    def _batch(self, draw: random.Random, count: int, **more: Any) -> bytes:
        size = draw.choice((5, 60, 150))
        records = [
            Record(n, self.now_ms - draw.choice((0, 0, 50)) + n, None, bytes([65 + n]) * size)
            for n in range(count)
        ]
        return write_batch(records, base_offset=0, partition_leader_epoch=0, **more)

    def _append(self, draw: random.Random) -> None:
        count = draw.randint(1, 4)
        producer = draw.randrange(2)
        more: dict[str, Any] = {}
        if draw.random() < 0.4:
            sequence = self._sequences.get(producer, 0)
            more = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
        data = self._batch(draw, count, **more)
        if len(data) <= self.config.segment_bytes:
            self.log.append_as_leader(data, self._epoch)
            if more:
                self._sequences[producer] = more["base_sequence"] + count

    def _follower(self, draw: random.Random) -> None:
        base = self.log.log_end_offset + draw.choice((0, 0, 5))
        records = [Record(base + n, self.now_ms + n, None, b"f" * 9) for n in range(2)]
        data = write_batch(records, base_offset=base, partition_leader_epoch=self._epoch)
        self.log.append_as_follower(data, self._epoch)

    def _transaction(self, draw: random.Random) -> None:
        number = 10 + draw.randrange(2)
        producer: dict[str, Any] = {"producer_id": number, "producer_epoch": 0}
        known = self.log.producer_state_manager.last_entry(number)
        if known is not None and known.current_txn_first_offset is not None:
            marker = write_end_transaction_marker(
                draw.choice(("ABORT", "ABORT", "COMMIT")),
                offset=0,
                timestamp=self.now_ms,
                coordinator_epoch=0,
                **producer,
            )
            self.log.append_as_leader(
                marker, self._epoch, origin="coordinator", transaction_version=1
            )
            return
        data = write_batch(
            [Record(0, self.now_ms, None, b"t" * 9)],
            base_offset=0,
            is_transactional=True,
            partition_leader_epoch=0,
            base_sequence=0 if known is None else max(0, known.last_seq + 1),
            **producer,
        )
        self.log.append_as_leader(data, self._epoch)

    def _flush(self, draw: random.Random) -> None:
        self.log.flush(draw.random() < 0.5)
        self.promise(self.log.log_end_offset)

    def _roll(self, draw: random.Random) -> None:
        self.promise(self.log.roll())

    def _truncate(self, draw: random.Random) -> None:
        self._was_truncated = True
        self._sequences.clear()
        end, start = self.log.log_end_offset, self.log.log_start_offset
        target = draw.randint(max(start, end - draw.choice((8, 100))), end)
        self.log.truncate_to(target)
        self._durable = min(self._durable, target)
        self.after_truncation()

    def _truncate_fully(self, draw: random.Random) -> None:
        self._was_truncated = True
        self._sequences.clear()
        self.log.truncate_fully_and_start_at(draw.choice((self.log.log_end_offset + 5, 0, 3)))
        self._batches, self._durable = (), 0
        self.after_truncation()

    def after_truncation(self) -> None:
        """Write the checkpoints once more; where that fails the log is closed, as in Kafka."""
        with undone_if_it_fails(self.log.close_handlers):
            self._checkpoint(self.files, "log-start").write({TOPIC: self.log.log_start_offset})
            self._write_recovery_point()

    def _write_recovery_point(self) -> None:
        self._checkpoint(self.files, "recovery-point").write({TOPIC: self.log.recovery_point})
        self.promise(self.log.recovery_point)

    def _retain(self, draw: random.Random) -> None:
        self._was_retained = True
        self.log.update_high_watermark(self.log.log_end_offset)
        if draw.random() < 0.7:
            start, end = self.log.log_start_offset, self.log.log_end_offset
            self.log.maybe_increment_log_start_offset(draw.randint(start, end))
        self.log.delete_old_segments()

    def _write_checkpoints(self, draw: random.Random) -> None:
        if draw.random() < 0.7:
            self._write_recovery_point()
        if draw.random() < 0.7:
            self._checkpoint(self.files, "log-start").write({TOPIC: self.log.log_start_offset})

    def _remove_pending(self, draw: random.Random) -> None:
        self.now_ms += 2000
        self.log.delete_pending_files()

    def records_end(self) -> int:
        """Return where the records end; after a cut within a batch the log itself ends later.

        Opened again it ends there, and gives the offsets from there on once more, as in Kafka.
        """
        there = batches_of(self.log)
        return there[-1].next_offset if there else self.log.log_segments.active_segment.base_offset

    def _restart(self, draw: random.Random) -> None:
        self._durable = min(self._durable, self.records_end())
        self.log.close()
        self.log = self.opened(self.files, is_clean=True)

    # --- a call has failed

    def is_closed(self) -> bool:
        """Return whether the log is closed."""
        return self.log.is_closed

    def live_faults(self, before: Promised, after: Promised) -> Iterator[Fault]:
        """Yield what is wrong with a log whose operation failed.

        Right is a log that did the whole operation, one that did nothing, and one that is closed
        and refuses each call.
        """
        if self.log.is_closed:
            yield from self._answers_though_closed()
            return
        now = self.state()
        if (now.batches, now.end) not in [(one.batches, one.end) for one in (before, after)]:
            words = f"it has {_offsets(now.batches)} and ends at {now.end}"
            yield Fault("half done", f"{words}, before {before.end}, after {after.end}")
        yield from wrong_answers(self.log)

    def _answers_though_closed(self) -> Iterator[Fault]:
        calls: dict[str, Callable[[], object]] = {
            "append_as_leader": lambda: self.log.append_as_leader(b"", 0),
            "read": lambda: self.log.read(0, 10),
            "flush": self.log.flush,
            "roll": self.log.roll,
            "truncate_to": lambda: self.log.truncate_to(0),
        }
        for name, call in calls.items():
            try:
                call()
            except IndexClosedError:
                continue
            yield Fault("not closed", f"the log is closed, and {name} returns")

    def open_again(self) -> None:
        """Open the log as after a crash."""
        self.log = self.opened(self.files, is_clean=False)
        self._note_reopened()

    def _note_reopened(self) -> None:
        self._sequences.clear()
        self._durable = min(self._durable, self.log.log_end_offset)

    # --- what is promised

    def state(self) -> Promised:
        """Return what a crash must leave."""
        log = self.log
        there = batches_of(log)
        base = log.log_segments.base_offsets()[0]
        removed = [one for one in self._batches if one.base_offset < base and one not in there]
        known = self._batches = (*removed, *there)
        start = log.log_start_offset
        first = next((n for n, one in enumerate(known) if one.next_offset > start), len(known))
        durable = sum(one.next_offset <= self._durable for one in known)
        return Promised(known, first, durable, log.log_end_offset)

    def judge(self, found: Found, before: Promised, after: Promised) -> Sequence[Fault]:
        """Compare with what was promised before and after the operation in which the crash came.

        The batches that are found are a run of those that were written. It begins at the log start,
        or before it, has all that were durable, and the log goes on where it ends.
        """
        durable = min(before.durable, after.durable)
        first = max(before.first, after.first)
        fitting = [one for one in (before, after) if _is_run(found, one, first, durable)]
        shown = f"{_offsets(found.batches)} of {_offsets(before.batches)} then"
        shown += f" {_offsets(after.batches)}, from batch {first}, durable {durable}"
        if not fitting:
            return [Fault("lost", f"batches {shown}")]
        if not any(_goes_on(found, one) for one in fitting):
            return [Fault("hole", f"the log goes on at {found.end}: batches {shown}")]
        end = max([found.end, *(one.next_offset for one in found.batches[-1:])])
        if found.next_offset < end:
            return [Fault("reused", f"the next offset is {found.next_offset}, below {end}")]
        return found.faults


def _is_run(found: Found, promised: Promised, first: int, durable: int) -> bool:
    """Return whether what was found is a run of what was written that lacks nothing durable."""
    if not found.batches:
        return durable <= first
    if found.batches[0] not in promised.batches:
        return False
    at = promised.batches.index(found.batches[0])
    end = at + len(found.batches)
    is_whole = end >= durable or durable <= first  # what lies before the log start may be lost
    return promised.batches[at:end] == found.batches and at <= first and is_whole


def _goes_on(found: Found, promised: Promised) -> bool:
    """Return whether the log ends where its records do: no offset is left out silently."""
    at = promised.first
    if found.batches:
        at = promised.batches.index(found.batches[-1]) + 1
    lost = promised.batches[at:]
    if lost:
        return found.end <= max(lost[0].base_offset, found.start)
    return found.end <= promised.end


def _offsets(batches: Sequence[Batch]) -> list[int]:
    return [one.base_offset for one in batches]
