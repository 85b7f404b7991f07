# SPDX-License-Identifier: Apache-2.0
"""The verb `report`: what `verify` finds, as one HTML page."""

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from segproof.commands import command_line
from segproof_harness.cli import configuration
from segproof_harness.cli.common import (
    HashSlotsOption,
    IndexBytesOption,
    JobsOption,
    LimitOption,
    check_readable,
    cores,
    refuse,
    release,
    words_of_call,
    write_line,
)
from segproof_harness.cli.verify import (
    Asked,
    DeepOption,
    FailOn,
    FailOnOption,
    LawsOption,
    NoIgnoreOption,
    NoNotesOption,
    PositionOption,
    SinceOption,
    Told,
    end,
    judge,
    known_laws,
    rules,
)

OF_VERIFYING = (
    "deep",
    "jobs",
    "law",
    "position",
    "since",
    "limit_bytes",
    "hash_slots",
    "segment_index_bytes",
    "no_ignore",
)
"""The parameters that say how to verify."""

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", help="Files, partition directories, whole data directories, stores."
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FILE", help="The page to write; it replaces an older page of segproof."
    ),
]
FromOption = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="JSONL",
        help="Take the results from this file, which verify --format jsonl has written, instead of "
        "a PATH; a pipe does not do. The page has no damage maps and no bytes then.",
    ),
]


def command(
    context: typer.Context,
    paths: PathsArgument = None,
    *,
    out: OutOption,
    stored: FromOption = None,
    deep: DeepOption = False,
    jobs: JobsOption = None,
    law: LawsOption = None,
    position: PositionOption = None,
    since: SinceOption = None,
    limit_bytes: LimitOption = None,
    hash_slots: HashSlotsOption = None,
    segment_index_bytes: IndexBytesOption = None,
    fail_on: FailOnOption = FailOn.WARNING,
    no_notes: NoNotesOption = False,
    no_ignore: NoIgnoreOption = False,
) -> None:
    """Verify files, and write what was found as one HTML page to read, print and pass on.

    The page has the verdicts, the worst first. For each cause it tells what is wrong and where, the
    law, what consumers see, what to do, commands that can be pasted, a damage map of the file, the
    bytes at the first place, and what a broker's recovery keeps and deletes.

    FILE is a single file below 500 KB; no browser needs a network or a script for it. What has no
    room is counted. A damaged log is read twice. Memory and exit codes are those of verify.

    FILE must not lie in or beside PATH, which is only read.

    \b
    Examples:
      segproof report /var/lib/kafka/data --out report.html
      segproof report /var/lib/kafka/data/orders-0 --deep --out orders-0.html
      segproof report /home/rocketmq/store --no-notes --out store.html
      segproof report /var/lib/kafka/data --since 25h --out today.html
      segproof report --from last-night.jsonl --out last-night.html
    """
    if stored is not None:
        _check_alone(context, paths)
        _report_stored(context, stored, out, fail_on, no_notes=no_notes)
        return
    laws = known_laws(law)
    ignored = configuration.ignored_findings(context, no_ignore=no_ignore)
    # A page is read elsewhere: its commands name whole paths.
    paths = [Path(os.path.abspath(path)) for path in paths or ()]
    if not paths:
        refuse("give a PATH to verify, or --from with the results of an earlier verify")
    for path in paths:
        check_readable(path)
        _check_apart(path, out)
    from segproof.wording.reporting import Wanted
    from segproof_harness.reports.page import Made, PageReport

    wanted = Wanted(laws, position, deep, limit_bytes, hash_slots, segment_index_bytes)
    asked = Asked(paths, jobs or cores(), wanted, since)
    replaced = {"paths": paths, "out": os.path.abspath(out), "jobs": None,
                "law": sorted(laws or ()), "since": asked.since_text}  # fmt: skip
    made = Made(
        release(),
        command_line(*words_of_call(context, replaced)),
        _time_words(datetime.now(UTC)),
        asked.restriction,
        deep,
        command_line("segproof", "verify", *words_of_call(context, replaced | {"out": None})[2:]),
    )
    with _new_page(out) as write:
        told = Told(PageReport(write, rules(), made), None, no_notes, fail_on)
        judge(asked, told, ignored, fail_on)


def _check_alone(context: typer.Context, paths: list[Path] | None) -> None:
    """Refuse what says how to verify: with --from that has been done."""
    if paths:
        refuse(f"give {paths[0]} or --from, not both")
    for one in context.command.params:
        source = context.get_parameter_source(str(one.name))
        if one.name in OF_VERIFYING and source is not None and source.name == "COMMANDLINE":
            refuse(f"{one.opts[0]} does not go with --from: the files have been verified")


def _report_stored(
    context: typer.Context, stored: Path, out: Path, fail_on: FailOn, *, no_notes: bool
) -> None:
    """Write the page of results that verify has written to a file, and end with the exit code."""
    from segproof.findings import Finding
    from segproof_harness.reports.page import Made, PageReport
    from segproof_harness.reports.stored_results import StoredResultsError, checked_as, results
    from segproof_harness.reports.verdicts import WHOLE, Restriction

    if stored == Path("-") or not stat.S_ISREG(stored.stat().st_mode):
        refuse(f"{stored} is no regular file: it is read twice, so a pipe does not do")
    started = time.monotonic()
    written = datetime.fromtimestamp(stored.stat().st_mtime, UTC)
    replaced = {**dict.fromkeys(OF_VERIFYING), "paths": (), "out": os.path.abspath(out),
                "stored": os.path.abspath(stored)}  # fmt: skip
    try:
        run = checked_as(stored)
        made = Made(
            release(),
            command_line(*words_of_call(context, replaced)),
            _time_words(datetime.now(UTC)),
            WHOLE if run is None else Restriction(run.laws, run.position, run.since),
            run is not None and run.deep,
            source=f"`{os.path.abspath(stored)}`, written {_time_words(written)}",
        )
        with _new_page(out) as write:
            told = Told(PageReport(write, rules(), made), None, no_notes, fail_on)
            for one in results(stored):
                if isinstance(one, Finding):
                    told.take((one,))
                else:
                    told.summary(one)
            told.report.end()
    except StoredResultsError as error:
        refuse(str(error))
    told.summarise(made.restriction)
    end(told.counts, time.monotonic() - started, "", fail_on)


def _time_words(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")


def _check_apart(path: Path, out: Path) -> None:
    """Refuse a page in a directory that is checked, or beside a file that is."""
    folder = os.path.realpath(path if path.is_dir() else path.parent)
    if os.path.commonpath((folder, os.path.realpath(out))) == folder:
        refuse(f"{out} lies in {folder}, where nothing is written; give a place outside of it")


@contextmanager
def _new_page(out: Path) -> Iterator[Callable[[str], None]]:
    """Yield what writes the page. It is there whole or not at all; whether it can, is asked first.

    Raises: OSError. Ends the command for a file that is no page of segproof.
    """
    from segproof_harness.reports.page import BEGIN

    with suppress(FileNotFoundError):
        is_page = stat.S_ISREG(out.stat().st_mode)
        if is_page:
            with out.open("rb") as file:
                is_page = file.read(len(BEGIN)) in (BEGIN.encode(), b"")
        if not is_page:
            refuse(f"{out} is there, and is no page of segproof; give another name")
    if not out.parent.is_dir():
        refuse(f"{out.parent}: no such directory, and the page is to be written there")
    with _naming(out):
        descriptor, part = tempfile.mkstemp(".part", f".{out.name[:100]}.", out.parent)

    def write(page: str) -> None:
        with _naming(out):
            with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
                file.write(page)
            os.fsync(descriptor)
            os.fchmod(descriptor, 0o666 & ~_umask())
            os.replace(part, out)
        write_line(f"{out}: {len(page.encode()) // 1000} KB")

    try:
        yield write
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(part)


@contextmanager
def _naming(out: Path) -> Iterator[None]:
    """Let errors of the system name the page, and no file that only segproof knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(out)) from None


def _umask() -> int:
    """Return the mask that the system gives to new files; asking sets it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
