# SPDX-License-Identifier: Apache-2.0
"""What the real classes write and read where clients of other languages disagree with ours."""

import struct
from collections.abc import Iterator

import pytest

from segproof.checksums import crc32
from segproof.errors import InvalidArgumentError, SegproofError
from segproof.kafka import Record, read_batch, write_batch, write_empty_batch
from segproof_harness.releases.pinned import RELEASES
from segproof_harness.releases.written_batches import WrittenBatches

FRAME = b"\x04\x22\x4d\x18"
HEADER_CHECKSUM = 6
"""Where the checksum lies in a frame without its content's size."""
VALUE = b"abc" * 50
ASKED = [
    pytest.param(name, marks=pytest.mark.needs(name))
    for name in ("kafka-4.4.0", "kafka-3.9.2", "kafka-0.11.0.3")
]
pytestmark = pytest.mark.needs("java", "jpype")


@pytest.fixture(scope="module", params=ASKED)
def release(request: pytest.FixtureRequest) -> str:
    """Return the name of a release."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def real(release: str) -> Iterator[WrittenBatches]:
    """Yield its classes, in one child for all tests."""
    with WrittenBatches(RELEASES[release]) as one:
        yield one


def ours(magic: int) -> bytes:
    """Return a message with one record."""
    timestamp, kind = (-1, "NoTimestampType") if magic == 0 else (5, "CreateTime")
    return write_batch(
        [Record(0, timestamp, None, VALUE)],
        magic=magic, base_offset=0, compression="lz4", timestamp_type=kind,
    )  # fmt: skip


def with_checksum(message: bytes, checksum: int) -> bytes:
    """Return a message whose frame has another checksum, under a right one of its own."""
    changed = bytearray(message)
    changed[message.index(FRAME) + HEADER_CHECKSUM] = checksum
    changed[12:16] = struct.pack(">I", crc32(bytes(changed[16:])))
    return bytes(changed)


@pytest.mark.checks("BATCH-20")
def test_the_checksum_of_an_lz4_frame(real: WrittenBatches) -> None:
    """The class writes the wrong one in magic 0, as ours does, and reads any there; in magic 1 one.

    Clients that refuse the frames of magic 0 refuse those of Kafka itself.
    """
    for magic in (0, 1):
        message = ours(magic)
        theirs = real.lz4_message(magic, VALUE)
        head = message[message.index(FRAME) :][: HEADER_CHECKSUM + 1]
        assert theirs[theirs.index(FRAME) :].startswith(head)
        assert 1 == len(list(read_batch(theirs).records()))
    assert ours(0)[ours(0).index(FRAME) + HEADER_CHECKSUM] != head[HEADER_CHECKSUM]
    changed = [
        with_checksum(ours(magic), sum_) for magic in (0, 1) for sum_ in (0, 0x1A, 0x82, 255)
    ]
    expected: list[int | None] = []
    for message in changed:
        try:
            expected.append(len(list(read_batch(message).records())))
        except SegproofError:
            expected.append(None)
    assert [1, 1, 1, 1, None, None, 1, None] == expected
    assert expected == real.counts_of_records(changed)


@pytest.mark.checks("BATCH-13", "BATCH-15")
def test_a_transactional_batch_without_a_producer_id(real: WrittenBatches) -> None:
    """With records the class refuses to write it, as ours does; without records it writes it."""
    said, written = real.transactional_without_producer()
    assert "Cannot write transactional messages without a valid producer ID" in said
    with pytest.raises(InvalidArgumentError, match="a transactional batch needs a producer id"):
        write_batch([Record(0, 5, None, b"v")], base_offset=0, is_transactional=True)
    assert written == write_empty_batch(0, 5, 7, is_transactional=True)
    assert read_batch(written).is_transactional
