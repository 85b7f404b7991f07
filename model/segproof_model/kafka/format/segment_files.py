# SPDX-License-Identifier: Apache-2.0
"""The four files of a segment, as files: opened, checked, flushed, closed, renamed, deleted.

Upstream: Kafka 4.4.0, LogSegment. Otherwise: log_segment_releases, log_segment_deviations.
Layout: a log (record_file), an offset, a time and a transaction index, of one base offset.
Laws: SEG-43 to SEG-49, FILE-3 to FILE-5.
Not covered: a `-future` directory whose files were moved away.
"""

from collections.abc import Iterable
from typing import Any

from segproof_model.kafka.format.compression import NO_CODECS, Codecs
from segproof_model.kafka.format.lazy_index import LazyIndex
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.kafka.format.time_index import TimeIndex, TimestampOffset
from segproof_model.kafka.format.transaction_index import TransactionIndex
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refusal, refuse


class SegmentFiles(State):
    """The files of a segment, and what is remembered beside them."""

    def __init__(
        self,
        files: Files,
        dir: str,  # noqa: A002 - the name that Kafka gives it
        base_offset: int,
        config: LogConfig,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        file_suffix: str = "",
        *,
        codecs: Codecs = NO_CODECS,
        modified_ms: int | None = None,
        roll_jitter_ms: int = 0,
    ) -> None:
        """Open or create a segment; `dir` is the name of a directory or empty (FILE-4, SEG-49).

        `modified_ms`: when a log that was there had last changed; None: now.
        """
        kinds = (".log", ".index", ".timeindex", ".txnindex")
        stem = f"{dir}/" if dir else ""
        names = [stem + segment_file_name(base_offset, kind + file_suffix) for kind in kinds]
        self.files, self.base_offset, self.config = files, base_offset, config
        given = file_already_exists, init_file_size, preallocate
        self.log = self.kind(RecordFile)(
            files, names[0], True, *given, codecs=codecs, modified_ms=modified_ms
        )
        lazy, size = self.kind(LazyIndex), config.segment_index_bytes
        self.lazy_offset_index: LazyIndex[OffsetIndex] = lazy(
            files, self.kind(OffsetIndex), names[1], base_offset, size
        )
        self.lazy_time_index: LazyIndex[TimeIndex] = lazy(
            files, self.kind(TimeIndex), names[2], base_offset, size
        )
        self.txn_index = self.kind(TransactionIndex)(files, names[3], base_offset)
        self.created_ms = files.now_ms
        """When the segment was opened, or last cut to nothing."""
        self.roll_jitter_ms = roll_jitter_ms
        self.bytes_since_last_index_entry = 0
        self.rolling_based_timestamp: int | None = None
        """The timestamp that the age is counted from, once it was asked for."""
        self.max_timestamp_and_offset_so_far: TimestampOffset | None = None
        """The largest timestamp with its offset; None before its first use."""

    @property
    def size(self) -> int:
        """Logical size of the log in bytes."""
        return self.log.size

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index, loaded by its first use."""
        return self.lazy_offset_index.get()

    @property
    def time_index(self) -> TimeIndex:
        """The time index, loaded by its first use."""
        return self.lazy_time_index.get()

    def parts(self) -> Iterable[Any]:
        """Return the log, the offset, time and transaction index."""
        return self.log, self.lazy_offset_index, self.lazy_time_index, self.txn_index

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the log, the offset, time and transaction index."""
        return tuple([part.name for part in self.parts()])

    def has_suffix(self, suffix: str) -> bool:
        """Return whether the names of all four files end with `suffix`."""
        return all(name.endswith(suffix) for name in self.names)

    @property
    def last_modified(self) -> int:
        """When the bytes of the log last changed, in ms since 1970; 0 if the log is gone."""
        return self.log.modified_ms if self.log.name in self.files else 0

    def set_last_modified(self, ms: int) -> None:
        """Set the time of modification of the log and both indexes, which must all be there."""
        log, *indexes, _ = self.names
        if log not in self.files:
            refuse(ErrorKind.FILE_NOT_FOUND)
        self.log.modified_ms = ms
        if any(name not in self.files for name in indexes):
            refuse(ErrorKind.FILE_NOT_FOUND)

    def resize_indexes(self, size: int) -> None:
        """Give both indexes this many bytes."""
        self.offset_index.resize(size)
        self.time_index.resize(size)

    def sanity_check(self, time_index_file_newly_created: bool) -> None:
        """Refuse files that cannot be those of a segment (SEG-43)."""
        if self.lazy_offset_index.name not in self.files:
            refuse(ErrorKind.FILE_NOT_FOUND)
        if time_index_file_newly_created:
            self.time_index.resize(0)
        self.txn_index.sanity_check()

    def flush(self) -> None:
        """Make all four files durable; indexes that are not loaded are loaded (SEG-48)."""
        self.log.flush()
        self.offset_index.flush()
        self.time_index.flush()
        self.txn_index.flush()

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """Rename log, offset, time and transaction index, in this order (SEG-46).

        A name that does not end with the old suffix raises invalid-argument and ends it.
        """
        for part in self.parts():
            if not part.name.endswith(old_suffix):
                refuse(ErrorKind.INVALID_ARGUMENT)
            part.rename_to(part.name.removesuffix(old_suffix) + new_suffix)

    def close(self) -> None:
        """End the use of the segment; no file is changed (SEG-44).

        Nothing is written or trimmed: the log manager does that before, by
        `on_become_inactive_segment`.
        """
        self.close_parts()

    def close_parts(self) -> None:
        """Close every part, up to the first that fails."""
        self.lazy_offset_index.close()
        self.lazy_time_index.close()
        self.log.close()
        self.txn_index.close()

    def close_handlers(self) -> None:
        """Give every file up as it is (SEG-45)."""
        refusal(self.lazy_offset_index.close_handler)
        refusal(self.lazy_time_index.close_handler)
        self.log.is_open = False
        self.txn_index.close()

    def delete_if_exists(self) -> None:
        """Remove all four files; a missing one is no error (SEG-47)."""
        errors = [refusal(part.delete_if_exists) for part in self.parts()]
        for error in errors:
            if error is not None:
                raise error
