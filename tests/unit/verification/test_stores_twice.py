# SPDX-License-Identifier: Apache-2.0
"""One store, or one file of a log, at two paths of one call: by a link, shared files or a copy."""

import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from segproof.findings import Finding, Severity
from segproof.repair import salvage_store
from segproof.verification import partition_places, verify
from segproof.verifying.path_verification import known_places
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws.borders.border import write_files
from segproof_harness.laws.borders.store_files import (
    LOG,
    LOG_BYTES,
    OFFSETS,
    RECORDS,
    SIZE,
    SOUND,
    TIME,
    log_of,
    record,
    store,
)
from segproof_harness.laws.every_law import LAWS
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.reported_findings import verified

LAW = "RMQDISK-58"
SECOND = f"commitlog/{LOG_BYTES:020d}"
TWO_FILES = {
    **store(queue=None, index=None, log=log_of(*RECORDS)),
    SECOND: log_of(record(3, LOG_BYTES), record(4, LOG_BYTES + SIZE)),
}
"""A store of two files of a log, whose first one is not filled up."""


def of_both(one: Path, two: Path) -> list[Finding]:
    """Return what a call with two paths tells of stores that are met twice."""
    beside = partition_places([one, two])
    return [found for path in (one, two) for found in verify(path, laws=[LAW], beside=beside)]


def told(one: Path, two: Path) -> list[tuple[str, Severity, str]]:
    """Return the same, with the path below the folder of the test, and the end of the words."""
    found = of_both(one, two)
    return [(Path(each.path).name, each.severity, each.message.split("; ")[-1]) for each in found]


def counts(words: str) -> tuple[int, int]:
    """Return how many messages are only here, and only there, as a finding says."""
    here = re.search(r"([0-9]+) sound messages? (?:only here|that the other one lacks)", words)
    there = re.search(r"([0-9]+) sound messages? (?:only there|that this one lacks)", words)
    both = re.search(r"at ([0-9]+) offsets?", words)
    usual = int(both[1]) if both else 0
    return int(here[1]) if here else usual, int(there[1]) if there else usual


def copied(source: Path, name: str) -> Path:
    """Return a copy of a store beside it."""
    return Path(shutil.copytree(source, source.parent / name))


def a_store(tmp_path: Path) -> Path:
    """Return a store of two files of a log."""
    write_files(TWO_FILES, tmp_path / "one")
    return tmp_path / "one"


@pytest.mark.checks("RMQDISK-58")
def test_a_link_to_a_store_is_told(tmp_path: Path) -> None:
    """A store was verified under two names of one call, each with the same messages."""
    write_files(SOUND, tmp_path / "one")
    (tmp_path / "two").symlink_to("one")
    found = of_both(tmp_path / "one", tmp_path / "two")
    assert [Severity.NOTE] * 2 == [each.severity for each in found]
    assert all("once more, by a link" in each.message for each in found)
    assert [str(tmp_path / "two"), str(tmp_path / "one")] == [each.actual for each in found]
    assert [] == of_both(tmp_path / "one", tmp_path / "one")


def test_a_link_below_one_path_is_told(tmp_path: Path) -> None:
    """A link beside the store that it leads to was passed over without a word."""
    write_files(SOUND, tmp_path / "one")
    (tmp_path / "two").symlink_to("one")
    (found,) = [each for each in verify(tmp_path) if each.law == "DISK-26"]
    assert (str(tmp_path / "two"), Severity.NOTE) == (found.path, found.severity)


@pytest.mark.checks("RMQDISK-58")
@pytest.mark.parametrize("how", ["whole log", "last file", "first file"])
def test_files_that_two_stores_share(tmp_path: Path, how: str) -> None:
    """Hard links were verified as two stores. Only a file that no broker writes to is harmless."""
    one = a_store(tmp_path)
    two = copied(one, "two")
    for name in {"whole log": (LOG, SECOND), "last file": (SECOND,), "first file": (LOG,)}[how]:
        (two / name).unlink()
        os.link(one / name, two / name)
    severity = Severity.NOTE if how == "first file" else Severity.WARNING
    found = of_both(one, two)
    assert [severity] * 2 == [each.severity for each in found]
    assert all("by a link or a hard link" in each.message for each in found)
    assert all(each.message.endswith("both have the same sound messages") for each in found)
    assert all("no backup" in each.hint for each in found)


@pytest.mark.checks("RMQDISK-58")
def test_a_commit_log_that_is_a_link(tmp_path: Path) -> None:
    """Two stores whose folder of the log is one are told, with the file that both append to."""
    one = a_store(tmp_path)
    two = copied(one, "two")
    shutil.rmtree(two / "commitlog")
    (two / "commitlog").symlink_to("../one/commitlog")
    assert [Severity.WARNING] * 2 == [each.severity for each in of_both(one, two)]


@pytest.mark.checks("RMQDISK-58")
def test_a_backup_is_noted_with_what_it_lacks(tmp_path: Path) -> None:
    """A copy says which of both has more; a store of other messages is not told at all."""
    one = a_store(tmp_path)
    two = copied(one, "two")
    same = "both have the same sound messages"
    assert [("one", Severity.NOTE, same), ("two", Severity.NOTE, same)] == told(one, two)
    (two / SECOND).write_bytes(log_of(record(3, LOG_BYTES)))
    assert [
        ("one", Severity.NOTE, "this one has more: 1 sound message that the other one lacks"),
        ("two", Severity.NOTE, "the other one has more: 1 sound message that this one lacks"),
    ] == told(one, two)
    (one / LOG).unlink()
    found = of_both(one, two)
    assert [Severity.NOTE] * 2 == [each.severity for each in found]
    message, file = "1 sound message only", "1 file of the log only"
    words = [each.message.split("lacks: ")[1] for each in found]
    assert [f"{message} here; {file} there", f"{file} here; {message} there"] == words
    for name, start in ((LOG, 0), (SECOND, LOG_BYTES)):
        (two / name).write_bytes(log_of(record(0, start, time=TIME - 1)))
    assert [] == told(one, two)


@pytest.mark.checks("RMQDISK-58")
def test_what_is_lost_here_is_sound_there(tmp_path: Path) -> None:
    """A damaged store beside its whole copy did not name the copy that has the message."""
    one = a_store(tmp_path)
    two = copied(one, "two")
    damaged = bytearray((one / LOG).read_bytes())
    damaged[OFFSETS[1] + 88] ^= 1  # in the body
    (one / LOG).write_bytes(damaged)
    mine, its = of_both(one, two)
    assert Severity.WARNING is mine.severity
    assert "1 of them missing or damaged within this log" in mine.message
    assert "the other one has each sound message of this one" in mine.hint
    assert Severity.NOTE is its.severity
    assert "1 of them missing or damaged within that log" in its.message
    _, summaries = verified(one, beside=partition_places([two]))
    assert ["store"] == [each.kind for each in summaries]


@pytest.mark.checks("RMQDISK-58")
def test_two_brokers_went_on_with_one_log(tmp_path: Path) -> None:
    """From some offset on both have other messages: neither replaces the other one."""
    one = a_store(tmp_path)
    two = copied(one, "two")
    (two / SECOND).write_bytes(log_of(record(3, LOG_BYTES, time=TIME), record(4, LOG_BYTES + SIZE)))
    (words,) = {each.message.split("; ")[-1] for each in of_both(one, two)}
    assert words.startswith("at 1 offset they have different messages, first at 4096")
    (two / SECOND).write_bytes(log_of(record(3, LOG_BYTES, time=TIME)))
    found = of_both(one, two)
    assert [Severity.WARNING] * 2 == [each.severity for each in found]
    assert all(f"from offset {LOG_BYTES} on they have different" in one.message for one in found)
    assert [(2, 1), (1, 2)] == [counts(each.message) for each in found]


@pytest.mark.checks("RMQDISK-58")
def test_single_files_of_a_log(tmp_path: Path) -> None:
    """A file of the log at a second path is told; the same one inside of a given store is not."""
    one = a_store(tmp_path)
    two = copied(one, "two")
    assert [] == of_both(one, one / SECOND)
    for other in (two / SECOND, two):
        found = of_both(one / SECOND, other)
        assert [Severity.NOTE] * 2 == [each.severity for each in found]
        assert all(each.message.endswith("both have the same sound messages") for each in found)
    assert [] == of_both(one / LOG, two / SECOND)
    (two / SECOND).unlink()
    os.link(one / SECOND, two / SECOND)
    assert all("once more" in each.message for each in of_both(one / SECOND, two / SECOND))


@pytest.mark.checks("RMQDISK-58")
def test_a_copy_of_other_length_of_files(tmp_path: Path) -> None:
    """A log whose files have another length has the same messages all the same."""
    one = tmp_path / "one"
    write_files({LOG: log_of(*RECORDS)}, one)
    write_files({LOG: log_of(*RECORDS, size=2 * LOG_BYTES)}, tmp_path / "two")
    assert {"both have the same sound messages"} == {
        each[2] for each in told(one, tmp_path / "two")
    }


@pytest.mark.checks("RMQDISK-58")
def test_the_output_of_a_salvage_is_a_copy(tmp_path: Path) -> None:
    """A salvage of a link to a store has the same sound messages; gaps are none."""
    one = a_store(tmp_path)
    flip_bits(one / LOG, OFFSETS[1] + 88)
    (tmp_path / "link").symlink_to("one")
    salvage_store(tmp_path / "link", tmp_path / "out")
    found = told(one, tmp_path / "out")
    assert {"both have the same sound messages"} == {each[2] for each in found}


@pytest.mark.checks("RMQDISK-58")
@given(
    st.lists(
        st.lists(st.sampled_from((None, TIME, TIME + 1)), min_size=1, max_size=4),
        min_size=2, max_size=3,
    )
)  # fmt: skip
def test_logs_with_drawn_messages(times: list[list[int | None]]) -> None:
    """A copy is told where the model finds a message of both, with the counts of each side."""
    files = MemoryFiles()
    logs: list[set[tuple[int, bytes]]] = []
    for number, drawn in enumerate(times):
        records = [
            bytes(SIZE) if time is None else record(at, at * SIZE, time=time)
            for at, time in enumerate(drawn)
        ]
        logs.append({(at * SIZE, one) for at, one in enumerate(records) if any(one)})
        write_file(files, f"/data/{number}/{LOG}", log_of(*records))
    paths = [f"/data/{number}" for number in range(len(times))]
    beside = [one for path in paths for one in known_places(path, files)]
    found = [one for path in paths for one in verify(path, files=files, laws=[LAW], beside=beside)]
    predicate = LAWS[LAW].predicate
    for each in found:
        mine, its = (logs[paths.index(path or "")] for path in (each.path, each.actual))
        assert not predicate([mine, its])
        event(each.severity)
        assert (len(mine - its), len(its - mine)) == counts(each.message)
    heads = [next((one for one in sorted(log)), None) for log in logs]
    if len(logs) == 2 and None not in heads and heads[0] == heads[1]:
        assert not predicate(logs)
        assert 2 == len(found)
    if predicate(logs):
        assert [] == found
