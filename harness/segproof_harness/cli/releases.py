# SPDX-License-Identifier: Apache-2.0
"""Which real releases a verb is about: the argument and its check, declared once.

Used by: the verbs below `oracle`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import refuse

if TYPE_CHECKING:
    from segproof_harness.oracle.releases import Release

ReleasesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RELEASE]...", help="Such as kafka-4.3.1. Default: all."),
]


def chosen(names: Sequence[str] | None, known: "Mapping[str, Release]") -> "list[Release]":
    """Return the known releases of these names, each once, or all; refuse an unknown name."""
    for name in names or ():
        if name not in known:
            refuse(f"no release {name!r}; known: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names or known)]
