# SPDX-License-Identifier: Apache-2.0
"""Kafka's index and segment files: read, write, look up.

Index files: `OffsetIndex`, `TimeIndex`, `TransactionIndex`. Records: `RecordFile` (a `.log`),
`RecordBatch`, `Record`, `read_batch`, `write_batch` and its kin. A stretch of a log: `LogSegment`.
Text files beside the segments: `OffsetCheckpointFile`, `LeaderEpochFileCache`,
`PartitionMetadataFile`. What is known of producers: `ProducerStateManager`, `read_snapshot`.
A whole partition: `PartitionLog`; a log directory with many: `LogManager`.
"""

from segproof.kafka.batch_writing import (
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof.kafka.broker.log_manager import LogManager, TopicPartition
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.broker.partition_log import PartitionLog
from segproof.kafka.checkpoint_file import EpochEntry, OffsetCheckpointFile
from segproof.kafka.lazy_index import LazyIndex
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof.kafka.log_config import LogConfig
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.log_validator import LogAppendInfo
from segproof.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof.kafka.partition_metadata_file import PartitionMetadata, PartitionMetadataFile
from segproof.kafka.producer_append_info import CompletedTxn, ProducerAppendInfo, TxnMetadata
from segproof.kafka.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_snapshot,
    write_snapshot,
)
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kafka.record import (
    EndTransactionMarker,
    Record,
    RecordHeader,
    control_record_type,
    end_transaction_marker,
)
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.kafka.record_file import LogOffsetPosition, RecordFile, TimestampAndOffset
from segproof.kafka.segments.log_segment import FetchDataInfo, LogSegment, RollParams
from segproof.kafka.time_index import TimeIndex, TimestampOffset
from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex, TxnIndexSearchResult
from segproof.kafka.write_format import WriteFormat

__all__ = [
    "AbortedTxn",
    "BatchMetadata",
    "CompletedTxn",
    "EndTransactionMarker",
    "EpochEntry",
    "FetchDataInfo",
    "LazyIndex",
    "LeaderEpochFileCache",
    "LogAppendInfo",
    "LogConfig",
    "LogManager",
    "LogOffsetMetadata",
    "LogOffsetPosition",
    "LogSegment",
    "LogSegments",
    "OffsetCheckpointFile",
    "OffsetIndex",
    "OffsetPosition",
    "PartitionLog",
    "PartitionMetadata",
    "PartitionMetadataFile",
    "ProducerAppendInfo",
    "ProducerStateEntry",
    "ProducerStateManager",
    "Record",
    "RecordBatch",
    "RecordFile",
    "RecordHeader",
    "RollParams",
    "TimeIndex",
    "TimestampAndOffset",
    "TimestampOffset",
    "TopicPartition",
    "TransactionIndex",
    "TxnIndexSearchResult",
    "TxnMetadata",
    "WriteFormat",
    "control_record_type",
    "end_transaction_marker",
    "read_batch",
    "read_snapshot",
    "write_batch",
    "write_empty_batch",
    "write_end_transaction_marker",
    "write_snapshot",
]
