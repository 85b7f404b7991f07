# SPDX-License-Identifier: Apache-2.0
"""Hold the plain producer state against the older one: random batches, snapshots, and damage.

python -m segproof_harness.plain.producers [--seeds 100] [--first 0] [--release NAME ...]
    [--alone]
"""

import json
from pathlib import Path
from random import Random
from typing import Any

from segproof_harness.codecs import CODECS
from segproof_harness.outcomes import normalise
from segproof_harness.plain import batches as plain_batches
from segproof_harness.plain import pairs
from segproof_harness.plain.pairs import Pair, Setting, held
from segproof_model.directory import Directory
from segproof_model.kafka import producer_state as old
from segproof_model.kafka import record_batch as batches
from segproof_model.kafka.broker import producer_deviations as deviations
from segproof_model.kafka.broker import producer_releases as releases
from segproof_model.kafka.broker import producer_state as plain
from segproof_model.kafka.broker.producer_snapshot import ProducerStateEntry
from segproof_model.kafka.format import log_offset_metadata as plain_places
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.log_offset_metadata import LogOffsetMetadata
from segproof_model.kafka.producer_snapshot import write_snapshot
from segproof_model.kafka.segment_names import offset_of_name, segment_file_name
from segproof_model.language.integers import INT32_MAX, int32_at, int32_bytes, wrap32
from segproof_model.language.outcomes import Raised, Step
from segproof_model.laws.kafka.broker import producer_state as laws  # noqa: F401

ALONE: list[Any] = [
    ((releases.TransactionVersionDoesNotCount,), {"marker_needs_transaction_version": False}, {}),
    ((releases.ProducersBeginWithZero,), {"unknown_producer_begins_anywhere": False}, {}),
    ((releases.MarkerAloneCompletes,), {"marker_alone_completes": True}, {}),
    ((releases.SnapshotsAreListed,), {"snapshots_are_listed": True}, {}),
    ((releases.StoredProducersHaveBatches,), {"snapshot_without_batch": False}, {}),
    ((releases.LogStartEvictsProducers,), {"log_start_evicts_producers": True}, {}),
    ((releases.ReplicatedMarkersAreChecked,), {"replicated_markers_are_checked": True}, {}),
    ((releases.ProducerTimeIsOfBatches,), {"producer_time_is_of_batches": True}, {}),
    ((releases.StableOffsetIsByPlace,), {"stable_offset_by_producer": False}, {}),
    ((releases.BatchBeginsBySequences,), {"batch_begins_by_sequences": True}, {}),
    ((releases.SnapshotReplacesFile,), {"snapshot_overwrites_in_place": False}, {}),
    ((releases.EmptyMarkerIsMissed,), {"empty_marker_is_passed": False}, {}),
    ((releases.LastBatchIsRemembered,), {"producer_entry_is_flat": True}, {}),
    ((deviations.BatchIsRefusedFirst,), {"checks_before_changing": True}, {}),
    ((deviations.SnapshotNamesAreExact,), {"snapshot_names_exact": True}, {}),
    ((deviations.MissingSnapshotIsSkipped,), {"missing_snapshot_is_skipped": True}, {}),
]
EXPIRATION_MS = 5000
OFFSETS = {
    "update_map_end_offset": 3,
    "truncate_fully_and_start_at": 1,
    "on_high_watermark_updated": 3,
    "on_log_start_offset_incremented": 4,
    "delete_snapshots_before": 2,
    "remove_and_mark_snapshot_for_deletion": 2,
}
ASKED = (
    "is_empty", "map_end_offset", "last_snapshot_offset", "oldest_txn_last_timestamp", "dir",
    "producer_id_expiration_ms", "max_transaction_timeout_ms", "ongoing_txns", "unreplicated_txns",
)  # fmt: skip
CALLED = (
    "latest_snapshot_offset", "oldest_snapshot_offset", "first_undecided_offset",
    "first_unstable_offset",
)  # fmt: skip
PER_ENTRY = ("is_empty", "last_seq", "last_offset", "last_offset_delta")
PER_BATCH = ("first_seq", "first_offset")


def seen_of_entry(entry: Any) -> Any:
    """Return all that an entry says."""
    remembered = [
        normalise((batch, [getattr(batch, name) for name in PER_BATCH]))
        for batch in entry.batch_metadata
    ]
    asked = [getattr(entry, name) for name in PER_ENTRY]
    return normalise((entry, asked)), remembered


def seen(manager: Any) -> Any:
    """Return all that a manager holds, and answers without arguments."""
    entries = [seen_of_entry(entry) for _, entry in sorted(manager.active_producers.items())]
    asked = [normalise(getattr(manager, name)) for name in ASKED]
    return entries, asked, [getattr(manager, name)() for name in CALLED], dict(manager.snapshots)


def seen_of_info(info: Any) -> Any:
    """Return what is known of an append."""
    entries = seen_of_entry(info.current_entry), seen_of_entry(info.updated_entry)
    return entries, info.producer_id, info.origin, normalise(info.started_transactions)


class History:
    """A random history of one partition's producers."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.random = setting, setting.chance()
        self.offset, self.now_ms = 0, 1_000_000
        self.dir = self.random.choice(("", "t-0", "d/t-0/"))
        self.prefix = f"{self.dir.rstrip('/')}/" if self.dir else ""
        self.pair = Pair(setting, seen, seen)
        self.completed: Any = None
        for _ in range(self.random.choice((0, 0, 2))):
            self.pair.images[self.draw_name(strange=0.3)] = self.draw_image(())
        self.reopen()

    def reopen(self) -> None:
        """Begin anew over the files; without those whose names are refused."""
        limits = {"producer_id_expiration_ms": EXPIRATION_MS, "max_transaction_timeout_ms": 1000}

        def open_old(directory: Directory) -> Step[Any]:
            return old.ProducerStateManager.open(
                self.dir, directory=directory, profile=self.setting.profile, **limits
            )

        while not self.pair.open(open_old, plain.ProducerStateManager, self.dir, **limits):
            names = [name for name in self.pair.images if name.endswith(".snapshot")]
            del self.pair.images[self.random.choice(names)]

    def draw_name(self, strange: float) -> str:
        """Return the name of a snapshot, or by this chance another one."""
        number = str(self.random.choice((7, 12, self.offset)))
        names = [f"{number}.snapshot", f"+{number.zfill(20)}.snapshot", "7.x.snapshot", "x.txt",
                 "00000000000000000007.log", "a/00000000000000000007.snapshot",
                 "00000000000000000009.snapshot.deleted"]  # fmt: skip
        bad = [".snapshot", "x.snapshot", "99999999999999999999.snapshot", "-.snapshot"]
        if self.setting.profile.snapshots_are_listed:
            names = names[3:]  # two names of one offset: the older model sees the first one late
        if self.random.random() < strange:
            return self.prefix + self.random.choice(names + bad * (self.pair.old is None))
        return self.prefix + segment_file_name(max(0, self.near()), ".snapshot")

    def near(self) -> int:
        """Return an offset near one that matters."""
        known = () if self.pair.old is None else self.pair.old.snapshots
        end = 0 if self.pair.old is None else self.pair.old.map_end_offset
        offsets = [self.offset, end, *(offset for offset, _ in known)]
        place: int = self.random.choice(offsets)
        return place + self.random.choice((0, 0, 0, 1, -1))

    def draw_image(self, entries: Any) -> bytes:
        """Return a snapshot with these entries and others, often damaged."""
        random = self.random
        more = [
            old.ProducerStateEntry(
                random.choice((1, 2, 3, 9)), random.choice((-1, 0, 1, 32767)),
                random.choice((-1, 0, 3)), random.choice((-1, 5, self.now_ms)),
                random.choice((None, -1, self.near())),
                (old.BatchMetadata(random.choice((-1, 0, 4, INT32_MAX)),
                                   random.choice((-1, -2, self.near())),
                                   random.choice((0, 1, 5)), random.choice((-1, self.now_ms))),)
                * random.randrange(2),
            )
            for _ in range(random.choice((0, 0, 1, 2)))
        ]  # fmt: skip
        image = write_snapshot((*entries, *more))
        damage = random.choice(("none", "none", "none", "flip", "cut", "grow"))
        if damage == "flip":
            place, bit = random.randrange(len(image)), 1 << random.randrange(8)
            image = image[:place] + bytes([image[place] ^ bit]) + image[place + 1 :]
        if damage == "cut":
            image = image[: random.choice((random.randrange(len(image)), random.randrange(12)))]
        return image + bytes(random.randrange(60)) if damage == "grow" else image

    def run(self, length: int) -> None:
        """Do so many things."""
        kinds = [
            self.append, self.append, self.append, self.stream, self.follow, self.follow,
            self.end_twice, self.find_duplicate, self.complete, self.snapshot, self.at_offset,
            self.at_offset, self.reload, self.expire, self.remove_stray, self.damage, self.load,
        ]  # fmt: skip
        for _ in range(length):
            self.random.choice(kinds)()

    # --- batches -------------------------------------------------------------------------------

    def both(self, image: bytes) -> tuple[Any, Any]:
        """Return a batch with these bytes in both models, sometimes cut: the file, or its size."""
        random = self.random
        in_file, is_cut = random.random() < 0.2, random.random() < 0.05
        end = random.randrange(26, len(image)) if is_cut else len(image)
        data, size = image[:end], 12 + int32_at(image, 8)
        if is_cut and not in_file:
            data, size = image[:8] + int32_bytes(end - 12) + image[12:end], end
        given = (data, 0, size, in_file)
        memory = self.setting.release.kind(MemoryRecords)(b"", codecs=plain_batches.CODECS)
        return (
            batches.RecordBatch(*given, CODECS, self.setting.profile),
            memory.batch_of(data, 0, size, in_file=in_file),
        )

    def known_of(self, producer_id: int) -> Any:
        """Return what is known of a producer, if nothing else then the empty entry."""
        return self.pair.old.last_entry(producer_id) or old.ProducerStateEntry(producer_id)

    def draw_batch(self, producer_id: int) -> bytes:
        """Return a batch at the log's end: records, a marker, or an odd control batch."""
        random, entry = self.random, self.known_of(producer_id)
        epoch = entry.producer_epoch + random.choice((0, 0, 0, 0, 1, -1, 2**15))
        epoch = min(max(random.choice((0, -1)), epoch), 2**15 - 1)
        is_open = entry.current_txn_first_offset is not None
        kinds = ["records"] * 6 + ["marker"] * (4 if is_open else 1)
        kind = random.choice([*kinds, "empty", "control", "odd", "message"])
        common: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch}
        self.now_ms += random.choice((0, 1, EXPIRATION_MS // 2))
        offset, count = self.offset, random.randrange(1, 4)
        self.offset += count
        if kind == "marker":
            return self.marker(offset, entry.coordinator_epoch + random.choice((3, 0, -1)), common)
        if kind == "control":
            return self.made(
                batches.write_empty_batch(
                    offset, offset, self.now_ms, is_transactional=True, is_control=True, **common
                )
            )
        if kind == "odd":
            keys = (b"", b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\x63", b"\xff\xff\0\0", None)
            values = (b"\0", b"\0\0\0\0\0\7", b"\xff\xff\0\0\0\7", None)
            record = batches.Record(offset, 5, random.choice(keys), random.choice(values))
            return self.made(
                batches.write_batch(
                    [record], base_offset=offset, is_transactional=True, is_control=True, **common
                )
            )
        following = 0 if entry.last_seq in (-1, INT32_MAX) else entry.last_seq + 1
        border = (0, 1, INT32_MAX, INT32_MAX - 1, max(0, entry.last_seq), -1)
        common["base_sequence"] = random.choice((following,) * 6 + border)
        common["is_transactional"] = is_open != random.choice((True, False, False))
        if kind == "empty":
            last = self.offset - 1
            return self.made(batches.write_empty_batch(offset, last, self.now_ms, **common))
        records = [
            batches.Record(offset + number, self.now_ms - number, None, b"v")
            for number in range(count)
        ]
        if kind == "message":
            common = {"magic": random.randrange(2)}
        compression = random.choice(("none", "none", "none", "gzip"))
        return self.made(
            batches.write_batch(records, base_offset=offset, compression=compression, **common)
        )

    def marker(self, offset: int, coordinator_epoch: int, common: Any) -> bytes:
        """Return a batch that ends a transaction."""
        return self.made(
            batches.write_end_transaction_marker(
                self.random.choice(("ABORT", "COMMIT")),
                offset=offset,
                timestamp=self.now_ms,
                coordinator_epoch=max(0, coordinator_epoch),
                **common,
            )
        )

    def made(self, image: bytes | Raised) -> bytes:
        """Return the bytes of a batch, by chance with another offset delta in its header."""
        if isinstance(image, Raised):
            return self.marker(0, 0, {"producer_id": 1, "producer_epoch": 0})
        if image[16] == 2 and self.random.random() < 0.05:
            delta = wrap32(self.random.choice((-1, 2**31, 2**31 - 1, 70)))
            return image[:23] + delta.to_bytes(4, "big", signed=True) + image[27:]
        return image

    def draw_producer(self) -> int:
        """Return a producer's id."""
        return self.random.choice((1, 2, 3, 0, 1, 2, 3, 2**40, -1, 2**63 - 1))

    def append(self) -> None:
        """Append batches of one producer in one go."""
        producer_id, random = self.draw_producer(), self.random
        images = [self.draw_batch(producer_id) for _ in range(random.choice((1, 1, 2, 3)))]
        origin = random.choice(("client", "client", "client", "replication", "coordinator"))
        first = random.choice((None, None, None, 0, self.offset, -(2**62)))
        self.append_images(
            producer_id,
            origin,
            images,
            random.choice((-1, 0, 1, 2, 2)),
            first,
            random.random() < 0.3,
        )

    def append_images(
        self, producer_id: int, origin: Any, images: Any, version: int, first: Any, is_kept: bool
    ) -> None:
        """Append batches; let them count if none is refused, or in any case."""
        info = Pair(self.setting, seen_of_info, seen_of_info)
        info.old = self.pair.old.prepare_update(producer_id, origin)
        info.plain = held(self.pair.plain.prepare_update(producer_id, origin))
        for image in images:
            one, other = self.both(image)
            places = [None, None]
            if first is not None:
                places = [LogOffsetMetadata(first), plain_places.LogOffsetMetadata(first)]  # type: ignore[list-item]
            outcome = info.call(
                "append", one, places[0], version, others=(other, places[1], version)
            )
            if isinstance(outcome, old.CompletedTxn):
                self.completed = outcome
            if isinstance(outcome, Raised) and not is_kept:
                return
        self.pair.call("update", info.old, others=(info.plain,))

    def stream(self) -> None:
        """Append some batches that continue the producer's sequence, one after another."""
        producer_id = self.draw_producer()
        for _ in range(self.random.randrange(1, 8)):
            entry = self.known_of(producer_id)
            image = batches.write_batch(
                [batches.Record(self.offset, self.now_ms, None, b"v")],
                base_offset=self.offset,
                producer_id=producer_id,
                producer_epoch=max(0, entry.producer_epoch),
                base_sequence=0 if entry.last_seq == INT32_MAX else entry.last_seq + 1,
                is_transactional=entry.current_txn_first_offset is not None,
            )
            self.offset += 1
            self.append_images(producer_id, "client", [self.made(image)], -1, None, False)

    def follow(self) -> None:
        """Append a batch as a log does, recovery and followers too: with all that comes with it."""
        one, other = self.both(self.draw_batch(self.draw_producer()))
        origin = self.random.choice(("replication", "replication", "client"))
        outcome = self.pair.call("update_producers", one, origin, others=(other, origin))
        self.pair.call("update_map_end_offset", self.offset)
        if isinstance(outcome, old.CompletedTxn):
            self.end(outcome)

    def end_twice(self) -> None:
        """Append two markers of coordinators of which the second may be fenced."""
        producer_id = self.draw_producer()
        entry = self.known_of(producer_id)
        common = {"producer_id": producer_id, "producer_epoch": max(0, entry.producer_epoch)}
        for more in (self.random.randrange(1, 4), self.random.randrange(4)):
            image = self.marker(self.offset, max(0, entry.coordinator_epoch) + more, common)
            self.offset += 1
            self.append_images(producer_id, "coordinator", [image], 0, None, True)

    def find_duplicate(self) -> None:
        """Look for a batch with sequence numbers that may be known."""
        for entry in self.pair.old.producers:
            for known in entry.batch_metadata[-2:]:
                sequence = self.random.choice((known.first_seq, known.first_seq, 0))
                if sequence < 0 or known.offset_delta < 0:
                    continue
                image = batches.write_empty_batch(
                    self.offset, self.offset + known.offset_delta, 0,
                    producer_id=entry.producer_id, base_sequence=sequence,
                    producer_epoch=max(0, entry.producer_epoch + self.random.choice((0, 0, -1))),
                )  # fmt: skip
                if isinstance(image, Raised):
                    continue
                self.ask_duplicate(entry.producer_id, image)

    def ask_duplicate(self, producer_id: int, image: bytes) -> None:
        """Ask what is known of a producer for a batch."""
        size = 12 + int32_at(image, 8)
        one = batches.RecordBatch(image, 0, size, False, CODECS, self.setting.profile)
        memory = self.setting.release.kind(MemoryRecords)(b"", codecs=plain_batches.CODECS)
        other = memory.batch_of(image, 0, size, in_file=False)

        def asked(batch: Any) -> Any:
            def ask(manager: Any) -> Any:
                entry = manager.last_entry(producer_id)
                return None if entry is None else entry.find_duplicate_batch(batch)

            return ask

        self.pair.do("find_duplicate_batch", asked(one), asked(other))

    # --- offsets, snapshots, time --------------------------------------------------------------

    def end(self, completed: Any) -> None:
        """Complete a transaction."""
        self.pair.call("last_stable_offset", completed)
        self.pair.call("complete_txn", completed)

    def complete(self) -> None:
        """Complete an open transaction, or one that may be completed already."""
        open_txns = self.pair.old.ongoing_txns
        completed = self.completed
        if open_txns and (completed is None or self.random.random() < 0.5):
            txn = self.random.choice(open_txns)
            completed = old.CompletedTxn(txn.producer_id, txn.first_offset, self.offset, True)
        if completed is not None:
            self.end(completed)

    def snapshot(self) -> None:
        """Take a snapshot at the end of the log."""
        self.pair.call("update_map_end_offset", self.offset)
        self.pair.call("take_snapshot")

    def at_offset(self) -> None:
        """Do one of the operations that take an offset."""
        (name,) = self.random.choices(list(OFFSETS), list(OFFSETS.values()))
        self.pair.call(name, self.near())

    def load(self) -> None:
        """Take in an entry as it is."""
        entry = old.ProducerStateEntry(
            self.draw_producer(),
            0,
            0,
            self.random.choice((self.now_ms, 0, 1)),
            self.random.choice((None, self.near())),
        )
        other = ProducerStateEntry(*normalise(entry))
        self.pair.call("load_producer_entry", entry, others=(other,))

    def reload(self) -> None:
        """Load the newest snapshot, as after a cut; or all anew, as after a start."""
        if self.random.random() < 0.4:
            for _ in range(self.random.choice((0, 0, 1))):
                self.pair.images[self.draw_name(strange=1)] = self.draw_image(())
            self.reopen()
        oldest = self.pair.old.oldest_snapshot_offset() or 0
        start = self.random.choice((0, -1, oldest, self.near() // 2))
        now_ms = self.now_ms + self.random.choice((0, EXPIRATION_MS))
        self.pair.call("truncate_and_reload", start, self.near(), now_ms)

    def expire(self) -> None:
        """Forget who is silent, and ask for transactions that take too long."""
        now_ms = self.now_ms + self.random.choice((0, 1, EXPIRATION_MS - 1, EXPIRATION_MS, 10**6))
        self.pair.call("has_late_transaction", now_ms)
        border_ms = (
            self.pair.old.oldest_txn_last_timestamp + 1000 + plain.LATE_TRANSACTION_BUFFER_MS
        )
        self.pair.call("has_late_transaction", border_ms + self.random.choice((0, 1)))
        self.pair.call("remove_expired_producers", now_ms)

    def remove_stray(self) -> None:
        """Remove the snapshots without a segment."""
        known = [offset for offset, _ in self.pair.old.snapshots]
        bases = [base for base in known if self.random.random() < 0.5]
        bases += [self.random.randrange(60) for _ in range(self.random.randrange(3))]
        self.pair.call("remove_stray_snapshots", bases)

    def damage(self) -> None:
        """Write a snapshot file from outside: damaged, cut, grown, sound, gone, or no snapshot."""
        name = self.draw_name(strange=0.2)
        is_gone = self.random.random() < 0.3
        self.pair.write(name, None if is_gone else self.draw_image(self.pair.old.producers))


def random_history(setting: Setting) -> None:
    """Run a random history."""
    History(setting).run(60)


GOLDEN = Path(__file__).parents[3] / "tests/golden/producer_histories.json"


def kept_history(setting: Setting) -> None:
    """Run a history that was kept, of the class of a release, under this one."""
    kept = json.loads(GOLDEN.read_text(encoding="ascii"))
    if setting.seed >= len(kept):
        return
    history = History(setting)
    history.random = Random(0)
    history.dir = history.prefix = ""
    history.pair.images = {}
    history.reopen()
    for name, given, *_ in kept[setting.seed][1:]:
        if name == "append":
            producer_id, origin, version, first, images, is_kept = given
            data = [bytes.fromhex(image) for image in images]
            history.append_images(producer_id, origin, data, version, first, is_kept)
        elif name in ("write", "remove"):
            if (
                isinstance(offset_of_name(given[0]), Raised)
                and setting.profile.snapshots_are_listed
            ):
                continue  # the older model goes on with the list that it has
            history.pair.write(given[0], bytes.fromhex(given[1]) if name == "write" else None)
        elif name == "find_duplicate_batch":
            history.ask_duplicate(given[0], bytes.fromhex(given[1]))
        elif name == "complete_txn":
            history.end(old.CompletedTxn(*given))
        else:
            history.pair.call(name, *given)


if __name__ == "__main__":
    pairs.main((random_history, kept_history), ALONE, __doc__)
