# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's DefaultMessageStore as the harness calls it: one life for each opening.

Upstream: org.apache.rocketmq.store.DefaultMessageStore, which recovers while it loads.
The store works on a copy of the directory, of which the folder of the index is taken back: what
else it writes, the model leaves alone. It is started only where its release may then read the log
on from somewhere, since starting and ending takes seconds: up to 5.1 after a clean exit.
What is not compared: the name of an index file that a life makes is the time of the computer; it
gets the name of the subject's clock.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from jpype import JInt, JLong

from segproof.errors import IndexClosedError
from segproof_harness.releases.jvm import Adapter
from segproof_harness.releases.rocketmq.idle_store import STORE, new_store, set_log_size
from segproof_harness.releases.rocketmq.index_file import JavaFile
from segproof_harness.releases.rocketmq.java_objects import give_back_files, java_text, store_class
from segproof_harness.releases.rocketmq.loopback import stay_on_loopback
from segproof_harness.releases.rocketmq.store_checkpoint import JavaCheckpoint
from segproof_model.rocketmq.broker.index_service import file_name_of

DISPATCHES_SINCE = (5, 3, 2)
"""From here on a recovery tells the index what it reads, also after a clean exit."""
DISPATCH_SECONDS = 20.0
PAUSE_SECONDS = 0.001
QUEUE_FILE_SIZE = 100
PHYSICAL_OFFSET = 28
"""Where a message says at which offset of the log it lies."""
STORAGE = "messageRocksDBStorage"
SERVICES = ("allocateMappedFileService", STORAGE, "compactionService")
"""What holds files or threads of a store from its constructor on."""


class MessageStore(Adapter):
    """The message store."""

    def __init__(self, store: Any, folder: str, is_started: bool) -> None:
        self._store = store
        self._folder = folder
        self._is_started = is_started

    @classmethod
    def open(
        cls, store_path: str, config: Any, *, files: Any, time: Callable[[], int], zone: Any
    ) -> "MessageStore":
        """Make the checkpoint; load a store on a copy, start it if need be; take the index back."""
        checkpoint = store_class(cls.jvm, "StoreCheckpoint")(java_text(f"{store_path}/checkpoint"))
        JavaCheckpoint(cls.jvm, checkpoint).give_back()
        made = tempfile.mkdtemp(prefix="life-")
        folder = f"{made}/store"
        shutil.copytree(store_path, folder)
        is_clean = not os.path.exists(f"{folder}/abort")
        store = cls._made(folder, config)
        starts = is_clean and cls.jvm.release.number < DISPATCHES_SINCE
        opened = cls(store, made, starts)
        files.handles.append(opened)
        is_loaded = bool(store.load())
        if is_loaded and starts:
            stay_on_loopback(cls.jvm, store)
            store.start()
            opened._wait()
        _take_back(f"{folder}/index", f"{store_path}/index", file_name_of(time()))
        if not is_loaded:
            opened._is_started = False
            raise IndexClosedError("the store could not be loaded")
        return opened

    @classmethod
    def _made(cls, folder: str, config: Any) -> Any:
        options = cls.jvm.java(f"{STORE}config.MessageStoreConfig")()
        options.setStorePathRootDir(folder)
        options.setStorePathCommitLog(f"{folder}/commitlog")
        options.setMaxHashSlotNum(JInt(config.max_hash_slot_num))
        options.setMaxIndexNum(JInt(config.max_index_num))
        options.setMessageIndexEnable(bool(config.message_index_enable))
        options.setMessageIndexSafe(bool(config.message_index_safe))
        setter = getattr(options, "setMappedFileSizeConsumeQueue", None)
        (setter or options.setMapedFileSizeConsumeQueue)(JInt(QUEUE_FILE_SIZE))  # so up to 4.3.2
        set_log_size(options, config.mapped_file_size_commit_log)
        return new_store(cls.jvm, options)

    def _wait(self) -> None:
        """Wait until the index has all messages. Raises: TimeoutError."""
        end = time.monotonic() + DISPATCH_SECONDS
        while int(self._store.dispatchBehindBytes()) > 0:
            if time.monotonic() > end:
                raise TimeoutError(f"not dispatched after {DISPATCH_SECONDS} s")
            time.sleep(PAUSE_SECONDS)

    def query_offset(
        self, topic: str, key: str, max_num: int, begin: int, end: int
    ) -> tuple[int, ...]:
        """Ask the index service of the store."""
        service = self._field("indexService")
        window = JInt(max_num), JLong(begin), JLong(end)
        found = service.queryOffset(java_text(topic), java_text(key), *window)
        return tuple(map(int, found.getPhyOffsets()))

    def query_message(
        self, topic: str, key: str, max_num: int, begin: int, end: int
    ) -> tuple[tuple[int, ...], int, int]:
        """Ask the store; return where the messages lie, and what the index says of its last one."""
        window = JInt(max_num), JLong(begin), JLong(end)
        found = self._store.queryMessage(java_text(topic), java_text(key), *window)
        places = tuple(int(one.getLong(PHYSICAL_OFFSET)) for one in found.getMessageBufferList())
        found.release()
        update = found.getIndexLastUpdateTimestamp(), found.getIndexLastUpdatePhyoffset()
        return places, int(update[0]), int(update[1])

    def close(self) -> None:
        """End the life: the store is shut down if it was started, and its files are given back."""
        if self._is_started:
            self._store.shutdown()
        calls: list[Callable[[], object]] = [partial(self._end, name) for name in SERVICES]
        calls += [
            lambda: self.jvm.field(self._field(STORAGE), "scheduler").shutdownNow(),
            lambda: give_back_files(self.jvm, self._store.getCommitLog()),
            self._give_back_queues,
            self._give_back_indexes,
            lambda: JavaCheckpoint(self.jvm, self._store.getStoreCheckpoint()).give_back(),
            lambda: self._field("lockFile").close(),
        ]
        for give_back in calls:
            with contextlib.suppress(Exception):  # not there, or gone already: its life is over
                give_back()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _field(self, name: str) -> Any:
        return self.jvm.field(self._store, name)

    def _end(self, service: str) -> None:
        self._field(service).shutdown()

    def _give_back_queues(self) -> None:
        for queues in self._store.getConsumeQueueTable().values():
            for queue in queues.values():
                give_back_files(self.jvm, queue)

    def _give_back_indexes(self) -> None:
        for file in self.jvm.field(self._field("indexService"), "indexFileList"):
            JavaFile(self.jvm, file).give_back()


def _take_back(index: str, target: str, name: str) -> None:
    """Make a folder of index files what a life has left; give the file that it made its name."""
    if not os.path.isdir(index):
        return
    before = set(os.listdir(target)) if os.path.isdir(target) else set()
    left = set(os.listdir(index))
    for gone in before - left:
        os.remove(f"{target}/{gone}")
    for file in sorted(left):
        if os.path.isdir(f"{index}/{file}"):
            continue
        Path(target).mkdir(exist_ok=True)
        shutil.copyfile(f"{index}/{file}", f"{target}/{file if file in before else name}")
