# SPDX-License-Identifier: Apache-2.0
"""The lazy index: an index file that is opened, or created, on its first use.

Mirrors: impl/segproof/kafka/lazy_index.py.
Upstream: Kafka, LazyIndex (since 2.4.1).
Laws: LAZY-1 to LAZY-6.
Not covered: threads that load at once; two loads one after the other give one index.
Used by: log_segment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from segproof_model.directory import Directory
from segproof_model.kafka.offset_index import OffsetIndex
from segproof_model.kafka.time_index import TimeIndex
from segproof_model.language.outcomes import Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

Index = OffsetIndex | TimeIndex


@dataclass(frozen=True, slots=True)
class LazyIndex:
    """The state of a lazy index: the name of a file, and the index once it was asked for.

    >>> lazy = LazyIndex.for_offset("0.index", 0, 80)
    >>> loaded = lazy.get().after
    >>> list(lazy.directory), list(loaded.directory), loaded.is_loaded
    ([], ['0.index'], True)
    """

    profile: Profile = field(repr=False)
    kind: type[Index]
    base_offset: int
    max_index_size: int
    """Bytes that a new file is given."""
    name: str
    directory: Directory = field(repr=False)
    index: Index | None = None
    """The loaded index."""

    @classmethod
    def for_offset(
        cls,
        file: str,
        base_offset: int,
        max_index_size: int,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
    ) -> "LazyIndex":
        """Return the offset index in this file, not loaded."""
        return cls(profile, OffsetIndex, base_offset, max_index_size, file, directory)

    @classmethod
    def for_time(
        cls,
        file: str,
        base_offset: int,
        max_index_size: int,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
    ) -> "LazyIndex":
        """Return the time index in this file, not loaded."""
        return cls(profile, TimeIndex, base_offset, max_index_size, file, directory)

    @property
    def is_loaded(self) -> bool:
        """Whether the index was opened."""
        return self.index is not None

    def sees(self, directory: Directory) -> "LazyIndex":
        """Return the same state over the directory as another file's operation left it."""
        if directory is self.directory and (
            self.index is None or self.index.directory is directory
        ):
            return self
        index = None if self.index is None else replace(self.index, directory=directory)
        return replace(self, directory=directory, index=index)

    def holds(self, index: Index) -> "LazyIndex":
        """Return the state in which the loaded index is this one."""
        if index is self.index and index.directory is self.directory:
            return self
        return replace(self, name=index.name, directory=index.directory, index=index)

    def get(self) -> Step["LazyIndex"]:
        """Return the index, opened for writing the first time only (LAZY-3, LAZY-5, LAZY-6)."""
        if self.index is not None:
            return Step(self, self.index)
        opened = self.kind.open(
            self.name,
            self.base_offset,
            self.max_index_size,
            directory=self.directory,
            profile=self.profile,
        )
        if isinstance(opened.after, Directory):
            return Step(replace(self, directory=opened.after), opened.outcome)
        return Step(self.holds(opened.after), opened.after)

    def rename_to(self, file: str) -> Step["LazyIndex"]:
        """Move the file; not loaded, it may be missing (LAZY-1, LAZY-2)."""
        if not self._stays_unloaded:
            return self._ask(lambda index: index.rename_to(file))
        return Step(replace(self, name=file, directory=self.directory.rename(self.name, file)))

    def delete_if_exists(self) -> Step["LazyIndex"]:
        """Remove the file, return whether there was one (LAZY-1, LAZY-6)."""
        if not self._stays_unloaded:
            return self._ask(lambda index: index.delete_if_exists())
        removed = replace(self, directory=self.directory.remove(self.name))
        return Step(removed, self.name in self.directory)

    def close(self) -> Step["LazyIndex"]:
        """Close a loaded index, which stays the one that `get` returns (LAZY-1, LAZY-5)."""
        return Step(self) if self._stays_unloaded else self._ask(lambda index: index.close())

    def close_handler(self) -> Step["LazyIndex"]:
        """Unmap a loaded index; its file keeps its length."""
        if self._stays_unloaded:
            return Step(self)
        return self._ask(lambda index: index.close_handler())

    @property
    def _stays_unloaded(self) -> bool:
        return self.index is None and self.profile.unloaded_index_stays_unloaded

    def _ask(self, operation: Callable[[Any], Step[Any]]) -> Step["LazyIndex"]:
        """Let the loaded index answer (LAZY-4)."""
        loaded = self.get()
        if isinstance(loaded.outcome, Raised):
            return loaded
        step = operation(loaded.after.index)
        return Step(loaded.after.holds(step.after), step.outcome)
