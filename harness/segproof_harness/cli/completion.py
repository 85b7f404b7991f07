# SPDX-License-Identifier: Apache-2.0
"""The verb `completion`: the script that lets a shell complete `segproof`, and its answers."""

import os
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from io import StringIO
from typing import Annotated, Any

import typer
import typer.completion

from segproof_harness.cli.common import EXIT_INTERNAL_ERROR

VARIABLE = "_SEGPROOF_COMPLETE"
"""The scripts set it to `complete_SHELL` when the user asks for completions."""


class Shell(StrEnum):
    """The shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def command(
    shell: Annotated[
        Shell, typer.Argument(metavar="SHELL", help="The shell that you use: bash, zsh or fish.")
    ],
) -> None:
    """Print the script that lets your shell complete segproof with the Tab key.

    It completes verbs, options, and values that are known: law ids, releases, structures and
    formats. In all other places the shell completes paths. The script is only printed; you decide
    where it goes. It takes effect in the shells that you open afterwards.

    \b
    Examples:
      echo 'eval "$(segproof completion bash)"' >> ~/.bashrc
      echo 'eval "$(segproof completion zsh)"' >> ~/.zshrc   # below the line with compinit
      segproof completion fish > ~/.config/fish/completions/segproof.fish
    """
    sys.stdout.write(script_of(shell) + "\n")


def script_of(shell: Shell) -> str:
    """Return typer's script for a shell."""
    tools: Any = typer.completion
    script: str = tools.get_completion_script(
        prog_name="segproof", complete_var=VARIABLE, shell=shell.value
    )
    return script


def answer(command_line: Any, instruction: str) -> int:
    """Write what the shell offers next, as one of the scripts asks, and return the exit code.

    Tab must not spoil the line that is being typed, so an error is silent unless SEGPROOF_TRACEBACK
    is set.
    """
    tools: Any = typer.completion
    tools.completion_init()
    shown = StringIO()
    try:
        with redirect_stdout(shown):
            code: int = tools.shell_complete(command_line, {}, "segproof", VARIABLE, instruction)
    except Exception:
        if os.environ.get("SEGPROOF_TRACEBACK"):
            raise
        return EXIT_INTERNAL_ERROR
    sys.stdout.write(shown.getvalue())
    return code
