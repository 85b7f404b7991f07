# SPDX-License-Identifier: Apache-2.0
"""Where a commit log has no message that is kept: gaps, with the file of each.

Laws: RMQDISK-24 to RMQDISK-27.
"""

from typing import NamedTuple

from segproof.stretches.rocketmq.desk import GapKind as GapKind

GAPS_MAX = 10_000
"""So many gaps are kept one by one."""


class Gap(NamedTuple):
    """The offsets [start, end) of a log, where no sound message is."""

    kind: GapKind
    path: str
    """The file; for files that are missing the one before them."""
    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end - self.start


class Gaps:
    """Some gaps of a log, in order."""

    def __init__(self) -> None:
        self.places = 0
        self.size_bytes = 0
        self.kept: list[Gap] = []
        """The first GAPS_MAX of them."""

    @property
    def is_complete(self) -> bool:
        """Whether each of them is kept."""
        return self.places == len(self.kept)

    def add(self, gap: Gap) -> None:
        """Take the next one; one of the same kind that it touches becomes longer."""
        self.size_bytes += gap.size_bytes
        last = self.kept[-1] if self.kept and self.is_complete else None
        if last is not None and (last.kind, last.end) == (gap.kind, gap.start):
            self.kept[-1] = last._replace(end=gap.end)
            return
        self.places += 1
        if len(self.kept) < GAPS_MAX:
            self.kept.append(gap)

    def join(self, other: "Gaps") -> None:
        """Take those that follow."""
        self.places += other.places
        self.size_bytes += other.size_bytes
        self.kept += other.kept[: GAPS_MAX - len(self.kept)]
