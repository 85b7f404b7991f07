# SPDX-License-Identifier: Apache-2.0
"""The healthy directories that mutants are made of.

Those that ship with the package are partitions and stores. Two more are made of them: the data
directory of a Kafka node, with all that lies beside its partitions, and a store with what a broker
of RocketMQ keeps beside its log, queues and index.
"""

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from segproof.layouts.rocketmq import TIMER_ENTRY, TIMER_SLOT
from segproof_harness.files.shipped_directories import KAFKA, partition_of, scenarios, stores
from segproof_tests.partition_files import write_segment
from segproof_tests.small_logs import batch
from segproof_tests.store_files import long_store

__all__ = ["places", "shipped", "sources"]

NODE = "node"
IDS = (
    b"version=1\nnode.id=1\ncluster.id=I2eXt9rvSnyhct8BYmW6-w\n"
    b"directory.id=oG5Q4DkSR7CYBX0qVIYs0g\n"
)
VOTE = (
    b'{"leaderId":1,"leaderEpoch":7,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    b'"data_version":1}'
)
METADATA = "__cluster_metadata-0"
METADATA_SNAPSHOT = "00000000000000000001-0000000001.checkpoint"
KEPT = "00000000000000000119"
"""Up to this name the segments of one partition are brought along: more of them add time only."""
"""An entry of a timer log."""
TIMES = (1_795_223_725_000, 60_000)


def shipped() -> list[Path]:
    """Return the healthy directories that ship with the package."""
    return [*map(partition_of, scenarios()), *stores()]


def sources(made_in: Path, paths: Sequence[str] = ()) -> list[Path]:
    """Return the healthy directories: shipped ones, those made in a new folder, the given ones."""
    made = [_node(made_in / NODE), _equipped_store(made_in / "equipped" / "store")]
    return [*shipped(), *made, *map(Path, paths)]


def places(source: Path) -> list[str]:
    """Return where in a healthy directory its partitions are, or the one partition or store."""
    below = {path.parent.name for path in source.glob("*-*/*.log")}
    return sorted(below) or ["."]


def _node(folder: Path) -> Path:
    """Write the data directory of a node that has stopped: two partitions and the metadata."""
    compacted = partition_of(KAFKA / "compacted")
    shutil.copytree(compacted, folder / compacted.name, copy_function=shutil.copyfile)
    plain = partition_of(KAFKA / "plain")
    (folder / plain.name).mkdir()
    for path in plain.iterdir():
        if not path.name[0].isdigit() or path.name < KEPT:
            shutil.copyfile(path, folder / plain.name / path.name)
    write_segment(folder / METADATA, batch(1), 1)
    bootstrap = (KAFKA / "compacted" / "logdir" / "bootstrap.checkpoint").read_bytes()
    checkpoint = b"0\n2\ncompacted 0 6000\nplain 0 60\n"
    for name, data in {
        f"{METADATA}/{METADATA_SNAPSHOT}": bootstrap,
        f"{METADATA}/quorum-state": VOTE,
        "bootstrap.checkpoint": bootstrap,
        "meta.properties": IDS,
        ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":795}',
        "cleaner-offset-checkpoint": b"0\n1\ncompacted 0 5235\n",
        "log-start-offset-checkpoint": b"0\n0\n",
        "recovery-point-offset-checkpoint": checkpoint,
        "replication-offset-checkpoint": checkpoint,
        ".lock": b"",
    }.items():
        (folder / name).write_bytes(data)
    return folder


def _equipped_store(store: Path) -> Path:
    """Write a store with a log of several files, configuration and timers."""
    long_store(store)
    for name in ("timerlog", "config"):
        (store / name).mkdir()
    units = b"".join(
        TIMER_ENTRY.pack(52, -1, 0, TIMES[0], TIMES[1], offset, 200, 0) + bytes(8)
        for offset in (0, 1500, 3000)
    )
    slot = TIMER_SLOT.pack(sum(TIMES[:2]) // 1000, 0, 104, 3, 0)
    offsets = b'{"offsetTable":{"T@group":{0:8,1:8,2:8}}}'
    for name, data in {
        f"timerlog/{0:020d}": units.ljust(5200, b"\0"),
        "timerwheel": slot.ljust(320, b"\0"),
        "lock": b"lock",
        "config/timercheck": struct.pack(">7q", TIMES[0], 156, 3, 3, 0, 0, 0).ljust(4096, b"\0"),
        "config/timermetrics": b'{"timingCount":{}}',
        "config/topics.json": b'{"topicConfigTable":{"T":{"topicName":"T","readQueueNums":3}}}',
        "config/consumerOffset.json": offsets,
        "config/consumerOffset.json.bak": offsets,
        "config/delayOffset.json": b'{"offsetTable":{3:1}}',
        "config/subscriptionGroup.json": b'{"subscriptionGroupTable":{}}',
    }.items():
        (store / name).write_bytes(data)
    return store
