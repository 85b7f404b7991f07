# SPDX-License-Identifier: Apache-2.0
"""Verify a store of RocketMQ, a folder of index files, or one file."""

import posixpath
from collections.abc import Callable, Iterator, Sequence

from segproof.files import Files, status_of
from segproof.findings import Finding, Severity
from segproof.integers import INT64_MAX
from segproof.reading.batch_queues import furthest_batch
from segproof.reading.commit_log_damage import DamagedLog
from segproof.reading.config_file import CONFIG
from segproof.reading.folder_names import names_of
from segproof.reading.log_kinship import Kin, Kinship
from segproof.reading.log_rows import Surroundings, begins, log_folder
from segproof.reading.queue_units import NOTHING_LOST, LostMessages
from segproof.reading.store_layouts import is_rocksdb
from segproof.reading.store_paths import GUESS_FILE, PARTS, Place, PlaceKind, regular_size
from segproof.reading.store_reach import MISSING_OFFSETS_MIN, Reach, Stretch, reach_of
from segproof.reading.store_times import read_checkpoint
from segproof.reading.timer_log import TIMER_LOG
from segproof.reading.unread_places import ROCKSDB_STORE
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, named_offset
from segproof.rocketmq.geometry import find_geometries, find_geometry
from segproof.verifying.checked import Checked
from segproof.verifying.rocketmq.commit_log_damage import Recovery
from segproof.verifying.rocketmq.config_checks import (
    check_config,
    check_config_file,
    check_config_state,
)
from segproof.verifying.rocketmq.index_file_checks import IndexSummary, check_index_file
from segproof.verifying.rocketmq.key_checks import KeyChecks
from segproof.verifying.rocketmq.layout_checks import (
    note_layout_around,
    report_store_layout,
    report_unread_place,
)
from segproof.verifying.rocketmq.log_files import judged_by_contents, list_log
from segproof.verifying.rocketmq.log_kinship import Ends, report_kinship
from segproof.verifying.rocketmq.log_records import (
    LogRecords,
    RecordsCheck,
)
from segproof.verifying.rocketmq.lost_end import (
    LedBeyond,
    report_later_checkpoint,
    report_missing_end,
    report_zeroed_end,
)
from segproof.verifying.rocketmq.missing_log import report_missing_log
from segproof.verifying.rocketmq.offset_checks import OffsetChecks
from segproof.verifying.rocketmq.queue_checks import QueueChecks
from segproof.verifying.rocketmq.queue_walk import check_queue_file
from segproof.verifying.rocketmq.replaced_files import report_replaced_files
from segproof.verifying.rocketmq.store_checks import (
    check_abort,
    check_checkpoint,
    check_guess,
    check_index_names,
    check_order,
    is_folder,
    is_time_name,
    look_inside,
    report_no_checkpoint,
    report_stray,
    words_of_stray,
)
from segproof.verifying.rocketmq.timer_checks import TimerChecks
from segproof.verifying.rocketmq.times_alone import TimesAlone
from segproof.verifying.rocketmq.unknown_log_files import UnknownFiles, report_unknown_files
from segproof.verifying.rocketmq.unread_parts import (
    KNOWN_NAMES,
    has_queues_in_rocksdb,
    report_file_of_other_row,
    report_unread_parts,
)
from segproof.verifying.unfinished_outputs import report_store
from segproof.wording.reporting import Reporter, Wanted

STORE = "index-service"
Advance = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


def check_place(
    place: Place,
    wanted: Wanted,
    files: Files,
    advance: Advance = lambda count: None,
    checked: Checked | None = None,
    around: Surroundings | None = None,
) -> Iterator[Finding]:
    """Yield the findings of one place. Bad data and unreadable files are findings, never raised.

    `checked` is filled meanwhile. `around` is as that of `unread_layout`.
    """
    told = checked or Checked()

    def count(done: int) -> None:
        told.bytes_checked += done
        advance(done)

    if place.kind is PlaceKind.STORE:
        yield from _Store(place.path, wanted, files, count, told).run(around)
    elif place.kind is PlaceKind.INDEX_FOLDER:
        summaries, found, _ = _index_folder(place.path, wanted, files, count)
        told.segments = len(summaries)
        yield from found
        reporter = Reporter(wanted, structure=STORE)
        note_layout_around(place.path, files, reporter, around)
        yield from reporter.finish()
    else:
        told.segments = 1
        yield from _single(place, wanted, files, count, told, around)


def _single(
    place: Place, wanted: Wanted, files: Files, advance: Advance, checked: Checked,
    around: Surroundings | None,
) -> Iterator[Finding]:  # fmt: skip
    path, reporter = place.path, Reporter(wanted, structure=STORE)
    is_of_row = place.kind in (PlaceKind.QUEUE_FILE, PlaceKind.LOG_FILE)
    if is_of_row and named_offset(posixpath.basename(path)) is None:
        report_stray(path, reporter, words_of_stray(path, status_of(files, path)))
        yield from reporter.finish()
        return
    if report_unread_place(path, files, reporter) or (
        is_of_row and report_file_of_other_row(path, reporter)
    ):
        yield from reporter.finish()
        return
    if place.kind is PlaceKind.INDEX_FILE:
        try:
            answer = find_geometry(path, hash_slot_num=wanted.hash_slots, files=files)
        except OSError as error:
            reporter.at(path, "index-file").unreadable(error)
        else:
            _, found = check_index_file(path, answer, wanted, files)
            yield from found
        if not is_time_name(posixpath.basename(path)):
            reporter.at(path).add("RMQDISK-3", "its name is no time")
    elif place.kind is PlaceKind.CHECKPOINT:
        check_checkpoint(path, None, files, reporter)
    elif place.kind is PlaceKind.CONFIG_FILE:
        check_config_file(path, files, reporter)
    elif place.kind is PlaceKind.QUEUE_FILE:
        check_queue_file(path, files, reporter)
    else:
        size = regular_size(path, files)
        one = LogFile(int(posixpath.basename(path)), path, size)
        log = CommitLog(posixpath.dirname(posixpath.dirname(path)) or ".", size, (one,), files)
        records = LogRecords(path, files, reporter, log)
        times = TimesAlone(records)
        for block in records.blocks():
            times.add(block)
        checked.batches, checked.missing_offsets = records.count_messages(), records.fillers
        checked.lost_messages = records.lost
        checked.first_offset, checked.end_offset = one.start, records.end
        checked.batches_behind_damage = records.sound_behind
    if is_of_row or place.kind is PlaceKind.INDEX_FILE:
        note_layout_around(path, files, reporter, around)
    advance(regular_size(path, files))
    yield from reporter.finish()


def _index_folder(
    folder: str, wanted: Wanted, files: Files, advance: Advance
) -> tuple[list[IndexSummary], list[Finding], bool]:
    """Return the index files of a folder, all findings, and whether each file could be read."""
    reporter = Reporter(wanted, structure="index-file", shown_by=folder)
    try:
        names = check_index_names(folder, files, reporter)
    except OSError as error:
        reporter.at(folder, STORE).unreadable(error)
        return [], reporter.finish(), False
    answers = find_geometries(folder, names, hash_slot_num=wanted.hash_slots, files=files)
    summaries, found = [], reporter.drain()
    for name in names:
        path = posixpath.join(folder, name)
        answer = answers.get(name)
        if answer is None:
            _unreadable(path, files, reporter, folder)
            continue
        summary, more = check_index_file(path, answer, wanted, files)
        found += more
        advance(regular_size(path, files))
        if summary is not None:
            summaries.append(summary)
    check_order(summaries, reporter)
    return summaries, [*found, *reporter.finish()], len(answers) == len(names)


def _unreadable(path: str, files: Files, reporter: Reporter, folder: str) -> None:
    """Report why a file could not be looked into; one that is gone was removed by the broker."""
    try:
        files.open(path).close()
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        if not is_gone or posixpath.basename(path) in files.list_directory(folder):
            reporter.at(path).unreadable(error)
            return
        reporter.at(path).add(
            "DISK-2", "it was removed while the folder was read", severity=Severity.NOTE
        )


class _Store:
    """All checks of one store."""

    def __init__(
        self, store: str, wanted: Wanted, files: Files, advance: Advance, checked: Checked
    ) -> None:
        self._checked = checked
        self._store = store
        self._wanted = wanted
        self._files = files
        self._advance = advance
        self._reporter = Reporter(wanted, structure=STORE, shown_by=store)
        self._summaries: list[IndexSummary] = []
        self._is_complete = True
        """Whether each index file could be read."""
        # First: what the checkpoint knows of is there already, beside a writer.
        self._stored = read_checkpoint(self._path("checkpoint"), files)
        inside = look_inside(store, files, self._reporter, KNOWN_NAMES.__contains__)
        self._names = {one.name for one in inside}
        self._statuses = {one.name: one.status for one in inside if one.status is not None}
        folders = (*PARTS, TIMER_LOG, CONFIG)
        self._folders = {
            one.name for one in inside if one.name in folders and is_folder(one, self._reporter)
        }
        listed = names_of(store, files)
        self._has_rocksdb_queues = has_queues_in_rocksdb(store, listed, files)
        self._has_rocksdb_keys = is_rocksdb(self._path(ROCKSDB_STORE), files)
        self._is_log_alone = self._names - {GUESS_FILE} == {COMMIT_LOG}
        self._is_running = "abort" in self._statuses
        self._missing: Reach | None = None
        """What is led to beyond the last file of the log."""
        self._timers = TimerChecks(store, files, self._reporter)
        self._queues = QueueChecks(store, files, self._reporter, self._is_running)
        self._offsets = OffsetChecks(store, files, self._reporter, self._queues)

    def _path(self, name: str) -> str:
        return posixpath.join(self._store, name)

    def run(self, around: Surroundings | None) -> Iterator[Finding]:
        """Yield all findings."""
        if report_store_layout(self._store, self._files, self._reporter, around):
            yield from self._reporter.finish()
            return
        if "index" in self._folders:
            self._summaries, found, self._is_complete = _index_folder(
                self._path("index"), self._wanted, self._files, self._advance
            )
            yield from found
        names = names_of(self._store, self._files)
        report_store(self._store, names, self._files, self._reporter)
        report_unread_parts(self._store, self._files, self._reporter)
        if TIMER_LOG in self._folders:
            self._timers.check_files()
        self._timers.check_state()
        self._check_checkpoint()
        if self._is_running:
            path, time = self._path("abort"), self._stored.index_msg_timestamp
            check_abort(path, self._statuses["abort"], self._summaries, self._reporter, time)
        check_config(self._store, self._files, self._reporter)
        check_config_state(self._store, self._files, self._reporter)
        if GUESS_FILE in self._names:
            check_guess(self._path(GUESS_FILE), self._files, self._reporter)
        yield from self._reporter.drain()
        # Before the log is listed: what a queue leads to is in the log, also beside a writer.
        if "consumequeue" in self._folders and not is_rocksdb(
            self._path("consumequeue"), self._files
        ):
            self._queues.check(COMMIT_LOG in self._folders)
        else:
            self._queues.is_whole = "consumequeue" not in self._names and not self._is_log_alone
        self._queues.is_whole &= not self._has_rocksdb_queues
        has_entries = any(not one.is_empty for one in self._summaries)
        leads = self._queues.furthest >= 0 or (has_entries and "checkpoint" in self._names)
        leads |= self._stored.physic_msg_timestamp > 0 or self._has_rocksdb_queues
        if COMMIT_LOG not in self._names and leads:
            is_index_alone = {"consumequeue", "abort", CONFIG}.isdisjoint(self._names)
            report_missing_log(
                self._store, self._files, self._reporter,
                is_there=False, is_index_alone=is_index_alone and not self._has_rocksdb_queues,
            )  # fmt: skip
        if COMMIT_LOG in self._folders:
            listed = list_log(self._store, self._files, self._reporter)
            damaged = DamagedLog(listed.log, self._files)
            log = judged_by_contents(listed.log, damaged, self._files, self._reporter)
            report_unknown_files(log, damaged, self._furthest(), self._files, self._reporter)
            if log.log_files:
                recovery = Recovery(
                    self._store, log, self._files, self._stored, not self._is_running
                )
                records = LogRecords(
                    self._store, self._files, self._reporter, log, listed.unread, recovery,
                    damaged, listed.lies_elsewhere,
                )  # fmt: skip
                yield from self._check_log(records)
                self._checked.segments = len(log.log_files)
                self._checked.missing_offsets = records.fillers
                self._checked.lost_messages = records.lost
                self._checked.first_offset, self._checked.end_offset = log.min_offset, records.end
                self._checked.batches_behind_damage = records.sound_behind
            elif not listed.unread and (leads or has_entries):
                report_missing_log(self._store, self._files, self._reporter, is_there=True)
        yield from self._reporter.finish()

    def _furthest(self) -> int:
        """Return the furthest offset that queues or index lead to; -1 if these are not read."""
        if self._has_rocksdb_queues or not self._is_complete:
            return -1
        ends = (one.header.end_phy_offset for one in self._summaries if not one.is_empty)
        batches = furthest_batch(self._store, self._files)
        return max(self._queues.furthest, batches, max(ends, default=-1))

    def _check_checkpoint(self) -> None:
        path, names = self._path("checkpoint"), self._names
        if "checkpoint" in self._statuses:
            is_told = self._is_complete and not self._has_rocksdb_keys
            is_told = is_told and ("index" in self._folders or "index" not in names)
            time = self._stored.index_msg_timestamp
            check_checkpoint(
                path, self._summaries, self._files, self._reporter, time, is_told,
                has_messages=self._has_messages(),
            )  # fmt: skip
        elif "checkpoint" not in names and not names.isdisjoint((COMMIT_LOG, "consumequeue")):
            report_no_checkpoint(path, self._is_log_alone, self._reporter)

    def _has_messages(self) -> bool:
        """Return whether the index has an entry, or the log a message at the begin of a file."""
        folder = self._path(COMMIT_LOG)
        log = log_folder(folder, self._files) if COMMIT_LOG in self._folders else None
        is_log = log is not None and any(begins(one, self._files) for one in log.log_files)
        return is_log or any(not one.is_empty for one in self._summaries)

    def _check_log(self, records: LogRecords) -> Iterator[Finding]:
        """Yield the findings of the commit log, and of what is compared with it."""
        yield from self._reporter.drain()
        try:
            checks = self._checks_of(records)
            records.check_names()
            for block in records.blocks():
                self._checked.batches = records.kept
                for check in checks:
                    check.add(block)
                self._advance(records.take_read())
                yield from self._reporter.drain()
            for check in checks:
                check.finish()
            self._report_losses(records)
            self._report_origin(records, checks)
            self._checked.batches = records.count_messages()
            self._timers.compare(records.end)
        except OSError as error:
            self._reporter.at(_path_of(error, self._store)).add(
                "DISK-2",
                "it vanished, or could not be read any more, while the store was read:"
                f" {error.strerror or error}",
            )

    def _missing_end(self, records: LogRecords) -> Reach | None:
        """Return what index and queues lead to beyond the last file, if files are missing there."""
        end = records.log.max_offset
        if records.reached < end:
            return None
        reach = reach_of(
            self._store, [Stretch(end, records.reached + 1)], self._files, self._wanted.hash_slots
        )
        if reach.counts[0] < MISSING_OFFSETS_MIN:
            return None  # wrong entries, which are reported one by one
        records.darken(end, INT64_MAX)
        return reach

    def _report_losses(self, records: LogRecords) -> None:
        """Report files over which others were copied; count what they and missing files cost."""
        is_asked = records.misplaced or records.lacks_files or records.without_body
        if is_asked or records.met.is_one_of_others:
            report_replaced_files(self._store, records, self._reporter)

    def _report_origin(self, records: LogRecords, checks: Sequence[RecordsCheck]) -> None:
        """Report that index or queues are of another log, or else that the log lacks its end."""
        keys = next((one for one in checks if isinstance(one, KeyChecks)), None)
        index = Kinship() if keys is None else keys.kinship
        queues = self._queues.kinship
        filled = [one.header for one in self._summaries if not one.is_empty]
        ends = Ends(
            records.end,
            records.last_time,
            max((one.end_phy_offset for one in filled), default=-1),
            max((one.end_timestamp for one in filled), default=-1),
            self._queues.furthest,
        )
        report_kinship(self._store, index, queues, ends, self._reporter)
        is_of_other = Kin.OTHER in (index.kin, queues.kin)
        if is_of_other and Kin.OWN not in (index.kin, queues.kin):
            records.count_lost(records.whole_map())
        lost = None
        if self._missing is not None and not (
            is_of_other and Kin.OWN not in (index.kin, queues.kin)
        ):
            lost = self._missing
            report_missing_end(
                self._store, records.log, lost, self._reporter, records.lies_elsewhere
            )
        beyond = LedBeyond() if queues.kin is Kin.OTHER else self._queues.beyond
        if keys is not None and index.kin is not Kin.OTHER:
            beyond = beyond.joined(keys.beyond)
        if (reach := beyond.reach) is not None:
            lost = reach
            report_zeroed_end(records.log, records.end, reach, self._reporter)
        elif beyond.offsets and not is_of_other:
            # So few may be wrong: those count that nothing contradicts.
            count = records.count_beyond()
            if count:
                lost = Reach([count], beyond.furthest)
                report_zeroed_end(records.log, records.end, lost, self._reporter)
        is_judged = records.is_read_whole and records.newest >= 0 and not records.is_time_doubted
        if lost is None and not is_of_other and is_judged:
            path = self._path("checkpoint")
            report_later_checkpoint(
                path, self._stored, records.newest, self._reporter,
                has_queues=self._queues.furthest >= 0,
            )  # fmt: skip
        if lost is not None or records.lost is not NOTHING_LOST:
            records.count_lost(records.whole_map())
            if lost is not None and (records.lost is None or not records.lost.known):
                records.lost = LostMessages(lost.counts[0], is_exact=False)

    def _checks_of(self, records: LogRecords) -> list[RecordsCheck]:
        """Return what is compared with the log: index, if it is judged, and queues."""
        has_place = "index" in self._folders or (
            "index" not in self._names and not self._is_log_alone
        )
        has_place &= bool(self._summaries) or not self._has_rocksdb_keys
        has_index = has_place and (self._is_complete or bool(self._summaries))
        summaries = self._summaries if has_index else []
        usable = (one.header.end_phy_offset for one in summaries if one.stop > 1)
        records.known_end = max(usable, default=-1)
        ends = (one.header.end_phy_offset for one in summaries if not one.is_empty)
        furthest = self._queues.furthest
        time = self._stored.logics_msg_timestamp
        records.reached = max(furthest, max(ends, default=-1))
        self._missing = self._missing_end(records)
        self._queues.compare_with(records, time, records.reached)
        is_unknown = records.reached < 0 and furthest_batch(self._store, self._files) < 0
        alone = [UnknownFiles(records, self._reporter)] if is_unknown else []
        if not has_index:
            return [TimesAlone(records), self._queues, self._offsets, *alone]
        keys = KeyChecks(
            self._store, summaries, records, self._is_running, furthest, self._files,
            self._reporter, self._is_complete,
        )  # fmt: skip
        return [keys, self._queues, self._offsets, *alone]


def _path_of(error: OSError, store: str) -> str:
    """Return the path that an error of the operating system names, or the store."""
    return error.filename if isinstance(error.filename, str) else store
