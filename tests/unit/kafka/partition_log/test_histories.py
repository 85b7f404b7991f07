# SPDX-License-Identifier: Apache-2.0
"""Random histories of a partition's log obey its laws, in every release.

They have appends of every kind, cuts, retention, stops, and crashes with damaged files.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.broker.partition_log_releases_before_2 import LogBeginsWithSegment
from segproof_model.kafka.format.batch_writing import write_batch, write_end_transaction_marker
from segproof_model.kafka.format.compression import NO_CODECS
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_releases import MessagesAloneAreWritten
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.states import apply, opened
from segproof_model.laws.register import Transition, broken_step_laws
from segproof_model.releases import KAFKA, RELEASES, SEGPROOF

HISTORY_LAWS = (
    *(f"LOG-{n}" for n in range(5, 23)),
    *(f"LOAD-{n}" for n in (*range(2, 11), *range(12, 17), 18)),
)
OPERATIONS = (
    ["leader"] * 6
    + ["transactional"] * 4
    + ["marker"] * 3
    + ["follower"] * 4
    + ["read"] * 5
    + ["time", "truncate", "begin", "roll", "retain", "start", "watermark", "watermark"]
    + ["flush", "split", "reopen", "crash"]
)
NOT_BEFORE_0_11 = ("start", "watermark", "split")
KAFKA_RELEASES = [RELEASES[f"kafka-{number}"] for number in KAFKA]
ALL = [SEGPROOF, *(pytest.param(each, marks=pytest.mark.slow) for each in KAFKA_RELEASES)]


class History:
    """A log that a seed drives."""

    def __init__(self, seed: int, release: Release) -> None:
        """Choose the options; `steps` opens the log."""
        self.random = random.Random(seed)
        self.release = release
        self.now_ms = 1_000_000
        self.epoch = 0
        self.log: Any = None
        self.files = Files()
        choose = self.random.choice
        self.config = LogConfig(
            segment_bytes=choose([300, 700, 100_000]),
            segment_index_bytes=choose([24, 96, 1000]),
            index_interval_bytes=choose([0, 100, 4096]),
            retention_ms=choose([-1, 1000]),
            retention_bytes=choose([-1, 500]),
            message_timestamp_type=choose(["CreateTime", "LogAppendTime"]),
            file_delete_delay_ms=1000,
            preallocate=self.random.random() < 0.2,
        )

    def steps(self, count: int) -> Iterator[Transition]:
        """Do so many operations; an opening that fails ends the history."""
        yield self.open(0, 0, True)
        operations = OPERATIONS
        if self.release.has(LogBeginsWithSegment):
            operations = [one for one in OPERATIONS if one not in NOT_BEFORE_0_11]
        for _ in range(count):
            if self.log is None:
                return
            self.now_ms += self.random.randrange(500)
            self.log = apply(self.log, self.tick).after
            self.epoch += self.random.random() < 0.1
            yield getattr(self, self.random.choice(operations))()

    def tick(self, log: PartitionLog) -> None:
        """Let a draft see what time it is, and do what is due."""
        log.files.now_ms = self.now_ms
        log.delete_pending_files()

    def open(self, start: int, recovery_point: int, is_clean: bool) -> Transition:
        """Open the log."""
        arguments = {
            "dir": "t-0", "config": self.config, "log_start_offset": start,
            "recovery_point": recovery_point, "last_shutdown_clean": is_clean,
            "codecs": NO_CODECS, "draw": 0,
        }  # fmt: skip
        kind: Any = self.release.kind(PartitionLog)
        before = Files(self.files.images, self.now_ms)
        step = opened(kind, before, **arguments)
        self.log = step.after if isinstance(step.after, PartitionLog) else None
        return Transition(kind, before, "open", arguments, step.after, step.outcome)

    def done(self, operation: str, **arguments: Any) -> Transition:
        """Do an operation of the log."""
        before = self.log
        step = apply(before, operation, **arguments)
        self.log, self.files = step.after, step.after.files
        return Transition(type(before), before, operation, arguments, step.after, step.outcome)

    def records(self, base: int, count: int) -> list[Record]:
        """Return records from an offset on, with timestamps out of order."""
        times = [self.now_ms - self.random.randrange(-200, 3000) for _ in range(count)]
        return [Record(base + n, at, b"k", b"v" * (at % 40)) for n, at in enumerate(times)]

    @property
    def magic(self) -> int:
        """The newest format that the release writes."""
        return 1 if self.release.has(MessagesAloneAreWritten) else 2

    def leader(self) -> Transition:
        """Append as leader."""
        records = self.records(0, self.random.randrange(1, 4))
        data = write_batch(records, magic=self.magic, base_offset=0)
        return self.done("append_as_leader", records=data, leader_epoch=self.epoch)

    def transactional(self) -> Transition:
        """Append one record of a transaction; without transactions, any records."""
        if self.magic == 1:
            return self.leader()
        producer = self.random.randrange(3)
        known = self.log.producer_state_manager.last_entry(producer)
        data = write_batch(
            self.records(0, 1), base_offset=0, producer_id=producer, producer_epoch=0,
            base_sequence=0 if known is None else known.last_seq + 1, is_transactional=True,
        )  # fmt: skip
        return self.done("append_as_leader", records=data, leader_epoch=self.epoch)

    def marker(self) -> Transition:
        """End a transaction; without transactions, append any records."""
        if self.magic == 1:
            return self.leader()
        data = write_end_transaction_marker(
            self.random.choice(["ABORT", "ABORT", "COMMIT"]), offset=0, timestamp=self.now_ms,
            producer_id=self.random.randrange(3), producer_epoch=0, coordinator_epoch=0,
        )  # fmt: skip
        return self.done(
            "append_as_leader", records=data, leader_epoch=self.epoch,
            origin="coordinator", transaction_version=0,
        )  # fmt: skip

    def follower(self) -> Transition:
        """Append as follower, with gaps, far away, or below the end."""
        end, data = max(0, self.log.log_end_offset + self.random.choice([0, 0, 0, 5, -1])), b""
        for _ in range(self.random.randrange(1, 4)):
            records = self.records(end, 2)
            batch = write_batch(
                records, magic=self.magic, base_offset=end, partition_leader_epoch=self.epoch
            )
            data += batch
            end += self.random.choice([2, 2, 2, 4, 1, 2**31])
        return self.done("append_as_follower", records=data, leader_epoch=self.epoch)

    def read(self) -> Transition:
        """Read near one of the segments."""
        base = self.random.choice(self.log.log_segments.base_offsets() or [0])
        return self.done(
            "read", start_offset=base + self.random.randrange(-1, 9),
            max_length=self.random.choice([0, 60, 1000]),
            isolation=self.random.choice(["log_end", "high_watermark", "txn_committed"]),
            min_one_message=self.random.random() < 0.7,
        )  # fmt: skip

    def time(self) -> Transition:
        """Search by timestamp."""
        target = self.random.choice([-1, -2, -3, -3, -4, self.now_ms - self.random.randrange(4000)])
        return self.done("fetch_offset_by_timestamp", target_timestamp=target)

    def target(self) -> int:
        """Return an offset that may mean something."""
        ends = [self.log.log_start_offset, self.log.log_end_offset]
        base = self.random.choice([*ends, *self.log.log_segments.base_offsets()])
        return int(base) + self.random.randrange(-2, 3)

    def truncate(self) -> Transition:
        """Cut the log."""
        return self.done("truncate_to", target_offset=self.target())

    def begin(self) -> Transition:
        """Begin anew."""
        return self.done("truncate_fully_and_start_at", new_offset=abs(self.target()))

    def roll(self) -> Transition:
        """Begin a segment."""
        expected = self.random.choice([None, None, self.target()])
        return self.done("roll", expected_next_offset=expected)

    def retain(self) -> Transition:
        """Delete what nobody needs."""
        return self.done("delete_old_segments")

    def start(self) -> Transition:
        """Let the log begin later."""
        return self.done("maybe_increment_log_start_offset", new_log_start_offset=self.target())

    def watermark(self) -> Transition:
        """Move the high watermark."""
        high = self.random.choice([self.log.log_end_offset, self.target()])
        return self.done("update_high_watermark", high_watermark=high)

    def flush(self) -> Transition:
        """Make all durable."""
        return self.done("flush", force_flush_active_segment=self.random.random() < 0.5)

    def split(self) -> Transition:
        """Split a segment, which is rarely possible."""
        base = self.random.choice(self.log.log_segments.base_offsets() or [0])
        return self.done("split_overflowed_segment", base_offset=base)

    def reopen(self) -> Transition:
        """Stop, lose an index perhaps, and start."""
        self.done("close")
        names = [name for name in self.files if name.endswith("index")]
        if names and self.random.random() < 0.3:
            lost = self.random.choice(names)
            images = {name: data for name, data in self.files.images.items() if name != lost}
            self.files = Files(images)
        start, is_clean = self.log.log_start_offset, self.random.random() < 0.7
        return self.open(
            start + self.random.choice([0, 0, 0, 40]), self.log.recovery_point, is_clean
        )

    def crash(self) -> Transition:
        """Crash with a damaged or copied file, and start."""
        self.done("close_handlers")
        logs = [name for name in self.files if name.endswith(".log")]
        name = self.random.choice(logs)
        data = self.files.image(name)
        cut = data[: self.random.randrange(len(data) + 1)]
        suffix = self.random.choice([".swap", ".cleaned", ".deleted"])
        tail = self.records(self.log.log_end_offset, 1)
        far = write_batch(tail, magic=self.magic, base_offset=self.log.log_end_offset)
        left, image = self.random.choice(
            [(logs[-1], cut), (name, cut), (name + suffix, data), (logs[-1], data + far)]
        )
        self.files = Files({**self.files.images, left: image})
        return self.open(self.log.log_start_offset, self.log.recovery_point, False)


@pytest.mark.checks(*HISTORY_LAWS)
@pytest.mark.parametrize("release", ALL, ids=lambda one: one.name)
@settings(max_examples=15)
@given(st.integers(0, 2**32))
@example(7)
@example(2097153)
@example(2538801749)
@example(14382678)
@example(522083274)
@example(4237791195)
@example(3339650768)
def test_histories_obey_the_laws(release: Release, seed: int) -> None:
    """No step of a random history breaks a law."""
    for step in History(seed, release).steps(20):
        assert broken_step_laws(step) == [], (step.operation, step.arguments)
