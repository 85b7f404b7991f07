# SPDX-License-Identifier: Apache-2.0
"""The tables of fields in the pages of the formats, from `segproof.layouts`.

A page has a line `<!-- fields: ROOM.NAME -->`, and the table of that layout after an empty line.
"""

import re
from pathlib import Path

from law_links import law_link

from segproof.layouts import kafka, rocketmq
from segproof.layouts.table import Layout

ROOT = Path(__file__).resolve().parents[1]
PAGES = "reference/formats"
TABLE = re.compile(r"(<!-- fields: (kafka|rocketmq)\.(\w+) -->\n\n)(?:\|.*\n)*")


def table_of(layout: Layout) -> str:
    """Return the fields of a format as a table of Markdown."""
    rows = ["| byte | type | field | meaning |", "| --- | --- | --- | --- |"]
    for one in layout.fields:
        meaning = f"{one.meaning} ({law_link(one.law)})" if one.law else one.meaning
        rows.append(f"| {one.place} | {one.kind} | {one.name.replace('_', ' ')} | {meaning} |")
    return "\n".join(rows) + "\n"


def _with_table(found: re.Match[str]) -> str:
    room = kafka if found[2] == "kafka" else rocketmq
    return found[1] + table_of(getattr(room, found[3]))


def pages() -> dict[str, str]:
    """Return the pages that have such tables, each with them as they are now."""
    return {
        f"{PAGES}/{path.name}": TABLE.sub(_with_table, text)
        for path in sorted((ROOT / PAGES).glob("*.md"))
        if TABLE.search(text := path.read_text(encoding="utf-8"))
    }
