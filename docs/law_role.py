# SPDX-License-Identifier: Apache-2.0
"""A role `law` that links the id of a law to its entry, and the same for ids in docstrings.

In a page: {law}`OFFIDX-3`. A law that no page states is an unresolved reference, which fails the
build.
"""

import re
from typing import Any

from docutils import nodes
from law_links import is_known
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

LAW_ID = re.compile(r"(?<![\w`-])([A-Z]{3,8}-[0-9]+)(?![\w`-])")

MODULE_NOTE = re.compile(r"(Mirrors|Upstream|Layout|Laws|Deviates|Not covered)\b")
"""Where the part of a module's docstring begins that speaks to who changes the module."""


class LawRole(SphinxRole):
    """The reference to the entry of one law."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a reference that Sphinx resolves as one to a label."""
        reference = addnodes.pending_xref(
            "",
            nodes.inline(self.rawtext, self.text),
            refdomain="std",
            reftype="ref",
            refexplicit=True,
            refwarn=True,
            reftarget=f"law-{self.text.lower()}",
            refdoc=self.env.docname,
        )
        return [reference], []


def link_laws(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Turn the ids of laws in a docstring into references; of a module's, drop what is for us."""

    def linked(match: re.Match[str]) -> str:
        return f":law:`{match[1]}`" if is_known(match[1]) else match[1]

    if what == "module":
        notes = [place for place, line in enumerate(lines) if MODULE_NOTE.match(line)]
        del lines[min(notes, default=len(lines)) :]
    lines[:] = [LAW_ID.sub(linked, line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role and the treatment of docstrings."""
    app.add_role("law", LawRole())
    app.connect("autodoc-process-docstring", link_laws)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
