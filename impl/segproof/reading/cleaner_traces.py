# SPDX-License-Identifier: Apache-2.0
"""Whether the log cleaner may have taken the offsets that a log lacks.

The cleaner goes from the start of a log, and removes each record without a key on its way; a
compacted topic accepts no such record. So after a record without a key nothing was compacted. Where
all records have keys, a log that lost batches and a compacted one look the same, and only
`cleanup.policy` tells them apart.

Upstream: Kafka 4.3.1: Cleaner.shouldRetainRecord, LogValidator, LocalLog.replaceSegments; the same
since 0.11.0.
Laws: DISK-25, DISK-63, DISK-70, BATCH-3.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from segproof.reading.file_names import FileName, NameKind

COMPACTED_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that a broker creates with `cleanup.policy=compact`."""
UP_TO = "up to "
"""The words before a number of offsets that is an upper bound: compaction may have taken some."""


class Cleaning(Enum):
    """Whether compaction explains a gap."""

    EXCLUDED = "excluded"
    """Compaction does not explain the gap: the offsets are lost."""
    UNKNOWN = "unknown"
    """No file tells. The offsets are lost, unless the topic is compacted."""
    SHOWN = "shown"
    """The cleaner has been in this log, and nothing contradicts that it left the gap."""


class CleanerTraces(NamedTuple):
    """What the files of a partition say of the log cleaner."""

    was_here: bool = False
    """Whether a file shows that the cleaner has been in this log, or the topic is compacted."""
    keyless_from: int | None = None
    """The last offset of a batch that has a record without a key; None if none was found."""

    def of_gap(self, first_offset: int) -> Cleaning:
        """Return whether compaction explains a gap that begins with an offset."""
        keyless = self.keyless_from
        if keyless is not None and (keyless < first_offset or not self.was_here):
            return Cleaning.EXCLUDED
        return Cleaning.SHOWN if self.was_here else Cleaning.UNKNOWN


def is_lost_in(base_offset: int, first_offset: int, keyless_from: int | None) -> bool:
    """Return whether one log by itself excludes that compaction left a gap in it.

    What shows that the cleaner was here is not looked at. So a record without a key counts if it
    lies before the gap, or if the log begins with the gap.
    """
    traces = CleanerTraces(first_offset > base_offset, keyless_from)
    return traces.of_gap(first_offset) is Cleaning.EXCLUDED


def removed_logs(kinds: Mapping[str, FileName]) -> dict[int, str]:
    """Return the names of the `.log.deleted` files of a partition, by base offset."""
    return {
        known.base_offset: name
        for name, known in kinds.items()
        if known.kind is NameKind.PENDING and name.endswith(".log.deleted")
    }


def cleaner_was_here(topic: str | None, kinds: Mapping[str, FileName], checkpoint: int) -> bool:
    """Return whether the log cleaner has been in a log, as its files and its topic say.

    `checkpoint` is the offset of the partition in `cleaner-offset-checkpoint`; 0 without an entry.
    A cleaner that replaces a log leaves the old one as `.log.deleted` beside the new one, which
    waits as `.swap` first.
    """
    logs = {
        known.base_offset
        for name, known in kinds.items()
        if known.suffix == ".log" and (known.kind is NameKind.SEGMENT or name.endswith(".swap"))
    }
    is_replaced = not logs.isdisjoint(removed_logs(kinds))
    is_waiting = any(
        known.kind is NameKind.PENDING and name.endswith(".swap") for name, known in kinds.items()
    )
    return checkpoint > 0 or topic in COMPACTED_TOPICS or is_replaced or is_waiting
