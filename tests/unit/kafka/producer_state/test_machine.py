# SPDX-License-Identifier: Apache-2.0
"""The producer state against its model, in random histories; the laws of every release."""

from collections import Counter
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from segproof import kafka
from segproof.kafka import producer_snapshot
from segproof.kafka import producer_state as implementation
from segproof.kafka.segment_names import segment_file_name
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.histories.machines.base import CountsReached, run_until_reached
from segproof_harness.structures.outcomes import Outcome, normalise, of_model, outcome_of
from segproof_model.kafka.broker.producer_append_info import ProducerAppendInfo
from segproof_model.kafka.broker.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_snapshot,
    write_snapshot,
)
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language import states
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.kafka.broker.producer_state import (
    no_batches_are_stored_as_minus_one,
    order_of_entries_is_free,
    snapshot_layout,
    tails_take_part_in_the_checksum,
)
from segproof_model.releases import SEGPROOF, release_named
from segproof_tests.model_steps import lawful

FOLDER = "/t-0"
PREFIX = "t-0/"
EXPIRATION_MS = 5000
LARGEST = 2**31 - 1
PRODUCERS = st.integers(1, 3) | st.sampled_from((0, 2**40))
ORIGINS = st.sampled_from(("client", "client", "client", "replication", "coordinator"))
STATES = {
    "wrapped", "refused: out-of-order-sequence", "refused: invalid-producer-epoch",
    "refused: invalid-transaction-state", "refused: invalid-argument", "refused: kafka-error",
    "refused: invalid-record", "started", "aborted", "committed", "expired", "snapshot", "reloaded",
    "corrupt", "stray", "marked", "duplicate", "sixth batch", "late", "new epoch",
}  # fmt: skip
"""What the histories must reach, or the tests say nothing of it."""


def public_state(manager: Any) -> dict[str, Any]:
    """Return all that can be asked of a manager without arguments."""
    return {
        "active": {key: normalise(value) for key, value in manager.active_producers.items()},
        "ongoing": normalise(manager.ongoing_txns),
        "unreplicated": normalise(manager.unreplicated_txns),
        "map end": manager.map_end_offset,
        "last snapshot": manager.last_snapshot_offset,
        "latest": manager.latest_snapshot_offset(),
        "oldest": manager.oldest_snapshot_offset(),
        "undecided": manager.first_undecided_offset(),
        "unstable": manager.first_unstable_offset(),
        "empty": manager.is_empty,
        "oldest write": manager.oldest_txn_last_timestamp,
    }


class ProducerStateMachine(CountsReached):
    """Histories of one partition; of segproof the implementation runs beside it."""

    release: ClassVar[Release] = SEGPROOF
    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.files = MemoryFiles()
        self.files.make_directory(FOLDER)
        self.offset = 0
        self.now_ms = 1_000_000
        self.completed: CompletedTxn | None = None
        self.state: Any = self._opened(Files())
        self.impl = self._opened_impl()

    @property
    def is_compared(self) -> bool:
        """Whether there is an implementation of this release."""
        return self.release is SEGPROOF

    def _opened(self, files: Files) -> Any:
        return states.opened(
            self.release.kind(ProducerStateManager),
            files,
            "t-0",
            producer_id_expiration_ms=EXPIRATION_MS,
            max_transaction_timeout_ms=1000,
        ).after

    def _opened_impl(self) -> implementation.ProducerStateManager:
        return implementation.ProducerStateManager.open(
            FOLDER,
            producer_id_expiration_ms=EXPIRATION_MS,
            max_transaction_timeout_ms=1000,
            writable=True,
            files=self.files,
        )

    # --- one operation on both sides ---

    def apply(self, operation: str, **arguments: Any) -> Outcome:
        """Do one operation, or ask one question, on both sides; judge every law."""
        step = lawful(self.state, operation, **arguments)
        self.state = step.after
        if self.is_compared:
            actual = outcome_of(lambda: getattr(self.impl, operation)(**arguments))
            assert of_model(step.outcome) == actual, (operation, arguments)
        self.compare_states()
        return of_model(step.outcome)

    def batch_of(self, image: bytes) -> RecordBatch:
        """Return the batch as the release reads it."""
        return self.release.kind(MemoryRecords)(image, codecs=CODECS).first_batch()

    def compare_states(self) -> None:
        """Hold all that can be asked, and every byte of every file, against each other."""
        if self.is_compared:
            assert public_state(self.state) == public_state(self.impl)
            images = self.state.files.images
            expected = {name.removeprefix(PREFIX): image for name, image in images.items()}
            assert expected == self.files.images(FOLDER)

    def append(
        self, producer_id: int, origin: Any, images: list[bytes], version: int, is_kept: bool
    ) -> None:
        """Append the batches to one producer's state, and let them count if all are taken."""
        info = self.state.prepare_update(producer_id, origin)
        impl_info = self.impl.prepare_update(producer_id, origin)
        for image in images:
            batch = self.batch_of(image)
            step = lawful(info, "append", batch=batch, transaction_version=version)
            expected = of_model(step.outcome)
            if self.is_compared:
                ours = kafka.read_batch(image)
                actual = outcome_of(partial(impl_info.append, ours, None, version))
                assert expected == actual, image.hex()
                assert normalise(step.after.updated_entry) == normalise(impl_info.updated_entry)
            self.note_append(info, step.after, step.outcome)
            info = step.after
            if expected.error is not None:
                break
        else:
            is_kept = True
        if not is_kept:
            self.compare_states()
            return
        known = self.state.last_entry(producer_id)
        self.state = lawful(self.state, "update", append_info=info).after
        self.impl.update(impl_info)
        self.compare_states()
        is_full = known is not None and len(known.batch_metadata) == 5
        is_same_epoch = (
            known is not None and known.producer_epoch == info.updated_entry.producer_epoch
        )
        self.note("sixth batch", is_full and is_same_epoch and info.updated_entry.batch_metadata)

    def note(self, state: str, is_reached: object) -> None:
        """Remember that the histories have reached a state."""
        if is_reached:
            self.reached[state] += 1

    def note_append(
        self, before: ProducerAppendInfo, after: ProducerAppendInfo, outcome: object
    ) -> None:
        """Remember what the histories have reached."""
        if isinstance(outcome, Raised):
            self.reached[f"refused: {outcome.kind}"] += 1
        elif isinstance(outcome, CompletedTxn):
            self.completed = outcome
            self.reached["aborted" if outcome.is_aborted else "committed"] += 1
        if after.started_transactions != before.started_transactions:
            self.reached["started"] += 1
        known, entry = before.updated_entry, after.updated_entry
        if -1 != known.producer_epoch != entry.producer_epoch:
            self.reached["new epoch"] += 1
        if entry.batch_metadata and entry.last_seq < entry.batch_metadata[-1].first_seq:
            self.reached["wrapped"] += 1

    # --- batches ---

    def draw_sequence(self, data: st.DataObject, entry: ProducerStateEntry | None) -> int:
        """Return the next sequence number, or another that may be refused."""
        last = -1 if entry is None else entry.last_seq
        following = 0 if last in (-1, LARGEST) else last + 1
        border = st.sampled_from((0, 1, LARGEST, LARGEST - 1, max(0, last)))
        return data.draw(st.just(following) | st.just(following) | border)

    def draw_batch(self, data: st.DataObject, producer_id: int) -> bytes:
        """Return a batch at the log's end: records, a marker, or an odd control batch."""
        entry = self.state.last_entry(producer_id)
        known = -1 if entry is None else entry.producer_epoch
        steps = st.sampled_from((0, 0, 0, 0, 1, -1))
        epoch = min(max(0, known + data.draw(steps)), 2**15 - 1)
        is_open = entry is not None and entry.current_txn_first_offset is not None
        kinds = ["records"] * 5 + ["marker"] * (4 if is_open else 1) + ["empty", "control", "odd"]
        kind = data.draw(st.sampled_from(kinds))
        common: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch}
        self.now_ms += data.draw(st.sampled_from((0, 1, EXPIRATION_MS // 2)))
        offset = self.offset
        self.offset += 1
        if kind == "marker":
            known = 0 if entry is None else entry.coordinator_epoch
            coordinator = data.draw(st.sampled_from((known + 3, known - 1, known)))
            return kafka.write_end_transaction_marker(
                data.draw(st.sampled_from(("ABORT", "COMMIT"))),
                offset=offset,
                timestamp=self.now_ms,
                coordinator_epoch=max(0, coordinator),
                **common,
            )
        if kind == "control":
            return kafka.write_empty_batch(
                offset, offset, self.now_ms, is_transactional=True, is_control=True, **common
            )
        if kind == "odd":
            keys = (b"", b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\x63", b"\xff\xff\0\0")
            record = kafka.Record(offset, 0, data.draw(st.sampled_from(keys)), b"\0")
            return kafka.write_batch(
                [record], base_offset=offset, is_transactional=True, is_control=True, **common
            )
        common["base_sequence"] = self.draw_sequence(data, entry)
        common["is_transactional"] = is_open != data.draw(st.sampled_from((True, False, False)))
        count = data.draw(st.integers(1, 3))
        self.offset += count - 1
        if kind == "empty":
            return kafka.write_empty_batch(offset, self.offset - 1, self.now_ms, **common)
        records = [kafka.Record(offset + n, self.now_ms - n, None, b"v") for n in range(count)]
        compression = data.draw(st.sampled_from(("none", "none", "gzip")))
        return kafka.write_batch(records, base_offset=offset, compression=compression, **common)

    @rule(data=st.data(), producer_id=PRODUCERS, origin=ORIGINS, is_kept=st.booleans())
    def append_batches(
        self, data: st.DataObject, producer_id: int, origin: str, is_kept: bool
    ) -> None:
        """Append batches of one producer in one go."""
        count = data.draw(st.sampled_from((1, 1, 2, 3)))
        images = [self.draw_batch(data, producer_id) for _ in range(count)]
        version = data.draw(st.sampled_from((-1, 0, 1, 2, 2)))
        self.append(producer_id, origin, images, version, is_kept)

    @rule(producer_id=PRODUCERS, first=st.integers(1, 3), second=st.integers(0, 3))
    def end_twice(self, producer_id: int, first: int, second: int) -> None:
        """Append two markers of coordinators of which the second may be fenced."""
        entry = self.state.last_entry(producer_id) or ProducerStateEntry(producer_id)
        known = max(0, entry.coordinator_epoch)
        for coordinator_epoch in (known + first, known + second):
            image = kafka.write_end_transaction_marker(
                "COMMIT",
                offset=self.offset,
                timestamp=self.now_ms,
                coordinator_epoch=coordinator_epoch,
                producer_id=producer_id,
                producer_epoch=max(0, entry.producer_epoch),
            )
            self.offset += 1
            self.append(producer_id, "coordinator", [image], 0, True)

    @rule(producer_id=PRODUCERS, count=st.integers(1, 6))
    def stream(self, producer_id: int, count: int) -> None:
        """Append some batches that continue the producer's sequence, one after another."""
        for _ in range(count):
            entry = self.state.last_entry(producer_id) or ProducerStateEntry(producer_id)
            image = kafka.write_batch(
                [kafka.Record(self.offset, self.now_ms, None, b"v")],
                base_offset=self.offset,
                producer_id=producer_id,
                producer_epoch=max(0, entry.producer_epoch),
                base_sequence=0 if entry.last_seq == LARGEST else entry.last_seq + 1,
                is_transactional=entry.current_txn_first_offset is not None,
            )
            self.offset += 1
            self.append(producer_id, "client", [image], -1, False)

    @rule(data=st.data(), producer_id=PRODUCERS)
    def follow(self, data: st.DataObject, producer_id: int) -> None:
        """Append a batch as a log does, recovery and followers too: with all that comes with it."""
        image = self.draw_batch(data, producer_id)
        step = lawful(self.state, "update_producers", batch=self.batch_of(image))
        if self.is_compared:
            actual = outcome_of(lambda: self.impl.update_producers(kafka.read_batch(image)))
            assert of_model(step.outcome) == actual
        self.state = step.after
        self.compare_states()
        self.apply("update_map_end_offset", last_offset=self.offset)
        if isinstance(step.outcome, CompletedTxn):
            self.apply("last_stable_offset", completed_txn=step.outcome)
            self.apply("complete_txn", completed_txn=step.outcome)

    @rule(data=st.data(), producer_id=PRODUCERS, first=st.none() | st.integers(0, 40))
    def find_duplicate(self, data: st.DataObject, producer_id: int, first: int | None) -> None:
        """Look for a batch with sequence numbers that may be known."""
        entry = self.state.last_entry(producer_id)
        ours = self.impl.last_entry(producer_id)
        assert (entry is None) == (ours is None) or not self.is_compared
        if entry is None or entry.is_empty:
            return
        known = data.draw(st.sampled_from(entry.batch_metadata))
        sequence = known.first_seq if first is None else first
        epoch = min(max(0, entry.producer_epoch + data.draw(st.sampled_from((0, 0, 1)))), 32767)
        if sequence < 0 or known.offset_delta < 0:
            return
        image = kafka.write_empty_batch(
            self.offset, self.offset + known.offset_delta, 0,
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence,
        )  # fmt: skip
        found = entry.find_duplicate_batch(self.batch_of(image))
        if self.is_compared and ours is not None:
            assert normalise(found) == normalise(ours.find_duplicate_batch(kafka.read_batch(image)))
        self.note("duplicate", found)

    # --- offsets, snapshots, time ---

    def draw_offset(self, data: st.DataObject) -> int:
        """Return an offset near one that matters."""
        near: list[int] = [self.offset, self.state.map_end_offset, *sorted(self.state.snapshots)]
        return data.draw(st.sampled_from(near)) + data.draw(st.sampled_from((0, 0, 0, 1, -1)))

    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        """Complete an open transaction, or one that may be completed already."""
        completed = self.completed
        if self.state.ongoing_txns and (completed is None or data.draw(st.booleans())):
            txn = data.draw(st.sampled_from(self.state.ongoing_txns))
            completed = CompletedTxn(txn.producer_id, txn.first_offset, self.offset, True)
        if completed is not None:
            self.apply("last_stable_offset", completed_txn=completed)
            self.apply("complete_txn", completed_txn=completed)

    @rule()
    def snapshot(self) -> None:
        """Take a snapshot at the end of the log."""
        self.apply("update_map_end_offset", last_offset=self.offset)
        taken = self.apply("take_snapshot")
        self.note("snapshot", taken.value is not None)

    @rule(data=st.data(), operation=st.sampled_from((
        "update_map_end_offset", "truncate_fully_and_start_at", "on_high_watermark_updated",
        "on_log_start_offset_incremented", "delete_snapshots_before",
    )))  # fmt: skip
    def at_offset(self, data: st.DataObject, operation: str) -> None:
        """Do one of the operations that take an offset."""
        name = {
            "update_map_end_offset": "last_offset",
            "on_high_watermark_updated": "high_watermark",
            "on_log_start_offset_incremented": "log_start_offset",
        }.get(operation, "offset")
        if operation == "truncate_fully_and_start_at" and not data.draw(st.booleans()):
            return
        outcome = self.apply(operation, **{name: self.draw_offset(data)})
        if outcome.error is not None:
            self.reached[f"refused: {outcome.error}"] += 1

    @rule(data=st.data())
    def mark(self, data: st.DataObject) -> None:
        """Remove a snapshot, and mark its file for deletion."""
        known = st.sampled_from(sorted(self.state.snapshots) or [0])
        marked = self.apply("remove_and_mark_snapshot_for_deletion", offset=data.draw(known))
        self.note("marked", marked.value is not None)

    @rule(data=st.data(), is_new=st.booleans(), later_ms=st.sampled_from((0, EXPIRATION_MS)))
    def reload(self, data: st.DataObject, is_new: bool, later_ms: int) -> None:
        """Load the newest snapshot, as after a cut; or all anew, as after a start."""
        if is_new:
            self.state, self.impl = self._opened(self.state.files), self._opened_impl()
        start = data.draw(st.sampled_from((0, -1, self.state.oldest_snapshot_offset() or 0)))
        before = self.state.snapshots
        self.apply(
            "truncate_and_reload",
            log_start_offset=start,
            log_end_offset=self.draw_offset(data),
            current_time_ms=self.now_ms + later_ms,
        )
        self.note("reloaded", before and self.state.active_producers)

    @rule(later_ms=st.sampled_from((0, 1, EXPIRATION_MS - 1, EXPIRATION_MS, 10**6)))
    def expire(self, later_ms: int) -> None:
        """Forget who is silent, and ask for transactions that take too long."""
        late = self.apply("has_late_transaction", current_time_ms=self.now_ms + later_ms)
        self.note("late", late.value)
        before = self.state.active_producers
        self.apply("remove_expired_producers", current_time_ms=self.now_ms + later_ms)
        self.note("expired", before != self.state.active_producers)

    @rule(data=st.data(), others=st.lists(st.integers(0, 60), max_size=2))
    def remove_stray(self, data: st.DataObject, others: list[int]) -> None:
        """Remove the snapshots without a segment."""
        known = sorted(self.state.snapshots)
        bases = [base for base in known if data.draw(st.booleans())] + others
        self.apply("remove_stray_snapshots", segment_base_offsets=bases)
        gone = len(known) > len(self.state.snapshots)
        self.note("stray", gone)

    @rule(data=st.data(), bit=st.integers(0, 10**4), excess=st.integers(-100, 50))
    def damage(self, data: st.DataObject, bit: int, excess: int) -> None:
        """Write a snapshot file from outside: damaged, cut, grown, sound, gone, or no snapshot."""
        name = segment_file_name(max(0, self.draw_offset(data)), ".snapshot")
        name = data.draw(st.sampled_from((name, name, name, "7.snapshot", "x.txt")))
        if data.draw(st.integers(0, 5)) == 0:
            self.write(name, None)
            return
        image = write_snapshot(entry for _, entry in sorted(self.state.active_producers.items()))
        if data.draw(st.booleans()):
            flipped = bytearray(image)
            flipped[bit // 8 % len(image)] ^= 1 << bit % 8
            image = bytes(flipped)
        image = image[:excess] if excess < 0 else image + bytes(excess // 10)
        self.write(name, image)
        if isinstance(states.outcome_of(read_snapshot, image), Raised):
            self.reached["corrupt"] += 1

    def write(self, name: str, image: bytes | None) -> None:
        """Write or remove a file behind the back of both sides."""
        if image is None:
            self.files.remove(f"{FOLDER}/{name}")
        else:
            write_file(self.files, f"{FOLDER}/{name}", image)

        def write(draft: ProducerStateManager) -> None:
            if image is None:
                draft.files.remove(PREFIX + name)
            else:
                draft.files.write(PREFIX + name, image)

        self.state = states.apply(self.state, write).after
        self.compare_states()


@pytest.mark.checks(
    "PROD-6", "PROD-7", "PROD-8", "PROD-9", "PROD-10", "PROD-11", "PROD-12", "PROD-13"
)
def test_model_and_implementation_agree() -> None:
    """They agree on each answer, each error, all that can be asked, and every byte."""
    run_until_reached(ProducerStateMachine, STATES)


@pytest.mark.parametrize("name", ["kafka-4.3.1", "kafka-2.4.1", "kafka-1.1.1", "kafka-0.11.0.3"])
def test_laws_of_releases(name: str) -> None:
    """The model of each release obeys the laws, with what its behaviours bend."""

    class OfRelease(ProducerStateMachine):
        release: ClassVar[Release] = release_named(name)
        reached: ClassVar[Counter[str]] = Counter()

    run_state_machine_as_test(OfRelease, settings=settings(max_examples=30))


# --- laws of drawn values ----------------------------------------------------------------------

OFFSETS = st.integers(0, 100) | st.sampled_from((2**31, 2**63 - 1))
STAMPS = st.integers(-1, 100) | st.just(2**63 - 1)
KNOWN_BATCHES = st.builds(
    BatchMetadata, st.integers(0, LARGEST), OFFSETS, st.integers(0, LARGEST), STAMPS
)


@st.composite
def stored_entries(draw: st.DrawFn, producer_id: int) -> ProducerStateEntry:
    """Return an entry as a snapshot gives it back: one batch at most, with the last timestamp."""
    batch = draw(st.none() | KNOWN_BATCHES)
    stamp = draw(STAMPS) if batch is None else batch.timestamp
    epochs = st.integers(-1, 2**15 - 1)
    return ProducerStateEntry(
        producer_id,
        draw(epochs),
        draw(st.integers(-1, LARGEST)),
        stamp,
        draw(
            st.none() | OFFSETS.map(lambda offset: offset + producer_id if offset < 200 else None)
        ),
        () if batch is None else (batch,),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[ProducerStateEntry, ...]:
    """Return the entries of a snapshot, of different producers."""
    ids = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20)
    drawn = draw(st.lists(ids, unique=True, max_size=4))
    entries = [draw(stored_entries(one)) for one in drawn]
    first_offsets: set[int] = set()
    kept = []
    for entry in entries:
        first = entry.current_txn_first_offset
        if first is not None and (first in first_offsets or not 0 <= first < 2**63):
            entry = entry._replace(current_txn_first_offset=None)
        elif first is not None:
            first_offsets.add(first)
        kept.append(entry)
    return tuple(kept)


def ours_of(entries: tuple[ProducerStateEntry, ...]) -> list[Any]:
    """Return the entries as the implementation's."""
    return [
        producer_snapshot.ProducerStateEntry(
            one.producer_id, one.producer_epoch, one.coordinator_epoch, one.last_timestamp,
            one.current_txn_first_offset,
            tuple(producer_snapshot.BatchMetadata(*batch) for batch in one.batch_metadata),
        )
        for one in entries
    ]  # fmt: skip


@pytest.mark.checks("PROD-1", "PROD-2", "PROD-5")
@given(snapshots(), st.binary(max_size=9), st.integers(0, 200), st.integers(0, 2000))
def test_snapshots_are_the_same_on_both_sides(
    entries: tuple[ProducerStateEntry, ...], tail: bytes, cut: int, bit: int
) -> None:
    """Both write the same bytes; both read, or refuse, whatever becomes of them."""
    image = write_snapshot(entries)
    assert image == producer_snapshot.write_snapshot(ours_of(entries))
    assert list(entries) == read_snapshot(image)
    assert snapshot_layout(entries, image)
    flipped = bytearray(image)
    flipped[bit // 8 % len(image)] ^= 1 << bit % 8
    for data in (image, image + tail, image[:cut], bytes(flipped)):
        found = states.outcome_of(read_snapshot, data)
        assert of_model(found) == outcome_of(partial(producer_snapshot.read_snapshot, data))
        assert tails_take_part_in_the_checksum(data, found)
    for entry in entries:
        empty = entry._replace(batch_metadata=())
        alone = write_snapshot([empty])
        assert no_batches_are_stored_as_minus_one(empty, alone, read_snapshot(alone))


def loaded(images: dict[int, bytes]) -> Any:
    """Return the state that is loaded where snapshots of these bytes lie, by offset."""
    files = Files({segment_file_name(at, ".snapshot"): image for at, image in images.items()})
    reload = {"log_start_offset": 0, "log_end_offset": max(images) + 1, "current_time_ms": 0}
    return lawful(ProducerStateManager(files), "truncate_and_reload", **reload).after


@pytest.mark.checks("PROD-3", "PROD-4")
@given(snapshots(), snapshots(), st.integers(0, 10**4), st.integers(0, 10**4))
def test_loading_passes_over_damage(
    older: tuple[ProducerStateEntry, ...],
    entries: tuple[ProducerStateEntry, ...],
    cut: int,
    bit: int,
) -> None:
    """A damaged snapshot is removed and the older one loaded; the order in it means nothing."""
    older = tuple(one._replace(last_timestamp=max(1, one.last_timestamp)) for one in older)
    image = write_snapshot(entries)
    flipped = bytearray(image)
    flipped[bit // 8 % len(image)] ^= 1 << bit % 8
    for damaged in (image[: cut % len(image)], bytes(flipped)):
        assert states.outcome_of(read_snapshot, damaged) == Raised(ErrorKind.CORRUPT_SNAPSHOT)
        state = loaded({5: write_snapshot(older), 9: damaged})
        assert state.map_end_offset == 5
        assert state.active_producers.keys() == {one.producer_id for one in older}
        assert list(state.files) == [segment_file_name(5, ".snapshot")]
    reversed_image = write_snapshot(entries[::-1])
    assert order_of_entries_is_free(loaded({5: image}), loaded({5: reversed_image}))
