# SPDX-License-Identifier: Apache-2.0
"""The verb `rebuild`: make the index files of a partition new from its logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from segproof_harness.cli.common import (
    Format,
    FormatOption,
    HashSlotsOption,
    JobsOption,
    check_profile_of,
    check_readable,
    cores,
    known_profile,
    refuse,
)
from segproof_harness.cli.rebuild_store import FIELDS as STORE_FIELDS
from segproof_harness.cli.rebuild_store import (
    IndexNumOption,
    StoreRebuild,
    is_store,
    rebuild_store,
    write_rebuilt,
)

if TYPE_CHECKING:
    from segproof.rebuilding.partition_rebuild import Rebuilt

INT32_MAX = 2**31 - 1
FIELDS = (*STORE_FIELDS, "index_interval_bytes", "interval_from", "law", "why")
"""What is told of each file."""

OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR2",
        help="A new or empty directory, which gets everything that belongs to the partition.",
    ),
]
IntervalOption = Annotated[
    int | None,
    typer.Option(
        "--index-interval-bytes",
        min=0,
        max=INT32_MAX,
        help="index.interval.bytes, for all files (as with --all). Default: a number that gives "
        "exactly the entries of the old index: 4096 if it fits, else the largest power of two "
        "that fits, else the smallest "
        "number. A segment without a sound index takes the number of the others; without "
        "any, 4096.",
    ),
]
RoomOption = Annotated[
    int,
    typer.Option(
        "--max-index-bytes",
        min=24,
        max=INT32_MAX,
        help="segment.index.bytes: if an index needs more, no file is written.",
    ),
]
ReleaseOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Write the entries of this release's recovery, to all files (as with --all): up to "
        "kafka-1.1.1 an entry has the first offset of its batch, later the last one. "
        "Default: the newest release. In all releases each batch may get an entry, since a log "
        "does not show which batches came in one append.",
    ),
]
CutOption = Annotated[
    bool,
    typer.Option(
        "--cut-tail",
        help="With --out: leave out what follows the last valid batch of the last log.",
    ),
]
InPlaceOption = Annotated[
    bool, typer.Option("--in-place", help="Replace the index files in DIR itself.")
]
AllOption = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Make every index file new. Default: only those that verify finds wrong, and missing"
        " ones; the others stay byte for byte.",
    ),
]
DryOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Write nothing: say which files would change, with their entries before and after,"
        " and why.",
    ),
]
CopyOption = Annotated[
    bool, typer.Option("--copy", help="With --out: copy the logs, don't link them.")
]


def command(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The directory of one partition, or a RocketMQ store."),
    ],
    out: OutOption = None,
    in_place: InPlaceOption = False,
    dry_run: DryOption = False,
    all_files: AllOption = False,
    index_interval_bytes: IntervalOption = None,
    max_index_bytes: RoomOption = 10485760,
    hash_slots: HashSlotsOption = None,
    index_num: IndexNumOption = None,
    profile: ReleaseOption = None,
    cut_tail: CutOption = False,
    copy: CopyOption = False,
    jobs: JobsOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Rebuild wrong index files of a partition, or those of a RocketMQ store, from the logs.

    An index file that verify finds sound stays byte for byte. The others, and missing ones, get the
    entries of Kafka's own recovery of the segment. A log with anything but valid batches is a
    finding, and no file is written.

    --out leaves DIR as it is. Logs, snapshots and checkpoints become hard links, so a broker on
    DIR2 appends to the last log of DIR too: give --copy to keep both.

    --in-place needs a broker that is stopped, and holds the lock of the data directory. Logs stay
    as they are. After a crash at any moment each name has its whole old file or its whole new file,
    and the same command completes the work.

    In a store of RocketMQ the index files are rebuilt from the commit log. DIR2 gets index files
    only. The old files say the number of slots and entries, and whether tags are indexed (from
    5.4.0 on) and the header counts puts (up to 4.7.0), unless --profile says it.

    Exit code 1 for findings, 2 if a broker works in DIR or DIR2 can't be used.

    \b
    Examples:
      segproof rebuild my-topic-0 --dry-run
      segproof rebuild my-topic-0 --out rebuilt/my-topic-0
      segproof rebuild /var/lib/kafka/data/my-topic-0 --in-place
      segproof rebuild /home/rocketmq/store --out new-index
    """
    _check_target(out, in_place or (dry_run and out is None), cut_tail or copy)
    check_readable(directory)
    if is_store(directory):
        if index_interval_bytes is not None or copy:
            refuse("--index-interval-bytes and --copy are for partitions of Kafka")
        asked = StoreRebuild(
            directory, out, hash_slots, index_num, cut_tail, known_profile(profile), dry_run
        )
        rebuild_store(asked, output_format)
        return
    _check_no_store(directory, hash_slots, index_num)
    _rebuild_partition(
        directory,
        out,
        output_format,
        in_place=in_place,
        dry_run=dry_run,
        all_files=all_files or profile is not None,
        index_interval_bytes=index_interval_bytes,
        max_index_bytes=max_index_bytes,
        index_key=_index_key(profile),
        cut_tail=cut_tail,
        copy=copy,
        jobs=jobs or cores(),
    )


def _check_target(out: Path | None, in_place: bool, changes_logs: bool) -> None:
    """Refuse options that do not go together."""
    if (out is None) != in_place:
        refuse("give either --out DIR2 or --in-place")
    if in_place and changes_logs:
        refuse("--cut-tail and --copy need --out: in place no log is cut or copied")


def _check_no_store(directory: Path, *of_stores: int | None) -> None:
    """Refuse options for stores."""
    if of_stores != (None, None):
        refuse(f"{directory}: no store of RocketMQ, and --hash-slots and --index-num are for these")


def _rebuild_partition(
    directory: Path, out: Path | None, output_format: Format, **asked: Any
) -> None:
    from segproof.rebuilding.partition_rebuild import rebuild

    write_rebuilt(
        lambda show: rebuild(directory, out, on_progress=show, **asked),
        FIELDS,
        _left_out,
        _kept,
        output_format,
        is_dry=asked["dry_run"],
    )


def _index_key(profile: str | None) -> Literal["last_offset", "first_offset"]:
    release = known_profile(profile)
    check_profile_of(release, "kafka")
    from segproof_model.kafka.format.log_segment_releases_before_2 import FirstOffsetIsKey

    if release is not None and release.has(FirstOffsetIsKey):
        return "first_offset"
    return "last_offset"


def _kept(rebuilt: "Rebuilt") -> str:
    kept = sum(file.is_kept for file in rebuilt.files)
    return f", {kept} sound ones stay" if kept else ""


def _left_out(rebuilt: "Rebuilt") -> Iterator[str]:
    for left_out in rebuilt.left_out:
        yield f"left out: {left_out}"
    if rebuilt.cut_bytes:
        yield f"left out: the last {rebuilt.cut_bytes} bytes of the last log"
