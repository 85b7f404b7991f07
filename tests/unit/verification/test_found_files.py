# SPDX-License-Identifier: Apache-2.0
"""Files whose names do not tell what they are, as a file system check leaves them."""

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.reading.file_contents import Content, content_of
from segproof.rocketmq.message import MAGIC_V2
from segproof.verification import verify
from segproof.verifying import unnamed_files
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ, partition_of
from segproof_harness.laws.borders.store_files import record
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.reported_findings import verified

PLAIN = partition_of(KAFKA / "plain")
STORE = ROCKETMQ / "rolled-4.9.8" / "store"
LOG = PLAIN / "00000000000000000342.log"
PART = STORE / "commitlog" / "00000000000000000000"
FIRST_BYTES = int.from_bytes(PART.read_bytes()[:4], "big")
"""Of the first message of that file."""
TXN = partition_of(KAFKA / "txn-a")
LOGDIR = KAFKA / "compacted" / "logdir"
UNREAD = ("DISK-45", "RMQDISK-41")


def snapshot_of(folder: Path) -> Path:
    """Return the largest producer snapshot of a partition."""
    return max(folder.glob("*.snapshot"), key=lambda one: one.stat().st_size)


def told(path: Path) -> Content | None:
    """Return what the content of a file tells."""
    return content_of(str(path), REAL_FILES)


def zeroed(data: bytes, count: int) -> bytes:
    """Return bytes whose first ones are zeros."""
    return bytes(count) + data[count:]


@pytest.mark.parametrize(
    ("source", "words", "name"),
    [
        (LOG, "a log of Kafka; its first sound batch has the offsets 342 to 353", LOG.name),
        (LOG.with_suffix(".index"), "an offset index of Kafka", ""),
        (LOG.with_suffix(".timeindex"), "a time index of Kafka", ""),
        (PLAIN / "partition.metadata", "of topic id K1r5SbjTQ2y24zoosPP8Eg", ""),
        (PLAIN / "leader-epoch-checkpoint", "a leader-epoch-checkpoint of Kafka: epoch 0 from", ""),
        (PLAIN / "00000000000000000060.snapshot", "a producer snapshot of Kafka, of no", ""),
        (TXN / "00000000000000000000.txnindex", "a transaction index of Kafka, of the aborted", ""),
        (snapshot_of(TXN), "a producer snapshot of Kafka, of the producers", ""),
        (LOGDIR / "cleaner-offset-checkpoint", "a checkpoint of offsets of Kafka; its first", ""),
        (LOGDIR / "log-start-offset-checkpoint", "a checkpoint of Kafka without an entry", ""),
        (PART, "a commit log of RocketMQ that begins at offset 0", PART.name),
        (STORE / "consumequeue/TopicA/0/00000000000000000000", "a file of a consume queue", ""),
        (next((STORE / "index").iterdir()), "an index file of RocketMQ", ""),
        (STORE / "checkpoint", "a checkpoint of a store of RocketMQ, whose log was flushed", ""),
        (KAFKA / "plain" / "expected.json", "", ""),
        (Path(__file__), "", ""),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else None,
)
def test_a_file_is_told_by_its_content(tmp_path: Path, source: Path, words: str, name: str) -> None:
    """`verify` and `dump` refused what lost+found holds by its name, an inode."""
    shutil.copyfile(source, tmp_path / "#131077")
    found = told(tmp_path / "#131077")
    assert words in (found.words if found else "")
    assert (found is not None) is bool(words)
    assert name == (found.name if found else "")


META = b"#Sun\nversion=1\nnode.id=1\ncluster.id=c\ndirectory.id=" + b"a" * 21 + b"Q" + b"\n"
VOTE = b'{"leaderId":1,"leaderEpoch":8,"votedId":-1,"data_version":1}'
SNAPSHOT = snapshot_of(TXN).read_bytes()
ABORTED = (TXN / "00000000000000000000.txnindex").read_bytes()
CHECKPOINT = (STORE / "checkpoint").read_bytes()


def units(size: int) -> bytes:
    """Return units of a consume queue for messages of a length that begin 100 bytes apart."""
    return b"".join(struct.pack(">qiq", 100 * number, size, 0) for number in range(8))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"0\n1\n0 0\n", "a leader-epoch-checkpoint of Kafka: epoch 0 from offset 0 on"),
        (b"0\n2\n0 0\n3 9\n", "0 from offset 0 on, up to epoch 3 from offset 9 on"),
        (b"0\n2\n0 0\n3 9", "up to epoch 3 from offset 9 on"),
        (b"0\n2\n0 0\n0 9\n", ""),
        (b"0\n2\n0 9\n3 8\n", ""),
        (b"0\n3\n0 0\n3 9\n", ""),
        (b"1\n1\n0 0\n", ""),
        (b"0\n1\n0 0 0 0\n", ""),
        (b"0\n1\n\xff 0\n", ""),
        (b"0\n", ""),
        (b"0\n0\n", "a checkpoint of Kafka without an entry"),
        (b"0\n1\nt-x 0 7\n", "a checkpoint of offsets of Kafka; its first line is 't-x 0 7'"),
        (META, "a meta.properties of Kafka, of node 1 of cluster c, for the log directory aaaa"),
        (META.replace(b"version=1", b"version=7"), ""),
        (b"name=x\nversion=1\n", ""),
        (VOTE, "a quorum-state of Kafka, the vote of a node in epoch 8"),
        (VOTE.replace(b"votedId", b"voted"), ""),
        (VOTE.replace(b"8", b'"8"'), ""),
        (VOTE.replace(b"8", b"4294967296"), ""),
        (b'{"dataVersion":{},"topicConfigTable":{}}', "config of a store of RocketMQ: topics.json"),
        (b'{"offsetTable":{}}', "consumerOffset.json or delayOffset.json"),
        (b'{"version": 1}', ""),
        (b"{", ""),
        (b"[" * 4000, ""),
        (SNAPSHOT, "a producer snapshot of Kafka, of the producers"),
        (SNAPSHOT[:-1] + bytes([SNAPSHOT[-1] ^ 1]), ""),
        (SNAPSHOT[:9], ""),
        (ABORTED, "a transaction index of Kafka, of the aborted transactions"),
        (ABORTED[:68], "a transaction index of Kafka, of the aborted transactions"),
        (ABORTED[:34], ""),
        (ABORTED[:-1], ""),
        (bytes(34), ""),
        (CHECKPOINT, "a checkpoint of a store of RocketMQ, whose log was flushed at 20"),
        (CHECKPOINT[:4095], ""),
        (bytes(4096), ""),
        (CHECKPOINT[:4095] + b"#", ""),
        (units(100), "a file of a consume queue of RocketMQ, whose first units lead to offsets 0"),
        (units(101), ""),
    ],
)  # fmt: skip
def test_a_small_file_is_told_where_it_is_whole(tmp_path: Path, data: bytes, words: str) -> None:
    """Only logs, indexes and topic ids were told; the others counted as no file of Kafka."""
    (tmp_path / "#7").write_bytes(data)
    found = told(tmp_path / "#7")
    assert (found is not None) is bool(words)
    assert found is None or words in found.words


@pytest.mark.parametrize(
    ("source", "damage", "words"),
    [
        (
            LOG,
            lambda data: zeroed(data, 4096),
            "a log of Kafka; its first sound batch at byte 31929",
        ),
        (LOG, lambda data: data[:31929], "has the offsets 342 to 353"),
        (LOG, lambda data: data[:31928], ""),
        (LOG, lambda data: bytes(len(data)), ""),
        (LOG, lambda data: b"", ""),
        (PART, lambda data: zeroed(data, 4096), "that begins at offset 0"),
        (PART, lambda data: data[:FIRST_BYTES], "that begins at offset 0"),
        (PART, lambda data: data[: FIRST_BYTES - 1], ""),
        (LOG.with_suffix(".index"), lambda data: data[:64] + bytes(64), "an offset index of Kafka"),
        (LOG.with_suffix(".index"), lambda data: data[:56], ""),
        (LOG.with_suffix(".index"), lambda data: data[8:16] + data[:8] + data[16:], ""),
        (LOG.with_suffix(".index"), lambda data: data[:65], ""),
    ],
)
def test_content_with_damage(
    tmp_path: Path, source: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    """The first blocks may be lost; without one sound batch or eight entries nothing is told."""
    (tmp_path / "#1").write_bytes(damage(source.read_bytes()))
    found = told(tmp_path / "#1")
    assert (found is not None) is bool(words)
    assert found is None or words in found.words


def unread(path: Path) -> tuple[list[Finding], list[Summary]]:
    """Return what was not looked into at a path, and the summaries."""
    found, summaries = verified(path)
    return [one for one in found if one.law in UNREAD], summaries


@pytest.mark.checks(*UNREAD)
@pytest.mark.parametrize("source", [LOG, PART], ids=["kafka", "rocketmq"])
def test_the_printed_commands_read_a_found_file(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dozen hints said to look in lost+found, and no verb read what lies there."""
    place = tmp_path / "disk" / "lost+found"
    place.mkdir(parents=True)
    shutil.copyfile(source, place / "#4711")
    monkeypatch.chdir(tmp_path)
    for path, verdict, severity in (
        (tmp_path / "disk", Verdict.UNREADABLE, Severity.NOTE),
        (place, Verdict.NOT_CHECKED, Severity.WARNING),
        (place / "#4711", Verdict.NOT_CHECKED, Severity.WARNING),
    ):
        found, summaries = unread(path)
        assert [(str(place / "#4711"), severity)] == [(one.path, one.severity) for one in found]
        assert [verdict] == [one.verdict for one in summaries]
    commands = split_commands(found[0].hint)[1]
    for command in commands:
        if command.startswith("segproof"):
            assert 0 == cli.run(command.split()[1:])
        else:
            subprocess.run(["bash", "-ec", command], check=True)
    copies = [path for path in (tmp_path / "found").rglob("*") if path.is_file()]
    assert [(source.name, source.read_bytes())] == [(p.name, p.read_bytes()) for p in copies]


@pytest.mark.checks(*UNREAD)
def test_found_files_beside_partitions(tmp_path: Path) -> None:
    """They were "sound: what lies beside its partitions"; another file there stays DISK-3."""
    shutil.copytree(PLAIN, tmp_path / "plain-0")
    place = tmp_path / "lost+found"
    place.mkdir()
    shutil.copyfile(LOG, place / "#1")
    shutil.copyfile(PART, place / "other")
    (place / "#2").write_bytes(b"no file of a broker")
    shutil.copytree(STORE / "commitlog", place / "#3")
    shutil.copyfile(LOG, tmp_path / "#4")
    found, summaries = unread(tmp_path)
    names = {Path(one.path).name for one in found}
    assert {"#1", "#3", "#4", "other"} == names
    assert {Severity.NOTE} == {one.severity for one in found}
    assert 3 + len(list((STORE / "commitlog").iterdir())) == sum(
        one.not_looked_into for one in summaries
    )


@pytest.mark.checks(*UNREAD)
def test_found_files_beside_a_store(tmp_path: Path) -> None:
    """Beside a partition they were listed, and beside a store nothing said that they are there."""
    shutil.copytree(STORE, tmp_path / "store")
    places = [tmp_path / "lost+found" / "#1", tmp_path / "#2", tmp_path / "lost+found" / "#3"]
    places[0].parent.mkdir()
    for path, source in zip(places, (PART, PART, LOG), strict=True):
        shutil.copyfile(source, path)
    (tmp_path / "readme").touch()
    found = [one for one in unread(tmp_path)[0] if "by its content" in one.message]
    assert {str(path) for path in places} == {one.path for one in found}
    assert {Severity.NOTE} == {one.severity for one in found}
    summaries = unread(tmp_path)[1]
    assert 3 == sum(one.not_looked_into for one in summaries if one.path == str(tmp_path))


@pytest.mark.checks("RMQDISK-41")
def test_found_files_in_a_store(tmp_path: Path) -> None:
    """They were "segproof does not know what it is", and in `commitlog` silent."""
    store = tmp_path / "store"
    shutil.copytree(STORE, store)
    (store / "lost+found").mkdir()
    places = [store / "lost+found" / "#1", store / "#2", store / "commitlog" / "#3"]
    for path in places:
        shutil.copyfile(PART, path)
    found = [one for one in unread(store)[0] if "by its content" in one.message]
    assert {str(path) for path in places} == {one.path for one in found}


def test_dump_and_ls_say_what_a_file_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They said "not the name of a file that dump knows", and that nothing of Kafka's is here."""
    shutil.copyfile(LOG, tmp_path / "#131077")
    for arguments in (["dump", str(tmp_path / "#131077")], ["ls", str(tmp_path)]):
        assert 2 == cli.run(arguments)
        assert "a log of Kafka; its first sound batch" in capsys.readouterr().err


LONG = b"c" * 500_000
LONG_TOPIC = record(0, 0, magic=MAGIC_V2, topic="t" * 30_000)


@pytest.mark.checks(*UNREAD)
@pytest.mark.parametrize(
    ("data", "count"),
    [
        (META.replace(b"cluster.id=c", b"cluster.id=" + LONG), 1),
        (LONG_TOPIC.ljust(len(LONG), b"\0"), 1),
        (VOTE.replace(b"8", b'"' + LONG + b'"'), 0),
        (VOTE.replace(b"8", b"8" * 4000), 0),
    ],
    ids=["cluster", "topic", "text", "number"],
)
def test_a_finding_does_not_grow_with_a_name_in_the_file(
    tmp_path: Path, data: bytes, count: int
) -> None:
    """A name of 500 KB in a file was told whole, and so many files filled the memory."""
    (tmp_path / "#7").write_bytes(data)
    found = unread(tmp_path)[0]
    assert count == len([one for one in found if "by its content" in one.message])
    assert all(len(one.message) < 1000 for one in found)


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_so_many_found_files_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The number of findings is bounded, and the rest is counted."""
    monkeypatch.setattr(unnamed_files, "ASKED_MAX", most)
    for number in range(2):
        shutil.copyfile(LOG, tmp_path / f"#{number}")
    found = unread(tmp_path)[0]
    assert min(most, 2) == len([one for one in found if "by its content" in one.message])
    assert (most <= 2) is any("only the first" in one.message for one in found)


def emptied(folder: Path, *, with_sibling: bool = True) -> tuple[Path, Path]:
    """Make a disk whose partition plain-0 has lost all its files; return it and lost+found."""
    data, place = folder / "my disk" / "data", folder / "my disk" / "lost+found"
    (data / "plain-0").mkdir(parents=True)
    place.mkdir()
    for number, path in enumerate(sorted(PLAIN.iterdir()), 1210):
        if path.suffix in (".log", ".snapshot", ".metadata") or not path.stem.isdigit():
            shutil.copyfile(path, place / f"#{number}")
    if with_sibling:
        shutil.copytree(PLAIN, data / "plain-1")
    return data, place


def found_in(place: Path, words: str) -> list[Finding]:
    """Return the findings of the files that are told with these words."""
    return [one for one in unread(place)[0] if f"by its content it is {words}" in one.message]


@pytest.mark.checks("DISK-45")
@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("with_sibling", [True, False])
def test_where_small_files_belong(tmp_path: Path, *, is_alone: bool, with_sibling: bool) -> None:
    """The id of a topic had the hint to compare it, and no other small file was listed."""
    data, place = emptied(tmp_path, with_sibling=with_sibling)
    asked = place if is_alone else tmp_path
    (topic,) = found_in(asked, "a partition.metadata of Kafka")
    assert (
        f"under the name partition.metadata, into {'the partition' * (not with_sibling)}"
        in topic.hint
    )
    assert f"{data / 'plain-0'}" in topic.hint
    assert str(data / "plain-1") not in topic.hint
    assert ("the topic plain has this id" in topic.hint) is with_sibling
    (epochs,) = found_in(asked, "a leader-epoch-checkpoint of Kafka")
    assert str(data / "plain-0") in epochs.hint
    snapshots = found_in(asked, "a producer snapshot")
    assert len(list(PLAIN.glob("*.snapshot"))) == len(snapshots)
    assert all("a salvage makes" in one.hint for one in (*snapshots, epochs))
    assert len(list(place.iterdir())) == sum(one.not_looked_into for one in unread(place)[1])


@pytest.mark.checks("DISK-45")
def test_a_small_file_alone_is_told(tmp_path: Path) -> None:
    """DISK-20 said that no file of Kafka or RocketMQ has such a name."""
    for name in ("leader-epoch-checkpoint", "00000000000000000060.snapshot"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copyfile(PLAIN / name, folder / "#1217")
        for path in (folder, folder / "#1217"):
            (one,) = verify(path)
            assert ("DISK-45", Severity.WARNING) == (one.law, one.severity)


@pytest.mark.checks("DISK-49", "DISK-71")
@pytest.mark.parametrize("with_sibling", [True, False])
def test_an_emptied_partition_lacks_its_topic_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, with_sibling: bool
) -> None:
    """After the steps of the page a broker with KRaft set what was saved aside, without a word."""
    data, place = emptied(tmp_path, with_sibling=with_sibling)
    found = [one for one in verify(data) if "plain-0" in one.path]
    assert "DISK-71" in {one.law for one in found} or not with_sibling
    missing = [Path(one.path) for one in found if one.law == "DISK-49"]
    assert missing == [data / "plain-0" / "partition.metadata"] * with_sibling
    copy = tmp_path / "copy" / "plain-0"
    copy.mkdir(parents=True)
    for one in found_in(place, "a log of Kafka"):
        base = one.message.partition("has the offsets ")[2].split()[0]
        shutil.copyfile(one.path, copy / f"{int(base):020d}.log")
    assert 0 == cli.run(["salvage", str(copy), "--out", str(tmp_path / "saved")])
    assert "1 partition has no partition.metadata" in capsys.readouterr().err
    (topic,) = found_in(place, "a partition.metadata of Kafka")
    shutil.copyfile(topic.path, copy / "partition.metadata")
    assert 0 == cli.run(["salvage", str(copy), "--out", str(tmp_path / "again")])
    assert "no partition.metadata" not in capsys.readouterr().err
