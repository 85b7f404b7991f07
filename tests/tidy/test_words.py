# SPDX-License-Identifier: Apache-2.0
"""Plain words in pages and code: docs/explanation/style.md says which words to leave out."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(
    r"\bwhoever\b|(?<!\S)anew\b(?!-)|\bthere (?:is|are) none\b|\bof which\b", re.I
)
STYLE = ROOT / "docs" / "explanation" / "style.md"
"""The page that shows these words."""
PAGES = sorted(
    {ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")}
    | {*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "generators").glob("*.py")} - {STYLE}
)
OF_DOCSTRINGS = (
    "api",
    "laws",
    "methods",
    "profiles.md",
    "releases.md",
    "releases-matrix.md",
    "findings.md",
    "contracts.md",
)
"""Pages of docs/reference that quote docstrings: those count as code."""
CODE_MAX = {
    "model": 63,
    "impl": 13,
    "harness": 40,
    "spark_checks": 3,
    "tests": 80,
    "benchmarks": 0,
}
"""The words that the docstrings of each folder still have. These numbers only fall."""


def words_of(paths: list[Path]) -> list[str]:
    """Return each word to leave out, with its file and line."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for found in LEFT_OUT.finditer(line)
    ]


def test_pages_use_plain_words() -> None:
    """A page has none of the words, unless it quotes a docstring."""
    quoting = {ROOT / "docs" / "reference" / name for name in OF_DOCSTRINGS}
    pages = [
        path for path in PAGES if "_build" not in path.parts and not quoting & {path, *path.parents}
    ]
    assert len(pages) > 30
    assert [] == words_of(pages)


@pytest.mark.parametrize("folder", CODE_MAX)
def test_code_gets_no_more_of_them(folder: str) -> None:
    """The words that are left in docstrings, comments and messages do not grow in number."""
    found = words_of(sorted({*(ROOT / folder).rglob("*.py")} - {Path(__file__).resolve()}))
    assert len(found) <= CODE_MAX[folder], found


def test_words_are_seen() -> None:
    """Else the tests above see nothing."""
    line = "Whoever makes it anew, where there is none, of which a test named made-anew tells"
    assert ["Whoever", "anew", "there is none", "of which"] == LEFT_OUT.findall(line)
