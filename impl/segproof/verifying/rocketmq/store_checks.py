# SPDX-License-Identifier: Apache-2.0
"""Checks of what lies in the folders of a store, of the checkpoint, and of the abort marker.

Laws: RMQDISK-3, RMQDISK-17 to RMQDISK-22, RMQDISK-38, RMQDISK-39, RMQDISK-51.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

from segproof.commands import quoted_path
from segproof.counts import plural, verb
from segproof.files import LINK_TO_NOTHING, NOT_REGULAR, Files, FileStatus, status_of
from segproof.findings import Severity
from segproof.hints import Hint, changes, reads, removes
from segproof.reading.log_files_inside import is_loaded, log_files_inside
from segproof.reading.store_times import KNOWN_BYTES
from segproof.reading.unfinished import VERBS
from segproof.rocketmq.commit_log import LogFile, named_offset
from segproof.rocketmq.geometry import index_file_names
from segproof.rocketmq.store_checkpoint import CHECKPOINT_BYTES, StoredCheckpoint
from segproof.verifying.rocketmq.index_file_checks import IndexSummary
from segproof.verifying.unfinished_outputs import report_marks
from segproof.wording.reporting import WRONG_KIND, Reporter
from segproof.wording.rules import REMAKE_INDEX, REMAKE_LOST_INDEX, REMAKE_STORE, declare
from segproof.wording.segment_files import open_guarded

declare("index-file", Severity.NOTE,
    reads("nothing, if somebody renamed it; RocketMQ takes its index files in the order of their"
    " names"),
    "RMQDISK-3")  # fmt: skip
declare("index-service", Severity.ERROR,
    REMAKE_INDEX.after("look for files that were copied from elsewhere or renamed, else "),
    "RMQDISK-17")  # fmt: skip
declare("index-service", Severity.WARNING,
    REMAKE_INDEX.after("all files need the geometry that the broker is configured for: "),
    "RMQDISK-18")  # fmt: skip
declare("index-service", Severity.WARNING, REMAKE_INDEX, "RMQDISK-19")
declare("index-service", Severity.WARNING,
    REMAKE_STORE, "RMQDISK-20")  # fmt: skip
declare("index-service", Severity.WARNING,
    REMAKE_STORE.after("after an abnormal stop the broker would keep index files that may be"
    " damaged: "), "RMQDISK-21")  # fmt: skip
declare("index-service", Severity.WARNING,
    removes("remove this file, which only says that they are a guess",
    only_if="they are the same", if_wrong="the broker finds no message by its key, and nothing says"
    " why: with other numbers make the index new in place with the verb rebuild, and give"
    " --hash-slots, --index-num and --backup",
    copy_step="compare the two numbers with maxHashSlotNum and maxIndexNum of the broker (by"
    " default 5000000 and 20000000), and copy this file away"), "RMQDISK-51")  # fmt: skip
declare("index-service", Severity.NOTE,
    reads("nothing while the broker runs; else see what the message says of its next start"),
    "RMQDISK-22")  # fmt: skip
declare("index-service", Severity.NOTE, reads("find out what put it there"), "RMQDISK-38")
declare("index-service", Severity.ERROR,
    changes("move it out of the store, into a directory of its own", only_if="neither RocketMQ nor"
    " a store engine below it wrote it: CURRENT, MANIFEST and .sst files are queues or an index in"
    " RocksDB, and a folder dledger-* has a commit log", if_wrong="the broker no longer finds the"
    " messages or queues in it", copy_step="stop the broker and copy the store away"),
    "RMQDISK-39")  # fmt: skip

DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
GUESSED = re.compile(rb"[0-9]{1,10} slots and [0-9]{1,10} entries")
GUESS_BYTES = 64


NO_BROKER = "no broker starts with it"
LOADED = (
    "its name is a number, so that RocketMQ loads it, if it has the length of the other files. It"
    " takes files in the order of their names, and where that is not the order of offsets, a start"
    " deletes or overwrites what other files hold: start no broker while it is in this folder"
)
IN_A_ROW = "releases from 4.7 to 5.0 end their start at a folder here, others do not read it"


class Inside(NamedTuple):
    """One name in a folder."""

    name: str
    path: str
    status: FileStatus | None
    """None: it can't be looked at, which was reported."""


def look_inside(
    folder: str,
    files: Files,
    reporter: Reporter,
    is_wanted: Callable[[str], bool] = lambda name: True,
) -> list[Inside]:
    """Return what is in a folder, sorted; report what can't be looked at, the folder too.

    What a broker removes meanwhile is left out; a folder that can't be listed holds one without
    a name.
    """
    found: list[Inside] = []
    lost: list[int] = []
    try:
        for name in filter(is_wanted, files.list_directory(folder)):
            path = posixpath.join(folder, name)
            try:
                found.append(Inside(name, path, files.status(path)))
            except OSError as error:
                reporter.at(path).unreadable(error)
                found.append(Inside(name, path, None))
                continue
            if found[-1].status is None:
                lost.append(len(found) - 1)
        still = set(files.list_directory(folder)) if lost else set()
    except OSError as error:
        reporter.at(folder).unreadable(error)
        return [*found, Inside("", folder, None)]
    for place in reversed(lost):
        if found[place].name in still:
            _report_kind(found[place].path, LINK_TO_NOTHING, reporter)
        else:
            del found[place]
    return found


def _report_kind(path: str, words: str, reporter: Reporter) -> None:
    report = reporter.at(path)
    if words == LINK_TO_NOTHING:
        report.add("DISK-1", f"it cannot be read: {words}", actual=words)
    else:
        report.of_wrong_kind(words)


def is_folder(one: Inside, reporter: Reporter) -> bool:
    """Return whether a name that should be that of a folder is; report another kind of file."""
    if one.status is not None and not one.status.is_directory:
        _report_kind(one.path, "it is no folder", reporter)
    return one.status is not None and one.status.is_directory


def numbered_files(
    folder: str, files: Files, reporter: Reporter, strays: list[str] | None = None
) -> tuple[list[LogFile], list[int]]:
    """Return the files of a log or queue, and where those begin that can't be read.

    Reports these, and what else lies there; with `strays` the paths of that are added to it.
    """
    found: list[LogFile] = []
    unread: list[int] = []
    for one in look_inside(folder, files, reporter):
        start = named_offset(one.name) if one.name else 0
        if start is None:
            if strays is None:
                report_stray(one.path, reporter, words_of_stray(one.path, one.status))
            else:
                strays.append(one.path)
        elif one.status is not None and one.status.is_regular:
            found.append(LogFile(start, one.path, one.status.size_bytes))
        else:
            unread.append(start)
            if one.status is not None:
                more = IN_A_ROW if one.status.is_directory else ""
                inside = log_files_inside(one.path, files) if more and strays is not None else ()
                if inside:
                    more += (
                        f"; in it {verb(len(inside), 'is', 'are')} {plural(len(inside), 'file')}"
                    )
                    more += f" of a commit log, such as {inside[0].path}"
                hint = _renamed(one.path) if inside else WRONG_KIND
                reporter.at(one.path).of_wrong_kind(NOT_REGULAR, more, hint)
    return found, unread


def _renamed(folder: str) -> Hint:
    """Return the hint that gives a folder with files of a log another name than one of these."""
    own = quoted_path(folder)
    new = quoted_path(f"{folder}.folder")
    return changes(
        f"give the folder another name with `test ! -e {new} && mv -n {own} {new}`, and verify"
        " again: RMQDISK-39 then says what the log lacks of it, and how to put that into the log",
        only_if="no broker of yours reads this folder by its name",
        if_wrong="that broker no longer finds what is in it, until it has its name again",
        copy_step="stop the broker and copy the store away",
    )


def words_of_stray(path: str, status: FileStatus | None) -> str:
    """Return what a broker makes of a stray in a folder of a log or of a queue."""
    if status is not None and status.is_directory:
        return IN_A_ROW
    return LOADED if is_loaded(posixpath.basename(path)) else NO_BROKER


def report_stray(
    path: str, reporter: Reporter, words: str, severity: Severity | None = None,
    hint: Hint | None = None,
) -> None:  # fmt: skip
    """Report what does not belong into a folder of the log or of queues."""
    words = f"this does not belong here: {words}"
    reporter.at(path).add("RMQDISK-39", words, severity=severity, hint=hint)


def is_time_name(name: str) -> bool:
    """Return whether 17 digits are a time: year, month, day, hour, minute, second, thousandths."""
    month, day = int(name[4:6]), int(name[6:8])
    hour, minute, second = int(name[8:10]), int(name[10:12]), int(name[12:14])
    is_day = 1 <= month <= 12 and 1 <= day <= DAYS[month - 1]
    return is_day and hour < 24 and minute < 60 and second < 61


def check_index_names(folder: str, files: Files, reporter: Reporter) -> list[str]:
    """Return the names of the index files in a folder, in order; report all other names.

    Raises: OSError if the folder can't be listed.
    """
    names = files.list_directory(folder)
    found = index_file_names(names)
    for name in names:
        path = posixpath.join(folder, name)
        if name in VERBS:
            report_marks(folder, [name], files, reporter)
        elif name not in found:
            is_number = is_loaded(name)
            status = status_of(files, path) if is_number else None
            if status is not None and not status.is_regular:
                reporter.at(path).of_wrong_kind(NOT_REGULAR)
                continue
            reporter.at(path).add(
                "RMQDISK-38",
                "no index file has this name; RocketMQ loads it all the same, and grows it, since"
                " it is a number"
                if is_number
                else "no index file has this name: RocketMQ passes over it",
                severity=Severity.WARNING if is_number else None,
            )
        elif not is_time_name(name):
            reporter.at(path).add("RMQDISK-3", "its name is no time")
    return found


def check_order(summaries: Sequence[IndexSummary], reporter: Reporter) -> None:
    """Judge files beside each other, given in the order of their names."""
    written = [one for one in summaries if not one.is_empty]
    for before, after in pairwise(written):
        if after.header.begin_phy_offset < before.header.end_phy_offset:
            reporter.at(after.path).add(
                "RMQDISK-17",
                f"it begins with offset {after.header.begin_phy_offset}, and the file before,"
                f" {posixpath.basename(before.path)}, ends with {before.header.end_phy_offset}",
                position=16,
                expected=f"{before.header.end_phy_offset} or more",
                actual=after.header.begin_phy_offset,
            )
    sizes = [one.size_bytes for one in summaries]
    times = Counter(sizes)
    usual = max(times, key=lambda size: (times[size], size), default=0)
    for one in summaries:
        if one.size_bytes != usual:
            reporter.at(one.path).add(
                "RMQDISK-18",
                f"it has {one.size_bytes} bytes and the other index files have {usual}: RocketMQ"
                " reads all of them with one number of slots",
                expected=usual,
                actual=one.size_bytes,
            )
    for one in summaries[:-1]:
        if one.geometry is not None and not one.is_full:
            _report_room(one, reporter)


def _report_room(one: IndexSummary, reporter: Reporter) -> None:
    assert one.geometry is not None
    room = plural(one.geometry.index_num - one.stop, "entry")
    words = f"a later file follows, and it has room for {room}"
    if one.header.begin_timestamp == 0:
        words = "a later file follows, and it has no entry: it hides all earlier files from every"
        words += " query whose time begins above 0"
    reporter.at(one.path).add(
        "RMQDISK-19",
        words,
        position=36,
        expected=one.geometry.index_num,
        actual=one.header.index_count,
    )


def check_guess(path: str, files: Files, reporter: Reporter) -> None:
    """Report that slots and entries of the index are a guess, as the file at `path` says."""
    words = "its slots and entries"
    try:
        with closing(files.open(path)) as file:
            told = GUESSED.match(file.pread(GUESS_BYTES, 0))
            words = words if told is None else told[0].decode()
    except OSError:
        pass  # that it is there says it
    reporter.at(path).add(
        "RMQDISK-51",
        f"the index was made with {words}, a guess: no old index file told the numbers of the"
        " broker. A broker with other numbers finds no message by its key",
    )


def check_checkpoint(
    path: str,
    summaries: Sequence[IndexSummary] | None,
    files: Files,
    reporter: Reporter,
    index_time: int = 0,
    is_complete: bool = True,
    *,
    has_messages: bool = False,
) -> None:
    """Judge `checkpoint`; against the index files too if they are given.

    `index_time` is its time for indexes from before these were read: a broker raises it.
    `is_complete`: whether each index file could be read. `has_messages`: whether index or log have
    one.
    """
    report = reporter.at(path, shown_by=path)
    file = open_guarded(files, report)
    if file is None:
        return
    try:
        with closing(file):
            size, stored = file.size(), StoredCheckpoint.read_from(file)
    except OSError as error:
        report.unreadable(error)
        return
    if size != CHECKPOINT_BYTES:
        report.add("RMQDISK-20", f"it has {size} bytes", expected=CHECKPOINT_BYTES, actual=size)
    if size < KNOWN_BYTES:
        return
    for place, value in enumerate(stored[:3]):
        if value < 0:
            report.add(
                "RMQDISK-20",
                f"the time {value} is below 0",
                position=8 * place,
                expected="0 or more",
                actual=value,
            )
    if has_messages and not any(stored[:3]):
        report.add(
            "RMQDISK-20",
            "all its times are 0, as of a new file, though the store has messages: a power loss may"
            " have left zeros. After a clean stop nothing is lost. After an abnormal stop 5.1.0 and"
            " later delete all index files and go through the whole log again, 5.4.0 and later"
            " through its last ten files only",
            position=0,
            severity=Severity.NOTE,
            hint=reads("nothing before the next start: a broker sets the times as it flushes"),
        )
    if summaries is not None:
        _compare_index_time(path, index_time, summaries, is_complete, reporter)


def report_no_checkpoint(path: str, is_log_alone: bool, reporter: Reporter) -> None:
    """Report that the checkpoint is missing; `is_log_alone`: the store has a commit log only."""
    if is_log_alone:
        reporter.at(path).add(
            "RMQDISK-20",
            "it is not here, and no index and no queues: the log lies alone",
            severity=Severity.NOTE,
            hint=reads(
                "nothing if the broker keeps its log apart (storePathCommitLog); else look for the"
                " others in lost+found or on a replica"
            ),
        )
        return
    reporter.at(path).add(
        "RMQDISK-20",
        "it is not here, and each broker makes it before it takes a message: the next start makes"
        " one of zeros, by which nothing is durable, so after an abnormal stop 5.1.0 and later"
        " delete all index files, and go through the whole log again, 5.4.0 and later through its"
        " last ten files only",
        hint=reads(
            "look for it in lost+found; else nothing, if the broker stopped cleanly and somebody"
            " took it away: its next start makes it new"
        ),
    )


def _compare_index_time(
    path: str,
    stored: int,
    summaries: Sequence[IndexSummary],
    is_complete: bool,
    reporter: Reporter,
) -> None:
    ends = [one.header.end_timestamp for one in summaries if not one.is_empty]
    if not summaries and stored > 0 and is_complete:
        reporter.at(path).add(
            "RMQDISK-21",
            f"it calls index files durable up to {stored}, and there is none: a broker keeps"
            " the last one when files expire",
            position=16,
            actual=stored,
            hint=REMAKE_LOST_INDEX.after(
                "nothing, if it was left out of a copy; else look for the folder index in"
                " lost+found or on a replica, or "
            ),
        )
        return
    if ends and stored > max(ends):
        reporter.at(path).add(
            "RMQDISK-21",
            f"it calls index files durable up to {stored}, and the newest ends at {max(ends)}",
            position=16,
            expected=f"at most {max(ends)}",
            actual=stored,
        )
        return
    closed = [one for one in summaries[:-1] if one.is_full]
    if closed and stored < closed[-1].header.end_timestamp:
        end = closed[-1].header.end_timestamp
        reporter.at(path).add(
            "RMQDISK-21",
            f"a full index file ends at {end}, and the checkpoint says {stored}: after an abnormal"
            " stop RocketMQ deletes the index files that end later, and makes them new as far as"
            " it recovers",
            position=16,
            expected=end,
            actual=stored,
            severity=Severity.NOTE,
            hint=reads("nothing, since the broker makes them new"),
        )


def check_abort(
    path: str, status: FileStatus, summaries: Sequence[IndexSummary], reporter: Reporter, time: int
) -> None:
    """Say what a marker means: the broker runs, or died; `time` is the checkpoint's for indexes."""
    late = [one for one in summaries if one.header.end_timestamp > time]
    reporter.at(path, shown_by=posixpath.dirname(path) or ".").add(
        "RMQDISK-22",
        "the broker runs, or did not stop cleanly; if it died, its next start deletes"
        f" {len(late)} of {len(summaries)} index files, those that end later than the checkpoint"
        " says, and indexes again from where it recovers",
        actual=status.size_bytes,
    )
