# SPDX-License-Identifier: Apache-2.0
"""The verb `oracle run`: the model under each profile against the release itself."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    JobsOption,
    cores,
    progress,
    refuse,
    summarise,
    write_line,
)
from segproof_harness.cli.histories import ALL, LengthOption, StructureOption, known_structure
from segproof_harness.cli.releases import ReleasesArgument, chosen, refuse_unready

if TYPE_CHECKING:
    from segproof_harness.conformance.release_histories import Conformance

COUNT = 50
LENGTH = 100
FirstSeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", min=0, help="The first seed; without it 0, or the first fresh one."
    ),
]


def command(
    releases: ReleasesArgument = None,
    structure: StructureOption = ALL,
    count: Annotated[
        int,
        typer.Option(
            "--count", metavar="N", min=1, help="Histories of each structure and release."
        ),
    ] = COUNT,
    length: LengthOption = LENGTH,
    seed: FirstSeedOption = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Run fresh seeds, above all seeds of the record, and keep their findings beside "
            "earlier runs.",
        ),
    ] = False,
    jobs: JobsOption = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Keep the figures in this file; a repeated run replaces its old figures.",
        ),
    ] = None,
) -> None:
    """Compare the model with real releases: every answer, error kind and byte.

    Each release and structure has one line: histories, answers compared, divergences. A divergence
    is shown when its five hundred histories are run, with the command that shows it alone.

    \b
    Examples:
      segproof oracle run kafka-4.4.0 --structure offset-index --count 1000
      segproof oracle run --count 2000 --record docs/results/oracle.jsonl
      segproof oracle run kafka-4.4.0 --fresh --record docs/results/oracle.jsonl
    """
    from segproof_harness.conformance.release_histories import merged, merged_into, plan
    from segproof_harness.releases.pinned import RELEASES
    from segproof_harness.releases.process import OracleError
    from segproof_harness.structures.structure import STRUCTURE_IDS

    structures = STRUCTURE_IDS if structure == ALL else (known_structure(structure),)
    first = _first_seed(seed, fresh, record)
    tasks = plan(
        chosen(releases, RELEASES), structures,
        count=count, length=length, seed=first, is_fresh=fresh,
    )  # fmt: skip
    if not tasks:
        refuse(f"none of these releases serves {structure}")
    refuse_unready(RELEASES[name] for name in dict.fromkeys(task.release for task in tasks))
    started = time.monotonic()
    try:
        runs = _ran(tasks, jobs or cores())
    except OracleError as error:
        refuse(str(error))
    if record is not None:
        try:
            merged_into(record, runs)
        except (OSError, ValueError) as error:
            refuse(f"--record: {error}")
    _show(merged(runs), time.monotonic() - started)


def _first_seed(seed: int | None, fresh: bool, record: Path | None) -> int:
    """Return the first seed that was asked for."""
    from segproof_harness.conformance.release_histories import unused_seed

    if fresh and record is None:
        refuse("--fresh: name the --record whose seeds are not fresh")
    if seed is not None or record is None or not fresh:
        return seed or 0
    try:
        return unused_seed(record)
    except (OSError, ValueError) as error:
        refuse(f"--record: {error}")


def _ran(tasks: "list[Conformance]", jobs: int) -> "list[Conformance]":
    """Run the tasks; print what shows a divergence as soon as its task is done."""
    from segproof_harness.conformance.release_histories import conform

    runs: list[Conformance] = []
    done, total = 0, sum(task.histories for task in tasks)
    with progress("oracle", unit="histories") as show:
        show(0, total)
        for run in conform(tasks, jobs):
            runs.append(run)
            for line in run.reproduce:
                write_line(f"reproduce: {line}")
            sys.stdout.flush()
            done += run.histories
            show(min(done, total), total)
    return runs


def _show(rows: "list[Conformance]", seconds: float) -> None:
    write_line(
        f"{'release':16} {'structure':17} {'histories':>9} {'operations':>10} {'answers':>10} "
        f"{'diverged':>8}"
    )
    for row in rows:
        write_line(
            f"{row.release:16} {row.structure:17} {row.histories:9} {row.operations:10} "
            f"{row.answers_compared:10} {row.divergences:8}"
        )
    found = sum(row.divergences for row in rows)
    histories = plural(sum(row.histories for row in rows), "history")
    diverged = plural(found, "divergence") if found else "no divergence"
    summarise(f"{histories} in {seconds:.1f} s: {diverged}")
    if found:
        raise typer.Exit(EXIT_FINDINGS)
