# SPDX-License-Identifier: Apache-2.0
"""The register of modes: the measurements of our process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Pass = Callable[[], Callable[[], int]]
"""Does the work; the checksum of its result is not timed."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Passes that need a fresh object each time, such as an open file."""

    prepare: Callable[[], Pass]
    """Makes the object, which is not timed, and returns the one pass that uses it."""


Mode = TypeVar("Mode", Pass, Prepared)
MODES: dict[str, Callable[..., Pass | Prepared]] = {}


def mode(function: Callable[..., Mode]) -> Callable[..., Mode]:
    """Register a mode under its function's name, with dashes."""
    MODES[function.__name__.replace("_", "-")] = function
    return function


def next_pass(work: Pass | Prepared) -> Pass:
    """Return a pass that can be made now."""
    return work.prepare() if isinstance(work, Prepared) else work
