# SPDX-License-Identifier: Apache-2.0
"""The verifier's vectorised checks against the model's laws, on random small directories.

A machine writes segments as releases do, then damages bytes. After each step: a law that the
verifier reports is broken by the model's predicate; and where it reports no defect, every predicate
holds.
"""

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from segproof.findings import Finding, Severity
from segproof.kafka import Record, write_batch, write_empty_batch, write_end_transaction_marker
from segproof.kafka.checkpoint_file import write_checkpoint
from segproof.kafka.producer_snapshot import BatchMetadata, ProducerStateEntry, write_snapshot
from segproof.verification import VERIFIED_LAWS, verify
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_harness.laws.every_law import LAWS, RETIRED
from segproof_harness.laws.judged_directory import DirectoryJudge
from segproof_model.kafka.format.transaction_index import AbortedTxn
from segproof_model.laws.kafka.format.log_bytes import batches_of, valid_batches
from segproof_tests.partition_files import in_memory, name_of

ENTRY_SIZES = {".index": 8, ".timeindex": 12}
CHECKPOINT = "leader-epoch-checkpoint"
SPARE_ENTRIES = 4
"""What a preallocated index has room for behind its last entry, here."""
FOLDER = "/data/t-0"
SHARE = 4
"""Each step verifies a directory and judges it by every law; so there are fewer histories."""


def open_transactions(logs: Iterable[bytes]) -> dict[int, int]:
    """Return where each transaction begins that has no marker, by producer."""
    found: dict[int, int] = {}
    for batch in (one for log in logs for one in valid_batches(log)):
        if batch.is_control:
            found.pop(batch.producer_id, None)
        elif batch.is_transactional:
            found.setdefault(batch.producer_id, batch.base_offset)
    return found


class Writer:
    """Writes segments the way a release does, with as few words as possible."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.offset = 0
        self.clock = 1000
        self.open: dict[int, int] = {}
        self.counts: dict[str, int] = {}
        self.history: list[ProducerStateEntry] = []
        """What was known of a producer after each of its batches."""
        self.epoch = 0
        self.epochs: list[tuple[int, int]] = []
        self.small: dict[str, bytearray] = {}
        """The files that are no segment's."""
        self.roll()

    def producers(self) -> dict[int, ProducerStateEntry]:
        """Return what is known of each producer."""
        known = {entry.producer_id: entry for entry in self.history}
        return {
            producer_id: replace(entry, current_txn_first_offset=self.open.get(producer_id))
            for producer_id, entry in known.items()
        }

    def produce(self, producer_id: int, count: int, is_transactional: bool) -> bytes:
        """Return a batch that continues the sequence of a producer; begin its transaction."""
        first, last = self.offset, self.offset + count - 1
        known = self.producers().get(producer_id)
        start = (1 << 31) - 3 if producer_id == 3 else 0
        sequence = (known.last_seq + 1) % (1 << 31) if known is not None else start
        if is_transactional:
            self.open.setdefault(producer_id, first)
        newest = BatchMetadata((sequence + count - 1) % (1 << 31), last, count - 1, self.clock)
        entry = ProducerStateEntry(producer_id, 0, -1, self.clock, None, (newest,))
        self.history.append(entry)
        records = [Record(offset, self.clock, None, b"t") for offset in range(first, last + 1)]
        return write_batch(
            records, base_offset=first, producer_id=producer_id, producer_epoch=0,
            base_sequence=sequence, is_transactional=is_transactional,
            partition_leader_epoch=self.lead(),
        )  # fmt: skip

    def lead(self) -> int:
        """Return the leader epoch of the next batch; the checkpoint has it."""
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs.append((self.epoch, self.offset))
        self.checkpoint()
        return self.epoch

    def checkpoint(self) -> None:
        """Write the checkpoint of the leader epochs."""
        lines = [f"{epoch} {offset}" for epoch, offset in self.epochs]
        self.small[CHECKPOINT] = bytearray(write_checkpoint(lines))

    def snapshot(self) -> None:
        """Write down what is known of the producers."""
        name = name_of(self.offset, ".snapshot")
        self.small[name] = bytearray(write_snapshot(self.producers().values()))

    def roll(self) -> None:
        """Close the segment and begin another one."""
        if self.files:
            self.snapshot()
            self.close()
            for suffix, size in ENTRY_SIZES.items():
                del self.of(suffix)[self.counts[suffix] * size :]
        self.base = self.offset
        for suffix in (".log", ".index", ".timeindex"):
            self.files[name_of(self.base, suffix)] = bytearray()
        self.counts = dict.fromkeys(ENTRY_SIZES, 0)
        self.is_preallocated = False
        self.largest = (-1, self.base)
        self.stored = -1

    def of(self, suffix: str) -> bytearray:
        """Return the bytes of a file of the last segment."""
        return self.files.setdefault(name_of(self.base, suffix), bytearray())

    def put_entry(self, suffix: str, entry: bytes) -> None:
        """Write an entry behind the last one; over what a truncation left, and before zeros."""
        index, at = self.of(suffix), self.counts[suffix] * len(entry)
        index[at : at + len(entry)] = entry
        self.counts[suffix] += 1
        if self.is_preallocated and len(index) == at + len(entry):
            index.extend(bytes(SPARE_ENTRIES * len(entry)))

    def truncate(self, kept: int) -> None:
        """Leave the first batches of the last segment; index entries are only counted out."""
        batches = batches_of(bytes(self.of(".log")))
        del self.of(".log")[batches[kept].position :]
        batches = batches[:kept]
        self.offset = batches[-1].last_offset + 1 if batches else self.base
        self.history = [one for one in self.history if one.last_offset < self.offset]
        logs = [bytes(self.files[name]) for name in sorted(self.files) if name.endswith(".log")]
        self.open = open_transactions(logs)
        self.epochs = [pair for pair in self.epochs if pair[1] < self.offset]
        self.checkpoint()
        for name in [name for name in self.small if name.endswith(".snapshot")]:
            if int(name[:20]) > self.offset:
                del self.small[name]
        largest = max(batches, key=lambda one: one.max_timestamp, default=None)
        self.largest = (-1, self.base)
        if largest is not None:
            self.largest = (
                largest.max_timestamp,
                largest.last_offset,
            )
        self.is_preallocated = True
        for suffix, form in ((".index", ">ii"), (".timeindex", ">qi")):
            entries = list(struct.iter_unpack(form, self.entries(suffix)))
            column = 0 if suffix == ".index" else 1
            below = [one for one in entries if self.base + one[column] < self.offset]
            self.counts[suffix] = len(below)
            self.of(suffix).extend(bytes(SPARE_ENTRIES * ENTRY_SIZES[suffix]))
            if suffix == ".timeindex":
                self.stored = below[-1][0] if below else -1

    def entries(self, suffix: str) -> bytes:
        """Return the entries that the broker counts."""
        return bytes(self.of(suffix)[: self.counts[suffix] * ENTRY_SIZES[suffix]])

    def close(self) -> None:
        """Write the last time entry."""
        if self.largest[0] > self.stored:
            entry = time_entries((self.largest[0], self.largest[1] - self.base))
            self.put_entry(".timeindex", entry)
            self.stored = self.largest[0]

    def append(
        self, batch: bytes, last: int, timestamp: int, *, key: int, indexed: bool, named: int
    ) -> None:
        """Append a batch; `key` goes into the offset index, `named` into the time index."""
        log = self.of(".log")
        if timestamp > self.largest[0]:
            self.largest = (timestamp, named)
        if indexed and log:
            self.put_entry(".index", offset_entries((key - self.base, len(log))))
            self.close()
        log.extend(batch)
        self.offset = last + 1


class VerificationMachine(RuleBasedStateMachine):
    """Writes, then damages; verifies after each step."""

    reached: ClassVar[Counter[str]] = Counter()

    @initialize()
    def begin(self) -> None:
        """Begin with one empty segment."""
        self.writer = Writer()
        self.damages = 0

    @precondition(lambda self: self.damages == 0)
    @rule(
        count=st.integers(1, 4),
        gap=st.sampled_from((0, 0, 0, 3)),
        magic=st.sampled_from((2, 2, 2, 1, 0)),
        compression=st.sampled_from(("none", "none", "gzip", "lz4", "snappy", "zstd")),
        early=st.integers(-20, 20),
        indexed=st.booleans(),
        by_first=st.booleans(),
        named=st.sampled_from(("first", "last", "exact")),
    )
    def append(
        self,
        count: int,
        gap: int,
        magic: int,
        compression: str,
        early: int,
        indexed: bool,
        by_first: bool,
        named: str,
    ) -> None:
        """Append a batch as a producer makes it."""
        writer = self.writer
        writer.clock += 5
        first = writer.offset + gap
        if magic < 2:
            count, compression = (count, "gzip") if compression == "gzip" else (1, "none")
        times = [max(0, writer.clock + early * (row % 3)) for row in range(count)]
        records = [Record(first + row, times[row], None, b"v" * row) for row in range(count)]
        batch = write_batch(records, magic=magic, base_offset=first, compression=compression)
        largest = max(times) if magic else -1
        last = first + count - 1
        exact = first + times.index(max(times))
        offsets = {"first": first, "last": last, "exact": exact}
        writer.append(
            batch, last, largest, key=first if by_first else last, indexed=indexed,
            named=offsets[named],
        )  # fmt: skip

    @precondition(lambda self: self.damages == 0)
    @rule(producer_id=st.integers(1, 3), indexed=st.booleans())
    def append_transactional(self, producer_id: int, indexed: bool) -> None:
        """Append a batch of a transaction."""
        writer = self.writer
        first = writer.offset
        batch = writer.produce(producer_id, 1, True)
        writer.append(batch, first, writer.clock, key=first, indexed=indexed, named=first)

    @precondition(lambda self: self.damages == 0)
    @rule(producer_id=st.integers(4, 5), count=st.integers(1, 3))
    def append_idempotent(self, producer_id: int, count: int) -> None:
        """Append a batch of a producer that uses no transactions."""
        writer = self.writer
        first, last = writer.offset, writer.offset + count - 1
        batch = writer.produce(producer_id, count, False)
        writer.append(batch, last, writer.clock, key=last, indexed=True, named=first)

    @precondition(lambda self: self.damages == 0 and bool(self.writer.open))
    @rule(data=st.data())
    def leave_a_transaction(self, data: Any) -> None:
        """Append a batch outside of the open transaction of its producer, as no broker does."""
        writer = self.writer
        producer_id = data.draw(st.sampled_from(sorted(writer.open)))
        offset = writer.offset
        batch = writer.produce(producer_id, 1, False)
        writer.append(batch, offset, writer.clock, key=offset, indexed=True, named=offset)
        self.damages += 1
        self.reached["left a transaction"] += 1

    @precondition(lambda self: self.damages == 0)
    @rule()
    def change_leader(self) -> None:
        """Let another leader write from now on."""
        self.writer.epoch += 2
        self.reached["led anew"] += 1

    @precondition(lambda self: self.damages == 0)
    @rule()
    def take_snapshot(self) -> None:
        """Write down the producers inside a segment, as a clean stop does."""
        self.writer.snapshot()
        self.reached["snapshot"] += 1

    @precondition(lambda self: self.damages == 0)
    @rule(producer_id=st.integers(1, 3), kind=st.sampled_from(("ABORT", "COMMIT")))
    def end_transaction(self, producer_id: int, kind: str) -> None:
        """End a transaction, or write a marker where none is open."""
        writer = self.writer
        offset = writer.offset
        first = writer.open.pop(producer_id, None)
        if kind == "ABORT" and first is not None:
            stable = min([offset + 1, *writer.open.values()])
            writer.of(".txnindex").extend(
                AbortedTxn(0, producer_id, first, offset, stable).to_bytes()
            )
            self.reached["aborted"] += 1
        batch = write_end_transaction_marker(
            kind, offset=offset, timestamp=writer.clock, producer_id=producer_id,
            producer_epoch=0, coordinator_epoch=7, partition_leader_epoch=writer.lead(),
        )  # fmt: skip
        writer.append(batch, offset, writer.clock, key=offset, indexed=True, named=offset)

    @precondition(lambda self: self.damages == 0)
    @rule(length=st.integers(1, 5))
    def append_empty(self, length: int) -> None:
        """Append what compaction leaves of a producer's last batch."""
        writer = self.writer
        last = writer.offset + length - 1
        batch = write_empty_batch(writer.offset, last, writer.clock)
        writer.append(batch, last, writer.clock, key=last, indexed=True, named=last)

    @precondition(lambda self: self.damages == 0 and bool(self.writer.of(".log")))
    @rule()
    def roll(self) -> None:
        """Begin the next segment."""
        self.writer.roll()
        self.reached["rolled"] += 1

    @precondition(lambda self: self.damages == 0 and ".txnindex" not in self.suffixes())
    @rule(share=st.integers(0, 100))
    def truncate(self, share: int) -> None:
        """Take batches back, as a follower does; the bytes of their entries stay."""
        writer = self.writer
        count = len(batches_of(bytes(writer.of(".log"))))
        if count and not writer.open:
            writer.truncate(count * share // 101)
            self.reached["truncated"] += 1

    def suffixes(self) -> set[str]:
        """Return the files of the last segment."""
        return {name[20:] for name in self.writer.files if int(name[:20]) == self.writer.base}

    @precondition(lambda self: self.damages < 2)
    @rule(data=st.data())
    def damage(self, data: Any) -> None:
        """Damage one file in one way."""
        every = {**self.writer.files, **self.writer.small}
        files = {name: image for name, image in every.items() if image}
        if not files:
            return
        segments = [name for name in sorted(files) if name in self.writer.files]
        name = data.draw(st.sampled_from([*segments, *segments, *sorted(files)]))
        image = files[name]
        way = data.draw(st.sampled_from(("flip", "flip", "put", "cut", "append", "zero", "swap")))
        at = data.draw(st.integers(0, len(image) - 1))
        if way == "flip":
            image[at] ^= 1 << data.draw(st.integers(0, 7))
        elif way == "put":
            image[at] = data.draw(st.integers(0, 255))
        elif way == "cut":
            del image[at:]
        elif way == "append":
            image.extend(data.draw(st.binary(min_size=1, max_size=80)))
        elif way == "zero":
            size = data.draw(st.integers(1, 80))
            image[at : at + size] = bytes(len(image[at : at + size]))
        else:
            size = {".index": 8, ".timeindex": 12, ".txnindex": 34}.get(name[20:], 13)
            one = at // size * size
            image[one : one + 2 * size] = (
                image[one + size : one + 2 * size] + image[one : one + size]
            )
        self.damages += 1
        self.reached["damaged " + (CHECKPOINT if name == CHECKPOINT else name[20:])] += 1

    @precondition(lambda self: self.damages < 2)
    @rule(data=st.data())
    def change_a_header_and_sum_again(self, data: Any) -> None:
        """Change a byte of a batch and make its checksum right again."""
        log = self.writer.of(".log")
        batches = batches_of(bytes(log))
        if not batches:
            return
        batch = batches[data.draw(st.integers(0, len(batches) - 1))]
        own = bytearray(batch.data)
        least = 21 if batch.magic == 2 else 17
        at = data.draw(st.integers(least, len(own) - 1) | st.integers(least, least + 39))
        own[min(at, len(own) - 1)] ^= 1 << data.draw(st.integers(0, 7))
        start = 17 if batch.magic == 2 else 12
        own[start : start + 4] = batch.crc_of(bytes(own)).to_bytes(4, "big")
        log[batch.position : batch.position + len(own)] = own
        self.damages += 1
        self.reached["summed again"] += 1

    @precondition(lambda self: self.damages < 2)
    @rule(data=st.data())
    def name_another_batch(self, data: Any) -> None:
        """Let a time entry name the end of another batch; its timestamp stays."""
        count = self.writer.counts[".timeindex"]
        batches = batches_of(bytes(self.writer.of(".log")))
        index = self.writer.of(".timeindex")
        if not count or not batches or len(index) < count * 12:
            return
        entry = data.draw(st.integers(0, count - 1))
        last = data.draw(st.sampled_from(batches)).last_offset - self.writer.base
        if not -(1 << 31) <= last < 1 << 31:
            return
        struct.pack_into(">i", index, entry * 12 + 8, last)
        self.damages += 1
        self.reached["named another batch"] += 1

    @precondition(lambda self: self.damages > 0)
    @rule()
    def begin_anew(self) -> None:
        """Throw the damaged directory away."""
        self.begin()

    @invariant()
    def agrees(self) -> None:
        """Hold the verifier's findings against the model's laws."""
        every = {**self.writer.files, **self.writer.small}
        images = {name: bytes(image) for name, image in every.items()}
        findings = list(verify(FOLDER, deep=True, files=in_memory(images, FOLDER)))
        judge = DirectoryJudge(images)
        for finding in findings:
            if finding.severity is Severity.NOTE and finding.law in ("SEG-7", "DISK-9"):
                continue  # entries that could not be compared
            assert judge.breaks(finding.law), str(finding)
            self.reached[finding.law] += 1
        if not any(finding.is_defect for finding in findings):
            # Of entries that a truncation left, or that could not be compared, a note speaks.
            assert set(judge.broken()) <= {finding.law for finding in findings}
        if self.damages == 0:
            assert [] == [str(one) for one in findings if one.is_defect]
        self._check_shape(findings)

    def _check_shape(self, findings: list[Finding]) -> None:
        for finding in findings:
            assert finding.law in VERIFIED_LAWS
            assert finding.path.startswith(FOLDER)
            assert finding.message
            assert finding.hint
            assert finding.to_json_line().isascii()


@pytest.mark.checks(
    "SEG-7", "LOG-4", "DUMP-6", "DISK-6", "DISK-8", "DISK-9", "DISK-10", "DISK-11", "DISK-12",
    "DISK-13", "DISK-14", "DISK-15", "DISK-16", "DISK-17", "DISK-18", "DISK-19", "DISK-21",
    "DISK-22", "DISK-23", "DISK-28", "DISK-29", "DISK-30", "DISK-31", "DISK-32", "DISK-33",
    "DISK-34", "DISK-35", "DISK-36", "DISK-37", "DISK-44", "PROD-3", "PROD-14", "SCAN-2",
    "SCAN-10", "BATCH-2", "BATCH-3", "BATCH-14", "BATCH-19",
)  # fmt: skip
def test_agrees_with_the_laws() -> None:
    """What the verifier reports is broken, and what it passes is whole."""

    class Machine(VerificationMachine):
        """An own class, so that what is reached is of this test."""

        reached: ClassVar[Counter[str]] = Counter()

    examples = max(1, settings().max_examples // SHARE)
    run_state_machine_as_test(Machine, settings=settings(max_examples=examples))
    if examples >= 20:
        assert {"rolled", "truncated", "damaged .log", "summed again"} <= set(Machine.reached)
        assert {"left a transaction", "DISK-44"} <= set(Machine.reached)
        assert {"named another batch", "DISK-9"} <= set(Machine.reached)
        assert {"SEG-7", "BATCH-3"} <= set(Machine.reached)


def test_every_reported_law_is_stated() -> None:
    """Each law that the verifier can name is one of the model's."""
    assert set() == VERIFIED_LAWS - set(LAWS) - set(RETIRED)
