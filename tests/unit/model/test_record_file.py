# SPDX-License-Identifier: Apache-2.0
"""The model of the record file: scanning, slices, cutting, searches, and each law of them.

Goal: where a scan ends and with what. Method: small files of one batch, and drawn ones.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.directory import Directory
from segproof_model.kafka.compression import NO_CODECS
from segproof_model.kafka.legacy_record import encode_message
from segproof_model.kafka.record_batch import Record, RecordBatch, write_batch
from segproof_model.kafka.record_file import (
    LogOffsetPosition,
    RecordFile,
    TimestampAndOffset,
    scan_memory,
)
from segproof_model.language.integers import INT32_MAX, int32_bytes
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.laws import record_file as laws
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import (
    KAFKA_0_10_2_2,
    KAFKA_1_1_1,
    KAFKA_2_4_1,
    KAFKA_4_3_1,
    KAFKA_4_4_0,
    KAFKA_PROFILES,
    SEGPROOF,
    Profile,
)

CORRUPT_RECORD = Raised(ErrorKind.CORRUPT_RECORD)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
IO_ERROR = Raised(ErrorKind.IO_ERROR)


def batch_at(offset: int, *timestamps: int, magic: int = 2, epoch: int = -1) -> bytes:
    """Return a batch with one record for each timestamp; before magic 2 as messages."""
    records = [Record(offset + n, at, b"k", b"v") for n, at in enumerate(timestamps)]
    data = write_batch(records, magic=magic, base_offset=offset, partition_leader_epoch=epoch)
    assert isinstance(data, bytes)
    return data


BATCH = batch_at(0, 100, 90)
SIZE = len(BATCH)
THREE = BATCH + batch_at(2, 300, 290, epoch=7) + batch_at(6, 300)


def opened(data: bytes, profile: Profile = KAFKA_4_3_1, **options: Any) -> RecordFile:
    """Return an open file that holds these bytes."""
    directory = Directory().write("0.log", data)
    after = RecordFile.open("0.log", directory=directory, profile=profile, **options).after
    assert isinstance(after, RecordFile)
    return after


def part(file: RecordFile, position: int, size: int) -> RecordFile:
    """Return the slice, which must not be refused."""
    sliced = file.slice(position, size)
    assert isinstance(sliced, RecordFile)
    return sliced


def checked(file: RecordFile, operation: str, arguments: Mapping[str, Any]) -> Step[RecordFile]:
    """Do the operation, and hold it against every step law; states against every state law."""
    answer = getattr(file, operation)(**arguments)
    step = answer if isinstance(answer, Step) else Step(file, answer)
    transition = Transition(file, operation, arguments, step.after, step.outcome)
    for law in LAWS.values():
        if law.structure == "record-file" and law.scope == "step":
            assert law.predicate(transition), law.law_id
        if law.structure == "record-file" and law.scope == "state":
            assert law.predicate(step.after), law.law_id
            assert not isinstance(answer, RecordFile) or law.predicate(answer), law.law_id
    return step


# --- the scanner of files ----------------------------------------------------------------------


def test_scan_returns_every_batch() -> None:
    """Positions and sizes of three batches."""
    scan = opened(THREE).batches()
    assert scan.error is None
    assert [batch.position for batch in scan.batches] == [0, SIZE, 2 * SIZE]
    assert sum(batch.size_bytes for batch in scan.batches) == len(THREE)
    assert [batch.last_offset for batch in scan.batches] == [1, 3, 6]


@pytest.mark.checks("SCAN-3")
@pytest.mark.parametrize("zeros", range(40))
def test_zero_tail_law(zeros: int) -> None:
    """SCAN-3: 17 zero bytes are passed over, 18 are corrupt."""
    assert laws.zeros_end_a_scan_or_break_it(BATCH, zeros)


@pytest.mark.checks("SCAN-4")
@given(st.integers(-128, 127), st.sampled_from([SEGPROOF, *KAFKA_PROFILES]))
def test_magic_law(magic: int, profile: Profile) -> None:
    """SCAN-4: upstream scans any magic; segproof calls one outside 0..2 corrupt."""
    assert laws.no_magic_is_rejected(BATCH, magic, profile)


@pytest.mark.checks("SCAN-6")
@given(st.integers(0, 40), st.sampled_from([SEGPROOF, *KAFKA_PROFILES]))
def test_huge_size_law(below_largest: int, profile: Profile) -> None:
    """SCAN-6."""
    assert laws.huge_sizes_end_a_scan(BATCH, below_largest, profile)


@pytest.mark.checks("SCAN-6")
def test_limits_that_wrap_accept_a_huge_size() -> None:
    """0.11 and 1.0: the sum wraps, the batch is accepted, and the next position is negative."""
    profile = replace(KAFKA_1_1_1, scanner_limits_wrap=True)
    scan = opened(BATCH[:8] + int32_bytes(INT32_MAX) + BATCH[12:], profile).batches()
    assert [batch.size_bytes for batch in scan.batches] == [11 - 2**31]
    assert scan.error == INVALID_ARGUMENT
    assert scan.batches[0].ensure_valid() == INVALID_ARGUMENT


def test_partial_batch_ends_the_scan() -> None:
    """One byte short is the end, without an error."""
    assert opened(BATCH + BATCH[:-1]).batches().error is None
    assert len(opened(BATCH + BATCH[:-1]).batches().batches) == 1


@pytest.mark.checks("SCAN-7")
@pytest.mark.parametrize(
    ("profile", "error"),
    [(KAFKA_4_3_1, CORRUPT_RECORD), (SEGPROOF, CORRUPT_RECORD), (KAFKA_2_4_1, KAFKA_ERROR)],
)
def test_file_shorter_than_believed(profile: Profile, error: Raised) -> None:
    """SCAN-7: another process has cut the file below the second header."""
    file = opened(THREE, profile)
    cut = replace(file, directory=file.directory.write("0.log", THREE[: SIZE + 5]))
    scan = cut.batches()
    assert (len(scan.batches), scan.error) == (1, error)
    assert laws.end_of_file_inside_is_corrupt(cut)


def test_batch_whose_end_is_gone() -> None:
    """A header that is still there is handed out; the batch behind it can't be read."""
    file = opened(BATCH)
    cut = replace(file, directory=file.directory.write("0.log", BATCH[:61]))
    (batch,) = cut.batches().batches
    assert (batch.last_offset, batch.ensure_valid(), batch.records()) == (
        1,
        KAFKA_ERROR,
        KAFKA_ERROR,
    )


@pytest.mark.checks("SCAN-10")
def test_short_header_is_the_kafka_error() -> None:
    """SCAN-10: a batch of magic 2 with size 20 in a file of 40 bytes."""
    file = opened(BATCH[:8] + int32_bytes(20) + BATCH[12:40])
    (batch,) = file.batches().batches
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (
        0,
        KAFKA_ERROR,
        KAFKA_ERROR,
    )
    assert batch.ensure_valid() == CORRUPT_RECORD
    assert laws.short_headers_are_kafka_errors(file)


@pytest.mark.checks("SCAN-4")
def test_negative_magic() -> None:
    """Its offset can be read, its timestamp is an invalid argument, and it is not valid."""
    (batch,) = opened(BATCH[:16] + b"\xff" + BATCH[17:]).batches().batches
    assert (batch.magic, batch.last_offset) == (-1, 0)
    assert batch.max_timestamp == INVALID_ARGUMENT
    assert batch.ensure_valid() == CORRUPT_RECORD


def test_messages_of_old_magic_are_batches_of_one() -> None:
    """Uncompressed magic 0 and 1."""
    for magic in (0, 1):
        scan = opened(batch_at(5, 1, 2, magic=magic)).batches()
        assert [batch.last_offset for batch in scan.batches] == [5, 6]


# --- the scanner of memory ---------------------------------------------------------------------


@pytest.mark.checks("SCAN-9")
@pytest.mark.parametrize(
    ("tail", "error"),
    [
        (bytes(11), None),
        (bytes(12), CORRUPT_RECORD),
        (bytes(8) + int32_bytes(14), None),
        (bytes(8) + int32_bytes(14) + b"\0\0\0\0\3", CORRUPT_RECORD),
        (bytes(8) + int32_bytes(14) + b"\0\0\0\0\2", None),
        (BATCH[:-1], None),
        (bytes(8) + int32_bytes(1001), CORRUPT_RECORD),
    ],
)
def test_memory_scan(tail: bytes, error: Raised | None) -> None:
    """SCAN-9, with a limit of 1000 bytes."""
    scan = scan_memory(BATCH + tail, 1000)
    assert (len(scan.batches), scan.error) == (1, error)
    assert laws.memory_scan_tests_in_order(BATCH + tail, 1000)


@pytest.mark.checks("SCAN-9")
@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: BATCH + tail))
def test_memory_scan_law(data: bytes) -> None:
    """SCAN-9 on any bytes."""
    assert laws.memory_scan_tests_in_order(data, 10_000)


# --- opening, appending, cutting, closing ------------------------------------------------------


@pytest.mark.checks("SCAN-13")
@pytest.mark.parametrize(("profile", "left"), [(KAFKA_4_3_1, SIZE), (KAFKA_4_4_0, 500)])
def test_preallocated_file(profile: Profile, left: int) -> None:
    """The logical size starts at 0; appends go there; up to 4.3 close cuts the rest, which a crash
    leaves."""
    after = RecordFile.open("0.log", init_file_size=500, preallocate=True, profile=profile).after
    assert isinstance(after, RecordFile)
    assert (after.size_in_bytes(), len(after.to_bytes())) == (0, 500)
    step = checked(after, "append", {"records": BATCH})
    assert step.outcome == SIZE
    assert len(step.after.to_bytes()) == 500
    assert step.after.read() == BATCH
    assert checked(step.after, "close", {}).after.to_bytes() == BATCH.ljust(left, b"\0")
    crashed = opened(step.after.to_bytes())
    assert crashed.size_in_bytes() == 500
    assert crashed.batches().error == CORRUPT_RECORD


def test_preallocation_is_for_new_files_only() -> None:
    """A file that exists is believed to its end."""
    again = opened(BATCH, file_already_exists=True, init_file_size=500, preallocate=True)
    assert (again.size_in_bytes(), again.to_bytes()) == (SIZE, BATCH)
    refused = RecordFile.open("0.log", init_file_size=-1, preallocate=True)
    assert refused.outcome == IO_ERROR


def test_reading_a_missing_file() -> None:
    """Only an opening for writing creates it."""
    assert RecordFile.open("0.log", False).outcome == Raised(ErrorKind.FILE_NOT_FOUND)
    assert RecordFile.open("0.log", False).after == Directory()
    created = RecordFile.open("0.log").after
    assert isinstance(created, RecordFile)
    assert list(created.directory) == ["0.log"]


@pytest.mark.checks("SCAN-11")
def test_append_beyond_the_largest_size() -> None:
    """SCAN-11: nothing is written."""
    nearly_full = replace(opened(b""), size=INT32_MAX - 5)
    step = nearly_full.append(bytes(6))
    assert step == Step(nearly_full, INVALID_ARGUMENT)


@pytest.mark.checks("SCAN-12")
@pytest.mark.parametrize("target", [-1, 0, 1, SIZE, SIZE + 1])
def test_truncation(target: int) -> None:
    """SCAN-12."""
    step = checked(opened(BATCH), "truncate_to", {"target_size": target})
    if 0 <= target <= SIZE:
        assert (step.outcome, step.after.to_bytes()) == (SIZE - target, BATCH[:target])
    else:
        assert (step.outcome, step.after) == (KAFKA_ERROR, opened(BATCH))


def test_closed_file() -> None:
    """No change is possible; only the oldest releases mind a second close."""
    closed = opened(BATCH).close().after
    assert closed.append(BATCH).outcome == IO_ERROR
    assert closed.truncate_to(0) == Step(closed, IO_ERROR)
    assert closed.flush().outcome == IO_ERROR
    assert closed.batches() == ((), KAFKA_ERROR)
    assert closed.close() == Step(closed, None)
    assert opened(BATCH, KAFKA_2_4_1).close().after.close().outcome == IO_ERROR


def test_read_only_file_is_not_changed() -> None:
    """Opened for reading: writing fails, closing cuts nothing."""
    file = opened(BATCH, mutable=False)
    assert file.append(BATCH) == Step(file, IO_ERROR)
    assert file.close().after.to_bytes() == BATCH


# --- slices ------------------------------------------------------------------------------------


def test_slices_see_their_range_only() -> None:
    """A batch that the slice cuts is not returned."""
    middle = part(opened(THREE), SIZE, SIZE)
    assert [batch.position for batch in middle.batches().batches] == [SIZE]
    assert part(opened(THREE), SIZE, SIZE - 1).batches() == ((), None)
    assert middle.append(BATCH).outcome == INVALID_ARGUMENT
    assert middle.close() == Step(middle, None)


@pytest.mark.checks("SCAN-14", "SCAN-16")
@given(
    st.integers(-2, 2 * SIZE),
    st.integers(-2, 2 * SIZE) | st.just(INT32_MAX),
    st.integers(-2, 2 * SIZE),
    st.integers(-2, 2 * SIZE),
    st.sampled_from([SEGPROOF, *KAFKA_PROFILES]),
)
def test_slice_laws(position: int, size: int, inner: int, count: int, profile: Profile) -> None:
    """SCAN-14, -15, -16 on slices of slices, in every profile."""
    outer = checked(opened(THREE, profile), "slice", {"position": position, "size": size}).outcome
    if isinstance(outer, RecordFile) and outer.size >= 0:
        checked(outer, "slice", {"position": inner, "size": count})


@pytest.mark.checks("SCAN-16")
def test_slice_of_a_slice_by_release() -> None:
    """Position 10 in a slice that begins at 60 and has 50 bytes: refused from 2.1 to 3.9."""
    outcomes = {
        profile.name: part(opened(THREE, profile), 60, 50).slice(10, 5)
        for profile in (SEGPROOF, *KAFKA_PROFILES)
    }
    refused = {name for name, outcome in outcomes.items() if isinstance(outcome, Raised)}
    expected = {
        profile.name for profile in (SEGPROOF, *KAFKA_PROFILES) if profile.slice_start_refused
    }
    assert refused == expected
    assert "segproof" not in refused
    assert outcomes["segproof"] == part(opened(THREE, SEGPROOF), 70, 5)


def test_slice_beyond_the_end() -> None:
    """Refused, but for releases before 2.1, which returned what can't be read."""
    assert opened(BATCH).slice(SIZE + 1, 5) == INVALID_ARGUMENT
    assert part(opened(BATCH), SIZE, 5).size_in_bytes() == 0
    beyond = part(opened(BATCH, KAFKA_1_1_1), SIZE + 1, 5)
    assert (beyond.batches(), beyond.read()) == (((), None), b"")


# --- searches ----------------------------------------------------------------------------------


@pytest.mark.checks("SCAN-17")
@pytest.mark.parametrize("profile", [SEGPROOF, *KAFKA_PROFILES], ids=lambda profile: profile.name)
def test_search_for_an_offset(profile: Profile) -> None:
    """Batches [0, 1], [2, 3] and [6]: 4 and 5 are gone, so the third batch answers for them."""
    file = opened(THREE, profile)
    bases, lasts = (0, 2, 6), (1, 3, 6)
    sizes = [batch.size_bytes for batch in file.batches().batches]
    for target, number in ((-1, 0), (0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2)):
        arguments = {"target_offset": target, "starting_position": 0}
        found = checked(file, "search_for_offset_with_size", arguments).outcome
        answers = bases if profile.search_answers_base_offset else lasts
        assert found == LogOffsetPosition(answers[number], number * SIZE, sizes[number])
    arguments = {"target_offset": 7, "starting_position": 0}
    assert checked(file, "search_for_offset_with_size", arguments).outcome is None


@pytest.mark.checks("SCAN-17")
def test_search_from_a_position_is_judged_by_what_lies_behind_it() -> None:
    """Offsets that fall back count where the search meets them, and only there."""
    head = bytes(8) + int32_bytes(INT32_MAX) + bytes(5)
    last = batch_at(9, 100)
    overlapping = head + batch_at(8, 100, 100, 100) + last
    arguments = {"target_offset": 9, "starting_position": len(head)}
    assert opened(overlapping).batches() == ((), None)
    found = checked(opened(overlapping), "search_for_offset_with_size", arguments).outcome
    assert found == LogOffsetPosition(9, len(overlapping) - len(last), len(last))
    falls_back = opened(batch_at(9, 100, 90) + THREE)
    arguments = {"target_offset": 2, "starting_position": SIZE}
    found = checked(falls_back, "search_for_offset_with_size", arguments).outcome
    assert found == LogOffsetPosition(2, 2 * SIZE, SIZE)
    wrong = Transition(falls_back, "search_for_offset_with_size", arguments, falls_back, None)
    assert not laws.offset_search_finds_the_first(wrong)


@pytest.mark.parametrize("profile", [SEGPROOF, *KAFKA_PROFILES], ids=lambda profile: profile.name)
def test_search_meets_an_error(profile: Profile) -> None:
    """What lies before the damage is found, unless the batch behind it must be looked at."""
    file = opened(BATCH + bytes(18), profile)
    assert file.search_for_offset_with_size(2) == CORRUPT_RECORD
    found = file.search_for_offset_with_size(0)
    assert isinstance(found, LogOffsetPosition)
    looks_back = file.search_for_offset_with_size(1)
    expected_error = profile.search_compares_base_offsets
    assert (looks_back == CORRUPT_RECORD) == expected_error


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
    """Records (100, 0), (90, 1), (300, 2), (290, 3), (300, 6)."""
    arguments = {
        "target_timestamp": target,
        "starting_position": position,
        "starting_offset": offset,
    }
    found = checked(opened(THREE), "search_for_timestamp", arguments).outcome
    assert found == (None if expected is None else TimestampAndOffset(*expected))


def test_oldest_search_by_time_knows_no_offset() -> None:
    """A message that promises a time which none of its own has is an illegal state."""
    messages = [Record(0, 100, None, b"v"), Record(1, 90, None, b"v")]
    data = write_batch(messages, magic=1, base_offset=0)
    assert isinstance(data, bytes)
    file = laws.file_of(data, KAFKA_0_10_2_2)
    assert file.search_for_timestamp(90, 0, 1) == TimestampAndOffset(100, 0, None)
    nothing = replace(NO_CODECS, inflate=lambda codec, data, limit: b"")
    wrapper = encode_message(0, 5, -1, 1, None, b"a block of nothing")
    promising = replace(laws.file_of(wrapper, KAFKA_0_10_2_2), codecs=nothing)
    assert promising.search_for_timestamp(-1, 0, 0) == Raised(ErrorKind.ILLEGAL_STATE)


@pytest.mark.parametrize("zeros", range(12, 20))
def test_oldest_scanner_reads_sizes_only(zeros: int) -> None:
    """Twelve bytes may follow the last message; later releases allow seventeen."""
    data = write_batch([Record(0, 100, None, b"v")], magic=1, base_offset=0)
    assert isinstance(data, bytes)
    for profile, allowed in ((KAFKA_0_10_2_2, 12), (KAFKA_4_3_1, 17)):
        error = laws.file_of(data + bytes(zeros), profile).batches().error
        assert error == (None if zeros <= allowed else CORRUPT_RECORD)


def test_timestamp_search_stops_at_unreadable_records() -> None:
    """A record found before the damage answers; a later one is the batch's error."""
    damaged = THREE[: 2 * SIZE - 1] + b"\x7f" + THREE[2 * SIZE :]
    file = opened(damaged)
    assert file.search_for_timestamp(300, 0, 0) == TimestampAndOffset(300, 2, 7)
    assert file.search_for_timestamp(290, 0, 3) == Raised(ErrorKind.INVALID_RECORD)


@pytest.mark.checks("SCAN-19")
@pytest.mark.parametrize(
    ("position", "expected"),
    [(0, (300, 3, 7)), (2 * SIZE, (300, 6, None)), (len(THREE), (-1, -1, None))],
)
def test_largest_timestamp(position: int, expected: tuple[int, int, int | None]) -> None:
    """SCAN-19: the earlier of two equal ones."""
    arguments = {"starting_position": position}
    found = checked(opened(THREE), "largest_timestamp_after", arguments).outcome
    assert found == TimestampAndOffset(*expected)


# --- any history -------------------------------------------------------------------------------

any_batch = st.tuples(
    st.integers(0, 20), st.lists(st.integers(0, 50), min_size=1, max_size=3), st.integers(0, 2)
).map(lambda drawn: batch_at(drawn[0], *drawn[1], magic=drawn[2]))
any_bytes = st.one_of(any_batch, any_batch.map(lambda data: data[:-3]), st.binary(max_size=40))
offsets, positions = st.integers(-1, 25), st.sampled_from((0, SIZE, 10))
operations = st.one_of(
    st.tuples(st.just("append"), st.fixed_dictionaries({"records": any_bytes})),
    st.tuples(st.just("append"), st.fixed_dictionaries({"records": any_batch})),
    st.tuples(st.just("truncate_to"), st.fixed_dictionaries({"target_size": st.integers(-1, 300)})),
    st.tuples(st.sampled_from(("trim", "flush")), st.just({})),
    st.tuples(
        st.just("slice"),
        st.fixed_dictionaries({"position": st.integers(-1, 300), "size": st.integers(-1, 300)}),
    ),
    st.tuples(
        st.just("search_for_offset_with_size"),
        st.fixed_dictionaries({"target_offset": offsets, "starting_position": positions}),
    ),
    st.tuples(
        st.just("search_for_timestamp"),
        st.fixed_dictionaries(
            {
                "target_timestamp": st.integers(-1, 60),
                "starting_position": positions,
                "starting_offset": offsets,
            }
        ),
    ),
    st.tuples(
        st.just("largest_timestamp_after"),
        st.fixed_dictionaries({"starting_position": positions}),
    ),
)


@pytest.mark.checks("SCAN-3")
@given(
    st.integers(0, 20),
    st.lists(st.integers(0, 50), min_size=1, max_size=3),
    st.integers(0, 40),
)
def test_zero_tail_law_for_any_batch(offset: int, timestamps: list[int], zeros: int) -> None:
    """SCAN-3: the limit of 17 bytes is the same whatever stands before the zeros."""
    assert laws.zeros_end_a_scan_or_break_it(batch_at(offset, *timestamps), zeros)


@given(
    st.sampled_from([SEGPROOF, *KAFKA_PROFILES]),
    st.booleans(),
    st.lists(operations, max_size=8),
)
def test_laws_hold_in_any_history(
    profile: Profile, preallocate: bool, history: list[tuple[str, dict[str, Any]]]
) -> None:
    """Every step law on each step, every state law on each state and each slice."""
    after = RecordFile.open(
        "0.log", init_file_size=200, preallocate=preallocate, profile=profile
    ).after
    assert isinstance(after, RecordFile)
    file = after
    for operation, arguments in history:
        file = checked(file, operation, arguments).after
    checked(file, "close", {})


@given(st.binary(max_size=120), st.sampled_from([SEGPROOF, *KAFKA_PROFILES]))
def test_any_bytes_can_be_scanned(data: bytes, profile: Profile) -> None:
    """A scan ends, and every batch it hands out answers every question."""
    for batch in opened(data, profile).batches().batches:
        assert isinstance(batch, RecordBatch)
        batch.records()
        batch.ensure_valid()
