# SPDX-License-Identifier: Apache-2.0
"""The text of `verify` for people: a verdict on each partition, then its causes.

A verdict comes before its causes, so the causes of one partition wait in memory: one for each file
and law at most.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from segproof.counts import QUEUES_TELL, lost_words, plural
from segproof.findings import Finding, Summary, Verdict
from segproof.reading.file_names import is_of_remote_segment
from segproof_harness.reports.causes import Cause, Causes, command_of, in_groups
from segproof_harness.reports.terminal import Lines

COMMAND = re.compile(r"`(segproof [a-z]+|cp|install|ln) ((?![^`]*TOPIC#KEY)[^`]+)`")
"""A command with arguments in a hint, unless the reader has to fill in a key."""
REPEATED = re.compile(r"(`[a-z ]+`)(?:, \1)+")
"""The verb of commands that follow each other: `ln`, `ln`, `ln`."""
DETAIL_COLUMNS = 13
FILES_MAX = 3
"""The paths of a group of causes that are shown, as PLACES_MAX places of a cause are."""
WITH_MESSAGES = ("store", "commit-log file")
REMOTE_FOLDER = "remote folder"
"""The kind of a folder whose segments no broker recovers."""


LAWS_TOLD = 3
"""A verdict names at most this many laws."""


class Restriction(NamedTuple):
    """What alone was checked. Each field is None where nothing was left out for it."""

    laws: Collection[str] | None = None
    position: int | None = None
    since: str | None = None
    """The time, in ISO 8601, since which files have changed."""

    def __str__(self) -> str:
        """The restriction in words; empty: everything was checked."""
        laws, position, since = self
        told = (
            "" if laws is None else f"only {', '.join(sorted(laws))} checked",
            "" if position is None else f"only byte {position} of a file checked",
            "" if since is None else f"only files changed since {since} checked",
        )
        return "; ".join(filter(None, told))

    def words_of(self, verdict: Verdict) -> str:
        """Return a verdict as words: by some laws, or at one byte, nothing is sound."""
        if verdict is not Verdict.SOUND or (self.laws is None and self.position is None):
            return words_of(verdict)
        words = "no finding"
        if self.laws is not None:
            laws = sorted(self.laws)
            words += f" of {', '.join(laws) if len(laws) <= LAWS_TOLD else f'{len(laws)} laws'}"
        return words if self.position is None else f"{words} at byte {self.position}"


WHOLE = Restriction()
"""Everything was checked."""


class Detail(StrEnum):
    """How much is shown of each partition."""

    CAUSES = "causes"
    FINDINGS = "findings"
    VERDICT = "verdict"


class TextReport:
    """Writes verdicts and causes; or each finding as it comes, and then the verdict."""

    def __init__(
        self, lines: Lines, detail: Detail = Detail.CAUSES, restricted_to: Restriction = WHOLE
    ) -> None:
        self._lines = lines
        self._detail = detail
        self._restricted_to = restricted_to
        self._causes = Causes()

    def finding(self, finding: Finding) -> None:
        """Take the next finding."""
        if self._detail is Detail.CAUSES:
            self._causes.add(finding)
        elif self._detail is Detail.FINDINGS:
            write_finding_lines(self._lines, finding.to_json())

    def summary(self, summary: Summary) -> None:
        """Write the verdict, and the causes behind it."""
        words = facts_of(summary)
        if restricted := str(self._restricted_to):
            words += f"; {restricted}"
        self._lines.write(
            f": {summary.path}: {words}",
            head=head_of(summary, self._restricted_to),
            style=summary.verdict.value,
            indent=2,
        )
        self._write_causes()

    def end(self) -> None:
        """Write the causes in a partition that was not checked to its end."""
        self._write_causes()

    def _write_causes(self) -> None:
        causes = list(self._causes.take())
        for group in in_groups(causes):
            write_group_lines(self._lines, group)
        if causes:
            self._lines.gap()


def words_of(verdict: Verdict) -> str:
    """Return a verdict as words."""
    return verdict.value.replace("-", " ")


def head_of(summary: Summary, restricted_to: Restriction = WHOLE) -> str:
    """Return the verdict as words, with the number of files that were not looked into.

    "Not checked" says it of the whole already.
    """
    words, count = restricted_to.words_of(summary.verdict), summary.not_looked_into
    if not count or summary.verdict is Verdict.NOT_CHECKED:
        return words
    return f"{words}, {plural(count, 'file')} not looked into"


def facts_of(summary: Summary) -> str:
    """Return in words what was checked, and what is lost."""
    from rich.filesize import decimal

    parts = []
    if summary.kind == "partition":
        parts.append(plural(summary.segments, "segment") if summary.segments else "no segment")
    elif summary.kind == "store":
        if summary.segments:
            parts.append(plural(summary.segments, "log file"))
        elif summary.verdict is not Verdict.NOT_CHECKED:  # else the log may lie elsewhere
            parts.append("no commit log")
    elif summary.kind == "index folder":
        parts.append(plural(summary.segments, "file"))
    elif summary.kind == "directory":
        is_found = summary.verdict not in (Verdict.UNREADABLE, Verdict.NOT_CHECKED)
        parts += ["what lies beside its partitions"] if is_found else []
    else:
        parts.append(summary.kind)
    is_read = summary.verdict not in (Verdict.UNREADABLE, Verdict.NOT_CHECKED)
    if not is_read and not summary.bytes_checked:
        parts.append("nothing was read")
    elif summary.kind != "directory":
        parts.append(decimal(summary.bytes_checked))
    first, end = summary.first_offset, summary.end_offset
    if first is not None:
        has_messages = summary.kind in WITH_MESSAGES
        parts.append(plural(summary.batches, "message" if has_messages else "batch"))
        if end is not None and end > first:
            what, of = ("bytes", " of the log") if has_messages else ("offsets", "")
            parts.append(f"{what} {first} to {end - 1}{of}")
        parts += _missing_words(summary)
    counted = [(summary.errors, "error"), (summary.warnings, "warning")]
    defects = [plural(count, word) for count, word in counted if count]
    ignored = f"{plural(summary.ignored, 'finding')} ignored by the configuration file"
    told = (", ".join(parts), ", ".join(defects), ignored if summary.ignored else "")
    text = "; ".join(filter(None, told))
    if summary.verdict in (Verdict.READABLE_WITH_GAPS, Verdict.UNREADABLE):
        lost, word = summary.lost_offsets, "offset"
        how = ""
        if summary.kind in WITH_MESSAGES:
            word, how = "message", f", {QUEUES_TELL}" if summary.lost_at_least else ""
        if lost is None or lost:
            counts = lost, summary.lost_at_least, word, summary.unproven_offsets
            text += f"; {lost_words(*counts)} lost{how}"
        if summary.batches_behind_damage:
            has_messages = summary.kind in WITH_MESSAGES
            word, reaches = ("message", " that reaches it") if has_messages else ("batch", "")
            behind = plural(summary.batches_behind_damage, f"sound {word}")
            text += f"; {behind} behind damage"
            if summary.kind != REMOTE_FOLDER and not is_of_remote_segment(summary.path):
                text += f", which a recovery{reaches} would delete"
    elif summary.unproven_offsets:
        text += f"; {lost_words(None, 0, 'offset', summary.unproven_offsets)} lost"
    elif summary.lost_offsets is None and summary.kind == "partition":
        text += "; nothing tells how many offsets are lost, or whether any are"
    return text


def _missing_words(summary: Summary) -> list[str]:
    """Return what is not there and no damage: where some is lost, only that is told."""
    missing = summary.missing_offsets
    if not missing or summary.verdict in (Verdict.READABLE_WITH_GAPS, Verdict.UNREADABLE):
        return []
    if summary.kind in WITH_MESSAGES:
        return [f"{plural(missing, 'filler')} of a salvage in place of lost ones"]
    return [f"{missing} of them in no batch"]


def closing_words(
    kinds: Mapping[str, int],
    verdicts: Mapping[Verdict, int],
    unread: Mapping[Verdict, int],
    restricted_to: Restriction = WHOLE,
) -> str:
    """Return in words how many of each kind were checked, for what, and with which verdicts.

    `unread` is how many of each verdict have files that were not looked into.
    """

    def told(verdict: Verdict) -> str:
        words = f"{verdicts[verdict]} {restricted_to.words_of(verdict)}"
        count = unread.get(verdict, 0)
        if not count or verdict is Verdict.NOT_CHECKED:
            return words
        return f"{words} ({count} with files not looked into)"

    what = ", ".join(plural(count, kind) for kind, count in kinds.items())
    words = f"{what}: {', '.join(told(one) for one in Verdict if one in verdicts)}"
    return "; ".join(filter(None, (words, str(restricted_to))))


def place_words(cause: Cause) -> str:
    """Return in words where in its file a cause is; empty where that is no single byte."""
    if cause.count == 1:
        position = cause.first.position
        return "" if position is None else f"byte {position}"
    where = ", ".join(map(str, cause.positions))
    word = "byte" if len(cause.positions) == 1 else "bytes"
    return f"{cause.count} places" + (f", the first at {word} {where}" if where else "")


def write_group_lines(lines: Lines, group: Sequence[Cause]) -> None:
    """Write causes of one group: where and what of each of the first ones; once what consumers see,
    what to do, and commands to paste.
    """
    # "And 1 more" would take the line of the one that it hides.
    shown = group if len(group) == FILES_MAX + 1 else group[:FILES_MAX]
    for cause in shown:
        _write_cause_head(lines, cause)
    first, more = group[0], len(group) - len(shown)
    if more:
        lines.write(f"  and {plural(more, 'more path')}", indent=2)
    _write_detail(lines, "consumers", first.consumers_see)
    hint, commands = split_commands(first.first.hint)
    _write_detail(lines, "hint", hint)
    for command in (*commands, command_of(group)):
        lines.command(command, indent=4)


def _write_cause_head(lines: Lines, cause: Cause) -> None:
    """Write where and what a cause is."""
    first = cause.first
    laws = ", ".join(cause.laws)
    if len(cause.laws) > 1:
        laws = ", ".join(f"{law} ({count})" for law, count in cause.laws.items())
    where = place_words(cause)
    place = f"{first.path}: {where}: " if where else f"{first.path}: "
    _write_head(lines, first.severity.value, f" {laws} {place}{first.message}")
    _write_detail(lines, "expected", first.expected)
    _write_detail(lines, "actual", first.actual)


def write_finding_lines(lines: Lines, told: Mapping[str, Any]) -> None:
    """Write one finding by itself, given by its fields: where, what, what to do, and its command.

    A detail that is not known is left out.
    """
    at = "" if told["position"] is None else f"byte {told['position']}: "
    place = told["path"] or told["structure"]
    _write_head(lines, told["severity"], f" {told['law']} {place}: {at}{told['message']}")
    for name in ("expected", "actual", "hint"):
        _write_detail(lines, name, told[name])
    if told["reproduce"]:
        lines.command(f"reproduce: {told['reproduce']}", indent=2)


def _write_head(lines: Lines, severity: str, text: str) -> None:
    lines.write(text, head=severity, style=severity, indent=2)


def _write_detail(lines: Lines, name: str, value: str | None) -> None:
    if value:
        lines.write(f"  {name + ':':10} {value}", indent=DETAIL_COLUMNS)


def split_commands(hint: str) -> tuple[str, list[str]]:
    """Return a hint whose commands are shortened to their verbs, and the commands.

    >>> split_commands("stop, then `segproof rebuild t-0 --out t` (or `--in-place`)")
    ('stop, then `segproof rebuild` (or `--in-place`)', ['segproof rebuild t-0 --out t'])
    """
    commands = [" ".join(found) for found in COMMAND.findall(hint)]
    return REPEATED.sub(r"\1", COMMAND.sub(r"`\1`", hint)), commands
