# SPDX-License-Identifier: Apache-2.0
"""The verb `spark verify`: the findings of `segproof verify`, made in parallel."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof.counts import plural
from segproof_harness.cli import configuration
from segproof_harness.cli.common import (
    Format,
    FormatOption,
    HashSlotsOption,
    IndexBytesOption,
    LimitOption,
    check_readable,
    refuse,
    write_findings,
)
from segproof_harness.cli.verify import (
    AllOption,
    ColorOption,
    DeepOption,
    FailOn,
    FailOnOption,
    LawsOption,
    NoIgnoreOption,
    NoNotesOption,
    PositionOption,
    end,
    known_laws,
    tell_ignored,
)
from segproof_harness.reports.terminal import Color
from segproof_harness.reports.text import reason_of
from segproof_spark.cli.common import Master, Remote, running
from segproof_spark.session import LOCAL, RETRIES

if TYPE_CHECKING:
    from segproof_spark.verification import Totals

    Write = Callable[[dict[str, Any] | None], None]

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Files, partition directories, data directories, stores; globs; URLs.",
    ),
]
Done = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Folder or URL for finished work: files with the same size, time and digest are not "
        "read again.",
    ),
]
TaskBytes = Annotated[
    int | None,
    typer.Option(
        "--task-bytes",
        metavar="BYTES",
        min=1,
        help="Bytes that a task reads, about. Default: 64 MiB to 1 GiB, by the size of the data.",
    ),
]
MaxFindings = Annotated[
    int | None,
    typer.Option("--max-findings", metavar="N", min=1, help="Show so many findings at most."),
]


def command(
    context: typer.Context,
    paths: Paths,
    deep: DeepOption = False,
    master: Master = LOCAL,
    remote: Remote = None,
    law: LawsOption = None,
    position: PositionOption = None,
    limit_bytes: LimitOption = None,
    hash_slots: HashSlotsOption = None,
    segment_index_bytes: IndexBytesOption = None,
    checkpoint: Done = None,
    task_bytes: TaskBytes = None,
    fail_on: FailOnOption = FailOn.WARNING,
    max_findings: MaxFindings = None,
    no_notes: NoNotesOption = False,
    no_ignore: NoIgnoreOption = False,
    list_all: AllOption = False,
    color: ColorOption = Color.AUTO,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Verify files on Spark: partitions, segments, and pieces of large segments in parallel.

    The findings are those of `segproof verify`, with absolute paths, and are shown by their causes;
    there are no verdicts on partitions. This program and every worker must see the files under the
    same paths. URLs are those that Arrow reads, such as
    s3://BUCKET/KEY?endpoint_override=HOST:PORT&scheme=http.

    \b
    Examples:
      segproof spark verify /var/lib/kafka/data
      segproof spark verify --master spark://host:7077 '/mnt/dumps/*' --checkpoint /mnt/done
      segproof spark verify 's3://dumps/broker-1?region=eu-central-1'
    """
    from segproof.findings import places_of
    from segproof_spark.verification import Totals, verify_on_spark

    laws = known_laws(law)
    ignored = configuration.ignored_findings(context, no_ignore=no_ignore)
    places = _places(paths)
    _check_checkpoint(checkpoint)
    started, totals = time.monotonic(), Totals()
    with running(master, "verify", remote=remote, settings=RETRIES.by_name()) as session:
        found = verify_on_spark(
            session,
            places,
            deep=deep,
            limit=limit_bytes,
            laws=laws,
            position=position,
            hash_slots=hash_slots,
            segment_index_bytes=segment_index_bytes,
            checkpoint=checkpoint,
            task_bytes=task_bytes,
            totals=totals,
        )
        write = _writer(output_format, list_all, color)
        found = (
            one
            for one in found
            if not ignored.ignores(
                one["law"], one["path"], places_of(one["message"], one["actual"])
            )
        )
        counts, hidden = _told(found, write, max_findings, no_notes, fail_on)
    more = f", {plural(hidden, 'finding')} not shown" if hidden else ""
    more += tell_ignored(ignored, laws, is_whole=position is None)
    end(counts, time.monotonic() - started, f"{more}; {_used(totals)}", fail_on)


def _places(paths: list[str]) -> list[str]:
    """Return what globs match; refuse a path that can't be read."""
    from segproof_spark.arrow_files import expand, is_url

    places = expand(paths)
    for place in places:
        if not is_url(place):
            check_readable(Path(place))
    return places


def _check_checkpoint(place: str | None) -> None:
    """Refuse a checkpoint that can't be opened or made, before Spark is started."""
    from segproof.wording.reporting import Wanted
    from segproof_spark.verify.checkpoint import CheckpointError, open_checkpoint

    if place is not None:
        try:
            open_checkpoint(place, Wanted())
        except CheckpointError as error:
            refuse(f"--checkpoint: {reason_of(error)}")


def _writer(output_format: Format, list_all: bool, color: Color) -> "Write":
    """Return what is given each finding, in the order of the files, and None behind the last."""
    if output_format is Format.JSONL:
        return lambda finding: None if finding is None else write_findings([finding], output_format)
    from segproof.findings import Finding, Severity
    from segproof_harness.reports.terminal import Lines
    from segproof_harness.reports.verdicts import Detail, TextReport

    report = TextReport(Lines(color), Detail.FINDINGS if list_all else Detail.CAUSES)
    path: str | None = None

    def write(told: dict[str, Any] | None) -> None:
        nonlocal path
        if told is None or told["path"] != path:
            report.end()  # the causes of the file before
        if told is not None:
            path = told["path"]
            report.finding(Finding(**{**told, "severity": Severity(told["severity"])}))

    return write


def _told(
    findings: Iterator[dict[str, Any]],
    write: "Write",
    limit: int | None,
    no_notes: bool,
    fail_on: FailOn,
) -> tuple[Counter[str], int]:
    """Write findings, up to a limit; return how many of each severity, and how many not shown.

    Without notes these are counted, and neither written nor held against the limit, unless they
    make the exit code 1.
    """
    from segproof.findings import NOT_LOOKED_INTO, places_of

    counts: Counter[str] = Counter()
    written = hidden = 0
    for finding in findings:
        counts[finding["severity"]] += places_of(finding["message"], finding["actual"])
        is_unread = finding["law"] in NOT_LOOKED_INTO
        counts[FailOn.NOT_CHECKED.value] += is_unread
        is_failure = is_unread and fail_on is FailOn.NOT_CHECKED
        if no_notes and finding["severity"] == "note" and not is_failure:
            continue
        if limit is not None and written >= limit:
            hidden += 1
            continue
        write(finding)
        written += 1
    write(None)
    return counts, hidden


def _used(totals: "Totals") -> str:
    """Return in words what the verification took."""
    recalled = ""
    if totals.units_recalled:
        recalled = f", {totals.units_recalled} of them from the checkpoint"
    if totals.units_unkept:
        recalled += f", {totals.units_unkept} of them could not be written to --checkpoint"
    return (
        f"{plural(totals.units, 'unit')} in {plural(totals.tasks, 'task')}{recalled}, "
        f"{totals.bytes_read / 1e6:.0f} MB read, workers up to "
        f"{totals.worker_peak_bytes / (1 << 20):.0f} MiB"
    )
