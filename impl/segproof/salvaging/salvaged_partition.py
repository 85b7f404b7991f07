# SPDX-License-Identifier: Apache-2.0
"""What a salvage tells of one partition."""

from dataclasses import dataclass, field

from segproof.salvaging.gaps import Gap

SET_ASIDE_WHOLE = "It is set aside whole"
"""The end of the reason why a log is left out that is none of the partition's."""


@dataclass(slots=True)
class SalvagedPartition:
    """What was saved of a partition, and what was not."""

    directory: str
    target: str | None
    """The new directory; None where no batch was sound."""
    bytes_read: int = 0
    bytes_kept: int = 0
    unreadable_bytes: int = 0
    """Bytes that the disk did not give."""
    batches: int = 0
    records: int = 0
    first_offset: int = -1
    last_offset: int = -1
    restored_batches: int = 0
    """Batches that got their offsets back."""
    restored_headers: int = 0
    """Batches that got their size or their magic back: the checksum proves them."""
    moved_batches: int = 0
    """Batches that lay at a wrong place and are at their own again."""
    restored_epochs: int = 0
    """Batches that got their leader epoch back."""
    renamed_logs: int = 0
    """Logs that are under the name that their batches say: the old name was of other offsets."""
    set_aside_batches: int = 0
    """Batches in a file of their own: those misplaced and those unloadable."""
    lost_offsets: int = 0
    """Without those at the end of the partition, if nothing tells how many."""
    is_end_lost: bool = False
    """Whether there may be such offsets: nothing tells how many."""
    are_more_lost: bool = False
    """Whether more than `lost_offsets` may be lost: at the end; or, after moves and gaps without
    loss, between batches that touch, where compaction leaves some out."""
    unproven_offsets: int = 0
    """Offsets that logs lack: compaction took them, or they are lost beside `lost_offsets`."""
    lost_between_logs: int = 0
    """How many of them lie between the end of a new log and the name of the next one."""
    gap_count: int = 0
    gaps: list[Gap] = field(default_factory=list)
    """The first GAPS_TOLD of them."""
    open_transactions: int = 0
    """Transactions without an end in what was kept: read_committed consumers stop at the first."""
    lost_markers: list[str] = field(default_factory=list)
    """Transactions whose end is lost, or may be: what their readers get, and how to decide."""
    left_out: list[str] = field(default_factory=list)
    """Files whose content is in no new file, each with the reason."""

    removed: list[str] = field(default_factory=list)
    """Logs that a broker has removed, whose offsets no saved log has: each with the step that saves
    it. Retention leaves such logs until they are deleted, and so does a truncation."""
    doubts: list[str] = field(default_factory=list)
    """What else may be lost, in words: each begins with the file that speaks for it."""

    @property
    def is_whole(self) -> bool:
        """Whether all that was there is in the new directory, and nothing speaks for a loss."""
        return self.has_all_files and not self.doubts

    @property
    def has_all_files(self) -> bool:
        """Whether all that was there is in the new directory."""
        return not self.gap_count and not self.unreadable_bytes and not self.left_out
