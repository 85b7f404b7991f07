# SPDX-License-Identifier: Apache-2.0
"""What lies in a store beside its log, queues and index: configuration, timers, databases.

Public reports that such stores are modelled on: apache/rocketmq 6096, 8589, 10174 and 10668.
"""

import json
import os
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Finding, Severity, Verdict
from segproof.layouts.rocketmq import TIMER_ENTRY, TIMER_SLOT
from segproof.reading.config_file import json_fault
from segproof.repair import salvage_store
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.laws.judged_store import store_disagreements
from segproof_model.laws.rocketmq.broker.config_json import is_config
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import verified
from segproof_tests.store_files import LOG_BYTES, copied_store, long_store

MARK = b"\xef\xbb\xbf"
"""The byte order mark."""
OFFSETS = b'{"offsetTable":{"Orders@g":{0:11,1:12}}}'
"""As releases write it: integers are keys."""
WHOLE = (
    OFFSETS,
    b"{}",
    b"null",
    OFFSETS + bytes(9),
    MARK + OFFSETS,
    b" " + MARK + OFFSETS,
    b"\0" + MARK + OFFSETS,
    MARK + b"null",
    bytes(4) + OFFSETS,
    b"{'offsetTable':{'Orders@g':{0:11}}}",
    b'{"offsetTable":{"O":{0:11,},},}',
    b'{offsetTable:{"O":{0:11}}}',
    b'/*x*/{"offsetTable":{}}',
    b'{"a\x01b":{0:1}}',
    b'{"o":\0{"a":{0:1}}}',
    b'{"a":[1,{2:[]},"x"],"b":null,"c":1.5e3,"d":10L}',
    '{"a":"\u00e4\\"{"}'.encode(),
)
"""What the library of 4.9.8 or that of 5.5.1 reads."""
BROKEN = (
    b"",
    bytes(27),
    b"  \n",
    b"[]",
    b"[1]",
    b"5",
    b'"x"',
    b"{",
    b'{"a"',
    b'{"offsetTable":{',
    OFFSETS[:-1],
    OFFSETS[:-2],
    OFFSETS + b"x",
    OFFSETS + b"{",
    OFFSETS[:20] + bytes(20),
    b'{"o":{0:11x}}',
    b'{"o":{0:11,1:1',
    b"nulls",
    MARK,
    MARK + MARK + OFFSETS,
    OFFSETS + MARK,
    b"{" + MARK + OFFSETS[1:],
    OFFSETS.replace(b":", b":" + MARK, 1),
)
"""What both refuse; the array alone is read by the older one, as nothing."""


def defects(path: Path) -> list[Finding]:
    """Return what verify finds but for notes."""
    return [one for one in verify(path) if one.is_defect]


# --- the folder config


@pytest.mark.parametrize("data", [*WHOLE, *BROKEN])
def test_json_is_read_as_the_libraries_of_releases_read_it(data: bytes) -> None:
    """The answers are those of RemotingSerializable.fromJson of 4.9.8 and 5.5.1."""
    assert (data in WHOLE) == (json_fault(data) is None)
    assert (data in WHOLE) == is_config(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text("aO@{}[]:,\"'\\\x00\n", max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.integers(0, 9) | st.text("a}\"'", max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    st.data(),
)
def test_changed_json_is_judged_as_by_the_model(content: object, data: st.DataObject) -> None:
    """The reader of the implementation, and the one of the model, agree on each file."""
    written = bytearray(json.dumps({"a": content}).encode())
    assert json_fault(bytes(written)) is None
    if data.draw(st.booleans()):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(
            st.sampled_from(b"\0{}[]:,\"'0a/*")
        )
    if data.draw(st.booleans()):
        del written[data.draw(st.integers(0, len(written))) :]
    assert (json_fault(bytes(written)) is None) == is_config(bytes(written))


def config_store(tmp_path: Path, files: dict[str, bytes]) -> Path:
    """Return a store with these files in its folder config."""
    store = copied_store(tmp_path)
    (store / "config").mkdir()
    for name, data in files.items():
        (store / "config" / name).write_bytes(data)
    return store


ZEROS = bytes(27)


@pytest.mark.checks("RMQDISK-43")
@pytest.mark.parametrize(
    ("own", "backup", "severity", "words"),
    [
        (OFFSETS, OFFSETS, None, ""),
        (OFFSETS, None, None, ""),
        (None, OFFSETS, None, ""),
        (OFFSETS, ZEROS, Severity.NOTE, "only if it can't read consumerOffset.json"),
        (OFFSETS, b"", Severity.NOTE, "0 bytes"),
        (ZEROS, OFFSETS, Severity.WARNING, "reads consumerOffset.json.bak in its place"),
        (OFFSETS[:-9], OFFSETS, Severity.WARNING, "it is cut"),
        (b"", OFFSETS, Severity.WARNING, "0 bytes"),
        (ZEROS, None, Severity.ERROR, "without consumer offsets"),
        (ZEROS, b"", Severity.ERROR, "without consumer offsets"),
        (b"", None, Severity.ERROR, "without consumer offsets"),
        (None, b"", Severity.ERROR, "without consumer offsets"),
        (ZEROS, ZEROS, Severity.ERROR, "its start fails"),
        (None, ZEROS, Severity.ERROR, "its start fails"),
        (b"", OFFSETS[:9], Severity.ERROR, "its start fails"),
        (b" null\n", OFFSETS, Severity.NOTE, "without consumer offsets"),  # a file without a state
    ],
)
def test_what_a_broker_makes_of_a_file_and_its_backup(
    own: bytes | None, backup: bytes | None, severity: Severity | None, words: str, tmp_path: Path
) -> None:
    """Zeros and cut files of config were sound. What a broker does is ConfigManager.load."""
    given_files = {"consumerOffset.json": own, "consumerOffset.json.bak": backup}
    store = config_store(tmp_path, {k: v for k, v in given_files.items() if v is not None})
    found = [one for one in verify(store) if one.law == "RMQDISK-43"]
    assert ([severity] if severity else []) == [one.severity for one in found]
    assert all(words in one.message for one in found)
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("RMQDISK-43")
@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("topics.json", "finds no route"),
        ("consumerOffset.json", "consumeFromWhere"),
        ("delayOffset.json", "delivered twice"),
        ("subscriptionGroup.json", "subscription groups"),
        ("topicQueueMapping.json", "static topics"),
        ("other.json", "without what this file says"),
        ("timermetrics", "only shown"),
    ],
)
def test_each_file_of_config_says_what_is_lost(name: str, cost: str, tmp_path: Path) -> None:
    """After a power loss all small files may be zeros, and each costs something else."""
    store = config_store(tmp_path, {name: ZEROS})
    (only,) = defects(store)
    assert cost in only.message


def test_a_salvage_leaves_broken_files_of_config_out_and_says_so(tmp_path: Path) -> None:
    """It copied them without a word, so that the start of a broker on the new store failed."""
    store = config_store(
        tmp_path,
        {
            "topics.json": b'{"topicConfigTable":{"TopicTest":{}}}',
            "topics.json.bak": ZEROS,
            "consumerOffset.json": OFFSETS[:9],
            "consumerOffset.json.bak": OFFSETS,
            "delayOffset.json": ZEROS,
            "delayOffset.json.bak": ZEROS,
        },
    )
    out = tmp_path / "out"
    told = salvage_store(store, out)
    assert not told.is_whole
    assert {"topics.json", "consumerOffset.json.bak"} == {
        path.name for path in (out / "config").iterdir() if not path.name.endswith(".broken")
    }
    for name in ("topics.json.bak", "consumerOffset.json", "delayOffset.json"):
        assert (store / "config" / name).read_bytes() == (
            out / "config" / f"{name}.broken"
        ).read_bytes()
        assert any(f"config/{name}: " in words for words in told.left_out)
    assert any(
        "a broker starts on the new store without the offsets" in w for w in told.config_lacks
    )
    assert [] == defects(out)


# --- timers


def timer_store(tmp_path: Path, offsets: list[int], rest: bytes = b"") -> Path:
    """Return a store with timers that lead to these offsets."""
    store = long_store(tmp_path / "store")
    for name in ("timerlog", "config"):
        (store / name).mkdir()
    units = b"".join(
        TIMER_ENTRY.pack(52, -1, 0, 1_795_223_725_000, 60_000, offset, 200, 0) + bytes(8)
        for offset in offsets
    )
    (store / "timerlog" / f"{0:020d}").write_bytes((units + rest).ljust(5200, b"\0"))
    count = len(offsets)
    slot = TIMER_SLOT.pack(1_795_223_785, 0, 52 * count - 52, count, 0)
    (store / "timerwheel").write_bytes(slot.ljust(320, b"\0"))
    (store / "config" / "timercheck").write_bytes(
        struct.pack(">qqqqqqq", 1_795_223_725_000, 52 * count, count, count, 0, 0, 0).ljust(
            4096, b"\0"
        )
    )
    (store / "config" / "timermetrics").write_text('{"timingCount":{}}')
    return store


BLANK = struct.pack(">iqI", 52 * 97, 0, 0xCBD43194) + b"x" * 8


@pytest.mark.checks("RMQDISK-45")
@pytest.mark.parametrize(
    ("offsets", "rest", "words"),
    [
        ([0, 1500, 3000], b"", ""),
        ([0, 1500, 3000], BLANK, ""),
        ([0, 1500, 999_999], b"", "1 timer leads beyond the end of the commit log"),
        ([999_997, 999_998, 999_999], b"", "3 of them were not yet delivered"),
        ([0], b"\xff" * 70, "no entry begins here"),
    ],
)
def test_timers_lead_into_the_log(
    offsets: list[int], rest: bytes, words: str, tmp_path: Path
) -> None:
    """Timers of messages that the log had lost were sound."""
    store = timer_store(tmp_path, offsets, rest)
    found = [one for one in defects(store) if one.law == "RMQDISK-45"]
    assert bool(words) == bool(found)
    assert all(words in one.message for one in found)
    assert [] == [one for one in defects(store) if one not in found]
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("RMQDISK-45")
@pytest.mark.parametrize(("later", "waits"), [(-1, True), (0, False)])
def test_a_timer_waits_until_its_time_was_read(later: int, waits: bool, tmp_path: Path) -> None:
    """Timers of a lost end that were delivered cost nothing more."""
    store = timer_store(tmp_path, [999_999])
    path = store / "config" / "timercheck"
    read_to = struct.pack(">q", 1_795_223_725_000 + 60_000 + later)
    path.write_bytes(read_to + path.read_bytes()[8:])
    (one,) = [one for one in defects(store) if "1 timer leads beyond" in one.message]
    assert waits is ("1 of them was not yet delivered" in one.message)


@pytest.mark.checks("RMQDISK-43", "RMQDISK-45")
def test_the_hint_of_a_file_that_a_salvage_leaves_out_stays(tmp_path: Path, capsys: Capsys) -> None:
    """Beside timers beyond the log it became "a salvage makes this file new too", which is wrong,
    and the words about a backup and a slave were gone.
    """
    store = timer_store(tmp_path, [999_999])
    for name in ("delayOffset.json", "delayOffset.json.bak"):
        (store / "config" / name).write_bytes(bytes(27))
    assert 1 == cli.run(["verify", str(store), "--no-notes"])
    told = " ".join(capsys.readouterr().out.split())
    assert "RMQDISK-45" in told
    assert "look for the file in a backup or on a slave" in told
    assert "makes this file new too" not in told


@pytest.mark.checks("RMQDISK-43")
def test_the_report_says_what_a_broker_needs(tmp_path: Path, capsys: Capsys) -> None:
    """The store type for queues that were in RocksDB was on a page alone; and of files that were
    copied, and lack something, the report said "left out".
    """
    store = long_store(tmp_path / "store")
    for name in ("config", "consumequeue_r"):
        (store / name).mkdir()
    (store / "consumequeue_r" / "CURRENT").write_bytes(b"MANIFEST-000004\n")
    (store / "consumequeue_r" / "MANIFEST-000004").write_bytes(b"m")
    topics = store / "config" / "topics.json"
    topics.write_text('{"topicConfigTable":{"Other":{"readQueueNums":4}}}')
    assert 1 == cli.run(["salvage", str(store), "--out", str(tmp_path / "out")])
    lines = [" ".join(one.split()) for one in capsys.readouterr().out.split("\n  ")]
    (one,) = (one for one in lines if "storeType=default" in one)
    assert one.startswith("broker: ")
    assert [f"config: {topics}"] == [one.rpartition(": 1 topic")[0] for one in lines
                                     if one.startswith("config: ")]  # fmt: skip
    assert not [one for one in lines if one.startswith("left out: ") and "topics.json" in one]


@pytest.mark.checks("RMQDISK-45")
def test_the_end_of_the_log_is_the_border_of_timers(tmp_path: Path) -> None:
    """The last byte of the last message is inside, the byte after it is not."""
    store = timer_store(tmp_path, [0])
    _, summaries = verified(store)
    end = summaries[0].end_offset
    assert end is not None
    for offset, count in ((end - 1, 0), (end, 1)):
        shutil.rmtree(store)
        assert count == len(defects(timer_store(tmp_path, [offset])))


@pytest.mark.checks("RMQDISK-45")
@pytest.mark.parametrize("size", [0, 5100])
def test_the_files_of_a_timer_log_have_one_length(size: int, tmp_path: Path) -> None:
    """A broker ends its start at a file of another length, as with all such files."""
    store = timer_store(tmp_path, [0])
    first = (store / "timerlog" / f"{0:020d}").read_bytes()
    (store / "timerlog" / f"{5200:020d}").write_bytes(first)
    (store / "timerlog" / f"{10400:020d}").write_bytes(first[:size])
    (only,) = defects(store)
    assert "RMQDISK-45" == only.law
    assert "end" in only.message
    assert "start" in only.message
    assert [] == list(store_disagreements(store))


TIMER_FILES = ("timerlog", "timerwheel", "config/timercheck", "config/timermetrics")


@pytest.mark.parametrize(("offset", "is_kept"), [(1500, True), (999_999, False)])
def test_a_salvage_copies_all_files_of_timers_or_none(
    offset: int, is_kept: bool, tmp_path: Path
) -> None:
    """It copied config/timercheck alone, so that a broker passed over all timers that waited."""
    store, out = timer_store(tmp_path, [0, offset]), tmp_path / "out"
    told = salvage_store(store, out)
    assert [is_kept] * 4 == [(out / name).exists() for name in TIMER_FILES]
    assert is_kept == told.is_whole
    if is_kept:
        assert (store / "timerwheel").read_bytes() == (out / "timerwheel").read_bytes()
    else:
        (words,) = told.left_out
        assert all(name in words for name in TIMER_FILES)


def test_a_salvage_that_lost_messages_copies_no_timers(tmp_path: Path) -> None:
    """A timer may lead to a message that is lost."""
    store, out = timer_store(tmp_path, [0]), tmp_path / "out"
    log = store / "commitlog" / f"{LOG_BYTES:020d}"
    log.write_bytes(bytes(200) + log.read_bytes()[200:])
    told = salvage_store(store, out)
    assert told.gap_count
    assert not any((out / name).exists() for name in TIMER_FILES)


# --- databases of RocksDB, and other layouts


def write_database(folder: Path) -> None:
    """Write files as RocksDB names them."""
    folder.mkdir(parents=True)
    (folder / "CURRENT").write_text("MANIFEST-000005\n")
    (folder / "LOCK").write_bytes(b"")
    (folder / "MANIFEST-000005").write_bytes(bytes(300))
    (folder / "000012.sst").write_bytes(bytes(2000))


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("folder", ["consumequeue", "consumequeue_r", "consumequeue_rocksdb"])
def test_queues_in_rocksdb_are_noted_and_the_rest_is_judged(folder: str, tmp_path: Path) -> None:
    """Verify said that no message can be consumed, and to move the database out of the store."""
    store = copied_store(tmp_path, "small-5.5.1")
    shutil.rmtree(store / "consumequeue")
    write_database(store / folder)
    (note,), summaries = verified(store)
    assert ("RMQDISK-41", Severity.NOTE) == (note.law, note.severity)
    assert note.path == os.fspath(store / folder)
    assert "RocksDB" in note.message
    assert (Verdict.SOUND, 4, 12) == (
        summaries[0].verdict, summaries[0].not_looked_into, summaries[0].batches,
    )  # fmt: skip
    assert [] == list(store_disagreements(store))
    told = salvage_store(store, tmp_path / "out")
    assert any(os.fspath(store / folder) in words for words in told.left_out)


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("lost", [["CURRENT"], ["MANIFEST-000005"], ["CURRENT", "MANIFEST-000005"]])
@pytest.mark.parametrize("folder", ["consumequeue", "consumequeue_r", "rocksdbstore"])
def test_a_database_that_lost_its_beginning_is_one(
    folder: str, lost: list[str], tmp_path: Path
) -> None:
    """Each of its files did not belong there, and salvage left it out and kept "everything"."""
    store = copied_store(tmp_path, "small-5.5.1")
    shutil.rmtree(store / "consumequeue")
    write_database(store / folder)
    for name in lost:
        (store / folder / name).unlink()
    found = {one.law: one for one in verify(store)}
    assert "RMQDISK-39" not in found
    assert Severity.WARNING == found["RMQDISK-41"].severity
    for name in lost:
        assert name.removesuffix("-000005") in found["RMQDISK-41"].message
    assert [] == list(store_disagreements(store))
    told = salvage_store(store, tmp_path / "out")
    assert any(words.startswith(f"{store / folder}:") for words in told.left_out)


@pytest.mark.checks("RMQDISK-39")
def test_a_file_of_a_database_beside_queues_hides_none(tmp_path: Path) -> None:
    """Queues in files are judged, also if a file of RocksDB lies beside them."""
    store = copied_store(tmp_path, "small-5.5.1")
    (store / "consumequeue" / "000012.sst").write_bytes(bytes(20))
    assert ["RMQDISK-39"] == [one.law for one in defects(store)]
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("RMQDISK-41")
def test_keys_in_rocksdb_are_no_missing_index(tmp_path: Path) -> None:
    """From 5.4.0 on a broker may keep message keys in RocksDB and write no index file."""
    store = copied_store(tmp_path, "small-5.5.1")
    shutil.rmtree(store / "index")
    write_database(store / "rocksdbstore")
    assert ["RMQDISK-41"] == [one.law for one in verify(store)]
    assert [] == list(store_disagreements(store))


@pytest.mark.checks("RMQDISK-41")
def test_queues_in_files_beside_a_database_are_judged(tmp_path: Path) -> None:
    """A broker may write its queues to both."""
    store = copied_store(tmp_path, "small-5.5.1")
    write_database(store / "consumequeue_rocksdb")
    queue = next((store / "consumequeue").rglob("0" * 20))
    queue.write_bytes(queue.read_bytes()[:5] + b"\xff" + queue.read_bytes()[6:])
    assert {"RMQDISK-37"} <= {one.law for one in defects(store)}


def test_config_in_rocksdb_is_brought_along_whole(tmp_path: Path) -> None:
    """Topics and offsets may be in a database, which a salvage left out."""
    store, out = copied_store(tmp_path, "small-5.5.1"), tmp_path / "out"
    write_database(store / "config" / "metadata")
    told = salvage_store(store, out)
    assert told.is_whole
    assert {path.name for path in (store / "config" / "metadata").iterdir()} == {
        path.name for path in (out / "config" / "metadata").iterdir()
    }


@pytest.mark.parametrize(
    "name", ["compaction", "rocksdbstore", "epochFileCheckpoint", "dledger-n0", "notes"]
)
def test_a_salvage_names_what_it_leaves_out(name: str, tmp_path: Path) -> None:
    """All of these were left out without a word."""
    store, out = copied_store(tmp_path), tmp_path / "out"
    (store / name).mkdir()
    told = salvage_store(store, out)
    assert not told.is_whole
    (words,) = told.left_out
    assert words.startswith(os.fspath(store / name))


@pytest.mark.checks("RMQDISK-20")
def test_a_checkpoint_of_zeros_says_what_the_next_start_does(tmp_path: Path) -> None:
    """After a power loss it may be zeros. A new store without messages has such a file too."""
    store = copied_store(tmp_path)
    assert [] == [one for one in verify(store) if one.law == "RMQDISK-20"]
    (store / "checkpoint").write_bytes(bytes(4096))
    (note,) = (one for one in verify(store) if one.law == "RMQDISK-20")
    assert Severity.NOTE == note.severity
    assert "all its times are 0" in note.message
    assert "nothing" in note.hint
    assert [] == defects(store)
    assert [] == list(store_disagreements(store))
    for part in ("index", "commitlog", "consumequeue"):
        shutil.rmtree(store / part)
        (store / part).mkdir()
    assert [] == [one for one in verify(store) if one.law == "RMQDISK-20"]


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize(
    "folder",
    [
        "timerlog",
        "compaction/compactionLog/T/0",
        "compaction/compactionCq/T/0",
        "batchconsumequeue/T/0",
        "consumequeue_ext/T/0",
    ],
)
def test_a_single_file_of_another_row_is_not_judged_as_a_queue(folder: str, tmp_path: Path) -> None:
    """All of these files are named by 20 digits, and were judged as files of a queue."""
    store = copied_store(tmp_path)
    path = store / folder / ("0" * 20)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\1" * 5200)
    (only,), summaries = verified(path)
    assert ("RMQDISK-41", Severity.WARNING) == (only.law, only.severity)
    assert Verdict.NOT_CHECKED == summaries[0].verdict


@pytest.mark.checks("RMQDISK-37", "RMQDISK-39")
@pytest.mark.parametrize("is_beside", [False, True])
@pytest.mark.parametrize("name", ["01", "+1", "0" * 40 + "1"])
def test_a_queue_is_a_folder_that_a_broker_opens(
    name: str, is_beside: bool, tmp_path: Path
) -> None:
    """A broker reads the number of the name 01, and opens the folder 1: the store was sound."""
    store = copied_store(tmp_path, "rolled-4.9.8")
    topic = store / "consumequeue" / "TopicB"
    if is_beside:
        shutil.copytree(topic / "1", topic / name)
    else:
        (topic / "1").rename(topic / name)
    found = {one.law: one for one in defects(store)}
    assert ({"RMQDISK-39"} if is_beside else {"RMQDISK-37", "RMQDISK-39"}) == set(found)
    stray = found["RMQDISK-39"]
    assert os.fspath(topic / name) == stray.path
    assert (Severity.WARNING if is_beside else Severity.ERROR) == stray.severity
    assert f"opens {topic / '1'}, which is {'' if is_beside else 'not '}here" in stray.message
    assert [] == list(store_disagreements(store))
