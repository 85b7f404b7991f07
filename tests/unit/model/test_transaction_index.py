# SPDX-License-Identifier: Apache-2.0
"""Worked examples of the transaction index, most of them seen on the real classes."""

from typing import Any

import pytest

from segproof_model.directory import Directory
from segproof_model.kafka.transaction_index import (
    AbortedTxn,
    TransactionIndex,
    TxnIndexSearchResult,
    read_aborted_txns,
)
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import (
    KAFKA_0_10_2_2,
    KAFKA_0_11_0_3,
    KAFKA_1_1_1,
    KAFKA_4_3_1,
    KAFKA_PROFILES,
    SEGPROOF,
    Profile,
)

EVERY = pytest.mark.parametrize("profile", [SEGPROOF, *KAFKA_PROFILES], ids=lambda one: one.name)
ONE = AbortedTxn(0, 1, 5, 15, 13)
TWO = AbortedTxn(0, 2, 16, 25, 30)
THREE = AbortedTxn(0, 1, 26, 40, 41)
CORRUPT, INVALID = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR, UNMAPPED = Raised(ErrorKind.KAFKA_ERROR), Raised(ErrorKind.UNMAPPED)


def index_of(
    *txns: AbortedTxn, profile: Profile = KAFKA_4_3_1, image: bytes | None = None, start: int = 0
) -> Any:
    """Return an index that opens `image`, and then appends the transactions."""
    directory = Directory() if image is None else Directory().write("a", image)
    index: Any = TransactionIndex.open(start, "a", directory=directory, profile=profile).after
    for txn in txns:
        step = index.append(txn)
        assert step.outcome is None
        index = step.after
    return index


def test_golden_bytes() -> None:
    """34 bytes, big-endian, version first (TXNIDX-1)."""
    wanted = (
        "0000" + "0000000000000001" + "0000000000000005" + "000000000000000f" + "000000000000000d"
    )
    assert wanted == ONE.to_bytes().hex()
    assert ONE == AbortedTxn.from_bytes(b"xy" + ONE.to_bytes(), 2)
    assert [ONE, TWO] == read_aborted_txns(ONE.to_bytes() + TWO.to_bytes() + bytes(33))


@EVERY
def test_first_append_creates_the_file(profile: Profile) -> None:
    """Nothing but an append makes a file (TXNIDX-3)."""
    index = index_of(profile=profile)
    for step in (index.flush(), index.reset(), index.truncate_to(5), index.rename_to("b")):
        assert Directory() == step.after.directory
    assert (None, []) == (index.sanity_check(), index.all_aborted_txns())
    assert ONE.to_bytes() == index.append(ONE).after.image


@EVERY
def test_last_offset_must_grow(profile: Profile) -> None:
    """The same or a smaller last offset is refused; the other numbers don't matter (TXNIDX-5)."""
    index = index_of(TWO, profile=profile)
    step = index.append(ONE)
    assert (INVALID, index) == (step.outcome, step.after)
    assert INVALID == index.append(TWO).outcome
    assert index.append(AbortedTxn(0, 9, -1, 26, -1)).outcome is None


def test_reopening_forgets_the_order_upstream() -> None:
    """The first append after opening is not tested; segproof reads the last entry (TXNIDX-4)."""
    image = ONE.to_bytes() + TWO.to_bytes()
    assert (None, 25) == tuple(
        index_of(image=image, profile=profile).last_offset for profile in (KAFKA_4_3_1, SEGPROOF)
    )
    assert index_of(image=image).append(ONE).outcome is None
    assert INVALID == index_of(image=image, profile=SEGPROOF).append(ONE).outcome


@EVERY
@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound_offset", "found", "is_complete"),
    [
        (0, 100, [ONE, TWO, THREE], False),
        (15, 30, [ONE, TWO], True),
        (16, 30, [TWO], True),
        (0, 5, [], True),
        (0, 6, [ONE], True),
        (0, 13, [ONE], True),
        (0, 14, [ONE], True),
        (26, 41, [THREE], True),
        (41, 42, [], False),
    ],
)
def test_collecting(
    fetch_offset: int,
    upper_bound_offset: int,
    found: list[AbortedTxn],
    is_complete: bool,
    profile: Profile,
) -> None:
    """Entries that meet the range, up to the first that is stable at its end (TXNIDX-10, -11)."""
    index = index_of(ONE, TWO, THREE, profile=profile)
    wanted = TxnIndexSearchResult(found, is_complete)
    assert wanted == index.collect_aborted_txns(fetch_offset, upper_bound_offset)


@EVERY
@pytest.mark.parametrize(
    ("offset", "kept", "last_offset"),
    [(0, 0, None), (15, 0, None), (16, 1, 15), (25, 1, 15), (26, 2, 25), (41, 3, 40)],
)
def test_truncation(offset: int, kept: int, last_offset: int | None, profile: Profile) -> None:
    """The file is cut at the first last offset not below the offset (TXNIDX-12, TXNIDX-13)."""
    after = index_of(ONE, TWO, THREE, profile=profile).truncate_to(offset).after
    assert [ONE, TWO, THREE][:kept] == after.all_aborted_txns()
    assert (34 * kept, last_offset) == (len(after.image), after.last_offset)


def test_truncation_above_all_remembers_nothing_new() -> None:
    """A partial tail and a forgotten last offset both stay (TXNIDX-13)."""
    index = index_of(image=ONE.to_bytes() + b"xy")
    assert index == index.truncate_to(16).after


def test_closed_index_lists_nothing_upstream() -> None:
    """The file is there, but the channel is not; the next append opens it again (TXNIDX-9)."""
    closed = index_of(ONE).close().after
    assert ([], None) == (closed.all_aborted_txns(), closed.sanity_check())
    assert closed == closed.close().after == closed.truncate_to(0).after
    assert [ONE, TWO] == closed.append(TWO).after.all_aborted_txns()
    assert [ONE, ONE] == closed.reset().after.append(ONE).after.all_aborted_txns()


def test_closed_is_closed_in_segproof() -> None:
    """Every use raises the unmapped error and changes nothing; the file can be moved, removed."""
    closed = index_of(ONE, profile=SEGPROOF).close().after
    assert UNMAPPED == closed.all_aborted_txns() == closed.sanity_check()
    assert UNMAPPED == closed.collect_aborted_txns(0, 1)
    for step in (closed.append(TWO), closed.reset(), closed.truncate_to(0), closed.flush()):
        assert (UNMAPPED, closed) == (step.outcome, step.after)
    assert (None, closed) == (closed.close().outcome, closed.close().after)
    moved = closed.rename_to("b").after
    assert (True, False) == (moved.delete_if_exists().outcome, closed.is_open)


@EVERY
def test_partial_tail_is_not_listed(profile: Profile) -> None:
    """40 bytes are one entry (TXNIDX-8)."""
    assert [ONE] == index_of(image=ONE.to_bytes() + b"xyxyxy", profile=profile).all_aborted_txns()


def test_append_behind_a_partial_tail() -> None:
    """Upstream writes there, misaligned and unnoticed; segproof refuses (TXNIDX-16)."""
    index = index_of(ONE, image=bytes(40))
    assert (74, 2, None) == (
        len(index.image),
        len(index.all_aborted_txns()),
        index.sanity_check(),
    )
    assert AbortedTxn(0, 0, 1 << 16, 5 << 16, 15 << 16) == index.all_aborted_txns()[1]
    ours = index_of(image=bytes(40), profile=SEGPROOF)
    step = ours.append(TWO)
    assert (CORRUPT, ours, CORRUPT) == (step.outcome, step.after, ours.sanity_check())
    assert ours.reset().after.append(TWO).outcome is None


@pytest.mark.parametrize(
    ("stored", "upstream", "ours"),
    [
        (b"\0\0", 0, 0),
        (b"\0\1", 0, KAFKA_ERROR),
        (b"\1\0", KAFKA_ERROR, KAFKA_ERROR),
        (b"\xff\0", -1, KAFKA_ERROR),
    ],
)
def test_version_is_one_byte_upstream(stored: bytes, upstream: Any, ours: Any) -> None:
    """256 is version 1 and refused, 1 is version 0 and passes (TXNIDX-2)."""
    for profile, wanted in ((KAFKA_4_3_1, upstream), (KAFKA_1_1_1, upstream), (SEGPROOF, ours)):
        index = index_of(image=stored + ONE.to_bytes()[2:], profile=profile)
        answer = wanted if isinstance(wanted, Raised) else [ONE._replace(version=wanted)]
        assert answer == index.all_aborted_txns()
        if answer == KAFKA_ERROR:
            assert KAFKA_ERROR == index.collect_aborted_txns(0, 9) == index.truncate_to(0).outcome


def test_collecting_stops_before_a_bad_version() -> None:
    """An entry behind the bound is not looked at."""
    index = index_of(image=ONE.to_bytes() + b"\1" + bytes(33))
    assert TxnIndexSearchResult([ONE], True) == index.collect_aborted_txns(0, 13)
    assert KAFKA_ERROR == index.collect_aborted_txns(0, 14)


@pytest.mark.parametrize(
    ("image", "upstream"),
    [
        (TWO.to_bytes() + ONE.to_bytes(), None),
        (ONE.to_bytes() + bytes(5), None),
        (b"\xff" + ONE.to_bytes()[1:], None),
        (ONE._replace(last_offset=-1).to_bytes(), CORRUPT),
        (ONE._replace(last_offset=-1).to_bytes() + b"\1" + bytes(33), CORRUPT),
        (b"\1" + bytes(33), KAFKA_ERROR),
    ],
)
def test_sanity_check(image: bytes, upstream: object) -> None:
    """Upstream compares with the start offset only; to segproof all of these are corrupt."""
    assert upstream == index_of(image=image).sanity_check()
    assert CORRUPT == index_of(image=image, profile=SEGPROOF).sanity_check()


@EVERY
def test_sound_index_is_sane(profile: Profile) -> None:
    """What was appended in order passes; the start offset itself too (TXNIDX-15)."""
    assert None is index_of(ONE, TWO, profile=profile, start=15).sanity_check()
    wanted = INVALID if profile in (KAFKA_0_11_0_3, KAFKA_0_10_2_2) else CORRUPT
    assert wanted == index_of(ONE, TWO, profile=profile, start=16).sanity_check()


def test_deletion_needs_a_channel_in_0_11() -> None:
    """A closed index is not deleted there, and the answer is True (TXNIDX-17)."""
    closed = index_of(ONE, profile=KAFKA_0_11_0_3).close().after
    step = closed.delete_if_exists()
    assert (True, closed) == (step.outcome, step.after)
    step = index_of(ONE, profile=KAFKA_1_1_1).close().after.delete_if_exists()
    assert (True, Directory()) == (step.outcome, step.after.directory)


def test_only_segproof_opens_read_only() -> None:
    """Kafka's class has no read-only form (TXNIDX-6)."""
    for profile, wanted in ((SEGPROOF, Raised(ErrorKind.READ_ONLY)), (KAFKA_4_3_1, None)):
        index: Any = TransactionIndex.open(0, "a", writable=False, profile=profile).after
        assert wanted == index.append(ONE).outcome


def test_deletion_keeps_the_last_offset() -> None:
    """A smaller append to the same object is refused, a greater one is not (TXNIDX-17)."""
    step = index_of(TWO).delete_if_exists()
    assert (True, Directory(), 25) == (step.outcome, step.after.directory, step.after.last_offset)
    assert False is step.after.delete_if_exists().outcome
    assert INVALID == step.after.append(ONE).outcome
    assert [THREE] == step.after.append(THREE).after.all_aborted_txns()


@EVERY
def test_rename(profile: Profile) -> None:
    """The file moves over another one, and without a file the path changes alone (TXNIDX-18)."""
    index = index_of(ONE, profile=profile)
    moved = index.rename_to("b").after
    assert ("b", Directory().write("b", ONE.to_bytes())) == (moved.name, moved.directory)
    assert [ONE, TWO] == moved.append(TWO).after.all_aborted_txns()
    other = Directory().write("b", TWO.to_bytes())
    missing: Any = TransactionIndex.open(0, "a", directory=other, profile=profile).after
    there = missing.rename_to("b").after
    assert ("b", other) == (there.name, there.directory)
    assert ([TWO] if profile is SEGPROOF else []) == there.all_aborted_txns()


def test_read_only_index_refuses_to_change() -> None:
    """Reading works; nothing is created, written or cut."""
    for files in (Directory(), Directory().write("a", ONE.to_bytes())):
        index: Any = TransactionIndex.open(0, "a", False, directory=files, profile=SEGPROOF).after
        for step in (index.append(TWO), index.truncate_to(0), index.reset()):
            assert (Raised(ErrorKind.READ_ONLY), index) == (step.outcome, step.after)
        assert ([ONE] if files.files else []) == index.all_aborted_txns()
