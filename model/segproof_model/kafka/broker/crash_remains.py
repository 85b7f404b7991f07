# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves in a log's directory: files to be removed, and swaps to be completed.

Upstream: Kafka 4.4.0, the first passes of LogLoader.load. Otherwise: log_loader_releases,
    log_loader_releases_before_2, log_loader_deviations.
Layout: `.deleted` is to be removed, `.cleaned` belongs to a split or a cleaning that was not
    finished, `.swap` to one that had only to take its place.
Laws: LOAD-1 to LOAD-3, LOAD-18.
Not covered: in which order a directory is listed; it decides what is gone where a name without an
    offset ends loading.
"""

from collections.abc import Iterable, Mapping

from segproof_model.kafka.broker.log_steps import LogSteps
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.integers import INT64_MAX, INT64_MIN
from segproof_model.language.states import Refused, Released

LOG, DELETED, CLEANED, SWAP = ".log", ".deleted", ".cleaned", ".swap"
INDEXES = (".index", ".timeindex", ".txnindex")
KEPT_CHECKPOINT = ".checkpoint.deleted"
"""Deleted snapshots of a metadata log, which are not this log's business."""


class CrashRemains(Released):
    """The files of a log that has no segments yet, as they lie in its directory."""

    def __init__(self, log: LogSteps, modified_ms: Mapping[str, int]) -> None:
        self.log, self.files, self.prefix = log, log.files, log.local_log.prefix
        self.modified_ms = dict(modified_ms)
        """Name of each log, and when it was changed; not told: now."""

    def names(self) -> list[str]:
        """Return the names of the files, without the partition's directory."""
        prefix = self.prefix
        short = [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)]
        return [name for name in short if "/" not in name]

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return self.prefix + name in self.files

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files of these names."""
        for name in names:
            self.files.remove(self.prefix + name)
            self.modified_ms.pop(self.prefix + name, None)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, which keeps its time."""
        self.files.rename(self.prefix + source, self.prefix + target)
        time_ms = self.modified_ms.pop(self.prefix + source, self.files.now_ms)
        self.modified_ms[self.prefix + target] = time_ms

    def open_segment(self, base_offset: int, suffix: str = "") -> LogSegment:
        """Open a segment whose log exists, without adding it to the log's."""
        name = self.prefix + segment_file_name(base_offset, LOG + suffix)
        modified_ms = self.modified_ms.get(name)
        return self.log.local_log.new_segment(base_offset, True, suffix, modified_ms)

    # --- what goes -----------------------------------------------------------------------------

    def remove_temporary_files(self) -> None:
        """Remove what was to be removed, and splits and cleanings that were not finished (LOAD-1).

        A swap at or behind the first `.cleaned` file belongs to one of those (LOAD-2).
        """
        names = self.names()
        self.remove([name for name in names if self.was_to_be_removed(name)])
        cleaned = [name for name in names if name.endswith(CLEANED)]
        swaps = self.swaps_to_remove(names, self.first_offset(cleaned))
        self.remove([*swaps, *cleaned])

    def was_to_be_removed(self, name: str) -> bool:
        """Return whether a file was waiting for its removal."""
        return name.endswith(DELETED) and not name.endswith(KEPT_CHECKPOINT)

    def first_offset(self, cleaned: Iterable[str]) -> int:
        """Return the first offset of a split or cleaning that was not finished."""
        return min(map(offset_of_name, cleaned), default=INT64_MAX)

    def swaps_to_remove(self, names: Iterable[str], first_offset: int) -> list[str]:
        """Return the swaps that go."""
        swaps = [name for name in names if name.endswith(SWAP)]
        offsets = {name: offset_of_name(name) for name in swaps}
        return [name for name in swaps if offsets[name] >= first_offset]

    # --- what is completed ---------------------------------------------------------------------

    def complete_swaps(self) -> None:
        """Let the `.swap` files take the place of the files in their range (LOAD-2, LOAD-3)."""
        first, end = INT64_MAX, INT64_MIN
        for name in self.names():
            if name.endswith(LOG + SWAP):
                begin, next_offset = self.range_of_swap(offset_of_name(name))
                first, end = min(first, begin), max(end, next_offset)
        others = [name for name in self.names() if not name.endswith(SWAP)]
        self.remove([name for name in others if self.is_within(name, first, end)])
        for name in self.names():
            if name.endswith(SWAP):
                self.rename(name, name.removesuffix(SWAP))

    def range_of_swap(self, base_offset: int) -> tuple[int, int]:
        """Return the base offset of a swap, and the offset behind its last batch."""
        return base_offset, self.open_segment(base_offset, SWAP).read_next_offset()

    def is_within(self, name: str, first: int, end: int) -> bool:
        """Return whether a name begins with an offset in a range, `end` exclusive."""
        try:
            return first <= offset_of_name(name) < end
        except Refused:
            return False
