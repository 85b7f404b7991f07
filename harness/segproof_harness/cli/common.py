# SPDX-License-Identifier: Apache-2.0
"""What all verbs share: exit codes, formats, output, complaints, progress."""

import contextlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer

import segproof
from segproof.commands import command_line
from segproof.nearest_names import did_you_mean, no_such
from segproof_harness.cli import candidates
from segproof_harness.reports.terminal import Color, Lines
from segproof_harness.reports.text import printable

if TYPE_CHECKING:
    from segproof.hints import Hint
    from segproof_model.language.behaviours import Release

EXIT_CLEAN = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_INTERNAL_ERROR = 3
REFRESH_SECONDS = 0.1
SHORT_LINE = 40
"""A line with fewer characters is not wrapped on a terminal: nothing has to be loaded for it."""
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
AGO = re.compile(r"([0-9]{1,15})([smhd])", re.ASCII)
"""How long ago: a number with its unit."""
NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
MOST_DIGITS = 1000
"""Zeros before a number are allowed; Python refuses more than 4300 digits with words of its own."""

REPORT_TO = "the issue tracker of the place where you got segproof"
FORMATS = """record batches magic 0, 1 and 2 (none, gzip, snappy, lz4, zstd)
         offset index (8-byte entries), time index (12-byte entries)
         transaction index version 0 (34-byte entries)
         RocketMQ index files (40-byte header, 20-byte entries), commit log V1 and V2"""


class Format(StrEnum):
    """How data is written to stdout."""

    TEXT = "text"
    JSONL = "jsonl"


FormatOption = Annotated[
    Format, typer.Option("--format", help="text for people, jsonl for programs.")
]
TIME_FORMS = "2026-11-21T01:00Z, 2026-11-21T02:00:30+01:00 or milliseconds since 1970"
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        autocompletion=candidates.profiles,
        help="Answer as this release does on the files as found, such as kafka-4.4.0. "
        "Default: segproof, which counts genuine entries only.",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit-bytes",
        metavar="BYTES",
        min=1,
        help="Largest batch that --deep reads, in bytes, as stored and inflated; a larger one is "
        "a warning. Default: 16 MiB; inflated 1 MiB, or 128 times its size up to 64 MiB. "
        "When small batches have taken 64 MiB beyond 128 times their sizes, later ones get "
        "128 times their size.",
    ),
]

IndexBytesOption = Annotated[
    int | None,
    typer.Option(
        "--segment-index-bytes",
        metavar="BYTES",
        min=4,
        help="segment.index.bytes of the broker that starts next: verify tells if it is too small "
        "for the present indexes.",
    ),
]
HashSlotsOption = Annotated[
    int | None,
    typer.Option(
        "--hash-slots",
        metavar="N",
        min=1,
        help="Slots of RocketMQ's index files, since the files do not hold this number. Default: "
        "found from their length, the files beside them, and their chains.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, help="Processes at a time. Default: one per core."),
]


def version() -> str:
    """Return what `--version` shows."""
    from segproof_harness.histories.traces import FORMAT
    from segproof_model.releases import RELEASES

    return (
        f"segproof {release()}\n"
        f"formats: {FORMATS}\n"
        f"         trace {FORMAT}\n"
        f"profiles: {', '.join(RELEASES)}"
    )


def release() -> str:
    """Return the release of the installed distribution."""
    return segproof.__version__


def complain(text: str) -> None:
    """Write a line to stderr."""
    tell(f"segproof: {text}")


def summarise(text: str) -> None:
    """Write a summary line to stderr, behind the data."""
    sys.stdout.flush()
    tell(text)


def tell(text: str) -> None:
    """Write a line to stderr; a terminal gets a long one wrapped between words."""
    write_prose(text, to_stderr=True)


def write_prose(text: str, *, indent: int = 2, to_stderr: bool = False) -> None:
    """Write a line that holds no command; a terminal gets a long one wrapped between words.

    Its further lines are indented by so many columns.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    if len(text) < SHORT_LINE or not stream.isatty():
        write_line(text, stream)
    else:
        Lines(Color.NEVER, to_stderr=to_stderr).write(text, indent=indent)


def suggest(what: "Hint", *words: object) -> None:
    """Write the command that comes next to stderr, to be pasted; `what` says what it is for, and
    has the class of what it does to files.
    """
    summarise(f"  {what}: `{command_line(*words)}`")


def words_of_call(context: typer.Context, replaced: Mapping[str, Any]) -> list[object]:
    """Return the words of the present call, with each option that has not its default.

    `replaced` has other values than those given, by the name of the parameter; None leaves it out.
    """
    words: list[object] = ["segproof", context.info_name]
    for parameter in context.command.params:
        name = parameter.opts[0]
        value = {**context.params, **replaced}.get(str(parameter.name))
        values = value if isinstance(value, list | tuple) else [value]
        if not name.startswith("-"):
            words += values
        elif value is not None and value != parameter.default:
            words += [name] if value is True else [w for one in values for w in (name, one)]
    return words


class Refusal(typer.Exit):
    """The end of a verb that has said what is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__(EXIT_USAGE)
        self.text = text


def refuse(text: str) -> NoReturn:
    """Complain and end: usage, or a path that can't be read.

    Several commands to paste are a line each below the words, as `verify` writes them.
    """
    from segproof_harness.reports.verdicts import split_commands

    words, commands = split_commands(text)
    complain(words if len(commands) > 1 else text)
    for command in commands if len(commands) > 1 else ():
        write_line(f"    {command}", sys.stderr)
    raise Refusal(text)


def write_line(text: str, stream: TextIO | None = None) -> None:
    """Write a line to a stream, stdout by default, without what a terminal would act on.

    Every line of text goes through here or through `Lines`: a name may hold anything.
    """
    (stream or sys.stdout).write(printable(text) + "\n")


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def write_row(row: dict[str, Any], output_format: Format) -> None:
    """Write one flat object to stdout: as JSON, or as `name: value` pairs."""
    if output_format is Format.JSONL:
        sys.stdout.write(json.dumps(row) + "\n")
        return
    write_prose(text_of(row))


def text_of(row: dict[str, Any]) -> str:
    """Return one flat object as `name: value` pairs."""
    return " ".join(f"{name}: {value_text(value)}" for name, value in row.items())


def with_times(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose timestamps are ISO 8601 in UTC; a negative one stays a number."""
    from segproof.findings import time_text

    return {
        name: time_text(value)
        if name.endswith("timestamp") and isinstance(value, int) and value >= 0
        else value
        for name, value in row.items()
    }


def parse_time(text: str, *, what: str = "time", forms: str = TIME_FORMS) -> int:
    """Return a time in milliseconds: a number, or ISO 8601 with its zone.

    A complaint says that the text is no `what`, and to write one of the `forms`.
    Raises: typer.BadParameter, which says what is wrong.
    """
    word = text.strip()
    if NUMBER.fullmatch(word):
        time_ms = int(word) if len(word) <= MOST_DIGITS else INT64_MAX + 1
    else:
        try:
            time = datetime.fromisoformat(word)
        except ValueError:
            raise typer.BadParameter(f"{word[:40]!r} is no {what}; write {forms}") from None
        if time.tzinfo is None:
            whole = word if "T" in word or " " in word else f"{word}T00:00"
            raise typer.BadParameter(
                f"{word[:40]!r} has no time zone; write {whole[:40]}Z for UTC, or +01:00 behind it"
            )
        time_ms = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if not INT64_MIN <= time_ms <= INT64_MAX:
        raise typer.BadParameter(f"{word[:40]} does not fit 64 bits")
    return time_ms


def parse_since(text: str) -> int:
    """Return a time in the past in milliseconds: how long ago, such as 2h, or as `parse_time`.

    Raises: typer.BadParameter, which says what is wrong.
    """
    now_ms = time.time_ns() // 1_000_000
    word = text.strip()
    if ago := AGO.fullmatch(word):
        time_ms = now_ms - int(ago[1]) * UNITS_MS[ago[2]]
    else:
        time_ms = parse_time(word, forms=f"2h, 7d, {TIME_FORMS}")
    if not 0 <= time_ms <= now_ms:
        when = "before 1970" if time_ms < 0 else "in the future"
        raise typer.BadParameter(f"{word[:40]!r} lies {when}")
    return time_ms


def write_findings(findings: "Iterable[Mapping[str, Any]]", output_format: Format) -> None:
    """Write findings, given by field name, on standard output."""
    from segproof_harness.reports.jsonl import write_jsonl
    from segproof_harness.reports.verdicts import write_finding_lines

    lines = Lines()
    for finding in findings:
        if output_format is Format.JSONL:
            write_jsonl(finding, sys.stdout)
        else:
            write_finding_lines(lines, finding)
    sys.stdout.flush()


def value_text(value: Any) -> str:
    """Return a value as text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, list | dict) or value == "" else str(value)


def check_readable(path: Path) -> None:
    """Raise OSError for a path that can't be read; what can't be read inside is a finding."""
    if path.is_dir():
        os.listdir(path)
    else:
        from segproof.files import REAL_FILES
        from segproof.reading.packed_segments import with_unpacked

        with_unpacked(REAL_FILES).open(os.fspath(path)).close()


def refuse_unread(path: Path) -> None:
    """End where a path is a part of a layout that is not read, and name the layout."""
    from segproof.errors import InvalidArgumentError
    from segproof.files import REAL_FILES
    from segproof.reading.unread_places import check_read

    try:
        check_read(os.fspath(path), REAL_FILES)
    except InvalidArgumentError as error:
        refuse(str(error))


def refuse_part_of_store(store: str) -> None:
    """End where a store is a part of a layout that is not read, and name the layout."""
    from segproof.errors import InvalidArgumentError
    from segproof.files import REAL_FILES
    from segproof.reading.store_layouts import check_whole

    try:
        check_whole(store, REAL_FILES)
    except InvalidArgumentError as error:
        refuse(str(error))


def complaint_about(laws: Collection[str]) -> str | None:
    """Return the complaint about laws that verify does not check; None: it checks all of them."""
    from segproof.verification import VERIFIED_LAWS
    from segproof_harness.laws.law_order import order_of_law

    unknown = sorted(set(laws) - VERIFIED_LAWS)
    if not unknown:
        return None
    near = did_you_mean(unknown[0], sorted(VERIFIED_LAWS, key=order_of_law))
    return f"verify does not check {', '.join(unknown)}{near} (`segproof explain` lists all)"


def known_profile(name: str | None) -> "Release | None":
    """Return the release of a profile; None for segproof. Refuses an unknown name."""
    if name is None or name == "segproof":
        return None
    from segproof_model.releases import RELEASES

    if name not in RELEASES:
        refuse(no_such("profile", name, RELEASES))
    return RELEASES[name]


def check_profile_of(release: "Release | None", system: str) -> None:
    """Refuse a release of the other system: `kafka` or `rocketmq`."""
    if release is not None and not release.name.startswith(system):
        refuse(f"{release.name} does not read these files: give a release of {system}")


Show = Callable[[int, int], None]


@contextlib.contextmanager
def progress(what: str, *, unit: str = "bytes") -> Iterator[Show]:
    """Show progress while the block runs: done, rate, time left; only on a terminal.

    There is none beside a pipe, whose reader may write to the same terminal. The block gets a
    function to call with what is done and what there is in all.
    """
    if not shows_progress():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    measured: Iterable[ProgressColumn] = (
        (DownloadColumn(), TransferSpeedColumn()) if unit == "bytes" else (MofNCompleteColumn(),)
    )
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *measured,
        TimeRemainingColumn(),
        # Rich breaks no line: a long one is the terminal's to wrap, and can be copied whole.
        console=Console(stderr=True, soft_wrap=True),
        transient=True,
        # What goes to a file or a pipe goes there; on a terminal it must not hit the bar.
        redirect_stdout=sys.stdout.isatty(),
        # No thread of its own: beside one, worker processes could not be forked.
        auto_refresh=False,
    ) as bar:
        task = bar.add_task(what, total=None)
        shown = 0.0

        def show(done: int, total: int) -> None:
            nonlocal shown
            bar.update(task, completed=done, total=total)
            if time.monotonic() - shown > REFRESH_SECONDS:
                bar.refresh()
                shown = time.monotonic()

        yield show


@contextlib.contextmanager
def elapsed() -> Iterator[Callable[[str], None]]:
    """Show what runs, and for how long, while the block runs; only on a terminal.

    The block gets a function to call with the name of what begins. A thread draws, so the block
    must not fork.
    """
    if not shows_progress():
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        SpinnerColumn("line"),
        TimeElapsedColumn(),
        console=Console(stderr=True, soft_wrap=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
        refresh_per_second=4,
    ) as bar:
        task = bar.add_task("starting")
        yield lambda what: bar.update(task, description=what)


def shows_progress() -> bool:
    """Return whether a bar may be drawn: stderr is a terminal, and stdout is no pipe.

    The reader of a pipe may write to the same terminal.
    """
    if not sys.stderr.isatty():
        return False
    try:
        return not stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except OSError:  # a stream without a descriptor
        return True
