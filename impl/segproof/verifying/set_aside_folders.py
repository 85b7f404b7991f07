# SPDX-License-Identifier: Apache-2.0
"""Folders of partitions that are set aside, compared with the partition in use.

A broker with KRaft sets a log without its topic id aside, and the partition begins again. So a
-stray folder beside the partition may have its only records. A -future folder is a copy on its way
to another log directory, which is never ahead of its source: one that is ahead shows what the
source has lost, and the next start cuts the copy to the end of the source. A -delete folder is of a
deleted topic, or of a replica that was moved away; only the latter has the id of the topic, and it
is told only where the partition in use may have lost what it has. Where compaction, retention or
remote storage explains what the partition lacks, the finding is a note, and says so.

Upstream: Kafka 4.4.0: LogManager.loadLog, ReplicaAlterLogDirsThread.truncate.
Laws: DISK-41.
"""

import posixpath
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from segproof.commands import copy_commands, quoted_path
from segproof.counts import plural, verb
from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import Hint, reads, writes
from segproof.inventory.folder_extents import (
    Extent,
    ExtentsOfPairs,
    generations,
    lacking,
    logs_to_take,
    outside,
)
from segproof.inventory.held_beside import are_of_one_topic, traces_in
from segproof.inventory.small_files import KnownOffsets
from segproof.reading.cleaner_traces import Cleaning
from segproof.reading.file_names import EPOCHS
from segproof.reading.leader_epochs import epochs_begin
from segproof.reading.new_places import own_place
from segproof.verifying.log_directories import (
    LOGS_NAMED,
    KnownDirectory,
    PartitionPlace,
    add_pair,
    severity_of,
)
from segproof.verifying.pending_files import words_of_directory
from segproof.wording.reporting import Reporter

LAW = "DISK-41"
FUTURE, DELETE = "future", "delete"
STRAY_BESIDE = (
    "the broker has set this folder aside, and never deletes it by itself; the partition goes on in"
    " another one"
)
DELETE_BESIDE = (
    "the broker deletes this folder, now or at its next start; the partition goes on in another one"
)
HINT_OF_FUTURE_ALONE = writes(
    "verify all log directories of the broker in one call, which compares this copy with the"
    " partition. Where that one is lost, keep a copy of this folder on"
    " another disk: it may have the only records on this broker"
)
HINT_OF_UNPROVEN = reads(
    "nothing, if retention or compaction removed them from the partition in use; else compare both"
    " folders with another replica, and keep a copy of this one"
)
HINT_OF_UNREAD = writes(
    "keep this folder, and what its links lead to. Verify it by itself: DISK-45, DISK-59 and"
    " DISK-60 say of each log that was not read how a copy is made in which it is. In a copy of"
    " both folders beside each other this finding then compares that log too"
)
UNLESS_EXPLAINED = (
    "nothing, if compaction or retention (of a topic in remote storage: the local one) removed them"
    " from the partition in use; else "
)
HINT_OF_TOPICS = writes(
    "nothing, if the topic was deleted and made again; else copy both folders to another disk, and"
    " compare their topic ids with the one that `kafka-topics.sh --describe` shows"
)


class _Compared(NamedTuple):
    """What a folder that is set aside has, beside the partition in use."""

    difference: str
    """What only the folder has, in words."""
    is_lost: bool
    """Whether the partition has lost batches that are in the folder."""
    hint: Hint | None
    """None: the usual one, to do nothing."""
    may_be_lost: bool = False
    """Whether it lacks batches, and no file tells why."""


def report_aside(
    own: Iterable[KnownDirectory],
    others: Iterable[KnownDirectory],
    files: Files,
    reporter: Reporter,
    offsets: KnownOffsets,
) -> None:
    """Report the folders of `own` that end in -stray or -future, and the partitions that lack them.

    `others` are the directories of other paths of the call. The logs are read where the partition
    is in use too. `offsets` are what the checkpoints of its data directory say.
    """
    if not reporter.wanted.includes(LAW):
        return
    mine = _by_identity(own)
    places = {**_by_identity(others), **mine}
    pairs: list[tuple[PartitionPlace, PartitionPlace]] = []
    for one in places.values():
        if not one.state:
            continue
        two = _in_use(one, places.values())
        is_mine = one.identity in mine
        if two is None:
            if is_mine and one.state != DELETE:
                _report_alone(one, reporter)
        elif is_mine or two.identity in mine:
            pairs.append((one, two))
    extents = ExtentsOfPairs(files)
    for one, two in sorted(pairs, key=lambda pair: pair[1].path):
        _report_pair(one, two, mine, files, reporter, extents, offsets)


def _by_identity(places: Iterable[KnownDirectory]) -> dict[object, PartitionPlace]:
    """Return the folders of partitions; of one that is met twice, the first."""
    found: dict[object, PartitionPlace] = {}
    for one in places:
        if isinstance(one, PartitionPlace):
            found.setdefault(one.identity, one)
    return found


def _in_use(one: PartitionPlace, places: Iterable[PartitionPlace]) -> PartitionPlace | None:
    """Return the folder of the partition in use, the surest one; None if none is known."""
    order = list(Severity)
    found = [
        (order.index(severity), two)
        for two in places
        if two.key == one.key and not two.state
        and (severity := severity_of(one, two)) is not None
    ]  # fmt: skip
    return min(found, key=lambda each: each[0])[1] if found else None


def _report_alone(one: PartitionPlace, reporter: Reporter) -> None:
    """Report a folder that was set aside, where no verified directory has its partition."""
    words = words_of_directory(one.state)
    hint: Hint | None = None
    if one.state == FUTURE:
        words += "; the partition itself is not in what was verified"
        hint = HINT_OF_FUTURE_ALONE
    shown_by = one.parent if posixpath.dirname(one.path) == one.parent else one.path
    reporter.at(one.path, shown_by=shown_by).add(LAW, words, hint=hint)


def _report_pair(
    one: PartitionPlace,
    two: PartitionPlace,
    mine: Mapping[object, PartitionPlace],
    files: Files,
    reporter: Reporter,
    extents: ExtentsOfPairs,
    offsets: KnownOffsets,
) -> None:
    """Report a folder that is set aside, and the partition in use that lacks what it has.

    The copy is read first: a broker at work appends to the partition, and then to the copy.
    """
    if one.state == DELETE and not are_of_one_topic(one.path, two.path, files):
        return
    aside, there = extents.read(one.path, two.path, again=one.state == FUTURE)
    compared = _compared(one, two, aside, there, files, offsets)
    is_sure = severity_of(one, two) is not Severity.NOTE
    is_loss = compared.is_lost and (is_sure or one.state == FUTURE or there.damages > 0)
    hint = compared.hint
    if compared.is_lost and not is_sure and hint is not None:
        hint = hint.after("nothing, if the two directories are of two brokers; else ")
    severity = Severity.WARNING if is_loss else None
    if one.state == DELETE and not (is_loss or compared.may_be_lost):
        return
    if one.identity in mine:
        report = reporter.at(one.path)
        words = words_of_directory(one.state) if one.state == FUTURE else STRAY_BESIDE
        words = DELETE_BESIDE if one.state == DELETE else words
        words = f"{words}. It has {aside.words}; the partition in use, {two.path}, has"
        words += f" {there.words}: {compared.difference}"
        found = report.finding(LAW, words, severity=severity, hint=hint)
        add_pair(found, one.path, two.path, report)
    if is_loss and two.identity in mine:
        report = reporter.at(two.path)
        words = f"{one.path} has what this partition lacks. It has {aside.words}; this"
        words += f" partition has {there.words}: {compared.difference}"
        found = report.finding(LAW, words, actual=one.path, severity=severity, hint=hint)
        add_pair(found, two.path, one.path, report)


def _compared(
    one: PartitionPlace,
    two: PartitionPlace,
    aside: Extent,
    used: Extent,
    files: Files,
    offsets: KnownOffsets,
) -> _Compared:
    """Compare the batches of a folder that is set aside with those of the partition in use."""
    ids, are_two = generations(one.path, two.path, files)
    if are_two:
        return _Compared(ids, False, HINT_OF_TOPICS)
    if aside.are_too_many or used.are_too_many:
        return _Compared("they have too many batches to be compared", False, HINT_OF_UNPROVEN)
    absent = lacking(aside.batches, used.batches)
    if not len(absent):
        return _with_all_of(aside)
    recent = absent[absent[:, 1] >= used.start]
    shown = recent if len(recent) else absent
    words = (
        f"{plural(len(shown), 'batch', 'is', 'are')} in the folder set aside alone, of the offsets"
        f" {int(shown[:, 0].min())} to {int(shown[:, 1].max())}"
    )
    if not len(recent):
        return _before_the_start(words, one, two, aside, used, files)
    last = int(recent[:, 1].max())
    traces = traces_in(two.path, *two.key, used, files, offsets)
    is_ahead = is_lost = last >= used.end
    is_lost |= used.damages > 0 and len(outside(recent, used.ranges)) > 0
    is_lost |= traces.of_gap(last) is Cleaning.EXCLUDED
    differ = len(outside(recent, used.ranges)) < len(recent)
    is_lost |= differ and not aside.may_be_cleaned and not used.may_be_cleaned
    if not is_lost:
        hint = _steps(one, two, _taken(ids, aside, used)).after(UNLESS_EXPLAINED)
        return _Compared(f"{words}: compaction took them, or they are lost", False, hint, True)
    if one.state != FUTURE:
        words += ". No consumer gets their records"
    elif is_ahead:
        words += (
            ". Such a copy is never ahead of the log that it copies: that log has lost them, or was"
            " truncated. The next start cuts the copy to the end of that log"
        )
    else:
        words += ": the log that it copies has lost them"
    return _Compared(words, True, _steps(one, two, _taken(ids, aside, used)))


def _with_all_of(aside: Extent) -> _Compared:
    """Compare a folder that has no sound batch alone, as far as its logs were read."""
    if not aside.unread:
        return _Compared("the partition in use has every sound batch of it", False, None)
    count = len(aside.unread)
    words = (
        "the partition in use has every sound batch that was read of it, and"
        f" {plural(count, 'log')} of it {verb(count, 'was', 'were')} not read, such as"
        f" {aside.unread[0]}:"
        f" {verb(count, 'that one', 'these')} may have what no other has"
    )
    return _Compared(words, False, HINT_OF_UNREAD)


def _before_the_start(
    words: str, one: PartitionPlace, two: PartitionPlace, aside: Extent, used: Extent, files: Files
) -> _Compared:
    """Compare a folder that has only offsets before the start of the partition in use.

    Where retention, or a new replica, moved the start of the whole log, its leader epochs begin
    there too. Whether its topic is in remote storage, no file tells.
    """
    begin = epochs_begin(two.path, files)
    may_be_lost = one.state != FUTURE and used.start > 0 if begin is None else begin < used.start
    if not may_be_lost:
        words += f", which retention may have removed before offset {used.start}"
        return _Compared(words, False, HINT_OF_UNPROVEN)
    words += f". The partition begins at offset {used.start}"
    if begin is None:
        words += f", and no readable {EPOCHS} there tells why"
    else:
        words += f", and its leader epochs at offset {begin}"
    words += ": retention removed them, they are in remote storage, or they are lost"
    taken = _taken(generations(one.path, two.path, files)[0], aside, used)
    return _Compared(words, False, _steps(one, two, taken).after(UNLESS_EXPLAINED), True)


def _taken(ids: str, aside: Extent, used: Extent) -> list[str]:
    """Return the logs of the folder that make the partition in use whole; none if unsure.

    None either where no log of the partition would stay beside them.
    """
    taken = [] if ids or aside.others or used.others else logs_to_take(used, aside)
    is_part = bool(used.by_log.keys() - set(taken))
    return taken if is_part and len(taken) <= LOGS_NAMED else []


def _steps(one: PartitionPlace, two: PartitionPlace, taken: list[str]) -> Hint:
    """Return how a copy of the folder gets the name of its partition, and is looked into.

    With the logs that are `taken` from it the partition is whole: then the copy has both.
    """
    if taken:
        return _joined(one, two, taken)
    new = own_place("aside", one.path, one.path)
    copy = posixpath.join(new, f"{one.key[0]}-{one.key[1]}")
    paths = quoted_path(one.path), quoted_path(copy)
    is_in_danger = one.state in (FUTURE, DELETE)
    which = "before the broker starts again, " if is_in_danger else ""
    return writes(
        f"{which}copy the folder to another disk, under the name of its partition:"
        f" `install -d {quoted_path(new)}`, `cp -an {paths[0]} {paths[1]}`, and `segproof verify"
        f" {paths[1]}`. Copy {quoted_path(two.path)} away too, and compare both with another"
        " replica: only a person knows which records the partition should have"
    )


def _joined(one: PartitionPlace, two: PartitionPlace, taken: list[str]) -> Hint:
    """Return how one copy of the partition gets the logs that are taken from the folder."""
    new = own_place("joined", two.path, two.path, one.path)
    copy = posixpath.join(new, f"{one.key[0]}-{one.key[1]}")
    stems = (posixpath.join(one.path, name.removesuffix(".log")) for name in taken)
    segments = " ".join(f"{quoted_path(stem)}.*" for stem in stems)
    return writes(
        "before the broker starts again, make one whole copy of the two on another disk:"
        f" {copy_commands(two.path, copy)}, `cp -a {segments} {quoted_path(copy)}`, and"
        f" `segproof verify {quoted_path(copy)}`. A salvage of the copy makes its indexes fit."
        " Compare it with another replica first: only a person knows which records the partition"
        " should have"
    )
