# SPDX-License-Identifier: Apache-2.0
"""Verify again whenever files change, and tell only what is new."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, NoReturn

import typer

from segproof_harness.cli.common import check_readable, summarise
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from segproof.findings import Finding, Summary, Verdict
    from segproof_harness.reports.report import Report

Place = tuple[str, str]
"""The kind and the path of a summary."""
Defect = tuple[str, str, int | None]
"""The law, the path and the position of a finding that is no note."""


@dataclass(slots=True)
class Known:
    """What the rounds so far have told: of each partition or store its verdict and defects."""

    places: "dict[Place, tuple[Verdict, frozenset[Defect]]]" = field(default_factory=dict)
    gone: frozenset[Path] = frozenset()
    """The paths that could not be read in the last round."""
    exit_code: int | None = None
    """That of the last round that ended; set before the round tells that it has."""


class NewsReport:
    """Hands a partition's findings and summary to a report if a verdict or a defect is new.

    The findings of one partition wait in memory until its summary comes. A note is never news: the
    zero tail of an index moves with each append.
    """

    def __init__(self, report: "Report", known: Known) -> None:
        self._report = report
        self._known = known
        self._waiting: list[Finding] = []
        self._seen: set[Place] = set()
        self.has_news = False

    def finding(self, finding: "Finding") -> None:
        """Take the next finding."""
        self._waiting.append(finding)

    def summary(self, summary: "Summary") -> None:
        """Hand on the findings and the summary, if they are news."""
        found, self._waiting = self._waiting, []
        defects = frozenset((one.law, one.path, one.position) for one in found if one.is_defect)
        place = summary.kind, summary.path
        self._seen.add(place)
        verdict, before = self._known.places.get(place, (None, frozenset()))
        self._known.places[place] = summary.verdict, defects
        if verdict is summary.verdict and defects <= before:
            return
        self.has_news = True
        for one in found:
            self._report.finding(one)
        self._report.summary(summary)

    def end(self) -> None:
        """Tell which partitions and stores are gone since the last round."""
        self._report.end()
        for place in self._known.places.keys() - self._seen:
            del self._known.places[place]
            self.has_news = True
            summarise(f"no longer there: {place[1]}")

    def look_at(self, paths: Iterable[Path]) -> list[Path]:
        """Return the paths that can be read; tell of the others once, and when they are back."""
        reasons: dict[Path, str] = {}
        for path in paths:
            try:
                check_readable(path)
            except OSError as error:
                reasons[path] = reason_of(error)
        for path in reasons.keys() - self._known.gone:
            summarise(f"{reasons[path]}; it is checked again when it is back")
            self.has_news = True
        self._known.gone = frozenset(reasons)
        return [path for path in paths if path not in reasons]


def watch(paths: Iterable[Path], seconds: float, verify_once: Callable[[Known], None]) -> NoReturn:
    """Verify, and again whenever a file has changed, until Ctrl-C.

    The files are looked at every so many seconds. `verify_once` tells what is new, and keeps the
    exit code; that of the last round is the exit code of all. A path that is gone for a while, such
    as a partition that is moved, ends nothing.
    """
    known = Known()
    try:
        while True:
            seen = _state_of(paths)
            verify_once(known)
            while _state_of(paths) == seen:
                sleep(seconds)
    except KeyboardInterrupt:
        if known.exit_code is None:
            raise
        raise typer.Exit(known.exit_code) from None


def _state_of(paths: Iterable[Path]) -> bytes:
    """Return a digest of the names, sizes, times and identities of all files at or below paths."""
    digest = hashlib.blake2b()
    for path in paths:
        for file in _files_below(os.fspath(path)):
            try:
                found = os.stat(file)
            except OSError:  # it went away
                continue
            facts = (file, found.st_size, found.st_mtime_ns, found.st_dev, found.st_ino)
            digest.update(repr(facts).encode())
    return digest.digest()


def _files_below(path: str) -> Iterator[str]:
    """Yield the files and folders below a path, and those that links lead to.

    As verify does, look into each folder once.
    """
    yield path
    known = {_identity(path)}
    for folder, folders, names in os.walk(path, followlinks=True):
        yield from (os.path.join(folder, name) for name in sorted([*folders, *names]))
        below = {_identity(os.path.join(folder, name)): name for name in sorted(folders)}
        folders[:] = [name for identity, name in below.items() if identity not in known]
        known.update(below)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:  # it went away
        return None
    return found.st_dev, found.st_ino
