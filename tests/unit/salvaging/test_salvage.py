# SPDX-License-Identifier: Apache-2.0
"""What `salvage` keeps of damaged partitions: all that is sound, and a log that a broker loads."""

import errno
import shutil
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from segproof.errors import InvalidArgumentError, SegproofError
from segproof.files import REAL_FILES, File
from segproof.findings import Summary, Verdict
from segproof.kafka import Record, write_batch
from segproof.reading.unfinished import SALVAGE_MARKER
from segproof.repair import salvage
from segproof.salvaging.salvage import SalvagedPartition
from segproof.verification import verify
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.files.watched_files import WatchedFiles
from segproof_harness.machine.simulated_files import POWER_LOSS, SimulatedFiles, crashes_in
from segproof_harness.salvage_draws.kafka_reader import framed, is_sound
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.corruptions import CORRUPTIONS, Corruption
from segproof_tests.failing_files import EndingFiles
from segproof_tests.partition_files import batches_of, copied_partition, name_of, write_segment
from segproof_tests.reported_findings import state_of
from segproof_tests.small_logs import batch

LOG_CORRUPTIONS = [one for one in CORRUPTIONS if one.file.endswith(".log")]
COMPACTED = next(one for one in scenarios() if one.name == "compacted")
INDEXED = ("OFFIDX", "TIMEIDX", "TXNIDX", "SEG", "PROD", "SCAN", "DUMP", "BATCH-2", "BATCH-3")
"""Laws, by their beginnings, that nothing saved may break."""


def saved(source: Path, out: Path) -> SalvagedPartition:
    """Save a partition; check that it stays as it is."""
    before = state_of(source)
    (told,) = salvage(source, out)
    assert before == state_of(source)
    return told


def all_batches(directory: Path) -> list[bytes]:
    """Return the batches of the logs in a directory, in order; all of them can be read."""
    logs = [path.read_bytes() for path in sorted(directory.glob("*.log"))]
    batches = [batches_of(log) for log in logs]
    assert sum(map(len, logs)) == sum(len(one) for log in batches for one in log)
    return [one for log in batches for one in log]


def check_saved(original: Path, bad: Path, told: SalvagedPartition, out: Path) -> None:
    """Hold what was kept against the sound partition: nothing is lost, nothing is made up."""
    kept = all_batches(out / bad.name)
    assert all(is_sound(batch) for one in kept for batch in framed(one))
    assert (told.batches, told.bytes_kept) == (len(kept), sum(map(len, kept)))
    aside = out / f"salvage-set-aside.{bad.name}.log"
    beside = aside.read_bytes() if aside.exists() else b""
    files = b"".join(path.read_bytes() for path in sorted(bad.glob("*.log*")))
    unread = [Path(one.split(": ")[0]).read_bytes() for one in told.left_out if ".log" in one]
    known = {*kept}
    for one in all_batches(original):
        if one in files and one not in known:
            assert one in beside or any(one in data for data in unread), one[:8].hex()
    for finding in verify(out, deep=False):
        assert not (finding.is_defect and finding.law.startswith(INDEXED)), str(finding)


@pytest.mark.slow
@pytest.mark.checks("SEG-20")
@pytest.mark.parametrize("corruption", LOG_CORRUPTIONS, ids=lambda one: one.name)
def test_of_a_corrupted_partition_all_sound_batches_are_kept(
    corruption: Corruption, tmp_path: Path
) -> None:
    """For each way that a log can be wrong."""
    original = copied_partition(corruption.scenario, tmp_path / "original")
    bad = corruption.make(tmp_path / "bad")
    told = saved(bad, tmp_path / "out")
    check_saved(original, bad, told, tmp_path / "out")


def test_a_wrong_base_offset_is_restored(tmp_path: Path) -> None:
    """Exactly the offsets of the batch are missing, so its place says what they were."""
    original = copied_partition("plain", tmp_path / "original")
    corruption = next(one for one in CORRUPTIONS if one.name == "base offset, one bit")
    told = saved(corruption.make(tmp_path / "bad"), tmp_path / "out")
    assert (1, 0, 0) == (told.restored_batches, told.set_aside_batches, told.gap_count)
    assert all_batches(original) == all_batches(tmp_path / "out" / original.name)
    assert (tmp_path / "out" / original.name / "partition.metadata").exists()


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("scenario", ["plain", "txn-a"])
def test_a_wrong_base_offset_at_the_end_of_a_segment_is_restored(
    scenario: str, tmp_path: Path
) -> None:
    """The next segment says which offsets are missing."""
    original, bad = (copied_partition(scenario, tmp_path / one) for one in ("original", "bad"))
    logs = [path for path in sorted(bad.glob("*.log")) if path.stat().st_size > 100][:-1]
    for number, path in enumerate(logs):
        log = bytearray(path.read_bytes())
        log[len(log) - len(batches_of(bytes(log))[-1]) + 3 + number % 5] ^= 8
        path.write_bytes(log)
    told = saved(bad, tmp_path / "out")
    assert (len(logs), 0, True) == (told.restored_batches, told.set_aside_batches, told.is_whole)
    assert all_batches(original) == all_batches(tmp_path / "out" / bad.name)


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("place", range(8))
def test_an_old_message_with_a_wrong_base_offset_is_restored(place: int, tmp_path: Path) -> None:
    """Its lengths say where it ends, so its size is known as that of a newer batch is."""
    original, bad = (copied_partition("v1-gzip", tmp_path / one) for one in ("original", "bad"))
    path = bad / "00000000000000001000.log"
    log = bytearray(path.read_bytes())
    assert b"\0\0\0\0\0\0\5\x31" == log[22838:22846]
    log[22838 + place] ^= 64
    path.write_bytes(log)
    told = saved(bad, tmp_path / "out")
    assert (1, 0, True) == (told.restored_batches, told.set_aside_batches, told.is_whole)
    assert all_batches(original) == all_batches(tmp_path / "out" / bad.name)


@pytest.mark.checks("BATCH-3", "SEG-20")
def test_two_wrong_base_offsets_cost_no_other_segment(tmp_path: Path) -> None:
    """A name says where a segment begins, and so where the one before it ends.

    It states the offset of the first batch too, if the next one follows on that.
    """
    original, bad = (copied_partition("plain", tmp_path / one) for one in ("original", "bad"))
    first, second = sorted(bad.glob("*.log"))[:2]
    first.write_bytes(batches_of(first.read_bytes())[0])
    for path, wrong in ((first, b"\4"), (second, b"\5")):
        put_bytes(path, 5, wrong)
    told = saved(bad, tmp_path / "out")
    later = len([one for path in sorted(original.glob("*.log"))[1:] for one in
                 batches_of(path.read_bytes())])  # fmt: skip
    assert (later, 1) == (told.batches, told.set_aside_batches)
    assert all_batches(original)[-later:] == all_batches(tmp_path / "out" / bad.name)


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize(
    ("scenario", "base_offset", "first", "second"),
    [("txn-a", 1014, 10, 30), ("compacted", 4104, 1, 4), ("v1-gzip", 1000, 2, 8)],
)
def test_blocks_that_a_disk_swapped_are_moved_back(
    scenario: str, base_offset: int, first: int, second: int, tmp_path: Path
) -> None:
    """What is cut at the borders of the blocks is lost, and nothing else."""
    original, bad = (copied_partition(scenario, tmp_path / one) for one in ("original", "bad"))
    path = bad / name_of(base_offset, ".log")
    log = bytearray(path.read_bytes())
    one, other = (slice(4096 * block, 4096 * block + 4096) for block in (first, second))
    log[one], log[other] = log[other], log[one]
    path.write_bytes(log)
    told = saved(bad, tmp_path / "out")
    check_saved(original, bad, told, tmp_path / "out")
    kept = all_batches(tmp_path / "out" / bad.name)
    whole = [batch for batch in all_batches(original) if batch in bytes(log)]
    assert told.moved_batches > 10
    assert told.set_aside_batches == len({*whole} - {*kept}) < 3


@pytest.mark.checks("BATCH-3", "SEG-20")
def test_batches_are_moved_back_into_a_gap_inside_of_a_row_of_sound_ones(tmp_path: Path) -> None:
    """Batches of one size, so that a block begins with a batch, and the gap hides in the row."""
    one = [*map(batch, range(60))]
    gone = [b"?" * 100]
    logs = (
        ([*one[20:30], *one[:20], *one[30:]], one),
        ([*one[:10], *one[30:40], *one[20:30], *one[10:20], *one[40:]], one),
        ([*one[:40], *one[46:50], *gone, *one[44:50], *gone, *one[50:]], [*one[:40], *one[44:]]),
    )
    for number, (log, kept) in enumerate(logs):
        bad = tmp_path / f"t-{number}"
        bad.mkdir()
        (bad / name_of(0, ".log")).write_bytes(b"".join(log))
        told = saved(bad, tmp_path / f"out-{number}")
        assert kept == all_batches(tmp_path / f"out-{number}" / bad.name)
        assert told.moved_batches > 0
        assert len(log) - 2 * (gone[0] in log) == told.batches + told.set_aside_batches


@pytest.mark.checks("BATCH-3", "SEG-20")
def test_a_block_written_over_another_one_costs_what_lay_there(tmp_path: Path) -> None:
    """Its batches have later offsets than those that follow, and are there a second time."""
    original, bad = (copied_partition("txn-a", tmp_path / one) for one in ("original", "bad"))
    path = bad / name_of(1014, ".log")
    log = bytearray(path.read_bytes())
    log[20480:24576] = log[159744:163840]
    path.write_bytes(log)
    told = saved(bad, tmp_path / "out")
    kept = {*all_batches(tmp_path / "out" / bad.name)}
    logs = b"".join(one.read_bytes() for one in bad.glob("*.log"))
    assert {one for one in all_batches(original) if one in logs} == kept
    assert told.set_aside_batches > 0


@pytest.mark.checks("BATCH-3")
def test_batches_that_stand_there_twice_are_kept_once(tmp_path: Path) -> None:
    """Wherever the second copies lie."""
    original = copied_partition("plain", tmp_path / "original")
    name = name_of(60, ".log")
    batches = batches_of((original / name).read_bytes())
    for number, place in enumerate((0, 3, 20, len(batches))):
        bad = copied_partition("plain", tmp_path / f"bad-{number}")
        log = [*batches[:place], *batches[10:16], *batches[place:]]
        (bad / name).write_bytes(b"".join(log))
        told = saved(bad, tmp_path / f"out-{number}")
        assert all_batches(original) == all_batches(tmp_path / f"out-{number}" / bad.name)
        assert 6 == told.set_aside_batches


@pytest.mark.checks("BATCH-3")
def test_a_batch_after_the_beginning_of_a_torn_one_is_in_the_file_of_odd_batches(
    tmp_path: Path,
) -> None:
    """It may lie there by a wrong write, and no other file had it."""
    inner = write_batch([Record(5, 1, None, b"lost")], base_offset=5)
    torn = write_batch([Record(40, 1, None, inner + bytes(500))], base_offset=40)
    log = b"".join(write_batch([Record(at, 1, None, b"v")], base_offset=at) for at in range(40))
    (saved,) = salvage(write_segment(tmp_path / "t-0", log + torn[:-100]), tmp_path / "out")
    assert (40, 1) == (saved.batches, saved.set_aside_batches)
    (aside,) = (one for one in tmp_path.rglob("*") if one.is_file() and one.read_bytes() == inner)
    assert aside.parent.name != "t-0"


def test_a_last_batch_whose_base_offset_is_one_bit_too_high_is_set_aside(tmp_path: Path) -> None:
    """Nothing behind it speaks for it; a broker would go on there, and consumers would jump."""
    original, bad = (copied_partition("txn-a", tmp_path / one) for one in ("original", "bad"))
    path = sorted(bad.glob("*.log"))[-1]
    log = bytearray(path.read_bytes())
    last = len(log) - len(batches_of(bytes(log))[-1])
    for bit in (8, 20, 40):
        wrong = log.copy()
        wrong[last + 7 - bit // 8] ^= 1 << bit % 8
        path.write_bytes(wrong)
        told = saved(bad, tmp_path / f"out-{bit}")
        assert 1 == told.set_aside_batches
        is_known = bit > 8  # without that bit, which 2413 has, it may be an older batch once more
        assert (1, not is_known) == (told.lost_offsets, told.is_end_lost)
        path.write_bytes(wrong + b"oops")
        assert saved(bad, tmp_path / f"torn-{bit}").is_end_lost
        assert all_batches(original)[:-1] == all_batches(tmp_path / f"out-{bit}" / bad.name)


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("count", [1, 3])
def test_the_segment_before_speaks_against_a_wrong_bit_in_a_short_last_segment(
    count: int, tmp_path: Path
) -> None:
    """A last batch alone in its segment once had no other to be compared with."""
    original, bad = (copied_partition("txn-a", tmp_path / one) for one in ("original", "bad"))
    path = sorted(bad.glob("*.log"))[-1]
    log = batches_of(path.read_bytes())[:count]
    right = [one for one in all_batches(original) if one not in batches_of(path.read_bytes())]
    path.write_bytes(b"".join(log))
    assert 0 == saved(bad, tmp_path / "right").set_aside_batches
    path.write_bytes(b"".join([*log[:-1], log[-1][:5] + b"\1" + log[-1][6:]]))
    assert 1 == saved(bad, tmp_path / "wrong").set_aside_batches
    assert [*right, *log[:-1]] == all_batches(tmp_path / "wrong" / bad.name)


@pytest.mark.checks("EPOCH-1")
@pytest.mark.parametrize("places", [((60, 7), (162, 0)), ((162, -1),)], ids=["first", "last"])
def test_a_leader_epoch_between_two_equal_ones_is_restored(
    places: tuple[tuple[int, int], ...], tmp_path: Path
) -> None:
    """No checksum covers it. The segment before speaks for a first batch, the next for a last."""
    original, bad = (copied_partition("plain", tmp_path / one) for one in ("original", "bad"))
    for base_offset, number in places:
        path = bad / name_of(base_offset, ".log")
        log = bytearray(path.read_bytes())
        log[sum(len(batch) for batch in batches_of(bytes(log))[:number]) + 13] ^= 4
        path.write_bytes(log)
    told = saved(bad, tmp_path / "out")
    assert (len(places), True) == (told.restored_epochs, told.is_whole)
    assert all_batches(original) == all_batches(tmp_path / "out" / bad.name)


Watched = TypeVar("Watched", bound=WatchedFiles)


def _in_memory(files: Watched) -> Watched:
    """Put a partition into files in memory, as `/d/t-0`."""
    for path in partition_of(COMPACTED).iterdir():
        write_file(files, f"/d/t-0/{path.name}", path.read_bytes())
    files.make_directory("/e")
    return files


@pytest.mark.checks("EPOCH-1")
def test_leader_epochs_that_contradict_each_other_stay(tmp_path: Path) -> None:
    """Once a right epoch between two equal wrong ones was replaced by the wrong one."""
    original, bad = (copied_partition("plain", tmp_path / one) for one in ("original", "bad"))
    for name, numbers in ((name_of(60, ".log"), (7, 9, 13)), (name_of(162, ".log"), (0, 2))):
        path = bad / name
        log = bytearray(path.read_bytes())
        for number in numbers:
            log[sum(len(batch) for batch in batches_of(bytes(log))[:number]) + 13] ^= 4
        path.write_bytes(log)
    told = saved(bad, tmp_path / "out")
    assert 1 == told.restored_epochs  # of the batch that stands alone
    sound, kept = all_batches(original), all_batches(tmp_path / "out" / bad.name)
    wrong = [number for number, one in enumerate(kept) if one != sound[number]]
    first = len(batches_of((original / name_of(0, ".log")).read_bytes()))
    second = first + len(batches_of((original / name_of(60, ".log")).read_bytes()))
    assert [first + 7, first + 9, second, second + 2] == wrong


@pytest.mark.slow
@pytest.mark.checks("DISK-4", "DISK-25")
@pytest.mark.parametrize(
    "damage", ["removed", "emptied", "cut between two batches", "zeros", "folder"]
)
@pytest.mark.parametrize(
    ("scenario", "number"), [("v1-gzip", 0), ("unclean-before", 1), ("compacted", 1)]
)
def test_offsets_of_a_log_that_is_gone_are_lost(
    scenario: str, number: int, damage: str, tmp_path: Path
) -> None:
    """`salvage` counts the offsets that `verify` counts, also before the first segment left."""
    bad = copied_partition(scenario, tmp_path)
    log = sorted(bad.glob("*.log"))[number]
    kept = len(batches_of(log.read_bytes())[0]) if damage.startswith("cut") else 0
    with log.open("r+b") as file:
        file.truncate(kept)
        file.truncate(8192 if damage == "zeros" else kept)
    if damage in ("removed", "folder"):
        log.unlink()
    if damage == "folder":
        log.mkdir()
    told = saved(bad, tmp_path / "out")
    (gap,) = told.gaps
    is_zeros = damage == "zeros"
    assert (str(log), "zeros" if is_zeros else "missing", kept, 8192 * is_zeros) == gap[:4]
    summaries: list[Summary] = []
    assert list(verify(bad, on_summary=summaries.append))
    (summary,) = summaries
    assert Verdict.READABLE_WITH_GAPS is summary.verdict
    counted = told.lost_offsets, told.unproven_offsets
    assert counted == (summary.lost_at_least, summary.unproven_offsets)
    assert gap.last_lost_offset is not None
    assert sum(counted) == gap.last_lost_offset - gap.first_lost_offset + 1
    # Of a compacted log no file tells how many the log cleaner had taken.
    assert (scenario == "compacted") == (told.lost_offsets == 0)
    assert not told.is_whole


@pytest.mark.parametrize("is_full", [False, True], ids=["broken", "full"])
def test_a_salvage_that_ends_before_it_is_whole_leaves_a_mark(is_full: bool) -> None:
    """A new run refuses the directory by that mark."""
    whole: dict[str, bytes] = {}
    for changes in [-1, *range(12), *range(12, 2000, 9)]:
        files = _in_memory(EndingFiles())
        files.left, files.is_for_ever, files.is_full = changes, True, is_full
        try:
            list(salvage("/d/t-0", "/e/out", files=files))
        except OSError:
            files.left = -1
        else:
            whole = whole or files.images("/e/out/t-0")
            if changes >= 0:
                break
            continue
        left = [] if files.status("/e/out") is None else files.list_directory("/e/out")
        if SALVAGE_MARKER in left:
            with pytest.raises(FileExistsError, match="ended here before it was whole"):
                list(salvage("/d/t-0", "/e/out", files=files))
        else:
            assert not left or whole == files.images("/e/out/t-0")
    assert changes > 100
    assert whole == files.images("/e/out/t-0")


def test_a_salvage_that_ended_outlives_a_loss_of_power() -> None:
    """Each new file is durable, and its name, before the mark is taken away."""
    files = _in_memory(SimulatedFiles())
    files.settle()
    (told,) = salvage("/d/t-0", "/e/out", files=files)
    assert told.target == "/e/out/t-0"
    new = {f"/e/out/t-0/{name}": data for name, data in files.images("/e/out/t-0").items()}
    assert len(new) > 10
    for image in crashes_in(files, lambda: None, POWER_LOSS):
        assert new == {path: data for path, data in image.items() if path in new}


class _ChangingFiles(WatchedFiles):
    """Files in memory; a byte of an old log changes when a new log is opened."""

    def before(self, call: str, path: str, *arguments: Any, handle: Any = None) -> None:
        """Change the 300th byte of the first log."""
        if call == "open" and arguments[0] and path.startswith("/e/") and path.endswith(".log"):
            old = f"/d/t-0/{name_of(0, '.log')}"
            data = self.images("/d/t-0")[name_of(0, ".log")]
            write_file(self, old, data[:300] + b"\xff" + data[301:])


@pytest.mark.checks("SEG-20")
def test_a_log_that_changes_after_it_was_checked_gives_no_wrong_batch() -> None:
    """What was written is checked once more: a wrong batch there ends the salvage."""
    files = _in_memory(_ChangingFiles())
    with pytest.raises(SegproofError, match="the new log ends before offset"):
        list(salvage("/d/t-0", "/e/out", files=files))
    assert SALVAGE_MARKER in files.list_directory("/e/out")


def test_the_progress_of_a_salvage_moves_while_a_segment_is_read_and_copied(
    tmp_path: Path,
) -> None:
    """It never falls, and ends with all bytes, whatever is damaged."""
    bad = copied_partition("plain", tmp_path / "bad")
    log = bad / name_of(60, ".log")
    log.write_bytes(log.read_bytes()[:5000] + bytes(3000) + log.read_bytes()[8000:])
    seen: list[tuple[int, int]] = []
    list(salvage(bad, tmp_path / "out", on_progress=lambda *one: seen.append(one)))
    done = [one for one, _ in seen]
    assert sorted(done) == done
    assert {seen[-1][0]} == {total for _, total in seen}
    assert len(set(done)) >= 2 * len(list(bad.glob("*.log")))


class _BadDisk(type(REAL_FILES)):  # type: ignore[misc]
    """A file system in which some bytes of one file can't be read."""

    bad_name = name_of(162, ".log")
    bad_bytes = range(9000, 9100)

    def open(self, path: str, **options: Any) -> File:
        file: Any = super().open(path, **options)
        if not path.endswith(self.bad_name) or "/out/" in path:
            return file  # type: ignore[no-any-return]
        pread, pread_into = file.pread, file.pread_into

        def check(size: int, position: int) -> None:
            if position < self.bad_bytes.stop and position + size > self.bad_bytes.start:
                raise OSError(errno.EIO, "Input/output error", path)

        class Bad(type(file)):  # type: ignore[misc]
            __slots__ = ()

            def pread(self, size: int, position: int) -> bytes:
                check(size, position)
                return pread(size, position)  # type: ignore[no-any-return]

            def pread_into(self, buffer: memoryview, position: int) -> int:
                check(len(buffer), position)
                return pread_into(buffer, position)  # type: ignore[no-any-return]

        return Bad(file._descriptor, path)


def test_an_unreadable_block_costs_the_batches_in_it_only(tmp_path: Path) -> None:
    """A disk that answers with an I/O error for one block gives all the others."""
    original = copied_partition("plain", tmp_path / "original")
    (told,) = salvage(original, tmp_path / "out", files=_BadDisk())
    assert 4096 == told.unreadable_bytes
    (gap,) = told.gaps
    assert gap.path.endswith(_BadDisk.bad_name)
    assert gap.position <= 8192
    assert gap.position + gap.size_bytes >= 9100
    kept = all_batches(tmp_path / "out" / original.name)
    assert len(all_batches(original)) - len(kept) in (1, 2)


@pytest.mark.usefixtures("processes_for_little")
def test_a_data_directory_becomes_one_that_a_broker_loads(tmp_path: Path) -> None:
    """Each partition is there, and the start that records were deleted up to."""
    source = tmp_path / "data"
    for scenario in ("plain", "txn-a"):
        copied_partition(scenario, source)
    stray = source / f"plain-1.{'0' * 32}-stray"
    shutil.copytree(source / "plain-0", stray)
    (source / "log-start-offset-checkpoint").write_text("0\n2\nplain 0 77\ntxn-a 0 99999\n")
    told = list(salvage(source, tmp_path / "out", jobs=2))
    assert [True, True, False] == [one.is_whole for one in told]
    assert ["plain-0", "txn-a-0"] == sorted(Path(one.target).name for one in told if one.target)
    step = (
        "to save it too, copy it under the name plain-1, and save the copy into another directory"
    )
    assert [f"{stray}: a broker set it aside (stray); {step}"] == told[2].left_out
    start = (tmp_path / "out" / "log-start-offset-checkpoint").read_text()
    assert ["0", "1", "plain 0 77"] == start.splitlines()
    assert [] == [str(one) for one in verify(tmp_path / "out") if one.is_defect]


def test_partitions_are_saved_one_by_one_into_one_directory(tmp_path: Path) -> None:
    """Each keeps the start of the others; the same one again is refused, and nothing changes."""
    source, out = tmp_path / "data", tmp_path / "out"
    for scenario in ("plain", "txn-a"):
        copied_partition(scenario, source)
    (source / "log-start-offset-checkpoint").write_text("0\n2\nplain 0 77\ntxn-a 0 99\n")
    for name in ("plain-0", "txn-a-0"):
        assert str(out / name) == saved(source / name, out).target
    start = (out / "log-start-offset-checkpoint").read_text()
    assert ["0", "2", "plain 0 77", "txn-a 0 99"] == start.splitlines()
    assert [] == [str(one) for one in verify(out) if one.is_defect]
    before = state_of(out)
    for again in (source, source / "plain-0"):
        with pytest.raises(FileExistsError, match="it is there already"):
            list(salvage(again, out))
    assert before == state_of(out)
    copied_partition("compacted", source)
    (out / "meta.properties").touch()
    with pytest.raises(FileExistsError, match="not empty"):
        list(salvage(source / "compacted-0", out))


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """A directory in use, a name that no broker loads, a place without a log."""
    source = copied_partition("plain", tmp_path / "data")
    full = tmp_path / "full"
    full.mkdir()
    (full / "something").touch()
    with pytest.raises(FileExistsError):
        list(salvage(source, full))
    with pytest.raises(InvalidArgumentError, match="lie in each other"):
        list(salvage(source, source / "out"))
    shutil.copytree(source, tmp_path / "copy of it")
    with pytest.raises(InvalidArgumentError, match="not named TOPIC-N"):
        list(salvage(tmp_path / "copy of it", tmp_path / "out"))
    with pytest.raises(InvalidArgumentError, match="no partition with a log"):
        list(salvage(full, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_partition_without_a_sound_batch_leaves_no_directory(tmp_path: Path) -> None:
    """An empty log would be taken for what was there."""
    bad = tmp_path / "t-0"
    bad.mkdir()
    (bad / name_of(0, ".log")).write_bytes(Random(1).randbytes(5000))
    (told,) = salvage(bad, tmp_path / "out")
    assert (None, 1, False) == (told.target, told.gap_count, told.is_whole)
    assert [] == sorted((tmp_path / "out").iterdir())


@pytest.mark.checks("DISK-37")
@pytest.mark.parametrize(
    ("entries", "is_kept"),
    [
        ("0 0", True),
        ("0 0\n4 END", True),  # a leader that has written nothing so far
        ("0 0\n4 20", False),  # the batches from offset 20 on are of epoch 0
        ("1 0", False),
        ("0 9", False),
        ("4 0\n0 0", False),
        ("0 zero", False),
    ],
)
def test_the_epochs_of_a_sound_partition_stay(entries: str, is_kept: bool, tmp_path: Path) -> None:
    """Under "everything kept" the epoch after the last batch was lost."""
    original = copied_partition("plain", tmp_path)
    end = saved(original, tmp_path / "plain").last_offset + 1
    text = f"0\n{entries.count(chr(10)) + 1}\n{entries.replace('END', str(end))}\n"
    (original / "leader-epoch-checkpoint").write_text(text)
    told = saved(original, tmp_path / "out")
    new = (tmp_path / "out" / original.name / "leader-epoch-checkpoint").read_text()
    assert told.is_whole
    assert (text if is_kept else "0\n1\n0 0\n") == new
    assert [] == [str(one) for one in verify(tmp_path / "out") if one.is_defect]
