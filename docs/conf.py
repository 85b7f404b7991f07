# SPDX-License-Identifier: Apache-2.0
"""Configuration of the documentation: Sphinx, MyST, furo; nitpicky, warnings are errors."""

import doctest
import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))


def published_versions(changelog: str) -> list[str]:
    """Return the folders of the published site, the newest first: CONTRIBUTING.md, "A release"."""
    released = re.findall(r"^## (\S+) \(", changelog, re.MULTILINE)
    return ["latest", *released] if released else []


project = "segproof"
author = "The segproof authors"
project_copyright = author
release = version = importlib.metadata.version("segproof")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx_copybutton",
    "sphinx_design",
    "charts",
    "law_role",
    "navigation",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"segproof {release}"
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {
    "published": published_versions((DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8"))
}
html_show_sourcelink = False
# The search finds every name; the theme has no link to an index of them.
html_use_index = False
html_static_path = ["_static"]
html_css_files = ["segproof.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5fa5", "color-brand-content": "#0b5fa5"},
    "dark_css_variables": {"color-brand-primary": "#7cb8f2", "color-brand-content": "#7cb8f2"},
}
# The button copies commands, without their prompts and what they print.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# Quotation marks are set as print has them; two hyphens begin an option.
smartquotes_action = "q"
# A block is code only if it says of which language.
highlight_language = "text"

# `name` in a docstring is code.
default_role = "code"

nitpicky = True
# A build needs no network, so names of the standard library, numpy and pyarrow are not looked up.
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(collections|contextlib|datetime|enum|mmap|os|pathlib|typing|types|uuid)(\..*)?",
    ),
    (r"py:.*", r"(numpy|np|pa)(\..*)?"),
    (r"py:.*", r"(Callable|Iterable|Iterator|Mapping|NDArray|PathLike|Protocol|Sequence|Self|Any)"),
    (r"py:.*", r"segproof(_harness|_model)?(\.\w+)+\.(Entry|Index|Item|S|State)"),  # type variables
    # What `PartitionLog.open` hands to the constructor, which nobody else calls.
    (r"py:.*", r"segproof\.kafka\.broker\.(log_directory\.LogDirectory|log_loader\.LoadedLog)"),
    # What a reader keeps for lookups in a damaged log.
    (r"py:.*", r"segproof\.stretches\.kafka\.in_place\.LogFates"),
]

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["pyspark", "pandas", "pyarrow"]
# Examples in docstrings are run by tests/unit/test_docstrings.py, where their names are known.
doctest_test_doctest_blocks = ""
doctest_global_setup = "import segproof"
# An error's message is part of an example too; Sphinx by default looks at its class only.
doctest_default_flags = doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1


def name_array_like(app: Any, documented: Any, is_method: bool) -> None:
    """Let `ArrayLike` keep its name, which is else written out as the ten types it stands for."""
    hints = getattr(documented, "__annotations__", {})
    for name, hint in hints.items():
        if hint == ArrayLike:
            hints[name] = type("ArrayLike", (), {"__module__": "numpy.typing"})


def own_nodes(app: Any, doctree: Any) -> None:
    """Let each node belong to its page.

    Those of `eval-rst` belong to a document of its parser, which refers to the whole build. That
    would be stored with each such page, and read again.
    """
    for node in doctree.findall():
        node.document = doctree


def setup(app: Any) -> None:
    """Register what is above."""
    app.connect("autodoc-before-process-signature", name_array_like)
    app.connect("doctree-read", own_nodes)
