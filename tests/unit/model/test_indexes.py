# SPDX-License-Identifier: Apache-2.0
"""Worked examples of the offset and the time index, most of them seen on the real classes."""

from typing import Any

import pytest

from segproof_model.directory import Directory
from segproof_model.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof_model.kafka.time_index import TimeIndex, TimestampOffset
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import (
    KAFKA_0_10_2_2,
    KAFKA_0_11_0_3,
    KAFKA_1_1_1,
    KAFKA_2_4_1,
    KAFKA_4_3_1,
    KAFKA_PROFILES,
    SEGPROOF,
    Profile,
)

KAFKA = (KAFKA_4_3_1, KAFKA_2_4_1, KAFKA_1_1_1)
EVERY = pytest.mark.parametrize("profile", [SEGPROOF, *KAFKA_PROFILES], ids=lambda one: one.name)
EVERY_KAFKA = pytest.mark.parametrize("profile", KAFKA, ids=lambda profile: profile.name)
FOUR = ((1, 10), (4, 40), (6, 60), (8, 80))


def offsets(
    *entries: tuple[int, int], base: int = 0, size: int = 80, profile: Profile = KAFKA_4_3_1
) -> Any:
    """Return an offset index with these entries."""
    index: Any = OffsetIndex.open("a", base, size, profile=profile).after
    for entry in entries:
        step = index.append(*entry)
        assert step.outcome is None
        index = step.after
    return index


def times(
    *entries: tuple[int, int], base: int = 0, size: int = 120, profile: Profile = KAFKA_4_3_1
) -> Any:
    """Return a time index with these entries."""
    index: Any = TimeIndex.open("a", base, size, profile=profile).after
    for entry in entries:
        step = index.maybe_append(*entry)
        assert step.outcome is None
        index = step.after
    return index


def found(kind: Any, image: bytes, base: int, profile: Profile, writable: bool = True) -> Any:
    """Return the index that opens these bytes."""
    directory = Directory().write("a", image)
    return kind.open("a", base, -1, writable, directory=directory, profile=profile).after


# Opening


@EVERY
@pytest.mark.parametrize(
    ("kind", "limit", "length"),
    [
        (OffsetIndex, 67, 64),
        (TimeIndex, 67, 60),
        (OffsetIndex, 8, 8),
        (TimeIndex, 12, 12),
    ],
)
def test_limit_is_rounded_to_whole_entries(
    kind: Any, limit: int, length: int, profile: Profile
) -> None:
    """A new file has the greatest multiple of the entry size in its limit (ABSIDX-1)."""
    index = kind.open("a", 0, limit, profile=profile).after
    size = kind.ENTRY_SIZE
    assert bytes(length) == index.image
    assert (length, length // size, 0, 0) == (
        index.length,
        index.max_entries,
        index.entries,
        index.position,
    )


def test_default_limit_of_a_time_index() -> None:
    """10 MiB are no multiple of 12."""
    assert 10485756 == TimeIndex.open("a", 0, 10485760).after.length  # type: ignore[union-attr]
    assert 10485760 == OffsetIndex.open("a", 0, 10485760).after.length  # type: ignore[union-attr]


@EVERY_KAFKA
def test_opening_what_exists(profile: Profile) -> None:
    """20 bytes are two entries and full; closing cuts them to 16."""
    index = found(OffsetIndex, bytes(20), 50, profile)
    assert (2, 2, 20, 16) == (index.entries, index.max_entries, index.length, index.position)
    assert index.is_full
    assert 16 == len(index.close().after.image)


@EVERY_KAFKA
def test_zeros_are_entries_upstream(profile: Profile) -> None:
    """A zero file of 80 bytes opens with ten entries at the base offset."""
    index = found(OffsetIndex, bytes(80), 50, profile)
    assert (10, 50) == (index.entries, index.last_offset)


def test_zeros_at_the_end_are_free_in_segproof() -> None:
    """A zero tail is no entry, and can be written to."""
    index = found(OffsetIndex, offsets((42, 144), base=40).image, 40, SEGPROOF)
    assert (1, 10, 42, False) == (
        index.entries,
        index.max_entries,
        index.last_offset,
        index.is_full,
    )
    assert [(42, 144), (44, 288)] == index.append(44, 288).after.entries_list()


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_limit_without_room(kind: Any) -> None:
    """A limit below one entry is refused; upstream leaves an empty file behind (ABSIDX-2)."""
    step = kind.open("a", 0, 7)
    assert (Raised(ErrorKind.INVALID_ARGUMENT), b"") == (step.outcome, step.after.read("a"))
    step = kind.open("a", 0, 7, profile=SEGPROOF)
    assert (Raised(ErrorKind.INVALID_ARGUMENT), Directory()) == (step.outcome, step.after)


def test_read_only_opening_of_nothing() -> None:
    """Upstream fails to set the length; segproof says that there is no file."""
    step = OffsetIndex.open("a", 0, 80, False)
    assert Raised(ErrorKind.IO_ERROR) == step.outcome
    step = OffsetIndex.open("a", 0, 80, False, profile=SEGPROOF)
    assert (Raised(ErrorKind.FILE_NOT_FOUND), Directory()) == (step.outcome, step.after)


# Searching


@EVERY
@pytest.mark.parametrize(
    ("target", "lower", "upper"),
    [(0, 0, 10), (1, 10, 40), (3, 10, 40), (4, 40, 40), (5, 40, 60), (9, 80, None)],
)
def test_four_entries_both_ways(
    target: int, lower: int, upper: int | None, profile: Profile
) -> None:
    """[1 4 6 8] searched downward by offset, and upward by position."""
    index = offsets(*FOUR, profile=profile)
    lowest = (0, 0) if lower == 0 else (lower // 10, lower)
    assert lowest == index.lookup(target)
    if profile.upper_bound_exact and target == 1:
        upper = 10
    above = index.fetch_upper_bound_offset(OffsetPosition(0, 0), 10 * target)
    assert (None if upper is None else (upper // 10, upper)) == above


@EVERY_KAFKA
def test_upper_bound_wraps_upstream(profile: Profile) -> None:
    """A sum of more than 31 bits is negative, so the first entry is found (OFFIDX-15)."""
    index = offsets(*FOUR, profile=profile)
    assert (1, 10) == index.fetch_upper_bound_offset(OffsetPosition(8, 2**31 - 1), 1)
    exact = offsets(*FOUR, profile=SEGPROOF)
    assert None is exact.fetch_upper_bound_offset(OffsetPosition(8, 2**31 - 1), 1)


def test_equal_keys_depend_on_the_search() -> None:
    """Two equal offsets: the plain search meets the second, the warm one starts at the first."""
    image = offsets((5, 1)).image[:8] + offsets((5, 2)).image[:8]
    assert (5, 1) == found(OffsetIndex, image, 0, KAFKA_4_3_1).lookup(5)
    assert (5, 2) == found(OffsetIndex, image, 0, KAFKA_1_1_1).lookup(5)


def test_untrimmed_tail_answers_the_base() -> None:
    """Zero slots that count as entries make lookups slow, never wrong."""
    genuine = offsets((42, 144), (44, 288), base=40).image[:16]
    upstream = found(OffsetIndex, genuine.ljust(1000, b"\0"), 40, KAFKA_4_3_1)
    assert (125, 40) == (upstream.entries, upstream.last_offset)
    assert [(40, 0), (40, 0)] == [upstream.lookup(43), upstream.lookup(44)]
    ours = found(OffsetIndex, genuine.ljust(1000, b"\0"), 40, SEGPROOF)
    assert [(42, 144), (44, 288)] == [ours.lookup(43), ours.lookup(44)]
    stale = found(TimeIndex, bytes(120), 40, KAFKA_4_3_1)
    assert TimestampOffset(0, 40) == stale.last_entry


@EVERY
def test_lookup_by_timestamp(profile: Profile) -> None:
    """Below the first timestamp there is (-1, base)."""
    index = times((1000, 105), (1010, 110), base=100, profile=profile)
    wanted = [(-1, 100), (1000, 105), (1000, 105), (1010, 110), (1010, 110)]
    assert wanted == [index.lookup(target) for target in (999, 1000, 1009, 1010, 2000)]


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [(KAFKA_4_3_1, (104, 40)), (KAFKA_2_4_1, (104, 40)), (KAFKA_1_1_1, (4, 40))],
)
def test_entry_is_relative_in_old_releases(profile: Profile, wanted: tuple[int, int]) -> None:
    """entry(n) had the relative offset up to 2.2 (OFFIDX-14)."""
    index = offsets((101, 10), (104, 40), base=100, profile=profile)
    assert wanted == index.entry(1)
    assert Raised(ErrorKind.INVALID_ARGUMENT) == index.entry(2)
    assert Raised(ErrorKind.INDEX_ERROR) == index.entry(-1)


# Appending


@EVERY
def test_first_offset_may_be_the_base(profile: Profile) -> None:
    """The base itself can be appended, once."""
    index = offsets((100, 7), base=100, profile=profile)
    assert Raised(ErrorKind.INVALID_OFFSET) == index.append(100, 8).outcome


@pytest.mark.parametrize("profile", [KAFKA_4_3_1, KAFKA_2_4_1, SEGPROOF])
@pytest.mark.parametrize("offset", [99, 100 + 2**31])
def test_distance_of_31_bits(offset: int, profile: Profile) -> None:
    """What 31 bits don't hold is refused since 2.0 (OFFIDX-6)."""
    index = offsets(base=100, profile=profile)
    step = index.append(offset, 0)
    assert (Raised(ErrorKind.INDEX_OFFSET_OVERFLOW), index) == (step.outcome, step.after)
    assert index.append(99 + 2**31, 0).outcome is None


def test_distance_is_cut_in_1_1() -> None:
    """100 + 2^31 was stored as the most negative distance, and then looked up as such."""
    index = offsets((100 + 2**31, 0), base=100, profile=KAFKA_1_1_1)
    assert (-2147483548, 0) == index.lookup(0)
    assert offsets(base=100, profile=KAFKA_1_1_1).append(99, 0).outcome is None


@EVERY
def test_positions_are_stored_as_they_are(profile: Profile) -> None:
    """Negative, repeated and falling positions pass (OFFIDX-9)."""
    index = offsets((1, 50), (2, 50), (3, 7), (4, -1), profile=profile)
    assert [50, 50, 7, -1] == index.values()


def test_full_is_tested_first() -> None:
    """A full index says so, whatever is appended; also when it is unmapped."""
    index = offsets((1, 1), size=8)
    full = Raised(ErrorKind.INVALID_ARGUMENT)
    assert [full, full] == [index.append(0, 0).outcome, index.append(2**40, 0).outcome]
    assert full == index.close_handler().after.append(2, 0).outcome
    assert Raised(ErrorKind.UNMAPPED) == offsets((1, 1)).close_handler().after.append(2, 0).outcome


@EVERY
def test_time_index_keeps_a_slot(profile: Profile) -> None:
    """One slot is only for an append with the skip flag; then there is no room at all."""
    index = times((1, 1), (2, 2), size=36, profile=profile)
    assert index.is_full
    assert Raised(ErrorKind.INVALID_ARGUMENT) == index.maybe_append(2, 2).outcome
    last = index.maybe_append(3, 3, True).after
    assert Raised(ErrorKind.BUFFER_OVERFLOW) == last.maybe_append(4, 4, True).outcome


@EVERY
def test_offset_is_tested_before_the_timestamp(profile: Profile) -> None:
    """A pair too small in both is an invalid offset (TIMEIDX-4)."""
    index = times((5, 105), profile=profile)
    outcomes = [index.maybe_append(*pair).outcome for pair in ((4, 104), (4, 105), (5, 109))]
    wanted = [Raised(ErrorKind.INVALID_OFFSET), Raised(ErrorKind.ILLEGAL_STATE), None]
    assert wanted == outcomes


@EVERY
def test_negative_timestamps_are_not_stored(profile: Profile) -> None:
    """-1 is what an empty index compares with; 0 is stored."""
    index = times(profile=profile)
    assert index == index.maybe_append(-1, 5).after == index.maybe_append(-2, 5).after
    assert [(0, 5)] == index.maybe_append(0, 5).after.entries_list()


@pytest.mark.parametrize(
    ("profile", "kind"),
    [(KAFKA_4_3_1, ErrorKind.ILLEGAL_STATE), (KAFKA_2_4_1, ErrorKind.INVALID_ARGUMENT)],
)
def test_half_a_time_entry(profile: Profile, kind: ErrorKind) -> None:
    """An offset too far leaves a timestamp behind, and the next append is 8 bytes off."""
    index = times(base=100, profile=profile)
    half = index.maybe_append(7, 100 + 2**31)
    assert Raised(ErrorKind.INDEX_OFFSET_OVERFLOW) == half.outcome
    assert (0, 8, (-1, 100)) == (half.after.entries, half.after.position, half.after.last_entry)
    step = half.after.maybe_append(8, 105)
    assert (Raised(kind), 1, 20) == (step.outcome, step.after.entries, step.after.position)
    assert [(7, 100)] == step.after.entries_list()
    assert (8, 105) == step.after.last_entry


def test_segproof_writes_no_half_entry() -> None:
    """segproof tests before it writes."""
    index = times(base=100, profile=SEGPROOF)
    step = index.maybe_append(7, 100 + 2**31)
    assert (Raised(ErrorKind.INDEX_OFFSET_OVERFLOW), index) == (step.outcome, step.after)


@EVERY_KAFKA
def test_spare_bytes_take_half_an_entry(profile: Profile) -> None:
    """With 8 spare bytes the timestamp is written before the buffer overflows (TIMEIDX-16)."""
    index = found(TimeIndex, times((5, 5)).image[:20], 0, profile)
    step = index.maybe_append(7, 7, True)
    assert (Raised(ErrorKind.BUFFER_OVERFLOW), 1, 20) == (
        step.outcome,
        step.after.entries,
        step.after.position,
    )


# Truncating


@EVERY
@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (1, 0), (4, 1), (5, 2), (8, 3), (9, 4)])
def test_truncation_keeps_what_is_below(offset: int, kept: int, profile: Profile) -> None:
    """[1 4 6 8] truncated at 4 keeps one entry, at 5 two; the file stays (OFFIDX-17, ABSIDX-20)."""
    index = offsets(*FOUR, profile=profile)
    after = index.truncate_to(offset).after
    assert FOUR[:kept] == tuple(after.entries_list())
    assert (index.image, FOUR[kept - 1][0] if kept else 0) == (after.image, after.last_offset)
    by_time = times(*((1000 + one, one) for one, _ in FOUR), profile=profile)
    assert kept == by_time.truncate_to(offset).after.entries


@pytest.mark.parametrize(
    ("stored", "plain", "warm"), [((50, 55, 55, 55, 60), 2, 2), ((55, 55, 55), 1, 0)]
)
def test_truncation_with_equal_offsets(stored: tuple[int, ...], plain: int, warm: int) -> None:
    """Where offsets repeat, the search decides what survives truncation to 55 (TIMEIDX-12)."""
    kept = [
        times(*enumerate(stored, 1), base=50, profile=profile).truncate_to(55).after.entries
        for profile in KAFKA
    ]
    assert [warm, warm, plain] == kept


@EVERY_KAFKA
def test_unmapped_truncation_counts_first(profile: Profile) -> None:
    """truncate forgets the entries and then fails; truncate_to fails first."""
    index = offsets(*FOUR, profile=profile).close_handler().after
    steps = [index.truncate(), index.truncate_to(4)]
    unmapped = Raised(ErrorKind.UNMAPPED)
    assert [(unmapped, 0), (unmapped, 4)] == [(step.outcome, step.after.entries) for step in steps]
    ours = offsets(*FOUR, profile=SEGPROOF).close().after
    assert (unmapped, ours) == (ours.truncate().outcome, ours.truncate().after)


# Resizing and closing


@EVERY_KAFKA
def test_resize_below_the_position(profile: Profile) -> None:
    """The file is cut before the error, and lookups then leave the file (ABSIDX-9)."""
    index = offsets(*FOUR, profile=profile)
    step = index.resize(16)
    assert Raised(ErrorKind.INVALID_ARGUMENT) == step.outcome
    cut = step.after
    assert (16, 2, 4, 0) == (cut.length, cut.max_entries, cut.entries, cut.position)
    assert Raised(ErrorKind.INDEX_ERROR) == cut.lookup(9)


@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        (KAFKA_4_3_1, ErrorKind.ILLEGAL_STATE),
        (KAFKA_2_4_1, ErrorKind.INVALID_ARGUMENT),
        (KAFKA_1_1_1, ErrorKind.INVALID_ARGUMENT),
    ],
)
def test_append_behind_a_failed_resize(profile: Profile, kind: ErrorKind) -> None:
    """Grown again, the index writes over its first slot, counts on, and then complains."""
    index = offsets(*FOUR, profile=profile).resize(16).after.resize(80).after
    assert (4, 10, 0) == (index.entries, index.max_entries, index.position)
    step = index.append(500, 1)
    assert (Raised(kind), 5, 8, 500) == (
        step.outcome,
        step.after.entries,
        step.after.position,
        step.after.last_offset,
    )
    assert (500, 1) == step.after.entries_list()[0]


@EVERY_KAFKA
def test_time_index_behind_a_failed_resize(profile: Profile) -> None:
    """A second resize can't read the last entry, which lies outside the file."""
    index = times((5, 5), (6, 6), (7, 7), (8, 8), profile=profile).resize(12).after
    step = index.resize(24)
    assert (Raised(ErrorKind.INDEX_ERROR), 24, 4, (8, 8)) == (
        step.outcome,
        step.after.length,
        step.after.entries,
        step.after.last_entry,
    )
    emptied = times((5, 5), (6, 6), profile=profile).resize(0).after
    assert Raised(ErrorKind.INDEX_ERROR) == emptied.sanity_check()


def test_segproof_refuses_a_resize_below_the_position() -> None:
    """Nothing changes; so does a negative size."""
    index = offsets(*FOUR, profile=SEGPROOF)
    for size in (16, -9):
        step = index.resize(size)
        assert (Raised(ErrorKind.INVALID_ARGUMENT), index) == (step.outcome, step.after)


@pytest.mark.parametrize(("profile", "is_mapped"), [(KAFKA_4_3_1, False), (KAFKA_2_4_1, True)])
def test_negative_resize(profile: Profile, is_mapped: bool) -> None:
    """From -E on it is an I/O error, which in new releases leaves the index unmapped."""
    step = offsets(*FOUR, profile=profile).resize(-9)
    assert (Raised(ErrorKind.IO_ERROR), is_mapped) == (step.outcome, step.after.is_mapped)
    assert b"" == offsets(profile=profile).resize(-7).after.image


@pytest.mark.parametrize(
    ("profile", "wanted"), [(KAFKA_4_3_1, None), (KAFKA_2_4_1, Raised(ErrorKind.UNMAPPED))]
)
def test_trimming_an_unmapped_index(profile: Profile, wanted: object) -> None:
    """It has no effect in new releases (ABSIDX-12)."""
    index = offsets(*FOUR, profile=profile).close_handler().after
    step = index.trim_to_valid_size()
    assert (wanted, index) == (step.outcome, step.after)


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [
        (KAFKA_4_3_1, Raised(ErrorKind.UNMAPPED)),
        (KAFKA_2_4_1, Raised(ErrorKind.UNMAPPED)),
        (KAFKA_1_1_1, (4, 40)),
        (SEGPROOF, Raised(ErrorKind.UNMAPPED)),
    ],
)
def test_lookup_after_close(profile: Profile, wanted: object) -> None:
    """Up to 2.1 a closed index still answers (ABSIDX-15)."""
    closed = offsets(*FOUR, profile=profile).close().after
    assert (32, wanted) == (len(closed.image), closed.lookup(5))
    again = closed.close()
    assert (None, closed) == (again.outcome, again.after)


@EVERY_KAFKA
def test_resize_makes_writable(profile: Profile) -> None:
    """A read-only index that was resized can be appended to (ABSIDX-11)."""
    index = found(OffsetIndex, offsets((1, 10)).image[:8], 0, profile, writable=False)
    assert Raised(ErrorKind.READ_ONLY) == index.truncate().after.append(1, 1).outcome
    grown = index.resize(16)
    assert (True, True) == (grown.outcome, grown.after.writable)
    assert grown.after.append(2, 1).outcome is None


@EVERY
def test_reset(profile: Profile) -> None:
    """After a reset the file has its maximum size again (ABSIDX-13)."""
    index = offsets(*FOUR, base=0, size=67, profile=profile).trim_to_valid_size().after
    after = index.reset().after
    assert (0, 0, 64, 8) == (after.entries, after.last_offset, after.length, after.max_entries)


# Checking


@pytest.mark.parametrize(
    ("profile", "is_sane"),
    [(KAFKA_4_3_1, True), (KAFKA_2_4_1, True), (KAFKA_1_1_1, False), (SEGPROOF, True)],
)
def test_zero_file_is_sane(profile: Profile, is_sane: bool) -> None:
    """Zeros pass the sanity check since 2.0 (OFFIDX-21)."""
    wanted = None if is_sane else Raised(ErrorKind.CORRUPT_INDEX)
    assert wanted == found(OffsetIndex, bytes(80), 50, profile).sanity_check()
    assert None is found(OffsetIndex, b"", 50, profile).sanity_check()


@EVERY
@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_broken_length_is_corrupt(kind: Any, profile: Profile) -> None:
    """A length that is no multiple of the entry size is found in every release."""
    index = found(kind, bytes(25), 0, profile)
    is_old = profile in (KAFKA_0_11_0_3, KAFKA_0_10_2_2)
    wanted = ErrorKind.INVALID_ARGUMENT if is_old else ErrorKind.CORRUPT_INDEX
    assert Raised(wanted) == index.sanity_check()


def test_equal_size_is_a_resize_in_0_11() -> None:
    """It answered nothing, and made a read-only index writable (ABSIDX-7, ABSIDX-11)."""
    image = offsets((5, 1)).image[:8]
    old = found(OffsetIndex, image, 0, KAFKA_0_11_0_3, writable=False).resize(8)
    assert (None, True) == (old.outcome, old.after.writable)
    new = found(OffsetIndex, image, 0, KAFKA_1_1_1, writable=False).resize(8)
    assert (False, False) == (new.outcome, new.after.writable)


def test_last_time_entry_is_read_in_0_11() -> None:
    """What is not in the file, or no longer mapped, is not told (TIMEIDX-9)."""
    for profile, kinds in (
        (KAFKA_0_11_0_3, (Raised(ErrorKind.INDEX_ERROR), Raised(ErrorKind.UNMAPPED))),
        (KAFKA_1_1_1, ((1000, 3), (1000, 3))),
    ):
        index = times((1000, 3), profile=profile)
        cut = index.resize(0)
        assert Raised(ErrorKind.INVALID_ARGUMENT) == cut.outcome
        assert kinds[0] == cut.after.last_entry
        assert kinds[1] == index.delete_if_exists().after.last_entry


def test_index_of_0_10_is_always_writable() -> None:
    """Its constructor does not know a read-only form (OFFIDX-23)."""
    refused = found(OffsetIndex, bytes(8), 0, KAFKA_0_11_0_3, writable=False).truncate().after
    assert Raised(ErrorKind.READ_ONLY) == refused.append(1, 1).outcome
    written = found(OffsetIndex, bytes(8), 0, KAFKA_0_10_2_2, writable=False).truncate().after
    assert written.append(1, 1).outcome is None


def test_segproof_checks_every_entry() -> None:
    """Unsorted entries in the middle pass upstream, not in segproof."""
    entries = [offsets(entry).image[:8] for entry in ((1, 1), (6, 6), (4, 4), (8, 8))]
    image = b"".join(entries)
    assert None is found(OffsetIndex, image, 0, KAFKA_4_3_1).sanity_check()
    assert Raised(ErrorKind.CORRUPT_INDEX) == found(OffsetIndex, image, 0, SEGPROOF).sanity_check()
