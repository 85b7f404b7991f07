# SPDX-License-Identifier: Apache-2.0
"""How an offset or a timestamp is found in the segments of a partition directory, step by step.

`PartitionReader` searches so, and so does the harness, where a segment is read as a release does.
Each index is searched once for a question.

Laws: LOG-1, LOG-6, LOG-15, SEG-12, SEG-39.
"""

import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import Any

from segproof.files import REAL_FILES, Files
from segproof.findings import time_text
from segproof.kafka.segment_names import offset_of_name
from segproof.reading.file_names import name_in_segment
from segproof.reading.lookup_answers import OffsetAnswer, Steps, TimestampAnswer
from segproof.reading.waiting_logs import records_wait, waiting_logs


def segment_base_offsets(path: str | os.PathLike[str], *, files: Files = REAL_FILES) -> list[int]:
    """Return the base offsets of the logs in a directory, ascending.

    Only names that Kafka itself writes count; `segproof.verify` reports the others.
    Raises: OSError if the directory can't be listed; SegproofError if records wait in a `.swap`
    log, which Kafka's next start puts in the place of others.
    """
    directory = os.fspath(path)
    names = files.list_directory(directory)
    for name in waiting_logs(directory, names, files):
        raise records_wait(os.path.join(directory, name))
    found = (offset_of_name(name, ".log") for name in names)
    return sorted(offset for offset in found if offset is not None)


class SegmentSearch(ABC):
    """One segment that is searched. A subclass says how its indexes and its log are read."""

    def __init__(self, directory: str, base_offset: int, files: Files, stem: str = "") -> None:
        self.base_offset = base_offset
        self._stem = stem
        self.steps = Steps()
        """Where each search notes what it did."""
        self._directory = directory
        self._files = files

    def path(self, suffix: str) -> str:
        """Return the path of one of the segment's files."""
        return os.path.join(self._directory, name_in_segment(self.base_offset, suffix, self._stem))

    @abstractmethod
    def lookup_offset_index(self, target_offset: int) -> Any:
        """Return the index entry for the target: offset and position."""

    @abstractmethod
    def lookup_time_index(self, target_timestamp: int) -> Any:
        """Return the time index's entry for the target: timestamp and offset."""

    @abstractmethod
    def first_batch_reaching(self, offset: int, start: Any) -> Any:
        """Return base offset, position and size of the first batch that reaches an offset, or None.

        The log is scanned from the index entry `start` on.
        """

    @abstractmethod
    def first_record_at(self, timestamp: int, starting_offset: int, start: Any) -> Any:
        """Return the first record at or after timestamp and offset, or None; scans from `start`."""

    @abstractmethod
    def largest_timestamp(self) -> int:
        """Return the largest timestamp that the segment is believed to have."""

    @abstractmethod
    def check_read_to_end(self, start: int) -> None:
        """Refuse a log that a scan from `start` does not read to its end, if that is damage."""

    def translate_offset(self, offset: int) -> Any:
        """Return the first batch whose last offset is not below `offset`, or None (SEG-12)."""
        return self.first_batch_reaching(offset, self.lookup_offset_index(offset))

    def timestamp_search_start(self, timestamp: int, starting_offset: int) -> Any:
        """Return the offset index's entry from which a search for the timestamp begins."""
        entry = self.lookup_time_index(timestamp)
        return self.lookup_offset_index(max(entry.offset, starting_offset))

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int) -> Any:
        """Return the first record at or after the timestamp and the offset, or None (SEG-39)."""
        start = self.timestamp_search_start(timestamp, starting_offset)
        return self.first_record_at(timestamp, starting_offset, start)

    def _note_index(
        self, suffix: str, target: int, entries: int | None, slot: int | None, entry: Any
    ) -> None:
        action = "offset-index" if suffix == ".index" else "time-index"
        facts = {"target": target, "entries": entries, "slot": slot, **entry._asdict()}
        self.steps.note(action, self.path(suffix), **facts)

    def _note_scan(self, start: int, batches: int, found: Any) -> None:
        base_offset, position, size = (None, None, None) if found is None else found
        self.steps.note(
            "scan", self.path(".log"), from_position=start, batches=batches,
            batch_base_offset=base_offset, batch_position=position, batch_size=size,
        )  # fmt: skip


class PartitionSearch(ABC):
    """The segments of one directory that are searched."""

    largest_timestamp_suffix = ".log"
    """Of the file that a segment's largest timestamp is told of."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.base_offsets: list[int] = []
        """Base offsets of the segments, ascending."""
        self.stems: dict[int, str] = {}
        """By base offset what the names of its files begin with, of segments in tiered storage."""
        self._steps = Steps()
        self._largest_timestamps: dict[int, int] = {}

    @property
    def steps(self) -> Any:
        """The steps of the last question that was asked with `explain`, up to where it failed."""
        return self._steps.taken

    @abstractmethod
    def segment(self, base_offset: int) -> Any:
        """Return a segment to be searched, which notes its steps here."""

    def path_of(self, base_offset: int, suffix: str) -> str:
        """Return the path of a file of a segment."""
        name = name_in_segment(base_offset, suffix, self.stems.get(base_offset, ""))
        return os.path.join(self.path, name)

    def floor_segment(self, offset: int) -> int | None:
        """Return the greatest base offset that is not above `offset`, or None (LOG-1)."""
        place = bisect_right(self.base_offsets, offset)
        return self.base_offsets[place - 1] if place else None

    @abstractmethod
    def _why_no_batch(self, target: int) -> str: ...

    def _why_no_timestamp(self, target: int) -> str:
        return f"no segment has a timestamp of {time_text(target)} or later"

    def lookup_offset(self, target: int, *, explain: bool = False) -> OffsetAnswer:
        """Return where the first batch lies whose last offset is not below `target`.

        The floor of the target picks the segment. Where its last batch ends before the target, the
        answer is the first batch of the next segment that has one. With `explain` the answer
        carries its steps. Laws: LOG-1, LOG-6, SEG-12.
        """
        steps = self._steps = Steps(explain)
        floor = self.floor_segment(target)
        steps.note("segment", self.path, segments=len(self.base_offsets), floor=floor)
        if floor is None:
            reason = f"below the first segment, which begins at offset {self.base_offsets[0]}"
            return OffsetAnswer(target, reason=reason, steps=steps.taken)
        first: Any = None
        for base_offset in self.base_offsets[self.base_offsets.index(floor) :]:
            segment = self.segment(base_offset)
            if base_offset != floor:
                steps.note("next-segment", segment.path(".log"), base_offset=base_offset)
            entry = segment.lookup_offset_index(target)
            first = first or entry
            found = segment.first_batch_reaching(target, entry)
            if found is not None:
                index: tuple[int, int] = entry
                batch: tuple[int, int, int] = found
                return OffsetAnswer(target, base_offset, *index, *batch, steps=steps.taken)
            segment.check_read_to_end(entry.position)
        reason = self._why_no_batch(target)
        return OffsetAnswer(
            target, floor, first.offset, first.position, reason=reason, steps=steps.taken
        )

    def lookup_timestamp(self, target: int, *, explain: bool = False) -> TimestampAnswer:
        """Return the first record at or after the time `target`, in ms since 1970.

        The first segment whose largest timestamp is not below the target is searched, and no
        other one. With `explain` the answer carries its steps. Laws: LOG-15, SEG-39.
        """
        steps = self._steps = Steps(explain)
        base_offset = self._segment_reaching(target)
        if base_offset is None:
            reason = self._why_no_timestamp(target)
            return TimestampAnswer(target, reason=reason, steps=steps.taken)
        segment, log_start = self.segment(base_offset), self.base_offsets[0]
        start = segment.timestamp_search_start(target, log_start)
        found = segment.first_record_at(target, log_start, start)
        if found is None:
            segment.check_read_to_end(start.position)
            reason = f"no record of segment {base_offset} has a timestamp of {target} or later"
            return TimestampAnswer(target, reason=reason, steps=steps.taken)
        return TimestampAnswer(target, found.timestamp, found.offset, steps=steps.taken)

    def _segment_reaching(self, target: int) -> int | None:
        """Return the first segment whose largest timestamp is not below the target."""
        for base_offset in self.base_offsets:
            largest = self._largest_timestamps.get(base_offset)
            if largest is None:
                largest = self.segment(base_offset).largest_timestamp()
                self._largest_timestamps[base_offset] = largest
            path = self.path_of(base_offset, self.largest_timestamp_suffix)
            self._steps.note("largest-timestamp", path, timestamp=largest)
            if largest >= target:
                return base_offset
        return None
