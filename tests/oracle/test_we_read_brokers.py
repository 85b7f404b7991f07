# SPDX-License-Identifier: Apache-2.0
"""What a real broker leaves, after an orderly stop and after SIGKILL, and what we make of it."""

import json
import random
import shutil
import subprocess
import sys
import time
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import pytest

from segproof.errors import SegproofError
from segproof.integers import now_ms
from segproof.kafka import LogConfig, LogManager, read_snapshot
from segproof.lookup import PartitionReader
from segproof.verification import Finding, verify
from segproof_harness.releases import kafka_clients
from segproof_harness.releases.broker import Broker
from segproof_harness.releases.kafka_clients import Clients, Lot, Seen, Sent

pytestmark = pytest.mark.needs("java", "jpype")

START_MS = now_ms() - 3_600_000
"""An hour ago: who loads a log forgets producers that have been silent for a day."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMMON = {"internal.segment.bytes": "8000", "index.interval.bytes": "300", "retention.ms": "-1"}
CONFIG = LogConfig(segment_bytes=8000, index_interval_bytes=300, retention_ms=-1)
CLEAN = {"plain": COMMON, "transactional": COMMON}
KILLED = {"killed": COMMON, "cut": COMMON, "zeros": COMMON, "no-index": COMMON}
"""What is done to each log while the broker is dead."""
CUT_BYTES = 37
ZERO_BYTES = 4096
WAIT_SECONDS = 60.0
COMMAND = (sys.executable, "-m", "segproof_harness.cli")


def records(seed: str, count: int) -> tuple[Sent, ...]:
    """Draw records of every kind, times not quite in order."""
    draw, clock, found = random.Random(seed), START_MS, []
    for _ in range(count):
        clock += draw.randint(0, 9)
        headers = (("name", b"value"), ("", None))[: draw.randint(0, 2)]
        value = draw.choice((None, b"", draw.randbytes(draw.randint(1, 200)), b"v" * 300))
        key = draw.choice((None, b"", b"key"))
        found.append(Sent(clock - draw.choice((0, 0, 0, 40)), key, value, headers))
    return tuple(found)


def lots_of(topic: str) -> list[Lot]:
    """Return what is sent to a topic: each codec, and for one topic transactions of each ending."""
    lots = []
    for number, codec in enumerate(CODECS * 2):
        sent = records(f"{topic} {number}", 60)
        if topic == "plain":
            lots.append(Lot(sent, codec))
        else:
            ending = ("commit", "abort")[number % 2]
            lots.append(Lot(sent, codec, f"transaction {number % 3}", ending))
    if topic != "plain":
        lots.append(Lot(records("open", 20), "none", "open", "open"))
    return lots


def defects(path: Path) -> list[Finding]:
    """Return what is more than a note."""
    return [finding for finding in verify(path, deep=True) if finding.is_defect]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass(frozen=True, slots=True)
class Left:
    """What an orderly stop has left, and what consumers said before it."""

    disk: Path
    seen: dict[str, list[Seen]]
    committed: dict[str, list[Seen]]
    stable: dict[str, int]
    first_of: dict[str, list[Seen | None]]
    times: dict[str, list[tuple[int, tuple[int, int] | None]]]
    end: dict[str, int]


@pytest.fixture(scope="module")
def left(broker: Broker, clients: Clients, tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Produce, consume, stop; a copy of the disk."""
    broker.start()
    servers = broker.servers
    clients.ask(kafka_clients.create_topics, servers, CLEAN)
    told = Left(tmp_path_factory.mktemp("left") / "data", {}, {}, {}, {}, {}, {})
    for topic in CLEAN:
        clients.ask(kafka_clients.produce, servers, topic, lots_of(topic))
        told.seen[topic] = clients.ask(kafka_clients.read_all, servers, topic)
        told.committed[topic] = clients.ask(
            kafka_clients.read_all, servers, topic, "read_committed"
        )
        told.stable[topic] = clients.ask(kafka_clients.end_offset, servers, topic, "read_committed")
        end = told.end[topic] = clients.ask(kafka_clients.end_offset, servers, topic)
        told.first_of[topic] = clients.ask(
            kafka_clients.read_first_of_each, servers, topic, range(end)
        )
        asked = sorted({one.timestamp + more for one in told.seen[topic] for more in (0, 1)})[::9]
        asked += [0, asked[-1] + 1000]
        answers = clients.ask(kafka_clients.offsets_for_times, servers, topic, asked)
        told.times[topic] = [*zip(asked, answers, strict=True)]
    broker.stop()
    shutil.copytree(broker.data, told.disk)
    return told


@pytest.mark.checks("DISK-3", "DISK-12")
def test_verify_finds_no_defect_in_what_a_broker_left(left: Left) -> None:
    """All of its disk: our topics, the broker's own, the log of the metadata, checkpoints."""
    assert defects(left.disk) == []
    told = command("verify", str(left.disk), "--deep")
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize("topic", CLEAN)
@pytest.mark.checks("SEG-12", "LOG-1", "LOG-6")
def test_lookup_by_offset_agrees_with_the_consumer(topic: str, left: Left) -> None:
    """From the batch that we name on, the first record at or behind the offset is the consumer's.

    By the command line for all offsets at once.
    """
    partition = left.disk / f"{topic}-0"
    end = left.end[topic]
    asked = "".join(f"{offset}\n" for offset in range(end))
    told = subprocess.run(
        [*COMMAND, "lookup", str(partition), "--offsets", "-", "--format", "jsonl"],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(rows) == end
    with PartitionReader(partition) as reader:
        for offset, row in enumerate(rows):
            assert row["batch_base_offset"] == reader.lookup_offset(offset).batch_base_offset
            assert first_record(reader, offset) == left.first_of[topic][offset], offset


def first_record(reader: PartitionReader, offset: int) -> Seen | None:
    """Return the first record at or behind an offset, as a consumer shows it; no control record."""
    while True:
        answer = reader.lookup_offset(offset)
        if answer.segment_base_offset is None or answer.batch_position is None:
            return None
        batch = next(reader.segment(answer.segment_base_offset).log.batches(answer.batch_position))
        for one in batch.records():
            if one.offset >= offset and not batch.is_control:
                return Seen(
                    one.offset,
                    one.timestamp,
                    batch.timestamp_type,
                    one.key,
                    one.value,
                    tuple((header.key, header.value) for header in one.headers),
                    batch.partition_leader_epoch,
                )
        offset = batch.last_offset + 1


@pytest.mark.parametrize("topic", CLEAN)
@pytest.mark.checks("LOG-15", "SEG-39")
def test_lookup_by_time_agrees_with_the_consumer(topic: str, left: Left) -> None:
    """As `offsetsForTimes` said, by the command line."""
    partition, times = left.disk / f"{topic}-0", left.times[topic]
    options = [word for timestamp, _ in times for word in ("--timestamp", str(timestamp))]
    told = command("lookup", str(partition), "--format", "jsonl", *options)
    assert told.returncode == 0, told.stderr
    rows = [json.loads(line) for line in told.stdout.splitlines()]
    mine = [None if row["offset"] is None else (row["timestamp"], row["offset"]) for row in rows]
    assert [answer for _, answer in times] == mine


@pytest.mark.checks("LOAD-11", "LOG-8")
def test_our_log_reads_what_the_broker_left(left: Left, tmp_path: Path) -> None:
    """Loaded without recovery, to the same end, stable offset, records and aborted transactions."""
    disk = tmp_path / "data"
    shutil.copytree(left.disk, disk)
    before = bytes_of(disk, CLEAN)
    with LogManager(disk, CONFIG, create=True) as manager:
        logs = manager.load_logs()
        for topic in CLEAN:
            log = logs[topic, 0]
            log.update_high_watermark(log.log_end_offset)
            assert left.end[topic] == log.log_end_offset == log.recovery_point
            assert left.stable[topic] == log.last_stable_offset
            aborted = log.collect_aborted_transactions(0, log.log_end_offset)
            gone = {one.offset for one in left.seen[topic] if one.offset < left.stable[topic]}
            gone -= {one.offset for one in left.committed[topic]}
            assert bool(gone) == bool(aborted) == (topic == "transactional")
    after = bytes_of(disk, CLEAN)
    # An active segment's indexes are made large when opened, and cut again when closed.
    assert before == after


def bytes_of(disk: Path, topics: dict[str, dict[str, str]]) -> dict[str, bytes]:
    """Return the files of some partitions by path."""
    return {
        f"{topic}/{path.name}": path.read_bytes()
        for topic in topics
        for path in sorted((disk / f"{topic}-0").iterdir())
    }


@dataclass(frozen=True, slots=True)
class Killed:
    """A disk as a killed broker left it, and the same disk after the broker started again."""

    before: Path
    after: Path
    acknowledged: dict[str, list[tuple[int, Sent]]]
    segments: dict[str, int]
    ends: dict[str, int]
    mended: dict[str, list[str]]


@pytest.fixture(scope="module")
def killed(
    left: Left, broker: Broker, clients: Clients, tmp_path_factory: pytest.TempPathFactory
) -> Killed:
    """Kill the broker while a producer is at work, harm some logs, start and stop it again."""
    broker.start()
    folder = tmp_path_factory.mktemp("killed")
    clients.ask(kafka_clients.create_topics, broker.servers, KILLED)
    for topic in [*KILLED][1:]:
        clients.ask(kafka_clients.produce, broker.servers, topic, lots_of("plain")[:4])
    lot = Lot(records("killed", 200), "lz4")
    work = clients.begin(
        kafka_clients.produce_until_it_fails, broker.servers, "killed", lot, 100_000
    )
    end = time.monotonic() + WAIT_SECONDS
    # A broker writes the snapshot of a new segment a moment after its log: a kill in between leaves
    # a snapshot that is not whole, which is a defect.
    while not has_whole_segments(broker.partition("killed"), 5):
        assert time.monotonic() < end, "the producer has not filled five segments"
        time.sleep(0.01)
    broker.kill()
    acknowledged = {"killed": work.result(WAIT_SECONDS)}
    harm(broker)
    shutil.copytree(broker.data, folder / "before")
    # A broker notes its high watermarks every 5 s: a slow one has noted records that were cut.
    (folder / "before" / "replication-offset-checkpoint").unlink(missing_ok=True)
    broker.start()
    loaded = {topic: broker.loaded(topic) for topic in KILLED}
    mended = {topic: broker.mended(topic) for topic in KILLED}
    broker.stop()
    shutil.copytree(broker.data, folder / "after")
    return Killed(
        folder / "before",
        folder / "after",
        acknowledged,
        {topic: segments for topic, (segments, _) in loaded.items()},
        {topic: offset for topic, (_, offset) in loaded.items()},
        mended,
    )


def has_whole_segments(partition: Path, count: int) -> bool:
    """Return whether there are so many logs, and the snapshot of the last one can be read."""
    logs = sorted(partition.glob("*.log"))
    if len(logs) < count:
        return False
    try:
        read_snapshot(logs[-1].with_suffix(".snapshot").read_bytes())
    except (OSError, SegproofError):
        return False
    return True


def harm(broker: Broker) -> None:
    """Do to the logs of a dead broker what a power failure may do."""
    last = max(broker.partition("cut").glob("*.log"))
    data = last.read_bytes()
    last.write_bytes(data[:-CUT_BYTES])
    with open(max(broker.partition("zeros").glob("*.log")), "ab") as log:
        log.write(bytes(ZERO_BYTES))
    for suffix in ("index", "timeindex"):
        min(broker.partition("no-index").glob(f"*.{suffix}")).unlink()


def test_the_broker_was_killed_at_work(killed: Killed) -> None:
    """Otherwise the tests below would say nothing."""
    assert not (killed.before / ".kafka_cleanshutdown").exists()
    assert killed.acknowledged["killed"]
    assert killed.segments["killed"] >= 5
    assert all(killed.mended.values()), killed.mended


@pytest.mark.checks("DISK-5", "DISK-6", "DUMP-6")
def test_verify_says_what_is_true_of_a_killed_broker(killed: Killed) -> None:
    """No defect where the broker was only killed; where a log was harmed, that and nothing else."""
    assert defects(killed.before / "killed-0") == []
    for topic, law in {"cut": "DUMP-6", "zeros": "DISK-6"}.items():
        # Zeros are what a log that is preallocated ends in: that is worth a note only.
        found = [*verify(killed.before / f"{topic}-0", deep=True)]
        last = str(max((killed.before / f"{topic}-0").glob("*.log")))
        assert [(law, topic == "cut")] == [
            (one.law, one.is_defect) for one in found if one.path.endswith(".log")
        ]
        assert [last] == [one.path for one in found if one.path.endswith(".log")]
        assert [law] * (topic == "cut") == [one.law for one in found if one.is_defect]
    missing = defects(killed.before / "no-index-0")
    first = str(min((killed.before / "no-index-0").glob("*.log")))
    assert [("DISK-5", first)] * 2 == [(one.law, one.path) for one in missing]


@pytest.mark.checks("LOAD-11", "LOAD-1", "PROD-14")
def test_our_recovery_is_the_brokers(killed: Killed, tmp_path: Path) -> None:
    """Loaded and closed by us, a killed disk has the files that the broker made of it, to the byte.

    Only the epochs differ, in which the broker notes itself as a new leader.
    """
    disk = tmp_path / "data"
    shutil.copytree(killed.before, disk)
    with LogManager(disk, CONFIG, create=True) as manager:
        logs = manager.load_logs()
        ends = {topic: logs[topic, 0].log_end_offset for topic in KILLED}
        segments = {topic: len(logs[topic, 0].log_segments) for topic in KILLED}
    assert killed.ends == ends
    assert killed.segments == segments
    ours, theirs = bytes_of(disk, KILLED), bytes_of(killed.after, KILLED)
    assert sorted(theirs) == sorted(ours)
    for name, data in theirs.items():
        if name.endswith("leader-epoch-checkpoint"):
            assert data.splitlines()[2:-1] == ours[name].splitlines()[2:], name
        else:
            assert data == ours[name], name
    assert defects(disk) == defects(killed.after) == []


def test_what_was_acknowledged_is_there(killed: Killed) -> None:
    """Every record that the producer was told of is there after SIGKILL, where it was told."""
    acknowledged = killed.acknowledged["killed"]
    asked = [offset for offset, _ in acknowledged]
    assert asked == sorted(set(asked))
    found: list[Seen] = []
    with PartitionReader(killed.after / "killed-0") as reader:
        offset = 0
        while (one := first_record(reader, offset)) is not None and len(found) < 3000:
            found.append(one)
            offset = one.offset + 1
    offsets = [one.offset for one in found]
    assert offsets == [*range(len(found))]
    for offset, sent in acknowledged[: len(found)]:
        one = found[bisect_left(offsets, offset)]
        assert (sent.timestamp, sent.key, sent.value) == (one.timestamp, one.key, one.value)


@pytest.mark.checks("PROD-11")
def test_producers_are_known_as_the_broker_knows_them(killed: Killed) -> None:
    """The snapshot that the broker left says of each producer where its log ends."""
    for topic in KILLED:
        last = max((killed.after / f"{topic}-0").glob("*.snapshot"))
        entries = read_snapshot(last.read_bytes())
        assert entries, topic
        assert killed.ends[topic] - 1 == max(entry.last_offset for entry in entries)
