# SPDX-License-Identifier: Apache-2.0
"""The verb `spark lookups`: bulk lookups compared with the definition swept in order."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    progress,
    refuse,
    summarise,
    write_findings,
)
from segproof_harness.cli.histories import ALL, SeedOption
from segproof_spark.cli.common import Master, Remote, check_new, running
from segproof_spark.session import NO_RETRIES

if TYPE_CHECKING:
    from segproof_spark.lookups.comparison import Unit
    from segproof_spark.lookups.job import Summary, Total

USUAL_COUNT = 10**9
COUNT_MAX = 10**13

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="Index files, directories with them, or URLs: every index and whole log below them "
        "is asked. Default: generated indexes and logs.",
    ),
]
NumberOption = Annotated[
    str | None,
    typer.Option(
        "--count",
        metavar="N",
        help="Lookups in all, such as 1e9. Each key and its neighbours are asked in any case."
        " Default: 1e9 in generated files, 1e6 in each real one.",
    ),
]
KindOption = Annotated[
    str,
    typer.Option(
        "--structure",
        metavar="NAME",
        help="offset-index, time-index, index-file (RocketMQ's keys), partition-log (whole logs),"
        " or all.",
    ),
]
IndexOption = Annotated[
    int | None,
    typer.Option("--index", metavar="N", min=0, help="Only the index or log of this number."),
]
SubjectOption = Annotated[
    str,
    typer.Option(
        "--subject",
        metavar="MODULE:CLASS",
        help="A class to ask instead of segproof's own; it has the same constructor and methods.",
    ),
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="In this process, without Spark or Java.")
]
OutOption = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Keep a row for each index as Parquet there."),
]


def _count_of(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        count = int(text) if text.isdigit() else int(float(text))
    except (ValueError, OverflowError):
        count = 0
    if not 1 <= count <= COUNT_MAX:
        refuse(f"--count {text!r} is no number from 1 to {COUNT_MAX:.0e}, such as 1000000 or 1e9")
    return count


def _structures_of(structure: str, subject: str) -> tuple[str, ...]:
    from segproof_spark.lookups.comparison import named_class
    from segproof_spark.lookups.structures import STRUCTURES

    if structure != ALL and structure not in STRUCTURES:
        refuse(f"no lookups in a structure {structure!r}; known: {', '.join(STRUCTURES)}, {ALL}")
    if subject:
        if structure == ALL:
            refuse("--subject takes the place of one class: say which with --structure")
        try:
            named_class(subject)
        except ValueError as error:
            refuse(f"--subject: {error}")
    return tuple(STRUCTURES) if structure == ALL else (structure,)


def _units_of(
    paths: Sequence[str],
    structures: Sequence[str],
    seed: int,
    index: int | None,
    count: int | None,
    subject: str,
) -> "list[Unit]":
    from segproof_spark.arrow_files import expand
    from segproof_spark.lookups.comparison import Unit
    from segproof_spark.lookups.real_files import real_units
    from segproof_spark.lookups.structures import STRUCTURES, drawn_units

    if index is not None and len(structures) > 1:
        refuse("--index is the number of one index or log: say of which --structure")
    if not paths:
        if index is None:
            return drawn_units(count or USUAL_COUNT, structures, seed=seed, subject=subject)
        name = structures[0]
        return [Unit(name, seed, index, count or STRUCTURES[name].lookups, subject=subject)]
    places = expand(paths)
    units = real_units(places, structures, count, seed=seed, subject=subject, index=index)
    if not units:
        refuse(f"{' '.join(paths)}: no index and no log with indexes to look up in")
    return units


def command(
    paths: PathsArgument = None,
    count: NumberOption = None,
    structure: KindOption = ALL,
    seed: SeedOption = 0,
    index: IndexOption = None,
    subject: SubjectOption = "",
    local: LocalOption = False,
    out: OutOption = None,
    master: Master = "local[*]",
    remote: Remote = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Compare bulk lookups with their definition, swept in order, without a search.

    Targets are made from the answers: every key of an index, its two neighbours, the borders of the
    index and of the integers, then targets at random distances; half of them rising, half shuffled.
    The model and the single lookup answer a sample too. Each finding names the command that shows
    it in one process.

    Shares of generated lookups: offset indexes 40%, time indexes 30%, RocketMQ's keys 15%, whole
    logs across their segments 15%, of these one in four by timestamp.

    \b
    Examples:
      segproof spark lookups --count 1e9
      segproof spark lookups --count 1e7 /var/lib/kafka/data
    """
    if local and (out is not None or remote is not None):
        refuse("--local runs without Spark: it takes neither --out nor --remote")
    check_new(out)
    structures = _structures_of(structure, subject)
    units = _units_of(paths or (), structures, seed, index, _count_of(count), subject)
    started = time.monotonic()
    summary = _here(units) if local else _on_spark(units, master, remote, out)
    _show(summary, time.monotonic() - started, output_format)
    if summary.differing:
        raise typer.Exit(EXIT_FINDINGS)


def _here(units: "Sequence[Unit]") -> "Summary":
    from segproof_spark.lookups.job import summary_of
    from segproof_spark.lookups.structures import run_unit

    with progress("lookups", unit="indexes") as show:

        def shown(number: int, unit: "Unit") -> "Unit":
            show(number, len(units))
            return unit

        return summary_of(run_unit(shown(number, unit)).row() for number, unit in enumerate(units))


def _on_spark(
    units: "Sequence[Unit]", master: str, remote: str | None, out: str | None
) -> "Summary":
    from segproof_spark.lookups.job import lookups_on_spark

    # Nothing is tried twice, so that a comparison that fails once in a while is seen.
    settings = NO_RETRIES.by_name()
    with running(master, "lookups", remote=remote, settings=settings) as session:
        return lookups_on_spark(session, units, out=out)


def _show(summary: "Summary", seconds: float, output_format: Format) -> None:

    write_findings(summary.findings, output_format)
    for source, note in summary.notes:
        summarise(f"{source}: {note}")
    for total in summary.totals:
        summarise(_line_of(total))
    each = summary.lookups / seconds / 1e6
    left_out = f"; {summary.left_out} not or not wholly asked" if summary.left_out else ""
    summarise(
        f"{plural(summary.lookups, 'lookup')} compared in {seconds:.1f} s,"
        f" {each:.2f} million a second: {summary.differing} differ{left_out}"
    )


def _line_of(total: "Total") -> str:
    return (
        f"{total.structure}: {plural(total.units, 'unit')}, {plural(total.lookups, 'lookup')},"
        f" {total.by_model} asked of the model, {total.by_single} one by one,"
        f" {total.differing} differ, {total.seconds:.1f} s of processes,"
        f" largest {total.worker_peak_bytes >> 20} MiB"
    )
