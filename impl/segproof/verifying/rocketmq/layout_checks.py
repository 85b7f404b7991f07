# SPDX-License-Identifier: Apache-2.0
"""Layouts that are recognised and not read, and the parts of a store that no check reads.

Laws: RMQDISK-41, RMQDISK-42.
"""

import posixpath

from segproof.files import Files
from segproof.hints import reads
from segproof.reading.store_layouts import (
    holds_log,
    is_dledger_file,
    layout_around,
    unread_layout,
)
from segproof.verifying.reporting import Reporter
from segproof.verifying.unread_files import ROCKETMQ, declare_layout, report_layout

LAYOUT = "RMQDISK-42"
declare_layout(
    "index-service", reads("nothing here: leave it as it is, since no verdict covers it"), LAYOUT
)

DLEDGER_HINT = reads("leave it as it is, and compare the member with the others of its group")


def report_store_layout(store: str, files: Files, reporter: Reporter) -> bool:
    """Report a layout that is not read at all; return whether the store has one.

    A folder with older files of its log is a note.
    """
    try:
        layout = unread_layout(store, files)
    except OSError:
        return False  # what can't be read is reported by the checks of the parts
    if layout is None:
        return False
    if layout.is_beside:
        report = reporter.at(layout.path, shown_by=store)
        words = f"it was not looked into here: {layout.words}"
        report.add(ROCKETMQ, words, actual=layout.older_files, hint=layout.hint)
        return False
    report_layout(reporter.at(layout.path, shown_by=store), LAYOUT, layout.words, layout.hint)
    return True


def report_log_folder(path: str, files: Files, reporter: Reporter) -> bool:
    """Report a folder of a log that lies over several folders; return whether it is one."""
    try:
        if not holds_log(path, files) or (layout := layout_around(path, files)) is None:
            return False
    except OSError:
        return False
    report_layout(reporter.at(path), LAYOUT, layout.words, layout.hint)
    return True


def note_layout_around(path: str, files: Files, reporter: Reporter) -> None:
    """Note the layout of the store that a part belongs to, if it is not read: the part is judged by
    itself all the same.
    """
    try:
        layout = layout_around(path, files)
    except OSError:
        return
    if layout is not None:
        words = f"it was not looked into: {layout.words}"
        reporter.at(layout.path, shown_by=path).add(ROCKETMQ, words, hint=layout.hint)


def report_dledger_file(path: str, files: Files, reporter: Reporter) -> bool:
    """Report a file of DLedger; return whether the path is one."""
    if not is_dledger_file(path, files):
        return False
    part = posixpath.basename(posixpath.dirname(posixpath.abspath(path)))
    words = "a file of the log" if part == "data" else "a file of the index"
    words += " of DLedger, which segproof does not read"
    report_layout(reporter.at(path), LAYOUT, words, DLEDGER_HINT)
    return True
