# SPDX-License-Identifier: Apache-2.0
"""Check the names of files in a partition, and name what lies where no broker reads it.

Laws: FILE-1, FILE-2, DISK-3, DISK-27.
"""

import posixpath
from collections.abc import Iterable, Mapping

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import changes, reads, writes
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import SEGMENT_SUFFIXES, FileName, NameKind, is_of_salvage
from segproof.reading.folder_names import has_folder
from segproof.reading.unfinished import VERBS
from segproof.verifying.inner_folders import InnerFolders
from segproof.wording.reporting import Reporter
from segproof.wording.rules import MOVE_OUT, declare

declare("log-segment", Severity.ERROR,
    changes("rename the file to the offset of its first batch, in 20 digits", only_if="`segproof"
    " dump FOLDER` ends with exit code 0, and no log here has its offsets", if_wrong="two logs"
    " claim the same offsets, and a broker may delete sound records", copy_step="stop the broker"
    " and copy the directory away"), "FILE-1", "FILE-2")  # fmt: skip
HINT_OF_INDEX = writes(
    "nothing to save in it: an index is made new from its log, once that has its name, with"
    " `segproof rebuild DIR --out DIR2`"
)
MOVE_OUT_INDEX = changes(
    "move it out, into a directory outside of the broker's data directories",
    only_if="it is an index, as its name says: an index has no records, and is made new from its"
    " log",
    if_wrong="what is in it is read by no broker",
    copy_step="stop the broker, whose next start fails with this file, and copy it away",
)
declare("partition-log", Severity.ERROR,
    reads("look into both with `segproof dump`: what the other one holds is read by no broker"),
    "DISK-27")  # fmt: skip

INDEX_SUFFIXES = SEGMENT_SUFFIXES[1:]


def report_names(
    path: str, kinds: Mapping[str, FileName], files: Files, reporter: Reporter
) -> None:
    """Report what is wrong with the names in a partition, and the folders in it."""
    folders = InnerFolders(path, files, reporter)
    for name, known in kinds.items():
        full = posixpath.join(path, name)
        if name in VERBS:
            continue
        if known.kind is not NameKind.FOREIGN:
            report_name(full, known, reporter)
            continue
        if has_folder(path, name, files):
            folders.report(full)
            continue
        report = reporter.at(full, shown_by=path)
        report.add("DISK-3", "no file of a partition has this name")


def report_others(paths: Iterable[str], directory: str, reporter: Reporter) -> None:
    """Report what lies in a data directory, and is neither a partition nor a broker's own file."""
    for path in paths:
        report = reporter.at(path, shown_by=directory)
        if is_of_salvage(posixpath.basename(path)):
            words = "what `segproof salvage` kept beside the partitions"
            report.add("DISK-3", words, hint=reads("nothing: no broker reads it"))
        else:
            report.add("DISK-3", "neither a partition nor a broker's own file")


def report_twins(path: str, kinds: Mapping[str, FileName], reporter: Reporter) -> None:
    """Report logs whose names are the same base offset."""
    logs: dict[int, str] = {}
    for name, known in sorted(kinds.items(), key=lambda one: one[1].kind is NameKind.MISNAMED):
        is_log = known.kind in (NameKind.SEGMENT, NameKind.MISNAMED) and known.suffix == ".log"
        if not is_log:
            continue
        other = logs.setdefault(known.base_offset, name)
        if other != name:
            reporter.at(posixpath.join(path, name), shown_by=path).add(
                "DISK-27",
                f"two logs begin at offset {known.base_offset} by their names, this one and"
                f" {other}: Kafka reads only the one whose name has 20 digits",
                expected=known.base_offset,
                actual=other,
            )


def report_name(path: str, known: FileName, reporter: Reporter) -> bool:
    """Report what is wrong with a file's name; return whether something is."""
    if known.kind is NameKind.MISNAMED:
        right = segment_file_name(known.base_offset, known.suffix)
        reporter.at(path).add(
            "FILE-1",
            f"the name is not the base offset {known.base_offset} in 20 digits: a broker does not"
            " find this file",
            expected=right,
            actual=posixpath.basename(path),
            hint=None if known.suffix.startswith(".log") else HINT_OF_INDEX,
        )
    elif known.kind is NameKind.NO_OFFSET:
        reporter.at(path).add(
            "FILE-2",
            "the name says no offset: what stands before its first dot is no 64-bit number, so that"
            f" Kafka can't load this partition, and its start fails{_older(path)}",
            expected="an offset in 20 digits",
            actual=posixpath.basename(path),
            hint=MOVE_OUT_INDEX if known.suffix in INDEX_SUFFIXES else MOVE_OUT,
        )
    else:
        return False
    return True


def _older(path: str) -> str:
    """Return what older releases make of a name without an offset, where that is no failure."""
    if path.endswith(".cleaned"):
        return "; releases up to 1.1 remove the file"
    is_known = path.removesuffix(".swap").endswith(SEGMENT_SUFFIXES)
    return "; releases up to 2.8 pass it by" if path.endswith(".swap") and not is_known else ""
