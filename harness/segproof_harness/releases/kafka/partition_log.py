# SPDX-License-Identifier: Apache-2.0
"""The log of a partition of Kafka as the harness calls it.

Upstream: org.apache.kafka.storage.internals.log.UnifiedLog since 4.1, kafka.log.UnifiedLog since
3.0, kafka.log.Log before.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import jpype
from jpype import JBoolean, JInt, JLong, JShort

from segproof.errors import InvalidArgumentError
from segproof_harness.releases.jvm import Adapter, kind_of
from segproof_harness.releases.kafka import answers, log_before_0_11
from segproof_harness.releases.kafka.classes import (
    close_handlers_name,
    items,
    optional,
    scala_object,
    some,
    storage_class,
)
from segproof_harness.releases.kafka.log_environment import (
    Scheduler,
    failure_channel,
    java_time,
    new_log,
    stamp,
)
from segproof_harness.releases.kafka.records import (
    RefusedError,
    is_of_block,
    may_be_of_block,
    record_class,
    trips_over_null_record,
    wrapped,
)
from segproof_harness.structures.outcomes import Outcome
from segproof_model.kafka.format.segment_names import segment_file_name

WRAPPERS = ("RecordValidationException", "KafkaStorageException", "UncheckedIOException")
"""Exceptions that only carry another one."""
HIGH_WATERMARK_SINCE = (2, 4)
"""Before, the replica alone knows it, and tells the log; it is told here as the replica does."""
OUT_OF_ORDER = "java.lang.IllegalArgumentException: Out of order offsets"
"""How the error of offsets that do not rise begins before it had a class of its own."""
OLD_KINDS = {
    "java.lang.AssertionError": "invalid-argument",
    "kafka.common.KafkaException": "kafka-error",
}
"""What releases before 2.0 throw instead."""
OFFLINE_RELEASES = ((2, 8), (3,))
"""From which release on, and up to which, a log remembers itself that its directory failed."""
EXPIRY = "PeriodicProducerExpirationCheck"
Answer = TypeVar("Answer")


class PartitionLog(Adapter):
    """The log of a partition."""

    kinds: ClassVar[Mapping[str, str]] = {
        "java.lang.NullPointerException": "unmapped",
        "java.util.NoSuchElementException": "illegal-state",
        "java.lang.UnsupportedOperationException": "illegal-state",
    }
    left_out: ClassVar[frozenset[str]] = frozenset({"close_handlers"})
    """Closing as the end of a process does is part of the next opening after a crash."""
    unobserved: ClassVar[frozenset[str]] = frozenset()
    _knows_high_watermark: ClassVar[bool] = True
    _last: ClassVar["PartitionLog | None"] = None
    """The log that was opened last; what a crash leaves open is closed by the next opening."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        number = cls.jvm.release.number
        cls._knows_high_watermark = number >= HIGH_WATERMARK_SINCE
        if not cls._knows_high_watermark:
            cls.unobserved = frozenset({"high_watermark"})
        if number < (2,):
            cls.left_out = PartitionLog.left_out | {"split_overflowed_segment"}
            cls.kinds = {**PartitionLog.kinds, **OLD_KINDS}
        if cls.is_early():
            cls.left_out = PartitionLog.left_out | log_before_0_11.LEFT_OUT
            cls.unobserved = log_before_0_11.UNOBSERVED
            cls.kinds = {**cls.kinds, **log_before_0_11.KINDS}

    @classmethod
    def is_early(cls) -> bool:
        """Return whether the log is called as before 0.11."""
        return cls.jvm.release.number < log_before_0_11.EARLY

    def __init__(self, directory: str, clock: Callable[[], int], jitter_ms: int | None) -> None:
        self._directory = directory
        self._clock = clock
        self._jitter_ms = jitter_ms
        """What each segment gets instead of what the JVM draws; None where it draws nothing."""
        self._log: Any = None
        self._told_high_watermark = 0
        self._scheduler = Scheduler(self.jvm, clock)
        self._channel = failure_channel(self.jvm)
        self._failed = None
        if self._channel is not None:
            self._failed = self.jvm.field(self._channel, "offlineLogDirs")

    @classmethod
    def open(
        cls,
        directory: str,
        config: Any,
        log_start_offset: int,
        recovery_point: int,
        last_shutdown_clean: bool,
        *,
        files: Any,
        time: Callable[[], int],
        draw: Callable[[], int],
    ) -> Self:
        """Load the log."""
        if PartitionLog._last is not None:
            PartitionLog._last._let_go()
        largest = min(config.segment_jitter_ms, config.segment_ms)
        made = cls(directory, time, draw() % largest if config.segment_jitter_ms else None)
        made._log = made._asked(
            lambda: new_log(
                cls.jvm,
                directory,
                config,
                (log_start_offset, recovery_point),
                last_shutdown_clean,
                time,
                made._scheduler,
                made._channel,
            )
        )
        made._date_parts()
        made._settle()
        PartitionLog._last = made
        if not cls._knows_high_watermark:
            made.update_high_watermark(made.log_start_offset)
        return made

    def _let_go(self) -> None:
        """Close the files as the end of a process does.

        Before 2.8 the logs alone: to close an index there makes it, if it was not yet used.
        """
        with contextlib.suppress(jpype.JException):
            if self.jvm.release.number >= (2, 8):
                getattr(self._log, close_handlers_name(self.jvm))()
            else:
                for segment in self._segments():
                    segment.log().channel().close()
        PartitionLog._last = None

    @classmethod
    def outcome_of_error(cls, error: Exception) -> Outcome:
        """Return the outcome of an exception, or of the one that it carries."""
        inner: Any = error
        while isinstance(inner, jpype.JException):
            if str(inner.getClass().getSimpleName()) not in WRAPPERS:
                break
            has_own = hasattr(inner, "invalidException")
            carried = inner.invalidException() if has_own else inner.getCause()
            if carried is None:
                break
            inner = carried
        outcome = super().outcome_of_error(inner)
        if (outcome.detail or "").startswith(OUT_OF_ORDER):
            return replace(outcome, error="offset-order")
        if cls._is_of_block(outcome):
            return replace(outcome, error="kafka-error")
        return outcome

    @classmethod
    def _is_of_block(cls, outcome: Outcome) -> bool:
        """Return whether an error is that of a block of the log that can't be inflated to its end.

        Kafka may meet a bad record in the middle of it first; ours inflates first.
        """
        log = PartitionLog._last
        if log is None or not may_be_of_block(outcome.error, outcome.detail):
            return False
        files = Path(log._directory).glob("*.log")
        return any(is_of_block(cls.jvm, outcome.detail or "", one.read_bytes()) for one in files)

    # --- around every call ---------------------------------------------------------------------

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Ask, and put the clock's time, the drawn jitter and a sound directory in place."""
        try:
            return ask()
        finally:
            self._settle()

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the log, in the same way."""
        return self._asked(lambda: getattr(self._log, name)(*arguments))

    def _settle(self) -> None:
        stamp(self._directory, self._clock())
        if self._failed is not None:
            self._failed.clear()
        if self._log is None:
            return
        first, end = OFFLINE_RELEASES
        if first <= self.jvm.release.number < end:
            self.jvm.set_field(self._log, "logDirOffline", JBoolean(False))
        if self._jitter_ms is None:
            return
        for segment in self._segments():
            if segment.rollJitterMs() != self._jitter_ms:
                self.jvm.set_field(segment, "rollJitterMs", JLong(self._jitter_ms))

    def _date_parts(self) -> None:
        """Give parts of a split our time: Kafka makes them with the clock of the system."""
        java = self.jvm.java("org.apache.kafka.common.utils.Time")
        for segment in self._segments():
            with contextlib.suppress(LookupError):
                if isinstance(self.jvm.field(segment, "time"), java):  # ours is of Python
                    self.jvm.set_field(segment, "time", java_time(self._clock))
                    self.jvm.set_field(segment, "created", JLong(self._clock()))

    def _segments(self) -> list[Any]:
        return list(items(self._log.logSegments()))

    def _option(self, value: Any) -> Any:
        """Return an option as this release has it."""
        if self.jvm.release.number >= (4, 1):
            return self.jvm.java("java.util.Optional").ofNullable(value)
        return some(self.jvm, value)

    # --- accessors -----------------------------------------------------------------------------

    log_start_offset = property(lambda self: int(self._log.logStartOffset()))
    log_end_offset = property(lambda self: int(self._log.logEndOffset()))
    high_watermark = property(lambda self: int(self._log.highWatermark()))
    recovery_point = property(lambda self: int(self._log.recoveryPoint()))
    size = property(lambda self: int(self._log.size()))

    @property
    def last_stable_offset(self) -> int:
        """Return the last stable offset; where the replica knows it, as that does."""
        if self._knows_high_watermark:
            return int(self._log.lastStableOffset())
        unstable = optional(self._log.firstUnstableOffset())
        bounds = [] if unstable is None else [int(unstable.messageOffset())]
        return min([*bounds, self._told_high_watermark])

    @property
    def log_segments(self) -> list[answers.Segment]:
        """Return what is shown of the segments."""
        return [answers.Segment(int(one.baseOffset()), int(one.size())) for one in self._segments()]

    @property
    def producer_state_manager(self) -> answers.Producers:
        """Return what the producer state knows."""
        return answers.producers(self.jvm, self._log.producerStateManager())

    @property
    def leader_epoch_cache(self) -> answers.Epochs:
        """Return what the cache of leader epochs knows."""
        return answers.epochs(optional(self._log.leaderEpochCache()))

    # --- appending -----------------------------------------------------------------------------

    def _records(self, records: bytes) -> Any:
        return record_class(self.jvm, "MemoryRecords").readableRecords(wrapped(self.jvm, records))

    def append_as_leader(
        self, records: bytes, leader_epoch: int, origin: str, transaction_version: int
    ) -> tuple[int, ...]:
        """Call appendAsLeader."""
        if self.is_early():
            return self._appended(records, is_leader=True)
        given = (self._records(records), JInt(leader_epoch), self._origin(origin))
        more = self._leader_arguments(transaction_version)
        info = self._call("appendAsLeader", *given, *more)
        return answers.append_info(self.jvm, info)

    def _origin(self, origin: str) -> Any:
        number = self.jvm.release.number
        if number < (2, 4):
            return JBoolean(origin == "client")
        if number >= (3, 5):
            return storage_class(self.jvm, "AppendOrigin").valueOf(origin.upper())
        return scala_object(self.jvm, f"kafka.log.AppendOrigin${origin.capitalize()}")

    def _leader_arguments(self, transaction_version: int) -> tuple[Any, ...]:
        """Return what else a release asks for: its versions, buffers and guards."""
        number, jvm = self.jvm.release.number, self.jvm
        if number < (2, 2):
            return ()
        if number < (3,):
            versions = scala_object(jvm, "kafka.api.ApiVersion")
            return (versions.latestVersion(),)
        has_guard = number >= (3, 7)
        guard = (storage_class(jvm, "VerificationGuard").SENTINEL,) if has_guard else ()
        if number >= (4,):
            local = jvm.java("org.apache.kafka.server.common.RequestLocal").noCaching()
            last = (JShort(transaction_version),) if number >= (4, 2) else ()
            return (local, *guard, *last)
        version = jvm.java("org.apache.kafka.server.common.MetadataVersion")
        newest = version.latestProduction() if has_guard else version.latest()
        local = scala_object(jvm, "kafka.server.RequestLocal").NoCaching()
        if (3, 6) <= number < (3, 7):
            guard = (None,)
        return (newest, local, *guard)

    def append_as_follower(self, records: bytes, leader_epoch: int) -> tuple[int, ...]:
        """Call appendAsFollower; a release that is not told the leader's epoch takes any."""
        if self.is_early():
            return self._appended(records, is_leader=False)
        number = self.jvm.release.number
        knows_epoch = number >= (4, 0, 1) or (3, 9, 2) <= number < (4,)
        more = (JInt(leader_epoch),) if knows_epoch else ()
        given = self._records(records)
        info = self._call("appendAsFollower", given, *more)
        return answers.append_info(self.jvm, info)

    def _appended(self, records: bytes, is_leader: bool) -> tuple[int, ...]:
        """Call append, as it is called before 0.11."""
        given = self._records(records)
        info = self._asked(lambda: log_before_0_11.append(self._log, given, is_leader))
        return answers.append_info(self.jvm, info)

    # --- reading -------------------------------------------------------------------------------

    def read(
        self, start_offset: int, max_length: int, isolation: str, min_one_message: bool
    ) -> answers.Fetched:
        """Call read."""
        first, at_least_one = (JLong(start_offset), JInt(max_length)), JBoolean(min_one_message)
        rest: tuple[Any, ...]
        if self._knows_high_watermark:
            rest = (self._isolation(isolation), at_least_one)
        else:
            more = () if self.is_early() else (self._with_aborted(isolation),)
            rest = (self._max_offset(isolation), at_least_one, *more)
        info = self._call("read", *first, *rest)
        return answers.fetched(self.jvm, info, self._segments())

    def _max_offset(self, isolation: str) -> Any:
        """Return the offset that the replica lets a reader come up to."""
        if isolation == "log_end":
            return some(self.jvm, None)
        is_all = isolation == "high_watermark"
        return some(
            self.jvm, self._long(self._told_high_watermark if is_all else self.last_stable_offset)
        )

    def _with_aborted(self, isolation: str) -> Any:
        """Return whether a read answers aborted transactions, as releases before 2.4 are told."""
        is_committed = isolation == "txn_committed"
        if self.jvm.release.number >= (2, 1):
            return JBoolean(is_committed)
        level = self.jvm.java("org.apache.kafka.common.requests.IsolationLevel")
        return level.READ_COMMITTED if is_committed else level.READ_UNCOMMITTED

    def _isolation(self, isolation: str) -> Any:
        if self.jvm.release.number >= (3, 5):
            kind = self.jvm.first(
                "org.apache.kafka.server.storage.log.FetchIsolation",
                "org.apache.kafka.storage.internals.log.FetchIsolation",
            )
            return kind.valueOf(isolation.upper())
        name = "".join(part.capitalize() for part in isolation.split("_"))
        return scala_object(self.jvm, f"kafka.server.Fetch{name}")

    def fetch_offset_by_timestamp(
        self, target_timestamp: int
    ) -> tuple[int, int, int | None] | None:
        """Call fetchOffsetByTimestamp, which reads records."""
        number, target = self.jvm.release.number, JLong(target_timestamp)
        name = "fetchOffsetByTimestamp" if number >= (2, 2) else "fetchOffsetsByTimestamp"
        more = (self._option(None),) if number >= (3, 6) else ()
        try:
            found = self._asked(lambda: getattr(self._log, name)(target, *more))
        except jpype.JException as error:
            is_null = kind_of(error, {}) == "null"
            if is_null and any(map(self._trips_over_null_record, self._segments())):
                raise RefusedError("null", str(error)) from None
            raise
        return answers.timestamp_and_offset(found)

    def _trips_over_null_record(self, segment: Any) -> bool:
        path = Path(self._directory, segment_file_name(int(segment.baseOffset()), ".log"))
        return path.exists() and trips_over_null_record(self.jvm, segment, path.read_bytes())

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> tuple[tuple[int, ...], ...]:
        """Call collectAbortedTransactions."""
        bounds = JLong(start_offset), JLong(upper_bound_offset)
        return answers.aborted_txns(self._call("collectAbortedTransactions", *bounds))

    # --- cutting -------------------------------------------------------------------------------

    def truncate_to(self, target_offset: int) -> bool:
        """Call truncateTo, which before 1.0 does not answer whether anything was cut."""
        answers_it = self.jvm.release.number >= (1,)
        end = 0 if answers_it else int(self._log.logEndOffset())
        done = self._call("truncateTo", JLong(target_offset))
        if answers_it:
            return bool(done)
        return target_offset < end or (self.is_early() and target_offset == end)

    def truncate_fully_and_start_at(self, new_offset: int, log_start_offset: int | None) -> None:
        """Call truncateFullyAndStartAt."""
        knows_start = self.jvm.release.number >= (3, 6)
        start = None if log_start_offset is None else self._long(log_start_offset)
        more = (self._option(start),) if knows_start else ()
        self._call("truncateFullyAndStartAt", JLong(new_offset), *more)

    def _long(self, value: int) -> Any:
        return self.jvm.java("java.lang.Long").valueOf(JLong(value))

    def roll(self, expected_next_offset: int | None) -> int:
        """Call roll."""
        if self.jvm.release.number < (2, 1):
            given = JLong(expected_next_offset or 0)
            return int(self._call("roll", given).baseOffset())
        expected = None if expected_next_offset is None else self._long(expected_next_offset)
        return int(self._call("roll", self._option(expected)).baseOffset())

    def split_overflowed_segment(self, base_offset: int) -> list[int]:
        """Call splitOverflowedSegment. Raises InvalidArgumentError if there is no such segment."""
        segment = next((one for one in self._segments() if one.baseOffset() == base_offset), None)
        if segment is None:
            raise InvalidArgumentError(f"there is no segment at {base_offset}")
        parts = self._call("splitOverflowedSegment", segment)
        self._date_parts()
        return [int(one.baseOffset()) for one in items(parts)]

    # --- bounds --------------------------------------------------------------------------------

    def update_high_watermark(self, high_watermark: int) -> int | None:
        """Call updateHighWatermark; from 0.11 to 2.2 onHighWatermarkIncremented."""
        if not self._knows_high_watermark:
            self._told_high_watermark = high_watermark
            if self.is_early():
                return None
            self._call("onHighWatermarkIncremented", JLong(high_watermark))
            return None
        return int(self._call("updateHighWatermark", JLong(high_watermark)))

    def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> bool:
        """Call maybeIncrementLogStartOffset."""
        reason, before = self._reason(), int(self._log.logStartOffset())
        done = self._call("maybeIncrementLogStartOffset", JLong(new_log_start_offset), *reason)
        return int(self._log.logStartOffset()) > before if done is None else bool(done)

    def _reason(self) -> tuple[Any, ...]:
        if self.jvm.release.number < (2, 5):
            return ()
        if self.jvm.release.number >= (3, 5):
            kind = storage_class(self.jvm, "LogStartOffsetIncrementReason")
            return (kind.valueOf("ClientRecordDeletion"),)
        return (scala_object(self.jvm, "kafka.log.ClientRecordDeletion"),)

    def delete_old_segments(self) -> int:
        """Call deleteOldSegments."""
        return int(self._call("deleteOldSegments"))

    def delete_pending_files(self) -> None:
        """Run the tasks that delete files, as far as they are due."""
        self._asked(self._scheduler.run_due)

    def remove_expired_producers(self) -> None:
        """Call removeExpiredProducers; before 3.5, the periodic task that does so."""
        if self.jvm.release.number >= (3, 5):
            self._asked(lambda: self._log.removeExpiredProducers(JLong(self._clock())))
        else:
            self._asked(self._scheduler.periodic[EXPIRY].apply)

    def flush(self, force_flush_active_segment: bool) -> None:
        """Call flush."""
        knows_force = self.jvm.release.number >= (3,)
        given = (JBoolean(force_flush_active_segment),) if knows_force else ()
        self._call("flush", *given)

    def close(self) -> None:
        """Call close."""
        self._call("close")
