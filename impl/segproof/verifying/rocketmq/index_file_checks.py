# SPDX-License-Identifier: Apache-2.0
"""Checks of one index file by itself: header, slots, entries, chains.

The chains are right if each entry is named once, by its slot or by a later entry of the same slot.
This needs no walk along a chain, so a cycle costs nothing. A broker may be writing meanwhile: what
it adds after the header was read is left out, and a defect of a file that was changed a moment ago
is reported only if a second look finds it too.

Cost: 9 bytes of memory for each entry and 4 for each slot (200 MB for a full file of the default
size), each byte read once.
Laws: RMQDISK-1, -2, RMQDISK-4 to RMQDISK-16.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.files import File, Files, first_byte
from segproof.findings import Finding, Severity
from segproof.hints import reads
from segproof.kernels.rocketmq_index import HEADER_BYTES
from segproof.reading.live_writer import STEP_PAUSES_SECONDS, wait_for_a_step
from segproof.reading.rows import Int64Array, shifted
from segproof.rocketmq.geometry import GeometryAnswer
from segproof.rocketmq.index_header import StoredHeader
from segproof.rocketmq.index_table import (
    ENTRY_BYTES,
    SLOT_BYTES,
    Geometry,
    entry_blocks,
    read_slots,
    read_stored_header,
)
from segproof.wording.reporting import Described, Reporter, Wanted
from segproof.wording.rules import REMAKE_INDEX, REMAKE_LOST_INDEX, declare
from segproof.wording.segment_files import FILE_SIZE_MAX_BYTES, open_guarded, size_guarded

NO_GEOMETRY = REMAKE_INDEX.after(
    "if it has the length of the other index files, say with --hash-slots how many slots it has"
    " (maxHashSlotNum of the broker); else it lacks a part, or is of another broker: "
)
declare("index-file", Severity.ERROR,
    REMAKE_LOST_INDEX.after("RocketMQ grows a short file with zeros, and reads another geometry"
    " out of place: "), "RMQDISK-1")  # fmt: skip
declare("index-file", Severity.WARNING,
    reads("say how many slots the file has (maxHashSlotNum of the broker) with --hash-slots"),
    "RMQDISK-2")  # fmt: skip
declare("index-file", Severity.ERROR,
    REMAKE_INDEX, "RMQDISK-4", "RMQDISK-6", "RMQDISK-8", "RMQDISK-9", "RMQDISK-10",
    "RMQDISK-11", "RMQDISK-13", "RMQDISK-16")  # fmt: skip
declare("index-file", Severity.WARNING,
    reads("nothing, if no other finding is of this file: RocketMQ only shows this number; slots"
    " were damaged and taken anew, or the header was"), "RMQDISK-12")  # fmt: skip
declare("index-file", Severity.WARNING,
    reads("RocketMQ does not look there; find out what wrote it"), "RMQDISK-7")  # fmt: skip
declare("index-file", Severity.NOTE,
    reads("ask with a later end where a message is not found by its time; a store with its commit"
    " log tells whether the entry is right (RMQDISK-32)"), "RMQDISK-14")  # fmt: skip
declare("index-file", Severity.ERROR, REMAKE_INDEX, "RMQDISK-15")
declare("index-file", Severity.ERROR, REMAKE_LOST_INDEX, "RMQDISK-5")

INT32_MAX = (1 << 31) - 1
INT64 = 1 << 64
CLOCK_SECONDS = 20 * 366 * 86_400
"""A clock can be off by years before it is put right; damage that flips a high bit is further."""
STRUCTURE = "index-file"
STEADY_TRIES = 50
NAMED_AT_ONCE = 1 << 20

Int32Array = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What the checks of several files, and against the log, need to know of one file."""

    path: str
    size_bytes: int
    header: StoredHeader
    geometry: Geometry | None
    """None: its entries can't be read."""
    is_ordered: bool = True
    """Whether the offsets of its entries never fall."""

    @property
    def stop(self) -> int:
        """The index behind the last entry; 1 without entries."""
        if self.geometry is None:
            return 1
        return min(max(self.header.index_count, 1), self.geometry.index_num)

    @property
    def is_empty(self) -> bool:
        """Whether it has no entry."""
        return self.header.index_count <= 1

    @property
    def is_full(self) -> bool:
        """Whether a put would begin a new file."""
        return self.geometry is not None and self.header.index_count >= self.geometry.index_num


def check_index_file(
    path: str, answer: GeometryAnswer, wanted: Wanted, files: Files
) -> tuple[IndexSummary | None, list[Finding]]:
    """Return what the file is, and its findings; None for a file that can't be read."""
    for pause in (*STEP_PAUSES_SECONDS, None):
        reporter = Reporter(wanted)
        summary = _look(path, answer, reporter, files)
        found = reporter.finish()
        if pause is None or not any(one.is_defect for one in found):
            break
        if not wait_for_a_step([path], files, pause):
            break
    return summary, found


def _look(
    path: str, answer: GeometryAnswer, reporter: Reporter, files: Files
) -> IndexSummary | None:
    file = open_guarded(files, reporter.at(path, STRUCTURE))
    if file is None:
        return None
    try:
        return _IndexFile(path, file, answer, reporter).check()
    except OSError as error:
        reporter.at(path, STRUCTURE).unreadable(error)
        return None
    finally:
        file.close()


class _IndexFile:
    """One look at one file."""

    def __init__(self, path: str, file: File, answer: GeometryAnswer, reporter: Reporter) -> None:
        self._path = path
        self._file = file
        self._answer = answer
        self._reporter = reporter
        self._report = reporter.at(path, STRUCTURE)
        self._header = StoredHeader(0, 0, 0, 0, 0, 0)
        self._geometry = Geometry(1, 2)

    def check(self) -> IndexSummary | None:
        """Do all checks."""
        size = size_guarded(self._file, self._report, REMAKE_LOST_INDEX)
        header = read_stored_header(self._file)
        if not self._length_fits(size) or header is None or size > FILE_SIZE_MAX_BYTES:
            if header is None:
                return None
            return IndexSummary(self._path, size, header, None)
        self._header = header
        geometry = self._answer.geometry
        self._tell_geometry()
        summary = IndexSummary(self._path, size, header, geometry)
        if header.index_count <= 1:
            self._count_fits(geometry)
            self._no_entries(size)
            return summary
        if geometry is not None:
            self._geometry = geometry
            self._count_fits(geometry)
            return replace(summary, is_ordered=self._entries(summary.stop))
        return summary

    def _length_fits(self, size: int) -> bool:
        words = (size - HEADER_BYTES) // SLOT_BYTES
        can_be = size >= HEADER_BYTES and (size - HEADER_BYTES) % SLOT_BYTES == 0 and words >= 11
        is_refused = self._answer.origin == "given" and self._answer.geometry is None
        if can_be and not is_refused:
            return True
        wanted = " with the given number of slots" if can_be else ""
        self._report.add(
            "RMQDISK-1",
            f"no index file has {size} bytes{wanted}: a header of {HEADER_BYTES}, slots of"
            f" {SLOT_BYTES} and at least two entries of {ENTRY_BYTES} do not give that",
            actual=size,
        )
        return False

    def _tell_geometry(self) -> None:
        answer = self._answer
        if answer.origin == "ambiguous":
            names = ", ".join(
                f"{one.hash_slot_num} slots and {one.index_num} entries"
                for one in answer.candidates
            )
            self._report.add(
                "RMQDISK-2",
                f"its length and chains fit {names}; the first is taken",
                actual=len(answer.candidates),
                severity=Severity.NOTE,
            )
        elif answer.geometry is None and self._header.index_count > 1:
            self._report.add(
                "RMQDISK-2",
                "no number of slots fits its length, header and chains: it was not looked into",
                hint=NO_GEOMETRY,
            )

    def _count_fits(self, geometry: Geometry | None) -> None:
        count = self._header.index_count
        limit = None if geometry is None else geometry.index_num
        if count < 0 or (limit is not None and count > limit):
            self._report.add(
                "RMQDISK-4",
                f"the index count is {count}"
                + ("" if limit is None else f", and there is room for {limit}"),
                position=36,
                expected=limit,
                actual=count,
            )

    def _no_entries(self, size: int) -> None:
        """Look for bytes behind a header that counts no entry."""
        header = self._header
        at = first_byte(self._file, HEADER_BYTES, size)
        again = read_stored_header(self._file)
        if at is not None and again == header:
            self._report.add(
                "RMQDISK-5",
                f"the header counts no entry (index count {header.index_count}), and there are"
                " slots or entries: RocketMQ finds none of them, and writes over them",
                position=at,
                expected=0,
            )
        if (header.begin_phy_offset, header.begin_timestamp) != (
            header.end_phy_offset,
            header.end_timestamp,
        ):
            self._report.add(
                "RMQDISK-16",
                "without entries begin and end are the same: offsets"
                f" {header.begin_phy_offset} and {header.end_phy_offset}, timestamps"
                f" {header.begin_timestamp} and {header.end_timestamp}",
                position=0,
            )

    # --- entries

    def _entries(self, stop: int) -> bool:
        """Judge slots and entries; return whether the offsets never fall."""
        geometry, file = self._geometry, self._file
        slots = read_slots(file, geometry)
        rows = RowChecks(self._path, geometry, self._header, self._reporter)
        own = np.full(stop, -1, np.int32)
        previous = np.zeros(stop, np.int32)
        for first, block in entry_blocks(file, geometry, 0, stop):
            rows.check(first, block)
            own[first : first + len(block)] = rows.slots
            previous[first : first + len(block)] = block["prev_index"]
        self._behind(stop)
        again = read_stored_header(file) or self._header
        if again.index_count > stop:
            slots = _resolved(file, geometry, slots, stop, again.index_count)
        self._chains(slots, own, previous)
        self._slot_count(slots, stop)
        self._ends()
        return rows.is_ordered

    def _behind(self, stop: int) -> None:
        """Look at what follows the last entry."""
        geometry = self._geometry
        end = geometry.position_of(geometry.index_num)
        at = first_byte(self._file, geometry.position_of(stop), end)
        if at is None:
            return
        again = read_stored_header(self._file) or self._header
        now = max(stop, min(again.index_count, geometry.index_num))
        at = first_byte(self._file, geometry.position_of(now), end)
        if at is None:
            return
        if at < geometry.position_of(now + 1):
            self._report.add(
                "RMQDISK-6",
                f"entry {now} is there and is not counted: its put was cut off, or is under way",
                position=geometry.position_of(now),
                severity=Severity.NOTE,
            )
            at = first_byte(self._file, geometry.position_of(now + 1), end)
        if at is not None:
            self._report.add(
                "RMQDISK-6",
                f"the header counts {plural(now - 1, 'entry')}, and behind them there are bytes"
                " that are not zero: entries that are not counted any more",
                position=at,
                expected=0,
            )

    def _chains(self, slots: Int32Array, own: Int32Array, previous: Int32Array) -> None:
        """Judge slots and previous indexes; each entry must be named once."""
        count, geometry = len(own), self._geometry
        is_wrong = (slots < 0) | (slots >= count)
        self._report.add_where(
            "RMQDISK-8",
            is_wrong,
            (HEADER_BYTES, SLOT_BYTES),
            f"the slot leads to entry {{entry}}, and there are {count - 1}",
            f"0 to {count - 1}",
            slots,
            entry=slots,
        )
        heads = np.flatnonzero(~is_wrong & (slots != 0))
        named = np.zeros(count, np.bool_)
        named[slots[heads]] = True
        references = len(heads)
        self._belong(slots[heads], heads.astype(np.int32), own, heads * SLOT_BYTES + HEADER_BYTES)
        step = 1 << 20
        for first in range(1, count, step):
            part = previous[first : first + step]
            index = np.arange(first, first + len(part), dtype=np.int32)
            is_wrong = (part < 0) | (part >= index)
            self._report_previous(index[is_wrong], part[is_wrong])
            linked = ~is_wrong & (part != 0)
            targets, sources = part[linked], index[linked]
            named[targets] = True
            references += len(targets)
            positions = geometry.position_of(0) + sources.astype(np.int64) * ENTRY_BYTES
            self._belong(targets, own[sources], own, positions)
        if references != count - 1 or not named[1:].all():
            self._report_named(slots[heads], previous, count)

    def _report_previous(self, index: Int32Array, values: Int32Array) -> None:
        positions = self._geometry.position_of(0) + index.astype(np.int64) * ENTRY_BYTES

        def describe(row: int) -> Described:
            at, value = int(index[row]), int(values[row])
            what = "itself" if value == at else f"entry {value}"
            return Described(
                f"entry {at} names {what} as the one before it in its slot", f"0 to {at - 1}", value
            )

        self._report.add_rows("RMQDISK-9", positions, describe)

    def _belong(
        self, targets: Int32Array, wanted: Int32Array, own: Int32Array, positions: Int64Array
    ) -> None:
        """Report links that leave their slot; entries without a lawful hash are reported anyway."""
        found = own[targets]
        self._report.add_where(
            "RMQDISK-10",
            (found != wanted) & (found >= 0) & (wanted >= 0),
            positions,
            "the chain of slot {wanted} leads to entry {target}, whose hash belongs to slot"
            " {found}",
            wanted,
            found,
            wanted=wanted,
            target=targets,
            found=found,
        )

    def _report_named(self, heads: Int32Array, previous: Int32Array, count: int) -> None:
        """Report entries that are not named once; counts some at a time, as counts take memory."""
        for low in range(1, count, NAMED_AT_ONCE):
            high = min(low + NAMED_AT_ONCE, count)
            times = np.bincount(heads[(heads >= low) & (heads < high)] - low, minlength=high - low)
            for first in range(low, count, NAMED_AT_ONCE):  # an entry names only earlier ones
                part = previous[first : first + NAMED_AT_ONCE]
                names = (part >= low) & (part < high)
                names &= part < np.arange(first, first + len(part), dtype=np.int32)
                times += np.bincount(part[names] - low, minlength=high - low)
            self._report_times(low, times)

    def _report_times(self, low: int, times: Int64Array) -> None:
        wrong = np.flatnonzero(times != 1)

        def describe(row: int) -> Described:
            index, often = low + int(wrong[row]), int(times[wrong[row]])
            words = "on no chain: no lookup finds it" if not often else f"named {often} times"
            return Described(f"entry {index} is {words}", 1, often)

        positions = self._geometry.position_of(low) + wrong * ENTRY_BYTES
        self._report.add_rows("RMQDISK-11", positions, describe)

    def _slot_count(self, slots: Int32Array, stop: int) -> None:
        used, stored = int(np.count_nonzero(slots)), self._header.hash_slot_count
        if stored in (used, stop - 1):
            return
        is_between = used <= stored < stop
        self._report.add(
            "RMQDISK-12",
            f"the header counts {plural(stored, 'slot')}, {used} are in use for"
            f" {plural(stop - 1, 'entry')}"
            + (": releases up to 4.7.0 and newer ones wrote to it in turn" if is_between else ""),
            position=32,
            expected=used,
            actual=stored,
            severity=Severity.NOTE if is_between else None,
        )

    def _ends(self) -> None:
        """Compare the header with the first and the last entry, as of one moment."""
        for _ in range(STEADY_TRIES):
            header = read_stored_header(self._file) or self._header
            stop = min(header.index_count, self._geometry.index_num)
            if stop <= 1 or self._header.index_count > self._geometry.index_num:
                return
            first = next(entry_blocks(self._file, self._geometry, 1, 2), None)
            last = next(entry_blocks(self._file, self._geometry, stop - 1, stop), None)
            if header == read_stored_header(self._file):
                break
        else:
            return
        if first is None or last is None:
            return
        begin, end = int(first[1]["phy_offset"][0]), int(last[1]["phy_offset"][0])
        for at, word, stored, found in (
            (16, "begin", header.begin_phy_offset, begin),
            (24, "end", header.end_phy_offset, end),
        ):
            if stored != found:
                which = "first" if word == "begin" else "last"
                self._report.add(
                    "RMQDISK-16",
                    f"the header's {word} offset is {stored}, the {which} entry's is {found}",
                    position=at,
                    expected=found,
                    actual=stored,
                )
        if stop == 2 and header.begin_timestamp != header.end_timestamp:
            self._report.add(
                "RMQDISK-16",
                f"with one entry begin and end timestamp are the same, and are"
                f" {header.begin_timestamp} and {header.end_timestamp}",
                position=8,
                expected=header.begin_timestamp,
                actual=header.end_timestamp,
            )
        difference = int(last[1]["time_diff"][0])
        expected = stored_difference(header.begin_timestamp, header.end_timestamp)
        if stop > 2 and difference != expected and difference >= 0:
            self._report.add(
                "RMQDISK-13",
                f"the last entry lies {difference} s behind the begin timestamp, by the header it"
                f" is {expected} s",
                position=self._geometry.position_of(stop - 1),
                expected=expected,
                actual=difference,
            )


def _resolved(file: File, geometry: Geometry, slots: Int32Array, stop: int, now: int) -> Int32Array:
    """Return the slots as they were when `stop - 1` entries were there, entries being added."""
    added = min(now + 1, geometry.index_num)
    previous = np.zeros(added - stop, np.int32)
    for first, block in entry_blocks(file, geometry, stop, added):
        previous[first - stop : first - stop + len(block)] = block["prev_index"]
    slots = slots.copy()
    for _ in range(added - stop):
        late = np.flatnonzero((slots >= stop) & (slots < added))
        if not len(late):
            break
        slots[late] = previous[slots[late] - stop]
    return slots


def stored_difference(begin_timestamp: int, store_timestamp: int) -> int:
    """Return the seconds that an entry has for a message, by the begin timestamp of its file.

    Laws: RMQIDX-21.
    """
    if begin_timestamp <= 0:
        return 0
    distance = (store_timestamp - begin_timestamp + INT64 // 2) % INT64 - INT64 // 2
    return max(0, min(distance // 1000, INT32_MAX))


class RowChecks:
    """Carries from block to block what the next one is compared with."""

    def __init__(
        self, path: str, geometry: Geometry, header: StoredHeader, reporter: Reporter
    ) -> None:
        self._report = reporter.at(path)
        self._geometry = geometry
        self._header = header
        self._offset = 0
        self.is_ordered = True
        """Whether no offset was below the one before."""
        self.slots: NDArray[np.int32] = np.zeros(0, np.int32)
        """The slot of each entry of the last block; -1 for an entry without a lawful hash."""

    def check(self, first: int, block: NDArray[Any]) -> None:
        """Judge one block, which begins with entry `first`; sets `slots`."""
        hashes = block["key_hash"].astype(np.int32)
        offsets = block["phy_offset"].astype(np.int64)
        differences = block["time_diff"].astype(np.int32)
        self.slots = np.where(hashes < 0, -1, hashes % np.int32(self._geometry.hash_slot_num))
        skip = 0
        if first == 0:
            self._first(block[0])
            self.slots[0] = -1
            skip = 1
        place = self._geometry.position_of(first + skip)
        self._values("RMQDISK-10", place, hashes[skip:], "key hash")
        self._values("RMQDISK-13", place, differences[skip:], "time difference")
        self._offsets(place, offsets[skip:])
        self._times(first + skip, differences[skip:])

    def _first(self, entry: Any) -> None:
        if entry.tobytes().strip(b"\0"):
            self._report.add(
                "RMQDISK-7",
                "entry 0 is not zero; no put writes there, since 0 means none",
                position=self._geometry.position_of(0),
                expected=0,
            )

    def _values(self, law: str, place: int, values: NDArray[np.int32], name: str) -> None:
        words, expected = f"the {name} {{value}} is below 0", "0 to 2147483647"
        place_of = (place, ENTRY_BYTES)
        self._report.add_where(law, values < 0, place_of, words, expected, values, value=values)

    def _offsets(self, place: int, offsets: Int64Array) -> None:
        """Report offsets below the one before, and below 0."""
        if not len(offsets):
            return
        least = np.maximum(shifted(offsets, self._offset), 0)
        is_wrong = offsets < least
        self._report.add_where(
            "RMQDISK-15",
            is_wrong,
            (place, ENTRY_BYTES),
            "the offset {offset} lies before {least}, that of the entry before, or the log's begin",
            "{least} or more",
            offsets,
            offset=offsets,
            least=least,
        )
        self.is_ordered &= not is_wrong.any()
        self._offset = int(offsets[-1])

    def _times(self, first: int, differences: NDArray[np.int32]) -> None:
        """Report entries that read later than the last one; the first may, where files follow."""
        header = self._header
        if first <= 1:
            first, differences = first + 1, differences[1:]
        room = (header.end_timestamp - header.begin_timestamp) // 1000
        is_late = differences > max(-1, min(room, INT32_MAX))
        if header.begin_timestamp <= 0:
            return
        is_far = differences.astype(np.int64) > room + CLOCK_SECONDS
        damaged = " by more than 20 years, or the entry or the header is damaged"
        for severity, where, more in (
            (Severity.NOTE, is_late & ~is_far, ""),
            (Severity.WARNING, is_late & is_far, damaged),
        ):
            self._report.add_where(
                "RMQDISK-14",
                where,
                (self._geometry.position_of(first), ENTRY_BYTES),
                "the entry reads as {seconds} s behind the begin timestamp, later than the last"
                f" message of the file ({room} s): the broker's clock went back{more}",
                f"at most {room}",
                differences,
                severity=severity,
                seconds=differences,
            )
