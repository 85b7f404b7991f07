# SPDX-License-Identifier: Apache-2.0
"""docs/results/proofs.md has each kernel, links its claim, and says why a mutant goes unseen."""

import re
from pathlib import Path

from segproof_harness.claims.every_claim import CLAIMS, NOT_PROVED
from segproof_tests.proofs.gaps import GAPS, UNSEEN

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "results" / "proofs.md").read_text(encoding="utf-8")


def test_the_table_has_each_kernel_and_no_other() -> None:
    """If not, run `python -m segproof_tests.proofs.results`."""
    rows = re.findall(r"^\| \[`(\S+)`\]\(\.\./reference/proofs\.md#(\S+)\) \|", PAGE, re.MULTILINE)
    assert sorted(CLAIMS) == sorted(name for name, _ in rows)
    assert [CLAIMS[name].anchor for name, _ in rows] == [anchor for _, anchor in rows]
    assert all(f"Not proved is `{name}`: " in PAGE for name in NOT_PROVED)
    assert f"\n{len(CLAIMS)} of {len(CLAIMS) + len(NOT_PROVED)} kernels are proved, " in PAGE


def test_each_reason_is_on_the_page() -> None:
    """What no condition sees is listed with a reason, and no reason is left of what is seen now."""
    for title, reasons in (("Gaps", GAPS), ("Not seen", UNSEEN)):
        _, _, section = PAGE.partition(f"## {title}\n")
        listed = re.findall(r"^`([\w:]+)`(?:: (.*))?$", section.partition("\n## ")[0], re.MULTILINE)
        assert dict(listed) == reasons
