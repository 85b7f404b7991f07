# SPDX-License-Identifier: Apache-2.0
"""What the files of JSON in `config` say, beside the queues of the store."""

import re
from collections.abc import Iterable, Mapping

from segproof_model.laws.rocketmq.broker.config_json import is_config, read_config
from segproof_model.laws.rocketmq.broker.store_timers import TimerFiles

QUEUE_NAME = re.compile(r"consumequeue/([^/]+)/([0-9]{1,9})/[0-9]{20}")
OF_BROKERS = re.compile(
    r"%.*|(?:rmq_sys_|RMQ_SYS_).*|TBW102|SCHEDULE_TOPIC_XXXX|BenchmarkTest"
    r"|TRANS_CHECK_MAX_TIME_TOPIC|SELF_TEST_TOPIC|OFFSET_MOVED_EVENT"
)
"""Topics that a broker makes again."""
TIMER_QUEUE = re.compile(r"consumequeue/rmq_sys_wheel_timer/[^/]+/[0-9]{20}")
INTEGER = re.compile(r"([-+]?[0-9]{1,30})[BSL]?")
"""A number of a topic's queues; a longer one tells nothing."""
STATES = ("topics.json", "consumerOffset.json", "subscriptionGroup.json", "delayOffset.json")


class ConfigFiles:
    """The files in `config` of a store that has queues."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = {
            name.removeprefix("config/"): data
            for name, data in files.items()
            if name.startswith("config/")
        }
        self._queues: dict[str, int] = {}
        for match in filter(None, map(QUEUE_NAME.fullmatch, files)):
            if not OF_BROKERS.fullmatch(match[1]):
                self._queues[match[1]] = max(int(match[2]), self._queues.get(match[1], 0))

    def know_the_queues(self) -> bool:
        """Return whether topics and offsets are there that the queues and other files show."""
        return not self._queues or (self._has_topics() and self._has_offsets())

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
        return True

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
