# SPDX-License-Identifier: Apache-2.0
"""What the verbs ask of the file system grows with a directory, and not with its square.

A reader measured times. These are counts, at the door to the operating system: names that listings
returned, files that were opened, paths that were looked at, and entries read in checkpoints.
"""

import os
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from segproof import scan
from segproof.files import RealFiles
from segproof.inventory import small_files
from segproof.kafka.checkpoint_file import read_checkpoint
from segproof.reading.log_differences import LogFileFacts
from segproof.repair import salvage
from segproof.rocketmq.commit_log import CommitLog
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.laws.borders.border import write_files
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_harness.laws.borders.store_files import LOG, LOG_BYTES, SIZE, TIME, log_of, record
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.partition_files import aged, name_of
from segproof_tests.small_logs import batch

FEW = 6
"""So many of what grows; then twice and three times as many."""
A_FEW = 8
"""How much more may be asked at the second step than at the first one."""


def write_log(folder: Path, base: int, offsets: Iterable[int], key: bytes | None = b"k") -> None:
    """Write a segment with a batch of one record for each offset, and its indexes."""
    offsets = list(offsets)
    batches = [batch(one, key=key) for one in offsets]
    starts = [sum(map(len, batches[:row])) for row in range(len(batches))]
    entries = list(zip(offsets, starts, strict=True))[1:]
    (folder / name_of(base, ".log")).write_bytes(b"".join(batches))
    index = offset_entries(*((one - base, start) for one, start in entries))
    (folder / name_of(base, ".index")).write_bytes(index)
    last = time_entries((1000 + offsets[-1], offsets[-1] - base))
    (folder / name_of(base, ".timeindex")).write_bytes(last)


def whole(folder: Path, count: int) -> None:
    """Segments without a gap."""
    for base in range(0, 4 * count, 4):
        write_log(folder, base, range(base, base + 4))


def compacted(folder: Path, count: int) -> None:
    """Segments with a gap at the begin and at the end of each."""
    for base in range(0, 40 * count, 40):
        write_log(folder, base, range(base + 1, base + 40, 2))


def without_logs(folder: Path, count: int) -> None:
    """Compacted segments; each second one has no log."""
    compacted(folder, count)
    for base in range(40, 40 * count, 80):
        (folder / name_of(base, ".log")).unlink()


def cut(folder: Path, count: int) -> None:
    """Segments whose indexes lead beyond the ends of their logs."""
    whole(folder, count)
    for log in folder.glob("*.log"):
        log.write_bytes(log.read_bytes()[: len(log.read_bytes()) // 2])


def without_indexes(folder: Path, count: int) -> None:
    """Segments that all lack their indexes."""
    whole(folder, count)
    for path in folder.iterdir():
        if path.suffix != ".log":
            path.unlink()


def foreign(folder: Path, count: int) -> None:
    """Segments whose offset indexes are of the one that follows."""
    for base in range(0, 40 * count, 40):
        steps = (one for one in range(base, base + 40) if one * one % 7 != base % 5)
        write_log(folder, base, steps)
    indexes = sorted(folder.glob("*.index"))
    data = [one.read_bytes() for one in indexes]
    for path, other in zip(indexes, data[1:] + data[:1], strict=True):
        path.write_bytes(other)


def broken(folder: Path, count: int) -> None:
    """Segments with a batch whose checksum is wrong, and a copy beside each."""
    whole(folder, count)
    for log in [*folder.glob("*.log")]:
        shutil.copyfile(log, f"{log}.bak")
        flip_bits(log, -1)


def removed(folder: Path, count: int) -> None:
    """Segments; each second log was removed, and is still there."""
    whole(folder, count)
    for base in range(4, 4 * count, 8):
        (folder / name_of(base, ".log")).rename(folder / name_of(base, ".log.deleted"))
        (folder / name_of(base, ".index")).unlink()
        (folder / name_of(base, ".timeindex")).unlink()


def replaced(folder: Path, count: int) -> None:
    """Segments, each with a removed log that holds a batch more."""
    whole(folder, count)
    for log in [*folder.glob("*.log")]:
        shutil.copyfile(log, f"{log}.deleted")
        log.write_bytes(log.read_bytes()[: len(log.read_bytes()) // 4])


def misnamed(folder: Path, count: int) -> None:
    """Logs under names that are one too low."""
    for base in range(0, 4 * count, 4):
        write_log(folder, base + 1, range(base + 2, base + 5))
        shutil.move(folder / name_of(base + 1, ".log"), folder / name_of(base, ".log"))


PARTITIONS = [
    whole, compacted, without_logs, cut, without_indexes, foreign, broken, removed,
    replaced, misnamed,
]  # fmt: skip


def empty(folder: Path, count: int) -> None:
    """Empty partitions beside whole ones."""
    (folder / "meta.properties").write_text(f"version=1\ncluster.id={'c' * 22}\nnode.id=1\n")
    for number in range(count):
        (folder / f"a{number}-0").mkdir()
        whole_partition(folder / f"b{number}-0", number)


def of_one_topic(folder: Path, count: int) -> None:
    """Partitions of one topic without their small files."""
    empty(folder, count)
    for number in range(count):
        for path in (folder / f"a{number}-0", folder / f"b{number}-0"):
            path.rename(folder / f"{path.name[0]}-{number}")
        for name in ("partition.metadata", "leader-epoch-checkpoint"):
            (folder / f"b-{number}" / name).unlink()


def strays(folder: Path, count: int) -> None:
    """Partitions, each with a folder set aside that has more; the checkpoint names all of them."""
    empty(folder, 0)
    for number in range(count):
        for name, end in ((f"t{number}-0", 4), (f"t{number}-0.{number:032x}-stray", 8)):
            (folder / name).mkdir()
            write_log(folder / name, 0, range(end))
    lines = "".join(f"t{number} 0 1\n" for number in range(count))
    (folder / "cleaner-offset-checkpoint").write_text(f"0\n{count}\n{lines}")


def whole_partition(folder: Path, number: int) -> None:
    """Write a partition with its small files."""
    folder.mkdir()
    whole(folder, 1)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {number:021d}A\n")
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    aged(folder)


def links(folder: Path, count: int) -> None:
    """Partitions, each with a link to nothing beside it."""
    empty(folder, count)
    for number in range(count):
        (folder / f"c{number}-0").symlink_to("nothing")


def made(make: Callable[[Path, int], None], place: Path, count: int, name: str = "t-0") -> Path:
    """Return a folder that was not changed for long."""
    folder = place / str(count) / name
    folder.mkdir(parents=True)
    make(folder, count)
    aged(folder.parent)
    for path in [folder, *(one for one in folder.rglob("*") if one.exists())]:
        os.utime(path, (10**9, 10**9))
    return folder


def verified(path: Path, _: Path) -> None:
    """Verify, and take all findings."""
    assert list(verify(path)) is not None


def scanned(path: Path, _: Path) -> None:
    """Read all batches that can be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scan(path, table="batches", columns=["base_offset"], on_damage="skip").read_all()


def dumped(path: Path, _: Path) -> None:
    """Show all that can be shown."""
    assert cli.run(["dump", str(path), "--format", "jsonl"]) < 2


def salvaged(path: Path, out: Path) -> None:
    """Save what can be saved."""
    assert list(salvage(path, out)) is not None


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return what was asked about the test's files: numbers of names, files, paths, entries."""
    count: Counter[str] = Counter()

    def counted(name: str, cost: Callable[[Any], int]) -> None:
        real = getattr(RealFiles, name)

        def call(self: RealFiles, path: str, *given: Any, **options: Any) -> Any:
            answer = real(self, path, *given, **options)
            count[name] += cost(answer) if path.startswith(str(tmp_path)) else 0
            return answer

        monkeypatch.setattr(RealFiles, name, call)

    def read_counted(*given: Any, **options: Any) -> Any:
        entries = read_checkpoint(*given, **options)
        count["entries"] += len(entries)
        return entries

    monkeypatch.setattr(small_files, "read_checkpoint", read_counted)
    counted("list_directory", len)
    counted("open", lambda _: 1)
    counted("status", lambda _: 1)
    return count


def check_growth(
    ask: Callable[[Path, Path], None], paths: Iterable[Path], asked: Counter[str]
) -> None:
    """Assert that as much more of the same costs as much more, and not more than that."""
    costs: list[Counter[str]] = []
    for path in paths:
        asked.clear()
        ask(path, path.parent / "out")
        costs.append(asked.copy())
    few, more, most = costs
    grown = {name: (few[name], more[name], most[name]) for name in most
             if most[name] - more[name] > more[name] - few[name] + A_FEW}  # fmt: skip
    assert {} == grown


@pytest.mark.parametrize(
    ("make", "ask"),
    [
        *((make, ask) for make in PARTITIONS for ask in (verified, scanned, salvaged)),
        *((make, dumped) for make in (whole, broken, removed)),
    ],
)
def test_partitions(
    make: Callable[[Path, int], None],
    ask: Callable[[Path, Path], None],
    tmp_path: Path,
    asked: Counter[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each segment of a partition costs the same, whatever is wrong with them."""
    check_growth(ask, [made(make, tmp_path, FEW * times) for times in (1, 2, 3)], asked)


def test_a_foreign_index_moves_no_batch(tmp_path: Path) -> None:
    """Salvage told 21 batches that lay where they belong as moved, and their offsets as lost."""
    folder = made(foreign, tmp_path, FEW)
    (saved,) = salvage(folder, tmp_path / "saved")
    assert (saved.moved_batches, saved.lost_offsets, saved.are_more_lost) == (0, 0, False)


@pytest.mark.parametrize("ask", [verified, scanned, salvaged])
@pytest.mark.parametrize("make", [empty, of_one_topic, links, strays])
def test_data_directories(
    make: Callable[[Path, int], None],
    ask: Callable[[Path, Path], None],
    tmp_path: Path,
    asked: Counter[str],
) -> None:
    """Each partition of a data directory costs the same, whatever it lacks."""
    check_growth(ask, [made(make, tmp_path, FEW * times, "d") for times in (1, 2, 3)], asked)


def blank(folder: Path, count: int) -> None:
    """Stores whose files of the log are zeros."""
    for number in range(count):
        write_files({LOG: bytes(LOG_BYTES), "checkpoint": bytes(4096)}, folder / f"s{number}")


def without_begin(folder: Path, count: int) -> None:
    """Stores of different logs, whose first message is zeros."""
    for number in range(count):
        log = log_of(bytes(SIZE), record(1, SIZE, time=TIME + number))
        write_files({LOG: log, "checkpoint": bytes(4096)}, folder / f"s{number}")


@pytest.mark.parametrize("make", [blank, without_begin])
def test_stores(
    make: Callable[[Path, int], None],
    tmp_path: Path,
    asked: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each store of a folder costs the same, where no message tells which are copies."""
    real = LogFileFacts.are_of_one_log

    def are_of_one_log(self: LogFileFacts, one: CommitLog, other: CommitLog) -> bool:
        asked["compared"] += 1
        return real(self, one, other)

    monkeypatch.setattr(LogFileFacts, "are_of_one_log", are_of_one_log)
    counts = (FEW, 2 * FEW, 3 * FEW) if make is blank else (2 * FEW, 4 * FEW, 6 * FEW)
    check_growth(verified, [made(make, tmp_path, count, "d") for count in counts], asked)
