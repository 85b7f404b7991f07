# SPDX-License-Identifier: Apache-2.0
"""Reading a log for rows, of tables and of `dump`: where to begin, the headers, how it ends.

Headers and checksums come from `BatchScan`, thousands at a time. What a table of headers does not
say (a message of magic 0 or 1 that is compressed or counted, a batch smaller than its own header,
one whose header ends behind the file) is read one by one, as `segproof dump` reads it.

Upstream: Kafka 4.3.1: LogSegment.translateOffset, FileLogInputStream.
Laws: BATCH-12, SCAN-1 to SCAN-7, SCAN-10.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segproof.counts import plural
from segproof.errors import CorruptRecordError, SegproofError
from segproof.files import Files, holds_zeros
from segproof.kafka.batch_table import BATCH_DTYPE, HeldBytes, check_batches
from segproof.kafka.record_file import LogAsFound, RecordFile
from segproof.kafka.time_index import TimeIndex
from segproof.layouts.kafka import BATCH_HEADER_BYTES
from segproof.reading.file_names import is_of_remote_segment
from segproof.reading.segment_reader import open_index, start_position
from segproof.tables.files_below import Unit, asks_for_offsets
from segproof.tables.options import FAIL, Request
from segproof.tables.schemas import TABLES
from segproof.verifying.ends_beside import LogEnd, why_short
from segproof.verifying.log_offsets import LogOffsets, refuse_all


class Headers(NamedTuple):
    """Some batches in file order."""

    table: NDArray[np.void]
    """Rows of BATCH_DTYPE."""
    crc_valid: NDArray[np.bool_]
    """Whether size and checksum are right."""
    is_known: NDArray[np.bool_]
    """False where the row does not say what the batch says; it is to be read by itself."""
    held: HeldBytes | None = None
    """Their bytes, if a reader holds them."""

    def unsaid(self, *, record_count: bool, base_offset: bool) -> NDArray[np.bool_]:
        """Return which batches are to be read by themselves, for these fields or at all."""
        table = self.table
        is_legacy = table["magic"] < 2
        if not record_count:
            is_legacy = is_legacy & (table["attributes"] & 7 != 0) & base_offset
        is_unsaid: NDArray[np.bool_] = ~self.is_known | is_legacy
        return is_unsaid


@contextmanager
def opened(unit: Unit, files: Files) -> Iterator[RecordFile]:
    """Open a log to read it; the last one of a partition may end in preallocated zeros.

    Only closed logs get into tiered storage.
    Raises: OSError; SegproofError for a file too large for a log.
    """
    is_last = unit.next_base_offset is None and not is_of_remote_segment(unit.path)
    kind = LogAsFound if is_last else RecordFile
    with closing(kind.open(unit.path, files=files)) as log:
        yield log


class LogReader:
    """The headers of one log, from a position on.

    `end_position` is where the last whole batch ends that was read. `unit` is the log's segment;
    what lies beside it in `files` may show that the log has lost its end, or batches before it.
    With `within`, that segment again, a batch of other offsets is refused. With `holds` the bytes
    of batches are there until the next ones are asked for.
    """

    def __init__(
        self,
        unit: Unit,
        files: Files,
        *,
        start: int = 0,
        within: Unit | None = None,
        holds: bool = False,
    ) -> None:
        self._holds = holds
        self._unit = unit
        self._files = files
        self._within = within
        self._next_offset = None if start else unit.base_offset
        """The offset after the last batch; None if that batch is damaged."""
        self.end_position = start
        self._offsets: LogOffsets | None = None
        if unit.base_offset is not None:
            following = unit.next_base_offset
            self._offsets = LogOffsets(unit.path, unit.base_offset, following, files, start=start)

    def whole(self, log: RecordFile) -> Iterator[Headers]:
        """Yield the headers up to the end. Raises: OSError; what ends the scan, or is lost, behind
        the batches before.
        """
        yield from self.parts(log)
        refuse_left_over(log, self.end_position)
        self.refuse_lost(log)

    def parts(self, log: RecordFile) -> Iterator[Headers]:
        """Yield the headers that the log has behind those that were read.

        Raises: OSError; what ends the scan, behind the batches before.
        """
        scan = check_batches(log.file, self.end_position, log.end, holds=self._holds)
        for part in scan:
            table = part.table
            self.end_position = _end_of(table)
            self._next_offset = int(table["last_offset"][-1]) + 1 if part.crc_valid[-1] else None
            if self._within is not None:
                _refuse_misplaced(table, part.crc_valid, self._within)
            if self._offsets is not None:
                self._offsets.take(table, part.crc_valid)
            is_small = (table["magic"] == 2) & (table["size_bytes"] < BATCH_HEADER_BYTES)
            yield Headers(table, part.crc_valid, ~is_small, part.held)
        # A scan ends before a batch whose header the file cuts; this ends where the log ends.
        for batch in log.batches(scan.end_position):
            table = np.zeros(1, BATCH_DTYPE)
            table["position"], table["size_bytes"] = batch.position, batch.size_bytes
            table["magic"] = batch.magic
            self.end_position = batch.position + batch.size_bytes
            self._next_offset = None
            yield Headers(table, np.zeros(1, np.bool_), np.zeros(1, np.bool_))

    def refuse_lost(self, log: RecordFile) -> None:
        """Raise CorruptRecordError if the log, and what lies beside it, show that offsets are gone.

        Or that they are there twice.
        """
        if self._offsets is None:
            return
        found = self._offsets.errors()
        base, next_offset = self._unit.base_offset, self._next_offset
        if base is not None and next_offset is not None:
            end = LogEnd(log.file, base, next_offset, self.end_position, log.end)
            if error := why_short(end, self._unit.next_base_offset, self._files):
                found.append(error)
        refuse_all(found)


def named_segment(unit: Unit, request: Request) -> Unit | None:
    """Return the segment of a log, if segments were left out by their offsets; None if not."""
    is_chosen = asks_for_offsets(request) and unit.base_offset is not None
    return unit if is_chosen and unit.offsets is not None else None


def _refuse_misplaced(table: NDArray[np.void], crc_valid: NDArray[np.bool_], unit: Unit) -> None:
    """Raise CorruptRecordError at a sound batch whose offsets are not those of the segment.

    `Unit.offsets` chose which segments are read. If they are wrong, wanted rows may lie in another.
    """
    assert unit.offsets is not None
    first, end = unit.offsets
    is_misplaced = (table["last_offset"] < first) | (table["last_offset"] > end - 1)
    rows = np.flatnonzero(is_misplaced & crc_valid)
    if len(rows):
        row = table[int(rows[0])]
        raise CorruptRecordError(
            f"a batch up to offset {row['last_offset']} does not belong here by the names and the"
            " first batches of the segments, which say where to look for offsets; without a"
            " condition on offsets all are read",
            path=unit.path,
            position=int(row["position"]),
        )


def refuse_left_over(log: RecordFile, end_position: int) -> None:
    """Raise CorruptRecordError if the log continues after its last whole batch."""
    left = log.end - end_position
    may_be_zeros = isinstance(log, LogAsFound)
    if left and not (may_be_zeros and holds_zeros(log.file, end_position, log.end)):
        raise CorruptRecordError(
            f"{plural(left, 'byte')} behind the last whole batch",
            path=log.name,
            position=end_position,
        )


def _end_of(table: NDArray[np.void]) -> int:
    return int(table["position"][-1] + table["size_bytes"][-1])


def first_position(unit: Unit, request: Request, files: Files) -> int:
    """Return where to begin to read for the pushed filters: 0, or a batch that the index names.

    A job that is to fail on damage begins at 0, since it is asked for all of it.
    """
    columns = TABLES[request.table].offset_columns
    least = max((request.filters.range(column).low for column in columns), default=0)
    if request.on_damage == FAIL or unit.base_offset is None or least <= unit.base_offset:
        return 0
    return start_position(unit.path, unit.base_offset, least, None, files)


def is_too_old(unit: Unit, request: Request, column: str, files: Files) -> bool:
    """Return whether the time index of a closed segment says that no record is young enough.

    Only where the request trusts it: an index that lost its end says less than there is.
    """
    least = request.filters.range(column).low
    if not request.trust_time_index or unit.next_base_offset is None or least <= 0:
        return False
    try:
        index = open_index(TimeIndex, unit.sibling(".timeindex"), unit.base_offset or 0, files)
    except (OSError, SegproofError):
        return False
    return index is not None and 0 < index.last_entry.timestamp < least
