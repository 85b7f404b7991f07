# SPDX-License-Identifier: Apache-2.0
"""The verb `verify`: hold files against the laws."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    HashSlotsOption,
    IndexBytesOption,
    JobsOption,
    LimitOption,
    Show,
    check_readable,
    cores,
    plural,
    progress,
    reason_of,
    refuse,
    summarise,
    write_finding,
)

if TYPE_CHECKING:
    from segproof.findings import Finding

    Compare = Callable[[Path], Iterator[Finding]]


class Against(StrEnum):
    """A second opinion."""

    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is verified, and for what."""

    paths: list[Path]
    deep: bool
    jobs: int
    laws: frozenset[str] | None
    """None: all."""
    position: int | None
    limit: int | None
    hash_slots: int | None
    segment_index_bytes: int | None


class FailOn(StrEnum):
    """From which severity on a finding makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"


DeepOption = Annotated[bool, typer.Option("--deep", help="Read each record too.")]
LawsOption = Annotated[
    list[str] | None,
    typer.Option("--law", metavar="LAW-ID", help="Only this law; may be repeated."),
]
PositionOption = Annotated[
    int | None, typer.Option("--position", min=0, help="Only findings at this byte of a file.")
]
FailOnOption = Annotated[
    FailOn, typer.Option("--fail-on", help="The lowest severity that makes the exit code 1.")
]
NoNotesOption = Annotated[
    bool, typer.Option("--no-notes", help="Leave notes out; the closing line counts them.")
]


def command(
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
    limit_bytes: LimitOption = None,
    hash_slots: HashSlotsOption = None,
    segment_index_bytes: IndexBytesOption = None,
    against: Annotated[
        Against | None,
        typer.Option(
            "--against",
            help="Compare with the model's verdict on each law; directories up to 8 MiB.",
        ),
    ] = None,
    fail_on: FailOnOption = FailOn.WARNING,
    max_findings: Annotated[
        int | None, typer.Option("--max-findings", min=1, help="Stop after this many findings.")
    ] = None,
    no_notes: NoNotesOption = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Check files against the laws of their formats.

    Every finding names the law, the file, the byte, what to do, and a command that shows it again.
    Files are opened read-only and read once; memory stays the same for any size. Exit code 1 for
    errors and warnings. Notes do not count, such as the zero tail of an index that is still being
    written.

    \b
    Examples:
      segproof verify /var/lib/kafka/data
      segproof verify my-topic-0 --deep --format jsonl
      segproof verify my-topic-0/00000000000000000000.index --law OFFIDX-2
      segproof verify /home/rocketmq/store
    """
    laws = known_laws(law)
    for path in paths:
        check_readable(path)
    started = time.monotonic()
    asked = Asked(paths, deep, jobs or cores(), laws, position, limit_bytes, hash_slots,
                  segment_index_bytes)  # fmt: skip
    with progress("verify") as show:
        counts, cut = _told(_found(asked, show), output_format, max_findings, no_notes)
    if against is not None:
        counts["error"] += sum(_compare(path, output_format) for path in paths)
    end(counts, time.monotonic() - started, cut, fail_on)


def end(counts: Counter[str], seconds: float, more: str, fail_on: FailOn) -> None:
    """Write the closing line, with more words behind it, and end with the exit code."""
    summarise(
        f"{plural(counts['error'], 'error')}, {plural(counts['warning'], 'warning')}, "
        f"{plural(counts['note'], 'note')} in {seconds:.1f} s{more}"
    )
    if counts["error"] or (counts["warning"] and fail_on is FailOn.WARNING):
        raise typer.Exit(EXIT_FINDINGS)


def _told(
    findings: "Iterable[Finding]", output_format: Format, limit: int | None, no_notes: bool
) -> tuple[Counter[str], str]:
    """Write findings, up to a limit; return how many of each severity, and a word on the limit.

    Without notes these are counted, and neither written nor held against the limit.
    """
    counts: Counter[str] = Counter()
    written = 0
    for finding in findings:
        counts[finding.severity.value] += 1
        if no_notes and not finding.is_defect:
            continue
        write_finding(finding, output_format)
        written += 1
        if written == limit:
            return counts, f" (ended after {plural(written, 'finding')})"
    return counts, ""


def _found(asked: Asked, show: Show) -> "Iterator[Finding]":
    from segproof.verification import verify

    for path in asked.paths:
        yield from verify(
            path,
            deep=asked.deep,
            laws=asked.laws,
            position=asked.position,
            on_progress=show,
            jobs=asked.jobs,
            limit=asked.limit,
            hash_slots=asked.hash_slots,
            segment_index_bytes=asked.segment_index_bytes,
        )


def known_laws(given: list[str] | None) -> frozenset[str] | None:
    """Return the laws that are asked for, None for all; refuse one that verify does not check."""
    if not given:
        return None
    from segproof.verification import VERIFIED_LAWS
    from segproof_harness.cli.explain import order_of_law

    wanted = frozenset(law_id.upper() for law_id in given)
    if unknown := sorted(wanted - VERIFIED_LAWS):
        known = ", ".join(sorted(VERIFIED_LAWS, key=order_of_law))
        refuse(f"verify does not check {', '.join(unknown)}; it checks: {known}")
    return wanted


def _compare(path: Path, output_format: Format) -> int:
    """Hold verify's findings against the model's laws; return on how many laws they part."""
    from segproof.errors import TooLargeError
    from segproof_harness.laws.judged_directory import disagreements, partitions_below
    from segproof_harness.laws.judged_store import store_disagreements, stores_below

    count = 0
    works: list[tuple[Path, Compare]] = [
        (directory, disagreements) for directory in partitions_below(path)
    ]
    works += [(store, store_disagreements) for store in stores_below(path)]
    if not works:
        summarise(f"model: not run: {path} is no directory with a log in or below it")
    for directory, compare in works:
        try:
            for finding in compare(directory):
                write_finding(finding, output_format)
                count += 1
        except (ValueError, TooLargeError) as error:
            summarise(f"model: not run: {error}")
        except OSError as error:
            summarise(f"model: not run: {reason_of(error)}")
        else:
            summarise(f"model: {directory}: compared")
    return count
