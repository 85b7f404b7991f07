# SPDX-License-Identifier: Apache-2.0
"""The transaction index: which transactions of a segment were aborted.

Upstream: Kafka, TransactionIndex and AbortedTxn (since 1.1.1).
Layout: entry i is bytes 34i..34i+33: ABORTED_TXN of layouts/kafka.py; nothing else in the file.
Laws: TXNIDX-1 to TXNIDX-18.
Not covered: whether an entry belongs to a control batch; `segproof.verify` looks at that.
"""

import errno
import os
import struct
from collections.abc import Iterable, Iterator
from operator import index as to_int
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from segproof.closing import Closing, told_state, undone_if_it_fails
from segproof.counts import plural
from segproof.errors import (
    CorruptIndexError,
    IndexClosedError,
    InvalidArgumentError,
    ReadOnlyIndexError,
    SegproofError,
)
from segproof.files import REAL_FILES, File, Files
from segproof.kafka.segment_names import base_offset_of, named_base_offset
from segproof.layouts.kafka import ABORTED_TXN

_ENTRY = ABORTED_TXN.struct()
_ENTRIES_A_READ = 4096


class AbortedTxn(NamedTuple):
    """One aborted transaction."""

    version: int
    """0 in every release."""
    producer_id: int
    first_offset: int
    """Offset of the first record, inclusive."""
    last_offset: int
    """Offset of the marker that ended the transaction, inclusive."""
    last_stable_offset: int
    """First offset that was undecided when the marker was written."""

    def to_bytes(self) -> bytes:
        """Return the entry as 34 bytes.

        Laws: TXNIDX-1.
        Raises: InvalidArgumentError for a version of more than 16, a number of more than 64 bits.
        """
        try:
            return _ENTRY.pack(*self)
        except struct.error as error:
            raise InvalidArgumentError(f"{self} does not fit an entry: {error}") from error

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, position: int = 0) -> "AbortedTxn":
        """Return the entry in the 34 bytes at `position`.

        Raises: InvalidArgumentError if there are fewer bytes.
        """
        if position < 0 or len(data) - position < _ENTRY.size:
            raise InvalidArgumentError(f"no 34 bytes at position {position} of {len(data)}")
        return cls._make(_ENTRY.unpack_from(data, position))


ABORTED_TXN_DTYPE = ABORTED_TXN.dtype.newbyteorder("=")
"""One entry in native byte order, as `read_aborted_txns` returns it."""


class TxnIndexSearchResult(NamedTuple):
    """The aborted transactions that meet a range of offsets."""

    aborted_transactions: list[AbortedTxn]
    is_complete: bool
    """Whether no later segment can hold another one."""


def read_aborted_txns(data: bytes | bytearray | memoryview) -> npt.NDArray[Any]:
    """Return every whole entry of a file's bytes as an array of `ABORTED_TXN_DTYPE`.

    The array has its own memory, in native byte order. A partial tail is passed over, and no value
    is judged: a damaged version is there to be seen.
    Laws: TXNIDX-1, TXNIDX-8.
    """
    count = len(data) // _ENTRY.size
    raw = np.frombuffer(data, ABORTED_TXN.dtype, count)
    return raw.astype(ABORTED_TXN_DTYPE)


class TransactionIndex(Closing):
    """The aborted transactions of one segment, in the order of their markers.

    Made by `open`, or directly with Kafka's arguments: the segment's base offset, None for the one
    that the name of the file says, and the path. A missing file is an empty index. Without
    `writable` or `create` no entry is written or cut. With `create=True` the index is writable, and
    the first `append` makes a missing file.

    One thread may write while others read: a reader sees an entry whole or not at all.
    """

    ENTRY_SIZE: ClassVar[int] = _ENTRY.size

    def __init__(
        self,
        start_offset: int | None,
        file: str | os.PathLike[str],
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> None:
        self.file = os.fspath(file)
        """The path, whether or not the file exists yet."""
        self.start_offset = base_offset_of(self.file, ".txnindex", start_offset)
        self.writable = writable or create
        """Whether it may change the file."""
        self._may_create = create
        self._files = files
        self._open: tuple[File | None, int] | None = (None, 0)
        """The file and its size in bytes, published as one; None once closed."""
        self.last_offset: int | None = None
        """The last offset that the next append must exceed, if there is an entry."""
        self._open_existing()

    @classmethod
    def open(
        cls,
        file: str | os.PathLike[str],
        start_offset: int | None = None,
        *,
        writable: bool = False,
        create: bool = False,
        files: Files = REAL_FILES,
    ) -> Self:
        """Open the index of a segment; its base offset is the one that the name of the file says.

        Raises: InvalidArgumentError for a base offset that the name does not say, or says
        otherwise, and, where only the caller says it, for one above the last offset of the first
        entry; OSError.
        """
        index = cls(start_offset, file, writable=writable, create=create, files=files)
        if named_base_offset(index.file, ".txnindex") is not None:
            return index
        with undone_if_it_fails(index.close):
            first = next(index._entries(), None)
            if first is not None and first.last_offset < index.start_offset:
                raise InvalidArgumentError(
                    f"the base offset is not {index.start_offset}: the first transaction ended"
                    f" at {first.last_offset}",
                    law="TXNIDX-15",
                    path=index.file,
                    expected=f"at most {first.last_offset}",
                    actual=index.start_offset,
                    hint="pass the base offset of the file's own segment",
                )
        return index

    def _open_existing(self) -> None:
        try:
            file = self._files.open(self.file, writable=self.writable)
        except FileNotFoundError:
            return
        with undone_if_it_fails(file.close):
            size = file.size()
            while count := size // _ENTRY.size:
                last = file.pread(_ENTRY.size, (count - 1) * _ENTRY.size)
                now = file.size()
                if len(last) == _ENTRY.size or now >= size:
                    self.last_offset = AbortedTxn.from_bytes(last).last_offset
                    break
                size = now  # its writer has cut it meanwhile
        self._open = (file, size)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be listed."""
        return len(self) == 0

    def __len__(self) -> int:
        """Return the number of whole entries; 0 once closed."""
        return 0 if self._open is None else self._open[1] // _ENTRY.size

    def __iter__(self) -> Iterator[AbortedTxn]:
        """Iterate over the entries in the order of the file.

        Raises: IndexClosedError; SegproofError for an entry of an unknown version.
        """
        for number, entry in enumerate(self._entries()):
            self._refuse_unknown_version(number, entry)
            yield entry

    def __repr__(self) -> str:
        is_open = self._open is not None
        state = told_state(plural(len(self), "entry"), is_open=is_open, writable=self.writable)
        return f"TransactionIndex({self.start_offset}, {self.file!r}, {state})"

    def to_bytes(self) -> bytes:
        """Return the exact bytes of the file; none if there is no file.

        Raises: IndexClosedError.
        """
        file, size = self._opened()
        return b"" if file is None else file.pread(size, 0)

    def all_aborted_txns(self) -> list[AbortedTxn]:
        """Return every entry in the order of the file.

        Laws: TXNIDX-2, TXNIDX-7, TXNIDX-8.
        Raises: IndexClosedError; SegproofError for an entry of an unknown version.
        """
        return list(self)

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        """Return the entries that meet the offsets from `fetch_offset` up to the upper bound.

        `upper_bound_offset` is exclusive. The search ends, complete, at the first entry whose last
        stable offset is not below it; an entry behind that one is not looked at.
        Laws: TXNIDX-10, TXNIDX-11.
        Raises: IndexClosedError; SegproofError for an entry of an unknown version.
        """
        return aborted_txns_in_range(self, to_int(fetch_offset), to_int(upper_bound_offset))

    def append(self, aborted_txn: AbortedTxn) -> None:
        """Add an entry behind the last one; the first one creates the file.

        Nothing has changed when an error is raised; the last offset is remembered after the write.
        First offset and last stable offset are not checked.
        Laws: TXNIDX-3 to TXNIDX-7, TXNIDX-16.
        Raises: IndexClosedError; InvalidArgumentError for a last offset that is not above that of
        the last entry, or a version other than 0; ReadOnlyIndexError; CorruptIndexError if the file
        ends with a partial entry; FileNotFoundError without a file and without `create`;
        FileExistsError if another program has created the file.
        """
        aborted_txn = AbortedTxn._make(map(to_int, aborted_txn))
        self.check_append(aborted_txn)
        file, size = self._opened()
        data = aborted_txn.to_bytes()
        if file is None:
            file = self._create()
        file.pwrite(data, size)
        self._open = (file, size + len(data))
        self.last_offset = aborted_txn.last_offset

    def check_append(self, aborted_txn: AbortedTxn) -> None:
        """Return if `append` would take the entry, but for an error of the system; else raise."""
        file, size = self._opened()
        last = self.last_offset
        if last is not None and last >= aborted_txn.last_offset:
            raise InvalidArgumentError(
                f"last offset {aborted_txn.last_offset} is not above {last}, the last entry's",
                law="TXNIDX-5",
                path=self.file,
                expected=f"> {last}",
                actual=aborted_txn.last_offset,
            )
        if aborted_txn.version != 0:
            raise InvalidArgumentError(
                f"version {aborted_txn.version} is unknown; only 0 is written",
                law="TXNIDX-1",
                path=self.file,
                expected=0,
                actual=aborted_txn.version,
            )
        self._refuse_read_only()
        if file is None and not self._may_create:
            raise FileNotFoundError(
                errno.ENOENT, "there is no such file; create=True makes it", self.file
            )
        if size % _ENTRY.size:
            raise self._partial_tail(size)

    def truncate_to(self, offset: int) -> None:
        """Cut the file at the first entry whose last offset is not below `offset`.

        Without such an entry nothing happens; a partial tail stays then too.
        Laws: TXNIDX-12, TXNIDX-13.
        Raises: IndexClosedError; ReadOnlyIndexError; SegproofError for an entry of an unknown
        version before the cut.
        """
        offset = to_int(offset)
        self._opened()
        self._refuse_read_only()
        place = self.place_of_truncation(offset)
        if place is not None:
            self._cut(*place)

    def place_of_truncation(self, offset: int) -> tuple[int, int | None] | None:
        """Return where `truncate_to` cuts the file, and the last offset that stays; None: nowhere.

        Laws: TXNIDX-12.
        Raises: IndexClosedError; SegproofError for an entry of an unknown version before the cut.
        """
        offset = to_int(offset)
        self._opened()
        kept: int | None = None
        for number, entry in enumerate(self):
            if entry.last_offset >= offset:
                return number * _ENTRY.size, kept
            kept = entry.last_offset
        return None

    def reset(self) -> None:
        """Forget every entry; a file that exists is cut to length 0, not removed.

        Laws: TXNIDX-14.
        Raises: IndexClosedError; ReadOnlyIndexError.
        """
        self._opened()
        self._refuse_read_only()
        self._cut(0, None)

    def sanity_check(self) -> None:
        """Look at every entry: whole, version 0, last offsets rising and not below the start.

        Laws: TXNIDX-1, TXNIDX-5, TXNIDX-15.
        Raises: IndexClosedError; CorruptIndexError at the first entry that is broken.
        """
        previous = None
        for number, entry in enumerate(self._entries()):
            self._refuse_broken(number, entry, previous)
            previous = entry.last_offset
        size = self._opened()[1]
        if size % _ENTRY.size:
            raise self._partial_tail(size)

    def flush(self) -> None:
        """Write the entries to the device and wait.

        Raises: IndexClosedError.
        """
        file, _ = self._opened()
        if file is not None and self.writable:
            file.sync()

    def close(self) -> None:
        """Close the file; afterwards only `rename_to` and `delete_if_exists` work.

        A second close does nothing. Nothing is flushed.
        Laws: TXNIDX-9.
        """
        opened, self._open = self._open, None
        if opened is not None and opened[0] is not None:
            opened[0].close()

    def delete_if_exists(self) -> bool:
        """Close, remove the file, return whether there was one.

        Laws: TXNIDX-17.
        """
        self.close()
        return self._files.remove(self.file)

    def rename_to(self, file: str | os.PathLike[str]) -> None:
        """Move the file, if there is one, to the path `file`, over an existing one too.

        Without a file only the path changes, and an index that is not closed opens what is there.
        Laws: TXNIDX-18.
        Raises: OSError if the move fails; the path has not changed then.
        """
        if self._files.status(self.file) is not None:
            self._files.rename(self.file, os.fspath(file))
        self.file = os.fspath(file)
        self._open_if_missing()

    def update_parent_dir(self, parent_dir: str | os.PathLike[str]) -> None:
        """Follow the directory that was moved to `parent_dir`; no file is touched."""
        self.file = os.path.join(parent_dir, os.path.basename(self.file))
        self._open_if_missing()

    def _open_if_missing(self) -> None:
        if self._open is not None and self._open[0] is None:
            self._open_existing()

    def _opened(self) -> tuple[File | None, int]:
        if self._open is None:
            raise IndexClosedError(
                "the transaction index is closed",
                law="TXNIDX-9",
                path=self.file,
                hint="open the file again with TransactionIndex.open(file)",
            )
        return self._open

    def _entries(self) -> Iterator[AbortedTxn]:
        """Iterate over the entries, whatever their version; the size is that of the start."""
        file, size = self._opened()
        end = size // _ENTRY.size * _ENTRY.size
        step = _ENTRIES_A_READ * _ENTRY.size
        for start in range(0, end, step):
            try:
                data = b"" if file is None else file.pread(min(step, end - start), start)
            except (OSError, ValueError):
                self._opened()  # raises the clearer error if another thread has closed the index
                raise
            whole = len(data) // _ENTRY.size * _ENTRY.size
            yield from map(AbortedTxn._make, _ENTRY.iter_unpack(data[:whole]))

    def _create(self) -> File:
        file = self._files.create_new(self.file)
        if file is None:
            raise FileExistsError(
                f"{self.file}: the file was created by another program; open the index again"
            )
        self._open = (file, 0)
        return file

    def _cut(self, size: int, last_offset: int | None) -> None:
        file, _ = self._opened()
        if file is not None:
            # A reader that still has the old size reads to the end of the file, which it expects.
            file.truncate(size)
            self._open = (file, size)
        self.last_offset = last_offset

    def _refuse_read_only(self) -> None:
        if not self.writable:
            raise ReadOnlyIndexError(
                "the transaction index was opened for reading",
                path=self.file,
                hint="open it with writable=True",
            )

    def _refuse_unknown_version(self, number: int, entry: AbortedTxn) -> None:
        if entry.version != 0:
            raise SegproofError(
                f"entry {number} has version {entry.version}; only 0 is known",
                law="TXNIDX-2",
                path=self.file,
                position=number * _ENTRY.size,
                expected=0,
                actual=entry.version,
                hint="the file is damaged, or from a newer release",
            )

    def _refuse_broken(self, number: int, entry: AbortedTxn, previous: int | None) -> None:
        if entry.version != 0:
            law, expected, actual = "TXNIDX-1", "version 0", f"version {entry.version}"
        elif entry.last_offset < self.start_offset:
            law, expected = "TXNIDX-15", f"last offset >= {self.start_offset}, the start offset"
            actual = f"last offset {entry.last_offset}"
        elif previous is not None and entry.last_offset <= previous:
            law, expected = "TXNIDX-5", f"last offset > {previous}, that of the entry before"
            actual = f"last offset {entry.last_offset}"
        else:
            return
        raise CorruptIndexError(
            f"entry {number} has {actual}, expected {expected}",
            law=law,
            path=self.file,
            position=number * _ENTRY.size,
            expected=expected,
            actual=actual,
            hint="the index can be rebuilt from the log",
        )

    def _partial_tail(self, size: int) -> CorruptIndexError:
        return CorruptIndexError(
            f"{plural(size % _ENTRY.size, 'byte')} behind the last whole entry; an entry has"
            f" {_ENTRY.size}",
            law="TXNIDX-16",
            path=self.file,
            position=size // _ENTRY.size * _ENTRY.size,
            expected=f"a length that is a multiple of {_ENTRY.size}",
            actual=size,
            hint="the index can be rebuilt from the log; `reset` forgets all of it",
        )


def aborted_txns_in_range(
    entries: Iterable[AbortedTxn], fetch_offset: int, upper_bound_offset: int
) -> TxnIndexSearchResult:
    """Return the entries that meet [fetch offset, upper bound), in the order of the file.

    Complete at the first entry whose last stable offset is not below the upper bound.
    Laws: TXNIDX-10, TXNIDX-11.
    """
    found = []
    for entry in entries:
        if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
            found.append(entry)
        if entry.last_stable_offset >= upper_bound_offset:
            return TxnIndexSearchResult(found, True)
    return TxnIndexSearchResult(found, False)
