# SPDX-License-Identifier: Apache-2.0
"""Messages, the commit log, the store checkpoint and the consume queue: what the model answers.

Each number was seen in the answers of the real classes 4.7.0, 4.9.8 or 5.5.1.

Used by: the tox environments `quick` and `py311` to `py313`.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from segproof_model.directory import Directory
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.checking import broken_state_laws, broken_step_laws
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import (
    ROCKETMQ_4_7_0,
    ROCKETMQ_4_9_8,
    ROCKETMQ_5_3_3,
    ROCKETMQ_5_5_1,
    SEGPROOF,
    Profile,
)
from segproof_model.rocketmq.commit_log import CommitLog
from segproof_model.rocketmq.consume_queue import BLANK_UNIT, ConsumeQueue, read_units
from segproof_model.rocketmq.message import (
    BLANK,
    BLANK_MAGIC,
    FAILED,
    MAGIC_V1,
    MAGIC_V2,
    CheckResult,
    Message,
    blank_tail,
    check_message_and_return_size,
    decode_text,
    dispatch_request_of,
    encode_message,
    string_to_message_properties,
)
from segproof_model.rocketmq.store_checkpoint import StoreCheckpoint

NOW_MS = 1700000000000
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
HOST = bytes(8)


def message(
    offset: int = 0,
    topic: str = "T",
    properties: str = "KEYS\x01a b\x02UNIQ_KEY\x01u\x02TAGS\x01TagA",
    *,
    body: bytes = b"body",
    magic: int = MAGIC_V1,
    flag: int = 0,
    time_ms: int = NOW_MS,
) -> Message:
    """Return a message at an offset of the log."""
    born = bytes(20 if flag & 0x10 else 8)
    stored = bytes(20 if flag & 0x20 else 8)
    numbers = (0, magic, 0, 3, 5, 7, offset, flag, NOW_MS - 1)
    return Message(*numbers, born, time_ms, stored, 0, 0, body, topic, properties)


def record(of: Message) -> bytes:
    """Return the record of a message."""
    data = encode_message(of)
    assert isinstance(data, bytes)
    return data


def changed(data: bytes, position: int, number: int, size: int = 4) -> bytes:
    """Return the bytes with a number at a position."""
    written = number.to_bytes(size, "big", signed=True)
    return data[:position] + written + data[position + size :]


@pytest.mark.parametrize("flag", [0, 0x10, 0x20, 0x30])
@pytest.mark.parametrize("magic", [MAGIC_V1, MAGIC_V2])
def test_a_record_is_read_as_it_was_written(flag: int, magic: int) -> None:
    """Both magics, hosts of 8 and of 20 bytes, and bytes before and behind."""
    data = record(message(4096, flag=flag, magic=magic))
    result = check_message_and_return_size(b"before" + data + b"behind", 6)
    assert result.success
    assert result.size == len(data)
    assert result.message is not None
    assert data == encode_message(result.message)
    assert (4096, NOW_MS) == (result.message.physical_offset, result.message.store_timestamp)
    assert LAWS["RMQLOG-1"].predicate(data, result.message)


def test_dispatched_is_what_the_record_says() -> None:
    """Keys, unique key and the hash of the tags come from the properties."""
    read = check_message_and_return_size(record(message(9)), 0).message
    assert read is not None
    request = dispatch_request_of(read)
    assert ("T", 9, "a b", "u") == (*request[:2], request.keys, request.uniq_key)
    assert 2598919 == request.tags_code
    bare = dispatch_request_of(replace(read, properties=""))
    assert ("", None, None) == (bare.keys, bare.uniq_key, bare.properties_map)
    none = dispatch_request_of(replace(read, properties="x\x01y"))
    assert (None, None, (("x", "y"),)) == (none.keys, none.uniq_key, none.properties_map)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "the body": lambda data: changed(data, 88, 0, 1),
    "its checksum": lambda data: changed(data, 8, 1),
    "the magic": lambda data: changed(data, 4, 1),
    "a size of -1": lambda data: changed(data, 0, -1),
    "a negative topic length": lambda data: changed(data, 92, -1, 1),
    "a body of 2^30 bytes": lambda data: changed(data, 84, 2**30),
    "an early end": lambda data: data[:-1],
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("profile", [SEGPROOF, ROCKETMQ_5_5_1, ROCKETMQ_4_9_8])
def test_damage_fails(damage: str, profile: Profile) -> None:
    """(False, -1) for what cannot be read, whichever field is hit."""
    data = DAMAGE[damage](record(message()))
    assert FAILED == check_message_and_return_size(data, 0, profile=profile)


def test_wrong_size_is_told() -> None:
    """A record whose parts add up to another size: the stored one is the answer."""
    data = changed(record(message()), 0, 100) + bytes(50)
    assert CheckResult(False, 100, None) == check_message_and_return_size(data, 0)


def test_the_body_is_not_checked_on_request() -> None:
    """Without the check of the sum a changed body passes."""
    data = changed(record(message()), 88, 0, 1)
    assert FAILED == check_message_and_return_size(data, 0)
    assert check_message_and_return_size(data, 0, False).success


def test_blank_tails() -> None:
    """A blank tail is a success of size 0; its size is looked at in 5.3.3 and later only."""
    assert BLANK == check_message_and_return_size(bytes(3) + bytes.fromhex("00000008cbd43194"), 3)
    tail = blank_tail(20)
    assert isinstance(tail, bytes)
    assert BLANK == check_message_and_return_size(tail, 0)
    negative = changed(bytes(8), 0, -5)[:4] + BLANK_MAGIC.to_bytes(4, "big", signed=True)
    answers = [
        check_message_and_return_size(negative, 0, profile=profile)
        for profile in (ROCKETMQ_4_9_8, ROCKETMQ_5_3_3, ROCKETMQ_5_5_1)
    ]
    assert [BLANK, BLANK, FAILED] == answers
    assert INVALID_ARGUMENT == blank_tail(7)


def test_the_second_magic_is_unknown_to_old_releases() -> None:
    """4.9.8 takes it for a bad one; only it has room for long topics."""
    long = message(topic="t" * 300, magic=MAGIC_V2)
    assert check_message_and_return_size(record(long), 0).success
    assert FAILED == check_message_and_return_size(record(long), 0, profile=ROCKETMQ_4_9_8)
    assert INVALID_ARGUMENT == encode_message(replace(long, magic=MAGIC_V1))
    assert INVALID_ARGUMENT == encode_message(replace(long, born_host=bytes(20)))


@pytest.mark.parametrize(
    ("properties", "accepts"),
    [
        ("INNER_NUM\x01x\x02INNER_BASE\x013", (SEGPROOF, ROCKETMQ_4_9_8)),
        ("INNER_NUM\x0132768\x02INNER_BASE\x013", (SEGPROOF, ROCKETMQ_4_9_8)),
        ("INNER_NUM\x01-5\x02INNER_BASE\x01+3", (SEGPROOF, ROCKETMQ_4_9_8, ROCKETMQ_5_5_1)),
        ("DELAY\x01x", (SEGPROOF,)),
        ("DELAY\x01-3", (SEGPROOF, ROCKETMQ_4_9_8, ROCKETMQ_5_5_1)),
    ],
)
def test_properties_that_must_be_numbers(properties: str, accepts: tuple[Profile, ...]) -> None:
    """A property that upstream cannot parse ends the scan there, though nobody asked for it."""
    data = record(message(topic="SCHEDULE_TOPIC_XXXX", properties=properties))
    for profile in (SEGPROOF, ROCKETMQ_4_9_8, ROCKETMQ_5_5_1):
        result = check_message_and_return_size(data, 0, profile=profile)
        assert result.success is (profile in accepts)


@pytest.mark.parametrize(
    ("text", "newer", "oldest"),
    [
        ("a\x01b\x02c\x01d\x02", {"a": "b", "c": "d"}, {"a": "b", "c": "d"}),
        ("a\x01b\x01c", {"a": "b\x01c"}, {}),
        ("\x01b", {}, {"": "b"}),
        ("a\x01b\x01", {"a": "b\x01"}, {"a": "b"}),
        ("a\x01", {}, {}),
        ("a\x01b\x02\x02x\x02a\x01c", {"a": "c"}, {"a": "c"}),
    ],
)
def test_properties(text: str, newer: dict[str, str], oldest: dict[str, str]) -> None:
    """4.7.0 splits; later releases look for the first separator."""
    assert newer == string_to_message_properties(text)
    assert oldest == string_to_message_properties(text, profile=ROCKETMQ_4_7_0)
    assert LAWS["RMQLOG-4"].predicate(text, oldest, ROCKETMQ_4_7_0)


def test_texts_are_decoded_as_the_jvm_does() -> None:
    """An encoded surrogate is one U+FFFD, another bad byte is one each."""
    assert "a\ufffdb" == decode_text(b"a\xed\xa0\xbdb")
    assert "\ufffd\ufffd" == decode_text(b"\xed\xa0\xbd\xed\xb8\x80")
    assert "\ufffd\ufffdx" == decode_text(b"\xff\xc3x")


def log_of(*records: bytes, size: int = 400, start: int = 0) -> Directory:
    """Return the files of a log of these records, each file of `size` bytes."""
    directory, data = Directory(), b""
    for one in (*records, None):
        if one is None or len(data) + len(one) + 8 > size:
            tail = blank_tail(size - len(data)) if one is not None else b""
            assert isinstance(tail, bytes)
            name = f"commitlog/{start:020d}"
            directory = directory.write(name, (data + tail).ljust(size, b"\0"))
            start, data = start + size, b""
        data += one or b""
    return directory


def test_a_scan_crosses_blank_tails() -> None:
    """Records in order, over two files, and last where it stops."""
    records = [record(message(body=bytes(number))) for number in (100, 100, 50)]
    log = CommitLog.open("", directory=log_of(*records)).after
    assert isinstance(log, CommitLog)
    scanned = list(log.scan())
    first, last = len(records[0]), len(records[2])
    assert [0, 400, 400 + first, 400 + first + last] == [offset for offset, _ in scanned]
    assert [True, True, True, False] == [result.success for _, result in scanned]
    assert (400, 0, 800) == (log.mapped_file_size, log.min_offset, log.max_offset)
    assert [400 + first] == [offset for offset, result in log.scan(400 + first) if result.success]
    assert [] == list(log.scan(800))


def test_a_message_is_looked_up_whatever_its_checksum() -> None:
    """A wrong offset gives none."""
    damaged = changed(record(message()), 88, 0, 1)
    log = CommitLog.open("", directory=log_of(damaged)).after
    assert isinstance(log, CommitLog)
    found = log.look_message(0)
    assert found is not None
    assert NOW_MS == found.store_timestamp
    assert [None, None, None] == [log.look_message(offset) for offset in (1, -1, 400)]
    assert [NOW_MS, -1] == [log.pickup_store_timestamp(0, size) for size in (99, 401)]


def test_the_checkpoint_of_the_specification() -> None:
    """physic 0xAABB and logics 0xCCDD give 40707; memory is not the file before a flush."""
    checkpoint = StoreCheckpoint.open("checkpoint").after
    checkpoint = checkpoint.set_physic_msg_timestamp(0xAABB).after
    checkpoint = checkpoint.set_logics_msg_timestamp(0xCCDD).after
    assert (40707, 0) == (checkpoint.min_timestamp, checkpoint.min_timestamp_index)
    assert bytes(4096) == checkpoint.directory.read("checkpoint")
    flushed = checkpoint.flush().after
    assert (
        bytes.fromhex("000000000000aabb000000000000ccdd")
        == (flushed.directory.read("checkpoint") or b"")[:16]
    )
    assert flushed == StoreCheckpoint.open("checkpoint", directory=flushed.directory).after
    assert Raised(ErrorKind.UNMAPPED) == flushed.shutdown().after.flush().outcome


@pytest.mark.parametrize(
    ("profile", "kept"), [(ROCKETMQ_4_9_8, 24), (ROCKETMQ_5_3_3, 40), (ROCKETMQ_5_5_1, 48)]
)
def test_unknown_fields_stay(profile: Profile, kept: int) -> None:
    """A release leaves what it does not know."""
    old = Directory().write("c", b"\x01" * 4100)
    checkpoint = StoreCheckpoint.open("c", directory=old, profile=profile).after
    assert (kept // 8) == len(checkpoint.values)
    for name in ("physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp"):
        checkpoint = getattr(checkpoint, f"set_{name}")(0).after
    step = checkpoint.flush()
    data = step.after.directory.read("c") or b""
    assert bytes(24) + b"\x01" * (4100 - 24) == data
    assert [] == broken_step_laws(Transition(checkpoint, "flush", {}, step.after, None))


def test_times_before_all_times() -> None:
    """3 s before the least of all numbers: upstream wraps to a late time."""
    for profile, expected in ((SEGPROOF, 0), (ROCKETMQ_5_5_1, 2**63 - 3000)):
        checkpoint = StoreCheckpoint.open("c", profile=profile).after
        checkpoint = checkpoint.set_physic_msg_timestamp(-(2**63)).after
        assert expected == checkpoint.min_timestamp
        assert [] == broken_state_laws(checkpoint)
    assert INVALID_ARGUMENT == checkpoint.set_physic_msg_timestamp(2**63).outcome


def test_a_queue_that_begins_late_is_filled() -> None:
    """Units before the first are fillers; what the queue has is not written again."""
    queue = ConsumeQueue.open("", "T", 3, 100).after
    for number in (7, 8):
        queue = queue.put_message_position_info(10 * number, 10, -1, number).after
    assert [BLANK_UNIT] * 2 == queue.units()[:2]
    assert (7, 9, 90) == (queue.min_offset_in_queue, queue.max_offset_in_queue, 90)
    assert ["consumequeue/T/3/00000000000000000100"] == list(queue.directory)
    again = queue.put_message_position_info(80, 10, -1, 9)
    passed = queue.put_message_position_info(95, 10, -1, 8)
    assert (True, queue, True, queue) == (*_step(again), *_step(passed))
    assert 10 == queue.put_message_position_info(95, 10, -1, 0).after.max_offset_in_queue
    assert queue == replace(
        ConsumeQueue.open("", "T", 3, 100, directory=queue.directory).after,
        min_logic_offset=140,
    )


def _step(step: object) -> tuple[object, object]:
    return step.outcome, step.after  # type: ignore[attr-defined]


def test_an_invalid_unit_ends_a_queue() -> None:
    """Opening stops behind the last valid unit and deletes the files that lie behind it."""
    queue = ConsumeQueue.open("", "T", 0, 40).after
    for number in range(6):
        queue = queue.put_message_position_info(10 * number, 10, 0, number).after
    name = "consumequeue/T/0/00000000000000000040"
    cut = queue.directory.write(name, bytes(40))
    opened = ConsumeQueue.open("", "T", 0, 40, directory=cut).after
    assert (40, 20, 2) == (opened.end, opened.max_physic_offset, len(opened.starts()))
    units = read_units(cut.read(name) or b"")
    assert [False, False] == [unit.is_valid for unit in units]


TIMES = (1000, 1000, 1005, 1020, 1020)


@pytest.mark.parametrize(
    ("time_ms", "lower", "upper", "nearest"),
    [
        (999, 0, 0, 0),
        (1000, 0, 1, 1),
        (1002, 2, 1, 1),
        (1003, 2, 1, 2),
        (1005, 2, 2, 2),
        (1019, 3, 2, 3),
        (1020, 3, 4, 3),
        (1021, 5, 4, 4),
    ],
)
def test_lookups_by_time(time_ms: int, lower: int, upper: int, nearest: int) -> None:
    """Each rule, between, on, before and behind the times of the queue."""
    records = [record(message(time_ms=time)) for time in TIMES]
    directory = log_of(*records, size=4096)
    size = len(records[0])
    for profile in (ROCKETMQ_5_5_1, ROCKETMQ_4_9_8):
        log = CommitLog.open("", directory=directory, profile=profile).after
        assert isinstance(log, CommitLog)
        queue = ConsumeQueue.open("", "T", 0, 400, profile=profile).after
        for number in range(len(TIMES)):
            queue = queue.put_message_position_info(number * size, size, 0, number).after
        found = queue.get_offset_in_queue_by_time(time_ms, log)
        upper_one = queue.get_offset_in_queue_by_time(time_ms, log, "upper")
        if profile is ROCKETMQ_4_9_8:
            assert LAWS["RMQCQ-3"].predicate(TIMES, time_ms, "", found, profile)
            assert TIMES[nearest] == TIMES[found]
        else:
            assert (lower, upper) == (found, upper_one)
            assert LAWS["RMQCQ-3"].predicate(TIMES, time_ms, "lower", found, profile)
            assert LAWS["RMQCQ-3"].predicate(TIMES, time_ms, "upper", upper_one, profile)
