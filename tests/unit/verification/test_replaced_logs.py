# SPDX-License-Identifier: Apache-2.0
"""What a start deletes, or replaces by a `.swap` log, and no file that stays holds."""

import subprocess
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import SegproofError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.reading import waiting_logs
from segproof.repair import salvage
from segproof.verification import verify
from segproof.verifying import pending_files
from segproof_harness import cli
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws.every_law import LAWS
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.partition_files import name_of
from segproof_tests.small_logs import log_of

log = partial(log_of, key=b"k")
LOGS = {0: log(0, 4), 4: log(4, 8), 8: log(8, 10)}


def lay(folder: Path, **files: dict[int, bytes]) -> Path:
    """Write logs by suffix (`log`, `swap`, `deleted`, `cleaned`) and base offset."""
    folder.mkdir(exist_ok=True)
    for kind, logs in files.items():
        suffix = ".log" if kind == "log" else f".log.{kind}"
        for base, data in logs.items():
            (folder / name_of(base, suffix)).write_bytes(data)
    return folder


def judged(folder: Path) -> tuple[list[Finding], Summary]:
    """Return the findings of pending files, and the summary."""
    told: list[Summary] = []
    laws = {"DISK-58", "DISK-59", "DISK-60", "LOAD-1", "DISK-42"}
    found = [one for one in verify(folder, on_summary=told.append) if one.law in laws]
    return found, told[-1]


def replaced(folder: Path) -> list[str]:
    """Return the names of the logs that DISK-60 names, and see that each is a warning."""
    found = [one for one in judged(folder)[0] if one.law == "DISK-60"]
    assert {Severity.WARNING} >= {one.severity for one in found}
    return [Path(one.path).name for one in found]


def hints(folder: Path) -> dict[str, str]:
    """Return the hints of LOAD-1, by name."""
    return {Path(one.path).name: one.hint for one in judged(folder)[0] if one.law == "LOAD-1"}


@pytest.mark.checks("DISK-60", "LOAD-2")
def test_a_log_between_two_swaps_is_deleted_and_saved(tmp_path: Path) -> None:
    """It was left out of both verbs: "sound" and "everything kept"."""
    folder = lay(tmp_path / "t-0", swap={0: LOGS[0], 8: LOGS[8]}, log={4: LOGS[4]})
    assert [name_of(4, ".log")] == replaced(folder)
    _, summary = judged(folder)
    assert (Verdict.READABLE_WITH_DEFECTS, 10) == (summary.verdict, summary.batches)
    (told,) = salvage(folder, tmp_path / "out")
    assert (10, 0, 9, 0) == (told.batches, told.first_offset, told.last_offset, told.lost_offsets)
    assert told.is_whole
    assert all("copy" in hint for hint in hints(folder).values())
    words = [one.message for one in judged(folder)[0] if one.law == "LOAD-1"]
    assert all("from 0 to 9, here one segment" in one for one in words)


@pytest.mark.checks("DISK-60", "LOAD-1")
@pytest.mark.parametrize("old", ["log", "deleted"])
def test_an_empty_swap_takes_the_place_of_records(old: str, tmp_path: Path) -> None:
    """An empty `.swap` log was "sound", with the hint to do nothing."""
    folder = lay(tmp_path / "t-0", log={0: LOGS[0], 8: LOGS[8]}, swap={4: b""})
    lay(folder, **{old: {4: LOGS[4]}})
    name = name_of(4, ".log" if old == "log" else ".log.deleted")
    assert [name] == replaced(folder)
    assert all("copy" in hint for hint in hints(folder).values())


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize(
    "removed", [{4: LOGS[4]}, {8: LOGS[8]}, {4: LOGS[4], 8: LOGS[8]}, {0: LOGS[0], 4: LOGS[4]}]
)
@pytest.mark.parametrize("swap", [{}, {4: b""}])
def test_the_printed_commands_save_removed_logs(
    tmp_path: Path,
    removed: dict[int, bytes],
    swap: dict[int, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hint ended with "copy the directory away", and a salvage of the copy left them out."""
    kept = {base: data for base, data in LOGS.items() if base not in removed}
    (tmp_path / "data").mkdir()
    folder = lay(tmp_path / "data" / "t-0", log=kept, deleted=removed, swap=swap)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.chdir(tmp_path)
    found = [one for one in verify("data/t-0") if one.law == "DISK-60"]
    if not found:  # a start of retention's, or a log whose offsets another one may have
        assert swap or 0 in removed
        return
    assert {found[0].hint} == {one.hint for one in found}
    for command in split_commands(found[0].hint)[1]:
        if command.startswith("segproof"):
            assert cli.run(command.split()[1:]) in (0, 1)
        else:
            subprocess.run(["bash", "-ec", command], check=True)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    logs = sorted((tmp_path / "saved" / "t-0").glob("*.log"))
    saved = b"".join(path.read_bytes() for path in logs)
    assert all(LOGS[int(Path(one.path).name[:20])] in saved for one in found)


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize(
    ("swap", "names"),
    [
        ({4: log(4, 6)}, [4]),  # shorter
        ({0: LOGS[8]}, [0, 4]),  # of another segment
        ({0: log(0, 3) + log(5, 8)}, []),  # what a cleaning makes of two segments
        ({4: LOGS[4]}, []),
        ({0: log(0, 2), 2: log(2, 4)}, []),  # what a splitting makes
    ],
)
def test_a_swap_holds_less_than_the_logs(
    swap: dict[int, bytes], names: list[int], tmp_path: Path
) -> None:
    """All of them were "sound"."""
    folder = lay(tmp_path / "t-0", log=LOGS, swap=swap)
    assert [name_of(one, ".log") for one in names] == replaced(folder)
    (told,) = salvage(folder, tmp_path / "out")
    assert (10, 0) == (told.batches, told.lost_offsets)


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize(
    ("looks", "names"),
    [
        ([LOGS[4], LOGS[4]], [8]),
        ([log(4, 6)], []),
        ([LOGS[4], log(4, 6)], []),
        ([log(4, 6), LOGS[4]], []),  # the end of new batches is where the removed log begins
    ],
)
def test_a_removed_log_is_looked_at_again_beside_a_writer(
    looks: list[bytes], names: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A truncation removes the logs above its offset first, and cuts the last one then."""
    folder = lay(tmp_path / "t-0", log={0: LOGS[0], 4: LOGS[4]}, deleted={8: LOGS[8]})
    coming = iter(looks)

    def pause(*_: object) -> bool:
        for data in coming:
            lay(folder, log={4: data})
            return True
        return False

    monkeypatch.setattr(pending_files, "wait_for_a_step", pause)
    found = [one.path for one in verify(folder) if one.law == "DISK-60"]
    assert [str(folder / name_of(one, ".log.deleted")) for one in names] == found


@pytest.mark.checks("DISK-60", "LOAD-1")
@pytest.mark.parametrize(
    ("logs", "deleted", "names"),
    [
        ([], [0, 4, 8], [0, 4, 8]),  # all of them
        ([0, 8], [4], [4]),  # one in the middle
        ([4, 8], [0], []),  # retention
        ([0], [4, 8], [4, 8]),  # no truncation: one to offset 4 keeps an empty log of that name
        ([0, 4], [8], [8]),
        ([0, 8], [0, 4], []),  # a cleaning
    ],
)
def test_removed_logs_that_nothing_replaces(
    logs: list[int], deleted: list[int], names: list[int], tmp_path: Path
) -> None:
    """The hint was to do nothing, and the next start deletes the only copy."""
    folder = lay(
        tmp_path / "t-0", log={n: LOGS[n] for n in logs}, deleted={n: LOGS[n] for n in deleted}
    )
    expected = [name_of(one, ".log.deleted") for one in names]
    assert expected == replaced(folder)
    told = [name for name, hint in hints(folder).items() if hint.startswith("copy")]
    assert expected == told
    found, _ = judged(folder)
    assert not [one for one in found if one.law == "LOAD-1" and "truncation" in one.message]
    for one in deleted:
        path = folder / name_of(one, ".log.deleted")
        assert "DISK-60" not in {found.law for found in verify(path)}


@pytest.mark.checks("DISK-60", "LOAD-1")
@pytest.mark.parametrize("target", range(1, 10))
def test_what_a_truncation_leaves_is_named(target: int, tmp_path: Path) -> None:
    """The logs after its offset wait for their removal: a note says which offsets they hold."""
    kept = {base: data for base, data in LOGS.items() if base <= target}
    last = max(kept)
    gone = {base: data for base, data in LOGS.items() if base > target}
    folder = lay(tmp_path / "t-0", log=kept | {last: log(last, target)}, deleted=gone)
    assert [] == replaced(folder)
    found, _ = judged(folder)
    told = {Path(one.path).name: one for one in found if one.law == "LOAD-1"}
    ends = {4: 7, 8: 9}
    for base in gone:
        one = told[name_of(base, ".log.deleted")]
        assert f"no log here has its offsets {base} to {ends[base]}" in one.message
        assert "copy this file away" in one.hint


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize("end", [8, 9, 10])
@pytest.mark.parametrize("further", [False, True])
def test_the_name_of_a_removed_log_does_not_hold_its_records(
    end: int, tmp_path: Path, *, further: bool
) -> None:
    """An empty new log of its name made the only copy of a log's records "sound"."""
    gone = LOGS | ({10: log(10, 12)} if further else {})
    deleted = {base: data for base, data in gone.items() if base >= 8}
    folder = lay(tmp_path / "t-0", log={**LOGS, 8: log(8, end)}, deleted=deleted)
    names = [name_of(one, ".log.deleted") for one in deleted]
    expected = {8: names, 9: [], 10: names[1:]}[end]
    assert expected == replaced(folder)
    found, summary = judged(folder)
    by_law = {(one.law, Path(one.path).name): one.message for one in found}
    for name in expected:
        words = by_law["DISK-60", name]
        assert "the leader has what counts" in words
        assert "else this is the only copy" in words
    if end == 9:
        assert "no log here has its offsets 9 to 9" in by_law["LOAD-1", names[0]]
        assert "copy" in hints(folder)[names[0]]
        assert summary.verdict is Verdict.INDEX_DAMAGE_ONLY  # it has no index


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize("key", [b"k", None])
@pytest.mark.parametrize(
    ("logs", "is_cut"),
    [
        ([(0, 4), (4, 4), (8, 10)], True),  # the 0 bytes that a cleaning leaves
        ([(0, 2), (4, 6), (8, 10)], True),
        ([(0, 6), (8, 10)], True),  # two logs merged
        ([(0, 4), (4, 8), (8, 10)], False),
        ([(0, 8), (8, 10)], False),
    ],
)
def test_no_cleaning_comes_after_a_record_without_a_key(
    logs: list[tuple[int, int]], is_cut: bool, key: bytes | None, tmp_path: Path
) -> None:
    """Records that no log has were passed over, if a log had the name of theirs."""
    bases = [first for first, _ in logs]
    deleted = {4: LOGS[4]} | ({0: LOGS[0]} if 4 not in bases else {})
    kept = {first: log(first, end, key=key) for first, end in logs}
    folder = lay(tmp_path / "t-0", log=kept, deleted=deleted)
    expected = [name_of(4, ".log.deleted")] if is_cut and key is None else []
    assert expected == replaced(folder)


@pytest.mark.checks("LOAD-1")
@pytest.mark.parametrize(
    ("logs", "offsets"),
    [
        ([(0, 0), (4, 8), (8, 10)], "0 to 3"),  # 0 bytes are what a cleaning leaves, or a mistake
        ([(0, 2), (4, 8), (8, 10)], "2 to 3"),
        ([(0, 4), (4, 8), (8, 10)], ""),
    ],
)
def test_a_closed_log_in_the_place_of_a_removed_one(
    logs: list[tuple[int, int]], offsets: str, tmp_path: Path
) -> None:
    """A salvage "kept everything", and no verb told of the records of the removed log."""
    kept = {base: log(base, end) for base, end in logs}
    folder = lay(tmp_path / "t-0", log=kept, deleted={0: LOGS[0]})
    found, _ = judged(folder)
    (told,) = [one for one in found if one.law == "LOAD-1"]
    assert bool(offsets) == (f"no log here has its offsets {offsets}" in told.message)
    assert bool(offsets) == told.hint.startswith("nothing, if the topic is compacted; else copy")
    (saved,) = salvage(folder, tmp_path / "out")
    assert bool(offsets) == bool(saved.removed)


@pytest.mark.checks("LOAD-1")
def test_offsets_that_retention_removed_are_named(tmp_path: Path) -> None:
    """A note says which ones, up to the first log; there is nothing to do."""
    folder = lay(tmp_path / "t-0", log={8: LOGS[8]}, deleted={0: LOGS[0], 4: log(4, 9)})
    found, summary = judged(folder)
    told = {Path(one.path).name: one for one in found}
    assert "no log here has its offsets 0 to 3" in told[name_of(0, ".log.deleted")].message
    assert "no log here has its offsets 4 to 7" in told[name_of(4, ".log.deleted")].message
    assert not [one for one in found if one.law != "LOAD-1" or "copy" in one.hint]
    assert summary.verdict is Verdict.SOUND
    (saved,) = salvage(folder, tmp_path / "out")
    assert saved.is_whole
    assert [True, True] == ["no log here has its offsets" in one for one in saved.removed]
    assert cli.run(["salvage", str(folder), "--out", str(tmp_path / "again")]) == 0


@pytest.mark.checks("DISK-60", "LOAD-1")
@pytest.mark.parametrize(
    ("logs", "deleted", "code", "named"),
    [
        ([0, 4, 8], {}, 0, []),
        ([0, 4, 8], {4: LOGS[4]}, 0, []),  # a cleaning that took nothing
        ([0, 8], {0: LOGS[0], 4: LOGS[4]}, 0, [4]),  # a cleaning, if they were written again
        ([4, 8], {0: LOGS[0]}, 0, [0]),
        ([0, 4], {9: log(9, 10)}, 0, [9]),  # a truncation
        ([0, 4], {8: LOGS[8]}, 1, [8]),
        ([0, 8], {4: LOGS[4]}, 1, [4]),
    ],
)
def test_a_salvage_names_what_it_takes_from_no_removed_log(
    logs: list[int],
    deleted: dict[int, bytes],
    code: int,
    named: list[int],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It kept "part" after retention, where `verify` says "sound", and no step told how to go on.

    Following the step saves the records of the removed log too.
    """
    folder = lay(tmp_path / "t-0", log={n: LOGS[n] for n in logs}, deleted=deleted)
    assert code == cli.run(["salvage", str(folder), "--out", str(tmp_path / "out")])
    said = " ".join(capfd.readouterr().out.split())
    for base in deleted:
        assert (base in named) == (name_of(base, ".log.deleted") in said)
    assert bool(named) == ("into an empty folder t-0" in said)
    assert ("everything kept" in said) == (not named)
    for base in named:
        apart = lay(tmp_path / "apart", log={}) / "t-0"
        lay(apart, log={base: deleted[base]})
        (saved,) = salvage(apart, tmp_path / f"saved-{base}")
        assert base == saved.first_offset


@pytest.mark.checks("LOAD-1")
def test_a_salvage_says_what_to_do_with_logs_that_are_all_removed(tmp_path: Path) -> None:
    """It said that there was no partition with a log."""
    folder = lay(tmp_path / "t-0", deleted=LOGS)
    with pytest.raises(SegproofError, match=r"3 logs.*\.deleted"):
        list(salvage(folder, tmp_path / "out"))


@pytest.mark.checks("LOAD-2")
def test_a_swap_above_one_that_is_not_needed_counts(tmp_path: Path) -> None:
    """A second `.swap` log was passed over where the first one's old log is there."""
    folder = lay(tmp_path / "t-0", log={0: LOGS[0], 4: LOGS[4]}, swap={0: LOGS[0], 8: LOGS[8]})
    _, summary = judged(folder)
    assert (10, 0) == (summary.batches, summary.lost_offsets)
    (told,) = salvage(folder, tmp_path / "out")
    assert (10, 0, 9) == (told.batches, told.lost_offsets, told.last_offset)


@pytest.mark.checks("DISK-42", "LOAD-1")
def test_both_findings_of_a_lost_swap_say_the_same(tmp_path: Path) -> None:
    """DISK-42 said "copy this file away", LOAD-1 of the same file "nothing"."""
    folder = lay(tmp_path / "t-0", log={0: LOGS[0]}, swap={4: LOGS[4]}, cleaned={0: b""})
    assert "copy this file away" in hints(folder)[name_of(4, ".log.swap")]


@pytest.mark.checks("DISK-60")
@given(
    swaps=st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=3),
    logs=st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=3),
    deleted=st.dictionaries(st.integers(0, 5), st.integers(0, 1), max_size=3),
    cut=st.sampled_from((0, 0, 0, 9)),
    key=st.sampled_from((b"k", None)),
)
def test_logs_are_judged_as_the_law_says(
    swaps: dict[int, int],
    logs: dict[int, int],
    deleted: dict[int, int],
    cut: int,
    key: bytes | None,
) -> None:
    """Whatever lies beside each other: logs of some batches, and perhaps a torn `.swap` log."""
    files = MemoryFiles()
    given_logs = (swaps, logs, deleted)
    drawn = [{base: log(base, base + n, key=key) for base, n in one.items()} for one in given_logs]
    drawn[0] = {base: data[: max(0, len(data) - cut)] for base, data in drawn[0].items()}
    for suffix, kind in zip((".log.swap", ".log", ".log.deleted"), drawn, strict=True):
        for base, data in kind.items():
            write_file(files, f"t-0/{name_of(base, suffix)}", data)
    if not any(drawn):
        return
    # A directory without anything to read breaks DISK-20 too, whatever is asked for.
    found = [one for one in verify("t-0", files=files) if one.law == "DISK-60"]
    assert LAWS["DISK-60"].predicate(*drawn) == (not found)


def damaged(data: bytes, how: str) -> bytes:
    """Return a log of four batches of equal size with one kind of damage."""
    size = len(data) // 4
    flipped = bytes([data[2 * size - 1] ^ 1])
    return {
        "zeros": bytes(len(data)),
        "zeros in it": data[:size] + bytes(size) + data[2 * size :],
        "one bit": data[: 2 * size - 1] + flipped + data[2 * size :],
        "a batch is cut out": data[:size] + data[2 * size :],
        "of other offsets": log(20, 24),
        "compacted": data[:size] + data[3 * size :],
    }[how]


CLEANED = log(0, 1) + log(1, 2) + log(3, 4)
"""What a cleaning makes of the first log."""
DAMAGES = ("zeros", "zeros in it", "one bit")


SIZE = len(log(0, 1))
IN_COPIES = ("first batch is zeros", "zeros before it", "sizes are lost", "second checksum")


def damaged_copy(data: bytes, how: str) -> bytes:
    """Return a log of three or four batches of equal size with damage that its frames show."""
    size = SIZE
    return {
        "first batch is zeros": bytes(size) + data[size:],
        "zeros before it": bytes(30) + data,
        "sizes are lost": data[:size] + data[size : size + 8] + b"\x7f" + data[size + 9 :],
        "second checksum": data[:size] + data[size : size + 17] + b"\0" + data[size + 18 :],
    }[how]


AFTER_DAMAGE = LOGS[0][:SIZE] + bytes(SIZE) + LOGS[0][2 * SIZE :]
DAMAGED = [
    *((damaged(LOGS[0], how), CLEANED, int(how != "zeros")) for how in DAMAGES),
    (damaged(LOGS[0], "zeros in it"), LOGS[0], 1),
    *((bytes(4 * SIZE), damaged_copy(LOGS[0], how), int(how[0] == "f")) for how in IN_COPIES),
    (AFTER_DAMAGE, log(2, 4), None),
    (LOGS[0], CLEANED, None),
]
"""A log, a copy of it that a start takes away, and the first offset that the copy alone has."""


@pytest.mark.checks("DISK-42", "DISK-59", "LOAD-1")
@pytest.mark.parametrize(
    ("suffix", "new", "copy", "missing"),
    [
        *((suffix, *row) for row in DAMAGED for suffix in ("cleaned", "swap", "deleted")),
        ("cleaned", damaged(LOGS[0], "a batch is cut out"), CLEANED, 1),
        ("swap", damaged(LOGS[0], "of other offsets"), CLEANED, 0),
        ("deleted", damaged(LOGS[0], "compacted"), LOGS[0], None),
        ("deleted", log(0, 1) + damaged(log(3, 7), "one bit"), CLEANED, None),  # cleaned before
    ],
)
def test_what_a_damaged_log_lacks_is_told(
    new: bytes, copy: bytes, missing: int | None, suffix: str, tmp_path: Path
) -> None:
    """A log of the same name was enough for "nothing"; of a damaged copy the rest was not read."""
    waiting = {suffix: {0: copy}} | ({"cleaned": {0: b""}} if suffix == "swap" else {})
    folder = lay(tmp_path / "t-0", log=LOGS | {0: new}, **waiting)
    name, law = name_of(0, f".log.{suffix}"), "DISK-59" if suffix == "deleted" else "DISK-42"
    told = {one.law: one for one in judged(folder)[0] if Path(one.path).name == name}
    (saved,) = salvage(folder, tmp_path / "out")
    words = " ".join(saved.left_out)
    step = f"copy this file, without .{suffix} in its name"
    step = f"`segproof verify {folder} --law DISK-59` prints" if suffix == "deleted" else step
    assert (missing is not None) == (step in words)
    if missing is None:
        assert ["LOAD-1"] == list(told)
        assert "nothing" in told["LOAD-1"].hint
        return
    assert {"LOAD-1", law} == told.keys()
    assert (
        f"no sound batch {'here has' if suffix == 'deleted' else 'with'} offset {missing}"
        in told[law].message
    )
    assert "copy this file away" in told["LOAD-1"].hint
    assert (suffix == "deleted") == ("as DISK-59 says" in told["LOAD-1"].hint)
    assert ([], False) == (saved.removed, saved.is_whole)


@pytest.mark.checks("LOAD-1")
@pytest.mark.parametrize("how", ["both are damaged", "the log is whole", "the end is zeros"])
@pytest.mark.parametrize("suffix", ["cleaned", "swap", "deleted"])
def test_damage_in_both_is_not_compared(how: str, suffix: str, tmp_path: Path) -> None:
    """Neither has a sound batch that the other lacks; what the damaged bytes hold is not known."""
    new = LOGS[0] if how == "the log is whole" else damaged(LOGS[0], "one bit")
    copy = LOGS[0][:SIZE] + (bytes(40) if how == "the end is zeros" else LOGS[0][SIZE:][:40])
    waiting = {suffix: {0: copy}} | ({"cleaned": {0: b""}} if suffix == "swap" else {})
    folder = lay(tmp_path / "t-0", log=LOGS | {0: new}, **waiting)
    name = name_of(0, f".log.{suffix}")
    (told,) = [one for one in judged(folder)[0] if Path(one.path).name == name]
    assert ("was not compared" in told.message) is (how == "both are damaged")
    assert ("copy this file away" in told.hint) is (how == "both are damaged")
    assert ("nothing" in told.hint) is (how != "both are damaged")


@pytest.mark.checks("LOAD-1")
def test_a_removed_log_with_a_damaged_beginning_follows_the_last_one(tmp_path: Path) -> None:
    """A log whose first frame is broken was taken for an empty one."""
    copy = damaged_copy(log(10, 14), "zeros before it")
    folder = lay(tmp_path / "t-0", log=LOGS, deleted={10: copy})
    whole = lay(tmp_path / "t-1", log=LOGS, deleted={10: log(10, 14)})
    for name in ("DISK-60", "LOAD-1"):
        (told,) = [one for one in judged(folder)[0] if one.law == name]
        (due,) = [one for one in judged(whole)[0] if one.law == name]
        assert (due.message, True) == (told.message, "away before a broker starts" in told.hint)


@pytest.mark.checks("DISK-42")
def test_a_copy_of_many_batches_is_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its headers were all kept: 80 bytes for each batch, and more."""
    monkeypatch.setattr(waiting_logs, "BATCHES_MAX", 1 << 14)
    count, files = 200_000, MemoryFiles()
    rows = np.frombuffer(log(0, 1) * count, np.uint8).reshape(count, SIZE).copy()
    rows[:, :8] = np.arange(count, dtype=">i8").view(np.uint8).reshape(count, 8)
    write_file(files, "t-0/a.log", rows.tobytes())
    write_file(files, "t-0/0.log", rows[: count - 10].tobytes())
    write_file(files, "t-0/1.log", rows[count - 9 :].tobytes())
    others = [(0, "t-0/0.log"), (count - 9, "t-0/1.log")]
    tracemalloc.start()
    try:
        found = waiting_logs.only_copy("t-0/a.log", others[1:], files)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert waiting_logs.OnlyCopy(0, count - 1, 0) == found
    assert peak < 16 << 20
    found = waiting_logs.only_copy("t-0/a.log", others, files)
    assert waiting_logs.OnlyCopy(0, count - 1, count - 10) == found


@pytest.mark.checks("DISK-5", "DISK-25")
@pytest.mark.parametrize("data", [bytes(4 * SIZE), b"", LOGS[0]])
def test_a_closed_log_that_lost_its_end_has_not_every_offset(data: bytes, tmp_path: Path) -> None:
    """Beside DISK-25, which tells the loss, DISK-5 said that no record is lost."""
    folder = lay(tmp_path / "t-0", log={0: data, 4: LOGS[4]})
    told = [one for one in verify(folder) if Path(one.path).name == name_of(0, ".log")]
    hints_of_indexes = [one.hint for one in told if one.law == "DISK-5"]
    assert 2 == len(hints_of_indexes)
    for hint in hints_of_indexes:
        assert ("the log has every offset" in hint) is (data == LOGS[0])
        assert ("compare the segment with another replica first" in hint) is (data != LOGS[0])
