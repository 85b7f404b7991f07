# SPDX-License-Identifier: Apache-2.0
"""Kafka's OffsetIndex as the harness calls it.

Upstream: kafka.log.OffsetIndex up to 3.4, org.apache.kafka.storage.internals.log.OffsetIndex since.
Used by: oracle.child.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from jpype import JBoolean, JInt, JLong

from segproof_harness.oracle.jvm import Adapter

PACKAGES = ("org.apache.kafka.storage.internals.log.", "kafka.log.")


def get(owner: Any, name: str) -> Any:
    """Return a component: a field up to 4.1, a method in Scala and from 4.2 on."""
    found = getattr(owner, name)
    return found() if callable(found) else found


class OffsetIndex(Adapter):
    """The offset index."""

    kinds: ClassVar[Mapping[str, str]] = {"java.lang.NullPointerException": "unmapped"}
    left_out = frozenset({"list_entries"})

    def __init__(
        self, file: str, base_offset: int, max_index_size_bytes: int, writable: bool, files: Any
    ) -> None:
        kind = self.jvm.first(*(f"{package}OffsetIndex" for package in PACKAGES))
        self._index = kind(
            self.jvm.file(file),
            JLong(base_offset),
            JInt(max_index_size_bytes),
            JBoolean(writable),
        )

    entries = property(lambda self: int(self._index.entries()))
    max_entries = property(lambda self: int(self._index.maxEntries()))
    length = property(lambda self: int(self._index.length()))
    size_in_bytes = property(lambda self: int(self._index.sizeInBytes()))
    is_full = property(lambda self: bool(self._index.isFull()))
    last_offset = property(lambda self: int(self._index.lastOffset()))

    def append(self, offset: int, position: int) -> None:
        """Call append."""
        self._index.append(JLong(offset), JInt(position))

    def lookup(self, target_offset: int) -> tuple[int, int]:
        """Call lookup."""
        found = self._index.lookup(JLong(target_offset))
        return int(get(found, "offset")), int(get(found, "position"))

    def lookup_many(self, target_offsets: Sequence[int]) -> Any:
        """Call lookup for each target; for an index that can't be asked, it raises at once."""
        answers = [self.lookup(target) for target in (0, *target_offsets)][1:]
        return tuple(answer[0] for answer in answers), tuple(answer[1] for answer in answers)

    def entry(self, n: int) -> tuple[int, int]:
        """Call entry."""
        found = self._index.entry(JInt(n))
        return int(get(found, "offset")), int(get(found, "position"))

    def can_append_offset(self, offset: int) -> bool:
        """Call canAppendOffset."""
        return bool(self._index.canAppendOffset(JLong(offset)))

    def relative_offset(self, offset: int) -> int:
        """Call relativeOffset."""
        return int(self._index.relativeOffset(JLong(offset)))

    def resize(self, new_size: int) -> bool:
        """Call resize."""
        return bool(self._index.resize(JInt(new_size)))

    def rename_to(self, file: str) -> None:
        """Call renameTo."""
        self._index.renameTo(self.jvm.file(file))

    def delete_if_exists(self) -> bool:
        """Call deleteIfExists."""
        return bool(self._index.deleteIfExists())

    def truncate_to(self, offset: int) -> None:
        """Call truncateTo."""
        self._index.truncateTo(JLong(offset))

    def fetch_upper_bound_offset(self, fetch_offset: Any, fetch_size: int) -> Any:
        """Call fetchUpperBoundOffset."""
        kind = self.jvm.first(*(f"{package}OffsetPosition" for package in PACKAGES))
        place = kind(JLong(fetch_offset.offset), JInt(fetch_offset.position))
        found = self._index.fetchUpperBoundOffset(place, JInt(fetch_size))
        if not (found.isPresent() if hasattr(found, "isPresent") else found.isDefined()):
            return None
        return int(get(found.get(), "offset")), int(get(found.get(), "position"))

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
        """Call closeHandler."""
        self._index.closeHandler()
