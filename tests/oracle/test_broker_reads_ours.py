# SPDX-License-Identifier: Apache-2.0
"""A real broker starts on logs that segproof wrote; real consumers read every record of them.

Two of these logs are what `salvage` kept of damaged ones, one by the commands of the tutorial. At
the end the whole directory is saved, and comes back by the steps of the page.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import pytest

from segproof.kafka import LogManager
from segproof.kafka.batch_table import read_batch_headers
from segproof.kafka.partition_metadata_file import PartitionMetadataFile, read_partition_metadata
from segproof.kafka.record_file import scan_memory
from segproof.lookup import PartitionReader
from segproof.repair import salvage
from segproof.salvaging.salvage import SalvagedPartition
from segproof_harness import cli
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.releases import kafka_clients
from segproof_harness.releases.broker import Broker, BrokerError
from segproof_harness.releases.kafka_clients import Clients
from segproof_harness.releases.written_logs import CONFIGS, TOPICS, Expected, write_log, write_logs

pytestmark = pytest.mark.needs("java", "jpype")

TRANSACTIONAL = ("transactions", "open", "stamped")
SAVED = "saved"
"""The topic of what was saved of a damaged copy of the first one."""
TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "a-broken-disk.md"
TAUGHT = "plain"
"""The topic of the tutorial, which breaks two batches of it."""
LOST_THERE = range(77, 80)
"""The offsets that it shows as lost."""
METADATA = "__cluster_metadata-0"


@dataclass(frozen=True, slots=True)
class Ours:
    """What was written, and what the broker found."""

    expected: dict[str, Expected]
    files: dict[str, dict[str, bytes]]
    """The files of each partition, as we left them."""
    written_ns: dict[str, dict[str, int]]
    """When each of them was written."""
    saved: SalvagedPartition
    broker: Broker


def save_a_damaged_copy(broker: Broker, topic_id: uuid.UUID, folder: Path) -> SalvagedPartition:
    """Let the topic SAVED be what is saved of a damaged copy of the transactions."""
    damaged = folder / f"{SAVED}-0"
    shutil.copytree(broker.partition("transactions"), damaged)
    logs = sorted(damaged.glob("*.log"))[1:5]
    for number, log in enumerate(logs):
        data = bytearray(log.read_bytes())
        at = int(read_batch_headers(bytes(data)).table["position"][2])
        if number == 0:
            data[at + 8] = 0x7F  # the size of a batch leads behind the end, and comes back
        elif number == 1:
            data[at + 6] ^= 8  # its base offset, which comes back
        elif number == 2:
            data[at : at + 1500] = bytes(1500)
        else:
            del data[at + 40 : at + 70]
        log.write_bytes(data)
    (told,) = salvage(damaged, folder / "out")
    partition = broker.partition(SAVED)
    shutil.rmtree(partition)
    shutil.move(folder / "out" / partition.name, partition)
    PartitionMetadataFile(partition / "partition.metadata", create=True).write(topic_id)
    return told


def follow_the_tutorial(folder: Path, target: Path) -> None:
    """Run its commands, then put the partition that was saved into its place."""
    commands = re.findall(r"^\$ (.*)$", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE)
    own = f'segproof() {{ "{sys.executable}" -m segproof_harness.cli "$@"; }}'
    script = "\n".join([own, *commands])
    subprocess.run(["bash", "-c", script], cwd=folder, check=False, stdout=subprocess.DEVNULL)
    shutil.copy(target / "partition.metadata", folder / "saved" / target.name)
    shutil.rmtree(target)
    shutil.move(folder / "saved" / target.name, target)


def times_of(partition: Path) -> dict[str, int]:
    """Return when the files of a partition were written, by name."""
    return {path.name: path.stat().st_mtime_ns for path in sorted(partition.iterdir())}


def files_of(partition: Path) -> dict[str, bytes]:
    """Return the files of a partition by name."""
    return {path.name: path.read_bytes() for path in sorted(partition.iterdir())}


@pytest.fixture(scope="module")
def ours(broker: Broker, clients: Clients, tmp_path_factory: pytest.TempPathFactory) -> Ours:
    """A running broker on the logs that segproof wrote in the place of the broker's own."""
    topics = {**TOPICS, SAVED: TOPICS["transactions"], TAUGHT: TOPICS["transactions"]}
    broker.start()
    ids = clients.ask(kafka_clients.create_topics, broker.servers, topics)
    broker.stop()
    for name in TOPICS:
        shutil.rmtree(broker.partition(name))
    expected = write_logs(broker.data, {name: ids[name] for name in TOPICS})
    saved = save_a_damaged_copy(broker, ids[SAVED], tmp_path_factory.mktemp("saved"))
    follow_the_tutorial(tmp_path_factory.mktemp("tutorial"), broker.partition(TAUGHT))
    files = {name: files_of(broker.partition(name)) for name in TOPICS}
    written_ns = {name: times_of(broker.partition(name)) for name in TOPICS}
    broker.start()
    return Ours(expected, files, written_ns, saved, broker)


@pytest.mark.checks("LOAD-11", "LOAD-13", "META-1", "CKPT-1")
def test_the_broker_loads_without_recovering(ours: Ours) -> None:
    """It takes the stop for a clean one, and each log as it is, by its own words."""
    assert "Skipping recovery of" in ours.broker.said
    for name, expected in ours.expected.items():
        assert ours.broker.mended(name) == []
        assert (expected.segments, expected.end_offset) == ours.broker.loaded(name)
        # The snapshot at the end of the log says all of the producers: no batch is read for them.
        rebuilt = f"segment recovery from offset {expected.end_offset}"
        assert any(rebuilt in line for line in ours.broker.said_about(name))


@pytest.mark.parametrize("name", TOPICS)
def test_a_consumer_reads_every_record(name: str, ours: Ours, clients: Clients) -> None:
    """Every offset, timestamp, key, value and header, of every codec, byte for byte."""
    expected = ours.expected[name]
    seen = clients.ask(kafka_clients.read_all, ours.broker.servers, name)
    assert len(expected.seen) == len(seen)
    assert expected.seen == seen


@pytest.mark.checks("SEG-20", "LOAD-11")
def test_a_consumer_reads_exactly_what_salvage_reports(ours: Ours, clients: Clients) -> None:
    """The broker mends nothing, and every record is there but those of the lost offsets."""
    saved, broker = ours.saved, ours.broker
    assert (saved.gap_count, saved.set_aside_batches) == (2, 0)
    assert (saved.restored_batches, saved.restored_headers) == (1, 1)
    lost = {
        offset
        for gap in saved.gaps
        for offset in range(gap.first_lost_offset, (gap.last_lost_offset or 0) + 1)
    }
    assert len(lost) == saved.lost_offsets > 0
    assert broker.mended(SAVED) == []
    seen = clients.ask(kafka_clients.read_all, broker.servers, SAVED)
    assert [one for one in ours.expected["transactions"].seen if one.offset not in lost] == seen


def test_after_the_tutorial_a_consumer_reads_what_was_saved(ours: Ours, clients: Clients) -> None:
    """From the first `verify` to a broker that serves every record but the lost ones."""
    (scenario,) = (one for one in scenarios() if one.name == TAUGHT)
    known = [
        (record.offset, record.timestamp, record.key, record.value)
        for path in sorted(partition_of(scenario).glob("*.log"))
        for batch in scan_memory(path.read_bytes())
        for record in batch.records()
        if record.offset not in LOST_THERE
    ]
    seen = clients.ask(kafka_clients.read_all, ours.broker.servers, TAUGHT)
    assert known == [(one.offset, one.timestamp, one.key, one.value) for one in seen]
    assert ours.broker.mended(TAUGHT) == []


@pytest.mark.parametrize("name", TRANSACTIONAL)
@pytest.mark.checks("TXNIDX-10", "LOG-8")
def test_a_committed_reader_misses_aborted_records_exactly(
    name: str, ours: Ours, clients: Clients
) -> None:
    """What transaction indexes and the snapshot of producers say is what the broker believes."""
    expected, servers = ours.expected[name], ours.broker.servers
    assert expected.aborted
    assert expected.committed == clients.ask(
        kafka_clients.read_all, servers, name, "read_committed"
    )
    stable = clients.ask(kafka_clients.end_offset, servers, name, "read_committed")
    assert expected.stable_offset == stable


@pytest.mark.parametrize("name", ["transactions", "magic-1", "old-formats"])
@pytest.mark.checks("SEG-12", "LOG-1", "LOG-6")
def test_seeking_finds_each_offset(name: str, ours: Ours, clients: Clients) -> None:
    """From each third offset on the consumer gets the next record that is there."""
    expected = ours.expected[name]
    asked = list(range(0, expected.end_offset, 3))
    found = clients.ask(kafka_clients.read_first_of_each, ours.broker.servers, name, asked)
    offsets = [one.offset for one in expected.seen]
    for offset, one in zip(asked, found, strict=True):
        place = bisect_left(offsets, offset)
        assert (expected.seen[place] if place < len(offsets) else None) == one, offset


@pytest.mark.parametrize("name", [name for name in TOPICS if name != "old-formats"])
@pytest.mark.checks("LOG-15", "SEG-39")
def test_times_are_found_where_we_find_them(name: str, ours: Ours, clients: Clients) -> None:
    """`offsetsForTimes` and our lookup answer alike, between, before and behind all timestamps.

    That is: the earliest record at or after the time, as the records themselves say it, or a marker
    before it. What both find with the time index could be wrong alike.
    """
    asked, mine = times_asked_and_found(name, ours)
    seen = ours.expected[name].seen
    offsets = {one.offset for one in seen}
    for time, answer in zip(asked, mine, strict=True):
        first = next(((one.timestamp, one.offset) for one in seen if one.timestamp >= time), None)
        if answer is None or answer[1] in offsets:
            assert first == answer, time
        else:
            assert time <= answer[0], time
            assert first is None or answer[1] < first[1], time
    theirs = clients.ask(kafka_clients.offsets_for_times, ours.broker.servers, name, asked)
    assert len({answer for answer in theirs if answer is not None}) > (
        0 if name == "stamped" else 10
    )
    assert [*zip(asked, mine, strict=True)] == [*zip(asked, theirs, strict=True)]


@pytest.mark.checks("LOG-15")
def test_a_broker_finds_no_time_behind_segments_without_times(ours: Ours, clients: Clients) -> None:
    """The broker takes the file's age for the times of a segment of magic 0, and looks no further.

    Ours answers with a record that is there.
    """
    asked, mine = times_asked_and_found("old-formats", ours)
    servers = ours.broker.servers
    assert [None] * len(asked) == clients.ask(
        kafka_clients.offsets_for_times, servers, "old-formats", asked
    )
    seen = {(one.timestamp, one.offset) for one in ours.expected["old-formats"].seen}
    found = [answer for answer in mine if answer is not None]
    assert len(found) > 10
    assert set(found) <= seen


def times_asked_and_found(name: str, ours: Ours) -> tuple[list[int], list[tuple[int, int] | None]]:
    """Return timestamps about a log, and what our lookup answers for each."""
    known = sorted({one.timestamp for one in ours.expected[name].seen if one.timestamp >= 0})
    asked = [0, *known[::5], *(one + 1 for one in known[::17]), *(one - 50 for one in known[-3:])]
    asked.append(known[-1] + 1000)
    with PartitionReader(ours.broker.partition(name)) as reader:
        answers = [reader.lookup_timestamp(timestamp) for timestamp in asked]
    return asked, [
        None if one.offset is None or one.timestamp is None else (one.timestamp, one.offset)
        for one in answers
    ]


def test_the_broker_wrote_nothing_but_what_it_must(ours: Ours) -> None:
    """While it runs, after all that was read: nothing was made anew, not even with the same bytes.

    It opens the indexes of the last segment for writing, and notes the epoch that it leads.
    """
    for name, before in ours.written_ns.items():
        after = times_of(ours.broker.partition(name))
        last = max(file for file in before if file.endswith(".log"))[: -len("log")]
        opened = {last + "index", last + "timeindex", "leader-epoch-checkpoint"}
        assert before.keys() - opened == after.keys() - opened
        for file in before.keys() - opened:
            assert before[file] == after[file], (name, file)


def test_the_broker_leaves_our_files_as_they_are(ours: Ours) -> None:
    """After all this, and an orderly stop, each file of ours has its bytes still.

    Only the epochs got a line, for the leader that the broker was.
    """
    ours.broker.stop()
    for name, before in ours.files.items():
        after = files_of(ours.broker.partition(name))
        # The broker notes itself as the leader of an epoch that begins where our log ends.
        epochs = (before.pop("leader-epoch-checkpoint", b""), after.pop("leader-epoch-checkpoint"))
        assert epochs[1].splitlines()[2:-1] == epochs[0].splitlines()[2:]
        assert int(epochs[1].split()[-1]) == ours.expected[name].end_offset
        assert sorted(before) == sorted(after)
        for file, data in before.items():
            assert data == after[file], file


@pytest.mark.checks("LOAD-11", "LOAD-13")
def test_we_go_on_where_the_broker_stopped(ours: Ours) -> None:
    """The disk that the broker leaves is one that we load without recovery, all topics of it."""
    with LogManager(ours.broker.data, CONFIGS["transactions"], create=True) as manager:
        logs = manager.load_logs()
        for name, expected in ours.expected.items():
            assert expected.end_offset == logs[name, 0].log_end_offset
            assert expected.end_offset == logs[name, 0].recovery_point


def test_a_saved_directory_serves_every_record_again(
    ours: Ours, clients: Clients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its identity and the log of the cluster's metadata; without them it does not start."""
    broker, old = ours.broker, tmp_path / "old"
    shutil.move(broker.data, old)
    assert cli.run(["salvage", str(old), "--out", str(tmp_path / "new")]) in (0, 1)
    (command,) = re.findall(r"`(cp -a .+)`", capsys.readouterr().err)
    shutil.move(tmp_path / "new", broker.data)
    with pytest.raises(BrokerError, match=r"No readable meta\.properties"):
        broker.start()
    os.rename(broker.data, tmp_path / "new")
    assert shlex.split(command)[2:] == [str(old / "meta.properties"), str(tmp_path / "new")]
    subprocess.run(["bash", "-c", command], check=True)
    shutil.copytree(old / METADATA, tmp_path / "new" / METADATA)
    shutil.rmtree(broker.data, ignore_errors=True)
    shutil.move(tmp_path / "new", broker.data)
    broker.start()
    assert not list(broker.data.glob("*-stray"))
    for name, one in ours.expected.items():
        assert one.seen == clients.ask(kafka_clients.read_all, broker.servers, name)
    broker.stop()


@pytest.mark.checks("LOAD-11", "LOAD-1", "PROD-14")
def test_the_broker_recovers_what_a_process_of_ours_left(ours: Ours, tmp_path: Path) -> None:
    """Logs that nobody closed: the broker finds every record, and the files that we would make.

    The last test of this module: it puts other logs in the place of those of the tests above.
    """
    broker, names = ours.broker, ("transactions", "open")
    ids = {
        name: read_partition_metadata(ours.files[name]["partition.metadata"]).topic_id
        for name in names
    }
    manager = LogManager(tmp_path / "ours", CONFIGS["open"], create=True)
    manager.load_logs()
    expected = {name: write_log(manager, name, topic_id) for name, topic_id in ids.items()}
    manager.checkpoint_log_recovery_offsets()
    (broker.data / ".kafka_cleanshutdown").unlink()
    for name in TOPICS:
        shutil.rmtree(broker.partition(name))
    # As a killed process leaves them: indexes not trimmed, no snapshot of the end.
    shutil.copytree(tmp_path / "ours", tmp_path / "copy")
    shutil.copytree(tmp_path / "ours", broker.data, dirs_exist_ok=True)
    manager.shutdown()
    broker.start()
    for name in names:
        assert (expected[name].segments, expected[name].end_offset) == broker.loaded(name)
        assert any("Recovering unflushed segment" in line for line in broker.said_about(name))
    broker.stop()
    with LogManager(tmp_path / "copy", CONFIGS["open"], create=True) as again:
        again.load_logs()
    for name in names:
        theirs = files_of(broker.partition(name))
        for disk in ("copy", "ours"):
            mine = files_of(tmp_path / disk / f"{name}-0")
            assert sorted(theirs) == sorted(mine)
            for file in theirs.keys() - {"leader-epoch-checkpoint"}:
                assert theirs[file] == mine[file], (disk, file)
