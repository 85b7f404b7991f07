# SPDX-License-Identifier: Apache-2.0
"""Timer log, timer wheel and timercheck: what one of them knows, and another lost."""

import shutil
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from segproof.files import Files, RealFiles
from segproof.findings import Finding, Severity
from segproof.reading import timer_log, timer_state
from segproof.reading.timer_state import read_timer_state, timer_faults
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import LogFile
from segproof.verification import verify
from segproof_harness.laws.borders import store_parts
from segproof_harness.laws.borders.border import write_files
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.store_files import long_store

READ_TO = 1_795_223_725_000
FILE_BYTES = 52 * 4 + 20
NAMES = ("timerlog", "timerwheel", "config/timercheck")


def entry(previous: int, delay: int = 60_000) -> bytes:
    """Return an entry of the timer log; it is due `delay` milliseconds after the last delivery."""
    return struct.pack(">iqiqiqiiq", 52, previous, 0, READ_TO, delay, 0, 200, 0, 0)


def timer_store(folder: Path, delay: int = 60_000) -> Path:
    """Return a sound store with six timers in two files of the timer log."""
    store = long_store(folder)
    for name in ("timerlog", "config"):
        (store / name).mkdir()
    blank = struct.pack(">iqI", 20, 0, 0xCBD43194).ljust(20, b"\0")
    first = b"".join(entry(52 * number - 52, delay) for number in range(4)) + blank
    (store / "timerlog" / f"{0:020d}").write_bytes(first)
    second = entry(156, delay) + entry(FILE_BYTES, delay)
    (store / "timerlog" / f"{FILE_BYTES:020d}").write_bytes(second.ljust(FILE_BYTES, b"\0"))
    slot = struct.pack(">qqqii", (READ_TO + delay) // 1000, 0, FILE_BYTES + 52, 6, 0)
    (store / "timerwheel").write_bytes(slot.rjust(128, b"\0"))
    check = struct.pack(">qqqq", READ_TO, FILE_BYTES + 104, 6, 6)
    (store / "config" / "timercheck").write_bytes(check.ljust(4096, b"\0"))
    return store


def zeros(path: Path) -> None:
    """Make a file zeros, or each file of a folder."""
    for one in path.iterdir() if path.is_dir() else [path]:
        one.write_bytes(bytes(one.stat().st_size))


def gone(path: Path) -> None:
    """Remove a file or folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def of_timers(store: Path) -> list[Finding]:
    """Return the findings of RMQDISK-45; there is no other defect."""
    found = [one for one in verify(store) if one.is_defect]
    assert {"RMQDISK-45"} >= {one.law for one in found}
    assert [] == list(store_disagreements(store))
    return found


DAMAGES: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("timerlog", gone, "it has no file, and config/timercheck knows"),
    ("timerlog", zeros, "it has no entry from position 0 on"),
    (f"timerlog/{FILE_BYTES:020d}", zeros, f"from position {FILE_BYTES} on"),
    (f"timerlog/{FILE_BYTES:020d}", gone, f"from position {FILE_BYTES} on"),
    (f"timerlog/{0:020d}", zeros, "from position 0 on"),
    ("timerwheel", gone, "6 timers whose time has not come, and it is not here"),
    ("timerwheel", zeros, "no slot of it leads to any of them"),
    ("timerwheel", lambda one: one.write_bytes(b""), "no slot of it leads"),
    ("config/timercheck", gone, "delivers messages twice"),
    ("config/timercheck", zeros, "delivers messages twice"),
    ("config/timercheck", lambda one: one.write_bytes(b""), "twice"),
)


@pytest.mark.checks("RMQDISK-45")
@pytest.mark.parametrize(("name", "damage", "words"), DAMAGES)
def test_what_one_file_of_timers_lost_another_tells(
    name: str, damage: Callable[[Path], object], words: str, tmp_path: Path
) -> None:
    """The timers of a log of zeros were never delivered, and the store was sound."""
    store = timer_store(tmp_path / "store")
    assert [] == of_timers(store)
    damage(store / name)
    found = of_timers(store)
    assert [Severity.WARNING] == [one.severity for one in found]
    assert words in found[0].message
    told = salvage_store(store, tmp_path / "out")
    assert not told.is_whole
    assert not any((tmp_path / "out" / one).exists() for one in NAMES)
    assert any(words in one for one in told.left_out)
    assert [] == of_timers(tmp_path / "out")


def test_the_wheel_alone_tells_of_a_lost_timer_log(tmp_path: Path) -> None:
    """timercheck was lost with the timer log."""
    store = timer_store(tmp_path / "store")
    gone(store / "timerlog")
    gone(store / "config" / "timercheck")
    (only,) = of_timers(store)
    assert "timerwheel knows of timers" in only.message
    assert "timerwheel counts 6 messages that wait" in only.message


@pytest.mark.parametrize("case", ["delivered", "saved", "unflushed", "expired", "unused", "slots"])
def test_sound_files_of_timers_stay_without_a_word(case: str, tmp_path: Path) -> None:
    """What a broker leaves behind is no damage."""
    store = timer_store(tmp_path / "store", delay=-5000 if case == "delivered" else 60_000)
    wheel, check = store / "timerwheel", store / "config" / "timercheck"
    if case in ("delivered", "saved"):
        wheel.write_bytes(bytes(128))
    if case == "saved":
        wheel.rename(store / "timerwheel.312")
    if case == "unflushed":  # a broker that died in the second after its first timers
        wheel.write_bytes(bytes(128))
        check.write_bytes(struct.pack(">qqqq", READ_TO, 0, 0, 0).ljust(4096, b"\0"))
    if case == "expired":
        gone(store / "timerlog" / f"{0:020d}")
    if case == "unused":
        gone(store / "timerlog")
        zeros(wheel)
        check.write_bytes(struct.pack(">qqqq", READ_TO, 0, 0, 0).ljust(4096, b"\0"))
    if case == "slots":  # the old slot of an earlier round, whose file has expired
        wheel.write_bytes(
            struct.pack(">qqqii", READ_TO // 1000 - 9, 0, 1 << 40, 3, 0) + wheel.read_bytes()[32:]
        )
    assert [] == of_timers(store)


def words_and_peak(store: Path) -> tuple[list[str], int]:
    """Return what the files of timers show, and the bytes of memory that this took at most."""
    tracemalloc.start()
    try:
        state = read_timer_state(str(store), RealFiles())
        assert state is not None
        return [one.words for one in timer_faults(state)], tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_wheel_is_not_held_in_memory(tmp_path: Path) -> None:
    """A wheel of 256 MiB took more than that, and the limit of all memory is as much."""
    store = timer_store(tmp_path / "store")
    wheel, slot = store / "timerwheel", (store / "timerwheel").read_bytes()[-32:]
    with wheel.open("wb") as file:
        file.truncate(1 << 25)
    (words,), peak = words_and_peak(store)
    assert "no slot of it leads to any of them" in words
    assert peak < 1 << 24
    with wheel.open("r+b") as file:  # the only slot is the last one, before a half one
        file.seek((1 << 25) - 32)
        file.write(slot + slot[:16])
    assert [] == words_and_peak(store)[0]
    wheel.write_bytes(slot * (1 << 20))
    told, peak = words_and_peak(store)
    assert [] == told
    assert peak < 1 << 24


def test_timers_that_wait_are_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took 8 bytes for as long as the log was read."""
    store, count = timer_store(tmp_path / "store"), 100_000
    gone(store / "timerlog" / f"{FILE_BYTES:020d}")
    (store / "timerlog" / f"{0:020d}").write_bytes(entry(0) * count)
    check = struct.pack(">qqqq", READ_TO, 52 * count, 6, 6)
    (store / "config" / "timercheck").write_bytes(check)
    zeros(store / "timerwheel")
    monkeypatch.setattr(timer_log, "BLOCK_ENTRIES", 500)
    (words,), peak = words_and_peak(store)
    assert f"the timer log has {count} timers whose time has not come" in words
    assert peak < 4 * count


# --- the queue of timers


def store_with_timer_queue(folder: Path) -> Path:
    """Return a sound store with timers, whose log and queues have their messages."""
    store = long_store(folder, 6, "rmq_sys_wheel_timer")
    made = timer_store(folder.with_name("other"))
    for name in NAMES:
        (store / name).parent.mkdir(exist_ok=True)
        (made / name).rename(store / name)
    return store


@pytest.mark.checks("RMQDISK-57")
@pytest.mark.parametrize("damage", [gone, zeros])
def test_the_queue_of_timers_tells_that_all_files_of_timers_are_gone(
    damage: Callable[[Path], object], tmp_path: Path
) -> None:
    """The store was "sound", and a salvage kept "everything"; timercheck gone alone was told."""
    store = store_with_timer_queue(tmp_path / "store")
    assert [] == of_timers(store)
    for name in NAMES:
        damage(store / name)
    (only,) = [one for one in verify(store) if one.is_defect]
    assert ("RMQDISK-57", Severity.WARNING) == (only.law, only.severity)
    assert "delivers messages twice" in only.message
    assert [] == list(store_disagreements(store))
    told = salvage_store(store, tmp_path / "out")
    assert any("delivers messages twice" in one for one in told.config_lacks)
    assert not told.is_whole


def test_a_queue_of_timers_without_a_message_tells_nothing(tmp_path: Path) -> None:
    """A broker makes its files at its start; nor is a database of timers judged."""
    store = long_store(tmp_path / "store")
    queue = store / "consumequeue" / "rmq_sys_wheel_timer" / "0" / f"{0:020d}"
    queue.parent.mkdir(parents=True)
    queue.write_bytes(bytes(160))
    assert "RMQDISK-57" not in {one.law for one in verify(store)}
    other = long_store(tmp_path / "other", 6, "rmq_sys_wheel_timer")
    assert "RMQDISK-57" in {one.law for one in verify(other)}
    (other / "rocksdbstore").mkdir()
    (other / "rocksdbstore" / "CURRENT").write_text("MANIFEST-000001\n")
    (other / "rocksdbstore" / "MANIFEST-000001").write_bytes(b"x")
    assert "RMQDISK-57" not in {one.law for one in verify(other)}
    assert [] == list(store_disagreements(other))


OF_BORDERS = {
    one.bound: one.unlawful
    for one in store_parts.BORDERS
    if one.law == "RMQDISK-45" and one.unlawful
}


@pytest.mark.checks("RMQDISK-45")
@pytest.mark.parametrize("bound", OF_BORDERS)
def test_a_salvage_leaves_out_damaged_files_of_timers(bound: str, tmp_path: Path) -> None:
    """The hint promised a store without them, and the salvage brought a file along at which each
    release ends its start: "everything kept".
    """
    write_files(OF_BORDERS[bound], tmp_path / "store")
    assert "RMQDISK-45" in {one.law for one in verify(tmp_path / "store")}
    told = salvage_store(tmp_path / "store", tmp_path / "out", hash_slot_num=4, index_num=8)
    assert "RMQDISK-45" not in {one.law for one in verify(tmp_path / "out")}
    assert [one for one in told.left_out if "none of them was copied" in one]


def test_a_salvage_brings_no_timers_if_a_folder_has_the_name_of_a_file(tmp_path: Path) -> None:
    """All files of timers are copied, or none."""
    store = timer_store(tmp_path / "store")
    (store / "timerlog" / f"{2 * FILE_BYTES:020d}").mkdir()
    told = salvage_store(store, tmp_path / "out", hash_slot_num=4, index_num=8)
    assert [one for one in told.left_out if "the timer log can't be read" in one]
    assert not any((tmp_path / "out" / name).exists() for name in NAMES)


def test_a_salvage_reads_the_timer_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer log of a busy broker is large, and was read three times."""
    store = timer_store(tmp_path / "store")
    read: list[str] = []
    entries = timer_log.timer_entries

    def counted(one: LogFile, files: Files) -> Iterator[tuple[int, NDArray[np.void]]]:
        read.append(Path(one.path).name)
        return entries(one, files)

    for module in (timer_log, timer_state):
        monkeypatch.setattr(module, "timer_entries", counted)
    salvage_store(store, tmp_path / "out", hash_slot_num=4, index_num=8)
    assert sorted(path.name for path in (store / "timerlog").iterdir()) == read
