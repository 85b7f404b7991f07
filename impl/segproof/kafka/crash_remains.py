# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves in a log's directory: files to be removed, and swaps to be completed.

The names are judged before anything is changed.

Upstream: Kafka 4.3.1: LogLoader.removeTempFilesAndCollectSwapFiles, load.
Laws: LOAD-1 to LOAD-3.
"""

from segproof.errors import NumberFormatError
from segproof.integers import INT64_MAX
from segproof.kafka.log_directory import LogDirectory
from segproof.kafka.segment_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    SegmentName,
    parse_name,
)

__all__ = ["CrashRemains"]


class CrashRemains:
    """The files of a log that is not loaded, by their names."""

    def __init__(self, directory: LogDirectory) -> None:
        """List the directory. Raises: NumberFormatError for a foreign name."""
        self._directory = directory
        self.names: dict[str, SegmentName] = {}
        """What each name says, sorted by name."""
        self.read_names()

    def read_names(self) -> None:
        """Read what the names say of the files that belong to the log."""
        folder = self._directory.dir
        listed: dict[str, SegmentName] = {}
        for name in self._directory.files.list_directory(folder or "."):
            try:
                found = parse_name(name, folder)
            except NumberFormatError:
                if self._is_regular(name):
                    raise
                continue
            if found is not None:
                listed[name] = found
        self.names = listed

    def _with_suffix(self, suffix: str) -> list[str]:
        """Return the regular files with this suffix."""
        return [
            name
            for name, found in self.names.items()
            if found.suffix == suffix and self._is_regular(name)
        ]

    def _is_regular(self, name: str) -> bool:
        status = self._directory.files.status(self._directory.path(name))
        return status is not None and status.is_regular

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._directory.files.remove(self._directory.path(name))
        del self.names[name]

    def finish(self) -> None:
        """Remove what is left of work that was not finished, and finish what can be.

        Laws: LOAD-1, LOAD-2, LOAD-3.
        """
        deleted, cleaned = self._with_suffix(DELETED_SUFFIX), self._with_suffix(CLEANED_SUFFIX)
        swaps = self._with_suffix(SWAP_SUFFIX)
        least = min((self.names[name].base_offset for name in cleaned), default=None)
        if least is not None:
            stale = [name for name in swaps if self.names[name].base_offset >= least]
            swaps = [name for name in swaps if name not in stale]
            # Without the `.cleaned` files, swap files that are not whole would count.
            for name in stale:
                self.remove(name)
            self._directory.sync()
        for name in (*deleted, *cleaned):
            self.remove(name)
        if swaps:
            self.complete_swaps(swaps)
        if deleted or cleaned or swaps:
            self._directory.sync()

    def complete_swaps(self, swaps: list[str]) -> None:
        """Put the swap files in the place of the segments whose offsets they hold."""
        low, high = INT64_MAX, -INT64_MAX - 1
        for name in swaps:
            if self.names[name].kind == ".log":
                base_offset = self.names[name].base_offset
                segment = self._directory.new_segment(base_offset, True, SWAP_SUFFIX)
                try:
                    low = min(low, base_offset)
                    high = max(high, segment.read_next_offset())
                finally:
                    segment.close()
        # Reading it has made a missing index, whose name is a swap file's as well.
        self.read_names()
        for name, (base_offset, _, suffix) in list(self.names.items()):
            if not suffix and low <= base_offset < high and self._is_regular(name):
                self.remove(name)
        for name in self._with_suffix(SWAP_SUFFIX):
            plain = name.removesuffix(SWAP_SUFFIX)
            self._directory.files.rename(self._directory.path(name), self._directory.path(plain))
            self.names[plain] = self.names.pop(name)._replace(suffix="")
