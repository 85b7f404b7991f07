# SPDX-License-Identifier: Apache-2.0
"""What no record batch can say: the model refuses to write it."""

from typing import Any

import pytest

from segproof_model.kafka.record_batch import (
    Record,
    RecordHeader,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.language.outcomes import ErrorKind, Raised

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)


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
    arguments = {"base_offset": 5, **options}
    assert write_batch([Record(5, 1, b"k", b"v")], **arguments) == INVALID_ARGUMENT


def test_unwritable_records_are_refused() -> None:
    """No records, offsets that do not rise, a timestamp below -1, headers before magic 2."""
    one = Record(5, 1, b"k", b"v")
    assert write_batch([], base_offset=5) == INVALID_ARGUMENT
    assert write_batch([one, one], base_offset=5) == INVALID_ARGUMENT
    assert write_batch([Record(5, -2, None, None)], base_offset=5) == INVALID_ARGUMENT
    named = Record(5, 1, None, None, (RecordHeader("h", None),))
    assert write_batch([named], magic=1, base_offset=5) == INVALID_ARGUMENT
    assert write_empty_batch(5, 4, 0) == INVALID_ARGUMENT


def test_unknown_marker_is_refused() -> None:
    """Only ABORT and COMMIT end a transaction."""
    refused = write_end_transaction_marker(
        "UNKNOWN", offset=0, timestamp=0, producer_id=1, producer_epoch=0, coordinator_epoch=0
    )
    assert refused == INVALID_ARGUMENT
