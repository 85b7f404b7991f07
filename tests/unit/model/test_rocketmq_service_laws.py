# SPDX-License-Identifier: Apache-2.0
"""Each law of the index service, the checkpoint, the log and the queues finds what breaks it.

Used by: the tox environments `quick` and `py311` to `py313`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from segproof_model.directory import Directory
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import ROCKETMQ_4_9_8, ROCKETMQ_5_5_1, SEGPROOF
from segproof_model.rocketmq.consume_queue import ConsumeQueue, ConsumeQueueUnit
from segproof_model.rocketmq.index_service import IndexService, QueryOffsetResult
from segproof_model.rocketmq.message import (
    BLANK,
    FAILED,
    MAGIC_V1,
    CheckResult,
    DispatchRequest,
    Message,
    blank_tail,
    check_message_and_return_size,
    dispatch_request_of,
    encode_message,
)
from segproof_model.rocketmq.store_checkpoint import StoreCheckpoint

CLOCK_MS = 1795223767450
TIME_MS = 1700000000000
MAX_INT64 = 2**63 - 1
Spoil = Callable[[IndexService], IndexService]


def request(offset: int, keys: str | None, uniq_key: str | None = None, **more: Any) -> Any:
    """Return what a service is told of a message of the topic T."""
    values = (offset, 99, 0, TIME_MS + offset * 1000, 0, keys, uniq_key, 0, 0, None)
    return DispatchRequest("T", *values)._replace(**more)


def service_of(*requests: DispatchRequest, profile: Any = ROCKETMQ_5_5_1) -> IndexService:
    """Return a service with five entries a file that was told of messages."""
    service = IndexService.open("", 3, 6, profile=profile, now_ms=CLOCK_MS).after
    for one in requests:
        service = replace(service.build_index(one).after, now_ms=service.now_ms + 1)
    return service


EMPTY = service_of()
ONE = service_of(request(1, "a b"))
"""One file with two entries."""
FULL = service_of(request(1, "a b c d e"))
TWO = service_of(request(1, "a b c d e"), request(9, "a f"))
"""A full file and one of two entries."""
CHECKED = service_of(request(1, "a b"), profile=SEGPROOF)


def same(service: IndexService) -> IndexService:
    """Do nothing."""
    return service


def bare(service: IndexService) -> IndexService:
    """Forget the list."""
    return replace(service, files=())


def reversed_list(service: IndexService) -> IndexService:
    """List the files the other way round."""
    return replace(service, files=service.files[::-1])


def doubled(service: IndexService) -> IndexService:
    """List every file twice."""
    return replace(service, files=service.files * 2)


def without(name: str) -> Spoil:
    """Delete a file whose path ends so."""

    def spoil(service: IndexService) -> IndexService:
        found = [path for path in service.directory if path.endswith(name)]
        return replace(service, directory=service.directory.remove(found[0]))

    return spoil


def with_file(path: str, data: bytes = b"") -> Spoil:
    """Write a file."""
    return lambda service: replace(service, directory=service.directory.write(path, data))


def covered(time_ms: int) -> Spoil:
    """Let the checkpoint say another time, in memory only."""

    def spoil(service: IndexService) -> IndexService:
        step = service.checkpoint.set_index_msg_timestamp(time_ms)
        return replace(service, checkpoint=step.after)

    return spoil


def told(*requests: DispatchRequest) -> Spoil:
    """Build further messages."""

    def spoil(service: IndexService) -> IndexService:
        for one in requests:
            service = service.build_index(one).after
        return service

    return spoil


def last_changed(**header: int) -> Spoil:
    """Change the header in memory of the last file."""

    def spoil(service: IndexService) -> IndexService:
        last = service.files[-1]
        changed = replace(last, header=replace(last.header, **header))
        return replace(service, files=(*service.files[:-1], changed))

    return spoil


def renamed(name: str) -> Spoil:
    """Give the last file another name."""

    def spoil(service: IndexService) -> IndexService:
        last = service.files[-1]
        directory = service.directory.rename(last.file_name, name)
        files = (*service.files[:-1], replace(last, file_name=name))
        return replace(service, directory=directory, files=files)

    return spoil


def answer(*offsets: int, time_ms: int = TIME_MS + 9000, end: int = 9) -> QueryOffsetResult:
    """Return the answer of a query of the two files."""
    return QueryOffsetResult(offsets, time_ms, end)


ASK = {"topic": "T", "key": "a", "max_num": 64, "begin": 0, "end": MAX_INT64}
LOAD = {"last_exit_ok": True}
CRASH = {"last_exit_ok": False}
NEW = "get_and_create_last_index_file"
KEYS = {"request": request(20, "x  y", "u")}
OLD = {"request": request(0, "x")}
AGAIN = {"request": request(9, "z")}
ROLLED_BACK = {"request": request(20, "x", sys_flag=12)}
NO_KEY = {"request": request(20, None)}
FOLDER = with_file("index/5/x")(EMPTY)
WORD = with_file("index/word")(EMPTY)
UNLISTED = replace(TWO, files=())
IS_TRUE = True

BROKEN: list[tuple[str, IndexService, str, dict[str, Any], Spoil, object]] = [
    ("RMQSVC-1", UNLISTED, "load", LOAD, lambda s: reversed_list(s.load(True).after), IS_TRUE),
    ("RMQSVC-2", UNLISTED, "load", LOAD, same, IS_TRUE),
    ("RMQSVC-2", WORD, "load", LOAD, without("word"), IS_TRUE),
    ("RMQSVC-2", FOLDER, "load", LOAD, same, IS_TRUE),
    ("RMQSVC-2", UNLISTED, "load", LOAD, lambda s: s.load(True).after, False),
    ("RMQSVC-3", EMPTY, "load", LOAD, same, False),
    ("RMQSVC-4", UNLISTED, "load", CRASH, lambda s: s.load(True).after, IS_TRUE),
    ("RMQSVC-4", UNLISTED, "load", LOAD, lambda s: s.load(False).after, IS_TRUE),
    ("RMQSVC-5", TWO, "load", LOAD, same, IS_TRUE),
    ("RMQSVC-5", CHECKED, "load", LOAD, doubled, IS_TRUE),
    ("RMQSVC-6", ONE, NEW, {}, same, None),
    ("RMQSVC-7", FULL, "build_index", NO_KEY, told(request(20, None)), None),
    ("RMQSVC-8", with_file("index")(EMPTY), NEW, {}, same, Raised(ErrorKind.IO_ERROR)),
    ("RMQSVC-9", CHECKED, "build_index", KEYS, doubled, None),
    ("RMQSVC-10", FULL, "flush", {"position": 0}, same, None),
    ("RMQSVC-10", FULL, "flush", {"position": 0}, covered(TIME_MS + 1000), None),
    ("RMQSVC-10", ONE, "flush", {"position": 0}, covered(5), None),
    ("RMQSVC-11", FULL, "build_index", NO_KEY, same, None),
    ("RMQSVC-12", ONE, "build_index", OLD, told(request(20, "x")), None),
    ("RMQSVC-12", TWO, "build_index", AGAIN, same, None),
    ("RMQSVC-13", ONE, "build_index", ROLLED_BACK, told(request(20, "x")), None),
    ("RMQSVC-13", ONE, "build_index", KEYS, same, None),
    ("RMQSVC-14", ONE, "build_index", KEYS, told(request(20, "y x", "u")), None),
    ("RMQSVC-14", ONE, "build_index", KEYS, told(request(21, "x y", "u")), None),
    ("RMQSVC-15", ONE, "build_index", KEYS, told(request(20, "x", "u")), None),
    ("RMQSVC-16", TWO, "build_index", KEYS, told(request(20, "x y"), request(21, "p q")), None),
    ("RMQSVC-17", TWO, "query_offset", ASK, same, answer(1, 9)),
    ("RMQSVC-17", TWO, "query_offset", {**ASK, "max_num": 1}, same, answer(9, 1)),
    ("RMQSVC-18", TWO, "query_offset", ASK, same, answer(9, 1, end=1)),
    ("RMQSVC-18", EMPTY, "query_offset", ASK, same, answer(time_ms=1, end=0)),
    ("RMQSVC-19", TWO, "query_offset", {**ASK, "begin": TIME_MS + 9001}, same, answer(9, 1)),
    ("RMQSVC-20", TWO, "query_offset", {**ASK, "max_num": -1}, same, answer()),
    ("RMQSVC-21", TWO, "delete_expired_file", {"offset": 9}, same, None),
    ("RMQSVC-21", TWO, "delete_expired_file", {"offset": 0}, bare, None),
    ("RMQSVC-22", TWO, "delete_expired_file", {"offset": 9}, same, None),
    ("RMQSVC-23", TWO, "destroy", {}, bare, None),
    ("RMQSVC-23", TWO, "shutdown", {}, same, None),
    ("RMQSVC-25", CHECKED, "build_index", KEYS, same, Raised(ErrorKind.ENDLESS)),
    ("RMQSVC-25", ONE, "build_index", KEYS, same, Raised(ErrorKind.CORRUPT_INDEX)),
]


@pytest.mark.parametrize(
    ("law", "before", "operation", "arguments", "spoil", "outcome"),
    BROKEN,
    ids=[f"{row[0]}-{number}" for number, row in enumerate(BROKEN)],
)
def test_broken_step(
    law: str,
    before: IndexService,
    operation: str,
    arguments: dict[str, Any],
    spoil: Spoil,
    outcome: object,
) -> None:
    """The predicate says no."""
    after = spoil(before)
    if law == "RMQSVC-7":
        after = renamed("index/20261121011607999")(after)
    transition = Transition(before, operation, arguments, after, outcome)
    assert not LAWS[law].predicate(transition)


@pytest.mark.parametrize("header", [{"begin_timestamp": 5}, {"end_phy_offset": 5}])
def test_continued_file_that_begins_elsewhere(header: dict[str, int]) -> None:
    """What the new file begins with is that of the full one."""
    step = FULL.get_and_create_last_index_file()
    sound = Transition(FULL, NEW, {}, step.after, step.outcome)
    assert LAWS["RMQSVC-6"].predicate(sound)
    after = last_changed(**header)(step.after)
    assert not LAWS["RMQSVC-6"].predicate(Transition(FULL, NEW, {}, after, after.index_files[-1]))


def test_file_that_is_continued_before_it_is_full() -> None:
    """A put goes on in a new file only behind a full one."""
    step = FULL.build_index(request(20, "x"))
    arguments = {"request": request(20, "x")}
    roomy = replace(step.after.files[0], header=replace(FULL.files[0].header, index_count=2))
    after = replace(step.after, files=(roomy, *step.after.files[1:]))
    for law in ("RMQSVC-16", "RMQSVC-25"):
        sound = Transition(FULL, "build_index", arguments, step.after, step.outcome)
        assert LAWS[law].predicate(sound)
        assert not LAWS[law].predicate(Transition(FULL, "build_index", arguments, after, None))


def test_total_size_of_another_file() -> None:
    """The size follows from slots and entries."""
    assert LAWS["RMQSVC-24"].predicate(TWO)
    smaller = replace(TWO.files[0], index_num=5)
    assert not LAWS["RMQSVC-24"].predicate(replace(TWO, files=(smaller, TWO.files[1])))


# --- the checkpoint ------------------------------------------------------------------------------

CHECKPOINT = StoreCheckpoint.open("c").after
LATER = CHECKPOINT.set_index_msg_timestamp(7).after


def test_broken_checkpoints() -> None:
    """Each predicate says no."""
    pure = LAWS["RMQCKPT-1"].predicate
    data = LATER.flush().after.directory.read("c") or b""
    assert pure(data, (0, 0, 7, 0, 0, 0))
    assert not pure(data[:-1], (0, 0, 7, 0, 0, 0))
    assert not pure(data, (0, 7, 0, 0, 0, 0))
    old = replace(CHECKPOINT, profile=ROCKETMQ_4_9_8)
    written = replace(old, directory=Directory().write("c", b"\x01" * 4096))
    assert not LAWS["RMQCKPT-2"].predicate(Transition(old, "flush", {}, written, None))
    assert not LAWS["RMQCKPT-5"].predicate(b"", True)
    assert not LAWS["RMQCKPT-5"].predicate(None, False)


@pytest.mark.parametrize(
    ("operation", "before", "after", "value"),
    [
        ("flush", LATER, LATER, None),
        ("flush", LATER, CHECKPOINT, None),
        ("set_index_msg_timestamp", CHECKPOINT, LATER.flush().after, 7),
        ("set_index_msg_timestamp", CHECKPOINT, CHECKPOINT, 7),
        ("set_index_msg_timestamp", CHECKPOINT, replace(LATER, physic_msg_timestamp=7), 7),
    ],
)
def test_broken_flushes(
    operation: str, before: StoreCheckpoint, after: StoreCheckpoint, value: int | None
) -> None:
    """Memory and file change at other times than they should."""
    transition = Transition(before, operation, {"value": value}, after, None)
    assert not LAWS["RMQCKPT-3"].predicate(transition)


def test_checkpoint_that_is_not_read() -> None:
    """Opening takes what the file says."""
    found = LATER.flush().after.directory
    arguments = {"directory": found, "path": "c"}
    sound = StoreCheckpoint.open("c", directory=found).after
    assert LAWS["RMQCKPT-3"].predicate(Transition(None, "open", arguments, sound, None))
    unread = replace(CHECKPOINT, directory=found)
    assert not LAWS["RMQCKPT-3"].predicate(Transition(None, "open", arguments, unread, None))


class Careless(StoreCheckpoint):
    """Takes no time off."""

    __slots__ = ()

    @property
    def min_timestamp(self) -> int:
        """The least time as it is."""
        return min(self.physic_msg_timestamp, self.logics_msg_timestamp)


def test_checkpoint_without_safety() -> None:
    """3 s are taken off."""
    careless = Careless(ROCKETMQ_5_5_1, "c", Directory(), 9000, 9000)
    assert not LAWS["RMQCKPT-4"].predicate(careless)


# --- the log and the queues ----------------------------------------------------------------------

MESSAGE = Message(
    0, MAGIC_V1, 0, 1, 2, 3, 4, 0, 5, bytes(8), 6, bytes(8), 7, 8, b"body", "T", "KEYS\x01k"
)


def record() -> bytes:
    """Return the record of the message."""
    data = encode_message(MESSAGE)
    assert isinstance(data, bytes)
    return data


def read() -> Message:
    """Return the message as it is read."""
    message = check_message_and_return_size(record(), 0).message
    assert message is not None
    return message


@pytest.mark.parametrize(
    "other",
    [
        {"store_timestamp": 7},
        {"queue_offset": 4},
        {"body": b"bodY"},
        {"topic": "U"},
        {"properties": ""},
        {"store_host": bytes(7) + b"\x01"},
        {"reconsume_times": 8},
        {"flag": 0},
    ],
)
def test_record_read_wrong(other: dict[str, Any]) -> None:
    """A field that the record does not say."""
    assert LAWS["RMQLOG-1"].predicate(record(), read())
    assert not LAWS["RMQLOG-1"].predicate(record(), replace(read(), **other))


def test_broken_scans() -> None:
    """Checksums that are not looked at, or looked at for nothing, and other answers than due."""
    data = record()
    damaged = data[:8] + b"\x00\x00\x00\x01" + data[12:]
    good, failed = CheckResult(True, len(data), read()), FAILED
    check = LAWS["RMQLOG-2"].predicate
    assert check(data, True, good)
    assert check(damaged, False, good)
    assert not check(damaged, True, good)
    assert not check(data, True, failed)
    scan = LAWS["RMQLOG-3"].predicate
    tail = blank_tail(20)
    assert isinstance(tail, bytes)
    assert scan(tail, 0, BLANK)
    assert not scan(tail, 0, failed)
    assert not scan(bytes(20), 0, BLANK)
    assert not scan(data[:-1], 0, good)
    assert not scan(data, 0, CheckResult(True, len(data) - 1, read()))
    assert not scan(data, 0, CheckResult(False, 5, None))
    assert not scan(data, 0, CheckResult(True, len(data), None))


def test_broken_texts_and_requests() -> None:
    """Properties, requests and characters that are not those of the record."""
    properties = LAWS["RMQLOG-4"].predicate
    assert properties("a\x01b\x02a\x01c", {"a": "c"})
    assert not properties("a\x01b\x02a\x01c", {"a": "b"})
    assert not properties("\x01b", {"": "b"})
    dispatch = LAWS["RMQLOG-5"].predicate
    sound = dispatch_request_of(read())
    assert dispatch(read(), {"KEYS": "k"}, sound)
    for other in ({"keys": ""}, {"commit_log_offset": 0}, {"properties_map": None}):
        assert not dispatch(read(), {"KEYS": "k"}, sound._replace(**other))
    assert not dispatch(replace(read(), properties=""), None, sound)
    assert not LAWS["RMQLOG-6"].predicate(b"\xed\xa0\xbd", "\ufffd" * 3)
    assert not LAWS["RMQLOG-7"].predicate(ONE, TWO)
    assert not LAWS["RMQLOG-7"].predicate(ONE, Raised(ErrorKind.IO_ERROR))


def test_broken_units() -> None:
    """Numbers that the bytes do not hold, and units that are too many or invalid."""
    unit = ConsumeQueueUnit(1, 2, 3)
    law = LAWS["RMQCQ-1"].predicate
    assert law(unit.to_bytes(), [unit])
    assert not law(unit.to_bytes(), [ConsumeQueueUnit(1, 2, 4)])
    assert not law(unit.to_bytes()[:19], [unit])
    assert not law(unit.to_bytes() * 2, [unit])


QUEUE = ConsumeQueue.open("", "T", 0, 100).after.put_message_position_info(0, 10, 1, 0).after
NEXT = QUEUE.put_message_position_info(10, 10, 1, 1).after


@pytest.mark.parametrize(
    ("before", "offset", "number", "after", "outcome"),
    [
        (QUEUE, 0, 1, NEXT, True),
        (NEXT, 20, 1, NEXT.put_message_position_info(20, 10, 1, 2).after, True),
        (QUEUE, 10, 1, QUEUE, True),
        (QUEUE, 10, 1, NEXT, False),
        (QUEUE, 10, 1, replace(NEXT, max_physic_offset=10), True),
        (QUEUE, 11, 1, NEXT, True),
    ],
)
def test_broken_puts(
    before: ConsumeQueue, offset: int, number: int, after: ConsumeQueue, outcome: bool
) -> None:
    """What is known is written, what is not is not, or as another unit."""
    arguments = {"offset": offset, "size": 10, "tags_code": 1, "cq_offset": number}
    law = LAWS["RMQCQ-2"].predicate
    transition = Transition(before, "put_message_position_info", arguments, after, outcome)
    assert not law(transition)


@pytest.mark.parametrize(
    ("boundary", "wrong"), [("lower", 1), ("lower", 3), ("upper", 0), ("upper", 2)]
)
def test_broken_lookups(boundary: str, wrong: int) -> None:
    """The first of equal times is the lower boundary, the last one the upper."""
    times = (1000, 1000, 1005)
    law = LAWS["RMQCQ-3"].predicate
    assert law(times, 1000, boundary, {"lower": 0, "upper": 1}[boundary])
    assert not law(times, 1000, boundary, wrong)
    assert not law(times, 1004, "", 1, ROCKETMQ_4_9_8)
    assert not law((1000, 1002), 1001, "", 1, ROCKETMQ_4_9_8)
    assert not law((), 1001, "lower", 1)
