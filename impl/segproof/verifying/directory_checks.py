# SPDX-License-Identifier: Apache-2.0
"""Word what an inventory of a path has: odd names, small files, what was not looked into.

Laws: DISK-1, DISK-3, DISK-20, DISK-26, DISK-39, DISK-41, DISK-45, DISK-46, DISK-61,
LOAD-1, LOAD-19.
Names of remote segments: see `remote_segments`; of files in a partition: `partition_names`.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from segproof.files import Files
from segproof.findings import Finding, Severity
from segproof.hints import reads
from segproof.integers import INT64_MAX
from segproof.inventory.loose import LOST_AND_FOUND, is_log_directory
from segproof.inventory.partitions import Partition
from segproof.inventory.segment_listing import parent_of
from segproof.inventory.small_files import KnownOffsets
from segproof.inventory.walk import (
    LEVELS_MAX,
    DataDirectory,
    DeadLink,
    Deleted,
    DirectoryEnd,
    Folder,
    Item,
    Layout,
    Listed,
    NotListed,
    OneFile,
    Other,
    PassedOver,
    Vanished,
    absent_in,
    has_traces_only,
    partition_in,
    take_inventory,
)
from segproof.reading.file_names import (
    BOOTSTRAP,
    BROKER_FILE,
    CLEAN_SHUTDOWN_MARKER,
    METADATA,
    QUORUM_STATE,
    SNAPSHOT_SUFFIX,
    NameKind,
    holds_remote_segments,
    is_known_in_data_directory,
    read_file_name,
    read_partition_name,
    read_remote_name,
)
from segproof.reading.store_paths import part_of_store
from segproof.verifying.log_directories import (
    KnownDirectory,
    place_of,
    places_of,
    report_across,
    report_folder,
    report_shared,
    report_taken,
)
from segproof.verifying.long_indexes import report_long_indexes
from segproof.verifying.metadata_snapshots import check_metadata_snapshot, check_metadata_snapshots
from segproof.verifying.node_files import (
    check_node_properties,
    check_quorum_state,
    report_missing_vote,
)
from segproof.verifying.partition_names import (
    report_name,
    report_names,
    report_others,
    report_twins,
)
from segproof.verifying.pending_files import report_pending, report_tmp, words_of_directory
from segproof.verifying.remote_segments import report_remote_names
from segproof.verifying.set_aside_folders import report_aside
from segproof.verifying.sibling_files import (
    Siblings,
    report_missing,
    report_own_topic_id,
    report_topic_ids,
    report_topic_ids_across,
)
from segproof.verifying.small_files import (
    PARTITION,
    check_marker,
    check_metadata,
    check_offsets,
    check_small_file,
    check_small_remote_file,
)
from segproof.verifying.unfinished_outputs import (
    report_marks,
    report_unfinished,
    report_unfinished_file,
)
from segproof.verifying.unnamed_files import report_by_content, report_found_files
from segproof.verifying.unread_files import (
    not_looked_into,
    report_layouts,
    report_strays,
    report_unread,
    report_unread_beside,
    why_unread,
    why_unread_beside,
)
from segproof.wording.reporting import Reporter, Wanted
from segproof.wording.rules import declare

declare("partition-log", Severity.NOTE,
    reads("find out what put it there; Kafka does not read it"), "DISK-3")  # fmt: skip
declare("partition-log", Severity.NOTE,
    reads("nothing: the broker removes or completes it at its next start"), "LOAD-1")  # fmt: skip
declare("partition-log", Severity.ERROR,
    reads("give the path of a partition or data directory, or of a .log, .index, .timeindex or"
    " .txnindex file, a snapshot or a checkpoint; of RocketMQ the whole store, its index folder"
    " or an index file"), "DISK-20")  # fmt: skip
declare("partition-log", Severity.NOTE,
    reads("nothing for a link; give a directory that lies too deep by itself"),
    "DISK-26")  # fmt: skip
declare("partition-log", Severity.NOTE,
    reads("nothing, if the partition was moved or removed; else look for its directory in the other"
    " log directories"), "DISK-39")  # fmt: skip

NOT_LOOKED_INTO = "no file of Kafka or RocketMQ that verify looks into has such a name"
_join = posixpath.join


def find_partitions(
    path: str, files: Files, reporter: Reporter, beside: Iterable[KnownDirectory] = ()
) -> Iterator[Partition]:
    """Yield every partition at or below `path`, or the one segment that a file belongs to.

    `beside` are the directories of other paths of the same call.
    Raises: OSError where `path` itself can't be read; below it, that is a finding.
    """
    check = InventoryCheck(path, files, reporter)
    for item in take_inventory(path, files, check.offsets):
        check.take(item)
        partition = partition_in(item)
        if partition is not None:
            yield partition
    check.finish(beside)


def judged_inventory(path: str, files: Files) -> tuple[list[Item], list[Finding]]:
    """Return what lies at or below a path, and what is found of the names and small files there.

    Raises: OSError where `path` itself can't be read.
    """
    reporter, items = Reporter(Wanted()), list[Item]()
    check = InventoryCheck(path, files, reporter)
    for item in take_inventory(path, files, check.offsets):
        check.take(item)
        items.append(item)
    check.finish(())
    return items, reporter.finish()


@dataclass(slots=True)
class _Directory:
    """What is known of a data directory whose folders are being looked into."""

    is_brokers: bool
    has_partitions: bool
    told: set[str]
    """Names of files that were told by their content, and paths of folders that were told."""
    others: list[str] = field(default_factory=list)


class InventoryCheck:
    """Words what an inventory of a path has: names, small files, what was not looked into."""

    def __init__(self, root: str, files: Files, reporter: Reporter) -> None:
        self.offsets = KnownOffsets()
        """Is to be given to the inventory."""
        self._root = root
        self._files = files
        self._reporter = reporter
        self._names: Collection[str] | None = None
        """Those in the root; None: it is a file, or of a layout that is not read."""
        self._layouts: list[Layout] = []
        self._places: list[KnownDirectory] = []
        """The folders of partitions and of brokers that were met."""
        self._siblings: dict[str, Siblings] = {}
        """What is known of the partitions in a data directory, by its path."""
        self._directories: dict[str, _Directory] = {}
        self._has_segments = False
        self._is_told = False
        """Whether files of the root, which has no partition, were told by their content."""
        self._is_file = False
        status = files.status(root)
        if status is not None and status.is_directory:
            self._places += place_of(root, parent_of(root), status, files)

    def take(self, item: Item) -> None:
        """Report what is odd about one item."""
        files, reporter = self._files, self._reporter
        self._places += places_of(item, self._root, files)
        if isinstance(item, Listed):
            self._take_partition(item)
        elif isinstance(item, DataDirectory):
            self._begin(item)
        elif isinstance(item, DirectoryEnd):
            self._end(item)
        elif isinstance(item, Folder):
            known = self._directories[item.above]
            is_beside = known.is_brokers or known.has_partitions
            if is_beside and report_folder(item.path, item.above, known.is_brokers, reporter):
                known.told.add(item.path)
        elif isinstance(item, Other):
            self._take_other(item)
        elif isinstance(item, PassedOver):
            self._pass_over(item)
        elif isinstance(item, Layout):
            self._layouts.append(item)
        elif isinstance(item, OneFile):
            self._take_file(item)
        elif isinstance(item, Deleted):
            report = reporter.at(item.path, shown_by=item.above)
            report.add("LOAD-1", words_of_directory("delete"))
            not_looked_into(report, "Kafka deletes it, now or at its next start", files=files)
        elif isinstance(item, DeadLink):
            report = reporter.at(item.path, shown_by=item.above)
            report.add("DISK-3", "a link to nothing: Kafka passes over it")
        elif isinstance(item, Vanished):
            reporter.at(item.path, PARTITION).vanished()
        else:
            report_not_listed(item, reporter)

    def finish(self, beside: Iterable[KnownDirectory]) -> None:
        """Report what the directories say of each other, and whether there is nothing to check."""
        if self._is_file:
            return
        path, files, reporter = self._root, self._files, self._reporter
        report_across(self._places, beside, files, reporter)
        report_aside(self._places, beside, files, reporter, self.offsets)
        report_topic_ids_across(self._places, beside, files, reporter)
        report_layouts(self._layouts, files, reporter, is_all=not self._has_segments)
        names = self._names
        if self._has_segments or self._layouts or self._is_told or names is None:
            return
        if not self._is_without_partitions(names):
            words = "there is nothing of Kafka's here, and no store of RocketMQ"
            if is_log_directory(names):
                words = "no partition in this data directory has a file of a segment"
            elif has_traces_only(names):
                words = "no file of a segment is in the folder of this partition"
            _report_nothing(path, part_of_store(path, files) or words, reporter)

    def _is_without_partitions(self, names: Collection[str]) -> bool:
        """Return whether a directory of a broker has no partition: before its first one, or when
        the last one is being deleted. No checkpoint names another one then.
        """
        known = [one for name in names if (one := read_partition_name(name)) is not None]
        are_going = all(one.state == "delete" for one in known)
        told = self.offsets.of(parent_of(_join(self._root, "partition")), self._files)
        return BROKER_FILE in names and are_going and not absent_in(names, told)

    # --- partitions

    def _take_partition(self, item: Listed) -> None:
        path, kinds = item.partition.directory, item.kinds
        files, reporter = self._files, self._reporter
        self._has_segments = self._has_segments or bool(item.partition.segments)
        if path == self._root:
            self._names = kinds
        if item.is_remote:
            report_remote_names(path, kinds, reporter)
            return
        if not kinds:
            report_missing(path, {}, self._siblings, files, reporter, is_empty=True)
            return
        report_unfinished(reporter.at(path), path, files)
        report_names(path, kinds, files, reporter)
        report_pending(path, kinds, files, reporter)
        report_unread(path, kinds, files, reporter)
        report_missing(path, kinds, self._siblings, files, reporter)
        report_missing_vote(path, kinds, files, reporter)
        if path == self._root:
            report_own_topic_id(path, files, reporter)
        report_twins(path, kinds, reporter)
        if reporter.wanted.segment_index_bytes is not None:
            report_long_indexes(path, kinds, files, reporter)
        if METADATA in kinds:
            check_metadata(reporter.at(_join(path, METADATA), PARTITION), files)
        if QUORUM_STATE in kinds:
            check_quorum_state(reporter.at(_join(path, QUORUM_STATE), PARTITION), files)
        check_metadata_snapshots(path, kinds, files, reporter)

    def _take_file(self, item: OneFile) -> None:
        """Report what is odd about a file that was given, and judge a small one."""
        self._is_file = True
        path, files, reporter = item.path, self._files, self._reporter
        directory, name = posixpath.split(path)
        directory = directory or "."
        report_unfinished_file(reporter.at(path), files)
        known, remote = read_file_name(name), read_remote_name(name)
        if (
            remote is not None
            and not remote.passing
            and holds_remote_segments(directory, item.names)
        ):
            report = reporter.at(path, PARTITION)
            is_small = check_small_remote_file(report, remote.suffix, INT64_MAX, files)
            if not is_small and item.partition is None:
                _report_nothing(path, NOT_LOOKED_INTO, reporter)
            return
        if known.kind is NameKind.SEGMENT:
            return
        offset = known.base_offset if known.suffix == SNAPSHOT_SUFFIX else None
        is_small = known.kind is NameKind.KNOWN or is_known_in_data_directory(name)
        if is_small and check_small_file(reporter.at(path, PARTITION), offset, files):
            return
        if known.kind is NameKind.PENDING:
            report_pending(directory, {name: known}, files, reporter, is_alone=True)
            if item.partition is not None:
                return
        reason = why_unread(name, known) or why_unread_beside(directory, name, files)
        if reason is not None:
            not_looked_into(reporter.at(path, PARTITION), reason, is_all=True)
        elif report_name(path, known, reporter):
            return
        elif not report_by_content(reporter.at(path, PARTITION), files, is_all=True):
            _report_nothing(path, NOT_LOOKED_INTO, reporter)

    # --- other directories

    def _begin(self, item: DataDirectory) -> None:
        """Judge what a broker keeps beside its partitions, and name what is none of it."""
        path, names = item.path, list(item.names)
        files, reporter = self._files, self._reporter
        if path == self._root:
            self._names = names
        is_brokers = is_log_directory(names)
        has_partitions = any(read_partition_name(name) is not None for name in names)
        self._check_own_files(item, names)
        report_marks(path, names, files, reporter)
        report_topic_ids(path, names, files, reporter)
        report_strays(item, files, reporter)
        unnamed = [name for name in names if name not in item.strays.names]
        is_all = path == self._root and not (is_brokers or has_partitions)
        told = report_found_files(path, unnamed, files, reporter, is_all=is_all)
        self._is_told |= is_all and bool(told)
        self._directories[path] = _Directory(is_brokers, has_partitions, told)

    def _check_own_files(self, item: DataDirectory, names: list[str]) -> None:
        path, files, reporter = item.path, self._files, self._reporter
        for name in names:
            if name.endswith(".tmp") and is_known_in_data_directory(name):
                report_tmp(_join(path, name), path, reporter)
        report_unread_beside(path, names, files, reporter)
        if CLEAN_SHUTDOWN_MARKER in names:
            check_marker(reporter.at(_join(path, CLEAN_SHUTDOWN_MARKER), PARTITION), files)
        if BROKER_FILE in names:
            check_node_properties(reporter.at(_join(path, BROKER_FILE), PARTITION), files)
        if BOOTSTRAP in names:
            check_metadata_snapshot(reporter.at(_join(path, BOOTSTRAP), PARTITION), files)
        for name, parsed in item.checkpoints.items():
            directory = parent_of(_join(path, "partition"))
            check_offsets(reporter.at(_join(directory, name), PARTITION), parsed)
        for name in item.checkpoints:
            absent = [one for one, told in item.absent.items() if name in told]
            if absent:
                reporter.at(_join(path, name)).add(
                    "DISK-39",
                    f"{len(absent)} of its partitions are not in this directory, the first is"
                    f" {absent[0]}: Kafka passes over them",
                    expected=0,
                    actual=len(absent),
                )

    def _take_other(self, item: Other) -> None:
        known = self._directories[item.above]
        if not item.is_folder:
            is_told = posixpath.basename(item.path) in known.told
        else:
            is_told = item.path in known.told or (
                known.is_brokers
                and report_taken(item.path, item.above, known.is_brokers, self._reporter)
            )
        known.others += [] if is_told else [item.path]

    def _end(self, item: DirectoryEnd) -> None:
        others = self._directories.pop(item.path).others
        if item.is_kafkas:
            report_others(others, item.path, self._reporter)

    def _pass_over(self, item: PassedOver) -> None:
        """Report a folder that is not looked into (DISK-26)."""
        path, earlier = item.path, item.earlier
        report = self._reporter.at(path, shown_by=self._root)
        if earlier is None:
            deep = f"it lies more than {LEVELS_MAX} levels below {self._root}"
            report.add("DISK-26", f"{deep} and is not verified")
            not_looked_into(report, deep, files=self._files)
        elif not report_shared(path, earlier, self._files, report):
            words = f"it is {earlier} once more, and verified under that name"
            if path.startswith(earlier.rstrip("/") + "/"):
                words = f"it leads back to {earlier}, in which it lies: the way ends here"
            report.add("DISK-26", words)


def report_not_listed(item: NotListed, reporter: Reporter) -> None:
    """Report what can't be looked at: DISK-1, but for the folder that only the superuser can."""
    report = reporter.at(item.path, PARTITION, shown_by=item.above)
    if item.is_folder and posixpath.basename(item.path) == LOST_AND_FOUND:
        words = item.error.strerror or item.error
        not_looked_into(report, f"it cannot be listed: {words}")
    else:
        report.unreadable(item.error)


def _report_nothing(path: str, words: str, reporter: Reporter) -> None:
    """Report that a path has nothing to check, whatever is asked for: it must not pass as sound."""
    reporter.insist(reporter.at(path).finding("DISK-20", words))
