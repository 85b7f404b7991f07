# SPDX-License-Identifier: Apache-2.0
"""The new logs of a partition: batches copied as their fates say. It decides nothing.

Laws: SEG-20.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from segproof.errors import SegproofError
from segproof.files import File, Files, ReadOnlyFile
from segproof.integers import INT32_MAX
from segproof.kafka.segment_names import segment_file_name
from segproof.rebuilding.kept_files import copy_bytes
from segproof.salvaging.salvaged_partition import SalvagedPartition
from segproof.stretches.kafka.mending import with_proved_header

HEADER_BYTES = 17
"""Bytes of a batch up to its magic, which is the last field that may be written again."""


Copy = Callable[[ReadOnlyFile, int, int, File, int], None]
"""Copies the bytes [start, end) of a file to a position of another one."""


class KeptBatches(NamedTuple):
    """One batch, or batches that touch, that come into a new log."""

    log: int
    """The number of the old log in which they lie."""
    start: int
    end: int
    """Its bytes [start, end) in the old log."""
    first_offset: int
    last_offset: int
    """Offsets that it gets. No batch but the first of a new log is before those so far."""
    batches: int
    records: int
    is_restored: bool
    """Whether its base offset is another one than in the old log."""
    is_mended: bool
    """Whether its size or its magic is, or the offset of a wrapper of magic 0."""
    is_moved: bool
    """Whether they lay at a wrong place."""


class NewLogs:
    """The new logs of one partition, in the directory `target`, which is not there yet.

    What is set aside comes into the file `aside_path`, one batch after another.
    `on_bytes` is called with the number of bytes that were copied, and `copy` copies them.
    """

    def __init__(
        self,
        told: SalvagedPartition,
        target: str,
        aside_path: str,
        files: Files,
        on_bytes: Callable[[int], None],
        copy: Copy = copy_bytes,
    ) -> None:
        self._told, self._target, self._aside_path = told, target, aside_path
        self._files, self._on_bytes, self._copy = files, on_bytes, copy
        self._log: File | None = None
        self._log_bytes = 0
        self._aside: File | None = None
        self._aside_bytes = 0
        self.paths = list[str]()
        self.ranges = list[tuple[int, int]]()
        """The offset in the name of each new log, and the offset after its last batch."""

    def keep(self, old: ReadOnlyFile, row: KeptBatches, base_offset: int) -> None:
        """Copy batches after those so far; `base_offset` is that of the log in which they belong.

        Raises: OSError; SegproofError where the old log ends before them, or where their offsets
        do not come after those so far.
        """
        told = self._told
        if self.paths and row.first_offset <= told.last_offset:
            raise SegproofError(
                f"offset {row.first_offset} would follow offset {told.last_offset} in the new log",
                law="BATCH-3", path=self.paths[-1],
            )  # fmt: skip
        if self._log is None or not self._has_room(row):
            self._begin(row, base_offset)
        assert self._log is not None
        position = self._log_bytes
        self._copy(old, row.start, row.end, self._log, position)
        self._log_bytes += row.end - row.start
        self._on_bytes(row.end - row.start)
        if row.is_restored or row.is_mended:
            self._write_header(row, position)
        self.ranges[-1] = self.ranges[-1][0], row.last_offset + 1
        told.last_offset = row.last_offset
        told.bytes_kept += row.end - row.start
        told.batches += row.batches
        told.records += row.records
        told.restored_batches += row.is_restored
        told.restored_headers += row.is_mended
        told.moved_batches += row.batches * row.is_moved

    def put_aside(self, old: ReadOnlyFile, start: int, end: int, batches: int) -> None:
        """Copy batches into the file of those that fit nowhere. Raises: as `keep`."""
        if self._aside is None:
            self._aside = self._files.open(self._aside_path, writable=True, create=True)
        self._copy(old, start, end, self._aside, self._aside_bytes)
        self._on_bytes(end - start)
        self._aside_bytes += end - start
        self._told.set_aside_batches += batches

    def end_log(self) -> None:
        """Close the new log: what follows comes into another one."""
        if self._log is not None:
            self._log.close()  # what is loaded is made durable, all at once
            self._log = None

    def finish(self) -> None:
        """Make durable what was set aside."""
        self.end_log()
        if self._aside is not None:
            self._aside.sync()

    def close(self) -> None:
        """Close all files."""
        self.end_log()
        if self._aside is not None:
            self._aside.close()

    def _has_room(self, row: KeptBatches) -> bool:
        """Return whether an index has room for a batch: its offset and its place are 32 bits."""
        is_near = row.last_offset - self.ranges[-1][0] <= INT32_MAX
        return is_near and self._log_bytes + row.end - row.start <= INT32_MAX

    def _begin(self, row: KeptBatches, base_offset: int) -> None:
        """Begin a new log. A name says where a segment begins, as far as its batches allow it."""
        told, reached = self._told, self._told.last_offset
        if told.target is None:
            self._files.make_directory(self._target)
            told.target, told.first_offset = self._target, row.first_offset
        is_again = self._log is not None
        self.end_log()
        is_right = reached < base_offset <= row.first_offset and not is_again
        base = base_offset if is_right else row.first_offset
        if self.paths:
            told.lost_between_logs += max(0, base - reached - 1)
        self.paths.append(os.path.join(self._target, segment_file_name(base, ".log")))
        self.ranges.append((base, base))
        self._log, self._log_bytes = self._files.open(self.paths[-1], writable=True, create=True), 0

    def _write_header(self, row: KeptBatches, position: int) -> None:
        assert self._log is not None
        header = bytearray()
        if row.is_mended:
            whole = self._log.pread(row.end - row.start, position)
            header = with_proved_header(whole)[:HEADER_BYTES]
        if row.is_restored:
            header[:8] = row.first_offset.to_bytes(8, "big")
        self._log.pwrite(bytes(header), position)
