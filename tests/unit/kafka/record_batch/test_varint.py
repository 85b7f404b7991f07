# SPDX-License-Identifier: Apache-2.0
"""Integers of variable length: both ways, borders, and what is cut or too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.kafka.format.varint import (
    decode_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
)
from segproof_model.language.integers import INT32_MAX, wrap32, wrap64
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format.record_batch import varints_are_zigzag

INVALID_RECORD, INVALID = Raised(ErrorKind.INVALID_RECORD), Raised(ErrorKind.INVALID_ARGUMENT)


@pytest.mark.checks("BATCH-7")
@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**31), 2**31 - 1))
def test_what_is_written_is_read_again(value: int) -> None:
    """BATCH-7, of either width."""
    short, long = encode_varint(value), encode_varlong(value)
    assert varints_are_zigzag(short, 32, (wrap32(value), len(short)))
    assert varints_are_zigzag(long, 64, (wrap64(value), len(long)))
    assert not varints_are_zigzag(long, 64, (wrap64(value + 1), len(long)))


@pytest.mark.checks("BATCH-7")
@given(st.lists(st.sampled_from((0, 1, 127, 128, 255)), max_size=12).map(bytes))
def test_any_bytes_are_read_by_the_law(data: bytes) -> None:
    """BATCH-7, of bytes that may be cut, or have no end."""
    assert varints_are_zigzag(data, 32, outcome_of(decode_varint, data, 0))
    assert varints_are_zigzag(data, 64, outcome_of(decode_varlong, data, 0))


@pytest.mark.checks("BATCH-7")
def test_examples() -> None:
    """Borders; what a fifth byte holds beyond 32 bits is dropped; what is cut or too long."""
    assert b"\x01" == encode_varint(-1)
    assert bytes.fromhex("feffffff0f") == encode_varint(INT32_MAX)
    assert b"\xff" * 9 + b"\x01" == encode_varlong(-(2**63))
    assert (-(2**31), 5) == decode_varint(bytes.fromhex("ffffffff0f"), 0)
    assert (-(2**31), 5) == decode_varint(bytes.fromhex("ffffffff7f"), 0)
    assert INVALID_RECORD == outcome_of(decode_varint, b"\x80", 0)
    assert INVALID == outcome_of(decode_varint, b"\xff" * 5, 0)
    assert INVALID == outcome_of(decode_varlong, b"\xff" * 10, 0)
