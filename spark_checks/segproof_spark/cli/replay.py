# SPDX-License-Identifier: Apache-2.0
"""The verb `spark replay`: random histories in parallel.

Used by: cli.
"""

import sys
import time
from typing import TYPE_CHECKING

import typer

from segproof_harness.cli.common import EXIT_FINDINGS, Format, FormatOption, summarise
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
    compared,
    structures_of,
    subjects_of,
)
from segproof_spark.cli.running import Master, running

if TYPE_CHECKING:
    from segproof_spark.replay import SparkReplay


def _counted(result: "SparkReplay") -> str:
    """Say how many findings are shown, and how many more there are."""
    cut = result.findings_cut
    return f"{len(result.findings)} findings" + (f"; {cut} more are not shown" if cut else "")


def command(
    structure: StructureOption = ALL,
    profile: DrawingProfileOption = "segproof",
    seed: SeedOption = 0,
    length: LengthOption = LENGTH,
    count: CountOption = 1000,
    subjects: SubjectsOption = SUBJECTS,
    master: Master = "local[*]",
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Run random histories on Spark and compare every answer, error and byte.

    Each finding names the `segproof replay` that shows it in one process.

    \b
    Example:
      segproof spark replay --structure offset-index --count 100000
    """
    from segproof_harness.report import write_jsonl, write_text
    from segproof_spark.replay import replay_on_spark

    names = subjects_of(subjects)
    structures = structures_of(structure, profile, names)
    started = time.monotonic()
    with running(master, "replay") as session:
        result = replay_on_spark(
            session,
            structures,
            profile=profile,
            seeds=range(seed, seed + count),
            length=length,
            subjects=names,
        )
    write = write_jsonl if output_format is Format.JSONL else write_text
    for finding in result.findings:
        write(finding, sys.stdout)
    seconds = time.monotonic() - started
    summarise(f"{compared(result)} on Spark in {seconds:.1f} s: {_counted(result)}")
    if result.findings:
        raise typer.Exit(EXIT_FINDINGS)
