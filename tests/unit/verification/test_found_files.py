# SPDX-License-Identifier: Apache-2.0
"""Files whose names do not tell what they are, as a file system check leaves them."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.reading.file_contents import Content, content_of
from segproof.verification import verify
from segproof.verifying import unnamed_files
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, ROCKETMQ, partition_of
from segproof_harness.reports.verdicts import split_commands

PLAIN = partition_of(KAFKA / "plain")
STORE = ROCKETMQ / "rolled-4.9.8" / "store"
LOG = PLAIN / "00000000000000000342.log"
PART = STORE / "commitlog" / "00000000000000000000"
FIRST_BYTES = int.from_bytes(PART.read_bytes()[:4], "big")
"""Of the first message of that file."""
UNREAD = ("DISK-45", "RMQDISK-41")


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
        (PLAIN / "leader-epoch-checkpoint", "", ""),
        (PART, "a commit log of RocketMQ that begins at offset 0", PART.name),
        (STORE / "consumequeue/TopicA/0/00000000000000000000", "a file of a consume queue", ""),
        (next((STORE / "index").iterdir()), "an index file of RocketMQ", ""),
        (STORE / "checkpoint", "", ""),
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
    summaries: list[Summary] = []
    found = list(verify(path, on_summary=summaries.append))
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
