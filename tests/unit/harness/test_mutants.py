# SPDX-License-Identifier: Apache-2.0
"""The run over drawn mutants: a small part of it, and that it can fail."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from segproof.kafka import Record, write_batch
from segproof.rocketmq.message import Message
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.laws.file_damages import Damage, int32, int64, overwrite, write
from segproof_tests import mutant_verbs, mutants
from segproof_tests.mutant_answers import (
    UNPROTECTED,
    answers,
    differences,
    has_records_of,
)
from segproof_tests.mutant_damages import DAMAGES, old_times
from segproof_tests.mutant_sources import places, shipped, sources
from segproof_tests.mutant_verbs import contents
from segproof_tests.mutants import Verdict, check

SEED = 20261123
SOURCES = shipped()
PLAIN, STORE = (
    next(path for path in SOURCES if name == path.parent.name) for name in ("plain", "small-4.9.8")
)
FIRST_LOG = "00000000000000000000.log"
LOG = "00000000000000000060.log"
INDEX = "00000000000000000060.index"
RECORDS = "commitlog/00000000000000000000"


def _without_index(folder: Path) -> None:
    max((folder / "index").iterdir()).unlink()


def _wrong(numbers: range, healthy: Sequence[Path] = SOURCES) -> list[str]:
    return [what for number in numbers for what in check(SEED, number, healthy).wrong]


def test_a_part_of_the_run(tmp_path: Path) -> None:
    """No verb ends badly on a mutant, changes it, or answers otherwise without a finding.

    More of them: `python -m segproof_tests.mutants`.
    """
    assert [] == _wrong(range(24), sources(tmp_path)), f"seed {SEED}"


def test_the_directories_that_are_made_are_healthy(tmp_path: Path) -> None:
    """Else no mutant of them would be without a finding, and nothing would be compared."""
    for source in sources(tmp_path)[len(SOURCES) :]:
        assert [] == [one for one in verify(source, deep=True) if one.is_defect]
        assert all(answers(source / place) for place in places(source))


def test_each_damage_can_be_done_to_each_kind_of_directory(tmp_path: Path) -> None:
    """Each changes something; none fails, whatever was done before."""
    node, store = sources(tmp_path)[len(SOURCES) :]
    for number, damage in enumerate(dict.fromkeys(DAMAGES)):
        changed = 0
        for source, other in ((node, store), (store, node), (STORE, PLAIN)):
            draw = Random(f"{SEED}/{number}")
            folder = tmp_path / f"{number}" / source.parent.name / source.name
            shutil.copytree(source, folder)
            for _ in range(6):
                before = contents(folder)
                assert damage(draw, folder, other)
                changed += contents(folder) != before
            shutil.rmtree(folder.parent)
        assert changed


def test_mutants_leave_no_file_open() -> None:
    """A run of 20 000 ended for want of descriptors."""
    before = len(os.listdir("/proc/self/fd"))
    for number in range(len(SOURCES)):
        list(answers.__wrapped__(SOURCES[number]))
    assert before == len(os.listdir("/proc/self/fd"))


def _ends_badly(arguments: list[str]) -> int:
    return 3


def _touches_a_file(arguments: list[str]) -> int:
    if arguments[0] == "dump":
        next(path for path in Path(arguments[1]).rglob("*") if path.is_file()).touch()
    return 0


def _cuts_a_log_in_place(arguments: list[str]) -> int:
    if "--in-place" in arguments:
        folder = Path(arguments[1])
        for log in (folder / LOG, folder / RECORDS):
            if log.is_file():
                log.write_bytes(b"")
    return 1


def _refuses(arguments: list[str]) -> int:
    return 2 if arguments[0] == "salvage" else 0


def _keeps_the_first_log(arguments: list[str]) -> int:
    if arguments[0] == "salvage":
        (kept := Path(arguments[3]) / PLAIN.name).mkdir(parents=True)
        shutil.copyfile(PLAIN / FIRST_LOG, kept / FIRST_LOG)
    return 0


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (_ends_badly, "exit 3"),
        (_touches_a_file, "the input was changed"),
        (_cuts_a_log_in_place, "rebuild --in-place changed ["),
        (_refuses, "salvage --out"),
        (_keeps_the_first_log, "salvage says that it kept everything; what it kept differs in"),
    ],
)
def test_what_a_verb_must_not_do_is_told(
    run: Callable[[list[str]], int], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An internal error is a failure, and so is a changed input, or a loss that is not told."""
    monkeypatch.setattr(cli, "run", run)
    monkeypatch.setattr(mutants, "damage", lambda *_: [])
    assert any(expected in what for what in _wrong(range(1), [PLAIN]))


def _breaks(*_: object, **__: object) -> None:
    raise ValueError("broken")


def test_an_error_of_a_scan_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage ends a scan with an error of its own; any other is ours."""
    monkeypatch.setattr(mutant_verbs, "scan", _breaks)
    monkeypatch.setattr(mutants, "damage", lambda *_: [])
    assert any("ValueError: broken" in what for what in _wrong(range(1), [STORE]))


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
    (folder / FIRST_LOG).unlink()


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


PAGE = Path(__file__).parents[3] / "docs/explanation/fault-model.md"


def _without_first_segment(folder: Path) -> None:
    for path in folder.glob(f"{min(folder.glob('*.log')).stem}.*"):
        path.unlink()


UNSEEN: dict[str, tuple[Path, Damage]] = {
    "front": (PLAIN, _without_first_segment),
    "flag": (STORE, overwrite(RECORDS, 16, int32(7))),
    "sys_flag": (STORE, overwrite(RECORDS, 36, b"\x40")),
    "born_timestamp": (STORE, overwrite(RECORDS, 47, b"\1")),
    "born_host": (STORE, overwrite(RECORDS, 48, b"\1")),
    "store_host": (STORE, overwrite(RECORDS, 64, b"\1")),
    "reconsume_times": (STORE, overwrite(RECORDS, 72, int32(3))),
    "prepared_transaction_offset": (STORE, overwrite(RECORDS, 76, int64(3))),
}


def test_the_page_lists_what_is_unprotected() -> None:
    """Each name has a row with its bytes and the reason, and each row a name."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert list(UNPROTECTED) == [name for name, _, _ in rows]
    assert all(len(what) > 9 and len(why) > 7 for _, what, why in rows)


@pytest.mark.parametrize("name", UNSEEN)
def test_what_the_page_calls_unprotected_is(name: str, tmp_path: Path) -> None:
    """The bytes that it names can be changed without a finding, and change this alone."""
    source, do = UNSEEN[name]
    folder = _copied(source, tmp_path)
    do(folder)
    old_times(folder)
    assert {name} == differences(source, folder)
    assert [] == [one for one in verify(folder, deep=True) if one.is_defect]


def test_all_of_a_record_is_compared() -> None:
    """What the lookup of an offset answers is the whole record."""
    found = [answer for (kind, _), answer in answers(STORE) if kind == "--phy-offset"]
    assert found != []
    assert all(isinstance(answer, Message) for answer in found)


def test_a_flag_that_a_salvage_changed_has_no_excuse(tmp_path: Path) -> None:
    """No checksum covers it: so the record must lie in the mutant as it was kept."""
    kept = tmp_path / "kept"
    shutil.copytree(STORE, kept)
    assert has_records_of(kept, [STORE])
    overwrite(RECORDS, 16, b"\0\0\0\7")(kept)
    assert not has_records_of(kept, [STORE])
    assert has_records_of(kept, [STORE, kept])


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
