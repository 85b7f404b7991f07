# SPDX-License-Identifier: Apache-2.0
"""Kafka's OffsetIndex and TimeIndex as the harness calls them.

Upstream: kafka.log.{OffsetIndex,TimeIndex} up to 3.4, the same names in
org.apache.kafka.storage.internals.log since.
Where a method has one form only, JPype finds the widths of its numbers by itself, and sooner.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jpype import JBoolean, JInt, JLong

from segproof_harness.releases.jvm import Adapter
from segproof_harness.releases.kafka.classes import CLOSE_WRITES_UNTIL, get, optional, storage_class
from segproof_harness.releases.kafka.reflection import caught

FIRST_WITH: Mapping[str, tuple[int, ...]] = {
    "length": (1, 1),
    "reset": (1, 1),
    "close_handler": (1, 1),
    "can_append_offset": (2, 0),
    "relative_offset": (2, 0),
    "fetch_upper_bound_offset": (0, 11),
}
"""The first version with an operation or accessor that not all have."""
WRITABLE_SINCE = (0, 11)
"""The first version whose constructor says whether the index may be written."""


class _Index(Adapter):
    """What both indexes have."""

    kinds: ClassVar[Mapping[str, str]] = {"java.lang.NullPointerException": "unmapped"}
    class_name: ClassVar[str]
    append_method: ClassVar[tuple[Any, ...]]
    """The name and the types of the method that appends."""
    others: ClassVar[frozenset[str]] = frozenset()
    """Operations of the other index."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "jvm"):
            return
        number = cls.jvm.release.number
        missing = {name for name, first in FIRST_WITH.items() if number < first}
        if number < WRITABLE_SINCE:
            # A sanity check of 0.10 measures the file of the name with which it was opened, which
            # is gone after a rename: no other release does, and the model has no such name.
            missing.add("rename_to")
        cls.left_out = frozenset({"list_entries"} | missing - {"length", *cls.others})
        cls.unobserved = frozenset(missing & {"length"})
        cls._kind = storage_class(cls.jvm, cls.class_name)
        cls._takes_writable = number >= WRITABLE_SINCE
        cls._delete = "deleteIfExists" if number >= (1, 1) else "delete"
        cls._close_handler = "closeHandler" if number < CLOSE_WRITES_UNTIL else "close"
        cls._appending = staticmethod(caught(cls.jvm, cls._kind, *cls.append_method))

    _kind: ClassVar[Any]
    _takes_writable: ClassVar[bool]
    _delete: ClassVar[str]
    _close_handler: ClassVar[str]
    _appending: ClassVar[Any]
    """The method that appends, which refuses most entries of a history: the index is small."""

    def __init__(
        self, file: str, base_offset: int, max_index_size_bytes: int, writable: bool, files: Any
    ) -> None:
        arguments = [self.jvm.file(file), JLong(base_offset), JInt(max_index_size_bytes)]
        if self._takes_writable:
            arguments.append(JBoolean(writable))
        self._index = self._kind(*arguments)

    def _append(self, *arguments: Any) -> None:
        thrown = self._appending(self._index, *arguments)
        if thrown is not None:
            raise thrown

    entries = property(lambda self: int(self._index.entries()))
    max_entries = property(lambda self: int(self._index.maxEntries()))
    length = property(lambda self: int(self._index.length()))
    size_in_bytes = property(lambda self: int(self._index.sizeInBytes()))
    is_full = property(lambda self: bool(self._index.isFull()))

    def can_append_offset(self, offset: int) -> bool:
        """Call canAppendOffset."""
        return bool(self._index.canAppendOffset(offset))

    def relative_offset(self, offset: int) -> int:
        """Call relativeOffset."""
        return int(self._index.relativeOffset(offset))

    def resize(self, new_size: int) -> bool | None:
        """Call resize; up to 1.0 it answers nothing."""
        answer = self._index.resize(new_size)
        return None if answer is None else bool(answer)

    def rename_to(self, file: str) -> None:
        """Call renameTo."""
        self._index.renameTo(self.jvm.file(file))

    def delete_if_exists(self) -> bool:
        """Call deleteIfExists; up to 1.0 its name is delete."""
        return bool(getattr(self._index, self._delete)())

    def truncate_to(self, offset: int) -> None:
        """Call truncateTo."""
        self._index.truncateTo(offset)

    def trim_to_valid_size(self) -> None:
        """Call trimToValidSize."""
        self._index.trimToValidSize()

    def reset(self) -> None:
        """Call reset."""
        self._index.reset()

    def truncate(self) -> None:
        """Call truncate."""
        self._index.truncate()

    def flush(self) -> None:
        """Call flush."""
        self._index.flush()

    def sanity_check(self) -> None:
        """Call sanityCheck."""
        self._index.sanityCheck()

    def close(self) -> None:
        """Call close."""
        self._index.close()

    def close_handler(self) -> None:
        """Call closeHandler, since 4.4 close."""
        getattr(self._index, self._close_handler)()


def _columns(answers: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(answer[0] for answer in answers), tuple(answer[1] for answer in answers)


def _offset_position(found: Any) -> tuple[int, int]:
    return int(get(found, "offset")), int(get(found, "position"))


class OffsetIndex(_Index):
    """The offset index."""

    class_name = "OffsetIndex"
    append_method = "append", JLong, JInt
    last_offset = property(lambda self: int(self._index.lastOffset()))

    def append(self, offset: int, position: int) -> None:
        """Call append."""
        self._append(JLong(offset), JInt(position))

    def lookup(self, target_offset: int) -> tuple[int, int]:
        """Call lookup."""
        return _offset_position(self._index.lookup(target_offset))

    def lookup_many(self, target_offsets: Sequence[int]) -> Any:
        """Call lookup for each target; for an index that can't be asked, it raises at once."""
        return _columns([self.lookup(target) for target in (0, *target_offsets)][1:])

    def entry(self, n: int) -> tuple[int, int]:
        """Call entry."""
        return _offset_position(self._index.entry(n))

    def fetch_upper_bound_offset(self, fetch_offset: Any, fetch_size: int) -> Any:
        """Call fetchUpperBoundOffset."""
        kind = storage_class(self.jvm, "OffsetPosition")
        place = kind(fetch_offset.offset, fetch_offset.position)
        found = optional(self._index.fetchUpperBoundOffset(place, fetch_size))
        return None if found is None else _offset_position(found)


def _timestamp_offset(found: Any) -> tuple[int, int]:
    return int(get(found, "timestamp")), int(get(found, "offset"))


class TimeIndex(_Index):
    """The time index."""

    class_name = "TimeIndex"
    append_method = "maybeAppend", JLong, JLong, JBoolean
    others = frozenset({"fetch_upper_bound_offset"})
    last_entry = property(lambda self: _timestamp_offset(self._index.lastEntry()))

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool) -> None:
        """Call maybeAppend."""
        self._append(JLong(timestamp), JLong(offset), JBoolean(skip_full_check))

    def lookup(self, target_timestamp: int) -> tuple[int, int]:
        """Call lookup."""
        return _timestamp_offset(self._index.lookup(target_timestamp))

    def lookup_many(self, target_timestamps: Sequence[int]) -> Any:
        """Call lookup for each target; for an index that can't be asked, it raises at once."""
        return _columns([self.lookup(target) for target in (0, *target_timestamps)][1:])

    def entry(self, n: int) -> tuple[int, int]:
        """Call entry."""
        return _timestamp_offset(self._index.entry(n))
