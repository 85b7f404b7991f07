# SPDX-License-Identifier: Apache-2.0
"""Whether a release can be asked on this machine, and if not, why and what to do about it.

Needed are Java, JPype and the pinned jars of the release. Nothing is started here but `java
-version`; `segproof oracle check` starts each release.
"""

import os
from dataclasses import dataclass
from functools import cache
from importlib import util

from segproof_harness.releases.jars import problem_of
from segproof_harness.releases.java_version import REMEDY, java_problem, java_version
from segproof_harness.releases.pinned import Release

READY = "ready"


@dataclass(frozen=True, slots=True)
class Readiness:
    """What `segproof oracle list` says of a release."""

    state: str
    """`ready`, `not run: REASON` or `not fetched: REASON`."""
    remedy: str | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it can be asked."""
        return self.state == READY

    @property
    def why(self) -> str:
        """Why it can't, and what to do, to be put behind `oracle: not run: `."""
        reason = self.state.removeprefix("not run: ")
        return f"{reason}; {self.remedy}" if self.remedy else reason


def readiness(release: Release) -> Readiness:
    """Return whether a release can be asked; jars are told by name and size."""
    machine = readiness_of_machine()
    if not machine.is_ready:
        return machine
    problem = problem_of(release)
    if problem is not None:
        return Readiness(f"not fetched: {problem}", f"run: `segproof oracle fetch {release.name}`")
    return machine


def readiness_of_machine() -> Readiness:
    """Return whether any release can be asked, jars aside."""
    problem = _java_problem(os.environ.get("JAVA_HOME"), os.environ.get("PATH"))
    if problem is not None:
        return Readiness(f"not run: {problem}", REMEDY)
    if util.find_spec("jpype") is None:
        return Readiness("not run: JPype1 is not installed", "`pip install 'segproof[oracle]'`")
    return Readiness(READY)


@cache
def _java_problem(home: str | None, path: str | None) -> str | None:
    """Return what is wrong with the Java that these two variables name; Java is asked once."""
    return java_problem(java_version())
