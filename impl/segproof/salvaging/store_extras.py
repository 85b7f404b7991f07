# SPDX-License-Identifier: Apache-2.0
"""What a salvage brings along of a store beside its messages: configuration and timers.

Files of JSON that no broker can read are kept under another name, since with them its start may
fail. The timer log, the timer wheel and their state belong together: all are copied, or none.
A topic's queues of batches are copied if each of their units leads to a message that was kept, but
for the last ones of a queue that lead beyond the end of the new log: the copy ends before these.
Everything else in the store is named as left out. A link may lead to any folder of the machine: of
`config` by one only what a broker reads is copied, and no folder below is entered by a link.

Upstream: RocketMQ 5.5.1: ConfigManager.load, TimerMessageStore.recover.
Laws: RMQDISK-41, RMQDISK-43, RMQDISK-45.
"""

import errno
import os
import posixpath
from collections.abc import Mapping
from contextlib import closing
from typing import Final

from segproof.counts import plural, verb
from segproof.files import NOT_REGULAR, File, ReadOnlyFile, SharedFiles
from segproof.inventory.loose import ASKED_MAX, LOST_AND_FOUND
from segproof.reading.batch_queues import (
    BATCH_QUEUES,
    BatchTopics,
    batch_files,
    batch_topics,
)
from segproof.reading.config_file import (
    BACKUP_SUFFIX,
    CONFIG,
    ConfigFile,
    config_files_in,
    read_config_file,
    without,
)
from segproof.reading.config_lacks import lacks_of_config
from segproof.reading.file_contents import content_of, is_from_fsck
from segproof.reading.folder_names import has_folder, names_of
from segproof.reading.store_layouts import is_rocksdb
from segproof.reading.store_paths import is_partition
from segproof.reading.timer_log import TIMER_LOG
from segproof.reading.timer_state import TimerState, damaged_files, read_timer_state, timer_faults
from segproof.reading.unfinished import VERBS
from segproof.reading.unread_places import LOCK, UNREAD_NAMES, why_unread
from segproof.rebuilding.safe_places import make_directory
from segproof.rocketmq.commit_log import CommitLog, named_offset
from segproof.rocketmq.consume_queue import CONSUME_QUEUE
from segproof.salvaging.batch_queue_units import LedUnits, led_units

__all__ = ["Extras"]

BROKEN_SUFFIX: Final = ".broken"
"""Added to the name of a copy that no broker can read: no broker reads the copy either."""
TIMER_STATE: Final = ("timercheck", "timermetrics", "timermetrics.bak")
"""Files in `config` that belong to the timer log."""
MADE_NEW: Final = frozenset(
    {"commitlog", "index", "consumequeue", "checkpoint", "abort", LOCK, *VERBS}
)
"""Names in a store whose content the salvage makes new, or that hold nothing."""
QUEUE_FOLDERS: Final = frozenset({"consumequeue", "consumequeue_r", "consumequeue_rocksdb"})
"""Names under which a broker keeps queues in RocksDB."""
COPIED_BYTES: Final = 1 << 20
NO_QUEUES: Final = (
    "segproof makes no queues of batches, and a broker would end its start at an ordinary one. On"
    " the new store no consumer reads the messages of this topic, and its next message gets number"
    " 0: look for its queues on a slave or in a backup, and keep producers of this topic away until"
    " then"
)
"""What it means that the queues of batches of a topic are not in the new store."""


class Extras:
    """Copies what lies beside the messages of one store. Call the methods in their order."""

    def __init__(self, store: str, target: str, files: SharedFiles) -> None:
        self._store = store
        self._target = target
        self._files = files
        self._made: set[str] = set()
        """Folders to sync: those with copies, and those above that were made."""
        self.timers_beyond = 0
        """Timers that lead beyond the end of the log, which may have lost it."""
        self.left_out: list[str] = []
        """Files whose content is not in the new store, or not under its name, with the reason."""
        self.config_lacks: list[str] = []
        """What the copied files of `config` lack, and how a broker starts on the new store."""
        self.has_database_of_queues = False
        """Whether the old store has queues in RocksDB."""

    def bring_config(self) -> None:
        """Copy the folder `config`, without the state of timers. Raises: OSError of the target."""
        folder = posixpath.join(self._store, CONFIG)
        names = [name for name in names_of(folder, self._files) if name not in TIMER_STATE]
        read, is_linked = config_files_in(names), _is_link(folder)
        for name in names:
            path = posixpath.join(folder, name)
            base = name.removesuffix(BACKUP_SUFFIX)
            if base in read:
                self._bring_json(name, base, path)
            elif is_linked or _is_link(path):
                self._leave_linked(path, folder if is_linked else path)
            elif is_rocksdb(path, self._files):
                self._bring_folder(posixpath.join(CONFIG, name))
            else:
                self._copy(posixpath.join(CONFIG, name))
        self._tell_empty_states(folder, read)
        for one in lacks_of_config(self._store, self._files):
            if one.folder == CONSUME_QUEUE:  # those queues are in no new store
                continue
            self.config_lacks.append(f"{one.path}: {one.words}")

    def _bring_json(self, name: str, base: str, path: str) -> None:
        try:
            found = read_config_file(path, self._files)
        except OSError as error:
            self.left_out.append(f"{path}: {error.strerror or error}")
            return
        if not found.is_broken:
            self._copy(posixpath.join(CONFIG, name))
            return
        new = posixpath.join(CONFIG, name + BROKEN_SUFFIX)
        if self._copy(posixpath.join(CONFIG, name), new):
            self.left_out.append(f"{path}: {found.words}; kept as {new}, which no broker reads")

    def _tell_empty_states(self, folder: str, read: list[str]) -> None:
        """Tell what a broker begins without, since neither a file nor its backup can be read."""
        for name in read:
            path = posixpath.join(folder, name)
            pair: list[ConfigFile] = []
            for one in (path, path + BACKUP_SUFFIX):
                try:
                    pair.append(read_config_file(one, self._files))
                except OSError:
                    return
            own, backup = pair
            if not any(one.is_whole for one in pair):
                words = f"a broker starts on the new store {without(name)}"
                self.config_lacks.append(f"{path}: {words}")
            elif own.is_there and not own.is_whole:
                bak = posixpath.basename(backup.path)
                words = f"a broker reads {bak} on the new store, with the state before the last"
                self.config_lacks.append(f"{path}: {words} write")

    def bring_timers(self, end: int, *, is_whole: bool) -> None:
        """Copy the timer log and what belongs to it, if each message that it leads to is kept.

        `end` is the offset after the last message of the new log; `is_whole` says that the new log
        lacks none of the old messages. Raises: OSError of the target.
        """
        names = [name for name in names_of(self._store, self._files) if name.startswith("timer")]
        config = names_of(posixpath.join(self._store, CONFIG), self._files)
        names += [posixpath.join(CONFIG, name) for name in TIMER_STATE if name in config]
        if not names:
            return
        try:
            self._check_timer_log()
            state = read_timer_state(self._store, self._files, log_end=end) or TimerState()
            beyond = self.timers_beyond = state.beyond
            faults = [*timer_faults(state), *damaged_files(state, self._files)]
        except OSError as error:
            beyond, why = 0, f"the timer log can't be read: {error.strerror or error}"
        else:
            why = "messages are lost, and the timers of some may be"
            if beyond:
                why = f"{plural(beyond, 'timer')} {verb(beyond, 'leads', 'lead')} beyond the log"
            elif is_whole:
                why = "; ".join(f"{one.name}: {one.words}" for one in faults)
        if why:
            self.left_out.append(
                f"{self._store}: {', '.join(names)}: none of them was copied, since {why}. On the"
                " new store a broker sets the timers again by the messages in the log, and delivers"
                " past ones once more"
            )
            return
        for name in names:
            if name == TIMER_LOG:
                self._bring_timer_log()
            else:
                self._copy(name)

    def _check_timer_log(self) -> None:
        """Raise OSError if a name can't be looked at, or a file of the timer log is no file."""
        folder = posixpath.join(self._store, TIMER_LOG)
        for name in names_of(folder, self._files):
            path = posixpath.join(folder, name)
            status, start = self._files.status(path), named_offset(name)
            if start is not None and status is not None and not status.is_regular:
                raise OSError(errno.EISDIR, NOT_REGULAR, path)

    def bring_batch_queues(self, log: CommitLog, end: int) -> None:
        """Copy the queues of batches of each topic, unless one of its units leads to no message.

        `log` is the new one, and `end` the offset after its last message: each queue is copied
        without its last units that lead beyond. Raises: OSError of the target.
        """
        folder = posixpath.join(self._store, BATCH_QUEUES)
        found = batch_topics(self._store, self._files)
        for topic in sorted(found.topics | found.with_files):
            path = posixpath.join(folder, topic)
            reason, led = self._why_left(topic, found), LedUnits(0, 0, {})
            if not reason:
                try:
                    led = led_units(self._store, topic, log, end, self._files)
                except OSError as error:
                    reason = f"{error.strerror or error}; {NO_QUEUES}"
            if led.lost:
                reason = (
                    f"{plural(led.lost, 'unit')} of it {verb(led.lost, 'leads', 'lead')} to no"
                    " message of its queue that was kept: the message is lost, or the unit is"
                    f" damaged; {NO_QUEUES}"
                )
            if reason:
                self.left_out.append(f"{path}: it was not copied: {reason}")
                continue
            self._bring_topic(topic, led.cuts)
            if led.beyond:
                self.left_out.append(f"{path}: {_words_of_units(led.beyond)}")
        for name in names_of(folder, self._files):
            if name not in found.with_files:
                path = posixpath.join(folder, name)
                self.left_out.append(f"{path}: it was not copied: no file of a queue is in it")

    def _why_left(self, topic: str, found: BatchTopics) -> str:
        """Return why the queues of batches of a topic are not copied, whatever their units are;
        empty if nothing speaks against it.
        """
        folder = posixpath.join(self._store, BATCH_QUEUES)
        for link in (folder, posixpath.join(folder, topic)):
            if topic in found.with_files and _is_link(link):
                return f"{link} is a link to {posixpath.realpath(link)}; {NO_QUEUES}"
        if topic not in found.topics:
            return "the topic has ordinary queues, and no queue.type BatchCQ in config"
        if topic not in found.with_files:
            return (
                "it has the queue.type BatchCQ in config, and no file of its queues is here;"
                f" {NO_QUEUES}"
            )
        return ""

    def _bring_topic(self, topic: str, cuts: Mapping[str, int]) -> None:
        """Copy the files of the queues of batches of a topic, each up to the byte in `cuts`."""
        for path in batch_files(self._store, topic, self._files):
            if _is_link(path) or _is_link(posixpath.dirname(path)):
                self._leave_linked(path, path if _is_link(path) else posixpath.dirname(path))
            elif cuts.get(path) != 0:  # else no unit of the file stays
                self._copy(posixpath.relpath(path, self._store), end=cuts.get(path))

    def leave_all(self) -> None:
        """Copy nothing, since no store is made, and tell it."""
        for name in (CONFIG, TIMER_LOG, BATCH_QUEUES):
            path = posixpath.join(self._store, name)
            if names_of(path, self._files):
                self.left_out.append(f"{path}: it was not copied: the log has no sound message")
        self.tell_others()

    def tell_others(self) -> None:
        """Tell what else is in the old store and in no file of the new one."""
        for name in names_of(self._store, self._files):
            path = posixpath.join(self._store, name)
            is_queues = name in QUEUE_FOLDERS and is_rocksdb(path, self._files)
            self.has_database_of_queues |= is_queues
            is_timer = name.startswith("timer") and name in (*UNREAD_NAMES, TIMER_LOG)
            is_made = name in MADE_NEW or name in (CONFIG, BATCH_QUEUES)
            if is_queues or not (is_made or is_timer):
                if self._tell_found(name, path):
                    continue
                reason = why_unread(name, path, self._files)
                if is_partition(path, self._files):
                    reason = "a partition of Kafka; save it by itself"
                self.left_out.append(f"{path}: it was not copied: {reason}")
            elif name in (CONFIG, TIMER_LOG) and not has_folder(self._store, name, self._files):
                self.left_out.append(f"{path}: it was not copied: it is no folder")

    def _tell_found(self, name: str, path: str) -> bool:
        """Tell what a file system check left, by its content; return whether any tells."""
        in_folder = names_of(path, self._files) if name == LOST_AND_FOUND else ()
        paths = [posixpath.join(path, one) for one in in_folder]
        told = 0
        for one in paths or [path] * is_from_fsck(name):
            content = content_of(one, self._files)
            if content is not None and told < ASKED_MAX:
                told += 1
                self.left_out.append(
                    f"{one}: it was not copied: by its content it is {content.words}; RMQDISK-41 of"
                    " `segproof verify` says how to look into it"
                )
        if 0 < told < len(paths):
            self.left_out.append(f"{path}: it was not copied: {len(paths) - told} more in it")
        return told > 0

    def _bring_folder(self, name: str) -> None:
        """Copy the files of a folder; a database of RocksDB has no folder in it."""
        for one in names_of(posixpath.join(self._store, name), self._files):
            self._copy(posixpath.join(name, one))

    def _bring_timer_log(self) -> None:
        folder = posixpath.join(self._store, TIMER_LOG)
        for name in names_of(folder, self._files):
            if named_offset(name) is None:
                path = posixpath.join(folder, name)
                self.left_out.append(f"{path}: it was not copied: it is no file of the timer log")
            else:
                self._copy(posixpath.join(TIMER_LOG, name))

    def _leave_linked(self, path: str, link: str) -> None:
        self.left_out.append(
            f"{path}: it was not copied: {link} is a link to {posixpath.realpath(link)}"
        )

    def _copy(self, name: str, new: str | None = None, end: int | None = None) -> bool:
        """Copy a file of the store durably; return whether it could be read.

        From the byte `end` on the copy has zeros.
        """
        source = posixpath.join(self._store, name)
        target = posixpath.join(self._target, new or name)
        try:
            status = self._files.status(source)
        except OSError as error:
            self.left_out.append(f"{source}: {error.strerror or error}")
            return False
        if status is None or not status.is_regular:
            self.left_out.append(f"{source}: no regular file")
            return False
        folder = os.path.dirname(target)
        if folder not in self._made:
            self._made |= {folder, *make_directory(folder, folder, self._files)}
        try:
            old = self._files.open(source)
        except OSError as error:
            self.left_out.append(f"{source}: {error.strerror or error}")
            return False
        with (
            closing(old),
            closing(self._files.open(target, writable=True, create=True)) as copy,
        ):
            self._copy_bytes(old, copy, status.size_bytes, end)
            copy.sync()
        return True

    def _copy_bytes(self, old: ReadOnlyFile, copy: File, size: int, until: int | None) -> None:
        """Copy what can be read up to the first bad block; holes stay holes.

        From the byte `until` on the copy has a hole.
        """
        for start, end in old.data_ranges(0, size if until is None else until):
            for position in range(start, end, COPIED_BYTES):
                try:
                    data = old.pread(min(COPIED_BYTES, end - position), position)
                except OSError as error:
                    self.left_out.append(
                        f"{old.path}: from byte {position} on: {error.strerror or error}"
                    )
                    return
                copy.pwrite(data, position)
        if copy.size() < size:
            copy.truncate(size)

    def sync_folders(self) -> None:
        """Make the names of what was copied durable. Raises: OSError."""
        for folder in sorted(self._made, reverse=True):
            self._files.sync_directory(folder)


def _words_of_units(count: int) -> str:
    """Return what it means that the last units of queues of batches were not copied."""
    lead, were = verb(count, "leads", "lead"), verb(count, "was", "were")
    return (
        f"{plural(count, 'unit')} at the end of its queues {lead} beyond the end of the new log,"
        f" and {were} not copied: the messages are lost, or what leads there is damaged. The"
        " queues end before, and the next messages of the topic get the same numbers: a consumer"
        " whose offset is beyond passes over them"
    )


def _is_link(path: str) -> bool:
    """Return whether the last part of a path is a link."""
    folder, name = posixpath.split(path)
    return posixpath.realpath(path) != posixpath.join(posixpath.realpath(folder), name)
