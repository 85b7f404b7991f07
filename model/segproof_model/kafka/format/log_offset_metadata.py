# SPDX-License-Identifier: Apache-2.0
"""Where an offset lies: in which segment, and at which byte of it.

Upstream: Kafka 4.4.0, LogOffsetMetadata.
"""

from typing import NamedTuple


class LogOffsetMetadata(NamedTuple):
    """An offset with its place in the log, as far as it is known."""

    message_offset: int
    segment_base_offset: int = -1
    """Base offset of the segment that holds it; -1 if unknown."""
    relative_position_in_segment: int = -1
    """Position in that segment's log in bytes; -1 if unknown."""
