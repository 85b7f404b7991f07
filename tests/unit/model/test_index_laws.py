# SPDX-License-Identifier: Apache-2.0
"""The laws of the indexes: the model obeys them, and each of them can be broken.

Random histories show the first, under every profile; a table for each scope shows the second.
`STEPS` has a real step of the model for each law about steps, and what is altered in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.directory import Directory
from segproof_model.kafka.abstract_index import search_by_definition, search_by_probing
from segproof_model.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof_model.kafka.time_index import TimeIndex, TimestampOffset
from segproof_model.kafka.transaction_index import AbortedTxn, TransactionIndex
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.laws.checking import (
    broken_state_laws,
    broken_step_laws,
    laws_of,
    opening,
    structure_of,
)
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import KAFKA_1_1_1, KAFKA_4_3_1, KAFKA_PROFILES, SEGPROOF, Profile

CLASSES: Mapping[str, Any] = {
    "offset-index": OffsetIndex,
    "time-index": TimeIndex,
    "transaction-index": TransactionIndex,
}
AREAS = ("ABSIDX", "OFFIDX", "TIMEIDX", "TXNIDX")
CORRUPT, INVALID = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.INVALID_ARGUMENT)
TAIL = bytes(34)
PROFILES = [SEGPROOF, *(pytest.param(each, marks=pytest.mark.slow) for each in KAFKA_PROFILES)]
TXNS = (AbortedTxn(0, 1, 101, 110, 105), AbortedTxn(0, 2, 111, 120, 130))
NEXT_TXN = AbortedTxn(0, 3, 121, 140, 140)


def open_offsets(
    *entries: tuple[int, int],
    size: int = 40,
    profile: Profile = KAFKA_4_3_1,
    kind: type[OffsetIndex] = OffsetIndex,
) -> Any:
    """Return an offset index with base offset 100 and these entries."""
    index: Any = kind.open("a", 100, size, profile=profile).after
    for entry in entries:
        index = index.append(*entry).after
    return index


def open_times(
    *entries: tuple[int, int],
    size: int = 60,
    profile: Profile = KAFKA_4_3_1,
    kind: type[TimeIndex] = TimeIndex,
) -> Any:
    """Return a time index with base offset 100 and these entries."""
    index: Any = kind.open("a", 100, size, profile=profile).after
    for entry in entries:
        index = index.maybe_append(*entry, True).after
    return index


def open_txns(*txns: AbortedTxn, profile: Profile = KAFKA_4_3_1) -> Any:
    """Return a transaction index with start offset 100 and these entries."""
    index: Any = TransactionIndex.open(100, "a", profile=profile).after
    for txn in txns:
        index = index.append(txn).after
    return index


def reopened(index: Any, image: bytes | None = None, writable: bool = True) -> Any:
    """Return the index opened again, on its own bytes or others."""
    directory = Directory().write("a", index.image if image is None else image)
    known = {"directory": directory, "profile": index.profile, "writable": writable}
    if isinstance(index, TransactionIndex):
        return TransactionIndex.open(100, "a", **known).after
    return type(index).open("a", 100, **known).after


class WrongOffsets(OffsetIndex):
    """An offset index that is wrong about its size and whether it is full."""

    size_in_bytes = property(lambda self: 7)
    is_full = property(lambda self: not self.entries)


class WrongTimes(TimeIndex):
    """A time index that is wrong about whether it is full."""

    is_full = property(lambda self: self.entries >= self.max_entries)


KEEP = object()


@dataclass
class Case:
    """One step of the model, and what to alter in it so that the law is broken."""

    before: Any
    operation: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: Any = KEEP
    """Another outcome, if not KEEP."""
    after: Any = KEEP
    """Another state after, or the fields to change in it, if not KEEP."""

    def transition(self) -> Transition:
        """Execute the step."""
        answer = getattr(self.before, self.operation)(**self.arguments)
        step = answer if isinstance(answer, Step) else Step(self.before, answer)
        return Transition(self.before, self.operation, self.arguments, step.after, step.outcome)

    def altered(self, transition: Transition) -> Transition:
        """Return the step with another end."""
        after = transition.after
        if self.after is not KEEP:
            is_change = isinstance(self.after, dict)
            after = replace(after, **self.after) if is_change else self.after
        outcome = transition.outcome if self.outcome is KEEP else self.outcome
        return replace(transition, after=after, outcome=outcome)


@dataclass
class Opening(Case):
    """Opening in a directory; `before` is the structure, `files` what there is."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    profile: Profile = KAFKA_4_3_1

    def transition(self) -> Transition:
        """Open."""
        directory = Directory(tuple(sorted(self.files.items())))
        arguments = {"file": "a", **self.arguments}
        step = CLASSES[self.before].open(**arguments, directory=directory, profile=self.profile)
        return opening(self.before, arguments, directory, self.profile, step)


def new_offsets(size: int, after: Any, files: Mapping[str, bytes] | None = None) -> Opening:
    """Return a case that opens an offset index of base 100."""
    arguments = {"base_offset": 100, "max_index_size_bytes": size}
    return Opening("offset-index", "open", arguments, after=after, files=files or {})


OFFSETS = open_offsets((105, 10), (110, 20), (120, 30))
TIMES = open_times((5, 105), (7, 105), (9, 120))
UNMAPPED = OFFSETS.close_handler().after
EMPTY_READ_ONLY = reopened(OFFSETS, OFFSETS.image[:24], writable=False).truncate().after
HALF = open_times((5, 105)).maybe_append(6, 100 + 2**31).after
TXN = open_txns(*TXNS)
AFTER_TAIL = reopened(open_txns(TXNS[0]), TXNS[0].to_bytes() + b"xy")

STEPS: Mapping[str, Case] = {
    "ABSIDX-1": new_offsets(67, {"entries": 1}),
    "ABSIDX-2": new_offsets(7, Directory()),
    "ABSIDX-3": new_offsets(-1, {"directory": Directory()}, {"a": bytes(20)}),
    "ABSIDX-4": new_offsets(-1, {"entries": 3}, {"a": bytes(20)}),
    "ABSIDX-5": Case(OFFSETS, "append", {"offset": 130, "position": 1}, after={"position": 0}),
    "ABSIDX-7": Case(OFFSETS, "resize", {"new_size": 47}, outcome=True),
    "ABSIDX-8": Case(OFFSETS, "resize", {"new_size": 32}, after={"max_entries": 5}),
    "ABSIDX-9": Case(OFFSETS, "resize", {"new_size": 16}, after={"entries": 2}),
    "ABSIDX-10": Case(OFFSETS, "resize", {"new_size": -8}, after={"length": 0}),
    "ABSIDX-11": Case(EMPTY_READ_ONLY, "resize", {"new_size": 80}, after={"writable": False}),
    "ABSIDX-12": Case(OFFSETS, "trim_to_valid_size", after={"length": 40}),
    "ABSIDX-13": Case(OFFSETS, "reset", after={"last_offset": 120}),
    "ABSIDX-14": Case(OFFSETS, "close", outcome=Raised(ErrorKind.UNMAPPED)),
    "ABSIDX-15": Case(UNMAPPED, "lookup", {"target_offset": 100}, outcome=(100, 0)),
    "ABSIDX-16": Case(OFFSETS, "close_handler", after={"length": 24}),
    "ABSIDX-17": Case(UNMAPPED, "truncate", after={"entries": 3}),
    "ABSIDX-18": Case(UNMAPPED, "delete_if_exists", outcome=False),
    "ABSIDX-19": Case(OFFSETS, "rename_to", {"file": "b"}, after={"name": "a"}),
    "ABSIDX-20": Case(OFFSETS, "truncate", after={"directory": Directory()}),
    "ABSIDX-21": Case(OFFSETS, "can_append_offset", {"offset": 99}, outcome=True),
    "OFFIDX-4": Case(
        open_offsets((105, 1), size=8), "append", {"offset": 1, "position": 1}, outcome=None
    ),
    "OFFIDX-5": Case(OFFSETS, "append", {"offset": 120, "position": 40}, outcome=None),
    "OFFIDX-6": Case(OFFSETS, "append", {"offset": 100 + 2**31, "position": 40}, outcome=None),
    "OFFIDX-7": Case(
        open_offsets(profile=KAFKA_1_1_1),
        "append",
        {"offset": 100 + 2**31, "position": 0},
        outcome=Raised(ErrorKind.INDEX_OFFSET_OVERFLOW),
    ),
    "OFFIDX-8": Case(OFFSETS, "append", {"offset": 130, "position": 1}, after={"max_entries": 9}),
    "OFFIDX-9": Case(OFFSETS, "append", {"offset": 130, "position": -1}, outcome=INVALID),
    "OFFIDX-11": Case(OFFSETS, "lookup", {"target_offset": 110}, outcome=(105, 10)),
    "OFFIDX-13": Case(OFFSETS, "entry", {"n": 3}, outcome=(100, 0)),
    "OFFIDX-14": Case(OFFSETS, "entry", {"n": 1}, outcome=(10, 20)),
    "OFFIDX-15": Case(
        OFFSETS,
        "fetch_upper_bound_offset",
        {"fetch_offset": OffsetPosition(105, 10), "fetch_size": 5},
        outcome=None,
    ),
    "OFFIDX-16": Case(
        OFFSETS,
        "fetch_upper_bound_offset",
        {"fetch_offset": OffsetPosition(100, 0), "fetch_size": 10},
        outcome=(105, 10),
    ),
    "OFFIDX-17": Case(OFFSETS, "truncate_to", {"offset": 110}, after={"entries": 2}),
    "OFFIDX-18": Case(OFFSETS, "truncate_to", {"offset": 121}, after={"entries": 2}),
    "OFFIDX-19": Case(OFFSETS, "truncate", after={"last_offset": 120}),
    "OFFIDX-20": Case(OFFSETS, "sanity_check", outcome=CORRUPT),
    "OFFIDX-21": Case(reopened(OFFSETS, bytes(16)), "sanity_check", outcome=CORRUPT),
    "OFFIDX-22": Case(
        reopened(OFFSETS), "lookup", {"target_offset": 112}, outcome=OffsetPosition(110, 25)
    ),
    "OFFIDX-23": Case(EMPTY_READ_ONLY, "append", {"offset": 130, "position": 1}, outcome=None),
    "TIMEIDX-3": Case(
        open_times((5, 105), size=24), "maybe_append", {"timestamp": 5, "offset": 105}, outcome=None
    ),
    "TIMEIDX-4": Case(
        TIMES,
        "maybe_append",
        {"timestamp": 8, "offset": 119},
        outcome=Raised(ErrorKind.ILLEGAL_STATE),
    ),
    "TIMEIDX-5": Case(TIMES, "maybe_append", {"timestamp": 8, "offset": 120}, outcome=None),
    "TIMEIDX-6": Case(TIMES, "maybe_append", {"timestamp": 9, "offset": 121}, after={"entries": 4}),
    "TIMEIDX-8": Case(
        open_times(), "maybe_append", {"timestamp": 0, "offset": 100}, after={"entries": 0}
    ),
    "TIMEIDX-9": Case(
        TIMES,
        "maybe_append",
        {"timestamp": 11, "offset": 121},
        after={"remembered_entry": TimestampOffset(9, 120)},
    ),
    "TIMEIDX-10": Case(TIMES, "lookup", {"target_timestamp": 8}, outcome=(5, 105)),
    "TIMEIDX-11": Case(
        open_times((5, 105), (7, 110)), "truncate_to", {"offset": 106}, after={"entries": 2}
    ),
    "TIMEIDX-12": Case(TIMES, "truncate_to", {"offset": 105}, after={"entries": 1}),
    "TIMEIDX-13": Case(TIMES, "resize", {"new_size": 36}, after={"remembered_entry": (7, 105)}),
    "TIMEIDX-14": Case(
        TIMES, "maybe_append", {"timestamp": 10, "offset": 100 + 2**31}, after=TIMES
    ),
    "TIMEIDX-15": Case(
        reopened(TIMES, b""),
        "maybe_append",
        {"timestamp": 10, "offset": 130, "skip_full_check": True},
        outcome=INVALID,
    ),
    "TIMEIDX-16": Case(
        reopened(TIMES, TIMES.image[:20]),
        "maybe_append",
        {"timestamp": 10, "offset": 130, "skip_full_check": True},
        after={"entries": 2},
    ),
    "TIMEIDX-17": Case(TIMES, "sanity_check", outcome=CORRUPT),
    "TIMEIDX-18": Case(
        TIMES, "maybe_append", {"timestamp": 10, "offset": 121}, after={"max_entries": 4}
    ),
    "TXNIDX-2": Case(
        reopened(TXN, b"\1" + TAIL[1:]),
        "all_aborted_txns",
        outcome=[AbortedTxn(0, 0, 0, 0, 0)],
    ),
    "TXNIDX-3": Case(TXN, "append", {"aborted_txn": NEXT_TXN}, after={"name": "other"}),
    "TXNIDX-4": Opening(
        "transaction-index",
        "open",
        {"start_offset": 100},
        files={"a": TXN.image},
        after={"last_offset": 120},
    ),
    "TXNIDX-5": Case(TXN, "append", {"aborted_txn": TXNS[1]}, outcome=None),
    "TXNIDX-6": Case(
        replace(TXN, writable=False),
        "append",
        {"aborted_txn": NEXT_TXN},
        after={"last_offset": None},
    ),
    "TXNIDX-7": Case(TXN, "all_aborted_txns", outcome=list(reversed(TXNS))),
    "TXNIDX-8": Case(AFTER_TAIL, "all_aborted_txns", outcome=[*TXNS]),
    "TXNIDX-9": Case(TXN.close().after, "all_aborted_txns", outcome=[*TXNS]),
    "TXNIDX-10": Case(
        TXN,
        "collect_aborted_txns",
        {"fetch_offset": 110, "upper_bound_offset": 111},
        outcome=([*TXNS], True),
    ),
    "TXNIDX-11": Case(
        TXN,
        "collect_aborted_txns",
        {"fetch_offset": 100, "upper_bound_offset": 130},
        outcome=([*TXNS], False),
    ),
    "TXNIDX-12": Case(TXN, "truncate_to", {"offset": 120}, after={"last_offset": None}),
    "TXNIDX-13": Case(TXN, "truncate_to", {"offset": 121}, after={"last_offset": None}),
    "TXNIDX-14": Case(TXN, "reset", after={"last_offset": 120}),
    "TXNIDX-15": Case(TXN, "sanity_check", outcome=CORRUPT),
    "TXNIDX-16": Case(AFTER_TAIL, "append", {"aborted_txn": NEXT_TXN}, outcome=CORRUPT),
    "TXNIDX-17": Case(TXN, "delete_if_exists", after={"last_offset": None}),
    "TXNIDX-18": Case(open_txns(), "rename_to", {"file": "b"}, after={"name": "a"}),
}

STATES: Mapping[str, tuple[Any, Any]] = {
    "ABSIDX-6": (OFFSETS, open_offsets(kind=WrongOffsets)),
    "OFFIDX-3": (OFFSETS, replace(OFFSETS, last_offset=119)),
    "OFFIDX-10": (OFFSETS, open_offsets(kind=WrongOffsets)),
    "TIMEIDX-2": (open_times(size=12), open_times(size=12, kind=WrongTimes)),
    "TIMEIDX-19": (open_times(size=23), open_times(size=12, kind=WrongTimes)),
}
"""A state of the model that obeys the law, and one that breaks it."""

FALLING = TIMES.image[12:24] + TIMES.image[:12]
FILES: Mapping[str, tuple[bytes, bytes]] = {
    "OFFIDX-1": (bytes(16), bytes(15)),
    "OFFIDX-2": (OFFSETS.image, OFFSETS.image[8:16] + OFFSETS.image[:8]),
    "TIMEIDX-1": (bytes(24), bytes(16)),
    "TIMEIDX-7": (TIMES.image, FALLING),
    "TXNIDX-1": (TXN.image, b"\0\1" + TXN.image[2:]),
}
"""Bytes that obey the law, and bytes that break it."""

FOUR = [1, 4, 6, 8]
PURE: Mapping[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "ABSIDX-22": ((FOUR, 5, 1), (FOUR, 5, 2)),
    "ABSIDX-23": ((FOUR, (1, 2), (1, 2)), (FOUR, (1, 2), (1, -1))),
    "ABSIDX-24": ((FOUR, 1, 1, False), (FOUR, 1, 0, False)),
    "ABSIDX-25": ((4, [0, 3, 2, 1]), (4, [0, 3, 2, 1, 0])),
    "ABSIDX-26": (([5, 5], 5, "warm", 1024, (0, 1)), ([5, 5], 5, "warm", 1024, (1, 1))),
    "OFFIDX-12": (([7, 3], [5, 2]), ([3, 7], [5, 2])),
    "FILE-1": ((-5, ".log", "-00000000000000000005.log"), (-5, ".log", "-5.log")),
    "FILE-2": (("12.log", 12), ("12log", 12)),
}
"""Arguments that obey the law, and arguments that break it."""


@pytest.mark.checks(*STEPS)
@pytest.mark.parametrize("law_id", STEPS)
def test_step_law_can_be_broken(law_id: str) -> None:
    """A law holds for the model's step, and not for the same step with another end."""
    case = STEPS[law_id]
    transition = case.transition()
    assert [] == broken_step_laws(transition)
    assert LAWS[law_id].predicate(case.altered(transition)) is False


@pytest.mark.checks(*STATES)
@pytest.mark.parametrize("law_id", STATES)
def test_state_law_can_be_broken(law_id: str) -> None:
    """A law holds for a state of the model, and not for a damaged one."""
    sound, broken = STATES[law_id]
    assert LAWS[law_id].predicate(sound) is True
    assert LAWS[law_id].predicate(broken) is False


@pytest.mark.checks(*FILES)
@pytest.mark.parametrize("law_id", FILES)
def test_file_law_can_be_broken(law_id: str) -> None:
    """A law holds for one file, and not for another."""
    sound, broken = FILES[law_id]
    assert LAWS[law_id].predicate(sound, 100) is True
    assert LAWS[law_id].predicate(broken, 100) is False


@pytest.mark.checks(*PURE)
@pytest.mark.parametrize("law_id", PURE)
def test_pure_law_can_be_broken(law_id: str) -> None:
    """A law holds for one answer of a function, and not for another."""
    sound, broken = PURE[law_id]
    assert LAWS[law_id].predicate(*sound) is True
    assert LAWS[law_id].predicate(*broken) is False


@pytest.mark.parametrize(
    ("area", "count"), [("ABSIDX", 26), ("OFFIDX", 23), ("TIMEIDX", 19), ("TXNIDX", 18)]
)
def test_every_law_is_stated(area: str, count: int) -> None:
    """Each sentence of the contract has a predicate, a sentence, and a case above."""
    wanted = {f"{area}-{number}" for number in range(1, count + 1)}
    assert wanted == {law_id for law_id in LAWS if law_id.startswith(f"{area}-")}
    assert wanted <= {*STEPS, *STATES, *FILES, *PURE}
    assert all(LAWS[law_id].sentence.endswith(".") for law_id in wanted)


def test_laws_of_a_structure() -> None:
    """Both indexes obey the shared laws beside their own; a transaction index only its own."""
    areas = {
        structure: {law.law_id.partition("-")[0] for law in laws_of(structure)} & set(AREAS)
        for structure in CLASSES
    }
    assert areas == {
        "offset-index": {"ABSIDX", "OFFIDX"},
        "time-index": {"ABSIDX", "TIMEIDX"},
        "transaction-index": {"TXNIDX"},
    }
    assert "time-index" == structure_of(TIMES)


def test_second_half_of_a_half_entry() -> None:
    """The append behind half an entry must raise the position error (TIMEIDX-14)."""
    case = Case(HALF, "maybe_append", {"timestamp": 8, "offset": 110}, outcome=None)
    transition = case.transition()
    assert Raised(ErrorKind.ILLEGAL_STATE) == transition.outcome
    assert [] == broken_step_laws(transition)
    assert ["TIMEIDX-14"] == broken_step_laws(case.altered(transition))


@pytest.mark.parametrize(("kind", "entry"), [(OffsetIndex, (105, 7)), (TimeIndex, (5, 105))])
def test_index_whose_file_is_removed(kind: Any, entry: tuple[int, int]) -> None:
    """What an open index remembers is not held against a file that is gone."""
    index = kind.open("a", 100, 60, profile=KAFKA_1_1_1).after
    index = index.append(*entry) if kind is OffsetIndex else index.maybe_append(*entry)
    gone = replace(index.after, directory=index.after.directory.remove("a"))
    assert gone.entries == 1
    assert broken_state_laws(gone) == []
    if kind is TimeIndex:
        look = Transition(gone, "last_entry", {}, gone.last_entry, gone)
        assert broken_step_laws(look) == []


@pytest.mark.parametrize(
    ("structure", "wrong"),
    [("offset-index", Directory().write("a", b"")), ("offset-index", Directory())],
)
def test_profile_decides(structure: str, wrong: Directory) -> None:
    """One end of a refused opening is upstream's and breaks the law of segproof, and vice versa."""
    profile = SEGPROOF if wrong.files else KAFKA_4_3_1
    arguments = {"base_offset": 100, "max_index_size_bytes": 7}
    transition = Opening(structure, "open", arguments, profile=profile).transition()
    assert [] == broken_step_laws(transition)
    assert ["ABSIDX-2"] == broken_step_laws(replace(transition, after=wrong))


@pytest.mark.parametrize("target", [0, 1, 3, 4, 5, 9])
def test_wrong_lookup_is_caught(target: int) -> None:
    """Whatever a lookup answers instead of the right entry, a law says so."""
    index = open_offsets(*((100 + key, 10 * key) for key in FOUR))
    answers = [(100, 0), *((100 + key, 10 * key) for key in FOUR), INVALID]
    arguments = {"target_offset": 100 + target}
    right = index.lookup(**arguments)
    for answer in answers:
        broken = broken_step_laws(Transition(index, "lookup", arguments, index, answer))
        assert (answer == right) is (broken == [])


OFFSET_NUMBERS = st.one_of(
    st.integers(95, 130),
    st.sampled_from((-(2**63), -1, 99 + 2**31, 100 + 2**31, 105 + 2**32, 2**63 - 1)),
)
POSITIONS = st.one_of(st.integers(0, 50), st.sampled_from((-(2**31), -1, 2**31 - 1)))
SIZES = st.one_of(st.integers(-20, 100), st.sampled_from((0, 12, 16, 24, 40)))
NAMES = st.sampled_from(("a", "b"))
IMAGES = st.one_of(
    st.integers(0, 80).map(bytes),
    st.lists(st.sampled_from((0, 0, 0, 1, 2, 255)), max_size=90).map(bytes),
)
SHARED: Mapping[str, Mapping[str, Any]] = {
    "resize": {"new_size": SIZES},
    "relative_offset": {"offset": OFFSET_NUMBERS},
    "can_append_offset": {"offset": OFFSET_NUMBERS},
    "truncate_to": {"offset": OFFSET_NUMBERS},
    "entry": {"n": st.integers(-2, 10)},
    "rename_to": {"file": NAMES},
    "trim_to_valid_size": {},
    "reset": {},
    "truncate": {},
    "close": {},
    "close_handler": {},
    "delete_if_exists": {},
    "sanity_check": {},
}
OPERATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "offset-index": {
        "append": {"offset": OFFSET_NUMBERS, "position": POSITIONS},
        "lookup": {"target_offset": OFFSET_NUMBERS},
        "fetch_upper_bound_offset": {
            "fetch_offset": st.builds(OffsetPosition, OFFSET_NUMBERS, POSITIONS),
            "fetch_size": POSITIONS,
        },
        **SHARED,
    },
    "time-index": {
        "maybe_append": {
            "timestamp": st.integers(-2, 40),
            "offset": OFFSET_NUMBERS,
            "skip_full_check": st.booleans(),
        },
        "lookup": {"target_timestamp": st.integers(-2, 40)},
        **SHARED,
    },
    "transaction-index": {
        "append": {
            "aborted_txn": st.builds(
                AbortedTxn,
                st.sampled_from((0, 0, 0, 1, 256, -1)),
                st.integers(0, 3),
                OFFSET_NUMBERS,
                OFFSET_NUMBERS,
                OFFSET_NUMBERS,
            )
        },
        "all_aborted_txns": {},
        "collect_aborted_txns": {
            "fetch_offset": OFFSET_NUMBERS,
            "upper_bound_offset": OFFSET_NUMBERS,
        },
        "truncate_to": {"offset": OFFSET_NUMBERS},
        "rename_to": {"file": NAMES},
        "reset": {},
        "sanity_check": {},
        "close": {},
        "delete_if_exists": {},
    },
}


def draw_opening(data: st.DataObject, structure: str, profile: Profile) -> Transition:
    """Open a file of a drawn directory."""
    files = data.draw(st.dictionaries(NAMES, IMAGES))
    arguments: dict[str, Any] = {"writable": data.draw(st.booleans())}
    if structure == "transaction-index":
        arguments["start_offset"] = 100
    else:
        arguments |= {"base_offset": 100, "max_index_size_bytes": data.draw(SIZES)}
    return Opening(structure, "open", arguments, files=files, profile=profile).transition()


@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
@pytest.mark.parametrize("structure", OPERATIONS)
@given(data=st.data())
def test_model_obeys_the_laws(structure: str, profile: Profile, data: st.DataObject) -> None:
    """No history of the model breaks a law, from any file, under any profile."""
    opened = draw_opening(data, structure, profile)
    assert [] == broken_step_laws(opened)
    state = opened.after
    if isinstance(state, Directory):
        return
    for name in data.draw(st.lists(st.sampled_from(list(OPERATIONS[structure])), max_size=20)):
        parameters = OPERATIONS[structure][name]
        case = Case(state, name, {key: data.draw(value) for key, value in parameters.items()})
        transition = case.transition()
        state = transition.after
        assert [] == broken_step_laws(transition) + broken_state_laws(state), transition


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


@pytest.mark.checks("ABSIDX-22", "ABSIDX-23", "ABSIDX-24", "ABSIDX-25", "ABSIDX-26")
@given(keys=st.lists(st.integers(0, 12), max_size=12), target=st.integers(-1, 13))
@pytest.mark.parametrize("warm_entries", [1, 2, 1024])
def test_search_obeys_the_laws(keys: list[int], target: int, warm_entries: int) -> None:
    """The two searches give the slots, and read as few of them, as the laws say."""
    profiles = {"warm": KAFKA_4_3_1, "plain": KAFKA_1_1_1}
    found = {}
    for search, profile in profiles.items():
        watched = Watched(keys)
        slots = search_by_probing(watched, len(keys), target, profile, warm_entries)
        found[search] = slots
        assert LAWS["ABSIDX-25"].predicate(len(keys), watched.probes)
        assert LAWS["ABSIDX-26"].predicate(keys, target, search, warm_entries, slots)
        assert LAWS["ABSIDX-22"].predicate(keys, target, slots[0])
        assert LAWS["ABSIDX-24"].predicate(keys, target, slots[1], False)
    assert LAWS["ABSIDX-23"].predicate(keys, found["plain"], found["warm"])
    rising = sorted(set(keys))
    lower, upper = search_by_definition(rising, target, exact_first=True)
    assert LAWS["ABSIDX-22"].predicate(rising, target, lower)
    assert LAWS["ABSIDX-24"].predicate(rising, target, upper, True)
