# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's IndexFile as the harness calls it.

Upstream: org.apache.rocketmq.store.index.IndexFile; before 4.0 below com.alibaba.
What is not asked: anything that touches memory which the class has given back, since the JVM dies
of it; the adapter answers `unmapped` there. A clock for `destroy` is the class's own field: the
time of the first try is set back by as much as the subject's clock has gone on since.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn

from jpype import JInt, JLong

from segproof.errors import IndexClosedError
from segproof_harness.releases.jvm import Adapter
from segproof_harness.releases.rocketmq.java_objects import (
    ClosedAtCrash,
    java_text,
    mapped_of,
    store_class,
)

SHUTDOWN_SINCE = (5, 0)
LOCK_ARGUMENT_UNTIL = (4, 9, 3)
"""Up to here a query has a sixth argument, which means nothing."""
OURS = frozenset({"put_keys", "select_phy_offset_many", "list_entries", "close"})


def refuse() -> NoReturn:
    """Raise what stands for the death of the JVM."""
    raise IndexClosedError("the class has given the memory back: the JVM would die")


class JavaFile:
    """The accessors of an IndexFile of Java, by reflection where it has none."""

    def __init__(self, jvm: Any, file: Any) -> None:
        self.java = file
        self.mapped = mapped_of(jvm, file)
        self._field: Callable[[str], Any] = partial(jvm.field, file)

    _header = cached_property(lambda self: self._field("indexHeader"))
    hash_slot_num = cached_property(lambda self: int(self._field("hashSlotNum")))
    index_num = cached_property(lambda self: int(self._field("indexNum")))
    file_name = property(lambda self: str(self.java.getFileName()))
    file_size = property(lambda self: int(self.mapped.getFileSize()))
    begin_timestamp = property(lambda self: int(self.java.getBeginTimestamp()))
    end_timestamp = property(lambda self: int(self.java.getEndTimestamp()))
    begin_phy_offset = property(lambda self: int(self._header.getBeginPhyOffset()))
    end_phy_offset = property(lambda self: int(self.java.getEndPhyOffset()))
    hash_slot_count = property(lambda self: int(self._header.getHashSlotCount().get()))
    index_count = property(lambda self: int(self._header.getIndexCount()))
    ref_count = property(lambda self: int(self.mapped.getRefCount()))
    is_available = property(lambda self: bool(self.mapped.isAvailable()))

    def is_write_full(self) -> bool:
        """Call isWriteFull."""
        return bool(self.java.isWriteFull())

    def give_back(self) -> None:
        """Give memory and file back without another write, as the end of the process would."""
        self.mapped.shutdown(JLong(0))
        self.mapped.shutdown(JLong(0))
        self.mapped.getFileChannel().close()


class IndexFile(Adapter, JavaFile):
    """The index file."""

    left_out: ClassVar[frozenset[str]] = OURS

    def __init_subclass__(cls) -> None:
        """Leave out what the release of this JVM has not."""
        if "jvm" in vars(cls) and cls.jvm.release.number < SHUTDOWN_SINCE:
            cls.left_out = OURS | {"shutdown"}

    def __init__(self, file: Any, clock: Any) -> None:
        JavaFile.__init__(self, self.jvm, file)
        self._clock = clock
        self._is_mapped = True
        self._destroyed_at: int | None = None
        """What time it was at the first `destroy`."""
        self._lock = (False,) if self.jvm.release.number <= LOCK_ARGUMENT_UNTIL else ()
        self._list = self.jvm.java("java.util.ArrayList")

    @classmethod
    def open(
        cls,
        file_name: str,
        hash_slot_num: int,
        index_num: int,
        end_phy_offset: int,
        end_timestamp: int,
        *,
        files: Any,
        time: Any,
    ) -> "IndexFile":
        """Call the constructor."""
        kind = store_class(cls.jvm, "index.IndexFile")
        numbers = JInt(hash_slot_num), JInt(index_num), JLong(end_phy_offset), JLong(end_timestamp)
        opened = cls(kind(java_text(file_name), *numbers), time)
        files.handles.append(ClosedAtCrash(opened))
        return opened

    def load(self) -> None:
        """Call load."""
        if not self._is_mapped:
            refuse()
        self.java.load()

    def put_key(self, key: str | None, phy_offset: int, store_timestamp: int) -> bool:
        """Call putKey."""
        if not self._is_mapped and not (
            key is None or self.hash_slot_num == 0 or self.is_write_full()
        ):
            refuse()  # nothing else fails before the memory is touched
        return bool(self.java.putKey(java_text(key), phy_offset, store_timestamp))

    def select_phy_offset(
        self, phy_offsets: list[int], key: str | None, max_num: int, begin: int, end: int
    ) -> list[int]:
        """Call selectPhyOffset; the caller's list changes once it has answered."""
        if not self._is_mapped and not (
            key is None or self.hash_slot_num == 0 or not self.is_available
        ):
            refuse()
        found = self._list()
        for offset in phy_offsets:
            found.add(JLong(offset))
        self.java.selectPhyOffset(found, java_text(key), max_num, begin, end, *self._lock)
        phy_offsets[:] = numbers_of(found)
        return phy_offsets

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Call isTimeMatched."""
        return bool(self.java.isTimeMatched(begin, end))

    def index_key_hash_method(self, key: str | None) -> int:
        """Call indexKeyHashMethod."""
        return int(self.java.indexKeyHashMethod(java_text(key)))

    def flush(self) -> None:
        """Call flush."""
        if not self._is_mapped and self.is_available:
            refuse()
        self.java.flush()

    def shutdown(self) -> None:
        """Call shutdown."""
        if self.is_available and not self._is_mapped:
            refuse()
        self.java.shutdown()
        self._is_mapped = False

    def close(self) -> None:
        """Call shutdown before opening again; 4.x has none, and flushes."""
        if self.jvm.release.number < SHUTDOWN_SINCE:
            self.flush()
        else:
            self.shutdown()

    def destroy(self, interval_forcibly_ms: int) -> bool:
        """Call destroy."""
        if self._destroyed_at is None:
            self._destroyed_at = self._clock()
        else:
            set_first_shutdown(self.jvm, self.mapped, self._clock() - self._destroyed_at)
        is_over = bool(self.java.destroy(JLong(interval_forcibly_ms)))
        self._is_mapped = self._is_mapped and not is_over
        return is_over


def set_first_shutdown(jvm: Any, mapped: Any, elapsed_ms: int) -> None:
    """Make the first try to give a file back so many ms old, at the very begin of a millisecond."""
    system = jvm.java("java.lang.System")
    before = now = int(system.currentTimeMillis())
    while now == before:
        now = int(system.currentTimeMillis())
    jvm.set_field(mapped, "firstShutdownTimestamp", JLong(now - elapsed_ms))


def numbers_of(found: Any) -> list[int]:
    """Return the numbers of a Java list: they are few, and an array of them is slow to walk."""
    return [int(found.get(place)) for place in range(found.size())]
