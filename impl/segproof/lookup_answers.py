# SPDX-License-Identifier: Apache-2.0
"""What a lookup answers, and the steps that led there."""

from dataclasses import dataclass, field

__all__ = ["LookupStep", "OffsetAnswer", "TimestampAnswer"]


@dataclass(frozen=True, slots=True)
class LookupStep:
    """One step of a lookup: what was done to which file, and what came out."""

    action: str
    """`segment`, `offset-index`, `time-index`, `largest-timestamp`, `scan`, `next-segment`, or
    `leftover-entries`: some that a truncation left, or damaged ones, were passed over."""
    path: str
    """The file or directory that was looked at."""
    facts: dict[str, int | str | None]
    """What came out, by name; bytes and counts as numbers, None for nothing."""


@dataclass(frozen=True, slots=True)
class OffsetAnswer:
    """Where an offset lies: None in every field that has no answer, and then a `reason`."""

    target: int
    segment_base_offset: int | None = None
    """The segment that holds the batch; without a batch, the one that the floor picks."""
    index_offset: int | None = None
    """Offset of that segment's index entry for the target."""
    index_position: int | None = None
    """The position from which the log was scanned, in bytes."""
    batch_base_offset: int | None = None
    """Base offset of the first batch whose last offset is not below the target."""
    batch_position: int | None = None
    """Where that batch begins in its segment's log, in bytes."""
    batch_size: int | None = None
    """Its whole size in bytes."""
    reason: str | None = None
    steps: tuple[LookupStep, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TimestampAnswer:
    """The first record at or after a timestamp in the segment that reaches it."""

    target: int
    """Milliseconds since 1970."""
    timestamp: int | None = None
    offset: int | None = None
    reason: str | None = None
    steps: tuple[LookupStep, ...] = field(default=(), compare=False)
