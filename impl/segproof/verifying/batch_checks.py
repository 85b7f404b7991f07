# SPDX-License-Identifier: Apache-2.0
"""What the headers and checksums of batches say, and how a log ends.

Laws: BATCH-2, 3, 11, 14, 15, 16, 18; SCAN-2, 10; LOG-4; DUMP-6; DISK-6, 13, 14, 15, 19, 23.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.checksums import crc32, crc32c
from segproof.counts import plural, verb
from segproof.errors import CorruptRecordError
from segproof.files import holds_zeros
from segproof.findings import Severity
from segproof.hints import reads, writes
from segproof.integers import INT32_MAX
from segproof.inventory.told_ends import ALL_ZEROS
from segproof.kafka.batch_table import BatchTable
from segproof.layouts.kafka import (
    BATCH,
    BATCH_HEADER_BYTES,
    CHECKED_FROM,
    HEADER_UP_TO_MAGIC_BYTES,
    LOG_OVERHEAD_BYTES,
    MESSAGE_CHECKED_FROM,
)
from segproof.reading.claimed_offsets import claims
from segproof.reading.log_damage import DAMAGE_BEGINS, LogDamage, damage_of_log
from segproof.reading.log_placement import LogPlacement, placement_of_log
from segproof.reading.offset_entries import entries_of
from segproof.reading.rows import Bools, shifted
from segproof.stretches.kafka.facts import NO_ENTRIES
from segproof.stretches.kafka.rules import is_far_jump, is_odd_jump
from segproof.verifying.cut_out_checks import rows_again
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.lost_offsets import ZEROED_END, entries_in_zeros
from segproof.verifying.segment_carry import LogCarry
from segproof.wording.reporting import Described
from segproof.wording.rules import RESTORE, SALVAGE, TRIMMED, WRITTEN_SO, declare
from segproof.wording.segment_files import tail_severity

declare("record-file", Severity.ERROR, RESTORE, "SCAN-2", "SCAN-10", "DUMP-6", "DISK-23")
declare("record-batch", Severity.ERROR,
    RESTORE, "BATCH-2", "BATCH-3", "BATCH-11", "BATCH-14")  # fmt: skip
declare("record-batch", Severity.ERROR,
    WRITTEN_SO, "BATCH-15", "BATCH-16", "BATCH-18", "DISK-14")  # fmt: skip
declare("record-batch", Severity.WARNING,
    reads("nothing, if a newer release wrote it; else compare it with another replica: it is"
    " damaged"), "DISK-15")  # fmt: skip
CUTS_ALL = writes(
    "save what is sound with `segproof salvage DIR --out DIR2` before a broker starts here, unless"
    " verify finds another replica of this partition sound. A start after an unclean stop makes the"
    " index again. If an entry is due for an offset that is not above the entry before it, Kafka"
    " cuts this segment at byte 0 and deletes all later ones"
)
KEPT_TWICE = writes(
    "compare the segment with another replica, or save what is sound with `segproof salvage DIR"
    " --out DIR2`. A broker keeps both batches, also after an unclean stop, and serves the offsets"
    " that both claim twice"
)
SPLITS = writes(
    "save what is sound with `segproof salvage DIR --out DIR2` before a broker starts here, unless"
    " verify finds another replica of this partition sound. A start that recovers this segment"
    " splits it before such a batch into segments of other names, and ends with an error if it"
    " can't"
)
declare("log-segment", Severity.ERROR, CUTS_ALL, "DISK-13")
declare("partition-log", Severity.ERROR,
    SALVAGE.after("compare both segments with another replica. A salvage keeps the batches that"
    " fit, and sets the others aside: "), "LOG-4")  # fmt: skip
declare("partition-log", Severity.NOTE,
    reads("compaction leaves gaps, some as large as segments. In a topic that was never compacted"
    " records are missing, and so they are where DISK-25 or DISK-63 says it: compare with another"
    " replica"), "DISK-19")  # fmt: skip

MIN_RECORD_BYTES = 7
ONE_BIT = writes(
    "compare the end of the log with another replica; if the offset is wrong, `segproof salvage"
    " DIR --out DIR2` sets this batch aside, and a broker would go on behind it"
)
MADE_AGAIN_BYTES = 32 << 20
"""Of a larger batch with a wrong checksum the right one is not told."""
TAIL_BYTES_MAX = 1 << 20
"""A torn batch has no more bytes than this, Kafka's default limit of a batch. More bytes at the end
are another damage: sound batches may lie in them, and a search finds these."""
BLANK = reads(
    "compare the end of the log with another replica before a broker starts here: it takes the log"
    " for empty"
)
PREALLOCATED = "the tail of a preallocated file"
TORN = reads(
    "nothing, if the broker is writing, or was killed while it wrote, and no DISK-36, DISK-38,"
    " DISK-64, SEG-7 or DISK-9 says that the log went on: a recovery removes these bytes; else"
    " compare the end of the log with another replica"
)


class BatchCheck(LogCheck):
    """Judges headers, checksums and the order of batches, and how the log ends.

    It is the first check: it keeps in the `LogPass` what the others ask for.
    """

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._file = log.file
        self._last = -1
        """Distance of the last offset so far, as stored, for the order of batches."""
        self._bad_from: int | None = None
        """Where the batches with wrong checksums begin that end what was read so far."""
        self._damage: LogDamage | None = None
        """What lies from the first damage on."""
        self._placed: LogPlacement | None = None
        """What becomes of each batch of the log; None as long as no damage is known."""
        self._is_tail = False
        """Whether that is known of the bytes behind the last batch only."""
        self._gaps = 0
        self._missing = 0
        self._has_sound_gap = False
        self._is_in_order = True
        """Whether the offsets of all batches rise."""
        self._first_gap: int | None = None
        self._batches = 0
        self._before_gap = 0
        """How many batches lie before the first gap."""
        self._due = 0
        """The offset that is missing first."""

    def check(self, block: Block) -> None:
        """Judge one block."""
        table = block.table
        sound = np.flatnonzero(block.crc_valid)
        if len(sound) < len(table):
            self._log.is_sound = False
            self._check_checksums(block)
        behind = int(sound[-1]) + 1 if len(sound) else 0
        if len(sound) or self._bad_from is None:
            self._bad_from = int(table["position"][behind]) if behind < len(table) else None
        self._check_attributes(block)
        if (table["magic"] == 2).any():
            self._check_counts(block)
        self._check_offsets(block)
        sound = table["max_timestamp"][block.crc_valid]
        if len(sound):
            self._log.max_timestamp = max(self._log.max_timestamp, int(sound.max()))

    def _broken(
        self,
        law: str,
        block: Block,
        is_broken: Bools,
        message: str,
        expected: NDArray[Any] | int | str | None = None,
        actual: NDArray[Any] | None = None,
        **columns: Any,
    ) -> None:
        """Report batches; `message` names columns, and fields of the batch as `{row[...]}`."""
        positions, columns["row"] = block.table["position"], block.table
        self._report.add_where(law, is_broken, positions, message, expected, actual, **columns)

    def _words(self, damage: LogDamage) -> str:
        is_last = self._segment.next_base_offset is None
        return damage.words(is_recovered=self._segment.is_recovered, is_last=is_last)

    def _begin_words(self) -> str:
        """Return where the damage begins that ends the scan, if that is a batch before it."""
        return "" if self._bad_from is None else f"{DAMAGE_BEGINS}{self._bad_from}"

    # --- one batch by itself

    def _check_checksums(self, block: Block) -> None:
        table, bad = block.table, ~block.crc_valid
        if self._damage is None:
            self._damage = self._damage_from(int(table["position"][bad.argmax()]))
        behind = np.where(table["position"] == self._damage.position, self._words(self._damage), "")
        is_small = (table["magic"] == 2) & (table["size_bytes"] < BATCH_HEADER_BYTES)
        self._broken(
            "BATCH-14", block, bad & is_small,
            "a batch of magic 2 needs 61 bytes and this one says it has {row[size_bytes]}{behind}",
            "61 or more", table["size_bytes"], behind=behind,
        )  # fmt: skip
        for law, is_format in (("BATCH-3", table["magic"] == 2), ("BATCH-2", table["magic"] < 2)):
            where = bad & is_format & ~is_small
            describe = partial(self._wrong_checksum, table[where], behind[where])
            self._report.add_rows(law, table["position"][where], describe)

    def _wrong_checksum(self, rows: BatchTable, behind: NDArray[Any], at: int) -> Described:
        size, magic = int(rows["size_bytes"][at]), int(rows["magic"][at])
        made: str | None = None
        if size <= MADE_AGAIN_BYTES:
            data = self._file.pread(size, int(rows["position"][at]))
            is_new = magic == 2
            made_of = crc32c(data[CHECKED_FROM:]) if is_new else crc32(data[MESSAGE_CHECKED_FROM:])
            made = f"{made_of:#010x}"
        return Described(
            f"the checksum of this batch of {size} bytes is wrong: bytes in it were changed"
            f"{behind[at]}",
            made,
            f"{int(rows['crc'][at]):#010x}",
        )

    def _check_attributes(self, block: Block) -> None:
        table = block.table
        attributes = table["attributes"]
        if not attributes.any():
            return
        good, codec = block.crc_valid, attributes & 7
        self._broken(
            "BATCH-18", block, good & (codec > 4), "codec {codec} is none of 0 to 4", "0 to 4",
            codec, codec=codec,
        )  # fmt: skip
        self._broken(
            "BATCH-11", block, good & (codec == 4) & (table["magic"] < 2),
            "a message of magic {row[magic]} is compressed with zstd",
        )  # fmt: skip
        used = np.where(table["magic"] == 2, 0x7F, 0x0F)
        self._broken(
            "DISK-15", block, good & (attributes & ~used != 0),
            "attribute bits are set that no release uses",
            "0 in all bits but 0 to 6 (magic 2) or 0 to 3", attributes,
        )  # fmt: skip

    def _check_counts(self, block: Block) -> None:
        table = block.table
        count, size = table["record_count"].astype(np.int64), table["size_bytes"]
        delta = table["last_offset_delta"].astype(np.int64)
        good = block.crc_valid & (table["magic"] == 2)
        is_plain, room = table["attributes"] & 7 == 0, size - BATCH_HEADER_BYTES
        too_many = (count < 0) | (is_plain & (count * MIN_RECORD_BYTES > room))
        self._broken(
            "BATCH-15", block, good & (count == 0) & (room != 0),
            "a batch without records has 61 bytes, this one has more", 61, size,
        )  # fmt: skip
        self._broken(
            "BATCH-16", block, good & too_many,
            "a record count of {row[record_count]} does not fit the bytes behind the header,"
            " {room} of them",
            "0 to {most}", count, room=room, most=room // MIN_RECORD_BYTES,
        )  # fmt: skip
        self._broken(
            "DISK-14", block, good & ((delta < 0) | ((count > delta + 1) & (count > 0))),
            "a record count of {row[record_count]} does not fit offsets from {row[base_offset]} to"
            " {row[last_offset]}", "at most {most}", count, most=delta + 1,
        )  # fmt: skip

    # --- batches beside each other

    def _check_offsets(self, block: Block) -> None:
        table, base_offset = block.table, self._segment.base_offset
        last = block.stored_last
        own = np.where(table["magic"] == 2, block.stored_first, last)
        good = block.crc_valid
        for is_outside, words in (
            (last < 0, "lies below"),
            (last > INT32_MAX, "lies more than 2^31 - 1 above"),
        ):
            self._broken(
                "DISK-13", block, good & is_outside,
                f"last offset {{row[last_offset]}} {words} the segment's base offset {base_offset}",
                f"{base_offset} to {base_offset + INT32_MAX}", table["last_offset"], hint=SPLITS,
            )  # fmt: skip
        # Of a loose batch only what is certain counts: see `Block.last`.
        claimed = np.where(good, last, block.last)
        previous = shifted(claimed, self._last)
        self._last = int(claimed[-1])
        overlaps = good & (own <= previous) & (last >= 0)
        if overlaps.any():
            self._log.is_sound, self._is_in_order = False, False
            before = previous + base_offset
            self._broken(
                "DISK-13", block, overlaps & (previous < 0),
                "the batch begins at offset {row[base_offset]}, below {due}, the base offset in"
                " the name of the file: was it renamed?", "{due} or more", table["base_offset"],
                due=before + 1,
            )  # fmt: skip
            overlaps &= previous >= 0
            for which, hint in ((last <= previous, None), (last > previous, KEPT_TWICE)):
                self._broken(
                    "DISK-13", block, overlaps & which,
                    "the batch begins at offset {row[base_offset]}, and the log has reached offset"
                    " {before} before it", "{due} or more", table["base_offset"],
                    before=before, due=before + 1, hint=hint,
                )  # fmt: skip
        following = self._segment.next_base_offset
        if following is not None:
            self._broken(
                "LOG-4", block, good & (table["last_offset"] >= following),
                "the batch ends at offset {row[last_offset]}, and the next segment begins at"
                f" {following} by its name: both claim the offsets between",
                f"less than {following}",
                table["last_offset"],
            )  # fmt: skip
        self._count_gaps(block)

    def _count_gaps(self, block: Block) -> None:
        is_gap = block.is_gap()
        if is_gap.any():
            self._has_sound_gap |= bool((is_gap & ~block.is_doubtful).any())
            self._gaps += int(is_gap.sum())
            self._missing += int((block.first - block.before - 1)[is_gap].sum())
            if self._first_gap is None:
                row = int(is_gap.argmax())
                self._first_gap = int(block.table["position"][row])
                self._before_gap = self._batches + row
                self._due = self._segment.base_offset + int(block.before[row]) + 1
        self._batches += len(block.table)

    # --- the end

    def finish(self) -> None:
        """Judge how the scan ended."""
        scan = self._log.scan
        rest = self._log.size - scan.end_position
        self._report_gaps(self._log.reach if rest <= 0 else None)
        if rest <= 0:
            return
        position, error = scan.end_position, scan.error
        if error is not None and error.law == "SCAN-7":
            self._report.shrunk(self._log.size, position)
        elif holds_zeros(self._file, position, self._log.size):
            self._log.tail_is_empty = True
            self._report_zero_tail(position, rest)
        elif error is not None:
            self._report.add(
                "DISK-23" if error.law == "SCAN-4" else error.law or "SCAN-10",
                f"{error.message}: no batch can be read here, and {rest} bytes up to the end of"
                f" the file are out of reach{self._words(self._damage_at_end(position))}"
                f"{self._begin_words()}",
                position=position,
                actual=self._file.pread(HEADER_UP_TO_MAGIC_BYTES, position).hex(),
                expected="a batch header",
            )
        else:
            self._report_partial(position, rest)
        self._log.is_sound = self._log.is_sound and self._log.tail_is_empty

    def _report_gaps(self, reach: int | None) -> None:
        segment = self._segment
        following = segment.next_base_offset
        behind = 0
        if not self._is_in_order and self._damage is None:
            # A later batch, or one before the gap, may have the offsets.
            missing = self._missing_of_all()
            self._missing = self._missing if missing is None else min(self._missing, missing)
        if following is not None and reach is not None:
            following = self._log.following(segment.base_offset + reach + 1) or 0
            behind = following - segment.base_offset - reach - 1
        if behind > 0:
            self._gaps += 1
            self._missing += behind
        if not self._gaps:
            return
        where = "" if self._first_gap is None else ", the first before this batch"
        if behind > 0:
            where += f"; {behind} of them before the next segment, which begins at {following}"
        is_odd = behind <= 0 and reach is not None and self._is_odd_end()
        if is_odd:
            first, why = self._due + self._missing, "further away than a log has room for"
            if is_odd_jump(self._due, first):
                why = f"one bit away from {self._due}, the next offset"
            where = f", before the last batch only: its base offset {first} is {why}"
        self._report.add(
            "DISK-19",
            f"{plural(self._missing, 'offset', 'is', 'are')} in no batch of this log, in"
            f" {'one gap' if self._gaps == 1 else f'{self._gaps} gaps'}{where}",
            position=self._first_gap,
            expected=0,
            actual=self._missing,
            severity=Severity.WARNING if is_odd else None,
            hint=ONE_BIT if is_odd else None,
        )

    def _missing_of_all(self) -> int | None:
        """Return how many offsets no batch has, up to the largest, whatever their order is.

        None if the log has too many batches for that.
        """
        rows = rows_again(self._log)
        if rows is None:
            return None
        order = np.argsort(rows.first, kind="stable")
        reach = np.maximum(np.maximum.accumulate(rows.last[order]), -1)
        return int(np.maximum(0, rows.first[order] - shifted(reach, -1) - 1).sum())

    def _is_odd_end(self) -> bool:
        """Return whether the only gap of the last log is of a wrong last batch (PLACE-9)."""
        if self._segment.next_base_offset is not None or self._gaps > 1:
            return False
        is_last = self._before_gap == self._batches - 1
        jump = self._due, self._due + self._missing
        if not is_last or not (is_odd_jump(*jump) or is_far_jump(*jump)):
            return False
        if self._placed is None:
            sound_to = self._log.scan.end_position if self._log.is_sound else 0
            try:
                self._placed = self._place(self._segment.base_offset, sound_to=sound_to)
            except CorruptRecordError:  # it was changed meanwhile
                return False
        return not self._is_tail and self._placed.has_odd_end

    def _place(self, base_offset: int, *, start: int = 0, sound_to: int = 0) -> LogPlacement:
        """Return what becomes of each batch from a byte on. Raises: as `placement_of_log`."""
        log, entries = self._log, NO_ENTRIES
        if log.offsets is not None:
            entries = entries_of(log.offsets, self._segment.base_offset)
        return placement_of_log(
            log.file, base_offset, self._segment.next_base_offset, end=log.size, entries=entries,
            start=start, sound_to=sound_to, framed=None if start else log.framed,
        )  # fmt: skip

    def _report_zero_tail(self, position: int, rest: int) -> None:
        segment = self._segment
        why = f", although {segment.why_closed}" if segment.is_closed else ""
        is_lost = entries_in_zeros(self._log)[0] > 0
        if position == 0 and not segment.is_closed and ".index" not in segment.suffixes:
            self._report.add(
                "DISK-6",
                f"{rest} zero bytes: {ALL_ZEROS}",
                position=0,
                severity=Severity.WARNING,
                hint=BLANK,
            )
            return
        what = "the offset index has entries for batches there" if is_lost else PREALLOCATED
        self._report.add(
            "DISK-6",
            f"{rest} zero bytes follow the last batch{why}: {what}{self._begin_words()}",
            position=position,
            expected=position,
            actual=self._log.size,
            severity=tail_severity(segment),
            hint=ZEROED_END if is_lost else None if segment.is_closed else TRIMMED,
        )

    def _report_partial(self, position: int, rest: int) -> None:
        segment = self._segment
        self._log.tail_is_empty = rest <= HEADER_UP_TO_MAGIC_BYTES
        size = self._file.size()
        if size < self._log.size:
            self._report.shrunk(self._log.size, size)
        if size != self._log.size:
            return  # a batch that is being written
        damage = self._damage_at_end(position)
        if rest > HEADER_UP_TO_MAGIC_BYTES:
            size = BATCH["size"].read(self._file, position) + LOG_OVERHEAD_BYTES
            which = "the last" if damage.is_tail else "this"
            message = f"{which} batch says it has {size} bytes, and the file has {rest} of them"
        else:
            are = verb(rest, "is", "are")
            message = f"{plural(rest, 'byte')} behind the last batch {are} too few for another one"
        is_torn = not segment.is_closed and damage.is_tail
        self._report.add(
            "DUMP-6",
            message + self._words(damage) + self._begin_words(),
            position=position,
            expected=position,
            actual=self._log.size,
            severity=Severity.WARNING if is_torn else Severity.ERROR,
            hint=TORN if is_torn else None,
        )

    def _damage_at_end(self, position: int) -> LogDamage:
        """Return what lies behind the last sound batch that was read.

        A batch with a wrong size may have led past others.
        """
        start = position if self._bad_from is None else self._bad_from
        if self._damage is not None and self._damage.position == start:
            return self._damage
        damage = self._damage_from(start)
        self._damage = self._damage or damage
        return damage

    def _damage_from(self, start: int) -> LogDamage:
        """Return what a damage costs; at the first one, the log is read once more from there on."""
        log, following = self._log, self._segment.next_base_offset
        base_offset = self._segment.base_offset
        if self._placed is None:
            try:
                is_short = log.size - start <= TAIL_BYTES_MAX
                if self._damage is None and start == log.scan.end_position and is_short:
                    # After a crash a tail is torn: then nothing before it has to be read again.
                    tail = self._place(base_offset + log.reach + 1, start=start)
                    self._placed = None if tail.has_batches else tail
                    self._is_tail = self._placed is not None
                if self._placed is None:
                    self._placed = self._place(base_offset, sound_to=start)
            except CorruptRecordError:  # it was changed meanwhile: what follows is not known
                return LogDamage(start, unsearched_from=start, last_sound_offset=base_offset - 1)
        damage = damage_of_log(self._placed, start, self._is_lost)
        if damage.broken_from is None or following is None:
            return damage
        rest, first = (damage.broken_from, log.size), damage.last_sound_offset + 1
        return damage._replace(is_end_claimed=claims(self._file, *rest, following - first))

    def _is_lost(self, start: int, end: int, first: int, following: int) -> bool:
        """Return whether damage, and not the log cleaner, took the offsets before `following`.

        The bytes [start, end) have no sound batch.
        """
        return claims(self._file, start, end, following - first) or self._log.is_lost(first)

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on what the first damage costs."""
        carry.damage = self._damage
        carry.framed = None if self._placed is None or self._is_tail else self._placed.framed
        carry.missing_offsets = self._missing
        carry.has_sound_gap = self._has_sound_gap
