# SPDX-License-Identifier: Apache-2.0
"""Worked examples of the time index, most of them seen on the real classes."""

import pytest

from segproof_model.kafka.format.index_releases import LastEntryIsRead
from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF

INVALID, OVERFLOW = Raised(ErrorKind.INVALID_ARGUMENT), Raised(ErrorKind.INDEX_OFFSET_OVERFLOW)
INDEX_ERROR, BUFFER = Raised(ErrorKind.INDEX_ERROR), Raised(ErrorKind.BUFFER_OVERFLOW)


def times(
    *entries: tuple[int, int], base: int = 0, size: int = 120, release: Release = NEWEST_KAFKA
) -> TimeIndex:
    """Return a time index with these entries."""
    index = release.kind(TimeIndex)(Files(), "a", base, size)
    for entry in entries:
        index.maybe_append(*entry)
    return index


def found(image: bytes, base: int = 0, release: Release = NEWEST_KAFKA) -> TimeIndex:
    """Return the index that opens these bytes."""
    return release.kind(TimeIndex)(Files({"a": image}), "a", base)


def test_lookup_by_timestamp(any_kafka: Release) -> None:
    """Below the first timestamp there is (-1, base)."""
    index = times((1000, 105), (1010, 110), base=100, release=any_kafka)
    wanted = [(-1, 100), (1000, 105), (1000, 105), (1010, 110), (1010, 110)]
    assert wanted == [index.lookup(target) for target in (999, 1000, 1009, 1010, 2000)]


def test_zeros_are_entries_upstream() -> None:
    """Of timestamp 0 at the base offset."""
    assert (0, 40) == found(bytes(120), 40).last_entry


# --- appending -----------------------------------------------------------------------------------


def test_time_index_keeps_a_slot(any_kafka: Release) -> None:
    """One slot is only for an append with the skip flag; then there is no room at all."""
    index = times((1, 1), (2, 2), size=36, release=any_kafka)
    assert index.is_full
    assert INVALID == outcome_of(index.maybe_append, 2, 2)
    index.maybe_append(3, 3, True)
    assert BUFFER == outcome_of(index.maybe_append, 4, 4, True)


def test_offset_is_tested_before_the_timestamp(any_kafka: Release) -> None:
    """A pair too small in both is an invalid offset (TIMEIDX-4)."""
    index = times((5, 105), release=any_kafka)
    outcomes = [outcome_of(index.maybe_append, *pair) for pair in ((4, 104), (4, 105), (5, 109))]
    wanted = [Raised(ErrorKind.INVALID_OFFSET), Raised(ErrorKind.ILLEGAL_STATE), None]
    assert wanted == outcomes


def test_negative_timestamps_are_not_stored(any_kafka: Release) -> None:
    """-1 is what an empty index compares with; 0 is stored."""
    index = times((-1, 5), (-2, 5), release=any_kafka)
    assert times(release=any_kafka) == index
    index.maybe_append(0, 5)
    assert ([0], [5]) == (index.keys(), index.values())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("kafka-4.4.0", ErrorKind.ILLEGAL_STATE),
        ("kafka-3.5.2", ErrorKind.ILLEGAL_STATE),
        ("kafka-3.4.1", ErrorKind.INVALID_ARGUMENT),
        ("kafka-2.0.1", ErrorKind.INVALID_ARGUMENT),
    ],
)
def test_half_a_time_entry(name: str, kind: ErrorKind) -> None:
    """An offset too far leaves a timestamp behind, and the next append is 8 bytes off."""
    index = times(base=100, release=RELEASES[name])
    assert OVERFLOW == outcome_of(index.maybe_append, 7, 100 + 2**31)
    assert (0, 8, (-1, 100)) == (index.entries, index.position, index.last_entry)
    assert Raised(kind) == outcome_of(index.maybe_append, 8, 105)
    assert (1, 20, (8, 105)) == (index.entries, index.position, index.last_entry)
    assert (7, 100) == index.lookup(7)


@pytest.mark.parametrize(("name", "outcome"), [("kafka-2.0.1", OVERFLOW), ("kafka-1.1.1", None)])
def test_distance_too_far_is_refused_since_2_0(name: str, outcome: object) -> None:
    """Before, it is cut to 32 bits (TIMEIDX-16)."""
    index = times(base=100, release=RELEASES[name])
    assert outcome == outcome_of(index.maybe_append, 7, 100 + 2**31)


def test_segproof_writes_no_half_entry() -> None:
    """segproof tests before it writes."""
    index = times(base=100, release=SEGPROOF)
    assert Step(index, OVERFLOW) == apply(index, "maybe_append", 7, 100 + 2**31)


def test_spare_bytes_take_half_an_entry(kafka: Release) -> None:
    """With 8 spare bytes the timestamp is written before the buffer overflows (TIMEIDX-16)."""
    index = found(times((5, 5)).image[:20], release=kafka)
    assert BUFFER == outcome_of(index.maybe_append, 7, 7, True)
    assert (1, 20) == (index.entries, index.position)


# --- cutting and resizing ------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (1, 0), (4, 1), (5, 2), (8, 3), (9, 4)])
def test_truncation_keeps_what_is_below(offset: int, kept: int, any_kafka: Release) -> None:
    """By the offsets, not the timestamps (TIMEIDX-11)."""
    index = times((1001, 1), (1004, 4), (1006, 6), (1008, 8), release=any_kafka)
    index.truncate_to(offset)
    assert kept == index.entries


@pytest.mark.parametrize(
    ("stored", "plain", "warm"), [((50, 55, 55, 55, 60), 2, 2), ((55, 55, 55), 1, 0)]
)
def test_truncation_with_equal_offsets(stored: tuple[int, ...], plain: int, warm: int) -> None:
    """Where offsets repeat, the search decides what survives truncation to 55 (TIMEIDX-12)."""
    for name, kept in (("kafka-4.4.0", warm), ("kafka-2.1.1", warm), ("kafka-2.0.1", plain)):
        index = times(*enumerate(stored, 1), base=50, release=RELEASES[name])
        index.truncate_to(55)
        assert kept == index.entries


def test_time_index_behind_a_failed_resize(kafka: Release) -> None:
    """A second resize can't read the last entry, which lies outside the file."""
    index = times((5, 5), (6, 6), (7, 7), (8, 8), release=kafka)
    assert INVALID == outcome_of(index.resize, 12)
    if not kafka.has(LastEntryIsRead):
        assert INDEX_ERROR == outcome_of(index.resize, 24)
        assert (24, 4, (8, 8)) == (index.length, index.entries, index.last_entry)
    emptied = times((5, 5), (6, 6), release=kafka)
    assert INVALID == outcome_of(emptied.resize, 0)
    assert INDEX_ERROR == outcome_of(emptied.sanity_check)


@pytest.mark.parametrize("name", ["kafka-0.11.0.3", "kafka-1.1.1"])
def test_last_time_entry_is_read_in_0_11(name: str) -> None:
    """What is not in the file, or no longer mapped, is not told (TIMEIDX-9)."""
    cut, deleted = (times((1000, 3), release=RELEASES[name]) for _ in range(2))
    assert INVALID == outcome_of(cut.resize, 0)
    deleted.delete_if_exists()
    told = [outcome_of(getattr, one, "last_entry") for one in (cut, deleted)]
    is_old = name == "kafka-0.11.0.3"
    assert ([INDEX_ERROR, Raised(ErrorKind.UNMAPPED)] if is_old else 2 * [(1000, 3)]) == told
