# SPDX-License-Identifier: Apache-2.0
"""Checks of the files in `config`: topics, consumer offsets, and what else a broker keeps as JSON.

A broker reads `NAME`, and `NAME.bak` if it can't read `NAME`. It begins with an empty state if
neither is there. If `NAME.bak` can't be read either, its start fails.

Upstream: RocketMQ 4.9.8 and 5.5.1: ConfigManager.load, BrokerController.initialize.
Laws: DISK-1, RMQDISK-41, RMQDISK-43, RMQDISK-57.
Not covered: what the files say; files above CONFIG_BYTES_MAX, which are told; RocksDB in `config`.
"""

import posixpath
from contextlib import suppress

from segproof.files import NOT_REGULAR, Files
from segproof.findings import Severity
from segproof.hints import Hint, changes, reads, writes
from segproof.reading.config_file import (
    BACKUP_SUFFIX,
    CONFIG,
    WRITTEN_SUFFIX,
    ConfigFile,
    ConfigState,
    config_files_in,
    read_config_file,
    without,
)
from segproof.reading.config_lacks import BETTER, lacks_of_config
from segproof.reading.folder_names import has_folder
from segproof.verifying.unread_files import ROCKETMQ, not_looked_into
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

FROM_BACKUP = changes(
    "put the file of a backup in its place; a slave keeps the same topics, groups and offsets",
    only_if="that file is of this broker or of its slave",
    if_wrong="the broker takes the topics and offsets of another one for its own",
    copy_step="stop the broker and copy the folder config away",
)
declare("index-service", Severity.ERROR, FROM_BACKUP, "RMQDISK-43")
declare("index-service", Severity.WARNING, BETTER, "RMQDISK-57")

OTHER_KIND = changes(
    "move it out of the store; then a whole .tmp beside it has the newest state, and can take its"
    " place. Without a whole .tmp or .bak put the file of a backup in its place, or of a slave,"
    " which keeps the same topics, groups and offsets",
    only_if="no broker made it, and what takes its place is of this broker or of its slave",
    if_wrong="the broker takes the topics and offsets of another one for its own",
    copy_step="stop the broker and copy the folder config away",
)
CANNOT_WRITE = (
    "it can't write its state while this is here, so that each later change of it is lost"
)
KEEP_OTHER = writes(
    "copy both files away before a broker starts, and read the text of the whole one in an editor:"
    " a broker goes on with it, whatever it says"
)
COUNTS_ONLY = frozenset({"timermetrics", "transactionMetrics", "consumerFilter.json"})
"""Files that a broker makes again by itself."""


def check_config_file(path: str, files: Files, reporter: Reporter) -> None:
    """Judge one file by itself, and say what a broker makes of it beside its other one."""
    name = posixpath.basename(path).removesuffix(BACKUP_SUFFIX)
    is_backup = path.endswith(BACKUP_SUFFIX)
    beside = path.removesuffix(BACKUP_SUFFIX) if is_backup else path + BACKUP_SUFFIX
    try:
        own = read_config_file(path, files)
    except OSError as error:
        reporter.at(path).failed(error)
        return
    sibling = ConfigFile(beside, ConfigState.UNREAD, words="it can't be read")
    with suppress(OSError):
        sibling = read_config_file(beside, files)
    if own.state is ConfigState.UNREAD:
        not_looked_into(reporter.at(path), own.words, ROCKETMQ, is_all=True)
    elif own.state is ConfigState.OTHER_KIND:
        reporter.at(path).of_wrong_kind(NOT_REGULAR, hint=OTHER_KIND)
    elif own.is_whole:
        if own.is_null:
            words = "it is the word null, which a broker reads as no state at all: it starts"
            _report(own, f"{words} {without(name)}", reporter, Severity.NOTE)
    else:
        _report_alone(own, sibling, name, is_backup, reporter)


def _report_alone(
    own: ConfigFile, sibling: ConfigFile, name: str, is_backup: bool, reporter: Reporter
) -> None:
    """Report a file that no broker can read, with what it does then."""
    other = posixpath.basename(sibling.path)
    if sibling.is_whole:
        words = f"a broker reads {other} in its place, with the state before the last write"
        if is_backup:
            words = f"a broker reads it only if it can't read {other}, which is whole"
        _report(own, f"{own.words}: {words}", reporter, Severity.WARNING, KEEP_OTHER)
        return
    beside = sibling.words if sibling.is_there else "it is not there"
    words = f"a broker starts {without(name)}"
    if (own if is_backup else sibling).ends_a_start:
        words = "a broker reads both, and its start fails"
    _report(own, f"{own.words}, and of {other} {beside}: {words}", reporter)


def _from_written(written: str) -> Hint:
    """Return what to do beside a state that a broker was writing, which is whole."""
    return changes(
        f"look first at {written} beside it, which is whole: a broker that was stopped while it"
        " wrote left the newest state there. Put it in its place if it says what it should, else"
        " the file of a backup; a slave keeps the same topics, groups and offsets",
        only_if=FROM_BACKUP.only_if,
        if_wrong=FROM_BACKUP.if_wrong,
        copy_step=FROM_BACKUP.copy_step,
    )


def check_config(store: str, files: Files, reporter: Reporter) -> None:
    """Judge the files of JSON in `config`."""
    folder = posixpath.join(store, CONFIG)
    if not has_folder(store, CONFIG, files):
        return
    try:
        names = files.list_directory(folder)
    except OSError as error:
        reporter.at(folder).unreadable(error)
        return
    for name in config_files_in(names):
        path = posixpath.join(folder, name)
        pair = []
        for one in (path, path + BACKUP_SUFFIX):
            try:
                pair.append(read_config_file(one, files))
            except OSError as error:
                reporter.at(one).failed(error)
                pair.append(ConfigFile(one, ConfigState.UNREAD))
                continue
            if pair[-1].state is ConfigState.UNREAD:
                not_looked_into(reporter.at(one, shown_by=store), pair[-1].words, ROCKETMQ)
        _judge(name, pair[0], pair[1], _whole_beside(path, files), reporter)


def check_config_state(store: str, files: Files, reporter: Reporter) -> None:
    """Report topics and offsets that `config` lacks, by the queues and the other files there."""
    for one in lacks_of_config(store, files):
        reporter.at(one.path).add(
            "RMQDISK-57", one.words, expected=one.expected, actual=one.actual, hint=one.hint
        )


def _whole_beside(path: str, files: Files) -> str:
    """Return the name of the state that a broker was writing, if it is whole; else nothing."""
    with suppress(OSError):
        if read_config_file(path + WRITTEN_SUFFIX, files).is_whole:
            return posixpath.basename(path) + WRITTEN_SUFFIX
    return ""


def _judge(
    name: str, own: ConfigFile, backup: ConfigFile, written: str, reporter: Reporter
) -> None:
    """Report what a broker makes of a file and its backup."""
    if ConfigState.UNREAD in (own.state, backup.state):
        return
    if ConfigState.OTHER_KIND in (own.state, backup.state):
        _report_other_kind(name, own, backup, reporter)
        return
    bak = posixpath.basename(backup.path)
    if own.is_null:
        _report(
            own,
            f"it is the word null, which a broker reads as no state at all, and does not ask {bak}:"
            f" it starts {without(name)}",
            reporter, Severity.NOTE,
        )  # fmt: skip
    if own.is_whole:
        if backup.is_there and not backup.is_whole:
            _report(
                backup, f"{backup.words}; a broker reads it only if it can't read {name}",
                reporter, Severity.NOTE,
                reads("nothing: a broker does not need it, and writes it again with its state"),
            )  # fmt: skip
        return
    if backup.is_broken:
        words = f"{backup.words}, and {name} is not there: a broker reads this file in its place"
        if own.is_there:
            words = f"{own.words}, and of {bak} {backup.words}: a broker reads the one, then the"
            words += " other"
        _report(
            own if own.is_there else backup, f"{words}, and its start fails", reporter,
            hint=writes(
                "look for the file in a backup or on a slave, which keeps the same topics, groups"
                " and offsets; else save the store with `segproof salvage STORE --out DIR2`, which"
                f" leaves both files out, so that a broker starts there {without(name)}"
            ),
        )  # fmt: skip
    elif backup.is_whole:
        if own.is_there:
            _report(
                own,
                f"{own.words}: a broker reads {bak} in its place, with the state before the last"
                " write; 5.5.1 removes this file",
                reporter, Severity.WARNING,
                FROM_BACKUP.after(
                    f"copy this file away, and read the text of {bak} in an editor: a broker that"
                    " starts here goes on with it, whatever it says. Nothing more, if that is"
                    " right; else "
                ),
            )  # fmt: skip
    else:
        severity = Severity.WARNING if name in COUNTS_ONLY else None
        gone = own if own.is_there else backup
        words = f"{gone.words}, and there is no state in {bak}: a broker starts {without(name)}"
        if gone is backup:
            words = f"{gone.words}, and {name} is not there: a broker starts {without(name)}"
        hint = _from_written(written) if written else None
        _report(gone, words, reporter, severity, hint)


def _report_other_kind(name: str, own: ConfigFile, backup: ConfigFile, reporter: Reporter) -> None:
    """Report a folder, a pipe or a socket under the name of a file or of its backup."""
    bak = posixpath.basename(backup.path)
    if own.state is ConfigState.OTHER_KIND:
        words = f"a broker starts {without(name)}, and {CANNOT_WRITE}"
        if backup.is_whole:
            words = f"a broker reads {bak} in its place, with the state before the last write, and"
            words += f" {CANNOT_WRITE}"
        elif backup.ends_a_start:
            words = (
                f"a broker reads {bak} in its place, which it can't read either: its start fails"
            )
        reporter.at(own.path).of_wrong_kind(NOT_REGULAR, words, OTHER_KIND)
    if backup.state is ConfigState.OTHER_KIND:
        words = f"a broker that reads {name} does not need it; but {CANNOT_WRITE}"
        if not own.is_whole:
            words = f"a broker reads it in the place of {name}, and its start fails"
        reporter.at(backup.path).of_wrong_kind(NOT_REGULAR, words, OTHER_KIND)


def _report(
    one: ConfigFile,
    words: str,
    reporter: Reporter,
    severity: Severity | None = None,
    hint: Hint | None = None,
) -> None:
    position = one.fault if one.is_broken else None
    reporter.at(one.path).add("RMQDISK-43", words, position=position, severity=severity, hint=hint)
