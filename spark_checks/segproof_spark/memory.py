# SPDX-License-Identifier: Apache-2.0
"""How much memory a worker has held."""

import resource
import sys

__all__ = ["peak_bytes"]


def peak_bytes() -> int:
    """Return the most memory that this process has held, in bytes."""
    # The system tells kilobytes, but bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
