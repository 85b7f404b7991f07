# SPDX-License-Identifier: Apache-2.0
"""Lines for people: coloured and wrapped on a terminal, plain and whole everywhere else."""

import io
import os
import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from segproof_harness.reports.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

WORD = re.compile(r"(\s*)((?:(?<!\S)[a-z_]+: +)?(?:[^\s`]*`[^`]+`\S*|\S+))")
"""A word with the space before it; so is a command to paste, in backticks, and `name: value`."""
STYLES = {
    "error": "bold red",
    "warning": "yellow",
    "note": "cyan",
    "sound": "bold green",
    "index-damage-only": "bold yellow",
    "readable-with-defects": "bold yellow",
    "not-checked": "bold yellow",
    "readable-with-gaps": "bold red",
    "unreadable": "bold red",
}
"""The colours of severities and verdicts."""


class Color(StrEnum):
    """When output is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Lines:
    """Writes lines to a standard stream: wrapped between words where that is a terminal."""

    def __init__(self, color: Color = Color.AUTO, *, to_stderr: bool = False) -> None:
        self._to_stderr = to_stderr
        self._is_terminal = self._stream.isatty()
        self._console = self._console_for(color)

    @property
    def _stream(self) -> TextIO:
        """The stream that is the standard one now: a bar of progress puts its own there."""
        return sys.stderr if self._to_stderr else sys.stdout

    def _console_for(self, color: Color) -> "Console | None":
        """Return what colours and wraps; None where plain text is written."""
        is_plain = color is Color.NEVER or (color is Color.AUTO and not self._wants_color())
        if is_plain and not self._is_terminal:
            return None
        from rich.console import Console

        return Console(
            file=io.StringIO(),
            force_terminal=not is_plain,
            color_system=None if is_plain else "standard",
            no_color=is_plain,
            highlight=False,
            legacy_windows=False,
        )

    def write(
        self, text: str, *, style: str | None = None, head: str = "", indent: int = 0
    ) -> None:
        """Write a paragraph: `head` in the colour of a severity or verdict, then the text.

        A terminal gets it wrapped between words; a word that is too long, or a command,
        stays whole. Further lines are indented by so many columns.
        """
        head, text = printable(head), printable(text)
        if self._console is None:
            self._stream.write(f"{head}{text}\n")
            return
        from rich.text import Text

        line = Text.assemble((head, STYLES.get(style or "", "")), text)
        self._emit(self._wrapped(self._console, line, indent))

    def command(self, text: str, *, indent: int) -> None:
        """Write a command on a line of its own, which is never wrapped."""
        self._stream.write(" " * indent + printable(text) + "\n")

    def gap(self) -> None:
        """Write an empty line."""
        self._stream.write("\n")

    def _wrapped(self, console: "Console", line: "Text", indent: int) -> "list[Text]":
        """Return the lines of a paragraph. Rich would break a word that is wider than a line."""
        if not self._is_terminal:
            return [line]
        from rich.cells import cell_len
        from rich.text import Text

        indent = min(indent, console.width // 4)
        breaks, column, begins = [], 0, True
        for word in WORD.finditer(line.plain):
            gap, width = len(word[1]), cell_len(word[2])
            if not begins and column + gap + width > console.width:
                breaks.append(word.start(2))
                column, gap = indent, 0
            column, begins = column + gap + width, False
        first, *others = line.divide(breaks)
        return [first, *(Text(" " * indent) + one for one in others)]

    def _emit(self, lines: "list[Text]") -> None:
        console = self._console
        assert console is not None
        buffer = io.StringIO()
        console.file = buffer
        for line in lines:
            line.rstrip()
            console.print(line, soft_wrap=True)
        self._stream.write(buffer.getvalue())

    def _wants_color(self) -> bool:
        """Return whether the stream is a terminal that may be coloured.

        https://no-color.org: a variable NO_COLOR that is set and not empty forbids it.
        """
        is_dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown")
        return self._is_terminal and not os.environ.get("NO_COLOR") and not is_dumb


def bare_table() -> "Table":
    """Return a table without rows and without lines between them."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
