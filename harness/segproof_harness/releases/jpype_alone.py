# SPDX-License-Identifier: Apache-2.0
"""JPype, imported without numpy: a process that has none yet starts a fifth sooner.

JPype takes numpy along where it is installed, for arrays of numbers, which no question and no
answer has here. A later import of numpy gets it.
"""

import sys

if "numpy" in sys.modules:
    import jpype
else:
    sys.modules["numpy"] = None  # type: ignore[assignment]  # so an import is told it is missing
    try:
        import jpype
    finally:
        del sys.modules["numpy"]

__all__ = ["jpype"]
