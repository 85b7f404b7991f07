# SPDX-License-Identifier: Apache-2.0
"""Messages of the commit log: how a record is read, written, and passed on.

Each number was seen in the answers of the real classes 4.7.0, 4.9.8 or 5.5.1.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.language.behaviours import Release
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.rocketmq.format import message as laws
from segproof_model.releases import NEWEST_ROCKETMQ, RELEASES
from segproof_model.rocketmq.format.message import (
    BLANK,
    BLANK_MAGIC,
    FAILED,
    MAGIC_V1,
    MAGIC_V2,
    CheckResult,
    Message,
    blank_tail,
    decode_text,
)

NOW_MS = 1700000000000
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
PROPERTIES = "KEYS\x01a b\x02UNIQ_KEY\x01u\x02TAGS\x01TagA"


def message(
    offset: int = 0,
    topic: str = "T",
    properties: str = PROPERTIES,
    *,
    magic: int = MAGIC_V1,
    flag: int = 0,
) -> Message:
    """Return a message at an offset of the log."""
    born, stored = (bytes(20 if flag & bit else 8) for bit in (0x10, 0x20))
    numbers = (0, magic, 0, 3, 5, 7, offset, flag, NOW_MS - 1)
    return Message(*numbers, born, NOW_MS, stored, 0, 0, b"body", topic, properties)


def check(
    data: bytes, position: int = 0, *, check_crc: bool = True, release: Release = NEWEST_ROCKETMQ
) -> CheckResult:
    """Return what stands at a position, as the law says."""
    kind = release.kind(Message)
    result = kind.check_message_and_return_size(data, position, check_crc)
    assert laws.scan_tells_end_and_damage(data, position, result, kind)
    return result


def changed(data: bytes, position: int, number: int, size: int = 4) -> bytes:
    """Return the bytes with a number at a position."""
    written = number.to_bytes(size, "big", signed=True)
    return data[:position] + written + data[position + size :]


# --- records -------------------------------------------------------------------------------------


@pytest.mark.checks("RMQLOG-1")
@pytest.mark.parametrize("flag", [0, 0x10, 0x20, 0x30])
@pytest.mark.parametrize("magic", [MAGIC_V1, MAGIC_V2])
def test_a_record_is_read_as_it_was_written(flag: int, magic: int) -> None:
    """Both magics, hosts of 8 and of 20 bytes, and bytes before and behind."""
    data = message(4096, flag=flag, magic=magic).to_bytes()
    result = check(b"before" + data + b"behind", 6)
    read = result.message
    assert read is not None
    assert (True, len(data), data) == (result.success, result.size, read.to_bytes())
    assert (4096, NOW_MS) == (read.physical_offset, read.store_timestamp)
    assert laws.record_is_laid_out(data, read)
    others: dict[str, Any] = {
        "store_timestamp": 0,
        "queue_offset": 4,
        "body": b"bodY",
        "topic": "U",
        "properties": "",
        "store_host": b"\1".ljust(len(read.store_host)),
        "reconsume_times": 8,
        "flag": 0,
    }
    for name, other in others.items():
        assert not laws.record_is_laid_out(data, replace(read, **{name: other})), name


@pytest.mark.checks("RMQLOG-5")
def test_dispatched_is_what_the_record_says() -> None:
    """Keys, unique key and the hash of the tags come from the properties."""
    read = check(message(9).to_bytes()).message
    assert read is not None
    request = read.dispatch_request()
    assert ("T", 9, "a b", "u") == (*request[:2], request.keys, request.uniq_key)
    assert 2598919 == request.tags_code
    assert laws.index_is_told_what_record_says(read, read.properties_map, request)
    others: list[dict[str, Any]] = [
        {"keys": "a"},
        {"commit_log_offset": 0},
        {"properties_map": None},
    ]
    for other in others:
        told = request._replace(**other)
        assert not laws.index_is_told_what_record_says(read, read.properties_map, told)
    bare_read = replace(read, properties="")
    bare = bare_read.dispatch_request()
    assert ("", None, None) == (bare.keys, bare.uniq_key, bare.properties_map)
    assert laws.index_is_told_what_record_says(bare_read, None, bare)
    assert not laws.index_is_told_what_record_says(bare_read, None, request)
    none = replace(read, properties="x\x01y").dispatch_request()
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


@pytest.mark.checks("RMQLOG-3")
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_fails(damage: str, any_rocketmq: Release) -> None:
    """(False, -1) for what cannot be read, whichever field is hit."""
    data = DAMAGE[damage](message().to_bytes())
    assert FAILED == check(data, release=any_rocketmq)
    assert not laws.scan_tells_end_and_damage(data, 0, CheckResult(False, 5, None)) or not data


@pytest.mark.checks("RMQLOG-3")
def test_other_answers_of_a_scan_break_its_law() -> None:
    """Of a blank tail, of zeros, of half a record, and of a whole one."""
    law, data = laws.scan_tells_end_and_damage, message().to_bytes()
    good = check(data)
    assert not law(blank_tail(20), 0, FAILED)
    assert not law(bytes(20), 0, BLANK)
    assert not law(data[:-1], 0, good)
    for other in (good._replace(size=good.size - 1), good._replace(message=None)):
        assert not law(data, 0, other)


@pytest.mark.checks("RMQLOG-2")
def test_the_body_is_not_checked_on_request() -> None:
    """Without the check of the sum a changed body passes."""
    data = changed(message().to_bytes(), 88, 0, 1)
    assert FAILED == check(data)
    result = check(data, check_crc=False)
    assert result.success
    assert laws.body_has_its_checksum(data, False, result)
    assert not laws.body_has_its_checksum(data, True, result)
    assert not laws.body_has_its_checksum(message().to_bytes(), True, FAILED)


def test_wrong_size_is_told() -> None:
    """A record whose parts add up to another size: the stored one is the answer."""
    data = changed(message().to_bytes(), 0, 100) + bytes(50)
    assert CheckResult(False, 100, None) == check(data)


def test_blank_tails() -> None:
    """A blank tail is a success of size 0; its size is looked at in 5.3.3 and later only."""
    assert BLANK == check(bytes(3) + bytes.fromhex("00000008cbd43194"), 3)
    assert BLANK == check(blank_tail(20))
    assert INVALID_ARGUMENT == outcome_of(blank_tail, 7)
    negative = changed(bytes(8), 0, -5)[:4] + BLANK_MAGIC.to_bytes(4, "big", signed=True)
    names = ("rocketmq-4.9.8", "rocketmq-5.3.3", "rocketmq-5.5.1")
    answers = [check(negative, release=RELEASES[name]) for name in names]
    assert [BLANK, BLANK, FAILED] == answers


def test_the_second_magic_is_unknown_to_old_releases() -> None:
    """4.9.8 takes it for a bad one; only it has room for long topics."""
    long = message(topic="t" * 300, magic=MAGIC_V2)
    assert check(long.to_bytes()).success
    assert FAILED == check(long.to_bytes(), release=RELEASES["rocketmq-4.9.8"])
    assert INVALID_ARGUMENT == outcome_of(replace(long, magic=MAGIC_V1).to_bytes)
    assert INVALID_ARGUMENT == outcome_of(replace(long, born_host=bytes(20)).to_bytes)


# --- properties and texts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "accepts"),
    [
        ("INNER_NUM\x01x\x02INNER_BASE\x013", ("segproof", "rocketmq-4.9.8")),
        ("INNER_NUM\x0132768\x02INNER_BASE\x013", ("segproof", "rocketmq-4.9.8")),
        (
            "INNER_NUM\x01-5\x02INNER_BASE\x01+3",
            ("segproof", "rocketmq-4.9.8", "rocketmq-5.5.1"),
        ),
        ("DELAY\x01x", ("segproof",)),
        ("DELAY\x01-3", ("segproof", "rocketmq-4.9.8", "rocketmq-5.5.1")),
    ],
)
def test_properties_that_must_be_numbers(properties: str, accepts: tuple[str, ...]) -> None:
    """A property that upstream cannot parse ends the scan there, though nobody asked for it."""
    data = message(topic="SCHEDULE_TOPIC_XXXX", properties=properties).to_bytes()
    for name in ("segproof", "rocketmq-4.9.8", "rocketmq-5.5.1"):
        assert (name in accepts) is check(data, release=RELEASES[name]).success


@pytest.mark.checks("RMQLOG-6")
@given(st.lists(st.sampled_from((0x61, 0xC3, 0xE4, 0xED, 0xA0, 0xBD, 0xFF))).map(bytes))
def test_any_bytes_are_decoded_by_the_law(data: bytes) -> None:
    """RMQLOG-6."""
    assert laws.encoded_surrogate_is_one_character(data, decode_text(data))
