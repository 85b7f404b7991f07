# SPDX-License-Identifier: Apache-2.0
"""What looks like a message in some bytes, and the messages with which a salvage fills gaps.

Laws: RMQLOG-1 to RMQLOG-3.
"""

from collections.abc import Iterator

import numpy as np

from segproof.layouts.rocketmq import MESSAGE, MESSAGE_BYTES_MIN
from segproof.rocketmq.commit_log import RECORD_LIMIT_BYTES
from segproof.rocketmq.message import (
    ROLLED_BACK,
    Message,
    check_message_and_return_size,
    lacks_body,
)
from segproof.stretches.rocketmq.message_blocks import MessageBlock

SEARCH_PIECE_BYTES = 1 << 20
"""Bytes that a search reads at once, at most."""
FIRST_BYTES = 1 << 14
"""Bytes that a search reads first after damage: a log may be full of damaged places."""
CRC_BYTES = 64 << 20
CRC_BYTES_OF_A_BYTE = 16
"""A search makes checksums of CRC_BYTES, and of so many bytes more for each byte searched."""
CHECKED_BYTES_MIN = 4096
"""Bytes of work that a trial of one candidate counts at least."""
HEAD_BYTES = MESSAGE["physical_offset"].end
"""Up to here a message says its length, its magic, and where it lies."""
_HEAD = MESSAGE.dtype_within(HEAD_BYTES)
MAGIC_BYTES = (0xDA, 0xA3, 0x20)
MAGIC_ENDS = (0xA7, 0xAB)
"""The last byte of the magic in both versions."""
FILLER_TOPIC = "SEGPROOF_LOST"
"""Salvage fills a gap with messages of this topic; in a short message the topic is cut."""


def is_filler(message: Message) -> bool:
    """Return whether a message fills a gap. Such a message has as much of the topic as fits."""
    is_told = FILLER_TOPIC.startswith(message.topic or "") and not message.properties
    return is_told and message.sys_flag & ROLLED_BACK == ROLLED_BACK and not message.queue_offset


def filler_rows(block: MessageBlock) -> list[int]:
    """Return the rows of the messages of a block that fill a gap."""
    numbers = np.flatnonzero(block.flags & ROLLED_BACK == ROLLED_BACK)
    return [number for number in numbers.tolist() if is_filler(block.message(number))]


def whole_messages(data: bytes) -> Iterator[tuple[int, Message]]:
    """Yield each sound message in some bytes with its position, whatever offset it says.

    What lies inside of a sound message is passed over.
    """
    behind = 0
    for position, size in candidates(data, None, len(data)):
        if position < behind or position + size > len(data):
            continue
        message = check_message_and_return_size(data[position : position + size], 0).message
        if message is not None and not lacks_body(message):
            yield position, message
            behind = position + size


def candidates(data: bytes, offset: int | None, count: int) -> Iterator[tuple[int, int]]:
    """Yield position and size of what looks like a message among the first `count` places.

    The data begins at an offset of the log. None: a message may say any offset.
    """
    count = min(count, len(data) - HEAD_BYTES + 1)
    if count <= 0:
        return
    view = np.frombuffer(data, np.uint8)
    rows = np.flatnonzero(view[4 : 4 + count] == MAGIC_BYTES[0])
    for place, byte in enumerate(MAGIC_BYTES[1:], 5):
        rows = rows[view[rows + place] == byte]
    rows = rows[np.isin(view[rows + 7], MAGIC_ENDS)]
    heads = np.ndarray((count,), _HEAD, data, 0, (1,))[rows]
    sizes, offsets = heads["total_size"], heads["physical_offset"]
    fits = (sizes >= MESSAGE_BYTES_MIN) & (sizes <= RECORD_LIMIT_BYTES)
    if offset is not None:
        fits &= offsets == rows + offset
    yield from zip(rows[fits].tolist(), sizes[fits].tolist(), strict=True)
