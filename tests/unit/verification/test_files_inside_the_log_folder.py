# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log in a folder inside of `commitlog`, packed, under another name, or above."""

import bz2
import gzip
import lzma
import random
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.files import REAL_FILES
from segproof.findings import Finding
from segproof.reading.packed_log_files import with_one_unpacked
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.stretches.rocketmq.message_blocks import LogReader
from segproof.verification import verify
from segproof_harness.laws.judged_store import store_disagreements
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import LOG_BYTES, long_store

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress
}  # fmt: skip
FIRST, MIDDLE, LAST = 0, LOG_BYTES, 3 * LOG_BYTES


def log_path(store: Path, start: int) -> Path:
    """Return the path of a file of the log."""
    return store / "commitlog" / f"{start:020d}"


def strays(store: Path) -> list[Finding]:
    """Return the findings about what does not belong into the folder of the log."""
    found = list(verify(store))
    assert [] == list(store_disagreements(store))
    return [one for one in found if one.law == "RMQDISK-39"]


def follow(finding: Finding, unpacked: Path) -> None:
    """Do what the hint says, without its copy of the store."""
    steps = [one for one in finding.hint.split("`")[1::2] if len(one.split()) > 1]
    for one in steps:
        if not one.startswith("segproof"):
            words = one.replace("DIR2", str(unpacked))
            subprocess.run(["/bin/bash", "-c", words], check=True)
    if unpacked.exists():
        assert [] == [one for one in verify(unpacked) if "/commitlog/" in one.path]


def move_out(finding: Finding) -> None:
    """Check the precondition of the hint by its commands, and do what it says."""
    compare, steps = finding.hint.split("Only if ")[1].split(": move it", 1)
    for one in compare.split("`")[1::2]:
        assert "cmp" in one
        subprocess.run(["/bin/bash", "-o", "pipefail", "-c", one], check=True)
    (step,) = [one for one in steps.split("`")[1::2] if "mv -n" in one]
    subprocess.run(["/bin/bash", "-c", step], check=True)
    assert not Path(finding.path).exists()


def assert_only_looked_at(finding: Finding) -> None:
    """The hint changes nothing, and tells no file to be a missing one."""
    assert "the log has no file" not in finding.message
    assert "keep it as it is" in finding.hint
    assert "Only if" not in finding.hint, "this is of hints that change files"
    assert "`cp " not in finding.hint


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize(
    ("name", "start"),
    [
        *((name, start) for name in ("d2/{}", "{}.gz", "{1}") for start in (FIRST, MIDDLE, LAST)),
        *((name, MIDDLE) for name in ("a/b/{}", *(f"d2/{{}}{end}" for end in PACK), "{}.bak")),
        *(("d2/moved", LAST), ("{1:019d}", FIRST), ("+{1}", MIDDLE), ("0{}", LAST), ("{} ", FIRST)),
    ],
)
def test_a_file_of_the_log_that_lies_inside_is_put_back(
    name: str, start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint was to move the only copy of the messages out of the store. Later it was to keep
    what is inside until a broker serves the messages, and no broker started with it; one did where
    the name was a number, and overwrote other files.
    """
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "store")
    file = log_path(store, start)
    data = file.read_bytes()
    new = store / "commitlog" / name.replace("{}", "{0}").format(file.name, start)
    new.parent.mkdir(parents=True, exist_ok=True)
    file.rename(new)
    if new.suffix in PACK:
        new.write_bytes(PACK[new.suffix](data))
    (only,) = strays(store)
    assert "out of the store" not in only.hint
    assert "the log has no file of its offset" in only.message
    assert file.name in only.message
    told = salvage_store(store, tmp_path / "out")
    assert not told.is_whole
    assert any("the log has no file of its offset" in one for one in told.left_out)
    follow(only, tmp_path / "unpacked")
    assert data == file.read_bytes()
    if "/" in name:
        (only,) = [one for one in verify(store) if one.is_defect]
        assert "the log has a file of the same name" in only.message
        move_out(only)
    assert not new.exists()
    assert [] == [one for one in verify(store) if one.is_defect]
    assert data == file.read_bytes()


def test_a_whole_log_that_lies_inside_is_named(tmp_path: Path) -> None:
    """The folder of the log was empty to verify, and to a salvage."""
    store = long_store(tmp_path / "store")
    (store / "log").mkdir()
    (store / "commitlog").rename(store / "log" / "old")
    (store / "log").rename(store / "commitlog")
    (only,) = strays(store)
    assert "4 files of a commit log are here" in only.message
    with pytest.raises(InvalidArgumentError, match="no commit log") as caught:
        salvage_store(store, tmp_path / "out")
    assert "RMQDISK-39" in str(caught.value.hint)


@pytest.mark.parametrize("content", [b"x", b"", bytes(2000)])
def test_what_is_no_file_of_a_log_may_be_moved_out(content: bytes, tmp_path: Path) -> None:
    """Notes, and what holds no message, are no files of the log."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / "notes").write_bytes(content)
    (only,) = strays(store)
    assert "out of the store" in only.hint


@pytest.mark.parametrize(
    ("name", "end"),
    [("backup/consumequeue/T/0", ""), *(("d2", end) for end in ("", *PACK, ".zst", ".zip"))],
)
def test_a_name_of_20_digits_makes_no_file_of_the_log(name: str, end: str, tmp_path: Path) -> None:
    """Followed, the hint made a sound store one with errors: the file was one of a queue."""
    store = long_store(tmp_path / "store")
    queue = next((store / "consumequeue" / "T" / "0").iterdir())
    new = store / "commitlog" / name / f"{4 * LOG_BYTES:020d}{end}"
    new.parent.mkdir(parents=True)
    new.write_bytes(PACK.get(end, bytes)(queue.read_bytes()))
    (only,) = strays(store)
    assert_only_looked_at(only)


@pytest.mark.parametrize(
    "start", [108, MIDDLE, MIDDLE + 8, 40 * LOG_BYTES, 4 * LOG_BYTES, 6000 + 8]
)
def test_only_a_missing_file_of_the_log_is_put_back(start: int, tmp_path: Path) -> None:
    """A part of what the log has, and what leaves a gap or follows a last file that is not full;
    nor one with the name of the missing file and the messages of the first one."""
    store = long_store(tmp_path / "store")
    data = bytearray(log_path(store, FIRST).read_bytes())
    if start == MIDDLE:
        log_path(store, MIDDLE).unlink()
    else:
        data[28:36] = start.to_bytes(8, "big")
    (store / "commitlog" / "d2").mkdir()
    (store / "commitlog" / "d2" / f"{start:020d}").write_bytes(data)
    (only,) = strays(store)
    assert_only_looked_at(only)


@pytest.mark.parametrize("folders", [("d2", "d2"), ("d2", "a"), (".", "d2")])
def test_a_plain_file_is_not_overwritten_by_a_torn_packed_one(
    folders: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one offset there were two commands, and the second overwrote the good copy."""
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "store")
    file = log_path(store, MIDDLE)
    data = file.read_bytes()
    for folder, name in zip(folders, (f"{file.name}.bak", f"{file.name}.gz"), strict=True):
        new = store / "commitlog" / folder / name
        new.parent.mkdir(exist_ok=True)
        new.write_bytes(data if name.endswith(".bak") else gzip.compress(data, 1)[:-40])
    file.unlink()
    found = strays(store)
    (told,) = [one for one in found if "the log has no file of its offset" in one.message]
    assert "gzip" not in told.hint
    follow(told, tmp_path / "unpacked")
    assert data == file.read_bytes()
    for one in found:
        if one is not told:
            assert_only_looked_at(one)


def test_a_link_that_leads_back_is_not_followed_twice(tmp_path: Path) -> None:
    """Files of the log and of queues were counted as files of a log that lie inside."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / "loop").symlink_to("..")
    (only,) = [one for one in verify(store) if one.law == "RMQDISK-39"]
    assert "of a commit log" not in only.message
    assert "the log has" not in only.message
    assert "`cp " not in only.hint


@pytest.mark.checks("RMQDISK-23", "RMQDISK-39")
@pytest.mark.parametrize("start", [MIDDLE, LAST])
@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_a_missing_file_that_lies_inside_is_no_riddle(
    tmp_path: Path, start: int, is_elsewhere: bool
) -> None:
    """The finding of the missing file said that its messages are lost, and not where they lie."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / "d2").mkdir()
    moved = log_path(store, start).rename(store / "commitlog" / "d2" / f"{start:020d}")
    if not is_elsewhere:
        moved.unlink()
    found, summaries = verified(store)
    (missing,) = [one for one in found if one.law == "RMQDISK-23"]
    words = f"RMQDISK-39 names d2/{start:020d} of this part of the log"
    assert is_elsewhere is (words in missing.message)
    stray = [one.message for one in found if one.law == "RMQDISK-39"]
    assert is_elsewhere is any("is not lost, as far as it is whole here" in one for one in stray)
    saved = salvage_store(store, tmp_path / "out")
    assert summaries[0].lost_at_least == saved.lost_messages


@pytest.mark.checks("RMQDISK-28", "RMQDISK-37", "RMQDISK-39")
@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_a_first_file_that_lies_inside_is_no_riddle(tmp_path: Path, is_elsewhere: bool) -> None:
    """What led to it "expired or was lost: no file tells which", and the file was named beside."""
    store = long_store(tmp_path / "store")
    (store / "commitlog" / "d2").mkdir()
    moved = log_path(store, FIRST).rename(store / "commitlog" / "d2" / f"{FIRST:020d}")
    if not is_elsewhere:
        moved.unlink()
    found = [one for one in verify(store) if one.law in ("RMQDISK-28", "RMQDISK-37")]
    assert {"RMQDISK-28", "RMQDISK-37"} == {one.law for one in found}
    for one in found:
        assert is_elsewhere is (f"RMQDISK-39 names d2/{FIRST:020d}" in one.message)
        assert is_elsewhere is not ("no file tells which" in one.message)


# --- copies of what the log has, or of each other


def copy_of(store: Path, folder: str, start: int, *damaged: int) -> Path:
    """Copy a file of the log into a folder inside, with a byte of some messages changed."""
    new = store / "commitlog" / folder / f"{start:020d}"
    new.parent.mkdir(exist_ok=True)
    data = bytearray(log_path(store, start).read_bytes())
    for number in damaged:
        data[bodies(store, start)[number]] ^= 1
    new.write_bytes(data)
    return new


def bodies(store: Path, start: int) -> list[int]:
    """Return where the body of each message of a file begins."""
    log = CommitLog.open(store)
    return [
        int(row[5]) + block.offset - start
        for block in LogReader(log, REAL_FILES).blocks()
        for row in block.rows
        if 0 <= int(row[5]) + block.offset - start < LOG_BYTES
    ]


@pytest.mark.parametrize("good", ["new", "o'l d"])
@pytest.mark.parametrize("damaged", [[0], [1], [1, 2]])
def test_of_two_copies_the_better_one_is_put_back(
    good: str, damaged: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one by its path was, also where it was damaged; a salvage then lost a message."""
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "my store")
    before = log_path(store, MIDDLE).read_bytes()
    for folder in ("new", "o'l d"):
        copy_of(store, folder, MIDDLE, *(() if folder == good else damaged))
    log_path(store, MIDDLE).unlink()
    found = strays(store)
    (told,) = [one for one in found if "`cp " in one.hint]
    assert Path(told.path).name == good
    for one in found:
        if one is not told and damaged != [0]:  # else its first message does not tell its offset
            assert_only_looked_at(one)
            assert good in one.message
    follow(told, tmp_path / "unpacked")
    assert before == log_path(store, MIDDLE).read_bytes()
    for one in strays(store):
        move_out(one)
    assert [] == [one for one in verify(store) if one.is_defect]


def test_a_better_copy_gets_the_place_of_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint was to keep both."""
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "store")
    before = log_path(store, MIDDLE).read_bytes()
    worse = copy_of(store, "new", MIDDLE, 1).read_bytes()
    copy_of(store, "new", MIDDLE)
    log_path(store, MIDDLE).write_bytes(worse)
    (only,) = strays(store)
    assert "1 sound message of it is not there" in only.message
    (step,) = [one for one in only.hint.split("`")[1::2] if "mv -n" in one]
    subprocess.run(["/bin/bash", "-c", step], check=True)
    assert before == log_path(store, MIDDLE).read_bytes()
    (moved,) = (tmp_path / "moved-out").glob(f"*/{log_path(store, MIDDLE).name}")
    assert worse == moved.read_bytes()
    (only,) = [one for one in verify(store) if one.is_defect]
    move_out(only)
    assert [] == [one for one in verify(store) if one.is_defect]


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize("end", PACK)
@pytest.mark.parametrize("is_in_folder", [True, False])
def test_a_better_packed_copy_gets_the_place_of_a_damaged_file(
    end: str, is_in_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packed copy was not compared: its hint had the case of equal bytes alone, and a salvage
    left it out with the messages that nothing else has.
    """
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "my store")
    before = log_path(store, MIDDLE).read_bytes()
    packed = log_path(store, MIDDLE).with_suffix(end)
    packed = packed.parent / "o'l d" / packed.name if is_in_folder else packed
    packed.parent.mkdir(exist_ok=True)
    packed.write_bytes(PACK[end](before))
    damaged = bytearray(before)
    damaged[bodies(store, MIDDLE)[1]] ^= 1
    log_path(store, MIDDLE).write_bytes(damaged)
    (only,) = strays(store)
    assert "1 sound message of it is not there" in only.message
    assert any("1 sound message" in one for one in salvage_store(store, tmp_path / "o").left_out)
    (step,) = [one for one in only.hint.split("`")[1::2] if "mv -n" in one]
    subprocess.run(["/bin/bash", "-c", step], check=True)
    assert before == log_path(store, MIDDLE).read_bytes()
    (moved,) = (tmp_path / "moved-out").glob(f"*/{log_path(store, MIDDLE).name}")
    assert damaged == moved.read_bytes()
    assert is_in_folder is packed.exists()
    if is_in_folder:
        (only,) = [one for one in verify(store) if one.is_defect]
        assert "with the same bytes" in only.message
        move_out(only)
    assert [] == [one for one in verify(store) if one.is_defect]


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize("lost", [0, 1])
def test_a_packed_copy_that_is_torn_gets_no_place_in_the_log(lost: int, tmp_path: Path) -> None:
    """Unpacked it is a part of a file, whether or not it has a message that the log lacks."""
    store = long_store(tmp_path / "store")
    data = bytearray(log_path(store, MIDDLE).read_bytes())
    packed = log_path(store, MIDDLE).with_suffix(".gz")
    packed.write_bytes(gzip.compress(data, 0)[:-9])  # it lacks a byte of the rest
    data[bodies(store, MIDDLE)[1]] ^= lost
    log_path(store, MIDDLE).write_bytes(data)
    (only,) = strays(store)
    assert bool(lost) is ("1 sound message of it is not there" in only.message)
    assert "is damaged from unpacked byte 1499 on: what lies behind was not" in only.message
    assert bool(lost) is not ("with each sound message that was compared" in only.message)
    assert only.hint.startswith("keep it")
    assert "Only if" not in only.hint


@pytest.mark.checks("RMQDISK-39")
def test_what_is_not_unpacked_as_a_whole_is_called_no_copy(tmp_path: Path) -> None:
    """Two files of the log are packed behind each other: nobody has compared the second one."""
    store = long_store(tmp_path / "store")
    data = log_path(store, MIDDLE).read_bytes()
    packed = log_path(store, MIDDLE).with_suffix(".gz")
    packed.write_bytes(gzip.compress(data) + gzip.compress(data))
    (only,) = strays(store)
    assert "compare each file" in only.hint
    assert "mv -n" not in only.hint


@pytest.mark.parametrize("end", PACK)
def test_a_packed_file_is_read_anywhere(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forwards, and back beyond what is kept, in packed streams that follow each other."""
    monkeypatch.setattr("segproof.reading.packed_log_files.KEPT_BYTES", 1 << 20)
    plain = random.Random(1).randbytes(1000) * 1_500
    path = tmp_path / f"{0:020d}{end}"
    path.write_bytes(b"".join(PACK[end](part) for part in (plain[:70_000], b"", plain[70_000:])))
    for size_max in (len(plain), len(plain) - 1):
        files, size, is_damaged = with_one_unpacked(str(path), end, size_max, REAL_FILES)
        assert (len(plain), False) == (size, is_damaged)
        with closing(files.open(str(path))) as file:
            for position in (5, 69_999, 1_375_000, 1_374_000, 0, len(plain) - 3, len(plain) + 9):
                wanted = plain[:size_max][position : position + 100_000]
                assert wanted == file.pread(100_000, position)


def test_a_reader_that_often_goes_back_is_ended(tmp_path: Path) -> None:
    """Each time the file would be unpacked from its begin."""
    path = tmp_path / f"{0:020d}.gz"
    path.write_bytes(gzip.compress(bytes(20 << 20)))
    files, size, is_damaged = with_one_unpacked(str(path), ".gz", 20 << 20, REAL_FILES)
    assert not is_damaged
    with closing(files.open(str(path))) as file:

        def go_back_and_forth(often: int) -> None:
            for _ in range(often):
                file.pread(1, size - 1)
                file.pread(1, 0)

        go_back_and_forth(4)
        with pytest.raises(OSError, match="more than 8 times"):
            go_back_and_forth(6)


def test_of_two_files_with_messages_of_their_own_a_person_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is called the same, and the way on is told with what it costs."""
    monkeypatch.chdir(tmp_path)
    store = long_store(tmp_path / "store")
    other = copy_of(store, "d2", MIDDLE, 2).read_bytes()
    copy_of(store, "d2", MIDDLE, 1)
    log_path(store, MIDDLE).write_bytes(other)
    (only,) = strays(store)
    assert "that one has others that this one lacks" in only.message
    assert "no broker reads 1 message of it" in only.hint
    assert "you have compared the two" in only.hint
    move_out(only)
    assert [] == strays(store)


# --- lengths: all files of a log have the same one


def commands_into_the_log(found: Sequence[Finding], store: Path) -> list[str]:
    """Return the commands of hints that put a file into the folder of the log."""
    commands = [step for one in found for step in one.hint.split("`")[1::2]]
    return [one for one in commands if f" {store}/commitlog/" in one and one.split()[0] != "cmp"]


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize(
    ("start", "length"), [(FIRST, LOG_BYTES - 1), (MIDDLE, LOG_BYTES + 1), (LAST, LOG_BYTES - 1)]
)
def test_a_better_copy_of_another_length_gets_no_place_in_the_log(
    start: int, length: int, tmp_path: Path
) -> None:
    """The hint gave it the place of the log's file; a broker then ends its start."""
    store = long_store(tmp_path / "store")
    copy = copy_of(store, "d2", start)
    data = bytearray(copy.read_bytes())
    copy.write_bytes(bytes(data + bytes(2))[:length])
    data[bodies(store, start)[1]] ^= 1
    log_path(store, start).write_bytes(data)
    (only,) = strays(store)
    assert "1 sound message of it is not there" in only.message
    assert f"d2/{start:020d} has {length} bytes, but a file of this log has 1500" in only.message
    assert "segproof salvage" in only.hint
    assert [] == commands_into_the_log([only], store)
    assert only.hint.startswith("keep it as it is")


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize("start", [MIDDLE, LAST])
def test_a_shorter_copy_of_a_missing_file_is_not_put_back(start: int, tmp_path: Path) -> None:
    """It was copied into the log, also where nothing but its rest of zeros lacked."""
    store = long_store(tmp_path / "store")
    copy = copy_of(store, "d2", start)
    copy.write_bytes(copy.read_bytes()[:-1])
    log_path(store, start).unlink()
    (only,) = strays(store)
    assert "the log has no file of its offset" in only.message
    assert f"d2/{start:020d} has 1499 bytes, but a file of this log has 1500" in only.message
    assert [] == commands_into_the_log([only], store)
    assert only.hint.startswith("keep it as it is")


@pytest.mark.checks("RMQDISK-39")
def test_of_copies_the_one_with_the_length_of_the_log_is_put_back(tmp_path: Path) -> None:
    """The one with the most sound messages was, of any length."""
    store = long_store(tmp_path / "store")
    shorter = copy_of(store, "a", MIDDLE)
    shorter.write_bytes(shorter.read_bytes()[:-1])
    whole = copy_of(store, "b", MIDDLE, 1)
    log_path(store, MIDDLE).unlink()
    found = strays(store)
    (command,) = commands_into_the_log(found, store)
    assert str(whole) in command
    (other,) = [one for one in found if Path(one.path).name == "a"]
    assert "b/" in other.message
    assert "comes first" in other.message
    assert "no fewer" not in other.message


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize("place", [FIRST, 2 * LOG_BYTES])
def test_nothing_is_put_back_beyond_a_part_of_a_file(place: int, tmp_path: Path) -> None:
    """The log would have a gap: two files lack at its begin or its end, and one copy is short."""
    store = long_store(tmp_path / "store")
    starts = (place, place + LOG_BYTES)
    copies = {start: copy_of(store, f"d{start}", start) for start in starts}
    inner = starts[1] if place == FIRST else starts[0]
    copies[inner].write_bytes(copies[inner].read_bytes()[:-1])
    for start in starts:
        log_path(store, start).unlink()
    found = strays(store)
    assert len(found) == len(starts)
    assert [] == commands_into_the_log(found, store)
    assert all(one.hint.startswith("keep it as it is") for one in found)


@pytest.mark.parametrize("is_whole", [True, False])
def test_an_unpacked_file_is_measured_before_it_is_put_back(tmp_path: Path, is_whole: bool) -> None:
    """A packed part of a file was sound where it was unpacked, and was copied into the log."""
    store = long_store(tmp_path / "store")
    copy = copy_of(store, "d2", MIDDLE)
    data = copy.read_bytes()
    copy.with_name(f"{copy.name}.gz").write_bytes(
        gzip.compress(data if is_whole else data[: bodies(store, MIDDLE)[1] - 90])
    )
    copy.unlink()
    log_path(store, MIDDLE).unlink()
    (only,) = strays(store)
    assert only.hint.count("test 1500 -eq ") == 1
    if is_whole:
        follow(only, tmp_path / "unpacked")
    else:
        with pytest.raises((subprocess.CalledProcessError, AssertionError)):
            follow(only, tmp_path / "unpacked")
    assert is_whole is log_path(store, MIDDLE).exists()


@pytest.mark.checks("RMQDISK-39")
def test_messages_beyond_the_end_of_a_cut_file_are_compared(tmp_path: Path) -> None:
    """A log of one file that lost its end had "each sound message" of the whole copy in it."""
    store = long_store(tmp_path / "store")
    for start in (LOG_BYTES, 2 * LOG_BYTES, LAST):
        log_path(store, start).unlink()
    end = bodies(store, FIRST)[1]
    copy = copy_of(store, "d2", FIRST)
    log_path(store, FIRST).write_bytes(copy.read_bytes()[: end - 90])
    (only,) = strays(store)
    assert "no message in it is lacking" not in only.hint
    assert "of it are not there" in only.message
    assert [] == commands_into_the_log([only], store)


@pytest.mark.checks("RMQDISK-23")
@pytest.mark.parametrize("other", ["", "shorter", "longer", "0000000000000000.bak"])
def test_files_in_the_store_itself_get_a_place_only_with_one_length(
    other: str, tmp_path: Path
) -> None:
    """All that began with 0 was to be moved into the log, of any length."""
    store = long_store(tmp_path / "store")
    for path in (store / "commitlog").iterdir():
        path.rename(store / path.name)
    (store / "commitlog").rmdir()
    last = store / f"{LAST:020d}"
    if other.startswith("0"):
        (store / other).write_bytes(b"x")
    elif other:
        size = {"shorter": LOG_BYTES - 1, "longer": LOG_BYTES + 1}[other]
        last.write_bytes((last.read_bytes() + bytes(2))[:size])
    (store / "0notes").write_bytes(b"x")
    (only,) = [one for one in verify(store) if one.law == "RMQDISK-23"]
    commands = commands_into_the_log([only], store)
    assert bool(commands) is not bool(other)
    for one in commands:
        subprocess.run(["/bin/bash", "-c", one], check=True)
        assert [LOG_BYTES] * 4 == [each.stat().st_size for each in (store / "commitlog").iterdir()]
    if other:
        assert only.hint.startswith("keep the store as it is")
        assert "several lengths" in only.hint
