# SPDX-License-Identifier: Apache-2.0
"""The generated pages of the documentation say what the code says now."""

from pathlib import Path
from types import ModuleType

import pytest

from segproof_tests.contracts import load

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """Return docs/generate.py as a module."""
    return load(DOCS / "generate.py", "segproof_docs_generate")


def test_pages_are_current(generate: ModuleType) -> None:
    """If not, run `python docs/generate.py` and commit what it writes."""
    pages = generate.generated_pages()
    assert "results/traceability.md" in pages
    assert [] == generate.stale_pages(pages)


def test_a_stale_page_is_noticed(generate: ModuleType) -> None:
    """A page with other text, and one that is missing."""
    pages = {"index.md": "something else", "no-such-page.md": ""}
    assert ["index.md", "no-such-page.md"] == generate.stale_pages(pages)
