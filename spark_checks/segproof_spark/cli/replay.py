# SPDX-License-Identifier: Apache-2.0
"""The verb `spark replay`: random histories in parallel."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    summarise,
    write_findings,
)
from segproof_harness.cli.histories import (
    ALL,
    LENGTH,
    SUBJECTS,
    CountOption,
    DrawingProfileOption,
    LengthOption,
    SeedOption,
    StructureOption,
    SubjectsOption,
    WeightsOption,
    compared,
    structures_of,
    subjects_of,
    weights_of,
)
from segproof_spark.cli.common import Master, Remote, check_new, running
from segproof_spark.session import NO_RETRIES

if TYPE_CHECKING:
    from segproof_spark.replay import Summary

TotalOption = Annotated[
    int | None,
    typer.Option(
        "--total",
        metavar="N",
        min=1,
        help="Histories altogether, instead of --count; all structures get the same time.",
    ),
]
OutOption = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Write a row for each history there, as Parquet: a new directory, or a URL.",
    ),
]


def counted(result: "Summary") -> str:
    """Say how many findings are shown, and how many more there are."""
    cut = result.findings_cut
    return plural(len(result.findings), "finding") + (f"; {cut} more are not shown" if cut else "")


def command(
    structure: StructureOption = ALL,
    profile: DrawingProfileOption = "segproof",
    seed: SeedOption = 0,
    length: LengthOption = LENGTH,
    count: CountOption = 1000,
    total: TotalOption = None,
    subjects: SubjectsOption = SUBJECTS,
    weights: WeightsOption = None,
    out: OutOption = None,
    master: Master = "local[*]",
    remote: Remote = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Run random histories on Spark and compare every answer, error and byte.

    Each finding names the `segproof replay` that shows it in one process. A table on stderr counts
    the comparisons by structure and operation; `segproof spark report DIR` shows it again.

    \b
    Examples:
      segproof spark replay --structure offset-index --count 100000
      segproof spark replay --total 200000 --length 100 --out replayed
    """
    from segproof_spark.replay import replay_on_spark
    from segproof_spark.replay.histories import Seeds, shared
    from segproof_spark.replay.table import write_table

    names = subjects_of(subjects)
    structures = structures_of(structure, profile, names)
    drawn = weights_of(weights, structures)
    seeds: Seeds = range(seed, seed + count)
    if total is not None:
        seeds = shared(structures, total, seed)
    check_new(out)
    started = time.monotonic()
    with running(master, "replay", remote=remote, settings=NO_RETRIES.by_name()) as session:
        result = replay_on_spark(
            session,
            structures,
            profile=profile,
            seeds=seeds,
            length=length,
            subjects=names,
            weights=drawn,
            out=out,
        )
    write_findings(result.findings, output_format)
    seconds = time.monotonic() - started
    write_table(result, sys.stderr)
    summarise(f"{compared(result.total)} on Spark in {seconds:.1f} s: {counted(result)}")
    summarise(f"a Python worker held at most {result.total.worker_peak_bytes >> 20} MiB")
    if result.total.findings:
        raise typer.Exit(EXIT_FINDINGS)
