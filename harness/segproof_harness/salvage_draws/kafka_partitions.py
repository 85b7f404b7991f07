# SPDX-License-Identifier: Apache-2.0
"""Sound partitions of Kafka, drawn by a seed: what a broker leaves on its disk.

Magic 0 to 2, one format or one after another; codecs; producers and transactions; leader epochs;
compacted topics; one to four segments with their indexes. Sometimes a partition that a real broker
wrote. Every offset that is in a batch is known.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

from segproof.kafka import Record, write_batch, write_empty_batch, write_end_transaction_marker
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.salvage_draws.kafka_reader import Batch, framed

CODECS = ("none", "none", "gzip", "snappy", "lz4", "zstd")
MAGICS = ((2,), (2,), (2,), (1,), (0,), (1, 2), (0, 1))
"""The formats of a log: the first part of it has the first."""
STYLES = ("plain", "plain", "compacted", "transactions", "producers")
INDEX_INTERVAL_BYTES = 300
CLOCK_MS = 1_700_000_000_000


class Truth(NamedTuple):
    """One batch before the damage."""

    first: int
    last: int
    batch: Batch

    @property
    def content(self) -> bytes:
        """Return the checksum, and the bytes that it covers."""
        return self.batch.content


@dataclass
class Partition:
    """A sound partition."""

    words: str
    logs: dict[int, bytes] = field(default_factory=dict)
    """The log of each segment by its base offset."""
    truth: list[Truth] = field(default_factory=list)
    others: dict[str, bytes] = field(default_factory=dict)
    """The other files by their names."""

    @property
    def is_dense(self) -> bool:
        """Return whether no offset was left out, from the name of the first log on."""
        begins = self.truth[0].first == min(self.logs)
        return begins and all(two.first == one.last + 1 for one, two in pairwise(self.truth))

    @property
    def is_compacted(self) -> bool:
        """Return whether the topic is compacted, so all of its records have keys."""
        return "compacted" in self.words


def draw_partition(random: Random) -> tuple[Partition, bytes]:
    """Return a sound partition, and a log of another topic of the same broker."""
    if random.random() < 0.2:
        names = range(len(real_partitions()))
        one, other = random.choice(names), random.choice(names)
        foreign = random.choice(list(real_partitions()[other].logs.values()))
        return cut(real_partitions()[one], random), foreign if other != one else b""
    recipe = _drawn_recipe(random)
    partition = written(recipe, random)
    if random.random() < 0.3:
        recipe = replace(_drawn_recipe(random), first=recipe.first)
    else:
        recipe = replace(recipe, producer=recipe.producer + 50, cuts=0)
    others = written(recipe, random)
    return partition, random.choice(list(others.logs.values()))


@cache
def real_partitions() -> tuple[Partition, ...]:
    """Return the partitions of real brokers that ship with the package."""
    return tuple(read_partition(partition_of(one)) for one in scenarios())


def read_partition(folder: Path) -> Partition:
    """Return the sound partition of a directory."""
    paths = sorted(path for path in folder.glob("*.log") if path.stat().st_size)
    found = known_partition(folder.name, {int(path.stem): path.read_bytes() for path in paths})
    found.others = {
        beside.name: beside.read_bytes()
        for path in paths
        for beside in sorted(folder.glob(path.stem + ".*index"))
    }
    return found


def known_partition(words: str, logs: dict[int, bytes]) -> Partition:
    """Return a sound partition of some logs, in which no offset of a wrapper is left out."""
    found = Partition(words, logs)
    reached = min(logs) - 1
    for base in sorted(logs):
        for batch in framed(logs[base]):
            first = reached + 1 if batch.is_wrapper else batch.offset
            found.truth.append(Truth(first, batch.last, batch))
            reached = batch.last
    return found


def cut(partition: Partition, random: Random) -> Partition:
    """Return one to three neighbouring segments of a partition."""
    bases = sorted(partition.logs)
    count = min(len(bases), random.choice((1, 2, 2, 3)))
    begin = random.randrange(len(bases) - count + 1)
    kept = bases[begin : begin + count]
    end = (bases[begin + count :] or [1 << 62])[0]
    return Partition(
        partition.words,
        {base: partition.logs[base] for base in kept},
        [one for one in partition.truth if kept[0] <= one.first < end],
        {name: data for name, data in partition.others.items() if int(name[:20]) in kept},
    )


# --- writing


@dataclass(frozen=True)
class _Recipe:
    """What a partition is made of."""

    magics: tuple[int, ...]
    style: str
    codecs: tuple[str, ...]
    batches: int
    records_max: int
    value_max: int
    """The largest value in bytes."""
    first: int
    cuts: int
    """How many times the log is rolled."""
    epoch: int
    producer: int
    clock_ms: int

    def __str__(self) -> str:
        magics = " then ".join(map(str, self.magics))
        codecs = "/".join(dict.fromkeys(self.codecs))
        return f"magic {magics}, {self.style}, {codecs}, {self.batches} batches"


def _drawn_recipe(random: Random) -> _Recipe:
    magics = random.choice(MAGICS)
    codec = random.choice(CODECS[: -1 if min(magics) < 2 else None])
    return _Recipe(
        magics,
        random.choice(STYLES) if magics == (2,) else random.choice(STYLES[:3]),
        random.choice(((codec,), (codec,), ("none", codec))),
        random.choice((4, 12, 40, 90)),
        random.choice((1, 3, 12)),
        random.choice((20, 120, 900)),
        random.choice((0, 0, 1000, 5_000_000, 1 << 32)),
        random.choice((0, 1, 1, 2, 3)),
        random.choice((0, 0, 3, 40)),
        random.choice((1, 4000)),
        CLOCK_MS + random.choice((0, 0, 10**7)),
    )


def written(recipe: _Recipe, random: Random) -> Partition:
    """Return a partition that a recipe describes."""
    batches = _Writer(recipe, random).batches()
    partition = Partition(str(recipe))
    cuts = sorted(random.sample(range(1, len(batches)), min(recipe.cuts, len(batches) - 1)))
    bounds = [0, *cuts, len(batches)]
    for begin, end in pairwise(bounds):
        own = batches[begin:end]
        kept = own if end == len(batches) else _compacted(own, recipe, random)
        log = b"".join(one.data for one in kept)
        base = own[0].first
        partition.logs[base] = log
        for one, batch in zip(kept, framed(log), strict=True):
            partition.truth.append(Truth(one.first, one.last, batch))
        for suffix, data in _indexes(base, kept, batches).items():
            partition.others[f"{base:020d}{suffix}"] = data
    if 2 in recipe.magics:
        partition.others["leader-epoch-checkpoint"] = _epochs(partition.truth)
    return partition


@dataclass
class _Written:
    """One batch of the healthy log, with the records and options from which it was encoded."""

    first: int
    last: int
    data: bytes
    records: list[Record]
    options: dict[str, object]
    aborted: tuple[int, int] | None = None
    """For the marker that aborts a transaction: its producer, and its first offset."""


class _Writer:
    """Writes the batches of one recipe."""

    def __init__(self, recipe: _Recipe, random: Random) -> None:
        self._recipe, self._random = recipe, random
        self._offset, self._epoch = recipe.first, recipe.epoch
        self._clock_ms = recipe.clock_ms
        self._sequences: dict[int, int] = {}
        self._open: dict[int, int] = {}
        """The first offset of each open transaction, by producer."""

    def batches(self) -> list[_Written]:
        """Return the batches in order; each transaction is ended."""
        found = []
        magics = self._recipe.magics
        for number in range(self._recipe.batches):
            magic = magics[number * len(magics) // self._recipe.batches]
            found.append(self._records(magic))
            if self._open and self._random.random() < 0.3:
                found.append(self._marker(self._random.choice(sorted(self._open))))
            self._epoch += self._random.random() < 0.04
        return found + [self._marker(producer) for producer in sorted(self._open)]

    def _records(self, magic: int) -> _Written:
        random, recipe, first = self._random, self._recipe, self._offset
        codec = random.choice(recipe.codecs)
        count = random.randint(1, recipe.records_max)
        if magic < 2 and codec == "none":
            count = 1
        records = []
        for offset in range(first, first + count):
            self._clock_ms += random.choice((0, 1, 7, 900))
            key = b"k%d" % random.randrange(20) if recipe.style == "compacted" else None
            size = random.randint(0, recipe.value_max)
            value = b"%d:" % offset + random.randbytes(size // 2) + bytes(size - size // 2)
            time = self._clock_ms - random.choice((0, 0, 3)) if magic else -1
            records.append(Record(offset, time, key, value))
        options: dict[str, object] = {"magic": magic, "compression": codec}
        if magic == 2:
            options |= {"partition_leader_epoch": self._epoch, **self._producer(first, count)}
        self._offset += count
        data = write_batch(records, base_offset=first, **options)  # type: ignore[arg-type]
        return _Written(first, first + count - 1, data, records, options)

    def _producer(self, first: int, count: int) -> dict[str, object]:
        """Return the options of a producer for a batch; none for a plain one."""
        style = self._recipe.style
        if style not in ("transactions", "producers") or self._random.random() < 0.2:
            return {}
        producer = self._recipe.producer + self._random.randrange(3)
        sequence = self._sequences.get(producer, 0)
        self._sequences[producer] = sequence + count
        if style == "transactions":
            self._open.setdefault(producer, first)
        return {
            "producer_id": producer,
            "producer_epoch": 0,
            "base_sequence": sequence,
            "is_transactional": style == "transactions",
        }

    def _marker(self, producer: int) -> _Written:
        """Return the batch that ends the transaction of a producer."""
        begun, offset = self._open.pop(producer), self._offset
        kind = self._random.choice(("COMMIT", "COMMIT", "ABORT"))
        data = write_end_transaction_marker(
            kind,
            offset=offset,
            timestamp=self._clock_ms,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            partition_leader_epoch=self._epoch,
        )
        self._offset += 1
        aborted = (producer, begun) if kind == "ABORT" else None
        return _Written(offset, offset, data, [], {}, aborted)


def _compacted(batches: Sequence[_Written], recipe: _Recipe, random: Random) -> Sequence[_Written]:
    """Return the batches that the log cleaner leaves of a closed segment of a compacted topic."""
    if recipe.style != "compacted":
        return batches
    found = []
    for place, one in enumerate(batches):
        kept = [record for record in one.records if random.random() < 0.6]
        is_new = one.options["magic"] == 2
        if not kept and place < len(batches) - 1:
            continue
        if not kept and not is_new:
            kept = one.records[-1:]
        options = dict(one.options)
        first, last = (one.first, one.last) if is_new else (kept[0].offset, kept[-1].offset)
        if kept:
            more = {"last_offset": last} if is_new else {}
            data = write_batch(kept, base_offset=first, **options, **more)  # type: ignore[arg-type]
        else:
            time = max(record.timestamp for record in one.records)
            epoch = next(framed(one.data)).leader_epoch
            data = write_empty_batch(first, last, time, partition_leader_epoch=epoch)
        found.append(_Written(first, last, data, kept, options))
    return found


# --- the files beside a log


def _indexes(base: int, own: Sequence[_Written], every: Sequence[_Written]) -> dict[str, bytes]:
    """Return the indexes of a segment by their suffixes."""
    offsets, times, aborted = bytearray(), bytearray(), bytearray()
    position = since = 0
    latest, latest_offset, told = -1, base, -1
    log = b"".join(one.data for one in own)
    for one, batch in zip(own, framed(log), strict=True):
        if since > INDEX_INTERVAL_BYTES:
            offsets += struct.pack(">ii", one.last - base, position)
            if latest > told:
                times += struct.pack(">qi", latest, latest_offset - base)
                told = latest
            since = 0
        if batch.timestamp > latest:
            latest, latest_offset = batch.timestamp, one.last
        if one.aborted is not None:
            producer, first = one.aborted
            stable = _stable_offset(one, every)
            aborted += struct.pack(">hqqqq", 0, producer, first, one.last, stable)
        position += batch.size
        since += batch.size
    if latest > told:
        times += struct.pack(">qi", latest, latest_offset - base)
    found = {".index": bytes(offsets), ".timeindex": bytes(times)}
    return found | ({".txnindex": bytes(aborted)} if aborted else {})


def _stable_offset(marker: _Written, every: Sequence[_Written]) -> int:
    """Return the last stable offset when a transaction was aborted.

    It is the first offset of the transactions that were open then; without one, the offset after
    the marker.
    """
    begun: dict[object, int] = {}
    for one in every:
        if one.first > marker.last:
            break
        header = next(framed(one.data))
        if not one.options:
            begun.pop(header.producer_id, None)
        elif one.options.get("is_transactional"):
            begun.setdefault(header.producer_id, one.first)
    return min(begun.values(), default=marker.last + 1)


def _epochs(truth: Sequence[Truth]) -> bytes:
    """Return the checkpoint of leader epochs."""
    starts: dict[int, int] = {}
    for one in truth:
        if one.batch.leader_epoch >= 0:
            starts.setdefault(one.batch.leader_epoch, one.first)
    lines = [f"{epoch} {first}" for epoch, first in starts.items()]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()
