# SPDX-License-Identifier: Apache-2.0
"""Why what a broker keeps in its store is not read.

Upstream: RocketMQ 5.5.1: StorePathConfigHelper, MessageStoreConfig, MessageRocksDBStorage,
CompactionStore, TimerMessageStore, RocksDBConfigManager.
"""

import re
from contextlib import closing
from typing import Final

from segproof.files import Files
from segproof.reading.store_layouts import is_rocksdb, rocksdb_lacks
from segproof.reading.timer_state import WHEEL_SNAPSHOT
from segproof.reading.unread_places import OTHER_ROWS

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
