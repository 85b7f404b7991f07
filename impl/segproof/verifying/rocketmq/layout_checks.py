# SPDX-License-Identifier: Apache-2.0
"""Layouts that are recognised and not read, and the parts of a store that no check reads.

Laws: RMQDISK-41, RMQDISK-42.
"""

from segproof.files import Files
from segproof.hints import reads
from segproof.reading.log_rows import Surroundings
from segproof.reading.store_layouts import layout_around, unread_layout
from segproof.reading.unread_places import unread_place
from segproof.verifying.unread_files import (
    ROCKETMQ,
    declare_layout,
    not_looked_into,
    report_layout,
)
from segproof.wording.reporting import Reporter

LAYOUT = "RMQDISK-42"
declare_layout(
    "index-service",
    reads(
        "leave it as it is, since no verdict covers it, and see what the finding says of its"
        " layout: how a log over several folders is joined by links, or when a member of DLedger"
        " may start with an empty directory"
    ),
    LAYOUT,
)


def report_store_layout(
    store: str, files: Files, reporter: Reporter, around: Surroundings | None = None
) -> bool:
    """Report a layout that is not read at all; return whether the store has one.

    A folder with files that its log lacks is a note. `around` is as that of `unread_layout`.
    """
    try:
        layout = unread_layout(store, files, around)
    except OSError:
        return False  # what can't be read is reported by the checks of the parts
    if layout is None:
        return False
    if layout.is_beside:
        report = reporter.at(layout.path, shown_by=store)
        words = f"it was not looked into here: {layout.words}"
        report.add(ROCKETMQ, words, actual=layout.files_beside, hint=layout.hint)
        return False
    report_layout(reporter.at(layout.path, shown_by=store), LAYOUT, layout.words, layout.hint)
    return True


def report_unread_place(path: str, files: Files, reporter: Reporter) -> bool:
    """Report a part of a layout that is not read, named itself; return whether the path is one."""
    found = unread_place(path, files)
    if found is None:
        return False
    report = reporter.at(path)
    if found.is_layout:
        report_layout(report, found.law, found.words, found.hint)
    else:
        not_looked_into(report, found.words, found.law, is_all=True, files=files, hint=found.hint)
    return True


def note_layout_around(
    path: str, files: Files, reporter: Reporter, around: Surroundings | None = None
) -> None:
    """Note the layout of the store that a part belongs to, if it is not read: the part is judged by
    itself all the same.
    """
    try:
        layout = layout_around(path, files, around)
    except OSError:
        return
    if layout is not None:
        words = f"it was not looked into: {layout.words}"
        reporter.at(layout.path, shown_by=path).add(ROCKETMQ, words, hint=layout.hint)
