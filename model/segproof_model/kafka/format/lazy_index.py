# SPDX-License-Identifier: Apache-2.0
"""The lazy index: an index file that is opened, or created, on its first use.

Upstream: Kafka 4.4.0, LazyIndex. Otherwise: log_segment_releases.
Laws: LAZY-1 to LAZY-6.
Not covered: threads that load at once; two loads one after the other give one index.
"""

from typing import Generic, TypeVar

from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.language.files import Files
from segproof_model.language.states import State

AnIndex = TypeVar("AnIndex", bound=AbstractIndex)


class LazyIndex(State, Generic[AnIndex]):
    """The name of an index file, and the index once it was asked for.

    >>> from segproof_model.kafka.format.offset_index import OffsetIndex
    >>> lazy = LazyIndex(Files(), OffsetIndex, "0.index", 0, 80)
    >>> list(lazy.files), lazy.get().entries, list(lazy.files)
    ([], 0, ['0.index'])
    """

    def __init__(
        self,
        files: Files,
        index_kind: type[AnIndex],
        name: str,
        base_offset: int,
        max_index_size_bytes: int,
    ) -> None:
        """Name the file; it is neither opened nor created (LAZY-3)."""
        self.files, self.index_kind, self.unloaded_name = files, index_kind, name
        self.base_offset, self.max_index_size_bytes = base_offset, max_index_size_bytes
        self.index: AnIndex | None = None
        """The loaded index."""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.unloaded_name if self.index is None else self.index.name

    def get(self) -> AnIndex:
        """Return the index, opened for writing the first time only (LAZY-3, LAZY-5, LAZY-6)."""
        if self.index is None:
            self.index = self.index_kind(
                self.files, self.unloaded_name, self.base_offset, self.max_index_size_bytes
            )
        return self.index

    def rename_to(self, file: str) -> None:
        """Move the file; not loaded, it may be missing (LAZY-1, LAZY-2)."""
        if self.index is not None:
            self.index.rename_to(file)
        else:
            self.files.rename(self.unloaded_name, file)
            self.unloaded_name = file

    def delete_if_exists(self) -> bool:
        """Remove the file, return whether there was one (LAZY-1, LAZY-6)."""
        if self.index is not None:
            return self.index.delete_if_exists()
        return self.files.remove(self.unloaded_name)

    def close(self) -> None:
        """Close a loaded index, which stays the one that `get` returns (LAZY-1, LAZY-5)."""
        if self.index is not None:
            self.index.close()

    def close_handler(self) -> None:
        """Unmap a loaded index; its file keeps its length."""
        if self.index is not None:
            self.index.close_handler()
