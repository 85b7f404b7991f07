# SPDX-License-Identifier: Apache-2.0
"""The verb `dump`: what is in a file."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    HashSlotsOption,
    ProfileOption,
    check_profile_of,
    check_readable,
    complain,
    known_profile,
    refuse,
    refuse_part_of_store,
    refuse_unread,
)
from segproof_harness.cli.dump_options import (
    Asked,
    CsvCellsOption,
    DecoderOption,
    DumpFormatOption,
    FromOption,
    KeysOption,
    LimitOption,
    MaxOption,
    OnDamage,
    OnDamageOption,
    PathArgument,
    RecordsOption,
    ToOption,
    ValuesOption,
    chosen_decoder,
    encoders_of,
    range_of,
    text_columns,
)
from segproof_harness.cli.dump_output import CsvCells, DumpFormat, Output
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from segproof.errors import SegproofError
    from segproof.files import Files
    from segproof.reading.file_names import SegmentFile
    from segproof.reading.record_blocks import RecordBlock
    from segproof.reading.store_paths import Place, PlaceKind
    from segproof_harness.reading.log_file_rows import Piece
    from segproof_harness.reading.small_file_rows import SmallFile

    Row = dict[str, Any]
    Tell = Callable[[SegproofError], None]

WITH_TIMES = (".log", ".timeindex")
"""The files of Kafka's whose rows have times."""
TOLD_PLACES = 20
"""So many places with damage in one file are told one by one."""
ALL_SHOWN = "`--on-damage skip` and `--on-damage keep` show all rows, those that are here twice too"
WAY_OUT = "`--on-damage skip` leaves out what is damaged, `--on-damage keep` shows what can be read"


def command(
    path: PathArgument,
    records: RecordsOption = False,
    keys: KeysOption = None,
    values: ValuesOption = None,
    decoder: DecoderOption = None,
    begin: FromOption = None,
    end: ToOption = None,
    max_num: MaxOption = None,
    profile: ProfileOption = None,
    hash_slots: HashSlotsOption = None,
    limit_bytes: LimitOption = None,
    on_damage: OnDamageOption = OnDamage.FAIL,
    csv_cells: CsvCellsOption = CsvCells.GUARDED,
    output_format: DumpFormatOption = DumpFormat.TEXT,
) -> None:
    """Show what is in a file, line by line.

    Each entry, batch or record has one line. A RocketMQ index file begins with its header. The
    zeros at the end of an index that was never trimmed are left out; with --profile they are shown,
    as the release reads them. As text, times are ISO 8601 in UTC; in JSON they are milliseconds.
    With --profile a whole file is read into memory; the small files are shown without it.

    A dump has all rows, or ends with exit code 1: at a wrong checksum, at bytes that are no whole
    batch or entry, at entries behind a long hole of an index, at a record or batch that is too
    large, where a log has lost batches, as its indexes, a snapshot or a checkpoint show, has
    offsets twice, or a store lacks a file. With --on-damage skip or keep it goes on, with exit code
    1 too. A log that no broker reads is left out of a directory, and told if no other has its rows.

    --from and --to choose by offset: of Kafka's records, of the commit log, of the units of a
    consume queue. Or by time, with --records that of each record, else the largest timestamp of a
    batch. With --records a batch without a wanted record is left out. Of a directory, files without
    such offsets or times are left out.

    \b
    Examples:
      segproof dump my-topic-0/00000000000000000000.index
      segproof dump my-topic-0/00000000000000000000.log --records --values json
      segproof dump my-topic-0/00000000000000000000.log --records --from 4711 --max 10
      segproof dump my-topic-0 --from 2026-11-21T01:00Z --to 2026-11-21T01:05Z
      segproof dump __consumer_offsets-7/00000000000000000000.log --records
      segproof dump my-topic-0/00000000000000004711.snapshot
      segproof dump data/replication-offset-checkpoint --format jsonl
      segproof dump my-topic-0 --profile kafka-4.4.0
      segproof dump store/index/20261121011525910
    """
    release = known_profile(profile)
    name = os.fspath(path)
    bytes_asked = keys is not None or values is not None
    topic = chosen_decoder(path, decoder, bytes_asked=bytes_asked)
    encoders = encoders_of(keys or values, values, output_format, topic)
    wanted = range_of(begin, end, max_num)
    records = records or bytes_asked or decoder is not None
    texts = text_columns(keys or values, values, topic)
    asked = Asked(
        release, records, limit_bytes, hash_slots, output_format, encoders, wanted, texts,
        on_damage, csv_cells,
    )  # fmt: skip
    if (place := _place(path, name)) is not None:
        check_profile_of(release, "rocketmq")
        if decoder is not None:
            refuse("--decoder is for the internal topics of Kafka")
        sane = _dump_places(place, asked)
    else:
        if hash_slots is not None:
            refuse("--hash-slots is for index files of RocketMQ")
        check_profile_of(release, "kafka")
        sane = _dump_segments(path, asked)
    if not sane:
        raise typer.Exit(EXIT_FINDINGS)


def _dump_segments(path: Path, asked: Asked) -> bool:
    """Write the rows of a file of Kafka's, or of all in a directory; return whether all are read.

    Raises: OSError.
    """
    from segproof.commands import quoted_path
    from segproof.files import REAL_FILES
    from segproof.reading.directory_kinds import STRAY, holds_partitions
    from segproof.reading.file_names import segment_file
    from segproof.reading.packed_segments import with_unpacked
    from segproof.reading.store_paths import config_place_of
    from segproof_harness.reading.files_left_out import files_left_out
    from segproof_harness.reading.segment_file_rows import (
        logs_and_indexes,
        raft_snapshot,
        raft_snapshots,
        set_aside,
    )
    from segproof_harness.reading.small_file_rows import small_file, small_files

    name, unpacked = os.fspath(path), with_unpacked(REAL_FILES)
    if path.is_dir():
        files = [*logs_and_indexes(name, unpacked), *raft_snapshots(name)]
        small = small_files(name, unpacked)
        strays = files if holds_partitions(name, unpacked.list_directory(name), unpacked) else []
        if strays:
            complain(f"{strays[0].path}: {STRAY}; give the file itself, or one partition's folder")
            files = []
        left_out = [] if strays else [*files_left_out(name, _wanted_suffixes(asked), unpacked)]
        if not (files or small or left_out):
            refuse(
                f"{name}: no file of a partition in this directory; "
                "give the directory of one partition, such as TOPIC-0, or a store of RocketMQ"
            )
        sane = _dump_partition(files, small, asked, unpacked)
        for one in left_out:
            complain(str(one.error))
        return sane and not any(one.costs_rows for one in left_out) and not strays
    file, little = segment_file(name) or set_aside(name) or raft_snapshot(name), small_file(name)
    if file is None and little is None and config_place_of(name, REAL_FILES) is not None:
        refuse(
            f"{name}: a file of a broker's config is text (JSON): read it in an editor;"
            f" `segproof verify {quoted_path(name)}` says whether a broker can read it"
        )
    if file is None and little is None and path.exists():
        _refuse_unnamed(name)
        refuse(
            f"{name}: not the name of a file that dump knows; it must be OFFSET.log, "
            "OFFSET.index, OFFSET.timeindex, OFFSET.txnindex, OFFSET.snapshot, what a salvage "
            "has set aside (salvage-set-aside.TOPIC-N.log), the name of a "
            "checkpoint, or of RocketMQ the 17 digits of an index file or the 20 digits of a file "
            "of a log or queue"
        )
    if unpacked.status(name) is None:
        refuse(f"{name}: no such file or directory")
    check_readable(path)  # a path that can't be read is usage, not bad data
    if little is not None and asked.wanted.is_bounded:
        refuse(f"{name}: --from and --to are for logs, indexes and queues; --max is for this too")
    if file is not None and asked.wanted.has_times and file.suffix not in WITH_TIMES:
        refuse(f"{name}: its entries have no times: give offsets to --from and --to")
    with asked.output(in_directory=False) as output:
        if little is not None:
            return _dump_small_file(little, asked, output, unpacked, in_directory=False)
        assert file is not None
        return _dump_file(file, asked, output, unpacked, in_directory=False)


def _refuse_unnamed(name: str) -> None:
    """End where a file's content tells what its name does not."""
    from segproof.files import REAL_FILES
    from segproof.reading.file_contents import content_of
    from segproof.verifying.unnamed_files import steps_for

    content = content_of(name, REAL_FILES)
    if content is not None:
        refuse(
            f"{name}: its name does not say what it is; by its content it is {content.words};"
            f" {steps_for(content, name, REAL_FILES)}"
        )


def _dump_partition(
    files: "list[SegmentFile]", small: "list[SmallFile]", asked: Asked, unpacked: "Files"
) -> bool:
    """Write the rows of the files of a directory, as far as they have what is asked for."""
    suffixes = _wanted_suffixes(asked)
    files = [each for each in files if each.suffix in suffixes]
    if asked.wanted.is_bounded or asked.output_format.has_columns:
        small = []
    with asked.output(in_directory=True) as output:
        sane = [_dump_file(each, asked, output, unpacked, in_directory=True) for each in files]
        sane += [
            _dump_small_file(each, asked, output, unpacked, in_directory=True) for each in small
        ]
    return all(sane)


def _wanted_suffixes(asked: Asked) -> tuple[str, ...]:
    """Return the suffixes of the files of a segment that have what is asked for."""
    from segproof.reading.file_names import SEGMENT_SUFFIXES

    if asked.output_format.has_columns:
        return (".log",)
    return WITH_TIMES if asked.wanted.has_times else SEGMENT_SUFFIXES


def _place(path: Path, name: str) -> "Place | None":
    """Return what of RocketMQ's a path is, or None; refuse a part of a layout that is not read."""
    if not path.exists():
        return None
    check_readable(path)
    refuse_unread(path)
    from segproof.files import REAL_FILES
    from segproof.reading.store_paths import place_of

    return place_of(name, REAL_FILES)


def _dump_places(place: "Place", asked: Asked) -> bool:
    """Write the rows of a store or one file of it; return whether all could be read."""
    from segproof.reading.store_paths import PlaceKind
    from segproof_harness.reading.store_file_rows import files_of, next_files, store_rows

    def rows(one: "Place", tell: "Tell") -> "Iterator[Row]":
        return store_rows(
            one, asked.shown(tell), hash_slots=asked.hash_slots, following=behind.get(one.path)
        )

    if place.kind is PlaceKind.STORE:
        refuse_part_of_store(place.path)
    found = files_of(place)
    in_directory, behind = found != [place], next_files(found)
    suitable = [one for one in found if _has_wanted(one.kind, asked)]
    if not suitable and found and not in_directory:
        refuse(
            f"{place.path}: --from and --to with times are for files of the commit log, with"
            " offsets also for index files and consume queues"
        )
    if place.kind is PlaceKind.STORE and asked.output_format.has_columns:
        suitable = [one for one in suitable if one.kind is PlaceKind.LOG_FILE]
    with asked.output(in_directory=in_directory) as output:
        sane = [
            _dump(one.path, partial(rows, one), output, asked, in_directory=in_directory)
            for one in suitable
        ]
    return all(sane)


def _has_wanted(kind: "PlaceKind", asked: Asked) -> bool:
    """Return whether a file of RocketMQ's has offsets, or times, where they are bounded."""
    from segproof.reading.store_paths import PlaceKind

    if asked.wanted.has_times:
        return kind is PlaceKind.LOG_FILE
    return kind is not PlaceKind.CHECKPOINT or not asked.wanted.has_offsets


def _dump_file(
    file: "SegmentFile", asked: Asked, output: Output, files: "Files", *, in_directory: bool
) -> bool:
    """Write the rows of a file of Kafka's; return whether it could be read to its end."""
    from segproof_harness.reading import segment_file_rows as reading

    is_log = file.suffix == ".log"
    is_of_blocks = is_log and output.takes_blocks and asked.release is None

    def rows(tell: "Tell") -> "Iterator[Piece]":
        status = files.status(file.path)
        size = 0 if status is None else status.size_bytes
        reader = reading.log_reader(file, asked.wanted, files) if is_log else None
        read: Any = reading.blocks_of if is_of_blocks else reading.rows_of
        is_cut_short = yield from read(file, asked.shown(tell), files, reader)
        if is_cut_short:
            return
        if rest := reading.unread_bytes(file, asked.release, files, reader, size_before=size):
            complain(f"{file.path}: {rest}")

    return _dump(file.path, rows, output, asked, in_directory=in_directory, is_log=is_log)


def _dump_small_file(
    file: "SmallFile", asked: Asked, output: Output, files: "Files", *, in_directory: bool
) -> bool:
    """Write the rows of a snapshot, a checkpoint or another small file."""
    from segproof_harness.reading.small_file_rows import small_file_rows

    def rows(_: "Tell") -> "Iterator[Row]":
        return islice(small_file_rows(file, asked.limit, files), asked.wanted.most)

    return _dump(file.path, rows, output, asked, in_directory=in_directory)


def _dump(
    path: str,
    rows: "Callable[[Tell], Iterable[Piece]]",
    output: Output,
    asked: Asked,
    *,
    in_directory: bool,
    is_log: bool = False,
) -> bool:
    """Write the rows of one file; return whether all rows could be read, and none is damaged.

    Raises: typer.Exit at the first damage, if the dump is to fail.
    """
    from segproof.errors import SegproofError
    from segproof.reading.record_blocks import RecordBlock
    from segproof_harness.reading.log_file_rows import CUT_MEANWHILE

    word = "batch" if is_log else "message"
    told = _Damage(path, word, ends=asked.on_damage is OnDamage.FAIL)
    # Columns of records have no row of a batch: their rows say what the batch says.
    is_of_records = is_log and asked.records and asked.output_format.has_columns
    told.is_in_each_row = is_of_records
    output.begin(path)
    is_wrong = False
    try:
        for row in rows(told.tell):
            if isinstance(row, RecordBlock):
                output.block(row)
                told.take(row)
                continue
            is_record = is_log and "magic" not in row
            output.row(row, is_record=is_record)
            if not is_record:
                is_wrong = row.get("crc_valid") is False
            if is_wrong and is_record == is_of_records:
                told.wrong_checksums += 1
                is_wrong = False
    except SegproofError as error:
        if error.law == CUT_MEANWHILE:
            complain(f"{path}: it was cut while it was read, and ends here")
        else:
            told.tell(error)
    except OSError as error:
        if not in_directory:
            raise
        if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
            complain(f"{path}: it was removed while the directory was read")
        else:
            told.add(reason_of(error))
    return told.is_none_after_all()


class _Damage:
    """What was told of the damage of one file; with `ends` the dump ends at the first."""

    def __init__(self, path: str, word: str, *, ends: bool) -> None:
        self._path = path
        self._word = word
        """What has a checksum in it."""
        self._ends = ends
        self._places = 0
        self.wrong_checksums = 0
        """Batches or messages that are shown, although their checksums are wrong."""
        self.is_in_each_row = False
        """Whether each row of such a batch says so; else the one row of the batch."""
        self._last_wrong = -1

    def take(self, block: "RecordBlock") -> None:
        """Count the batches with a wrong checksum that a block shows; one may be in several."""
        for position in block.table["position"][~block.crc_valid & (block.counts > 0)].tolist():
            self.wrong_checksums += position != self._last_wrong
            self._last_wrong = position

    def tell(self, error: "SegproofError") -> None:
        """Tell what costs rows. Raises: typer.Exit, if the dump is to fail."""
        from segproof.verifying.log_offsets import TWICE

        text = str(error)
        text = text if self._path in text else f"{self._path}: {text}"
        self.add(text, ALL_SHOWN if error.law in TWICE else WAY_OUT)

    def add(self, text: str, way_out: str = WAY_OUT) -> None:
        """Tell damage in words. Raises: typer.Exit, if the dump is to fail."""
        self._places += 1
        if self._ends:
            complain(f"{text}; {way_out}")
            raise typer.Exit(EXIT_FINDINGS)
        if self._places <= TOLD_PLACES:
            complain(text)

    def is_none_after_all(self) -> bool:
        """Tell what was only counted so far; return whether there was no damage."""
        from segproof.counts import plural

        if self._places > TOLD_PLACES:
            more = plural(self._places - TOLD_PLACES, "more place")
            complain(f"{self._path}: {more} with damage in this file")
        if self.wrong_checksums:
            shown = plural(self.wrong_checksums, self._word, "is", "are")
            is_one = self.wrong_checksums == 1
            where = "its row" if is_one else "the row of each"
            if self.is_in_each_row:
                where = f"each row of {'it' if is_one else 'them'}"
            complain(
                f"{self._path}: {shown} shown with a wrong checksum: crc_valid is false in {where}"
            )
        return not (self._places or self.wrong_checksums)
