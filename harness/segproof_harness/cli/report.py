# SPDX-License-Identifier: Apache-2.0
"""The verb `report`: what `verify` finds, as one HTML page."""

import os
import stat
import tempfile
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
    Told,
    judge,
    known_laws,
    rules,
)


def command(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Files, partition directories, whole data directories, stores."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The page to write; it replaces an older page of segproof.",
        ),
    ],
    deep: DeepOption = False,
    jobs: JobsOption = None,
    law: LawsOption = None,
    position: PositionOption = None,
    limit_bytes: LimitOption = None,
    hash_slots: HashSlotsOption = None,
    segment_index_bytes: IndexBytesOption = None,
    fail_on: FailOnOption = FailOn.WARNING,
    no_notes: NoNotesOption = False,
    no_ignore: NoIgnoreOption = False,
) -> None:
    """Verify files, and write what was found as one HTML page to read, print and pass on.

    The page has the verdicts, the worst first. For each cause it tells what is wrong and where, the
    law, what consumers see, what to do, commands that can be pasted, a map of the damaged file, the
    bytes at the first place, and what a broker's recovery keeps and deletes.

    FILE is a single file below 500 KB; no browser needs a network or a script for it. What has no
    room is counted. A damaged log is read twice. Memory and exit codes are those of verify.

    FILE must not lie in or beside PATH, which is only read.

    \b
    Examples:
      segproof report /var/lib/kafka/data --out report.html
      segproof report /var/lib/kafka/data/orders-0 --deep --out orders-0.html
      segproof report /home/rocketmq/store --no-notes --out store.html
    """
    laws = known_laws(law)
    ignored = configuration.ignored_findings(context, no_ignore=no_ignore)
    # A page is read elsewhere: its commands name whole paths.
    paths = [Path(os.path.abspath(path)) for path in paths]
    for path in paths:
        check_readable(path)
        _check_apart(path, out)
    asked = Asked(paths, deep, jobs or cores(), laws, position, limit_bytes, hash_slots,
                  segment_index_bytes)  # fmt: skip
    from segproof_harness.reports.page import Made, PageReport

    replaced = {"paths": paths, "out": os.path.abspath(out), "jobs": None,
                "law": sorted(asked.laws or ())}  # fmt: skip
    made = Made(
        release(),
        command_line(*words_of_call(context, replaced)),
        datetime.now(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC"),
        asked.restriction,
        deep,
    )
    with _new_page(out) as write:
        judge(asked, Told(PageReport(write, rules(), made), None, no_notes), ignored, fail_on)


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
    try:
        descriptor, part = tempfile.mkstemp(".part", f".{out.name[:100]}.", out.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(out)) from None

    def write(page: str) -> None:
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


def _umask() -> int:
    """Return the mask that the system gives to new files; asking sets it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
