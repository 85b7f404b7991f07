# SPDX-License-Identifier: Apache-2.0
"""Collecting findings: what was asked for only, and never more than memory holds.

A damaged file can break a law in every entry. The first FINDINGS_PER_LAW of a law and file are kept
one by one; the others are counted, and one finding at the end says how many there were.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from segproof.commands import quoted_path
from segproof.files import LINK_TO_NOTHING, NOT_REGULAR, LinkOutError, check_limits
from segproof.findings import FURTHER, Finding, Severity
from segproof.hints import Hint, changes, reads, writes
from segproof.reading.rows import Int64Array
from segproof.wording.rules import DECLARED, declare, with_paths

declare("log-segment", Severity.ERROR,
    reads("check the rights and the disk, then verify again"), "DISK-1",
    is_of_any_file=True)  # fmt: skip
declare("log-segment", Severity.WARNING,
    reads("verify again, best while nothing writes here"), "DISK-2",
    is_of_any_file=True)  # fmt: skip

WRONG_KIND = changes(
    "move it out, into a new directory outside of all that a broker reads, and verify again: that"
    " says what to do about what is missing then",
    only_if="you know what put it there, and no file in it is one that this directory lacks",
    if_wrong="no broker finds the records in it",
    copy_step="stop the broker and copy it away",
)
"""What to do about a folder, a pipe or a socket in the place of a file, or a file in that of a
folder."""
FOR_KAFKA = (
    "Kafka fails where it opens it, which may be at its start, and then serves no partition of this"
    " data directory"
)
COSTS_OF_KIND = {
    **dict.fromkeys(("offset-index", "time-index", "transaction-index"), FOR_KAFKA),
    "index-file": "releases after 5.0 end their start at it, and older ones load no index file"
    " after it",
}
"""What a broker does with another kind of file in the place of an index, by structure."""
OF_ROCKETMQ = ("index-service", "index-file")
"""The structures that findings in a store name."""
FINDINGS_PER_LAW = 100
Value = int | str | None


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
    hint: Hint | None = None
    """What to do, where it is not what the rule of the law says."""


class Facts(TypedDict, total=False):
    """What a finding says beside its words."""

    position: int | None
    expected: Value
    actual: Value
    severity: Severity | None
    hint: Hint | None


class Broken(NamedTuple):
    """The places in one file that break one law, whether or not they are wanted; no notes."""

    first: int = 0
    """The lowest byte; meaningless for none."""
    places: int = 0


class Reporter:
    """Takes findings and hands them out in order. A check speaks to it by `at`."""

    def __init__(
        self,
        wanted: Wanted,
        paths: frozenset[str] | None = None,
        *,
        structure: str | None = None,
        shown_by: str | None = None,
        hint: Hint | None = None,
    ) -> None:
        self.wanted = wanted
        self._paths = paths
        """The files that are reported on; None: all."""
        self._structure = structure
        self._shown_by = shown_by
        """What `at` takes for these where it is not told; None: see there."""
        self.hint = hint
        """Stands in each error and warning in the place of the hint of the law's rule, if given."""
        self._found: list[Finding] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._worst: dict[tuple[str, str], Severity] = {}
        self._broken: dict[tuple[str, str], Broken] = {}
        self._hints: dict[tuple[str, str], Hint] = {}

    def at(
        self, path: str, structure: str | None = None, *, shown_by: str | None = None
    ) -> "PathReporter":
        """Return what takes the findings of one file or directory.

        `structure` is what it is, for the laws of all kinds of files: by default the structure of
        the law's rule. `shown_by` is the path whose verification shows a finding again: by default
        the path itself.
        """
        structure, shown_by = structure or self._structure, shown_by or self._shown_by or path
        return PathReporter(self, path, structure, shown_by)

    def add(self, finding: Finding) -> None:
        """Take one finding."""
        if finding.position is not None and finding.is_defect:
            self.count(finding.law, finding.path, finding.position, 1)
        if self.wanted.position in (None, finding.position):
            self.keep(finding)

    def keep(self, finding: Finding) -> None:
        """Keep a finding that is counted already, if it is wanted and not one of too many."""
        law, path = key = finding.law, finding.path
        if not self.wants(law, path):
            return
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count > FINDINGS_PER_LAW:
            self._worst.setdefault(key, finding.severity)
        else:
            self._found.append(finding)

    def insist(self, finding: Finding) -> None:
        """Keep a finding, also one that is not asked for."""
        self._found.append(finding)

    def wants(self, law: str, path: str) -> bool:
        """Return whether findings of a law in a file are asked for."""
        return self.wanted.includes(law) and (self._paths is None or path in self._paths)

    def room(self, law: str, path: str) -> int:
        """Return how many findings of a law in a file are kept one by one from here on."""
        return max(0, FINDINGS_PER_LAW - self._counts.get((law, path), 0))

    def count_more(self, law: str, path: str, number: int, severity: Severity) -> None:
        """Count findings that are not kept one by one."""
        if number > 0:
            key = (law, path)
            self._counts[key] = self._counts.get(key, 0) + number
            self._worst.setdefault(key, severity)

    def count(self, law: str, path: str, first: int, count: int) -> None:
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

    def advise(self, law: str, path: str, hint: Hint) -> None:
        """Put a hint into the findings of one law in one file so far, but for the notes."""
        self._hints[law, path] = hint
        self._found = [
            replace(one, hint=with_paths(hint, path, path))
            if one.is_defect and (one.law, one.path) == (law, path)
            else one
            for one in self._found
        ]

    def drain(self) -> list[Finding]:
        """Return what was found since the last call."""
        found, self._found = self._found, []
        return found

    def finish(self) -> list[Finding]:
        """Return the rest, and how many findings were only counted."""
        for (law, path), severity in self._worst.items():
            more = self._counts[law, path] - FINDINGS_PER_LAW
            words = f"{more}{FURTHER}"
            hint = self._hints.get((law, path))
            finding = self.at(path, shown_by=path).finding(
                law, words, actual=more, severity=severity, hint=hint
            )
            self._found.append(finding)
        self._worst.clear()
        return self.drain()


@dataclass(frozen=True, slots=True)
class PathReporter:
    """Takes the findings of one file or directory."""

    reporter: Reporter
    path: str
    structure: str | None
    shown_by: str

    def finding(self, law: str, message: str, **facts: Unpack[Facts]) -> Finding:
        """Return a finding; severity, structure and hint come from the law's rule if not given."""
        rule, position = DECLARED[law], facts.get("position")
        severity = facts.get("severity") or rule.severity
        usual = rule.hint if severity is Severity.NOTE else self.reporter.hint or rule.hint
        structure = rule.structure
        if rule.is_of_any_file and self.structure is not None:
            structure = self.structure
        return Finding(
            law,
            severity,
            structure,
            self.path,
            position,
            text_of(facts.get("expected")),
            text_of(facts.get("actual")),
            message,
            with_paths(facts.get("hint") or usual, self.path, self.shown_by),
            _command(self.shown_by, law, position, self.reporter.wanted),
        )

    def add(self, law: str, message: str, **facts: Unpack[Facts]) -> None:
        """Report that the law is broken here."""
        self.reporter.add(self.finding(law, message, **facts))

    def add_rows(
        self,
        law: str,
        positions: Int64Array,
        describe: Callable[[int], Described],
        *,
        severity: Severity | None = None,
    ) -> None:
        """Report the law broken at each position; `describe` gets its index in `positions`.

        Cost: beyond FINDINGS_PER_LAW of them, only counting.
        """
        if not len(positions):
            return
        reporter = self.reporter
        if severity is not Severity.NOTE:
            reporter.count(law, self.path, int(positions.min()), len(positions))
        if not reporter.wants(law, self.path):
            return
        rows = np.arange(len(positions))
        if reporter.wanted.position is not None:
            rows = np.flatnonzero(positions == reporter.wanted.position)
        room = reporter.room(law, self.path)
        for row in rows[:room].tolist():
            words = describe(row)._asdict()
            reporter.keep(
                self.finding(law, position=int(positions[row]), severity=severity, **words)
            )
        counted = severity or DECLARED[law].severity
        reporter.count_more(law, self.path, len(rows) - room, counted)

    def add_where(
        self,
        law: str,
        where: NDArray[Any],
        positions: NDArray[Any] | tuple[int, int],
        message: str,
        expected: NDArray[Any] | Value = None,
        actual: NDArray[Any] | Value = None,
        *,
        severity: Severity | None = None,
        hint: Hint | None = None,
        **columns: Any,
    ) -> None:
        """Report the law broken in the rows of a table that `where` selects, by mask or number.

        `positions`, the `columns`, and `expected` and `actual` where they are arrays, have a value
        for each row of the table; two positions are that of row 0 and the distance of rows, in
        bytes. `message`, and `expected` in words, name columns in braces.
        """
        rows = np.flatnonzero(where) if where.dtype == np.bool_ else where
        if not len(rows):
            return

        def describe(row: int) -> Described:
            at = rows[row]
            told = {name: column[at] for name, column in columns.items()}
            limit, found = (
                int(one[at]) if isinstance(one, np.ndarray) else one for one in (expected, actual)
            )
            limit = limit.format(**told) if isinstance(limit, str) else limit
            return Described(message.format(**told), limit, found, hint)

        if isinstance(positions, tuple):
            begin, step = positions
            self.add_rows(law, rows * step + begin, describe, severity=severity)
        else:
            self.add_rows(law, positions[rows], describe, severity=severity)

    def broken(self, law: str) -> Broken:
        """Return where the file breaks a law, as far as reported, asked for or not."""
        return self.reporter.broken(law, self.path)

    def retract(self, law: str) -> None:
        """Take back the findings of one law, but for the notes."""
        self.reporter.retract(law, self.path)

    def advise(self, law: str, hint: Hint) -> None:
        """Put a hint into the findings of one law so far, but for the notes."""
        self.reporter.advise(law, self.path, hint)

    # --- what is wrong with any kind of file

    def unreadable(self, error: OSError) -> None:
        """Report what the operating system says of the file.

        Raises: ProcessLimitError where it says that of this process.
        """
        check_limits(error)
        if isinstance(error, LinkOutError):
            self._leads_out()
            return
        words = error.strerror or str(error)
        if words.startswith(NOT_REGULAR):
            self.of_wrong_kind(words)
        else:
            self.add("DISK-1", f"it cannot be read: {words}", actual=words)

    def of_wrong_kind(self, words: str, more: str = "", hint: Hint = WRONG_KIND) -> None:
        """Report what is no regular file, or no folder, and has to be one; `more` follows."""
        costs = [one for one in (COSTS_OF_KIND.get(self.structure or ""), more) if one]
        told = "; ".join([f"it cannot be read: {words}", *costs])
        self.add("DISK-1", told, actual=words, hint=hint)

    def _leads_out(self) -> None:
        """Report a link that is not followed (DISK-45, RMQDISK-41)."""
        is_of_rocketmq = self.structure in OF_ROCKETMQ
        law, folder = ("RMQDISK-41", "STORE") if is_of_rocketmq else ("DISK-45", "DIR")
        self.add(
            law,
            "it was not looked into: it is a link to a file outside of its folder, and its content"
            " could be any file of this machine",
            severity=Severity.WARNING,
            hint=writes(
                "look at where the link leads, and verify that file by its own path; a broker reads"
                " through the link. To verify or save the whole, copy its folder with the files to"
                f" which its links lead (`install -d DIR2 && cp -rLn {folder} DIR2`), and take the"
                " copy"
            ),
        )

    def failed(self, error: OSError) -> None:
        """Report what the operating system says of a file that was listed."""
        if isinstance(error, FileNotFoundError) and error.strerror != LINK_TO_NOTHING:
            self.vanished()
        else:
            self.unreadable(error)

    def vanished(self) -> None:
        """Report a file that was listed and is gone."""
        self.add("DISK-2", "the file vanished while the directory was read")

    def shrunk(self, believed: int, position: int) -> None:
        """Report a file that became shorter while it was read."""
        self.add(
            "DISK-2",
            f"the file became shorter while it was read: it had {believed} bytes and ends now at or"
            f" behind byte {position}",
            position=position,
            expected=believed,
        )


def text_of(value: object) -> str | None:
    """Return a value as a finding holds it: in words, or a number in decimal."""
    return None if value is None else str(value)


def _command(path: str, law: str, position: int | None, wanted: Wanted) -> str:
    at = "" if position is None else f" --position {position}"
    deep = " --deep" if wanted.deep else ""
    limit = "" if wanted.limit is None else f" --limit-bytes {wanted.limit}"
    slots = "" if wanted.hash_slots is None else f" --hash-slots {wanted.hash_slots}"
    size = wanted.segment_index_bytes
    indexes = "" if size is None else f" --segment-index-bytes {size}"
    return f"segproof verify {quoted_path(path)}{deep}{limit}{slots}{indexes} --law {law}{at}"
