# SPDX-License-Identifier: Apache-2.0
"""Small damaged directories that make the implementation build a hint, one for each way to do so.

The page of the findings shows these hints, and a test follows those with a command or a step.
"""

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from segproof.errors import SegproofError
from segproof.findings import Finding
from segproof.hints import Hint
from segproof.verification import partition_places, verify
from segproof_tests.hint_places import constants, recorded

PARTITION, STORE = "data/t-0", "data/store"
"""Paths of what is damaged, below the working directory."""
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
}  # fmt: skip
"""How a file is packed, by the end of its name."""
Show = Callable[[], list[Finding]]


def verified(*paths: str, deep: bool = False) -> list[Finding]:
    """Return the findings of a call of `verify` with all the paths."""
    return [
        one
        for path in paths
        for one in verify(
            path, deep=deep, beside=partition_places(two for two in paths if two != path)
        )
    ]


def refused(call: Callable[[], object]) -> Callable[[], list[Finding]]:
    """Return what makes a call that is refused; no finding comes of it."""

    def show() -> list[Finding]:
        try:
            call()
        except SegproofError:
            return []
        raise AssertionError("nothing was refused")

    return show


@dataclass(frozen=True, slots=True)
class Situation:
    """One damaged directory, and the hint that it makes."""

    words: str
    """What is damaged."""
    place: str
    """Where the hint is built: the name of a place in `hint_places`, or of a constant there."""
    make: Callable[[Path], object]
    """Writes the files below a directory, which is the working directory afterwards."""
    law: str = ""
    """The law of the finding that has the hint; empty if an error has it."""
    paths: tuple[str, ...] = (PARTITION,)
    """What is verified, in one call."""
    deep: bool = False
    show: Show | None = None
    """What is done instead of verifying the paths."""
    step: Callable[[Path], object] | None = None
    """What a person does whose precondition holds, where the hint prints no command for it."""
    holds: tuple[str, ...] = ()
    """Paths whose messages the new directory has in the end."""

    def shown(self) -> list[Finding]:
        """Return the findings, in the working directory."""
        return verified(*self.paths, deep=self.deep) if self.show is None else self.show()


def built_by(situation: Situation, folder: Path) -> tuple[list[Hint], list[Finding]]:
    """Return the hints that are built at the place of a situation, and all findings.

    The directory is made in `folder`. For a constant it is the hint.
    """
    situation.make(folder)
    with chdir(folder), recorded() as found:
        findings = situation.shown()
    hints = [one.hint for one in found if one.place == situation.place]
    if situation.place in constants():
        hints = [constants()[situation.place]]
    return [*dict.fromkeys(hints)], findings


def finding_with(hint: Hint, law: str, findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that has a hint, which got its paths meanwhile; None without one."""
    begin = hint.partition("`")[0]
    return next((one for one in findings if one.law == law and one.hint.startswith(begin)), None)
