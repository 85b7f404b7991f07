# SPDX-License-Identifier: Apache-2.0
"""The verb `dump`: what is in a file.

Used by: cli.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    HashSlotsOption,
    ProfileOption,
    check_profile_of,
    check_readable,
    complain,
    known_profile,
    reason_of,
    refuse,
    write_line,
    write_row,
)

if TYPE_CHECKING:
    from segproof.verifying.rocketmq.places import Place
    from segproof_harness.reading.rows import SegmentFile
    from segproof_model.profiles import Profile

CUT_MEANWHILE = "SCAN-7"
"""The law that a log breaks which became shorter since it was opened."""


def command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A .index, .timeindex, .txnindex or .log file, or a directory of them; a RocketMQ "
            "index file, commit-log or consume-queue file, checkpoint, or a store.",
        ),
    ],
    records: Annotated[
        bool, typer.Option("--records", help="Show the records of each batch of a log too.")
    ] = False,
    profile: ProfileOption = None,
    hash_slots: HashSlotsOption = None,
    limit_bytes: Annotated[
        int | None,
        typer.Option(
            "--limit-bytes",
            min=1,
            help="Bytes a record may have, and a batch have and inflate to, to be shown by "
            "--records. Default: 8 MiB a record, and of a batch as for verify --deep; with "
            "--profile 3 MiB of either.",
        ),
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Show what is in a file, line by line.

    There is one line for each entry, batch or record. Of a RocketMQ index file the header comes
    first. The zeros at the end of an index that was never trimmed are not shown; with --profile
    they are, as the release reads them. Keys, values and header values are base64. A record or
    batch that is too large is named on stderr and left out. With --profile a whole file is read
    into memory.

    \b
    Examples:
      segproof dump my-topic-0/00000000000000000000.index
      segproof dump my-topic-0/00000000000000000000.log --records --format jsonl
      segproof dump my-topic-0 --profile kafka-4.4.0
      segproof dump store/index/20261121011525910
    """
    release = known_profile(profile)
    name = os.fspath(path)
    try:
        if (place := _place(path, name)) is not None:
            check_profile_of(release, "rocketmq")
            asked = Asked(release, records, limit_bytes, hash_slots, output_format)
            sane = _dump_places(place, asked)
        else:
            if hash_slots is not None:
                refuse("--hash-slots is for index files of RocketMQ")
            check_profile_of(release, "kafka")
            asked = Asked(release, records, limit_bytes, None, output_format)
            sane = _dump_segments(path, asked)
    except OSError as error:
        refuse(reason_of(error))
    if not sane:
        raise typer.Exit(EXIT_FINDINGS)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is shown, and how."""

    profile: "Profile | None"
    records: bool
    limit: int | None
    hash_slots: int | None
    output_format: Format


def _dump_segments(path: Path, asked: Asked) -> bool:
    """Write the rows of a file of Kafka's, or of all in a directory; return whether all are read.

    Raises: OSError.
    """
    from segproof_harness.reading.rows import segment_file, segment_files

    name = os.fspath(path)
    if path.is_dir():
        files = list(segment_files(name))
        if not files:
            refuse(
                f"{name}: no log or index file in this directory; "
                "give the directory of one partition, such as TOPIC-0, or a store of RocketMQ"
            )
        sane = [_dump(each, asked, in_directory=True) for each in files]
        return all(sane)
    file = segment_file(name)
    if file is None and path.exists():
        refuse(
            f"{name}: not the name of a log or an index; it must be OFFSET.log, "
            "OFFSET.index, OFFSET.timeindex or OFFSET.txnindex, or of RocketMQ the 17 digits of an "
            "index file or the 20 digits of a file of a log or queue"
        )
    if file is None:
        refuse(f"{name}: no such file or directory")
    check_readable(path)  # a path that can't be read is usage, not bad data
    return _dump(file, asked, in_directory=False)


def _place(path: Path, name: str) -> "Place | None":
    """Return what of RocketMQ's a path is, or None."""
    if not path.exists():
        return None
    check_readable(path)
    from segproof.files import REAL_FILES
    from segproof.verifying.rocketmq.places import place_of

    return place_of(name, REAL_FILES)


def _dump_places(place: "Place", asked: Asked) -> bool:
    """Write the rows of a store or one file of it; return whether all could be read."""
    from segproof.errors import SegproofError
    from segproof_harness.reading.store_rows import files_of, store_rows

    found = files_of(place)
    in_directory = found != [place]
    sane = True

    def tell(error: SegproofError) -> None:
        nonlocal sane
        complain(str(error))
        sane = False

    for one in found:
        if asked.output_format is Format.TEXT:
            write_line(f"# {one.path}")
        rows = store_rows(
            one,
            profile=asked.profile,
            with_records=asked.records,
            hash_slots=asked.hash_slots,
            limit=asked.limit,
            on_large=tell,
        )
        try:
            for row in rows:
                is_shown = in_directory and asked.output_format is Format.JSONL
                write_row({"path": one.path, **row} if is_shown else row, asked.output_format)
        except SegproofError as error:
            complain(str(error) if one.path in str(error) else f"{one.path}: {error}")
            sane = False
        except OSError as error:
            if not in_directory:
                raise
            complain(reason_of(error))
            sane = False
    return sane


def _dump(file: "SegmentFile", asked: Asked, *, in_directory: bool) -> bool:
    """Write the rows of one file; return whether it could be read to its end."""
    from segproof.errors import SegproofError
    from segproof_harness.reading.rows import rows_of

    is_whole = True

    def tell(error: SegproofError) -> None:
        nonlocal is_whole
        complain(str(error) if file.path in str(error) else f"{file.path}: {error}")
        is_whole = False

    if asked.output_format is Format.TEXT:
        write_line(f"# {file.path}")
    rows = rows_of(
        file,
        profile=asked.profile,
        with_records=asked.records,
        limit=asked.limit,
        on_large=tell,
    )
    try:
        for row in rows:
            is_record = file.suffix == ".log" and "magic" not in row
            shown = {"path": file.path, **row} if in_directory else row
            if asked.output_format is Format.TEXT:
                shown = row
            write_row(shown, asked.output_format, prefix="| " if is_record else "")
        _tell_rest(file, asked.profile)
    except SegproofError as error:
        if error.law == CUT_MEANWHILE:
            complain(f"{file.path}: it was cut while it was read, and ends here")
            return is_whole
        tell(error)
    except OSError as error:
        if not in_directory:
            raise
        if isinstance(error, FileNotFoundError) and not os.path.lexists(file.path):
            complain(f"{file.path}: it was removed while the directory was read")
            return True
        complain(reason_of(error))
        return False
    return is_whole


def _tell_rest(file: "SegmentFile", profile: "Profile | None") -> None:
    """Say on stderr what bytes at the end of the file were not shown."""
    from segproof_harness.reading.rows import unread_bytes

    rest = unread_bytes(file, profile)
    if rest:
        complain(f"{file.path}: {rest}")
