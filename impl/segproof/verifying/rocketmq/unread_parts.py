# SPDX-License-Identifier: Apache-2.0
"""What a broker keeps in its store and no check reads, each with the reason.

Upstream: RocketMQ 5.5.1: StorePathConfigHelper, MessageStoreConfig, MessageRocksDBStorage,
CompactionStore, TimerMessageStore, RocksDBConfigManager.
Laws: DISK-1, RMQDISK-41.
"""

import posixpath
from collections.abc import Iterable, Iterator
from typing import Final

from segproof.files import NOT_REGULAR, Files, status_of
from segproof.findings import Severity
from segproof.inventory.loose import LOST_AND_FOUND
from segproof.reading.config_file import CONFIG, config_files_in, is_known_config
from segproof.reading.file_contents import is_from_fsck
from segproof.reading.file_names import is_known_in_data_directory, read_partition_name
from segproof.reading.folder_names import has_folder, names_of
from segproof.reading.log_rows import log_in_store
from segproof.reading.store_layouts import is_rocksdb, rocksdb_lacks
from segproof.reading.store_paths import (
    GUESS_FILE,
    PARTS,
    has_partition,
    holds_segments,
    is_store_folder,
)
from segproof.reading.timer_log import TIMER_LOG
from segproof.reading.unfinished import VERBS
from segproof.reading.unread_places import (
    LOCK,
    LOST_BEGINNING,
    OTHER_ROWS,
    ROW_LEVELS,
    UNKNOWN,
    is_lock,
    why_unread,
)
from segproof.verifying.unnamed_files import (
    report_by_content,
    report_found_files,
)
from segproof.verifying.unread_files import ROCKETMQ, files_below, not_looked_into
from segproof.wording.reporting import Reporter

KNOWN_NAMES: Final = (*PARTS, "checkpoint", "abort", CONFIG, TIMER_LOG, GUESS_FILE)
"""What of a store is looked at."""
FILES: Final = frozenset(
    {LOCK, "timerwheel", "epochFileCheckpoint", "brokerIdentity", "config/broker.properties"}
)
"""Those of them that are files; `timercheck` is reported by the checks of timers."""
OF_TIMERS: Final = "it is compared with the timer log when its store is verified"
ALONE: Final = {
    "abort": "it is there while a broker runs, or after one died, and is judged with its store",
    "timerwheel": OF_TIMERS,
    "config/timercheck": OF_TIMERS,
    GUESS_FILE: "it says that numbers of the index are a guess, and is judged with its store",
}
"""Files of a store that are read only with the whole store, with the reason."""
OUTSIDE: Final = "a file of a commit log outside of the folder commitlog, where no broker reads it"


def report_unread_parts(store: str, files: Files, reporter: Reporter) -> None:
    """Report what is in the store, or in its folder `config`, and no check reads."""
    log_files = log_in_store(store, files)
    outside = set() if log_files is None else {one.path for one in log_files.log_files}
    for name in _unread_names(store, files):
        path = posixpath.join(store, name)
        report, reason = reporter.at(path, shown_by=store), why_unread(name, path, files)
        reason = OUTSIDE if path in outside else reason
        if _is_in_the_place_of_a_file(store, name, files):
            report.of_wrong_kind(NOT_REGULAR)
            continue
        if is_rocksdb(path, files) and rocksdb_lacks(path, files):
            report.add(
                ROCKETMQ, f"it was not looked into: {reason}", severity=Severity.WARNING,
                actual=files_below(path, files), hint=LOST_BEGINNING,
            )  # fmt: skip
        elif not _report_found(name, path, files, reporter):
            not_looked_into(report, reason, ROCKETMQ, files=files)
    folder = posixpath.join(store, "commitlog")
    report_found_files(folder, names_of(folder, files), files, reporter, is_all=False)


def _is_in_the_place_of_a_file(store: str, name: str, files: Files) -> bool:
    """Return whether a broker reads or writes a file of this name, and a folder has it."""
    if name not in FILES and not is_known_config(
        name.removeprefix(f"{CONFIG}/").removesuffix(".tmp")
    ):
        return False
    return has_folder(store, name, files)


def _report_found(name: str, path: str, files: Files, reporter: Reporter) -> bool:
    """Report what a file system check left in a store, by its content; return whether it did."""
    if name != LOST_AND_FOUND:
        report = reporter.at(path)
        return is_from_fsck(name) and report_by_content(report, files)
    names = names_of(path, files)
    told = report_found_files(path, names, files, reporter, is_all=False)
    for other in [one for one in names if one not in told]:
        not_looked_into(reporter.at(posixpath.join(path, other)), UNKNOWN, ROCKETMQ, files=files)
    return bool(names)


def report_file_of_other_row(path: str, reporter: Reporter) -> bool:
    """Report a single file that its folders show to be no log and no queue of units; return whether
    it is one.
    """
    folders = posixpath.abspath(path).split("/")[-1 - ROW_LEVELS : -1]
    reason = next((OTHER_ROWS[name] for name in reversed(folders) if name in OTHER_ROWS), None)
    if reason is not None:
        not_looked_into(reporter.at(path), reason, ROCKETMQ, is_all=True)
    return reason is not None


def report_file_of_store(path: str, files: Files, reporter: Reporter) -> bool:
    """Report a single file of a store that is not read by itself; return whether it is one."""
    folder, name = posixpath.split(posixpath.abspath(path))
    status = status_of(files, path)
    if status is None or status.is_directory:
        return False
    if posixpath.basename(folder) == CONFIG:
        folder, name = posixpath.dirname(folder), f"{CONFIG}/{name}"
    reason = ALONE.get(name) or why_unread(name, path, files)
    if name == LOCK and is_lock(path, files):
        reason = "it is a broker's lock file"
    if reason == UNKNOWN or not is_store_folder(folder, files):
        return False
    not_looked_into(reporter.at(path), reason, ROCKETMQ, is_all=True)
    return True


def has_queues_in_rocksdb(store: str, names: Iterable[str], files: Files) -> bool:
    """Return whether a store keeps queues in RocksDB, in `consumequeue` or beside it."""
    folders = (name for name in names if name.startswith("consumequeue"))
    return any(is_rocksdb(posixpath.join(store, name), files) for name in folders)


def _unread_names(store: str, files: Files) -> Iterator[str]:
    """Yield the names, below the store, of what is not read."""
    is_kafkas = has_partition(store, files)
    for name in names_of(store, files):
        path = posixpath.join(store, name)
        is_queues = name == "consumequeue" and is_rocksdb(path, files)
        is_told = name in KNOWN_NAMES or name in VERBS  # these marks have a law of their own
        is_told |= is_kafkas and _is_read_as_kafkas(name, path, files)
        if is_queues or not (is_told or (name == LOCK and is_lock(path, files))):
            yield name
    inside = names_of(posixpath.join(store, CONFIG), files)
    read = config_files_in(inside)
    for name in inside:
        if name.removesuffix(".bak") not in read:
            yield posixpath.join(CONFIG, name)


def _is_read_as_kafkas(name: str, path: str, files: Files) -> bool:
    """Return whether the checks of Kafka read, or report, what is beside partitions."""
    is_named = is_known_in_data_directory(name) or read_partition_name(name) is not None
    return is_named or holds_segments(path, files)
