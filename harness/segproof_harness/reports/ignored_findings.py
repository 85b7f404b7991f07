# SPDX-License-Identifier: Apache-2.0
"""Findings that a user knows and ignores, each for a reason: they are counted, and not shown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from os.path import abspath
from pathlib import PurePath

from segproof.counts import plural
from segproof.findings import Finding, Summary
from segproof.reading.file_names import read_partition_name

WILDCARD = re.compile(r"\[[^]]*\]|[*?]")


@dataclass(frozen=True, slots=True)
class IgnoreEntry:
    """One entry of a configuration file: which findings are ignored, and why."""

    law: str
    reason: str
    path: str | None = None
    """Pattern of a file, or of a folder, which stands for all files in it; None: every file.
    A relative pattern fits the end of a path, an absolute one fits a whole path; `*` never fits a
    slash."""
    until: date | None = None
    """The last day, in UTC, on which it ignores; None: it has no end."""

    def matches(self, law: str, path: str) -> bool:
        """Return whether the findings of a law in a file are meant."""
        if law != self.law:
            return False
        if self.path is None:
            return True
        whole = PurePath(abspath(path))
        return any(each.match(self.path) for each in (whole, *whole.parents))

    def may_concern(self, place: str) -> bool:
        """Return whether it may mean something at a partition, store or file that was checked.

        A relative pattern without the name of a partition may fit a file of any place.
        """
        if self.path is None:
            return True
        pattern, whole = PurePath(self.path), PurePath(abspath(place))
        above = (whole, *whole.parents)
        if pattern.is_absolute():
            begins = [str(one) for one in pattern.parents][:-1]
            return any(one.match(self.path) for one in above) or any(map(whole.match, begins))
        named = [one for one in (pattern, *pattern.parents) if _is_partition(one.name)]
        return not named or any(one.match(str(named[0])) for one in above)

    def __str__(self) -> str:
        return self.law if self.path is None else f"{self.law} in {self.path}"


def _is_partition(pattern: str) -> bool:
    """Return whether a part of a pattern is that of the directory of a partition."""
    return read_partition_name(WILDCARD.sub("0", pattern)) is not None


class IgnoredFindings:
    """Takes findings that entries ignore out of a run, and counts them."""

    def __init__(self, source: str, entries: Sequence[IgnoreEntry], today: date) -> None:
        """`source` is the configuration file, and `today` the day in UTC."""
        self._source = source
        self._ended = [one for one in entries if one.until is not None and one.until < today]
        self._counts = {one: 0 for one in entries if one not in self._ended}
        self.count = 0
        """How many findings were ignored."""
        self._told = 0
        self._is_elsewhere: dict[IgnoreEntry, bool] = {}
        """Whether an entry means none of the places that were checked so far."""

    def ignores(self, law: str, path: str, places: int = 1) -> bool:
        """Return whether the next finding is ignored, and count its places if it is."""
        matching = [entry for entry in self._counts if entry.matches(law, path)]
        for entry in matching:
            self._counts[entry] += places
        self.count += places if matching else 0
        return bool(matching)

    def without(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings that no entry ignores."""
        return (one for one in findings if not self.ignores(one.law, one.path, one.places))

    def counted(self, summary: Summary) -> Summary:
        """Return the summary with the number of findings that were ignored since the last one."""
        for entry in self._counts:
            if self._is_elsewhere.get(entry, True):
                self._is_elsewhere[entry] = not entry.may_concern(summary.path)
        ignored, self._told = self.count - self._told, self.count
        return replace(summary, ignored=ignored)

    def lines(self, *, judges: Iterable[str]) -> Iterator[str]:
        """Yield a line for each entry: what it ignored, that it ignored nothing, or has ended.

        That it ignored nothing is said for the laws `judges` only, those of a run over whole files,
        and not for an entry about a partition that was not checked.
        """
        laws = frozenset(judges)
        for entry, count in self._counts.items():
            if count:
                told = f"{plural(count, 'finding')} of {entry} ignored: {entry.reason}"
                yield f"{self._source}: {told}"
            elif entry.law in laws and not self._is_elsewhere.get(entry):
                yield f"{self._source}: {entry}: matched no finding of this run"
        for entry in self._ended:
            yield f"{self._source}: {entry}: no longer ignored, since {entry.until} has passed"
