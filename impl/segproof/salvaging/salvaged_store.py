# SPDX-License-Identifier: Apache-2.0
"""What was saved of a store, and what was not."""

from dataclasses import dataclass, field
from typing import NamedTuple

from segproof.reading.log_names import Misnamed
from segproof.salvaging.consume_queue_copy import LostNumbers
from segproof.salvaging.offsets_beyond import OffsetBeyond

__all__ = ["SalvagedStore", "StoreGap"]


class StoreGap(NamedTuple):
    """Offsets [offset, offset + size_bytes) of a commit log that were not kept."""

    path: str
    kind: str
    """`broken`, `zeros`, `missing`: no file, or the end of one that is too short; `unsearched`."""
    position: int
    """In the file at `path`; after the end of that file where files are missing."""
    offset: int
    size_bytes: int
    messages: int | None
    """How many the old queues and the old index lead to; None if neither tells."""
    is_exact: bool = False
    """Whether there were no more messages: the units of the queues take all its bytes."""


@dataclass(slots=True)
class SalvagedStore:
    """What was saved of a store, and what was not."""

    directory: str
    target: str | None
    """The new store; None where no message was sound."""
    bytes_read: int = 0
    """Of the commit log."""
    bytes_kept: int = 0
    """Of messages."""
    unreadable_bytes: int = 0
    """Bytes that the disk did not give."""
    messages: int = 0
    first_offset: int = -1
    """Of the commit log; -1 without a message."""
    last_offset: int = -1
    misnamed_files: list[Misnamed] = field(default_factory=list)
    """Files of the log that were read at the offset that their messages say, not their name."""
    restored_messages: int = 0
    """Messages that said another offset than that at which they lie, and belong there."""
    restored_times: int = 0
    """Messages with an impossible store time (RMQDISK-40), which got the likely one."""
    fillers: int = 0
    """Messages of an earlier salvage in place of lost ones: they are no messages."""
    moved_messages: int = 0
    """Messages that lay elsewhere in the log, and are at the offset now that they say."""
    copied_messages: int = 0
    """Further copies of messages that lie at their own offsets: they are left out."""
    misplaced_messages: int = 0
    """Single messages that say another offset than that at which they lie: another one has it, or
    nothing tells their place. They are left out, and stay in the old log (`left_out`)."""
    foreign_messages: int = 0
    """Messages of another store or of an earlier file, which were copied over this log: they are
    left out, and stay in the old log (`left_out`)."""
    older_messages: int = 0
    """Messages after a gap that are older than the last message before the gap: an earlier recovery
    may have cut them off."""
    lost_messages: int | None = None
    """How many the old queues and the old index lead to in the gaps; None if neither tells, or
    where there are too many gaps."""
    is_lost_exact: bool = False
    """Whether no more are lost. Prepared and rolled back messages are in no queue."""
    mapped_file_size: int = 0
    """Bytes of each file of the new log: mappedFileSizeCommitLog of the broker must be that."""
    file_size_by_messages: int = 0
    """The length that the only file of the log had before bytes were put in or taken out, as its
    moved messages say; 0 without such bytes, or if `mapped_file_size` is that."""
    queues: int = 0
    stand_ins: int = 0
    """Numbers of queues whose message is lost: see `consume_queue_copy`."""
    lost_numbers: list[LostNumbers] = field(default_factory=list)
    """Which these are; the first 10 000 stretches of them."""
    unqueued_messages: int = 0
    """Messages whose numbers or topics do not fit into a queue: keys and offsets find them."""
    index_files: int = 0
    index_entries: int = 0
    hash_slot_num: int = 0
    """Slots of each new index file: a broker finds keys with this maxHashSlotNum only."""
    index_num: int = 0
    """Entries that each new index file has room for: maxIndexNum of the broker."""
    geometry_from: str | None = None
    """What told these two numbers: a `GeometryFrom`. A guess stands in a file of the new store
    too."""
    offsets_beyond: list[OffsetBeyond] = field(default_factory=list)
    """Offsets in the copied `config` beyond the end of their queue in the new store."""
    config_lacks: list[str] = field(default_factory=list)
    """What a broker starts without on the new store, since the copied `config` lacks it."""
    has_database_of_queues: bool = False
    """Whether the old store has queues in RocksDB: the new one has files, as storeType=default."""
    log_folders: list[str] = field(default_factory=list)
    """The folders to which links led from the files of the old log; empty without such links."""
    is_end_lost: bool = False
    """Whether the timers or the checkpoint know of messages beyond the end of the log."""
    gap_count: int = 0
    gaps: list[StoreGap] = field(default_factory=list)
    """The first GAPS_MAX of them."""
    left_out: list[str] = field(default_factory=list)
    """Files whose content is in no new file, each with the reason."""

    @property
    def is_whole(self) -> bool:
        """Whether every message that was there is in the new store, and found as before."""
        is_same = not (self.left_out or self.config_lacks or self.offsets_beyond)
        return self.has_every_message and is_same

    @property
    def has_every_message(self) -> bool:
        """Whether every message that was there is in the new store, and in its queue."""
        return not self.gap_count and not self.unreadable_bytes and not self.unqueued_messages
