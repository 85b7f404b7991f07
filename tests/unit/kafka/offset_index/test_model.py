# SPDX-License-Identifier: Apache-2.0
"""Worked examples of the offset index, most of them seen on the real classes."""

import pytest

from segproof_model.kafka.format import abstract_index
from segproof_model.kafka.format.index_deviations import UpperBoundIsExact
from segproof_model.kafka.format.index_releases import BaseIsInsane
from segproof_model.kafka.format.offset_index import OffsetIndex, OffsetPosition
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF

FOUR = ((1, 10), (4, 40), (6, 60), (8, 80))
FULL, OVERFLOW = Raised(ErrorKind.INVALID_ARGUMENT), Raised(ErrorKind.INDEX_OFFSET_OVERFLOW)
CORRUPT, UNMAPPED = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.UNMAPPED)


def offsets(
    *entries: tuple[int, int], base: int = 0, size: int = 80, release: Release = NEWEST_KAFKA
) -> OffsetIndex:
    """Return an offset index with these entries."""
    index = release.kind(OffsetIndex)(Files(), "a", base, size)
    for entry in entries:
        index.append(*entry)
    return index


def found(image: bytes, base: int = 0, release: Release = NEWEST_KAFKA) -> OffsetIndex:
    """Return the index that opens these bytes."""
    return release.kind(OffsetIndex)(Files({"a": image}), "a", base)


# --- searching -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "lower", "upper"),
    [(0, 0, 10), (1, 10, 40), (3, 10, 40), (4, 40, 40), (5, 40, 60), (9, 80, None)],
)
def test_four_entries_both_ways(
    target: int, lower: int, upper: int | None, any_kafka: Release
) -> None:
    """[1 4 6 8] searched downward by offset, and upward by position."""
    index = offsets(*FOUR, release=any_kafka)
    assert (lower // 10, lower) == index.lookup(target)
    if any_kafka.has(UpperBoundIsExact) and target == 1:
        upper = 10
    above = index.fetch_upper_bound_offset(OffsetPosition(0, 0), 10 * target)
    assert (None if upper is None else (upper // 10, upper)) == above


def test_upper_bound_wraps_upstream(kafka: Release) -> None:
    """A sum of more than 31 bits is negative, so the first entry is found (OFFIDX-15)."""
    index, exact = offsets(*FOUR, release=kafka), offsets(*FOUR, release=SEGPROOF)
    assert (1, 10) == index.fetch_upper_bound_offset(OffsetPosition(8, 2**31 - 1), 1)
    assert None is exact.fetch_upper_bound_offset(OffsetPosition(8, 2**31 - 1), 1)


def test_upper_bound_of_positions_that_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entry is met only if the warm section is passed over; the model met it always."""
    monkeypatch.setattr(abstract_index, "WARM_BYTES", 24)
    index = offsets((1, 1), (2, 0), (3, 0), (4, 0), (5, 0), release=SEGPROOF)
    assert None is index.fetch_upper_bound_offset(OffsetPosition(0, 1), 0)
    assert (1, 1) == index.fetch_upper_bound_offset(OffsetPosition(0, 0), 0)


def test_equal_keys_depend_on_the_search() -> None:
    """Two equal offsets: the plain search meets the second, the warm one starts at the first."""
    image = offsets((5, 1)).image[:8] + offsets((5, 2)).image[:8]
    assert (5, 1) == found(image).lookup(5)
    assert (5, 2) == found(image, release=RELEASES["kafka-1.1.1"]).lookup(5)


def test_untrimmed_tail_answers_the_base() -> None:
    """Zero slots that count as entries make lookups slow, never wrong; segproof passes over."""
    genuine = offsets((42, 144), (44, 288), base=40).image[:16]
    upstream = found(genuine.ljust(1000, b"\0"), 40)
    assert (125, 40) == (upstream.entries, upstream.last_offset)
    assert [(40, 0), (40, 0)] == [upstream.lookup(43), upstream.lookup(44)]
    ours = found(genuine.ljust(1000, b"\0"), 40, SEGPROOF)
    assert [(42, 144), (44, 288)] == [ours.lookup(43), ours.lookup(44)]


def test_zeros_at_the_end_are_free_in_segproof() -> None:
    """A zero tail is no entry, and can be written to."""
    index = found(offsets((42, 144), base=40).image, 40, SEGPROOF)
    assert (1, 10, 42, False) == (
        index.entries,
        index.max_entries,
        index.last_offset,
        index.is_full,
    )
    index.append(44, 288)
    assert [(42, 144), (44, 288)] == [index.entry(0), index.entry(1)]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("kafka-4.4.0", 104), ("kafka-2.4.1", 104), ("kafka-2.2.2", 4), ("kafka-1.1.1", 4)],
)
def test_entry_is_relative_in_old_releases(name: str, wanted: int) -> None:
    """entry(n) had the relative offset up to 2.2 (OFFIDX-14)."""
    index = offsets((101, 10), (104, 40), base=100, release=RELEASES[name])
    assert (wanted, 40) == index.entry(1)
    assert FULL == outcome_of(index.entry, 2)
    assert Raised(ErrorKind.INDEX_ERROR) == outcome_of(index.entry, -1)


# --- appending -----------------------------------------------------------------------------------


def test_first_offset_may_be_the_base(any_kafka: Release) -> None:
    """The base itself can be appended, once."""
    index = offsets((100, 7), base=100, release=any_kafka)
    assert Raised(ErrorKind.INVALID_OFFSET) == outcome_of(index.append, 100, 8)


@pytest.mark.parametrize("name", ["kafka-4.4.0", "kafka-2.0.1", "segproof"])
@pytest.mark.parametrize("offset", [99, 100 + 2**31])
def test_distance_of_31_bits(offset: int, name: str) -> None:
    """What 31 bits don't hold is refused since 2.0 (OFFIDX-6)."""
    index = offsets(base=100, release=RELEASES[name])
    assert Step(index, OVERFLOW) == apply(index, "append", offset, 0)
    assert None is apply(index, "append", 99 + 2**31, 0).outcome


def test_distance_is_cut_in_1_1() -> None:
    """100 + 2^31 was stored as the most negative distance, and then looked up as such."""
    release = RELEASES["kafka-1.1.1"]
    index = offsets((100 + 2**31, 0), base=100, release=release)
    assert (-2147483548, 0) == index.lookup(0)
    assert 1 == offsets((99, 0), base=100, release=release).entries


def test_positions_are_stored_as_they_are(any_kafka: Release) -> None:
    """Negative, repeated and falling positions pass (OFFIDX-9)."""
    index = offsets((1, 50), (2, 50), (3, 7), (4, -1), release=any_kafka)
    assert [50, 50, 7, -1] == index.values()


def test_full_is_tested_first() -> None:
    """A full index says so, whatever is appended; also when it is unmapped."""
    index, other = offsets((1, 1), size=8), offsets((1, 1))
    assert [FULL, FULL] == [outcome_of(index.append, 0, 0), outcome_of(index.append, 2**40, 0)]
    index.close_handler()
    other.close_handler()
    assert [FULL, UNMAPPED] == [outcome_of(one.append, 2, 0) for one in (index, other)]


# --- cutting and checking ------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (1, 0), (4, 1), (5, 2), (8, 3), (9, 4)])
def test_truncation_keeps_what_is_below(offset: int, kept: int, any_kafka: Release) -> None:
    """[1 4 6 8] truncated at 4 keeps one entry, at 5 two; the file stays (OFFIDX-17, ABSIDX-20)."""
    index = offsets(*FOUR, release=any_kafka)
    image = index.image
    index.truncate_to(offset)
    assert [key for key, _ in FOUR[:kept]] == index.keys()
    assert (image, FOUR[kept - 1][0] if kept else 0) == (index.image, index.last_offset)


def test_zero_file_is_sane(any_kafka: Release) -> None:
    """Zeros pass the sanity check since 2.0 (OFFIDX-21)."""
    outcome = outcome_of(found(bytes(80), 50, any_kafka).sanity_check)
    assert isinstance(outcome, Raised) is any_kafka.has(BaseIsInsane)
    assert None is outcome_of(found(b"", 50, any_kafka).sanity_check)
    assert CORRUPT == outcome_of(found(bytes(80), 50, RELEASES["kafka-1.1.1"]).sanity_check)


def test_segproof_checks_every_entry() -> None:
    """Unsorted entries in the middle pass upstream, not in segproof."""
    image = b"".join(offsets((key, key)).image[:8] for key in (1, 6, 4, 8))
    assert None is outcome_of(found(image).sanity_check)
    assert CORRUPT == outcome_of(found(image, release=SEGPROOF).sanity_check)
