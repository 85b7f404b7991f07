# SPDX-License-Identifier: Apache-2.0
"""What the verbs say of stores of RocketMQ that lost something: each as an operator met it."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from segproof.files import REAL_FILES, File, RealFiles
from segproof.repair import rebuild_index
from segproof.rocketmq.commit_log import CommitLog
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.memory_stores import message_of, write_log
from segproof_harness.files.shipped_directories import ROCKETMQ
from segproof_model.language.files import Files
from segproof_model.rocketmq.format.commit_log import CommitLog as ModelLog
from segproof_tests.printed_rows import Capsys, CapsysBinary, shown
from segproof_tests.store_files import copied_store

DATA = ROCKETMQ
SMALL = DATA / "small-5.5.1" / "store"
SIZE = 1000
KEYS = 25


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with a log of five files, and an index."""
    path = tmp_path / "store"
    messages = [message_of("T", {"KEYS": f"k{number}"}) for number in range(KEYS)]
    write_log(REAL_FILES, str(path), messages, SIZE)
    assert len(rebuild_index(path, None, 8, 50, in_place=True).files) == 1
    return path


def asked(capsys: Capsys, *words: object) -> tuple[int, list[dict[str, object]], str]:
    """Return the exit code of a command, its rows, and what it says on stderr."""
    code = run([*map(str, words), "--format", "jsonl"])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def copied(tmp_path: Path, source: Path = SMALL) -> Path:
    """Return a copy that may be changed."""
    target = tmp_path / "copy"
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    return target


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ({0: 1000, 1000: 1000, 3000: 1000}, 1000),
        ({0: 1000, 2000: 1000}, 1000),
        ({0: 1000, 3000: 1000, 4000: 7}, 1000),
        ({0: 300, 1000: 1000}, 1000),
        ({0: 300}, 300),
        ({0: 0}, 1 << 30),
        ({}, 1 << 30),
        ({0: 1000, 1 << 40: 900}, 900),
    ],
)
def test_size_of_log_files(sizes: dict[int, int], wanted: int) -> None:
    """It was the smallest step between two names: twice too large where a file is missing."""
    files = MemoryFiles()
    images = {f"commitlog/{start:020d}": bytes(size) for start, size in sizes.items()}
    for name, image in images.items():
        write_file(files, f"/s/{name}", image)
    assert wanted == CommitLog.open("/s", files=files).mapped_file_size
    assert wanted == ModelLog(Files(images), "").mapped_file_size


def test_a_key_whose_message_is_lost(store: Path, capsys: Capsys) -> None:
    """Where the log lost a message, `no message has this key` was the answer, with code 0."""
    code, (row,), _ = asked(capsys, "lookup", store, "--key", "T#k12")
    (offset,) = StoreReader(store).lookup_key("T#k12").phy_offsets
    assert (0, [offset]) == (code, row["phy_offsets"])
    (store / "commitlog" / f"{offset // SIZE * SIZE:020d}").unlink()
    words = ["--key", "T#k12", "--key", "T#none", "--phy-offset", offset]
    code, (row, none, lost), _ = asked(capsys, "lookup", store, *words)
    assert (1, None) == (code, row["phy_offsets"])
    assert f"the commit log has no message: {offset};" in str(row["reason"])
    assert none["reason"] == "no message has this key in this time"
    assert "is missing" in str(lost["reason"])
    code, (row,), _ = asked(capsys, "lookup", store, "--key", "T#k12", "--raw")
    assert (0, [offset]) == (code, row["phy_offsets"])


def test_a_log_that_grows_while_keys_are_asked(store: Path) -> None:
    """A reader that was open when a file of the log began did not know it."""
    last = sorted((store / "commitlog").iterdir())[-1]
    moved = last.rename(store / "later")
    reader = StoreReader(store)
    moved.rename(last)
    (offset,) = reader.lookup_key(f"T#k{KEYS - 1}").phy_offsets
    assert offset >= int(last.name)


@pytest.mark.parametrize("name", ["checkpoint", "commitlog/" + "0" * 20])
def test_files_that_hold_no_keys_are_refused(name: str, capsys: Capsys) -> None:
    """A single file of the log was asked as if it were a folder of index files."""
    code, rows, said = asked(capsys, "lookup", SMALL / name, "--key", "T#k")
    assert (2, []) == (code, rows)
    assert "name the directory that holds commitlog and index" in said


@pytest.mark.parametrize(
    ("size", "count", "said"), [(39, None, "shorter than a header"), (1384, -1, "count is -1")]
)
def test_an_index_file_without_a_sound_header(
    tmp_path: Path, size: int, count: int | None, said: str, capsys: Capsys
) -> None:
    """It was said to have no entry, and no message to have the key, with code 0."""
    store = copied(tmp_path)
    (path,) = (store / "index").iterdir()
    data = bytearray(path.read_bytes()[:size])
    if count is not None:
        data[36:40] = count.to_bytes(4, "big", signed=True)
    path.write_bytes(data)
    code, (row,), _ = asked(capsys, "lookup", store, "--key", "TopicTest#order-1")
    assert (1, None) == (code, row["phy_offsets"])
    assert said in str(row["reason"])


def test_an_index_that_leads_to_nothing(store: Path, capsys: Capsys) -> None:
    """There was said to be no index file, with code 0, as of a store that never had one."""
    shutil.rmtree(store / "index")
    code, (row,), _ = asked(capsys, "lookup", store, "--key", "T#k12")
    assert (0, "there is no index file") == (code, str(row["reason"]).partition(":")[0])
    (store / "index").symlink_to("nothing")
    code, (row,), _ = asked(capsys, "lookup", store, "--key", "T#k12")
    assert (1, None) == (code, row["phy_offsets"])
    assert "index: no such file or directory" in str(row["reason"])


def test_a_release_reads_no_file_that_is_too_large(tmp_path: Path, capsys: Capsys) -> None:
    """A file of 3 GiB was read into memory before anything was known of it."""
    store = copied(tmp_path)
    (path,) = (store / "index").iterdir()
    with open(store / "index" / "20991121011607553", "wb") as file:
        file.truncate(3 << 30)
    words = ["lookup", store, "--key", "TopicTest#order-1", "--profile", "rocketmq-5.5.1"]
    code, (row,), _ = asked(capsys, *words)
    assert code == 1
    assert "no index file has 3221225472 bytes" in str(row["reason"])
    assert path.stat().st_size == 1384


def test_all_six_fields_of_the_checkpoint(capsys: Capsys) -> None:
    """The sixth field of newer releases was not shown."""
    _, (row,), _ = asked(capsys, "dump", SMALL / "checkpoint")
    assert (6, 599) == (len(row), row["logics_physical_offset"])
    _, (row,), _ = asked(capsys, "dump", SMALL / "checkpoint", "--profile", "rocketmq-5.3.3")
    assert len(row) == 5


@pytest.mark.parametrize("size", [0, SIZE])
def test_a_log_without_a_message_makes_no_index(store: Path, size: int, capsys: Capsys) -> None:
    """In place all index files were removed, with code 0, if the log was empty or zeroed."""
    for path in (store / "commitlog").iterdir():
        path.write_bytes(bytes(size))
    if not size:
        for path in sorted((store / "commitlog").iterdir())[1:]:
            path.unlink()
    old = {path.name: path.read_bytes() for path in (store / "index").iterdir()}
    code, (found,), err = asked(capsys, "rebuild", store, "--in-place")
    law = "RMQDISK-44" if size else "RMQDISK-23"
    assert (1, law) == (code, found["law"])
    assert "nothing was written" in err
    assert old == {path.name: path.read_bytes() for path in (store / "index").iterdir()}
    assert 1 == asked(capsys, "rebuild", store, "--out", store.parent / "new")[0]
    assert 0 == asked(capsys, "rebuild", store, "--out", store.parent / "new", "--cut-tail")[0]


def test_tags_are_those_of_the_old_files_whatever_their_size(
    tmp_path: Path, capsys: Capsys
) -> None:
    """With other slots than the old files' the release's default was taken, not their tags."""
    store = copied(tmp_path, DATA / "small-4.9.8" / "store")
    words = ["rebuild", store, "--in-place", "--hash-slots", 10, "--index-num", 100]
    code, (row,), err = asked(capsys, *words)
    assert (0, 26) == (code, row["entries"])
    assert "without entries for tags (by the old index)" in err


def test_no_offset_is_asked_for(capsys: Capsys) -> None:
    """`--max 0` said that no message has the key."""
    _, (row,), _ = asked(capsys, "lookup", SMALL, "--key", "TopicTest#order-1", "--max", 0)
    assert row["reason"] == "no offset is asked for"


class DeniedFiles(RealFiles):
    """Real files, one of which may not be opened."""

    def __init__(self, denied: str) -> None:
        self._denied = denied

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open. Raises: PermissionError."""
        if path.endswith(self._denied):
            raise PermissionError(13, "Permission denied", path)
        return super().open(path, writable=writable, create=create)


@pytest.mark.parametrize("folder", ["small-4.9.8", "rolled-4.9.8"])
def test_an_index_file_that_may_not_be_read(folder: str) -> None:
    """Each message in it was said to have no entry, or the store to have none at all."""
    store = DATA / folder / "store"
    names = sorted(path.name for path in (store / "index").iterdir())
    found = verify(store, files=DeniedFiles(names[len(names) // 2]))
    assert ["DISK-1"] == [one.law for one in found]


@pytest.mark.slow
@pytest.mark.checks("RMQDISK-1", "RMQDISK-18")
def test_an_emptied_index_file_is_named_with_the_command_that_mends_it(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ls` did not say which file it was, and `verify` had no command to make the index new. What
    `salvage` makes of it tells the option that the broker needs, since it starts with no other."""
    copied_store(tmp_path, "rolled-4.9.8")
    monkeypatch.chdir(tmp_path)
    emptied = sorted(Path("store/index").iterdir())[3]
    emptied.write_bytes(b"")
    assert 1 == run(["ls", "store"])
    assert f"{emptied}: an index file is shorter than its header" in capsys.readouterr().err
    assert 1 == run(["verify", "store"])
    command = "segproof rebuild store --out rebuilt/store"
    assert 2 == capsys.readouterr().out.count(f"    {command}\n")
    assert 0 == run(shlex.split(command)[1:])
    assert 0 == run(["salvage", "store", "--out", "saved"])
    assert "mappedFileSizeCommitLog=65536 only" in capsys.readouterr().out


@pytest.mark.checks("RMQDISK-37")
def test_files_of_one_cause_have_one_hint(tmp_path: Path, capsys: Capsys) -> None:
    """Twelve queues without their last units were twelve times the same hint and command."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    queues = sorted((store / "consumequeue").glob("*/*/*"))
    assert 4 == len(queues)
    for path in queues:
        data = path.read_bytes()
        path.write_bytes(data[:200].ljust(len(data), b"\0"))
    text = shown(capsys, "verify", store, code=1)
    heads = [line for line in text.splitlines() if line.startswith("warning RMQDISK-37 ")]
    assert [True] * 4 == [str(path) in head for path, head in zip(queues, heads, strict=True)]
    assert 4 == text.count("  actual: ")
    assert " more path" not in text
    assert 1 == text.count("hint:") == text.count("consumers:")
    assert 1 == text.count(f"segproof verify {store} --law RMQDISK-37 --all\n")
    text = shown(capsys, "verify", store, "--law", "RMQDISK-37", "--all", code=1)
    assert len(queues) == sum(line.startswith("warning RMQDISK-37 ") for line in text.splitlines())


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("name", ["09223372036854775807", "99999999999999999999"])
@pytest.mark.parametrize("folder", ["commitlog", "consumequeue/TopicTest/0"])
def test_a_name_beyond_all_offsets(
    folder: str, name: str, tmp_path: Path, capsysbinary: CapsysBinary
) -> None:
    """A table of the log ended with an internal error, behind its right rows. Now the file is not
    read, and both verbs say so."""
    store = copied(tmp_path)
    path = store / folder / name
    shutil.copyfile(store / folder / f"{0:020d}", path)
    assert 1 == run(["verify", str(path), "--summary"])
    assert capsysbinary.readouterr().out.startswith(b"unreadable")
    for output_format in ("text", "csv", "parquet"):
        for place in (path, store) if folder == "commitlog" else (path,):
            assert 1 == run(["dump", str(place), "--format", output_format, "--on-damage", "keep"])
            told = capsysbinary.readouterr().err.decode()
            assert f"{name}: no store gives a file this name" in told
