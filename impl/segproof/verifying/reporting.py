# SPDX-License-Identifier: Apache-2.0
"""Collecting findings: what was asked for only, and never more than memory holds.

A damaged file can break a law in every entry. The first FINDINGS_PER_LAW of a law and file are kept
one by one; the others are counted, and one finding at the end says how many there were.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.findings import Finding, Severity
from segproof.verifying.rules import RULES

__all__ = ["FINDINGS_PER_LAW", "Described", "Reporter", "Wanted"]

FINDINGS_PER_LAW = 100

Value = int | str | None
Int64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is asked for."""

    laws: frozenset[str] | None = None
    """None: all."""
    position: int | None = None
    """Only findings at this byte; None: all."""
    deep: bool = False
    limit: int | None = None
    """Bytes that a batch may have, and inflate to, for its records to be read; None: the usual."""
    hash_slots: int | None = None
    """How many slots index files of RocketMQ have; None: they tell."""
    segment_index_bytes: int | None = None
    """What `segment.index.bytes` a broker will load the partitions with; None: it is not known."""

    def includes(self, *laws: str) -> bool:
        """Return whether one of the laws is asked for."""
        return self.laws is None or not self.laws.isdisjoint(laws)


class Described(NamedTuple):
    """The words of one finding."""

    message: str
    expected: Value = None
    actual: Value = None


class Broken(NamedTuple):
    """The places in one file that break one law, whether or not they are wanted; no notes."""

    first: int = 0
    """The lowest byte; meaningless for none."""
    places: int = 0


class Reporter:
    """Takes findings and hands them out in order."""

    def __init__(self, wanted: Wanted, paths: frozenset[str] | None = None) -> None:
        self.wanted = wanted
        self._paths = paths
        """The files that are reported on; None: all."""
        self._found: list[Finding] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._worst: dict[tuple[str, str], Severity] = {}
        self._broken: dict[tuple[str, str], Broken] = {}

    def add(
        self,
        law: str,
        path: str,
        message: str,
        *,
        position: int | None = None,
        expected: Value = None,
        actual: Value = None,
        severity: Severity | None = None,
        hint: str | None = None,
        structure: str | None = None,
        reproduce_path: str | None = None,
    ) -> None:
        """Take one finding; what is not given comes from the law's rule."""
        if position is not None and severity is not Severity.NOTE:
            self._count(law, path, position, 1)
        self._add(
            law, path, message, position, expected, actual, severity, hint, structure,
            reproduce_path,
        )  # fmt: skip

    def _add(
        self,
        law: str,
        path: str,
        message: str,
        position: int | None,
        expected: Value,
        actual: Value,
        severity: Severity | None,
        hint: str | None = None,
        structure: str | None = None,
        reproduce_path: str | None = None,
    ) -> None:
        wanted = self.wanted
        if not wanted.includes(law) or wanted.position not in (None, position):
            return
        if self._paths is not None and path not in self._paths:
            return
        key = (law, path)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        rule = RULES[law]
        severity = severity or rule.severity
        if count > FINDINGS_PER_LAW:
            self._worst.setdefault(key, severity)
            return
        self._found.append(
            Finding(
                law,
                severity,
                structure or rule.structure,
                path,
                position,
                expected,
                actual,
                message,
                hint or rule.hint,
                _command(reproduce_path or path, law, position, wanted),
            )
        )

    def add_rows(
        self,
        law: str,
        path: str,
        positions: Int64Array,
        describe: Callable[[int], Described],
        *,
        severity: Severity | None = None,
        reproduce_path: str | None = None,
    ) -> None:
        """Take a finding for each position; `describe` gets its index in `positions`.

        Cost: beyond FINDINGS_PER_LAW of them, only counting.
        """
        if not len(positions):
            return
        if severity is not Severity.NOTE:
            self._count(law, path, int(positions.min()), len(positions))
        if not self.wanted.includes(law):
            return
        if self._paths is not None and path not in self._paths:
            return
        rows = np.arange(len(positions))
        if self.wanted.position is not None:
            rows = np.flatnonzero(positions == self.wanted.position)
        key = (law, path)
        room = max(0, FINDINGS_PER_LAW - self._counts.get(key, 0))
        for row in rows[:room].tolist():
            words = describe(row)
            at = int(positions[row])
            self._add(
                law, path, words.message, at, words.expected, words.actual, severity,
                reproduce_path=reproduce_path,
            )  # fmt: skip
        if len(rows) > room:
            self._counts[key] = self._counts.get(key, 0) + len(rows) - room
            self._worst.setdefault(key, severity or RULES[law].severity)

    def add_values(
        self,
        law: str,
        path: str,
        positions: Int64Array,
        values: Int64Array,
        words: str,
        expected: Value,
    ) -> None:
        """Take a finding for each position, where `words` with the value in it say all."""

        def describe(row: int) -> Described:
            value = int(values[row])
            return Described(words.format(value), expected, value)

        self.add_rows(law, path, positions, describe)

    def _count(self, law: str, path: str, first: int, count: int) -> None:
        """Note that a law is broken; also where the finding is not asked for."""
        before = self._broken.get((law, path), Broken(first))
        self._broken[law, path] = Broken(min(before.first, first), before.places + count)

    def broken(self, law: str, path: str) -> Broken:
        """Return where a file breaks a law, as far as reported, asked for or not."""
        return self._broken.get((law, path), Broken())

    def retract(self, law: str, path: str) -> None:
        """Take back the findings of one law in one file, but for the notes."""
        self._found = [
            one for one in self._found if not one.is_defect or one.law != law or one.path != path
        ]
        for kept in (self._counts, self._worst, self._broken):
            kept.pop((law, path), None)

    def drain(self) -> list[Finding]:
        """Return what was found since the last call."""
        found, self._found = self._found, []
        return found

    def finish(self) -> list[Finding]:
        """Return the rest, and how many findings were only counted."""
        for (law, path), severity in self._worst.items():
            more = self._counts[law, path] - FINDINGS_PER_LAW
            rule = RULES[law]
            self._found.append(
                Finding(
                    law,
                    severity,
                    rule.structure,
                    path,
                    None,
                    None,
                    more,
                    f"{more} further places in this file break the same law",
                    rule.hint,
                    _command(path, law, None, self.wanted),
                )
            )
        self._worst.clear()
        return self.drain()


def _command(path: str, law: str, position: int | None, wanted: Wanted) -> str:
    at = "" if position is None else f" --position {position}"
    deep = " --deep" if wanted.deep else ""
    limit = "" if wanted.limit is None else f" --limit-bytes {wanted.limit}"
    slots = "" if wanted.hash_slots is None else f" --hash-slots {wanted.hash_slots}"
    size = wanted.segment_index_bytes
    indexes = "" if size is None else f" --segment-index-bytes {size}"
    return f"segproof verify {shlex.quote(path)}{deep}{limit}{slots}{indexes} --law {law}{at}"
