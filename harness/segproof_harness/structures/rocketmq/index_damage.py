# SPDX-License-Identifier: Apache-2.0
"""Index files of RocketMQ that a crash or a broken disk left: what is drawn, and what it does.

Damage is a row of changes, each `(kind, position, bytes)`: `write` puts the bytes at the position,
`size` cuts or grows the file to as many bytes as the position says, `remove` removes it.
"""

from segproof_harness.structures.choices import INT32_MAX, INT32_MIN, Choose
from segproof_harness.structures.kinds import Bytes, Integer, OneOf, Record, Row
from segproof_harness.structures.rocketmq.index_drawing import (
    HEADER_SIZE,
    SLOT_SIZE,
    IndexImage,
    some_key,
)
from segproof_model.rocketmq.format.key_hash import index_key_hash

Change = tuple[str, int, bytes]
KINDS = ("write", "size", "remove")
BYTES_MAX = 1 << 16
CHANGES = Row(Record(kind=OneOf(KINDS), position=Integer(0, BYTES_MAX), data=Bytes(BYTES_MAX)), 100)


def int32_bytes(value: int) -> bytes:
    """Return an int32 as it is stored."""
    return value.to_bytes(4, "big", signed=True)


def draw_changes(choose: Choose, image: IndexImage) -> tuple[Change, ...]:
    """Draw one to three changes of a file."""
    if not image.data:
        return (("size", choose.integer(1, 200), b""),)
    return tuple(_draw_change(choose, image) for _ in range(choose.one_of((1, 1, 1, 2, 3))))


def _draw_change(choose: Choose, image: IndexImage) -> Change:
    kind = choose.weighted((8, 8, 4, 3, 2, 2, 1))
    if kind == 0 and image.hash_slot_num > 0:
        slot = choose.integer(0, image.hash_slot_num - 1)
        return "write", HEADER_SIZE + SLOT_SIZE * slot, int32_bytes(_some_index(choose, image))
    if kind == 1:
        return _change_of_entry(choose, image)
    if kind == 2:  # the count, which a crash may leave behind or before the entries
        counts = (image.index_count - 1, image.index_count + 1, 0, -1, -1, -7, 1, INT32_MAX)
        return "write", 36, int32_bytes(choose.one_of((*counts, image.index_num)))
    if kind == 3:
        field = choose.one_of((0, 8, 16, 24))
        value = choose.one_of((0, 1, -1, image.end_timestamp, image.begin_timestamp - 5_000))
        return "write", field, max(value, -(2**63)).to_bytes(8, "big", signed=True)
    if kind == 4:
        size = len(image.data)
        return "size", max(0, choose.one_of((size - 1, size - 20, size + 1, size + 20, 0, 40))), b""
    if kind == 5:
        return "write", choose.integer(0, len(image.data) - 1), choose.data(choose.integer(1, 20))
    return "remove", 0, b""


def _some_index(choose: Choose, image: IndexImage) -> int:
    """Draw the index of an entry: of one that there is, of none yet, or of none ever."""
    count = image.index_count
    if choose.one_in(3):
        beside = (count, count, count + 1, image.index_num)
        return choose.one_of((*beside, 0, -1, INT32_MAX, INT32_MIN, 214748365))
    return choose.integer(1, count)


def _change_of_entry(choose: Choose, image: IndexImage) -> Change:
    index = choose.integer(1, max(1, min(image.index_count, image.index_num - 1)))
    at = image.entry_position(index)
    kind = choose.weighted((6, 2, 2, 1))
    if kind == 0:
        return "write", at + 16, int32_bytes(choose.one_of((index, _some_index(choose, image))))
    if kind == 1:
        return "write", at + 12, int32_bytes(choose.one_of((-1, INT32_MIN, INT32_MAX, 0, 5)))
    if kind == 2:
        return "write", at, int32_bytes(index_key_hash(some_key(choose)))
    return "write", at, bytes(20)


def damaged(data: bytes, changes: tuple[Change, ...]) -> bytes | None:
    """Return a file after the changes; None once it is removed. No change makes it longer but
    `size`."""
    for kind, position, written in changes:
        if kind == "remove":
            return None
        if kind == "size":
            data = data[:position] + bytes(max(0, position - len(data)))
        else:
            kept = written[: max(0, len(data) - position)]
            data = data[:position] + kept + data[position + len(kept) :]
    return data
