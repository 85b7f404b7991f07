# SPDX-License-Identifier: Apache-2.0
"""An output of `rebuild` or `salvage` that is not whole: no verdict may call it sound.

Laws: DISK-61.
"""

import posixpath
from collections.abc import Iterable

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import changes, reads, writes
from segproof.reading.unfinished import MARKER, VERBS, Unfinished, unfinished_at
from segproof.verifying.reporting import PathReporter, Reporter
from segproof.verifying.rules import declare

LAW = "DISK-61"
HINT = reads("find out from what it was made, and make it again: use nothing of this")
declare("partition-log", Severity.ERROR, HINT, LAW)
REBUILD_AGAIN = changes(
    "run the rebuild again (`segproof rebuild STORE --in-place`), which ends what was begun",
    only_if="no broker and no other rebuild runs on this store",
    if_wrong="two processes write the same index files",
    copy_step="stop the broker and copy the index folder away",
)


def report_unfinished(report: PathReporter, directory: str, files: Files) -> None:
    """Report a partition, store or file that is a part of an unfinished output."""
    mark = unfinished_at(directory, files)
    if mark is not None:
        _report(report, mark, f", as {mark.path} shows")


def report_marks(directory: str, names: Iterable[str], reporter: Reporter) -> None:
    """Report the marks among the names in a directory."""
    for name in names:
        if name in VERBS:
            path = posixpath.join(directory, name)
            _report(reporter.at(path, shown_by=directory), Unfinished(path, VERBS[name]), "")


def report_store(store: str, names: Iterable[str], reporter: Reporter) -> None:
    """Report the marks in a store: a rebuild in place leaves a folder, and the store is whole."""
    for name in names:
        if name == MARKER:
            reporter.at(posixpath.join(store, name), shown_by=store).add(
                LAW,
                "a rebuild of the index in place ended before it was whole, or is at work: some"
                " index files may be new and others old",
                hint=REBUILD_AGAIN,
            )
        else:
            report_marks(store, [name], reporter)


def _report(report: PathReporter, mark: Unfinished, how: str) -> None:
    report.add(LAW, f"{mark.words}{how}", hint=writes(mark.step))
