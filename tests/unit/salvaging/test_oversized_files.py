# SPDX-License-Identifier: Apache-2.0
"""What lies behind the length of a log file: read as messages, or told; never left out in
silence."""

import shutil
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.files import Files
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import CommitLog, LogFile, inferred_size
from segproof.salvaging import oversized_files
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_tests.plain_reader import messages_in
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import LOG, LOG_BYTES, copied_store, long_store, messages_of


def joined_store(folder: Path, first: int, second: int, *, with_rest: bool = False) -> Path:
    """Write a store; append one file of its log to another one, and remove it."""
    store = long_store(folder / "store")
    logs = sorted((store / "commitlog").iterdir())
    logs[first].write_bytes(logs[first].read_bytes() + logs[second].read_bytes())
    if not with_rest:
        logs[second].unlink()
    for name in ("index", "consumequeue"):
        shutil.rmtree(store / name)
    return store


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize(
    ("first", "second", "with_rest"),
    [(1, 2, False), (0, 2, False), (2, 1, False), (-2, -1, False), (0, 1, True), (-1, 1, True)],
)
def test_joined_files_are_read_whole(
    first: int, second: int, with_rest: bool, tmp_path: Path
) -> None:
    """The second half was left out, and "everything kept" was said."""
    sound = long_store(tmp_path / "sound")
    store = joined_store(tmp_path, first, second, with_rest=with_rest)
    told = salvage_store(store, tmp_path / "out")
    assert messages_in(sound / "commitlog") == messages_in(tmp_path / "out" / "commitlog")
    assert told.is_whole or with_rest
    assert LOG_BYTES == told.mapped_file_size


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("number", [0, 1, -1])
def test_other_bytes_behind_a_file_are_told(number: int, tmp_path: Path) -> None:
    """Bytes that are no messages are a gap, in the file and at the byte where they lie."""
    store = long_store(tmp_path / "store")
    path = sorted((store / "commitlog").iterdir())[number]
    path.write_bytes(path.read_bytes() + b"\xee" * 300)
    told = salvage_store(store, tmp_path / "out")
    assert not told.is_whole
    assert (str(path), LOG_BYTES) in {(one.path, one.position) for one in told.gaps}


def test_zeros_behind_a_file_are_no_loss(tmp_path: Path) -> None:
    """They hold nothing."""
    store = long_store(tmp_path / "store")
    path = sorted((store / "commitlog").iterdir())[1]
    path.write_bytes(path.read_bytes() + bytes(300))
    assert salvage_store(store, tmp_path / "out").is_whole


@pytest.mark.parametrize("output_format", ["text", "jsonl"])
def test_dump_does_not_end_at_a_blank_end_in_the_middle(
    output_format: str, tmp_path: Path, capsys: Capsys
) -> None:
    """Half of the messages were shown, with exit code 0."""
    store = joined_store(tmp_path, 1, 2)
    path = sorted((store / "commitlog").iterdir())[1]
    assert 0 != run(["dump", str(path), "--format", output_format])
    assert f"a blank end up to byte {LOG_BYTES}" in capsys.readouterr().err


def test_a_cut_file_does_not_say_the_size_of_the_others() -> None:
    """Of two files that are cut the smaller one was taken for a whole one."""
    found = [LogFile(0, "a", 100), LogFile(65536, "b", 5000)]
    assert 65536 == inferred_size(found)
    assert 65536 == inferred_size([LogFile(0, "a", 65536), LogFile(131072, "b", 100)])


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("rest", [0, 1, 7, 8, 300])
def test_a_lone_file_may_end_with_its_last_message(rest: int, tmp_path: Path) -> None:
    """The length of the cut file was taken for that of a whole one, which needs room for a blank
    end: so the last message was thrown away."""
    store = copied_store(tmp_path)
    end = max(at + one.size for at, one in CommitLog.open(store).scan() if one.message is not None)
    (store / LOG).write_bytes((store / LOG).read_bytes()[: end + rest])
    told = salvage_store(store, tmp_path / "out")
    assert told.is_whole
    assert messages_in(store / "commitlog") == messages_in(tmp_path / "out" / "commitlog")
    assert told.mapped_file_size >= end + 8


@pytest.mark.checks("RMQDISK-23")
def test_a_length_that_the_files_contradict_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    """Salvage told operators to save again with another length, and then failed or lost
    messages."""
    store = long_store(tmp_path / "store")
    for size in (LOG_BYTES // 2, 2 * LOG_BYTES):
        with pytest.raises(InvalidArgumentError, match=f"whose files have {LOG_BYTES}"):
            salvage_store(store, tmp_path / "out", mapped_file_size=size)
        assert not (tmp_path / "out").exists()
    assert salvage_store(store, tmp_path / "out", mapped_file_size=LOG_BYTES).is_whole
    assert 0 == run(["salvage", str(store), "--out", str(tmp_path / "again")])
    assert "save again with" not in capsys.readouterr().out


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("cut", [1400, 1111, 700, 8, 0])
@pytest.mark.parametrize(("first", "second"), [(1, 2), (0, -1), (-2, -1)])
def test_a_message_across_the_length_of_its_file_is_saved(
    first: int, second: int, cut: int, tmp_path: Path
) -> None:
    """A file was cut, and the next one appended: the message across its length was a gap."""
    store = long_store(tmp_path / "store", 40)
    whole = messages_of(store)
    logs = sorted((store / "commitlog").iterdir())
    before = logs[first].read_bytes()[:cut]
    logs[first].write_bytes(before + logs[second].read_bytes())
    logs[second].unlink()
    gone = {at for at in whole if int(logs[first].name) <= at < int(logs[first].name) + LOG_BYTES}
    kept = {at for at in gone if at + whole[at].total_size <= int(logs[first].name) + cut}
    told = salvage_store(store, tmp_path / "out")
    found = messages_of(tmp_path / "out")
    expected = {at: one for at, one in whole.items() if at not in gone - kept}
    assert expected == {at: one for at, one in found.items() if at in whole}
    assert told.is_whole == (gone == kept)
    # A log may begin with any file: the first one is gone, or has expired before.
    if not (first or cut):
        assert not told.gap_count
        assert "expired before, or that file was overwritten" in told.left_out[0]


@pytest.mark.checks("RMQDISK-23")
def test_what_is_not_read_of_a_joined_file_is_told(tmp_path: Path, capsys: Capsys) -> None:
    """Verify did not say how much; a lookup said that no message has the key, with code 0."""
    store = joined_store(tmp_path, -2, -1)
    sound = long_store(tmp_path / "sound")
    last = max((sound / "commitlog").iterdir())
    inside = [at for at in messages_of(sound) if at >= int(last.name)]
    (one,) = (each for each in verify(store) if each.law == "RMQDISK-23")
    assert f"the {LOG_BYTES} bytes from byte {LOG_BYTES} on were not checked" in one.message
    assert f"{len(inside)} sound messages" in one.message
    assert f"offsets {inside[0]} to {inside[-1]}" in one.message
    for words in (["--key", "T#k23", "--scan"], ["--phy-offset", str(inside[0])]):
        assert 1 == run(["lookup", str(store), *words])
        assert f"from byte {LOG_BYTES} on are not read" in capsys.readouterr().out


@pytest.mark.checks("RMQDISK-23")
def test_zeros_after_the_length_of_a_file_are_not_told_as_unread(tmp_path: Path) -> None:
    """They hold nothing: lookups answer, and verify names the length alone."""
    store = long_store(tmp_path / "store")
    path = min((store / "commitlog").iterdir())
    path.write_bytes(path.read_bytes() + bytes(300))
    (one,) = (each for each in verify(store) if each.law == "RMQDISK-23")
    assert "not checked" not in one.message
    assert 0 == run(["lookup", str(store), "--phy-offset", "0"])


@pytest.mark.checks("RMQDISK-23")
def test_a_hole_after_the_length_of_a_file_is_passed_over_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hole of 1 TiB was searched for messages in steps of a file's length: for hours."""
    healthy, store = long_store(tmp_path / "healthy"), long_store(tmp_path / "store")
    last = max((store / "commitlog").iterdir())
    with last.open("r+b") as file:
        file.seek(1 << 40)
        file.write(b"x")
    searches = list[int]()

    def counted(path: str, at: int, files: Files) -> int:
        searches.append(at)
        return begin_across(path, at, files)

    begin_across = oversized_files._begin_across
    monkeypatch.setattr(oversized_files, "_begin_across", counted)
    assert any(one.law == "RMQDISK-23" for one in verify(store))
    told = salvage_store(store, tmp_path / "out")
    assert len(searches) <= 4
    assert messages_in(healthy / "commitlog") == messages_in(tmp_path / "out" / "commitlog")
    assert told.gaps


def told_length(folder: Path, data: bytes) -> int:
    """Return the length that the messages of a log file say, as a salvage tells it."""
    store = copied_store(folder)
    (store / LOG).write_bytes(data)
    told = salvage_store(store, folder / "out", hash_slot_num=16, index_num=64)
    if told.file_size_by_messages:
        again = salvage_store(
            store, folder / "again", hash_slot_num=16, index_num=64,
            mapped_file_size=told.file_size_by_messages,
        )  # fmt: skip
        assert (0, told.messages) == (again.file_size_by_messages, again.messages)
    return told.file_size_by_messages


@pytest.mark.checks("RMQDISK-25")
def test_a_cut_file_has_room_behind_bytes_that_are_gone(tmp_path: Path) -> None:
    """Its last messages say offsets beyond its end: they were called another store's."""
    store = copied_store(tmp_path)
    whole = messages_of(store)
    data = (store / LOG).read_bytes().rstrip(b"\0")
    (store / LOG).write_bytes(data[:150] + data[157:])
    told = salvage_store(store, tmp_path / "out")
    assert (len(whole) - 1, 0) == (told.messages, told.foreign_messages)


@pytest.mark.checks("RMQDISK-25")
def test_moved_messages_say_how_long_the_file_was(tmp_path: Path) -> None:
    """The report told to give the broker a length that no broker has."""
    data = (copied_store(tmp_path / "whole") / LOG).read_bytes()
    length = len(data)
    for number, (changed, told) in enumerate([
        (data[:150] + b"\r" + data[150:], length),
        (data[:150] + data[157:], length),
        (data.replace(b"\0\0", b"\0\0\r", 3), length),
        (data, 0),
        (data[:-7], 0),
        (data + b"\0" * 7, 0),
        (data[:142] + b"\xff" * 7 + data[149:], 0),
    ]):  # fmt: skip
        assert told_length(tmp_path / str(number), changed) == told, number
