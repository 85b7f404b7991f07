# SPDX-License-Identifier: Apache-2.0
"""The verb `replay`: histories from a trace or from seeds, on several subjects side by side."""

import time
from pathlib import Path
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
    write_prose,
    write_row,
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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from segproof_harness.histories.replay import Result, Watch
    from segproof_harness.histories.workloads import Weights
    from segproof_harness.structures.operations import Operation
    from segproof_harness.structures.outcomes import Outcome


def command(
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="TRACE", help="A trace file; without one, histories are drawn by seed."
        ),
    ] = None,
    structure: StructureOption = ALL,
    profile: DrawingProfileOption = "segproof",
    seed: SeedOption = 0,
    length: LengthOption = LENGTH,
    count: CountOption = 100,
    subjects: SubjectsOption = SUBJECTS,
    weights: WeightsOption = None,
    traces: Annotated[
        Path,
        typer.Option("--traces", metavar="DIR", help="Where the trace of a divergence is saved."),
    ] = Path("traces"),
    show: Annotated[
        bool,
        typer.Option("--show", help="Print each operation of a trace, and each subject's answer."),
    ] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Run histories on several subjects and compare them.

    Every answer, every kind of error and every byte of the files is compared. Each subject is
    compared with the model under the subject's own profile. If two subjects differ because their
    profiles differ, the summary names the behaviours that explain it. A history that diverges is
    made as short as possible and saved; the finding names the command that replays it.

    \b
    Examples:
      segproof replay --structure offset-index --count 10000
      segproof replay --structure offset-index --weights others=0,append=9,lookup=1
      segproof replay --structure time-index --subjects model,my.package:MyTimeIndex
      segproof replay --structure offset-index --subjects impl,kafka-2.0.1
      segproof replay traces/offset-index-segproof-17.jsonl
      segproof replay traces/offset-index-segproof-17.jsonl --subjects impl,kafka-4.4.0 --show
    """
    from segproof_harness.histories.traces import TraceError
    from segproof_harness.releases.process import OracleError

    if show and trace is None:
        refuse("--show shows the steps of a trace: name one")
    names = subjects_of(subjects)
    started = time.monotonic()
    try:
        if trace is not None:
            result = _replay_trace(trace, names, _shower(output_format) if show else None)
            write_findings((one.to_json() for one in result.findings), output_format)
        else:
            wanted = structures_of(structure, profile, names)
            drawn = weights_of(weights, wanted)
            seeds = range(seed, seed + count)
            result = _replay_seeds(
                wanted, profile, seeds, length, names, drawn, traces, output_format
            )
    except (TraceError, OracleError) as error:
        refuse(str(error))
    _show(result, time.monotonic() - started)
    if result.findings:
        raise typer.Exit(EXIT_FINDINGS)


def _shower(output_format: Format) -> "Watch":
    """Return what prints a step: one answer where all are the same, else each with its name."""

    def text(step: int, operation: "Operation", answers: "Mapping[str, Outcome]") -> None:
        told = [f"{name}: {answer!r}" for name, answer in answers.items()]
        if len(set(answers.values())) == 1:
            told = [repr(next(iter(answers.values())))]
        write_prose(f"{step:4} {operation!r}", indent=5)
        for line in told:
            write_prose(f"       {line}", indent=9)

    def jsonl(step: int, operation: "Operation", answers: "Mapping[str, Outcome]") -> None:
        told = {name: answer.to_json() for name, answer in answers.items()}
        write_row({"step": step, **operation.to_json(), "answers": told}, output_format)

    return text if output_format is Format.TEXT else jsonl


def _replay_trace(trace: Path, subjects: list[str], watch: "Watch | None") -> "Result":
    from segproof_harness.histories.replay import replay_trace
    from segproof_harness.histories.traces import TraceError

    try:
        return replay_trace(trace, subjects, watch=watch)
    except TraceError:
        raise
    except ValueError as error:
        refuse(str(error))


def _replay_seeds(
    wanted: tuple[str, ...],
    profile: str,
    seeds: range,
    length: int,
    subjects: list[str],
    weights: "Weights | None",
    traces: Path,
    output_format: Format,
) -> "Result":
    from segproof_harness.histories.replay import Result, replay_seeds
    from segproof_harness.histories.workloads import weights_for
    from segproof_harness.structures.structure import structure_named

    total = Result()
    done = 0

    def advance(seed: int) -> None:
        nonlocal done
        done += 1
        show(done, len(seeds) * len(wanted))

    with progress("replay", unit="histories") as show:
        for name in wanted:
            total.add(
                replay_seeds(
                    name,
                    profile,
                    seeds,
                    length,
                    subjects,
                    weights=weights_for(structure_named(name), weights) if weights else None,
                    traces=traces,
                    progress=advance,
                    told=lambda finding: write_findings([finding.to_json()], output_format),
                )
            )
    return total


def _show(result: "Result", seconds: float) -> None:
    for line in result.expected.lines():
        summarise(line)
    verdict = _verdict(len(result.findings))
    summarise(f"{compared(result.counters)} in {seconds:.1f} s: {verdict}")


def _verdict(findings: int) -> str:
    return plural(findings, "divergence") if findings else "no divergence"
