# SPDX-License-Identifier: Apache-2.0
"""Violations that are known: exploring counts them apart, and goes on behind them."""

from collections.abc import Callable
from typing import NamedTuple

from segproof_harness.crashes.worlds import Fault

__all__ = ["KNOWN", "Known", "Seen", "known_number"]


class Seen(NamedTuple):
    """A violation, with all that can tell which it is."""

    fault: Fault
    has_names_in_order: bool
    """Whether the names that the crash left are those of one moment; see `has_names_in_order`."""
    has_lost_pages: bool = False
    """Whether a sync failed before, and its file was opened again on the same system."""


class Known(NamedTuple):
    """One known violation."""

    number: int
    meaning: str
    applies: Callable[[Seen], bool]


KNOWN: tuple[Known, ...] = (
    Known(
        8,
        "names in no order: a removal without an older one, an index without its log",
        lambda seen: not seen.has_names_in_order and seen.fault.kind in ("answer", "lost", "hole"),
    ),
    Known(
        9,
        "a log that a failed sync took offline, and that is opened again before the system is"
        " started again: it reads what the sync lost, and no later sync writes that",
        lambda seen: seen.has_lost_pages and seen.fault.kind in ("answer", "lost", "hole"),
    ),
)
"""The first that applies names a violation."""


def known_number(seen: Seen) -> int | None:
    """Return the number of the known violation, or None for a new one."""
    return next((known.number for known in KNOWN if known.applies(seen)), None)
