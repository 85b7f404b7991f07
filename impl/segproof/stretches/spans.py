# SPDX-License-Identifier: Apache-2.0
"""The bytes of a log in spans: each is of one kind, and they touch."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple


class SpanKind(StrEnum):
    """The kind says what a span of a log holds, and what becomes of that."""

    SOUND = "sound"
    """Batches, or messages, that stay as they are, one after the other."""
    MENDED = "mended"
    """Batches whose size or magic is wrong, and whose checksum proves which is right."""
    RESTORED = "restored"
    """Batches whose base offset is wrong, and whose place states the right one."""
    MOVED = "moved"
    """Batches, or messages, that are sound, and belong to another place of the log."""
    ASIDE = "aside"
    """Batches with right checksums that belong nowhere in the log."""
    BROKEN = "broken"
    """Bytes in which there is no batch with a right checksum."""
    TORN = "torn"
    """The beginning of a batch that the end of the log cuts off."""
    ZEROS = "zeros"
    """Zeros up to the end of the log: the tail of a preallocated file, or of one that lost data."""
    UNSEARCHED = "unsearched"
    """Bytes behind damage that were not searched: too much of them looks like batches."""


class Span(NamedTuple):
    """Bytes [start, end) of a log, and what the headers of the batches in it state."""

    kind: SpanKind
    start: int
    end: int
    batches: int = 0
    """Or messages; 0 in a span without any."""
    records: int = 0
    """A compressed message of magic 0 or 1 counts as one record."""
    first_offset: int = -1
    """With the base offset that they get."""
    last_offset: int = -1
    min_timestamp: int = -1
    """In milliseconds, as `max_timestamp`; -1 where no batch has one."""
    max_timestamp: int = -1
    rule_id: str = ""
    """The rule of placing that decided it, as `PLACE-3`; empty where none is asked."""

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.start

    def joined(self, other: "Span") -> "Span":
        """Return a span of both, where `other` follows."""
        earliest = [one.min_timestamp for one in (self, other) if one.min_timestamp >= 0]
        return self._replace(
            end=other.end,
            batches=self.batches + other.batches,
            records=self.records + other.records,
            last_offset=other.last_offset,
            min_timestamp=min(earliest, default=-1),
            max_timestamp=max(self.max_timestamp, other.max_timestamp),
        )


def in_runs(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans again; those that touch, and have one kind and one rule, come as one."""
    run: Span | None = None
    for span in spans:
        if run is None:
            run = span
        elif run.end == span.start and (run.kind, run.rule_id) == (span.kind, span.rule_id):
            run = run.joined(span)
        else:
            yield run
            run = span
    if run is not None:
        yield run
