# SPDX-License-Identifier: Apache-2.0
"""The command line: `segproof VERB`.

Exit codes: 0 clean, 1 findings (notes do not count) or bad data, 2 usage or a path that can't be
read, 3 an internal error. A process that Ctrl-C or a closed pipe ends reports 130 or 141, as a
shell does. Data goes to stdout; progress and the summary to stderr.

Other packages add verbs through the entry-point group `segproof.commands`. Nothing heavy is
imported here or by a verb's module: `segproof --help` needs neither numpy nor numba, Spark or
Hypothesis.
Used by: the console script `segproof`, `python -m segproof_harness.cli`.
"""

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from typing import Annotated, Any, NoReturn

import typer

from segproof_harness.cli import (
    bench,
    demo,
    doctor,
    dump,
    explain,
    lookup,
    oracle,
    rebuild,
    replay,
    verify,
)
from segproof_harness.cli.common import (
    EXIT_CLEAN,
    EXIT_INTERNAL_ERROR,
    EXIT_USAGE,
    REPORT_TO,
    complain,
    version,
)

ENTRY_POINTS = "segproof.commands"
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141
# Newer releases of typer carry their own click, so its classes are found through typer.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
VERBS = (demo, verify, dump, lookup, rebuild, replay, explain, bench, doctor)

HELP = """Index and log files of Kafka and RocketMQ: read them, check them, say what they mean.

Files are opened read-only, and nothing is written beside them; only rebuild --in-place replaces
index files.

Exit codes: 0 clean, 1 findings or bad data, 2 usage or a path that can't be read, 3 an internal
error.

\b
Examples:
  segproof verify /var/lib/kafka/data
  segproof dump 00000000000000000000.index --format jsonl
  segproof lookup my-topic-0 --offset 4711 --explain
  segproof lookup store --key TopicTest#order-1 --explain
  segproof rebuild my-topic-0 --out rebuilt/my-topic-0
"""


def build_app() -> typer.Typer:
    """Return the command line with every verb, those of other packages too."""
    app = typer.Typer(
        name="segproof",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_options)
    for verb in VERBS:
        name = verb.__name__.rpartition(".")[2]
        context = {"max_content_width": 100, **getattr(verb, "CONTEXT", {})}
        app.command(name, context_settings=context)(verb.command)
    app.add_typer(oracle.app)
    for entry in _entry_points():
        app.add_typer(_loaded(entry), name=entry.name)
    return app


def _entry_points() -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=ENTRY_POINTS))


@lru_cache(maxsize=1)
def _command(_: tuple[metadata.EntryPoint, ...]) -> Any:
    """Return what runs a command line; a process that runs many builds it once."""
    return typer.main.get_command(build_app())


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version())
        raise typer.Exit(EXIT_CLEAN)


def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_show_version,
            help="Show release, formats and profiles, and exit.",
        ),
    ] = False,
) -> None:
    """Take what stands before the verb."""


def _loaded(entry: metadata.EntryPoint) -> typer.Typer:
    """Return the verbs of another package; one that can't be loaded says why when it is called."""
    try:
        loaded = entry.load()
    except ImportError as error:
        reason = f"{entry.name}: not available: {error}"
        broken = typer.Typer(help=f"Not available: {error}.", invoke_without_command=True)

        @broken.callback(context_settings={"ignore_unknown_options": True})
        def explain_why(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
            complain(reason)
            raise typer.Exit(EXIT_USAGE)

        return broken
    if not isinstance(loaded, typer.Typer):
        raise TypeError(f"entry point {entry.value} is no typer.Typer")
    return loaded


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Nothing but SystemExit leaves."""
    try:
        code = _invoke(list(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python would complain when it flushes stdout at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLOSED_PIPE
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        return EXIT_INTERRUPTED
    except MemoryError:
        complain("out of memory")
        return EXIT_INTERNAL_ERROR
    except Exception as error:
        return _internal_error(error)


def _invoke(arguments: list[str]) -> int:
    if "" in arguments:
        # As a path it would be the current directory, which nobody asked for.
        complain("an argument is empty; is a variable of the shell unset?")
        return EXIT_USAGE
    command = _command(_entry_points())
    try:
        with command.make_context("segproof", arguments) as context:
            command.invoke(context)
    except typer.Exit as exit_:
        return exit_.exit_code
    except _UsageError as error:
        shown: Any = error
        shown.show(file=sys.stderr)
        return EXIT_USAGE
    return EXIT_CLEAN


def _internal_error(error: Exception) -> int:
    if os.environ.get("SEGPROOF_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    complain(f"internal error: {type(error).__name__}: {error}")
    complain(f"this is a defect of segproof; please report it: {REPORT_TO}")
    complain("SEGPROOF_TRACEBACK=1 shows where it happened")
    return EXIT_INTERNAL_ERROR


def main() -> NoReturn:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))
