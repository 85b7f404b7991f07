# SPDX-License-Identifier: Apache-2.0
"""The transaction index: which transactions of a segment were aborted.

Upstream: Kafka 4.4.0, TransactionIndex and AbortedTxn. Otherwise: index_releases,
    index_deviations.
Layout: entry i is bytes 34i..34i+33: int16 version, int64 producer id, int64 first offset, int64
    last offset, int64 last stable offset.
Laws: TXNIDX-1 to TXNIDX-18.
Not covered: numbers that 64 bits don't hold; a parent directory that moves (names are relative).
"""

from collections.abc import Iterator
from struct import Struct
from typing import ClassVar, NamedTuple

from segproof_model.language.files import Files
from segproof_model.language.integers import int64_bytes
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import State, refuse

LAYOUT = Struct(">hqqqq")
"""The numbers of an entry as they are stored."""


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
        return cls(*LAYOUT.unpack_from(data, position))


class CompletedTxn(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    """Offset of the first record, inclusive."""
    last_offset: int
    """Offset of the marker."""
    is_aborted: bool


class TxnIndexSearchResult(NamedTuple):
    """The aborted transactions that meet a range of offsets."""

    aborted_transactions: list[AbortedTxn]
    is_complete: bool
    """Whether no later segment can hold another one."""


def read_aborted_txns(data: bytes) -> list[AbortedTxn]:
    """Return every whole entry of a file's bytes; a partial tail is passed over (TXNIDX-8)."""
    return [AbortedTxn.from_bytes(data, start) for start in range(0, len(data) - 33, 34)]


class TransactionIndex(State):
    """A transaction index; its file is made by the first append.

    >>> index = TransactionIndex(Files(), "0.txnindex", 0)
    >>> index.append(AbortedTxn(0, 1, 5, 15, 13))
    >>> index.collect_aborted_txns(15, 6).is_complete, index.collect_aborted_txns(16, 6)[0]
    (True, [])
    """

    corrupt_kind: ClassVar = ErrorKind.CORRUPT_INDEX

    def __init__(self, files: Files, name: str, start_offset: int, writable: bool = True) -> None:
        """Open the file if there is one; it can always be written (TXNIDX-3, TXNIDX-4)."""
        self.files, self.name, self.start_offset = files, name, start_offset
        self.is_open = False
        """Whether there is a channel. Without one nothing is read (TXNIDX-9)."""
        self.position = 0
        """The channel's end of the file, in bytes."""
        self.last_offset: int | None = None
        """The last offset that the next append must exceed, if one is remembered."""
        if name in files:
            self.open_channel()

    def open_channel(self) -> None:
        """Open a channel at the end of the file."""
        self.is_open, self.position = True, len(self.image)

    @property
    def image(self) -> bytes:
        """The exact bytes of the file; none if there is no file."""
        return self.files.image(self.name)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be listed."""
        return not self.entries_list()

    # --- reading -------------------------------------------------------------------------------

    def entries_list(self) -> list[AbortedTxn]:
        """Return every entry that the channel reaches, whatever its version (TXNIDX-8, -9)."""
        return read_aborted_txns(self.image[: self.position]) if self.is_open else []

    def is_known(self, version: int) -> bool:
        """Return whether entries of this version can be read (TXNIDX-2)."""
        return version == 0

    def known_entries(self) -> Iterator[AbortedTxn]:
        """Yield one entry after the other; one of an unknown version is an error."""
        for entry in self.entries_list():
            if not self.is_known(entry.version):
                refuse(ErrorKind.KAFKA_ERROR)
            yield entry

    def all_aborted_txns(self) -> list[AbortedTxn]:
        """Return every entry in the order of the file (TXNIDX-7 to TXNIDX-9)."""
        return list(self.known_entries())

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        """Return the entries that meet [fetch, upper bound) (TXNIDX-10, TXNIDX-11)."""
        found = []
        for entry in self.known_entries():
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(found, True)
        return TxnIndexSearchResult(found, False)

    # --- changing ------------------------------------------------------------------------------

    def append(self, aborted_txn: AbortedTxn) -> None:
        """Add an entry behind the last one (TXNIDX-3 to -7, TXNIDX-9, TXNIDX-16)."""
        if self.last_offset is not None and self.last_offset >= aborted_txn.last_offset:
            refuse(ErrorKind.INVALID_ARGUMENT)
        if not self.can_write(aborted_txn.version):
            refuse(ErrorKind.INVALID_ARGUMENT)
        self.last_offset = aborted_txn.last_offset
        self.write(aborted_txn.to_bytes())

    def can_write(self, version: int) -> bool:
        """Return whether entries of this version are written (TXNIDX-5)."""
        return version == 0

    def write(self, data: bytes) -> None:
        """Write behind the last entry; where there is no channel, open one, or make the file."""
        if not self.is_open:
            self.files.write(self.name, self.image)
            self.open_channel()
        self.put(data)

    def put(self, data: bytes) -> None:
        """Write at the position, and move it."""
        end = self.position + len(data)
        self.files.write(self.name, self.image[: self.position] + data + self.image[end:])
        self.position = end

    def truncate_to(self, offset: int) -> None:
        """Cut the file at the first entry whose last offset is >= `offset` (TXNIDX-12, -13)."""
        kept: int | None = None
        for number, entry in enumerate(self.known_entries()):
            if entry.last_offset >= offset:
                self.cut(34 * number, kept)
                return
            kept = entry.last_offset

    def reset(self) -> None:
        """Empty the file, if there is a channel, and remember nothing (TXNIDX-14)."""
        if self.is_open:
            self.cut(0, None)
        self.last_offset = None

    def cut(self, size: int, last_offset: int | None) -> None:
        """Let the file end here, and remember this offset."""
        self.files.write(self.name, self.image[:size])
        self.position, self.last_offset = size, last_offset

    def sanity_check(self) -> None:
        """Refuse an entry that ends before the segment begins (TXNIDX-15)."""
        for entry in self.known_entries():
            if entry.last_offset < self.start_offset:
                refuse(self.corrupt_kind)

    # --- the file as a file --------------------------------------------------------------------

    def flush(self) -> None:
        """Make the entries durable."""

    def close(self) -> None:
        """Close the channel; a second close does nothing (TXNIDX-9)."""
        self.is_open, self.position = False, 0

    def delete_if_exists(self) -> bool:
        """Close, remove the file, return whether there was one (TXNIDX-17)."""
        self.close()
        return self.files.remove(self.name)

    def rename_to(self, file: str) -> None:
        """Move the file, if there is one, over an existing one too (TXNIDX-18)."""
        was, self.name = self.name, file
        self.files.rename(was, file)
