# SPDX-License-Identifier: Apache-2.0
"""The offsets of consumer groups and of delayed messages, as a broker keeps them in `config`.

Layout: `consumerOffset.json`: `{"offsetTable":{"TOPIC@GROUP":{QUEUE:OFFSET}}}`.
  `delayOffset.json`: `{"offsetTable":{LEVEL:OFFSET}}`; level n is queue n - 1 of the topic of
  delayed messages. `topicQueueMapping.json`: `{"topicQueueMappingTable":{"TOPIC":{...}}}`.
Upstream: RocketMQ 4.9.8 and 5.5.1: ConsumerOffsetManager, ScheduleMessageService,
TopicQueueMappingManager.
Laws: RMQDISK-54.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final

from segproof.files import Files, status_of
from segproof.hints import changes
from segproof.reading.config_file import (
    BACKUP_SUFFIX,
    CONFIG,
    CONFIG_BYTES_MAX,
    TEXT,
    begin_of_json,
    json_fault,
)
from segproof.rocketmq.consume_queue import SPOKEN_FOR_OTHERS

__all__ = [
    "WRITE_OFFSET",
    "StoredOffset",
    "known_topics",
    "offsets_in_file",
    "queue_types",
    "queue_types_in_file",
    "read_offsets",
    "stored_offsets",
    "topics_in_file",
    "topics_of_mapping",
]

CONSUMER_OFFSETS: Final = "consumerOffset.json"
DELAY_OFFSETS: Final = "delayOffset.json"
STATIC_TOPICS: Final = "topicQueueMapping.json"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
TOPICS: Final = "topics.json"
TOPIC_TABLE: Final = "topicConfigTable"
QUEUE_TYPE: Final = ("attributes", "queue.type")
"""The keys that lead from a topic to the type of its queues."""
OFFSET_TABLE: Final = "offsetTable"
MAPPING_TABLE: Final = "topicQueueMappingTable"
NAME_MAX: Final = 127
"""Characters of a name that are shown."""
QUEUE_MAX: Final = 10**9
"""A broker names the folder of a queue by a number of at most 9 digits."""

WRITE_OFFSET: Final = changes(
    "write the end of the queue in place of the offset; else the offset that the group has in a"
    " damaged file beside this one, which is text (a salvage names it .broken), in a backup or on a"
    " slave. When in doubt write a lower one: messages come twice, and none is passed over",
    only_if="the group had read all that the queue has, as where the offset was right and the queue"
    " has lost its last messages since",
    if_wrong="the messages from the group's own offset to the end of the queue are passed over, and"
    " the group never gets them",
    copy_step="stop the broker and copy the folder config away",
)
"""What to do about an offset beyond the end of its queue."""

_TOKEN = re.compile(
    rb"(?P<skip>[\x00-\x20]++|//[^\n]*+|/\*.*?\*/)"
    rb"|(?P<text>" + TEXT + rb")"
    rb"|(?P<mark>[][{}:,])"
    rb"|(?P<bare>[^\x00-\x20\[\]{}:,\"'/]++)",
    re.DOTALL,
)
_INTEGER = re.compile(r"([-+]?[0-9]{1,30})[BSL]?")


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The next offset of one queue for one reader."""

    topic: str
    queue_id: int
    group: str
    """The consumer group; empty for delayed messages."""
    offset: int
    position: int
    """The byte of the file at which the number stands."""

    @property
    def queue(self) -> tuple[str, int]:
        """Topic and number of the queue."""
        return self.topic, self.queue_id

    @property
    def reader(self) -> tuple[str, int, str]:
        """What has one offset in a file: queue and group."""
        return self.topic, self.queue_id, self.group

    @property
    def words(self) -> str:
        """Who has read which queue: the begin of a sentence."""
        topic, group = self.topic[:NAME_MAX], self.group[:NAME_MAX]
        if self.group:
            return f"group {group} has consumed queue {self.queue_id} of {topic}"
        level = self.queue_id + 1
        return (
            f"delayed messages of level {level} (queue {self.queue_id} of {topic}) were delivered"
        )


def read_offsets(store: str, files: Files) -> dict[str, list[StoredOffset]]:
    """Return the offsets in `config` by the path of their file, a backup after its file.

    Offsets of static topics are left out: they are counted over several brokers. The checks of
    `config` report a file that can't be read.
    """
    folder = posixpath.join(store, CONFIG)
    mapping = posixpath.join(folder, STATIC_TOPICS)
    static = {
        topic
        for path in (mapping, mapping + BACKUP_SUFFIX)
        for topic in topics_of_mapping(_read_whole(path, files))
    }
    found: dict[str, list[StoredOffset]] = {}
    for name in (CONSUMER_OFFSETS, DELAY_OFFSETS):
        for path in (posixpath.join(folder, name + end) for end in ("", BACKUP_SUFFIX)):
            stored = stored_offsets(_read_whole(path, files), name)
            found[path] = [one for one in stored if one.topic not in static]
    return found


def known_topics(store: str, files: Files) -> set[str]:
    """Return the topics that exist as `config` says: those of `topics.json` and its backup, or of
    the consumer offsets if these name none. A topic that is deleted leaves the first file at once.
    """
    path = posixpath.join(store, CONFIG, TOPICS)
    found = {
        keys[1]
        for one in (path, path + BACKUP_SUFFIX)
        for keys, _, _ in _values(_read_whole(one, files))
        if len(keys) > 1 and keys[0] == TOPIC_TABLE
    }
    stored = read_offsets(store, files) if not found else {}
    return found or {one.topic for each in stored.values() for one in each}


def topics_in_file(path: str, files: Files) -> dict[str, int]:
    """Return the topics that one file names, each with the number of its read queues; -1 if the
    file does not say it.
    """
    found: dict[str, int] = {}
    for keys, value, _ in _values(_read_whole(path, files)):
        if len(keys) < 2 or keys[0] != TOPIC_TABLE:
            continue
        found.setdefault(keys[1], -1)
        count = _integer(value or "") if keys[2:] == ("readQueueNums",) else None
        if count is not None:
            found[keys[1]] = count
    return found


def queue_types(store: str, files: Files) -> dict[str, str]:
    """Return the topics with a `queue.type`, as `topics.json` says, or its backup if that names no
    topic.
    """
    path = posixpath.join(store, CONFIG, TOPICS)
    for one in (path, path + BACKUP_SUFFIX):
        if topics_in_file(one, files):
            return queue_types_in_file(one, files)
    return {}


def queue_types_in_file(path: str, files: Files) -> dict[str, str]:
    """Return the topics that one file gives a `queue.type`, each with it: SimpleCQ or BatchCQ."""
    found: dict[str, str] = {}
    for keys, value, _ in _values(_read_whole(path, files)):
        if keys[:1] != (TOPIC_TABLE,) or len(keys) < 2:
            continue
        if value is None and len(keys) == 2:
            found.pop(keys[1], None)
        elif value is not None and keys[2:] == QUEUE_TYPE:
            found[keys[1]] = value
    return found


def offsets_in_file(path: str, files: Files) -> list[StoredOffset]:
    """Return the offsets of consumer groups that one file has."""
    return stored_offsets(_read_whole(path, files), CONSUMER_OFFSETS)


def _read_whole(path: str, files: Files) -> bytes:
    """Return what a file of JSON holds, or an empty object if the file can't be read."""
    try:
        status = status_of(files, path)
        if status is None or not status.is_regular or status.size_bytes > CONFIG_BYTES_MAX:
            return b"{}"
        with closing(files.open(path)) as file:
            data = file.pread(status.size_bytes, 0)
    except OSError:
        return b"{}"
    return data if json_fault(data) is None else b"{}"


def stored_offsets(data: bytes, name: str) -> list[StoredOffset]:
    """Return the offsets of a whole file, which is `consumerOffset.json` or `delayOffset.json`.

    Of two values with the same key the later one counts, as in a broker.
    """
    rows: dict[str, dict[str, StoredOffset]] = {}
    for keys, value, position in _values(data):
        if keys[:1] != (OFFSET_TABLE,):
            continue
        if value is None:  # an object begins
            if len(keys) == 1:
                rows.clear()
            elif len(keys) == 2:
                rows.pop(keys[1], None)
            continue
        found = _stored_offset(keys, value, position, name == DELAY_OFFSETS)
        if found is not None:
            rows.setdefault(keys[1], {})[keys[-1]] = found
    return [one for row in rows.values() for one in row.values()]


def _stored_offset(
    keys: tuple[str, ...], value: str, position: int, is_delay: bool
) -> StoredOffset | None:
    """Return the offset that a value is, by the keys that lead to it."""
    number, offset = _integer(keys[-1]), _integer(value)
    if number is None or offset is None or not 0 <= number < QUEUE_MAX:
        return None
    if is_delay:
        is_level = len(keys) == 2 and number > 0
        return StoredOffset(SCHEDULE_TOPIC, number - 1, "", offset, position) if is_level else None
    topic, _, group = keys[1].partition("@")
    if len(keys) != 3 or not topic or not group or SPOKEN_FOR_OTHERS in topic:
        return None
    return StoredOffset(topic, number, group, offset, position)


def topics_of_mapping(data: bytes) -> set[str]:
    """Return the static topics that a whole file names."""
    found = (keys for keys, _, _ in _values(data))
    return {keys[1] for keys in found if len(keys) > 1 and keys[0] == MAPPING_TABLE}


def _values(data: bytes) -> Iterator[tuple[tuple[str, ...], str | None, int]]:
    """Yield the keys that lead to each value of a whole file, the value, and its position; None for
    an object, whose own values follow.

    What is in a list is passed over.
    """
    keys: list[str | None] = []
    """The last key of each bracket that is open; None for a list."""
    is_key = False
    for token in _TOKEN.finditer(data, begin_of_json(data)):
        mark = token["mark"]
        if mark in (b"{", b"["):
            if mark == b"{" and None not in keys:
                yield tuple(one for one in keys if one is not None), None, token.start()
            keys.append("" if mark == b"{" else None)
            is_key = mark == b"{"
        elif mark in (b"}", b"]"):
            if keys:
                keys.pop()
            is_key = False
        elif mark is not None:
            is_key = mark == b"," and bool(keys) and keys[-1] is not None
        elif token["skip"] is None:
            if is_key:
                keys[-1] = _text(token[0])
            elif keys and None not in keys:
                yield tuple(one for one in keys if one is not None), _text(token[0]), token.start()


def _text(token: bytes) -> str:
    """Return what a token says, without its quotes."""
    if token[:1] == b'"' and b"\\" in token:
        with suppress(ValueError):
            return str(json.loads(token))
    is_quoted = token[:1] in (b'"', b"'")
    return (token[1:-1] if is_quoted else token).decode("utf-8", "replace")


def _integer(text: str) -> int | None:
    """Return the integer that a text is; None if it is none."""
    found = _INTEGER.fullmatch(text)
    return None if found is None else int(found[1])
