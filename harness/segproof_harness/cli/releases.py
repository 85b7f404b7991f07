# SPDX-License-Identifier: Apache-2.0
"""Which real releases a verb is about: the argument and its checks, declared once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof.nearest_names import no_such
from segproof_harness.cli import candidates
from segproof_harness.cli.common import refuse

if TYPE_CHECKING:
    from segproof_harness.releases.pinned import Release

ReleasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RELEASE",
        autocompletion=candidates.real_releases,
        help="Such as kafka-4.4.0. Default: all.",
    ),
]
NAMED_MAX = 4
"""So many releases are named in a command; more do not fit a line."""


def chosen(names: Sequence[str] | None, known: "Mapping[str, Release]") -> "list[Release]":
    """Return the known releases of these names, each once, or all; refuse an unknown name."""
    for name in names or ():
        if name not in known:
            refuse(no_such("release", name, known))
    return [known[name] for name in dict.fromkeys(names or known)]


def refuse_unready(releases: "Iterable[Release]") -> None:
    """Refuse where releases can't be asked here; say why, and what to do."""
    from segproof_harness.releases.readiness import readiness, readiness_of_machine

    machine = readiness_of_machine()
    if not machine.is_ready:
        refuse(f"oracle: not run: {machine.why}")
    lacking = [release.name for release in releases if not readiness(release).is_ready]
    if lacking:
        names = lacking if len(lacking) <= NAMED_MAX else []  # it fetches what is lacking
        refuse(
            f"oracle: not run: {plural(len(lacking), 'release', 'is', 'are')} not fetched; run: "
            f"`{' '.join(['segproof oracle fetch', *names])}`"
        )
