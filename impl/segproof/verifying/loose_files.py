# SPDX-License-Identifier: Apache-2.0
"""Files of segments that lie beside partitions, in none of them: no broker reads these.

Several of them with a log are mostly one partition without its folder, such as an archive that was
unpacked at the wrong place. They are one finding, with what names the partition.

Laws: DISK-3, DISK-45.
"""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from segproof.commands import quoted_path
from segproof.counts import plural
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import Hint, reads, writes
from segproof.reading.directory_kinds import STRAY, is_stray_beside
from segproof.reading.file_contents import content_of
from segproof.reading.file_names import NameKind, is_known_in_data_directory, read_file_name
from segproof.reading.log_pieces import LogPieces
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import new_place
from segproof.verifying.small_files import METADATA
from segproof.verifying.unread_files import not_looked_into

HINT_OF_STRAY = reads(
    "look into it with `segproof verify` and `segproof dump` of the file itself, and find out"
    " which partition it is of: its records may be missing there"
)
NAMED_MAX = 3
"""At most this many partitions are named to which loose files may belong."""
Absent = Mapping[str, Mapping[str, int]]
"""Partitions that checkpoints name and that have no folder, as TOPIC-N, each with its offset in
each checkpoint."""


def report_strays(
    path: str, names: Sequence[str], absent: Absent, files: Files, reporter: Reporter
) -> set[str]:
    """Report the files of segments beside partitions; return their names.

    And those of the small files of a partition, where they lie beside its logs.
    """
    strays = {name for name in names if is_stray_beside(name)}
    kinds = {name: read_file_name(name) for name in strays}
    loose = sorted(
        (known.base_offset, name)
        for name, known in kinds.items()
        if known.kind in (NameKind.SEGMENT, NameKind.MISNAMED)
    )
    logs = [name for _, name in loose if name.endswith(".log")]
    is_set = bool(logs) and len(loose) > 1
    small = [name for name in names if is_set and _is_small(name)]
    together = [*(name for _, name in loose), *small] if is_set else []
    for name in sorted(strays | set(small)):
        report = reporter.at(posixpath.join(path, name), shown_by=path)
        if name not in together:
            report.add("DISK-3", STRAY, severity=Severity.ERROR, hint=HINT_OF_STRAY)
        elif name == logs[0]:
            end = _end_of(posixpath.join(path, logs[-1]), files)
            owner = _owner(absent, end)
            first = kinds[name].base_offset
            offsets = f"offsets {first} to {end - 1}" if end else f"offsets from {first} on"
            report.add(
                "DISK-3",
                f"{STRAY}. {plural(len(loose), 'file')} of segments lie so,"
                f" {plural(len(logs), 'log')} with {offsets}, as those of one partition without its"
                f" folder{_identity(path, small, owner, files)}",
                severity=Severity.ERROR,
                hint=_steps(path, together, owner),
            )
        not_looked_into(report, "it lies beside partitions; name it to look into it")
    return strays | set(small)


def _is_small(name: str) -> bool:
    """Return whether a file is one of a partition, and of no segment."""
    is_own = read_file_name(name).kind is NameKind.KNOWN
    return is_own and not is_known_in_data_directory(name)


def _end_of(path: str, files: Files) -> int | None:
    """Return the offset after the last sound batch of a log; None without a sound batch."""
    try:
        with closing(files.open(path)) as file:
            pieces = LogPieces(file, 0, file.size()).sound()
    except OSError:
        return None
    return pieces[-1].last_offset + 1 if pieces else None


def _owner(absent: Absent, end: int | None) -> list[str]:
    """Return the partitions to which logs that end so may belong.

    Those whose log ended there, as a checkpoint says; else all that are absent.
    """
    known = [name for name, told in absent.items() if end is not None and end in told.values()]
    return known or list(absent)


def _identity(path: str, small: Sequence[str], owner: Sequence[str], files: Files) -> str:
    """Return in words what names the partition."""
    told = ""
    if METADATA in small:
        content = content_of(posixpath.join(path, METADATA), files)
        told += f"; beside them is {content.words}" if content is not None else ""
    if owner:
        named = ", ".join(owner[:NAMED_MAX])
        told += f"; the checkpoints here name {named}, and no folder of that name is here"
    return told


def _steps(path: str, names: Iterable[str], owner: Sequence[str]) -> Hint:
    """Return how the files get a folder, and are looked into: in a copy, on another disk."""
    folder = owner[0] if len(owner) == 1 else "unknown-0"
    copy = posixpath.join(new_place("loose", path), folder)
    kinds = sorted({posixpath.splitext(name)[1] for name in names} - {""})
    whole = [name for name in names if not posixpath.splitext(name)[1] or name == METADATA]
    patterns = [f"{quoted_path(posixpath.join(path, ''))}*{one}" for one in kinds]
    patterns = [one for one in patterns if not one.endswith("*.metadata")]
    given = " ".join([*patterns, *(quoted_path(posixpath.join(path, one)) for one in whole)])
    named = "" if len(owner) == 1 else ", and give the folder the name of its topic and partition"
    return writes(
        f"copy them into a folder of their own, on another disk: `install -d {quoted_path(copy)}`,"
        f" `cp -a {given} {quoted_path(copy)}`, and `segproof verify {quoted_path(copy)}`{named}."
        " Only that folder, in its log directory, gives a broker the records"
    )
