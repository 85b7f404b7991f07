# SPDX-License-Identifier: Apache-2.0
"""Zeros where the log of a store had its end: `verify` names the log, by what index and queues
prove, and a rebuild that refuses the store names a law that `verify` shows there.
"""

import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.findings import Severity, Verdict
from segproof.repair import rebuild_index
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.message import blank_tail
from segproof.verification import verify
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.reported_findings import judged
from segproof_tests.store_files import LOG_BYTES, logs, long_store


def offsets(store: Path) -> list[int]:
    """Return the offsets of all messages."""
    return [at for at, result in CommitLog.open(store).scan() if result.message is not None]


def zero_from(store: Path, offset: int) -> None:
    """Write zeros from an offset of the log on, to the end of its last file."""
    for path in logs(store):
        data, kept = path.read_bytes(), max(0, offset - int(path.name))
        path.write_bytes(data[:kept].ljust(len(data), b"\0"))


def without_queues(store: Path, how: str) -> None:
    """Remove the queues, or put a database in their place."""
    if how != "kept":
        shutil.rmtree(store / "consumequeue")
    if how == "rocksdb":
        (store / "consumequeue").mkdir()
        (store / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")


@pytest.mark.checks("RMQDISK-52")
@pytest.mark.parametrize("queues", ["kept", "gone", "rocksdb"])
@pytest.mark.parametrize("lost", [3, 12, 22])
def test_an_end_of_zeros_is_a_lost_end(queues: str, lost: int, tmp_path: Path) -> None:
    """Only single index entries were named, and the loss was "an unknown number"."""
    store = long_store(tmp_path / "store")
    end = offsets(store)[-lost]
    before = offsets(store)[-lost - 1]
    zero_from(store, end)
    without_queues(store, queues)
    found, summary = judged(store)
    (one,) = [one for one in found if one.law == "RMQDISK-52"]
    # The records end with the one before, or at a blank end.
    ends = (end, before + LOG_BYTES - before % LOG_BYTES)
    place = next(path for path in reversed(logs(store)) if int(path.name) <= int(one.actual or 0))
    assert (Severity.ERROR, str(place)) == (one.severity, one.path)
    assert int(one.actual or 0) in ends
    assert f"lead to {lost} messages" in one.message
    assert (Verdict.READABLE_WITH_GAPS, lost, None) == (
        summary.verdict, summary.lost_at_least, summary.lost_offsets,
    )  # fmt: skip


@pytest.mark.checks("RMQDISK-52", "RMQDISK-28")
@pytest.mark.parametrize("lost", [1, 2])
def test_one_message_is_a_lost_end_if_nothing_contradicts(lost: int, tmp_path: Path) -> None:
    """Of one or two lost messages each entry was told, and no loss: the last ones before a loss of
    power are often so few, and `salvage` counts them.
    """
    store = long_store(tmp_path / "store")
    zero_from(store, offsets(store)[-lost])
    found, summary = judged(store)
    laws = {one.law for one in found}
    assert laws >= {"RMQDISK-28", "RMQDISK-52"}
    assert (Verdict.READABLE_WITH_GAPS, lost) == (summary.verdict, summary.lost_at_least)


@pytest.mark.checks("RMQDISK-52")
@pytest.mark.parametrize("is_there", [True, False])
def test_zeros_are_told_where_the_log_goes_on(is_there: bool, tmp_path: Path) -> None:
    """Not where it ends with its last file: the next one, of one message, is zeros or missing."""
    store = long_store(tmp_path / "store", 27)
    end = int(logs(store)[-1].name)
    assert [end] == [one for one in offsets(store) if one >= end]
    if is_there:
        zero_from(store, end)
    else:
        logs(store)[-1].unlink()
    (one,) = [one for one in judged(store)[0] if one.law == "RMQDISK-52"]
    assert (str(end), is_there) == (one.actual, "with zeros from there on" in one.message)


@pytest.mark.checks("RMQDISK-23")
def test_a_missing_end_is_counted(tmp_path: Path) -> None:
    """The finding had the number, and the verdict said "an unknown number"."""
    store = long_store(tmp_path / "store")
    last = logs(store)[-1]
    lost = sum(at >= int(last.name) for at in offsets(store))
    last.unlink()
    _, summary = judged(store)
    assert (lost, None) == (summary.lost_at_least, summary.lost_offsets)


def hole(store: Path) -> None:
    """Remove a file in the middle."""
    logs(store)[1].unlink()


def rename_ahead(store: Path) -> None:
    """Give the last file the next name."""
    last = logs(store)[-1]
    last.rename(last.with_name(f"{int(last.name) + LOG_BYTES:020d}"))


def exchange(store: Path) -> None:
    """Exchange the names of two files."""
    one, two = logs(store)[:2]
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def copy_over(store: Path) -> None:
    """Copy a file over another one."""
    shutil.copyfile(logs(store)[0], logs(store)[1])


def lose_last(store: Path) -> None:
    """Remove the last file, and the queues."""
    logs(store)[-1].unlink()
    without_queues(store, "gone")


def zero_last(store: Path) -> None:
    """Write zeros over the last file; queues are elsewhere."""
    zero_from(store, int(logs(store)[-1].name))
    without_queues(store, "rocksdb")


def zero_some(store: Path) -> None:
    """Write zeros over the last five messages."""
    zero_from(store, offsets(store)[-5])


def zero_all(store: Path) -> None:
    """Write zeros over the whole log."""
    zero_from(store, 0)


def zero_all_few(store: Path) -> None:
    """Write zeros over a log of one message, whose index has one entry."""
    shutil.rmtree(store)
    long_store(store, 1)
    zero_from(store, 0)


def empty_all(store: Path) -> None:
    """Leave one file of the log, of 0 bytes."""
    for path in logs(store)[1:]:
        path.unlink()
    logs(store)[0].write_bytes(b"")


def break_middle(store: Path) -> None:
    """Break a message in the middle of a file."""
    path, data = logs(store)[1], bytearray(logs(store)[1].read_bytes())
    at = offsets(store)[len(offsets(store)) // 3] % LOG_BYTES
    data[at : at + 30] = b"?" * 30
    path.write_bytes(data)


def break_end(store: Path) -> None:
    """Break the last message but three."""
    at = offsets(store)[-4]
    path = next(path for path in reversed(logs(store)) if int(path.name) <= at)
    flip_bits(path, at - int(path.name) + 4)


def hide(store: Path) -> None:
    """Write a blank end over a message, with others after it."""
    path = logs(store)[1]
    at = next(at for at in offsets(store) if at > int(path.name)) - int(path.name)
    data = path.read_bytes()
    path.write_bytes(data[:at] + blank_tail(LOG_BYTES - at)[:8] + data[at + 8 :])


def other_log(store: Path) -> None:
    """Put the log of another store in the place of this one."""
    other = long_store(store.with_name("other"), 24, "Other", 53)
    shutil.rmtree(store / "commitlog")
    shutil.copytree(other / "commitlog", store / "commitlog")


REFUSED = (
    hole, rename_ahead, exchange, copy_over, lose_last, zero_last, zero_some, zero_all,
    zero_all_few, empty_all, break_middle, break_end, hide, other_log,
)  # fmt: skip


@pytest.mark.checks(
    "RMQDISK-23", "RMQDISK-24", "RMQDISK-25", "RMQDISK-26", "RMQDISK-28", "RMQDISK-44", "RMQDISK-52"
)
@pytest.mark.parametrize(
    ("damage", "options"),
    [
        *((damage, {}) for damage in REFUSED),
        *((damage, {"cut_tail": True}) for damage in REFUSED[::2]),
        *((damage, {"all_files": False}) for damage in REFUSED[1::2]),
    ],
)
def test_verify_shows_what_a_rebuild_refuses(
    damage: Callable[[Path], None], options: dict[str, bool], tmp_path: Path
) -> None:
    """The printed command, `segproof verify STORE --law LAW`, found nothing for some of them."""
    store = long_store(tmp_path / "store")
    damage(store)
    told = rebuild_index(store, in_place=True, **options)  # type: ignore[arg-type]
    assert told.findings or options or damage is other_log
    for one in told.findings:
        assert one.reproduce == f"segproof verify {store} --law {one.law}"
        shown = [each for each in verify(store, laws=[one.law]) if each.is_defect]
        assert shown, one
        paths = {each.path for each in shown}
        assert one.path in paths or one.law in {"RMQDISK-23", "RMQDISK-28", "RMQDISK-44"}


def test_a_hole_behind_messages_that_were_moved_takes_little_memory(tmp_path: Path) -> None:
    """Whether a blank end follows is asked by its 8 bytes: the rest of the file was made in memory
    for it, and a file may say that this is gigabytes."""
    store = long_store(tmp_path / "store")
    path, *others = logs(store)
    for one in others:
        one.unlink()
    path.write_bytes(bytes(100) + path.read_bytes())
    hole = 1 << 26
    os.truncate(path, hole)
    tracemalloc.start()
    found = list(verify(store))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found
    assert peak < hole
