# SPDX-License-Identifier: Apache-2.0
"""The log directories of one broker beside each other: whose they are, and what two of them hold.

A start of Kafka ends where two of its log directories, or two folders of one, hold the same
partition. Whether two directories are of one broker is in their `meta.properties`.

Upstream: Kafka 4.4.0: LogManager.loadLog, MetaProperties, MetaPropertiesEnsemble.
Laws: DISK-26, DISK-47, DISK-48.
"""

import posixpath
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from segproof.commands import quoted_path
from segproof.counts import plural
from segproof.errors import NumberFormatError
from segproof.files import Files, FileStatus, status_of
from segproof.findings import Severity
from segproof.hints import changes, reads
from segproof.integers import parse_int
from segproof.reading.file_names import (
    NameKind,
    is_known_in_data_directory,
    read_file_name,
    read_partition_name,
    starts_with_folder,
)
from segproof.verifying.reporting import PathReporter, Reporter
from segproof.verifying.rules import declare

declare("partition-log", Severity.ERROR,
    changes("move it out of this directory, to another place of the same disk; for a folder of the"
    " file system itself, such as lost+found, give log.dirs a new folder beside it, and move the"
    " partitions and the broker's own files there", only_if="nothing in it belongs to this broker"
    " under another name", if_wrong="what it holds of the broker is not loaded until it is put"
    " back", copy_step="stop the broker, look into the folder, and copy it to another disk"),
    "DISK-47")  # fmt: skip
declare("partition-log", Severity.ERROR,
    changes("move the folder with fewer offsets, as a whole, out of its log directory",
    only_if="the other folder, or another replica, has every offset that it has",
    if_wrong="the offsets that it alone has are missing until it is put back",
    copy_step="stop the broker, and copy both folders to another disk"), "DISK-48")  # fmt: skip

HINT_OF_SHARED = changes(
    "move the link out of the log directory",
    only_if="the records in the folder are of the other partition, as `segproof dump` shows",
    if_wrong="the partition of that name begins again without its records",
    copy_step="stop the broker, and copy the folder to another disk",
)
HINT_OF_COPIES = reads(
    "nothing, if one is a backup, or a replica of another broker; else compare both with another"
    " replica: only one may be in log.dirs"
)
META = "meta.properties"
META_BYTES_MAX = 1 << 16
LEVELS_MAX = 16
"""Levels of folders that are searched for partitions."""
Key = tuple[str, int]
"""A topic and the number of a partition."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Whose log directory it is, as its `meta.properties` says."""

    cluster: str
    node: str
    directory: str
    """The id of the directory, different in each of a broker; empty before 3.7."""
    is_kraft: bool
    """Whether the file is of version 1, which brokers with KRaft write."""


@dataclass(frozen=True, slots=True)
class Place:
    """A partition's folder."""

    path: str
    key: Key
    parent: str
    parent_identity: object
    identity: object
    """What tells the folder from others, by whatever path it is met."""
    broker: Broker | None
    """None: unknown."""


def read_broker(directory: str, files: Files) -> Broker | None:
    """Return whose a log directory is; None if `meta.properties` does not tell."""
    try:
        with closing(files.open(posixpath.join(directory, META))) as file:
            if file.size() > META_BYTES_MAX:
                return None
            text = file.pread(file.size(), 0).decode("latin-1")
    except OSError:
        return None
    told = {}
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#!":
            name, _, value = line.partition("=")
            told[name.strip()] = value.strip()
    node, version = told.get("node.id", told.get("broker.id", "")), told.get("version")
    if not node or version not in ("0", "1"):
        return None
    return Broker(told.get("cluster.id", ""), node, told.get("directory.id", ""), version == "1")


def places_below(path: str, files: Files) -> list[Place]:
    """Return the folders of partitions at or below a path; what can't be read has none."""
    status = status_of(files, path)
    if status is None or not status.is_directory:
        return []
    own = posixpath.basename(posixpath.normpath(path))
    if _key_of(own) is not None:
        return list(place_of(path, posixpath.join(path, ".."), status, files))
    return list(_below(path, status, files, 0, set()))


def _below(
    path: str, status: FileStatus, files: Files, level: int, seen: set[object]
) -> Iterator[Place]:
    identity = _identity(path, status)
    if level > LEVELS_MAX or identity in seen:
        return
    seen.add(identity)
    try:
        names = files.list_directory(path)
    except OSError:
        return
    for name in names:
        full = posixpath.join(path, name)
        inner = status_of(files, full)
        if inner is None or not inner.is_directory:
            continue
        if _key_of(name) is not None:
            yield from place_of(full, path, inner, files)
        elif read_partition_name(name) is None:
            yield from _below(full, inner, files, level + 1, seen)


def place_of(path: str, parent: str, status: FileStatus, files: Files) -> Iterator[Place]:
    """Yield the place of a folder, if its name is that of a partition in use."""
    key = _key_of(posixpath.basename(posixpath.normpath(path)))
    if key is not None:
        above = _identity(parent, status_of(files, parent))
        own = _identity(path, status)
        yield Place(path, key, parent, above, own, read_broker(parent, files))


def _identity(path: str, status: FileStatus | None) -> object:
    """Return what tells a directory from others; the path where the system has nothing else."""
    return status.identity if status is not None and status.identity[1] > 0 else path


def _key_of(name: str) -> Key | None:
    """Return topic and number of a partition in use, as Kafka reads a folder's name."""
    topic, _, number = name.rpartition("-")
    if not topic or name.endswith(("-delete", "-future", "-stray")):
        return None
    try:
        return topic, parse_int(number, 32)
    except NumberFormatError:
        return None


def report_twice(
    own: Iterable[Place], others: Iterable[Place], files: Files, reporter: Reporter
) -> None:
    """Report each partition of `own` that has another folder in a directory of the same broker."""
    places: dict[Key, dict[object, Place]] = {}
    mine = list(own)
    for one in (*mine, *others):
        met = (one.parent_identity, posixpath.basename(one.path))
        places.setdefault(one.key, {}).setdefault(met, one)
    for one in mine:
        met = (one.parent_identity, posixpath.basename(one.path))
        if places[one.key][met] is not one:
            continue  # the same folder by another path
        rivals = [two for place, two in places[one.key].items() if place != met]
        judged = [(two, severity) for two in rivals if (severity := _severity(one, two))]
        if judged:
            order = list(Severity)
            two, severity = min(judged, key=lambda each: order.index(each[1]))
            _report_pair(one, two, severity, files, reporter)


def report_shared(path: str, other: str, files: Files, report: PathReporter) -> bool:
    """Report a folder that is another partition too, by a link; return whether one broker has both.

    Two names of one partition are no such case.
    """
    keys = [_key_of(posixpath.basename(posixpath.normpath(one))) for one in (path, other)]
    if None in keys or keys[0] == keys[1]:
        return False
    parents = [posixpath.dirname(posixpath.normpath(one)) for one in (path, other)]
    brokers = [read_broker(parent, files) for parent in parents]
    is_one = parents[0] == parents[1] or (
        brokers[0] is not None
        and brokers[1] is not None
        and (brokers[0].cluster, brokers[0].node) == (brokers[1].cluster, brokers[1].node)
    )
    if is_one:
        report.add(
            "DISK-26",
            f"it is the folder of another partition too, {other}: a broker loads two logs that"
            " write to the same files, and each destroys what the other one wrote",
            severity=Severity.ERROR,
            hint=HINT_OF_SHARED,
        )
    return is_one


def _severity(one: Place, two: Place) -> Severity | None:
    """Return how bad it is that two folders are of one partition; None if of two brokers."""
    if one.parent_identity == two.parent_identity:
        return Severity.ERROR
    if one.broker is None or two.broker is None:
        return None if one.identity == two.identity else Severity.NOTE
    if (one.broker.cluster, one.broker.node) != (two.broker.cluster, two.broker.node):
        return None
    ids = (one.broker.directory, two.broker.directory)
    if not all(ids):
        return Severity.WARNING
    return Severity.NOTE if ids[0] == ids[1] else Severity.ERROR


def _report_pair(
    one: Place, two: Place, severity: Severity, files: Files, reporter: Reporter
) -> None:
    mine, theirs = _extent(one.path, files), _extent(two.path, files)
    more = "both have as much"
    if mine != theirs:
        more = "this copy has more" if mine > theirs else f"{two.path} has more"
    told = f"here {_words(mine)}, there {_words(theirs)}: {more}"
    ends = "Kafka's start ends with"
    if severity is not Severity.ERROR:
        ends = "with both directories in log.dirs a start of Kafka ends with"
    found = reporter.at(one.path).finding(
        "DISK-48",
        f'partition {one.key[0]}-{one.key[1]} is in {two.path} too; {told}; {ends} "Duplicate log'
        ' directories"',
        actual=two.path,
        severity=severity,
        hint=HINT_OF_COPIES if severity is not Severity.ERROR else None,
    )
    paths = f"{quoted_path(one.path)} {quoted_path(two.path)}"
    reporter.add(replace(found, reproduce=f"segproof verify {paths} --law DISK-48"))


Extent = tuple[int, int, int]
"""Base offset of the last segment, bytes of all logs, number of segments."""


def _extent(path: str, files: Files) -> Extent:
    try:
        names = files.list_directory(path)
    except OSError:
        return (-1, 0, 0)
    known = {name: read_file_name(name) for name in names}
    logs = {
        name: one.base_offset
        for name, one in known.items()
        if one.kind is NameKind.SEGMENT and one.suffix == ".log"
    }
    sizes = [status_of(files, posixpath.join(path, name)) for name in logs]
    total = sum(one.size_bytes for one in sizes if one is not None)
    return (max(logs.values(), default=-1), total, len(logs))


def _words(extent: Extent) -> str:
    last, size, count = extent
    if not count:
        return "no segment"
    return f"{plural(count, 'segment')} with {size} bytes, the last from offset {last} on"


def is_log_directory(names: Iterable[str]) -> bool:
    """Return whether a broker's own files are among the names: a start reads such a directory."""
    return any(map(is_known_in_data_directory, names))


def report_folder(path: str, directory: str, is_brokers: bool, reporter: Reporter) -> bool:
    """Report a folder beside partitions at whose name a start ends; return whether it is one.

    `is_brokers`: a broker's own files lie beside it. Else it is a note: the directory may be a copy
    that no broker is started with.
    """
    name = posixpath.basename(path)
    if starts_with_folder(name):
        return False
    reporter.at(path, shown_by=directory).add(
        "DISK-47",
        "a folder whose name is not that of a topic and a partition: "
        + (
            "Kafka's start ends here"
            if is_brokers
            else "a start of Kafka with this directory in log.dirs ends here"
        ),
        expected="TOPIC-NUMBER",
        actual=name[:80],
        severity=None if is_brokers else Severity.NOTE,
        hint=None if is_brokers else reads("nothing, unless a broker is to start with it"),
    )
    return True
