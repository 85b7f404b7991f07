# SPDX-License-Identifier: Apache-2.0
"""What a segment writes where Kafka's releases differ: a choice of the caller.

Upstream: Kafka, LogSegment.append and recover (since 0.11).
Laws: SEG-4, SEG-5, SEG-22.
"""

from dataclasses import dataclass
from typing import Literal

from segproof.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class WriteFormat:
    """Which entries a segment's indexes get; the default is the newest releases' choice.

    Readers of every release take any of them.

    Raises: InvalidArgumentError for another word.
    """

    index_key: Literal["last_offset", "first_offset"] = "last_offset"
    """Which offset of its batches an entry of the offset index has: up to 1.1 the first one."""
    entries: Literal["batch", "append"] = "batch"
    """Whether each batch of an append may get an entry, or, as up to 3.9.0 and in 4.0.0, only the
    append as a whole."""

    def __post_init__(self) -> None:
        if self.index_key not in ("last_offset", "first_offset"):
            raise InvalidArgumentError(f"index_key is {self.index_key!r}")
        if self.entries not in ("batch", "append"):
            raise InvalidArgumentError(f"entries is {self.entries!r}")


NEWEST_FORMAT = WriteFormat()
"""What the newest releases write."""
