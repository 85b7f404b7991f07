# SPDX-License-Identifier: Apache-2.0
"""How the messages of a RocketMQ commit log are drawn, and how their bytes are damaged.

Damage is `((position, bytes), ...)`: so much is written over the log, counted from its first byte.
"""

from collections.abc import Iterator, Mapping, Sequence

from segproof.rocketmq.commit_log import COMMIT_LOG
from segproof.rocketmq.message import Message
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, log_images, message_of
from segproof_harness.structures.choices import INT32_MAX, INT32_MIN, INT64_MAX, Choose
from segproof_harness.structures.kinds import BYTES, SIZE_MAX, Integer, Record, Row
from segproof_harness.structures.operations import Value
from segproof_model.language.integers import int32_at, int32_bytes
from segproof_model.rocketmq.format.message import BLANK_MAGIC, MAGIC_V1, MAGIC_V2, SCHEDULE_TOPIC

FOLDER = f"{COMMIT_LOG}/"
TOPICS = ("T", "T", "T", "Topic-2", SCHEDULE_TOPIC, "caf\u00e9\U0001f600", "")
HOST_V4, HOST_V6 = bytes(8), bytes(range(20))
NUMBERS = (
    "1",
    "0",
    "-1",
    "+3",
    "x",
    "",
    "32768",
    "-32769",
    "2147483648",
    "9223372036854775808",
    " 1",
)
"""Texts of properties that are to be numbers; some are none, or too large for one kind."""
PROPERTIES = (
    ("KEYS", ("k1", "k1 k2", "  k1  ", "k\u00fc", "AaAa BBBB")),
    ("UNIQ_KEY", ("U1", "U2")),
    ("TAGS", ("TagA", "Tag B", "caf\u00e9")),
    ("DELAY", NUMBERS),
)
SEGMENTS = ("\x01", "a\x01", "\x01b", "a\x01b\x01", "a\x01b\x01c", "a\x01\x01", "ab", "", "a\x01b")
"""Parts of a text of properties that are none, or hardly one."""

Change = tuple[int, bytes]
CHANGES = Row(Record(position=Integer(0, INT64_MAX), data=BYTES), SIZE_MAX)


def some_properties(choose: Choose) -> str:
    """Draw a text of properties: none, whole ones, or parts that are hardly properties."""
    if choose.one_in(5):
        return ""
    text = ""
    if choose.one_in(4):
        numbers = choose.one_of(NUMBERS), choose.one_of(NUMBERS)
        text = f"INNER_BASE\x01{numbers[0]}\x02INNER_NUM\x01{numbers[1]}\x02"
    for _ in range(choose.integer(0, 3)):
        name, values = choose.one_of(PROPERTIES)
        text += f"{name}\x01{choose.one_of(values)}\x02"
    if choose.one_in(3):
        text += choose.one_of(SEGMENTS) + choose.one_of(("\x02", ""))
    return text


def some_message(choose: Choose, queue_offset: int, store_timestamp: int) -> Message:
    """Draw a message; where it lies is given to it when it is written."""
    flag = choose.one_of((0, 0, 0, 4, 8, 12, 0x10, 0x20, 0x30))
    magic = MAGIC_V2 if choose.one_in(3) else MAGIC_V1
    drawn = message_of(
        choose.one_of(TOPICS),
        body=choose.data(choose.integer(0, 12)),
        store_timestamp=store_timestamp,
        sys_flag=flag,
        queue_offset=queue_offset,
        magic=magic,
    )
    return Message(**{
        **{name: getattr(drawn, name) for name in Message.__slots__},
        "properties": some_properties(choose),
        "born_host": HOST_V6 if flag & 0x10 else HOST_V4,
        "store_host": HOST_V6 if flag & 0x20 else HOST_V4,
    })  # fmt: skip


def some_messages(choose: Choose) -> list[Message]:
    """Draw a few messages, later ones mostly stored later."""
    time, drawn = FIRST_TIMESTAMP_MS, []
    for number in range(choose.integer(1, 6)):
        drawn.append(some_message(choose, number, time))
        time += choose.one_of((1000, 1, 0, 1000, -1))
    return drawn


def log_files(messages: Sequence[Message], mapped_file_size: int, start: int) -> dict[str, bytes]:
    """Return the files of a log by their names in a store."""
    images = log_images(messages, mapped_file_size, start)
    return {f"{FOLDER}{name}": data for name, data in images.items()}


# --- where the log stands ------------------------------------------------------------------------


def record_starts(images: Mapping[str, bytes]) -> list[int]:
    """Return the offsets at which records of a log may begin, by the sizes that stand there."""
    return [offset for name, data in _files(images) for offset in _starts_in(name, data)]


def _files(images: Mapping[str, bytes]) -> Iterator[tuple[int, bytes]]:
    for name, data in sorted(images.items()):
        number = name.removeprefix(FOLDER)
        if number != name and len(number) == 20 and number.isdigit():
            yield int(number), data


def _starts_in(start: int, data: bytes) -> Iterator[int]:
    position = 0
    while position + 8 <= len(data):
        yield start + position
        size = int32_at(data, position)
        if not 8 <= size <= len(data) - position:
            break
        position += size


# --- damage --------------------------------------------------------------------------------------


def some_damage(choose: Choose, images: Mapping[str, bytes]) -> Value:
    """Draw what happens to a log: nothing, or some fields of a record or other bytes change."""
    starts = record_starts(images)
    if not starts or not choose.one_in(2):
        return ()
    files = dict(_files(images))
    return tuple(_some_change(choose, choose.one_of(starts), files) for _ in range(
        choose.one_of((1, 1, 2))
    ))  # fmt: skip


def _some_change(choose: Choose, start: int, files: Mapping[int, bytes]) -> Change:
    file = max(number for number in files if number <= start)
    left = len(files[file]) - (start - file)
    size = int32_at(files[file], start - file)
    kind = choose.weighted((4, 4, 3, 2, 2))
    if kind == 0:
        around = (size + 1, size - 1, left, left + 1, left + 5, left - 1)
        edges = (0, -1, 3, 7, 100, INT32_MIN, INT32_MIN + 3, INT32_MIN + 4, INT32_MAX)
        number = choose.one_of((*around, *edges))
        return start, int32_bytes(max(INT32_MIN, min(number, INT32_MAX)))
    if kind == 1:
        magic = choose.one_of((BLANK_MAGIC, BLANK_MAGIC, MAGIC_V1, MAGIC_V2, 0, -1))
        return start + 4, int32_bytes(magic)
    if kind == 2:
        return start + choose.integer(0, max(0, size)), choose.data(1)
    if kind == 3:
        return start + choose.one_of((36, 84)), int32_bytes(choose.one_of((0, -1, 5, 0x30, 1000)))
    return start + 8, choose.data(4)


def with_damage(changes: Sequence[Change], images: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a store with its log damaged; no file changes its length."""
    changed = dict(images)
    for offset, new in changes:
        for start, data in sorted(_files(changed)):
            at = offset - start
            if 0 <= at < len(data):
                data = (data[:at] + new + data[at + len(new) :])[: len(data)]
                changed[f"{FOLDER}{start:020d}"] = data
    return changed
