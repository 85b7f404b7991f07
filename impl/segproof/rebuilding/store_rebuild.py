# SPDX-License-Identifier: Apache-2.0
"""Rebuilding the index of a RocketMQ store from its commit log: into a new directory, or in place.

The new files are those of an empty service that was told of every message in order, and of the
likely store time of those that say an impossible one. They are built
in a working directory beside their place, made durable, and renamed when all of them are. In place
each name so has its old file whole or its new one whole, and a second run completes what the first
one left; a broker passes the working directory by. Where the new files have other names, a run that
was killed between two of them leaves old ones beside new ones: then an entry may be found twice.

Upstream: RocketMQ 5.5.1: IndexService.buildIndex, DefaultMessageStore.lockFile.
Laws: RMQLOG-5 to RMQLOG-7, RMQIDX-24, RMQSVC-6, RMQSVC-11 to RMQSVC-16.
Not covered: the checkpoint of the store, which stays as it is.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from typing import Final, Literal

import numpy as np

from segproof.errors import InvalidArgumentError
from segproof.files import Files, FileStatus, SharedFiles, first_byte_of
from segproof.findings import Finding, Severity
from segproof.hints import writes
from segproof.integers import INT64_MAX
from segproof.inventory.stores import size_of
from segproof.layouts.rocketmq import INDEX_HEADER
from segproof.processes import Meter, Progress
from segproof.reading.commit_log_damage import DamagedLog
from segproof.reading.equal_files import is_as_long, is_same
from segproof.reading.index_times import IndexTimes, with_likely_times
from segproof.reading.store_layouts import check_layout, no_log_in
from segproof.reading.store_paths import GUESS_FILE, Place, PlaceKind
from segproof.reading.store_reach import MISSING_OFFSETS_MIN, Stretch, ends_of, reach_of
from segproof.reading.unfinished import MARKER, unfinished_store
from segproof.rebuilding.dry_files import DryFiles
from segproof.rebuilding.kept_files import backup_of, check_backup
from segproof.rebuilding.safe_places import (
    check_apart,
    check_finished,
    check_outside,
    log_changed,
)
from segproof.rebuilding.store_findings import (
    NO_MESSAGE,
    SAVE_STORE,
    finding_at,
    holes,
    in_the_way,
    is_of_another_log,
    law_at,
    law_of_another_log,
    misnamed,
    misplaced,
    of_another_log,
)
from segproof.rebuilding.store_geometry import (
    NewGeometry,
    forget_guess,
    index_of_this_log,
    keep_guess,
    old_index_names,
)
from segproof.rebuilding.store_releases import counts_puts_in_old_index, tags_in_old_index
from segproof.rebuilding.store_targets import Built, IndexInPlace, NewIndexDirectory
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog
from segproof.rocketmq.index_header import IndexHeader
from segproof.rocketmq.index_service import CHECKPOINT, INDEX, IndexService, index_file_name
from segproof.rocketmq.index_table import Geometry
from segproof.stretches.rocketmq.message_blocks import LogReader, MessageBlock
from segproof.wording.reporting import Wanted

__all__ = ["RebuiltIndex", "RebuiltIndexFile"]

BUILT_FROM_MS: Final = 946_684_800_000
"""The time that names the first file while it is built: 2000-01-01."""
NAMED_MS_MAX: Final = 253_402_127_999_999
"""The end of 30 December 9999: later times are no names in every zone."""
CheckPlace = Callable[[Place, Wanted, Files, Callable[[int], None]], Iterator[Finding]]
"""Yields what `verify` finds at a place, and says how many bytes it has read."""


@dataclass(frozen=True, slots=True)
class RebuiltIndexFile:
    """One index file: made new, or kept as it is."""

    path: str
    entries: int
    old_entries: int | None
    """None where there was no old file of this name with these numbers of slots and entries."""
    changed: bool
    """Whether a byte differs from the old file. A dry run: whether one would."""
    backup: str | None = None
    """Where the old file is kept; None without an old file, without a backup, and if it stays."""
    is_kept: bool = False
    """Whether the old file stays, since the whole store is sound."""
    was_there: bool = True
    """Whether there was an old file of this name, whatever its size."""


@dataclass(frozen=True, slots=True)
class RebuiltIndex:
    """What was done."""

    files: tuple[RebuiltIndexFile, ...]
    """Oldest first; none where there are findings, or no message."""
    findings: tuple[Finding, ...]
    """Why nothing was written, if there is something."""
    removed: tuple[str, ...] = ()
    """In place: names of old files whose messages are in files of other names now."""
    messages: int = 0
    index_tags: bool = True
    """Whether messages with tags have an entry for them."""
    tags_from: Literal["given", "old index", "default"] = "given"
    left_bytes: int = 0
    """Bytes of the log behind the last intact message, if they are not blank, and behind blank ends
    that hide messages."""
    left_messages: int = 0
    """Sound messages in them, behind damage."""
    hash_slot_num: int = 0
    """Slots of each new index file; 0 where none was made."""
    index_num: int = 0
    """Entries that each new index file has room for, entry 0 included."""
    geometry_from: str | None = None
    """What told these two numbers: a `GeometryFrom`."""
    doubted_times: int = 0
    """Messages whose store time can't be right: their entries have the likely one (RMQDISK-40)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWanted:
    """How an index is made new; see `segproof.repair.rebuild_index`."""

    check: CheckPlace
    told_geometry: NewGeometry
    index_tags: bool | None
    count_puts: bool | None
    cut_tail: bool = False
    keep_times: bool = False
    all_files: bool = True
    is_dry: bool = False
    backup: str | None = None
    zone: tzinfo | None = None
    on_progress: Progress | None = None

    @property
    def geometry(self) -> Geometry:
        """Slots and entries of each new file."""
        return self.told_geometry.geometry

    def takes_loss(self, *, is_in_place: bool) -> bool:
        """Return whether the index of a damaged log is wanted, and the old one stays or is kept."""
        return self.cut_tail and not (is_in_place and self.backup is None)


def rebuild_from_log(
    store: str,
    out: str | None,
    wanted: IndexWanted,
    mapped_file_size: int | None,
    files: SharedFiles,
) -> RebuiltIndex:
    """Make the index files of a store new; see `segproof.repair.rebuild_index`."""
    if not wanted.is_dry:
        return _rebuild(store, out, wanted, mapped_file_size, files)
    with closing(DryFiles(files, in_memory=False)) as dry:
        return _rebuild(store, out, wanted, mapped_file_size, dry)


def check_store(store: str, files: SharedFiles) -> None:
    """Return if a store is whole and its layout is read. Raises: InvalidArgumentError; OSError.

    What a salvage has written is whole, whatever lies beside it.
    """
    check_finished(store, unfinished_store(store, files))
    check_layout(store, files)


def check_places(store: str, out: str | None, backup: str | None, files: Files) -> None:
    """Return if what is written lies outside of the store. Raises: InvalidArgumentError."""
    if out is not None:
        check_apart(store, out, "store")
        check_outside(out, files)
    if backup is not None:
        if out is not None:
            raise InvalidArgumentError("only in place old files are replaced, and kept in a backup")
        check_backup(store, backup, files)


def _rebuild(
    store: str,
    out: str | None,
    wanted: IndexWanted,
    mapped_file_size: int | None,
    files: SharedFiles,
) -> RebuiltIndex:
    log = CommitLog.open(store, mapped_file_size, files=files)
    if not log.log_files:
        raise no_log_in(store, files)
    findings = misnamed(log, files) or holes(log)
    findings = findings or (in_the_way(store, files) if out is None else ())
    findings = findings or _missing_end(log, log.max_offset, wanted, out is None, files)
    if findings:
        return RebuiltIndex((), findings)
    place = (
        IndexInPlace(store, files, wanted.backup) if out is None else NewIndexDirectory(out, files)
    )
    old = old_index_names(store, files)
    with place as working_directory:
        found = _defects(store, wanted, files) if old and not wanted.all_files else None
        others = tuple(one for one in found or () if is_of_another_log(one))
        if found is not None and not found:
            paths = [os.path.join(store, INDEX, name) for name in old]
            if isinstance(place, NewIndexDirectory) and not wanted.is_dry:
                place.keep(paths)
            return RebuiltIndex(tuple(_kept(path, place.directory, files) for path in paths), ())
        run = _Rebuild(log, wanted, old, files, () if wanted.cut_tail else others)
        return run.run(working_directory, place)


def _defects(store: str, wanted: IndexWanted, files: Files) -> list[Finding]:
    """Return the errors and warnings of `verify` about the index, the log and the store.

    Consume queues, checkpoint and the folder of an ended rebuild are no matter of the index, nor is
    a guess of its slots.
    """
    place = Place(PlaceKind.STORE, store)
    meter = Meter(wanted.on_progress, size_of(place, files))
    names = ("consumequeue", CHECKPOINT, MARKER, GUESS_FILE)
    others = tuple(os.path.join(store, name) for name in names)
    found = wanted.check(place, Wanted(), files, meter.add)
    return [one for one in found if one.is_defect and not one.path.startswith(others)]


def _errors(store: str, check: CheckPlace, files: Files) -> Iterator[Finding]:
    """Yield the errors of `verify` about a store."""
    found = check(Place(PlaceKind.STORE, store), Wanted(), files, lambda _: None)
    return (one for one in found if one.severity is Severity.ERROR)


def _missing_end(
    log: CommitLog, end: int, wanted: IndexWanted, is_in_place: bool, files: Files
) -> tuple[Finding, ...]:
    """Return a finding if index or queues lead to messages from `end` on, where the log ends.

    With `cut_tail` the index of what is there is made all the same; in place only with a backup,
    since the old files alone tell of those messages.
    """
    if ends_of(log.store_path, files)[1] < end:
        return ()
    if wanted.takes_loss(is_in_place=is_in_place):
        return ()
    reach = reach_of(log.store_path, [Stretch(end, INT64_MAX)], files)
    if reach.counts[0] < MISSING_OFFSETS_MIN:
        return ()
    if found := of_another_log(partial(_errors, log.store_path, wanted.check, files)):
        return found
    last, law = log.file_of(end) or log.log_files[-1], "RMQDISK-23"
    position = max(0, end - last.start) if end < log.max_offset else 0
    if end < log.max_offset:
        law = law_at(
            partial(_errors, log.store_path, wanted.check, files), last.path, position, "RMQDISK-52"
        )
    return (
        finding_at(
            last.path,
            position,
            f"the log ends in this file at offset {end}, and the old index or the queues lead to"
            f" {reach.counts[0]} messages from there on, up to offset {reach.furthest}: they are"
            " lost or elsewhere, and the old index tells what they held",
            writes(
                "look where else the broker keeps files of its log (several paths in"
                " storePathCommitLog), in lost+found and on a replica; if the messages are gone for"
                " good, let `--out DIR2 --cut-tail` make the index of what is here"
            ),
            law=law,
        ),
    )


def _kept(path: str, directory: str, files: Files) -> RebuiltIndexFile:
    entries = _entries_of(path, files)
    new = os.path.join(directory, os.path.basename(path))
    return RebuiltIndexFile(new, entries, entries, False, None, True)


class _Rebuild:
    """One run: told of the log, the old files, and where to build."""

    def __init__(
        self,
        log: CommitLog,
        wanted: IndexWanted,
        old_names: list[str],
        files: SharedFiles,
        doubts: tuple[Finding, ...] = (),
    ) -> None:
        self._doubts = doubts
        """Why the log may be that of another store: then nothing is written."""
        self._log = log
        self._wanted = wanted
        self._damaged = DamagedLog(log, files)
        self._old_names = old_names
        self._old_directory = os.path.join(log.store_path, INDEX)
        self._files = files
        self._errors = partial(_errors, log.store_path, wanted.check, files)
        self._built_at = BUILT_FROM_MS
        self._messages = 0
        self._doubted = 0
        self._misplaced: tuple[int, int] | None = None
        """Where the first message lies that says another offset, and which one it says."""

    def run(
        self,
        working_directory: str,
        place: IndexInPlace | NewIndexDirectory,
    ) -> RebuiltIndex:
        """Build, name and put in place; return what was done."""
        before = self._statuses()
        with_tags, tags_from = self._tags(self._wanted.index_tags)
        service = IndexService.open(
            working_directory,
            *self._wanted.geometry,
            create=True,
            index_tags=with_tags,
            files=self._files,
            time=self._next_time,
            zone=UTC,
        )
        reader = LogReader(self._log, self._files)
        with service:
            self._build(service, reader)
            built = self._named(service)
        if self._counts_puts(self._wanted.count_puts):
            for one in built:
                _store_count_of_puts(one, self._files)
        if before != self._statuses():
            raise log_changed(os.path.join(self._log.store_path, COMMIT_LOG))
        left_bytes, left_messages, findings = self._judge_end(reader)
        is_in_place = isinstance(place, IndexInPlace)
        if not self._wanted.takes_loss(is_in_place=is_in_place):
            findings = findings or misplaced(self._log, self._misplaced)
        if not self._messages and not self._wanted.cut_tail:
            findings = findings or self._without_messages()
        findings = findings or self._doubts
        if not findings and self._messages:
            findings = _missing_end(
                self._log, reader.end_offset, self._wanted, is_in_place, self._files
            )
        told = (
            self._messages, with_tags, tags_from, left_bytes, left_messages,
            *self._wanted.geometry, self._wanted.told_geometry.origin.value, self._doubted,
        )  # fmt: skip
        if findings:
            return RebuiltIndex((), findings, (), *told)
        rows = tuple(self._row(one, place.directory) for one in built)
        like = self._log.log_files[0].path
        changed = {os.path.basename(row.path) for row in rows if row.changed}
        is_written = is_in_place and not self._wanted.is_dry
        is_guess = self._wanted.told_geometry.is_guess
        if is_written and is_guess:  # before the new files are there
            keep_guess(self._log.store_path, self._wanted.geometry, self._files)
        removed = place.complete(built, changed, self._old_names, like)
        if is_written and not is_guess:
            forget_guess(self._log.store_path, self._files)
        return RebuiltIndex(rows, (), removed, *told)

    def _next_time(self) -> int:
        """Return a time for the name of a file while it is built: each is later than the last."""
        self._built_at += 1
        return self._built_at

    def _tags(
        self, index_tags: bool | None
    ) -> tuple[bool, Literal["given", "old index", "default"]]:
        if index_tags is not None:
            return index_tags, "given"
        paths = index_of_this_log(self._log.store_path, self._files)[::-1]
        found = tags_in_old_index(paths, self._wanted.geometry, self._log, self._files)
        return (True, "default") if found is None else (found, "old index")

    def _counts_puts(self, count_puts: bool | None) -> bool:
        if count_puts is not None:
            return count_puts
        paths = index_of_this_log(self._log.store_path, self._files)
        return counts_puts_in_old_index(paths, self._wanted.geometry, self._files)

    def _statuses(self) -> list[FileStatus | None]:
        """Return what each file of the log is, and the folder: a new file changes that."""
        folder = os.path.join(self._log.store_path, COMMIT_LOG)
        return [self._files.status(path) for path in (folder, *self._paths())]

    def _paths(self) -> list[str]:
        return [log_file.path for log_file in self._log.log_files]

    # --- building

    def _build(self, service: IndexService, reader: LogReader) -> None:
        first, last = self._log.min_offset, self._log.max_offset
        index = IndexTimes(self._old_directory, self._files)
        blocks = reader.blocks()
        as_they_are = ((block, 0) for block in blocks)
        keeps = self._wanted.keep_times
        for block, changed in as_they_are if keeps else with_likely_times(blocks, index):
            self._doubted += changed
            wrong = np.flatnonzero(block.phy_offsets != block.lies_at)
            if len(wrong) and self._misplaced is None:
                row = int(wrong[0])
                self._misplaced = int(block.lies_at[row]), int(block.phy_offsets[row])
            _feed(service, block)
            self._messages += len(block.rows)
            if self._wanted.on_progress is not None:
                self._wanted.on_progress(reader.end_offset - first, last - first)

    def _named(self, service: IndexService) -> list[Built]:
        """Return each file with the name that it will have."""
        built = service.index_files
        if len(built) == len(self._old_names):
            names = self._old_names
        else:
            names = []
            for file in built:
                time_ms = min(max(file.begin_timestamp, 0), NAMED_MS_MAX)
                name = index_file_name(time_ms, self._wanted.zone)
                if names and name <= names[-1]:
                    name = f"{int(names[-1]) + 1:017d}"
                names.append(name)
        return [
            Built(file.file_name, name, len(file)) for file, name in zip(built, names, strict=True)
        ]

    def _judge_end(self, reader: LogReader) -> tuple[int, int, tuple[Finding, ...]]:
        """Return how many bytes were left, and sound messages in them; and why the log can't be
        taken, if it can't.
        """
        left, messages, findings = self._judge_blank_ends(reader)
        if findings or reader.end_result is None:
            return left, messages, findings
        log_file = self._log.file_of(reader.end_offset) or self._log.log_files[-1]
        position = reader.end_offset - log_file.start
        # A broker makes the next file of the log, full of zeros, before it needs it.
        later = [one for one in self._log.log_files if one.start > log_file.start]
        rest = [(log_file, position), *((one, 0) for one in later)]
        if all(
            first_byte_of(self._files, one.path, start, one.size_bytes) is None
            for one, start in rest
        ):
            return left, messages, ()
        left += sum(one.size_bytes - start for one, start in rest)
        damage = self._damaged.damage.at(log_file)
        messages += damage.sound.messages
        if self._wanted.cut_tail:
            return left, messages, ()
        words = "what follows is no intact message, and a broker that recovers cuts the log here"
        told = "; ".join([words, *damage.words()])
        law = law_at(self._errors, log_file.path, position)
        return left, messages, (finding_at(log_file.path, position, told, SAVE_STORE, law),)

    def _judge_blank_ends(self, reader: LogReader) -> tuple[int, int, tuple[Finding, ...]]:
        """Return the same of the messages behind false blank ends, which the reader has passed."""
        left = messages = 0
        for one, position in reader.blank_ends:
            if not self._damaged.hides_messages(one, position):
                continue
            damage = self._damaged.damage.in_file(one)
            left, messages = left + one.size_bytes - position, messages + damage.sound.messages
            if not self._wanted.cut_tail:
                words = "a blank end leads a broker past what follows in this file"
                told = "; ".join([words, *damage.words()])
                return (
                    left,
                    messages,
                    (finding_at(one.path, position, told, SAVE_STORE, "RMQDISK-24"),),
                )
        return left, messages, ()

    def _without_messages(self) -> tuple[Finding, ...]:
        """Return a finding if the old index leads to messages: the log is gone, or another one."""
        paths = [os.path.join(self._old_directory, name) for name in self._old_names]
        entries = sum(_entries_of(path, self._files) for path in paths)
        if not entries:
            return ()
        return (
            finding_at(
                self._log.log_files[0].path,
                0,
                f"the commit log has no message, and the old index has {entries} entries",
                NO_MESSAGE,
                law=law_of_another_log(self._errors),
            ),
        )

    def _row(self, built: Built, directory: str) -> RebuiltIndexFile:
        old_path = os.path.join(self._old_directory, built.name)
        old = built.name in self._old_names and is_as_long(old_path, built.path, self._files)
        changed = not (old and is_same(old_path, built.path, self._files))
        backup = self._wanted.backup if changed and built.name in self._old_names else None
        return RebuiltIndexFile(
            os.path.join(directory, built.name),
            built.entries,
            _entries_of(old_path, self._files) if old else None,
            changed,
            None if backup is None else backup_of(old_path, backup),
            was_there=built.name in self._old_names,
        )


def _feed(service: IndexService, block: MessageBlock) -> None:
    """Tell the service of the messages of a block."""
    offsets = block.phy_offsets
    file = service.retry_get_and_create_index_file()
    is_new = len(service.index_files) == 1 and len(file) == 0
    least = file.end_phy_offset + (0 if is_new else 1)
    if int(offsets[0]) < least or not bool(np.all(offsets[1:] > offsets[:-1])):
        for request in block.requests():
            service.build_index(request)
        return
    entries = block.entries(service.index_tags)
    service.put_hashes(entries.hashes, entries.phy_offsets, entries.store_timestamps)
    if entries.last_message < len(offsets) - 1:
        service.retry_get_and_create_index_file()  # a message without keys begins a file too


def _store_count_of_puts(built: Built, files: SharedFiles) -> None:
    """Let the slot count of a header be that of its entries (RMQIDX-24), durably."""
    with closing(files.open(built.path, writable=True)) as file:
        file.pwrite(built.entries.to_bytes(4, "big"), IndexHeader.POSITIONS["hash_slot_count"])
        file.sync()


def _entries_of(path: str, files: Files) -> int:
    """Return how many entries the header of a file tells."""
    with closing(files.open(path)) as file:
        return max(0, INDEX_HEADER["index_count"].read(file) - 1)
