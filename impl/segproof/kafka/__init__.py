# SPDX-License-Identifier: Apache-2.0
"""Kafka's index and segment files: read, write, look up.

Index files: `OffsetIndex`, `TimeIndex`, `TransactionIndex`. Records: `RecordFile` (a `.log`),
`RecordBatch`, `Record`, `read_batch`, `write_batch` and its kin.
"""

from segproof.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof.kafka.record_batch import (
    Record,
    RecordBatch,
    RecordHeader,
    control_record_type,
    read_batch,
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof.kafka.record_file import RecordFile
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex, TxnIndexSearchResult

__all__ = [
    "AbortedTxn",
    "OffsetIndex",
    "OffsetPosition",
    "Record",
    "RecordBatch",
    "RecordFile",
    "RecordHeader",
    "TimeIndex",
    "TimestampOffset",
    "TransactionIndex",
    "TxnIndexSearchResult",
    "control_record_type",
    "read_batch",
    "write_batch",
    "write_empty_batch",
    "write_end_transaction_marker",
]
