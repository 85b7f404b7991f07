# SPDX-License-Identifier: Apache-2.0
"""The log directories of one broker beside each other: whose they are, and what two of them hold.

A start of Kafka ends where two of its log directories, or two folders of one, hold the same
partition. Whether two directories are of one broker is in their `meta.properties`; a start ends too
where these contradict each other.

Upstream: Kafka 4.4.0: LogManager.loadLog, MetaProperties, MetaPropertiesEnsemble.
Laws: DISK-3, DISK-26, DISK-47, DISK-48, DISK-66.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from segproof.commands import copy_commands, quoted_path
from segproof.counts import plural
from segproof.files import Files, FileStatus, status_of
from segproof.findings import Finding, Severity
from segproof.hints import Hint, changes, reads, writes
from segproof.inventory.folder_extents import ExtentsOfPairs, compared, generations, logs_to_take
from segproof.inventory.walk import DataDirectory, Folder, Item, take_inventory
from segproof.reading.file_names import (
    BROKER_FILE,
    REMOTE_INDEX_CACHE,
    STATES,
    Key,
    key_of,
    read_partition_name,
    starts_with_folder,
)
from segproof.reading.new_places import own_place
from segproof.reading.node_ids import NO_NODE, Broker, read_broker
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import declare

declare("partition-log", Severity.ERROR,
    changes("move it out of this directory, to another place of the same disk; for a folder of the"
    " file system itself, such as lost+found, give log.dirs a new folder beside it, and move the"
    " partitions and the broker's own files there", only_if="nothing in it belongs to this broker"
    " under another name", if_wrong="what it holds of the broker is not loaded until it is put"
    " back", copy_step="stop the broker, look into the folder, and copy it to another disk"),
    "DISK-47")  # fmt: skip
declare("partition-log", Severity.ERROR,
    changes("move the folder that has less, or one of two that have the same batches, as a whole,"
    " out of its log directory",
    only_if="the other folder, or another replica, has every offset that it has",
    if_wrong="the offsets that it alone has are missing until it is put back",
    copy_step="stop the broker, and copy both folders to another disk"), "DISK-48")  # fmt: skip

declare("partition-log", Severity.ERROR,
    reads("nothing, if one directory is a backup that no broker is started with; else compare the"
    " partitions of both (DISK-48 says which folder has more): only the one that has every"
    " partition may be in log.dirs"),
    "DISK-66")  # fmt: skip
HINT_OF_COPIED_ID = changes(
    "find out which one got the file of the other one, write its own directory.id into it again,"
    " which it had when the broker registered (dump the log of __cluster_metadata-0), and leave"
    " both in log.dirs: each has partitions that the other lacks",
    only_if="both belong to this broker, and neither is a backup",
    if_wrong="the broker does not start, or the controller takes the replicas there for lost",
    copy_step="keep this broker stopped, and copy the meta.properties of both away",
)

HINT_OF_SHARED = changes(
    "move the link out of the log directory",
    only_if="the records in the folder are of the other partition, as `segproof dump` shows",
    if_wrong="the partition of that name begins again without its records",
    copy_step="stop the broker, and copy the folder to another disk",
)
HINT_OF_LINK = changes(
    "move the link out of its log directory, and never the folder to which it leads",
    only_if="`ls -ld` of both paths shows which one is the link",
    if_wrong="the partition is gone from both until the folder is put back",
    copy_step="stop the broker, and copy the folder to another disk",
)
HINT_OF_COPIES = reads(
    "nothing, if one is a backup, or a replica of another broker; else compare both with another"
    " replica: only one of the two folders may be in log.dirs, the one that lacks no record of the"
    " other one"
)
HINT_OF_PARTS = writes(
    "copy both folders to another disk, save each copy by itself (`segproof salvage"
    " FOLDER --out DIR2`), and compare what was saved: neither folder replaces the other one"
)
HINT_OF_GENERATIONS = writes(
    "copy both folders to another disk, and compare their topic ids with the one that"
    " `kafka-topics.sh --describe` shows. A person decides which generation of the topic is kept:"
    " segments of both never belong into one folder"
)
HINT_OF_TWO_TOPICS = HINT_OF_GENERATIONS.after(
    "nothing, if one is a backup, or of another broker or cluster; else "
)
HINT_OF_DELETED = writes(
    "copy the folder to another disk before a broker starts here, unless its records are elsewhere"
)
HINT_OF_ODD_NAME = reads(
    "find out what put it there, and keep what is not the broker's outside of its log directories"
)
ASIDE = STATES
"""Those whose folders are compared with the partition in use."""
HINT_OF_OTHERS = reads("nothing, if they are of two brokers; else find out whose each one is")
HINT_OF_MANY = writes(
    "copy the first folder to another disk, copy the segments that are named here into that copy,"
    " and verify it. Where that finds a loss, save each copy by itself: neither folder replaces the"
    " other one"
)
SHARED_NAMED = 20
"""At most this many partitions are named that two directories of one id share."""
LOGS_NAMED = 20
"""A hint has commands for at most this many logs."""


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """A partition's folder."""

    path: str
    key: Key
    parent: str
    parent_identity: object
    identity: object
    """What tells the folder from others, by whatever path it is met."""
    broker: Broker | None
    """None: unknown."""
    state: str = ""
    """`stray`, `future` or `delete`, as the end of its name says; empty for a partition in use."""


@dataclass(frozen=True, slots=True)
class BrokerPlace:
    """A directory with a `meta.properties`, or one that was given as a path of the call."""

    path: str
    identity: object
    """What tells the directory from others, by whatever path it is met."""
    is_given: bool
    """Whether it was given as a path of the call, and not found below one."""
    broker: Broker | None
    """None: unknown."""


KnownDirectory = PartitionPlace | BrokerPlace
"""A directory that is compared with those of the other paths of a call."""


def places_below(path: str, files: Files) -> list[KnownDirectory]:
    """Return the folders of partitions and of brokers at or below a path.

    What can't be read has none.
    """
    status = status_of(files, path)
    if status is None or not status.is_directory:
        return []
    if places := list(place_of(path, posixpath.join(path, ".."), status, files)):
        return list(places)
    found: list[KnownDirectory] = []
    with suppress(OSError):
        for item in take_inventory(path, files, with_segments=False):
            found += places_of(item, path, files)
    return found


def places_of(item: Item, root: str, files: Files) -> Iterator[KnownDirectory]:
    """Yield the folder of a partition or of a broker that an item of an inventory is."""
    if isinstance(item, Folder):
        yield from place_of(item.path, item.above, item.status, files)
    elif isinstance(item, DataDirectory) and (item.path == root or BROKER_FILE in item.names):
        status = status_of(files, item.path)
        if status is not None:
            broker = read_broker(item.path, files) if BROKER_FILE in item.names else None
            own = _identity(item.path, status)
            yield BrokerPlace(item.path, own, is_given=item.path == root, broker=broker)


def place_of(path: str, parent: str, status: FileStatus, files: Files) -> Iterator[PartitionPlace]:
    """Yield the place of a folder, if its name is that of a partition in use or set aside."""
    name = posixpath.basename(posixpath.normpath(path))
    key, known = key_of(name), read_partition_name(name)
    state = "" if known is None or key is not None else known.state
    if known is not None and state in ASIDE:
        key = known.topic, known.partition
    if key is not None:
        above = _identity(parent, status_of(files, parent))
        own = _identity(path, status)
        yield PartitionPlace(path, key, parent, above, own, read_broker(parent, files), state)


def _identity(path: str, status: FileStatus | None) -> object:
    """Return what tells a directory from others; the path where the system has nothing else."""
    return status.identity if status is not None and status.identity[1] > 0 else path


def report_across(
    own: Sequence[KnownDirectory],
    others: Iterable[KnownDirectory],
    files: Files,
    reporter: Reporter,
) -> None:
    """Report where the directories of a path contradict each other, or those of other paths."""
    beside = list(others)
    mine, theirs = _partitions_of(own), _partitions_of(beside)
    _report_twice(mine, theirs, files, reporter)
    _report_shared_across(mine, theirs, files, reporter)
    partitions: dict[object, set[Key]] = {}
    for one in (*mine, *theirs):
        partitions.setdefault(one.parent_identity, set()).add(one.key)
    _report_ids(_brokers_of(own), _brokers_of(beside), partitions, reporter)


def _partitions_of(places: Iterable[KnownDirectory]) -> list[PartitionPlace]:
    """Return the folders of partitions in use."""
    return [one for one in places if isinstance(one, PartitionPlace) and not one.state]


def _brokers_of(places: Iterable[KnownDirectory]) -> list[BrokerPlace]:
    return [one for one in places if isinstance(one, BrokerPlace)]


def _report_ids(
    own: list[BrokerPlace],
    others: list[BrokerPlace],
    partitions: Mapping[object, set[Key]],
    reporter: Reporter,
) -> None:
    """Report each directory whose ids end a start together with those of another one.

    `partitions` are those of each directory, by its identity.
    """
    for one in own:
        again = [two for two in others if two.identity == one.identity and two.is_given]
        if one.is_given and again and not _is_same_path(again[0].path, one.path):
            report = reporter.at(one.path)
            found = report.finding(
                "DISK-26",
                f"it is {again[0].path} once more, and verified under both names; a start of Kafka"
                " with both in log.dirs ends",
            )
            add_pair(found, again[0].path, one.path, report)
        apart = [two for two in (*own, *others) if two.identity != one.identity]
        copies = [two for two in apart if _is_copy(one, two)]
        strangers = [two for two in apart if one.is_given and two.is_given and _differ(one, two)]
        report = reporter.at(posixpath.join(one.path, BROKER_FILE), shown_by=one.path)
        if copies:
            _report_copied_ids(one, copies[0], partitions, report)
        elif strangers:
            _report_strangers(one, strangers[0], report)


def _is_same_path(one: str, other: str) -> bool:
    return posixpath.normpath(one) == posixpath.normpath(other)


def _is_copy(one: BrokerPlace, two: BrokerPlace) -> bool:
    """Return whether two directories have the same id."""
    if one.broker is None or two.broker is None:
        return False
    return bool(one.broker.directory) and one.broker.directory == two.broker.directory


def _differ(one: BrokerPlace, two: BrokerPlace) -> bool:
    """Return whether two directories are of two nodes, or two clusters."""
    if one.broker is None or two.broker is None:
        return False
    clusters = {one.broker.cluster, two.broker.cluster} - {""}
    nodes = {one.broker.node, two.broker.node} - {NO_NODE}
    return len(clusters) > 1 or len(nodes) > 1


def _report_copied_ids(
    one: BrokerPlace,
    two: BrokerPlace,
    partitions: Mapping[object, set[Key]],
    report: PathReporter,
) -> None:
    """Report a directory that has the id of another one, and what each one alone has.

    Where each has partitions that the other lacks, neither is a copy of the other one.
    """
    assert one.broker is not None
    is_given = one.is_given and two.is_given
    advice: Hint | None = None
    mine, theirs = (partitions.get(each.identity, set()) for each in (one, two))
    counts = plural(len(mine - theirs), "partition"), len(theirs - mine), len(mine & theirs)
    named = ""
    if shared := sorted(f"{topic}-{number}" for topic, number in mine & theirs):
        named = ", ".join(shared[:SHARED_NAMED])
        named += f" and {len(shared) - SHARED_NAMED} more" if shared[SHARED_NAMED:] else ""
        advice = _hint_of_both(named)
    if mine - theirs and theirs - mine:
        advice = HINT_OF_COPIED_ID
        if shared:
            advice = advice.after(
                f"first settle the partitions that are in both ({named}), as DISK-48 says of each:"
                ' until then a start with both in log.dirs ends with "Duplicate log directories".'
                " Then "
            )
    found = report.finding(
        "DISK-66",
        f"{two.path} has the same directory.id: a start of Kafka with both in log.dirs ends with"
        f' "Duplicate directory ID"; {counts[0]} only here, {counts[1]} only there, {counts[2]} in'
        f" both{f' ({named})' if named else ''}",
        hint=advice,
        expected="another directory.id",
        actual=one.broker.directory,
        severity=None if is_given else Severity.WARNING,
    )
    add_pair(found, one.path, two.path, report)


def _hint_of_both(named: str) -> Hint:
    """Return what to do with two directories of one id, where one has every partition."""
    return reads(
        "nothing, if one is a backup that no broker is started with; else first settle the"
        f" partitions that are in both ({named}), as DISK-48 says of each: either of its folders"
        " may have more. Only then may one of the directories be alone in log.dirs: the one"
        " that has every partition, with the copies that are kept in it"
    )


def _report_strangers(one: BrokerPlace, two: BrokerPlace, report: PathReporter) -> None:
    """Report a directory of another node or cluster than one that was given with it."""
    found = report.finding(
        "DISK-66",
        f"this directory is of {_words_of(one.broker)}, and {two.path} of {_words_of(two.broker)}:"
        " a start of Kafka with both in log.dirs ends",
        severity=Severity.NOTE,
        hint=HINT_OF_OTHERS,
    )
    add_pair(found, one.path, two.path, report)


def add_pair(found: Finding, one: str, two: str, report: PathReporter) -> None:
    """Add a finding that only a call with both paths shows."""
    paths = f"{quoted_path(one)} {quoted_path(two)}"
    report.reporter.add(replace(found, reproduce=f"segproof verify {paths} --law {found.law}"))


def _words_of(broker: Broker | None) -> str:
    """Return the node and the cluster of a directory, in words."""
    assert broker is not None
    node = "a node without a number" if broker.node == NO_NODE else f"node {broker.node}"
    return f"{node} of {f'cluster {broker.cluster}' if broker.cluster else 'an unknown cluster'}"


def _report_twice(
    mine: list[PartitionPlace], theirs: list[PartitionPlace], files: Files, reporter: Reporter
) -> None:
    """Report each partition that has another folder in a directory of the same broker."""
    places: dict[Key, dict[object, PartitionPlace]] = {}
    extents = ExtentsOfPairs(files)
    for one in (*mine, *theirs):
        met = (one.parent_identity, posixpath.basename(one.path))
        places.setdefault(one.key, {}).setdefault(met, one)
    for one in sorted(mine, key=lambda place: place.key):
        met = (one.parent_identity, posixpath.basename(one.path))
        if places[one.key][met] is not one:
            continue  # the same folder by another path
        rivals = [two for place, two in places[one.key].items() if place != met]
        judged = [(two, severity) for two in rivals if (severity := severity_of(one, two))]
        if judged:
            order = list(Severity)
            two, severity = min(judged, key=lambda each: order.index(each[1]))
            _report_pair(one, two, severity, files, reporter, extents)


def _report_shared_across(
    mine: list[PartitionPlace], theirs: list[PartitionPlace], files: Files, reporter: Reporter
) -> None:
    """Report each folder that is another partition too, by its path in another path of the call.

    Of two such paths below one path, the walk reports the later one.
    """
    own = {one.path for one in mine}
    for one in mine:
        for two in theirs:
            if two.path not in own and two.identity == one.identity and two.key != one.key:
                report = reporter.at(one.path)
                found = _finding_of_shared(one.path, two.path, files, report)
                if found is None:
                    words = f"it is {two.path} once more, and verified under both names"
                    found = report.finding("DISK-26", words)
                add_pair(found, one.path, two.path, report)
                break


def report_shared(path: str, other: str, files: Files, report: PathReporter) -> bool:
    """Report a folder that is another partition too, by a link; return whether one broker has both.

    Two names of one partition are no such case.
    """
    found = _finding_of_shared(path, other, files, report)
    if found is not None:
        report.reporter.add(found)
    return found is not None


def _finding_of_shared(path: str, other: str, files: Files, report: PathReporter) -> Finding | None:
    """Return the finding of a folder that two partitions of one broker share, or None."""
    keys = [key_of(posixpath.basename(posixpath.normpath(one))) for one in (path, other)]
    if None in keys or keys[0] == keys[1]:
        return None
    parents = [posixpath.dirname(posixpath.normpath(one)) for one in (path, other)]
    brokers = [read_broker(parent, files) for parent in parents]
    is_one = parents[0] == parents[1] or (
        brokers[0] is not None
        and brokers[1] is not None
        and (brokers[0].cluster, brokers[0].node) == (brokers[1].cluster, brokers[1].node)
    )
    if not is_one:
        return None
    return report.finding(
        "DISK-26",
        f"it is the folder of another partition too, {other}: a broker loads two logs that"
        " write to the same files, and each destroys what the other one wrote",
        severity=Severity.ERROR,
        hint=HINT_OF_SHARED,
    )


def severity_of(one: PartitionPlace, two: PartitionPlace) -> Severity | None:
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
    return Severity.WARNING if ids[0] == ids[1] else Severity.ERROR


def _report_pair(
    one: PartitionPlace,
    two: PartitionPlace,
    severity: Severity,
    files: Files,
    reporter: Reporter,
    extents: ExtentsOfPairs,
) -> None:
    """Report a partition in two folders, with what each one has; their logs are read.

    Where one path is a link to the other, there is one folder.
    """
    hint: Hint | None = HINT_OF_LINK
    told = "it is the same folder, by a link"
    if one.identity != two.identity:
        mine, theirs = extents.read(one.path, two.path)
        more, is_one_enough = compared(mine, theirs, two.path)
        ids, is_sure = generations(one.path, two.path, files)
        is_one_enough = is_one_enough and not is_sure
        told = f"here {mine.words}; there {theirs.words}: {ids if is_sure else more}"
        hint = None if is_one_enough else HINT_OF_PARTS
        is_known = severity is Severity.ERROR
        hint = hint if is_known else HINT_OF_COPIES
        (first, its_own), (second, other) = sorted(
            ((one.path, mine), (two.path, theirs)), key=lambda each: each[0]
        )
        taken = [] if is_one_enough else logs_to_take(its_own, other)
        if is_sure or (taken and ids):
            told += "" if is_sure else f", and {ids}"
            hint = HINT_OF_GENERATIONS if is_known else HINT_OF_TWO_TOPICS
            taken = []
        if taken and (is_known or mine.damages or theirs.damages):
            told += (
                f", and together they are whole: {first} with {', '.join(taken)} of {second} has"
                " every offset of both"
            )
            hint = _hint_of_joined(first, second, taken)
            severity = severity if is_known else Severity.WARNING
    ends = "Kafka's start ends with"
    if severity is not Severity.ERROR:
        ends = "with both directories in log.dirs a start of Kafka ends with"
    found = reporter.at(one.path).finding(
        "DISK-48",
        f'partition {one.key[0]}-{one.key[1]} is in {two.path} too; {told}; {ends} "Duplicate log'
        ' directories"',
        actual=two.path,
        severity=severity,
        hint=hint,
    )
    add_pair(found, one.path, two.path, reporter.at(one.path))


def _hint_of_joined(first: str, second: str, taken: list[str]) -> Hint:
    """Return how one whole copy is made of the first folder and some segments of the second."""
    if len(taken) > LOGS_NAMED:
        return HINT_OF_MANY
    new = own_place("joined", first, first, second)
    copy = posixpath.join(new, posixpath.basename(posixpath.abspath(first)))
    stems = (posixpath.join(second, name.removesuffix(".log")) for name in taken)
    segments = " ".join(f"{quoted_path(stem)}.*" for stem in stems)
    return writes(
        f"make one whole copy of the two: {copy_commands(first, copy)},"
        f" `cp -a {segments} {quoted_path(copy)}`, and `segproof verify {quoted_path(copy)}`. Where"
        " that finds a loss, save each copy by itself: neither folder replaces the other one"
    )


def report_folder(path: str, directory: str, is_brokers: bool, reporter: Reporter) -> bool:
    """Report a folder beside partitions at whose name a start ends; return whether it is one.

    `is_brokers`: a broker's own files lie beside it. Else it is a note: the directory may be a copy
    that no broker is started with.
    """
    name = posixpath.basename(path)
    if starts_with_folder(name):
        is_usual = name == REMOTE_INDEX_CACHE or read_partition_name(name) is not None
        return not is_usual and report_taken(path, directory, is_brokers, reporter)
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


def report_taken(path: str, directory: str, is_brokers: bool, reporter: Reporter) -> bool:
    """Report a folder that Kafka takes for one of a partition, by its name; return whether so."""
    name = posixpath.basename(path)
    ending = next((one for one in STATES if name.endswith(f"-{one}")), "")
    key = key_of(name.rpartition(".")[0] if ending else name)
    if key is None or not starts_with_folder(name):
        return False
    words = f"Kafka takes this folder for partition {key[1]} of topic {key[0]}"
    report = reporter.at(path, shown_by=directory)
    if ending == "delete":
        report.add(
            "DISK-3",
            f"{words} that is to be deleted, and deletes it with all that is in it, now or at its"
            " next start",
            severity=Severity.WARNING if is_brokers else Severity.NOTE,
            hint=HINT_OF_DELETED,
        )
        return True
    state = f" (one of those that end in -{ending})" if ending else ""
    report.add(
        "DISK-3",
        f"{words}{state}: at its next start it makes files of a segment in it, and with KRaft"
        " renames it to a name that ends in -stray",
        hint=HINT_OF_ODD_NAME,
    )
    return True
