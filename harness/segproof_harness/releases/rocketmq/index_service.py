# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's IndexService as the harness calls it, on a store that is never started.

Upstream: org.apache.rocketmq.store.index.IndexService, with the StoreCheckpoint of its store.
What is not compared: the class names a new file by the time of the computer. Each such file gets
the name of the subject's clock as soon as the call has ended, on disk and in the class's fields.
The thread that flushes a full file is waited for. So no two files may be made at one time of the
clock; the description leaves such steps out (`is_asked`).
A call that makes files without an end does end, with an error, where the process may open no more;
how soon depends on the computer. It gets no answer, as if it went on.
"""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from jpype import JArray, JBoolean, JClass, JInt, JLong

from segproof_harness.releases.jvm import Adapter
from segproof_harness.releases.rocketmq.idle_store import store_of
from segproof_harness.releases.rocketmq.index_file import JavaFile, set_first_shutdown
from segproof_harness.releases.rocketmq.java_objects import (
    OLD_UNTIL,
    ClosedAtCrash,
    java_text,
    mapped_of,
    store_class,
)
from segproof_harness.releases.rocketmq.store_checkpoint import JavaCheckpoint
from segproof_model.rocketmq.broker.index_service import file_name_of

TOTAL_SIZE_SINCE = (5, 0)
TYPED_QUERY_SINCE = (5, 4)
FLUSHING = "FlushIndexFileThread"
THREADS_MAX = 200
FILES_MAX = 100
"""How many files a call may make that ends for another reason than that no more can be opened."""


class IndexService(Adapter):
    """The index service."""

    kinds: ClassVar[Mapping[str, str]] = {"java.lang.IllegalMonitorStateException": "lock-state"}
    left_out: ClassVar[frozenset[str]] = frozenset({"close"})

    def __init_subclass__(cls) -> None:
        """Leave out what the release of this JVM has not."""
        if "jvm" in vars(cls) and cls.jvm.release.number < TOTAL_SIZE_SINCE:
            cls.unobserved = frozenset({"total_size"})

    def __init__(self, service: Any, checkpoint: Any, folder: str, clock: Any) -> None:
        self._service = service
        self._checkpoint = checkpoint
        self._folder = folder
        self._clock = clock
        self._list = self.jvm.field(service, "indexFileList")
        self._held_at: list[tuple[Any, int]] = []
        """Files that `delete_expired_file` could not delete, and when it tried first."""

    @classmethod
    def open(
        cls,
        directory: str,
        hash_slot_num: int,
        index_num: int,
        *,
        files: Any,
        time: Any,
        zone: Any,
    ) -> "IndexService":
        """Open the checkpoint, and call the constructor."""
        store = store_of(cls.jvm)
        checkpoint = store_class(cls.jvm, "StoreCheckpoint")(java_text(f"{directory}/checkpoint"))
        store.place(directory, hash_slot_num, index_num, checkpoint)
        service = store_class(cls.jvm, "index.IndexService")(store.java)
        opened = cls(service, checkpoint, f"{directory}/index", time)
        files.handles.append(ClosedAtCrash(opened))
        return opened

    def give_back(self) -> None:
        """Give all memory and files back without another write, as the process's end would."""
        for file in self.index_files():
            file.give_back()
        self.store_checkpoint.give_back()

    def load(self, last_exit_ok: bool) -> bool:
        """Call load."""
        return bool(self._service.load(JBoolean(last_exit_ok)))

    def build_index(self, request: Any) -> None:
        """Call buildIndex."""
        made = self._request(request)
        if self.jvm.release.number < OLD_UNTIL:
            made = JArray(self.jvm.java("java.lang.Object"))([made])
        self._creating(lambda: self._service.buildIndex(made))

    def _request(self, request: Any) -> Any:
        properties = None
        if request.properties_map is not None:
            properties = self.jvm.java("java.util.HashMap")()
            for name, value in request.properties_map:
                properties.put(java_text(name), java_text(value))
        is_old = self.jvm.release.number < OLD_UNTIL
        return store_class(self.jvm, "DispatchRequest")(
            java_text(request.topic),
            JInt(0),
            JLong(request.commit_log_offset),
            JInt(request.msg_size),
            JLong(request.tags_code),
            JLong(request.store_timestamp),
            JLong(request.consume_queue_offset),
            java_text(request.keys),
            *(() if is_old else (java_text(request.uniq_key),)),
            JInt(request.sys_flag),
            JLong(request.prepared_transaction_offset),
            *(() if is_old else (properties,)),
        )

    def _creating(self, call: Callable[[], Any]) -> Any:
        """Call what may make a file, and give it the name that the clock says."""
        known = int(self._list.size())
        try:
            return call()
        finally:
            made = range(known, int(self._list.size()))
            if len(made) > FILES_MAX:
                never_answer()
            for position in made:
                self._rename(self._list.get(position))

    def _rename(self, java: Any) -> None:
        """Rename a file that was just made, and wait for the flush of the one before it."""
        wait_for_flush()
        mapped = mapped_of(self.jvm, java)
        name = file_name_of(self._clock())
        os.rename(str(java.getFileName()), f"{self._folder}/{name}")
        self.jvm.set_field(mapped, "fileName", java_text(f"{self._folder}/{name}"))
        self.jvm.set_field(mapped, "file", self.jvm.file(java_text(f"{self._folder}/{name}")))

    def query_offset(
        self,
        topic: str | None,
        key: str | None,
        max_num: int,
        begin: int,
        end: int,
        index_type: str | None,
    ) -> Any:
        """Call queryOffset; up to 5.3 there is no type."""
        typed = index_type is not None and self.jvm.release.number >= TYPED_QUERY_SINCE
        found = self._service.queryOffset(
            java_text(topic),
            java_text(key),
            JInt(max_num),
            JLong(begin),
            JLong(end),
            *((java_text(index_type),) if typed else ()),
        )
        return (
            tuple(map(int, found.getPhyOffsets())),
            int(found.getIndexLastUpdateTimestamp()),
            int(found.getIndexLastUpdatePhyoffset()),
        )

    def get_and_create_last_index_file(self) -> JavaFile:
        """Call getAndCreateLastIndexFile."""
        return JavaFile(self.jvm, self._creating(self._service.getAndCreateLastIndexFile))

    def retry_get_and_create_index_file(self) -> JavaFile:
        """Call retryGetAndCreateIndexFile."""
        return JavaFile(self.jvm, self._creating(self._service.retryGetAndCreateIndexFile))

    def flush(self, position: int) -> None:
        """Call flush with the file at a position of the list, or with none."""
        is_listed = 0 <= position < int(self._list.size())
        self._service.flush(self._list.get(JInt(position)) if is_listed else None)

    def delete_expired_file(self, offset: int) -> None:
        """Call deleteExpiredFile."""
        now_ms = self._clock()
        for file, held_at in self._held_at:
            set_first_shutdown(self.jvm, file.mapped, now_ms - held_at)
        self._service.deleteExpiredFile(JLong(offset))
        known = {file.java: held_at for file, held_at in self._held_at}
        held = [file for file in self.index_files() if not file.is_available]
        self._held_at = [(file, known.get(file.java, now_ms)) for file in held]

    def index_files(self) -> tuple[JavaFile, ...]:
        """Return the files of the list."""
        return tuple(JavaFile(self.jvm, file) for file in self._list)

    @property
    def store_checkpoint(self) -> JavaCheckpoint:
        """The checkpoint of the store."""
        return JavaCheckpoint(self.jvm, self._checkpoint)

    @property
    def total_size(self) -> int:
        """What getTotalSize says."""
        return int(self._service.getTotalSize())

    def destroy(self) -> None:
        """Call destroy."""
        self._service.destroy()

    def shutdown(self) -> None:
        """Call shutdown."""
        self._service.shutdown()

    def close(self) -> None:
        """Shut service and checkpoint down before opening again."""
        self._service.shutdown()
        self._checkpoint.shutdown()


def wait_for_flush() -> None:
    """Wait until no thread flushes a full file."""
    kind = JClass("java.lang.Thread")
    threads = JArray(kind)(THREADS_MAX)
    for position in range(kind.enumerate(threads)):
        if str(threads[position].getName()).endswith(FLUSHING):
            threads[position].join()


def never_answer() -> NoReturn:
    """Wait for the parent to end this process."""
    while True:
        threading.Event().wait()
