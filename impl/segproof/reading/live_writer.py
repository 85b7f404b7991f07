# SPDX-License-Identifier: Apache-2.0
"""Reading beside a writer: whether files were changed a moment ago, and asking again if so."""

from collections.abc import Callable, Iterable
from time import sleep, time_ns
from typing import TypeVar

from segproof.errors import SegproofError
from segproof.files import Files, FileStatus

Answer = TypeVar("Answer")
RECENT_NS = 1_000_000_000
PAUSES_SECONDS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Between tries. Together longer than a busy machine lets a writer wait in the middle of a step."""

STEP_PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8)
"""The pauses, one after the other, for a broker that may be in the middle of a step."""


def changed_recently(paths: Iterable[str], files: Files) -> bool:
    """Return whether one of the paths was changed within the last second, or is gone."""
    for path in paths:
        try:
            status = files.status(path)
        except OSError:
            continue
        if status is None or _is_recent(status):
            return True
    return False


def has_rested(status: FileStatus) -> bool:
    """Return whether a path is known to have stayed as it is for the last second."""
    return status.modified_ns > 0 and not _is_recent(status)


def _is_recent(status: FileStatus) -> bool:
    return abs(time_ns() - status.modified_ns) < RECENT_NS


def pause(seconds: float) -> None:
    """Let the writer go on for so long."""
    sleep(seconds)


def until_steady(ask: Callable[[], Answer], may_change: Callable[[], bool]) -> Answer:
    """Return what `ask` answers; where it fails and `may_change` says so, ask a few times more.

    Raises: what the last try raised.
    """
    for seconds in PAUSES_SECONDS:
        try:
            return ask()
        except (SegproofError, FileNotFoundError):
            if not may_change():
                raise
        pause(seconds)
    return ask()


def wait_for_a_step(paths: Iterable[str], files: Files, pause_seconds: float) -> bool:
    """Pause if one of the paths was changed a moment ago; return whether it was."""
    is_recent = changed_recently(paths, files)
    if is_recent:
        pause(pause_seconds)
    return is_recent
