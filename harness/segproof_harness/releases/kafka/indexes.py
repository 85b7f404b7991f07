# SPDX-License-Identifier: Apache-2.0
"""Kafka's OffsetIndex and TimeIndex as the harness calls them.

Upstream: kafka.log.{OffsetIndex,TimeIndex} up to 3.4, the same names in
org.apache.kafka.storage.internals.log since.
Where a method has one form only, JPype finds the widths of its numbers by itself, and sooner.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jpype import JBoolean, JInt, JLong

from segproof_harness.releases.jvm import Adapter, caught, named_alike
from segproof_harness.releases.kafka.classes import get, optional, storage_class

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
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **named_alike("entries", "max_entries", "length", "size_in_bytes", "is_full"),
        **named_alike("last_offset", "can_append_offset", "relative_offset", "resize"),
        **named_alike("truncate_to", "trim_to_valid_size", "reset", "truncate", "flush"),
        **named_alike("sanity_check", "close"),
        "delete_if_exists": ("deleteIfExists", "delete"),
        "close_handler": ("closeHandler", "close"),
    }
    """Up to 1.0 a file is deleted by `delete`, and resizing answers nothing; since 4.4 `close`
    leaves the file as it is."""
    class_name: ClassVar[str]
    fields: ClassVar[tuple[str, str]]
    """What an entry has."""
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
        cls._appending = staticmethod(caught(cls.jvm, cls._kind, *cls.append_method))

    _kind: ClassVar[Any]
    _takes_writable: ClassVar[bool]
    _appending: ClassVar[Any]
    """The method that appends, which refuses most entries of a history: the index is small."""

    def __init__(
        self, file: str, base_offset: int, max_index_size_bytes: int, writable: bool, files: Any
    ) -> None:
        arguments = [self.jvm.file(file), JLong(base_offset), JInt(max_index_size_bytes)]
        if self._takes_writable:
            arguments.append(JBoolean(writable))
        self._real = self._kind(*arguments)

    def _append(self, *arguments: Any) -> None:
        thrown = self._appending(self._real, *arguments)
        if thrown is not None:
            raise thrown

    def rename_to(self, file: str) -> None:
        """Call renameTo."""
        self._real.renameTo(self.jvm.file(file))

    def _shown(self, entry: Any) -> tuple[int, ...]:
        """Return the fields of an entry."""
        return tuple(int(get(entry, name)) for name in self.fields)

    def entry(self, n: int) -> tuple[int, ...]:
        """Call entry."""
        return self._shown(self._real.entry(n))

    def lookup(self, **target: int) -> tuple[int, ...]:
        """Call lookup for an offset or a timestamp."""
        return self._shown(self._real.lookup(*target.values()))

    def lookup_many(self, **targets: Sequence[int]) -> Any:
        """Call lookup for each target; for an index that can't be asked, it raises at once."""
        (asked,) = targets.values()
        answers = [self._shown(self._real.lookup(target)) for target in (0, *asked)][1:]
        return tuple(zip(*answers, strict=True)) if answers else ((), ())


class OffsetIndex(_Index):
    """The offset index."""

    class_name = "OffsetIndex"
    fields = "offset", "position"
    append_method = "append", JLong, JInt

    def append(self, offset: int, position: int) -> None:
        """Call append."""
        self._append(JLong(offset), JInt(position))

    def fetch_upper_bound_offset(self, fetch_offset: Any, fetch_size: int) -> Any:
        """Call fetchUpperBoundOffset."""
        kind = storage_class(self.jvm, "OffsetPosition")
        place = kind(fetch_offset.offset, fetch_offset.position)
        found = optional(self._real.fetchUpperBoundOffset(place, fetch_size))
        return None if found is None else self._shown(found)


class TimeIndex(_Index):
    """The time index."""

    class_name = "TimeIndex"
    fields = "timestamp", "offset"
    append_method = "maybeAppend", JLong, JLong, JBoolean
    others = frozenset({"fetch_upper_bound_offset"})
    last_entry = property(lambda self: self._shown(self._real.lastEntry()))

    def maybe_append(self, timestamp: int, offset: int, skip_full_check: bool) -> None:
        """Call maybeAppend."""
        self._append(JLong(timestamp), JLong(offset), JBoolean(skip_full_check))
