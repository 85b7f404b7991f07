# SPDX-License-Identifier: Apache-2.0
"""The verb `rebuild`: make the index files of a partition new from its logs.

Used by: cli.
"""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    check_readable,
    complain,
    cores,
    known_profile,
    plural,
    progress,
    reason_of,
    refuse,
    summarise,
    write_row,
)

if TYPE_CHECKING:
    from segproof.rebuilding.running import Rebuilt


def command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of one partition.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR2",
            help="A new or empty directory, which gets everything that belongs to the partition.",
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace the index files in DIR itself.")
    ] = False,
    index_interval_bytes: Annotated[
        int | None,
        typer.Option(
            "--index-interval-bytes",
            min=0,
            max=2**31 - 1,
            help="index.interval.bytes. Default: what gives exactly the entries of the old index; "
            "without a sound one 4096.",
        ),
    ] = None,
    max_index_bytes: Annotated[
        int,
        typer.Option(
            "--max-index-bytes",
            min=24,
            max=2**31 - 1,
            help="segment.index.bytes: an index that needs more is refused.",
        ),
    ] = 10485760,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="Write what a recovery of this release writes: up to kafka-1.1.1 an entry has the "
            "first offset of its batch, later the last one. Default: the newest release.",
        ),
    ] = None,
    cut_tail: Annotated[
        bool,
        typer.Option(
            "--cut-tail",
            help="With --out: leave out what follows the last valid batch of the last log.",
        ),
    ] = False,
    copy: Annotated[
        bool, typer.Option("--copy", help="With --out: copy the logs, don't link them.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="Processes at a time. Default: one per core."),
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Make the index files of a partition new from its logs.

    The entries are those that Kafka's own recovery of each segment gives. Which batches one append
    brought is not in a log, so each batch may get an entry, as in every release's recovery. A
    transaction index needs to know what was open at the segment's beginning: that says the producer
    snapshot of this offset, or, without a sound one, the logs before it.

    Several intervals can give exactly the entries of an old index: 4096 is taken if it is one of
    them, else the largest power of two, else the smallest. A segment without a sound index gets the
    interval of the others.

    --out never writes in DIR. Logs, snapshots and checkpoints become hard links, so DIR2 takes no
    room, but a broker that is started on DIR2 then appends to the last log of DIR too: give --copy
    where both shall live. Files that a broker would not read are left out and named.

    --in-place is for a broker that is stopped; it holds the lock of the data directory meanwhile.
    Logs are never changed. Each new index is written beside the old one, as X.rebuilt.deleted, and
    made durable; when all are, they are renamed over the old ones. After a crash at any moment each
    name has its old file or its new one, whole; a broker removes at its start what ends with
    .deleted; and the same command again completes the work.

    A log with something else than valid batches in it stops the rebuild: a finding says where, and
    nothing is written.

    Exit code 1 for findings, 2 where a broker is at work in DIR or DIR2 can't be used.

    \b
    Examples:
      segproof rebuild my-topic-0 --out rebuilt/my-topic-0
      segproof rebuild my-topic-0 --out rebuilt/my-topic-0 --index-interval-bytes 1024
      segproof rebuild /var/lib/kafka/data/my-topic-0 --in-place
    """
    if (out is None) != in_place:
        refuse("give either --out DIR2 or --in-place")
    if in_place and (cut_tail or copy):
        refuse("--cut-tail and --copy need --out: in place no log is cut or copied")
    index_key = _index_key(profile)
    check_readable(directory)
    from segproof.errors import SegproofError
    from segproof.rebuilding.running import rebuild

    started = time.monotonic()
    try:
        with progress("rebuild") as show:
            rebuilt = rebuild(
                directory,
                out,
                in_place=in_place,
                index_interval_bytes=index_interval_bytes,
                max_index_bytes=max_index_bytes,
                index_key=index_key,
                cut_tail=cut_tail,
                copy=copy,
                jobs=jobs or cores(),
                on_progress=show,
            )
    except SegproofError as error:
        refuse(str(error))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        refuse(reason_of(error))
    _write(rebuilt, output_format, time.monotonic() - started)
    if rebuilt.findings:
        raise typer.Exit(EXIT_FINDINGS)


def _index_key(profile: str | None) -> Literal["last_offset", "first_offset"]:
    release = known_profile(profile)
    if release is not None and release.index_key == "first_offset":
        return "first_offset"
    return "last_offset"


def _write(rebuilt: "Rebuilt", output_format: Format, seconds: float) -> None:
    from segproof_harness.report import write_jsonl, write_text

    for file in rebuilt.files:
        row = {
            "path": file.path,
            "entries": file.entries,
            "old_entries": file.old_entries,
            "changed": file.changed,
            "index_interval_bytes": file.index_interval_bytes,
            "interval_from": file.interval_from,
        }
        write_row(row, output_format)
    write = write_jsonl if output_format is Format.JSONL else write_text
    for finding in rebuilt.findings:
        write(finding.to_json(), sys.stdout)
    sys.stdout.flush()
    for left_out in rebuilt.left_out:
        complain(f"left out: {left_out}")
    if rebuilt.cut_bytes:
        complain(f"left out: the last {rebuilt.cut_bytes} bytes of the last log")
    if rebuilt.findings:
        summarise(f"nothing was written: {plural(len(rebuilt.findings), 'error')}")
        return
    changed = sum(file.changed for file in rebuilt.files)
    summarise(
        f"{plural(len(rebuilt.files), 'index file')} rebuilt, {changed} of them changed, "
        f"in {seconds:.1f} s"
    )
