# SPDX-License-Identifier: Apache-2.0
"""How much of a partition, store or file was checked so far: what its summary says."""

from dataclasses import dataclass

from segproof.reading.queue_units import NOTHING_LOST, LostMessages


@dataclass(slots=True)
class Checked:
    """Filled by the checks; the fields mean what those of `segproof.findings.Summary` do."""

    bytes_checked: int = 0
    batches: int = 0
    segments: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    batches_behind_damage: int = 0
    missing_offsets: int = 0
    lost_messages: LostMessages | None = NOTHING_LOST
    """Of RocketMQ, by damage in the commit log."""
