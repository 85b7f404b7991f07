# SPDX-License-Identifier: Apache-2.0
"""The laws of RocketMQ's index file: the model obeys them, and each of them can be broken.

`STEPS` has a real step of the model for each law about steps, and what is altered in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.directory import Directory
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.laws import index_chains
from segproof_model.laws.checking import (
    broken_state_laws,
    broken_step_laws,
    laws_of,
    opening,
    structure_of,
)
from segproof_model.laws.key_judging import java_hash, kept_hash, other_key
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import (
    ROCKETMQ_4_7_0,
    ROCKETMQ_5_5_1,
    ROCKETMQ_PROFILES,
    SEGPROOF,
    Profile,
)
from segproof_model.rocketmq.index_file import IndexFile
from segproof_model.rocketmq.index_header import IndexHeader
from segproof_model.rocketmq.reference_resource import ReferenceResource

INT64_MAX = 2**63 - 1
NUMBERS = {"hash_slot_num": 2, "index_num": 6}
CORRUPT, UNMAPPED = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.UNMAPPED)
ENDLESS = Raised(ErrorKind.ENDLESS)
PUTS = (("k", 10, 5000), ("x", 20, 6500), ("k", 30, 9000))
SLOT = {"k": 44, "x": 40}


def opened(*puts: tuple[str, int, int], profile: Profile = ROCKETMQ_5_5_1, **known: Any) -> Any:
    """Return an open file of two slots with room for five entries, after these puts."""
    arguments: dict[str, Any] = {**NUMBERS, **known}
    file: Any = IndexFile.open("7", **arguments, profile=profile).after
    for put in puts:
        file = file.put_key(*put).after
    return file


def with_bytes(file: Any, position: int, data: bytes) -> Any:
    """Return the file with other bytes at a position."""
    image = file.image[:position] + data + file.image[position + len(data) :]
    return replace(file, directory=file.directory.write(file.file_name, image))


def number(value: int) -> bytes:
    """Return an int32 as it is stored."""
    return value.to_bytes(4, "big", signed=True)


def linked(file: Any, index: int, prev_index: int) -> Any:
    """Return the file with another previous index of an entry."""
    return with_bytes(file, file.entry_position(index) + 16, number(prev_index))


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
    """What makes another state of that after, if not KEEP."""

    def transition(self) -> Transition:
        """Execute the step."""
        answer = getattr(self.before, self.operation)(**self.arguments)
        step = answer if isinstance(answer, Step) else Step(self.before, answer)
        return Transition(self.before, self.operation, self.arguments, step.after, step.outcome)

    def altered(self, transition: Transition) -> Transition:
        """Return the step with another end."""
        after = transition.after if self.after is KEEP else self.after(transition.after)
        outcome = transition.outcome if self.outcome is KEEP else self.outcome
        return replace(transition, after=after, outcome=outcome)


@dataclass
class Opening(Case):
    """Opening a file; `before` is what there is."""

    before: Directory = Directory()
    operation: str = "open"
    profile: Profile = ROCKETMQ_5_5_1

    def transition(self) -> Transition:
        """Open."""
        arguments: dict[str, Any] = {"file_name": "7", **NUMBERS, **self.arguments}
        known: dict[str, Any] = {"directory": self.before, "profile": self.profile}
        step: Any = IndexFile.open(**arguments, **known)
        return opening("index-file", arguments, self.before, self.profile, step)


def put(file: Any, key: str | None = "k", time: int = 9500, **ends: Any) -> Case:
    """Return a case that puts."""
    return Case(file, "put_key", {"key": key, "phy_offset": 40, "store_timestamp": time}, **ends)


def select(file: Any, key: str | None = "k", begin: int = 0, **ends: Any) -> Case:
    """Return a case that queries, with one offset in the list before."""
    limits = {"max_num": ends.pop("max_num", 9), "begin": begin, "end": ends.pop("end", INT64_MAX)}
    return Case(file, "select_phy_offset", {"phy_offsets": (1,), "key": key, **limits}, **ends)


def at(position: int, data: bytes) -> Any:
    """Return what puts other bytes into a state."""
    return lambda file: with_bytes(file, position, data)


def changed(**values: Any) -> Any:
    """Return what changes fields of a state."""
    return lambda file: replace(file, **values)


def header(**values: Any) -> Any:
    """Return what changes fields of the header in memory."""
    return lambda file: replace(file, header=replace(file.header, **values))


FILE = opened(*PUTS)
OURS = opened(*PUTS, profile=SEGPROOF)
ENTRY = {index: FILE.entry_position(index) for index in range(6)}
FULL = opened(*PUTS, *PUTS[:2])
GONE = FILE.destroy(0).after
LOADED = Directory().write("7", FILE.image)
LOOP = linked(FILE, 1, 3)
TO_NEXT = with_bytes(FILE, SLOT["k"], number(4))
SHORT = Directory().write("7", b"\1" * 30)
HIGH = with_bytes(with_bytes(FILE, 36, number(9)), SLOT["k"], number(7)).load().after
HELD = FILE.select_phy_offset((), None, 1, 0, 0).after
CLOSING = replace(ReferenceResource(ref_count=3), is_available=False)
SMALL = opened(hash_slot_num=10, index_num=214748365)
CUT = opened(hash_slot_num=10, index_num=214748366)

STEPS: Mapping[str, Case] = {
    "RMQHASH-3": put(FILE, after=at(SLOT["x"], number(1))),
    "RMQHASH-4": put(FILE, None, outcome=True),
    "RMQIDX-3": put(FILE, after=at(ENTRY[4] + 4, number(1))),
    "RMQIDX-4": put(FILE, after=at(ENTRY[0], number(1))),
    "RMQIDX-5": put(SMALL, outcome=True),
    "RMQIDX-6": Opening(after=header(index_count=0)),
    "RMQIDX-7": Case(FILE, "load", after=header(end_timestamp=5)),
    "RMQIDX-8": put(FILE, after=at(8, bytes(8))),
    "RMQIDX-9": Opening(arguments={"file_name": "x"}, after=lambda d: d.write("x", b"")),
    "RMQIDX-10": Opening(before=SHORT, after=at(33, b"\1")),
    "RMQIDX-11": Opening(before=LOADED, after=header(index_count=4)),
    "RMQIDX-12": Opening(
        before=LOADED, arguments={"end_phy_offset": 7}, after=header(begin_timestamp=7)
    ),
    "RMQIDX-13": Case(FULL, "is_write_full", outcome=False),
    "RMQIDX-14": Case(GONE, "flush", outcome=UNMAPPED),
    "RMQIDX-15": Case(FILE, "flush", after=header(end_timestamp=1)),
    "RMQIDX-16": Case(FILE, "is_time_matched", {"begin": 9000, "end": 1}, outcome=False),
    "RMQIDX-17": put(FULL, outcome=True),
    "RMQIDX-18": put(FILE, after=at(36, number(4))),
    "RMQIDX-19": put(FILE, after=at(ENTRY[5], number(1))),
    "RMQIDX-20": put(FILE, after=at(ENTRY[4] + 16, number(2))),
    "RMQIDX-21": put(FILE, after=at(ENTRY[4] + 12, number(5))),
    "RMQIDX-22": put(FILE, after=at(SLOT["k"], number(3))),
    "RMQIDX-23": put(opened(end_timestamp=500), after=header(begin_timestamp=500)),
    "RMQIDX-24": put(FILE, after=header(hash_slot_count=3)),
    "RMQIDX-25": put(FILE, time=100, after=header(end_timestamp=9000)),
    "RMQIDX-26": put(opened(end_timestamp=500), after=header(begin_timestamp=500)),
    "RMQIDX-27": put(opened(("k", 1, 0)), after=at(ENTRY[2] + 12, number(9))),
    "RMQIDX-28": put(SMALL, after=header(index_count=2)),
    "RMQIDX-29": put(TO_NEXT, after=header(hash_slot_count=3)),
    "RMQIDX-31": select(FILE, max_num=2, outcome=(1, 30, 10)),
    "RMQIDX-32": select(with_bytes(FILE, SLOT["k"], number(-1)), outcome=(1, 30)),
    "RMQIDX-33": select(FILE, end=8999, outcome=(1, 30, 10)),
    "RMQIDX-34": select(FILE, outcome=(1, 30)),
    "RMQIDX-35": select(with_bytes(FILE, ENTRY[1] + 12, number(-1)), outcome=(1, 30, 10)),
    "RMQIDX-36": select(linked(FILE, 3, 3), outcome=(1, 30, 30)),
    "RMQIDX-37": select(
        with_bytes(with_bytes(FILE, ENTRY[4], number(107)), SLOT["k"], number(4)), outcome=(1,)
    ),
    "RMQIDX-38": select(HIGH, outcome=Raised(ErrorKind.INDEX_ERROR)),
    "RMQIDX-39": select(FILE, None, after=changed(resource=ReferenceResource())),
    "RMQIDX-40": select(LOOP, outcome=(1, 30, 10)),
    "RMQIDX-42": select(FILE, outcome=(1, 10, 30)),
    "RMQREF-1": Case(ReferenceResource(), "hold", outcome=False),
    "RMQREF-2": Case(
        CLOSING, "shutdown", {"interval_forcibly_ms": 9, "now_ms": 8}, after=changed(ref_count=0)
    ),
    "RMQREF-3": Case(FILE, "destroy", {"interval_forcibly_ms": 0}, outcome=False),
    "RMQREF-4": select(GONE, outcome=(1, 30)),
}

MORE: tuple[tuple[str, Case], ...] = (
    ("RMQHASH-4", put(FILE, None, after=at(0, b"\1"))),
    ("RMQHASH-4", select(opened(hash_slot_num=0), outcome=(1,))),
    ("RMQIDX-3", put(FILE, after=at(SLOT["k"], number(1)))),
    ("RMQIDX-5", put(FILE, outcome=False)),
    ("RMQIDX-5", select(opened(hash_slot_num=2**28, index_num=-(2**28)), outcome=(1, 2))),
    ("RMQIDX-6", Opening(after=at(36, number(1)))),
    ("RMQIDX-7", Case(with_bytes(FILE, 36, bytes(4)), "load", after=header(index_count=0))),
    ("RMQIDX-7", Case(FILE, "load", after=at(36, bytes(4)))),
    ("RMQIDX-8", put(FILE, after=header(begin_timestamp=1))),
    ("RMQIDX-9", Opening(arguments={"index_num": 2**27}, after=lambda d: d.remove("7"))),
    (
        "RMQIDX-9",
        Opening(arguments={"index_num": 1}, profile=SEGPROOF, after=lambda d: d.write("7", b"")),
    ),
    ("RMQIDX-9", Opening(outcome=Raised(ErrorKind.INVALID_ARGUMENT))),
    ("RMQIDX-10", Opening(before=LOADED, after=at(90, b"\1"))),
    ("RMQIDX-10", Opening(before=SHORT, profile=SEGPROOF, after=lambda d: FILE, outcome=None)),
    ("RMQIDX-11", Opening(before=LOADED, profile=SEGPROOF, after=header(index_count=1))),
    ("RMQIDX-12", Opening(arguments={"end_timestamp": 7}, after=at(36, number(1)))),
    ("RMQIDX-14", Case(FILE, "flush", after=at(0, bytes(8)))),
    ("RMQIDX-17", put(FULL, after=at(ENTRY[5], bytes(4)))),
    ("RMQIDX-17", put(OURS.close().after, outcome=False)),
    ("RMQIDX-20", put(with_bytes(OURS, SLOT["k"], number(4)), after=at(ENTRY[4] + 16, number(4)))),
    ("RMQIDX-24", put(opened(*PUTS, profile=ROCKETMQ_4_7_0), after=header(hash_slot_count=3))),
    ("RMQIDX-28", put(CUT, after=header(end_timestamp=1))),
    ("RMQIDX-29", put(with_bytes(OURS, SLOT["k"], number(4)), after=at(ENTRY[4] + 16, number(4)))),
    ("RMQIDX-31", select(FILE, outcome=(30, 10))),
    ("RMQIDX-31", select(FILE, outcome=[1, 30, 10])),
    ("RMQIDX-32", select(with_bytes(OURS, SLOT["k"], number(9)), outcome=(1,))),
    ("RMQIDX-35", select(with_bytes(OURS, ENTRY[1] + 12, number(-1)), outcome=(1, 30))),
    ("RMQIDX-36", select(LOOP, begin=6000, outcome=(1, 30, 10))),
    ("RMQIDX-36", select(linked(OURS, 3, 3), outcome=(1, 30))),
    ("RMQIDX-37", select(with_bytes(OURS, SLOT["k"], number(4)), outcome=(1,))),
    ("RMQIDX-38", select(replace(HIGH, profile=SEGPROOF), outcome=(1,))),
    ("RMQIDX-39", select(OURS, None, after=changed(resource=ReferenceResource(ref_count=2)))),
    ("RMQIDX-40", select(FILE, outcome=ENDLESS)),
    ("RMQIDX-40", select(LOOP, max_num=2**31 - 1, outcome=(1, 30, 10))),
    ("RMQIDX-40", select(LOOP, end=0, outcome=(1,))),
    ("RMQIDX-40", select(linked(OURS, 1, 3), outcome=(1, 30, 10))),
    ("RMQIDX-40", select(OURS, outcome=CORRUPT)),
    ("RMQREF-1", Case(CLOSING, "release", after=changed(ref_count=3))),
    ("RMQREF-1", Case(replace(CLOSING, ref_count=1), "release", after=changed(cleanup_over=False))),
    ("RMQREF-1", Case(GONE, "flush", after=lambda file: FILE)),
    ("RMQREF-2", Case(HELD, "destroy", {"interval_forcibly_ms": 0}, after=lambda file: HELD)),
    ("RMQREF-3", Case(HELD, "destroy", {"interval_forcibly_ms": 0}, outcome=True)),
    ("RMQREF-3", Case(FILE, "destroy", {"interval_forcibly_ms": 0}, after=lambda file: FILE)),
    ("RMQREF-4", select(OURS.close().after, outcome=(1,))),
    ("RMQREF-4", put(OURS.close().after, outcome=False)),
)
"""Further ends that break a law: its other halves, and other profiles."""


class WrongFile(IndexFile):
    """A file that is wrong about its size."""

    file_size = property(lambda self: 7)


class WrongHeader(IndexHeader):
    """A header that is stored as zeros."""

    def to_bytes(self) -> bytes:
        """Return zeros."""
        return bytes(40)


STATES: Mapping[str, tuple[Any, Any]] = {
    "RMQIDX-1": (FILE, replace(FILE, directory=Directory())),
    "RMQIDX-2": (FILE, replace(FILE, header=WrongHeader(5))),
}
FILES: Mapping[str, tuple[bytes, bytes]] = {
    "RMQIDX-30": (FILE.image, LOOP.image),
}
PURE: Mapping[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "RMQHASH-1": (("T#a", 81906), ("T#a", -81906)),
    "RMQHASH-2": (("polygenelubricants", 0), ("polygenelubricants", -(2**31))),
    "RMQHASH-5": (("T", None, "T#null"), ("T", None, "T#")),
}


@pytest.mark.checks(*STEPS)
@pytest.mark.parametrize(
    ("law_id", "case"),
    [*STEPS.items(), *MORE],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_step_law_can_be_broken(law_id: str, case: Case) -> None:
    """A law holds for the model's step, and not for the same step with another end."""
    transition = case.transition()
    assert [] == broken_step_laws(transition)
    assert LAWS[law_id].predicate(case.altered(transition)) is False


@pytest.mark.checks(*STATES)
@pytest.mark.parametrize("law_id", STATES)
def test_state_law_can_be_broken(law_id: str) -> None:
    """A law holds for a state of the model, and not for a damaged one."""
    sound, broken = STATES[law_id]
    assert [] == broken_state_laws(sound)
    assert LAWS[law_id].predicate(broken) is False
    assert broken_state_laws(WrongFile(**{name: getattr(FILE, name) for name in FILE.__slots__}))


@pytest.mark.checks(*FILES)
@pytest.mark.parametrize("law_id", FILES)
def test_file_law_can_be_broken(law_id: str) -> None:
    """A law holds for one file of two slots, and not for another."""
    sound, broken = FILES[law_id]
    assert LAWS[law_id].predicate(sound, 2) is True
    assert LAWS[law_id].predicate(broken, 2) is False


@pytest.mark.checks(*PURE)
@pytest.mark.parametrize("law_id", PURE)
def test_pure_law_can_be_broken(law_id: str) -> None:
    """A law holds for one answer of a function, and not for another."""
    sound, broken = PURE[law_id]
    assert LAWS[law_id].predicate(*sound) is True
    assert LAWS[law_id].predicate(*broken) is False


@pytest.mark.checks("RMQIDX-41")
def test_golden_law_can_be_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds for the puts that the JVM was given, and not for others."""
    assert LAWS["RMQIDX-41"].predicate() is True
    monkeypatch.setattr(index_chains, "GOLDEN_PUTS", index_chains.GOLDEN_PUTS[::-1])
    assert LAWS["RMQIDX-41"].predicate() is False


@pytest.mark.parametrize(
    "damaged",
    [
        FILE.image[:30],
        FILE.image[:-60],
        linked(FILE, 3, -1).image,
        with_bytes(FILE, 40, number(4)).image,
        with_bytes(FILE, 32, number(1)).image,
        with_bytes(FILE, 36, number(2)).image,
    ],
)
def test_damage_breaks_the_law_of_files(damaged: bytes) -> None:
    """Bytes that are missing, a slot or previous index too high, and both counts."""
    assert LAWS["RMQIDX-30"].predicate(damaged, 2) is False


@pytest.mark.parametrize("profile", [SEGPROOF, *ROCKETMQ_PROFILES])
def test_files_of_puts_obey_the_law_of_files(profile: Profile) -> None:
    """From the first byte on, before and after each put."""
    file = opened(profile=profile)
    for key, phy_offset, store_timestamp in (*PUTS, *PUTS):
        assert LAWS["RMQIDX-30"].predicate(file.image, 2) is True
        file = file.put_key(key, phy_offset, store_timestamp).after


@given(st.integers(0, 2**31 - 1))
def test_other_keys_have_the_hash(key_hash: int) -> None:
    """The law of equal hashes needs a second key of each."""
    assert key_hash == java_hash(other_key(key_hash)) == kept_hash(other_key(key_hash))


@pytest.mark.checks("RMQREF-1", "RMQREF-2")
@given(st.lists(st.sampled_from(["hold", "release", 0, 5, 50]), max_size=12))
def test_resource_obeys_its_laws(calls: list[Any]) -> None:
    """Held, released and shut down in any order, time passing by 10 ms at each call."""
    resource = ReferenceResource()
    for turn, call in enumerate(calls):
        arguments = {}
        if isinstance(call, int):
            arguments = {"interval_forcibly_ms": call, "now_ms": 10 * turn}
        name = call if isinstance(call, str) else "shutdown"
        step = getattr(resource, name)(**arguments)
        transition = Transition(resource, name, arguments, step.after, step.outcome)
        assert [] == broken_step_laws(transition)
        assert [] == broken_state_laws(step.after)
        resource = step.after


@pytest.mark.parametrize(("area", "count"), [("RMQHASH", 6), ("RMQIDX", 42), ("RMQREF", 4)])
def test_every_law_is_stated(area: str, count: int) -> None:
    """Each sentence of the contract has a predicate, a sentence, and a case above."""
    wanted = {f"{area}-{number}" for number in range(1, count + 1)}
    assert wanted == {law_id for law_id in LAWS if law_id.startswith(f"{area}-")}
    assert wanted - {"RMQHASH-6", "RMQIDX-41"} <= {*STEPS, *STATES, *FILES, *PURE}
    assert all(LAWS[law_id].sentence.endswith(".") for law_id in wanted)


def test_laws_of_a_structure() -> None:
    """An index file and its resource obey the same laws."""
    assert structure_of(FILE) == structure_of(ReferenceResource()) == "index-file"
    areas = {law.law_id.partition("-")[0] for law in laws_of("index-file")}
    assert areas - {"RMQDISK"} == {"RMQHASH", "RMQIDX", "RMQREF"}
