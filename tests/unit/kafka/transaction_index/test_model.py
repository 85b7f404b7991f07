# SPDX-License-Identifier: Apache-2.0
"""Worked examples of the transaction index, most of them seen on the real classes."""

from typing import Any

import pytest

from segproof_model.kafka.format.index_releases import InsaneIsInvalidArgument, VersionIsFirstByte
from segproof_model.kafka.format.transaction_index import (
    AbortedTxn,
    TransactionIndex,
    TxnIndexSearchResult,
    read_aborted_txns,
)
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, outcome_of
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF

ONE = AbortedTxn(0, 1, 5, 15, 13)
TWO = AbortedTxn(0, 2, 16, 25, 30)
THREE = AbortedTxn(0, 1, 26, 40, 41)
CORRUPT, INVALID = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR, UNMAPPED = Raised(ErrorKind.KAFKA_ERROR), Raised(ErrorKind.UNMAPPED)


def index_of(
    *txns: AbortedTxn, release: Release = NEWEST_KAFKA, image: bytes | None = None, start: int = 0
) -> TransactionIndex:
    """Return an index that opens `image`, and then appends the transactions."""
    files = Files() if image is None else Files({"a": image})
    index = release.kind(TransactionIndex)(files, "a", start)
    for txn in txns:
        index.append(txn)
    return index


def test_golden_bytes() -> None:
    """34 bytes, big-endian, version first (TXNIDX-1)."""
    wanted = "0000 0000000000000001 0000000000000005 000000000000000f 000000000000000d"
    assert wanted == ONE.to_bytes().hex(" ", 8)
    assert ONE == AbortedTxn.from_bytes(b"xy" + ONE.to_bytes(), 2)
    assert [ONE, TWO] == read_aborted_txns(ONE.to_bytes() + TWO.to_bytes() + bytes(33))


# --- appending -----------------------------------------------------------------------------------


def test_first_append_creates_the_file(any_kafka: Release) -> None:
    """Nothing but an append makes a file (TXNIDX-3)."""
    index = index_of(release=any_kafka)
    index.flush()
    index.reset()
    index.truncate_to(5)
    index.sanity_check()
    index.rename_to("b")
    assert ([], {}) == (index.all_aborted_txns(), index.files.images)
    index.append(ONE)
    assert {"b": ONE.to_bytes()} == index.files.images


def test_last_offset_must_grow(any_kafka: Release) -> None:
    """The same or a smaller last offset is refused; the other numbers don't matter (TXNIDX-5)."""
    index = index_of(TWO, release=any_kafka)
    assert Step(index, INVALID) == apply(index, "append", ONE) == apply(index, "append", TWO)
    assert None is apply(index, "append", AbortedTxn(0, 9, -1, 26, -1)).outcome


def test_reopening_forgets_the_order_upstream() -> None:
    """The first append after opening is not tested; segproof reads the last entry (TXNIDX-4)."""
    image = ONE.to_bytes() + TWO.to_bytes()
    for release, known, outcome in ((NEWEST_KAFKA, None, None), (SEGPROOF, 25, INVALID)):
        index = index_of(image=image, release=release)
        assert (known, outcome) == (index.last_offset, outcome_of(index.append, ONE))


def test_append_behind_a_partial_tail() -> None:
    """Upstream writes there, misaligned and unnoticed; segproof refuses (TXNIDX-16)."""
    index = index_of(ONE, image=bytes(40), release=RELEASES["kafka-4.3.1"])
    index.sanity_check()
    assert (74, 2) == (len(index.image), len(index.all_aborted_txns()))
    assert AbortedTxn(0, 0, 1 << 16, 5 << 16, 15 << 16) == index.all_aborted_txns()[1]
    ours = index_of(image=bytes(40), release=SEGPROOF)
    assert CORRUPT == outcome_of(ours.sanity_check)
    assert Step(ours, CORRUPT) == apply(ours, "append", TWO)
    assert None is apply(apply(ours, "reset").after, "append", TWO).outcome


def test_only_segproof_opens_read_only() -> None:
    """Kafka's class has no read-only form (TXNIDX-6)."""
    for release, outcome in ((SEGPROOF, Raised(ErrorKind.READ_ONLY)), (NEWEST_KAFKA, None)):
        index = release.kind(TransactionIndex)(Files(), "a", 0, False)
        assert outcome == outcome_of(index.append, ONE)


@pytest.mark.parametrize("files", [Files(), Files({"a": ONE.to_bytes()})])
def test_read_only_index_refuses_to_change(files: Files) -> None:
    """Reading works; nothing is created, written or cut."""
    index = SEGPROOF.kind(TransactionIndex)(files, "a", 0, False)
    calls: list[tuple[str, Any]] = [("append", (TWO,)), ("truncate_to", (0,)), ("reset", ())]
    for operation, arguments in calls:
        assert Step(index, Raised(ErrorKind.READ_ONLY)) == apply(index, operation, *arguments)
    assert ([ONE] if "a" in files else []) == index.all_aborted_txns()


# --- reading -------------------------------------------------------------------------------------


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
    any_kafka: Release,
) -> None:
    """Entries that meet the range, up to the first that is stable at its end (TXNIDX-10, -11)."""
    index = index_of(ONE, TWO, THREE, release=any_kafka)
    wanted = TxnIndexSearchResult(found, is_complete)
    assert wanted == index.collect_aborted_txns(fetch_offset, upper_bound_offset)


def test_partial_tail_is_not_listed(any_kafka: Release) -> None:
    """40 bytes are one entry (TXNIDX-8)."""
    index = index_of(image=ONE.to_bytes() + b"xyxyxy", release=any_kafka)
    assert [ONE] == index.all_aborted_txns()


@pytest.mark.parametrize(
    ("stored", "old", "new"),
    [
        (b"\0\0", 0, 0),
        (b"\0\1", 0, KAFKA_ERROR),
        (b"\1\0", KAFKA_ERROR, KAFKA_ERROR),
        (b"\xff\0", -1, KAFKA_ERROR),
    ],
)
def test_version_was_one_byte(stored: bytes, old: Any, new: Any, any_kafka: Release) -> None:
    """Up to 4.3, 256 is version 1 and refused, 1 is version 0 and passes (TXNIDX-2)."""
    index = index_of(image=stored + ONE.to_bytes()[2:], release=any_kafka)
    wanted = old if any_kafka.has(VersionIsFirstByte) else new
    answer = wanted if isinstance(wanted, Raised) else [ONE._replace(version=wanted)]
    assert answer == outcome_of(index.all_aborted_txns)
    if answer == KAFKA_ERROR:
        assert KAFKA_ERROR == outcome_of(index.collect_aborted_txns, 0, 9)
        assert KAFKA_ERROR == outcome_of(index.truncate_to, 0)


def test_collecting_stops_before_a_bad_version() -> None:
    """An entry behind the bound is not looked at."""
    index = index_of(image=ONE.to_bytes() + b"\1" + bytes(33))
    assert TxnIndexSearchResult([ONE], True) == index.collect_aborted_txns(0, 13)
    assert KAFKA_ERROR == outcome_of(index.collect_aborted_txns, 0, 14)


@pytest.mark.parametrize(
    ("image", "old", "new"),
    [
        (TWO.to_bytes() + ONE.to_bytes(), None, None),
        (ONE.to_bytes() + bytes(5), None, None),
        (b"\xff" + ONE.to_bytes()[1:], None, KAFKA_ERROR),
        (ONE._replace(last_offset=-1).to_bytes(), CORRUPT, CORRUPT),
        (ONE._replace(last_offset=-1).to_bytes() + b"\1" + bytes(33), CORRUPT, CORRUPT),
        (b"\1" + bytes(33), KAFKA_ERROR, KAFKA_ERROR),
    ],
)
def test_sanity_check(image: bytes, old: object, new: object) -> None:
    """Upstream compares with the start offset only; to segproof all of these are corrupt."""
    for name, wanted in (("kafka-4.3.1", old), ("kafka-4.4.0", new), ("segproof", CORRUPT)):
        assert wanted == outcome_of(index_of(image=image, release=RELEASES[name]).sanity_check)


def test_sound_index_is_sane(any_kafka: Release) -> None:
    """What was appended in order passes; the start offset itself too (TXNIDX-15)."""
    sane, insane = (index_of(ONE, TWO, release=any_kafka, start=start) for start in (15, 16))
    is_old = any_kafka.has(InsaneIsInvalidArgument)
    outcomes = [outcome_of(index.sanity_check) for index in (sane, insane)]
    assert [None, INVALID if is_old else CORRUPT] == outcomes


# --- cutting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "kept", "last_offset"),
    [(0, 0, None), (15, 0, None), (16, 1, 15), (25, 1, 15), (26, 2, 25), (41, 3, 40)],
)
def test_truncation(offset: int, kept: int, last_offset: int | None, any_kafka: Release) -> None:
    """The file is cut at the first last offset not below the offset (TXNIDX-12, TXNIDX-13)."""
    index = index_of(ONE, TWO, THREE, release=any_kafka)
    index.truncate_to(offset)
    assert [ONE, TWO, THREE][:kept] == index.all_aborted_txns()
    assert (34 * kept, last_offset) == (len(index.image), index.last_offset)


def test_truncation_above_all_remembers_nothing_new() -> None:
    """A partial tail and a forgotten last offset both stay (TXNIDX-13)."""
    index = index_of(image=ONE.to_bytes() + b"xy")
    assert Step(index) == apply(index, "truncate_to", 16)


# --- the file as a file --------------------------------------------------------------------------


def test_closed_index_lists_nothing_upstream() -> None:
    """The file is there, but the channel is not; the next append opens it again (TXNIDX-9)."""
    appended, reset = index_of(ONE), index_of(ONE)
    for index in (appended, reset):
        index.close()
        index.close()
        index.sanity_check()
        index.truncate_to(0)
        assert [] == index.all_aborted_txns()
    appended.append(TWO)
    assert [ONE, TWO] == appended.all_aborted_txns()
    reset.reset()
    reset.append(ONE)
    assert [ONE, ONE] == reset.all_aborted_txns()


def test_closed_is_closed_in_segproof() -> None:
    """Every use raises the unmapped error and changes nothing; the file can be moved, removed."""
    closed = index_of(ONE, release=SEGPROOF)
    closed.close()
    calls: list[tuple[str, Any]] = [
        ("all_aborted_txns", ()), ("sanity_check", ()), ("collect_aborted_txns", (0, 1)),
        ("append", (TWO,)), ("reset", ()), ("truncate_to", (0,)), ("flush", ()),
    ]  # fmt: skip
    for operation, arguments in calls:
        assert Step(closed, UNMAPPED) == apply(closed, operation, *arguments)
    assert Step(closed) == apply(closed, "close")
    step = apply(apply(closed, "rename_to", "b").after, "delete_if_exists")
    assert (True, {}) == (step.outcome, step.after.files.images)


def test_deletion_needs_a_channel_in_0_11() -> None:
    """A closed index is not deleted there, and the answer is True (TXNIDX-17)."""
    for name, left in (("kafka-0.11.0.3", ["a"]), ("kafka-1.1.1", [])):
        index = index_of(ONE, release=RELEASES[name])
        index.close()
        assert (True, left) == (index.delete_if_exists(), list(index.files))


def test_deletion_keeps_the_last_offset() -> None:
    """A smaller append to the same object is refused, a greater one is not (TXNIDX-17)."""
    index = index_of(TWO)
    assert [True, False] == [index.delete_if_exists(), index.delete_if_exists()]
    assert ({}, 25) == (index.files.images, index.last_offset)
    assert INVALID == outcome_of(index.append, ONE)
    index.append(THREE)
    assert [THREE] == index.all_aborted_txns()


def test_rename(any_kafka: Release) -> None:
    """The file moves over another one, and without a file the path changes alone (TXNIDX-18)."""
    index = index_of(ONE, release=any_kafka)
    index.rename_to("b")
    assert ("b", {"b": ONE.to_bytes()}) == (index.name, index.files.images)
    index.append(TWO)
    assert [ONE, TWO] == index.all_aborted_txns()
    missing = any_kafka.kind(TransactionIndex)(Files({"b": TWO.to_bytes()}), "a", 0)
    missing.rename_to("b")
    assert ("b", {"b": TWO.to_bytes()}) == (missing.name, missing.files.images)
    assert ([TWO] if any_kafka is SEGPROOF else []) == missing.all_aborted_txns()
