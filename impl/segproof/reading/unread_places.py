# SPDX-License-Identifier: Apache-2.0
"""A part of a layout that is not read, where it is named itself: which layout, and what to do.

Such a part is a folder or a file of a DLedger group, of a database of RocksDB, of Redpanda, of a
commit log over several folders, or of a part of a store that no check reads by itself. And why what
else a broker keeps in its store is not read.

Upstream: RocketMQ 5.5.1: DLedgerCommitLog, MessageRocksDBStorage, CompactionStore,
TimerMessageStore, StorePathConfigHelper; DLedger 0.3: DLedgerMmapFileStore; RocksDB 9: filename.cc.
Laws: DISK-46, RMQDISK-41, RMQDISK-42.
"""

import posixpath
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Final, NamedTuple

from segproof.errors import InvalidArgumentError
from segproof.files import Files, FileStatus, status_of
from segproof.hints import Hint, reads
from segproof.reading.file_names import is_of_redpanda, segment_file
from segproof.reading.folder_names import names_of
from segproof.reading.store_layouts import (
    DLEDGER_MEMBER,
    holds_log,
    is_dledger,
    is_rocksdb,
    layout_around,
    rocksdb_lacks,
)
from segproof.reading.store_paths import LOG_NAME, has_partition, is_store_folder
from segproof.reading.timer_log import TIMER_LOG
from segproof.reading.timer_state import WHEEL_SNAPSHOT

OTHER_ROWS: Final = {
    TIMER_LOG: "the timer log is compared with the commit log when its store is verified",
    "compaction": "the logs and queues of compacted topics are not judged",
    "batchconsumequeue": "queues of batches are not judged",
    "consumequeue_ext": "what filters of consumers computed is not judged",
}
"""Folders whose files have names of 20 digits too, and are no log and no queue of units."""
ROW_LEVELS: Final = 5
"""Folders above such a file, up to the store."""
REDPANDA_WORDS: Final = "its batches have headers of their own, and segproof does not read them"
REDPANDA_HINT: Final = reads("read it with the tools of Redpanda, such as `rpk topic consume`")
UNREAD: Final = "which segproof does not read"
DATABASE: Final = f"a database of RocksDB, {UNREAD}"
DLEDGER_HINT: Final = reads(
    "leave it as it is, and compare the member with the others of its group"
)
WHOLE_STORE: Final = reads("nothing here: what is read of it is judged with the whole store")
ROCKSDB_HINT: Final = reads(
    "leave it as it is: no file of it can be read without the others. Give the path of the whole"
    " store, if it is a part of one: the commit log is read"
)
LOST_BEGINNING: Final = reads(
    "keep all its files, and look for the missing one in lost+found, in a backup or on a slave: it"
    " says which files belong to the database"
)
_OF_DATABASE = re.compile(
    r"[0-9]{6,19}\.(?:log|sst|blob)|(?:MANIFEST|OPTIONS)-[0-9]{6,}|CURRENT|IDENTITY|LOCK"
    r"|LOG(?:\.old(?:\.[0-9]+)?)?",
    re.ASCII,
)
LOCK: Final = "lock"
LOCK_WORDS: Final = (b"", b"lock")
"""What the lock file of a store holds."""
ROCKSDB_STORE: Final = "rocksdbstore"
"""The database of message keys, timers and transactions, from 5.4.0 on."""
UNREAD_NAMES: Final = {
    LOCK: "a broker's lock file holds the word lock, and this one does not",
    "timerwheel": "of its slots only the ends in the timer log are judged",
    "consumequeue_ext": OTHER_ROWS["consumequeue_ext"],
    "batchconsumequeue": OTHER_ROWS["batchconsumequeue"],
    "consumequeue_r": "queues that are kept in RocksDB are not judged",
    "consumequeue_rocksdb": "queues that are kept in RocksDB are not judged",
    ROCKSDB_STORE: "message keys, timers and transactions that are kept in RocksDB are not judged",
    "compaction": OTHER_ROWS["compaction"],
    "transaction": "the state table of transactions of old releases is not judged",
    "epochFileCheckpoint": "the epochs of masters are not judged",
    "brokerIdentity": "the identity of the broker for its controller is not judged",
    "config/timercheck": "of its numbers only the end of the timer log is judged",
    "config/broker.properties": "the configuration of the broker is not judged",
}
"""What a broker keeps in its store and no check reads, with the reason."""
_PATTERNS: Final = (
    (WHEEL_SNAPSHOT, "a saved state of the timer wheel, which is not judged"),
    (
        re.compile(r"config/.*\.broken"),
        "a salvage kept it under this name, since no broker can read it",
    ),
    (
        re.compile(r"config/.*\.tmp"),
        "a broker writes the newest state to it before it takes the name of its file",
    ),
    (re.compile(r"dledger-.*"), "the log of a DLedger member, which is not judged"),
)
UNKNOWN: Final = "segproof does not know what it is"
ROCKSDB: Final = "a database of RocksDB, which is not read"


class UnreadPlace(NamedTuple):
    """A place in a layout that is not read."""

    law: str
    words: str
    """Which layout it is, or a part of what."""
    hint: Hint
    is_layout: bool = True
    """Whether a law names the layout, and not a part of a store that is read."""


def unread_place(path: str, files: Files) -> UnreadPlace | None:
    """Return the layout that a path is a part of and that is not read; None if of none.

    A link is a part of the layout to which it leads. Raises: never.
    """
    status = status_of(files, path)
    if status is None:
        return None
    try:
        paths = dict.fromkeys((posixpath.abspath(path), posixpath.realpath(path)))
        return next(filter(None, (_unread_place(one, status, files) for one in paths)), None)
    except OSError:
        return None  # what can't be read is reported where it is read


def is_database(folder: str, names: Sequence[str], files: Files) -> bool:
    """Return whether a folder with these names is a database of RocksDB. Raises: never.

    A folder with a segment of Kafka is none: its files are judged. Of others little is asked.
    """
    if any(map(_is_segment, names)) or not any(map(_OF_DATABASE.fullmatch, names)):
        return False
    return is_rocksdb(folder, files)


def check_read(path: str, files: Files) -> None:
    """Return if a path is no part of a layout that is not read.

    Raises: InvalidArgumentError, which names the layout.
    """
    found = unread_place(path, files)
    if found is not None:
        hint = found.hint if found.is_layout else None
        raise InvalidArgumentError(found.words, path=path, hint=hint)


def _unread_place(path: str, status: FileStatus, files: Files) -> UnreadPlace | None:
    folder, name = (path, "") if status.is_directory else posixpath.split(path)
    names = names_of(folder, files)
    is_of_redpanda_here = any(map(is_of_redpanda, names)) and not _is_segment(name)
    if (
        is_of_redpanda_here
        and not is_store_folder(folder, files)
        and not has_partition(folder, files)
    ):
        words = f"the layout of Redpanda, in 1 place: {REDPANDA_WORDS}"
        return UnreadPlace("DISK-46", words, REDPANDA_HINT)
    return (
        _of_dledger(folder, name, names, files)
        or _of_rocksdb(folder, name, names, files)
        or (_of_several_paths(folder, names, files) if status.is_directory else None)
        or _of_store_part(path, files)
    )


def _of_dledger(folder: str, name: str, names: Sequence[str], files: Files) -> UnreadPlace | None:
    """Return the words of a DLedger group, of its folders and of the files in them."""
    above, own = posixpath.split(folder)
    has_files = any(map(LOG_NAME.fullmatch, names))
    part = own if own in ("data", "index") and has_files else ""
    group = above if part else folder
    if not (part or "data" in names) or not is_dledger(group, files):
        return None
    what = f"the {'log' if part == 'data' else 'index'} of DLedger"
    if not part:
        what = f"the directory of a group member of DLedger, {group}"
    if name:
        words = f"a file {'of' if part else 'in'} {what}"
    else:
        words = f"the folder of {what}" if part else what
    hint = DLEDGER_HINT if name else DLEDGER_MEMBER
    return UnreadPlace("RMQDISK-42", f"{words}, {UNREAD}", hint)


def _of_rocksdb(folder: str, name: str, names: list[str], files: Files) -> UnreadPlace | None:
    """Return the words of a database of RocksDB, or of a file of one."""
    if name and _OF_DATABASE.fullmatch(name) is None:
        return None
    if not is_database(folder, names, files):
        return None
    what = f"a file of a database of RocksDB, {folder}" if name else "a database of RocksDB"
    words = f"{what}, {UNREAD}"
    if lacks := rocksdb_lacks(folder, files):
        words += f"; it lacks {' and '.join(lacks)}, and no broker opens it so"
    return UnreadPlace("RMQDISK-42", words, LOST_BEGINNING if lacks else ROCKSDB_HINT)


def _is_segment(name: str) -> bool:
    """Return whether a file has the name of a segment that a broker of Kafka loads."""
    return segment_file(name) is not None and _OF_DATABASE.fullmatch(name) is None


def _of_several_paths(folder: str, names: Sequence[str], files: Files) -> UnreadPlace | None:
    """Return the words of a folder with files of a commit log that lies over several folders."""
    if not any(map(LOG_NAME.fullmatch, names)) or not holds_log(folder, files):
        return None
    if (layout := layout_around(folder, files)) is None:
        return None
    return UnreadPlace("RMQDISK-42", layout.words, layout.hint)


def _of_store_part(path: str, files: Files) -> UnreadPlace | None:
    """Return the words of a folder that no check reads by itself, or of a file in it."""
    above = path
    for _ in range(ROW_LEVELS + 1):
        above, name = posixpath.split(above)
        if name not in OTHER_ROWS or not is_store_folder(above, files):
            continue
        words = (
            f"{OTHER_ROWS[name]}; it is a part of a store of RocketMQ: give the path of the store,"
            f" {above}"
        )
        return UnreadPlace("RMQDISK-41", words, WHOLE_STORE, is_layout=False)
    return None


def why_unread(name: str, path: str, files: Files) -> str:
    """Return why no check reads something in a store; `name` is that below the store."""
    if is_rocksdb(path, files):
        of_queues = UNREAD_NAMES["consumequeue_rocksdb"] if name == "consumequeue" else ROCKSDB
        reason = UNREAD_NAMES.get(name, of_queues)
        lacks = " and ".join(rocksdb_lacks(path, files))
        return f"{reason}; it lacks {lacks}, and no broker opens it so" if lacks else reason
    if name in UNREAD_NAMES:
        return UNREAD_NAMES[name]
    return next((reason for pattern, reason in _PATTERNS if pattern.fullmatch(name)), UNKNOWN)


def is_lock(path: str, files: Files) -> bool:
    """Return whether a file holds what a broker writes into its lock file."""
    try:
        with closing(files.open(path)) as file:
            return file.pread(len(LOCK_WORDS[-1]) + 1, 0) in LOCK_WORDS
    except OSError:
        return False
