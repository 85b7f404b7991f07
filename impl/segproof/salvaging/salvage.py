# SPDX-License-Identifier: Apache-2.0
"""Saving every sound batch of damaged logs into a new data directory, which a broker loads.

Upstream: Kafka since 0.11.0: LogManager, LogLoader, LogSegment.recover.
Laws: SEG-20, and those of the batches.
Not covered: the log of a cluster's metadata; records inside of broken batches (cut_records).
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from segproof.commands import copy_commands, quoted_path
from segproof.counts import plural, verb
from segproof.errors import InvalidArgumentError
from segproof.files import Files, LinkOutError, SharedFiles
from segproof.findings import Finding
from segproof.inventory.held_beside import HeldBeside
from segproof.inventory.partitions import Partition
from segproof.inventory.segment_listing import sized
from segproof.inventory.stores import find_places
from segproof.inventory.walk import (
    DataDirectory,
    Item,
    Layout,
    NotListed,
    partition_in,
    unread_words,
)
from segproof.kafka.checkpoint_file import OffsetCheckpointFile
from segproof.processes import Meter, Progress, Sharing
from segproof.reading.file_names import (
    CUT_RECORDS_FILE,
    METADATA_TOPIC,
    SET_ASIDE_FILE,
    START,
    PartitionName,
    is_like_a_log,
    is_of_salvage,
    key_of,
    read_file_name,
    read_partition_name,
)
from segproof.reading.new_places import own_place
from segproof.reading.store_paths import PlaceKind, has_partition, part_of_store, place_of
from segproof.reading.unfinished import unfinished_at
from segproof.reading.unread_places import check_read
from segproof.rebuilding.safe_places import (
    begin_salvage,
    check_apart,
    check_empty,
    check_outside,
    end_salvage,
    names_in_new,
    not_empty,
)
from segproof.salvaging.gaps import Gap
from segproof.salvaging.other_logs import SegmentJudge
from segproof.salvaging.partition_salvage import salvage_partition
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof.salvaging.topic_ids import contradicting_topic_ids, missing_topic_ids
from segproof.wording.loose_files import stray_words
from segproof.wording.partition_words import DELETED, LACKING, REPLACED, REST

__all__ = ["Gap", "SalvagedPartition"]
LACKS_ASIDE = "DISK-41"
"""The law that a partition breaks which has lost what a folder set aside has."""
JOIN = 'the page "Save a damaged partition" says how two saved copies of one partition are joined'
LOST_IF_STARTED = "DISK-42"
"""The law that a log breaks which alone holds records, and which a start deletes."""
ONLY_COPIES = "DISK-59"
"""The law of removed logs that may be the only copy of what damage took: they go together."""
NO_LOG = (
    "no log is in this folder: look for its logs in the other log directories, in lost+found and on"
    " another replica"
)
ALL_REMOVED = (
    "and no other: each waits for its removal (.deleted). Copy the directory away, take this suffix"
    " off the names in the copy, and save the copy"
)


class Judges(NamedTuple):
    """What a salvage asks of `verify`."""

    inventory: Callable[[str, Files], tuple[list[Item], list[Finding]]]
    """Returns what lies at or below a path, and what is found of the names and small files there.
    """
    of_segment: SegmentJudge


def save_partitions(
    source: str,
    target: str,
    judges: Judges,
    jobs: int,
    on_progress: Progress | None,
    files: SharedFiles,
) -> Iterator[SalvagedPartition]:
    """Save what is sound at or below `source` into `target`; see `segproof.salvage`."""
    if jobs < 1:
        raise InvalidArgumentError("jobs must be 1 or more", actual=jobs)
    check_apart(source, target, "old one")
    check_outside(target, files)
    check_empty(target, files, _is_written_here)
    check_read(source, files)
    partitions, refused, unread, findings = _partitions(source, judges, files)
    removed = [one for one in findings if _is_removed(one) and REST in one.message]
    inside = [one for one in findings if _is_of_inner_folder(one)]
    taken = _taken(target, partitions, files)
    refused |= {partitions.pop(name).directory: why for name, why in taken.items()}
    begin_salvage(target, files, partitions)
    meter = Meter(on_progress, sum(one.size_bytes for one in partitions.values()))
    starts: dict[tuple[str, int], int] = {}
    for name, told in _salvaged(partitions, target, judges.of_segment, files, meter, jobs):
        partition = partitions[name]
        told.left_out += _words_of([*unread, *inside], partition)
        told.removed += _words_of(removed, partition)
        if told.target is not None:
            told.left_out += missing_topic_ids(findings, partition.directory)
            told.doubts += contradicting_topic_ids(findings, partition.directory)
            told.doubts += _held_aside(findings, partition, told, files)
        start = dict(partition.offsets).get(START, 0)
        known = read_partition_name(name)
        if known is not None and told.first_offset < start <= told.last_offset:
            starts[known.topic, known.partition] = start
        yield told
    for directory, why in refused.items():
        yield SalvagedPartition(directory, None, left_out=[f"{directory}: {why}"])
    if starts:
        checkpoint = OffsetCheckpointFile(os.path.join(target, START), create=True, files=files)
        checkpoint.write(checkpoint.read() | starts)
    end_salvage(target, files)


def _is_written_here(name: str) -> bool:
    """Return whether a salvage writes something of this name into the new directory."""
    known = read_partition_name(name)
    return name == START or is_of_salvage(name) or (known is not None and not known.state)


def _taken(target: str, partitions: Collection[str], files: SharedFiles) -> dict[str, str]:
    """Return the partitions that the new directory has something of, with the reason.

    Raises: FileExistsError if that are all of them.
    """
    there = set(names_in_new(target, files) or ())
    taken: dict[str, str] = {}
    for name in partitions:
        for new in (name, SET_ASIDE_FILE.format(name), CUT_RECORDS_FILE.format(name)):
            if new in there:
                taken.setdefault(name, os.path.join(target, new))
    if taken and len(taken) == len(partitions):
        words = f"it is there already, from another salvage; give another directory. {JOIN}"
        raise not_empty(next(iter(taken.values())), words)
    return {
        name: f"{path} is there already, from another salvage: save this one by itself into"
        f" another directory; {JOIN}"
        for name, path in taken.items()
    }


def _held_aside(
    findings: Iterable[Finding], partition: Partition, told: SalvagedPartition, files: SharedFiles
) -> list[str]:
    """Return in words what a folder that is set aside has, and the saved partition lacks.

    What the log cleaner may have taken is no doubt where a file shows that it was here.
    """
    directory = partition.directory
    own = os.path.normpath(directory)
    words = [
        f"{one.path}: {one.message}; {JOIN}"
        for one in findings
        if one.law == LACKS_ASIDE and one.is_defect and os.path.normpath(one.path) == own
    ]
    if not words and told.unproven_offsets and not partition.was_cleaned:
        held = HeldBeside(directory, files).words(told.first_offset, told.last_offset + 1)
        why = "compaction took them, or they are lost"
        words = [f"{directory} lacks offsets: {why}. {held}; {JOIN}"] if held else []
    return words


def _is_removed(finding: Finding) -> bool:
    """Return whether a finding says no more than that a broker has removed a log."""
    return finding.path.endswith(DELETED) and not finding.is_defect


def _is_of_inner_folder(finding: Finding) -> bool:
    """Return whether a finding is of a folder in a partition that has what the partition lacks."""
    return finding.is_defect and any(words in finding.message for words in LACKING)


def _words_of(findings: list[Finding], partition: Partition) -> list[str]:
    """Return what findings say of the logs of a partition; how a removed one is saved."""
    directory = partition.directory.rstrip("/")
    found = []
    for one in findings:
        if os.path.dirname(one.path) == directory:
            step = ""
            suffix = os.path.splitext(one.path)[1]
            if one.law == ONLY_COPIES:
                step = (
                    "; to save it too, with all other such logs of this partition, run the commands"
                    f" that `segproof verify {quoted_path(directory)} --law {one.law}` prints"
                )
            elif one.path.endswith(DELETED) or one.law == LOST_IF_STARTED:
                name = os.path.basename(os.path.realpath(directory))
                step = (
                    f"; to save it too, copy this file, without {suffix} in its name, into an empty"
                    f" folder {name}, and save that folder"
                )
                if one.law == REPLACED:
                    step += "; or follow `segproof verify`, whose commands save it with the others"
            found.append(f"{one.path}: {one.message}{step}")
    return found


def _stores_below(source: str, files: SharedFiles) -> dict[str, str]:
    """Return the stores of RocketMQ at or below a path, which are saved apart, with the step."""
    stores = [one.path for one in find_places(source, files) if one.kind is PlaceKind.STORE]
    return {
        one: "copy the folders of a store of RocketMQ in it (such as commitlog) into a new"
        " directory, and save that one"
        if has_partition(one, files)
        else "a store of RocketMQ: save it by itself"
        for one in stores
    }


def _salvaged(
    partitions: dict[str, Partition],
    target: str,
    judge: SegmentJudge,
    files: SharedFiles,
    meter: Meter,
    jobs: int,
) -> Iterator[tuple[str, SalvagedPartition]]:
    """Yield what was saved of each partition by name, here or in several processes."""
    sharing = Sharing(
        min(jobs, len(partitions)), files, meter, "salvage", lambda _: target,
        "save into another new directory, with jobs=1",
    )  # fmt: skip
    with sharing.results(partial(_save, target=target, judge=judge), partitions.items()) as saved:
        yield from zip(partitions, saved, strict=True)


def _save(
    named: tuple[str, Partition],
    files: SharedFiles,
    meter: Meter,
    target: str,
    judge: SegmentJudge,
) -> SalvagedPartition:
    """Save one partition, here or in a worker."""
    name, partition = named
    aside = os.path.join(target, SET_ASIDE_FILE.format(name))
    new = os.path.join(target, name)
    return salvage_partition(partition, new, aside, judge, files, meter.add)


def _linked_logs(partition: Partition, files: SharedFiles) -> str:
    """Return why a partition with logs that are links out of its folder is not saved; else ""."""
    found = []
    for one in partition.segments:
        if ".log" not in one.suffixes:
            continue
        path = one.path(".log")
        try:
            files.open(path).close()
        except LinkOutError:
            found.append(os.path.basename(path))
        except OSError:
            continue
    return _words_of_links(partition.directory, found) if found else ""


def _words_of_links(directory: str, logs: list[str]) -> str:
    """Return why a partition with links to its logs is not saved, and how it is."""
    count, copy = len(logs), own_place("copied", directory, directory)
    own = os.path.join(copy, os.path.basename(os.path.realpath(directory)))
    copied = copy_commands(directory, own, "-rLn")
    are_links, lead = verb(count, "is a link", "are links"), verb(count, "it leads", "they lead")
    return (
        f"{plural(count, 'log')} of it, {logs[0]} first, {are_links} to another folder, and"
        f" segproof follows no such link: nothing is known to be lost. See where {lead}, copy the"
        f" partition with the files to which its links lead ({copied}), and"
        f" save the copy (`segproof salvage {quoted_path(own)} --out DIR2`)"
    )


def _why_no_log(partition: Partition) -> str:
    """Return why a partition without a log is not saved; empty for one that was met before."""
    if partition.removed:
        return f"{plural(len(partition.removed), 'log')} {ALL_REMOVED}"
    return NO_LOG if partition.segments or partition.lacks_log else ""


def _why_aside(known: PartitionName) -> str:
    """Return why a folder that a broker has set aside is not saved, and how it is."""
    return (
        f"a broker set it aside ({known.state}); to save it too, copy it under the name"
        f" {known.topic}-{known.partition}, and save the copy into another directory"
    )


def _is_named_as_log(name: str) -> bool:
    """Return whether a file may be a log, by its name."""
    return ".log" in name.lower() or is_like_a_log(name, read_file_name(name))


def _level(partition: Partition) -> int:
    """Return how many folders lie above a partition."""
    return os.path.normpath(partition.directory).count("/")


class _Inventory(NamedTuple):
    partitions: list[Partition]
    strays: dict[str, str]
    """The path of each segment file outside of a partition, and why salvage leaves it out."""
    not_read: dict[str, str]
    """The path of each folder that salvage did not read though partitions may be in it, and why it
    did not."""
    findings: list[Finding]
    """What `verify` says of names and directories."""


def _inventory(source: str, judges: Judges, files: SharedFiles) -> _Inventory:
    """Return what lies at or below a path."""
    items, findings = judges.inventory(source, files)
    found = _Inventory([], {}, {}, findings)
    for item in items:
        partition = partition_in(item)
        if partition is not None:
            found.partitions.append(partition)
        elif isinstance(item, DataDirectory):
            found.strays.update((path, words) for path, words, _ in stray_words(item, files))
        elif isinstance(item, NotListed | Layout) and (why := unread_words(item)) is not None:
            found.not_read[item.path] = why
    return found


def _partitions(
    source: str, judges: Judges, files: SharedFiles
) -> tuple[dict[str, Partition], dict[str, str], list[Finding], list[Finding]]:
    """Return the partitions at or below a path by the names of their directories.

    And the directories that no broker would load, or that can't be read, each with the reason; and
    the findings of logs that can't be read; and all findings.
    """
    there = _inventory(source, judges, files)
    found: dict[str, Partition] = {}
    refused: dict[str, str] = {}
    # A broker loads what lies in its directory itself; a copy in a folder of it comes second.
    for partition in sorted(there.partitions, key=_level):
        directory = partition.directory
        name = os.path.basename(os.path.realpath(directory))
        known = read_partition_name(name)
        if not any(".log" in one.suffixes for one in partition.segments):
            if known is not None and (why := _why_no_log(partition)):
                refused[directory] = why
            continue
        if known is None:
            key = key_of(name)
            name_to_have = "the name to load it by" if key is None else f"{key[0]}-{key[1]}"
            refused[directory] = f"it is not named TOPIC-N; rename a copy to {name_to_have}"
        elif known.state:
            refused[directory] = _why_aside(known)
        elif known.topic == METADATA_TOPIC:
            refused[directory] = "the log of a cluster's metadata is not saved"
        elif (mark := unfinished_at(directory, files)) is not None:
            refused[directory] = f"{mark.words}: {mark.step}"
        elif linked := _linked_logs(partition, files):
            refused[directory] = linked
        elif name in found:
            refused[directory] = f"{found[name].directory} has the same name; save it by itself"
        else:
            segments = tuple(sized(one, files) for one in partition.segments)
            found[name] = replace(partition, segments=segments)
    taken = {one.path(".log") for each in found.values() for one in each.segments}
    by_path: dict[str, Finding] = {}  # the first of each path says the most
    for one in there.findings:
        is_saved = one.path in taken and (one.law == REPLACED or not one.is_defect)
        is_log = _is_named_as_log(os.path.basename(one.path))
        if one.path not in there.strays and is_log and not is_saved and not _is_removed(one):
            by_path.setdefault(one.path, one)
    unread = [*by_path.values()]
    refused |= there.strays
    refused |= {path: why for path, why in there.not_read.items() if path not in by_path}
    refused |= _stores_below(source, files) if found else {}
    place = None if found or refused else place_of(source, files)
    if place is not None and place.kind is PlaceKind.STORE:
        raise InvalidArgumentError(
            "a store of RocketMQ",
            path=source,
            hint="call `salvage_store` of segproof.repair",
        )
    if not found:
        why = part_of_store(source, files) or "there is no partition with a log here"
        path, why = next(iter(refused.items()), (source, why))
        raise InvalidArgumentError(
            why,
            path=path,
            hint="give the directory of a partition (TOPIC-N), or a data directory of Kafka",
        )
    return found, refused, unread, there.findings
