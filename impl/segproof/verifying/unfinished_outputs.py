# SPDX-License-Identifier: Apache-2.0
"""An output of `rebuild` or `salvage` that is not whole: no verdict may call it sound.

Laws: DISK-61.
"""

import posixpath
from collections.abc import Iterable

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import changes, reads, writes
from segproof.reading.file_names import read_partition_name
from segproof.reading.unfinished import (
    MARKER,
    SALVAGE_MARKER,
    VERBS,
    Unfinished,
    partitions_of,
    unfinished_at,
)
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import declare

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
        report.add(LAW, f"{mark.words}, as {mark.path} shows", hint=writes(mark.step))


def report_unfinished_file(report: PathReporter, files: Files) -> None:
    """Report a single file of an unfinished output, also where its path is a link."""
    given = report.path
    own, real = (posixpath.dirname(path) or "." for path in (given, posixpath.realpath(given)))
    mark = unfinished_at(own, files) or unfinished_at(real, files)
    if mark is not None:
        report.add(LAW, f"{mark.words}, as {mark.path} shows", hint=writes(mark.step))


def report_marks(directory: str, names: Iterable[str], files: Files, reporter: Reporter) -> None:
    """Report the marks among the names in a directory."""
    there = [*names]
    for name in there:
        if name in VERBS:
            path = posixpath.join(directory, name)
            mark = Unfinished(path, VERBS[name], partitions_of(path, files))
            parts = mark.parts(there)
            how = ""
            if parts is not None:
                whole = [one for one in there if _is_partition(one) and one not in parts]
                of_it = ", ".join(filter(_is_partition, parts)) or "none so far"
                how = f". Partitions of it: {of_it}. Whole, of another one: "
                how += ", ".join(whole) or "none"
                lacking = [one for one in mark.partitions or () if one not in there]
                how += f". Not here: {', '.join(lacking)}" if lacking else ""
            report = reporter.at(path, shown_by=directory)
            report.add(LAW, f"{mark.words}{how}", hint=mark.hint(there))


def _is_partition(name: str) -> bool:
    known = read_partition_name(name)
    return known is not None and not known.state


def report_store(store: str, names: Iterable[str], files: Files, reporter: Reporter) -> None:
    """Report the marks in a store: a rebuild in place leaves a folder, and the store is whole."""
    for name in names:
        if name == MARKER:
            reporter.at(posixpath.join(store, name), shown_by=store).add(
                LAW,
                "a rebuild of the index in place ended before it was whole, or is at work: some"
                " index files may be new and others old",
                hint=REBUILD_AGAIN,
            )
        elif name == SALVAGE_MARKER:
            report_unfinished(reporter.at(store), store, files)
