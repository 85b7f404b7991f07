# SPDX-License-Identifier: Apache-2.0
"""Whether a log that was read to its end has its offsets: none of them gone, or there twice.

A reader of rows asks this, beside the question of `ends_beside`. Which batches overlap the offsets
of the log tell. Of a log that lacks some, compaction may have taken them: there the segment is
asked as `verify` asks it, once for each log.

Laws: DISK-13, DISK-70, LOG-4.
Not covered: segments that lack offsets without a proof (DISK-63); in tiered storage, what the
    indexes prove.
"""

import posixpath
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import NamedTuple

import numpy as np

from segproof.errors import CorruptRecordError, SegproofError
from segproof.files import Files, status_of
from segproof.inventory.segments import Segment
from segproof.kafka.batch_table import BatchTable, read_batch_headers
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import SEGMENT_SUFFIXES
from segproof.reading.folder_names import folder_of
from segproof.reading.live_writer import wait_for_a_step
from segproof.reading.log_extents import said_first_offset
from segproof.reading.log_order import NamedLog
from segproof.reading.rows import Bools, shifted
from segproof.stretches.kafka.header_rows import first_offsets, state_first_offset
from segproof.verifying.ends_beside import PAUSES_SECONDS
from segproof.verifying.foreign_segments import cut_out_finding
from segproof.verifying.swapped_names import is_name_low

TWICE = frozenset({"DISK-13", "LOG-4"})
"""Laws of batches that overlap others: no row is left out for it, and some may be there twice."""


class _Place(NamedTuple):
    """A batch that overlaps others."""

    position: int
    offset: int
    """Its first offset, or its last one where it reaches into the next log."""
    reached: int
    """The offset that is not to be reached again, or not to be reached."""


class LogOffsets:
    """Takes the batches of one log in file order, from its beginning or from a later byte on.

    `following` is the base offset of the next log; None: it is looked for in the folder.
    """

    def __init__(
        self, path: str, base_offset: int, following: int | None, files: Files, *, start: int = 0
    ) -> None:
        self._path, self._base, self._files = path, base_offset, files
        self._directory = posixpath.dirname(path) or "."
        self._is_named = posixpath.basename(path) == segment_file_name(base_offset, ".log")
        if following is None and self._is_named:
            following = folder_of(self._directory, files).log_after(base_offset)
        self._following = following
        self._due = None if start else base_offset
        """The offset after the batch before; None: the first batch may have any."""
        self._first: int | None = None
        self._reach = -1
        self._has_gap = False
        self._again: _Place | None = None
        self._beyond: _Place | None = None

    def take(self, table: BatchTable, crc_valid: Bools) -> None:
        """Take the next batches; one with a wrong checksum says no offset."""
        table = table[crc_valid]
        if not len(table):
            return
        firsts, lasts = first_offsets(table), table["last_offset"]
        due = int(firsts[0]) if self._due is None else self._due
        if self._first is None:
            self._first = int(firsts[0])
            due = min(due, self._first)  # a log may have a name above its contents
        previous = shifted(lasts, due - 1)
        self._has_gap |= bool(((firsts > previous + 1) & state_first_offset(table)).any())
        self._due = int(lasts[-1]) + 1
        self._reach = max(self._reach, int(lasts.max()))
        rows = np.flatnonzero(firsts <= previous)
        if self._again is None and len(rows):
            row = int(rows[0])
            self._again = _Place(
                int(table["position"][row]), int(table["base_offset"][row]), int(previous[row])
            )
        if self._following is None or self._beyond is not None:
            return
        rows = np.flatnonzero(lasts >= self._following)
        if len(rows):
            row = int(rows[0])
            self._beyond = _Place(int(table["position"][row]), int(lasts[row]), self._following)

    def errors(self) -> list[SegproofError]:
        """Return what is wrong, once all batches are taken. Raises: OSError of the log."""
        found = [self._twice(), self._reaching_over() or self._out_of_place(), self._cut_out()]
        return [one for one in found if one is not None]

    def _error(self, words: str, law: str, position: int | None) -> SegproofError:
        return CorruptRecordError(words, law=law, path=self._path, position=position)

    def _twice(self) -> SegproofError | None:
        place = self._again
        if place is None:
            return None
        return self._error(
            f"a batch begins at offset {place.offset}, and the log has reached offset"
            f" {place.reached} before it: its rows are here twice, or are of another log",
            "DISK-13",
            place.position,
        )

    def _reaching_over(self) -> SegproofError | None:
        """Return the error of a log that has offsets of the next one, if both names are right."""
        place, first = self._beyond, self._first
        if place is None or first is None or not self._is_named or first >= place.reached:
            return None
        name = segment_file_name(place.reached, ".log")
        if not self._has(name):
            return None  # the log cleaner has put this log in the place of both
        path = posixpath.join(self._directory, name)
        said = said_first_offset(path, self._files)
        if said is None and self._is_empty(path):
            return None  # no row can be in both
        if said is not None:
            following = NamedLog(path, place.reached)
            if said <= first or is_name_low(following, said, self._reach + 1, self._files):
                return None  # wrong names: no offset is in both
        return self._error(
            f"a batch ends at offset {place.offset}, and the next segment begins at"
            f" {place.reached}: rows are in both, or are of another log",
            "LOG-4",
            place.position,
        )

    def _out_of_place(self) -> SegproofError | None:
        """Return the error of a log without the offsets of its name, if other logs have its own."""
        first, following = self._first, self._following
        if first is None or not self._is_named:
            return None
        is_below = first < self._base
        if not is_below and (following is None or first < following):
            return None
        name = self._log_with_its_offsets(first)
        if name is None:
            return None  # only the name is wrong
        rest = "on" if following is None else f"to {following - 1}"
        return self._error(
            f"the log begins at offset {first}, {'below' if is_below else 'beyond'} the offsets of"
            f" its name, {self._base} {rest}, and {name} has offsets that are here too: rows are"
            " here twice, or are of another log, and those that belong here are missing",
            "DISK-13" if is_below else "LOG-4",
            0,
        )

    def _log_with_its_offsets(self, first: int) -> str | None:
        """Return the name of a log that has offsets of this one, which begins at `first`; or None.

        Two logs are read: the log with the nearest name below `first`, and the log behind it.
        """
        logs = [one for one in folder_of(self._directory, self._files).logs if one != self._base]
        at = max(0, bisect_right(logs, first) - 1)
        for base in logs[at : at + 2]:
            name = segment_file_name(base, ".log")
            with (
                suppress(OSError),
                closing(self._files.open(posixpath.join(self._directory, name))) as file,
            ):
                table = read_batch_headers(file).table
                is_here = (table["last_offset"] >= first) & (first_offsets(table) <= self._reach)
                if is_here.any():
                    return name
        return None

    def _cut_out(self) -> SegproofError | None:
        """Return the error of a log whose indexes show that batches are gone from it.

        A broker may be replacing the files one by one: changed ones are asked again.
        """
        if not (self._has_gap and self._is_named):
            return None
        paths = self._directory, self._path
        found = cut_out_finding(self._segment(), self._files)
        for seconds in PAUSES_SECONDS:
            if found is None or not wait_for_a_step(paths, self._files, seconds):
                break
            found = cut_out_finding(self._segment(), self._files)
        return None if found is None else self._error(found.message, found.law, found.position)

    def _segment(self) -> Segment:
        there = frozenset(
            suffix
            for suffix in SEGMENT_SUFFIXES
            if self._has(segment_file_name(self._base, suffix))
        )
        return Segment(
            self._directory, self._base, there, self._following, is_stopped=False, judged=there
        )

    def _is_empty(self, path: str) -> bool:
        status = status_of(self._files, path)
        return status is not None and status.size_bytes == 0

    def _has(self, name: str) -> bool:
        return status_of(self._files, posixpath.join(self._directory, name)) is not None


def refuse_all(errors: Sequence[SegproofError]) -> None:
    """Raise the first error, with the words of the others in it. Nothing for none."""
    if not errors:
        return
    first, *others = errors
    first.message = "; ".join([first.message, *map(str, others)])
    raise first
