# SPDX-License-Identifier: Apache-2.0
"""docs/results/proofs.md has each kernel, links its claim, and gives a reason for each gap."""

import re
from pathlib import Path

from segproof_harness.claims.every_claim import CLAIMS, NOT_PROVED
from segproof_tests.proofs.gaps import GAPS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "results" / "proofs.md").read_text(encoding="utf-8")


def test_the_table_has_each_kernel_and_no_other() -> None:
    """If not, run `python -m segproof_tests.proofs.results`."""
    rows = re.findall(r"^\| \[`(\S+)`\]\(\.\./reference/proofs\.md#(\S+)\) \|", PAGE, re.MULTILINE)
    assert sorted(CLAIMS) == sorted(name for name, _ in rows)
    assert [CLAIMS[name].anchor for name, _ in rows] == [anchor for _, anchor in rows]
    assert all(f"Not proved is `{name}`: " in PAGE for name in NOT_PROVED)


def test_each_reason_is_on_the_page() -> None:
    """A gap is listed with its reason, and no reason is left of a gap that was closed."""
    listed = dict(re.findall(r"^`(\S+)`: (.*)$", PAGE, re.MULTILINE))
    assert listed == GAPS
