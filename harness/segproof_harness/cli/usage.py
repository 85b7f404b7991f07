# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a command line: the option or argument, the nearest known word, an example.

typer and what it stands on tell the same error in other words from release to release; here each
is told in ours.
"""

import io
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from segproof.commands import command_line
from segproof.nearest_names import did_you_mean
from segproof_harness.cli.common import complain, tell, write_line

# Newer releases of typer carry their own click, so its classes are found through typer.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a wrong command line."""
QUOTED = re.compile(r"'([^']*)'")


def tell_usage(error: Any, arguments: Sequence[str]) -> None:
    """Write a usage error of typer to stderr: what is wrong, an example, where the options are."""
    context = error.ctx
    if type(error).__name__ == "NoArgsIsHelpError":
        shown = io.StringIO()
        error.show(file=shown)
        for line in shown.getvalue().splitlines():
            write_line(line, sys.stderr)
        return
    if context is None:  # the words of an option are wrong, and its verb is not known
        option = getattr(error, "option_name", "the command line")
        words = error.message.removeprefix(f"Option {option!r} ").removesuffix(".")
        complain(f"{option} {_lowered(words)}")
        return
    complain(_problem(error, context))
    if type(error).__name__ == "MissingParameter":
        example = _example(context.command, error.param, arguments)
        if example:
            tell(f"  example: `{example}`")
    tell(f"  all {'verbs' if _verbs(context) else 'options'}: `{context.command_path} -h`")


def _problem(error: Any, context: Any) -> str:
    """Return what is wrong, in one line."""
    verb = context.command_path.removeprefix("segproof ")
    kinds = {one.__name__ for one in type(error).__mro__}
    if "MissingParameter" in kinds and error.param is not None:
        return f"{verb} needs {_name(error.param)}: {_help(error.param)}"
    if "NoSuchOption" in kinds:
        known = [name for one in context.command.params for name in _names(one)]
        near = did_you_mean(error.option_name, known)
        return f"{verb} has no option {error.option_name}{near}"
    if unreadable := re.match(r"[A-Z]\w+ '(.*)' is not readable", error.message):
        return f"{unreadable[1]}: permission denied"
    if "BadParameter" in kinds and error.param is not None:
        name = max(_names(error.param) or [_name(error.param)], key=len)
        return f"{name}: {value_problem(error)}"
    if unknown := re.match(r"No such command '([^']*)'", error.message):
        return f"{verb} has no verb {unknown[1]!r}{did_you_mean(unknown[1], _verbs(context))}"
    if extra := re.match(r"Got unexpected extra argument.*? \((.*)\)$", error.message):
        return f"{verb} takes no further argument: {extra[1]}"
    return f"{verb}: {_lowered(error.message)}"


def value_problem(error: Any) -> str:
    """Return what is wrong with a value, by an error of typer; newer releases leave it out."""
    message: str = error.message.removeprefix("Value error, ").removesuffix(".")
    told = getattr(error.__cause__, "errors", None)
    first = told()[0] if callable(told) else {}
    given, bounds = str(first.get("input"))[:60], first.get("ctx") or {}
    if "ge" in bounds:
        return f"{given} is too small; the least is {bounds['ge']}"
    if "le" in bounds:
        return f"{given} is too large; the most is {bounds['le']}"
    if first.get("type", "").startswith("int"):
        return f"{given!r} is no whole number"
    if first.get("type", "").startswith("float"):
        return f"{given!r} is no number"
    if " is not one of " in message:
        word, *known = QUOTED.findall(message)
        return message + did_you_mean(word, known)
    return _lowered(message)


def _example(command: Any, parameter: Any, arguments: Sequence[str]) -> str:
    """Return the call with the option that it lacks, or an example of the verb's help."""
    lines = [line.strip() for line in (command.help or "").splitlines()]
    examples = [line for line in lines if line.startswith("segproof ")]
    for name in _names(parameter):
        for example in examples:
            value = re.search(rf" {name} (\S+)", example)
            if value:
                return f"{command_line('segproof', *arguments)} {name} {value[1]}"
    return examples[0] if examples else ""


def _names(parameter: Any) -> list[str]:
    """Return the spellings of an option; an argument has none."""
    spelt = [*parameter.opts, *parameter.secondary_opts]
    return [name for name in spelt if name.startswith("-")]


def _name(parameter: Any) -> str:
    """Return how the help calls a parameter, such as `--out DIR`."""
    metavar = parameter.metavar or parameter.name.upper()
    return " ".join([*_names(parameter)[:1], metavar])


def _help(parameter: Any) -> str:
    return _lowered((getattr(parameter, "help", None) or "see its help").removesuffix("."))


def _lowered(text: str) -> str:
    """Return a sentence as the part of a line; a name such as RocketMQ keeps its letters."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _verbs(context: Any) -> Iterable[str]:
    """Return the verbs below a command; empty for a verb."""
    return getattr(context.command, "commands", None) or ()
