# SPDX-License-Identifier: Apache-2.0
"""Records of a RocketMQ commit log: what the model says of sound and of damaged ones, and kernels.

The inner loops that rebuild an index see the same records as the plain reader, compiled or not.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segproof.errors import InvalidArgumentError
from segproof.kernels import rocketmq_records as kernels
from segproof.rocketmq.key_hash import index_key_hash
from segproof.rocketmq.message import (
    FAILED,
    MAGIC_V1,
    MAGIC_V2,
    CheckResult,
    Message,
    blank_head,
    blank_tail,
    check_message_and_return_size,
    decode_text,
    dispatch_request_of,
    encode_message,
    string_to_message_properties,
)
from segproof.stretches.rocketmq.message_blocks import MessageBlock
from segproof_harness.files.memory_stores import message_of
from segproof_model.language.files import Files
from segproof_model.laws.rocketmq.format import message as laws
from segproof_model.releases import NEWEST_ROCKETMQ, RELEASES, SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.broker.index_service_releases import TagsAreNotIndexed
from segproof_model.rocketmq.format import message as model
from segproof_model.rocketmq.format.message import DispatchRequest
from segproof_model.rocketmq.format.message import Message as ModelMessage

NAMES = b"KEYSUNIQ_KEYTAGS"
PARTS = st.sampled_from(
    ["a", " ", "\x01", "\x02", "KEYS\x01", "UNIQ_KEY\x01", "TAGS\x01", "\u00e9", "\U0001f600", "#"]
)
TEXTS = st.lists(PARTS, max_size=12).map("".join)
INT64 = st.sampled_from([-(2**63), -1, 0, 1, 2**40, 2**63 - 1])


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Draw a message whose texts are made of what matters to the parser."""
    flags = draw(st.sampled_from([0, 4, 8, 12, 0x10, 0x20, 0x30]))
    return Message(
        0,
        draw(st.sampled_from([MAGIC_V1, MAGIC_V2])),
        0, 1, 2, 3,
        draw(INT64),
        flags,
        draw(INT64),
        bytes(20 if flags & 0x10 else 8),
        draw(INT64),
        bytes(20 if flags & 0x20 else 8),
        0, 0,
        draw(st.binary(max_size=5)),
        draw(TEXTS),
        draw(TEXTS),
    )  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a record, something behind it, and some bytes changed."""
    behind = st.sampled_from([b"", blank_tail(20), bytes(30)]) | messages().map(encode_message)
    data = bytearray(encode_message(draw(messages())) + draw(behind))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, min(len(data), draw(st.sampled_from([12, 100, 999]))) - 1))
        data[place] = draw(st.sampled_from([0, 1, 2, 32, 127, 128, 0xA0, 0xED, 255]))
    return bytes(data[: draw(st.sampled_from([None, len(data) - 1, len(data) // 2]))])


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.needs("numba"))])
def compiled(request: pytest.FixtureRequest) -> None:
    """Run with the kernels as they are written, and again with what numba makes of them."""
    if request.param == "compiled":
        kernels.walk_messages.compile()
        kernels.hash_keys.compile()


@pytest.mark.checks("RMQLOG-1", "RMQLOG-2", "RMQLOG-3", "RMQLOG-4", "RMQLOG-5", "RMQLOG-6")
@given(data=damaged(), check_crc=st.booleans())
def test_agrees_with_the_model(data: bytes, check_crc: bool) -> None:
    """Any bytes get the answer of the model: success, size, every field, what the index is told."""
    ours = check_message_and_return_size(data, 0, check_crc)
    theirs = SEGPROOF.kind(ModelMessage).check_message_and_return_size(data, 0, check_crc)
    assert tuple(theirs[:2]) == (ours.success, ours.size)
    if ours.message is not None:
        assert theirs.message is not None
        for name in Message.__dataclass_fields__:
            assert getattr(theirs.message, name) == getattr(ours.message, name)
        assert tuple(theirs.message.dispatch_request()) == tuple(dispatch_request_of(ours.message))


def walked(data: bytes) -> tuple[list[tuple[int, int]], CheckResult]:
    """Return place and size of each record from the beginning, and what ends them."""
    found: list[tuple[int, int]] = []
    position = 0
    while True:
        result = check_message_and_return_size(data, position, False)
        if not result.success or result.size == 0:
            return found, result
        found.append((position, result.size))
        position += result.size


@pytest.mark.usefixtures("compiled")
@pytest.mark.checks("RMQSVC-13", "RMQSVC-14", "RMQSVC-15", "RMQLOG-6")
@settings(max_examples=60)
@given(data=damaged(), index_tags=st.booleans())
def test_kernels_see_the_same_records_and_keys(data: bytes, index_tags: bool) -> None:
    """The rows are the records that the reader finds, the hashes those of the model's keys."""
    rows = np.zeros((8, kernels.MESSAGE_ROW), np.int64)
    flat = rows.reshape(-1).data
    count, _, how = kernels.walk_messages(data, 0, len(data), NAMES, flat)
    records, end = walked(data)
    assert records == [tuple(row) for row in rows[:count, :2].tolist()]
    assert end.success == (how == kernels.WALK_BLANK)
    block = MessageBlock(data, rows[:count])
    release = NEWEST_ROCKETMQ if index_tags else NEWEST_ROCKETMQ.flipped(TagsAreNotIndexed)
    service = release.kind(IndexService)(Files(), "")
    expected = []
    for request in block.requests():
        if request.sys_flag & 12 != 12:
            expected += [
                (index_key_hash(key), request.commit_log_offset, request.store_timestamp)
                for key in service.keys_of(DispatchRequest(*request))
            ]
    entries = block.entries(index_tags)
    columns = (entries.hashes, entries.phy_offsets, entries.store_timestamps)
    assert expected == list(zip(*(column.tolist() for column in columns), strict=True))


def test_round_trip() -> None:
    """What is encoded is read back, with the size and the checksum that belong to it."""
    message = message_of("\u4e2d", {"KEYS": "a b", "TAGS": "t"}, magic=MAGIC_V2)
    data = encode_message(message)
    result = check_message_and_return_size(data, 0)
    assert result.message is not None
    assert CheckResult(True, len(data), result.message) == result
    assert replace(message, total_size=len(data), body_crc=result.message.body_crc) == (
        result.message
    )
    assert data == encode_message(result.message)


@pytest.mark.parametrize("size", [2**31 - 1, -1, -(2**31), 0, 7, 90, 1 << 30])
def test_sizes_that_lie(size: int) -> None:
    """A size is compared with the bytes that there are before anything is made of it."""
    data = size.to_bytes(4, "big", signed=True) + encode_message(message_of())[4:]
    assert check_message_and_return_size(data, 0) in (FAILED, CheckResult(False, size, None))
    rows = np.zeros((2, kernels.MESSAGE_ROW), np.int64)
    assert kernels.walk_messages(data, 0, len(data), NAMES, rows.reshape(-1).data)[0] == 0


@pytest.mark.parametrize(
    ("place", "value", "is_sound"),
    [
        (84, b"\x7f\xff\xff\xff", False),
        (84, b"\xff\xff\xff\xff", True),
        (84, b"\x80\0\0\0", True),
        (88, b"\xff", False),
        (88, b"\x7f", False),
        (90, b"\x7f\xff", False),
        (90, b"\xff\xff", True),
    ],
)
def test_lengths_inside_that_lie(place: int, value: bytes, is_sound: bool) -> None:
    """Body, topic and properties: a negative length is none, but a topic's is no record."""
    data = bytearray(encode_message(message_of(body=b"")) + bytes(40))
    data[place : place + len(value)] = value
    result = check_message_and_return_size(bytes(data), 0)
    assert is_sound == result.success
    rows = np.zeros((2, kernels.MESSAGE_ROW), np.int64)
    flat = rows.reshape(-1).data
    assert is_sound == (kernels.walk_messages(bytes(data), 0, len(data), NAMES, flat)[0] == 1)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xc3\xa9", "caf\u00e9"),
        (b"a\xed\xa0\xbdb", "a\ufffdb"),
        (b"\xed\xa0\xbd\xed\xb8\x80", "\ufffd\ufffd"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\xff\xc3x", "\ufffd\ufffdx"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
    ],
)
@pytest.mark.checks("RMQLOG-6")
def test_text_as_a_jvm_decodes_it(data: bytes, text: str) -> None:
    """On both sides an encoded surrogate is one U+FFFD, another bad byte is one each."""
    assert text == decode_text(data) == model.decode_text(data)
    assert not laws.encoded_surrogate_is_one_character(data, text + "\ufffd")


def test_lone_surrogates_are_written_as_a_jvm_writes_them() -> None:
    """A half is a question mark; two halves in one text are the character that they are."""
    message = message_of("a\ud83d", {"KEYS": "\ud83d" + "\ude00"})
    read = check_message_and_return_size(encode_message(message), 0).message
    assert read is not None
    assert read.topic == "a?"
    assert string_to_message_properties(read.properties) == {"KEYS": "\U0001f600"}


@pytest.mark.checks("RMQLOG-4")
@pytest.mark.parametrize(
    ("text", "found", "oldest"),
    [
        ("", {}, {}),
        ("a\x01b", {"a": "b"}, {"a": "b"}),
        ("a\x01b\x02c\x01d\x02", {"a": "b", "c": "d"}, {"a": "b", "c": "d"}),
        ("a\x01b\x02a\x01c\x02", {"a": "c"}, {"a": "c"}),
        ("a\x01b\x02\x02x\x02a\x01c", {"a": "c"}, {"a": "c"}),
        ("a\x01b\x01c\x02", {"a": "b\x01c"}, {}),
        ("\x01b", {}, {"": "b"}),
        ("a\x01b\x01", {"a": "b\x01"}, {"a": "b"}),
        ("a\x01", {}, {}),
        ("\x02ab\x02", {}, {}),
        ("\x02" * 32767, {}, {}),
    ],
)
def test_properties(text: str, found: dict[str, str], oldest: dict[str, str]) -> None:
    """A part counts if its first separator has something on both sides, and the last value wins;
    4.7.1 splits at each separator."""
    assert found == string_to_message_properties(text)
    for name, wanted in (("rocketmq-4.9.3", found), ("rocketmq-4.7.1", oldest)):
        kind = RELEASES[name].kind(ModelMessage)
        assert wanted == kind.string_to_message_properties(text)
        assert laws.properties_have_name_and_value(text, wanted, kind)
        others: list[dict[str, str]] = [{**wanted, "z": ""}, {**wanted, "a": "other"}]
        for other in others:
            assert not laws.properties_have_name_and_value(text, other, kind)


@pytest.mark.parametrize(
    "message",
    [
        message_of("t" * 128),
        message_of("t" * 32768, magic=MAGIC_V2),
        message_of("t", {"k": "v" * 32766}),
        replace(message_of(), born_host=bytes(20)),
        replace(message_of(), sys_flag=0x20),
    ],
)
def test_refuses_what_has_no_place(message: Message) -> None:
    """Texts that are too long, and hosts of another length than their flags say."""
    with pytest.raises(InvalidArgumentError):
        encode_message(message)


@pytest.mark.parametrize("remaining", [7, 1 << 31])
def test_refuses_a_tail_that_no_writer_leaves(remaining: int) -> None:
    """A writer leaves eight bytes at least, and as many as its 4 bytes can say."""
    with pytest.raises(InvalidArgumentError):
        blank_head(remaining)
    assert blank_tail(8) == blank_head(8)
    assert 8 == len(blank_head((1 << 31) - 1))
