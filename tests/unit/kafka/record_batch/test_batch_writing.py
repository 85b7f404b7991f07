# SPDX-License-Identifier: Apache-2.0
"""What no record batch can say: it is refused to write it."""

from typing import Any

import pytest

from segproof_model.kafka.format.batch_writing import (
    BatchWriter,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.kafka.format.compression import NO_CODECS
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record, RecordHeader
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import RELEASES

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
ONE = Record(5, 1, b"k", b"v")


@pytest.mark.parametrize(
    "options",
    [
        {"magic": 3},
        {"magic": -1},
        {"compression": "brotli"},
        {"magic": 1, "compression": "zstd"},
        {"timestamp_type": "NoTimestampType"},
        {"timestamp_type": "LogAppendTime"},
        {"timestamp_type": "Later"},
        {"base_offset": 6},
        {"base_offset": 5 - 2**31},
        {"last_offset": 4},
        {"is_transactional": True},
        {"producer_id": 1},
        {"producer_id": 1, "producer_epoch": 0},
        {"magic": 1, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0},
        {"magic": 0, "is_control": True},
        {"magic": 1, "last_offset": 9},
        {"magic": 1, "timestamp_type": "NoTimestampType"},
    ],
)
def test_unwritable_batches_are_refused(options: dict[str, Any]) -> None:
    """What the format or the producer's rules exclude."""
    given = {"base_offset": 5, **options}
    assert INVALID_ARGUMENT == outcome_of(write_batch, [ONE], **given)


@pytest.mark.parametrize(
    ("records", "magic"),
    [
        ([], 2),
        ([ONE, ONE], 2),
        ([Record(5, -2, None, None)], 2),
        ([Record(5, 1, None, None, (RecordHeader("h", None),))], 1),
    ],
)
def test_unwritable_records_are_refused(records: list[Record], magic: int) -> None:
    """No records, offsets that do not rise, a timestamp below -1, headers before magic 2."""
    assert INVALID_ARGUMENT == outcome_of(write_batch, records, magic=magic, base_offset=5)


def test_others_are_refused() -> None:
    """An empty batch that ends before it begins; a marker that ends no transaction."""
    assert INVALID_ARGUMENT == outcome_of(write_empty_batch, 5, 4, 0)
    given = {"offset": 0, "timestamp": 0, "coordinator_epoch": 0}
    assert INVALID_ARGUMENT == outcome_of(write_end_transaction_marker, "UNKNOWN", **given)


def test_no_codec_is_the_kafka_error() -> None:
    """Nothing that is compressed can be written without."""
    given = {"base_offset": 5, "compression": "lz4", "codecs": NO_CODECS}
    assert Raised(ErrorKind.KAFKA_ERROR) == outcome_of(write_batch, [ONE], **given)


def test_writing_by_release() -> None:
    """0.10 writes messages alone; one without a type of its timestamp says that its log gave it."""
    old, new = (RELEASES[name].kind(BatchWriter)() for name in ("kafka-0.10.2.2", "kafka-0.11.0.3"))
    assert INVALID_ARGUMENT == outcome_of(old.write, [ONE], base_offset=5)
    given: dict[str, Any] = {"magic": 1, "base_offset": 5, "timestamp_type": "NoTimestampType"}
    assert INVALID_ARGUMENT == outcome_of(new.write, [ONE], **given)
    batch = MemoryRecords(old.write([ONE], **given)).first_batch()
    assert "LogAppendTime" == batch.timestamp_type
    zstd = {"base_offset": 5, "compression": "zstd"}
    assert INVALID_ARGUMENT == outcome_of(new.write, [ONE], **zstd)
