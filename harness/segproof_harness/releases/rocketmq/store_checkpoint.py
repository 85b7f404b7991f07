# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's StoreCheckpoint as the harness calls it.

Upstream: org.apache.rocketmq.store.StoreCheckpoint.
What is not asked: a flush after shutdown, which writes to memory that was given back: the JVM would
die of it, and the adapter answers `unmapped`. Nor a second shutdown, of which it would die as well.
"""

from typing import Any, ClassVar

from segproof_harness.releases.jvm import Adapter, camel_case, named_alike
from segproof_harness.releases.rocketmq.index_file import refuse
from segproof_harness.releases.rocketmq.java_objects import (
    ClosedAtCrash,
    java_text,
    store_class,
    unmap,
)
from segproof_model.rocketmq.broker.store_checkpoint import FIELDS


class JavaCheckpoint:
    """The accessors of a StoreCheckpoint of Java."""

    def __init__(self, jvm: Any, java: Any) -> None:
        self.java = java
        self._jvm = jvm

    physic_msg_timestamp = property(lambda self: int(self.java.getPhysicMsgTimestamp()))
    logics_msg_timestamp = property(lambda self: int(self.java.getLogicsMsgTimestamp()))
    index_msg_timestamp = property(lambda self: int(self.java.getIndexMsgTimestamp()))
    min_timestamp = property(lambda self: int(self.java.getMinTimestamp()))
    min_timestamp_index = property(lambda self: int(self.java.getMinTimestampIndex()))

    def give_back(self) -> None:
        """Give memory and file back without another write, as the process's end would."""
        channel = self._jvm.field(self.java, "fileChannel")
        if channel.isOpen():
            channel.close()
            unmap(self._jvm.field(self.java, "mappedByteBuffer"))


class StoreCheckpoint(Adapter, JavaCheckpoint):
    """The store checkpoint."""

    calls: ClassVar = named_alike(*(f"set_{name}" for name in FIELDS))
    known: ClassVar[tuple[str, ...]] = FIELDS
    """The fields that the class of this release declares."""

    def __init_subclass__(cls) -> None:
        """Leave out the fields that the release of this JVM has not."""
        if "jvm" in vars(cls):
            declared = store_class(cls.jvm, "StoreCheckpoint").class_.getDeclaredFields()
            names = {str(field.getName()) for field in declared}
            cls.known = tuple(name for name in FIELDS if camel_case(name) in names)
            cls.left_out = frozenset(f"set_{name}" for name in FIELDS if name not in cls.known)

    def __init__(self, java: Any) -> None:
        JavaCheckpoint.__init__(self, self.jvm, java)
        self._real = java
        self._is_mapped = True

    @classmethod
    def open(cls, path: str, *, files: Any) -> "StoreCheckpoint":
        """Call the constructor."""
        opened = cls(store_class(cls.jvm, "StoreCheckpoint")(java_text(path)))
        files.handles.append(ClosedAtCrash(opened))
        return opened

    @property
    def values(self) -> tuple[int, ...]:
        """Return every field that the class declares, in the order of the file."""
        return tuple(int(self.jvm.field(self.java, camel_case(name))) for name in self.known)

    def flush(self) -> None:
        """Call flush."""
        if not self._is_mapped:
            refuse()
        self.java.flush()

    def shutdown(self) -> None:
        """Call shutdown."""
        if self._is_mapped:
            self.java.shutdown()
            self._is_mapped = False

    close = shutdown
