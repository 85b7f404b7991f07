# SPDX-License-Identifier: Apache-2.0
"""Look offsets and timestamps up in the segments of a partition directory, read-only."""

from segproof.kafka.segment_names import segment_file_name
from segproof.reading.lookup_answers import LookupStep, OffsetAnswer, TimestampAnswer
from segproof.reading.partition_reader import PartitionReader
from segproof.reading.partition_search import segment_base_offsets
from segproof.reading.segment_reader import INDEX_BYTES_MAX, SegmentReader

__all__ = [
    "INDEX_BYTES_MAX",
    "LookupStep",
    "OffsetAnswer",
    "PartitionReader",
    "SegmentReader",
    "TimestampAnswer",
    "segment_base_offsets",
    "segment_file_name",
]
