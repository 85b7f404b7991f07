# SPDX-License-Identifier: Apache-2.0
"""A reader of Kafka's logs of its own: it shares no code with segproof or with the model.

It frames batches by their size fields, and reads the fields that tell batches apart. It knows what
a checksum covers, and decompresses nothing.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from awscrt import checksums

BATCH_BYTES = 61
"""The header of a batch of magic 2."""
MESSAGE_BYTES = 26
"""The smallest message of magic 0: its header, and the lengths of no key and no value."""
SIZE_AND_OFFSET_BYTES = 12
SEQUENCES = 1 << 31
"""Sequences of a producer begin again at 0 after this many."""


class Batch(NamedTuple):
    """What the header of a batch, or of a message of magic 0 or 1, says."""

    position: int
    size: int
    magic: int
    offset: int
    """The offset of the header: the first of magic 2, the last of a compressed message."""
    last: int
    """The last offset."""
    is_wrapper: bool
    """Whether this is a compressed message of magic 0 or 1, whose first offset stands inside."""
    leader_epoch: int
    timestamp: int
    """The largest in milliseconds; -1 for magic 0."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    content: bytes
    """The checksum, and the bytes that it covers: all but offset, size, leader epoch and magic."""

    @property
    def is_broker_time(self) -> bool:
        """Return whether a broker wrote its timestamps, and not a client."""
        return self.magic > 0 and bool(self.content[5] & 8)

    @property
    def end(self) -> int:
        """Return the position after the batch."""
        return self.position + self.size


def read_batch(log: bytes, position: int) -> Batch | None:
    """Return the batch at a position; None if its size does not lead to an end within the log."""
    if position + MESSAGE_BYTES > len(log):
        return None
    offset, length = struct.unpack_from(">qi", log, position)
    size, magic = SIZE_AND_OFFSET_BYTES + length, log[position + 16]
    least = BATCH_BYTES if magic == 2 else MESSAGE_BYTES
    if magic > 2 or size < least or position + size > len(log):
        return None
    if magic < 2:
        is_wrapper = bool(log[position + 17] & 7)
        time = struct.unpack_from(">q", log, position + 18)[0] if magic else -1
        content = bytes(log[position + 12 : position + size])
        return Batch(
            position, size, magic, offset, offset, is_wrapper, -1, time, -1, -1, -1, content
        )
    (epoch,) = struct.unpack_from(">i", log, position + 12)
    delta, _, time, producer, producer_epoch, sequence = struct.unpack_from(
        ">iqqqhi", log, position + 23
    )
    content = bytes(log[position + 17 : position + size])
    return Batch(
        position, size, 2, offset, offset + delta, False, epoch, time, producer, producer_epoch,
        sequence, content,
    )  # fmt: skip


def framed(log: bytes) -> Iterator[Batch]:
    """Yield the batches as sizes lead, up to the first place that has no batch."""
    position = 0
    while (batch := read_batch(log, position)) is not None:
        yield batch
        position = batch.end


def is_sound(batch: Batch) -> bool:
    """Return whether the checksum of a batch is right."""
    stored = int.from_bytes(batch.content[:4], "big")
    covered = batch.content[4:]
    made: int = checksums.crc32c(covered) if batch.magic == 2 else zlib.crc32(covered)
    return stored == made


def index_entries(index: bytes, base: int) -> Iterator[tuple[int, int]]:
    """Yield offset and position of each entry of an offset index, without the zeros at its end."""
    for relative, position in struct.iter_unpack(">ii", index[: len(index) // 8 * 8]):
        if relative or position:
            yield base + relative, position
