# SPDX-License-Identifier: Apache-2.0
"""The command line: `segproof VERB`.

Exit codes: 0 clean, 1 findings (notes do not count) or bad data, 2 usage or a path that can't be
read or written, the standard streams included, 3 an internal error. A process that Ctrl-C or a
closed pipe ends reports 130 or 141, as a shell does. Data goes to stdout; progress and the summary
to stderr.

Other packages add verbs through the entry-point group `segproof.commands`. Nothing heavy is
imported here or by a verb's module: `segproof --help` needs neither numpy nor numba, Spark or
Hypothesis.
"""

import errno
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache, lru_cache
from importlib import metadata
from typing import Annotated, Any, NoReturn, TextIO

import typer

from segproof_harness.cli import (
    bench,
    completion,
    configuration,
    crash,
    demo,
    doctor,
    dump,
    explain,
    lookup,
    ls,
    oracle,
    rebuild,
    replay,
    report,
    salvage,
    verify,
)
from segproof_harness.cli.common import (
    EXIT_CLEAN,
    EXIT_INTERNAL_ERROR,
    EXIT_USAGE,
    REPORT_TO,
    Refusal,
    complain,
    version,
    write_prose,
)
from segproof_harness.cli.help_text import plain_help
from segproof_harness.cli.usage import UsageError, tell_usage
from segproof_harness.reports.text import reason_of

ENTRY_POINTS = "segproof.commands"
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141
OUR_MISTAKES = (errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ESPIPE)
"""Errors of the system that no file causes: whoever calls it did it wrong.

EINVAL with a name is not one: it says that a place takes no such name, or that a URL is wrong.
"""
VERBS = (
    demo,
    verify,
    report,
    ls,
    dump,
    lookup,
    rebuild,
    salvage,
    replay,
    crash,
    explain,
    bench,
    doctor,
    completion,
)

HELP = """Index and log files of Kafka and RocketMQ: read them, check them, say what they mean.

Files are opened read-only, and nothing is written beside them; only rebuild --in-place replaces
index files.

Exit codes: 0 clean, 1 findings or bad data, 2 usage or a path that can't be read or written, 3 an
internal error.

\b
Examples:
  segproof verify /var/lib/kafka/data
  segproof report /var/lib/kafka/data --out report.html
  segproof dump 00000000000000000000.index --format jsonl
  segproof lookup my-topic-0 --offset 4711 --explain
  segproof lookup store --key TopicTest#order-1 --explain
  segproof rebuild my-topic-0 --out rebuilt/my-topic-0
  segproof salvage my-topic-0 --out saved
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


@cache
def _entry_points() -> tuple[metadata.EntryPoint, ...]:
    """Return the verbs of other packages; to find them takes as long as a verb does."""
    return tuple(metadata.entry_points(group=ENTRY_POINTS))


@lru_cache(maxsize=1)
def _command(_: tuple[metadata.EntryPoint, ...]) -> Any:
    """Return what runs a command line; a process that runs many builds it once."""
    command = plain_help(typer.main.get_command(build_app()))
    configuration.offer(command)
    return command


def _show_version(wanted: bool) -> None:
    if wanted:
        for line in version().splitlines():
            write_prose(line, indent=9)
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
    config: configuration.ConfigOption = None,
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


class _OutputError(BaseException):
    """A standard stream can't be written to. No verb may take this for an error of its files."""

    def __init__(self, name: str, cause: OSError) -> None:
        super().__init__(f"{name}: {reason_of(cause)}")
        self.is_closed_pipe = isinstance(cause, BrokenPipeError)


class _Stream:
    """A standard stream that fails once, with its name, and leads nowhere from then on."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise self._failed(error) from None

    def write_bytes(self, data: bytes) -> int:
        """Write bytes behind the text that was written before."""
        try:
            self._stream.flush()
            return self._stream.buffer.write(data)
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> _OutputError:
        # Python would complain when it flushes the stream at the end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        self._stream.flush()
        return _OutputError(self._name, error)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Nothing but SystemExit leaves."""
    streams: Any = _Stream(sys.stdout, "standard output"), _Stream(sys.stderr, "standard error")
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            code = _guarded(list(arguments))
            for stream in streams:
                stream.flush()
            return code
        except _OutputError as error:
            if error.is_closed_pipe:
                return EXIT_CLOSED_PIPE
            with suppress(_OutputError):
                complain(str(error))
            return EXIT_USAGE


def _guarded(arguments: list[str]) -> int:
    """Run one command line and return its exit code; only _OutputError and SystemExit leave."""
    try:
        code = _invoke(arguments)
        sys.stdout.flush()  # here too: who waits for a reader may be interrupted
        return code
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        return EXIT_INTERRUPTED
    except MemoryError:
        complain("out of memory")
        return EXIT_INTERNAL_ERROR
    except Exception as error:
        if isinstance(error, OSError) and not _is_ours(error):
            _show_traceback(error)
            complain(f"{reason_of(error)}{_remedy_of(error)}")
            return EXIT_USAGE
        if _is_of_the_call(error):
            complain(str(error))
            return EXIT_USAGE
        return _internal_error(error)


def _remedy_of(error: OSError) -> str:
    """Return what to do about a limit of the process, with a separator; else nothing."""
    from segproof.files import LIMITS

    return f": {LIMITS[error.errno]}" if error.errno in LIMITS else ""


def _is_of_the_call(error: Exception) -> bool:
    """Return whether kernels are missing that were asked for, or a limit of the process is met."""
    from segproof.errors import ProcessLimitError
    from segproof.kernels.dispatch import KernelsError  # imported by whatever raises it

    return isinstance(error, KernelsError | ProcessLimitError)


def _is_ours(error: OSError) -> bool:
    if error.errno == errno.EINVAL and error.filename is not None:
        return False
    return error.errno in (None, *OUR_MISTAKES)


def _invoke(arguments: list[str]) -> int:
    if "" in arguments:
        # As a path it would be the current directory, which nobody asked for.
        complain("an argument is empty; is a variable of the shell unset?")
        return EXIT_USAGE
    command = _command(_entry_points())
    if instruction := os.environ.get(completion.VARIABLE):
        return completion.answer(command, instruction)
    context = None
    try:
        with command.make_context("segproof", arguments) as context:
            command.invoke(context)
    except Refusal as refusal:
        configuration.tell_origin(context, refusal.text)
        return EXIT_USAGE
    except typer.Exit as exit_:
        return exit_.exit_code
    except UsageError as error:
        tell_usage(error, arguments)
        return EXIT_USAGE
    return EXIT_CLEAN


def _show_traceback(error: Exception) -> None:
    if os.environ.get("SEGPROOF_TRACEBACK"):
        import traceback

        traceback.print_exception(error)


def _internal_error(error: Exception) -> int:
    _show_traceback(error)
    complain(f"internal error: {type(error).__name__}: {error}")
    complain(f"this is a defect of segproof; please report it: {REPORT_TO}")
    complain("SEGPROOF_TRACEBACK=1 shows where it happened")
    return EXIT_INTERNAL_ERROR


def _prepare_streams() -> None:
    """Let no file that is opened become a standard stream, and have streams that can be used."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # until the end
    if sys.stdout is None:
        complain("standard output: closed")
        sys.exit(EXIT_USAGE)
    with suppress(AttributeError):  # what a program has put in its place
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _choose_temporary_folder() -> None:
    """Choose the folder of temporary files without writing to one.

    Python tries each by writing, and the current directory too, which may be a broker's.
    """
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    folders = [os.path.abspath(name) for name in (*named, "/tmp", "/var/tmp", "/usr/tmp") if name]
    usable = (each for each in folders if os.path.isdir(each) and os.access(each, os.W_OK))
    tempfile.tempdir = next(usable, folders[0])


def main() -> NoReturn:
    """Run the command line of this process."""
    _prepare_streams()
    _choose_temporary_folder()
    sys.exit(run(sys.argv[1:]))
