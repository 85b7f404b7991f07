# SPDX-License-Identifier: Apache-2.0
"""Which histories are run, and who runs them: options and their checks, declared once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from segproof.nearest_names import no_such
from segproof_harness.cli import candidates
from segproof_harness.cli.common import refuse

if TYPE_CHECKING:
    from segproof_harness.histories.workloads import Weights

ALL = "all"
SUBJECTS = "model,impl"
LENGTH = 50

StructureOption = Annotated[
    str,
    typer.Option(
        "--structure",
        metavar="NAME",
        autocompletion=candidates.structures,
        help="Structure to draw histories of, such as offset-index, or all.",
    ),
]
DrawingProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="NAME",
        autocompletion=candidates.profiles,
        help="The model's profile while drawing.",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The first seed.")]
LengthOption = Annotated[
    int, typer.Option("--length", metavar="N", min=1, max=100_000, help="Operations in a history.")
]
CountOption = Annotated[
    int,
    typer.Option("--count", metavar="N", min=1, help="Histories of each structure, one per seed."),
]
SubjectsOption = Annotated[
    str,
    typer.Option(
        "--subjects",
        metavar="NAMES",
        help="Subjects that run them, separated by commas: model, model:PROFILE, impl, "
        "module:Class, or a real release such as kafka-4.4.0; segproof oracle list shows "
        "which can run here.",
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="NAME=N,...",
        help="How often operations are drawn, such as append=10,lookup=1; 'others' stands for all "
        "that are not named. Without it those keep their usual weights.",
    ),
]


class Counted(Protocol):
    """How much was compared."""

    histories: int
    operations: int
    answers_compared: int
    bytes_compared: int


def subjects_of(subjects: str) -> list[str]:
    """Return the names in `--subjects`; none at all is refused."""
    names = [name.strip() for name in subjects.split(",") if name.strip()]
    if not names:
        refuse("--subjects names nobody")
    return names


def known_structure(structure: str) -> str:
    """Return the id of a structure; refuse one that nobody knows."""
    from segproof_harness.structures.structure import STRUCTURE_IDS

    if structure not in STRUCTURE_IDS:
        refuse(no_such("structure", structure, [*STRUCTURE_IDS, ALL]))
    return structure


def structures_of(structure: str, profile: str, subjects: list[str]) -> tuple[str, ...]:
    """Return the ids of the structures; refuse what no history can be drawn or run with.

    `all` with a release means all structures of its system.
    """
    from segproof_harness.histories.replay import comparison
    from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
    from segproof_model.releases import RELEASES

    wanted: tuple[str, ...] = () if structure == ALL else (known_structure(structure),)
    if profile not in RELEASES:
        refuse(no_such("profile", profile, RELEASES))
    if structure == ALL:
        wanted = tuple(
            name for name in STRUCTURE_IDS if profile in structure_named(name).profile_names
        )
    for name in wanted:
        try:
            comparison(name, profile, subjects)
        except ValueError as error:
            refuse(str(error))
    return wanted


def weights_of(weights: str | None, structures: Sequence[str]) -> "Weights | None":
    """Return what `--weights` says; refuse what no structure has, or what leaves one nothing."""
    from segproof_harness.histories.workloads import check_weights, weights_for
    from segproof_harness.structures.structure import structure_named

    if weights is None:
        return None
    given: dict[str, int] = {}
    for item in weights.split(","):
        name, equals, number = (part.strip() for part in item.partition("="))
        if not (name and equals and number.isascii() and number.isdigit()) or name in given:
            refuse(f"--weights: {item.strip()!r} is no NAME=NUMBER, or comes twice")
        given[name] = int(number)
    described = [structure_named(name) for name in structures]
    strangers = set(given).difference(*(weights_for(one, given) for one in described))
    try:
        for one in described:
            check_weights(one, given if strangers else weights_for(one, given))
    except ValueError as error:
        refuse(f"--weights: {error}")
    return given


def compared(counted: Counted) -> str:
    """Return the figures of a run in words."""
    if not counted.answers_compared:
        return (
            f"{counted.histories} histories, {counted.operations} operations, held against the laws"
            " alone: with one subject no answer was compared"
        )
    return (
        f"{counted.histories} histories, {counted.operations} operations, "
        f"{counted.answers_compared} answers and {counted.bytes_compared} bytes compared"
    )
