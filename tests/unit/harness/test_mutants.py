# SPDX-License-Identifier: Apache-2.0
"""The run over drawn mutants: a small part of it, and that it can fail."""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from segproof.kafka import Record, write_batch
from segproof.rocketmq.message import Message
from segproof_harness import cli
from segproof_harness.laws.file_damages import Damage, overwrite, write
from segproof_tests import mutants
from segproof_tests.mutant_answers import UNPROTECTED, answers, differences
from segproof_tests.mutants import Verdict, check, sources

SEED = 20261123
SOURCES = sources()
PLAIN, STORE = (
    next(path for path in SOURCES if name == path.parent.name) for name in ("plain", "small-4.9.8")
)
LOG = "00000000000000000060.log"
INDEX = "00000000000000000060.index"
RECORDS = "commitlog/00000000000000000000"


def _without_index(folder: Path) -> None:
    max((folder / "index").iterdir()).unlink()


def _wrong(numbers: range, healthy: Sequence[Path] = SOURCES) -> list[str]:
    return [what for number in numbers for what in check(SEED, number, healthy).wrong]


def test_a_part_of_the_run() -> None:
    """No verb ends badly on a mutant, changes it, or answers otherwise without a finding.

    More of them: `python -m segproof_tests.mutants`.
    """
    assert [] == _wrong(range(24)), f"seed {SEED}"


def test_mutants_leave_no_file_open() -> None:
    """A run of 20 000 ended for want of descriptors."""
    before = len(os.listdir("/proc/self/fd"))
    for number in range(len(SOURCES)):
        list(answers.__wrapped__(SOURCES[number]))
    assert before == len(os.listdir("/proc/self/fd"))


def _ends_badly(arguments: list[str]) -> int:
    return 3


def _cuts_a_file(arguments: list[str]) -> int:
    if arguments[0] == "dump":
        next(path for path in Path(arguments[1]).rglob("*") if path.is_file()).unlink()
    return 0


@pytest.mark.parametrize(
    ("run", "expected"), [(_ends_badly, "exit 3"), (_cuts_a_file, "the input was changed")]
)
def test_what_a_verb_must_not_do_is_told(
    run: Callable[[list[str]], int], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An internal error is a failure, and so is a changed input."""
    monkeypatch.setattr(cli, "run", run)
    assert any(expected in what for what in _wrong(range(3)))


@pytest.mark.parametrize(
    ("source", "do", "expected"),
    [
        (PLAIN, write(INDEX, b"\0\0\0\1\0\0\0\1"), "and the log ["),
        (PLAIN, overwrite(LOG, 70, b"?"), "damaged"),
        (STORE, _without_index, "and the log ["),
        (STORE, overwrite(RECORDS, 27, b"\7"), "queue_offset"),
    ],
)
def test_an_answer_that_changes_in_silence_is_told(
    source: Path, do: Damage, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `verify` found nothing, damaged indexes and logs would change answers unseen."""

    def damage(_: Random, folder: Path, __: Path) -> list[str]:
        do(folder)
        return []

    monkeypatch.setattr(mutants, "damage", damage)
    assert [] == _wrong(range(1), [source])
    monkeypatch.setattr(mutants, "verify", lambda *_, **__: ())
    assert any(expected in what for what in _wrong(range(1), [source]))


def _copied(source: Path, folder: Path) -> Path:
    shutil.copytree(source, folder / source.name, copy_function=shutil.copyfile)
    return folder / source.name


def _without_first(folder: Path) -> None:
    (folder / "00000000000000000000.log").unlink()


def _without_last(folder: Path) -> None:
    max(folder.glob("*.log")).write_bytes(b"")


def _begins_earlier(folder: Path) -> None:
    (folder / LOG).replace(folder / "00000000000000000059.log")


def _first_batch_twice(folder: Path) -> None:
    data = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(data[: 12 + int.from_bytes(data[8:12], "big")] + data)


def _foreign_batch(folder: Path) -> None:
    records = [Record(60, 1, None, b"from elsewhere")]
    (folder / LOG).write_bytes(write_batch(records, base_offset=60))


def _without_a_record(folder: Path) -> None:
    data = bytearray((folder / RECORDS).read_bytes())
    size = int.from_bytes(data[:4], "big")
    second = int.from_bytes(data[size : size + 4], "big")
    (folder / RECORDS).write_bytes(data[:size] + data[size + second :])


@pytest.mark.parametrize(
    ("source", "do", "expected"),
    [
        (PLAIN, lambda _: None, set()),
        (PLAIN, _without_first, {"front"}),
        (PLAIN, _without_last, {"end"}),
        (PLAIN, _begins_earlier, {"segment"}),
        (PLAIN, _first_batch_twice, {"moved"}),
        (PLAIN, overwrite(LOG, 7, b"\0"), {"base_offset"}),
        (PLAIN, overwrite(LOG, 15, b"\7"), {"leader_epoch"}),
        (PLAIN, overwrite(LOG, 70, b"?"), {"damaged"}),
        (PLAIN, _foreign_batch, {"sound", "gap"}),
        (STORE, lambda _: None, set()),
        (STORE, _without_a_record, {"hole", "place"}),
        (STORE, overwrite(RECORDS, 19, b"\7"), {"flag"}),
        (STORE, overwrite(RECORDS, 27, b"\7"), {"queue_offset"}),
        (STORE, overwrite(RECORDS, 39, b"\4"), {"sys_flag", "is_hidden"}),
        (STORE, overwrite(RECORDS, 39, b"\x08"), {"sys_flag"}),
        (STORE, overwrite(RECORDS, 0, b"?"), {"damaged", "end"}),
    ],
)
def test_each_difference_has_its_name(
    source: Path, do: Damage, expected: set[str], tmp_path: Path
) -> None:
    """What is gone, new or changed in a log is told apart; some of it has no excuse."""
    folder = _copied(source, tmp_path)
    do(folder)
    assert expected == differences(source, folder)
    assert expected - UNPROTECTED.keys() <= {
        "moved",
        "damaged",
        "queue_offset",
        "hole",
        "place",
        "is_hidden",
    }


def test_all_of_a_record_is_compared() -> None:
    """What the lookup of an offset answers is the whole record."""
    found = [answer for (kind, _), answer in answers(STORE) if kind == "--phy-offset"]
    assert found != []
    assert all(isinstance(answer, Message) for answer in found)


def _dies_at_two(seed: int, number: int, healthy: Sequence[Path]) -> Verdict:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return Verdict(number)


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_the_run_goes_on() -> None:
    """A signal is a failure of the mutant that was looked at, and of no other."""
    found = list(mutants.run(SEED, range(5), [], jobs=2, check=_dies_at_two))
    assert {0, 1, 2, 3, 4} == {one.number for one in found}
    assert [2] == [one.number for one in found if one.wrong]
