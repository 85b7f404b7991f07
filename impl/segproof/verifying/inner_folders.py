# SPDX-License-Identifier: Apache-2.0
"""Folders inside of a partition that have logs: segments which somebody moved there, or a copy.

No broker reads such a folder. Its logs are compared with those of the partition, batch by batch.

Laws: DISK-3, DISK-45.
"""

import posixpath
import re
from collections.abc import Iterator

from segproof.commands import quoted_path
from segproof.counts import plural
from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, reads, writes
from segproof.reading.file_names import SEGMENT_SUFFIXES, is_like_a_log, read_file_name
from segproof.reading.folder_names import names_of
from segproof.verifying.folder_extents import Extent, extent_of, lacking, outside
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import new_place
from segproof.verifying.unread_files import not_looked_into

FOLDER_IN_PARTITION = "a folder in a partition, which no broker reads"
MAY_BELONG_HERE = "no log of this partition has them, and they may belong here"
MAY_LACK = "no log of this partition has by their names, and they may belong here"
LACKING = (MAY_BELONG_HERE, MAY_LACK)
"""Words of a finding about a folder that has what the partition lacks."""
NUMBERED = re.compile(r"[0-9]{20}", re.ASCII)
"""The base offset that the name of a log begins with."""
HINT_OF_COPY = reads("nothing: the partition has all of it, and no broker reads the folder")
HINT_OF_UNREADABLE = writes(
    "copy these files into another folder, unpacked and under the names of logs (an offset in 20"
    " digits, and .log), and look into the copies with `segproof verify`"
)
HINT_OF_OTHERS = reads(
    "look into the logs there with `segproof dump`: find out which topic and partition they are of"
)
LEVELS_MAX = 4
FOLDERS_MAX = 64
"""At most this many folders inside of one are searched for logs."""


def report_inner_folder(path: str, directory: str, files: Files, reporter: Reporter) -> None:
    """Report the folder `path` in the partition `directory`, with the logs in it and below it."""
    report = reporter.at(path, shown_by=directory)
    found = list(_with_logs(path, directory, files))
    if not found:
        report.add("DISK-3", "no file of a partition has this name")
    else:
        words, hint, is_missing = _told(found, path, directory, files)
        severity = Severity.WARNING if is_missing else None
        report.add("DISK-3", words, severity=severity, hint=hint)
    not_looked_into(report, FOLDER_IN_PARTITION, files=files)


def _with_logs(path: str, directory: str, files: Files) -> Iterator[tuple[str, Extent]]:
    """Yield the folders at and below `path` that have logs, with what these hold."""
    own = status_of(files, directory)
    seen: set[object] = {None if own is None else own.identity}
    waiting = [(path, 1)]
    count = 0
    while waiting and count < FOLDERS_MAX:
        folder, level = waiting.pop(0)
        status = status_of(files, folder)
        if status is None or not status.is_directory or status.identity in seen:
            continue
        if status.identity[1] > 0:
            seen.add(status.identity)
        count += 1
        extent = extent_of(folder, files)
        if extent.logs or extent.others:
            yield folder, extent
        if level < LEVELS_MAX:
            waiting += [
                (posixpath.join(folder, name), level + 1) for name in names_of(folder, files)
            ]


def _told(
    found: list[tuple[str, Extent]], path: str, directory: str, files: Files
) -> tuple[str, Hint | None, bool]:
    """Return in words what the logs are, what to do, and whether the partition may lack them."""
    used = extent_of(directory, files)
    rows = []
    for folder, extent in found:
        absent = lacking(extent.batches, used.batches)
        is_known = not (extent.are_too_many or used.are_too_many)
        rows.append((folder, extent, outside(absent, used.ranges) if is_known else absent, absent))
    folder, extent, missing, absent = max(rows, key=lambda one: (len(one[2]), len(one[3])))
    place = "" if folder == path else f" in {folder}"
    more = f"; {plural(len(found) - 1, 'more folder')} in it have logs" if found[1:] else ""
    words = f"{FOLDER_IN_PARTITION}, has logs{place}: {extent.words}{more}"
    if extent.are_too_many or used.are_too_many:
        return f"{words}. They have too many batches to be compared", HINT_OF_OTHERS, False
    if len(missing):
        words += (
            f". {plural(len(missing), 'batch', 'has', 'have')} offsets from"
            f" {int(missing[:, 0].min())} to {int(missing[:, 1].max())}: {MAY_BELONG_HERE}"
        )
        return words, _steps(folder, directory, files), True
    if named := [
        one for each, other in found for one in _missing_by_name(each, other, used, files)
    ]:
        words += (
            f". {plural(len(named), 'log')} there cannot be compared, {named[0]} first: offsets"
            f" that {MAY_LACK}"
        )
        return words, HINT_OF_UNREADABLE, True
    if len(absent):
        words += ". The partition has their offsets, in other batches"
        return words, HINT_OF_OTHERS, False
    if extent.is_whole and len(extent.batches):
        return f"{words}. The partition has each of their batches too", HINT_OF_COPY, False
    return words, HINT_OF_OTHERS, False


def _missing_by_name(folder: str, extent: Extent, used: Extent, files: Files) -> list[str]:
    """Return the paths of packed, renamed or damaged logs whose base offset the partition lacks."""
    found = []
    for name in names_of(folder, files):
        known = read_file_name(name)
        own = extent.by_log.get(name)
        is_log = own is not None and not own.is_whole
        is_log |= own is None and (is_like_a_log(name, known) or ".log." in name)
        base = NUMBERED.match(name)
        status = status_of(files, posixpath.join(folder, name))
        if not is_log or base is None or status is None or not status.size_bytes:
            continue
        offset = int(base[0])
        if not any(first <= offset <= last for first, last in used.ranges):
            found.append(posixpath.join(folder, name))
    return found


def _steps(folder: str, directory: str, files: Files) -> Hint:
    """Return how the logs come into a copy of the partition, on another disk."""
    new = new_place("joined", directory)
    name = posixpath.basename(posixpath.normpath(posixpath.abspath(directory)))
    copy = quoted_path(posixpath.join(new, name))
    kinds = {posixpath.splitext(one)[1] for one in names_of(folder, files)}
    inside = quoted_path(posixpath.join(folder, ""))
    patterns = " ".join(f"{inside}*{one}" for one in SEGMENT_SUFFIXES if one in kinds)
    return writes(
        "copy the partition to another disk, and these segments into that copy:"
        f" `install -d {quoted_path(new)}`, `cp -a {quoted_path(directory)} {quoted_path(new)}`,"
        f" `cp -an {patterns} {copy}`, and `segproof verify {copy}`. Where the offsets follow each"
        " other, and no finding is new, the segments belong to this partition"
    )
