# SPDX-License-Identifier: Apache-2.0
"""The verb `salvage`: save what is sound in damaged logs into a new directory."""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof.hints import reads, writes
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    HashSlotsOption,
    JobsOption,
    check_readable,
    cores,
    progress,
    refuse,
    suggest,
    summarise,
)
from segproof_harness.cli.rebuild_store import IndexNumOption
from segproof_harness.cli.salvage_output import (
    GAPS_SHOWN,
    PARTITION_TO_SERVE,
    TO_SERVE,
    gap_lines,
    telling_what_is_incomplete,
    write_saved,
)
from segproof_harness.cli.salvage_records import record_lines, write_records
from segproof_harness.cli.salvage_store import MappedFileSizeOption, is_store, save_store

if TYPE_CHECKING:
    from segproof.salvaging.salvage import Gap, SalvagedPartition

OutOption = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="A new or empty directory for what is saved, or one with other saved partitions.",
    ),
]

METADATA = "partition.metadata"
WITHOUT_ID = (
    f"no {METADATA}: releases below 2.8 have none. A broker with KRaft sets such a partition aside,"
    " and begins it again without its records: look for the file in lost+found, or write it, as the"
    ' page "Bring back a whole saved directory" says'
)
"""Of partitions whose old folder has no topic id, though nothing shows that it had one."""
NEEDED = writes(
    "the new directory has partitions only. Before a broker serves it as a whole, copy the identity"
    " of the old one, and read the page about a whole saved directory"
)


def command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A partition, a data directory of Kafka, or a store of RocketMQ."
        ),
    ],
    out: OutOption,
    records: Annotated[
        bool,
        typer.Option(
            "--records", help="Kafka: write the whole records of broken batches, by partition."
        ),
    ] = False,
    jobs: JobsOption = None,
    hash_slots: HashSlotsOption = None,
    index_num: IndexNumOption = None,
    mapped_file_size: MappedFileSizeOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Save every sound batch, or message, into a new directory, which a broker loads.

    Behind a damage the sound batches go on where an entry of the index leads to one, or where a
    header and its checksum say so. DIR gets for each partition the logs with these batches, with
    gaps as compaction leaves them, and indexes, leader epochs and producer snapshots that fit.
    PATH stays as it is. Blocks that its disk does not give cost only the batches in them.

    Base offset, size and magic of a batch are not under its checksum. A batch gets the right base
    offset back where exactly its offsets are missing, size and magic where its checksum proves it.
    Batches that fit nowhere go to DIR/salvage-set-aside.TOPIC-N.log, which no broker reads.

    A record inside a broken batch has no checksum of its own. With --records those that are whole
    go to DIR/salvage-records.TOPIC-N.jsonl, with the fields of `dump --records`. `evidence` says
    what speaks for each: `checksum`: that of its batch holds, with a size or one bit put back.
    `elsewhere`: it is framed whole, and damage is found outside of it and not right behind it.
    `unknown`: it is framed whole, and damage may reach into its content. Only `checksum` makes a
    record certain: nothing covers the other two.

    Of a store of RocketMQ every sound message is saved, at its own offset and number: DIR becomes
    a store with commit log, queues, index and checkpoint. Messages that say that they are rolled
    back fill the gaps; no consumer gets them.

    For each gap stdout tells the file, the bytes, and the offsets that are lost. Exit code 1 if
    anything was not kept.

    To serve what was saved: stop the broker, move its own directory of the partition, or its store,
    away, move DIR/TOPIC-N, or DIR, in its place, and start it.

    \b
    Examples:
      segproof salvage /var/lib/kafka/data --out /mnt/saved
      segproof salvage /var/lib/kafka/data/orders-0 --out saved --format jsonl
      segproof salvage /var/lib/kafka/data/orders-0 --out saved --records
      segproof salvage /root/store --out /mnt/saved-store
    """
    check_readable(path)
    if is_store(path, with_records=records):
        if records:
            refuse(f"{path}: a store of RocketMQ, and --records is for partitions of Kafka")
        save_store(path, out, hash_slots, index_num, mapped_file_size, output_format)
        return
    if (hash_slots, index_num, mapped_file_size) != (None, None, None):
        refuse(
            f"{path}: no store of RocketMQ, and --hash-slots, --index-num and --mapped-file-size"
            " are for these"
        )
    _save_partitions(path, out, jobs or cores(), output_format, with_records=records)


def _save_partitions(
    path: Path, out: Path, jobs: int, output_format: Format, *, with_records: bool
) -> None:
    """Save partitions, and write what was done; exit code 1 if anything was not kept."""
    from segproof.errors import SegproofError
    from segproof.repair import salvage

    # The new log of a partition keeps one file open for each segment while it is loaded.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    started = time.monotonic()
    partitions = lost = lacking = doubtful = refused = without_id = 0
    is_one = False
    try:
        with telling_what_is_incomplete(out), progress("salvage") as show:
            for told in salvage(path, out, jobs=jobs, on_progress=show):
                written = write_records(told, out) if with_records else {}
                lines = chain(_lines(told), record_lines(written) if written and told.gaps else ())
                write_saved(told, _kept(told), lines, output_format, written)
                is_saved = told.target is not None
                is_one = Path(told.directory) == path
                partitions += is_saved
                without_id += _lacks_id(told)
                refused += not is_saved
                doubtful += is_saved and told.has_all_files and bool(told.doubts)
                is_part = is_saved and not told.has_all_files
                lost += is_part and not _has_every_batch(told)
                lacking += is_part and _has_every_batch(told)
    except SegproofError as error:
        refuse(str(error))
    counts = {
        "with gaps": lost,
        "with every batch, and not all files": lacking,
        "with every batch, and more may be lost": doubtful,
    }
    of_them = "".join(
        f", {f'{number} of them ' if partitions > 1 else ''}{words}"
        for words, number in counts.items()
        if number
    )
    summarise(
        f"{plural(partitions, 'partition')} saved into {out}{of_them}"
        f"{f', {refused} not saved' * bool(refused)}, in {time.monotonic() - started:.1f} s"
    )
    if partitions:
        suggest(reads("check what was saved"), "segproof", "verify", out)
        _tell_what_is_missing(path, out)
        if without_id:
            summarise(f"  {plural(without_id, 'partition', 'has', 'have')} {WITHOUT_ID}")
        summarise(f"  {PARTITION_TO_SERVE if is_one else TO_SERVE}")
    if lost or lacking or doubtful or refused:
        raise typer.Exit(EXIT_FINDINGS)


def _tell_what_is_missing(path: Path, out: Path) -> None:
    """Write what a broker needs of the old data directory, if the new one is to take its place."""
    from segproof.files import REAL_FILES, LinkOutError
    from segproof.reading.file_names import BROKER_FILE
    from segproof.reading.node_ids import NODE_FILE_BYTES, broker_in

    identity = path / BROKER_FILE
    if not identity.is_file() or (out / BROKER_FILE).exists():
        return
    try:
        with closing(REAL_FILES.open(os.fspath(identity))) as file:
            found = broker_in(file.pread(NODE_FILE_BYTES, 0))
    except LinkOutError:
        target = os.path.realpath(identity)
        what = writes(f"{identity} is a link and was not read: look at {target}, and copy that one")
        suggest(what, "cp", "-L", identity, out)
        return
    except OSError as error:
        found = error.strerror or str(error)
    if isinstance(found, str):
        what = reads(f"no broker reads {identity} ({found}): see how it is made again, for {out}")
        suggest(what, "segproof", "verify", path, "--law", "DISK-54")
    else:
        suggest(NEEDED, "cp", "-a", identity, out)


def _lacks_id(told: "SalvagedPartition") -> bool:
    """Return whether a saved partition has no topic id, and nothing of the report says so."""
    if told.target is None or any(f"/{METADATA}: " in one for one in told.left_out):
        return False
    return not os.path.lexists(os.path.join(told.target, METADATA))


def _kept(told: "SalvagedPartition") -> str:
    if told.target is None:
        return f"no sound batch in {told.bytes_read} bytes" if told.bytes_read else "not saved"
    word = "everything" if told.is_whole else "part"
    if _has_every_batch(told) and (told.removed or not told.is_whole):
        word = "every batch"
    return (
        f"{word} kept: {told.bytes_kept} of {told.bytes_read} bytes,"
        f" {plural(told.batches, 'batch')}, {plural(told.records, 'record')},"
        f" offsets {told.first_offset} to {told.last_offset}"
    )


def _has_every_batch(told: "SalvagedPartition") -> bool:
    """Return whether the new logs have each byte of the old ones, and no log was left out."""
    from segproof.salvaging.salvaged_partition import SET_ASIDE_WHOLE

    is_read = not told.gap_count and not told.unreadable_bytes and not told.are_more_lost
    # Each line begins with a path: that of the topic's id is no log's.
    are_logs_there = all(
        "/partition.metadata: " in one or one.endswith(SET_ASIDE_WHOLE) for one in told.left_out
    )
    return is_read and are_logs_there and told.bytes_kept == told.bytes_read


def _lines(told: "SalvagedPartition") -> Iterator[str]:
    """Yield what an operator must know beside."""
    from segproof.counts import lost_words
    from segproof.reading.file_names import SET_ASIDE_FILE

    if told.target is not None:
        yield f"saved as: {told.target}"
    if told.lost_offsets or told.are_more_lost:
        known = None if told.are_more_lost else told.lost_offsets
        yield f"lost: {lost_words(known, told.lost_offsets, 'offset')}"
    if told.lost_offsets and told.lost_between_logs:
        yield (
            f"between logs: {plural(told.lost_between_logs, 'offset')}; unless all records have"
            " keys, verify reports them of the saved partition too (DISK-25), and ends with 1"
        )
    if told.unproven_offsets:
        yield (
            f"not known: {plural(told.unproven_offsets, 'offset', 'is', 'are')} in no batch:"
            " compaction took them, if the topic has it (cleanup.policy), or they are lost; compare"
            " with another replica"
        )
    for doubt in told.doubts:
        yield f"not known: {doubt}"
    shown = set[tuple[int, int]]()
    yield from gap_lines(told, lambda gap: _gap(gap, shown, are_more_lost=told.are_more_lost))
    if told.restored_batches:
        yield f"restored: {plural(told.restored_batches, 'batch')} with the right base offset"
    if told.restored_headers:
        yield f"restored: {plural(told.restored_headers, 'batch')} with the right size or magic"
    if told.moved_batches:
        yield f"moved: {plural(told.moved_batches, 'batch')} from a wrong place"
    if told.renamed_logs:
        yield f"renamed: {plural(told.renamed_logs, 'log')}, as the offsets of the batches say"
    if told.restored_epochs:
        yield f"restored: {plural(told.restored_epochs, 'batch')} with the right leader epoch"
    if told.set_aside_batches:
        name = SET_ASIDE_FILE.format(Path(told.directory).resolve().name)
        yield f"set aside: {plural(told.set_aside_batches, 'batch')}, in {name}"
    if told.open_transactions:
        yield (
            f"open: {plural(told.open_transactions, 'transaction')} without an end; read_committed"
            " consumers stop at the first until it is aborted (kafka-transactions.sh). That hides"
            " its records: if it may have been committed, read them with read_uncommitted before"
        )
    for lost in told.lost_markers[:GAPS_SHOWN]:
        yield f"transaction: {lost}"
    if len(told.lost_markers) > GAPS_SHOWN:
        yield f"transaction: {len(told.lost_markers) - GAPS_SHOWN} more; --format jsonl tells them"
    for removed in told.removed[:GAPS_SHOWN]:
        yield f"removed before: {removed}"
    if len(told.removed) > GAPS_SHOWN:
        yield f"removed before: {len(told.removed) - GAPS_SHOWN} more; --format jsonl tells them"
    for left_out in told.left_out:
        yield f"left out: {left_out}"


def _gap(gap: "Gap", shown: set[tuple[int, int]], *, are_more_lost: bool) -> str:
    """Return a gap in words. `shown` are the lost offsets of the gaps before: they count once.

    `are_more_lost`: of how many offsets the gaps cost, not all is known.
    """
    name = Path(gap.path).name
    place = f"{name}: byte {gap.position}: {plural(gap.size_bytes, 'byte')} {gap.kind}"
    if gap.kind == "missing":
        place = f"{name}: missing{f' from byte {gap.position} on' if gap.position else ''}"
    if gap.last_lost_offset is None:
        return f"{place}, with the offsets from {gap.first_lost_offset} on"
    if gap.last_lost_offset < gap.first_lost_offset:
        return f"{place}, no offset {'is missing here' if are_more_lost else 'lost'}"
    lost = gap.first_lost_offset, gap.last_lost_offset
    if lost in shown:
        return f"{place}, with the same offsets"
    shown.add(lost)
    return f"{place}, with the offsets {lost[0]} to {lost[1]}"
