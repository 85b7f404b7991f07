# SPDX-License-Identifier: Apache-2.0
"""The laws of the index service: the model obeys them, and each of them can be broken.

`STEPS` has operations of the model; what is done instead of each, and what is seen then, breaks the
law.
"""

from collections.abc import Callable
from typing import Any

import pytest

from segproof_harness.laws.every_law import LAWS
from segproof_harness.laws.file_damages import later
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, opened
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.releases import NEWEST_ROCKETMQ, SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService, QueryOffsetResult
from segproof_model.rocketmq.format.message import DispatchRequest

CLOCK_MS = 1795223767450
TIME_MS = 1700000000000
MAX_INT64 = 2**63 - 1
Do = Callable[[Any], object]


def changed(state: Any, do: Do) -> Any:
    """Return the state after something was done to it."""
    return apply(state, do).after


def request(offset: int, keys: str | None, uniq_key: str | None = None, **more: Any) -> Any:
    """Return what a service is told of a message of the topic T."""
    values = (offset, 99, 0, TIME_MS + offset * 1000, 0, keys, uniq_key, 0, 0, None)
    return DispatchRequest("T", *values)._replace(**more)


def service_of(*requests: DispatchRequest, release: Release = NEWEST_ROCKETMQ) -> Any:
    """Return a service with five entries a file that was told of messages, 1 ms each."""

    def tell(service: Any) -> None:
        for one in requests:
            service.build_index(one)
            service.files.now_ms += 1

    kind = release.kind(IndexService)
    return changed(opened(kind, Files(now_ms=CLOCK_MS), "", 3, 6).after, tell)


# --- what is done instead ------------------------------------------------------------------------


def nothing(service: Any) -> None:
    """Leave it as it was."""


def bare(service: Any) -> None:
    """Forget the list."""
    service.index_files = ()


def doubled(service: Any) -> None:
    """List every file twice."""
    service.index_files *= 2


@later
def listed(service: Any, *, last_exit_ok: bool = True, is_reversed: bool = False) -> None:
    """Load, and list the files the other way round."""
    service.load(last_exit_ok)
    service.index_files = service.index_files[:: -1 if is_reversed else 1]


def wrote(path: str) -> Do:
    """Write a file of no bytes."""
    return lambda service: service.files.write(path, b"")


def covered(time_ms: int) -> Do:
    """Let the checkpoint say another time, in memory only."""
    return lambda service: service.store_checkpoint.set_index_msg_timestamp(time_ms)


def told(*requests: DispatchRequest) -> Do:
    """Build other messages."""
    return lambda service: [service.build_index(one) for one in requests] and None


def renamed(service: Any) -> None:
    """Begin a file of another time."""
    service.files.now_ms += 1
    service.get_and_create_last_index_file()


@later
def begun(service: Any, /, **header: int) -> None:
    """Begin a file with another header."""
    service.get_and_create_last_index_file()
    last = service.index_files[-1]
    last.header = last.header._replace(**header)


def begun_early(service: Any) -> None:
    """Begin a file behind one with room."""
    service.build_index(request(20, "x"))
    first = service.index_files[0]
    first.header = first.header._replace(index_count=2)


def answer(*offsets: int, time_ms: int = TIME_MS + 9000, end: int = 9) -> QueryOffsetResult:
    """Return the answer of a query of the two files."""
    return QueryOffsetResult(offsets, time_ms, end)


# --- the laws ------------------------------------------------------------------------------------

EMPTY = service_of()
ONE = service_of(request(1, "a b"))
"""One file with two entries."""
FULL = service_of(request(1, "a b c d e"))
MESSAGES = (request(1, "a b c d e"), request(9, "a f"))
TWO = service_of(*MESSAGES)
"""A full file and one of two entries."""
OURS, OURS_TWO = (service_of(*each, release=SEGPROOF) for each in (MESSAGES[1:], MESSAGES))
UNLISTED = changed(TWO, bare)
HELD = changed(TWO, lambda service: service.index_files[0].resource.hold())
FOLDER, WORD = (changed(EMPTY, wrote(path)) for path in ("index/5/x", "index/word"))
BLOCKED, OURS_BLOCKED = (
    changed(service_of(release=release), wrote("index")) for release in (NEWEST_ROCKETMQ, SEGPROOF)
)

ASK = {"topic": "T", "key": "a", "max_num": 64, "begin": 0, "end": MAX_INT64}
LOAD, CRASH = {"last_exit_ok": True}, {"last_exit_ok": False}
NEW = "get_and_create_last_index_file"
BUILD = "build_index"
KEYS = {"request": request(20, "x  y", "u")}
OLD = {"request": request(0, "x")}
AGAIN = {"request": request(9, "z")}
ROLLED_BACK = {"request": request(20, "x", sys_flag=12)}
NO_KEY = {"request": request(20, None)}
LOST, LOCKED = Raised(ErrorKind.IO_ERROR), Raised(ErrorKind.LOCK_STATE)

STEPS: list[tuple[str, Any, str, dict[str, Any], Do, object]] = [
    ("RMQSVC-1", UNLISTED, "load", LOAD, listed(is_reversed=True), True),
    ("RMQSVC-1", OURS_TWO, "load", LOAD, doubled, True),
    ("RMQSVC-2", UNLISTED, "load", LOAD, nothing, True),
    ("RMQSVC-2", TWO, "load", LOAD, nothing, True),
    ("RMQSVC-2", WORD, "load", LOAD, lambda service: service.files.remove("index/word"), True),
    ("RMQSVC-2", FOLDER, "load", LOAD, nothing, True),
    ("RMQSVC-2", UNLISTED, "load", LOAD, listed(), False),
    ("RMQSVC-4", UNLISTED, "load", CRASH, listed(), True),
    ("RMQSVC-4", UNLISTED, "load", LOAD, listed(last_exit_ok=False), True),
    ("RMQSVC-5", TWO, "load", LOAD, bare, True),
    ("RMQSVC-6", ONE, NEW, {}, begun(end_timestamp=5), None),
    ("RMQSVC-6", FULL, NEW, {}, begun(begin_timestamp=5), None),
    ("RMQSVC-6", FULL, NEW, {}, begun(end_phy_offset=5), None),
    ("RMQSVC-7", FULL, BUILD, NO_KEY, renamed, None),
    ("RMQSVC-8", BLOCKED, NEW, {}, nothing, LOST),
    ("RMQSVC-8", OURS_BLOCKED, NEW, {}, nothing, LOCKED),
    ("RMQSVC-9", OURS, BUILD, KEYS, doubled, None),
    ("RMQSVC-10", FULL, "flush", {"position": 0}, nothing, None),
    ("RMQSVC-10", FULL, "flush", {"position": 0}, covered(TIME_MS + 1000), None),
    ("RMQSVC-10", ONE, "flush", {"position": 0}, covered(5), None),
    ("RMQSVC-11", FULL, BUILD, NO_KEY, nothing, None),
    ("RMQSVC-12", ONE, BUILD, OLD, told(request(20, "x")), None),
    ("RMQSVC-12", TWO, BUILD, AGAIN, nothing, None),
    ("RMQSVC-13", ONE, BUILD, ROLLED_BACK, told(request(20, "x")), None),
    ("RMQSVC-13", ONE, BUILD, KEYS, nothing, None),
    ("RMQSVC-14", ONE, BUILD, KEYS, told(request(20, "y x", "u")), None),
    ("RMQSVC-14", ONE, BUILD, KEYS, told(request(21, "x y", "u")), None),
    ("RMQSVC-15", ONE, BUILD, KEYS, told(request(20, "x", "u")), None),
    ("RMQSVC-16", TWO, BUILD, KEYS, told(request(20, "x y"), request(21, "p q")), None),
    ("RMQSVC-17", TWO, "query_offset", ASK, nothing, answer(1, 9)),
    ("RMQSVC-17", TWO, "query_offset", {**ASK, "max_num": 1}, nothing, answer(9, 1)),
    ("RMQSVC-18", TWO, "query_offset", ASK, nothing, answer(9, 1, end=1)),
    ("RMQSVC-18", EMPTY, "query_offset", ASK, nothing, answer(time_ms=1, end=0)),
    ("RMQSVC-19", TWO, "query_offset", {**ASK, "begin": TIME_MS + 9001}, nothing, answer(9, 1)),
    ("RMQSVC-20", TWO, "query_offset", {**ASK, "max_num": -1}, nothing, answer()),
    ("RMQSVC-21", TWO, "delete_expired_file", {"offset": 9}, nothing, None),
    ("RMQSVC-21", TWO, "delete_expired_file", {"offset": 0}, bare, None),
    ("RMQSVC-22", TWO, "delete_expired_file", {"offset": 9}, nothing, None),
    ("RMQSVC-22", HELD, "delete_expired_file", {"offset": 9}, nothing, None),
    ("RMQSVC-23", TWO, "destroy", {}, bare, None),
    ("RMQSVC-23", TWO, "shutdown", {}, nothing, None),
    ("RMQSVC-25", OURS, BUILD, KEYS, nothing, Raised(ErrorKind.ENDLESS)),
    ("RMQSVC-25", ONE, BUILD, KEYS, nothing, Raised(ErrorKind.CORRUPT_INDEX)),
    ("RMQSVC-25", FULL, BUILD, {"request": request(20, "x")}, begun_early, None),
]


@pytest.mark.checks(*STEPS)
@pytest.mark.parametrize(
    ("law_id", "before", "operation", "arguments", "do", "outcome"),
    STEPS,
    ids=[f"{row[0]}-{number}" for number, row in enumerate(STEPS)],
)
def test_step_law_can_be_broken(
    law_id: str, before: Any, operation: str, arguments: dict[str, Any], do: Do, outcome: object
) -> None:
    """A law holds for the model's step, and not where something else is done, or seen."""
    step, kind = apply(before, operation, **arguments), type(before)
    sound = Transition(kind, before, operation, arguments, step.after, step.outcome)
    assert [] == broken_step_laws(sound)
    wrong = Transition(kind, before, operation, arguments, changed(before, do), outcome)
    assert law_id in broken_step_laws(wrong)


@pytest.mark.checks("RMQSVC-24")
def test_total_size_of_another_file() -> None:
    """The size follows from slots and entries."""
    assert [] == broken_state_laws(TWO)
    wrong = changed(TWO, lambda service: setattr(service.index_files[0], "file_size", 1))
    assert ["RMQSVC-24"] == broken_state_laws(wrong)


def test_each_law_has_a_case() -> None:
    """Of those that judge steps of the service."""
    wanted = {one.law_id for one in LAWS.values() if one.of is IndexService}
    assert wanted == {row[0] for row in STEPS} | {"RMQSVC-24"}
