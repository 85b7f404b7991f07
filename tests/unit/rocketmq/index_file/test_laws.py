# SPDX-License-Identifier: Apache-2.0
"""The laws of RocketMQ's index file: the model obeys them, and each of them can be broken.

`STEPS` has real steps of the model for each law about steps, and the same with another end.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.laws.every_law import LAWS
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import State, apply, opened
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.laws.rocketmq.format import index_chains
from segproof_model.laws.rocketmq.format.index_entries import IndexBytes, java_hash, kept_hash
from segproof_model.releases import NEWEST_ROCKETMQ, RELEASES, SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.index_header import IndexHeader
from segproof_model.rocketmq.format.reference_resource import ReferenceResource
from segproof_tests.model_steps import done

INT64_MAX = 2**63 - 1
CORRUPT, UNMAPPED = Raised(ErrorKind.CORRUPT_INDEX), Raised(ErrorKind.UNMAPPED)
ENDLESS, INVALID = Raised(ErrorKind.ENDLESS), Raised(ErrorKind.INVALID_ARGUMENT)
PUTS = (("k", 10, 5000), ("x", 20, 6500), ("k", 30, 9000))
SLOT = {"k": 44, "x": 40}
KEEP = object()
Alter = Callable[[Any], State]
"""What makes another state of one."""
Case = tuple[Transition, Transition]
"""A step of the model, and the same with another end."""


# --- other states --------------------------------------------------------------------------------


def changed(state: Any, do: Callable[..., object], *arguments: object) -> Any:
    """Return the state after something was done to it."""
    return apply(state, do, *arguments).after


def written(file: Any, position: int, data: bytes) -> Any:
    """Return the file with other bytes at a position."""
    image = file.image[:position] + data + file.image[position + len(data) :]
    return changed(file, lambda draft: draft.files.write(draft.file_name, image))


def number(value: int) -> bytes:
    """Return an int32 as it is stored."""
    return value.to_bytes(4, "big", signed=True)


def headed(file: Any, key: str, value: int) -> Any:
    """Return the file with another number in the slot of a key."""
    return written(file, SLOT[key], number(value))


def linked(file: Any, index: int, prev_index: int) -> Any:
    """Return the file with another previous index of an entry."""
    return written(file, file.entry_position(index) + 16, number(prev_index))


def at(position: int, data: bytes) -> Alter:
    """Return what puts other bytes into a file."""
    return lambda file: written(file, position, data)


def header(**values: int) -> Alter:
    """Return what changes fields of the header in memory."""
    return lambda file: changed(
        file, lambda draft: setattr(draft, "header", draft.header._replace(**values))
    )


def resource(**values: object) -> Alter:
    """Return what changes the counts of who holds a file."""
    return lambda file: changed(file, lambda draft: vars(draft.resource).update(values))


def wrote(data: bytes, name: str = "7") -> Alter:
    """Return what leaves a file behind an opening that failed."""
    return lambda files: changed(files, lambda draft: draft.write(name, data))


# --- cases ---------------------------------------------------------------------------------------


def ended(step: Transition, outcome: object = KEEP, after: Alter | None = None) -> Case:
    """Return a step, and the same with another outcome, or another state after it."""
    left = step.after if after is None else after(step.after)
    seen = step.outcome if outcome is KEEP else outcome
    return step, replace(step, after=left, outcome=seen)


def case(before: Any, operation: str, *ends: Any, **more: Any) -> Case:
    """Return a case of an operation without arguments."""
    return ended(done(before, operation), *ends, **more)


def opening(
    images: Mapping[str, bytes] = {},
    outcome: object = KEEP,
    after: Alter | None = None,
    release: Release = NEWEST_ROCKETMQ,
    **arguments: Any,
) -> Case:
    """Return a case that opens a file of two slots with room for five entries."""
    given: dict[str, Any] = {"file_name": "7", "geometry": (2, 6)}
    given |= {"end_phy_offset": 0, "end_timestamp": 0, **arguments}
    name, geometry, *ends = given.values()
    kind, files = release.kind(IndexFile), Files(images)
    step: Any = opened(kind, files, name, *geometry, *ends)
    transition = Transition(kind, files, "open", given, step.after, step.outcome)
    return ended(transition, outcome, after)


def put(file: Any, key: str | None = "k", time: int = 9500, **ends: Any) -> Case:
    """Return a case that puts."""
    return ended(done(file, "put_key", key=key, phy_offset=40, store_timestamp=time), **ends)


def select(
    file: Any,
    key: str | None = "k",
    begin: int = 0,
    end: int = INT64_MAX,
    max_num: int = 9,
    **ends: Any,
) -> Case:
    """Return a case that queries, with one offset in the list before."""
    asked: dict[str, Any] = {"key": key, "max_num": max_num, "begin": begin, "end": end}
    return ended(done(file, "select_phy_offset", phy_offsets=(1,), **asked), **ends)


def destroy(file: Any, *ends: Any, **more: Any) -> Case:
    """Return a case that destroys a file, from whoever holds it."""
    return ended(done(file, "destroy", interval_forcibly_ms=0), *ends, **more)


def filled(
    *puts: tuple[str, int, int],
    release: Release = NEWEST_ROCKETMQ,
    geometry: Any = (2, 6),
    **more: int,
) -> Any:
    """Return an open file after these puts."""
    file: Any = opened(release.kind(IndexFile), Files(), "7", *geometry, **more).after
    for one in puts:
        file = apply(file, "put_key", *one).after
    return file


FILE, OURS = filled(*PUTS), filled(*PUTS, release=SEGPROOF)
OLD = filled(*PUTS, release=RELEASES["rocketmq-4.7.0"])
ENTRY = [FILE.entry_position(index) for index in range(6)]
FULL = filled(*PUTS, *PUTS[:2])
GONE, CLOSED = apply(FILE, "destroy", 0).after, apply(OURS, "close").after
LOADED = {"7": FILE.image}
LOOP = linked(FILE, 1, 3)
SHORT = {"7": b"\1" * 30}
HIGH, HIGH_OURS = (
    apply(headed(written(file, 36, number(9)), "k", 7), "load").after for file in (FILE, OURS)
)
HELD = apply(FILE, "select_phy_offset", (), None, 1, 0, 0).after
LATE = filled(end_timestamp=500)
SMALL, CUT = filled(geometry=(10, 214748365)), filled(geometry=(10, 214748366))

STEPS: list[tuple[str, Case]] = [
    ("RMQHASH-3", put(FILE, after=at(SLOT["x"], number(1)))),
    ("RMQHASH-4", put(FILE, None, outcome=True)),
    ("RMQHASH-4", put(FILE, None, after=at(0, b"\1"))),
    ("RMQHASH-4", select(filled(geometry=(0, 6)), outcome=(1,))),
    ("RMQIDX-3", put(FILE, after=at(ENTRY[4] + 4, number(1)))),
    ("RMQIDX-3", put(FILE, after=at(SLOT["k"], number(1)))),
    ("RMQIDX-4", put(FILE, after=at(ENTRY[0], number(1)))),
    ("RMQIDX-5", put(SMALL, outcome=True)),
    ("RMQIDX-5", put(FILE, outcome=False)),
    ("RMQIDX-5", select(filled(geometry=(2**28, -(2**28))), outcome=(1, 2))),
    ("RMQIDX-6", opening(after=header(index_count=0))),
    ("RMQIDX-6", opening(after=at(36, number(1)))),
    ("RMQIDX-7", case(FILE, "load", after=header(end_timestamp=5))),
    ("RMQIDX-7", case(written(FILE, 36, bytes(4)), "load", after=header(index_count=0))),
    ("RMQIDX-7", case(FILE, "load", after=at(36, bytes(4)))),
    ("RMQIDX-8", put(FILE, after=at(8, bytes(8)))),
    ("RMQIDX-8", put(FILE, after=header(begin_timestamp=1))),
    ("RMQIDX-9", opening(file_name="x", after=wrote(b"", "x"))),
    ("RMQIDX-9", opening(geometry=(2, 2**27), after=wrote(b"\1"))),
    ("RMQIDX-9", opening(geometry=(2, 1), release=SEGPROOF, after=wrote(b""))),
    ("RMQIDX-9", opening(outcome=INVALID, after=lambda file: file.files)),
    ("RMQIDX-10", opening(SHORT, after=at(33, b"\1"))),
    ("RMQIDX-10", opening(LOADED, after=at(90, b"\1"))),
    ("RMQIDX-10", opening(SHORT, None, lambda _: OURS, SEGPROOF)),
    ("RMQIDX-11", opening(LOADED, after=header(index_count=4))),
    ("RMQIDX-11", opening(LOADED, after=header(index_count=1), release=SEGPROOF)),
    ("RMQIDX-12", opening(LOADED, after=header(begin_timestamp=7), end_phy_offset=7)),
    ("RMQIDX-12", opening(after=at(36, number(1)), end_timestamp=7)),
    ("RMQIDX-14", case(GONE, "flush", UNMAPPED)),
    ("RMQIDX-14", case(FILE, "flush", after=at(0, bytes(8)))),
    ("RMQIDX-15", case(FILE, "flush", after=header(end_timestamp=1))),
    ("RMQIDX-16", ended(done(FILE, "is_time_matched", begin=9000, end=1), False)),
    ("RMQIDX-17", put(FULL, outcome=True)),
    ("RMQIDX-17", put(FULL, after=at(ENTRY[5], number(1)))),
    ("RMQIDX-18", put(FILE, after=at(36, number(4)))),
    ("RMQIDX-19", put(FILE, after=at(ENTRY[5], number(1)))),
    ("RMQIDX-20", put(FILE, after=at(ENTRY[4] + 16, number(2)))),
    ("RMQIDX-20", put(headed(OURS, "k", 4), after=at(ENTRY[4] + 16, number(4)))),
    ("RMQIDX-21", put(FILE, after=at(ENTRY[4] + 12, number(5)))),
    ("RMQIDX-22", put(FILE, after=at(SLOT["k"], number(3)))),
    ("RMQIDX-23", put(LATE, after=header(begin_timestamp=500))),
    ("RMQIDX-24", put(FILE, after=header(hash_slot_count=3))),
    ("RMQIDX-24", put(OLD, after=header(hash_slot_count=3))),
    ("RMQIDX-25", put(FILE, time=100, after=header(end_timestamp=9000))),
    ("RMQIDX-26", put(LATE, after=header(begin_timestamp=500))),
    ("RMQIDX-27", put(filled(("k", 1, 0)), after=at(ENTRY[2] + 12, number(9)))),
    ("RMQIDX-28", put(SMALL, after=header(index_count=2))),
    ("RMQIDX-28", put(CUT, after=header(end_timestamp=1))),
    ("RMQIDX-29", put(headed(FILE, "k", 4), after=header(hash_slot_count=3))),
    ("RMQIDX-29", put(headed(OURS, "k", 4), after=at(ENTRY[4] + 16, number(4)))),
    ("RMQIDX-31", select(FILE, max_num=2, outcome=(1, 30, 10))),
    ("RMQIDX-31", select(FILE, outcome=(30, 10))),
    ("RMQIDX-31", select(FILE, outcome=[1, 30, 10])),
    ("RMQIDX-32", select(headed(FILE, "k", -1), outcome=(1, 30))),
    ("RMQIDX-32", select(headed(OURS, "k", 9), outcome=(1,))),
    ("RMQIDX-32", select(headed(OURS, "k", 4), outcome=(1,))),
    ("RMQIDX-33", select(FILE, end=8999, outcome=(1, 30, 10))),
    ("RMQIDX-33", select(headed(written(FILE, ENTRY[4], number(107)), "k", 4), outcome=(1,))),
    ("RMQIDX-34", select(FILE, outcome=(1, 30))),
    ("RMQIDX-35", select(written(FILE, ENTRY[1] + 12, number(-1)), outcome=(1, 30, 10))),
    ("RMQIDX-35", select(written(OURS, ENTRY[1] + 12, number(-1)), outcome=(1, 30))),
    ("RMQIDX-36", select(linked(FILE, 3, 3), outcome=(1, 30, 30))),
    ("RMQIDX-36", select(LOOP, begin=6000, outcome=(1, 30, 10))),
    ("RMQIDX-36", select(linked(OURS, 3, 3), outcome=(1, 30))),
    ("RMQIDX-38", select(HIGH, outcome=Raised(ErrorKind.INDEX_ERROR))),
    ("RMQIDX-38", select(HIGH_OURS, outcome=(1,))),
    ("RMQIDX-39", select(FILE, None, after=resource(ref_count=1))),
    ("RMQIDX-39", select(OURS, None, after=resource(ref_count=2))),
    ("RMQIDX-40", select(LOOP, outcome=(1, 30, 10))),
    ("RMQIDX-40", select(FILE, outcome=ENDLESS)),
    ("RMQIDX-40", select(LOOP, max_num=2**31 - 1, outcome=(1, 30, 10))),
    ("RMQIDX-40", select(LOOP, end=0, outcome=(1,))),
    ("RMQIDX-40", select(linked(OURS, 1, 3), outcome=(1, 30, 10))),
    ("RMQIDX-40", select(OURS, outcome=CORRUPT)),
    ("RMQIDX-42", select(FILE, outcome=(1, 10, 30))),
    ("RMQREF-1", case(ReferenceResource(), "hold", False)),
    ("RMQREF-1", case(FILE.resource, "release_hold", after=lambda _: FILE.resource)),
    ("RMQREF-1", case(GONE.resource, "release_hold", after=lambda _: ReferenceResource())),
    ("RMQREF-2", destroy(HELD, after=lambda _: HELD)),
    ("RMQREF-2", destroy(apply(HELD, "destroy", 10).after, after=resource(ref_count=1))),
    ("RMQREF-3", destroy(FILE, False)),
    ("RMQREF-3", destroy(HELD, True)),
    ("RMQREF-3", destroy(FILE, after=lambda _: FILE)),
    ("RMQREF-4", select(GONE, outcome=(1, 30))),
    ("RMQREF-4", select(CLOSED, outcome=(1,))),
    ("RMQREF-4", put(CLOSED, outcome=False)),
]


class NeverFull(IndexFile):
    """A file that is wrong about its room."""

    is_write_full = property(lambda self: False)


class ZeroHeader(IndexHeader):
    """A header that is stored as zeros."""

    def to_bytes(self) -> bytes:
        """Return zeros."""
        return bytes(40)


STATES: Mapping[str, Any] = {
    "RMQIDX-1": changed(FILE, lambda draft: draft.files.remove("7")),
    "RMQIDX-2": changed(FILE, lambda draft: setattr(draft, "header", ZeroHeader(5))),
    "RMQIDX-13": opened(NeverFull, Files(), "7", 2, 1).after,
}


@pytest.mark.checks(*STEPS)
@pytest.mark.parametrize(
    ("law_id", "case"), STEPS, ids=lambda item: item if isinstance(item, str) else ""
)
def test_step_law_can_be_broken(law_id: str, case: Case) -> None:
    """A law holds for the model's step, and not for the same step with another end."""
    step, altered = case
    assert [] == broken_step_laws(step)
    assert law_id in broken_step_laws(altered)


@pytest.mark.checks(*STATES)
@pytest.mark.parametrize("law_id", STATES)
def test_state_law_can_be_broken(law_id: str) -> None:
    """A law holds for a state of the model, and not for a damaged one."""
    assert [] == broken_state_laws(FULL)
    assert [law_id] == broken_state_laws(STATES[law_id])


def test_each_law_has_a_case() -> None:
    """Of those that judge files and who holds them, step by step."""
    judged = [one for one in LAWS.values() if one.of in (IndexFile, ReferenceResource)]
    wanted = {one.law_id for one in judged if one.scope in ("state", "step")}
    assert wanted == {law_id for law_id, _ in STEPS} | set(STATES)


def test_wrong_size_is_seen() -> None:
    """The size is that of slots and entries, whatever the file has."""
    wrong = changed(FILE, lambda draft: setattr(draft, "file_size", 7))
    assert ["RMQIDX-1"] == broken_state_laws(wrong)


@pytest.mark.checks("RMQIDX-41")
def test_golden_law_can_be_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds for the puts that the JVM was given, and not for others."""
    assert LAWS["RMQIDX-41"].predicate() is True
    monkeypatch.setattr(index_chains, "GOLDEN_PUTS", index_chains.GOLDEN_PUTS[::-1])
    assert LAWS["RMQIDX-41"].predicate() is False


@pytest.mark.checks("RMQIDX-30")
@pytest.mark.parametrize(
    "damaged",
    [
        LOOP.image,
        FILE.image[:30],
        FILE.image[:-60],
        linked(FILE, 3, -1).image,
        headed(FILE, "x", 4).image,
        written(FILE, 32, number(1)).image,
        written(FILE, 36, number(2)).image,
    ],
)
def test_damage_breaks_the_law_of_files(damaged: bytes) -> None:
    """A loop, bytes that are missing, a slot or previous index too high, and both counts."""
    assert LAWS["RMQIDX-30"].predicate(IndexBytes(FILE.image, 2)) is True
    assert LAWS["RMQIDX-30"].predicate(IndexBytes(damaged, 2)) is False


@pytest.mark.checks("RMQIDX-30")
def test_files_of_puts_obey_the_law_of_files(any_rocketmq: Release) -> None:
    """From the first byte on, before and after each put."""
    file = any_rocketmq.kind(IndexFile)(Files(), "7", 2, 6)
    for one in (*PUTS, *PUTS):
        assert LAWS["RMQIDX-30"].predicate(IndexBytes(file.image, 2)) is True
        file.put_key(*one)


@given(st.integers(0, 2**31 - 1))
def test_other_keys_have_the_hash(key_hash: int) -> None:
    """The law of equal hashes needs a second key of each."""
    other = index_chains.other_key(key_hash)
    assert key_hash == java_hash(other) == kept_hash(other)


@pytest.mark.checks("RMQREF-1", "RMQREF-2", "RMQREF-3")
@given(st.lists(st.sampled_from(["hold", "release_hold", 0, 5, 50]), max_size=12))
def test_who_holds_a_file_obeys_the_laws(calls: list[Any]) -> None:
    """Held, released and destroyed in any order, time passing by 10 ms at each call."""
    file = FILE
    for call in calls:
        file = changed(file, lambda draft: setattr(draft.files, "now_ms", draft.files.now_ms + 10))
        if isinstance(call, int):
            step = done(file, "destroy", interval_forcibly_ms=call)
            file = step.after
        else:
            step = done(file.resource, call)
            file = changed(file, lambda draft, name: getattr(draft.resource, name)(), call)
        assert [] == broken_step_laws(step) + broken_state_laws(file)
