# SPDX-License-Identifier: Apache-2.0
"""The verb `salvage` on a store of RocketMQ."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof.hints import reads
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    progress,
    refuse,
    suggest,
    summarise,
)
from segproof_harness.cli.rebuild_store import guess_words
from segproof_harness.cli.salvage_output import (
    GAPS_SHOWN,
    TO_SERVE,
    gap_lines,
    telling_what_is_incomplete,
    write_saved,
)
from segproof_harness.reports.text import printable

if TYPE_CHECKING:
    from segproof.salvaging.store_salvage import SalvagedStore, StoreGap

MappedFileSizeOption = Annotated[
    int | None,
    typer.Option(
        "--mapped-file-size",
        min=1,
        max=2**31 - 1,
        metavar="BYTES",
        help="For a store of RocketMQ: the length of each file of its log"
        " (mappedFileSizeCommitLog of the broker), old and new. Default: what most files have.",
    ),
]


OFFSET = "consumer offset"


def is_store(path: Path, *, with_records: bool) -> bool:
    """Return whether a store of RocketMQ is to be saved, and not partitions beside its folders.

    `with_records` asks for partitions, if there are any. Raises: OSError.
    """
    from segproof.files import REAL_FILES
    from segproof.reading.store_paths import (
        PlaceKind,
        has_partition,
        is_rather_kafkas,
        place_of,
    )

    name = os.fspath(path)
    place = place_of(name, REAL_FILES)
    if place is None or place.kind is not PlaceKind.STORE or is_rather_kafkas(name, REAL_FILES):
        return False
    return not (with_records and has_partition(name, REAL_FILES))


def save_store(
    path: Path,
    out: Path,
    hash_slots: int | None,
    index_num: int | None,
    mapped_file_size: int | None,
    output_format: Format,
) -> None:
    """Save a store, and write what was done; exit code 1 if anything was not kept."""
    from segproof.errors import SegproofError
    from segproof.repair import salvage_store

    started = time.monotonic()
    try:
        with telling_what_is_incomplete(out), progress("salvage") as show:
            told = salvage_store(
                path,
                out,
                hash_slot_num=hash_slots,
                index_num=index_num,
                mapped_file_size=mapped_file_size,
                on_progress=show,
            )
    except SegproofError as error:
        refuse(str(error))
    beside = {
        "lost_numbers": [lost._asdict() for lost in told.lost_numbers],
        "misnamed_files": [one._asdict() for one in told.misnamed_files],
        "offsets_beyond": [one._asdict() for one in told.offsets_beyond],
    }
    write_saved(told, _kept(told), _lines(told), output_format, beside)
    beyond = len(told.offsets_beyond)
    summarise(
        f"{plural(told.messages, 'message')} saved into {out}, with"
        f" {plural(told.gap_count, 'gap')}"
        f"{f', and {plural(beyond, OFFSET)} beyond the new queues' * bool(beyond)}"
        f"{', and perhaps without the end of the log' * told.is_end_lost},"
        f" in {time.monotonic() - started:.1f} s"
    )
    if told.target is None:
        summarise(f"  nothing was saved: there is no store in {out}, and the old one is as it was")
    else:
        suggest(reads("check what was saved"), "segproof", "verify", out)
        summarise(f"  {TO_SERVE}")
    if not told.is_whole:
        raise typer.Exit(EXIT_FINDINGS)


def _kept(told: "SalvagedStore") -> str:
    if told.target is None:
        return f"no sound message in {told.bytes_read} bytes"
    word = "everything" if told.is_whole else "part"
    if not told.is_whole and told.has_every_message and not told.left_out:
        word = "every message"
    return (
        f"{word} kept: {plural(told.messages, 'message')} of {told.bytes_kept} bytes, offsets"
        f" {told.first_offset} to {told.last_offset}, {plural(told.queues, 'queue')},"
        f" {plural(told.index_files, 'index file')} with {plural(told.index_entries, 'entry')}"
    )


def _lines(told: "SalvagedStore") -> Iterator[str]:
    """Yield what an operator must know beside."""
    from segproof.counts import QUEUES_TELL, lost_words
    from segproof.reading.joined_logs import ONE_LOG_FOLDER
    from segproof.rocketmq.commit_log import MAPPED_FILE_BYTES

    if told.target is not None:
        yield f"saved as: {told.target}, with log files of {told.mapped_file_size} bytes"
        if told.mapped_file_size != MAPPED_FILE_BYTES:
            yield (
                f"broker: it loads them with mappedFileSizeCommitLog={told.mapped_file_size} only"
                f" (default {MAPPED_FILE_BYTES}): set it before the broker starts"
            )
        if told.has_database_of_queues:
            yield (
                "broker: the new store has its queues as files, and the old one kept some in"
                " RocksDB: set storeType=default before the broker starts"
            )
        if told.log_folders:
            yield (
                f"broker: the files of the old log are links into {', '.join(told.log_folders)}:"
                f" {ONE_LOG_FOLDER}. Keep those folders until the new store is served"
            )
        if size := told.file_size_by_messages:
            yield (
                f"length: messages that were moved say that the log file had {size} bytes before"
                " some were put in or taken out: save again into another directory with"
                f" --mapped-file-size {size}"
            )
        yield guess_words(told) or (
            f"index: {told.hash_slot_num} slots and {told.index_num} entries in each file"
            f" ({told.geometry_from}); a broker needs maxHashSlotNum and maxIndexNum to be these"
        )
    if told.lost_messages is not None and (told.lost_messages or told.gap_count):
        known = told.lost_messages if told.is_lost_exact else None
        yield f"lost: {lost_words(known, told.lost_messages, 'message')}, {QUEUES_TELL}"
    elif told.gap_count and told.lost_messages is None:
        how = ", by the numbers of those around" if told.stand_ins else ""
        yield f"lost: {lost_words(None, told.stand_ins, 'message')}{how}; no old queue tells more"
    if told.is_end_lost:
        yield (
            "end: the log may have lost its end, with an unknown number of messages: what leads"
            " beyond it is left out below; look for its last files on a replica"
        )
    yield from gap_lines(told, lambda gap: _gap(gap, told.mapped_file_size))
    yield from _message_lines(told)
    yield from _number_lines(told)
    yield from _offset_lines(told)
    for lacks in told.config_lacks:
        yield f"config: {lacks}"
    for left_out in told.left_out:
        yield f"left out: {left_out}"


def _message_lines(told: "SalvagedStore") -> Iterator[str]:
    """Yield which messages are not as they were, or not where they were."""
    for one in told.misnamed_files:
        yield (
            f"names: {Path(one.path).name} holds the messages from offset {one.start} on, as they"
            " say themselves, and was read there"
        )
    if told.fillers:
        yield (
            f"fillers: {plural(told.fillers, 'message')} of an earlier salvage in place of lost"
            " ones, made new"
        )
    if told.moved_messages:
        yield (
            f"moved: {plural(told.moved_messages, 'message')} from another place to the offset that"
            f" {'it says' if told.moved_messages == 1 else 'they say'}"
        )
    if told.copied_messages:
        yield f"left out: {plural(told.copied_messages, 'copy')} of messages that are kept"
    if told.restored_messages:
        yield f"restored: {plural(told.restored_messages, 'message')} got the right offset back"
    if told.restored_times:
        yield (
            f"store times: {plural(told.restored_times, 'message')} with an impossible one got the"
            " likely one"
        )
    if told.misplaced_messages:
        yield (
            f"misplaced: {plural(told.misplaced_messages, 'message')} with a wrong offset, which"
            " nothing puts right: they are not in the new store, and stay in the old log"
        )
    if told.foreign_messages:
        yield (
            f"set aside: {plural(told.foreign_messages, 'message')} of another store: they are not"
            " in the new one, and stay in the old log"
        )
    if told.older_messages:
        yield (
            f"older: {plural(told.older_messages, 'message')} behind a gap, which an earlier"
            " recovery may have cut off"
        )


def _number_lines(told: "SalvagedStore") -> Iterator[str]:
    """Yield what is not as it was in the queues."""
    if told.stand_ins:
        yield (
            f"numbers without a message: {told.stand_ins} in the queues; consumers pass them over,"
            " or get the next message again"
        )
    for topic, queue, first, last in told.lost_numbers[:GAPS_SHOWN]:
        numbers = f"{first} to {last}" if first < last else f"{first}"
        yield f"  topic {printable(topic)}, queue {queue}: {numbers}"
    if len(told.lost_numbers) > GAPS_SHOWN:
        yield f"  {len(told.lost_numbers) - GAPS_SHOWN} more; --format jsonl tells them"
    if told.unqueued_messages:
        yield (
            f"in no queue: {plural(told.unqueued_messages, 'message')} whose number does not fit;"
            " keys find them"
        )


def _offset_lines(told: "SalvagedStore") -> Iterator[str]:
    """Yield the offsets of consumers beyond their queues, and what to do."""
    from segproof.reading.config_offsets import WRITE_OFFSET

    for one in told.offsets_beyond[:GAPS_SHOWN]:
        yield (
            f"offsets: {one.file}: byte {one.position}: {printable(one.words)} up to offset"
            f" {one.offset}, and the new queue ends at {one.end}: the next"
            f" {plural(one.offset - one.end, 'message')} there may be passed over"
        )
    if len(told.offsets_beyond) > GAPS_SHOWN:
        yield f"offsets: {len(told.offsets_beyond) - GAPS_SHOWN} more; --format jsonl tells them"
    if told.offsets_beyond:
        yield (
            f"offsets: the copies in {told.target}/config have them as they were, and so has"
            f" {told.directory}. Before a broker starts, for each of these offsets:"
            f" {WRITE_OFFSET.beside_copy}"
        )
        if broken := list(_broken_beside(told)):
            yield f"offsets: damaged files that may have the right ones: {', '.join(broken)}"


def _broken_beside(told: "SalvagedStore") -> Iterator[str]:
    """Yield the paths of the damaged files that were kept of those that have the told offsets."""
    from segproof.reading.config_file import BACKUP_SUFFIX, CONFIG
    from segproof.salvaging.store_extras import BROKEN_SUFFIX

    for name in sorted({one.file.removesuffix(BACKUP_SUFFIX) for one in told.offsets_beyond}):
        for end in ("", BACKUP_SUFFIX):
            path = Path(told.target or "", CONFIG, f"{name}{end}{BROKEN_SUFFIX}")
            if path.exists():
                yield str(path)


def _gap(gap: "StoreGap", file_bytes: int) -> str:
    """Return a gap in words; one that is whole files names the first of them."""
    from segproof.counts import lost_words, plural, verb

    count = ""
    if gap.messages is not None:
        known = gap.messages if gap.is_exact else None
        count = f", with {lost_words(known, gap.messages, 'message')}"
    files, rest = divmod(gap.size_bytes, file_bytes)
    if gap.kind == "missing" and not rest and gap.position and not gap.position % file_bytes:
        names = f"file {gap.offset:020d}" if files == 1 else f"{plural(files, 'file')} from"
        names += f" {gap.offset:020d} on" * (files > 1)
        return f"{names} {verb(files, 'is', 'are')} missing: {gap.size_bytes} bytes{count}"
    name = Path(gap.path).name
    return f"{name}: byte {gap.position}: {plural(gap.size_bytes, 'byte')} {gap.kind}{count}"
