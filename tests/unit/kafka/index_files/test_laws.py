# SPDX-License-Identifier: Apache-2.0
"""The laws of the indexes: the model obeys them, and each of them can be broken.

Random histories show the first, of every release; tables show the second: a step, a state or a file
of the model for each law, and the same altered.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.laws.every_law import LAWS
from segproof_model.kafka.format import abstract_index
from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.kafka.format.offset_index import OffsetIndex, OffsetPosition
from segproof_model.kafka.format.time_index import TimeIndex, TimestampOffset
from segproof_model.kafka.format.transaction_index import AbortedTxn, TransactionIndex
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, frozen, opened
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF
from segproof_tests.model_steps import done

CORRUPT, INVALID = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.INVALID_ARGUMENT)
TXNS = (AbortedTxn(0, 1, 101, 110, 105), AbortedTxn(0, 2, 111, 120, 130))
NEXT_TXN = AbortedTxn(0, 3, 121, 140, 140)
OLD = RELEASES["kafka-1.1.1"]


def offsets(*entries: tuple[int, int], size: int = 40, release: Release = NEWEST_KAFKA) -> Any:
    """Return an offset index with base offset 100 and these entries."""
    index = release.kind(OffsetIndex)(Files(), "a", 100, size)
    for entry in entries:
        index.append(*entry)
    return frozen(index)


def times(*entries: tuple[int, int], size: int = 60, release: Release = NEWEST_KAFKA) -> Any:
    """Return a time index with base offset 100 and these entries."""
    index = release.kind(TimeIndex)(Files(), "a", 100, size)
    for entry in entries:
        index.maybe_append(*entry, True)
    return frozen(index)


def txns(*entries: AbortedTxn, release: Release = NEWEST_KAFKA) -> Any:
    """Return a transaction index with start offset 100 and these entries."""
    index = release.kind(TransactionIndex)(Files(), "a", 100)
    for entry in entries:
        index.append(entry)
    return frozen(index)


def found(index: Any, image: bytes | None = None, writable: bool = True) -> Any:
    """Return the index opened again, on its own bytes or others."""
    known = () if isinstance(index, TransactionIndex) else (-1,)
    files = Files({"a": index.image if image is None else image})
    return opened(type(index), files, "a", 100, *known, writable).after


def after(index: Any, operation: str, *arguments: Any) -> Any:
    """Return what an operation leaves."""
    return apply(index, operation, *arguments).after


def changed(index: Any, image: bytes | None = None, **values: Any) -> Any:
    """Return a state with other attributes, and its file with other bytes."""

    def change(draft: Any) -> None:
        for name, value in values.items():
            setattr(draft, name, value)
        if image is not None:
            draft.files.write(draft.name, image)

    return apply(index, change).after


def opening(image: bytes | None = None, release: Release = NEWEST_KAFKA, size: int = -1) -> Any:
    """Return the step that opens an offset index."""
    kind, files = release.kind(OffsetIndex), frozen(Files({} if image is None else {"a": image}))
    given = {"base_offset": 100, "max_index_size_bytes": size, "writable": True}
    step = opened(kind, files, "a", **given)
    return Transition(kind, files, "open", {"file": "a", **given}, step.after, step.outcome)


OFFSETS = offsets((105, 10), (110, 20), (120, 30))
OURS = offsets((105, 10), (110, 20), (120, 30), release=SEGPROOF)
TIMES = times((5, 105), (7, 105), (9, 120))
FALLING = TIMES.image[12:24] + TIMES.image[:12]
TXN = txns(*TXNS)
UNMAPPED = after(OFFSETS, "close_handler")
EMPTY_READ_ONLY = after(found(OFFSETS, OFFSETS.image[:24], False), "truncate")
HALF = after(times((5, 105)), "maybe_append", 6, 100 + 2**31)
AFTER_TAIL = found(TXN, TXNS[0].to_bytes() + b"xy")
OPENED_TXN = Transition(
    TransactionIndex, TXN.files, "open", {"file": "a", "start_offset": 100}, found(TXN), None
)


def appended(index: Any, offset: int = 130, position: int = 40) -> Transition:
    """Return the step of an append to an offset index."""
    return done(index, "append", offset=offset, position=position)


def stamped(index: Any, timestamp: int, offset: int, skip: bool = False) -> Transition:
    """Return the step of an append to a time index."""
    arguments = {"timestamp": timestamp, "offset": offset, "skip_full_check": skip}
    return done(index, "maybe_append", **arguments)


def bounded(index: Any, position: int, size: int) -> Transition:
    """Return the step of a search for the end of a fetch."""
    fetch = OffsetPosition(100, position)
    return done(index, "fetch_upper_bound_offset", fetch_offset=fetch, fetch_size=size)


def collected(fetch: int, bound: int) -> Transition:
    """Return the step of a search among aborted transactions."""
    return done(TXN, "collect_aborted_txns", fetch_offset=fetch, upper_bound_offset=bound)


def aborted(index: Any, txn: AbortedTxn = NEXT_TXN) -> Transition:
    """Return the step of an append to a transaction index."""
    return done(index, "append", aborted_txn=txn)


STEPS: Sequence[tuple[str, Transition, dict[str, Any]]] = (
    ("ABSIDX-1", opening(size=67), {"entries": 1}),
    ("ABSIDX-2", opening(size=7), {"after": Files({"a": bytes(8)})}),
    ("ABSIDX-3", opening(bytes(20)), {"image": b""}),
    ("ABSIDX-4", opening(bytes(20)), {"entries": 3}),
    ("ABSIDX-4", opening(bytes(20), SEGPROOF), {"entries": 2}),
    ("ABSIDX-5", appended(OFFSETS), {"position": 0}),
    ("ABSIDX-7", done(OFFSETS, "resize", new_size=47), {"outcome": True}),
    ("ABSIDX-8", done(OFFSETS, "resize", new_size=32), {"max_entries": 5}),
    ("ABSIDX-9", done(OFFSETS, "resize", new_size=16), {"entries": 2}),
    ("ABSIDX-9", done(OURS, "resize", new_size=16), {"image": OFFSETS.image[:16]}),
    ("ABSIDX-11", done(EMPTY_READ_ONLY, "resize", new_size=80), {"writable": False}),
    ("ABSIDX-12", done(OFFSETS, "trim_to_valid_size"), {"length": 40}),
    ("ABSIDX-13", done(OFFSETS, "reset"), {"last_offset": 120}),
    ("ABSIDX-14", done(OFFSETS, "close"), {"outcome": Raised(ErrorKind.UNMAPPED)}),
    ("ABSIDX-14", done(OFFSETS, "close"), {"image": OFFSETS.image[:24]}),
    ("ABSIDX-14", done(OURS, "close"), {"image": OFFSETS.image}),
    ("ABSIDX-15", done(OFFSETS, "close"), {"is_mapped": True}),
    ("ABSIDX-16", done(OFFSETS, "close_handler"), {"length": 24}),
    ("ABSIDX-17", done(UNMAPPED, "lookup", target_offset=100), {"outcome": (100, 0)}),
    ("ABSIDX-17", done(UNMAPPED, "truncate"), {"is_mapped": True}),
    ("ABSIDX-17", done(after(OURS, "close"), "truncate"), {"entries": 0}),
    ("ABSIDX-18", done(UNMAPPED, "delete_if_exists"), {"outcome": False}),
    ("ABSIDX-19", done(OFFSETS, "rename_to", file="b"), {"name": "a"}),
    ("ABSIDX-20", done(OFFSETS, "truncate"), {"image": b""}),
    ("ABSIDX-21", done(OFFSETS, "relative_offset", offset=99), {"outcome": -1}),
    ("OFFIDX-4", appended(offsets((105, 1), size=8)), {"outcome": None}),
    ("OFFIDX-5", appended(OFFSETS, 120), {"outcome": None}),
    ("OFFIDX-6", appended(OFFSETS, 100 + 2**31), {"outcome": None}),
    ("OFFIDX-8", appended(OFFSETS), {"max_entries": 9}),
    ("OFFIDX-9", appended(OFFSETS, position=-1), {"image": appended(OFFSETS).after.image}),
    ("OFFIDX-11", done(OFFSETS, "lookup", target_offset=110), {"outcome": (105, 10)}),
    ("OFFIDX-13", done(OFFSETS, "entry", n=3), {"outcome": (100, 0)}),
    ("OFFIDX-14", done(OFFSETS, "entry", n=1), {"outcome": (10, 20)}),
    ("OFFIDX-15", bounded(OFFSETS, 10, 5), {"outcome": None}),
    ("OFFIDX-15", bounded(OURS, 0, 10), {"outcome": (110, 20)}),
    ("OFFIDX-17", done(OFFSETS, "truncate_to", offset=110), {"entries": 2}),
    ("OFFIDX-19", done(OFFSETS, "truncate"), {"last_offset": 120}),
    ("OFFIDX-20", done(changed(OFFSETS, last_offset=9), "sanity_check"), {"outcome": None}),
    ("OFFIDX-20", done(found(OURS, OURS.image[8:16] * 2), "sanity_check"), {"outcome": None}),
    ("OFFIDX-21", done(found(OFFSETS, bytes(16)), "sanity_check"), {"outcome": CORRUPT}),
    ("OFFIDX-22", done(found(OFFSETS), "lookup", target_offset=112), {"outcome": (110, 25)}),
    ("OFFIDX-23", appended(EMPTY_READ_ONLY), {"outcome": None}),
    ("TIMEIDX-3", stamped(times((5, 105), size=24), 5, 105), {"outcome": None}),
    ("TIMEIDX-4", stamped(TIMES, 8, 119), {"outcome": None}),
    ("TIMEIDX-5", stamped(TIMES, 8, 120), {"outcome": None}),
    ("TIMEIDX-6", stamped(TIMES, 9, 121), {"entries": 4}),
    ("TIMEIDX-8", stamped(times(), 0, 100), {"entries": 0}),
    ("TIMEIDX-9", stamped(TIMES, 11, 121), {"remembered_entry": TimestampOffset(9, 120)}),
    ("TIMEIDX-10", done(TIMES, "lookup", target_timestamp=8), {"outcome": (5, 105)}),
    ("TIMEIDX-11", done(times((5, 105), (7, 110)), "truncate_to", offset=106), {"entries": 2}),
    ("TIMEIDX-12", done(TIMES, "truncate_to", offset=105), {"entries": 1}),
    ("TIMEIDX-14", stamped(TIMES, 10, 100 + 2**31), {"image": bytes(60)}),
    ("TIMEIDX-15", stamped(found(TIMES, b""), 10, 130, True), {"length": 12}),
    ("TIMEIDX-17", done(found(TIMES, FALLING), "sanity_check"), {"outcome": None}),
    ("TIMEIDX-18", stamped(TIMES, 10, 121), {"max_entries": 4}),
    (
        "TXNIDX-2",
        done(found(TXN, b"\1" + bytes(33)), "all_aborted_txns"),
        {"outcome": [AbortedTxn(0, 0, 0, 0, 0)]},
    ),
    ("TXNIDX-3", aborted(TXN), {"name": "other"}),
    ("TXNIDX-4", OPENED_TXN, {"last_offset": 120}),
    ("TXNIDX-5", aborted(TXN, TXNS[1]), {"outcome": None}),
    ("TXNIDX-6", aborted(TXN), {"start_offset": 7}),
    ("TXNIDX-7", done(TXN, "all_aborted_txns"), {"outcome": list(reversed(TXNS))}),
    ("TXNIDX-8", done(AFTER_TAIL, "all_aborted_txns"), {"outcome": [*TXNS]}),
    ("TXNIDX-9", done(after(TXN, "close"), "all_aborted_txns"), {"outcome": [*TXNS]}),
    ("TXNIDX-10", collected(110, 111), {"outcome": ([*TXNS], True)}),
    ("TXNIDX-11", collected(100, 130), {"outcome": ([*TXNS], False)}),
    ("TXNIDX-12", done(TXN, "truncate_to", offset=120), {"last_offset": None}),
    ("TXNIDX-13", done(TXN, "truncate_to", offset=121), {"last_offset": None}),
    ("TXNIDX-14", done(TXN, "reset"), {"last_offset": 120}),
    (
        "TXNIDX-15",
        done(found(TXN, TXNS[0]._replace(last_offset=99).to_bytes()), "sanity_check"),
        {"outcome": None},
    ),
    ("TXNIDX-17", done(TXN, "delete_if_exists"), {"last_offset": None}),
    ("TXNIDX-18", done(txns(), "rename_to", file="b"), {"name": "a"}),
)
"""A step that obeys the law, and how to alter its answer or the state that it left."""


def altered(step: Transition, **change: Any) -> Transition:
    """Return a step with another answer, or another state behind it."""
    given = {name: change.pop(name) for name in ("outcome", "after") if name in change}
    if change and isinstance(step.after, AbstractIndex | TransactionIndex):
        given["after"] = changed(step.after, **change)
    return replace(step, **given)


def with_property(kind: Any, name: str, value: object) -> Any:
    """Return a class that is wrong about one thing."""
    return type(kind.__name__, (kind,), {name: value})


WRONG_SIZE = with_property(OffsetIndex, "size_in_bytes", 7)
NEVER_FULL = (
    with_property(OffsetIndex, "is_full", False),
    with_property(TimeIndex, "is_full", False),
)
STATES = {
    "ABSIDX-6": (OFFSETS, WRONG_SIZE(Files(), "a", 100, 40)),
    "OFFIDX-3": (OFFSETS, changed(OFFSETS, last_offset=119)),
    "OFFIDX-10": (OFFSETS, NEVER_FULL[0](Files({"a": OFFSETS.image}), "a", 100)),
    "TIMEIDX-2": (times(size=36), NEVER_FULL[1](Files(), "a", 100, 12)),
    "TIMEIDX-19": (times(size=23), NEVER_FULL[1](Files(), "a", 100, 12)),
}
"""A state of the model that obeys the law, and one that breaks it."""

FOUR = [1, 4, 6, 8]
VALUES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "OFFIDX-1": ((bytes(16),), (bytes(15),)),
    "OFFIDX-2": ((OFFSETS.image,), (OFFSETS.image[8:16] + OFFSETS.image[:8],)),
    "TIMEIDX-1": ((bytes(24),), (bytes(16),)),
    "TIMEIDX-7": ((TIMES.image,), (FALLING,)),
    "TXNIDX-1": ((TXN.image,), (b"\0\1" + TXN.image[2:],)),
    "ABSIDX-22": ((FOUR, 5, 1), (FOUR, 5, 2)),
    "ABSIDX-23": ((FOUR, (1, 2), (1, 2)), (FOUR, (1, 2), (1, -1))),
    "ABSIDX-24": ((FOUR, 1, 1, False), (FOUR, 1, 0, False)),
    "ABSIDX-25": ((4, [0, 3, 2, 1]), (4, [0, 3, 2, 1, 0])),
    "ABSIDX-26": (([5, 5], 5, 1024, (0, 1)), ([5, 5], 5, 1024, (1, 1))),
    "OFFIDX-12": (([7, 3], [5, 2]), ([3, 7], [5, 2])),
    "FILE-1": ((-5, ".log", "-00000000000000000005.log"), (-5, ".log", "-5.log")),
    "FILE-2": (("12.log", 12), ("12log", 12)),
}
"""Bytes of a file, or arguments, that obey the law, and such that break it."""


@pytest.mark.checks(*(law_id for law_id, _, _ in STEPS))
@pytest.mark.parametrize(
    ("law_id", "step", "change"), STEPS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_step_law_can_be_broken(law_id: str, step: Transition, change: dict[str, Any]) -> None:
    """A law holds for the model's step, and not for the same step with another end."""
    assert [] == broken_step_laws(step)
    assert not LAWS[law_id].predicate(altered(step, **change))


@pytest.mark.checks(*STATES)
@pytest.mark.parametrize("law_id", STATES)
def test_state_law_can_be_broken(law_id: str) -> None:
    """A law holds for a state of the model, and not for a damaged one."""
    sound, broken = STATES[law_id]
    assert [] == broken_state_laws(sound)
    assert law_id in broken_state_laws(broken)


@pytest.mark.checks(*VALUES)
@pytest.mark.parametrize("law_id", VALUES)
def test_law_of_values_can_be_broken(law_id: str) -> None:
    """A law holds for one file or answer, and not for another."""
    sound, broken = VALUES[law_id]
    assert LAWS[law_id].predicate(*sound)
    assert not LAWS[law_id].predicate(*broken)


@pytest.mark.parametrize("area", ["ABSIDX", "OFFIDX", "TIMEIDX", "TXNIDX"])
def test_every_law_has_a_way_to_break_it(area: str) -> None:
    """A law without a case above could be one that nothing breaks."""
    stated = {law_id for law_id in LAWS if law_id.startswith(f"{area}-")}
    assert stated <= {law_id for law_id, _, _ in STEPS} | {*STATES, *VALUES}


@pytest.mark.checks("TIMEIDX-14")
def test_second_half_of_a_half_entry() -> None:
    """The append behind half an entry must raise the position error."""
    step = stamped(HALF, 8, 110)
    assert Raised(ErrorKind.ILLEGAL_STATE) == step.outcome
    assert [] == broken_step_laws(step)


@pytest.mark.parametrize("index", [offsets((105, 7), release=OLD), times((5, 105), release=OLD)])
def test_index_whose_file_is_removed(index: Any) -> None:
    """What an open index remembers is not held against a file that is gone."""
    gone = apply(index, lambda draft: draft.files.remove("a") and None).after
    assert (1, Files()) == (gone.entries, gone.files)
    assert [] == broken_state_laws(gone) + broken_step_laws(done(gone, "flush"))


@pytest.mark.checks("OFFIDX-11", "ABSIDX-17")
@pytest.mark.parametrize("target", [0, 1, 3, 4, 5, 9])
def test_wrong_lookup_is_caught(target: int) -> None:
    """Whatever a lookup answers instead of the right entry, a law says so."""
    entries = [(100 + key, 10 * key) for key in FOUR]
    step = done(offsets(*entries), "lookup", target_offset=100 + target)
    for answer in [(100, 0), *entries, INVALID]:
        broken = broken_step_laws(altered(step, outcome=answer))
        assert (answer == step.outcome) is (broken == [])


class Watched(Sequence[int]):
    """Keys that remember which slots were read."""

    def __init__(self, keys: Sequence[int]) -> None:
        self.keys = keys
        self.probes: list[int] = []

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, slot: Any) -> Any:
        self.probes.append(slot)
        return self.keys[slot]


def searched(release: Release, keys: Any, target: int) -> tuple[int, int]:
    """Return the slots that the probes of a release meet."""
    index: Any = object.__new__(release.kind(OffsetIndex))
    index.entries = len(keys)
    return index.probed(keys, target) if len(keys) else (-1, -1)


@pytest.mark.checks("ABSIDX-22", "ABSIDX-23", "ABSIDX-24", "ABSIDX-25", "ABSIDX-26")
@given(keys=st.lists(st.integers(0, 12), max_size=12), target=st.integers(-1, 13))
@pytest.mark.parametrize("warm_entries", [1, 2, 1024])
def test_search_obeys_the_laws(keys: list[int], target: int, warm_entries: int) -> None:
    """The two searches give the slots, and read as few of them, as the laws say."""
    slots = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(abstract_index, "WARM_BYTES", 8 * warm_entries)
        for release, warm in ((NEWEST_KAFKA, warm_entries), (OLD, None)):
            watched = Watched(keys)
            lower, upper = searched(release, watched, target)
            assert LAWS["ABSIDX-25"].predicate(len(keys), watched.probes)
            assert LAWS["ABSIDX-26"].predicate(keys, target, warm, (lower, upper))
            assert LAWS["ABSIDX-22"].predicate(keys, target, lower)
            assert LAWS["ABSIDX-24"].predicate(keys, target, upper, False)
            slots.append((lower, upper))
    assert LAWS["ABSIDX-23"].predicate(keys, *slots)


@pytest.mark.checks("ABSIDX-24")
@given(keys=st.sets(st.integers(0, 12)).map(sorted), target=st.integers(-1, 13))
def test_exact_search_obeys_the_laws(keys: list[int], target: int) -> None:
    """segproof's search finds the first slot, too."""
    index: Any = object.__new__(SEGPROOF.kind(OffsetIndex))
    index.entries = len(keys)
    lower, upper = index.slots(keys, target)
    assert LAWS["ABSIDX-22"].predicate(keys, target, lower)
    assert LAWS["ABSIDX-24"].predicate(keys, target, upper, True)
