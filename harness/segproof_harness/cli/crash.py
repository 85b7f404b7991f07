# SPDX-License-Identifier: Apache-2.0
"""The verb `crash`: histories on a simulated machine that crashes behind each effect."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    progress,
    refuse,
    summarise,
    write_prose,
)

if TYPE_CHECKING:
    from segproof_harness.crashes.explore import Explored, Settings, Violation
    from segproof_harness.crashes.worlds import Operation, World

ALL = "all"
SECTORS = (64, 512, 4096)


WorldArgument = Annotated[
    str, typer.Argument(metavar="WORLD", help="What crashes, such as partition-log, or all.")
]
SeedsOption = Annotated[
    str, typer.Option("--seeds", metavar="A:B", help="The seeds from A up to B, without B.")
]
LengthOption = Annotated[
    int, typer.Option("--length", metavar="N", min=1, max=1000, help="Operations in a history.")
]
BoundOption = Annotated[
    int,
    typer.Option(
        "--bound",
        metavar="N",
        min=1,
        max=100_000,
        help="Images of each crash in each mode: all that there are up to it, else drawn ones.",
    ),
]
SectorOption = Annotated[
    int,
    typer.Option(
        "--sector",
        metavar="BYTES",
        help="What a device writes as a whole: 64, 512 or 4096. With 64, which no device has, "
        "small files have several sectors.",
    ),
]
SecondOption = Annotated[
    int,
    typer.Option(
        "--second", metavar="N", min=0, max=1000, help="Crashes in the recovery of each image."
    ),
]
ModesOption = Annotated[
    str,
    typer.Option("--modes", metavar="NAMES", help="What a crash may do: killed, ordered, strict."),
]
FaultsOption = Annotated[
    bool,
    typer.Option(
        "--faults",
        help="Let calls of files fail too: of each operation N in each way, with N of --bound.",
    ),
]
HistoryOption = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="TEXT",
        help="The operations to run with each seed, as a violation names them, instead of "
        "drawn ones.",
    ),
]
KeepOption = Annotated[
    Path | None,
    typer.Option("--keep", metavar="DIR", help="Where to save what each violation left."),
]


def command(
    world: WorldArgument = ALL,
    seeds: SeedsOption = "0:4",
    length: LengthOption = 12,
    bound: BoundOption = 24,
    sector: SectorOption = 64,
    second: SecondOption = 0,
    modes: ModesOption = "killed,ordered,strict",
    faults: FaultsOption = False,
    history: HistoryOption = None,
    keep: KeepOption = None,
) -> None:
    """Let histories crash behind each of their effects, and judge what is found.

    A history runs on files in memory that record each change and each sync. From this record, the
    directories are made that a killed process, or a loss of power, may leave. Each is loaded, and
    compared with what was acknowledged: nothing durable is lost, no offset is left out or given
    twice, and lookups answer as the records say. A history with a new violation is made as short as
    possible. Violations that are known are counted apart, and are no error.

    With --faults the calls of an operation fail in turn: once, from then on, behind half of a
    write, or because the device is full. Then the operation has done all or nothing, or what it
    changes is closed and says so; and a crash behind it, or behind what goes on, is judged too.

    \b
    Examples:
      segproof crash
      segproof crash partition-log --seeds 0:100 --second 1 --keep witnesses
      segproof crash partition-log --modes ordered --sector 512 --bound 200
      segproof crash partition-log --faults --bound 4
    """
    from segproof_harness.crashes.every_world import WORLDS, world_named
    from segproof_harness.crashes.explore import Explored
    from segproof_harness.crashes.worlds import operations_of

    if faults and second:
        refuse("--second: no recovery crashes with --faults")
    settings = _settings(modes, bound, sector, second)._replace(faults=faults)
    try:
        worlds = list(WORLDS) if world == ALL else [world]
        classes = {name: world_named(name) for name in worlds}
        given = None if history is None else operations_of(history)
        for name, made in classes.items():
            _check_operations(name, made, given)
    except ValueError as error:
        refuse(str(error))
    wanted = _seeds(seeds)
    started, total, done = time.monotonic(), Explored(), 0
    with progress("crash", unit="histories") as show:
        for name, made in classes.items():
            for seed in wanted:
                result = _explored(name, made, seed, length, given, settings, keep)
                total.add(result)
                done += 1
                show(done, len(wanted) * len(classes))
    _summarise(total, time.monotonic() - started)
    if total.new:
        raise typer.Exit(EXIT_FINDINGS)


def _settings(modes: str, bound: int, sector: int, second: int) -> "Settings":
    from segproof_harness.crashes.explore import Settings
    from segproof_harness.machine.fault_model import mode_named

    names = [name.strip() for name in modes.split(",") if name.strip()]
    if not names:
        refuse("--modes names none")
    if sector not in SECTORS:
        refuse(f"--sector: {sector} is not one of {', '.join(map(str, SECTORS))}")
    try:
        return Settings(tuple(map(mode_named, names)), bound, sector, second)
    except ValueError as error:
        refuse(f"--modes: {error}")


def _seeds(seeds: str) -> range:
    first, colon, end = seeds.partition(":")
    is_range = colon and first.isdecimal() and end.isdecimal() and seeds.isascii()
    if not is_range or int(first) >= int(end):
        refuse(f"--seeds: {seeds!r} is not A:B with A below B, such as 0:20")
    return range(int(first), int(end))


def _check_operations(name: str, world: "type[World]", history: "list[Operation] | None") -> None:
    """Return if a world has all operations of a history. Raises: ValueError."""
    for operation in history or ():
        if operation.name not in world.weights:
            known = ", ".join(world.weights)
            raise ValueError(f"{name} has no operation {operation.name}: one of {known}")


def _explored(
    name: str,
    world: "type[World]",
    seed: int,
    length: int,
    history: "list[Operation] | None",
    settings: "Settings",
    kept: Path | None,
) -> "Explored":
    """Explore the history of one seed, and tell of the first new violation of each kind."""
    from segproof_harness.crashes.explore import drawn_history, shrunk
    from segproof_harness.crashes.fault_points import explores

    operations = history or drawn_history(world.weights, seed, length)
    explore = explores(settings)
    result = explore(world, seed, operations, settings)
    first = {one.fault.kind: one for one in reversed(result.new)}
    for violation in first.values():
        shortest = violation if history else shrunk(world, violation, settings, explore)
        _tell(name, shortest, settings, kept)
    return result


def _tell(name: str, violation: "Violation", settings: "Settings", kept: Path | None) -> None:
    from segproof_harness.crashes.witnesses import described, keep

    for line in described(name, violation, settings):
        write_prose(line)
    if kept is not None:
        try:
            write_prose(f"  kept in {keep(kept, name, violation, settings)}")
        except OSError as error:
            refuse(f"--keep: {error.filename}: {error.strerror}")


def _summarise(total: "Explored", seconds: float) -> None:
    from segproof_harness.crashes.known_violations import KNOWN

    for known in KNOWN:
        count = sum(n for (number, _), n in total.counts.items() if number == known.number)
        if count:
            summarise(f"known violation {known.number}, {count} times: {known.meaning}")
    count = sum(n for (number, _), n in total.counts.items() if number is None)
    verdict = plural(count, "violation") if count else "no new violation"
    done = f"{total.points} calls that failed" if total.points else f"{total.cuts} crashes"
    summarise(
        f"{plural(total.histories, 'history')}, {done},"
        f" {total.images} images, {total.loads} of them different and loaded,"
        f" {total.second} crashes in recoveries in {seconds:.1f} s: {verdict}"
    )
