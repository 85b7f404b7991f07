# SPDX-License-Identifier: Apache-2.0
"""The one DefaultMessageStore of a JVM: it is never loaded or started, and opens no port.

Upstream: org.apache.rocketmq.store.DefaultMessageStore.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

from jpype import JBoolean, JInt, JProxy

from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.rocketmq.java_objects import OLD_UNTIL, store_class

STORE = "org.apache.rocketmq.store."
"""The package."""


class IdleStore:
    """The one store of a JVM, which is never loaded or started; services borrow its options."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self.options = store_class(jvm, "config.MessageStoreConfig")()
        self.options.setStorePathRootDir(os.path.join(os.environ.get("TMPDIR", "/tmp"), "store"))
        self.java = new_store(jvm, self.options)

    def with_log(self, folder: str) -> Any:
        """Let the store have the commit log of a folder, loaded, and return it."""
        files = Path(folder, "commitlog")
        sizes = [file.stat().st_size for file in sorted(files.iterdir())] if files.is_dir() else []
        self.options.setStorePathRootDir(folder)
        self.options.setStorePathCommitLog(str(files))
        if sizes:
            set_log_size(self.options, sizes[0])
        log = self._jvm.java(f"{STORE}CommitLog")(self.java)
        log.load()
        self._jvm.set_field(self.java, "commitLog", log)
        self._jvm.set_field(self.java, "shutdown", JBoolean(False))  # a log that is asked needs it
        return log

    def place(self, folder: str, hash_slot_num: int, index_num: int, checkpoint: Any) -> None:
        """Let the next service have this folder, these numbers and this checkpoint."""
        self.options.setStorePathRootDir(folder)
        self.options.setMaxHashSlotNum(JInt(hash_slot_num))
        self.options.setMaxIndexNum(JInt(index_num))
        self._jvm.set_field(self.java, "storeCheckpoint", checkpoint)


def new_store(jvm: Jvm, options: Any) -> Any:
    """Return a new DefaultMessageStore with these options."""
    number, kind = jvm.release.number, store_class(jvm, "DefaultMessageStore")
    if number < OLD_UNTIL:
        return kind(options, _statistics(jvm))
    topics = (jvm.java("java.util.concurrent.ConcurrentHashMap")(),)
    return kind(
        options,
        _statistics(jvm),
        JProxy(f"{STORE}MessageArrivingListener", dict={"arriving": lambda *_: None}),
        jvm.java("org.apache.rocketmq.common.BrokerConfig")(),
        *(topics if number >= (5, 1, 1) else ()),
    )


@cache
def _statistics(jvm: Jvm) -> Any:
    """Return the statistics of all stores of a JVM: each would keep threads for ever."""
    made = store_class(jvm, "stats.BrokerStatsManager")
    return made("oracle", False) if jvm.release.number >= (4, 9) else made("oracle")


def set_log_size(options: Any, size: int) -> None:
    """Set how long a file of the log is."""
    setter = getattr(options, "setMappedFileSizeCommitLog", None)
    (setter or options.setMapedFileSizeCommitLog)(JInt(size))  # so up to 4.3.2


@cache
def store_of(jvm: Jvm) -> IdleStore:
    """Return the store of a JVM, made at the first call."""
    return IdleStore(jvm)
