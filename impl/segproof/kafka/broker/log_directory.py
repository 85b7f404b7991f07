# SPDX-License-Identifier: Apache-2.0
"""The directory of one log: how its segments are opened, and what waits there to be removed.

Upstream: Kafka 4.3.1: LocalLog.deleteSegmentFiles, UnifiedLog.deleteProducerSnapshots.
Laws: FILE-5.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial

from segproof.closing import attempt_all, undone_if_it_fails
from segproof.errors import ReadOnlyError
from segproof.files import Files
from segproof.kafka.log_config import LogConfig
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.segment_names import (
    DELETED_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    segment_file_name,
)
from segproof.kafka.segments.log_segment import LogSegment
from segproof.kafka.write_format import WriteFormat


class LogDirectory:
    """One log's directory, how its segments are opened, and what waits there to be removed."""

    def __init__(
        self,
        dir: str,  # noqa: A002 -- Kafka's name
        config: LogConfig,
        *,
        writable: bool,
        files: Files,
        time: Callable[[], int],
        write_format: WriteFormat,
        draw: Callable[[], int],
    ) -> None:
        self.dir = dir
        self.writable = writable
        """Whether the log may be changed."""
        self.config = config
        self.files = files
        self.time = time
        self._write_format = write_format
        self._draw = draw
        self._pending: list[tuple[int, LogSegment | str]] = []

    def path(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.dir, name)

    def check_writable(self) -> None:
        """Return if the log may be changed. Raises: ReadOnlyError."""
        if not self.writable:
            raise ReadOnlyError(
                "the log was opened for reading",
                path=self.dir,
                hint="open it with writable=True",
            )

    def sync(self) -> None:
        """Make the names in the directory durable."""
        self.files.sync_directory(self.dir or ".")

    def new_segment(
        self, base_offset: int, file_already_exists: bool = False, file_suffix: str = ""
    ) -> LogSegment:
        """Open a segment that exists, or make a new one, preallocated where that is wanted."""
        config = self.config
        is_preallocated = config.preallocate and not file_already_exists
        return LogSegment.open(
            self.dir,
            base_offset,
            config,
            file_already_exists,
            config.segment_bytes if is_preallocated else 0,
            is_preallocated,
            file_suffix,
            writable=self.writable,
            create=self.writable and not file_already_exists,
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
            self.dir,
            producer_id_expiration_ms=self.config.producer_id_expiration_ms,
            max_transaction_timeout_ms=self.config.max_transaction_timeout_ms,
            writable=self.writable,
            files=self.files,
        )

    def remove_files_of_segment(self, base_offset: int, suffix: str = "") -> None:
        """Remove the files that a segment would have."""
        for kind in SEGMENT_SUFFIXES:
            self.files.remove(self.path(segment_file_name(base_offset, kind + suffix)))

    # --- removing later

    def delete_segment_files(self, segments: Iterable[LogSegment]) -> None:
        """Rename the files of segments to `.deleted`, durably; they are removed after the delay.

        In the order given: what a crash between two of them leaves must be a log without a hole.
        """
        marked = list(segments)
        due = self.time() + self.config.file_delete_delay_ms
        # Where it fails: nobody else may know them any more.
        with undone_if_it_fails(*(segment.close_handlers for segment in marked)):
            for segment in marked:
                if not segment.has_suffix(DELETED_SUFFIX):
                    segment.change_file_suffixes("", DELETED_SUFFIX)
                self._pending.append((due, segment))
        if marked:
            self.sync()

    def delete_producer_snapshots(
        self, producers: ProducerStateManager, segments: Iterable[LogSegment]
    ) -> None:
        """Rename the snapshots at the bases of segments; they are removed after the delay."""
        due = self.time() + self.config.file_delete_delay_ms
        for segment in segments:
            offset = producers.remove_and_mark_snapshot_for_deletion(segment.base_offset)
            if offset is not None:
                name = segment_file_name(offset, SNAPSHOT_SUFFIX + DELETED_SUFFIX)
                self._pending.append((due, self.path(name)))

    def delete_due_files(self, now: int | None = None) -> int:
        """Remove what has waited long enough by the time `now`, None: all; return how many.

        What can't be removed waits on. Raises: the first error.
        """
        ready = [waiting for waiting in self._pending if now is None or waiting[0] <= now]
        attempt_all(*(partial(self._remove_waiting, waiting) for waiting in ready))
        return len(ready)

    def _remove_waiting(self, waiting: tuple[int, LogSegment | str]) -> None:
        _, what = waiting
        if isinstance(what, str):
            self.files.remove(what)
        else:
            what.delete_if_exists()
        self._pending.remove(waiting)

    def close_pending(self) -> None:
        """Close what waits to be removed; the files stay, and the next loading removes them."""
        for _, what in self._pending:
            if not isinstance(what, str):
                what.close_handlers()
