# SPDX-License-Identifier: Apache-2.0
"""A second opinion on `verify`: the model's laws, one by one, wherever what they judge is there.

The verifier checks in one vectorised pass; here every law is its predicate of the model, as short
and as slow as that. Where the two part, one of them is wrong.

A law says by the names of its parameters what it judges; a judge offers inputs by these names.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from segproof.commands import quoted_path
from segproof.findings import Finding, Severity
from segproof.verification import VERIFIED_LAWS
from segproof_harness.laws.every_law import LAWS
from segproof_harness.laws.reading_laws import READING_LAWS

LIMIT_BYTES = 8 << 20
"""Larger directories and stores take the model too long."""
Inputs = Mapping[str, Any]
"""What laws judge, by the name that they have for it."""
ABSENT = object()
"""Offered in place of what is missing: no law is asked of it."""


class Judge:
    """What the model says of some files, law by law."""

    def __init__(self, *places: Sequence[Inputs]) -> None:
        """`places` of one kind, such as the segments of a directory, offer inputs of equal names;
        a law is asked of the first kind that offers all it judges."""
        self._places = places

    def judges(self, law_id: str) -> bool:
        """Return whether the inputs of a law are offered, be they there or not."""
        return bool(self._asked(law_id))

    def breaks(self, law_id: str) -> bool:
        """Return whether the files break a law."""
        asked = (each for each in self._asked(law_id) if ABSENT not in each.values())
        return not all(_predicate(law_id)(**each) for each in asked)

    def broken(self) -> list[str]:
        """Return the laws that the files break, of those that `verify` checks."""
        return [law_id for law_id in sorted(VERIFIED_LAWS) if self.breaks(law_id)]

    def _asked(self, law_id: str) -> list[dict[str, Any]]:
        names = signature(_predicate(law_id)).parameters.keys()
        offered = (kind for kind in self._places if kind and names <= kind[0].keys())
        return [{name: place[name] for name in names} for place in next(offered, ())]


def _predicate(law_id: str) -> Any:
    return READING_LAWS.get(law_id) or LAWS[law_id].predicate


def disagreements_of(judge: Judge, findings: Collection[Finding], path: Path) -> Iterator[Finding]:
    """Yield a finding for each law on which the findings of `verify` and the model part.

    A law that is reported as a defect must be broken; where no defect is reported, every law must
    hold, but for those of which a note speaks.
    """
    defects = {each.law for each in findings if each.is_defect}
    for law_id in sorted(defects):
        if judge.judges(law_id) and not judge.breaks(law_id):
            yield _disagreement(law_id, path, reported=True)
    if not defects:
        for law_id in judge.broken():
            if law_id not in {each.law for each in findings}:
                yield _disagreement(law_id, path, reported=False)


def _disagreement(law_id: str, directory: Path, *, reported: bool) -> Finding:
    says = "broken" if reported else "not broken"
    return Finding(
        law_id,
        Severity.ERROR,
        LAWS[law_id].structure,
        os.fspath(directory),
        None,
        "not broken" if reported else "broken",
        says,
        f"verify calls this law {says}, and the model's predicate says otherwise",
        "keep the files and report a defect of segproof",
        f"segproof verify {quoted_path(directory)} --deep --against model",
    )
