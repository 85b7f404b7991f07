# SPDX-License-Identifier: Apache-2.0
"""What a run of lookups found, and how much it compared."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from segproof_spark.lookups.units import UnitResult

__all__ = ["FINDINGS_SHOWN", "Summary", "Total", "summary_of"]

FINDINGS_SHOWN = 100


@dataclass(slots=True)
class Total:
    """The units of one structure together."""

    structure: str
    units: int = 0
    lookups: int = 0
    """Answers of bulk lookups compared with the definition."""
    by_model: int = 0
    """Targets that the model was asked too."""
    by_single: int = 0
    """Targets that the single lookup was asked too."""
    differing: int = 0
    seconds: float = 0.0
    """Of all processes together."""
    worker_peak_bytes: int = 0
    """The largest process."""


@dataclass(slots=True)
class Summary:
    """What a run found."""

    totals: list[Total] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    """The first of them, at most FINDINGS_SHOWN."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Source, and what of it was left out and why: the first, as many as findings."""
    left_out: int = 0
    """How many sources have notes."""

    @property
    def lookups(self) -> int:
        """Answers compared."""
        return sum(total.lookups for total in self.totals)

    @property
    def differing(self) -> int:
        """Answers that differ, and what could not be asked."""
        return sum(total.differing for total in self.totals)


def summary_of(results: Iterable[UnitResult]) -> Summary:
    """Add up results, in the order in which structures come."""
    totals: dict[str, Total] = {}
    summary = Summary()
    for result in results:
        comparison = result.comparison
        structure = comparison.structure
        total = totals.setdefault(structure, Total(structure))
        total.units += 1
        total.lookups += comparison.lookups
        total.by_model += comparison.by_model
        total.by_single += comparison.by_single
        total.differing += comparison.differing
        total.seconds += result.seconds
        total.worker_peak_bytes = max(total.worker_peak_bytes, result.worker_peak_bytes)
        summary.findings += [finding.to_json() for finding in comparison.findings]
        del summary.findings[FINDINGS_SHOWN:]
        if comparison.notes:
            summary.left_out += 1
            summary.notes.append((result.unit.source, "; ".join(comparison.notes)))
            del summary.notes[FINDINGS_SHOWN:]
    summary.totals = list(totals.values())
    return summary
