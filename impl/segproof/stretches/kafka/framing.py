# SPDX-License-Identifier: Apache-2.0
"""Framing: which bytes of a partition's logs are batches with right checksums. No verdict is made.

Sizes lead from batch to batch, from the beginning of a log and from entries of its offset index.
Elsewhere each byte may be the first one of a batch. Bytes that are left between batches are tried
once more, with another size or another magic. So sound bytes are read once, and damaged bytes a few
times. Nothing is looked for inside a batch with a right checksum.

Laws: BATCH-2, BATCH-3, BATCH-14, BATCH-19.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from segproof.errors import CorruptRecordError, SegproofError
from segproof.files import ReadOnlyFile, holds_zeros
from segproof.kafka.batch_table import BatchScan, BatchTable, check_batches
from segproof.kafka.batch_table import read_batch_headers as headers_of
from segproof.kafka.record_batch import RecordBatch
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES, LEGACY_MIN_BYTES
from segproof.stretches.kafka.batch_starts import starts_by_size
from segproof.stretches.kafka.condensing import Condenser, Opener
from segproof.stretches.kafka.facts import (
    EDGE_BATCHES,
    NO_ENTRIES,
    NO_ROWS,
    Entries,
    Facts,
    FramedLog,
    Int64s,
    LogFacts,
    NeedsBatches,
    Part,
    Reach,
    Rows,
)
from segproof.stretches.kafka.header_rows import (
    equal_parts,
    first_offsets,
    plain_rows_of,
    together,
)
from segproof.stretches.kafka.inside_batches import inside_of, rows_with, with_proved
from segproof.stretches.kafka.mending import (
    BATCH_BYTES_MAX,
    HEADERS_TRIED,
    TRIAL_BYTES,
    Trials,
    behind_zeros,
    end_at,
    end_by_lengths,
    end_by_records,
)
from segproof.stretches.kafka.single_batch import KEYS_ASKED, header_at, lacks_key, record_batch
from segproof.stretches.unreadable_blocks import ReadableParts

_MAGIC_AT = BATCH["magic"].place
SEARCHED_BYTES_MAX = 1 << 20
"""Bytes that a search reads at once, at most: its numpy columns take nine times as many."""
SEARCHED_BYTES_MIN = 8 << 10
"""Bytes that a search reads first: mostly the next batch is near."""
WORK_BYTES, WORK_BYTES_OF_A_BYTE = 64 << 20, 16
"""A search makes checksums of at most WORK_BYTES, and of WORK_BYTES_OF_A_BYTE more for each byte of
the log. What is left after that is not searched. Random bytes need less than one for each byte;
headers that were made to cost time need the square of the log's length."""


NO_OFFSETS: Int64s = np.empty(0, np.int64)


def _no_entries() -> Entries:
    return NO_ENTRIES


@dataclass(frozen=True, slots=True)
class LogSource:
    """One log to be read."""

    base_offset: int
    """The offset in its name; `UNKNOWN_NAME` if that is not known, or in doubt."""
    next_base_offset: int | None
    """The offset in the name of the next log; None for the last log."""
    open: Callable[[], ReadOnlyFile]
    """Opens the log for reading. Raises: OSError."""
    entries: Callable[[], Entries] = _no_entries
    """Reads the entries of its offset index; `NO_ENTRIES` without an index."""
    start: int = 0
    """Where the reading begins, for a log whose batches before this byte are not asked for."""
    end: int | None = None
    """Where the reading ends, for a log that a broker is writing; None for the end of the file."""
    is_missing: bool = False
    """Whether the log is not there, or can't be read; then it is not opened."""
    sound_to: int = 0
    """Batches up to this byte are known to have right checksums: only their headers are read."""
    framed: FramedLog | None = None
    """What an earlier reading of the same log found. The caller answers for it that the log, its
    names and its index have not changed."""


def frame_partition(
    logs: Sequence[LogSource], on_bytes: Callable[[int], None] = lambda count: None
) -> Facts:
    """Read all logs of a partition, in the order of their base offsets.

    `on_bytes` is called with the number of bytes that were done since the call before.
    Memory: a row for each place where something is odd, and some twenty for each log.
    Raises: OSError for any trouble but blocks that the disk does not return.
    """
    found, rows = list[LogFacts](), [NO_ROWS]
    for number, log in enumerate(logs):
        if log.is_missing:
            bounds = log.base_offset, log.next_base_offset
            found.append(LogFacts(*bounds, size=0, zeros_from=0, is_missing=True))
            continue
        framed = log.framed
        if framed is None:
            with closing(ReadableParts(log.open())) as file:
                framed = frame_log(file, log, on_bytes)
        own = framed.rows.copy()
        own["log"] = number
        found.append(framed.log)
        rows.append(own)
    return Facts(tuple(found), np.concatenate(rows))


def frame_log(
    file: ReadableParts, log: LogSource, on_bytes: Callable[[int], None] = lambda count: None
) -> FramedLog:
    """Read one log. Memory and Raises: as `frame_partition`."""
    return _Framing(file, log, on_bytes).run()


def open_stretches(facts: Facts, needs: NeedsBatches, logs: Sequence[LogSource]) -> Facts:
    """Return the facts with rows for the batches that are asked for; `logs` are as they were.

    Only headers are read. Raises: OSError; CorruptRecordError where a log was changed meanwhile.
    """
    rows, done = list[Rows](), 0
    for number, parts in groupby(needs.parts, lambda part: int(facts.rows["log"][part.row])):
        log = logs[number]
        with closing(ReadableParts(log.open())) as file:
            noted = NotedEntries(log.entries())
            for part in parts:
                rows += facts.rows[done : part.row], _opened(file, facts, part, noted)
                done = part.row + 1
    return replace(facts, rows=np.concatenate([*rows, facts.rows[done:]]))


def _opened(file: ReadOnlyFile, facts: Facts, part: Part, noted: "NotedEntries") -> Rows:
    stretch = facts.rows[part.row : part.row + 1]
    start, end = int(stretch["start"][0]), int(stretch["end"][0])
    opener = Opener(stretch, part)
    for table in BatchScan(file, start, end, deep=False).tables():
        inside = inside_of(file, table)
        table = with_proved(table, inside)
        rows = rows_with(table, Reach(stretch["reach"][0]), inside)
        rows["log"] = stretch["log"][0]
        noted.note(table, rows)
        rows["misled"] = np.where(stretch["misled"][0] > 0, rows["misled"], 0)
        opener.add(rows)
    if opener.seen != stretch["batches"][0] or opener.end != end:
        raise CorruptRecordError(
            "batches that were sound before are not there any more: the log was changed meanwhile",
            law="BATCH-3", position=start,
        )  # fmt: skip
    return opener.rows()


class NotedEntries:
    """The entries of an offset index, noted at the batches that they lead to."""

    def __init__(self, entries: Entries) -> None:
        order = np.argsort(entries.positions, kind="stable")
        self.offsets, self.positions = entries.offsets[order], entries.positions[order]
        self.right = self.wrong = 0
        """Numbers of entries that lead to a batch with their offset, and to other bytes of one."""
        self.right_to = -1
        """The position of the last entry that leads to a batch with its offset; -1 without one."""
        self._last = -1
        """The last offset of the last batch so far."""

    def before(self, table: BatchTable) -> Int64s:
        """Return the positions of batches that come later than their entry states.

        That is an offset after the batch before it. The batches come in their order.
        """
        starts, before = table["position"], self._last
        self._last = int(table["last_offset"][-1])
        near = slice(*np.searchsorted(self.positions, (starts[0], starts[-1] + 1)).tolist())
        positions, stated = self.positions[near], self.offsets[near]
        is_first = np.append(True, positions[1:] != positions[:-1])[: len(positions)]
        at = np.searchsorted(starts, positions)
        known = np.flatnonzero(is_first & (starts[at] == positions))
        at, stated = at[known], stated[known]
        lasts = np.where(at > 0, table["last_offset"][at - 1], before)
        later = (lasts < stated) & (stated < first_offsets(table[at]))
        return positions[known][later]

    def note(self, table: BatchTable, rows: Rows) -> None:
        """Set what entries state of the rows that were made of batches in their order."""
        if not len(self.positions) or not len(table):
            return
        starts = table["position"]
        ends = int(starts[0]), int(starts[-1] + table["size_bytes"][-1])
        near = slice(*np.searchsorted(self.positions, ends).tolist())
        offsets, positions = self.offsets[near], self.positions[near]
        if not len(positions):
            return
        place = np.searchsorted(starts, positions, "right") - 1
        begins, lasts = starts[place], table["last_offset"][place]
        firsts = np.where(table["magic"][place] == 2, table["base_offset"][place], lasts)
        is_inside = positions < begins + table["size_bytes"][place]
        has_offset = (firsts <= offsets) & (offsets <= lasts)
        is_right = (begins == positions) & has_offset
        rows["is_indexed"] = np.isin(rows["start"], positions[is_right]) & (rows["batches"] == 1)
        is_other = ~has_offset & (begins < positions) & is_inside
        row = np.searchsorted(rows["start"], positions, "right") - 1
        np.add.at(rows["led"], row[is_right], 1)
        np.add.at(rows["misled"], row[is_other], 1)
        self.right += int(np.count_nonzero(is_right))
        self.right_to = int(positions[is_right].max(initial=self.right_to))
        # One bit of a base offset is wrong, and the entry is of this log.
        bits = offsets ^ lasts
        is_inside &= (begins != positions) | (bits & (bits - 1) != 0)
        self.wrong += int(np.count_nonzero(~is_right & is_inside))

    @property
    def is_believed(self) -> bool:
        """Whether the index is of this log, by the entries that were looked at."""
        return self.right >= self.wrong

    def beyond(self, position: int) -> Iterator[tuple[int, int]]:
        """Yield offset and position of the entries after a position."""
        start = int(np.searchsorted(self.positions, position, "right"))
        for place in range(start, len(self.positions)):
            yield int(self.offsets[place]), int(self.positions[place])

    def largest_from(self, position: int) -> int:
        """Return the largest offset of entries at or after a position; -1 if no index says so."""
        start = int(np.searchsorted(self.positions, position, "left"))
        return int(self.offsets[start:].max(initial=-1)) if self.is_believed else -1


class _Framing:
    """One reading of one log."""

    def __init__(
        self, file: ReadableParts, log: LogSource, on_bytes: Callable[[int], None]
    ) -> None:
        self._file, self._on_bytes = file, on_bytes
        size, self._start = file.size(), log.start
        self._size = self._zeros_from = size if log.end is None else min(size, log.end)
        self._noted = NotedEntries(log.entries())
        self._log = LogFacts(log.base_offset, log.next_base_offset, self._size, self._size)
        self._found = Condenser(self._log)
        self._left = self._left_of_entries = WORK_BYTES + WORK_BYTES_OF_A_BYTE * self._size
        """Bytes that checksums may still be made of, in searches and at index entries."""
        self._unsearched_from: int | None = None
        self._known: tuple[int, int] | None = None
        """The batch that an entry led to last: its start and end."""
        self._next_entry = 0
        """Entries up to this position were looked at."""
        self._told = log.start
        self._sound_to = log.sound_to

    def run(self) -> FramedLog:
        at, reach = self._step_over_sound(), Reach.SIZES
        while at < self._size:
            at = self._walk(at, reach)
            self._tell(at)
            if at < self._size and holds_zeros(self._file, at, self._size):
                self._zeros_from = at
                break
            if at < self._size:
                at, reach = self._go_on_after(at)
        rows = self._found.rows()
        led_to = int(rows["end"][rows["reach"] > Reach.SEARCH].max(initial=self._start))
        rows = self._with_mended(self._with_end(rows))
        rows["is_misindexed"] &= self._noted.is_believed
        # Where all later entries are wrong, bytes were cut out: the log is shorter from there on.
        is_last = rows["start"] == self._noted.positions.max(initial=-1)
        rows["is_misindexed"] &= is_last | (rows["start"] < self._noted.right_to)
        is_unsure = not self._noted.is_believed
        rows["misled"][(rows["end"] > self._noted.right_to) | is_unsure] = 0
        self._note_zeros(rows)
        self._note_keyless(rows)
        torn_from, torn_offset = self._torn(rows, led_to)
        end = int(rows["end"].max(initial=self._start)) if torn_from is None else self._zeros_from
        facts = replace(
            self._log, zeros_from=self._zeros_from, torn_from=torn_from, torn_offset=torn_offset,
            unsearched_from=self._unsearched_from, unreadable_bytes=self._file.unreadable_bytes,
            indexed_to=self._noted.largest_from(end),
        )  # fmt: skip
        self._tell(self._size)
        return FramedLog(facts, rows)

    def _tell(self, position: int) -> None:
        done, self._told = self._told, max(self._told, position)
        self._on_bytes(self._told - done)

    def _rows(self, table: BatchTable, reach: Reach, data: bytes | None = None) -> Rows:
        """Return the rows of batches that follow each other.

        `data` is the one batch of the table, if its bytes in the log are not those.
        """
        inside = inside_of(self._file, table, data)
        table = with_proved(table, inside)
        plain, later = None, self._noted.before(table) if data is None else NO_OFFSETS
        # Where a search led, reach changes at the first batch that an entry leads to.
        is_led = reach is not Reach.SEARCH or not len(self._noted.positions)
        if is_led and not len(later):
            plain = plain_rows_of(table, reach, self._log, EDGE_BATCHES)
        rows = rows_with(table, reach, inside) if plain is None else plain
        if len(later):
            rows["is_misindexed"] = np.isin(rows["start"], later)
        if data is None:
            self._noted.note(table, rows)
        return rows

    # --- where sizes lead

    def _step_over_sound(self) -> int:
        """Add the batches whose checksums are known to be right; return where they end."""
        if self._sound_to <= self._start:
            return self._start
        scan = BatchScan(self._file, self._start, self._sound_to, deep=False)
        for table in together(scan.tables()):
            self._found.add(self._rows(table, Reach.SIZES))
        self._tell(scan.end_position)
        return scan.end_position

    def _walk(self, at: int, reach: Reach) -> int:
        """Add batch after batch; return from where on none has a right checksum, or the end."""
        scan, broken_from = check_batches(self._file, at, self._size), -1
        for checked in scan:
            for is_right, part in equal_parts(checked.crc_valid, checked.table):
                if not is_right:
                    broken_from = int(part["position"][0]) if broken_from < 0 else broken_from
                    self._left -= int(part["size_bytes"].sum()) * (reach is not Reach.SIZES)
                    continue
                if broken_from >= 0:
                    self._search_inside(broken_from + 1, int(part["position"][0]))
                    broken_from = -1
                rows = self._rows(part, reach)
                indexed = np.flatnonzero(rows["is_indexed"])
                if reach is Reach.SEARCH and len(indexed):
                    rows["reach"][indexed[0] :] = reach = Reach.ENTRY
                self._found.add(rows)
            self._tell(scan.end_position)
            if self._left < 0 and broken_from >= 0:
                break
        return scan.end_position if broken_from < 0 else broken_from

    def _search_inside(self, start: int, end: int) -> None:
        """Add what lies in the bytes of broken batches."""
        while (found := self._search(start, end)) is not None:
            self._found.add(self._rows(found, Reach.SEARCH))
            start = _end_of(found)

    def _go_on_after(self, at: int) -> tuple[int, Reach]:
        """Return where batches begin again after a place where none can be read, or the end."""
        known = self._indexed_after(at)
        end = self._size if known is None else known
        start = at + 1
        while (found := self._search(start, end)) is not None:
            following = _end_of(found)
            if following in (end, self._size) or self._batch_at(following, self._size) is not None:
                return int(found["position"][0]), Reach.SEARCH
            self._found.add(self._rows(found, Reach.SEARCH))
            start = following
        return end, Reach.ENTRY

    def _indexed_after(self, at: int) -> int | None:
        """Return the first position after `at` at which an entry states a batch that is there."""
        if self._known is not None and self._known[0] > at:
            return self._known[0]
        self._known = None
        for offset, position in self._noted.beyond(max(at, self._next_entry)):
            self._next_entry = position
            size = end_at(self._file, position) - position
            if not LEGACY_MIN_BYTES <= size <= self._size - position:
                continue
            self._left_of_entries -= size + TRIAL_BYTES
            if self._left_of_entries < 0:
                return None
            found = header_at(self._file, position, position + size)
            if found is not None and first_offsets(found)[0] <= offset <= found["last_offset"][0]:
                self._known = position, position + size
                return position
        return None

    # --- at any byte

    def _search(self, start: int, end: int) -> BatchTable | None:
        """Return the first batch with a right checksum in [start, end).

        Return None without one, and after too much was tried.
        """
        at, wanted = start, SEARCHED_BYTES_MIN
        while at < end and self._unsearched_from is None:
            data = self._file.pread(wanted + BATCH_HEADER_BYTES - 1, at)
            for row in starts_by_size(data, min(wanted, end - at), end - at):
                found = self._batch_at(at + row, end)
                if self._left < 0:
                    self._unsearched_from = at + row
                    return None
                if found is not None:
                    return found
            at = behind_zeros(self._file, data, at + wanted, end)
            wanted = min(2 * wanted, SEARCHED_BYTES_MAX)
        return None

    def _batch_at(self, position: int, limit: int) -> BatchTable | None:
        """Return the batch at a position if its checksum is right and it ends before `limit`."""
        end = end_at(self._file, position)
        if not position + LEGACY_MIN_BYTES <= end <= limit or self._left < 0:
            return None
        is_new = self._file.pread(1, position + _MAGIC_AT) == b"\2"
        # The bytes of a magic 2 header look like a message of many megabytes.
        if not is_new and end_by_lengths(self._file, position) != end:
            return None
        self._left -= end - position + TRIAL_BYTES
        return header_at(self._file, position, end)

    # --- the end

    def _with_end(self, rows: Rows) -> Rows:
        """Return the rows; note that sizes lead from the last ones to the end of the log."""
        if not len(rows) or rows["end"][-1] != self._zeros_from:
            return rows
        breaks = np.flatnonzero(rows["end"][:-1] != rows["start"][1:])
        rows["reach"][breaks[-1] + 1 if len(breaks) else 0 :] = Reach.SIZES
        again = Condenser(self._log)
        again.add(rows)
        return again.rows()

    def _note_zeros(self, rows: Rows) -> None:
        """Note zeros after the last batch; blocks that can't be read are none."""
        end = int(rows["end"].max(initial=self._start))
        if end < self._zeros_from and holds_zeros(self._file, end, self._size):
            self._zeros_from = end
        if any(block + 1 > self._zeros_from for block in self._file.unreadable):
            self._zeros_from = self._size

    def _torn(self, rows: Rows, led_to: int) -> tuple[int | None, int]:
        """Return where a batch begins that the end of the log cuts off, and its base offset.

        It begins where sizes lead to from the beginning or from an index entry, or after a mended
        batch: one that a search found may be inside it, and sizes may lead from that to the end. Of
        compressed records no length is known: such a batch is not told from a wrong size.
        """
        at = int(rows["end"][rows["is_mended"]].max(initial=led_to))
        header, end = self._file.pread(BATCH_HEADER_BYTES, at), end_at(self._file, at)
        if len(header) < BATCH_HEADER_BYTES or at >= self._size or end <= self._size:
            return None, -1
        if header[_MAGIC_AT] < 2:
            is_torn = end_by_lengths(self._file, at) == end
        else:
            data = self._file.pread(min(self._size - at, BATCH_BYTES_MAX), at)
            is_torn = end_by_records(data) == end - at
        return (at, BATCH["base_offset"].of(header)) if is_torn else (None, -1)

    def _note_keyless(self, rows: Rows) -> None:
        """Note which batches lack a key, of those after which more offsets than bytes are missing.

        The last ones are asked first, until KEYS_ASKED batches are read; and of wrappers of magic
        0 and 1, what the first offset is.
        """
        jumps = rows["first"][1:] - rows["last"][:-1] - 1
        leaping = np.flatnonzero(jumps > rows["start"][1:] - rows["end"][:-1])
        asked = dict[int, bool]()
        for row in leaping[::-1].tolist():
            rows["is_keyless"][row] = self._is_first_known(rows[row + 1]) and self._lack_keys(
                rows, row, asked
            )
            if len(asked) >= KEYS_ASKED:
                break

    def _lack_keys(self, rows: Rows, row: int, asked: dict[int, bool]) -> bool:
        """Return whether a batch lacks a key, or one of the batches that it follows without a gap.

        `asked` are the answers so far.
        """
        for at in range(row, max(-1, row - EDGE_BATCHES), -1):
            if at not in asked:
                batch = self._batch_of(rows[at])
                asked[at] = batch is not None and lacks_key(batch, BATCH_BYTES_MAX)
            if asked[at]:
                return True
            one, own = rows[at - 1], rows[at]
            if not at or (one["end"], one["last"] + 1) != (own["start"], own["first"]):
                return False
        return False

    def _batch_of(self, row: np.void) -> RecordBatch | None:
        """Return the batch of a row; None if it is a stretch, or was mended."""
        is_as_written = row["batches"] == 1 and not row["is_mended"]
        start, end = int(row["start"]), int(row["end"])
        table = header_at(self._file, start, end) if is_as_written else None
        return None if table is None else record_batch(self._file, table[0])

    def _is_first_known(self, row: np.void) -> bool:
        """Return whether a row states its first offset, or what it wraps could be looked into."""
        if row["is_movable"] or row["first"] < row["last"]:
            return True
        batch = self._batch_of(row)
        with suppress(SegproofError):
            return batch is not None and batch.base_offset <= row["last"]
        return False

    # --- another size, another magic

    def _with_mended(self, rows: Rows) -> Rows:
        """Return the rows with those of batches whose size or magic is wrong.

        Such a batch may have batches in its values that a search found: these are left out, since
        they are no batches of the log.
        """
        is_firm = (rows["reach"] > Reach.SEARCH) | (rows["batches"] > 1)
        firm, loose = rows[is_firm], rows[~is_firm]
        ends = np.append(self._start, firm["end"])
        starts = np.append(firm["start"], self._zeros_from)
        is_hole = starts - ends >= LEGACY_MIN_BYTES
        trials, found = Trials(self._file, max(self._left, 0)), list[Rows]()
        is_inside = np.zeros(len(loose), np.bool_)
        for start, end in zip(ends[is_hole].tolist(), starts[is_hole].tolist(), strict=True):
            near = slice(*np.searchsorted(loose["start"], (start, end)).tolist())
            for row in self._mended_in(trials, start, end, loose[near]):
                found.append(row)
                first = int(np.searchsorted(loose["end"], row["start"][0], "right"))
                is_inside[first : int(np.searchsorted(loose["start"], row["end"][0]))] = True
        if not found:
            return rows
        whole = np.concatenate([firm, loose[~is_inside], *found])
        return whole[np.argsort(whole["start"], kind="stable")]

    def _mended_in(self, trials: Trials, start: int, end: int, loose: Rows) -> Iterator[Rows]:
        """Yield the mended batches of [start, end), one row each; `loose` may lie in their values.

        A base offset outside of the log's name is not looked for, apart from the first byte.
        """
        starts = trials.starts(start, end, self._log.base_offset - 1, self._log.limit)
        loose_starts, loose_ends = loose["start"].tolist(), loose["end"].tolist()
        places = sorted({*starts, *(one for one in loose_ends if one < end)})
        at = start
        while at + LEGACY_MIN_BYTES <= end and not trials.is_through:
            following = places[(place := bisect_right(places, at)) : place + HEADERS_TRIED]
            next_ = bisect_left(loose_starts, at)
            if loose_starts[next_ : next_ + 1] == [at]:
                at = loose_ends[next_]
                continue
            near = *(*loose_starts[next_:], end)[:HEADERS_TRIED], *following
            data = trials.by_lengths(at, end) or trials.by_size(at) or trials.by_guess(at, near)
            if data is None or at + len(data) > end:
                said = end_at(self._file, at)
                following += [said] if at + BATCH_HEADER_BYTES <= said else []
                at = min(following, default=end)
                continue
            row = self._rows(headers_of(data).table, Reach.SEARCH, data)
            row["start"] += at
            row["end"] += at
            row["is_mended"] = True
            yield row
            at += len(data)


def _end_of(table: BatchTable) -> int:
    return int(table["position"][0] + table["size_bytes"][0])
