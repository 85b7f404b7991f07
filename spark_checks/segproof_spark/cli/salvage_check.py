# SPDX-License-Identifier: Apache-2.0
"""The verb `spark salvage-check`: drawn damage, saved, and judged by what was there before."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof.counts import plural
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    progress,
    refuse,
    summarise,
    write_row,
)
from segproof_harness.cli.histories import ALL
from segproof_spark.cli.common import Master, Remote, check_new, running
from segproof_spark.session import NO_RETRIES

if TYPE_CHECKING:
    from segproof_spark.salvage_check import Summary, Task, Total

SEEDS = re.compile(r"([0-9]{1,18})(?:\.\.([0-9]{1,18}))?", re.ASCII)

SeedsOption = Annotated[
    str,
    typer.Option(
        "--seeds",
        metavar="A..B",
        help="Draws to judge, both ends included; one number is one draw.",
    ),
]
SystemOption = Annotated[
    str, typer.Option("--system", metavar="NAME", help="kafka, rocketmq or all.")
]
SalvagerOption = Annotated[
    str,
    typer.Option(
        "--salvager",
        metavar="MODULE:FUNCTION",
        help="A function to judge instead of segproof's salvage: of the damaged directory and a new"
        " one; see segproof_harness.salvage_draws.verdict.",
    ),
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="In this process, without Spark or Java.")
]
OutOption = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Keep a row for each draw as Parquet there."),
]


def command(
    seeds: SeedsOption = "0..999",
    system: SystemOption = ALL,
    salvager: SalvagerOption = "",
    local: LocalOption = False,
    out: OutOption = None,
    master: Master = "local[*]",
    remote: Remote = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Damage drawn partitions and stores, save them, and judge what was saved.

    A seed draws sound files, and damage as disks make it. The judge knows what was there before. It
    shares no code with segproof. Stdout has the first draws with a fault: something made up, at a
    wrong offset, twice, in no file, or counted wrong. Stderr has the sums, and the smallest seeds
    of each fault. A seed that is judged again gives the same verdict.

    \b
    Examples:
      segproof spark salvage-check --seeds 0..19999 --system kafka
      segproof spark salvage-check --seeds 17 --system rocketmq --local
    """
    from segproof_spark.salvage_check import SYSTEMS, named_salvager, tasks_of

    if local and (out is not None or remote is not None):
        refuse("--local runs without Spark: it takes neither --out nor --remote")
    if system not in (*SYSTEMS, ALL):
        refuse(f"no system {system!r}; known: {', '.join(SYSTEMS)}, {ALL}")
    if salvager and system == ALL:
        refuse("--salvager saves one system: say which with --system")
    try:
        if salvager:
            named_salvager(salvager)
    except ValueError as error:
        refuse(f"--salvager: {error}")
    check_new(out)
    wanted = SYSTEMS if system == ALL else (system,)
    tasks = tasks_of(wanted, _seeds_of(seeds), salvager)
    started = time.monotonic()
    summary = _here(tasks) if local else _on_spark(tasks, master, remote, out)
    _show(summary, salvager, time.monotonic() - started, output_format)
    if summary.faulty_draws:
        raise typer.Exit(EXIT_FINDINGS)


def _seeds_of(text: str) -> range:
    found = SEEDS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if last < first:
        refuse(f"--seeds {text!r}: write two numbers such as 0..999, the smaller one first, or one")
    return range(first, last + 1)


def _here(tasks: "Sequence[Task]") -> "Summary":
    from segproof_spark.salvage_check import summary_of

    done, count = 0, sum(len(task.seeds) for task in tasks)
    with progress("salvages", unit="draws") as show:

        def rows() -> Iterator[Mapping[str, Any]]:
            nonlocal done
            for task in tasks:
                for row in task.rows():
                    done += 1
                    show(done, count)
                    yield row

        return summary_of(rows())


def _on_spark(
    tasks: "Sequence[Task]", master: str, remote: str | None, out: str | None
) -> "Summary":
    from segproof_spark.salvage_check import check_on_spark

    # Nothing is tried twice: a salvage that fails once in a while is seen.
    settings = NO_RETRIES.by_name()
    with running(master, "salvages", remote=remote, settings=settings) as session:
        return check_on_spark(session, tasks, out=out)


def _show(summary: "Summary", salvager: str, seconds: float, output_format: Format) -> None:
    for row in summary.faulty:
        write_row(row, output_format)
    for system, total in summary.totals.items():
        for line in _lines_of(system, total, salvager):
            summarise(line)
    draws = sum(total.draws for total in summary.totals.values())
    faulty = summary.faulty_draws or "none"
    summarise(f"{plural(draws, 'draw')} judged in {seconds:.1f} s: {faulty} with a fault")


def _lines_of(system: str, total: "Total", salvager: str) -> Iterator[str]:
    """Yield the lines about one system: its sums, then each fault with its smallest seeds."""
    counted = (f"{name} {count}" for name, count in sorted(total.counts.items()))
    yield f"{system}: {plural(total.draws, 'draw')}: {', '.join(counted)}"
    if total.facts:
        facts = (f"{name} {count}" for name, count in total.facts.most_common())
        yield f"{system}: told apart by: {', '.join(facts)}"
    for fault, seeds in total.seeds.items():
        those = ", ".join(map(str, seeds))
        yield f"{system}: {fault}: in {plural(total.draws_with[fault], 'draw')}, of seeds {those}"
    if total.seeds:
        seed = min(seeds[0] for seeds in total.seeds.values())
        more = f" --salvager {salvager}" if salvager else ""
        again = f"segproof spark salvage-check --system {system} --seeds {seed}{more} --local"
        yield f"{system}: again: {again}"
    yield (
        f"{system}: {total.seconds:.1f} s of processes, largest {total.worker_peak_bytes >> 20} MiB"
    )
