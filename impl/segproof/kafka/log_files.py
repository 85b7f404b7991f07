# SPDX-License-Identifier: Apache-2.0
"""The files of one log: names, new segments, files that wait to be removed, splitting a segment.

Mirrors: segproof_model/kafka/broker/local_log.py and segment_replacing.py.
Upstream: Kafka 4.3.1: LocalLog, LogFileUtils, UnifiedLog.splitOverflowedSegment, replaceSegments.
Laws: FILE-1, FILE-2, FILE-5, LOG-19, LOG-20, LOAD-1.
"""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from segproof.errors import IndexStateError, InvalidArgumentError, NumberFormatError
from segproof.files import Files
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_segment import LogSegment
from segproof.kafka.log_segments import LogSegments
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.segment_names import offset_of_name, segment_file_name
from segproof.kafka.write_format import WriteFormat

__all__ = [
    "CLEANED_SUFFIX",
    "DELETED_SUFFIX",
    "SEGMENT_SUFFIXES",
    "SWAP_SUFFIX",
    "LogFiles",
    "SegmentName",
    "parse_name",
    "replace_empty_segment",
    "split_segment",
]

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX = ".deleted", ".cleaned", ".swap"
KEPT_CHECKPOINT_SUFFIX = ".checkpoint.deleted"
"""Of a deleted snapshot of a metadata log, which is not this log's business."""


class SegmentName(NamedTuple):
    """What the name of a segment's file, of a snapshot, or of a file to be removed says."""

    base_offset: int
    kind: str
    """`.log`, `.index`, `.timeindex`, `.txnindex` or `.snapshot`; nothing of one to be removed."""
    suffix: str
    """`.deleted`, `.cleaned`, `.swap` or nothing."""


def parse_name(name: str, folder: str) -> SegmentName | None:
    """Return what a name says, or None for one that a log does not use. Laws: FILE-1, FILE-2.

    Raises: NumberFormatError where the name is that of a segment's file, of a `.cleaned` or a
    `.swap`, and not as Kafka writes it: such a file may be a second one of its offset.
    """
    if name.endswith(DELETED_SUFFIX):
        is_foreign = name.endswith(KEPT_CHECKPOINT_SUFFIX)
        return None if is_foreign else SegmentName(0, "", DELETED_SUFFIX)
    suffix = next((one for one in (SWAP_SUFFIX, CLEANED_SUFFIX) if name.endswith(one)), "")
    plain = name.removesuffix(suffix)
    kinds = (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX)[: len(SEGMENT_SUFFIXES) if suffix else None]
    kind = next((one for one in kinds if plain.endswith(one)), "")
    base_offset = offset_of_name(plain, kind) if kind else None
    if base_offset is not None:
        return SegmentName(base_offset, kind, suffix)
    if kind in SEGMENT_SUFFIXES or suffix:
        raise NumberFormatError(
            "a file of a log whose name is not an offset and a suffix as Kafka writes them",
            law="FILE-2",
            path=os.path.join(folder, name),
            expected="the base offset in 20 digits, -2^63 to 2^63 - 1, and .log or another suffix",
            actual=name[:40],
            hint="move it out of the directory; nothing was changed",
        )
    return None


class LogFiles:
    """One log's directory, how its segments are opened, and what waits there to be removed."""

    def __init__(
        self,
        folder: str,
        config: LogConfig,
        *,
        files: Files,
        time: Callable[[], int],
        write_format: WriteFormat,
        draw: Callable[[], int],
    ) -> None:
        self.folder = folder
        self.config = config
        self.files = files
        self.time = time
        self._write_format = write_format
        self._draw = draw
        self._pending: list[tuple[int, LogSegment | str]] = []

    def path(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.folder, name)

    def sync(self) -> None:
        """Make the names in the directory durable."""
        self.files.sync_directory(self.folder or ".")

    def open_segment(
        self, base_offset: int, *, exists: bool = False, suffix: str = ""
    ) -> LogSegment:
        """Open a segment that exists, or make a new one, preallocated where that is wanted."""
        config = self.config
        is_preallocated = config.preallocate and not exists
        return LogSegment.open(
            self.folder,
            base_offset,
            config,
            exists,
            config.segment_bytes if is_preallocated else 0,
            is_preallocated,
            suffix,
            files=self.files,
            time=self.time,
            write_format=self._write_format,
            roll_jitter_ms=self._jitter_ms(),
        )

    def _jitter_ms(self) -> int:
        limit = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self._draw() % limit if limit else 0

    def new_producer_state(self) -> ProducerStateManager:
        """Return a producer state that knows nothing yet but which snapshots there are."""
        return ProducerStateManager.open(
            self.folder,
            producer_id_expiration_ms=self.config.producer_id_expiration_ms,
            max_transaction_timeout_ms=self.config.max_transaction_timeout_ms,
            files=self.files,
        )

    def remove_leftovers(self, base_offset: int, suffix: str = "") -> bool:
        """Remove what lies where a new segment will be; return whether there was anything."""
        names = [segment_file_name(base_offset, kind + suffix) for kind in SEGMENT_SUFFIXES]
        return sum(self.files.remove(self.path(name)) for name in names) > 0

    # --- removing later

    def mark_deleted(self, segments: Iterable[LogSegment]) -> None:
        """Rename the files of segments to `.deleted`, durably; they are removed after the delay.

        In the order given: what a crash between two of them leaves must be a log without a hole.
        """
        marked = list(segments)
        due = self.time() + self.config.file_delete_delay_ms
        try:
            for segment in marked:
                if not segment.has_suffix(DELETED_SUFFIX):
                    segment.change_file_suffixes("", DELETED_SUFFIX)
                self._pending.append((due, segment))
        except BaseException:
            for segment in marked:  # nobody else may know them any more
                segment.close_handlers()
            raise
        if marked:
            self.sync()

    def mark_snapshots_deleted(
        self, producers: ProducerStateManager, segments: Iterable[LogSegment]
    ) -> None:
        """Rename the snapshots at the bases of segments; they are removed after the delay."""
        due = self.time() + self.config.file_delete_delay_ms
        for segment in segments:
            offset = producers.remove_and_mark_snapshot_for_deletion(segment.base_offset)
            if offset is not None:
                name = segment_file_name(offset, SNAPSHOT_SUFFIX + DELETED_SUFFIX)
                self._pending.append((due, self.path(name)))

    def remove_pending(self, now: int | None = None) -> int:
        """Remove what has waited long enough by the time `now`, None: all; return how many.

        What can't be removed waits on. Raises: the first OSError.
        """
        kept: list[tuple[int, LogSegment | str]] = []
        first: OSError | None = None
        before = len(self._pending)
        for due, what in self._pending:
            if now is not None and due > now:
                kept.append((due, what))
                continue
            try:
                if isinstance(what, str):
                    self.files.remove(what)
                else:
                    what.delete_if_exists()
            except OSError as error:
                first = first or error
                kept.append((due, what))
        self._pending = kept
        if first is not None:
            raise first
        return before - len(kept)

    def close_pending(self) -> None:
        """Close what waits to be removed; the files stay, and the next loading removes them."""
        for _, what in self._pending:
            if not isinstance(what, str):
                what.close_handlers()


# --- splitting


def split_segment(
    files: LogFiles, segments: LogSegments, segment: LogSegment
) -> tuple[list[LogSegment], list[LogSegment]]:
    """Put segments without overflow in place of one that has it.

    Return the new ones, and those removed whose base offset no new one has. The new files are whole
    and durable before one of them gets its name, so a crash at any point leaves the old segment, or
    swap files which loading completes. Laws: LOG-19, LOG-20.

    Raises: InvalidArgumentError for a segment without overflow; IndexStateError for a log that
    ends inside a batch. The old segment stays then.
    """
    if not segment.has_overflow():
        raise InvalidArgumentError(
            "only a segment whose offsets do not fit it is split",
            law="LOG-20",
            path=segment.log.name,
        )
    new: list[LogSegment] = []
    try:
        _copy_into_new(files, segment, new)
    except BaseException:
        for part in new:
            part.delete_if_exists()
        raise
    try:
        return new, _replace(files, segments, new, segment)
    except BaseException:
        for part in new:
            part.close_handlers()
        raise


def replace_empty_segment(files: LogFiles, segments: LogSegments, old: LogSegment) -> None:
    """Put a new segment with the same base offset in the place of an empty one.

    The new one is there, as a swap file, before the old one goes: without any segment of this base
    offset a log that a crash leaves would end earlier, or begin anew. Raises: OSError.
    """
    files.remove_leftovers(old.base_offset, CLEANED_SUFFIX)
    new = files.open_segment(old.base_offset, suffix=CLEANED_SUFFIX)
    try:
        _replace(files, segments, [new], old)
    except BaseException:
        new.close_handlers()
        raise


def _copy_into_new(files: LogFiles, segment: LogSegment, new: list[LogSegment]) -> None:
    source, position = segment.log, 0
    while position < source.size_in_bytes():
        first = next(source.batches(position), None)
        copied = 0
        if first is not None:
            files.remove_leftovers(first.base_offset, CLEANED_SUFFIX)
            new.append(files.open_segment(first.base_offset, suffix=CLEANED_SUFFIX))
            copied = new[-1].append_from_file(source, position)
        if not copied:
            raise IndexStateError(
                "the log to be split ends inside a batch",
                law="LOG-19",
                path=source.name,
                position=position,
                hint="recover the segment first",
            )
        position += copied
    for part in new:
        part.on_become_inactive_segment()
        part.flush()
        part.set_last_modified(segment.last_modified)
    if sum(part.size for part in new) != source.size_in_bytes():
        raise IndexStateError("the parts have not the size of the whole", law="LOG-19")


def _replace(
    files: LogFiles, segments: LogSegments, new: list[LogSegment], old: LogSegment
) -> list[LogSegment]:
    """Let the new segments take the place of the old one."""
    files.sync()
    for part in reversed(new):
        part.change_file_suffixes(CLEANED_SUFFIX, SWAP_SUFFIX)
    files.sync()
    bases = {part.base_offset for part in new}
    is_loaded = segments.get(old.base_offset) is old
    if old.base_offset not in bases:
        segments.remove(old.base_offset)
    for part in reversed(new):
        segments.add(part)
    if is_loaded or old.base_offset not in bases:
        files.mark_deleted([old])
    else:
        # While loading nobody reads it: the new segment of its name takes its place.
        old.close_handlers()
    for part in new:
        part.change_file_suffixes(SWAP_SUFFIX, "")
    files.sync()
    return [] if old.base_offset in bases else [old]
