# SPDX-License-Identifier: Apache-2.0
"""The verb `rebuild`: make wrong index files of partitions and stores new from their logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from segproof_harness.cli import candidates
from segproof_harness.cli.common import (
    Format,
    FormatOption,
    HashSlotsOption,
    JobsOption,
    check_profile_of,
    check_readable,
    cores,
    known_profile,
    progress,
    refuse,
    refuse_unread,
    words_of_call,
)
from segproof_harness.cli.rebuild_report import FIELDS, STORE_FIELDS, RebuildReport, Steps
from segproof_harness.cli.rebuild_store import (
    IndexNumOption,
    rebuild_store,
    store_left_out,
    store_words,
    stores_below,
)
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from segproof.rebuilding.partition_rebuild import Rebuilt
    from segproof.rebuilding.segment_build import Options
    from segproof_model.language.behaviours import Release

INT32_MAX = 2**31 - 1
ROOM_BYTES = 10485760
"""segment.index.bytes of a broker that is not told of another."""

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
        metavar="BYTES",
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
        metavar="BYTES",
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
        autocompletion=candidates.kafka_profiles,
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
        help="With --out: leave out a torn tail of the last log, if no sound batch follows it.",
    ),
]
InPlaceOption = Annotated[
    bool, typer.Option("--in-place", help="Replace the index files in DIR itself.")
]
BackupOption = Annotated[
    Path | None,
    typer.Option(
        "--backup",
        metavar="DIR3",
        help="With --in-place: keep each old file under its whole path below DIR3, which lies in no"
        " data directory.",
    ),
]
AllOption = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Make every index file new. Default: only those that verify finds wrong, and missing"
        " ones; the others stay byte for byte, without zeros at their end.",
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
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            help="Partitions, RocketMQ stores, or directories with them at any depth.",
        ),
    ],
    out: OutOption = None,
    in_place: InPlaceOption = False,
    dry_run: DryOption = False,
    backup: BackupOption = None,
    all_files: AllOption = False,
    index_interval_bytes: IntervalOption = None,
    max_index_bytes: RoomOption = ROOM_BYTES,
    hash_slots: HashSlotsOption = None,
    index_num: IndexNumOption = None,
    profile: ReleaseOption = None,
    cut_tail: CutOption = False,
    copy: CopyOption = False,
    jobs: JobsOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Rebuild wrong index files of partitions and RocketMQ stores from their logs.

    An index file that verify finds sound stays byte for byte, without zeros at its end (DISK-6).
    Others, and missing ones, get the entries of Kafka's own recovery. A partition whose log has
    anything but valid batches is a finding, and none of its files is written.

    --out leaves DIR as it is; partitions lie below DIR2 as below DIR. Logs, snapshots and
    checkpoints become hard links, so a broker on DIR2 appends to the last log of DIR too: give
    --copy to keep both.

    --in-place needs brokers that are stopped, and holds the locks of the data directories. Logs
    stay as they are. After a crash at any moment each name has its whole old file or its whole new
    file, and the same command completes the work. --backup keeps the old files.

    The index of a store is rebuilt whole, from the commit log, unless the store is sound. DIR2 gets
    index files only. The old files say the number of slots and entries, and whether tags are
    indexed (from 5.4.0 on) and the header counts puts (up to 4.7.0), unless --profile says it.

    Exit code 1 for findings, 2 if a broker works in DIR or DIR2 can't be used.

    \b
    Examples:
      segproof rebuild /var/lib/kafka/data --dry-run
      segproof rebuild /var/lib/kafka/data --in-place --backup /var/backups/indexes
      segproof rebuild my-topic-0 --out rebuilt/my-topic-0
      segproof rebuild /home/rocketmq/store --out new-index
    """
    from segproof.rebuilding.segment_build import Options

    _check_target(paths, out, in_place or (dry_run and out is None), cut_tail or copy, backup)
    stores = {path: stores_below(path) for path in paths}
    release = known_profile(profile)
    options = Options(
        in_place=in_place,
        index_interval_bytes=index_interval_bytes,
        max_index_bytes=max_index_bytes,
        index_key=_index_key(release),
        cut_tail=cut_tail,
        copy=copy,
        all_files=all_files or profile is not None,
        dry_run=dry_run,
        backup=None if backup is None else str(backup),
    )
    asked = _Asked(paths, stores, out, options, hash_slots, index_num, release, jobs or cores())
    to_write = _without_dry_run(context, out) if dry_run else []
    _rebuild(asked, RebuildReport(output_format, to_write))


def _without_dry_run(context: typer.Context, out: Path | None) -> list[object]:
    """Return the words of the same command without --dry-run: in place, if not into --out.

    In place it keeps the old files, also where the dry run named no place for them.
    """
    from segproof.reading.new_places import new_place

    replaced = {"dry_run": None, "in_place": out is None, "jobs": None, "output_format": None}
    if out is None and context.params["backup"] is None:
        kept = new_place("replaced", str(context.params["paths"][0]))
        return words_of_call(context, {**replaced, "backup": kept})
    return words_of_call(context, replaced)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is rebuilt, and how."""

    paths: list[Path]
    stores: dict[Path, list[str]]
    """The stores at or below each path."""
    out: Path | None
    options: "Options"
    hash_slots: int | None
    index_num: int | None
    release: "Release | None"
    jobs: int

    @property
    def of_kafka(self) -> list[Path]:
        """The paths that are no store themselves."""
        return [path for path in self.paths if str(path) not in self.stores[path]]

    def is_alone(self, path: str) -> bool:
        """Return whether this partition or store is all that was given."""
        return [path] == [str(one) for one in self.paths]


def _check_target(
    paths: list[Path], out: Path | None, in_place: bool, changes_logs: bool, backup: Path | None
) -> None:
    """Refuse options that do not go together, and paths that can't be read."""
    if (out is None) != in_place:
        refuse(
            "give either --out DIR2, a new directory, or --in-place, which replaces the "
            "index files in DIR; with --dry-run it writes neither"
        )
    if in_place and changes_logs:
        refuse("--cut-tail and --copy need --out: in place no log is cut or copied")
    if out is not None and backup is not None:
        refuse("--backup is for --in-place: --out leaves the old files as they are")
    if out is not None and len(paths) > 1:
        refuse("--out goes with one path")
    for path in paths:
        check_readable(path)
        refuse_unread(path)
        if not path.is_dir():
            refuse(f"{path}: not a directory")


def _check_options(asked: _Asked) -> None:
    """Refuse options for a system that is not there."""
    options, has_stores = asked.options, any(asked.stores.values())
    is_told = options.index_interval_bytes is not None or options.copy
    if is_told and not asked.of_kafka:
        refuse("--index-interval-bytes and --copy are for partitions of Kafka")
    if (asked.hash_slots, asked.index_num) != (None, None) and not has_stores:
        refuse(
            f"{asked.paths[0]}: no store of RocketMQ, and --hash-slots and --index-num are for"
            " these"
        )
    if not asked.of_kafka:
        check_profile_of(asked.release, "rocketmq")
    elif not has_stores:
        check_profile_of(asked.release, "kafka")


def _rebuild(asked: _Asked, report: RebuildReport) -> None:
    """Rebuild all partitions and stores at or below the paths, and write what was done."""
    from segproof.errors import SegproofError

    _check_options(asked)
    is_single = False
    try:
        with progress("rebuild") as show:
            steps = Steps(show)
            for path in chain(_partitions(asked, report, steps), _stores(asked, report, steps)):
                is_single = asked.is_alone(path)
    except SegproofError as error:
        refuse(str(error))
    if report.is_empty:
        refuse(
            f"{asked.paths[0]}: there is no log of a partition here, and no store: give the"
            " directory of one partition, such as TOPIC-0, a data directory, or a store"
        )
    report.finish(is_single=is_single)


def _partitions(asked: _Asked, report: RebuildReport, steps: Steps) -> Iterator[str]:
    """Rebuild the partitions; yield the path of each."""
    from segproof.repair import rebuild_all

    for told in rebuild_all(
        asked.of_kafka, asked.out, asked.options, jobs=asked.jobs, on_progress=steps.show
    ):
        is_alone = asked.is_alone(told.path)
        if told.error is None:
            lines = _left_out(told.done)
            report.add(told.kind, told.done, FIELDS, lines, is_alone=is_alone)
        elif is_alone:
            refuse(told.error)
        else:
            report.fail("partition", told.path, told.error)
        yield told.path


def _stores(asked: _Asked, report: RebuildReport, steps: Steps) -> Iterator[str]:
    """Rebuild the indexes of the stores; yield the path of each."""
    from segproof.errors import SegproofError

    for path, store in ((path, one) for path, found in asked.stores.items() for one in found):
        steps.begin()
        out = None if asked.out is None else asked.out / Path(store).relative_to(path)
        target = None if out is None else str(out)
        given = (asked.hash_slots, asked.index_num)
        try:
            done = rebuild_store(store, target, asked.options, given, asked.release, steps.show)
        except (SegproofError, OSError) as error:
            if asked.is_alone(store):
                raise
            report.fail("store", store, reason_of(error))
        else:
            lines, words = store_left_out(done, dry_run=asked.options.dry_run), store_words(done)
            report.add("store", done, STORE_FIELDS, lines, words, is_alone=asked.is_alone(store))
        yield store


def _index_key(release: "Release | None") -> Literal["last_offset", "first_offset"]:
    from segproof_model.kafka.format.log_segment_releases_before_2 import FirstOffsetIsKey

    if release is not None and release.has(FirstOffsetIsKey):
        return "first_offset"
    return "last_offset"


def _left_out(rebuilt: "Rebuilt") -> Iterator[str]:
    for left_out in rebuilt.left_out:
        yield f"left out: {left_out}"
    if rebuilt.cut_bytes:
        yield f"left out: the last {rebuilt.cut_bytes} bytes of the last log"
