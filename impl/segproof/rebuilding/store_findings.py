# SPDX-License-Identifier: Apache-2.0
"""Why no index is made from the commit log of a store: findings, with what to do instead."""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise

from segproof.commands import quoted_path
from segproof.files import NOT_REGULAR, Files
from segproof.findings import Finding, Severity
from segproof.hints import Hint, reads, writes
from segproof.reading.folder_names import names_of
from segproof.reading.log_files_inside import is_loaded
from segproof.reading.log_in_order import with_right_names
from segproof.rebuilding.partition_files import IN_THE_WAY
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.index_service import INDEX
from segproof.wording.reporting import Reporter, Wanted
from segproof.wording.rules import with_paths

Errors = Callable[[], Iterator[Finding]]
"""Finds the errors of the store, which takes as long as a verification."""
SAVE_STORE = writes("save the messages with `segproof salvage STORE --out DIR2`, index and all")
OTHER_LOG = "RMQDISK-44"
LOOK_FOR_FILE = reads(
    "look for the missing file where else the broker keeps files of its log (several paths in"
    " storePathCommitLog), in lost+found and on a replica"
)
NO_MESSAGE = reads(
    "keep the old index: look for the files of the log in lost+found or on a replica, or mount what"
    " holds them"
)


def misnamed(log: CommitLog, files: Files) -> tuple[Finding, ...]:
    """Return a finding for the first file whose name is not that of its messages."""
    _, found = with_right_names(log, files)
    return tuple(
        finding_at(
            one.path,
            0,
            f"this file holds the messages from offset {one.start} on, as they say themselves, and"
            f" its name says {one.named}: an index of them would lead to others",
            writes("save the messages with `segproof salvage`, which puts each at its own offset"),
            law="RMQDISK-25",
        )
        for one in found[:1]
    )


def misplaced(log: CommitLog, found: tuple[int, int] | None) -> tuple[Finding, ...]:
    """Return a finding if a message was found at an offset that says another one."""
    if found is None:
        return ()
    lies_at, offset = found
    log_file = log.file_of(lies_at) or log.log_files[-1]
    return (
        finding_at(
            log_file.path,
            lies_at - log_file.start,
            f"the message at offset {lies_at} says offset {offset}, and an entry of it would lead"
            " there: bytes were moved, or a file was copied over another one, and the old index"
            " tells what lay here",
            SAVE_STORE,
            law="RMQDISK-25",
        ),
    )


def holes(log: CommitLog) -> tuple[Finding, ...]:
    """Return a finding for the first file that does not follow the one before."""
    for before, after in pairwise(log.log_files):
        end = before.start + log.mapped_file_size
        if end != after.start:
            is_odd = after.start < end
            return (
                finding_at(
                    after.path,
                    0,
                    f"the log has {'a file too many' if is_odd else 'a hole'}: the file before ends"
                    f" at offset {end}, and this one begins at {after.start}",
                    SAVE_STORE if is_odd else LOOK_FOR_FILE,
                    law="RMQDISK-23",
                ),
            )
    return ()


def in_the_way(store: str, files: Files) -> tuple[Finding, ...]:
    """Return a finding for each folder, pipe or socket under a name that an index file may have.

    It stops a broker, and a new index cannot take its name. Raises: OSError.
    """
    folder, reporter = os.path.join(store, INDEX), Reporter(Wanted(), structure="index-file")
    for name in names_of(folder, files) if files.status(folder) is not None else ():
        path = os.path.join(folder, name)
        status = files.status(path)
        if is_loaded(name) and status is not None and not status.is_regular:
            reporter.at(path, shown_by=folder).of_wrong_kind(NOT_REGULAR, IN_THE_WAY)
    return tuple(reporter.finish())


def law_at(errors: Errors, path: str, position: int, default: str = "RMQDISK-24") -> str:
    """Return the law that `verify` finds broken at a byte of the log: its command shows it."""
    for one in errors():
        if (one.path, one.position) == (path, position):
            return one.law
    return default


def is_of_another_log(finding: Finding) -> bool:
    """Return whether a finding says that nothing shows whose log it is: index and queues differ."""
    return finding.law == OTHER_LOG and finding.severity is Severity.ERROR


def of_another_log(errors: Errors) -> tuple[Finding, ...]:
    """Return the finding by which `verify` says that index and queues are of another log."""
    return tuple(one for one in errors() if one.law == OTHER_LOG)[:1]


def law_of_another_log(errors: Errors) -> str:
    """Return the law by which `verify` says that the index leads to messages of another log."""
    shown = {one.law for one in errors()}
    return next((law for law in (OTHER_LOG, "RMQDISK-28", "RMQDISK-23") if law in shown), OTHER_LOG)


def finding_at(path: str, position: int, message: str, hint: Hint, law: str) -> Finding:
    """Return the error at a byte of a log file, by whose path its store is found."""
    return Finding(
        law, Severity.ERROR, "index-service", path, position, None, None, message,
        with_paths(hint, path, os.path.dirname(os.path.dirname(path)) or "."),
        f"segproof verify {quoted_path(os.path.dirname(os.path.dirname(path)) or '.')} --law {law}",
    )  # fmt: skip
