# SPDX-License-Identifier: Apache-2.0
"""Where a job writes its results, and that all of them can be read there."""

from collections.abc import Mapping
from pathlib import Path

__all__ = ["ResultsLostError", "check_all_read", "place_of"]


class ResultsLostError(Exception):
    """The results that can be read are not all that were written."""


def place_of(out: str) -> str:
    """Return the URL under which Hadoop finds the place that a user named."""
    # Hadoop takes the path behind file:// as it is, spaces included.
    return out if "://" in out else f"file://{Path(out).absolute()}"


def check_all_read(
    out: str, what: str, found: Mapping[str, int], wanted: Mapping[str, int]
) -> None:
    """Raise ResultsLostError unless the sums of what can be read are those of what was written."""
    if dict(found) != dict(wanted):
        told = ", ".join(f"{name} {found.get(name, 0)} of {many}" for name, many in wanted.items())
        raise ResultsLostError(
            f"{out}: not all {what} can be read again ({told}): "
            "the driver and every worker must see the same place under this name"
        )
