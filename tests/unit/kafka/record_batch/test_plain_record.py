# SPDX-License-Identifier: Apache-2.0
"""The short way through a record says what the long way says, or leaves the record to it."""

from hypothesis import given
from hypothesis import strategies as st

from segproof.kafka.record import encode_varint, encode_varlong
from segproof.kernels.records import next_record, plain_record

LENGTHS = st.sampled_from([-2, -1, 0, 1, 2, 63, 64, 90, 200, 8191, 8192])
DELTAS = st.integers(-9000, 9000) | st.integers(-(2**31), 2**31 - 1)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a record, often whole, sometimes with a length that is wrong."""
    body = b"\0" + encode_varlong(draw(DELTAS)) + encode_varint(draw(DELTAS))
    for _ in range(2):
        length = draw(LENGTHS)
        body += encode_varint(length) + bytes(max(length, 0))
    body += encode_varint(draw(st.sampled_from([0, 0, 0, 1, -1])))
    body += draw(st.sampled_from([b"", b"", b"", b"\0", b"\x02a\x01"]))
    return encode_varint(len(body) + draw(st.sampled_from([0, 0, 0, 0, -1, 1]))) + body


@given(records() | st.binary(max_size=30), st.integers(0, 3), st.integers(0, 12))
def test_short_way_agrees_with_the_long_way(record: bytes, before: int, cut: int) -> None:
    """On any bytes, whole or cut, from any position."""
    buffer = bytes(before) + record
    end = max(len(buffer) - max(cut - 9, 0), before)
    found = plain_record.interpreted(buffer, before, end)
    if found[0] != 0:
        assert next_record.interpreted(buffer, before, end) == (*found, found[0], 0)


def test_short_way_is_taken() -> None:
    """Records without headers, with keys or without, of ordinary size take the short way."""
    for key_length, value_length in ((-1, 91), (0, 0), (5, -1), (100, 8000)):
        body = b"\0" + encode_varlong(7) + encode_varint(100)
        for length in (key_length, value_length):
            body += encode_varint(length) + bytes(max(length, 0))
        record = encode_varint(len(body) + 1) + body + b"\0"
        padded = record + bytes(9)
        assert (len(record), 7, 100) == plain_record.interpreted(padded, 0, len(padded))[:3]
