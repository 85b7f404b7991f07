# SPDX-License-Identifier: Apache-2.0
"""Logs that Kafka's next start deletes, though nothing replaces them.

The loader deletes every `.deleted` log, and every log within the offsets of all `.swap` logs, from
the lowest base to the greatest end; it compares no content. What a broker does leaves such a log
only where another one replaces it, or where retention or a truncation has removed it. A truncation
to an offset removes the logs that begin after it: the last log that stays ends before the first one
that was removed, and offsets between the two are gone.

Upstream: Kafka 4.3.1: LogLoader.load, LocalLog.replaceSegments.
Law: DISK-60.
The cleaner leaves a `.deleted` log beside the log that replaces it. It never cleans the active
segment, and takes each record without a key on its way.
A cleaning makes no batch that the old logs lack: a `.swap` log with such a one is of another log,
or the base offset of a batch is damaged in one of the two.
Not covered: single batches that a `.swap` log lacks. Of logs that retention, a truncation or a
    recovery may have removed LOAD-1 tells the offsets.
"""

import posixpath
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress

import numpy as np

from segproof.commands import copy_commands, quoted_path
from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import Hint, changes, reads, writes
from segproof.integers import INT64_MAX, INT64_MIN
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import EPOCHS, METADATA, FileName, NameKind
from segproof.reading.keyless_records import MAX_BATCH_BYTES, are_of_records, has_keyless
from segproof.reading.new_places import new_place, own_place
from segproof.reading.swap_batches import ForeignBatch, foreign_batches
from segproof.reading.waiting_logs import (
    LOG_SWAP,
    OnlyCopy,
    Ranges,
    bases_of,
    batches_in,
    damage_in,
    end_of,
    only_copy,
    sound_end_of,
    swap_logs,
)
from segproof.stretches.kafka.header_rows import first_offsets
from segproof.wording.partition_words import DELETED, REPLACED, REST
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

COPY_AWAY = writes("copy this file away before a broker starts here")
KEEP_COPY = writes(
    "copy this file away before a broker starts here, which deletes it. `segproof verify` and"
    " `segproof salvage` read the copy if its name ends in .log, in a folder with this partition's"
    " name that has copies of removed logs only"
)
UNLESS_COMPACTED = KEEP_COPY.after("nothing, if the topic is compacted; else ")
COPY_BOTH = writes(
    "copy this file and that log away before a broker starts here, which deletes the log. An index"
    " of one of the two, or another replica, may tell which offsets are right"
)
SEE_SWAP = reads("see what DISK-60 says of that .swap log before a broker starts here")
ONLY_COPY = "no other log here has its offsets: this may be the only copy of its records"
AT_THE_END = (
    "no other log here has its offsets: where a truncation or a recovery of this replica has"
    " removed it, the leader has what counts; else this is the only copy of its records"
)
"""A copy of a partition needs these files too; a salvage makes the indexes new."""
NAMED_MAX = 20
"""A hint has commands for at most this many removed logs."""
declare("partition-log", Severity.WARNING,
    writes("copy the directory away before a broker starts here: its next start deletes this"
    " log. Then take .deleted off the names of such logs in the copy, verify the copy, and save it"
    " with `segproof salvage`"), "DISK-60")  # fmt: skip


class ReplacedLogs:
    """The logs of a partition, and what takes their place at the next start."""

    def __init__(
        self, directory: str, kinds: Mapping[str, FileName], damaged: set[int], files: Files
    ) -> None:
        """Read which offsets the `.swap` logs hold; `damaged` are the bases of damaged ones."""
        self._directory, self._files, self._kinds = directory, files, kinds
        self.ranges: Ranges = {}
        """The offsets of the sound batches of the logs that were read so far."""
        self._spans: Ranges = {}
        """The same ranges, in which batches with wrong checksums count too."""
        self._empty: dict[str, bool] = {}
        self._logs = bases_of(kinds)
        self._swaps = swap_logs(kinds)
        self._damaged = damaged
        self._deleted = {
            known.base_offset: name
            for name, known in kinds.items()
            if known.kind is NameKind.PENDING and name.endswith(DELETED)
        }
        self._ends = {base: self._end(base, name) for base, name in self._swaps.items()}
        self._foreign: dict[int, dict[int, ForeignBatch]] | None = None

    def _path(self, name: str) -> str:
        return posixpath.join(self._directory, name)

    def _end(self, base: int, name: str) -> int:
        return end_of(self._path(name), base, self._files) or base + 1

    @property
    def range(self) -> tuple[int, int]:
        """The first offset of all `.swap` logs, and the one after the last."""
        return min(self._swaps), max(self._ends.values())

    @property
    def is_alone(self) -> bool:
        """Whether there is one `.swap` log."""
        return len(self._swaps) == 1

    def replaced(self) -> list[int]:
        """Return the base offsets of the logs that the `.swap` logs replace."""
        if not self._swaps:
            return []
        first, end = self.range
        return [base for base in self._logs if first <= base < end]

    def unreplaced(self) -> dict[str, str]:
        """Return the names of the logs that are deleted with no replacement, and why, in words."""
        found = self._words_of_foreign()
        of_others = self._of_others()
        for base in self.replaced():
            if base not in of_others and self._is_held(base):
                continue
            words = "they end before its last offset, or have no batch of it"
            if base in of_others:
                swap = of_others[base]
                begin, end, _ = self.foreign[swap][base]
                words = (
                    f"the batch of {self._swaps[swap]} with the offsets {begin} to {end} is not"
                    " made of it"
                )
            elif self._first(base) in self._damaged:
                words = f"{self._swaps[self._first(base)]} is damaged before its last offset"
            found[segment_file_name(base, ".log")] = (
                "Kafka deletes this log at its next start, to put .swap logs in its place, and they"
                f" do not hold all of it: {words}"
            )
        for base, name in self._deleted.items():
            if not self._is_replaced(base):
                last = self._logs[-1:]
                found[name] = "Kafka deletes this log at its next start, and " + (
                    AT_THE_END if last and last[0] <= base else ONLY_COPY
                )
        return found

    @property
    def foreign(self) -> dict[int, dict[int, ForeignBatch]]:
        """The whole `.swap` logs that are not made of the logs here, by base offset.

        Each has the base offsets of the logs that show it, with the offsets of a batch.
        """
        if self._foreign is None:
            logs = [(base, self._path(segment_file_name(base, ".log"))) for base in self.replaced()]
            found = {
                base: foreign_batches(self._path(name), logs, self._files)
                for base, name in self._swaps.items()
                if logs and base not in self._damaged
            }
            self._foreign = {base: one for base, one in found.items() if one}
        return self._foreign

    def _words_of_foreign(self) -> dict[str, str]:
        """Return the names of `.swap` logs that are not made of the logs here, with the words."""
        found = {}
        for base, logs in self.foreign.items():
            others = {log: one for log, one in logs.items() if not one.shift}
            log, (first, last, shift) = min((others or logs).items())
            name = segment_file_name(log, ".log")
            if others:
                words = (
                    "at its next start Kafka puts this file in the place of"
                    f" {plural(len(others), 'log')} here that it is not made of: its batch with the"
                    f" offsets {first} to {last} is not in {name}, or has other records there. The"
                    " start deletes these logs, and serves what this file has"
                )
            else:
                words = (
                    f"its batch with the offsets {first} to {last} has the offsets {first - shift}"
                    f" to {last - shift} in {name}: the base offset of one of the two is damaged,"
                    " which no checksum covers. At its next start Kafka puts this file in the place"
                    " of that log, and deletes the log"
                )
            found[self._swaps[base]] = words
        return found

    def _of_others(self) -> dict[int, int]:
        """Return the base offsets of logs with that of a `.swap` log that has other records."""
        return {
            log: swap
            for swap, logs in self.foreign.items()
            for log, one in logs.items()
            if not one.shift
        }

    def _step_out(self, base: int) -> Hint:
        """Return how a `.swap` log that is not made of the logs here is kept from a start.

        Its indexes go with it: Kafka renames them too.
        """
        there = quoted_path(own_place("swap", self._directory, self._path(self._swaps[base])))
        files = " ".join(
            quoted_path(self._path(name))
            for name, known in sorted(self._kinds.items())
            if known.kind is NameKind.PENDING
            and name.endswith(".swap")
            and known.base_offset == base
        )
        return changes(
            "move it out of the partition, with the indexes that wait for their place beside it:"
            f" `mkdir -p {there} && mv -n {files} {there}/`, and verify the partition again",
            only_if="verify reports no damage of the logs in whose place it would be",
            if_wrong="records that only this file has are not served; they stay in the folder that"
            " it was moved to",
            copy_step="stop the broker, and copy the partition's folder away",
        )

    def report(self, unreplaced: Mapping[str, str], reporter: Reporter) -> set[str]:
        """Report what `unreplaced` found.

        Return the paths of the removed logs among it, and if there is any, of the `.swap` logs.
        """
        names = [name for name in unreplaced if name.endswith(DELETED)]
        of_others = self._of_others()
        steps = self._steps(names)
        for name, words in unreplaced.items():
            report = reporter.at(self._path(name), shown_by=self._directory)
            base = int(name[:20])
            if name.endswith(LOG_SWAP) and base not in of_others.values():
                report.add(REPLACED, words, hint=COPY_BOTH)
            elif name.endswith(LOG_SWAP):
                report.add(REPLACED, words, severity=Severity.ERROR, hint=self._step_out(base))
            elif name.endswith(".log") and base in of_others:
                report.add(REPLACED, words, hint=SEE_SWAP)
            else:
                report.add(REPLACED, words, hint=steps)
        if unreplaced:
            names += self._swaps.values()
        return {self._path(name) for name in names}

    def _steps(self, names: list[str]) -> Hint | None:
        """Return how removed logs are saved: by a copy in which they have their names again."""
        if not 0 < len(names) <= NAMED_MAX:
            return None
        new = own_place("restored", self._directory, self._directory)
        own = posixpath.basename(posixpath.abspath(self._directory))
        copy = posixpath.join(new, own)
        # Where a log of its name is there, the removed one gets a folder of its own.
        apart = posixpath.join(new, "removed", own)
        held = [name for name in names if int(name[:20]) in self._logs]
        steps = [f"`install -d {quoted_path(apart)}`"] if held else []
        for name in names:
            bare = name.removesuffix(".deleted")
            target = posixpath.join(apart if name in held else copy, bare)
            steps.append(f"`cp -n {quoted_path(self._path(name))} {quoted_path(target)}`")
        steps += [f"`segproof verify {quoted_path(apart)}`"] if held else []
        named = ", ".join(steps)
        return writes(
            "copy the directory away before a broker starts here, take .deleted off the names in"
            f" the copy, and save the copy: {copy_commands(self._directory, copy)}, {named},"
            f" `segproof verify {quoted_path(copy)}`, and"
            f" `segproof salvage {quoted_path(copy)} --out {quoted_path(new_place('saved', new))}`."
            " Where verify reports overlapping logs, another log has these offsets, and only one of"
            " the two is right: compare them"
        )

    def steps_of_copies(self, paths: Collection[str]) -> Hint | None:
        """Return how removed logs are saved together; None if they are too many to name.

        Where they and the other logs have each sound batch of the damaged `.swap` logs, they take
        the place of these in a copy. Else they get a folder of their own: they may overlap the
        other logs.
        """
        names = sorted(map(posixpath.basename, paths))
        if not 0 < len(names) <= NAMED_MAX:
            return None
        own = posixpath.basename(posixpath.abspath(self._directory))
        copy = posixpath.join(own_place("removed", self._directory, self._directory), own)
        steps = [f"`install -d {quoted_path(copy)}`"]
        words = "the other logs are not in that folder: they may have the same offsets"
        if self._are_origin(names):
            kept = [one for one in (EPOCHS, METADATA) if one in self._kinds]
            kept += [f"*{suffix}" for suffix in (".log", ".snapshot") if self._has(suffix)]
            folder = quoted_path(self._directory)
            sources = " ".join(f"{folder}/{one}" for one in kept)
            steps += [f"`cp -an {sources} {quoted_path(copy)}`"] if kept else []
            swaps = ", ".join(self._swaps[base] for base in sorted(self._damaged))
            words = (
                f"with the other logs they have all that is sound in {swaps}, which is left out of"
                " the copy"
            )
        for name in names:
            target = quoted_path(posixpath.join(copy, name.removesuffix(".deleted")))
            steps.append(f"`cp -n {quoted_path(self._path(name))} {target}`")
        saved = quoted_path(new_place("saved", copy))
        return writes(
            "copy the removed logs away before a broker starts here, which deletes them, all into"
            f" one folder and without .deleted in their names: {', '.join(steps)}, and"
            f" `segproof salvage {quoted_path(copy)} --out {saved}`, which makes the indexes;"
            f" {words}"
        )

    def _are_origin(self, removed: list[str]) -> bool:
        """Return whether removed logs and the others have all sound batches of the `.swap` logs.

        Each `.swap` log is damaged: a whole one is to be kept, and what it was made of may be gone.
        """
        if not self._damaged or self._damaged != self._swaps.keys():
            return False
        if any(int(name[:20]) in self._logs for name in removed):
            return False  # one folder has no room for both logs of a name
        others = [(int(name[:20]), self._path(name)) for name in removed]
        others += self.log_paths
        return all(
            only_copy(self._path(name), others, self._files, ranges=self.ranges) is None
            for name in self._swaps.values()
        )

    def _has(self, suffix: str) -> bool:
        """Return whether the partition has a file of a segment with this suffix."""
        of_segments = (NameKind.SEGMENT, NameKind.KNOWN)
        return any(
            name.endswith(suffix) and known.kind in of_segments
            for name, known in self._kinds.items()
        )

    @property
    def log_paths(self) -> list[tuple[int, str]]:
        """The base offsets of the logs with their paths."""
        return [(base, self._path(segment_file_name(base, ".log"))) for base in self._logs]

    def of_damaged_logs(self, unreplaced: Collection[str]) -> dict[str, OnlyCopy]:
        """Return the removed logs that hold batches the damaged log in their place has lost.

        The keys are the paths of the removed logs.
        A log that ends before a removed one begins, and that no log follows, is not in its place: a
        truncation leaves it so. `unreplaced` are names that are left out.
        """
        found = {}
        others = [
            *self.log_paths,
            *((base, self._path(name)) for base, name in self._swaps.items()),
        ]
        logs = dict(self.log_paths)
        for base, name in self._deleted.items():
            below = max((one for one, _ in others if one <= base), default=-1)
            is_in_place = below in logs and (below == base or below != self._logs[-1])
            if not is_in_place or name in unreplaced:
                continue
            with suppress(OSError):
                if damage_in(logs[below], self._files) is not None:
                    least = sound_end_of(logs[below], below, self._files)
                    only = only_copy(
                        self._path(name), others, self._files, least=least, ranges=self.ranges
                    )
                    if only is not None:
                        found[self._path(name)] = only
        return found

    def paths_of_end(self) -> list[str]:
        """Return the path of the last log, if there is one."""
        return [self._path(segment_file_name(base, ".log")) for base in self._logs[-1:]]

    def _first(self, base: int) -> int:
        """Return the base offset of the last `.swap` log that begins at or before a log."""
        return max(one for one in self._swaps if one <= base)

    def _is_held(self, base: int) -> bool:
        """Return whether the `.swap` logs hold what a log does, as far as offsets tell."""
        path, first = self._path(segment_file_name(base, ".log")), self._first(base)
        end = end_of(path, base, self._files)
        if self._is_empty(path) or end is None:
            return True
        if self._ends[first] > base and first in self._damaged and first not in self._logs:
            return end <= sound_end_of(self._path(self._swaps[first]), first, self._files)
        if self._ends[first] > base and (first not in self._logs or first in self._damaged):
            return True
        return max(self._ends.values()) >= end and any(
            bool(np.any((table["base_offset"] < end) & (table["last_offset"] >= base)))
            for name in self._swaps.values()
            for table in self._tables(self._path(name))
        )

    def _is_replaced(self, base: int) -> bool:
        """Return whether a removed log is where a broker leaves one that is not needed."""
        bases = sorted({*self._swaps, *self._logs})
        below = max((one for one in bases if one <= base), default=None)
        if self._size(self._path(self._deleted[base])) == 0:
            return True
        if below is None:
            return bool(bases)
        if below not in self._logs:
            return self._size(self._path(self._swaps[below])) != 0
        if below == bases[-1]:  # the active segment, which is never cleaned
            return base not in self._next_to_the_end()
        end = end_of(self._path(segment_file_name(below, ".log")), below, self._files)
        is_cleaned = below in self._deleted or end is None or end > base
        return is_cleaned and not self._is_cut(base)

    def _is_cut(self, base: int) -> bool:
        """Return whether the end of a removed log is gone, and no cleaning took it.

        A cleaning takes each record without a key on its way: so none has come this far if the log
        before has one. After all logs a truncation may have taken the end.
        """
        names = (segment_file_name(one, ".log") for one in reversed(self._logs) if one < base)
        paths = (path for path in map(self._path, names) if not self._is_empty(path))
        before = next(paths, None)
        is_near = before is not None and self._ends_without_key(before)
        return is_near and self._is_end_gone(base)

    def _is_end_gone(self, base: int) -> bool:
        """Return whether no log has the last offset of a removed one, and one goes on after it."""
        last = -1
        for table in self._tables(self._path(self._deleted[base])):
            last = int(table["last_offset"][-1])
        names = (*(segment_file_name(one, ".log") for one in self._logs), *self._swaps.values())
        spans = {path: self._span(path) for path in map(self._path, names)}
        if last < 0 or not any(highest > last for _, highest in spans.values()):
            return False
        near = [path for path, (lowest, highest) in spans.items() if lowest <= last <= highest]
        return not any(
            bool(np.any((first_offsets(table) <= last) & (table["last_offset"] >= last)))
            for path in near
            for table in self._tables(path)
        )

    def _ends_without_key(self, path: str) -> bool:
        """Return whether the last batch of records of a log has a record without a key."""
        last: np.void | None = None
        for table in self._tables(path):
            rows = table[are_of_records(table)]
            last = rows[-1].copy() if len(rows) else last
        if last is None:
            return False
        try:
            with closing(self._files.open(path)) as file:
                return has_keyless(file, last, MAX_BATCH_BYTES)
        except OSError:
            return False

    def _next_to_the_end(self) -> set[int]:
        """Return the removed logs that go on where the last log ends, and each other."""
        last = self._logs[-1]
        path = self._path(segment_file_name(last, ".log"))
        found: set[int] = set()
        end = last if self._is_empty(path) else end_of(path, last, self._files)
        for base in sorted(self._deleted):
            removed = self._path(self._deleted[base])
            if base == end and not self._is_empty(removed):
                found.add(base)
                end = end_of(removed, base, self._files)
        return found

    def words_of_removed(self, base: int) -> str:
        """Return what a removed log before or after all logs holds, in words; else nothing."""
        bases = sorted({*self._swaps, *self._logs})
        path = self._path(self._deleted.get(base, ""))
        if base not in self._deleted or not bases or self._is_empty(path):
            return ""
        first = base
        end: int | None
        if base < bases[0]:
            # The log is not read for its end: there may be many such logs, of a GB each.
            end = min(one for one in (*bases, *self._deleted) if one > base)
            why = "it lies before all logs, so retention or a deletion of records has removed it"
        elif base >= bases[-1] and base not in self._swaps:
            last = segment_file_name(bases[-1], ".log")
            is_empty = self._is_empty(self._path(last))
            kept = base if is_empty else end_of(self._path(last), bases[-1], self._files)
            first, end = max(base, kept or base), end_of(path, base, self._files)
            why = "it follows the last log, so a truncation or a recovery has removed it"
        elif base not in self._swaps and self._is_end_gone(base):
            first, end = self._gap_of(base)
            why = "if the topic is compacted, the log that a cleaning made is in its place"
        else:
            return ""
        if end is not None and end <= first:
            return ""
        offsets = f"offsets from {first} on" if end is None else f"offsets {first} to {end - 1}"
        return f"; {why}, and {REST} {offsets}"

    def _gap_of(self, base: int) -> tuple[int, int]:
        """Return the offsets of a removed log that no log has, up to its last one: first and end.

        Those before a batch of another log may be gaps of a cleaning.
        """
        end = end_of(self._path(self._deleted[base]), base, self._files) or base + 1
        first = base
        names = (segment_file_name(one, ".log") for one in reversed(self._logs) if one < end)
        for path in map(self._path, names):
            for table in self._tables(path) if self._span(path)[1] >= first else ():
                lasts = table["last_offset"][table["last_offset"] < end]
                first = max([first, *(lasts[-1:] + 1).tolist()])
        return first, end

    def hint_of_removed(self, base: int) -> Hint | None:
        """Return what to do about a removed log whose offsets no log has; None: nothing."""
        bases = sorted({*self._swaps, *self._logs})
        if not bases or base < bases[0]:  # as retention leaves it
            return None
        return KEEP_COPY if base >= bases[-1] else UNLESS_COMPACTED

    def _is_empty(self, path: str) -> bool:
        """Return whether a log has no batch."""
        if path not in self._empty:
            self._empty[path] = next(self._tables(path), None) is None
        return self._empty[path]

    def _span(self, path: str) -> tuple[int, int]:
        """Return the lowest and the highest offset of a log; it is read once for all questions."""
        if path not in self._spans:
            lowest, highest = INT64_MAX, INT64_MIN
            for table in self._tables(path):
                lowest = min(lowest, int(first_offsets(table).min(initial=INT64_MAX)))
                highest = max(highest, int(table["last_offset"].max(initial=INT64_MIN)))
            self._spans[path] = lowest, highest
        return self._spans[path]

    def _size(self, path: str) -> int | None:
        """Return the size of a log, or None if it can't be read."""
        try:
            with closing(self._files.open(path)) as file:
                return file.size()
        except OSError:
            return None

    def _tables(self, path: str) -> Iterator[np.ndarray]:
        """Yield the batches of a log, also after a broken frame."""
        try:
            yield from batches_in(path, self._files)
        except (OSError, SegproofError):
            return
