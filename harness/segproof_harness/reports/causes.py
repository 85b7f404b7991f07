# SPDX-License-Identifier: Apache-2.0
"""Findings of one file that one cause explains, as one: with a count, and the first places.

One law broken in many places of one file has one cause, if the words are the same but for values
and names, and the same is to be done about each place. So have several laws that are broken in one
index file, if the same is to be done about them: such a file is made new as a whole. What is wrong
with a log keeps one cause for each law: two batches may be damaged for two reasons. But broken
batches, and what can't be read right behind them, are one damage.

Causes of several files may have the same laws and the same hint: a text shows these as a group.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from segproof.commands import quoted_path
from segproof.findings import FURTHER, Finding, Severity
from segproof.reading.log_damage import DAMAGE_BEGINS
from segproof.verifying.loss_count import LOG_IS_GONE
from segproof.verifying.summarising import is_loss, is_of_index
from segproof_harness.reports.consumers import what_consumers_see

PLACES_MAX = 3
"""The places of a cause that are shown."""
PART_OF = re.compile(re.escape(DAMAGE_BEGINS) + r"([0-9]+)$")
SAVES = re.compile(
    r"(?<!save the partition in another directory with )(?<!save the store with )`segproof salvage"
)
"""In a hint: a salvage of records that a broker may delete. One that only makes small files or
queues new has other words (`SALVAGE`, `REMAKE_STORE` of `segproof.wording.rules`)."""
REBUILDS = "`segproof rebuild"
MAKES_NEW = re.compile(
    rf"{REBUILDS}|save the partition in another directory with|save the store with"
)
SAVE_FIRST = (
    "save the log first, as the hint of {} says: a salvage makes this file new too, and a broker"
    " that starts here may delete sound records"
)
LEFT_OUT = frozenset({"RMQDISK-43"})
"""Laws whose file a salvage leaves out, and makes no new one of: their own hint says what to do."""
WRONG_NAMES = frozenset({"DISK-62", "DISK-65"})
"""Laws that a log with a wrong name breaks: `rebuild` refuses such a partition."""
NAME_FIRST = (
    "save the partition first, as the hint of {} says: a salvage makes this file new too. A log has"
    " a wrong name, with which a rebuild refuses the partition"
)
VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[-0-9/._]\S*")
"""In a message: what differs from place to place, such as a number, a time or a file's name."""
ALIKE_FROM = 2 / 3
"""Messages that have at least this share of their words in common say the same. The rest may be
names of topics and groups, which are plain words."""
Key = tuple[str, Severity, str, str, str]


@dataclass(slots=True)
class Cause:
    """Why one file breaks one or more laws."""

    first: Finding
    """The first of its findings."""
    laws: dict[str, int] = field(default_factory=dict)
    """In how many places each law is broken, in the order in which they were found."""
    positions: list[int] = field(default_factory=list)
    """The first few bytes at which something is wrong."""
    kind: frozenset[str] = frozenset()
    """The words of its first message, by which others are compared; empty for an index file."""

    @property
    def count(self) -> int:
        """In how many places laws are broken."""
        return sum(self.laws.values())

    @property
    def reproduce(self) -> str:
        """The command that lists each finding of the cause."""
        if self.count == 1:
            return self.first.reproduce
        command = _without_law(self.first)
        if self.first.law == LOG_IS_GONE:
            own, folder = self.first.path, posixpath.dirname(self.first.path) or "."
            command = command.replace(quoted_path(own), quoted_path(folder), 1)
        return "".join([command, *(f" --law {law}" for law in self.laws), " --all"])

    @property
    def consumers_see(self) -> str | None:
        """What readers of the data get to see; None for a note, or where nothing is known."""
        return what_consumers_see(self.first) if self.first.is_defect else None

    def add(self, finding: Finding) -> None:
        """Count a further finding of this cause."""
        if not finding.message.endswith(FURTHER) and finding.position is not None:
            self.positions = sorted({*self.positions, finding.position})[:PLACES_MAX]
        self.laws[finding.law] = self.laws.get(finding.law, 0) + finding.places

    def to_json(self) -> dict[str, Any]:
        """Return the cause as plain values, by name."""
        first = self.first
        return {
            "path": first.path,
            "structure": first.structure,
            "severity": first.severity.value,
            "laws": self.laws,
            "count": self.count,
            "positions": self.positions,
            "expected": first.expected,
            "actual": first.actual,
            "message": first.message,
            "consumers_see": self.consumers_see,
            "hint": first.hint,
            "reproduce": self.reproduce,
        }


def in_groups(causes: Iterable[Cause]) -> list[list[Cause]]:
    """Return causes in groups, each at the place of its first cause.

    The causes of a group are of several files, break the same laws, and have the same words and
    the same hint.
    """
    found: dict[tuple[object, ...], list[list[Cause]]] = {}
    groups: list[list[Cause]] = []
    for one in causes:
        first = one.first
        to_do = first.hint, one.consumers_see, _without_law(first)
        known = found.setdefault((first.severity, tuple(one.laws), *to_do), [])
        group = next((each for each in known if are_alike(each[0].kind, one.kind)), None)
        if group is None:
            groups.append(group := [])
            known.append(group)
        group.append(one)
    return groups


def command_of(group: Sequence[Cause]) -> str:
    """Return the command that lists each finding of a group."""
    first = group[0]
    if len(group) == 1:
        return first.reproduce
    laws = "".join(f" --law {law}" for law in first.laws)
    return f"{_without_law(first.first)}{laws} --all"


def kind_of(message: str) -> frozenset[str]:
    """Return the words of the first clause of a message, without values.

    Later clauses say what a damage costs, or quote an error: they differ among places that have one
    cause.

    >>> sorted(kind_of("last offset 5 is below 9: was it renamed?"))
    ['below', 'is', 'last', 'offset']
    """
    clause = message.partition("; ")[0].partition(": ")[0]
    return frozenset(VALUE.sub("", clause).split())


def are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two messages of these words say the same of two places."""
    return len(one & other) >= ALIKE_FROM * max(len(one), len(other))


def _makes_new(finding: Finding) -> bool:
    """Return whether the hint makes something new from a log, and does not save the log."""
    if finding.law in LEFT_OUT:
        return False
    makes_new, saves = MAKES_NEW.search(finding.hint), SAVES.search(finding.hint)
    return finding.is_defect and makes_new is not None and saves is None


def _without_law(finding: Finding) -> str:
    """Return the command of a finding up to its law: what it reads, and how."""
    return finding.reproduce.rpartition(" --law ")[0]


class Causes:
    """Collects the causes of one partition.

    Of each file and law it holds one for each kind of message, and at most FINDINGS_PER_LAW.
    """

    def __init__(self) -> None:
        self._causes: dict[Key, list[Cause]] = {}
        """Causes of one key differ in the words of their messages."""
        self._losses: dict[tuple[str, int | None], Cause] = {}
        """Those of lost records, by path and place."""
        self._counted: list[Finding] = []
        """Findings that only count further places of a cause. They may come before that cause."""

    def add(self, finding: Finding) -> None:
        """Take the next finding."""
        if finding.message.endswith(FURTHER):
            self._counted.append(finding)
            return
        begin = PART_OF.search(finding.message)
        loss = begin and self._losses.get((finding.path, int(begin[1])))
        if loss and finding.is_defect:
            loss.add(finding)
            return
        is_log = not is_of_index(finding)
        kind, law = kind_of(finding.message) if is_log else frozenset(), finding.law * is_log
        key: Key = finding.path, finding.severity, law, finding.hint, _without_law(finding)
        if finding.law == LOG_IS_GONE:
            key, kind = (str(finding.expected), finding.severity, law, "", ""), frozenset()
        known = self._causes.setdefault(key, [])
        cause = next((one for one in known if are_alike(one.kind, kind)), None)
        if cause is None:
            known.append(cause := Cause(finding, kind=kind))
        cause.add(finding)
        if is_loss(finding):
            self._losses[finding.path, finding.position] = cause

    def take(self) -> Iterator[Cause]:
        """Yield the causes, and forget them: the worst first, lost records before other damage.

        Where the log is to be saved first, no hint is to make other files new from it: such a hint
        names the first law of the worst whose hints save the log, which comes with the lost
        records. So it is
        with a rebuild where a log has a wrong name.
        """
        causes = [one for alike in self._causes.values() for one in alike]
        for finding in self._counted:
            _add_counted(causes, finding)
        self._causes, self._losses, self._counted = {}, {}, []
        making = [one for one in causes if _makes_new(one.first)]
        order = list(Severity)

        def rank(cause: Cause) -> tuple[int, bool]:
            first = cause.first
            worse = order.index(first.severity)
            if making and SAVES.search(first.hint):
                return worse - len(order), False
            return worse, not is_loss(first)

        causes.sort(key=rank)
        saving = next((one.first.law for one in causes if SAVES.search(one.first.hint)), None)
        words = SAVE_FIRST
        if saving is None:
            words, making = NAME_FIRST, [one for one in making if REBUILDS in one.first.hint]
            saving = next((one.first.law for one in causes if one.first.law in WRONG_NAMES), None)
        for cause in making if saving else ():
            cause.first = replace(cause.first, hint=words.format(saving))
        yield from causes


def _add_counted(causes: list[Cause], finding: Finding) -> None:
    """Add further places to the one cause of their law and file.

    If the law has several causes there, no finding says which place has which: then these places
    become a cause of their own.
    """
    known = [
        one
        for one in causes
        if (one.first.path, one.first.severity) == (finding.path, finding.severity)
        and finding.law in one.laws
    ]
    if len(known) != 1:
        known = [Cause(finding)]
        causes += known
    known[0].add(finding)
