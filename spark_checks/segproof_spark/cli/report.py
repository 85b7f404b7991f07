# SPDX-License-Identifier: Apache-2.0
"""The verb `spark report`: what a replay on Spark compared and found, read from its results."""

import sys
from typing import Annotated

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    refuse,
    summarise,
    write_findings,
)
from segproof_harness.cli.histories import compared
from segproof_spark.cli.replay import counted


def command(
    place: Annotated[
        str, typer.Argument(metavar="DIR", help="What `spark replay --out` has written.")
    ],
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Show again what a replay on Spark compared and found; neither Spark nor Java is needed.

    The findings come first, then the table: a row for each structure, profile and operation. A row
    of the results is one history, so Spark's SQL, or any other that reads Parquet, answers more:

    \b
      SELECT structure, step.operation, sum(step.operations) AS operations,
             sum(step.seconds) * 1e6 / sum(step.operations) AS us_an_operation
      FROM (SELECT structure, explode(by_operation) AS step FROM parquet.`DIR`)
      GROUP BY ALL ORDER BY us_an_operation DESC

    \b
    Example:
      segproof spark report replayed
    """
    from segproof_spark.replay.report import NoResultsError, is_finished, report
    from segproof_spark.replay.table import write_rows, write_table

    try:
        result, finished = report(place), is_finished(place)
    except NoResultsError as error:
        refuse(str(error))
    write_findings(result.findings, output_format)
    if output_format is Format.JSONL:
        write_rows(result.rows(), sys.stdout)
    else:
        write_table(result, sys.stdout)
    if not finished:
        summarise(f"{place}: no _SUCCESS: the replay has not ended, or was cut off; part is here")
    summarise(f"{compared(result.total)}: {counted(result)}")
    if result.total.findings:
        raise typer.Exit(EXIT_FINDINGS)
