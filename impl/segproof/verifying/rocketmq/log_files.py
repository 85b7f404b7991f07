# SPDX-License-Identifier: Apache-2.0
"""The files of a commit log: listed, and put where their messages say that they belong.

Laws: RMQDISK-23, RMQDISK-25.
"""

import posixpath
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from segproof.counts import plural
from segproof.files import Files
from segproof.findings import Finding
from segproof.hints import writes
from segproof.reading.commit_log_damage import DamagedLog
from segproof.reading.log_files_inside import LogFileInside
from segproof.reading.log_names import Misnamed, are_names_right
from segproof.rocketmq.commit_log import COMMIT_LOG, CommitLog, LogFile, inferred_size
from segproof.stretches.rocketmq.desk import Fate
from segproof.verifying.rocketmq.files_inside import NAMED_MAX, report_inside
from segproof.verifying.rocketmq.store_checks import numbered_files
from segproof.wording.reporting import Reporter, Wanted

RIGHT_PLACES = writes(
    "save the messages with `segproof salvage STORE --out DIR2`, which puts each at its own offset;"
    " the old files stay as they are"
)
WITHOUT_COPY = writes(
    "save the store with `segproof salvage STORE --out DIR2`, which leaves this copy out; the old"
    " files stay as they are"
)


class ListedLog(NamedTuple):
    """What the folder of a commit log has."""

    log: CommitLog
    unread: list[int]
    """Where files begin that can't be read."""
    elsewhere: Mapping[int, LogFileInside]
    """Files that the log lacks, and that are in its folder but not in their place, by offset."""

    def lies_elsewhere(self, start: int, end: int) -> str:
        """Return in words which files of a part of the log are not in their place."""
        there = [one.path for at, one in sorted(self.elsewhere.items()) if start <= at < end]
        if not there:
            return ""
        folder = posixpath.join(self.log.store_path, COMMIT_LOG)
        names = ", ".join(posixpath.relpath(path, folder) for path in there[:NAMED_MAX])
        names += f" and {len(there) - NAMED_MAX} more" * (len(there) > NAMED_MAX)
        its = "its" if len(there) == 1 else "their"
        return (
            f"; RMQDISK-39 names {names} of this part of the log, in its folder, but not in {its}"
            f" place: {its} messages count as lost until the log has them"
        )


def list_log(store: str, files: Files, reporter: Reporter) -> ListedLog:
    """Return the commit log, and report what is in its folder beside it or can't be read."""
    folder = posixpath.join(store, COMMIT_LOG)
    strays: list[str] = []
    found, unread = numbered_files(folder, files, reporter, strays)
    elsewhere = report_inside(strays, found, unread, files, reporter)
    size = inferred_size(found)
    cut = tuple(one._replace(size_bytes=min(one.size_bytes, size)) for one in found)
    return ListedLog(CommitLog(store, size, cut, files), unread, elsewhere)


def judged_log(store: str, files: Files) -> tuple[CommitLog, list[Finding]]:
    """Return the commit log, and what is found of the names in its folder."""
    reporter = Reporter(Wanted())
    return list_log(store, files, reporter).log, reporter.finish()


def judged_by_contents(
    log: CommitLog, damaged: DamagedLog, files: Files, reporter: Reporter
) -> CommitLog:
    """Return the log with each file where its messages say, and without copies of its files, and
    without files that begin where no file of it can; report all of these. Raises: OSError.

    `damaged` is the same log. It is placed if a file does not begin with a message of its name.
    """
    if are_names_right(log, files):
        return log
    in_order, size = damaged.in_order, log.mapped_file_size
    known, moved = in_order.renamed(), in_order.misnamed()
    without_place, odd = in_order.without_place(), list[LogFile]()
    placed = {one.path for one in (*known.log_files, *without_place)}
    kept = [*known.log_files, *(one for one in log.log_files if one.path not in placed)]
    for one in without_place:
        original = in_order.copy_of(one)
        if original is not None:
            _report_copy(one, original, reporter)
        elif known.log_files and (one.start - known.min_offset) % size:
            odd.append(one)
        else:  # it has replaced a file: its messages are told where they lie
            kept.append(one)
    paths = {one.start: one.path for one in kept}
    for wrong in moved:
        words = f"this one holds the messages from offset {wrong.start} on, as they say themselves"
        if wrong.is_swapped:
            owner = posixpath.basename(paths[wrong.named])
            words = f"the names of files of the log are swapped: {words}, and {owner} those from"
            words += f" {wrong.named} on"
        else:
            words = f"its name is not that of its messages: {words}"
        _report_name(wrong, words, reporter)
    log = CommitLog(log.store_path, size, tuple(sorted(kept)), files)
    for one in odd:
        _report_odd(one, log, in_order.count_in(one), reporter)
    return log


def _report_name(one: Misnamed, words: str, reporter: Reporter) -> None:
    reporter.at(one.path).add(
        "RMQDISK-25",
        f"{words}. RocketMQ reads each offset in the file of its name, and so another message",
        position=0,
        expected=f"{one.start:020d}",
        actual=f"{one.named:020d}",
        hint=RIGHT_PLACES,
    )


def _report_copy(one: LogFile, original: LogFile, reporter: Reporter) -> None:
    reporter.at(one.path).add(
        "RMQDISK-25",
        f"this file is a copy of {posixpath.basename(original.path)}, which is there with the same"
        " messages; queues, index and the end of the log show that no file of this name was"
        " replaced. A broker takes it for a part of the log, and appends after it if it is the"
        " last file",
        position=0,
        expected=f"{original.start:020d}",
        actual=f"{one.start:020d}",
        hint=WITHOUT_COPY,
    )


def _report_odd(one: LogFile, log: CommitLog, share: Counter[Fate], reporter: Reporter) -> None:
    """Report a file that begins where no file of its log can."""
    size, named = log.mapped_file_size, one.start
    left = share[Fate.ASIDE]
    told = [
        f"{plural(count, 'message')} of it {'is' if count == 1 else 'are'} {where}"
        for count, where in (
            (share[Fate.COPY], "at the right place too"),
            (share[Fate.MOVED] + share[Fate.RESTORED], "in no other file"),
            (left, "in no other file, and another one has its place, or nothing tells it"),
        )
        if count
    ]
    reporter.at(one.path).add(
        "RMQDISK-23",
        f"no file of this log begins at offset {named}: they begin each {size} bytes, at"
        f" {log.min_offset} and after. RocketMQ loads it all the same, and may read it in place of"
        f" the right file. {', '.join(told) or 'It holds no sound message'}",
        position=None if left else 0,
        expected=named - (named - log.min_offset) % size,
        actual=named,
        hint=RIGHT_PLACES,
    )
