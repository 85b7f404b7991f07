# SPDX-License-Identifier: Apache-2.0
"""Small files that a partition lacks although the partitions beside it show that it had them, and
topic ids that contradict each other.

A broker with KRaft takes a log without topic id for a stray one and renames its folder, and the
topic begins again, empty. A script that moves files
away by their age moves these two first, since no append changes them.

Upstream: Kafka 4.4.0: LogManager.isStrayKraftReplica, PartitionMetadataFile,
    LeaderEpochCheckpointFile.
Laws: DISK-49, DISK-50.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from itertools import count, islice

from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, changes, writes
from segproof.inventory.loose import is_log_directory
from segproof.inventory.segment_listing import parent_of
from segproof.inventory.small_files import SMALL_FILE_BYTES, topic_id_of
from segproof.layouts.kafka import BATCH, HEADER_UP_TO_MAGIC_BYTES
from segproof.reading.file_names import (
    EPOCHS,
    METADATA,
    METADATA_TOPIC,
    read_file_name,
    read_partition_name,
)
from segproof.reading.folder_names import names_of
from segproof.reading.node_ids import read_broker
from segproof.verifying.log_directories import KnownDirectory, PartitionPlace
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import SALVAGE, declare

"""The part of a batch header up to its magic, which has its leader epoch (magic 2)."""
NAMED_MAX = 3
"""At most this many partitions of a topic are named in a finding."""
GROUPS_MAX = 3
"""At most this many other topics of an id, and other ids of a topic, are looked at for each id."""
MOVED = "if files were moved away by their age, look for all of them first, closed segments too. "


def _write_id(which: str) -> Hint:
    """Return what to do about a topic id that is missing; `which` names the id."""
    return changes(
        "put back what was moved away by its age, closed segments too, or what a file system check"
        " put into lost+found (verify of that folder tells which file has which id); or copy the"
        " file of another replica of this partition; or write it, of the two lines `version: 0` and"
        f" `topic_id: ID`, with {which}",
        only_if="the topic was not deleted and created again since",
        if_wrong="the broker takes the log for that of another topic and sets it aside under a"
        " name that ends in -stray",
        copy_step="stop the broker, and copy the partition's folder away",
    )


declare("partition-log", Severity.WARNING,
    _write_id("the id that `kafka-topics.sh --describe` shows"), "DISK-49")  # fmt: skip

declare("partition-log", Severity.WARNING,
    writes("copy the folder to another disk before a broker starts here, and compare the id with"
    " the one that `kafka-topics.sh --describe` shows"), "DISK-50")  # fmt: skip


class _Group:
    """The partitions of one topic that have one and the same topic id."""

    def __init__(self) -> None:
        self.count = 0
        self.folders: list[str] = []
        """The first NAMED_MAX of them that may be named."""
        self.nameable = 0

    def words(self, which: str = "") -> str:
        """Return words for the partitions: their names, `which`, and the verb "has" or "have"."""
        more = self.nameable - len(self.folders)
        names = ", ".join(self.folders) + (f" and {more} more" if more else "")
        return f"{names} {which}{'has' if self.nameable == 1 else 'have'}"


class _Ids:
    """The topic ids of some partitions, by topic and id.

    Memory: a few names for each topic, not for each partition.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}
        self._of_topics: dict[str, list[tuple[str, str]]] = {}
        """The keys of the groups of each topic, and below of each id."""
        self._of_ids: dict[str, list[tuple[str, str]]] = {}

    def add(self, topic: str, topic_id: str, folder: str = "") -> None:
        """Count a partition. No finding names one that has no `folder` here."""
        key = topic, topic_id
        if key not in self._groups:
            self._groups[key] = _Group()
            self._of_topics.setdefault(topic, []).append(key)
            self._of_ids.setdefault(topic_id, []).append(key)
        group = self._groups[key]
        group.count += 1
        group.nameable += bool(folder)
        if folder and len(group.folders) < NAMED_MAX:
            group.folders.append(folder)

    def report(
        self, topic: str, topic_id: str, folder: str, report: PathReporter, severity: Severity
    ) -> None:
        """Report the id of the partition in `folder` if it contradicts that of another one."""
        own = topic, topic_id
        by_topic, by_id = (
            list(
                islice(
                    (one for one in keys if one != own and self._groups[one].folders), GROUPS_MAX
                )
            )
            for keys in (self._of_topics.get(topic, []), self._of_ids.get(topic_id, []))
        )
        if not by_topic and not by_id:
            return
        words = [
            f"{self._groups[one].words()} another id of the topic {topic}: {one[1]}"
            for one in by_topic
        ]
        words += [f"{self._groups[one].words('of another topic ')} the same id" for one in by_id]
        likely = self._likely(own, folder, [*by_topic, *by_id])
        report.add(
            "DISK-50",
            f"{'; '.join(words)}. A broker with KRaft renames the folder whose id is not that of"
            " its topic to -stray, and the partition begins again without its records; one with"
            f" ZooKeeper does not serve it{likely}",
            actual=topic_id,
            severity=severity,
        )

    def _likely(self, own: tuple[str, str], folder: str, others: list[tuple[str, str]]) -> str:
        """Return in words which partition is likely the one with the wrong id; "" if unknown.

        It contradicts its own topic and another one; or it is alone, and more agree against it.
        """
        keys = [own, *others]
        twice = [one for one in keys if self._is_of_both(one)]
        alone = [one for one in keys if self._groups[one].count == 1]
        likely, why = twice, "it contradicts its own topic and another one"
        if len(twice) != 1 or self._groups[twice[0]].count != 1:
            likely = alone
            most = max(self._groups[one].count for one in keys)
            why = f"{most} partitions agree against it"
        if len(likely) != 1:
            return ""
        name = folder if likely[0] == own else "".join(self._groups[likely[0]].folders)
        return f". Likely the id of {name} is the wrong one: {why}"

    def _is_of_both(self, key: tuple[str, str]) -> bool:
        """Return whether another id of the same topic is known, and another topic of the id."""
        return len(self._of_topics[key[0]]) > 1 and len(self._of_ids[key[1]]) > 1


def report_topic_ids(directory: str, names: list[str], files: Files, reporter: Reporter) -> None:
    """Report the partitions of a data directory whose topic ids contradict each other.

    All ids are known before the first is reported: none of them is known to be the right one.
    A note where no file of a broker lies beside them: the directory may be a place of copies.
    Memory: the id of each partition.
    """
    severity = Severity.WARNING if is_log_directory(names) else Severity.NOTE
    ids = _Ids()
    found = [(folder, *one) for folder in sorted(names) for one in _id_in(directory, folder, files)]
    for folder, topic, topic_id, _ in found:
        ids.add(topic, topic_id, folder)
    for folder, topic, topic_id, path in found:
        ids.report(topic, topic_id, folder, reporter.at(path, shown_by=directory), severity)


def report_own_topic_id(path: str, files: Files, reporter: Reporter) -> None:
    """Report a partition that is given alone, if its topic id contradicts one beside it."""
    parent, own = parent_of(path), posixpath.basename(posixpath.normpath(path))
    mine = next(_id_in(parent, own, files), None)
    if mine is None:
        return
    try:
        names = files.list_directory(parent)
    except OSError:
        return
    ids = _Ids()
    ids.add(*mine[:2], path)
    for folder in sorted(set(names) - {own}):
        for topic, topic_id, _ in _id_in(parent, folder, files):
            ids.add(topic, topic_id, posixpath.join(parent, folder))
    severity = Severity.WARNING if is_log_directory(names) else Severity.NOTE
    report = reporter.at(posixpath.join(path, METADATA), shown_by=path)
    ids.report(*mine[:2], path, report, severity)


def report_topic_ids_across(
    own: Iterable[KnownDirectory],
    others: Iterable[KnownDirectory],
    files: Files,
    reporter: Reporter,
) -> None:
    """Report the partitions whose topic ids contradict those in other paths of the call.

    A topic has one id in its whole cluster. Directories of unknown clusters are not compared.
    """
    mine, theirs = (
        [
            one
            for one in places
            if isinstance(one, PartitionPlace) and one.broker is not None and not one.state
        ]
        for places in (own, others)
    )
    parents = {one.parent_identity for one in mine}
    ids: dict[str, _Ids] = {}
    for two in theirs:
        cluster = two.broker.cluster if two.broker is not None else ""
        if two.parent_identity in parents or not cluster:
            continue
        parent, folder = posixpath.split(posixpath.normpath(two.path))
        for topic, topic_id, _ in _id_in(parent, folder, files):
            ids.setdefault(cluster, _Ids()).add(topic, topic_id, two.path)
    found = []
    for one in mine:
        known = ids.get(one.broker.cluster) if one.broker is not None else None
        if known is None:
            continue
        parent, folder = posixpath.split(posixpath.normpath(one.path))
        for topic, topic_id, _ in _id_in(parent, folder, files):
            known.add(topic, topic_id)  # those of one path are compared with each other before
            found.append((known, topic, topic_id, one.path))
    for known, topic, topic_id, path in found:
        report = reporter.at(posixpath.join(path, METADATA), shown_by=path)
        known.report(topic, topic_id, path, report, Severity.WARNING)


def _id_in(parent: str, folder: str, files: Files) -> Iterator[tuple[str, str, str]]:
    """Yield topic, topic id and the file that has it, if a folder is a partition in use."""
    known = read_partition_name(folder)
    if known is None or known.state or known.topic == METADATA_TOPIC:
        return
    for path in _with_file(METADATA, parent, [folder], files):
        topic_id = topic_id_of(path, files)
        if topic_id is not None:
            yield known.topic, topic_id, path


class Siblings:
    """The partitions of a data directory, and which of them have a small file.

    Many partitions may lack one: the directory is listed once for all of them, and a partition is
    asked once for each of its files.
    """

    def __init__(self, parent: str, files: Files) -> None:
        self.parent = parent
        self.files = files
        broker = read_broker(parent, files)
        self.is_kraft = broker is not None and broker.is_kraft
        names = names_of(parent, files)
        self.is_brokers = is_log_directory(names)
        self._folders: dict[str | None, list[str]] = {None: []}
        """The folders of each topic; None: of all."""
        for folder in names:
            known = read_partition_name(folder)
            if known is not None:
                self._folders[None].append(folder)
                self._folders.setdefault(known.topic, []).append(folder)
        self._with: dict[tuple[str, str | None], _Once] = {}
        self._ids: dict[str, tuple[str, str] | None] = {}

    def first_with(self, name: str, topic: str | None, own: str) -> str | None:
        """Return the path of a file of this name in another partition of a topic, or None.

        `topic`: None is any. `own` is the partition that asks.
        """
        key = name, topic
        if key not in self._with:
            folders = self._folders.get(topic, [])
            self._with[key] = _Once(_with_file(name, self.parent, folders, self.files))
        own_path = posixpath.join(self.parent, own, name)
        return next((path for path in self._with[key] if path != own_path), None)

    def id_of(self, topic: str) -> tuple[str, str] | None:
        """Return the id of a topic that a partition has, and the path of its file; or None."""
        if topic not in self._ids:
            paths = _with_file(METADATA, self.parent, self._folders.get(topic, []), self.files)
            found = ((topic_id_of(path, self.files), path) for path in paths)
            known = ((one, path) for one, path in found if one is not None)
            self._ids[topic] = next(known, None)
        return self._ids[topic]


class _Once:
    """What an iterator yields, as often as it is asked for; it is run once."""

    def __init__(self, rest: Iterator[str]) -> None:
        self._rest = rest
        self._found: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for at in count():
            while at >= len(self._found):
                try:
                    self._found.append(next(self._rest))
                except StopIteration:
                    return
            yield self._found[at]


def report_missing(
    path: str,
    names: Collection[str],
    known_siblings: dict[str, Siblings],
    files: Files,
    reporter: Reporter,
    *,
    is_empty: bool = False,
) -> None:
    """Report the small files that a partition lacks and the partitions beside it have.

    `known_siblings` are those of directories, and this adds to them. `is_empty`: its folder has no
    file at all. Then only the topic id cannot be made new.
    """
    own = posixpath.basename(posixpath.normpath(path))
    known = read_partition_name(own)
    needed = (METADATA,) if is_empty else (METADATA, EPOCHS)
    missing = [name for name in needed if name not in names]
    if known is None or known.state or known.topic == METADATA_TOPIC or not missing:
        return
    parent = parent_of(path)
    siblings = known_siblings[parent] = known_siblings.get(parent) or Siblings(parent, files)
    is_kraft = siblings.is_kraft
    bases = [one.base_offset for one in map(read_file_name, names) if one.suffix == ".log"]
    first = min(bases, default=0)
    begins = f"; the log begins at offset {first}" if first else ""
    for name in missing:
        sibling = siblings.first_with(name, known.topic, own)
        if sibling is None and siblings.is_brokers:
            sibling = siblings.first_with(name, None, own)
        why = f"{sibling} has one" if sibling else f"{parent} is of a broker with KRaft"
        if not is_kraft and sibling is None:
            why = "" if name == METADATA else _why_epochs(path, names, siblings)
        if not why:
            continue
        report = reporter.at(posixpath.join(path, name), shown_by=path)
        if name == EPOCHS:
            report.add(
                "DISK-49",
                f"it is missing, and {why}: a follower cannot tell where leaders changed, and may"
                f" keep records that its leader does not have{begins}",
                hint=SALVAGE.after(f"{MOVED}A salvage makes the file new from the batches: "),
            )
            continue
        cost = (
            "a broker with KRaft takes the log for a stray one at its start: it renames the folder,"
            " and the partition begins again without its records"
        )
        report.add(
            "DISK-49",
            f"it is missing, and {why}: {cost}{begins}",
            severity=Severity.ERROR if is_kraft and not is_empty else None,
            hint=_hint_of_id(known.topic, siblings),
        )


def _why_epochs(path: str, names: Collection[str], siblings: Siblings) -> str:
    """Return in words why a log had a file of leader epochs; empty if nothing shows it.

    Kafka makes the file with the log, since the release that writes leader epochs into batches. So
    a batch must have one: other copies beside this one may be of other releases.
    """
    snapshots = (one for one in sorted(names) if one.endswith(".snapshot"))
    own = METADATA if METADATA in names else next(snapshots, None)
    folder = posixpath.basename(posixpath.normpath(path))
    sibling = siblings.first_with(EPOCHS, None, folder)
    if (own is None and sibling is None) or not _has_epochs(path, names, siblings.files):
        return ""
    if sibling is not None:
        return f"{sibling} has one, and batches here have a leader epoch"
    return f"{own} is here, and batches have a leader epoch"


def _has_epochs(path: str, names: Collection[str], files: Files) -> bool:
    """Return whether the first batch of the last log that has any has a leader epoch."""
    for name in sorted((one for one in names if one.endswith(".log")), reverse=True):
        try:
            with closing(files.open(posixpath.join(path, name))) as file:
                header = file.pread(HEADER_UP_TO_MAGIC_BYTES, 0)
        except OSError:
            return False
        if header:
            is_whole = len(header) == HEADER_UP_TO_MAGIC_BYTES
            is_new = is_whole and BATCH["magic"].of(header) == 2
            return is_new and BATCH["partition_leader_epoch"].of(header) >= 0
    return False


def _hint_of_id(topic: str, siblings: Siblings) -> Hint | None:
    """Return what to write, if another partition of the topic has the id."""
    found = siblings.id_of(topic)
    return None if found is None else _write_id(f"the id {found[0]}, as in {found[1]}")


def _with_file(name: str, parent: str, folders: Iterable[str], files: Files) -> Iterator[str]:
    """Yield the paths of files of a name in some folders of a directory."""
    for folder in folders:
        path = posixpath.join(parent, folder, name)
        status = status_of(files, path)
        if status is not None and status.is_regular and status.size_bytes <= SMALL_FILE_BYTES:
            yield path
