# SPDX-License-Identifier: Apache-2.0
"""The transaction index: which transactions of a segment were aborted.

Mirrors: impl/segproof/kafka/transaction_index.py.
Upstream: Kafka, TransactionIndex and AbortedTxn (since 1.1.1).
Layout: entry i is bytes 34i..34i+33: int16 version, int64 producer id, int64 first offset, int64
    last offset, int64 last stable offset.
Laws: TXNIDX-1 to TXNIDX-18.
Not covered: numbers that 64 bits don't hold; a parent directory that moves (names are relative).
Used by: log_segment, the harness.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

from segproof_model.directory import Directory
from segproof_model.language.integers import int64_at, int64_bytes
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.profiles import NEWEST_KAFKA, Profile
from segproof_model.values import replace

CORRUPT_INDEX = Raised(ErrorKind.CORRUPT_INDEX)
INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
KAFKA_ERROR = Raised(ErrorKind.KAFKA_ERROR)
READ_ONLY = Raised(ErrorKind.READ_ONLY)
UNMAPPED = Raised(ErrorKind.UNMAPPED)


class AbortedTxn(NamedTuple):
    """One aborted transaction.

    >>> AbortedTxn(0, 1, 5, 15, 13).to_bytes().hex(" ", 8)
    '0000 0000000000000001 0000000000000005 000000000000000f 000000000000000d'
    """

    version: int
    producer_id: int
    first_offset: int
    """Offset of the first record, inclusive."""
    last_offset: int
    """Offset of the marker that ended the transaction, inclusive."""
    last_stable_offset: int
    """First offset that was undecided when the marker was written."""

    def to_bytes(self) -> bytes:
        """Return the entry as 34 bytes (TXNIDX-1)."""
        version = self.version.to_bytes(2, "big", signed=True)
        return version + b"".join(int64_bytes(number) for number in self[1:])

    @classmethod
    def from_bytes(cls, data: bytes, position: int = 0) -> "AbortedTxn":
        """Return the entry in the 34 bytes at `position`, its version from both bytes."""
        version = int.from_bytes(data[position : position + 2], "big", signed=True)
        return cls(version, *(int64_at(data, position + field) for field in (2, 10, 18, 26)))


class TxnIndexSearchResult(NamedTuple):
    """The aborted transactions that meet a range of offsets."""

    aborted_transactions: list[AbortedTxn]
    is_complete: bool
    """Whether no later segment can hold another one."""


def read_aborted_txns(data: bytes) -> list[AbortedTxn]:
    """Return every whole entry of a file's bytes; a partial tail is passed over (TXNIDX-8)."""
    return [AbortedTxn.from_bytes(data, start) for start in range(0, len(data) - 33, 34)]


@dataclass(frozen=True, slots=True)
class TransactionIndex:
    """The state of a transaction index.

    >>> index = TransactionIndex.open(0, "0.txnindex").after
    >>> index = index.append(AbortedTxn(0, 1, 5, 15, 13)).after
    >>> index.collect_aborted_txns(15, 6).is_complete, index.collect_aborted_txns(16, 6)[0]
    (True, [])
    """

    ENTRY_SIZE: ClassVar[int] = 34

    profile: Profile
    start_offset: int
    writable: bool
    name: str
    directory: Directory
    is_open: bool = False
    """Whether there is a channel. Without one nothing is read (TXNIDX-9)."""
    position: int = 0
    """Position of the channel in bytes: its end of the file."""
    last_offset: int | None = None
    """The last offset that the next append must exceed, if one is remembered."""
    is_closed: bool = False
    """Whether `close` or `delete_if_exists` was called; only segproof cares."""

    @classmethod
    def open(
        cls,
        start_offset: int,
        file: str,
        writable: bool = True,
        *,
        directory: Directory = Directory(),
        profile: Profile = NEWEST_KAFKA,
    ) -> "Step[TransactionIndex]":
        """Open the file if there is one; never create it (TXNIDX-3, TXNIDX-4).

        Kafka's index can always be written.
        """
        may_write = writable or not profile.txn_opens_read_only
        return Step(cls(profile, start_offset, may_write, file, directory).with_existing_file())

    def with_existing_file(self) -> Self:
        """Return the same state with a channel at the end of the file, if there is a file."""
        if self.name not in self.directory:
            return self
        opened = replace(self, is_open=True, position=len(self.image))
        known = opened.entries_list()
        if self.profile.txn_follows_file and known:
            return replace(opened, last_offset=known[-1].last_offset)
        return opened

    @property
    def image(self) -> bytes:
        """The exact bytes of the file; none if there is no file."""
        return self.directory.read(self.name) or b""

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file."""
        return self.image

    @property
    def is_refused(self) -> bool:
        """Whether the profile refuses any use, because the index is closed."""
        return self.profile.closed_is_closed and self.is_closed

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be listed."""
        return not self.entries_list()

    def entries_list(self) -> list[AbortedTxn]:
        """Every entry that the channel reaches, whatever its version (TXNIDX-8, TXNIDX-9)."""
        entries = read_aborted_txns(self.image[: self.position]) if self.is_open else []
        if self.profile.txn_version_exact:
            return entries
        # Upstream reads the version from the first of its two bytes alone.
        return [entry._replace(version=entry.version // 256) for entry in entries]

    def is_unknown(self, entry: AbortedTxn) -> bool:
        """Return whether reading stops at this entry with an error (TXNIDX-2)."""
        return entry.version != 0 if self.profile.txn_version_exact else entry.version > 0

    def all_aborted_txns(self) -> list[AbortedTxn] | Raised:
        """Return every entry in the order of the file (TXNIDX-7 to TXNIDX-9)."""
        if self.is_refused:
            return UNMAPPED
        entries = self.entries_list()
        return KAFKA_ERROR if any(map(self.is_unknown, entries)) else entries

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult | Raised:
        """Return the entries that meet [fetch, upper bound) (TXNIDX-10, TXNIDX-11)."""
        if self.is_refused:
            return UNMAPPED
        found = []
        for entry in self.entries_list():
            if self.is_unknown(entry):
                return KAFKA_ERROR
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(found, True)
        return TxnIndexSearchResult(found, False)

    def append(self, aborted_txn: AbortedTxn) -> Step[Self]:
        """Add an entry behind the last one (TXNIDX-3 to -7, TXNIDX-9, TXNIDX-16)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if self.last_offset is not None and self.last_offset >= aborted_txn.last_offset:
            return Step(self, INVALID_ARGUMENT)
        if self.profile.txn_version_exact and aborted_txn.version != 0:
            return Step(self, INVALID_ARGUMENT)
        remembered = replace(self, last_offset=aborted_txn.last_offset)
        if not self.writable:
            return Step(self if self.profile.checks_before_changing else remembered, READ_ONLY)
        opened = remembered if self.is_open else remembered._open_or_create()
        if self.profile.txn_refuses_partial_tail and opened.position % 34:
            return Step(self, CORRUPT_INDEX)
        end = opened.position + 34
        image = opened.image[: opened.position] + aborted_txn.to_bytes() + opened.image[end:]
        return Step(replace(opened, directory=self.directory.write(self.name, image), position=end))

    def _open_or_create(self) -> Self:
        directory = self.directory.write(self.name, self.image)
        return replace(self, directory=directory, is_open=True, position=len(self.image))

    def truncate_to(self, offset: int) -> Step[Self]:
        """Cut the file at the first entry whose last offset is >= `offset` (TXNIDX-12, -13)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if not self.writable:
            return Step(self, READ_ONLY)
        kept: int | None = None
        for number, entry in enumerate(self.entries_list()):
            if self.is_unknown(entry):
                return Step(self, KAFKA_ERROR)
            if entry.last_offset >= offset:
                return Step(self._cut(34 * number, kept))
            kept = entry.last_offset
        return Step(self)

    def reset(self) -> Step[Self]:
        """Empty the file, if there is a channel, and remember nothing (TXNIDX-14)."""
        if self.is_refused:
            return Step(self, UNMAPPED)
        if not self.writable:
            return Step(self, READ_ONLY)
        return Step(self._cut(0, None) if self.is_open else replace(self, last_offset=None))

    def _cut(self, size: int, last_offset: int | None) -> Self:
        directory = self.directory.write(self.name, self.image[:size])
        return replace(self, directory=directory, position=size, last_offset=last_offset)

    def sanity_check(self) -> None | Raised:
        """Raise the corrupt-index error for a broken file (TXNIDX-15); segproof tests it all."""
        if self.is_refused:
            return UNMAPPED
        if self.profile.sanity_checks_all:
            return None if self._all_are_sane() else Raised(self.profile.sanity_kind)
        for entry in self.entries_list():
            if self.is_unknown(entry):
                return KAFKA_ERROR
            if entry.last_offset < self.start_offset:
                return Raised(self.profile.sanity_kind)
        return None

    def _all_are_sane(self) -> bool:
        entries = self.entries_list()
        last_offsets = [entry.last_offset for entry in entries]
        return (
            self.position % 34 == 0
            and not any(map(self.is_unknown, entries))
            and all(last_offset >= self.start_offset for last_offset in last_offsets)
            and all(one < two for one, two in zip(last_offsets, last_offsets[1:], strict=False))
        )

    def flush(self) -> Step[Self]:
        """Make the entries durable."""
        return Step(self, UNMAPPED if self.is_refused else None)

    def close(self) -> Step[Self]:
        """Close the channel; a second close does nothing (TXNIDX-9)."""
        return Step(replace(self, is_open=False, position=0, is_closed=True))

    def delete_if_exists(self) -> Step[Self]:
        """Close, remove the file, return whether there was one (TXNIDX-17).

        In old releases nothing happens without a channel.
        """
        if self.profile.txn_deletion_needs_channel and not self.is_open:
            return Step(self, True)
        closed = self.close().after
        removed = replace(closed, directory=self.directory.remove(self.name))
        return Step(removed, self.name in self.directory)

    def rename_to(self, file: str) -> Step[Self]:
        """Move the file, if there is one, over an existing one too (TXNIDX-18)."""
        moved = replace(self, name=file, directory=self.directory.rename(self.name, file))
        if self.profile.txn_follows_file and not self.is_open and not self.is_closed:
            return Step(moved.with_existing_file())
        return Step(moved)

    def update_parent_dir(self, parent_dir: str) -> Step[Self]:
        """Follow the directory that was moved to `parent_dir`; names are relative to it."""
        return Step(self)
