# SPDX-License-Identifier: Apache-2.0
"""Kafka's LogSegment as the harness calls it.

Upstream: kafka.log.LogSegment up to 3.6, the same name in org.apache.kafka.storage.internals.log
since.

The time at which the log's file was modified is that of the subject's clock: whatever the real
class did to the file is dated by it afterwards.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from jpype import JBoolean, JException, JInt, JLong

from segproof_harness.releases.jvm import Adapter, invoked, named_alike, reflected
from segproof_harness.releases.kafka import answers
from segproof_harness.releases.kafka.classes import (
    close_handlers_name,
    get,
    largest_record,
    optional,
    some,
    storage_class,
)
from segproof_harness.releases.kafka.log_environment import java_config, java_time
from segproof_harness.releases.kafka.records import (
    KINDS,
    is_of_block,
    may_be_of_block,
    record_class,
    trips_over_null_record,
    wrapped,
)
from segproof_harness.releases.kafka.recovery_arguments import make_epochs, make_producers
from segproof_harness.releases.kafka.segment_arguments import opened_by_parts, told_of_append
from segproof_harness.structures.kafka.segment_operations import show_producers
from segproof_harness.structures.outcomes import Outcome
from segproof_model.kafka.format.log_segment import RollParams
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.kafka.format.transaction_index import CompletedTxn
from segproof_model.language.integers import INT32_MAX

OURS = frozenset({"append_many", "read_many", "find_offset_by_timestamp_many"})
"""What the real class has not in any release."""
TRANSACTIONS_SINCE = (0, 11)
"""The first version with producers, transactions and leader epochs."""
ALONE = (
    (TRANSACTIONS_SINCE, {"update_txn_index", "collect_aborted_txns", "fetch_upper_bound_offset"}),
    ((1, 1), {"close_handlers", "resize_indexes", "sanity_check", "should_roll"}),
    ((2, 0), {"append_from_file", "has_overflow"}),
    ((2, 4), {"get_first_batch_timestamp"}),
    ((2, 8), {"largest_record_timestamp"}),
    ((3, 4), {"has_suffix"}),
)
"""Since which version there are some operations."""
NO_PRODUCERS = ((), (), (), 0)
"""What is shown of an empty producer state."""
LAST_EPOCH = ((INT32_MAX, 0),)
"""A cache that knows this epoch is taught no other one."""


class LogSegment(Adapter):
    """The segment."""

    kinds: ClassVar[Mapping[str, str]] = {
        **KINDS,
        "java.lang.NullPointerException": "unmapped",
        "java.lang.OutOfMemoryError": "invalid-record",
        "kafka.common.KafkaStorageException": "file-not-found",
    }
    """0.11 wraps the error of a rename, which is that of a missing file. Room is used up for a
    record that says to be large, where ours finds too few bytes; in 0.10 for a whole batch."""

    own_calls = frozenset({"append_from_file", "recover"})
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **named_alike("size", "last_modified", "largest_timestamp", "has_overflow"),
        **named_alike("flush", "has_suffix"),
        "read_next_offset": ("readNextOffset", "nextOffset"),
        "delete_if_exists": ("deleteIfExists", "delete"),
    }
    """The later names are those up to 1.0."""

    _appended: bytes
    """What is being appended; after an error it is what may be to blame."""
    _clock: ClassVar[Callable[[], int]]
    """That of the segment which is open."""
    _java_time: ClassVar[Any]
    _kind: ClassVar[Any]
    _scratch: ClassVar[str]
    _taught_nothing: ClassVar[Any]
    """A cache of epochs that learns nothing, and so stays as it is."""
    _open_one: ClassVar["LogSegment | None"]
    """The segment that a crash may have left open."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "jvm"):
            return
        number = cls.jvm.release.number
        absent = [names for since, names in ALONE if number < since]
        cls.left_out = OURS.union(*absent)
        if number < TRANSACTIONS_SINCE:
            cls.kinds = {**cls.kinds, "java.lang.OutOfMemoryError": "out-of-memory"}
        cls._java_time = java_time(lambda: cls._clock())
        cls._kind = storage_class(cls.jvm, "LogSegment")
        cls._scratch = tempfile.mkdtemp(prefix="segproof-state-")
        if number >= TRANSACTIONS_SINCE:
            cls._taught_nothing = make_epochs(cls.jvm, f"{cls._scratch}/no-epochs", LAST_EPOCH)
        cls._open_one = None

    @classmethod
    def open(
        cls,
        folder: str,
        *,
        create: bool,
        config: Any,
        files: Any,
        time: Any,
        write_format: Any,
        **arguments: Any,
    ) -> "LogSegment":
        """Open the segment."""
        return cls({**arguments, "directory": folder, "config": config, "clock": time})

    @classmethod
    def outcome_of_error(cls, error: Exception) -> Outcome:
        """Return the outcome of an exception.

        In the middle of a block that can't be inflated to its end Kafka may meet a bad record
        first; ours inflates first, and says just that.
        """
        outcome = super().outcome_of_error(error)
        segment = cls._open_one
        if segment is None or outcome.error == "out-of-memory":
            return outcome
        appended, segment._appended = segment._appended, b""
        if outcome.error == "unmapped" and trips_over_null_record(
            cls.jvm, segment._real, segment._log_bytes()
        ):
            return replace(outcome, error="null")
        is_possible = may_be_of_block(outcome.error, outcome.detail)
        if not is_possible or not segment._is_of_block(outcome, appended):
            return outcome
        return replace(outcome, error="kafka-error")

    def _is_of_block(self, outcome: Outcome, data: bytes) -> bool:
        """Return whether an error is that of a block that can't be inflated to its end.

        The blocks are those of `data`, or without any those of the log.
        """
        return is_of_block(self.jvm, outcome.detail or "", data or self._log_bytes())

    def _log_bytes(self) -> bytes:
        with suppress(FileNotFoundError):
            return Path(self._path).read_bytes()
        return b""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        before = type(self)._open_one
        if before is not None:
            before.give_up()
        type(self)._clock = arguments["clock"]
        name = segment_file_name(arguments["base_offset"], ".log") + arguments["file_suffix"]
        self._path = f"{arguments['directory']}/{name}"
        self._modified_ns = -1
        self._appended = b""
        with suppress(FileNotFoundError):
            self._modified_ns = os.stat(self._path).st_mtime_ns
        self._real = self._dated(self._opened, arguments)
        type(self)._open_one = self
        if arguments["roll_jitter_ms"] and self.jvm.release.number >= (1, 1):
            self.jvm.set_field(self._real, "rollJitterMs", JLong(arguments["roll_jitter_ms"]))

    def _opened(self, arguments: Mapping[str, Any]) -> Any:
        if self.jvm.release.number < (1, 1):
            return opened_by_parts(self.jvm, self._java_time, arguments)
        return self._kind.open(
            self.jvm.file(arguments["directory"]),
            JLong(arguments["base_offset"]),
            java_config(self.jvm, arguments["config"]),
            self._java_time,
            JBoolean(arguments["file_already_exists"]),
            JInt(arguments["init_file_size"]),
            JBoolean(arguments["preallocate"]),
            arguments["file_suffix"],
        )

    def give_up(self) -> None:
        """Close what a crash has left open, and change no file.

        In some releases closing the handlers loads the indexes, which makes their files; the
        mappings are left to the garbage collector there.
        """
        closes_only = not (2, 3) <= self.jvm.release.number < (2, 6)
        with suppress(JException):
            if closes_only and self.jvm.release.number >= (1, 1):
                self.close_handlers()
            else:
                self._real.log().channel().close()

    def _dated(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call, and let the log's file be modified when the clock says, if it was modified."""
        try:
            return call(*arguments)
        finally:
            self._date()

    def _date(self) -> None:
        with suppress(FileNotFoundError):
            if os.stat(self._path).st_mtime_ns != self._modified_ns:
                self._modified_ns = type(self)._clock() * 10**6
                os.utime(self._path, ns=(self._modified_ns, self._modified_ns))

    def _field(self, name: str) -> Any:
        """Return what a private field holds."""
        return self.jvm.field(self._real, name)

    def _call(self, name: str) -> Any:
        """Call a method that is not public in every release."""
        if hasattr(self._real, name):
            return getattr(self._real, name)()
        return invoked(reflected(self._kind, name), self._real)

    # --- accessors -----------------------------------------------------------------------------

    created_ms = property(lambda self: int(self._field("created")))
    bytes_since_last_index_entry = property(
        lambda self: int(self._field("bytesSinceLastIndexEntry"))
    )

    @property
    def rolling_based_timestamp(self) -> int | None:
        """The private field, or None if it is empty."""
        found = optional(self._field("rollingBasedTimestamp"))
        return None if found is None else int(found)

    @property
    def _maximum(self) -> Any:
        """The largest timestamp with its offset, where it is one object."""
        for name in ("readMaxTimestampAndOffsetSoFar", "maxTimestampAndOffsetSoFar"):
            if hasattr(self._real, name):
                return getattr(self._real, name)()
        return None

    def max_timestamp_so_far(self) -> int:
        """Call maxTimestampSoFar."""
        return int(self._call("maxTimestampSoFar"))

    def offset_of_max_timestamp_so_far(self) -> int:
        """Return the offset of the largest timestamp, whatever it is called."""
        found = self._maximum
        if found is not None:
            return int(get(found, "offset"))
        names = ("offsetOfMaxTimestampSoFar", "offsetOfMaxTimestamp")
        methods = {str(one.getName()) for one in self._kind.class_.getDeclaredMethods()}
        return int(self._call(next(name for name in names if name in methods)))

    def largest_record_timestamp(self) -> int | None:
        """Call largestRecordTimestamp."""
        found = optional(self._real.largestRecordTimestamp())
        return None if found is None else int(found)

    # --- writing -------------------------------------------------------------------------------

    def append(
        self,
        largest_offset: int,
        records: bytes,
        largest_timestamp: int | None,
        shallow_offset_of_max_timestamp: int | None,
    ) -> None:
        """Call append, with what its release asks of the caller."""
        memory = record_class(self.jvm, "MemoryRecords").readableRecords(wrapped(self.jvm, records))
        arguments: list[Any] = [JLong(largest_offset)]
        if not self._appends_each_batch:
            known = largest_timestamp, shallow_offset_of_max_timestamp
            arguments = told_of_append(self.jvm, largest_offset, records, *known)
        self._appended = records
        self._dated(self._real.append, *arguments, memory)
        self._appended = b""

    @cached_property
    def _appends_each_batch(self) -> bool:
        """Whether append looks at each batch, and so is not told what is the largest."""
        number = self.jvm.release.number
        return number >= (4, 0, 1) or (3, 9, 1) <= number < (4, 0, 0)

    def append_from_file(self, records: bytes, start: int) -> int:
        """Call appendFromFile with a file outside of the directory."""
        path = Path(self._scratch, "source.log")
        path.write_bytes(records)
        self._appended = records[start:]
        source = record_class(self.jvm, "FileRecords").open(
            self.jvm.file(str(path)), JBoolean(False), JBoolean(True), JInt(0), JBoolean(False)
        )
        try:
            count = int(self._dated(self._real.appendFromFile, source, JInt(start)))
        finally:
            source.close()
        self._appended = b""
        return count

    def truncate_to(self, offset: int) -> int:
        """Call truncateTo."""
        self._load_whole_maximum()
        return int(self._dated(self._real.truncateTo, JLong(offset)))

    def recover(self, with_producers: bool, epochs: tuple[tuple[int, int], ...] | None) -> Any:
        """Call recover, and show what it has taught.

        There always is a producer state, empty at first. Where no epochs are given, the cache of
        them learns nothing, and is not shown. A release that has neither teaches them nothing.
        """
        if self.jvm.release.number < TRANSACTIONS_SINCE:
            removed = int(self._dated(self._real.recover, JInt(INT32_MAX)))
            return removed, NO_PRODUCERS, epochs
        self._load_whole_maximum()
        taught = make_producers(self.jvm, self._state_folder, self._java_time)
        cache = self._taught_nothing
        if epochs is not None:
            cache = make_epochs(self.jvm, f"{self._scratch}/epochs", epochs)
        removed = int(self._dated(self._real.recover, taught, self._as_option(cache)))
        known = show_producers(answers.producers(self.jvm, taught))
        return removed, known, None if epochs is None else answers.epochs(cache).entries

    def _load_whole_maximum(self) -> None:
        """Load the largest timestamp and its offset, where one of them is known.

        From 2.3 up to 2.8 they are loaded one by one, and what changes the time index comes in
        between. Nobody needs to know which of them was asked for before.
        """
        if (2, 3) <= self.jvm.release.number < (3, 0):
            names = "_maxTimestampSoFar", "_offsetOfMaxTimestampSoFar"
            known = [self._field(name).isDefined() for name in names]
            if any(known):
                self.max_timestamp_so_far()
                self.offset_of_max_timestamp_so_far()

    @cached_property
    def _state_folder(self) -> str:
        folder = Path(self._scratch, "state")
        folder.mkdir(exist_ok=True)
        return str(folder)

    def _as_option(self, value: Any) -> Any:
        """Return a value as recover takes it."""
        number = self.jvm.release.number
        if number >= (4, 0):
            return value
        if number >= (3, 7):
            return self.jvm.java("java.util.Optional").ofNullable(value)
        return some(self.jvm, value)

    def update_txn_index(self, completed_txn: CompletedTxn, last_stable_offset: int) -> None:
        """Call updateTxnIndex."""
        producer_id, first_offset, last_offset, is_aborted = completed_txn
        txn = storage_class(self.jvm, "CompletedTxn")(
            JLong(producer_id), JLong(first_offset), JLong(last_offset), JBoolean(is_aborted)
        )
        self._real.updateTxnIndex(txn, JLong(last_stable_offset))

    def resize_indexes(self, size: int) -> None:
        """Call resizeIndexes."""
        self._load_whole_maximum()
        self._real.resizeIndexes(JInt(size))

    def on_become_inactive_segment(self) -> None:
        """Call onBecomeInactiveSegment."""
        self._dated(self._real.onBecomeInactiveSegment)

    # --- reading -------------------------------------------------------------------------------

    def translate_offset(self, offset: int, starting_file_position: int) -> Any:
        """Call translateOffset."""
        method = reflected(self._kind, "translateOffset", JLong, JInt)
        given = JLong(offset), JInt(starting_file_position)
        return answers.found_place(invoked(method, self._real, *given))

    def read(
        self, start_offset: int, max_size: int, max_position: int | None, min_one_message: bool
    ) -> answers.Fetched | None:
        """Call read. Where the largest position can't be unknown, nothing is asked for instead."""
        number = self.jvm.release.number
        if max_position is None and number < (3, 8):
            max_size, min_one_message, max_position = min(max_size, 0), False, 0
        position: Any = JLong(max_position or 0)
        if number >= (3, 8):
            boxed = None if max_position is None else self.jvm.java("java.lang.Long")(position)
            position = self.jvm.java("java.util.Optional").ofNullable(boxed)
        before = [some(self.jvm, None)] if number < (2, 4) else []
        found = self._real.read(
            JLong(start_offset), *before, JInt(max_size), position, JBoolean(min_one_message)
        )
        return None if found is None else answers.fetched(self.jvm, found)

    def find_offset_by_timestamp(self, timestamp_ms: int, starting_offset: int) -> Any:
        """Call findOffsetByTimestamp."""
        takes_offset = self.jvm.release.number >= (0, 11)
        more = [JLong(starting_offset), *largest_record(self.jvm)] if takes_offset else []
        found = self._real.findOffsetByTimestamp(JLong(timestamp_ms), *more)
        return answers.timestamp_and_offset(found)

    def fetch_upper_bound_offset(self, start_offset_position: Any, fetch_size: int) -> int | None:
        """Call fetchUpperBoundOffset."""
        place = storage_class(self.jvm, "OffsetPosition")(
            JLong(start_offset_position.offset), JInt(start_offset_position.position)
        )
        found = optional(self._real.fetchUpperBoundOffset(place, JInt(fetch_size)))
        return None if found is None else int(found)

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> Any:
        """Call collectAbortedTxns."""
        bounds = JLong(fetch_offset), JLong(upper_bound_offset)
        return answers.collected(self._real.collectAbortedTxns(*bounds))

    # --- rolling -------------------------------------------------------------------------------

    def should_roll(self, roll_params: RollParams) -> bool:
        """Call shouldRoll; up to 2.0 the segment itself knows the limits."""
        limit_ms, limit_bytes, timestamp, offset, size, now = roll_params
        if self.jvm.release.number < (2, 1):
            self.jvm.set_field(self._real, "maxSegmentMs", JLong(limit_ms))
            self.jvm.set_field(self._real, "maxSegmentBytes", JInt(limit_bytes))
            return bool(
                self._real.shouldRoll(JInt(size), JLong(timestamp), JLong(offset), JLong(now))
            )
        params = storage_class(self.jvm, "RollParams")(
            JLong(limit_ms),
            JInt(limit_bytes),
            JLong(timestamp),
            JLong(offset),
            JInt(size),
            JLong(now),
        )
        return bool(self._real.shouldRoll(params))

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        """Call timeWaitedForRoll."""
        return int(self._real.timeWaitedForRoll(JLong(now), JLong(message_timestamp)))

    def get_first_batch_timestamp(self) -> int:
        """Call getFirstBatchTimestamp."""
        return int(self._call("getFirstBatchTimestamp"))

    # --- files ---------------------------------------------------------------------------------

    def sanity_check(self, time_index_file_newly_created: bool) -> None:
        """Call sanityCheck."""
        self._load_whole_maximum()
        self._real.sanityCheck(JBoolean(time_index_file_newly_created))

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """Call changeFileSuffixes."""
        try:
            self._real.changeFileSuffixes(old_suffix, new_suffix)
        finally:
            self._path = str(self._real.log().file().getPath())

    def set_last_modified(self, ms: int) -> None:
        """Call setLastModified."""
        name = "setLastModified" if hasattr(self._real, "setLastModified") else "lastModified_$eq"
        try:
            getattr(self._real, name)(JLong(ms))
        finally:
            with suppress(FileNotFoundError):
                self._modified_ns = os.stat(self._path).st_mtime_ns

    def close(self) -> None:
        """Call close."""
        self._dated(self._real.close)

    def close_handlers(self) -> None:
        """Call closeHandlers, since 4.4 closeQuietly."""
        self._call(close_handlers_name(self.jvm))
