# SPDX-License-Identifier: Apache-2.0
"""Kafka's index and segment files: read, write, look up."""

from segproof.kafka.offset_index import OffsetIndex, OffsetPosition
from segproof.kafka.time_index import TimeIndex, TimestampOffset

__all__ = ["OffsetIndex", "OffsetPosition", "TimeIndex", "TimestampOffset"]
