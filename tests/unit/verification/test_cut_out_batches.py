# SPDX-License-Identifier: Apache-2.0
"""Batches that are gone from the middle of a log, where only its indexes tell of them."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Summary, Verdict
from segproof.kafka.batch_table import read_batch_headers
from segproof.repair import rebuild, salvage
from segproof.verification import verify
from segproof.verifying import cut_out_checks
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_model.laws.kafka.format.index_of_log import no_batches_are_cut_out
from segproof_tests.partition_files import (
    copied_partition,
    in_memory,
    keyless_partition,
    looked_at,
    name_of,
)
from segproof_tests.small_logs import batch

INDEXES = (".index", ".timeindex")
Rows = list[tuple[int, int, int, int]]
"""Of each batch: where it begins and ends, its first and its last offset."""


def rows_of(log: bytes) -> Rows:
    """Return the batches of a log, as their headers say."""
    table = read_batch_headers(log).table
    ends = table["position"] + table["size_bytes"]
    columns = table["position"], ends, table["base_offset"], table["last_offset"]
    return [tuple(row) for row in np.stack(columns, axis=1).tolist()]


def cut(log: bytes, *numbers: int) -> tuple[bytes, int]:
    """Return a log without some batches, and how many offsets these have."""
    rows = rows_of(log)
    left = [log[one[0] : one[1]] for at, one in enumerate(rows) if at not in numbers]
    return b"".join(left), sum(rows[at][3] - rows[at][2] + 1 for at in numbers)


def in_memory_with(scenario: str, base: int, **files: bytes) -> tuple[Summary, list[str]]:
    """Return what is told of a closed segment of a scenario, with other content of some files."""
    (folder,) = (path.parent for path in (KAFKA / scenario).rglob(name_of(base, ".log")))
    images = {name_of(base, one): (folder / name_of(base, one)).read_bytes() for one in INDEXES}
    images[name_of(base, ".log")] = (folder / name_of(base, ".log")).read_bytes()
    images |= {name_of(base, f".{suffix}"): data for suffix, data in files.items()}
    after = min(int(path.name[:20]) for path in folder.glob("*.log") if int(path.name[:20]) > base)
    told: list[Summary] = []
    found = list(
        verify(
            "/t-0", files=in_memory({**images, name_of(after, ".log"): b""}, "/t-0"),
            on_summary=told.append,
        )
    )  # fmt: skip
    return told[0], [one.law for one in found]


@pytest.mark.checks("DISK-70")
@pytest.mark.parametrize(("most", "is_told"), [(1, False), (1 << 21, True)])
def test_a_log_of_very_many_batches_is_not_judged(
    most: int, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batches would not fit into memory; each wrong entry is told all the same."""
    monkeypatch.setattr(cut_out_checks, "BATCHES_MAX", most)
    (folder,) = (path.parent for path in (KAFKA / "plain").rglob(name_of(252, ".log")))
    log, _ = cut((folder / name_of(252, ".log")).read_bytes(), 6)
    _, laws = in_memory_with("plain", 252, log=log)
    assert is_told == ("DISK-70" in laws)
    assert "SEG-7" in laws


@pytest.mark.checks("DISK-70", "SEG-7", "DISK-9")
@pytest.mark.parametrize("number", [1, 3, 7, 10])
def test_a_batch_of_a_closed_log_is_gone(number: int, tmp_path: Path) -> None:
    """It was "index damage only"; a rebuild removed the proof, and a salvage kept "everything"."""
    folder = keyless_partition("plain", tmp_path, 252)
    log = folder / name_of(252, ".log")
    _, _, first, last = rows_of(log.read_bytes())[number]
    data, lost = cut(log.read_bytes(), number)
    log.write_bytes(data)
    summary, found = looked_at(folder)
    assert (summary.verdict, summary.lost_offsets) == (Verdict.READABLE_WITH_GAPS, lost)
    (one,) = (one for one in found if one.law == "DISK-70")
    assert f"the offsets {first} to {last}" in one.message
    of_indexes = [one for one in found if one.law in ("SEG-7", "DISK-9")]
    assert of_indexes
    assert not any("rebuild" in one.hint for one in of_indexes)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for all_files in (False, True):
        done = rebuild(folder, in_place=True, all_files=all_files)
        assert ["DISK-70"] == [one.law for one in done.findings]
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (saved.is_whole, saved.lost_offsets, saved.are_more_lost) == (False, lost, False)
    (gap,) = saved.gaps
    assert (gap.first_lost_offset, gap.last_lost_offset) == (first, last)


@pytest.mark.checks("DISK-70")
@pytest.mark.parametrize("scenario", ["plain", "txn-a", "unclean-before"])
def test_each_loss_of_a_drawn_batch_is_counted(scenario: str) -> None:
    """One, two or three batches are gone, side by side or apart, from a log that had no gap."""
    base = {"plain": 252, "txn-a": 0, "unclean-before": 1080}[scenario]
    (path,) = (KAFKA / scenario).rglob(name_of(base, ".log"))
    log, random = path.read_bytes(), Random(70)
    rows = rows_of(log)
    told = 0
    for _ in range(8):
        begin = random.randrange(1, len(rows) - 8)
        gone = sorted({begin, begin + random.choice((0, 1)), begin + random.choice((0, 4))})
        data, lost = cut(log, *gone)
        summary, laws = in_memory_with(scenario, base, log=data)
        assert summary.lost_offsets in (0, None, lost)
        assert summary.lost_at_least <= lost
        told += "DISK-70" in laws and summary.verdict is Verdict.READABLE_WITH_GAPS
    assert told >= 7


@pytest.mark.checks("DISK-70")
def test_beside_a_damaged_batch(tmp_path: Path) -> None:
    """Neither hides the other, and each offset counts once."""
    folder = keyless_partition("plain", tmp_path, 252)
    log = folder / name_of(252, ".log")
    data, lost = cut(log.read_bytes(), 3)
    rows = rows_of(data)
    for number in (7, 8):
        damaged = bytearray(data)
        damaged[rows[number][0] + 70] ^= 4
        log.write_bytes(damaged)
        all_lost = lost + rows[number][3] - rows[number][2] + 1
        assert looked_at(folder)[0].lost_offsets == all_lost
        (saved,) = salvage(folder, tmp_path / f"saved{number}")
        assert saved.lost_offsets == all_lost


@pytest.mark.checks("DISK-70", "DISK-63")
def test_in_a_compacted_log_the_number_is_a_bound(tmp_path: Path) -> None:
    """Some of the offsets in the gap may have been compacted away."""
    folder = copied_partition("compacted", tmp_path)
    log = folder / name_of(0, ".log")
    data, lost = cut(log.read_bytes(), 20)
    log.write_bytes(data)
    summary, found = looked_at(folder)
    assert summary.verdict is Verdict.READABLE_WITH_GAPS
    assert (summary.lost_offsets, summary.lost_at_least) == (None, 0)
    assert summary.unproven_offsets >= lost
    assert "up to" in next(one.message for one in found if one.law == "DISK-70")
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (saved.lost_offsets, saved.are_more_lost) == (0, False)
    assert saved.unproven_offsets == summary.unproven_offsets


@pytest.mark.checks("DISK-70")
@pytest.mark.parametrize("number", [1, 7])
def test_a_cut_beside_a_lawful_gap_is_bounded(number: int, tmp_path: Path) -> None:
    """Compacted offsets beside the cut were told as lost, and the number as exact."""
    folder = copied_partition("plain", tmp_path)
    log = folder / name_of(252, ".log")
    lawful, compacted = cut(log.read_bytes(), number)
    log.write_bytes(lawful)
    assert rebuild(folder, in_place=True).findings
    for suffix in INDEXES:
        log.with_suffix(suffix).unlink()
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    checkpoint.write_text("0\n1\nplain 0 420\n")
    assert not rebuild(folder, in_place=True).findings  # as the cleaner makes them
    assert looked_at(folder)[0].is_sound
    data, lost = cut(lawful, number, number + 1)
    log.write_bytes(data)
    summary, _ = looked_at(folder)
    assert (summary.lost_offsets, summary.lost_at_least) == (None, 0)
    assert summary.unproven_offsets == lost + compacted
    assert summary.verdict is Verdict.READABLE_WITH_GAPS


@pytest.mark.checks("DISK-70")
@pytest.mark.parametrize("suffix", INDEXES)
def test_a_copy_of_different_moments_is_no_certain_loss(suffix: str, tmp_path: Path) -> None:
    """An index was copied, then the cleaner replaced the log, then the log was copied."""
    folder = copied_partition("plain", tmp_path)
    log = folder / name_of(252, ".log")
    old = log.with_suffix(suffix).read_bytes()
    data, taken = cut(log.read_bytes(), 3, 4, 5, 6)
    log.write_bytes(data)
    for one in INDEXES:
        log.with_suffix(one).unlink()
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nplain 0 420\n")
    assert not rebuild(folder, in_place=True).findings
    log.with_suffix(suffix).write_bytes(old)
    summary, found = looked_at(folder)
    assert (summary.lost_offsets, summary.lost_at_least) == (None, 0)
    assert summary.unproven_offsets == taken
    assert "running broker" in next(one.hint for one in found if one.law == "DISK-70")


@pytest.mark.checks("DISK-70")
@pytest.mark.parametrize("scenario", ["compacted", "v1-gzip"])
def test_one_wrong_entry_is_no_loss(scenario: str) -> None:
    """The log lacks offsets lawfully, and one field of an index has a wrong bit or is other."""
    base = {"compacted": 0, "v1-gzip": 1000}[scenario]
    (path,) = (KAFKA / scenario).rglob(name_of(base, ".log"))
    random = Random(71)
    for suffix in INDEXES * 12:
        data = bytearray(path.with_suffix(suffix).read_bytes().rstrip(b"\0"))
        data[random.randrange(len(data))] ^= random.choice((1, 2, 4, 8, 16, 255))
        data += bytes(-len(data) % (8 if suffix == ".index" else 12))
        summary, laws = in_memory_with(scenario, base, **{suffix[1:]: bytes(data)})
        assert "DISK-70" not in laws
        assert summary.lost_at_least == 0


@st.composite
def segments(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Draw a log that lacks batches, and indexes of it with them, or wrong, of several appends."""
    log, whole = b"", 0
    positions, stamps = [], []
    begin = 0
    for at in range(10):
        time = 10 * at + draw(st.sampled_from([30, 30, 30, 5]))
        one = batch(at, bytes(9 + at % 3), b"k", time=time)
        kind = draw(st.sampled_from(["kept", "kept", "kept", "kept", "gone", "gone", "bad"]))
        if draw(st.integers(0, 3)):  # the last batch of its append
            wrong = draw(st.sampled_from([0, 0, 0, 0, 1, len(one)]))
            positions.append((at, begin + wrong))
            stamps.append((time + draw(st.sampled_from([0, 0, 0, 3])), at))
            begin = whole + len(one)
        whole += len(one)
        if kind != "gone":
            log += one[:-1] + bytes([one[-1] ^ (kind == "bad")])
    return log, offset_entries(*positions), time_entries(*stamps)


@pytest.mark.checks("DISK-70")
@given(segments(), st.sampled_from([None, 10, 12]))
def test_verify_agrees_with_the_model(files: tuple[bytes, bytes, bytes], end: int | None) -> None:
    """It is reported if and only if the model's law is broken."""
    suffixes = (".log", *INDEXES)
    images = {name_of(0, suffix): data for suffix, data in zip(suffixes, files, strict=True)}
    if end is not None:
        images[name_of(end, ".log")] = b""
    found = list(verify("/t-0", files=in_memory(images, "/t-0"), laws=["DISK-70"]))
    assert no_batches_are_cut_out(*files, 0, end) == (not found)
