# SPDX-License-Identifier: Apache-2.0
"""Worked examples of what the offset and the time index share: opening, resizing, closing."""

from typing import Any

import pytest

from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.kafka.format.index_releases import (
    ClosingTrimsIndexes,
    FailedResizeKeepsMapping,
    InsaneIsInvalidArgument,
    MismatchIsInvalidArgument,
    TrimOfUnmappedFails,
)
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, opened, outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF

FOUR = ((1, 10), (4, 40), (6, 60), (8, 80))
INVALID, IO_ERROR = Raised(ErrorKind.INVALID_ARGUMENT), Raised(ErrorKind.IO_ERROR)
UNMAPPED, READ_ONLY = Raised(ErrorKind.UNMAPPED), Raised(ErrorKind.READ_ONLY)


def offsets(
    *entries: tuple[int, int], size: int = 80, release: Release = NEWEST_KAFKA
) -> OffsetIndex:
    """Return an offset index with these entries."""
    index = release.kind(OffsetIndex)(Files(), "a", 0, size)
    for entry in entries:
        index.append(*entry)
    return index


def found(image: bytes, release: Release, writable: bool = True) -> OffsetIndex:
    """Return the index that opens these bytes."""
    return release.kind(OffsetIndex)(Files({"a": image}), "a", 50, -1, writable)


# --- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "limit", "length"),
    [(OffsetIndex, 67, 64), (TimeIndex, 67, 60), (OffsetIndex, 8, 8), (TimeIndex, 12, 12)],
)
def test_limit_is_rounded_to_whole_entries(
    kind: type[AbstractIndex], limit: int, length: int, any_kafka: Release
) -> None:
    """A new file has the greatest multiple of the entry size in its limit (ABSIDX-1)."""
    index = any_kafka.kind(kind)(Files(), "a", 0, limit)
    assert bytes(length) == index.image
    assert (length, length // kind.entry_size) == (index.length, index.max_entries)
    assert (0, 0) == (index.entries, index.position)


def test_default_limit_of_a_time_index() -> None:
    """10 MiB are no multiple of 12."""
    assert 10485756 == TimeIndex(Files(), "a", 0, 10485760).length
    assert 10485760 == OffsetIndex(Files(), "a", 0, 10485760).length


def test_opening_what_exists(kafka: Release) -> None:
    """20 bytes are two entries and full; closing cut them to 16 up to 4.3."""
    index = found(bytes(20), kafka)
    assert (2, 2, 20, 16) == (index.entries, index.max_entries, index.length, index.position)
    assert index.is_full
    index.close()
    assert (16 if kafka.has(ClosingTrimsIndexes) else 20) == len(index.image)


def test_zeros_are_entries_upstream(kafka: Release) -> None:
    """A zero file of 80 bytes opens with ten entries at the base offset."""
    index = found(bytes(80), kafka)
    assert (10, 50) == (index.entries, index.last_offset)


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_limit_without_room(kind: type[AbstractIndex]) -> None:
    """A limit below one entry is refused; upstream leaves an empty file behind (ABSIDX-2)."""
    for release, left in ((NEWEST_KAFKA, Files({"a": b""})), (SEGPROOF, Files())):
        assert Step(left, INVALID) == opened(release.kind(kind), Files(), "a", 0, 7)


def test_read_only_opening_of_nothing() -> None:
    """Upstream fails to set the length; segproof says that there is no file."""
    assert IO_ERROR == opened(OffsetIndex, Files(), "a", 0, 80, False).outcome
    step = opened(SEGPROOF.kind(OffsetIndex), Files(), "a", 0, 80, False)
    assert Step(Files(), Raised(ErrorKind.FILE_NOT_FOUND)) == step


# --- truncating ----------------------------------------------------------------------------------


def test_unmapped_truncation_counts_first(kafka: Release) -> None:
    """truncate forgets the entries and then fails; truncate_to fails first."""
    index = offsets(*FOUR, release=kafka)
    index.close_handler()
    assert (UNMAPPED, 4) == (outcome_of(index.truncate_to, 4), index.entries)
    assert (UNMAPPED, 0) == (outcome_of(index.truncate), index.entries)
    ours = offsets(*FOUR, release=SEGPROOF)
    ours.close()
    assert Step(ours, UNMAPPED) == apply(ours, "truncate")


# --- resizing ------------------------------------------------------------------------------------


def test_resize_below_the_position(kafka: Release) -> None:
    """The file is cut before the error, and lookups then leave the file (ABSIDX-9)."""
    index = offsets(*FOUR, release=kafka)
    assert INVALID == outcome_of(index.resize, 16)
    assert (16, 2, 4, 0) == (index.length, index.max_entries, index.entries, index.position)
    assert Raised(ErrorKind.INDEX_ERROR) == outcome_of(index.lookup, 9)


def test_append_behind_a_failed_resize(kafka: Release) -> None:
    """Grown again, the index writes over its first slot, counts on, and then complains."""
    index = offsets(*FOUR, release=kafka)
    assert INVALID == outcome_of(index.resize, 16)
    index.resize(80)
    assert (4, 10, 0) == (index.entries, index.max_entries, index.position)
    is_old = kafka.has(MismatchIsInvalidArgument)
    wanted = INVALID if is_old else Raised(ErrorKind.ILLEGAL_STATE)
    assert wanted == outcome_of(index.append, 500, 1)
    assert (5, 8, 500) == (index.entries, index.position, index.last_offset)
    assert (500, 1) == index.stored(0)


def test_segproof_refuses_a_resize_below_the_position() -> None:
    """Nothing changes; so does a negative size."""
    index = offsets(*FOUR, release=SEGPROOF)
    for size in (16, -9):
        assert Step(index, INVALID) == apply(index, "resize", size)


def test_negative_resize(kafka: Release) -> None:
    """From -E on it is an I/O error, which in new releases leaves the index unmapped."""
    index, emptied = offsets(*FOUR, release=kafka), offsets(release=kafka)
    assert IO_ERROR == outcome_of(index.resize, -9)
    assert kafka.has(FailedResizeKeepsMapping) is index.is_mapped
    emptied.resize(-7)
    assert b"" == emptied.image


def test_trimming_an_unmapped_index(kafka: Release) -> None:
    """It has no effect in new releases (ABSIDX-12)."""
    index = offsets(*FOUR, release=kafka)
    index.close_handler()
    wanted = UNMAPPED if kafka.has(TrimOfUnmappedFails) else None
    assert Step(index, wanted) == apply(index, "trim_to_valid_size")


def test_resize_makes_writable(kafka: Release) -> None:
    """A read-only index that was resized can be appended to (ABSIDX-11)."""
    index = found(bytes(8), kafka, writable=False)
    index.resize(16)
    assert index.writable
    index.append(52, 1)


def test_equal_size_is_a_resize_in_0_11() -> None:
    """It answered nothing, and made a read-only index writable (ABSIDX-7, ABSIDX-11)."""
    for name, answer, writable in (("kafka-0.11.0.3", None, True), ("kafka-1.1.1", False, False)):
        index = found(bytes(8), RELEASES[name], writable=False)
        assert (answer, writable) == (index.resize(8), index.writable)


def test_index_of_0_10_is_always_writable() -> None:
    """Its constructor does not know a read-only form (OFFIDX-23)."""
    for name, outcome in (("kafka-0.11.0.3", READ_ONLY), ("kafka-0.10.2.2", None)):
        index = found(bytes(8), RELEASES[name], writable=False)
        index.truncate()
        assert outcome == outcome_of(index.append, 51, 1)


def test_reset(any_kafka: Release) -> None:
    """After a reset the file has its maximum size again (ABSIDX-13)."""
    index = offsets(*FOUR, size=67, release=any_kafka)
    index.trim_to_valid_size()
    index.reset()
    assert (0, 0, 64, 8) == (index.entries, index.last_offset, index.length, index.max_entries)


# --- closing and checking ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "wanted"),
    [
        ("kafka-4.4.0", 80, UNMAPPED),
        ("kafka-4.3.1", 32, UNMAPPED),
        ("kafka-2.2.2", 32, UNMAPPED),
        ("kafka-2.1.1", 32, (4, 40)),
        ("segproof", 32, UNMAPPED),
    ],
)
def test_lookup_after_close(name: str, size: int, wanted: object) -> None:
    """Up to 2.1 a closed index still answers (ABSIDX-15)."""
    index = offsets(*FOUR, release=RELEASES[name])
    index.close()
    assert (size, wanted) == (len(index.image), outcome_of(index.lookup, 5))
    assert Step(index) == apply(index, "close")


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_broken_length_is_corrupt(kind: Any, any_kafka: Release) -> None:
    """A length that is no multiple of the entry size is found in every release."""
    index = any_kafka.kind(kind)(Files({"a": bytes(25)}), "a", 0)
    is_old = any_kafka.has(InsaneIsInvalidArgument)
    wanted = INVALID if is_old else Raised(ErrorKind.CORRUPT_INDEX)
    assert wanted == outcome_of(index.sanity_check)
