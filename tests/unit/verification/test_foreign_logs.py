# SPDX-License-Identifier: Apache-2.0
"""Logs of other topics and segments that were put over a log of a partition."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Severity, Verdict
from segproof.repair import rebuild, salvage
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_model.laws.kafka.format.index_of_log import log_is_that_of_its_indexes
from segproof_tests.partition_files import copied_partition, in_memory, looked_at, name_of
from segproof_tests.small_logs import batch, log_of

INDEXES = (".index", ".timeindex")


def log_in(scenario: str, base: int = 0) -> bytes:
    """Return a log of another topic."""
    (path,) = (KAFKA / scenario).rglob(name_of(base, ".log"))
    return path.read_bytes()


FOREIGN = {
    "a log of another topic over the first one": ("plain", 0, log_in("txn-a"), 60),
    "over one in the middle": ("plain", 517, log_in("txn-a"), 85),
    "its offsets are below the name": ("plain", 517, log_in("unclean-before"), 85),
    "its offsets are above the name": ("plain", 252, log_in("compacted", 5235), 90),
    "a log with other offsets of the same topic": ("plain", 342, log_in("plain", 602), 78),
    "a log of magic 1": ("plain", 162, log_in("v1-gzip", 1000), 90),
    "over a compacted one": ("compacted", 0, log_in("plain", 60), 4104),
}
"""Scenario, base offset, what lies there, and how many offsets are in no log any more."""


@pytest.mark.checks("DISK-69", "SEG-7", "DISK-9")
@pytest.mark.parametrize("name", FOREIGN)
def test_a_log_of_another_segment_is_a_loss(name: str, tmp_path: Path) -> None:
    """`verify` counts what is gone, `rebuild` keeps the proof, `salvage` sets the log aside."""
    scenario, base, log, lost = FOREIGN[name]
    folder = copied_partition(scenario, tmp_path)
    (folder / name_of(base, ".log")).write_bytes(log)
    summary, found = looked_at(folder)
    (told,) = (one for one in found if one.law == "DISK-69")
    assert told.path == str(folder / name_of(base, ".log"))
    known = (lost, 0) if scenario != "compacted" else (None, lost)
    told_lost = summary.lost_offsets, summary.unproven_offsets
    assert (Verdict.READABLE_WITH_GAPS, known) == (summary.verdict, told_lost)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for all_files in (False, True):
        done = rebuild(folder, in_place=True, all_files=all_files)
        assert {"DISK-69"} <= {one.law for one in done.findings} <= {"DISK-69", "DISK-62"}
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
    (saved,) = salvage(folder, tmp_path / "saved")
    assert not saved.is_whole
    assert (known[0] or 0, known[1]) == (saved.lost_offsets, saved.unproven_offsets)
    assert log == (tmp_path / f"saved/salvage-set-aside.{folder.name}.log").read_bytes()
    kept = (path.read_bytes() for path in (tmp_path / "saved" / folder.name).glob("*.log"))
    own = {path.name: path.read_bytes() for path in folder.glob("*.log")}
    del own[name_of(base, ".log")]
    assert sorted(own.values()) == sorted(kept)


@pytest.mark.checks("DISK-69")
def test_a_log_over_the_last_one_is_a_loss(tmp_path: Path) -> None:
    """Nothing tells where the last log ended: its index says how far it went at least."""
    folder = copied_partition("plain", tmp_path)
    (folder / name_of(693, ".log")).write_bytes(log_in("txn-a"))
    summary, found = looked_at(folder)
    assert "DISK-69" in {one.law for one in found}
    assert summary.verdict is Verdict.READABLE_WITH_GAPS
    assert summary.lost_offsets is None
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (True, summary.lost_at_least) == (saved.are_more_lost, saved.lost_offsets)
    assert saved.lost_offsets > 40
    assert rebuild(folder, in_place=True).findings


def _swap_indexes(folder: Path) -> None:
    for suffix in INDEXES:
        one, other = (folder / name_of(base, suffix) for base in (60, 162))
        data = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(data)


def _copy_indexes(folder: Path) -> None:
    for suffix in INDEXES:
        shutil.copyfile(folder / name_of(60, suffix), folder / name_of(602, suffix))


def _rot(folder: Path) -> None:
    for suffix in INDEXES:
        path = folder / name_of(162, suffix)
        data = path.read_bytes()
        path.write_bytes(bytes(byte ^ (37 * at + 11) % 256 for at, byte in enumerate(data)))


def _shift_positions(folder: Path) -> None:
    path = folder / name_of(162, ".index")
    data = bytearray(path.read_bytes())
    data[7::8] = bytes((byte + 1) % 256 for byte in data[7::8])
    path.write_bytes(data)


@pytest.mark.checks("DISK-69")
@pytest.mark.parametrize("damage", [_swap_indexes, _copy_indexes, _rot, _shift_positions])
def test_wrong_indexes_beside_the_right_log(damage: object, tmp_path: Path) -> None:
    """The log is right: only its indexes are damaged, and a rebuild makes them new."""
    folder = copied_partition("plain", tmp_path)
    assert callable(damage)
    damage(folder)
    summary, found = looked_at(folder)
    assert summary.lost_at_least == 0
    is_beyond = summary.verdict is Verdict.READABLE_WITH_DEFECTS  # entries lead beyond the log
    assert is_beyond or summary.verdict is Verdict.INDEX_DAMAGE_ONLY
    assert "DISK-69" not in {one.law for one in found}
    assert not rebuild(folder, in_place=True).findings
    assert looked_at(folder)[0].verdict is Verdict.SOUND


@pytest.mark.checks("DISK-62", "DISK-25", "DISK-69")
@pytest.mark.parametrize("names", [(252, 342), (0, 693), (60, 162), (60, 252, 517)])
def test_logs_with_wrong_names_are_no_loss(names: tuple[int, ...], tmp_path: Path) -> None:
    """Each log is there, under the name of another one: nothing is lost."""
    folder = copied_partition("plain", tmp_path)
    logs = [(folder / name_of(base, ".log")).read_bytes() for base in names]
    for base, log in zip(names, logs[1:] + logs[:1], strict=True):
        (folder / name_of(base, ".log")).write_bytes(log)
    summary, found = looked_at(folder)
    laws = {one.law for one in found}
    assert "DISK-62" in laws
    assert not laws & {"DISK-25", "DISK-69"}
    assert summary.lost_at_least == 0
    (saved,) = salvage(folder, tmp_path / "saved")
    assert saved.lost_offsets == 0
    assert saved.batches == 150


@pytest.mark.checks("DISK-25")
def test_a_cut_log_is_not_explained_by_a_copy_of_it(tmp_path: Path) -> None:
    """A copy under another name does not hide that the log has lost its end."""
    folder = copied_partition("plain", tmp_path)
    log = folder / name_of(342, ".log")
    shutil.copyfile(log, folder / name_of(602, ".log"))
    index = (folder / name_of(342, ".index")).read_bytes()
    log.write_bytes(log.read_bytes()[: int.from_bytes(index[4:8], "big")])
    assert ("DISK-25", Severity.ERROR) in {(one.law, one.severity) for one in looked_at(folder)[1]}


KINDS = ("wrong", "right", "elsewhere", "none", "wrong", "wrong", "wrong")


@pytest.mark.checks("DISK-69")
@given(
    st.lists(st.sampled_from(KINDS), min_size=12, max_size=12),
    st.lists(st.sampled_from(KINDS), min_size=12, max_size=12),
    st.sets(st.integers(0, 11), max_size=3),
    st.sampled_from([None, 12, 20]),
)
def test_verify_agrees_with_the_model(
    offsets: list[str], times: list[str], gone: set[int], following: int | None
) -> None:
    """Both count the same entries of drawn indexes, beside logs with and without gaps."""
    log, positions, stamps = b"", [], []
    for at, (offset, time) in enumerate(zip(offsets, times, strict=True)):
        place = len(log) + {"right": 0, "wrong": 1}.get(offset, 10**6 + at)
        if offset != "none":
            positions.append((at, place))
        if time != "none":
            late = 10**6 if time == "elsewhere" else 0
            stamps.append((10 * at + 10 + late + (time == "wrong"), at))
        if at not in gone:
            log += batch(at, time=10 * at + 10)
    images = {
        name_of(0, ".log"): log,
        name_of(0, ".index"): offset_entries(*positions),
        name_of(0, ".timeindex"): time_entries(*stamps),
    }
    if following is not None:
        images[name_of(following, ".log")] = b""
    index, time_index = (images[name_of(0, suffix)] for suffix in INDEXES)
    is_own = log_is_that_of_its_indexes(log, index, time_index, 0, following)
    found = list(verify("/plain-0", files=in_memory(images, "/plain-0"), laws=["DISK-69"]))
    assert is_own == (not found)


@pytest.mark.checks("DISK-69")
def test_the_draws_have_both_answers() -> None:
    """Logs that are and are not those of their indexes are among what the model judges."""
    log = log_of(0, 9, time=9)
    for shift in (0, 1):
        positions = [(at, at * (len(log) // 9) + shift) for at in range(9)]
        index, times = offset_entries(*positions), time_entries((9 + shift, 0))
        assert log_is_that_of_its_indexes(log, index, times, 0, 20) is (shift == 0)
