# SPDX-License-Identifier: Apache-2.0
"""The files of JSON in `config` against the queues beside them: whether they say what was there.

A broker reads a file that is whole, whatever it lacks, and does not ask its backup then. It begins
without a file that is not there.

Upstream: RocketMQ 4.9.8 and 5.5.1: ConfigManager.load and persist, TopicConfigManager,
TopicValidator.
Laws: RMQDISK-57.
Not covered: queues that are kept in RocksDB; topics of a broker itself, of retries and of dead
letters, which it makes again; a `config` that is kept in RocksDB.
"""

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from segproof.counts import plural, verb
from segproof.files import Files, first_byte_of, status_of
from segproof.hints import Hint, changes, reads
from segproof.reading.batch_queues import BATCH_QUEUES, BATCH_TYPE, queues_with_files
from segproof.reading.config_file import (
    BACKUP_SUFFIX,
    CONFIG,
    WRITTEN_SUFFIX,
    read_config_file,
    without,
)
from segproof.reading.config_offsets import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    TOPICS,
    offsets_in_file,
    queue_types_in_file,
    topics_in_file,
)
from segproof.reading.folder_names import names_of
from segproof.reading.store_layouts import is_rocksdb
from segproof.reading.timer_state import read_timer_state
from segproof.rocketmq.commit_log import named_offset
from segproof.rocketmq.consume_queue import CONSUME_QUEUE, folders_in

BETTER = changes(
    "put a whole file that has them in its place: the .tmp or .bak beside it if the message names"
    " one, else that of a backup or of a slave, which keeps the same topics, groups and offsets",
    only_if="nobody deleted these topics or groups, or lowered the number of their queues, and that"
    " file is of this broker or its slave",
    if_wrong="the broker takes the topics and offsets of another one for its own, or what somebody"
    " changed is undone",
    copy_step="stop the broker and copy the folder config away",
)
FEWER = BETTER.after(
    "nothing, if somebody lowered the number of queues of this topic, and the messages in the"
    " others were read; else "
)
OTHER_TYPE = reads(
    "find out which is right: compare the attributes of this topic in this file with those in its"
    " .bak, in a backup and on other brokers of the topic, and the units in both folders with the"
    " messages; keep both folders and this file until then"
)

TIMERS = reads(
    "look for the timer files of this broker in lost+found and in a backup. Nothing, if this store"
    " was saved without them, or if a message may come twice: a broker makes them again from the"
    " messages in the log"
)
TIMER_CHECK = "timercheck"
TIMER_TOPIC = "rmq_sys_wheel_timer"
"""The topic of the messages that wait for their time."""
GROUPS = "subscriptionGroup.json"
SIBLINGS_MIN = 2
"""A folder `config` with this many of the other files was written by a broker."""
OF_BROKERS = ("%", "rmq_sys_", "RMQ_SYS_")
"""How names of topics begin that a broker makes again."""
SYSTEM_TOPICS = frozenset({
    "TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT",
})  # fmt: skip


class ConfigLack(NamedTuple):
    """What a file of `config` lacks."""

    path: str
    words: str
    expected: str | None = None
    actual: int | None = None
    hint: Hint = BETTER
    folder: str = ""
    """The folder whose queues the file gives the other type; empty for another lack."""


def lacks_of_config(store: str, files: Files) -> list[ConfigLack]:
    """Return what `config` lacks; nothing if it can't be read, which other checks report."""
    with suppress(OSError):
        return [*_lacks(store, files)]
    return []


def _lacks(store: str, files: Files) -> Iterator[ConfigLack]:
    yield from _lacking_timers(store, files)
    folder = posixpath.join(store, CONFIG)
    names = names_of(folder, files)
    if not names or any(is_rocksdb(posixpath.join(folder, name), files) for name in names):
        return
    in_folders = {name: _queues(store, name, files) for name in (CONSUME_QUEUE, BATCH_QUEUES)}
    queues: dict[str, int] = {}
    for each in in_folders.values():
        queues |= {topic: max(last, queues.get(topic, 0)) for topic, last in each.items()}
    if queues:
        yield from _lacking_topics(folder, names, queues, files)
        yield from _wrong_types(folder, in_folders, files)
        yield from _lacking_offsets(folder, names, files)


def _lacking_timers(store: str, files: Files) -> Iterator[ConfigLack]:
    """Yield that no file tells which timers were delivered, though their queue has messages.

    A timer log with an entry breaks a law of its own then. Cost: the files of timers are read only
    without a `timercheck`.
    """
    folder = posixpath.join(store, CONFIG)
    path = posixpath.join(folder, TIMER_CHECK)
    with suppress(OSError):  # another check reports what can't be read
        if _has_bytes(path, files) or not _has_timer_messages(store, files):
            return
        beside = [
            posixpath.join(one, name) for one in (store, folder) for name in names_of(one, files)
        ]
        state = read_timer_state(store, files)
        if any(is_rocksdb(one, files) for one in beside) or (state and state.has_entries):
            return
        yield ConfigLack(
            path,
            "it is not here, or all its bytes are zero, the timer log has no entry, and the queue"
            f" of timers, {TIMER_TOPIC}, has messages: a broker reads this queue again from its"
            " begin, and delivers messages twice",
            hint=TIMERS,
        )


def _has_timer_messages(store: str, files: Files) -> bool:
    """Return whether a queue of timers has a unit. Raises: OSError."""
    topic = posixpath.join(store, CONSUME_QUEUE, TIMER_TOPIC)
    return any(
        named_offset(name) is not None and _has_bytes(posixpath.join(queue, name), files)
        for queue in folders_in(topic, files)
        for name in names_of(queue, files)
    )


def _has_bytes(path: str, files: Files) -> bool:
    """Return whether a file has another byte than zero. Raises: OSError."""
    status = status_of(files, path)
    return status is not None and first_byte_of(files, path, 0, status.size_bytes) is not None


def _queues(store: str, folder: str, files: Files) -> dict[str, int]:
    """Return the topics that have queues in files, each with the largest number of a queue."""
    if is_rocksdb(posixpath.join(store, folder), files):
        return {}
    return {
        name: last
        for name, last in queues_with_files(store, folder, files).items()
        if name not in SYSTEM_TOPICS and not name.startswith(OF_BROKERS)
    }


def _wrong_types(
    folder: str, in_folders: dict[str, dict[str, int]], files: Files
) -> Iterator[ConfigLack]:
    """Yield the folders with queues of topics to which the file of topics gives the other type."""
    path = posixpath.join(folder, TOPICS)
    read = path if read_config_file(path, files).is_whole else path + BACKUP_SUFFIX
    if not read_config_file(read, files).is_whole:
        return
    known, types = topics_in_file(read, files), queue_types_in_file(read, files)
    for name, topics in in_folders.items():
        of_batches = name == BATCH_QUEUES
        wrong = sorted(
            one
            for one in topics
            if one in known and (types.get(one) == BATCH_TYPE) is not of_batches
        )
        if wrong:
            count, other = len(wrong), "not " * of_batches
            words = f"{plural(count, 'topic')} with queues in {name}"
            words += f" {verb(count, 'has', 'have')} {other}the queue.type {BATCH_TYPE} in it, such"
            words += f" as {wrong[0]}: a broker ends its start at such a queue"
            yield ConfigLack(read, words, actual=count, hint=OTHER_TYPE, folder=name)


def _lacking_topics(
    folder: str, names: list[str], queues: dict[str, int], files: Files
) -> Iterator[ConfigLack]:
    path = posixpath.join(folder, TOPICS)
    read = path if read_config_file(path, files).is_whole else path + BACKUP_SUFFIX
    is_whole = read_config_file(read, files).is_whole
    siblings = _siblings(names, TOPICS)
    if not is_whole and ({TOPICS, TOPICS + BACKUP_SUFFIX} & {*names} or not siblings):
        return
    known = topics_in_file(read, files) if is_whole else {}
    lacking = sorted(queues.keys() - known.keys())
    if lacking:
        count = len(lacking)
        words = f"{plural(count, 'topic')} that {verb(count, 'has', 'have')} queues here"
        words += f" {verb(count, 'is', 'are')} not in it, such as {lacking[0]}"
        if not is_whole:
            words = f"it is not here, beside {siblings}, and {plural(count, 'topic')}"
            words += f" {verb(count, 'has', 'have')} queues, such as {lacking[0]}"
        better = [
            one
            for one in (TOPICS + WRITTEN_SUFFIX, TOPICS + BACKUP_SUFFIX)
            if one in names and not {*lacking}.isdisjoint(_topics(folder, one, files))
        ]
        words += f": a broker starts {without(TOPICS)}{_named(better)}"
        yield ConfigLack(read if is_whole else path, words, actual=count)
    fewer = sorted(
        (topic, last, known[topic])
        for topic, last in queues.items()
        if 0 <= known.get(topic, -1) <= last
    )
    for topic, last, count in fewer:
        words = f"topic {topic} has {plural(count, 'read queue')} in it, and queue {last} is here:"
        words += " no consumer reads the messages in the queues from there on"
        yield ConfigLack(read, words, f"more than {last}", count, FEWER)


def _lacking_offsets(folder: str, names: list[str], files: Files) -> Iterator[ConfigLack]:
    path = posixpath.join(folder, CONSUMER_OFFSETS)
    siblings = _siblings(names, CONSUMER_OFFSETS)
    own = read_config_file(path, files)
    others = (CONSUMER_OFFSETS + WRITTEN_SUFFIX, CONSUMER_OFFSETS + BACKUP_SUFFIX)
    better = [
        one
        for one in others
        if one in names and offsets_in_file(posixpath.join(folder, one), files)
    ]
    if own.is_whole and better and not offsets_in_file(path, files):
        words = "it has no offset, and a broker reads it and not its backup"
    elif siblings and not {CONSUMER_OFFSETS, CONSUMER_OFFSETS + BACKUP_SUFFIX} & {*names}:
        words = f"it is not here, beside {siblings}"
    else:
        return
    words += f": a broker starts {without(CONSUMER_OFFSETS)}{_named(better)}"
    yield ConfigLack(path, words)


def _topics(folder: str, name: str, files: Files) -> dict[str, int]:
    return topics_in_file(posixpath.join(folder, name), files)


def _siblings(names: list[str], own: str) -> str:
    """Return the names of the other state files of a broker, joined by "and".

    The text is empty if fewer than `SIBLINGS_MIN` of them are there.
    """
    others = [one for one in (TOPICS, CONSUMER_OFFSETS, GROUPS, DELAY_OFFSETS) if one != own]
    found = [one for one in others if one in names]
    return " and ".join(found) if len(found) >= SIBLINGS_MIN else ""


def _named(better: list[str]) -> str:
    return (
        f"; {' and '.join(better)} beside it {'has' if len(better) == 1 else 'have'} some"
        * bool(better)
    )
