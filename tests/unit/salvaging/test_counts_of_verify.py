# SPDX-License-Identifier: Apache-2.0
"""`verify` and `salvage` count the same lost messages, and one wrong unit is none of them."""

import os
import random
import shutil
import struct
from pathlib import Path

import pytest

from segproof.findings import Summary, Verdict
from segproof.reading import commit_log_damage
from segproof.repair import salvage, salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.salvaging.salvaged_store import SalvagedStore
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_harness.salvage_draws.rocketmq_damages import draw_store
from segproof_tests.partition_files import name_of
from segproof_tests.reported_findings import verified
from segproof_tests.rows import paired
from segproof_tests.small_logs import batch
from segproof_tests.store_files import LOG, copied_store, long_store

COUNT = 60


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a sound store with three queues of one topic, in several log files."""
    return long_store(tmp_path / "store", COUNT)


def places_of(store: Path) -> list[int]:
    """Return where the messages of a sound store lie."""
    log = CommitLog.open(store)
    return [at for at, one in log.scan(log.min_offset) if one.message is not None]


def counted(store: Path, tmp_path: Path) -> tuple[Summary, SalvagedStore]:
    """Return what both verbs say; they count the same."""
    _, summaries = verified(store)
    told = salvage_store(store, tmp_path / "saved", hash_slot_num=16, index_num=64)
    summary = summaries[-1]
    assert (summary.lost_at_least, summary.lost_offsets is not None) == (
        told.lost_messages or 0, told.is_lost_exact or not told.gap_count,
    )  # fmt: skip
    assert summary.batches == told.messages
    return summary, told


@pytest.mark.checks("RMQDISK-24", "RMQDISK-25")
@pytest.mark.parametrize("seed", [9410007, 9410021, 9410060, 9410075, 9410103])
def test_a_damaged_log_is_counted_alike(seed: int, tmp_path: Path) -> None:
    """Blocks that lie elsewhere or are of another store: each verb had its own rules for them. A
    lost message that reaches from broken bytes into zeros was counted as "at least 1"."""
    for name, data in draw_store(seed, tmp_path).files().items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    summary, _ = counted(tmp_path / "in", tmp_path)
    assert summary.lost_offsets == {9410007: 0, 9410021: 1}.get(seed)


@pytest.mark.checks("RMQDISK-24")
@pytest.mark.parametrize("file", [0, 1, -2])
def test_messages_behind_damage_count(file: int, store: Path, tmp_path: Path) -> None:
    """The verdict left out those that lie behind the damage in the same file alone."""
    path = sorted((store / "commitlog").iterdir())[file]
    places, data = places_of(store), bytearray(path.read_bytes())
    second = next(at for at in places if at > int(path.name)) - int(path.name)
    data[second : second + 40] = bytes(40)
    path.write_bytes(data)
    summary, _ = counted(store, tmp_path)
    assert summary.batches == len(places) - 1
    _, alone = verified(path)
    assert alone[0].batches == alone[0].batches_behind_damage + 1


def lose_from(store: Path, place: int, *, torn: int = 0) -> None:
    """Write zeros from a place of the log on, behind some bytes of its message; remove what
    follows the file.
    """
    for path in sorted((store / "commitlog").iterdir()):
        start, data = int(path.name), path.read_bytes()
        if start > place:
            path.unlink()
        elif place < start + len(data):
            path.write_bytes(data[: place - start + torn].ljust(len(data), b"\0"))


def damage_unit(store: Path, queue: int, number: int, offset: int) -> None:
    """Let a unit lead elsewhere."""
    first = number - number % 8
    path = store / "consumequeue/T" / str(queue) / f"{20 * first:020d}"
    data = bytearray(path.read_bytes())
    struct.pack_into(">q", data, 20 * (number - first), offset)
    path.write_bytes(data)


@pytest.mark.checks("RMQDISK-24", "RMQDISK-52", "RMQDISK-23")
@pytest.mark.parametrize("torn", [0, 40])
@pytest.mark.parametrize("lost", [1, 2, 3, 6, 30])
@pytest.mark.parametrize("gone", ["", "index", "consumequeue"])
def test_the_end_of_a_log_is_counted_alike(
    gone: str, lost: int, torn: int, store: Path, tmp_path: Path
) -> None:
    """A torn record hid the proof of the queues, and of two parts of a lost end one counted."""
    place = places_of(store)[-lost]
    if gone:
        shutil.rmtree(store / gone)
    lose_from(store, place, torn=torn)
    summary, told = counted(store, tmp_path)
    assert (Verdict.READABLE_WITH_GAPS, lost) == (summary.verdict, summary.lost_at_least)
    assert COUNT - lost == told.messages


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize(("part", "which"), paired([0, 1], [0, 1, -2, -1]))
def test_a_file_that_lacks_bytes_is_counted_alike(
    which: int, part: int, store: Path, tmp_path: Path
) -> None:
    """Of a file that was emptied or cut `verify` told an unknown number of lost messages."""
    places = places_of(store)
    path = sorted((store / "commitlog").iterdir())[which]
    size = path.stat().st_size
    os.truncate(path, part * size // 2)
    lost = [one for one in places if int(path.name) <= one < int(path.name) + size]
    summary, told = counted(store, tmp_path)
    assert COUNT - told.messages == summary.lost_at_least
    assert told.messages < COUNT or Verdict.READABLE_WITH_DEFECTS is summary.verdict
    assert part or len(lost) == summary.lost_at_least


@pytest.mark.checks("RMQDISK-23")
def test_an_emptied_log_tells_no_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The only file has 0 bytes: 1 GiB was told as its length, and a store that was not made was
    to be verified.
    """
    store = copied_store(tmp_path)
    os.truncate(store / LOG, 0)
    summary, told = counted(store, tmp_path)
    assert (12, None) == (summary.lost_at_least, told.target)
    (found,) = (one for one in verify(store) if one.law == "RMQDISK-23")
    assert (None, "0") == (found.expected, found.actual)
    assert "nothing to save" in (found.hint or "")
    assert 1 == run(["salvage", str(store), "--out", str(tmp_path / "again")])
    written = capsys.readouterr()
    assert "1073741824" not in written.out + found.message
    assert "segproof verify" not in written.err
    assert "nothing was saved" in written.err


@pytest.mark.checks("RMQDISK-36", "RMQDISK-37")
@pytest.mark.parametrize(("number", "beyond"), paired([0, 1, 10, -1], [1, 10**6, 1 << 40]))
def test_a_wrong_unit_proves_no_loss(beyond: int, number: int, store: Path, tmp_path: Path) -> None:
    """One flipped bit in a unit was a lost message and missing files, and each message is there."""
    end = places_of(store)[-1]
    damage_unit(store, 1, number % (COUNT // 3), end + 400 + beyond)
    summary, told = counted(store, tmp_path)
    assert (Verdict.READABLE_WITH_DEFECTS, 0) == (summary.verdict, summary.lost_at_least)
    assert (COUNT, 0) == (told.messages, told.gap_count)


def test_a_wrong_unit_beside_right_ones_reads_no_log_twice(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them made `verify` place the whole log: a file of it may be of another store."""
    monkeypatch.setattr(commit_log_damage, "LogInOrder", None)
    damage_unit(store, 1, 1, places_of(store)[0] + 1)
    assert "RMQDISK-37" in {one.law for one in verified(store)[0]}


@pytest.mark.checks("RMQDISK-25")
def test_a_file_under_the_first_name_and_a_lost_end_are_counted_alike(
    store: Path, tmp_path: Path
) -> None:
    """What the overwritten file had may have expired: neither verb counts it as lost."""
    paths, places = sorted((store / "commitlog").iterdir()), places_of(store)
    lost = [one for one in places if one >= int(paths[-1].name)]
    paths[-1].unlink()
    os.replace(paths[1], paths[0])
    summary, _ = counted(store, tmp_path)
    assert (len(lost), None) == (summary.lost_at_least, summary.lost_offsets)


@pytest.mark.checks("RMQDISK-26", "RMQDISK-36")
def test_a_wrong_unit_adds_nothing_to_a_loss(store: Path, tmp_path: Path) -> None:
    """Three damaged bodies and one wrong unit were "at least 4 messages lost"."""
    for place in places_of(store)[10:40:10]:
        for path in sorted((store / "commitlog").iterdir()):
            start, data = int(path.name), bytearray(path.read_bytes())
            if start <= place < start + len(data):
                data[place - start + 88] ^= 1
                path.write_bytes(data)
    damage_unit(store, 2, 15, 1 << 40)
    summary, told = counted(store, tmp_path)
    assert (3, 3) == (summary.lost_at_least, told.gap_count)


def tear(log: Path, batch: int, left: int) -> None:
    """Cut a log in the middle of a batch, and its indexes to what is left of it."""
    data, places = log.read_bytes(), [0]
    while places[-1] < len(data):
        places.append(places[-1] + 12 + int.from_bytes(data[places[-1] + 8 : places[-1] + 12]))
    place = places[batch % (len(places) - 1)]
    log.write_bytes(data[: place + left])
    relative = int.from_bytes(data[place : place + 8]) - int(log.stem)
    for suffix, size, end in ((".index", 8, place), (".timeindex", 12, relative)):
        index = log.with_suffix(suffix)
        known = index.read_bytes()
        entries = [known[at : at + size] for at in range(0, len(known), size)]
        index.write_bytes(b"".join(one for one in entries if 0 < int.from_bytes(one[-4:]) < end))


@pytest.mark.checks("DISK-25", "DUMP-6")
@pytest.mark.parametrize(
    ("seed", "source"),
    paired([*range(20260500, 20260504)], ["plain", "unclean-before", "compacted"]),
)
def test_a_torn_closed_segment_is_counted_alike(source: str, seed: int, tmp_path: Path) -> None:
    """`salvage` took the lost end for compacted where no whole header of the torn batch is left."""
    drawn = random.Random(seed)
    folder = partition_of(KAFKA / source)
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    logs = sorted(copy.glob("*.log"))
    number = drawn.randrange(len(logs) - 1)
    tear(logs[number], drawn.randrange(1 << 20), drawn.choice([8, 12, 20, 30, 70]))
    _, summaries = verified(copy)
    (summary,), (told,) = summaries, salvage(copy, tmp_path / "saved")
    assert (told.lost_offsets, told.unproven_offsets) == (
        summary.lost_at_least, summary.unproven_offsets,
    )  # fmt: skip
    assert summary.lost_at_least + summary.unproven_offsets == (
        int(logs[number + 1].stem) - torn_from(logs[number])
    )
    assert (source == "compacted") is (not summary.lost_at_least)


def torn_from(log: Path) -> int:
    """Return the offset after the last whole batch of a torn log."""
    data, at, end = log.read_bytes(), 0, int(log.stem)
    while at + 61 <= len(data) >= at + 12 + int.from_bytes(data[at + 8 : at + 12]):
        first, last = int.from_bytes(data[at : at + 8]), int.from_bytes(data[at + 23 : at + 27])
        at, end = at + 12 + int.from_bytes(data[at + 8 : at + 12]), first + last + 1
    return end


@pytest.mark.checks("DISK-25", "DISK-4")
@pytest.mark.parametrize("keyless", [None, 0, 3, 6])
@pytest.mark.parametrize("how", ["gap", "gone", "zeros"])
def test_a_gap_where_the_cleaner_was_is_counted_alike(
    how: str, keyless: int | None, tmp_path: Path
) -> None:
    """After a record without a key in the same segment `verify` said "up to 3", `salvage` "3"."""
    folder = tmp_path / "data" / "t-0"
    folder.mkdir(parents=True)
    batches = [batch(n, key=None if n == keyless else b"k") for n in range(14)]
    first = b"".join(batches[:7])
    logs = {0: first + bytes(200) * (how == "zeros"), 10: b"".join(batches[10:])}
    if how == "gone":
        (folder / name_of(7, ".index")).touch()
    for base, data in logs.items():
        (folder / name_of(base, ".log")).write_bytes(data)
        for suffix in (".index", ".timeindex"):
            (folder / name_of(base, suffix)).touch()
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 10\n")
    os.utime(folder, (0, 0))
    _, summaries = verified(folder)
    (told,) = salvage(folder, tmp_path / "out")
    counts = (summaries[-1].lost_at_least, summaries[-1].unproven_offsets)
    assert counts == (told.lost_offsets, told.unproven_offsets)
    is_proven = keyless is not None and (how != "gap" or keyless == 6)
    assert counts == ((3, 0) if is_proven else (0, 0) if how == "gap" else (0, 3))
