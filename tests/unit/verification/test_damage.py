# SPDX-License-Identifier: Apache-2.0
"""What `verify` says of damage inside of a log: which sound batches follow it, and what to do."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from segproof.checksums import crc32c
from segproof.counts import plural
from segproof.findings import Severity, Summary
from segproof.kafka import Record, write_batch
from segproof.reading import log_placement
from segproof.reading.log_placement import LogPlacement, placement_of_log
from segproof.repair import salvage
from segproof.stretches.kafka import framing
from segproof.stretches.kafka.facts import FramedLog
from segproof.verification import verify
from segproof.verifying import batch_checks
from segproof_tests.partition_files import aged, write_segment
from segproof_tests.reported_findings import verified
from segproof_tests.small_logs import batch, log_of

ZERO = "0" * 20


@pytest.mark.checks("DUMP-6", "SCAN-2", "DISK-23")
@pytest.mark.parametrize("seed", range(12))
def test_damage_before_sound_batches_is_no_torn_tail(seed: int, tmp_path: Path) -> None:
    """Where batches follow, a recovery would delete them: an error that says which is the next."""
    random = Random(seed)
    magics = [random.choice((0, 1, 2, 2)) for _ in range(9)]
    batches = [
        write_batch(
            [Record(offset, 1000 if magic else -1, None, random.randbytes(300))],
            base_offset=offset,
            magic=magic,
        )
        for offset, magic in enumerate(magics)
    ]
    bad = random.randrange(len(batches))
    damage = random.choice((b"\x7f", b"\x00\x10", b"\xff", b"\x00\x00\x00\x05"))
    field = 16 if damage == b"\xff" else 8
    own = batches[bad][:field] + damage + batches[bad][field + len(damage) :]
    folder = write_segment(tmp_path / "t-0", b"".join([*batches[:bad], own, *batches[bad + 1 :]]))
    (finding,) = (one for one in verify(folder) if one.is_defect)
    at = len(b"".join(batches[:bad]))
    assert (at, Path(finding.path).suffix) == (finding.position, ".log")
    behind = len(batches) - 1 - bad
    told = f"from byte {at + len(own)} and offset {bad + 1} on to offset 8, with"
    told += f" {plural(behind, 'record')}"
    is_last = behind == 0
    assert (told in finding.message) is not is_last
    is_proved = magics[bad] == 2 or field == 8
    lost = f"{len(own)} bytes in 1 place are lost, with 1 offset"
    assert (lost in finding.message) is not (is_last or is_proved)
    proved = "1 batch with a wrong size or magic can be saved, as the checksum proves"
    assert (proved in finding.message) is is_proved
    is_torn = is_last and not is_proved
    if finding.law == "DUMP-6":
        assert (finding.severity is Severity.WARNING) is is_torn
        assert ("nothing, if" in finding.hint) is is_torn
    assert is_torn or "lost, sound or not" in finding.hint


@pytest.mark.checks("BATCH-3", "SCAN-2")
def test_a_size_that_leads_past_the_next_batch(tmp_path: Path) -> None:
    """The scan goes on inside of a batch; that batch is the next sound one all the same."""
    batches = [batch(offset) for offset in range(4)]
    own = batches[1][:11] + bytes([batches[1][11] + 4]) + batches[1][12:]
    folder = write_segment(tmp_path / "t-0", batches[0] + own + batches[2] + batches[3])
    told = [one for one in verify(folder) if one.is_defect]
    assert ["BATCH-3", "SCAN-2"] == [one.law for one in told]
    at = len(batches[0] + own)
    for one in told:
        assert f"2 sound batches follow, from byte {at} and offset 2 on" in one.message


@pytest.mark.checks("BATCH-3", "SCAN-2")
def test_two_damages_take_one_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the log was searched behind each: now what the first search saw tells of both."""
    batches = [batch(offset) for offset in range(6)]
    starts = [len(b"".join(batches[:number])) for number in range(6)]
    batches[1] = batches[1][:-1] + b"?"
    batches[3] = batches[3][:8] + bytes(4) + batches[3][12:-1] + b"?"
    folder = write_segment(tmp_path / "t-0", b"".join(batches))
    (tmp_path / ".kafka_cleanshutdown").touch()
    searched: list[int] = []

    def noted(*log: Any, sound_to: int, **more: Any) -> LogPlacement:
        searched.append(sound_to)
        return placement_of_log(*log, sound_to=sound_to, **more)

    monkeypatch.setattr(batch_checks, "placement_of_log", noted)
    first, second = (one for one in verify(folder) if one.law in ("BATCH-3", "SCAN-2"))
    assert [starts[1], starts[3]] == [first.position, second.position]
    assert f"3 sound batches follow, from byte {starts[2]} and offset 2 on" in first.message
    assert f"2 sound batches follow, from byte {starts[4]} and offset 4 on" in second.message
    assert "in 2 places are lost, with 2 offsets" in first.message
    assert "in 1 place are lost, with 1 offset" in second.message
    assert [starts[1]] == searched


@pytest.mark.checks("BATCH-3", "DISK-13")
def test_a_batch_with_a_wrong_checksum_is_told_once(tmp_path: Path) -> None:
    """Its offset may be as wrong as its bytes, so it is not held against the batch before it."""
    far = batch(1 << 24)
    changed = batch(1)[:-1] + b"?"
    folder = write_segment(tmp_path / "t-0", far + changed)
    assert ["BATCH-3"] == [one.law for one in verify(folder) if one.is_defect]


@pytest.mark.checks("DISK-19")
def test_a_last_batch_one_bit_away_from_the_next_offset_is_doubtful(tmp_path: Path) -> None:
    """Its checksum does not cover the base offset. Any other gap may be of compaction: a note."""
    folder = tmp_path / "t-0"

    def told(*offsets: int, index: bytes = b"") -> list[Severity]:
        write_segment(folder, b"".join(map(batch, offsets)), index=index)
        found = [*verify(folder, laws=["DISK-19"])]
        is_told = ["is one bit away from" in one.message for one in found]
        assert is_told == [one.is_defect for one in found]
        return [one.severity for one in found]

    many, high, whole = range(17), 17 + (1 << 6), [Severity.NOTE]
    assert [Severity.WARNING] == told(*many, high)
    assert [Severity.WARNING] == told(*many, 17 + (1 << 30))
    assert whole == told(*many, high + 1)
    assert whole == told(*many, 17 + (1 << 5))
    assert whole == told(*many, high, high + 1)
    assert whole == told(*many[1:], high)
    assert whole == told(*many[:-1], high)
    entry = high.to_bytes(4, "big") + (17 * len(batch(0))).to_bytes(4, "big")
    assert whole == told(*many, high, index=entry)
    (folder / f"{high + 2:020d}.log").write_bytes(b"")
    assert whole == told(*many, high)


@pytest.mark.checks("DISK-19")
@pytest.mark.parametrize("bit", range(10))
def test_a_salvage_sets_a_last_batch_aside_if_verify_doubts_it(bit: int, tmp_path: Path) -> None:
    """Half of the small gaps that compaction leaves are one bit wide: a sound log once lost one."""
    log = log_of(0, 1024, key=b"k") + batch(1024 + (1 << bit), key=b"k")
    folder = write_segment(tmp_path / "t-0", log)
    is_doubted = any(one.is_defect for one in verify(folder))
    (told,) = salvage(folder, tmp_path / "out")
    assert (bit >= 6, is_doubted) == (is_doubted, told.set_aside_batches == 1)


@pytest.mark.checks("BATCH-3")
def test_a_wrong_base_offset_behind_damage_costs_no_offset(tmp_path: Path) -> None:
    """Its place states the right one; once it counted as lost, and salvage restored it."""
    log = [*map(batch, range(20))]
    log[3] = log[3][:66] + b"?" + log[3][67:]
    log[9] = log[9][:5] + b"\1" + log[9][6:]
    folder = write_segment(tmp_path / "t-0", b"".join(log))
    (finding,), summaries = verified(folder, laws=["BATCH-3"])
    assert "15 sound batches follow" in finding.message
    assert "1 batch with a wrong base offset can be saved, as its place st" in finding.message
    assert "in 1 place are lost, with 1 offset" in finding.message
    (told,) = salvage(folder, tmp_path / "out")
    assert (1, 1) == (told.lost_offsets, summaries[0].lost_offsets)


@pytest.mark.checks("BATCH-3")
def test_a_log_under_another_name_is_no_log_that_fits_nowhere(tmp_path: Path) -> None:
    """Most of its batches lie after the next name: one of the names is wrong."""
    log = [*map(batch, range(40, 60))]
    log[3] = log[3][:66] + b"?" + log[3][67:]
    folder = write_segment(tmp_path / "t-0", b"".join(log))
    (folder / f"{30:020d}.log").write_bytes(batch(30))
    (finding,) = verify(folder, laws=["BATCH-3"])
    assert "16 sound batches follow" in finding.message
    assert "fit nowhere" not in finding.message


@pytest.mark.checks("DISK-18")
def test_records_that_do_not_inflate_have_a_hint_to_act_on(tmp_path: Path) -> None:
    """The hint of the reader is the cause alone; what to do follows."""
    bad = bytearray(batch(0))
    bad[22] = 1
    bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
    (finding,) = (one for one in verify(write_segment(tmp_path / "t-0", bytes(bad)), deep=True)
                  if one.law == "DISK-18")  # fmt: skip
    assert "codec bits are wrong; its checksum is right, so a producer" in finding.hint


@pytest.mark.checks("DUMP-6")
def test_a_batch_within_a_value_does_not_follow(tmp_path: Path) -> None:
    """A topic that keeps copies of batches may end in a torn one: a torn tail all the same."""
    outer = batch(7, batch(0) * 3)
    before = log_of(0, 7)
    (finding,) = verify(write_segment(tmp_path / "t-0", before + outer[:-1]))
    assert ("DUMP-6", Severity.WARNING) == (finding.law, finding.severity)


@pytest.mark.checks("DUMP-6")
def test_misplaced_batches_behind_a_wrong_size_make_no_torn_tail(tmp_path: Path) -> None:
    """A block of elsewhere lies there: its records may be in no other place."""
    wrong = batch(5)[:8] + b"\0\0\1" + batch(5)[11:66] + b"?" + batch(5)[67:]
    log = [*map(batch, range(5)), wrong, batch(2), batch(3)]
    folder = write_segment(tmp_path / "t-0", b"".join(log))
    (finding,) = verify(folder)
    assert ("DUMP-6", Severity.ERROR) == (finding.law, finding.severity)
    assert "2 batches with a right checksum fit nowhere: a recovery would delete" in finding.message
    assert f"{len(wrong)} bytes in 1 place are lost, with an unknown number of" in finding.message
    assert "nothing, if" not in finding.hint
    (told,) = salvage(folder, tmp_path / "out")
    assert (5, 2) == (told.batches, told.set_aside_batches)


@pytest.mark.checks("DUMP-6")
def test_a_search_that_gives_up_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no hint leaves the log to a recovery, which might delete what was not found."""
    monkeypatch.setattr(framing, "WORK_BYTES", 0)
    monkeypatch.setattr(framing, "WORK_BYTES_OF_A_BYTE", 0)
    large = batch(1, bytes(2000))
    bad = large[:8] + b"\x7f" + large[9:]
    folder = write_segment(tmp_path / "t-0", batch(0) + bad + batch(2))
    (finding,) = verify(folder)
    assert ("DUMP-6", Severity.ERROR) == (finding.law, finding.severity)
    assert "whether sound batches follow" in finding.message
    assert "nothing, if" not in finding.hint


def test_a_damaged_log_at_rest_is_framed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the second look at the last segment nor the count of lost offsets does it again."""
    sources, frame_log = list[framing.LogSource](), framing.frame_log

    def counted(file: Any, source: framing.LogSource, *more: Any) -> FramedLog:
        sources.append(source)
        return frame_log(file, source, *more)

    for module in (framing, log_placement):
        monkeypatch.setattr(module, "frame_log", counted)
    batches = [bytearray(batch(offset)) for offset in range(6)]
    batches[2][-1] ^= 1
    folder = aged(write_segment(tmp_path / "t-0", b"".join(batches)))
    told = list[Summary]()
    assert ["BATCH-3"] == [one.law for one in verify(folder, on_summary=told.append)]
    assert [1] == [one.lost_offsets for one in told]
    assert [len(b"".join(batches[:2]))] == [one.sound_to for one in sources]
