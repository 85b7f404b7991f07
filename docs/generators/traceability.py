# SPDX-License-Identifier: Apache-2.0
"""The page docs/results/traceability.md: which layer of checking looks at which law."""

from pathlib import Path

from segproof_tests.traceability import page


def pages() -> dict[str, str]:
    """Return the page by its path."""
    return {"results/traceability.md": page(Path(__file__).resolve().parents[2])}
