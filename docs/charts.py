# SPDX-License-Identifier: Apache-2.0
"""Bar charts above tables of results, made from the figures of these tables in each build.

Widths are shares of the page and colours are the theme's, so a chart fits a narrow page and a dark
one. A table or column that a page no longer has fails the build.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


class Chart(NamedTuple):
    """A chart above the first table of a section that has the columns."""

    section: str
    columns: tuple[str, ...]
    """How their heads begin: the labels, then what is drawn of each."""
    words: str
    """What a bar is."""


SIDES = ("compiled", "interpreted")
CHARTS = {
    "results/performance": (
        Chart("lookup_many", ("", "Kafka", *SIDES), "ns for a lookup, less is better"),
        Chart("verify of one segment", ("", "Kafka", *SIDES), "GB/s, more is better"),
        Chart("Whole processes", ("", "kafka-dump-log", *SIDES), "MB/s, more is better"),
    ),
    "results/spark": (
        Chart("A billion lookups", ("structure", "lookups"), "lookups compared"),
        Chart("Two hundred thousand histories", ("structure", "histories"), "histories compared"),
    ),
    "results/checks": (
        Chart("What it takes now", ("environment", "seconds"), "seconds, on two cores"),
    ),
    "results/size": (Chart("All packages", ("package", "before", "fates", "goal"), "code lines"),),
    "reference/releases": (
        Chart("Kafka", ("release", "behaviours"), "behaviours that the newest release lacks"),
        Chart("RocketMQ", ("release", "behaviours"), "behaviours that the newest release lacks"),
    ),
}
NUMBER = re.compile(r"\d[\d ]*(?:\.\d+)?")
LONGEST_PERCENT = 78
"""The longest bar; behind it is room for its figure."""
ROW, BAR, GAP = 20, 14, 8


class Row(NamedTuple):
    """A row of a table: its label, and a figure as it is written for each series."""

    label: str
    figures: tuple[str, ...]


def columns_of(heads: list[str], chart: Chart) -> list[int]:
    """Return the places of a chart's columns in a table; fewer if the table lacks one."""
    found = [
        next((at for at, head in enumerate(heads) if head.startswith(name)), None)
        for name in chart.columns
    ]
    return [at for at in found if at is not None]


def rows_of(lines: list[list[str]], places: list[int]) -> list[Row]:
    """Return the rows that have a figure in each column; the sum of all is left out."""
    rows = []
    for line in lines:
        figures = [NUMBER.search(line[at]) for at in places[1:]]
        if all(figures) and line[places[0]] != "all":
            texts = tuple(one[0].strip() for one in figures if one)
            rows.append(Row(line[places[0]], texts))
    return rows


def bars(rows: list[Row]) -> Iterator[str]:
    """Yield labels and bars from the top down; the last line is the height of all of them."""
    longest = max(float(one.replace(" ", "")) for row in rows for one in row.figures) or 1.0
    first = 1 if len(rows[0].figures) == 1 else 0  # a single series has the colour of the theme
    top = 0
    for row in rows:
        yield f'<text y="{top + ROW - 6}">{escape(row.label)}</text>'
        top += ROW
        for number, figure in enumerate(row.figures, first):
            width = float(figure.replace(" ", "")) / longest * LONGEST_PERCENT
            size = f'width="{width:.2f}%" height="{BAR - 2}"'
            yield f'<rect class="series-{number}" y="{top}" {size}/>'
            yield f'<text x="{width:.2f}%" dx="5" y="{top + BAR - 3}">{figure}</text>'
            top += BAR
        top += GAP
    yield str(top)


def drawn(chart: Chart, heads: list[str], rows: list[Row]) -> str:
    """Return a chart as HTML with an SVG in it."""
    *marks, height = bars(rows)
    names = [f'<span class="series-{at}">{escape(head)}</span>' for at, head in enumerate(heads)]
    legend = f" {' '.join(names)}" if len(names) > 1 else ""
    return (
        f'<figure class="chart"><figcaption>{escape(chart.words)}{legend}</figcaption>'
        f'<svg width="100%" height="{height}" role="img" aria-label="{escape(chart.words)}">'
        f"{''.join(marks)}</svg></figure>"
    )


def tables_below(doctree: nodes.document, title: str) -> list[nodes.table]:
    """Return the tables of the sections with a title."""
    sections = [one for one in doctree.findall(nodes.section) if one[0].astext() == title]
    return [table for one in sections for table in one.findall(nodes.table)]


def add_charts(app: Sphinx, doctree: nodes.document) -> None:
    """Put the charts of a page above their tables."""
    for chart in CHARTS.get(app.env.docname, ()):
        for table in tables_below(doctree, chart.section):
            heads, *lines = [
                [cell.astext() for cell in row.findall(nodes.entry)]
                for row in table.findall(nodes.row)
            ]
            places = columns_of(heads, chart)
            rows = rows_of(lines, places)
            if len(places) == len(chart.columns) and rows:
                html = drawn(chart, [heads[at] for at in places[1:]], rows)
                picture = nodes.raw("", html, format="html")
                table.parent.insert(table.parent.index(table), picture)
                break
        else:
            raise ExtensionError(f"{app.env.docname}: no table for the chart of {chart.section!r}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register it."""
    app.connect("doctree-read", add_charts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
