# SPDX-License-Identifier: Apache-2.0
"""Folders that end in -stray or -future, beside the partition in use: what only they have."""

import gc
import subprocess
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from segproof.files import RealFiles
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.inventory import folder_extents, held_beside
from segproof.inventory.small_files import KnownOffsets
from segproof.repair import salvage
from segproof.verification import partition_places, verify
from segproof.verifying.log_directories import places_below, report_across
from segproof.verifying.set_aside_folders import report_aside
from segproof.wording.reporting import Reporter, Wanted
from segproof_harness import cli
from segproof_harness.laws.borders.log_files import batch, name
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.extents_kept import count_extents
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import verified
from segproof_tests.rows import paired

STATE = "0123456789abcdef0123456789abcdef"
META = "version=1\nnode.id={}\ncluster.id=c\ndirectory.id={}\n"
pytestmark = pytest.mark.checks("DISK-41")


def data(folder: Path, directory: str = "a", node: int = 1) -> Path:
    """Make the log directory of a broker."""
    folder.mkdir()
    (folder / "meta.properties").write_text(META.format(node, directory * 22))
    return folder


def logs(
    folder: Path,
    state: str,
    offsets: Iterable[int],
    base: int = 0,
    *,
    key: bytes | None = b"k",
    value: bytes = b"value",
) -> Path:
    """Write partition t-0, in use or set aside, of one log with a batch for each offset."""
    path = folder / (f"t-0.{STATE}-{state}" if state else "t-0")
    path.mkdir()
    found = [batch(one, key=key, value=value) for one in offsets]
    (path / name(base, ".log")).write_bytes(b"".join(found))
    return path


def told(*paths: Path) -> dict[str, Finding]:
    """Return the findings of the law by their paths, of one call with all paths."""
    return {
        one.path: one
        for path in paths
        for one in verify(
            path, laws=["DISK-41"], beside=partition_places(two for two in paths if two != path)
        )
        if one.law == "DISK-41"
    }


@pytest.mark.parametrize("begun", [[], range(3)])
@pytest.mark.parametrize("has_id", [True, False])
def test_a_stray_folder_with_the_only_records(
    tmp_path: Path, begun: Iterable[int], *, has_id: bool
) -> None:
    """Both were "sound", with the hint to do nothing: the partition had begun again."""
    broker = data(tmp_path / "data")
    aside, used = logs(broker, "stray", range(9)), logs(broker, "", begun, value=b"new")
    write_id(used, 1)
    if has_id:
        write_id(aside, 1)
    summaries: list[Summary] = []
    found = {one.path: one for one in verify(broker, on_summary=summaries.append)
             if one.law == "DISK-41"}  # fmt: skip
    assert set(found) == {str(aside), str(used)}
    for one in found.values():
        assert one.severity is Severity.WARNING
        assert "offsets 0 to 8" in one.message
        assert one.hint is not None
        assert f"cp -an {aside} " in one.hint
    verdicts = {one.path: one.verdict for one in summaries}
    assert verdicts[str(aside)] is verdicts[str(used)] is Verdict.READABLE_WITH_DEFECTS


def write_id(folder: Path, number: int) -> None:
    """Give a partition's folder a topic id."""
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 20}{number}Q")


def test_a_stray_folder_of_records_that_differ(tmp_path: Path) -> None:
    """The partition began again, and has all of its offsets by now: other records."""
    broker = data(tmp_path / "data")
    aside, used = logs(broker, "stray", range(5)), logs(broker, "", range(9), value=b"new")
    assert {one.severity for one in told(broker).values()} == {Severity.WARNING}
    assert set(told(broker)) == {str(aside), str(used)}


def one_log(folder: Path) -> Path:
    """Return the path of the only log of a folder."""
    return folder / name(0, ".log")


def _cut(folder: Path) -> None:
    log = one_log(folder)
    log.write_bytes(log.read_bytes()[: 5 * len(batch(0, key=b"k"))])


def _no_log(folder: Path) -> None:
    one_log(folder).unlink()


def _damaged(folder: Path) -> None:
    log = one_log(folder)
    size = len(batch(0, key=b"k"))
    old = log.read_bytes()
    log.write_bytes(old[: 4 * size] + bytes(size) + old[5 * size :])


@pytest.mark.parametrize("damage", [_cut, _no_log, _damaged])
@pytest.mark.parametrize("is_second_known", [True, False])
def test_a_future_copy_has_what_its_source_lost(
    tmp_path: Path, damage: Callable[[Path], None], *, is_second_known: bool
) -> None:
    """Its next start cuts the copy to what is left; both were "sound", and nothing to do."""
    one, two = data(tmp_path / "a"), data(tmp_path / "b", "b")
    used, copy = logs(one, "", range(9)), logs(two, "future", range(9))
    damage(used)
    if not is_second_known:
        (two / "meta.properties").unlink()
    found = told(one, two)
    assert set(found) == {str(used), str(copy)}
    for each in found.values():
        assert each.severity is Severity.WARNING
        assert each.hint is not None
        assert "before the broker starts again" in each.hint
        assert f"cp -an {copy} " in each.hint
    assert found[str(used)].actual == str(copy)
    is_cut = "cuts the copy" in found[str(copy)].message
    assert is_cut is (damage is not _damaged)
    assert set(told(two)) == {str(copy)}
    assert told(two)[str(copy)].severity is Severity.NOTE


def test_the_printed_call_shows_the_finding_again(tmp_path: Path, capsys: Capsys) -> None:
    """It gives both folders: one alone shows nothing."""
    one, two = data(tmp_path / "a"), data(tmp_path / "b", "b")
    logs(one, "", range(3))
    logs(two, "future", range(9))
    for found in told(one, two).values():
        assert found.reproduce is not None
        assert cli.run(found.reproduce.split()[1:]) == 1
        assert "0 errors, 2 warnings" in capsys.readouterr().err


def test_a_future_copy_alone_is_no_word_of_nothing_to_do(tmp_path: Path) -> None:
    """The other disk may be dead: this copy is the only one then."""
    broker = data(tmp_path / "b")
    copy = logs(broker, "future", range(9))
    (one,) = verify(broker, laws=["DISK-41"])
    assert (one.path, one.severity) == (str(copy), Severity.NOTE)
    assert "the partition itself is not in what was verified" in one.message
    assert one.hint is not None
    assert not one.hint.startswith("nothing")
    assert [str(copy)] == [two.path for two in verify(copy, laws=["DISK-41"])]


QUIET: dict[str, tuple[str, Iterable[int], int, Iterable[int], int]] = {
    "a copy that is behind": ("future", range(4), 0, range(9), 0),
    "a copy that has all": ("future", range(9), 0, range(9), 0),
    "a copy that has nothing": ("future", [], 0, range(9), 0),
    "retention removed the beginning": ("future", range(6), 0, range(4, 9), 4),
    "retention removed all": ("future", range(6), 0, [], 9),
    "compaction removed some": ("future", range(9), 0, (0, 3, 8), 0),
    "a stray of a replica that came back": ("stray", range(4), 0, range(9), 0),
}


@pytest.mark.parametrize("case", QUIET)
def test_healthy_copies_stay_notes(tmp_path: Path, case: str) -> None:
    """A copy that is behind has nothing that the partition lost."""
    state, copied, base, kept, begin = QUIET[case]
    one, two = data(tmp_path / "a"), data(tmp_path / "b", "b")
    logs(one, "", kept, begin)
    copy = logs(two, state, copied, base)
    (found,) = told(one, two).values()
    assert (found.path, found.severity) == (str(copy), Severity.NOTE)
    has_all = set(copied) <= set(kept)
    assert has_all is (found.hint or "").startswith("nothing: ")


def test_records_without_a_key_exclude_compaction(tmp_path: Path) -> None:
    """After such a record in the partition, no batch was compacted away."""
    broker = data(tmp_path / "data")
    logs(broker, "", (0, 1, 8), key=None)
    logs(broker, "future", range(9), key=None)
    assert {one.severity for one in told(broker).values()} == {Severity.WARNING}


SEGMENTS = {0: range(3), 3: range(3, 6), 6: range(6, 9)}
"""The offsets of each segment of a partition, by its base."""


def segments(
    folder: Path,
    *bases: int,
    epochs: int | None = 0,
    topic: int | None = 1,
    has_keys: bool = True,
) -> Path:
    """Write some segments, the checkpoint of leader epochs, and the topic's id."""
    folder.mkdir()
    for base in bases:
        data = b"".join(batch(one, key=b"%d" % one if has_keys else None) for one in SEGMENTS[base])
        (folder / name(base, ".log")).write_bytes(data)
    if epochs is not None:
        (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {epochs}\n")
    if topic is not None:
        write_id(folder, topic)
    return folder


LOST: dict[str, tuple[tuple[int, ...], tuple[int, ...], str, bool]] = {
    "one in the middle, without keys": ((0, 6), (0, 3, 6), "3 to 5", False),
    "the last one": ((0, 3), (0, 3, 6), "6 to 8", True),
    "the last one, without keys": ((0, 3), (0, 3, 6), "6 to 8", False),
    "one in the middle, after which the folder ends": ((0, 6), (0, 3), "3 to 5", False),
}


@pytest.mark.checks("DISK-41", "DISK-63")
@pytest.mark.parametrize(("state", "case"), paired(["stray", "future", "delete"], LOST))
def test_a_lost_segment_that_a_folder_has(
    tmp_path: Path, case: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a note with "nothing, if retention or compaction removed them", and both sound."""
    kept, aside, offsets, has_keys = LOST[case]
    broker = data(tmp_path / "it's data")
    used = segments(broker / "t-0", *kept, has_keys=has_keys)
    folder = segments(broker / f"t-0.{STATE}-{state}", *aside, has_keys=has_keys)
    found = told(broker)
    assert set(found) == {str(folder), str(used)}
    for one in found.values():
        assert one.severity is Severity.WARNING
        assert f"of the offsets {offsets}" in one.message
        assert str(folder) in one.message + one.path
    _follow(broker, tmp_path / "here", monkeypatch)
    salvaged = {one.directory: one for one in salvage(broker, tmp_path / "out")}
    assert not salvaged[str(used)].is_whole
    assert any(str(folder) in one for one in salvaged[str(used)].doubts)


def _follow(broker: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the commands of the hint, which join both in a copy."""
    here.mkdir()
    monkeypatch.chdir(here)
    hints = {one.hint for one in told(broker).values()}
    assert len(hints) == 1
    for command in split_commands(hints.pop())[1]:
        subprocess.run(["bash", "-ec", command.replace("segproof", "true")], check=True)
    (joined,) = Path("joined").glob("*/t-0")
    assert [name(base, ".log") for base in SEGMENTS] == sorted(
        path.name for path in joined.glob("*.log")
    )
    assert not lost(joined)


def lost(path: Path) -> int:
    """Return how many offsets a path has lost, as its summaries say."""
    _, summaries = verified(path)
    return sum(one.lost_offsets or 0 for one in summaries)


@pytest.mark.checks("DISK-63")
def test_a_gap_names_the_folder_that_fills_it(tmp_path: Path) -> None:
    """DISK-63 said "up to 3 offsets", and not that a folder beside has them."""
    broker = data(tmp_path / "data")
    used = segments(broker / "t-0", 0, 6)
    folder = segments(broker / f"t-0.{STATE}-stray", 0, 3, 6)
    other = segments(broker / f"t-0.1{STATE[1:]}-stray", 0, 3, 6, topic=2)
    for path in (broker, used):
        (one,) = (each for each in verify(path) if each.law == "DISK-63")
        assert one.severity is Severity.NOTE
        assert f"{folder} has the offsets 3 to 5 of them" in one.message
        assert str(other) not in one.message
        assert "DISK-41" in one.hint
    (saved,) = salvage(used, tmp_path / "out")
    assert not saved.is_whole
    assert any(f"{folder} has the offsets 3 to 5" in one for one in saved.doubts)


def _link_away(log: Path) -> None:
    elsewhere = log.parent.parent.parent / "another disk.log"
    log.rename(elsewhere)
    log.symlink_to(elsewhere)


def _delete(log: Path) -> None:
    log.rename(log.with_name(f"{log.name}.deleted"))


@pytest.mark.checks("DISK-41", "DISK-63")
@pytest.mark.parametrize("hide", [_link_away, _delete])
def test_a_log_that_was_not_read_is_no_word_of_nothing_to_do(
    tmp_path: Path, hide: Callable[[Path], None]
) -> None:
    """The partition had "every sound batch of it", and the folder the only copy of three."""
    broker = data(tmp_path / "data")
    used = segments(broker / "t-0", 0, 6)
    folder = segments(broker / f"t-0.{STATE}-stray", 0, 3, 6)
    hide(folder / name(3, ".log"))
    (one,) = told(broker).values()
    assert (one.path, one.severity) == (str(folder), Severity.NOTE)
    assert "every sound batch that was read of it, and 1 log of it was not read" in one.message
    assert name(3, ".log") in one.message
    assert "damage" not in one.message
    assert one.hint is not None
    assert not one.hint.startswith("nothing")
    (gap,) = (each for each in verify(used) if each.law == "DISK-63")
    assert f"{folder} has {name(3, '.log')}" in gap.message
    assert "which was not read and may have them" in gap.message


HEALTHY: dict[str, tuple[str, int | None, int | None]] = {
    "retention moved the epochs too": ("stray", 3, 1),
    "a replica that came back from a later start": ("delete", 3, 1),
    "a copy on its way, without a checkpoint": ("future", None, 1),
    "a copy on its way, and retention": ("future", 3, 1),
    "the former topic, which is deleted": ("delete", 0, 2),
    "a deleted folder without an id": ("delete", 0, None),
}


@pytest.mark.parametrize("case", HEALTHY)
def test_a_later_start_that_retention_explains(tmp_path: Path, case: str) -> None:
    """Retention moves the first leader epoch to the start of the log."""
    state, epochs, topic = HEALTHY[case]
    broker = data(tmp_path / "data")
    segments(broker / "t-0", 3, 6, epochs=epochs)
    folder = segments(broker / f"t-0.{STATE}-{state}", 0, 3, 6, topic=topic)
    found = told(broker)
    assert {str(folder)} >= set(found)
    assert {Severity.NOTE} >= {one.severity for one in found.values()}
    assert (state == "delete") is not bool(found)


THINNED: dict[str, tuple[dict[int, Iterable[int]], bool]] = {
    "a segment with one batch left": ({0: range(3), 3: (4,), 6: range(6, 9)}, False),
    "a superseded segment, merged away": ({0: range(3), 6: range(6, 9)}, False),
    "a superseded segment, and the cleaner's checkpoint": ({0: range(3), 6: range(6, 9)}, True),
    "two segments merged into one": ({0: (0, 1, 2, 7), 8: (8,)}, True),
    "all but the last batch of the active log": ({0: (), 8: (8,)}, True),
    "all, before an active log without a batch": ({0: (), 9: ()}, True),
}


@pytest.mark.checks("DISK-41", "DISK-63")
@pytest.mark.parametrize(("state", "case"), paired(["stray", "future", "delete"], THINNED))
def test_what_compaction_takes_is_no_loss(tmp_path: Path, case: str, state: str) -> None:
    """A segment whose keys are all written again goes as a whole: it was a warning, and lost."""
    kept, is_told = THINNED[case]
    broker = data(tmp_path / "data")
    used = segments(broker / "t-0")
    for base, offsets in kept.items():
        found = [batch(one, key=b"%d" % one) for one in offsets]
        (used / name(base, ".log")).write_bytes(b"".join(found))
    if is_told:
        (broker / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 8\n")
    folder = segments(broker / f"t-0.{STATE}-{state}", 0, 3, 6)
    _is_open(broker, used, folder, tmp_path / "out", has_doubt=not is_told)


STARTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int | None]] = {
    "local retention, after an upload": ((6,), (0, 3, 6), 0),
    "the same, of one segment": ((3, 6), (0, 3, 6), 0),
    "the same, from a later start of the whole log": ((6,), (0, 3, 6), 2),
    "a folder that ends before": ((6,), (0, 3), 0),
    "no checkpoint of epochs": ((3, 6), (0, 3, 6), None),
}


@pytest.mark.parametrize(("state", "case"), paired(["stray", "delete"], STARTS))
def test_a_later_start_is_no_proof_of_a_loss(
    tmp_path: Path, case: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epochs of a topic in remote storage begin before its local logs: it was "lost"."""
    kept, aside, epochs = STARTS[case]
    broker = data(tmp_path / "it's data")
    used = segments(broker / "t-0", *kept, epochs=epochs, has_keys=False)
    folder = segments(broker / f"t-0.{STATE}-{state}", *aside, has_keys=False)
    _is_open(broker, used, folder, tmp_path / "out", has_doubt=False)
    assert "remote storage" in told(broker)[str(folder)].message
    _follow(broker, tmp_path / "here", monkeypatch)


def _is_open(broker: Path, used: Path, folder: Path, out: Path, *, has_doubt: bool) -> None:
    """Assert that nothing says for sure that a partition lost what a folder has."""
    aside = out.with_name(folder.name)
    folder.rename(aside)
    gaps = {one.path: one.severity for one in verify(broker) if one.law == "DISK-63"}
    aside.rename(folder)
    found = [one for one in verify(broker) if one.law in {"DISK-41", "DISK-63"}]
    assert {one.path: one.severity for one in found} == {**gaps, str(folder): Severity.NOTE}
    for one in found:
        assert one.hint is not None
        assert one.hint.startswith(("nothing, if ", "look at cleanup.policy"))
        words = one.message
        for open_word in ("or they are lost", "are lost is not known", "lost, unless the topic"):
            words = words.replace(open_word, "")
        assert not any(sure in words for sure in ("lost", "No consumer", "no retention"))
    (saved,) = salvage(used, out)
    assert bool(saved.doubts) <= has_doubt
    assert all("compaction took them, or they are lost" in one for one in saved.doubts)


def test_folders_are_read_once_for_all_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were read again for each gap: 200 gaps took 104 seconds."""
    broker = data(tmp_path / "data")
    used, aside = broker / "t-0", broker / f"t-0.{STATE}-stray"
    for folder, kept in ((used, 5), (aside, 10)):
        folder.mkdir()
        for base in range(0, 50, 10):
            log = b"".join(batch(one, key=b"k") for one in range(base, base + kept))
            (folder / name(base, ".log")).write_bytes(log)
        write_id(folder, 1)
    read = count_extents(monkeypatch, held_beside)
    found = [one for one in verify(used) if one.law == "DISK-63"]
    assert len(found) == 4
    assert all(str(aside) in one.message for one in found)
    assert sorted(read.paths) == [str(used), str(aside)]


def test_a_stray_folder_of_another_generation_is_a_note(tmp_path: Path) -> None:
    """The topic was deleted and made again: its former records are no loss."""
    broker = data(tmp_path / "data")
    aside, used = logs(broker, "stray", range(9)), logs(broker, "", range(3))
    write_id(aside, 1)
    write_id(used, 2)
    (found,) = told(broker).values()
    assert (found.path, found.severity) == (str(aside), Severity.NOTE)
    assert "two generations" in found.message
    assert found.hint is not None
    assert found.hint.startswith("nothing, if the topic was deleted")


def test_a_stray_folder_alone_and_one_of_another_broker(tmp_path: Path) -> None:
    """The partition of another broker is no measure of what is set aside here."""
    one, two = data(tmp_path / "a"), data(tmp_path / "b", "b", node=2)
    aside = logs(one, "stray", range(9))
    logs(two, "", range(3))
    (found,) = told(one, two).values()
    assert (found.path, found.severity) == (str(aside), Severity.NOTE)
    assert found.hint is not None
    assert found.hint.startswith("nothing: ")


def test_a_folder_that_is_deleted_is_not_compared(tmp_path: Path) -> None:
    """It goes, and its partition may begin again."""
    broker = data(tmp_path / "data")
    logs(broker, "delete", range(9))
    logs(broker, "", range(3))
    assert not told(broker)


def test_so_many_batches_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more, a note says so, and its hint is to compare."""
    monkeypatch.setattr("segproof.inventory.folder_extents.BATCHES_MAX", 3)
    broker = data(tmp_path / "data")
    logs(broker, "", range(3))
    logs(broker, "future", range(9))
    (found,) = told(broker).values()
    assert found.severity is Severity.NOTE
    assert "too many batches" in found.message


def _compared(path: Path) -> None:
    """Compare all folders below a path, and do nothing else."""
    files = RealFiles()
    own = places_below(str(path), files)
    report_aside(own, [], files, Reporter(Wanted()), KnownOffsets())
    report_across(own, [], files, Reporter(Wanted()))


def _pairs(broker: Path, count: int, log: bytes, state: str) -> Path:
    """Write so many partitions, each with a folder that is set aside, of one log each."""
    data(broker)
    for number in range(count):
        for ending in ("", f".{STATE}-{state}"):
            folder = broker / f"t-{number}{ending}"
            folder.mkdir()
            (folder / name(0, ".log")).write_bytes(log)
    return broker


def test_memory_does_not_grow_with_the_pairs(tmp_path: Path) -> None:
    """What each folder has was kept to the end: 30 pairs took twice the memory of 2."""
    log = b"".join(batch(one) for one in range(300))
    peaks = []
    for count in (1, 2, 30):
        files = RealFiles()
        broker = _pairs(tmp_path / str(count), count, log, "stray")
        own = places_below(str(broker), files)
        reporter = Reporter(Wanted())
        gc.collect()
        tracemalloc.start()
        report_aside(own, [], files, reporter, KnownOffsets())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    _, two, thirty = peaks
    assert thirty < two + (1 << 19)


@pytest.mark.parametrize(
    ("state", "directories"), [("stray", ["a"]), ("future", ["a"]), ("delete", ["a", "b"])]
)
def test_an_extent_is_forgotten_after_its_pair(
    tmp_path: Path, state: str, directories: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each folder is read once, also those of a partition that two directories have."""
    for one in directories:
        _pairs(tmp_path / one, 4, batch(0), state)
    read = count_extents(monkeypatch, folder_extents)
    _compared(tmp_path)
    assert len(read.paths) == len(set(read.paths)) == 8
    assert read.most_kept == 2


def test_copies_of_one_partition_read_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But with a -future copy it is read after that one, as a broker may append to both."""
    broker = data(tmp_path / "data")
    used = logs(broker, "", range(3))
    for number in range(3):
        (broker / f"t-0.{number}{STATE[1:]}-stray").mkdir()
    read = count_extents(monkeypatch, folder_extents)
    _compared(broker)
    assert read.paths.count(str(used)) == 1
    assert read.most_kept == 2
    copy = logs(broker, "future", range(3))
    read.paths.clear()
    _compared(broker)
    assert read.paths[read.paths.index(str(copy)) + 1] == str(used)
