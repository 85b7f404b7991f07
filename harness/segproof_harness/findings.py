# SPDX-License-Identifier: Apache-2.0
"""One discrepancy or broken law, in the fields that every output of segproof has.

Used by: compare, replay, reports, Spark.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """A discrepancy between subjects, or a broken law."""

    law: str
    """Id of the law that is broken, or that speaks of the operation that diverged."""
    severity: str
    """`error`, `warning` or `note`."""
    structure: str
    path: str | None
    """File in the subject's directory, where one differs."""
    position: int | None
    """First differing byte of that file, counted from 0."""
    expected: Any
    actual: Any
    message: str
    hint: str
    reproduce: str
    """One command line that shows the finding again."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)
