# SPDX-License-Identifier: Apache-2.0
"""Writing batches without codecs, and in the oldest releases."""

from typing import Any

from segproof_model.kafka.format.batch_writing import (
    BatchWriter,
    write_batch,
)
from segproof_model.kafka.format.compression import NO_CODECS
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import RELEASES

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
ONE = Record(5, 1, b"k", b"v")


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
