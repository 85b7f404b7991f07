# SPDX-License-Identifier: Apache-2.0
"""The verb `verify`: hold files against the laws."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from segproof.counts import plural
from segproof_harness.cli import candidates, configuration
from segproof_harness.cli.common import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    EXIT_USAGE,
    HashSlotsOption,
    IndexBytesOption,
    JobsOption,
    LimitOption,
    Show,
    check_readable,
    complaint_about,
    cores,
    parse_since,
    progress,
    refuse,
    release,
    summarise,
)
from segproof_harness.cli.watch import Known, NewsReport, watch
from segproof_harness.reports.terminal import Color
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from segproof.findings import Finding, Summary, Verdict
    from segproof.wording.reporting import Wanted
    from segproof_harness.reports.ignored_findings import IgnoredFindings
    from segproof_harness.reports.report import Report
    from segproof_harness.reports.verdicts import Restriction

    Compare = Callable[[Path], Iterator[Finding]]


class Against(StrEnum):
    """A second opinion."""

    MODEL = "model"


class VerifyFormat(StrEnum):
    """How the results are written to stdout."""

    TEXT = "text"
    JSONL = "jsonl"
    SARIF = "sarif"
    JUNIT = "junit"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is verified, and for what."""

    paths: list[Path]
    jobs: int
    wanted: "Wanted"
    since_ms: int | None = None
    """Leave out what has not changed since; None: nothing."""

    @property
    def restriction(self) -> "Restriction":
        """What alone is checked."""
        from segproof_harness.reports.verdicts import Restriction

        return Restriction(self.wanted.laws, self.wanted.position, self.since_text)

    @property
    def since_text(self) -> str | None:
        """The time since which files have changed, in ISO 8601."""
        from segproof.findings import time_text

        return None if self.since_ms is None else time_text(self.since_ms)


class FailOn(StrEnum):
    """From which severity on a finding makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    NOT_CHECKED = "not-checked"
    """A warning, or a note of something that was recognised and not read."""


DeepOption = Annotated[bool, typer.Option("--deep", help="Read each record too.")]
LawsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--law",
        metavar="LAW-ID",
        autocompletion=candidates.verified_laws,
        help="Only this law; may be repeated.",
    ),
]
SinceOption = Annotated[
    int | None,
    typer.Option(
        "--since",
        metavar="TIME",
        parser=parse_since,
        help="Only segments and stores with a file changed since then: 2h, 7d, or a time such as "
        "2026-11-21T01:00Z. Damage by a disk does not change the time of a file.",
    ),
]
WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="SECONDS",
        min=0.1,
        max=86_400,
        help="Look for changed files every so many seconds, verify again, and print the partitions "
        "with another verdict or a new defect, until Ctrl-C.",
    ),
]
PositionOption = Annotated[
    int | None,
    typer.Option("--position", metavar="BYTE", min=0, help="Only findings at this byte of a file."),
]
FailOnOption = Annotated[
    FailOn,
    typer.Option(
        "--fail-on",
        help="The lowest severity that makes the exit code 1; not-checked: a warning, or a note of "
        "a file that was not looked into.",
    ),
]
NoNotesOption = Annotated[
    bool, typer.Option("--no-notes", help="Leave notes out; the closing line counts them.")
]
NoIgnoreOption = Annotated[
    bool,
    typer.Option("--no-ignore", help="Ignore no finding, whatever the configuration file says."),
]
AgainstOption = Annotated[
    Against | None,
    typer.Option(
        "--against",
        help="Compare with the model's verdict on each law; directories up to 8 MiB.",
    ),
]
MaxFindingsOption = Annotated[
    int | None,
    typer.Option("--max-findings", metavar="N", min=1, help="Stop after this many findings."),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="List each finding, not one for each cause.")
]
SummaryOption = Annotated[bool, typer.Option("--summary", help="Print the verdicts only.")]
ColorOption = Annotated[
    Color, typer.Option("--color", help="auto: on a terminal, unless NO_COLOR is set.")
]
VerifyFormatOption = Annotated[
    VerifyFormat,
    typer.Option("--format", help="text for people, jsonl for programs, sarif or junit for CI."),
]


def command(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Files, partition directories, whole data directories, stores."
        ),
    ],
    deep: DeepOption = False,
    jobs: JobsOption = None,
    law: LawsOption = None,
    position: PositionOption = None,
    since: SinceOption = None,
    watch_seconds: WatchOption = None,
    limit_bytes: LimitOption = None,
    hash_slots: HashSlotsOption = None,
    segment_index_bytes: IndexBytesOption = None,
    against: AgainstOption = None,
    fail_on: FailOnOption = FailOn.WARNING,
    max_findings: MaxFindingsOption = None,
    no_notes: NoNotesOption = False,
    no_ignore: NoIgnoreOption = False,
    list_all: AllOption = False,
    only_summary: SummaryOption = False,
    color: ColorOption = Color.AUTO,
    output_format: VerifyFormatOption = VerifyFormat.TEXT,
) -> None:
    """Check files against the laws of their formats.

    Each partition and store gets a verdict: sound, index damage only, readable with defects, not
    checked, readable with gaps, or unreadable. After it come the causes: for each file what is
    wrong, in how many places, what consumers see, what to do, and commands that can be pasted.

    A verdict covers what was read. "sound, 2 files not looked into": a note names each file that
    segproof knows and does not read, with the reason. With --law or --position it is never "sound",
    but "no finding" of these.

    Files are opened read-only and read once; memory stays the same for any size. Exit code 1 for
    errors and warnings. Notes do not count, such as the zero tail of an index that is still being
    written; with --fail-on not-checked those of files that were not looked into do.

    \b
    Examples:
      segproof verify /var/lib/kafka/data
      segproof verify /var/lib/kafka/data --summary
      segproof verify my-topic-0 --deep --format jsonl
      segproof verify my-topic-0/00000000000000000000.index --law OFFIDX-2
      segproof verify /home/rocketmq/store
      segproof verify /var/lib/kafka/data --since 2h --watch 60 --no-notes
    """
    from segproof.wording.reporting import Wanted

    laws = known_laws(law)
    if list_all and only_summary:
        refuse("give --all or --summary, not both")
    if only_summary and output_format in (VerifyFormat.SARIF, VerifyFormat.JUNIT):
        refuse(f"--summary is for text and jsonl: {output_format} is for findings")
    if watch_seconds is not None:
        _check_watched(watch_seconds, output_format, max_findings, against)
    ignored = configuration.ignored_findings(context, no_ignore=no_ignore)
    for path in paths:
        check_readable(path)
    wanted = Wanted(laws, position, deep, limit_bytes, hash_slots, segment_index_bytes)
    asked = Asked(paths, jobs or cores(), wanted, since)
    shown = Shown(output_format, color, fail_on, list_all=list_all, only_summary=only_summary)
    if watch_seconds is not None:
        ignoring = partial(configuration.ignored_findings, context, no_ignore=no_ignore)
        _watch(watch_seconds, asked, shown, ignoring, no_notes=no_notes)
    told = Told(shown.report(asked), max_findings, no_notes, fail_on)
    judge(asked, told, ignored, fail_on, against)


def _watch(
    seconds: float,
    asked: Asked,
    shown: "Shown",
    ignoring: "Callable[[], IgnoredFindings]",
    *,
    no_notes: bool,
) -> NoReturn:
    """Verify in rounds until Ctrl-C; a round without news is silent."""

    def once(known: Known) -> None:
        news = NewsReport(shown.report(asked), known)
        told = Told(news, None, no_notes, shown.fail_on)
        try:
            there = replace(asked, paths=news.look_at(asked.paths))
            try:
                close = verified(there, told, ignoring())
            except FileNotFoundError as error:  # a path that goes now; its files are changed
                known.exit_code = EXIT_USAGE
                summarise(reason_of(error))
                return
            known.exit_code = EXIT_USAGE if known.gone else exit_code(told.counts, shown.fail_on)
            if news.has_news:
                close(f"; at {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, --watch goes on")
        except KeyboardInterrupt:
            if news.has_news and (code := exit_code(told.counts, shown.fail_on)):
                raise typer.Exit(code) from None  # what is on the screen already
            raise

    watch(asked.paths, seconds, once)


def _check_watched(
    seconds: float, output_format: VerifyFormat, max_findings: int | None, against: Against | None
) -> None:
    """Refuse what does not go with --watch."""
    if isnan(seconds):  # older releases of typer let it pass
        refuse("--watch: nan is no number of seconds")
    if output_format in (VerifyFormat.SARIF, VerifyFormat.JUNIT):
        refuse(f"--watch is for text and jsonl: {output_format} is one whole document")
    if max_findings is not None or against is not None:
        refuse(
            f"--watch does not go with --{'against' if max_findings is None else 'max-findings'}"
        )


def judge(
    asked: Asked,
    told: "Told",
    ignored: "IgnoredFindings",
    fail_on: FailOn,
    against: Against | None = None,
) -> None:
    """Verify what is asked for, have the report written, and end with the exit code."""
    verified(asked, told, ignored, against)("")
    if code := exit_code(told.counts, fail_on):
        raise typer.Exit(code)


def verified(
    asked: Asked, told: "Told", ignored: "IgnoredFindings", against: Against | None = None
) -> "Callable[[str], None]":
    """Verify what is asked for; return what writes the closing lines, with words at the end."""
    from segproof_harness.reports.own_outputs import OwnOutputs

    started = time.monotonic()
    left_out = LeftOut()

    def summary(one: "Summary") -> None:
        told.summary(ignored.counted(one))

    with progress("verify") as show:
        found = _found(asked, show, summary, left_out.add)
        told.take(OwnOutputs().of(ignored.without(found)))
    if against is not None:
        for path in asked.paths:
            told.take(_compared(path))
    told.report.end()
    seconds = time.monotonic() - started

    def close(words: str) -> None:
        told.summarise(asked.restriction)
        if text := str(left_out):
            summarise(f"not checked: {text} older than {asked.since_text}")
        is_whole = asked.wanted.position is None and asked.since_ms is None and not told.more
        more = told.more + tell_ignored(ignored, asked.wanted.laws, is_whole=is_whole)
        tell_counts(told.counts, seconds, more + words)

    return close


class LeftOut:
    """Counts what is not checked because it has not changed."""

    def __init__(self) -> None:
        self._segments = self._partitions = self._stores = 0

    def add(self, _path: str, segments: int) -> None:
        """Take a partition with its segments that are left out, or a store, which has 0."""
        self._segments += segments
        self._partitions += segments > 0
        self._stores += segments == 0

    def __str__(self) -> str:
        """The counts in words; empty: everything was checked."""
        of = f"{plural(self._segments, 'segment')} of {plural(self._partitions, 'partition')}"
        parts = [of if self._segments else ""]
        parts += [plural(self._stores, "store") if self._stores else ""]
        return ", ".join(filter(None, parts))


def tell_ignored(ignored: "IgnoredFindings", laws: frozenset[str] | None, *, is_whole: bool) -> str:
    """Say what was ignored and why, and which entries are in vain; return words for the end.

    `laws` are those that were judged, None for all, and `is_whole` says: in whole files.
    """
    from segproof.verification import VERIFIED_LAWS

    judged = VERIFIED_LAWS if laws is None else laws
    for line in ignored.lines(judges=judged if is_whole else ()):
        summarise(line)
    if not ignored.count:
        return ""
    return f"; {plural(ignored.count, 'finding')} ignored, --no-ignore shows them"


@dataclass(frozen=True, slots=True)
class Shown:
    """How the results are shown."""

    output_format: VerifyFormat
    color: Color
    fail_on: FailOn
    list_all: bool
    only_summary: bool

    def report(self, asked: Asked) -> "Report":
        """Return what writes the results."""
        if self.output_format is VerifyFormat.SARIF:
            from segproof_harness.reports.sarif import SarifReport

            return SarifReport(release(), rules())
        if self.output_format is VerifyFormat.JUNIT:
            from segproof_harness.reports.junit import JUnitReport

            return JUnitReport(lambda one: is_failure(one, self.fail_on), asked.restriction)
        if self.output_format is VerifyFormat.JSONL:
            from segproof_harness.reports.json_lines import JsonLinesReport

            wanted = asked.wanted
            laws = None if wanted.laws is None else sorted(wanted.laws)
            told = {"laws": laws, "position": wanted.position, "deep": wanted.deep,
                    "since": asked.since_text}  # fmt: skip
            return JsonLinesReport(told, is_summary=self.only_summary)
        from segproof_harness.reports.terminal import Lines
        from segproof_harness.reports.verdicts import Detail, TextReport

        detail = Detail.FINDINGS if self.list_all else Detail.CAUSES
        detail = Detail.VERDICT if self.only_summary else detail
        return TextReport(Lines(self.color), detail, asked.restriction)


PATHS_TOLD = 10
"""So many paths of a verdict are named at the end, of a run with more partitions and stores."""


class Told:
    """Hands findings and summaries to a report, and counts them."""

    def __init__(
        self,
        report: "Report",
        limit: int | None,
        no_notes: bool,
        fail_on: FailOn = FailOn.WARNING,
    ) -> None:
        self.report = report
        self._limit = limit
        self._no_notes = no_notes
        self._fail_on = fail_on
        self._written = 0
        self.counts: Counter[str] = Counter()
        """Findings by severity; by `not-checked` those of what was not looked into."""
        self._kinds: Counter[str] = Counter()
        self._verdicts: Counter[Verdict] = Counter()
        self._unread: Counter[Verdict] = Counter()
        """How many of each verdict have something that was not looked into."""
        self._first: dict[Verdict, list[str]] = {}
        """The first few paths of each verdict."""
        self.more = ""
        """A word on the limit, once it was reached."""

    def take(self, findings: "Iterable[Finding]") -> None:
        """Take findings, up to the limit.

        Without notes these are counted, and neither written nor held against the limit, unless
        they make the exit code 1.
        """
        if self.more:
            return
        for finding in findings:
            self.counts[finding.severity.value] += finding.places
            self.counts[FailOn.NOT_CHECKED.value] += finding.files_not_looked_into
            is_hidden = not finding.is_defect and not is_failure(finding, self._fail_on)
            if self._no_notes and is_hidden:
                continue
            self.report.finding(finding)
            self._written += 1
            if self._written == self._limit:
                self.more = f" (ended after {plural(self._written, 'finding')})"
                return

    def summary(self, summary: "Summary") -> None:
        """Take a summary."""
        from segproof.findings import Verdict

        self.report.summary(summary)
        is_told = summary.verdict is not Verdict.SOUND or summary.not_looked_into > 0
        if summary.kind != "directory" or is_told:
            kind = "other path" if summary.kind == "directory" else summary.kind
            self._kinds[kind] += 1
            self._verdicts[summary.verdict] += 1
            self._unread[summary.verdict] += summary.not_looked_into > 0
            first = self._first.setdefault(summary.verdict, [])
            if len(first) < PATHS_TOLD:
                first.append(summary.path)

    def summarise(self, only: "Restriction") -> None:
        """Say how many partitions and stores have which verdict, if there are several.

        Of many, name those that are not sound once more, the worst first. `only` is what alone was
        checked.
        """
        from segproof.findings import Verdict
        from segproof_harness.reports.verdicts import closing_words, words_of

        total = self._verdicts.total()
        if total > 1:
            summarise(closing_words(self._kinds, self._verdicts, self._unread, only))
        for verdict in reversed(Verdict):
            if total <= PATHS_TOLD or verdict is Verdict.SOUND:
                continue
            told = self._first.get(verdict, [])
            for path in told:
                summarise(f"  {words_of(verdict)}: {path}")
            if self._verdicts[verdict] > len(told):
                summarise(f"  {words_of(verdict)}: {self._verdicts[verdict] - len(told)} more")


def is_failure(finding: "Finding", fail_on: FailOn) -> bool:
    """Return whether a finding makes the exit code 1."""
    one = Counter({finding.severity.value: 1})
    one[FailOn.NOT_CHECKED.value] += finding.files_not_looked_into
    return exit_code(one, fail_on) == EXIT_FINDINGS


def rules() -> dict[str, tuple[str, str]]:
    """Return the sentence of each law that verify checks, and what to do, in the order of ids."""
    from segproof.verification import RULES
    from segproof_harness.laws.every_law import LAWS
    from segproof_harness.laws.law_order import order_of_law

    ids = sorted(RULES, key=order_of_law)
    return {law_id: (LAWS[law_id].sentence, RULES[law_id].hint) for law_id in ids}


def end(counts: Counter[str], seconds: float, more: str, fail_on: FailOn) -> None:
    """Write the closing line, with more words behind it, and end with the exit code."""
    tell_counts(counts, seconds, more)
    if code := exit_code(counts, fail_on):
        raise typer.Exit(code)


def tell_counts(counts: Counter[str], seconds: float, more: str) -> None:
    """Write the closing line, with more words behind it."""
    summarise(
        f"{plural(counts['error'], 'error')}, {plural(counts['warning'], 'warning')}, "
        f"{plural(counts['note'], 'note')} in {seconds:.1f} s{_not_checked(counts)}{more}"
    )


def _not_checked(counts: Counter[str]) -> str:
    """Return how many files were not looked into, in words for the closing line."""
    count = counts[FailOn.NOT_CHECKED.value]
    return f"; {plural(count, 'file')} not looked into" if count else ""


def exit_code(counts: Counter[str], fail_on: FailOn) -> int:
    """Return the exit code for the number of findings of each severity."""
    is_failed = counts["error"] or (counts["warning"] and fail_on is not FailOn.ERROR)
    if fail_on is FailOn.NOT_CHECKED:
        is_failed = is_failed or counts[FailOn.NOT_CHECKED.value]
    return EXIT_FINDINGS if is_failed else EXIT_CLEAN


def _found(
    asked: Asked,
    show: Show,
    on_summary: "Callable[[Summary], None]",
    on_left_out: "Callable[[str, int], None]",
) -> "Iterator[Finding]":
    from segproof.verification import partition_places, verify

    beside = partition_places(asked.paths) if len(asked.paths) > 1 else ()
    for path in asked.paths:
        yield from verify(
            path,
            **asdict(asked.wanted),
            on_progress=show,
            jobs=asked.jobs,
            on_summary=on_summary,
            since_ms=asked.since_ms,
            on_left_out=on_left_out,
            beside=beside,
        )


def known_laws(given: list[str] | None) -> frozenset[str] | None:
    """Return the laws that are asked for, None for all; refuse one that verify does not check."""
    if not given:
        return None
    wanted = frozenset(law_id.upper() for law_id in given)
    if complaint := complaint_about(wanted):
        refuse(complaint)
    return wanted


def _compared(path: Path) -> "Iterator[Finding]":
    """Hold verify's findings against the model's laws; yield each law on which they part."""
    from segproof.errors import TooLargeError
    from segproof_harness.laws.judged_directory import disagreements, partitions_below
    from segproof_harness.laws.judged_store import store_disagreements, stores_below

    works: list[tuple[Path, Compare]] = [
        (directory, disagreements) for directory in partitions_below(path)
    ]
    works += [(store, store_disagreements) for store in stores_below(path)]
    if not works:
        summarise(f"model: not run: {path} is no directory with a log in or below it")
    for directory, compare in works:
        try:
            yield from compare(directory)
        except (ValueError, TooLargeError) as error:
            summarise(f"model: not run: {error}")
        except OSError as error:
            summarise(f"model: not run: {reason_of(error)}")
        else:
            summarise(f"model: {directory}: compared")
