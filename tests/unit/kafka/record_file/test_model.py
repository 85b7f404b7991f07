# SPDX-License-Identifier: Apache-2.0
"""The record file: where a scan ends and with what; slices, cutting, searches."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.kafka.batch_drawing import until_error
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.compression import NO_CODECS
from segproof_model.kafka.format.legacy_record import encode_message
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_deviations import MagicIsCheckedInFiles
from segproof_model.kafka.format.record_file import LogOffsetPosition, RecordFile, RecordRange
from segproof_model.kafka.format.record_file_releases import (
    ClosingTrimsRecordFiles,
    ScannerLimitsWrap,
    SearchAnswersLastOffset,
    SearchComparesLastOffsets,
    SliceOfSliceIsRefused,
)
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX, int32_bytes
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, opened, outcome_of
from segproof_model.laws.register import broken_state_laws
from segproof_model.releases import NEWEST_KAFKA, RELEASES

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
IO_ERROR = Raised(ErrorKind.IO_ERROR)


def batch_at(offset: int, *timestamps: int, magic: int = 2, epoch: int = -1) -> bytes:
    """Return a batch with one record for each timestamp; before magic 2 as messages."""
    records = [Record(offset + n, at, b"k", b"v") for n, at in enumerate(timestamps)]
    return write_batch(records, magic=magic, base_offset=offset, partition_leader_epoch=epoch)


BATCH = batch_at(0, 100, 90)
SIZE = len(BATCH)
THREE = BATCH + batch_at(2, 300, 290, epoch=7) + batch_at(6, 300)


def file_of(data: bytes, release: Release = NEWEST_KAFKA, **options: Any) -> RecordFile:
    """Return an open file that holds these bytes."""
    return release.kind(RecordFile)(Files({"0.log": data}), "0.log", codecs=CODECS, **options)


def scanned(records: RecordRange, *start: int) -> tuple[list[Any], str | None]:
    """Return the batches of a scan, and the kind of error that ends it; every law holds."""
    assert [] == broken_state_laws(records)
    batches: list[Any] = []
    _, error = until_error(records.batches(*start), batches.append)
    return batches, error


# --- the scanner ---------------------------------------------------------------------------------


def test_scan_returns_every_batch() -> None:
    """Positions and sizes of three batches."""
    batches, error = scanned(file_of(THREE))
    assert (None, len(THREE)) == (error, sum(batch.size_bytes for batch in batches))
    assert [0, SIZE, 2 * SIZE] == [batch.position for batch in batches]
    assert [1, 3, 6] == [batch.last_offset for batch in batches]


@pytest.mark.checks("SCAN-3")
@pytest.mark.parametrize("zeros", range(40))
def test_zeros_end_a_scan_or_break_it(zeros: int) -> None:
    """17 zero bytes are passed over, 18 are corrupt."""
    for data in (BATCH, batch_at(20, 5, 0, 50)):
        batches, error = scanned(file_of(data + bytes(zeros)))
        assert (1, None if zeros <= 17 else "corrupt-record") == (len(batches), error)


@pytest.mark.parametrize("zeros", range(12, 20))
def test_oldest_scanner_reads_sizes_only(zeros: int) -> None:
    """Twelve bytes may follow the last message; later releases allow seventeen."""
    data = batch_at(0, 100, magic=1) + bytes(zeros)
    for name, allowed in (("kafka-0.10.2.2", 12), ("kafka-0.11.0.3", 17)):
        _, error = scanned(file_of(data, RELEASES[name]))
        assert (None if zeros <= allowed else "corrupt-record") == error


@pytest.mark.checks("SCAN-4")
@pytest.mark.parametrize("magic", [-128, -1, 0, 1, 2, 3, 127])
def test_scan_of_any_magic(magic: int, any_kafka: Release) -> None:
    """Upstream scans any magic; segproof calls one outside 0..2 corrupt."""
    data = BATCH[:16] + magic.to_bytes(1, "big", signed=True) + BATCH[17:]
    batches, error = scanned(file_of(data, any_kafka))
    if any_kafka.has(MagicIsCheckedInFiles) and not 0 <= magic <= 2:
        assert ([], "corrupt-record") == (batches, error)
    else:
        assert ([magic < 2], None) == ([batch.is_legacy for batch in batches], error)


@pytest.mark.checks("SCAN-4")
def test_negative_magic() -> None:
    """Its offset can be read, its timestamp is an invalid argument, and it is not valid."""
    ((batch,), _) = scanned(file_of(BATCH[:16] + b"\xff" + BATCH[17:]))
    assert (-1, 0) == (batch.magic, batch.last_offset)
    assert INVALID_ARGUMENT == outcome_of(lambda: batch.max_timestamp)
    assert CORRUPT_RECORD == outcome_of(batch.ensure_valid)


@pytest.mark.checks("SCAN-6")
@pytest.mark.parametrize("below_largest", [0, 1, 11, 12, 13, 40])
def test_huge_size_ends_a_scan(below_largest: int, any_kafka: Release) -> None:
    """A size near 2^31 is beyond the end; up to 0.11 the sum wraps, and the batch is accepted."""
    size = INT32_MAX - below_largest
    batches, error = scanned(file_of(BATCH[:8] + int32_bytes(size) + BATCH[12:], any_kafka))
    if any_kafka.has(ScannerLimitsWrap) and below_largest < 12:
        assert [12 + size - 2**32] == [batch.size_bytes for batch in batches]
        assert "invalid-argument" == error
        if any_kafka.name == "kafka-0.11.0.3":
            assert INVALID_ARGUMENT == outcome_of(batches[0].ensure_valid)
    else:
        assert ([], None) == (batches, error)


def test_partial_batch_ends_the_scan() -> None:
    """One byte short is the end, without an error."""
    batches, error = scanned(file_of(BATCH + BATCH[:-1]))
    assert (1, None) == (len(batches), error)


@pytest.mark.checks("SCAN-7")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("kafka-4.4.0", "corrupt-record"),
        ("segproof", "corrupt-record"),
        ("kafka-2.8.2", "corrupt-record"),
        ("kafka-2.4.1", "kafka-error"),
    ],
)
def test_file_shorter_than_believed(name: str, error: str) -> None:
    """Another process has cut the file below the second header."""
    file = file_of(THREE, RELEASES[name])
    file.files.write("0.log", THREE[: SIZE + 5])
    batches, found = scanned(file)
    assert (1, error) == (len(batches), found)


def test_batch_whose_end_is_gone() -> None:
    """A header that is still there is handed out; the batch behind it can't be read."""
    file = file_of(BATCH)
    file.files.write("0.log", BATCH[:61])
    ((batch,), _) = scanned(file)
    assert 1 == batch.last_offset
    assert KAFKA_ERROR == outcome_of(batch.ensure_valid)
    assert KAFKA_ERROR == outcome_of(list, batch.records())


@pytest.mark.checks("SCAN-10")
def test_short_header_is_the_kafka_error() -> None:
    """A batch of magic 2 with size 20 in a file of 40 bytes."""
    ((batch,), _) = scanned(file_of(BATCH[:8] + int32_bytes(20) + BATCH[12:40]))
    asked = [outcome_of(getattr, batch, name) for name in ("last_offset", "max_timestamp")]
    assert (0, [KAFKA_ERROR] * 2) == (batch.base_offset, asked)
    assert CORRUPT_RECORD == outcome_of(batch.ensure_valid)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_magic_are_batches_of_one(magic: int) -> None:
    """Uncompressed."""
    batches, _ = scanned(file_of(batch_at(5, 1, 2, magic=magic)))
    assert [5, 6] == [batch.last_offset for batch in batches]


@given(st.binary(max_size=120))
def test_any_bytes_can_be_scanned(data: bytes) -> None:
    """A scan ends, every law holds, and every batch that is handed out answers every question."""
    for name in ("kafka-4.4.0", "kafka-0.11.0.3", "kafka-0.10.2.2", "segproof"):
        for batch in scanned(file_of(data, RELEASES[name]))[0]:
            assert [] == broken_state_laws(batch)
            outcome_of(list, batch.records())
            outcome_of(batch.ensure_valid)


# --- opening, appending, cutting, closing --------------------------------------------------------


@pytest.mark.checks("SCAN-13")
def test_preallocated_file(any_kafka: Release) -> None:
    """The logical size starts at 0; appends go there; up to 4.3 close cuts the rest, which a crash
    leaves."""
    file = any_kafka.kind(RecordFile)(Files(), "0.log", init_file_size=500, preallocate=True)
    assert (0, 500, SIZE) == (file.size, len(file.image), file.append(BATCH))
    assert (500, BATCH) == (len(file.image), file.read())
    crashed = file_of(file.image, any_kafka)
    assert (500, "corrupt-record") == (crashed.size, scanned(crashed)[1])
    file.close()
    left = SIZE if any_kafka.has(ClosingTrimsRecordFiles) else 500
    assert BATCH.ljust(left, b"\0") == file.image


def test_preallocation_is_for_new_files_only() -> None:
    """A file that exists is believed to its end."""
    again = file_of(BATCH, file_already_exists=True, init_file_size=500, preallocate=True)
    assert (SIZE, BATCH) == (again.size, again.image)
    refused = opened(RecordFile, Files(), "0.log", init_file_size=-1, preallocate=True)
    assert IO_ERROR == refused.outcome


def test_reading_a_missing_file() -> None:
    """Only an opening for writing creates it."""
    refused = opened(RecordFile, Files(), "0.log", False)
    assert Step(Files(), Raised(ErrorKind.FILE_NOT_FOUND)) == refused
    assert ["0.log"] == list(RecordFile(Files(), "0.log").files)


@pytest.mark.checks("SCAN-11")
def test_append_beyond_the_largest_size() -> None:
    """Nothing is written."""
    file = file_of(b"")
    file.size = INT32_MAX - 5
    assert Step(file, INVALID_ARGUMENT) == apply(file, "append", bytes(6))


@pytest.mark.checks("SCAN-12")
@pytest.mark.parametrize("target", [-1, 0, 1, SIZE, SIZE + 1])
def test_truncation(target: int) -> None:
    """Within the file, or refused."""
    file = file_of(BATCH)
    step = apply(file, "truncate_to", target)
    if 0 <= target <= SIZE:
        assert (SIZE - target, BATCH[:target]) == (step.outcome, step.after.image)
    else:
        assert Step(file, KAFKA_ERROR) == step


def test_closed_file() -> None:
    """No change is possible; up to 4.0 a second close fails."""
    closed = apply(file_of(BATCH), "close").after
    assert Step(closed, IO_ERROR) == apply(closed, "append", BATCH)
    assert Step(closed, IO_ERROR) == apply(closed, "truncate_to", 0)
    assert Step(closed, IO_ERROR) == apply(closed, "flush")
    assert ([], "kafka-error") == scanned(closed)
    assert Step(closed) == apply(closed, "close")
    old = file_of(BATCH, RELEASES["kafka-4.0.0"])
    old.close()
    assert IO_ERROR == outcome_of(old.close)


def test_read_only_file_is_not_changed() -> None:
    """Opened for reading: writing fails, closing cuts nothing."""
    file = file_of(BATCH, mutable=False)
    assert IO_ERROR == outcome_of(file.append, BATCH)
    file.close()
    assert BATCH == file.image


# --- slices --------------------------------------------------------------------------------------


def test_slices_see_their_range_only() -> None:
    """A batch that the slice cuts is not returned."""
    batches, _ = scanned(file_of(THREE).slice(SIZE, SIZE))
    assert [SIZE] == [batch.position for batch in batches]
    assert ([], None) == scanned(file_of(THREE).slice(SIZE, SIZE - 1))


@pytest.mark.checks("SCAN-16")
def test_slice_of_a_slice_by_release(any_kafka: Release) -> None:
    """Position 10 in a slice that begins at 60 and has 50 bytes: refused from 2.1 to 4.0."""
    found: Any = outcome_of(file_of(THREE, any_kafka).slice(60, 50).slice, 10, 5)
    if any_kafka.has(SliceOfSliceIsRefused):
        assert INVALID_ARGUMENT == found
    elif any_kafka.name in ("kafka-0.11.0.3", "kafka-0.10.2.2"):
        assert -20 == found.size  # it ends at the outer one's size
    else:
        assert file_of(THREE, any_kafka).slice(70, 5) == found


def test_slice_beyond_the_end() -> None:
    """Refused, but for releases before 2.1, which returned what can't be read."""
    assert INVALID_ARGUMENT == outcome_of(file_of(BATCH).slice, SIZE + 1, 5)
    assert 0 == file_of(BATCH).slice(SIZE, 5).size_in_bytes()
    beyond = file_of(BATCH, RELEASES["kafka-2.0.1"]).slice(SIZE + 1, 5)
    assert (([], None), b"") == (scanned(beyond), beyond.read())


# --- searches ------------------------------------------------------------------------------------


@pytest.mark.checks("SCAN-17")
def test_search_for_an_offset(any_kafka: Release) -> None:
    """Batches [0, 1], [2, 3] and [6]: 4 and 5 are gone, so the third batch answers for them."""
    file = file_of(THREE, any_kafka)
    answers = (1, 3, 6) if any_kafka.has(SearchAnswersLastOffset) else (0, 2, 6)
    sizes = [SIZE, SIZE, len(THREE) - 2 * SIZE]
    for target, number in ((-1, 0), (0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2)):
        wanted = LogOffsetPosition(answers[number], number * SIZE, sizes[number])
        assert wanted == file.search_for_offset_with_size(target)
    assert None is file.search_for_offset_with_size(7)


@pytest.mark.checks("SCAN-17")
def test_search_from_a_position_is_judged_by_what_lies_behind_it() -> None:
    """Offsets that fall back count where the search meets them, and only there."""
    head = bytes(8) + int32_bytes(INT32_MAX) + bytes(5)
    last = batch_at(9, 100)
    overlapping = file_of(head + batch_at(8, 100, 100, 100) + last)
    assert ([], None) == scanned(overlapping)
    wanted = LogOffsetPosition(9, overlapping.size - len(last), len(last))
    assert wanted == overlapping.search_for_offset_with_size(9, len(head))
    falls_back = file_of(batch_at(9, 100, 90) + THREE)
    found = falls_back.search_for_offset_with_size(2, SIZE)
    assert LogOffsetPosition(2, 2 * SIZE, SIZE) == found


def test_search_meets_an_error(any_kafka: Release) -> None:
    """What lies before the damage is found, unless the batch behind it must be looked at."""
    file = file_of(BATCH + bytes(18), any_kafka)
    assert CORRUPT_RECORD == outcome_of(file.search_for_offset_with_size, 2)
    assert isinstance(file.search_for_offset_with_size(0), LogOffsetPosition)
    looked_back = outcome_of(file.search_for_offset_with_size, 1)
    assert any_kafka.has(SearchComparesLastOffsets) is (looked_back != CORRUPT_RECORD)


@pytest.mark.checks("SCAN-18")
@pytest.mark.parametrize(
    ("target", "position", "offset", "expected"),
    [
        (0, 0, 0, (100, 0, None)),
        (90, 0, 1, (90, 1, None)),
        (95, 0, 1, (300, 2, 7)),
        (250, 0, 0, (300, 2, 7)),
        (300, 0, 3, (300, 6, None)),
        (150, 0, 3, (290, 3, 7)),
        (0, 2 * SIZE, 0, (300, 6, None)),
        (301, 0, 0, None),
        (0, 0, 7, None),
    ],
)
def test_search_for_a_timestamp(
    target: int, position: int, offset: int, expected: tuple[int, int, int | None] | None
) -> None:
    """Records (100, 0), (90, 1), (300, 2), (290, 3), (300, 6); up to 2.1 without the epoch."""
    assert expected == file_of(THREE).search_for_timestamp(target, position, offset)
    old = file_of(THREE, RELEASES["kafka-2.1.1"]).search_for_timestamp(target, position, offset)
    assert (expected and (*expected[:2], None)) == old


def test_oldest_search_by_time_knows_no_offset() -> None:
    """A message that promises a time which none of its own has is an illegal state."""
    oldest = RELEASES["kafka-0.10.2.2"]
    file = file_of(batch_at(0, 100, 90, magic=1), oldest)
    assert (100, 0, None) == file.search_for_timestamp(90, 0, 1)
    promising = file_of(encode_message(0, 5, -1, 1, None, b"a block of nothing"), oldest)
    promising.codecs = replace(NO_CODECS, inflate=lambda codec, data, limit: b"")
    illegal = Raised(ErrorKind.ILLEGAL_STATE)
    assert illegal == outcome_of(promising.search_for_timestamp, -1, 0, 0)


def test_timestamp_search_stops_at_unreadable_records() -> None:
    """A record found before the damage answers; a later one is the batch's error."""
    file = file_of(THREE[: 2 * SIZE - 1] + b"\x7f" + THREE[2 * SIZE :])
    assert (300, 2, 7) == file.search_for_timestamp(300, 0, 0)
    assert Raised(ErrorKind.INVALID_RECORD) == outcome_of(file.search_for_timestamp, 290, 0, 3)


@pytest.mark.checks("SCAN-19")
@pytest.mark.parametrize(
    ("position", "expected"),
    [(0, (300, 3, 7)), (2 * SIZE, (300, 6, None)), (len(THREE), (-1, -1, None))],
)
def test_largest_timestamp(position: int, expected: tuple[int, int, int | None]) -> None:
    """The earlier of two equal ones."""
    assert expected == file_of(THREE).largest_timestamp_after(position)
