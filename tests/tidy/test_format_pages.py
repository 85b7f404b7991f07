# SPDX-License-Identifier: Apache-2.0
"""The pages of the formats name the laws that exist, and under `verify` those that it reports."""

import re
from pathlib import Path

import pytest

from segproof.verification import RULES
from segproof_harness.laws.every_law import LAWS, RETIRED

FORMATS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "formats"
LINK = re.compile(r"\{law\}`([^`]+)`")
STRUCTURES = (
    "offset_index",
    "time_index",
    "transaction_index",
    "record_batch",
    "record_file",
    "log_segment",
    "partition_log",
    "index_file",
    "index_service",
)
"""Pages of what `verify` reports findings about."""
PAGES = sorted(path.stem for path in FORMATS.glob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_laws_of_a_page(name: str) -> None:
    """Each linked law is stated."""
    linked = set(LINK.findall((FORMATS / f"{name}.md").read_text(encoding="utf-8")))
    assert linked
    assert set() == linked - LAWS.keys() - RETIRED.keys()


@pytest.mark.parametrize("name", STRUCTURES)
def test_laws_that_are_checked(name: str) -> None:
    """Each law under "What segproof checks" can be reported."""
    text = (FORMATS / f"{name}.md").read_text(encoding="utf-8")
    section = text.partition("## What segproof checks")[2].partition("\n## ")[0]
    reported = set(LINK.findall(section))
    assert reported
    assert set() == reported - RULES.keys()


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_reported_law_is_named(name: str) -> None:
    """What `verify` reports of a structure is on its page."""
    text = (FORMATS / f"{name}.md").read_text(encoding="utf-8")
    own = {law for law, rule in RULES.items() if rule.structure == name.replace("_", "-")}
    assert set() == own - set(LINK.findall(text))
