# SPDX-License-Identifier: Apache-2.0
"""The results of `verify` as one HTML page, which needs neither a network nor a script.

The worst comes first. A page stays below PAGE_BYTES_MAX: what has no room is counted, and named as
far as there is room. Every text that comes from a file or a path is escaped.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib import resources
from itertools import pairwise

from segproof.counts import plural
from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files
from segproof.findings import Finding, Severity, Summary, Verdict, time_text
from segproof.layouts import kafka as layouts
from segproof.reading.file_names import is_of_remote_segment
from segproof.reading.packed_segments import with_unpacked
from segproof.verifying.loss_count import OF_BYTES
from segproof_harness.reports.byte_view import (
    ROW_BYTES,
    ByteField,
    ByteRow,
    bytes_around,
    fields_at,
)
from segproof_harness.reports.causes import Cause, Causes
from segproof_harness.reports.file_map import read_file_map
from segproof_harness.reports.map_picture import PATTERNS, figure_of
from segproof_harness.reports.page_text import (
    badge_of,
    code_of,
    command_of,
    list_of,
    text_of,
)
from segproof_harness.reports.verdicts import (
    Restriction,
    closing_words,
    facts_of,
    head_of,
    place_words,
    split_commands,
)

PAGE_BYTES_MAX = 500_000
BEGIN = "<!doctype html>\n<!-- made by segproof report -->\n"
"""So every page begins: a file that begins so may be replaced by a newer page."""
FRAME_BYTES = 100_000
"""Room for the style, the patterns, the head and the end of a page, and what counts is left out."""
TABLE_BYTES = 75_000
"""Room for the table of verdicts."""
SECTIONS_MAX = 50
"""So many partitions of each verdict are kept until the end."""
CAUSES_MAX = 50
"""So many causes of each of them."""
PLACES_MAX = 400
"""So many places of a file are drawn."""
COMMAND_MAX = 4_000
"""A longer command is cut, where the page tells how it was made."""
CUTS_A_STORE = frozenset({"RMQDISK-24", "RMQDISK-26", "RMQDISK-27"})
"""Laws of damaged messages: a recovery that reaches the place cuts the commit log there."""
MARKED_BYTES = {
    "offset-index": layouts.OFFSET_ENTRY.size,
    "time-index": layouts.TIME_ENTRY.size,
    "transaction-index": layouts.ABORTED_TXN.size,
    "index-file": 20,
}
"""How long an entry is, by structure."""
REMOTE = '<p class="soft">This segment is in tiered storage, where no recovery cuts it.</p>\n'


@dataclass(frozen=True, slots=True)
class Made:
    """How a page was made."""

    release: str
    command: str
    time: str
    restriction: Restriction
    """What alone was checked."""
    deep: bool
    verify_command: str = ""
    """The command that lists all causes; empty with a source, which has them."""
    source: str = ""
    """The file whose findings the page shows, with its time; empty: the page reads the files that
    were checked, and shows maps and bytes of them."""


@dataclass(slots=True)
class _Section:
    """What was found in one partition, store, directory or file."""

    summary: Summary | None
    """None: it was not checked to its end."""
    causes: list[Cause]
    left_out: int
    """Causes beyond CAUSES_MAX."""
    places: dict[str, list[int]]
    """By path the first places at which laws are broken."""


@dataclass(slots=True)
class _Room:
    """How many bytes of a page are free. From the first text on that does not fit, none are."""

    left: int

    def fits(self, text: str) -> bool:
        size = len(text.encode())
        self.left = self.left - size if size <= self.left else 0
        return self.left > 0


@dataclass(slots=True)
class _Skipped:
    """What had no room."""

    sections: int = 0
    causes: int = 0


class PageReport:
    """Collects what was found, and hands the page to `write` at the end."""

    def __init__(
        self,
        write: Callable[[str], object],
        rules: Mapping[str, tuple[str, str]],
        made: Made,
        files: Files = REAL_FILES,
    ) -> None:
        """`rules` are the sentence and the hint of each law."""
        self._write = write
        self._rules = rules
        self._made = made
        self._files = with_unpacked(files)
        self._causes = Causes()
        self._places: dict[str, list[int]] = {}
        self._sections: dict[Verdict | None, list[_Section]] = {}
        self._summaries: dict[Verdict, list[Summary]] = {}
        """The first few of each verdict, for the table."""
        self._kinds: Counter[str] = Counter()
        self._verdicts: Counter[Verdict] = Counter()
        self._unread: Counter[Verdict] = Counter()
        """How many of each verdict have files that were not looked into."""
        self._severities: Counter[Severity] = Counter()
        self._skipped = _Skipped()
        self._maps = 0

    def finding(self, finding: Finding) -> None:
        """Take the next finding."""
        self._severities[finding.severity] += finding.places
        self._causes.add(finding)
        if finding.position is not None and finding.is_defect:
            places = self._places.setdefault(finding.path, [])
            if len(places) < PLACES_MAX:
                places.append(finding.position)

    def summary(self, summary: Summary) -> None:
        """Take the summary of what the findings so far are about."""
        verdict = summary.verdict
        if summary.kind != "directory":
            self._kinds[summary.kind] += 1
            self._verdicts[verdict] += 1
            self._unread[verdict] += summary.not_looked_into > 0
        if summary.kind != "directory" or not summary.is_sound or summary.not_looked_into:
            listed = self._summaries.setdefault(verdict, [])
            if len(listed) < TABLE_BYTES // 100:
                listed.append(summary)
        self._close_section(summary)

    def end(self) -> None:
        """Write the page. Findings without a summary may have come last."""
        self._close_section(None)
        self._write(self._page())

    def _close_section(self, summary: Summary | None) -> None:
        causes, places = list(self._causes.take()), self._places
        self._places = {}
        if not causes:
            return
        kept = self._sections.setdefault(None if summary is None else summary.verdict, [])
        if len(kept) >= SECTIONS_MAX:
            self._skipped.sections += 1
            self._skipped.causes += len(causes)
            return
        shown = causes[:CAUSES_MAX]
        paths = {one.first.path for one in shown}
        places = {path: found for path, found in places.items() if path in paths}
        kept.append(_Section(summary, shown, len(causes) - len(shown), places))

    # --- the page

    def _page(self) -> str:
        room = _Room(PAGE_BYTES_MAX - FRAME_BYTES - TABLE_BYTES)
        order: list[Verdict | None] = [*reversed(Verdict)]
        order.insert(-1, None)
        body = [
            part
            for verdict in order
            for section in self._sections.get(verdict, [])
            for part in self._section(section, room)
        ]
        worst = self._worst()
        style = resources.files(__package__).joinpath("page.css").read_text(encoding="ascii")
        head = (
            f'{BEGIN}<html lang="en"><head><meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
            " style-src 'unsafe-inline'\">\n"
            f"<title>segproof report: {worst[0]}</title>\n<style>\n{style}</style></head>\n<body>\n"
        )
        parts = [head, PATTERNS, "<main>\n", self._head(*worst), self._table(), *body]
        parts += [self._left_out(), self._how_made(), "</main>\n</body></html>\n"]
        return "".join(parts)

    def _worst(self) -> tuple[str, str]:
        """Return the worst verdict in words, and its class."""
        verdicts = [one for one in Verdict if one in self._summaries]
        if not verdicts:
            is_cut = None in self._sections
            return "not checked to its end" if is_cut else "nothing was checked", "unknown"
        listed = self._summaries[verdicts[-1]]
        only = self._made.restriction
        words = head_of(listed[0], only) if len(listed) == 1 else only.words_of(verdicts[-1])
        if len(listed) > 1 and self._unread[verdicts[-1]] and verdicts[-1] is Verdict.SOUND:
            words += ", with files not looked into"
        return words, verdicts[-1].value

    def _head(self, words: str, kind: str) -> str:
        listed = [one for each in self._summaries.values() for one in each]
        if len(listed) == 1:
            told = f"{code_of(listed[0].path)}: {text_of(facts_of(listed[0]))}"
        else:
            told = words
            if self._kinds:
                only = self._made.restriction
                told = text_of(closing_words(self._kinds, self._verdicts, self._unread, only))
        counts = self._severities
        counted = ", ".join(plural(counts[one], one.value) for one in Severity if counts[one])
        restricted = text_of(str(self._made.restriction))
        restricted = restricted and f" <strong>{restricted}</strong>"
        what = "Verdict" if len(listed) == 1 else "Worst verdict"
        source = self._made.source
        stored = (
            f'<p class="soft">Made from {text_of(source)}. The files were not read for it: their'
            " damage maps, their bytes and what a recovery keeps are not in this page.</p>\n"
            if source
            else ""
        )
        return (
            f'<header><h1>segproof report: {what.lower()}</h1>\n<p class="verdict {kind}">{words}'
            f"</p>\n<p>{told}</p>\n"
            f'<p class="soft">{counted or "no finding"}; made {text_of(self._made.time)}'
            f"{restricted}</p>{stored}</header>\n"
        )

    def _table(self) -> str:
        """Return the table of verdicts, the worst first; empty for a single one."""
        total = sum(map(len, self._summaries.values()))
        if total < 2:
            return ""
        room, rows = _Room(TABLE_BYTES), list[str]()
        for verdict in reversed(Verdict):
            for one in self._summaries.get(verdict, []):
                row = (
                    f"<tr><td>{badge_of(head_of(one, self._made.restriction), verdict.value)}</td>"
                    f"<td>{code_of(one.path)}</td><td>{text_of(facts_of(one))}</td></tr>\n"
                )
                if room.left and room.fits(row):
                    rows.append(row)
        beyond = max(0, self._verdicts.total() - len(rows))
        more = f'<p class="soft">{beyond} more are not in this table.</p>\n' if beyond else ""
        return (
            "<h2>Verdicts</h2>\n<table><thead><tr><th scope=col>verdict</th><th scope=col>path</th>"
            f"<th scope=col>what was checked</th></tr></thead>\n{''.join(rows)}</table>\n{more}"
        )

    def _section(self, section: _Section, room: _Room) -> Iterator[str]:
        summary = section.summary
        if summary is None:
            head = "<h2>Not checked to its end</h2>\n"
        elif sum(map(len, self._summaries.values())) == 1:
            head = "<h2>Causes</h2>\n"
        else:
            verdict = summary.verdict
            head = (
                f"<h2>{badge_of(head_of(summary, self._made.restriction), verdict.value)}"
                f" {code_of(summary.path)}</h2>\n"
                f"<p>{text_of(facts_of(summary))}</p>\n"
            )
        if not room.left or not room.fits(head):
            self._skipped.sections += 1
            self._skipped.causes += len(section.causes) + section.left_out
            return
        yield head
        drawn: set[str] = set()
        defects = [one for one in section.causes if one.first.is_defect]
        notes = [one for one in section.causes if not one.first.is_defect]
        shown = 0
        for cause in defects:
            text = self._cause(cause, section, drawn) if room.left else ""
            if text and room.fits(text):
                shown += 1
                yield text
        told = [one for one in map(_note, notes) if room.left and room.fits(one)]
        if told:
            yield (
                f"<details><summary>{plural(len(notes), 'note')}: worth knowing, no defect"
                f"</summary>\n<ul>\n{''.join(told)}</ul></details>\n"
            )
        beyond = len(section.causes) + section.left_out - shown - len(told)
        if beyond:
            self._skipped.causes += beyond
            yield f'<p class="soft">{plural(beyond, "more cause")} had no room here.</p>\n'

    def _left_out(self) -> str:
        skipped = self._skipped
        if not skipped.causes:
            return ""
        whole = f", {plural(skipped.sections, 'partition')} as a whole" if skipped.sections else ""
        told = (
            f"<h2>Left out</h2>\n<p>This page stays below {PAGE_BYTES_MAX // 1000} KB."
            f" {plural(skipped.causes, 'cause')} had no room{whole}."
        )
        if self._made.source:
            return f"{told} All of them are in {text_of(self._made.source)}.</p>\n"
        return f"{told} All of them:</p>\n{command_of(_clipped(self._made.verify_command))}"

    def _how_made(self) -> str:
        made = self._made
        depth = "each record" if made.deep else "headers and checksums; with --deep each record too"
        rows = {
            "made by": f"segproof {text_of(made.release)}",
            "at": text_of(made.time),
            "checked": text_of("; ".join(filter(None, (depth, str(made.restriction))))),
            "files": text_of(made.source and f"not read; the findings are those in {made.source}")
            or "opened read-only; none was changed",
        }
        return (
            f"<h2>How this page was made</h2>\n{list_of(rows)}{command_of(_clipped(made.command))}"
        )

    # --- one cause

    def _cause(self, cause: Cause, section: _Section, drawn: set[str]) -> str:
        first = cause.first
        severity = first.severity.value
        hint, commands = split_commands(first.hint)
        laws = {
            law: f"{text_of(law)}{f' ({count})' if len(cause.laws) > 1 else ''}"
            for law, count in cause.laws.items()
        }
        rows = {
            "where": text_of(place_words(cause)),
            "expected": text_of(first.expected),
            "actual": text_of(first.actual),
            "law": "<br>".join(
                f"{words}: {text_of(self._rules[law][0])}" if law in self._rules else words
                for law, words in laws.items()
            ),
            "consumers see": text_of(cause.consumers_see),
            "what to do": text_of(hint),
        }
        title = f"{badge_of(severity, severity)} {', '.join(laws.values())} {code_of(first.path)}"
        parts = [
            f'<article class="cause"><h3>{title}</h3>\n',
            f'<p class="message">{text_of(first.message)}</p>\n',
            list_of(rows),
            *map(command_of, (*commands, cause.reproduce)),
        ]
        reads = not self._made.source
        if reads and first.path not in drawn:
            drawn.add(first.path)
            parts.append(self._map(first, section))
        if reads and cause.positions:
            parts.append(self._bytes(first, cause.positions[0]))
        return "".join([*parts, "</article>\n"])

    def _map(self, finding: Finding, section: _Section) -> str:
        path = finding.path
        places = section.places.get(path, [])
        cuts = [
            position
            for cause in section.causes
            if cause.first.path == path and cause.first.is_defect
            for position in cause.positions
            if not cause.laws.keys().isdisjoint(OF_BYTES | CUTS_A_STORE)
        ]
        is_remote = is_of_remote_segment(path)
        try:
            drawn = read_file_map(path, None if is_remote else min(cuts, default=None), self._files)
        except (OSError, SegproofError) as error:
            return f'<p class="soft">No damage map of this file: {text_of(error)}.</p>\n'
        if not drawn.size_bytes or not (drawn.columns or places):
            return ""
        self._maps += 1
        entry_bytes = MARKED_BYTES.get(finding.structure, 1)
        told = REMOTE if is_remote and cuts else ""
        return figure_of(drawn, places, entry_bytes, f"map-{self._maps}") + told

    def _bytes(self, finding: Finding, position: int) -> str:
        try:
            rows = bytes_around(finding.path, position, self._files)
            fields = fields_at(finding.path, position, self._files)
        except (OSError, SegproofError) as error:
            return f'<p class="soft">No bytes of this file: {text_of(error)}.</p>\n'
        if not rows:
            return ""
        size = MARKED_BYTES.get(finding.structure, layouts.HEADER_UP_TO_MAGIC_BYTES)
        spans = [(one.start, one.end) for one in fields] or [(position, position + size)]
        lines = "\n".join(_byte_line(row, spans) for row in rows)
        told = "".join(map(_field, fields))
        return (
            f"<figure><figcaption>Bytes around byte {position}, where the marked"
            " ones begin</figcaption>"
            f'<pre tabindex="0">{lines}</pre>'
            + (f'<ul class="legend" aria-label="marked fields">{told}</ul>' if told else "")
            + "</figure>\n"
        )


def _clipped(command: str) -> str:
    """Return a command that may name any number of paths, cut where it is too long to show."""
    return command if len(command) <= COMMAND_MAX else f"{command[:COMMAND_MAX]} ..."


def _note(cause: Cause) -> str:
    where = text_of(place_words(cause))
    at = f" {where}:" if where else ""
    laws = text_of(", ".join(cause.laws))
    return f"<li>{laws} {code_of(cause.first.path)}:{at} {text_of(cause.first.message)}</li>\n"


def _field(field: ByteField) -> str:
    """Return a field that the bytes show, with the time that a timestamp stands for."""
    is_time = "timestamp" in field.name and field.value >= 0
    time = f" ({text_of(time_text(field.value))})" if is_time else ""
    return (
        f"<li>{field.name} <strong>{field.value}</strong>{time}"
        f' <span class="soft">{field.start} to {field.end - 1}</span></li>'
    )


def _byte_line(row: ByteRow, spans: list[tuple[int, int]]) -> str:
    """Return a row of bytes; those in one of the [start, end) of `spans` are marked."""
    size = len(row.data)
    borders = {max(0, min(size, one - row.position)) for span in spans for one in span}
    digits, letters = list[str](), ""
    for first, behind in pairwise(sorted({0, size} | borders)):
        is_marked = any(start <= row.position + first < end for start, end in spans)
        mark = _marked if is_marked else str
        digits.append(mark(row.data[first:behind].hex(" ")))
        letters += mark(escape(row.ascii_text[first:behind]))
    gap = "   " * (ROW_BYTES - size)
    return f"{row.position:>10}  {' '.join(digits)}{gap}  {letters}"


def _marked(text: str) -> str:
    return f"<mark>{text}</mark>"
