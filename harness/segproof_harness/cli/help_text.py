# SPDX-License-Identifier: Apache-2.0
"""Make the help of every verb plain: whole summaries, and no types of Python."""

import re
from functools import partial
from typing import Any

PYTHON_TYPE = re.compile(r" <(?:list\[)?(?:Path|path|str|int|int range)\]?>$")
RANGE = re.compile(r"\[[^\[\]]*\bx[<>]=[^\[\]]*\]$|\[[^\[\]]*[<>]=x\b[^\[\]]*\]$")


def plain_help(command: Any) -> Any:
    """Return a command of typer, whose help, and that of all verbs below it, is plain now.

    A list of verbs has the whole first paragraph of each: typer would cut it off. An argument has
    no type of Python behind its name, and a bound names the value as the option does.
    """
    for verb in getattr(command, "commands", {}).values():
        plain_help(verb)
    command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
    for parameter in command.params:
        parameter.get_help_record = partial(_record, parameter, parameter.get_help_record)
    return command


def _record(parameter: Any, record: Any, context: Any) -> tuple[str, str] | None:
    """Return the name and the text that the help shows of a parameter."""
    shown = record(context)
    if shown is None:
        return None
    name, text = shown
    value = parameter.metavar or "value"
    bounds = RANGE.search(text)
    if bounds:
        text = text[: bounds.start()] + re.sub(r"\bx\b", value, bounds[0])
    return PYTHON_TYPE.sub("", name), text
