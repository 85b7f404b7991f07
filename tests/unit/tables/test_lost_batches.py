# SPDX-License-Identifier: Apache-2.0
"""Batches that are gone from a log, or overlap others, are never passed over in silence.

`segproof.scan` and `segproof dump` answer alike: all rows once, or an error, or a warning.
"""

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import segproof
from segproof.errors import DamagedFileError
from segproof.files import REAL_FILES
from segproof.kafka import Record, write_batch
from segproof.kafka.batch_table import check_batches
from segproof.reading import live_writer
from segproof.reading.segment_reader import start_position
from segproof.verifying.log_offsets import LogOffsets
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.borders.log_files import offset_entries
from segproof_tests.partition_files import aged, name_of, write_segment
from segproof_tests.printed_rows import Capsys
from segproof_tests.small_logs import batch
from segproof_tests.table_offsets import dumped, is_silent, scanned

pytestmark = pytest.mark.needs("pyarrow")

SCENARIOS = sorted(path.name for path in KAFKA.iterdir() if path.is_dir())
CLOSED, COUNT = 12, 20
BATCHES = [batch(n, b"v" * 30, b"k") for n in range(COUNT)]
OTHERS = [batch(n, b"w" * 55, b"o") for n in range(COUNT)]
SIZE = len(BATCHES[0])
ALL = [*range(COUNT)]
KEPT = [1, 5, 6, 10, CLOSED - 1]
"""What a compaction left of the closed log."""


def index_of(base: int, offsets: list[int]) -> bytes:
    """Return the offset index of a log of these batches, with an entry for all but the first."""
    places = enumerate(offsets)
    return offset_entries(*((n - base, at * SIZE) for at, n in places if at))


def partition(folder: Path) -> Path:
    """Write a partition of a closed log and of one that is written to."""
    for base, end in ((0, CLOSED), (CLOSED, COUNT)):
        offsets = [*range(base, end)]
        log = b"".join(BATCHES[base:end])
        write_segment(folder, log, base, index=index_of(base, offsets))
    return folder


def rewrite(folder: Path, base: int, batches: list[bytes]) -> None:
    """Replace a log, and leave its indexes as they are."""
    (folder / name_of(base, ".log")).write_bytes(b"".join(batches))


def is_told(path: Path, capsys: Capsys, rows: list[int], *words: str) -> None:
    """Demand that scan and dump fail with these words, or give these rows with a warning."""
    for table in ("records", "batches"):
        with pytest.raises(DamagedFileError) as caught:
            scanned(path, table)
        assert all(word in str(caught.value) for word in words)
        for how in ("skip", "keep"):
            found, (warning,) = scanned(path, table, on_damage=how)
            assert (rows, True) == (found, all(word in warning for word in words))
    code = cli.run(["dump", str(path), "--records", "--format", "csv"])
    told = capsys.readouterr().err
    assert (1, True) == (code, all(word in told for word in words[1:]))
    for how in ("skip", "keep"):
        assert (rows, 1) == dumped(path, capsys, "--on-damage", how)


@pytest.mark.checks("DISK-70")
@pytest.mark.parametrize("base", [0, CLOSED])
@pytest.mark.parametrize("gone", [range(3, 4), range(2, 5), range(3)])
def test_batches_that_are_gone(base: int, gone: range, tmp_path: Path, capsys: Capsys) -> None:
    """A log that lacked batches in its middle, or at its beginning, gave the rest as all."""
    folder = partition(tmp_path / "t-0")
    end = CLOSED if base == 0 else COUNT
    lost = {base + n for n in gone}
    rewrite(folder, base, [BATCHES[n] for n in range(base, end) if n not in lost])
    rows = [n for n in ALL if n not in lost]
    place = f"{name_of(base, '.log')}: byte {gone.start * SIZE}: batches were cut out"
    is_told(aged(folder), capsys, rows, place, "[DISK-70]")
    # The file alone says the same.
    with pytest.raises(DamagedFileError, match="batches were cut out"):
        scanned(folder / name_of(base, ".log"))


@pytest.mark.checks("DISK-70")
def test_what_is_gone_before_the_wanted_rows_costs_none(tmp_path: Path) -> None:
    """A scan that begins behind the gap goes on without a word, unless it is to fail."""
    folder = partition(tmp_path / "t-0")
    rewrite(folder, 0, BATCHES[:3] + BATCHES[4:CLOSED])
    log = folder / name_of(0, ".log")
    # An entry that leads to its batch, which a search of the index takes.
    (folder / name_of(0, ".index")).write_bytes(offset_entries((8, 7 * SIZE)))
    assert 7 * SIZE == start_position(str(log), 0, 9, None, REAL_FILES)
    found = scanned(aged(folder), where="offset >= 9", on_damage="skip")
    assert ([n for n in ALL if n >= 9], []) == found


@pytest.mark.checks("DISK-13")
def test_a_foreign_block_whose_offsets_overlap(tmp_path: Path, capsys: Capsys) -> None:
    """Batches of another topic in the place of others claimed offsets that were there too."""
    folder = partition(tmp_path / "t-0")
    rewrite(folder, 0, OTHERS[:4] + BATCHES[2:CLOSED])
    place = f"{name_of(0, '.log')}: byte {4 * len(OTHERS[0])}: "
    words = place, "a batch begins at offset 2, and the log has reached offset 3", "[DISK-13]"
    is_told(aged(folder), capsys, [0, 1, 2, 3, *ALL[2:]], *words)
    assert scanned(folder, on_damage="skip")[1][0].startswith("rows may be here twice: ")


@pytest.mark.checks("LOG-4")
def test_a_block_that_reaches_into_the_next_log(tmp_path: Path, capsys: Capsys) -> None:
    """Offsets of the next log at the end of a log were read from both."""
    folder = partition(tmp_path / "t-0")
    rewrite(folder, 0, BATCHES[:CLOSED] + OTHERS[CLOSED : CLOSED + 2])
    place = f"{name_of(0, '.log')}: byte {CLOSED * SIZE}: a batch ends at offset {CLOSED}"
    rows = [*ALL[: CLOSED + 2], *ALL[CLOSED:]]
    is_told(aged(folder), capsys, rows, place, "[LOG-4]")


@pytest.mark.checks("DISK-25", "DISK-70")
def test_all_that_is_wrong_with_a_log_is_told_at_once(tmp_path: Path) -> None:
    """A log that lacks batches and its end is told with both."""
    folder = partition(tmp_path / "t-0")
    rewrite(folder, CLOSED, [BATCHES[12], BATCHES[15], BATCHES[16], BATCHES[17]])
    with pytest.raises(DamagedFileError, match=r"cut out of this log.*the log ends before offset"):
        scanned(aged(folder))


@pytest.mark.checks("DISK-65", "LOG-4")
@pytest.mark.parametrize("suffixes", [(".log",), (".log", ".index", ".timeindex")])
@pytest.mark.parametrize(
    ("scenario", "old", "new"),
    [
        ("compacted", 4104, 4000),
        ("compacted", 4104, 50),
        ("compacted", 5235, 4200),
        ("plain", 252, 251),
        ("plain", 252, 170),
        ("plain", 252, 280),
    ],
)
def test_a_wrong_name_is_no_overlap(
    scenario: str, old: int, new: int, suffixes: tuple[str, ...], tmp_path: Path
) -> None:
    """Only the name of a log claims offsets twice, or says that some are missing."""
    folder = tmp_path / f"{scenario}-0"
    shutil.copytree(KAFKA / scenario / folder.name, folder)
    before = scanned(aged(folder))
    for suffix in suffixes:
        (folder / name_of(old, suffix)).rename(folder / name_of(new, suffix))
    assert before == scanned(aged(folder))


@pytest.mark.checks("DISK-13", "LOG-4")
@pytest.mark.parametrize(
    ("source", "target", "words"),
    [(252, 342, "below the offsets of its name, 342 to 419"),
     (420, 252, "beyond the offsets of its name, 252 to 341")],
)  # fmt: skip
@pytest.mark.parametrize("suffixes", [(".log",), (".log", ".index", ".timeindex")])
def test_a_log_of_the_same_partition_that_was_put_over_another(
    source: int,
    target: int,
    words: str,
    suffixes: tuple[str, ...],
    tmp_path: Path,
    capsys: Capsys,
) -> None:
    """758 rows of 746: some offsets were there twice, and others were gone, without a word."""
    folder = tmp_path / "plain-0"
    shutil.copytree(KAFKA / "plain" / folder.name, folder)
    for suffix in suffixes:
        shutil.copyfile(folder / name_of(source, suffix), folder / name_of(target, suffix))
    aged(folder)
    with pytest.raises(DamagedFileError, match=words) as caught:
        scanned(folder)
    assert f"{name_of(source, '.log')} has offsets that are here too" in str(caught.value)
    assert "keep give all rows" in str(caught.value)
    assert 1 == cli.run(["dump", str(folder), "--records", "--format", "csv"])
    assert words in capsys.readouterr().err


@pytest.mark.checks("LOG-4")
def test_a_log_without_a_byte_shares_no_row(tmp_path: Path) -> None:
    """A log that goes on beyond the name of an empty one was said to have rows of both."""
    folder = partition(tmp_path / "t-0")
    rewrite(folder, 0, BATCHES)
    rewrite(folder, CLOSED, [])
    (folder / name_of(CLOSED, ".index")).write_bytes(b"")
    assert (ALL, []) == scanned(aged(folder), on_damage="skip")


@pytest.mark.checks("LOG-4")
def test_a_next_log_that_the_cleaner_took_overlaps_none(tmp_path: Path) -> None:
    """The log cleaner puts one log in the place of two, after they were listed."""
    folder = partition(tmp_path / "t-0")
    log = folder / name_of(0, ".log")
    rewrite(folder, 0, BATCHES)
    offsets = LogOffsets(str(log), 0, CLOSED, REAL_FILES)
    for part in check_batches(log.read_bytes()):
        offsets.take(part.table, part.crc_valid)
    assert ["LOG-4"] == [one.law for one in offsets.errors()]
    (folder / name_of(CLOSED, ".log")).unlink()
    assert [] == offsets.errors()


@pytest.mark.checks("DISK-70")
def test_files_that_the_cleaner_is_replacing_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index of the log before it was cleaned is beside the cleaned one for a moment."""
    folder = partition(tmp_path / "t-0")
    rewrite(folder, 0, [BATCHES[n] for n in KEPT])

    def replace(_seconds: float) -> None:
        (folder / name_of(0, ".index")).write_bytes(index_of(0, KEPT))

    monkeypatch.setattr(live_writer, "sleep", replace)
    assert ([*KEPT, *ALL[CLOSED:]], []) == scanned(folder)


@pytest.mark.checks("DISK-70")
@pytest.mark.parametrize(
    "index",
    [
        index_of(0, KEPT),
        b"",
        bytes(8 * 64),
        None,
        index_of(0, KEPT[:3]) + bytes(8 * 64),
        offset_entries((5, 2 * SIZE)) + index_of(0, KEPT)[8:],
    ],
    ids=["cleaned", "empty", "zeros", "missing", "preallocated", "one wrong entry"],
)
def test_gaps_of_a_compaction_stay_silent(
    index: bytes | None, tmp_path: Path, capsys: Capsys
) -> None:
    """A compacted log lacks offsets, and no state of its index alone proves a loss."""
    folder = partition(tmp_path / "t-0")
    rewrite(folder, 0, [BATCHES[n] for n in KEPT])
    path = folder / name_of(0, ".index")
    path.unlink()
    if index is not None:
        path.write_bytes(index)
    is_silent(aged(folder), capsys, [*KEPT, *ALL[CLOSED:]])


def test_expired_segments_stay_silent(tmp_path: Path, capsys: Capsys) -> None:
    """Retention takes whole segments from the beginning."""
    folder = partition(tmp_path / "t-0")
    for path in folder.glob(f"{name_of(0, '')}*"):
        path.unlink()
    is_silent(aged(folder), capsys, ALL[CLOSED:])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_real_directories_are_read_whole(scenario: str, capsys: Capsys) -> None:
    """What brokers wrote lacks nothing: retention, compaction and old releases among it."""
    for table in ("records", "batches"):
        assert [] == scanned(KAFKA / scenario, table)[1]
    for path in sorted(KAFKA.glob(f"{scenario}/*-0")):
        assert 0 == cli.run(["dump", str(path), "--format", "jsonl"])
    capsys.readouterr()


def cut_from_the_middle(folder: Path) -> None:
    """Take the sixth batch out of a log."""
    log = folder / name_of(252, ".log")
    written, places = _batches(log)
    log.write_bytes(written[: places[5]] + written[places[6] :])


def cut_from_the_beginning(folder: Path) -> None:
    """Take the first five batches out of a log."""
    log = folder / name_of(0, ".log")
    written, places = _batches(log)
    log.write_bytes(written[places[5] :])


def put_another_topic_in(folder: Path) -> None:
    """Replace the first two batches by one of another topic, up to offset 23."""
    log = folder / name_of(0, ".log")
    written, places = _batches(log)
    other = write_batch([Record(n, 9, b"k", b"v") for n in range(24)], base_offset=0)
    log.write_bytes(other + written[places[2] :])


def _batches(log: Path) -> tuple[bytes, list[int]]:
    """Return the bytes of a log, and where its batches begin."""
    written, places = log.read_bytes(), [0]
    while places[-1] < len(written):
        places.append(places[-1] + 12 + int.from_bytes(written[places[-1] + 8 :][:4], "big"))
    assert all(one < other for one, other in pairwise(places))
    return written, places


@pytest.mark.checks("DISK-13", "DISK-70")
@pytest.mark.parametrize(
    ("damage", "law", "rows"),
    [
        (cut_from_the_middle, "DISK-70", 741),
        (cut_from_the_beginning, "DISK-70", 729),
        (put_another_topic_in, "DISK-13", 761),
    ],
)
def test_a_real_partition_that_was_damaged(
    damage: Callable[[Path], None],
    law: str,
    rows: int,
    tmp_path: Path,
    capsys: Capsys,
) -> None:
    """Of 746 records some were gone, or some of another topic were there, without a word."""
    folder = tmp_path / "plain-0"
    shutil.copytree(KAFKA / "plain" / "plain-0", folder)
    damage(folder)
    aged(folder)
    for table in ("records", "batches", "segments"):
        with pytest.raises(DamagedFileError, match=rf"\[{law}\]"):
            segproof.scan(folder, table=table).read_all()
    found, (warning,) = scanned(folder, on_damage="skip")
    assert (rows, True) == (len(found), f"[{law}]" in warning)
    assert 1 == dumped(folder, capsys)[1]
    assert (found, 1) == dumped(folder, capsys, "--on-damage", "keep")
