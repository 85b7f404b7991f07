# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves in a log's directory: files to be removed, and swaps to be completed.

The names are judged before anything is changed.

Upstream: Kafka 4.3.1: LogLoader.removeTempFilesAndCollectSwapFiles, load.
Laws: LOAD-1 to LOAD-3.
"""

from collections.abc import Iterable

from segproof.errors import NumberFormatError
from segproof.integers import INT64_MAX, INT64_MIN
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.segment_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    SegmentName,
    parse_name,
)


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

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files of these names."""
        for name in names:
            self._directory.files.remove(self._directory.path(name))
            del self.names[name]

    def finish(self) -> None:
        """Remove what is left of work that was not finished, and finish what can be."""
        if self.remove_temporary_files() | self.complete_swaps():
            self._directory.sync()

    def remove_temporary_files(self) -> bool:
        """Remove what was to be removed, and splits that were not finished; return whether any.

        Laws: LOAD-1, LOAD-2.
        """
        deleted, cleaned = self._with_suffix(DELETED_SUFFIX), self._with_suffix(CLEANED_SUFFIX)
        if cleaned:
            least = min(self.names[name].base_offset for name in cleaned)
            swaps = self._with_suffix(SWAP_SUFFIX)
            # Without the `.cleaned` files, swap files that are not whole would count.
            self.remove(name for name in swaps if self.names[name].base_offset >= least)
            self._directory.sync()
        self.remove((*deleted, *cleaned))
        return bool(deleted or cleaned)

    def complete_swaps(self) -> bool:
        """Put swap files in the place of the segments whose offsets they hold; return whether any.

        Laws: LOAD-2, LOAD-3.
        """
        swaps = self._with_suffix(SWAP_SUFFIX)
        if not swaps:
            return False
        low, high = INT64_MAX, INT64_MIN
        for name in swaps:
            if self.names[name].kind == ".log":
                base_offset = self.names[name].base_offset
                with self._directory.new_segment(base_offset, True, SWAP_SUFFIX) as segment:
                    low = min(low, base_offset)
                    high = max(high, segment.read_next_offset())
        # Reading it has made a missing index, whose name is a swap file's as well.
        self.read_names()
        self.remove(
            [
                name
                for name, (base_offset, _, suffix) in self.names.items()
                if not suffix and low <= base_offset < high and self._is_regular(name)
            ]
        )
        for name in self._with_suffix(SWAP_SUFFIX):
            plain = name.removesuffix(SWAP_SUFFIX)
            self._directory.files.rename(self._directory.path(name), self._directory.path(plain))
            self.names[plain] = self.names.pop(name)._replace(suffix="")
        return True
