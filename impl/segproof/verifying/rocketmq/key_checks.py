# SPDX-License-Identifier: Apache-2.0
"""The index files of a store against its commit log: what they lead to, and what they leave out.

Log and entries are read once, side by side, in the order of their offsets. An entry is right if
there is a message at its offset, and one of the message's keys has its hash: keys of the same hash
are the format's way, not damage. Files whose offsets fall (RMQDISK-15) are left out. Where
the store time of a message can't be right, entries are compared with the time that is likely.

A broker that runs, or was killed, may have left the end of the newest file undone: its end
timestamp, the keys of the last message, and later messages that no queue has either.

Laws: RMQDISK-28 to RMQDISK-34.
"""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from segproof.counts import plural, verb
from segproof.files import Files
from segproof.findings import Finding, Severity
from segproof.hints import reads, writes
from segproof.reading.index_times import EntriesInOrder, IndexEntries, Rows, told_together
from segproof.reading.log_kinship import Kin, Kinship
from segproof.reading.record_keys import keys_of, tag_key_of
from segproof.reading.rows import Bools, Int64Array
from segproof.reading.store_times import Bounds
from segproof.rocketmq.geometry import index_file_names
from segproof.rocketmq.index_table import ENTRY_BYTES, read_stored_header
from segproof.rocketmq.key_hash import index_key_hash_many
from segproof.verifying.rocketmq.expired_files import BEFORE_LOG_HINT, before_log
from segproof.verifying.rocketmq.index_file_checks import IndexSummary, stored_difference
from segproof.verifying.rocketmq.log_records import (
    LogBlock,
    LogRecords,
)
from segproof.verifying.rocketmq.lost_end import LedBeyond
from segproof.wording.reporting import Described, Reporter
from segproof.wording.rules import REMAKE_INDEX, declare

REMAKE_AND_SCAN = writes(
    "make the index new from the commit log with `segproof rebuild STORE --out DIR2`; until then"
    " `segproof lookup STORE --key TOPIC#KEY --scan` reads the log"
)
declare("index-service", Severity.ERROR,
    REMAKE_INDEX, "RMQDISK-28", "RMQDISK-29", "RMQDISK-30", "RMQDISK-31",
    "RMQDISK-32")  # fmt: skip
declare("index-service", Severity.WARNING,
    REMAKE_AND_SCAN.after("these messages are found by offset and not by key; "),
    "RMQDISK-33")  # fmt: skip
declare("index-service", Severity.NOTE,
    reads("nothing: a broker that died indexes the message on the border of two files again"),
    "RMQDISK-34")  # fmt: skip

HELD_MAX = 5000
"""Findings that are held back until it is known whether the index is of this log."""
HASHES = 1 << 32
"""Room for a hash in a number that begins with a message: also for a negative, unlawful one."""
NO_INDEX_HINT = writes(
    "nothing if the broker makes no index (messageIndexEnable=false); else these messages are found"
    " by offset and not by key, and no broker makes their entries by itself; make the index new"
    " from the commit log with `segproof rebuild STORE --out DIR2`. If no old index file tells how"
    " many slots and entries the files have, add --hash-slots and --index-num: maxHashSlotNum and"
    " maxIndexNum of the broker. The new files belong into the folder index of the store; until"
    " then `segproof lookup STORE --key TOPIC#KEY --scan` reads the log"
)
RUNNING_HINT = reads(
    "nothing while the broker runs. If it died, its next start makes the entries of the messages"
    " that it recovers, and no others: verify the store again after its next stop; until then"
    " `segproof lookup STORE --key TOPIC#KEY --scan` reads the log"
)


class _RightEntries(NamedTuple):
    """Entries of one file that lead to a message with a key of their hash."""

    entries: IndexEntries
    rows: Rows
    place: Int64Array
    """The number in the block of the message of each."""
    coded: Int64Array
    told: Bounds
    """The store times that they tell."""


class KeyChecks:
    """Takes the blocks of a log in order; `finish` tells what only the end shows."""

    def __init__(
        self,
        store: str,
        summaries: Sequence[IndexSummary],
        records: LogRecords,
        is_running: bool,
        reached: int,
        files: Files,
        reporter: Reporter,
        is_complete: bool = True,
    ) -> None:
        self._store = store
        self._records = records
        self._told = reporter
        self._reporter = Reporter(reporter.wanted, structure="index-service", shown_by=store)
        """Holds findings back until it is known whether the index is of this log."""
        self.kinship = Kinship()
        self.beyond = LedBeyond()
        self._kept: list[Finding] = []
        """Findings that are held back."""
        self._is_decided = False
        """Whether that is known: with many findings it is decided by those so far."""
        self._is_running = is_running
        self._reached = reached
        """The last offset that a queue knows."""
        self._files = files
        self._newest = summaries[-1].path if summaries else ""
        usable = [one for one in summaries if one.stop > 1 and one.is_ordered]
        entries = [
            IndexEntries(one.path, one.header, one.geometry, one.stop, files)
            for one in usable
            if one.geometry is not None
        ]
        self._entries = EntriesInOrder(entries)
        self._has_entries = bool(entries)
        is_whole = len(usable) == sum(not one.is_empty for one in summaries)
        self._is_whole = is_whole and is_complete
        self._begin = min((one.header.begin_phy_offset for one in usable), default=0)
        self._end = max((one.header.end_phy_offset for one in usable), default=-1)
        self._expired = dict.fromkeys((one.path for one in usable), 0)
        self._outside = {"before": 0, "behind": 0}
        self._first_behind = -1
        """The offset of the first message with a key that lies behind the index."""

    def add(self, block: LogBlock) -> None:
        """Compare the entries that lead into a block with its records."""
        offsets = np.array(block.offsets, np.int64)
        keys = [keys_of(one) for one in block.requests]
        tags = [tag_key_of(one) for one in block.requests]
        owners = np.repeat(np.arange(len(keys)), [len(each) for each in keys])
        expected = self._coded(owners, [key for each in keys for key in each])
        with_tag = [place for place, tag in enumerate(tags) if tag is not None]
        tagged = self._coded(np.array(with_tag, np.int64), [tag for tag in tags if tag is not None])
        allowed = np.concatenate([expected, tagged])
        found: list[_RightEntries] = []
        for each in self._entries.below(block.end):
            found += self._file(each, block, offsets, allowed)
        there = np.concatenate([np.zeros(0, np.int64), *(one.coded for one in found)])
        self._missing(block, offsets, expected, there)
        lawful, often = _counted(allowed, there)
        self._twice(lawful[often > 0], offsets)
        told = [(one.place, one.told) for one in found]
        stored = self._records.likely_times(block, told_together(len(offsets), told))
        for one in found:
            self._times(one.entries, one.rows, stored[one.place])
        self._hand_on()

    def _hand_on(self, *, is_end: bool = False) -> None:
        """Hand findings on once the index is known to be of this log; else drop them."""
        found = self._reporter.finish() if is_end else self._reporter.drain()
        self._kept += found
        if is_end or self._is_decided or len(self._kept) > HELD_MAX:
            self._is_decided = True
            if self.kinship.kin is not Kin.OTHER:
                for one in self._kept:
                    self._told.insist(one)
            self._kept.clear()

    def _coded(self, owners: Int64Array, keys: list[str]) -> Int64Array:
        """Return one number for each key: its message in the block, and its hash."""
        if not keys:
            return np.zeros(0, np.int64)
        hashes = np.asarray(index_key_hash_many(keys)).astype(np.int64)
        coded: Int64Array = owners.astype(np.int64) * HASHES + hashes
        return coded

    def _file(
        self, entries: IndexEntries, block: LogBlock, offsets: Int64Array, allowed: Int64Array
    ) -> "Iterator[_RightEntries]":
        """Judge the entries of one file that lead into a block; yield those that are right."""
        is_open = self._is_under_way(entries)
        for rows in entries.below(block.end):
            rows = self._in_log(entries, rows)
            place = np.searchsorted(offsets, rows.phy_offset)
            is_there = np.zeros(len(place), np.bool_)
            inside = place < len(offsets)
            is_there[inside] = offsets[place[inside]] == rows.phy_offset[inside]
            self._report_rows(
                "RMQDISK-29", entries, rows, ~is_there,
                "entry {number} leads to offset {phy_offset} of the commit log, where no message"
                " begins", "a message", rows.phy_offset,
            )  # fmt: skip
            coded = place * HASHES + rows.key_hash % HASHES
            is_right = is_there & np.isin(coded, allowed)
            is_wrong = is_there & ~is_right
            self.kinship.right += int(np.count_nonzero(is_right))
            self.kinship.inside += int(np.count_nonzero(~is_right))
            for are_right in (True, False):
                self._records.met.add(rows.phy_offset[is_right == are_right], are_right=are_right)
            self._wrong_key(entries, rows.only(is_wrong), block, place[is_wrong])
            right = rows.only(is_right)
            told = entries.told(right, is_open)
            yield _RightEntries(entries, right, place[is_right], coded[is_right], told)

    def _is_under_way(self, entries: IndexEntries) -> bool:
        """Return whether the end timestamp of a file may not be that of its last entry yet."""
        return self._is_running and entries.path == self._newest

    def _in_log(self, entries: IndexEntries, rows: Rows) -> Rows:
        """Leave out entries before the log, and those where it could not be read."""
        first = self._records.log.min_offset
        is_gone = rows.phy_offset < first
        self._expired[entries.path] += int(np.count_nonzero(is_gone))
        kept = ~is_gone & ~self._records.is_dark(rows.phy_offset)
        return rows if kept.all() else rows.only(kept)

    def _report_rows(
        self,
        law: str,
        entries: IndexEntries,
        rows: Rows,
        where: Bools,
        message: str,
        expected: Int64Array | str,
        actual: Int64Array,
        **columns: Any,
    ) -> None:
        """Report some of the entries; `message` names columns, also those of the entries."""
        positions = rows.number * ENTRY_BYTES + entries.geometry.position_of(0)
        self._reporter.at(entries.path).add_where(
            law, where, positions, message, expected, actual, **rows._asdict(), **columns
        )

    def _wrong_key(
        self, entries: IndexEntries, rows: Rows, block: LogBlock, place: Int64Array
    ) -> None:
        """Report entries that lead to a message, at `place` in the block, without their hash."""

        def describe(row: int) -> Described:
            keys = keys_of(block.requests[int(place[row])])
            key_hash = int(rows.key_hash[row])
            return Described(
                f"entry {rows.number[row]} has hash {key_hash}, and the message at offset"
                f" {rows.phy_offset[row]} has no key of this hash",
                " ".join(str(int(each)) for each in index_key_hash_many(keys)) if keys else "none",
                key_hash,
            )

        positions = rows.number * ENTRY_BYTES + entries.geometry.position_of(0)
        self._reporter.at(entries.path).add_rows("RMQDISK-30", positions, describe)

    def _times(self, entries: IndexEntries, rows: Rows, stored: Int64Array) -> None:
        """Compare the times of entries, but for the first, and of the header with the messages."""
        header = entries.header
        is_under_way = self._is_under_way(entries)
        wanted = np.array(
            [stored_difference(header.begin_timestamp, int(each)) for each in stored], np.int64
        )
        self._report_rows(
            "RMQDISK-32", entries, rows, (wanted != rows.time_diff) & (rows.number > 1),
            "entry {number} has {time_diff} s, its message was stored at {time}, {wanted} s behind"
            " the begin timestamp", wanted, rows.time_diff, time=stored, wanted=wanted,
        )  # fmt: skip
        for at, index, name, value in (
            (0, 1, "begin", header.begin_timestamp),
            (8, entries.stop - 1, "end", header.end_timestamp),
        ):
            for time in stored[rows.number == index].tolist():
                if time != value and not (is_under_way and name == "end"):
                    self._reporter.at(entries.path).add(
                        "RMQDISK-32",
                        f"the header's {name} timestamp is {value}, the message of entry {index}"
                        f" was stored at {time}",
                        position=at,
                        expected=time,
                        actual=value,
                    )

    def _missing(
        self, block: LogBlock, offsets: Int64Array, expected: Int64Array, found: Int64Array
    ) -> None:
        """Report keys of messages without an entry."""
        wanted, excess = _counted(expected, found)
        lacking = wanted[excess < 0]
        at = offsets[lacking // HASHES] if len(lacking) else np.zeros(0, np.int64)
        self._outside["before"] += len(np.unique(at[at < self._begin]))
        behind = at[at > self._end]
        self._outside["behind"] += len(np.unique(behind))
        if len(behind) and self._first_behind < 0:
            self._first_behind = int(behind.min())
        # Of the message that the first file begins with, some keys may be in a file that is gone.
        inside = (at > self._begin) & (at <= self._end)
        if self._records.log.min_offset >= self._begin:
            inside |= (at == self._begin) & (at <= self._end)
        if self._is_running:
            inside &= at < self._end  # the broker may be, or have died, amid this message's keys
        if self._is_whole and inside.any():
            self._report_missing(block, lacking[inside], at[inside])

    def _report_missing(self, block: LogBlock, codes: Int64Array, offsets: Int64Array) -> None:
        path, position = self._records.file_of(block.start)
        by_hash: dict[int, dict[int, str]] = {}

        def describe(row: int) -> Described:
            place, key_hash = divmod(int(codes[row]), HASHES)
            if place not in by_hash:
                keys = keys_of(block.requests[place])
                hashes = np.asarray(index_key_hash_many(keys)).tolist()
                by_hash[place] = dict(zip(hashes, keys, strict=True))
            shown = by_hash[place][key_hash]
            return Described(
                f"the message at offset {int(offsets[row])} has the key {shown!r} (hash"
                f" {key_hash}), and no entry leads to it: it is not found by this key",
                shown,
            )

        self._reporter.at(path).add_rows("RMQDISK-31", offsets - block.start + position, describe)

    def _twice(self, codes: Int64Array, offsets: Int64Array) -> None:
        for place in sorted(set((codes // HASHES).tolist())):
            path, position = self._records.file_of(int(offsets[place]))
            self._reporter.at(path).add(
                "RMQDISK-34",
                f"the keys of the message at offset {int(offsets[place])} are indexed more than"
                " once: lookups give it more than once",
                position=position,
            )

    def finish(self) -> None:
        """Report what leads out of the log, and how much of it the index covers."""
        for entries in self._entries.below(None):
            for rows in entries.below(None):
                self._behind(entries, rows)
        for path, count in self._expired.items():
            if count:
                self._reporter.at(path).add(
                    "RMQDISK-28",
                    f"{plural(count, 'entry', 'leads', 'lead')} to messages before the first one"
                    f" of the commit log, {before_log(self._records)}",
                    actual=count,
                    severity=Severity.NOTE,
                    hint=reads(f"nothing where log files expire: an index file {BEFORE_LOG_HINT}"),
                )
        self._coverage()
        self._hand_on(is_end=True)

    def _behind(self, entries: IndexEntries, rows: Rows) -> None:
        rows, end = self._in_log(entries, rows), self._records.end
        beyond = rows.phy_offset[rows.phy_offset >= end]
        self.kinship.inside += len(rows.number) - len(beyond)
        self._records.met.add(rows.phy_offset[rows.phy_offset < end], are_right=False)
        self.kinship.beyond += len(beyond)
        self.beyond.add(beyond)
        self._report_rows(
            "RMQDISK-28", entries, rows, np.ones(len(rows.number), np.bool_),
            "entry {number} leads to offset {phy_offset}, and the commit log ends at"
            f" {end}", f"below {end}", rows.phy_offset,
        )  # fmt: skip

    def _coverage(self) -> None:
        for where, count in self._outside.items():
            if not count or not self._is_whole:
                continue
            edge = self._begin if where == "before" else self._end
            words = f"{plural(count, 'message')} with keys {verb(count, 'lies', 'lie')}"
            words += f" {where} offset {edge}, where the index"
            words += " begins" if where == "before" else " ends"
            if not self._has_entries:
                have = plural(count, "message", "has", "have")
                words = f"{have} keys, and no index file has an entry"
            is_behind = where == "behind" and self._is_running
            if is_behind and self._first_behind < self._reached:
                is_behind = self._end_now() >= self._first_behind
            self._reporter.at(self._store).add(
                "RMQDISK-33",
                words + (": the broker indexes them when it runs" if is_behind else ""),
                actual=count,
                severity=Severity.NOTE if is_behind else None,
                hint=RUNNING_HINT if is_behind else None if self._has_entries else NO_INDEX_HINT,
            )

    def _end_now(self) -> int:
        """Return up to which offset the index files go now. Raises: OSError."""
        folder, end = posixpath.join(self._store, "index"), -1
        if self._files.status(folder) is None:
            return end
        for name in index_file_names(self._files.list_directory(folder)):
            with closing(self._files.open(posixpath.join(folder, name))) as file:
                header = read_stored_header(file)
            if header is not None and header.index_count > 1:
                end = max(end, header.end_phy_offset)
        return end


def _counted(wanted: Int64Array, found: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the different wanted numbers, and how much oftener each one was found."""
    codes, wanted_counts = np.unique(wanted, return_counts=True)
    there, there_counts = np.unique(found, return_counts=True)
    counts = np.zeros(len(codes), np.int64)
    place = np.searchsorted(there, codes)
    inside = np.flatnonzero(place < len(there))
    same = inside[there[place[inside]] == codes[inside]]
    counts[same] = there_counts[place[same]]
    return codes, counts - wanted_counts
