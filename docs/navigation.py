# SPDX-License-Identifier: Apache-2.0
"""The tree of pages in the sidebar, made from the titles of pages alone.

For each page the theme asks for the whole tree with titles only. Sphinx copies every heading of
every page for it, and then drops the headings: a third of the time of a build. So while the tree
is made, each page's table of contents is its title and the pages below it. The pages of a group,
such as the names of the API, are in the sidebar of this group alone.
"""

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def titles_alone(toc: nodes.Element) -> nodes.Element:
    """Return a table of contents without headings below the title; pages below it stay."""
    short: nodes.Element = toc.copy()
    for top_level in toc.children:
        assert isinstance(top_level, nodes.Element)
        if isinstance(top_level, addnodes.toctree):
            short += top_level.deepcopy()
            continue
        item = top_level.copy()
        item += top_level.children[0].deepcopy()
        if below := list(top_level.findall(addnodes.toctree)):
            item += nodes.bullet_list("", *(one.deepcopy() for one in below))
        short += item
    return short


def shorten(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let the tree of a page be made from titles alone."""
    if "toctree" not in context:
        return
    env, full = app.env, context["toctree"]
    if not hasattr(app, "titles_of_pages"):
        app.titles_of_pages = {name: titles_alone(toc) for name, toc in env.tocs.items()}

    def toctree(**options: Any) -> str:
        whole, env.tocs = env.tocs, app.titles_of_pages
        try:
            tree: str = full(**{**options, "collapse": True})
        finally:
            env.tocs = whole
        return tree

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, bool]:
    """Register it in front of the theme, which asks for the tree at priority 500."""
    app.connect("html-page-context", shorten, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
