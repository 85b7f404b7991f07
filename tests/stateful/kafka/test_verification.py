# SPDX-License-Identifier: Apache-2.0
"""The verifier's vectorised checks against the model's laws, on random small directories.

A machine writes segments as releases do, then damages bytes. After each step: a law that the
verifier reports is broken by the model's predicate; and where it reports no defect, every predicate
holds.

Used by: the tox environments `py311` to `py313`.
"""

import pkgutil
import struct
from collections import Counter
from collections.abc import Callable
from importlib import import_module
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

import segproof_model.laws
from segproof.findings import Finding, Severity
from segproof.kafka.record_batch import (
    Record,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof.verification import VERIFIED_LAWS, verify
from segproof_harness.codecs import CODECS
from segproof_harness.memory_files import MemoryFiles
from segproof_model.directory import Directory
from segproof_model.kafka.record_batch import RecordBatch, end_transaction_marker
from segproof_model.kafka.transaction_index import AbortedTxn
from segproof_model.laws import disk
from segproof_model.laws.registry import LAWS
from segproof_model.outcomes import Raised

for module in pkgutil.iter_modules(segproof_model.laws.__path__):
    import_module(f"segproof_model.laws.{module.name}")

SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
ENTRY_SIZES = {".log": 1, ".index": 8, ".timeindex": 12}
FOLDER = "/data/t-0"
SHARE = 4
"""Each step verifies a directory and judges it by every law; so there are fewer histories."""
# Laws about reading a batch: the model says them by what reading raises.
RECORD_LAWS = frozenset(
    {"BATCH-9", "BATCH-10", "BATCH-11", "BATCH-15", "BATCH-16", "BATCH-18", "DISK-18"}
)


def name_of(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file."""
    return f"{base_offset:020d}{suffix}"


class Judge:
    """What the model says about one directory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.bases = sorted({int(name[:20]) for name in files})

    def read(self, base_offset: int, suffix: str) -> bytes:
        """Return the bytes of a file; none where there is none."""
        return self.files.get(name_of(base_offset, suffix), b"")

    def breaks(self, law_id: str) -> bool:
        """Return whether the directory breaks a law."""
        if law_id in ("DISK-3", "DISK-4", "DISK-5", "LOAD-1", "DISK-20"):
            return not LAWS[law_id].predicate(Directory(tuple(sorted(self.files.items()))))
        if law_id == "DISK-12":
            pairs = [(self.read(base, ".log"), self.read(base, ".txnindex")) for base in self.bases]
            return not disk.abort_marker_has_its_entry(pairs, CODECS)
        return any(self._segment_breaks(law_id, base) for base in self.bases)

    def _segment_breaks(self, law_id: str, base: int) -> bool:
        following = next((other for other in self.bases if other > base), None)
        log, index = self.read(base, ".log"), self.read(base, ".index")
        times, aborted = self.read(base, ".timeindex"), self.read(base, ".txnindex")
        whole = index[: len(index) // 8 * 8]
        holds: dict[str, Callable[[], bool]] = {
            "OFFIDX-1": lambda: LAWS["OFFIDX-1"].predicate(index, base),
            "OFFIDX-2": lambda: LAWS["OFFIDX-2"].predicate(index, base),
            "TIMEIDX-1": lambda: LAWS["TIMEIDX-1"].predicate(times, base),
            "TIMEIDX-7": lambda: LAWS["TIMEIDX-7"].predicate(times, base),
            "TXNIDX-1": lambda: LAWS["TXNIDX-1"].predicate(aborted, base),
            "SEG-7": lambda: disk.entry_points_at_batch(log, whole, base),
            "LOG-4": lambda: following is None or disk.segments_do_not_overlap(log, following),
            "DUMP-6": lambda: disk.log_ends_with_a_batch(log),
            "SCAN-2": lambda: disk.log_ends_with_a_batch(log),
            "SCAN-10": lambda: disk.log_ends_with_a_batch(log),
            "DISK-6": lambda: all(
                disk.closed_file_has_no_zero_tail(self.read(base, suffix), size, True)
                for suffix, size in ENTRY_SIZES.items()
            ),
            "DISK-8": lambda: disk.positions_strictly_increase(whole),
            "DISK-9": lambda: disk.entry_tells_largest_timestamp(log, times, base),
            "DISK-10": lambda: (
                following is None or disk.closed_segment_tells_its_largest_timestamp(log, times)
            ),
            "DISK-11": lambda: disk.aborted_transaction_has_its_marker(log, aborted, CODECS),
            "DISK-13": lambda: disk.batch_offsets_rise_within_segment(log, base),
            "DISK-14": lambda: disk.count_fits_the_offsets(log),
            "DISK-15": lambda: disk.unused_attribute_bits_are_zero(log),
            "DISK-16": lambda: disk.record_offsets_rise_within_batch(log, CODECS),
            "DISK-17": lambda: disk.max_timestamp_is_the_largest(log, CODECS),
            "DISK-19": lambda: disk.offsets_have_no_gaps(log, base, following),
            "DISK-21": lambda: disk.aborted_transactions_are_in_range(aborted, base),
            "DISK-22": lambda: disk.time_entries_are_in_range(times, base),
            "DISK-23": lambda: disk.magic_is_known(log),
            "BATCH-2": lambda: self._checksums_are_right(log, legacy=True),
            "BATCH-3": lambda: self._checksums_are_right(log, legacy=False),
            "BATCH-14": lambda: self._checksums_are_right(log, legacy=False),
            "BATCH-19": lambda: self._controls_are_right(log),
        }
        if law_id in RECORD_LAWS:
            return not self._records_are_readable(log)
        return not holds[law_id]()

    @staticmethod
    def _checksums_are_right(log: bytes, legacy: bool) -> bool:
        batches = [one for one in disk.batches_of(log) if one.is_legacy is legacy]
        return all(batch.is_valid() is True for batch in batches)

    @staticmethod
    def _records_are_readable(log: bytes) -> bool:
        def is_right(batch: RecordBatch) -> bool:
            records = batch.records()
            if isinstance(records, Raised):
                return False
            if batch.record_count == 0 and batch.size_bytes != 61:
                return False
            offsets = [record.offset for record in records]
            return not batch.is_legacy or (
                offsets == sorted(set(offsets)) and offsets[-1] == batch.last_offset
            )

        return all(is_right(batch) for batch in disk.valid_batches(log, CODECS))

    @staticmethod
    def _controls_are_right(log: bytes) -> bool:
        def is_right(batch: RecordBatch) -> bool:
            kind = disk.control_type(batch)
            if isinstance(kind, Raised) or kind not in ("ABORT", "COMMIT"):
                return not isinstance(kind, Raised)
            record = batch.records_until_error().records[0]
            is_read = not isinstance(end_transaction_marker(record), Raised)
            return batch.record_count == 1 and is_read

        controls = [one for one in disk.valid_batches(log, CODECS) if one.is_control]
        return all(is_right(batch) for batch in controls)

    def holds_all(self) -> list[str]:
        """Return the laws that are broken, but for those that only a note speaks of."""
        judged = VERIFIED_LAWS - {"DISK-1", "DISK-2", "DISK-3", "DISK-7", "DISK-19", "LOAD-1"}
        judged -= {"DISK-6", "DISK-20", "FILE-1", "FILE-2"}
        return sorted(law_id for law_id in judged if self.breaks(law_id))


class Writer:
    """Writes segments the way a release does, with as few words as possible."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.offset = 0
        self.clock = 1000
        self.open: dict[int, int] = {}
        self.roll()

    def roll(self) -> None:
        """Close the segment and begin another one."""
        if self.files:
            self.close()
        self.base = self.offset
        for suffix in (".log", ".index", ".timeindex"):
            self.files[name_of(self.base, suffix)] = bytearray()
        self.largest = (-1, self.base)
        self.stored = -1

    def of(self, suffix: str) -> bytearray:
        """Return the bytes of a file of the last segment."""
        return self.files.setdefault(name_of(self.base, suffix), bytearray())

    def close(self) -> None:
        """Write the last time entry."""
        if self.largest[0] > self.stored:
            entry = struct.pack(">qi", self.largest[0], self.largest[1] - self.base)
            self.of(".timeindex").extend(entry)
            self.stored = self.largest[0]

    def append(
        self, batch: bytes, last: int, timestamp: int, *, key: int, indexed: bool, named: int
    ) -> None:
        """Append a batch; `key` goes into the offset index, `named` into the time index."""
        log = self.of(".log")
        if timestamp > self.largest[0]:
            self.largest = (timestamp, named)
        if indexed and log:
            self.of(".index").extend(struct.pack(">ii", key - self.base, len(log)))
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
        batch = write_batch(
            [Record(first, writer.clock, None, b"t")], base_offset=first, producer_id=producer_id,
            producer_epoch=0, base_sequence=0, is_transactional=True,
        )  # fmt: skip
        writer.open.setdefault(producer_id, first)
        writer.append(batch, first, writer.clock, key=first, indexed=indexed, named=first)

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
            producer_epoch=0, coordinator_epoch=7,
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

    @precondition(lambda self: self.damages < 2)
    @rule(data=st.data())
    def damage(self, data: Any) -> None:
        """Damage one file in one way."""
        files = {name: image for name, image in self.writer.files.items() if image}
        if not files:
            return
        name = data.draw(st.sampled_from(sorted(files)))
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
        self.reached[f"damaged {name[20:]}"] += 1

    @precondition(lambda self: self.damages < 2)
    @rule(data=st.data())
    def change_a_header_and_sum_again(self, data: Any) -> None:
        """Change a byte of a batch and make its checksum right again."""
        log = self.writer.of(".log")
        batches = disk.batches_of(bytes(log))
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

    @precondition(lambda self: self.damages > 0)
    @rule()
    def begin_anew(self) -> None:
        """Throw the damaged directory away."""
        self.begin()

    @invariant()
    def agrees(self) -> None:
        """Hold the verifier's findings against the model's laws."""
        images = {name: bytes(image) for name, image in self.writer.files.items()}
        files = MemoryFiles()
        files.make_directory(FOLDER)
        for name, image in images.items():
            handle = files.open(f"{FOLDER}/{name}", writable=True, create=True)
            handle.pwrite(image, 0)
            handle.close()
        findings = list(verify(FOLDER, deep=True, files=files))
        judge = Judge(images)
        for finding in findings:
            if finding.severity is Severity.NOTE and finding.law in ("SEG-7", "DISK-9"):
                continue  # entries that could not be compared
            assert judge.breaks(finding.law), str(finding)
            self.reached[finding.law] += 1
        if not any(finding.is_defect for finding in findings):
            assert [] == judge.holds_all()
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
    "DISK-22", "DISK-23", "SCAN-2", "SCAN-10", "BATCH-2", "BATCH-3", "BATCH-14", "BATCH-19",
)  # fmt: skip
def test_agrees_with_the_laws() -> None:
    """What the verifier reports is broken, and what it passes is whole."""

    class Machine(VerificationMachine):
        """An own class, so that what is reached is of this test."""

        reached: ClassVar[Counter[str]] = Counter()

    examples = max(1, settings().max_examples // SHARE)
    run_state_machine_as_test(Machine, settings=settings(max_examples=examples))
    if examples >= 20:
        assert {"rolled", "damaged .log", "summed again"} <= set(Machine.reached)
        assert {"SEG-7", "BATCH-3"} <= set(Machine.reached)


def test_every_reported_law_is_stated() -> None:
    """Each law that the verifier can name has a predicate in the model."""
    assert set() == VERIFIED_LAWS - set(LAWS)
