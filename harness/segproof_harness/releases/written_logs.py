# SPDX-License-Identifier: Apache-2.0
"""Logs that the implementation writes for a real broker, and what a consumer must see of them.

What is expected is noted down while writing, and never read back from the log.
"""

import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from segproof.integers import now_ms
from segproof.kafka import (
    LogConfig,
    LogManager,
    PartitionLog,
    Record,
    RecordHeader,
    write_batch,
    write_end_transaction_marker,
)
from segproof_harness.releases.kafka_clients import Seen

START_MS = now_ms() - 3_600_000
"""An hour ago: who loads a log forgets producers that have been silent for a day."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LOTS = 150
"""How many batches, markers aside, each log gets."""
STAMPED_MS = START_MS + 1_000_000
COMMON = {"internal.segment.bytes": "6000", "index.interval.bytes": "300", "retention.ms": "-1"}
TOPICS: Mapping[str, Mapping[str, str]] = {
    "transactions": COMMON,
    "open": COMMON,
    "stamped": {**COMMON, "message.timestamp.type": "LogAppendTime"},
    "magic-1": COMMON,
    "old-formats": COMMON,
}
"""The topics, with the options that a broker needs to go on as we began."""
OLDEST_LOTS = {"magic-1": 0, "old-formats": LOTS // 2}
"""Of the logs in old formats: how many lots are of magic 0, which has no timestamps."""
_OURS = LogConfig(segment_bytes=6000, index_interval_bytes=300, segment_index_bytes=4096)
CONFIGS = dict.fromkeys(TOPICS, _OURS) | {
    "stamped": LogConfig(
        segment_bytes=6000,
        index_interval_bytes=300,
        segment_index_bytes=4096,
        message_timestamp_type="LogAppendTime",
    )
}
"""The same options as the implementation has them."""


@dataclass(slots=True)
class Expected:
    """What a consumer must see of one log."""

    seen: list[Seen] = field(default_factory=list)
    """Every record but control records, in order."""
    aborted: set[int] = field(default_factory=set)
    """Offsets of records of aborted transactions."""
    stable_offset: int = 0
    end_offset: int = 0
    segments: int = 0

    @property
    def committed(self) -> list[Seen]:
        """What `read_committed` shows of it."""
        return [
            one
            for one in self.seen
            if one.offset not in self.aborted and one.offset < self.stable_offset
        ]


def write_logs(disk: Path, topics: Mapping[str, uuid.UUID]) -> dict[str, Expected]:
    """Write one log for each topic below `disk`, as a cleanly stopped broker leaves a disk.

    Partitions that lie there already, of other topics, are opened and closed in order.
    """
    expected = {}
    for name, topic_id in topics.items():
        # A manager has one configuration for all its logs, so there is one after the other.
        with LogManager(disk, CONFIGS[name], create=True, time=lambda: STAMPED_MS) as manager:
            expected[name] = write_log(manager, name, topic_id)
    return expected


def write_log(manager: LogManager, name: str, topic_id: uuid.UUID) -> Expected:
    """Write the log of one topic, and leave it open."""
    writer = _Writer(manager.get_or_create_log(name, 0, topic_id))
    if name in OLDEST_LOTS:
        writer.write_old(OLDEST_LOTS[name])
    else:
        writer.write()
    if name == "open":
        writer.leave_open()
    return writer.told()


class _Writer:
    """Appends to one log, and notes down what a consumer must see."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._random = random.Random(log.dir.rpartition("/")[2])
        self._expected = Expected()
        self._sequences: dict[int, int] = {}
        self._open: dict[int, list[int]] = {}
        """The offsets of each open transaction, by producer id."""
        self._clock = START_MS

    def write(self) -> None:
        """Append lots of every codec, by producers of every kind, under two leader epochs."""
        for number in range(LOTS):
            epoch = 0 if number < LOTS // 2 else 1
            codec = CODECS[number % len(CODECS)]
            match number % 3:
                case 0:
                    self._append(codec, epoch)
                case 1:
                    self._append(codec, epoch, producer_id=4000 + number % 2)
                case _:
                    self._append_transactional(codec, epoch, 5000 + number % 4)
        for producer_id in sorted(self._open):
            self._end(producer_id, "COMMIT", 1)

    def _append_transactional(self, codec: str, epoch: int, producer_id: int) -> None:
        self._append(codec, epoch, producer_id=producer_id, is_transactional=True)
        if self._random.random() < 0.3:
            self._end(producer_id, self._random.choice(("ABORT", "COMMIT")), epoch)

    def leave_open(self) -> None:
        """Append to a transaction that is not ended."""
        self._append("none", 1, producer_id=5000, is_transactional=True)

    def write_old(self, oldest_lots: int) -> None:
        """Append lots of magic 0, then 1, as a log has them that is older than its broker."""
        for number in range(LOTS):
            magic = 0 if number < oldest_lots else 1
            codec = CODECS[:4][number % 4]
            first = self._log.log_end_offset
            records = [
                Record(first + place, one.timestamp if magic else -1, one.key, one.value)
                for place, one in enumerate(self._records(with_headers=False))
            ]
            data = write_batch(records, magic=magic, base_offset=first, compression=codec)
            # Uncompressed messages stand for themselves: a leader takes one batch, a follower all.
            self._log.append_as_follower(data, 0)
            self._expected.seen += [
                Seen(
                    one.offset,
                    one.timestamp,
                    "CreateTime" if magic else "NoTimestampType",
                    one.key,
                    one.value,
                    (),
                    None,
                )
                for one in records
            ]

    def _append(
        self,
        codec: str,
        leader_epoch: int,
        *,
        producer_id: int = -1,
        is_transactional: bool = False,
    ) -> None:
        records = self._records()
        sequence = self._sequences.get(producer_id, 0)
        data = write_batch(
            records,
            base_offset=0,
            compression=codec,
            producer_id=producer_id,
            producer_epoch=-1 if producer_id == -1 else 0,
            base_sequence=-1 if producer_id == -1 else sequence,
            is_transactional=is_transactional,
        )
        first = self._log.log_end_offset
        info = self._log.append_as_leader(data, leader_epoch)
        assert (info.first_offset, info.last_offset) == (first, first + len(records) - 1)
        self._sequences[producer_id] = sequence + len(records)
        if is_transactional:
            self._open.setdefault(producer_id, []).extend(range(first, info.last_offset + 1))
        self._expected.seen += [self._seen(first, one, leader_epoch) for one in records]

    def _seen(self, first: int, record: Record, leader_epoch: int) -> Seen:
        is_stamped = self._log.config.message_timestamp_type == "LogAppendTime"
        return Seen(
            first + record.offset,
            STAMPED_MS if is_stamped else record.timestamp,
            "LogAppendTime" if is_stamped else "CreateTime",
            record.key,
            record.value,
            tuple((one.key, one.value) for one in record.headers),
            leader_epoch,
        )

    def _records(self, *, with_headers: bool = True) -> list[Record]:
        """Draw some records: keys, values and headers of every kind, times not quite in order."""
        draw = self._random
        found = []
        for offset in range(draw.randint(1, 12)):
            self._clock += draw.randint(0, 9)
            headers = [RecordHeader("name", b"value"), RecordHeader("", None)][: draw.randint(0, 2)]
            found.append(
                Record(
                    offset,
                    self._clock - draw.choice((0, 0, 0, 40)),
                    draw.choice((None, b"", b"key-%d" % draw.randint(0, 9))),
                    draw.choice((None, b"", draw.randbytes(draw.randint(1, 80)), b"v" * 300)),
                    tuple(headers) if with_headers else (),
                )
            )
        return found

    def _end(self, producer_id: int, control_type: str, leader_epoch: int) -> None:
        """End the open transaction of a producer."""
        marker = write_end_transaction_marker(
            control_type,
            offset=0,
            timestamp=self._clock,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=1,
        )
        self._log.append_as_leader(
            marker, leader_epoch, origin="coordinator", transaction_version=1
        )
        offsets = self._open.pop(producer_id)
        if control_type == "ABORT":
            self._expected.aborted.update(offsets)

    def told(self) -> Expected:
        """Return what was noted down."""
        log, expected = self._log, self._expected
        firsts = [offsets[0] for offsets in self._open.values()]
        expected.end_offset = log.log_end_offset
        expected.stable_offset = min(firsts, default=expected.end_offset)
        expected.segments = len(log.log_segments)
        return expected
