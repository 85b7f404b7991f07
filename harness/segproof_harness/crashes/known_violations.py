# SPDX-License-Identifier: Apache-2.0
"""Violations that are known: exploring counts them apart, and goes on behind them."""

from collections.abc import Callable
from typing import NamedTuple

from segproof_harness.crashes.worlds import Fault, Operation
from segproof_harness.machine.crash_images import Image
from segproof_harness.machine.fault_model import ModeName

__all__ = ["KNOWN", "Known", "Seen", "known_number"]


class Seen(NamedTuple):
    """A violation, with all that can tell which it is."""

    fault: Fault
    mode: ModeName
    image: Image
    history: tuple[Operation, ...]


class Known(NamedTuple):
    """One known violation."""

    number: int
    meaning: str
    applies: Callable[[Seen], bool]


def _has_swap_of_zeros(seen: Seen) -> bool:
    return any(
        path.endswith(".log.swap") and content.size_bytes and not content.pages
        for path, content in seen.image.files.items()
    )


def _did(seen: Seen, *names: str) -> bool:
    return any(operation.name in names for operation in seen.history)


KNOWN: tuple[Known, ...] = (
    Known(
        4,
        "a roll names the new segment before the bytes of the old one are durable: a hole",
        lambda seen: seen.fault.kind == "hole" and seen.mode != "killed",
    ),
    Known(
        5,
        "a kill while an empty preallocated segment is rolled: the `.swap` of zeros is not read",
        _has_swap_of_zeros,
    ),
    Known(
        10,
        "a truncation below the checkpointed recovery point: entries of what was cut are believed",
        lambda seen: seen.fault.kind == "answer" and _did(seen, "truncate", "truncate_fully"),
    ),
    Known(
        8,
        "names in no order: a removal without an older one, an index without its log",
        lambda seen: seen.mode == "strict" and seen.fault.kind in ("answer", "lost", "hole"),
    ),
    Known(
        9,
        "a segment is rolled whose last time entry is not durable: lookups by time miss",
        lambda seen: seen.fault.kind == "answer" and "timestamp" in seen.fault.words,
    ),
)
"""The first that applies names a violation."""


def known_number(seen: Seen) -> int | None:
    """Return the number of the known violation, or None for a new one."""
    return next((known.number for known in KNOWN if known.applies(seen)), None)
