# SPDX-License-Identifier: Apache-2.0
"""Find the partitions and segments at or below a path; check their names.

A directory is what its content says: one with files of segments is a partition, one with partitions
or a broker's own files a data directory; others are searched, a bounded number of levels deep.

Links are followed, since a broker follows them, and each directory is looked into once.

Laws: DISK-1, DISK-3, DISK-20, DISK-26, DISK-39, DISK-41, DISK-45, DISK-46, DISK-61,
LOAD-1, LOAD-19.
Names of remote segments: see `remote_segments`; of files in a partition: `partition_names`.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from segproof.files import LINK_TO_NOTHING, Files, FileStatus, status_of
from segproof.findings import Severity
from segproof.hints import reads
from segproof.integers import INT64_MAX
from segproof.inventory.small_files import KnownOffsets, Offsets
from segproof.reading.cleaner_traces import cleaner_was_here, removed_logs
from segproof.reading.directory_kinds import holds_partitions
from segproof.reading.file_names import (
    BOOTSTRAP,
    BROKER_FILE,
    CLEAN_SHUTDOWN_MARKER,
    CLEANER,
    EPOCHS,
    METADATA,
    OFFSET_CHECKPOINTS,
    QUORUM_STATE,
    REMOTE_INDEX_CACHE,
    SNAPSHOT_SUFFIX,
    FileName,
    NameKind,
    RemoteName,
    holds_remote_segments,
    is_known_in_data_directory,
    is_of_redpanda,
    partition_of,
    read_file_name,
    read_partition_name,
    read_remote_name,
)
from segproof.reading.folder_names import KnownFolders
from segproof.reading.store_paths import part_of_store
from segproof.reading.unfinished import VERBS
from segproof.reading.unread_places import is_database
from segproof.verifying.found_places import LOST_AND_FOUND
from segproof.verifying.log_directories import (
    KnownDirectory,
    broker_place,
    is_log_directory,
    place_of,
    report_across,
    report_folder,
    report_shared,
    report_taken,
)
from segproof.verifying.long_indexes import report_long_indexes
from segproof.verifying.loose_files import report_strays
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
from segproof.verifying.remote_segments import (
    remote_segments,
    report_remote_names,
    small_remote_names,
)
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.rules import declare
from segproof.verifying.segment_files import (
    PAUSES_SECONDS,
    FileState,
    Segment,
    state_of,
    wait_for_a_step,
)
from segproof.verifying.segment_listing import (
    ALL_FILES,
    kinds_of,
    misnamed_log,
    parent_of,
    segments_of,
    sized,
    waiting_segment,
)
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
    report_unread,
    report_unread_beside,
    why_unread,
    why_unread_beside,
)

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
LEVELS_MAX = 16
_join = posixpath.join


@dataclass(frozen=True, slots=True)
class Partition:
    """One directory with the segments that are to be checked, in order of their offsets."""

    directory: str
    segments: tuple[Segment, ...]
    others: tuple[str, ...] = ()
    """Names of its own files that are no segment's, where the whole partition is to be checked."""
    offsets: tuple[tuple[str, int], ...] = ()
    """What the checkpoints of the data directory say of it: their names and an offset each."""
    others_seen: tuple[FileState, ...] = ()
    """What those files were when the directory was listed."""
    was_cleaned: bool = False
    """Whether a file, or its topic, shows that the log cleaner has been in its log."""
    removed: tuple[tuple[int, str], ...] = ()
    """Base offsets and names of logs that were removed from it, and are still there."""
    lacks_log: bool = False
    """Whether a broker loads it, and no file of a segment is there."""

    def path(self, name: str) -> str:
        """Return the path of one of its own files."""
        return _join(self.directory, name)

    def is_unchanged(self, files: Files) -> bool:
        """Return whether all of its files are still what was listed."""
        others = tuple(state_of(files, self.path(name)) for name in self.others)
        return others == self.others_seen and all(
            segment.is_unchanged(files) for segment in self.segments
        )

    @property
    def size_bytes(self) -> int:
        """Bytes that will be read, as far as known."""
        return sum(segment.size_bytes for segment in self.segments)


@dataclass(slots=True)
class _Walk:
    files: Files
    folders: KnownFolders
    reporter: Reporter
    root: str
    """The path that was given."""
    seen: dict[tuple[int, int], str]
    """The directories that were looked into, by identity."""
    offsets: KnownOffsets = field(default_factory=KnownOffsets)
    layouts: list[str] = field(default_factory=list)
    """Folders with segments of Redpanda, and databases of RocksDB."""
    places: list[KnownDirectory] = field(default_factory=list)
    """The folders of partitions and of brokers that were met."""
    siblings: dict[str, Siblings] = field(default_factory=dict)
    """What is known of the partitions in a data directory, by its path."""
    is_told: bool = False
    """Whether files of the root, which has no partition, were told by their content."""

    def enters(self, path: str, status: FileStatus, level: int) -> bool:
        """Return whether to look into a directory; report one that is passed over (DISK-26)."""
        earlier = self.seen.get(status.identity)
        if earlier is not None:
            is_above = path.startswith(earlier.rstrip("/") + "/")
            words = f"it is {earlier} once more, and verified under that name"
            if is_above:
                words = f"it leads back to {earlier}, in which it lies: the way ends here"
        elif level >= LEVELS_MAX:
            words = f"it lies more than {LEVELS_MAX} levels below {self.root} and is not verified"
        else:
            if status.identity[1] > 0:
                self.seen[status.identity] = path
            return True
        report = self.reporter.at(path, shown_by=self.root)
        if earlier is None or not report_shared(path, earlier, self.files, report):
            report.add("DISK-26", words)
        if earlier is None:
            words = f"it lies more than {LEVELS_MAX} levels below {self.root}"
            not_looked_into(report, words, files=self.files)
        return False


def find_partitions(
    path: str, files: Files, reporter: Reporter, beside: Iterable[KnownDirectory] = ()
) -> Iterator[Partition]:
    """Yield every partition at or below `path`, or the one segment that a file belongs to.

    `beside` are the directories of other paths of the same call.
    Raises: OSError where `path` itself can't be read; below it, that is a finding.
    """
    status = files.status(path)
    if status is None:
        raise FileNotFoundError(2, "no such file or directory", path)
    if not status.is_directory:
        yield from _single_file(path, files, reporter)
        return
    walk = _Walk(files, KnownFolders(files), reporter, path, {})
    walk.enters(path, status, 0)
    walk.places += place_of(path, parent_of(path), status, files)
    found = False
    names = files.list_directory(path)
    for pause in PAUSES_SECONDS:
        # A log that begins, or begins again, has no segment for a moment.
        if not _has_traces_only(names) or not wait_for_a_step([path], files, pause):
            break
        names = files.list_directory(path)
    for partition in _directory(path, names, walk, 0):
        found = found or bool(partition.segments)
        yield partition
    report_across(walk.places, beside, files, reporter)
    report_aside(walk.places, beside, files, reporter, walk.offsets)
    report_topic_ids_across(walk.places, beside, files, reporter)
    report_layouts(walk.layouts, path, files, reporter, is_all=not found)
    is_told = found or walk.layouts or walk.is_told
    if not is_told and not _is_without_partitions(path, names, walk):
        words = "there is nothing of Kafka's here, and no store of RocketMQ"
        if is_log_directory(names):
            words = "no partition in this data directory has a file of a segment"
        elif _has_traces_only(names):
            words = "no file of a segment is in the folder of this partition"
        _report_nothing(path, part_of_store(path, files) or words, reporter)


def _report_nothing(path: str, words: str, reporter: Reporter) -> None:
    """Report that a path has nothing to check, whatever is asked for: it must not pass as sound."""
    reporter.insist(reporter.at(path).finding("DISK-20", words))


def _is_without_partitions(path: str, names: list[str], walk: _Walk) -> bool:
    """Return whether a directory of a broker has no partition: before its first one, or when the
    last one is being deleted. No checkpoint names another one then.
    """
    known = [one for name in names if (one := read_partition_name(name)) is not None]
    told = walk.offsets.of(parent_of(_join(path, "partition")), walk.files)
    are_going = all(one.state == "delete" for one in known)
    return BROKER_FILE in names and are_going and not _absent(names, told)


def _has_traces_only(names: list[str]) -> bool:
    """Return whether there are files of a partition and no segment."""
    kinds = {read_file_name(name).kind for name in names}
    has_traces = NameKind.PENDING in kinds or EPOCHS in names
    return NameKind.SEGMENT not in kinds and has_traces


def _single_file(path: str, files: Files, reporter: Reporter) -> Iterator[Partition]:
    """Yield the segment of one file; its siblings are read where the file is compared with them."""
    directory, name = posixpath.split(path)
    directory = directory or "."
    try:
        names = files.list_directory(directory)
    except OSError:
        names = [name]
    report_unfinished_file(reporter.at(path), files)
    known, remote = read_file_name(name), read_remote_name(name)
    if remote is not None and not remote.passing and holds_remote_segments(directory, names):
        yield from _single_remote_file(path, remote, names, files, reporter)
        return
    if known.kind is not NameKind.SEGMENT:
        offset = known.base_offset if known.suffix == SNAPSHOT_SUFFIX else None
        is_small = known.kind is NameKind.KNOWN or is_known_in_data_directory(name)
        if is_small and check_small_file(reporter.at(path, PARTITION), offset, files):
            return
        if found := waiting_segment(directory, name, known, names, files):
            report_pending(directory, {name: known}, files, reporter, is_alone=True)
            yield Partition(directory, tuple(found))
            return
        reason = why_unread(name, known) or why_unread_beside(directory, name, files)
        if known.kind is NameKind.PENDING:
            report_pending(directory, {name: known}, files, reporter, is_alone=True)
        if reason is not None:
            not_looked_into(reporter.at(path, PARTITION), reason, is_all=True)
        elif report_name(path, known, reporter):
            found = misnamed_log(directory, name, known, names, files)
            yield from (Partition(directory, (one,)) for one in found)
        elif not report_by_content(reporter.at(path, PARTITION), files, is_all=True):
            _report_nothing(path, NOT_LOOKED_INTO, reporter)
        return
    for segment in segments_of(directory, kinds_of(names), files, frozenset((known.suffix,))):
        if segment.base_offset == known.base_offset:
            yield Partition(directory, (segment,))


def _single_remote_file(
    path: str, name: RemoteName, names: list[str], files: Files, reporter: Reporter
) -> Iterator[Partition]:
    """Yield the segment of one file of a segment in tiered storage; judge a small file."""
    directory = posixpath.dirname(path) or "."
    if check_small_remote_file(reporter.at(path, PARTITION), name.suffix, INT64_MAX, files):
        return
    segments = [
        one
        for one in remote_segments(directory, names, frozenset((name.suffix,)))
        if one.stem == name.stem and name.suffix in one.suffixes
    ]
    if segments:
        yield Partition(directory, tuple(segments))
    else:
        _report_nothing(path, NOT_LOOKED_INTO, reporter)


def _directory(path: str, names: list[str], walk: _Walk, level: int) -> Iterator[Partition]:
    """Yield the partitions of one directory and of those in it."""
    if holds_partitions(path, names, walk.files):
        yield from _data_directory(path, names, walk, level)
        return
    if any(map(is_of_redpanda, names)) or is_database(path, names, walk.files):
        walk.layouts.append(path)
        return
    kinds = kinds_of(names)
    own = partition_of(path)
    has_segments = any(known.kind is NameKind.SEGMENT for known in kinds.values())
    has_traces = any(known.kind is not NameKind.FOREIGN for known in kinds.values())
    if has_segments or (has_traces and own is not None):
        yield _partition(path, kinds, walk)
        return
    if holds_remote_segments(path, names):
        report_remote_names(path, names, walk.reporter)
        yield _remote(path, names, walk.files)
        return
    yield from _data_directory(path, names, walk, level)


def _partition(path: str, kinds: dict[str, FileName], walk: _Walk) -> Partition:
    reporter = walk.reporter
    report_unfinished(reporter.at(path), path, walk.files)
    report_names(path, kinds, walk.files, reporter)
    report_pending(path, kinds, walk.files, reporter)
    report_unread(path, kinds, walk.files, reporter)
    report_missing(path, kinds, walk.siblings, walk.files, reporter)
    report_missing_vote(path, kinds, walk.files, reporter)
    if path == walk.root:
        report_own_topic_id(path, walk.files, reporter)
    report_twins(path, kinds, reporter)
    if reporter.wanted.segment_index_bytes is not None:
        report_long_indexes(path, kinds, walk.files, reporter)
    if METADATA in kinds:
        check_metadata(reporter.at(_join(path, METADATA), PARTITION), walk.files)
    if QUORUM_STATE in kinds:
        check_quorum_state(reporter.at(_join(path, QUORUM_STATE), PARTITION), walk.files)
    check_metadata_snapshots(path, kinds, walk.files, reporter)
    return _whole(path, kinds, walk.files, _offsets_for(path, walk))


def _whole(
    path: str, kinds: Mapping[str, FileName], files: Files, offsets: dict[str, int]
) -> Partition:
    """Return a partition that is checked as a whole."""
    others = tuple(
        name
        for name, known in kinds.items()
        if known.kind is NameKind.KNOWN and (known.suffix == SNAPSHOT_SUFFIX or name == EPOCHS)
    )
    own, segments = partition_of(path), tuple(segments_of(path, kinds, files, ALL_FILES))
    return Partition(
        path,
        segments,
        others,
        tuple(sorted(offsets.items())),
        tuple(state_of(files, _join(path, name)) for name in others),
        cleaner_was_here(own.topic if own else None, kinds, offsets.get(CLEANER, 0)),
        tuple(sorted(removed_logs(kinds).items())),
        lacks_log=not segments and own is not None and not own.state,
    )


def _remote(path: str, names: list[str], files: Files) -> Partition:
    """Return the remote segments of a directory, with what is to be checked beside them."""
    others = small_remote_names(names)
    seen = tuple(state_of(files, _join(path, name)) for name in others)
    segments = tuple(remote_segments(path, names, ALL_FILES))
    return Partition(path, segments, others, (), seen)


def partition_again(partition: Partition, files: Files) -> Partition:
    """Return a partition as its directories show it now.

    Raises: OSError.
    """
    path = partition.directory
    names = files.list_directory(path)
    if holds_remote_segments(path, names):
        again = _remote(path, names, files)
    else:
        walk = _Walk(files, KnownFolders(files), Reporter(Wanted()), path, {})
        again = _whole(path, kinds_of(names), files, _offsets_for(path, walk))
    return replace(again, segments=tuple(sized(each, files) for each in again.segments))


def _offsets_for(path: str, walk: _Walk) -> dict[str, int]:
    """Return what the checkpoints above a partition say of it, without a word about them."""
    known = partition_of(path)
    if known is None or known.state:
        return {}
    told = walk.offsets.of(parent_of(path), walk.files)
    return told.get((known.topic, known.partition), {})


def _data_directory(path: str, names: list[str], walk: _Walk, level: int) -> Iterator[Partition]:
    """Yield what lies in the directories of a directory that is no partition."""
    is_brokers = is_log_directory(names)
    is_kafkas = is_brokers or REMOTE_INDEX_CACHE in names
    _check_data_directory(path, names, walk)
    report_marks(path, names, walk.files, walk.reporter)
    report_topic_ids(path, names, walk.files, walk.reporter)
    others: list[str] = []
    empty: list[str] = []
    absent = _absent(names, walk.offsets.of(parent_of(_join(path, "partition")), walk.files))
    strays = report_strays(path, names, absent, walk.files, walk.reporter)
    has_partitions = any(read_partition_name(name) is not None for name in names)
    strays |= _report_found(path, names, strays, is_brokers or has_partitions, walk)
    for name in names:
        full = _join(path, name)
        status = _status(path, name, walk)
        if status is None or name in strays or is_known_in_data_directory(name) or name in VERBS:
            continue
        partition = read_partition_name(name)
        if not status.is_directory:
            others.append(full)
            continue
        walk.places += place_of(full, path, status, walk.files)
        is_told = (is_brokers or has_partitions) and report_folder(
            full, path, is_brokers, walk.reporter
        )
        if not walk.enters(full, status, level):
            if partition is not None:
                is_kafkas = True
                yield Partition(full, ())
            continue
        if partition is not None and partition.state == "delete":
            words = words_of_directory(partition.state)
            report = walk.reporter.at(full, shown_by=path)
            report.add("LOAD-1", words)
            not_looked_into(report, "Kafka deletes it, now or at its next start", files=walk.files)
            is_kafkas = True
            continue
        try:
            inner = walk.files.list_directory(full)
        except FileNotFoundError:
            walk.reporter.at(full, PARTITION).vanished()
            continue
        except OSError as error:
            report = walk.reporter.at(full, PARTITION, shown_by=path)
            if name == LOST_AND_FOUND:
                not_looked_into(report, f"it cannot be listed: {error.strerror or error}")
            else:
                report.unreadable(error)
            continue
        found, others_before = False, len(walk.layouts)
        for one in _directory(full, inner, walk, level + 1):
            found = is_kafkas = True
            yield one
        is_told = is_told or len(walk.layouts) > others_before
        if not found and partition is not None and not inner:
            empty.append(full)
        elif not found and not is_told and not is_log_directory(inner):
            is_taken = is_brokers and report_taken(full, path, is_brokers, walk.reporter)
            others += [] if is_taken else [full]
    if is_kafkas:
        report_others(others, path, walk.reporter)
        for bare in empty:
            report_missing(bare, {}, walk.siblings, walk.files, walk.reporter, is_empty=True)
            yield _whole(bare, {}, walk.files, _offsets_for(bare, walk))


def _report_found(
    path: str, names: list[str], strays: set[str], is_kafkas: bool, walk: _Walk
) -> set[str]:
    """Report files in a directory by their content, where no name tells it; return their names."""
    unnamed = [name for name in names if name not in strays]
    is_all = path == walk.root and not is_kafkas
    told = report_found_files(path, unnamed, walk.files, walk.reporter, is_all=is_all)
    walk.is_told |= is_all and bool(told)
    return told


def _check_data_directory(path: str, names: list[str], walk: _Walk) -> None:
    """Judge what a broker keeps beside its partitions."""
    files, reporter = walk.files, walk.reporter
    for name in names:
        if name.endswith(".tmp") and is_known_in_data_directory(name):
            report_tmp(_join(path, name), path, reporter)
    report_unread_beside(path, names, files, reporter)
    if CLEAN_SHUTDOWN_MARKER in names:
        check_marker(reporter.at(_join(path, CLEAN_SHUTDOWN_MARKER), PARTITION), files)
    status = status_of(files, path)
    if status is not None and (BROKER_FILE in names or path == walk.root):
        is_given = path == walk.root
        walk.places.append(broker_place(path, names, status, files, is_given=is_given))
    if BROKER_FILE in names:
        check_node_properties(reporter.at(_join(path, BROKER_FILE), PARTITION), files)
    if BOOTSTRAP in names:
        check_metadata_snapshot(reporter.at(_join(path, BOOTSTRAP), PARTITION), files)
    kept = [name for name in OFFSET_CHECKPOINTS if name in names]
    directory = parent_of(_join(path, "partition"))
    for name, parsed in walk.offsets.read(directory, kept, files).items():
        check_offsets(reporter.at(_join(directory, name), PARTITION), parsed)
    offsets = walk.offsets.of(directory, files)
    lacking = _absent(names, offsets)
    for name in kept:
        absent = [one for one, told in lacking.items() if name in told]
        if absent:
            reporter.at(_join(path, name)).add(
                "DISK-39",
                f"{len(absent)} of its partitions are not in this directory, the first is"
                f" {absent[0]}: Kafka passes over them",
                expected=0,
                actual=len(absent),
            )


def _absent(names: Iterable[str], offsets: Offsets) -> dict[str, dict[str, int]]:
    """Return what checkpoints say of the partitions that have no folder, by TOPIC-N."""
    known = (read_partition_name(name) for name in names)
    there = {(each.topic, each.partition) for each in known if each is not None}
    return {
        f"{topic}-{partition}": told
        for (topic, partition), told in offsets.items()
        if (topic, partition) not in there
    }


def _status(directory: str, name: str, walk: _Walk) -> FileStatus | None:
    """Return the status of a listed name, or None; report why it can't be known (DISK-1)."""
    full = _join(directory, name)
    try:
        status = walk.files.status(full)
        # What the broker has removed meanwhile is no longer listed.
        if status is None and name in walk.folders.of(directory).kinds:
            if read_partition_name(name) is not None:
                raise FileNotFoundError(2, LINK_TO_NOTHING)
            words = "a link to nothing: Kafka passes over it"
            walk.reporter.at(full, shown_by=directory).add("DISK-3", words)
    except OSError as error:
        walk.reporter.at(full, PARTITION, shown_by=directory).unreadable(error)
        return None
    return status
