# SPDX-License-Identifier: Apache-2.0
"""What a damaged file holds from its first to its last byte, in a few hundred columns.

A log is read once more, and each batch has the fate that `verify` tells: decided by this log alone.
Of any other file only the places are known at which a law is broken.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from segproof.files import Files, ReadOnlyFile
from segproof.kafka.segment_names import named_base_offset, offset_of_name
from segproof.reading.log_damage import LogDamage, damage_of, damage_of_log
from segproof.reading.log_in_order import LogInOrder
from segproof.reading.log_placement import LogPlacement, placement_of_log
from segproof.reading.offset_entries import entries_in
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, named_offset
from segproof.stretches.spans import Span, SpanKind, in_runs

COLUMNS = 240
"""So many columns a file has. The smallest damage takes one of them."""
SPANS_MAX = 14
"""So many spans are listed one by one; all of them are drawn and counted."""
WORST_FIRST = (
    SpanKind.BROKEN,
    SpanKind.TORN,
    SpanKind.MENDED,
    SpanKind.RESTORED,
    SpanKind.ASIDE,
    SpanKind.MOVED,
    SpanKind.UNSEARCHED,
    SpanKind.ZEROS,
    SpanKind.SOUND,
)
"""Where several kinds share a column, the first of them is drawn."""


@dataclass(slots=True)
class FileMap:
    """One file."""

    path: str
    size_bytes: int
    has_messages: bool = False
    """Whether it is a file of RocketMQ's commit log: its spans hold messages, not batches."""
    start: int = 0
    """The offset in the commit log of its first byte."""
    columns: list[int] = field(default_factory=list)
    """For each column the place in WORST_FIRST of what is drawn. Empty: the file is no log."""
    spans: list[Span] = field(default_factory=list)
    """The first SPANS_MAX, by position in the file."""
    places: Counter[SpanKind] = field(default_factory=Counter)
    """How many spans there are of each kind."""
    bytes_of: Counter[SpanKind] = field(default_factory=Counter)
    kept_batches: int = 0
    """Sound batches, or messages, before the place where a recovery cuts the log."""
    damage: LogDamage | None = None
    """From that place on; None where no recovery cuts the log."""

    def take(self, span: Span) -> None:
        """Take the next span."""
        self.places[span.kind] += 1
        self.bytes_of[span.kind] += span.size_bytes
        if len(self.spans) < SPANS_MAX:
            self.spans.append(span)
        rank = WORST_FIRST.index(span.kind)
        first, last = self.column(span.start), self.column(span.end - 1)
        for number in range(first, last + 1):
            self.columns[number] = min(self.columns[number], rank)

    def column(self, position: int) -> int:
        """Return the column of a byte."""
        return max(0, min(COLUMNS - 1, position * COLUMNS // max(1, self.size_bytes)))

    def runs(self) -> Iterator[tuple[SpanKind, int, int]]:
        """Yield the kind of the columns [first, behind) that are drawn as one."""
        first = 0
        for number in range(1, len(self.columns) + 1):
            if number == len(self.columns) or self.columns[number] != self.columns[first]:
                yield WORST_FIRST[self.columns[first]], first, number
                first = number


def read_file_map(path: str, cut: int | None, files: Files) -> FileMap:
    """Read what a file holds. A recovery cuts a log at the byte `cut`; None: it does not.

    Memory: as `placement_of_log` and `LogInOrder`. Raises: OSError, and CorruptRecordError if a
    log is changed meanwhile.
    """
    status = files.status(path)
    told = FileMap(path, 0 if status is None else status.size_bytes)
    if not told.size_bytes:
        return told
    start = named_offset(os.path.basename(path))
    if path.endswith(".log"):
        with closing(files.open(path)) as file:
            placed = _placement_of_segment(file, told.size_bytes, files)
        _draw(told, placed.spans(), cut)
        told.damage = None if cut is None else damage_of_log(placed, cut, _is_unproven)
    elif start is not None and os.path.basename(os.path.dirname(path)) == COMMIT_LOG:
        told.has_messages, told.start = True, start
        _draw(told, in_runs(_of_log_file(path, start, told.size_bytes, files)), cut)
    return told


def _is_unproven(*_: int) -> bool:
    """Return that no missing offset is lost for certain: compaction may have taken it before."""
    return False


def _draw(told: FileMap, spans: Iterable[Span], cut: int | None) -> None:
    told.columns = [len(WORST_FIRST) - 1] * COLUMNS

    def taken() -> Iterator[Span]:
        for span in spans:
            told.take(span)
            if span.kind is SpanKind.SOUND and (cut is None or span.end <= cut):
                told.kept_batches += span.batches
            yield span

    damage = damage_of(taken(), cut or 0)
    told.damage = None if cut is None else damage


def _placement_of_segment(file: ReadOnlyFile, size_bytes: int, files: Files) -> LogPlacement:
    base_offset = max(0, named_base_offset(file.path, ".log") or 0)
    names = files.list_directory(os.path.dirname(file.path) or ".")
    others = (offset_of_name(name, ".log") for name in names)
    later = [other for other in others if other is not None and other > base_offset]
    entries = entries_in(file.path.removesuffix(".log") + ".index", base_offset, files)
    following = min(later, default=None)
    return placement_of_log(file, base_offset, following, end=size_bytes, entries=entries)


def _of_log_file(path: str, start: int, size_bytes: int, files: Files) -> Iterator[Span]:
    """Yield the spans of one file of a commit log, by position in the file."""
    store = os.path.dirname(os.path.dirname(path)) or "."
    size = CommitLog.open(store, files=files).mapped_file_size or size_bytes
    one = LogFile(start, path, min(size, size_bytes))
    log = CommitLog(store, size, (one,), files)
    yield from LogInOrder(log, files, open_file=files.open).spans()
