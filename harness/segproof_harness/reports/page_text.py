# SPDX-License-Identifier: Apache-2.0
"""Text as HTML: every text that comes from a file or a path is escaped here."""

import re
from collections.abc import Mapping
from html import escape

from segproof_harness.reports.text import printable

TEXT_MAX = 2_000
"""A longer text is cut; a command is not."""
_CODE = re.compile(r"`([^`]*)`")


def text_of(value: object) -> str:
    """Return a text for the page: escaped, on one line, with `code` as code; empty for None."""
    if value is None:
        return ""
    words = printable(str(value))
    words = words if len(words) <= TEXT_MAX else f"{words[:TEXT_MAX]} ..."
    return _CODE.sub(r"<code>\1</code>", escape(words))


def code_of(path: str) -> str:
    """Return a path as code."""
    words = printable(path)
    return f"<code>{escape(words if len(words) <= TEXT_MAX else words[:TEXT_MAX] + ' ...')}</code>"


def command_of(command: str) -> str:
    """Return a command to paste."""
    return f'<pre class="command">{escape(printable(command))}</pre>\n'


def badge_of(words: str, kind: str) -> str:
    """Return a verdict or a severity in a frame; `kind` is its value, which the style knows."""
    return f'<span class="badge {kind}">{words}</span>'


def list_of(rows: Mapping[str, str]) -> str:
    """Return names with their values; values are HTML, and an empty one is left out."""
    told = "".join(f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in rows.items() if value)
    return f"<dl>\n{told}</dl>\n"
