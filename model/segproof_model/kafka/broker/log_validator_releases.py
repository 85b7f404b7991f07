# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise when they check the batches of an append, newest first."""

from collections.abc import Sequence
from typing import NoReturn

from segproof_model.kafka.broker import log_validator
from segproof_model.kafka.broker.log_validator import (
    UNKNOWN_OFFSET,
    LogAppendInfo,
    ValidationResult,
)
from segproof_model.kafka.format.legacy_record import NO_TIMESTAMP
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class OrderIsCheckedLast(Behaviour):
    """Offsets that a follower is given and that do not increase are refused behind all other
    checks, not where they are met.
    """

    laws = ("LOG-21",)
    releases = up_to("4.0.2")
    of_segproof = True

    class AppendAnalysis(log_validator.AppendAnalysis):
        """The analysis of an append."""

        @override
        def check_order(self, last_offset: int, batch: RecordBatch) -> None:
            pass

        @override
        def analyze_and_validate_records(self, log_start_offset: int) -> LogAppendInfo:
            info = super().analyze_and_validate_records(log_start_offset)
            last_offset = UNKNOWN_OFFSET
            for batch in self.records.batches():
                if self.has_later_epoch(batch):
                    break
                super().check_order(last_offset, batch)
                last_offset = batch.last_offset
            return info


class FollowerPassesEpoch(Behaviour):
    """A follower takes batches of a later epoch than its leader's, too."""

    laws = ("LOG-21",)
    releases = up_to("4.0.0", but=("3.9.2",))

    class AppendAnalysis(log_validator.AppendAnalysis):
        """The analysis of an append."""

        @override
        def has_later_epoch(self, batch: RecordBatch) -> bool:
            return False


class LeaderIndexesRecord(Behaviour):
    """With the largest timestamp of an uncompressed batch a leader enters the offset of its record
    into the time index, not the last one of the batch.
    """

    laws = ("LOG-9",)
    releases = up_to("3.6.2")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def assign_offsets_in_place(
            self, batch: RecordBatch, records: Sequence[Record], first_offset: int
        ) -> ValidationResult:
            result = super().assign_offsets_in_place(batch, records, first_offset)
            has_times = result.max_timestamp != NO_TIMESTAMP and not self.is_log_append_time
            if not has_times or batch.compression != "none":
                return result
            place = [record.timestamp for record in records].index(result.max_timestamp)
            return result._replace(offset_of_max_timestamp=first_offset + place)


class OneLimitForBothSides(Behaviour):
    """A timestamp after now has the limit of one before, not one of its own."""

    laws = ("LOG-10",)
    releases = up_to("3.5.2")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def has_invalid_timestamp(self, timestamp: int) -> bool:
            return abs(timestamp - self.now_ms) > self.config.message_timestamp_before_max_ms


class GivenTimeIsRefused(Behaviour):
    """A leader refuses every batch that says that its log gave it its time, not only one whose own
    time is not looked at.
    """

    laws = ("LOG-10",)
    releases = up_to("3.5.2")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def validate_timestamp(self, timestamp: int, timestamp_type: str) -> ErrorKind | None:
            if timestamp_type == "LogAppendTime":
                return ErrorKind.INVALID_TIMESTAMP
            return super().validate_timestamp(timestamp, timestamp_type)


class FirstRefusedNamesError(Behaviour):
    """Of several records that are refused the first names the error, whatever it is."""

    laws = ("LOG-10",)
    releases = up_to("2.4.1")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def process_record_errors(self, errors: Sequence[ErrorKind]) -> NoReturn:
            refuse(errors[0])


class UncountedIsRefused(Behaviour):
    """Compressed records that do not count from 0 are invalid records."""

    laws = ("BATCH-4", "LOG-10")
    releases = up_to("2.4.1", since="2.4.1")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def record_errors(
            self, batch: RecordBatch, records: Sequence[Record]
        ) -> list[ErrorKind | None]:
            errors = super().record_errors(batch, records)
            if self.source_compression != "none" and batch.magic > 0:
                for place, record in enumerate(records):
                    if record.offset != place:
                        errors[place] = ErrorKind.INVALID_RECORD
            return errors


class UncountedIsRewritten(Behaviour):
    """Compressed records that do not count from 0 are written anew."""

    laws = ("BATCH-4", "LOG-10")
    releases = up_to("2.2.2")
    of_segproof = True

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def refuse_uncounted(self) -> None:
            pass


class SeveralBatchesAreTaken(Behaviour):
    """A leader takes several batches in one call, and writes into each if it keeps them."""

    laws = ("LOG-10",)
    releases = up_to("2.2.2")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def check_number_of_batches(self) -> None:
            pass

        @override
        def assign_offsets_in_place(
            self, batch: RecordBatch, records: Sequence[Record], first_offset: int
        ) -> ValidationResult:
            results: list[ValidationResult] = []
            for one in self.batches:
                own = list(one.records())
                results.append(super().assign_offsets_in_place(one, own, first_offset))
                first_offset = results[-1].last_offset + 1
            last = results[-1]
            newest = max(results, key=lambda result: result.max_timestamp)
            return (last if self.is_log_append_time else newest)._replace(
                validated_records=b"".join([result.validated_records for result in results]),
                last_offset=last.last_offset,
            )


class MagicsMayDiffer(Behaviour):
    """A leader takes several magics in one call, and writes all batches anew."""

    laws = ("LOG-10",)
    releases = up_to("2.2.2")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def check_magic(self, batch: RecordBatch) -> None:
            pass


class CountIsNotCompared(Behaviour):
    """A leader takes a client's batch whose offsets are not as many as its records."""

    laws = ("LOG-10",)
    releases = up_to("0.11.0.3")

    class LogValidator(log_validator.LogValidator):
        """The leader's validator."""

        @override
        def check_count(self, batch: RecordBatch) -> None:
            if batch.record_count == 0:
                refuse(ErrorKind.INVALID_RECORD)
