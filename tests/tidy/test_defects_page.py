# SPDX-License-Identifier: Apache-2.0
"""The files and tests that the rows of docs/results/defects.md name are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "defects.md"


def test_what_a_row_names_is_there() -> None:
    """Each path leads to a file; each test is in one of the files that its row names."""
    missing = []
    for number, row in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        texts = []
        for name in re.findall(r"`([^`]+)`", row):
            if name.startswith(("tests/", "docs/")):
                found = list(ROOT.glob(f"{name}*"))
                texts += [one.read_text(encoding="utf-8") for one in found if one.suffix == ".py"]
                missing += [] if found else [f"line {number}: {name}"]
            elif re.fullmatch(r"test_\w+", name) and texts:
                is_there = any(f"def {name}(" in text for text in texts)
                missing += [] if is_there else [f"line {number}: {name}"]
    assert missing == []
