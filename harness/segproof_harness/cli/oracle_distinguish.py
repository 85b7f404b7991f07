# SPDX-License-Identifier: Apache-2.0
"""The verb `oracle distinguish`: a history for each behaviour that tells two releases apart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import EXIT_FINDINGS, progress, refuse, summarise, write_line
from segproof_harness.cli.releases import refuse_unready

if TYPE_CHECKING:
    from segproof_harness.conformance.distinguishing_histories import Distinction

RECORD = "record.jsonl"
OutOption = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="Folder of the traces and of the record of them."),
]
TryFirstOption = Annotated[
    Path | None,
    typer.Option(
        "--try-first", metavar="DIR", help="Folder of traces that are tried before random ones."
    ),
]
SeedsOption = Annotated[
    int,
    typer.Option(
        "--seeds", metavar="N", min=1, help="Seeds tried for each behaviour and structure."
    ),
]


def command(
    behaviours: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BEHAVIOUR", help="Behaviours of older releases. Default: all of them."
        ),
    ] = None,
    out: OutOption = Path("traces"),
    try_first: TryFirstOption = None,
    seeds: SeedsOption = 3000,
) -> None:
    """Find, for each behaviour of older releases, a history that shows it.

    The model of the newest release with the behaviour, and the same model without it, answer
    differently. The real classes of that release and of the next one decide. A behaviour that they
    refute is shown, and the exit code is 1.

    \b
    Examples:
      segproof oracle distinguish CallIsIndexedAsAWhole
      segproof oracle distinguish --out docs/reference/traces --try-first tests/oracle/traces
    """
    from segproof_harness.conformance.distinguishing_histories import (
        distinguish,
        read_distinctions,
        steps,
        write_distinctions,
    )
    from segproof_harness.histories.traces import TraceError, read_trace
    from segproof_harness.releases.pinned import release_named
    from segproof_harness.releases.process import OracleError

    known = list(steps())
    names = {step.name for step in known}
    strangers = set(behaviours or ()) - names
    if strangers:
        refuse(f"no behaviour of older releases: {', '.join(sorted(strangers))}")
    wanted = [step for step in known if not behaviours or step.name in behaviours]
    asked = dict.fromkeys(name for step in wanted for name in (step.older.name, step.newer.name))
    refuse_unready(release_named(name) for name in asked)
    try:
        paths = sorted(try_first.glob("*.jsonl")) if try_first is not None else []
        known_traces = [read_trace(path) for path in paths if path.name != RECORD]
        out.mkdir(parents=True, exist_ok=True)
        record = out / RECORD
        rows = {row.behaviour: row for row in read_distinctions(record) if row.behaviour in names}
        with progress("behaviours", unit="behaviours") as show:
            for number, step in enumerate(wanted):
                show(number, len(wanted))
                found, trace = distinguish(step, seeds, known=known_traces)
                rows[step.name] = found
                if trace is not None:
                    trace.write(out / step.file_name)
                write_distinctions(record, list(rows.values()))
                _show(found)
    except (OracleError, OSError, TraceError) as error:
        refuse(str(error))
    done = [rows[step.name] for step in wanted]
    shown = sum(bool(row.confirmed) and not row.refuted for row in done)
    summarise(f"{shown} of {len(done)} behaviours shown and confirmed by the real classes")
    if any(row.refuted for row in done):
        raise typer.Exit(EXIT_FINDINGS)


def _show(found: "Distinction") -> None:
    if found.structure is None:
        verdict = f"not shown by {found.seeds_tried} histories"
    else:
        verdict = f"{found.structure}: {found.expected}, otherwise {found.otherwise}"
    real = f"; confirmed by {', '.join(found.confirmed)}" if found.confirmed else ""
    against = f"; REFUTED by {', '.join(found.refuted)}" if found.refuted else ""
    write_line(f"{found.behaviour} ({found.older} beside {found.newer}): {verdict}{real}{against}")
