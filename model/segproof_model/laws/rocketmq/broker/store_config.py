# SPDX-License-Identifier: Apache-2.0
"""What the files of JSON in `config` say, beside the queues of the store."""

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping

from segproof_model.laws.rocketmq.broker.config_json import is_config, read_config
from segproof_model.laws.rocketmq.broker.store_timers import TimerFiles
from segproof_model.laws.rocketmq.broker.store_views import QUEUE

QUEUE_NAME = re.compile(rf"(batch)?consumequeue/([^/]+)/({QUEUE})/[0-9]{{20}}")
BATCH_NAME = re.compile(rf"batchconsumequeue/([^/]+)/(?:{QUEUE})/[0-9]{{20}}")
BATCH_UNIT = struct.Struct(">qi34x")
"""A unit of a queue of batches begins with offset and size of its message."""
OF_BROKERS = re.compile(
    r"%.*|(?:rmq_sys_|RMQ_SYS_).*|TBW102|SCHEDULE_TOPIC_XXXX|BenchmarkTest"
    r"|TRANS_CHECK_MAX_TIME_TOPIC|SELF_TEST_TOPIC|OFFSET_MOVED_EVENT"
)
"""Topics that a broker makes again."""
TIMER_QUEUE = re.compile(r"consumequeue/rmq_sys_wheel_timer/[^/]+/[0-9]{20}")
INTEGER = re.compile(r"([-+]?[0-9]{1,30})[BSL]?")
"""A number of a topic's queues; a longer one tells nothing."""
STATES = ("topics.json", "consumerOffset.json", "subscriptionGroup.json", "delayOffset.json")


def queue_type(topic: object) -> str | None:
    """Return the type of queues that an entry of `topics.json` gives its topic; None without it."""
    attributes = topic.get("attributes") if isinstance(topic, dict) else None
    found = attributes.get("queue.type") if isinstance(attributes, dict) else None
    return found if isinstance(found, str) else None


class ConfigFiles:
    """The files in `config` of a store that has queues."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = {
            name.removeprefix("config/"): data
            for name, data in files.items()
            if name.startswith("config/")
        }
        self._queues: dict[str, int] = {}
        self._types: set[tuple[str, bool]] = set()
        """Each topic with a queue, and whether that is a queue of batches."""
        for match in filter(None, map(QUEUE_NAME.fullmatch, files)):
            topic = match[2]
            if not OF_BROKERS.fullmatch(topic):
                self._queues[topic] = max(int(match[3]), self._queues.get(topic, 0))
                self._types.add((topic, match[1] is not None))

    def know_the_queues(self) -> bool:
        """Return whether topics and offsets are there that the queues and other files show."""
        return not self._queues or (self._has_topics() and self._has_offsets())

    def topics(self, end: str = "") -> dict[str, object]:
        """Return what `topics.json`, or its backup (`end`), has of each topic."""
        return self._table(f"topics.json{end}", "topicConfigTable")

    def _has_topics(self) -> bool:
        pair = [one for one in ("topics.json", "topics.json.bak") if one in self._files]
        whole = [one for one in pair if is_config(self._files[one])]
        if not whole:
            return bool(pair) or self._count_others("topics.json") < 2
        known = self._table(whole[0], "topicConfigTable")
        for topic, last in self._queues.items():
            content = known.get(topic)
            if topic not in known:
                return False
            count = content.get("readQueueNums") if isinstance(content, dict) else None
            number = INTEGER.fullmatch(count) if isinstance(count, str) else None
            if number is not None and 0 <= int(number[1]) <= last:
                return False
        return all((queue_type(known[one]) == "BatchCQ") is batch for one, batch in self._types)

    def _has_offsets(self) -> bool:
        own, backup, written = (f"consumerOffset.json{end}" for end in ("", ".bak", ".tmp"))
        if own not in self._files:
            return backup in self._files or self._count_others(own) < 2
        is_empty = is_config(self._files[own]) and not self._offsets(own)
        return not is_empty or not (self._offsets(backup) or self._offsets(written))

    def _offsets(self, name: str) -> bool:
        rows = self._table(name, "offsetTable").items()
        return any("@" in key and isinstance(row, dict) and row for key, row in rows)

    def _table(self, name: str, table: str) -> dict[str, object]:
        content = read_config(self._files.get(name, b"{}"))
        rows = content.get(table) if isinstance(content, dict) else None
        return rows if isinstance(rows, dict) else {}

    def _count_others(self, own: str) -> int:
        return sum(one in self._files for one in STATES if one != own)


def timers_are_known(files: Mapping[str, bytes]) -> bool:
    """Return whether a file says which timers were delivered, if their queue has messages.

    The law of the timer log judges a log with an entry.
    """
    has_messages = any(any(data) for name, data in files.items() if TIMER_QUEUE.fullmatch(name))
    timers = TimerFiles(files)
    is_told = any(files.get("config/timercheck", b"")) or bool(timers.timers)
    return is_told or not has_messages


def config_is_complete(files: Mapping[str, bytes], databases: Iterable[str]) -> bool:
    """Return whether `config` has what the queues show; `databases` are those of RocksDB."""
    names = [*databases]
    is_in_rocksdb = any(name.startswith(("config", "consumequeue")) for name in names)
    if not (names or timers_are_known(files)):
        return False
    return is_in_rocksdb or ConfigFiles(files).know_the_queues()


class BatchQueues:
    """The queues of batches of a store, which lie in a folder of their own."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._config = ConfigFiles(files)
        self._images: dict[str, list[bytes]] = defaultdict(list)
        for name, data in files.items():
            if (match := BATCH_NAME.fullmatch(name)) is not None:
                self._images[match[1]].append(data)

    @property
    def with_files(self) -> set[str]:
        """The topics with a file of such a queue."""
        return {*self._images}

    @property
    def furthest(self) -> int:
        """The largest offset in the log that a unit leads to; -1 without a unit."""
        images = [data for each in self._images.values() for data in each]
        whole = [data[: len(data) - len(data) % BATCH_UNIT.size] for data in images]
        furthest = -1
        for data in whole:
            for at, size in BATCH_UNIT.iter_unpack(data):
                furthest = max(furthest, int(at)) if size > 0 else furthest
        return furthest

    @property
    def topics(self) -> set[str]:
        """The topics to which `topics.json` gives the type of such queues, or its backup if that
        names no topic.
        """
        known = self._config.topics() or self._config.topics(".bak")
        return {topic for topic, row in known.items() if queue_type(row) == "BatchCQ"}
