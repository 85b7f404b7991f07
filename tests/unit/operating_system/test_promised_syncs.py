# SPDX-License-Identifier: Apache-2.0
"""What a flush, a close, a rebuild or a salvage promised is durable, and each sync is needed.

Each case names an operation and what it promises. A loss of power after it must leave that. Then
each sync of the operation is left out in turn: the promise breaks, or the case says which syncs
only decide what a loss of power leaves in the middle.
"""

import datetime
import uuid
from collections.abc import Callable, Set
from typing import Any, NamedTuple

import pytest

from segproof import rebuild, salvage
from segproof.kafka import (
    LogManager,
    OffsetIndex,
    PartitionLog,
    RecordFile,
    TimeIndex,
    TransactionIndex,
)
from segproof.kafka.checkpoint_file import OffsetCheckpointFile
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.partition_metadata_file import PartitionMetadataFile
from segproof.kafka.producer_snapshot import ProducerStateEntry, write_snapshot_file
from segproof.kafka.segments.log_segment import LogSegment
from segproof.kafka.transaction_index import AbortedTxn
from segproof.repair import rebuild_index, salvage_store
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import DispatchRequest
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import message_of, write_log
from segproof_harness.laws.file_damages import later
from segproof_harness.machine.simulated_files import POWER_LOSS, SimulatedFiles, crashes_in
from segproof_tests.memory_logs import CONFIG, DIRECTORY, START_MS, Place, batch

SYNCS = frozenset({"sync", "flush", "sync_directory"})
Operation = Callable[[], object]


class ForgetfulFiles(SimulatedFiles):
    """Files in memory that forget the syncs of one file, or of one folder."""

    def __init__(self, forgotten: str | int = "") -> None:
        super().__init__()
        self.is_counting = False
        self.forgotten = forgotten
        """The folder, or the number of the file, whose syncs are not made."""
        self.synced: dict[str | int, str] = {}
        """Each folder, and the number of each file, of which a sync made something durable; with
        its path."""

    def after(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Note a sync; leave it out if it is to be forgotten."""
        if not (self.is_counting and call in SYNCS):
            super().after(call, path, *arguments, handle=handle)
            return
        synced = path if handle is None else handle.inode.number
        if synced == self.forgotten:
            return
        before = self._durable()
        super().after(call, path, *arguments, handle=handle)
        if before != self._durable():
            self.synced[synced] = path

    def _durable(self) -> tuple[Any, ...]:
        """Return the durable changes of names, and the durable bytes of each file."""
        journal = self.journal
        contents = {number: journal.synced_content(number) for number in journal.versions}
        return journal.durable_changes(len(journal)), contents

    def left(self) -> dict[str | int, str]:
        """Return those of `synced` that are still there, and not empty."""
        numbers = {inode.number for inode in self._names.values() if inode.image()}
        return {
            synced: path
            for synced, path in self.synced.items()
            if synced in numbers or (isinstance(synced, str) and synced in self._directories)
        }


class Case(NamedTuple):
    """An operation that promises something."""

    prepare: Callable[[ForgetfulFiles], Operation]
    """Makes what there is before, and returns the operation; all is durable before it begins."""
    promised: str
    """The beginning of the paths whose bytes are durable after it."""
    is_atomic: bool = False
    """Whether a loss of power in the middle leaves each promised file as before or as after."""
    needless: Set[str] = frozenset()
    """Paths without whose syncs the promise holds too: of the mark of a work that is not done,
    which the next one takes away."""


@later
def _record_file(files: ForgetfulFiles, end: Callable[[RecordFile], object]) -> Operation:
    log = RecordFile.open("/a.log", create=True, files=files)
    files.settle()
    log.append(batch(1))
    return lambda: end(log)


@later
def _index(files: ForgetfulFiles, kind: Any, *entry: int, end: str) -> Operation:
    suffix = "timeindex" if kind is TimeIndex else "index"
    index = kind(f"/{0:020d}.{suffix}", 0, 120, create=True, files=files)
    files.settle()
    method: Any = index.maybe_append if kind is TimeIndex else index.append
    method(*entry)
    return lambda: getattr(index, end)()


@later
def _transactions(files: ForgetfulFiles, end: str) -> Operation:
    index = TransactionIndex.open(f"/{0:020d}.txnindex", create=True, files=files)
    index.append(AbortedTxn(0, 1, 0, 1, 1))
    files.settle()
    index.append(AbortedTxn(0, 1, 2, 3, 3))
    return lambda: getattr(index, end)()


def _segment(files: ForgetfulFiles) -> Operation:
    segment = LogSegment.open("/", 0, CONFIG, create=True, files=files)
    segment.append(1, batch(2))
    segment.append(3, batch(2, 2))
    files.settle()
    segment.append(5, batch(2, 4, START_MS + 9))
    segment.append(7, batch(2, 6, START_MS + 99))
    return segment.flush


@later
def _log(files: ForgetfulFiles, act: Callable[[PartitionLog], object]) -> Operation:
    log = Place(files).open()
    files.settle()
    for _ in range(9):
        log.append_as_leader(batch(6), 0)
    return lambda: act(log)


@later
def _manager(files: ForgetfulFiles, end: str) -> Operation:
    manager = LogManager("/", CONFIG, create=True, files=files, time=lambda: START_MS)
    log = manager.get_or_create_log("t", 0)
    for _ in range(9):
        log.append_as_leader(batch(6), 0)
    log.flush(True)
    files.settle()
    log.append_as_leader(batch(6), 0)
    return lambda: getattr(manager, end)()


def _checkpoint(files: ForgetfulFiles) -> Operation:
    checkpoint = OffsetCheckpointFile("/replication-offset-checkpoint", create=True, files=files)
    checkpoint.write({("t", 0): 1})
    files.settle()
    return lambda: checkpoint.write({("t", 0): 2})


def _epochs(files: ForgetfulFiles) -> Operation:
    epochs = LeaderEpochFileCache.open("/leader-epoch-checkpoint", create=True, files=files)
    epochs.assign(0, 0)
    files.settle()
    return lambda: epochs.assign(1, 10)


def _metadata(files: ForgetfulFiles) -> Operation:
    metadata = PartitionMetadataFile("/partition.metadata", create=True, files=files)
    return lambda: metadata.write(uuid.UUID(int=7))


def _snapshot(files: ForgetfulFiles) -> Operation:
    path = f"/{7:020d}.snapshot"
    write_snapshot_file(path, [ProducerStateEntry(1)], files=files)
    files.settle()
    return lambda: write_snapshot_file(path, [ProducerStateEntry(2)], files=files)


@later
def _rocketmq_index(files: ForgetfulFiles, end: str) -> Operation:
    index = IndexFile.open("/20261121011607450", 3, 4, create=True, files=files)
    files.settle()
    assert index.put_key("T#a", 100, 5000)
    return lambda: getattr(index, end)()


def _index_service(files: ForgetfulFiles) -> Operation:
    files.make_directory("/s/index")
    service = IndexService.open(
        "/s", 3, 4, create=True, files=files, time=lambda: START_MS, zone=datetime.UTC
    )
    files.settle()
    for number in range(1, 6):
        time_ms = 1000 * number
        request = DispatchRequest("T", 100 * number, 100, 0, time_ms, 0, "k", None, 0, 0, None)
        service.build_index(request)
    return service.close


@later
def _store_checkpoint(files: ForgetfulFiles, end: str) -> Operation:
    checkpoint = StoreCheckpoint.open("/checkpoint", create=True, files=files)
    files.settle()
    checkpoint.physic_msg_timestamp = 7
    return lambda: getattr(checkpoint, end)()


def _partition(files: ForgetfulFiles, batches: int, *, breaks_indexes: bool) -> None:
    place = Place(files)
    log = place.open()
    for _ in range(batches):
        log.append_as_leader(batch(6), 0)
    log.close()
    place.put("partition.metadata", b"version: 0\ntopic_id: SIDRe30LQia02iIBhGT2aw")
    for name in place.names("index") if breaks_indexes else ():
        place.put(name, bytes(range(1, 50)))
    files.make_directory("/e")
    files.sync_directory("/")
    files.settle()


@later
def _rebuild(files: ForgetfulFiles, /, **how: Any) -> Operation:
    _partition(files, 8, breaks_indexes=True)
    sizes: dict[str, Any] = {"index_interval_bytes": 50, "max_index_bytes": 240}
    return lambda: rebuild(DIRECTORY, **sizes, files=files, **how)


@later
def _salvage(files: ForgetfulFiles, out: str) -> Operation:
    _partition(files, 5, breaks_indexes=False)
    place = Place(files)
    first = place.names(".log")[0]
    data = place.image()[first]
    place.put(first, data[:-1] + bytes([data[-1] ^ 1]))
    files.settle()
    return lambda: list(salvage(DIRECTORY, out, files=files))


def _store(files: ForgetfulFiles) -> None:
    write_log(files, "/s", [message_of(properties={"KEYS": "k"})] * 12, 1000)
    write_file(files, "/s/checkpoint", bytes(4096))
    write_file(files, "/s/config/topics.json", b"{}")
    files.make_directory("/s/index")
    files.make_directory("/e")
    files.sync_directory("/")
    files.settle()


@later
def _rebuild_store(files: ForgetfulFiles, /, **how: Any) -> Operation:
    _store(files)
    return lambda: rebuild_index("/s", hash_slot_num=4, index_num=7, files=files, **how)


@later
def _salvage_store(files: ForgetfulFiles, out: str) -> Operation:
    _store(files)
    return lambda: salvage_store("/s", out, hash_slot_num=4, index_num=7, files=files)


CASES: dict[str, Case] = {
    "record file, flush": Case(_record_file(RecordFile.flush), "/a.log"),
    "record file, close": Case(_record_file(RecordFile.close), "/a.log"),
    **{
        f"{kind.__name__}, {end}": Case(_index(kind, *entry, end=end), "/0")
        for kind, entry in ((OffsetIndex, (1, 10)), (TimeIndex, (1, 1)))
        for end in ("flush",)
    },
    "transaction index, flush": Case(_transactions("flush"), "/0"),
    "segment, flush": Case(_segment, "/0"),
    "log, flush": Case(_log(lambda log: log.flush(True)), DIRECTORY),
    "manager, recovery points": Case(
        _manager("checkpoint_log_recovery_offsets"), "/recovery-point-offset-checkpoint", True
    ),
    "manager, log starts": Case(
        _manager("checkpoint_log_start_offsets"), "/log-start-offset-checkpoint", True
    ),
    "manager, shutdown": Case(_manager("shutdown"), "/"),
    "checkpoint": Case(_checkpoint, "/replication-offset-checkpoint", True),
    "epochs": Case(_epochs, "/leader-epoch-checkpoint", True),
    "metadata": Case(_metadata, "/partition.metadata", True),
    "snapshot": Case(_snapshot, "/0", True),
    "index file, flush": Case(_rocketmq_index("flush"), "/2"),
    "index file, close": Case(_rocketmq_index("close"), "/2"),
    "index service, close": Case(_index_service, "/s"),
    "store checkpoint, flush": Case(_store_checkpoint("flush"), "/checkpoint"),
    "store checkpoint, close": Case(_store_checkpoint("close"), "/checkpoint"),
    "rebuild": Case(_rebuild(out="/e/t-0"), "/e/t-0"),
    "rebuild with copies": Case(_rebuild(out="/e/t-0", copy=True), "/e/t-0"),
    "rebuild into a new folder of a new one": Case(_rebuild(out="/e/f/t-0"), "/e/f/t-0"),
    "rebuild in place": Case(_rebuild(in_place=True, backup="/e/kept"), "/", True),
    "salvage": Case(_salvage("/e/out"), "/e/out"),
    "salvage into a new folder of a new one": Case(_salvage("/e/f/out"), "/e/f/out"),
    "rebuild of a store": Case(_rebuild_store(out="/e/index"), "/e/index"),
    "rebuild of a store into a new folder of a new one": Case(
        _rebuild_store(out="/e/f/index"), "/e/f/index"
    ),
    "rebuild of a store in place": Case(_rebuild_store(in_place=True), "/s/index", needless={"/s"}),
    "salvage of a store": Case(_salvage_store("/e/out"), "/e/out"),
    "salvage of a store into a new folder of a new one": Case(
        _salvage_store("/e/f/out"), "/e/f/out"
    ),
}


def run(case: Case, forgotten: str | int = "") -> tuple[dict[str | int, str], list[str]]:
    """Run an operation without some syncs; return what was synced, and what is not durable."""
    files = ForgetfulFiles(forgotten)
    operation = case.prepare(files)
    before = files.left_by_kill()
    files.is_counting = True
    images: list[dict[str, bytes]] = []
    if case.is_atomic:
        images = crashes_in(files, operation, POWER_LOSS)
    else:
        operation()
    files.is_counting = False
    after = files.left_by_kill()
    promised = {path: data for path, data in after.items() if path.startswith(case.promised)}
    assert promised, "the operation leaves nothing"
    broken = []
    least = files.durable()
    broken += [path for path, data in promised.items() if least.get(path) != data]
    for image in images:
        broken += [
            path
            for path, data in promised.items()
            if path in before and image.get(path) not in (before[path], data)
        ]
    return files.left(), broken


@pytest.mark.parametrize("name", CASES)
def test_what_was_promised_is_durable(name: str) -> None:
    """A loss of power after the operation leaves each promised file, with all its bytes."""
    synced, broken = run(CASES[name])
    assert [] == broken
    assert synced


@pytest.mark.parametrize("name", [name for name in CASES if "of a new one" not in name])
def test_each_sync_is_needed(name: str) -> None:
    """Without it a promise breaks; so no sync can be forgotten without a test that fails."""
    case = CASES[name]
    synced, _ = run(case)
    needless = {path for forgotten, path in synced.items() if not run(case, forgotten)[1]}
    assert case.needless == needless
