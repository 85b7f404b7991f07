# SPDX-License-Identifier: Apache-2.0
"""README.md leads to pages that exist, and each of its figures stands on the page that it names."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)]+)\)")
FIGURE = re.compile(r"\d[\d. ]*\d|\d")


def figures_of(table: str) -> list[tuple[str, str]]:
    """Return each figure of a table's second column with the page that its row links."""
    rows = [line.split("|") for line in table.splitlines() if re.match(r"\|.*\]\(", line)]
    return [(figure, LINK.findall(row[3])[0]) for row in rows for figure in FIGURE.findall(row[2])]


def test_links_lead_to_files() -> None:
    """A part of a page is a heading of it."""
    links = LINK.findall(TEXT)
    assert len(links) > 10
    for link in links:
        name, _, part = link.partition("#")
        page = (ROOT / name).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
        slugs = {re.sub(r"[^\w-]", "", one.lower().replace(" ", "-")) for one in headings}
        assert not part or part in slugs, link


def test_figures_are_those_of_the_pages() -> None:
    """A page that is written again takes the figure here with it, or this fails."""
    figures = figures_of(TEXT.partition("## Figures")[2])
    assert len(figures) > 5
    wrong = [one for one in figures if one[0] not in (ROOT / one[1]).read_text(encoding="utf-8")]
    assert [] == wrong


def test_figures_are_read() -> None:
    """Numbers with blanks and points are one figure."""
    row = "| what | 1 000 067 of 3.25 x | [page](a.md) |\n"
    assert [("1 000 067", "a.md"), ("3.25", "a.md")] == figures_of(row)
