# SPDX-License-Identifier: Apache-2.0
"""The verdict on each partition, store or file, made while its findings go by.

A verdict errs on the side of the bad news. `INDEX_DAMAGE_ONLY` is said only where every batch was
read, no index entry points beyond the end of its log, no log lacks offsets and the index that would
tell of them, and checksums show that the log is right where an index contradicts it. A log to whose
end an entry points may have lost its end, unless it has each offset up to the next segment.
"""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from segproof.files import Files, status_of
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.inventory.partitions import Partition
from segproof.inventory.segment_listing import ALL_FILES
from segproof.inventory.segments import Segment
from segproof.inventory.told_ends import IF_NAMED_RIGHT
from segproof.reading.cleaner_traces import UP_TO
from segproof.reading.file_names import BOOTSTRAP
from segproof.reading.store_paths import Place, PlaceKind
from segproof.reading.unfinished import VERBS
from segproof.rocketmq.commit_log import COMMIT_LOG
from segproof.verifying.checked import Checked
from segproof.verifying.loss_count import (
    LOG_UNREADABLE,
    LOST_OF_DENSE_LOG,
    CountLost,
    KnownLog,
    LossCount,
    Lost,
)
from segproof.verifying.missing_offsets import MissingOffsets
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.unread_files import LAYOUTS

Work = Partition | Place
"""What is checked as a whole: a partition of Kafka, or a place of RocketMQ."""
OnSummary = Callable[[Summary], None]
"""Called with each summary, behind the findings that it counts."""

LOSSES = frozenset({
    "BATCH-2", "BATCH-3", "BATCH-9", "BATCH-10", "BATCH-11", "BATCH-14", "BATCH-15", "BATCH-16",
    "BATCH-18", "DISK-4", "DISK-18", "DISK-23", "DISK-51", "DISK-52", "DISK-69", "DISK-70",
    "DUMP-6", "SCAN-2", "SCAN-10", "RMQDISK-23", "RMQDISK-24", "RMQDISK-26", "RMQDISK-27",
    "RMQDISK-28", "RMQDISK-44", "RMQDISK-45", "RMQDISK-52", "RMQDISK-53",
    "RMQDISK-55",
})  # fmt: skip
"""An error by one of these laws says that records can't be read, or are not there."""
ENDS_LOST = frozenset({"DISK-25", "DISK-36", "DISK-38", "DISK-43", "DISK-63", "DISK-64"})
"""A warning by one of these says so too: offsets that were there once are in no segment."""
OF_OTHER_FILES = frozenset({LOST_OF_DENSE_LOG, "DISK-36", "DISK-38", "DISK-43", "DISK-64"})
"""Those that judge a log by other files."""
INDEX_STRUCTURES = frozenset({"offset-index", "time-index", "transaction-index", "index-file"})
INDEX_LAWS = frozenset({
    "DISK-5", "RMQDISK-17", "RMQDISK-18", "RMQDISK-19", "RMQDISK-29", "RMQDISK-30", "RMQDISK-31",
    "RMQDISK-32", "RMQDISK-33", "RMQDISK-35", "RMQDISK-36", "RMQDISK-37",
    "RMQDISK-50", "RMQDISK-51",
})  # fmt: skip
"""Laws about what is made new from a log, of findings that name another structure."""
CONTRADICTIONS = frozenset({
    "RMQDISK-29", "RMQDISK-30", "RMQDISK-31", "RMQDISK-32", "RMQDISK-37", "RMQDISK-50",
})  # fmt: skip
"""Laws by which an index or a queue contradicts the commit log. RocketMQ's checksum covers the body
of a message alone, so nothing shows which of the two is wrong."""
CHECKPOINT_AHEAD = "RMQDISK-21"
"""The law that a checkpoint breaks which calls more of the index durable than is there."""
ZEROS = "DISK-6"
"""The law of zeros at the end of a closed log, and of a log that has nothing else."""
MET_AGAIN = "DISK-26"
"""The law that a folder breaks which is met once more, by a link, or lies too deep."""
OUT_OF_ORDER = frozenset({"DISK-13", "LOG-4"})
"""Laws that batches break which do not belong where they lie."""
STORE_TWICE = "RMQDISK-58"
"""The law that a store breaks which is at another path of the call too, or has a copy there."""
UNFINISHED = "DISK-61"
"""The law that an output breaks which `salvage` or `rebuild` has not ended."""
NOTHING_HERE = "DISK-20"
"""The law that a path breaks at which there is nothing of Kafka's."""
MISPLACED = "RMQDISK-25"
"""A finding of it about one file costs no message: the offset is wrong, or the name of the file.
One about the whole log says that a file was copied over another one, which is lost."""
FILES_FOLLOW = "RMQDISK-23"
"""A finding of it at byte 0 of a file is about a file too many, or one that lacks bytes behind the
last message. It costs no message."""
KINDS_WITH_MESSAGES = (PlaceKind.STORE, PlaceKind.LOG_FILE)


def is_loss(finding: Finding) -> bool:
    """Return whether a finding says that records can't be read, or are not there."""
    if finding.law == LOG_UNREADABLE:
        folder = posixpath.basename(posixpath.dirname(finding.path))
        return finding.structure == "record-file" or COMMIT_LOG in (
            folder,
            posixpath.basename(finding.path),
        )
    if posixpath.basename(finding.path) == BOOTSTRAP:
        return False  # it holds no record of a log
    if finding.law == UNFINISHED:
        # Of what the source had, a part is here. A mark by itself is no part.
        return finding.is_defect and posixpath.basename(finding.path) not in VERBS
    if finding.law == MISPLACED:
        return posixpath.basename(finding.path) == COMMIT_LOG
    if finding.law == FILES_FOLLOW and finding.position == 0:
        return False
    if finding.law in OF_OTHER_FILES and (finding.actual or "").startswith(UP_TO):
        return False  # compaction may have taken them, or other files say that the log ends there
    if is_if_named_right(finding):
        return False  # none is lost if two folders have exchanged names
    is_error = finding.severity is Severity.ERROR
    return (is_error and finding.law in LOSSES) or (finding.is_defect and finding.law in ENDS_LOST)


def is_if_named_right(finding: Finding) -> bool:
    """Return whether a finding tells a loss that is none if two folders have exchanged names."""
    return finding.law in OF_OTHER_FILES and (finding.actual or "").endswith(IF_NAMED_RIGHT)


def is_of_index(finding: Finding) -> bool:
    """Return whether a finding is about a file that is made new from the log."""
    if finding.law == CHECKPOINT_AHEAD:
        return finding.expected is None  # the index is gone; else the checkpoint may be wrong
    return finding.structure in INDEX_STRUCTURES or finding.law in INDEX_LAWS


class Tally:
    """Counts what was found and checked of one path; `end` tells its summary."""

    def __init__(
        self,
        path: str,
        kind: str,
        on_summary: OnSummary | None,
        found: Sequence[Finding] = (),
        losses: LossCount | None = None,
        count_lost: Callable[[Mapping[str, KnownLog]], Lost | None] = lambda _: None,
    ) -> None:
        """`count_lost` places the logs of a partition together; it is asked if one is damaged."""
        self._path = path
        self._kind = kind
        self._on_summary = on_summary
        self._found = found
        """What is known before anything is checked."""
        self._severities: Counter[Severity] = Counter()
        self._has_losses = self._has_index_damage = self._has_others = False
        self._is_refused = self._is_not_checked = self._has_zeros = False
        self._not_looked_into = 0
        self._losses = LossCount() if losses is None else losses
        self._count_lost = count_lost
        self._known: dict[str, KnownLog] = {}
        """What is known of each log, by its path."""
        self._told = set[str]()
        """The files that a finding is about."""
        self._is_out_of_order = False
        self.checked = Checked()
        """How much was checked so far."""
        self._missing = MissingOffsets()
        self._sound_batches = 0
        self._is_cut = False
        """Whether a recovery would cut the log in a segment so far."""
        self._is_unproven = False
        """Whether a log may have lost records, as its index says or would say."""

    def begin(self) -> Iterator[Finding]:
        """Yield the findings that are known before anything is checked."""
        return self.count(self._found)

    def count(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield findings, counted."""
        for one in findings:
            self._take(one)
            yield one

    def _take(self, one: Finding) -> None:
        self._severities[one.severity] += one.places
        self._told.add(one.path)
        self._not_looked_into += one.files_not_looked_into
        self._is_unproven |= one.law == LOST_OF_DENSE_LOG
        self._is_out_of_order |= one.is_defect and one.law in OUT_OF_ORDER
        if is_if_named_right(one) or (one.law == LOST_OF_DENSE_LOG and not is_loss(one)):
            self._losses.find(one)
            self._has_others |= one.is_defect
            return
        if not one.is_defect:
            return
        if one.is_not_looked_into or one.law in LAYOUTS:
            self._is_not_checked = True
            return
        if is_loss(one):
            self._has_losses = True
            self._losses.find(one)
        elif is_of_index(one) and one.law not in CONTRADICTIONS:
            self._has_index_damage = True
        else:
            self._has_zeros |= one.law == ZEROS and one.structure == "record-file"
            self._has_others = True
            self._is_refused |= one.law in (LOG_UNREADABLE, NOTHING_HERE)

    def add(self, segment: Segment, carry: LogCarry) -> None:
        """Take what the check of the next segment has read."""
        checked = self.checked
        self._known[segment.path(".log")] = KnownLog.of(
            segment, carry, is_told=not self._told.isdisjoint(map(segment.path, segment.suffixes))
        )
        if segment.held_by or segment.overlap:
            return  # the log has another name, and counts there; or is none of the partition's
        checked.segments += 1
        checked.bytes_checked += carry.bytes_checked
        checked.batches += carry.batches
        self._missing.add(segment, carry)
        self._sound_batches += carry.sound_batches
        self._is_unproven |= carry.is_pointed_beyond and not _holds_all(segment, carry)
        self._has_losses |= carry.indexed_end is not None
        is_alone = checked.segments == 1 and segment.next_base_offset is None
        if not carry.is_blank or is_alone:  # else only the name of the log would say them
            if checked.first_offset is None:
                first = carry.first_offset
                is_below = first is not None and 0 <= first < segment.base_offset
                checked.first_offset = first if is_below else segment.base_offset
            if carry.end_offset is None or checked.end_offset is None:
                checked.end_offset = carry.end_offset
            else:
                checked.end_offset = max(checked.end_offset, carry.end_offset)
        self._losses.add(segment, carry)
        if ".log" in segment.judged:
            self._count_behind_damage(segment, carry)

    def _count_behind_damage(self, segment: Segment, carry: LogCarry) -> None:
        """Count what a recovery deletes that cuts the log at its first damage.

        It removes all later segments too. Those in tiered storage are never recovered, and a log
        under a name that no broker reads is not either.
        """
        damage = None if segment.log_name else carry.damage
        sound = None if damage is None else damage.sound
        count = 0 if sound is None else sound.batches
        if self._is_cut:
            is_apart = sound is not None and sound.start >= carry.end_position
            count = carry.sound_batches + count if is_apart else max(carry.sound_batches, count)
        self.checked.batches_behind_damage += count
        self._is_cut |= damage is not None and not segment.stem

    def end(self) -> None:
        """Tell the summary."""
        if self._on_summary is None:
            return
        checked, counts = self.checked, self._severities
        checked.missing_offsets += self._missing.count
        self._losses.add_messages(checked.lost_messages)
        is_known = self._has_losses or self._losses.is_any_damaged or self._is_out_of_order
        is_known |= self._has_zeros
        has_defects = counts[Severity.ERROR] + counts[Severity.WARNING] > 0
        if is_known or (has_defects and checked.missing_offsets):
            together = self._count_lost(self._known)
            if together is not None:
                self._losses.count_as(together)
                self._has_losses |= together.at_least > 0
        lost = self._losses.finish()
        self._on_summary(
            Summary(
                self._path,
                self._kind,
                self._verdict(),
                checked.bytes_checked,
                checked.batches,
                checked.segments,
                checked.first_offset,
                checked.end_offset,
                lost,
                checked.batches_behind_damage,
                counts[Severity.ERROR],
                counts[Severity.WARNING],
                counts[Severity.NOTE],
                lost_at_least=self._losses.at_least,
                unproven_offsets=self._losses.unproven if self._losses.is_bounded else 0,
                missing_offsets=checked.missing_offsets,
                not_looked_into=self._not_looked_into,
            )
        )

    def _verdict(self) -> Verdict:
        if self._has_losses:
            is_store = self._kind in KINDS_WITH_MESSAGES
            readable = self.checked.batches if is_store else self._sound_batches
            readable += self.checked.batches_behind_damage
            return Verdict.READABLE_WITH_GAPS if readable else Verdict.UNREADABLE
        if self._is_refused and not self.checked.bytes_checked:
            return Verdict.UNREADABLE
        if self._is_not_checked:
            is_partly_read = self.checked.bytes_checked > 0
            return Verdict.READABLE_WITH_DEFECTS if is_partly_read else Verdict.NOT_CHECKED
        if (self._has_zeros or self._losses.unproven) and not self.checked.batches:
            return Verdict.UNREADABLE
        is_row = self._kind in (PlaceKind.LOG_FILE, PlaceKind.QUEUE_FILE)
        is_unread = is_row and not self.checked.bytes_checked
        is_unread = is_unread or (self._kind == "partition" and not self.checked.segments)
        if self._has_others and (is_unread or self._kind == PlaceKind.CONFIG_FILE):
            return Verdict.UNREADABLE
        if self._has_others:
            return Verdict.READABLE_WITH_DEFECTS
        if self._has_index_damage:
            is_certain = not self._is_unproven
            return Verdict.INDEX_DAMAGE_ONLY if is_certain else Verdict.READABLE_WITH_DEFECTS
        return Verdict.SOUND


class Tallies:
    """Makes the tally of each path, with the findings of names and directories that concern it."""

    def __init__(
        self,
        path: str,
        found: Iterable[Finding],
        works: Sequence[Work],
        on: OnSummary | None,
        count_lost: CountLost = lambda *_: None,
    ) -> None:
        self._path = path
        self._on = on
        self._count_lost = count_lost
        self._has_works = any(map(_holds_something, works))
        folders = {
            _plain(one.directory)
            for one in works
            if isinstance(one, Partition) and _holds_something(one)
        }
        self._outside: list[Finding] = []
        self._inside: dict[str, list[Finding]] = {}
        for one in found:
            place = _plain(one.path)
            if one.law == STORE_TWICE:
                self._inside.setdefault(place, []).append(one)
                continue
            folder = place if place in folders else posixpath.dirname(place)
            kept = self._inside.setdefault(folder, []) if folder in folders else self._outside
            kept.append(one)

    def outside(self, files: Files) -> Iterator[Finding]:
        """Yield the findings outside of all partitions and stores, and tell their summaries."""
        rest = []
        for one in self._outside:
            is_own = one.law == LOG_UNREADABLE or one.law in LAYOUTS
            if not is_own or one.path == self._path:
                rest.append(one)
                continue
            tally = Tally(one.path, "directory", self._on, [one])
            yield from tally.begin()
            tally.end()
        if not rest and (self._has_works or self._outside):
            return
        status = status_of(files, self._path)
        is_file = status is not None and not status.is_directory
        tally = Tally(self._path, "file" if is_file else "directory", self._on, rest)
        is_read = not any(
            one.law in (LOG_UNREADABLE, NOTHING_HERE, *LAYOUTS)
            or (one.is_not_looked_into and one.path == self._path)
            for one in rest
        )
        if status is not None and status.is_regular and is_read:
            tally.checked.segments, tally.checked.bytes_checked = 1, status.size_bytes
        yield from tally.begin()
        tally.end()

    def of(self, work: Work, files: Files) -> Tally:
        """Return the tally of a partition or place, whose `files` a count may read."""
        if isinstance(work, Place):
            found = self._inside.pop(_plain(work.path), ())
            return Tally(work.path, work.kind.value, self._on, found)
        found = self._inside.pop(_plain(work.directory), ())
        segments = work.segments
        if not _holds_something(work):
            return Tally(work.directory, "partition", None)
        if len(segments) == 1 and segments[0].judged != ALL_FILES:
            return Tally(self._path, "file", self._on, found)
        kind = "remote folder" if segments and segments[0].stem else "partition"
        logs = [one.path(".log") for one in segments if ".log" in one.suffixes]
        losses = LossCount(logs, files, was_cleaned=work.was_cleaned)
        if kind != "partition":
            return Tally(work.directory, kind, self._on, found, losses)
        count_lost = partial(self._count_lost, work, files)
        return Tally(work.directory, kind, self._on, found, losses, count_lost)


def _holds_all(segment: Segment, carry: LogCarry) -> bool:
    """Return whether a log has each offset up to the next segment, so that it has lost none."""
    end, following = carry.end_offset, segment.next_base_offset
    is_whole = carry.is_read and carry.damage is None and not carry.missing_offsets
    return is_whole and following is not None and end is not None and end >= following


def _holds_something(work: Work) -> bool:
    """Return whether there is anything to check; a partition that was verified already has none."""
    return isinstance(work, Place) or bool(work.segments or work.others or work.lacks_log)


def _plain(path: str) -> str:
    """Return a path without the separators at its end."""
    return path.rstrip("/")
