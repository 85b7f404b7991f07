# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with the offset, time and transaction index."""

from itertools import pairwise

from segproof_model.kafka.format import abstract_index, offset_index, time_index, transaction_index
from segproof_model.kafka.format.abstract_index import rises
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.language.behaviours import Behaviour, each, guarded, override
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse, undone_if_refused


class FailedIndexChangeIsUndone(Behaviour):
    """An operation on an index that fails has changed nothing."""

    laws = ("ABSIDX-9", "ABSIDX-10", "ABSIDX-19", "TIMEIDX-14", "TIMEIDX-16", "TXNIDX-6")
    of_segproof = True

    @each("resize reset truncate_to trim_to_valid_size rename_to", undone_if_refused)
    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def open_file(self) -> None:
            if self.max_index_size_bytes > INT32_MAX:
                refuse(ErrorKind.INVALID_ARGUMENT)
            with undone_if_refused(self.files):
                super().open_file()

        @override
        def create(self) -> None:
            if not self.writable:
                refuse(ErrorKind.FILE_NOT_FOUND)
            super().create()

        @override
        def check_resize(self, new_size: int, size: int) -> None:
            if self.position > size or new_size > INT32_MAX:
                refuse(ErrorKind.INVALID_ARGUMENT)

    @each("maybe_append", undone_if_refused)
    class TimeIndex(time_index.TimeIndex):
        """The time index."""

    @each("append", undone_if_refused)
    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""


class ReadOnlyIsNotResized(Behaviour):
    """A read-only index refuses a resize, and is closed without one."""

    laws = ("ABSIDX-11",)
    of_segproof = True

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def check_resize(self, new_size: int, size: int) -> None:
            if not self.writable:
                refuse(ErrorKind.READ_ONLY)
            super().check_resize(new_size, size)

        @override
        def close(self) -> None:
            if self.writable or not self.is_mapped:
                super().close()
            else:
                self.close_handler()


class UpperBoundIsExact(Behaviour):
    """An upper bound search finds the first entry and does not wrap at 32 bits."""

    laws = ("ABSIDX-24", "OFFIDX-15", "OFFIDX-16")
    of_segproof = True

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def slots(self, keys: list[int], target: int) -> tuple[int, int]:
            lower, upper = super().slots(keys, target)
            # Where keys fall, the first one is met only if the warm section is passed over.
            is_first = bool(keys) and keys[0] == target <= keys[self.warm_slot]
            return lower, 0 if is_first else upper

    class OffsetIndex(offset_index.OffsetIndex):
        """The offset index."""

        @override
        def end_of(self, fetch_offset: OffsetPosition, fetch_size: int) -> int:
            return fetch_offset.position + fetch_size


class ZeroTailIsFree(Behaviour):
    """The zero slots at the end of an existing file are no entries, but for the only slot of a time
    index.
    """

    laws = ("ABSIDX-4",)
    of_segproof = True

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def count_entries(self) -> int:
            used = self.image[: super().count_entries() * self.entry_size].rstrip(b"\0")
            return -(-len(used) // self.entry_size)

    class TimeIndex(time_index.TimeIndex):
        """The time index."""

        @override
        def count_entries(self) -> int:
            """The only slot is timestamp 0, since closing has left nothing else."""
            return 1 if self.length // 12 == 1 else super().count_entries()


class SanityChecksAll(Behaviour):
    """sanity_check looks at every entry."""

    laws = ("OFFIDX-20", "OFFIDX-21", "TIMEIDX-17", "TXNIDX-15", "LOAD-19")
    of_segproof = True

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        def check_entries(self) -> None:
            """Refuse keys that do not rise, values that fall, and anything negative."""
            keys, values = self.keys(), self.values()
            fall = any(one > two for one, two in pairwise(values))
            if fall or not rises(keys) or min([*keys, *values], default=0) < 0:
                refuse(self.corrupt_kind)

        @override
        def check_length(self) -> None:
            super().check_length()
            self.check_entries()

    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        @override
        def sanity_check(self) -> None:
            entries = self.entries_list()
            last_offsets = [entry.last_offset for entry in entries]
            if (
                self.position % 34
                or not all(self.is_known(entry.version) for entry in entries)
                or min(last_offsets, default=self.start_offset) < self.start_offset
                or not rises(last_offsets)
            ):
                refuse(self.corrupt_kind)


class TransactionsFollowFile(Behaviour):
    """A transaction index that is not closed knows the file at its path."""

    laws = ("TXNIDX-4", "TXNIDX-18")
    of_segproof = True

    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        is_closed = False
        """Whether it was closed or deleted."""

        @override
        def close(self) -> None:
            super().close()
            self.is_closed = True

        @override
        def open_channel(self) -> None:
            """The last offset is known from the start."""
            super().open_channel()
            if self.last_offset is None:
                for entry in self.entries_list()[-1:]:
                    self.last_offset = entry.last_offset

        @override
        def rename_to(self, file: str) -> None:
            """The entries are known after a rename."""
            super().rename_to(file)
            if not (self.is_open or self.is_closed) and self.name in self.files:
                self.open_channel()


class PartialTailIsRefused(Behaviour):
    """An append behind a partial tail raises the corrupt-index error."""

    laws = ("TXNIDX-16",)
    of_segproof = True

    @each("append", undone_if_refused)
    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        @override
        def put(self, data: bytes) -> None:
            if self.position % 34:
                refuse(ErrorKind.CORRUPT_INDEX)
            super().put(data)


def check_writable(index: "TransactionsOpenReadOnly.TransactionIndex") -> None:
    """Refuse to change what was opened for reading only."""
    if not index.writable:
        refuse(ErrorKind.READ_ONLY)


class TransactionsOpenReadOnly(Behaviour):
    """A transaction index can be opened for reading only."""

    laws = ("TXNIDX-6",)
    of_segproof = True

    @guarded("write truncate_to reset", check_writable)
    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        def __init__(
            self, files: Files, name: str, start_offset: int, writable: bool = True
        ) -> None:
            self.writable = writable
            super().__init__(files, name, start_offset)


def check_open(index: "ClosedIndexIsClosed.TransactionIndex") -> None:
    """Refuse any use of what was closed."""
    if index.is_closed:
        refuse(ErrorKind.UNMAPPED)


class ClosedIndexIsClosed(Behaviour):
    """Every use of a closed index raises the unmapped error, but closing it again does nothing."""

    laws = ("ABSIDX-17", "TXNIDX-9", "TXNIDX-17")
    of_segproof = True

    @guarded("keep_entries resize check_entry flush", abstract_index.AbstractIndex.check_mapped)
    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def trim_to_valid_size(self) -> None:
            self.resize(self.size_in_bytes)

        @override
        def close(self) -> None:
            if self.is_mapped:
                super().close()

    @guarded("append sanity_check", abstract_index.AbstractIndex.check_mapped)
    class OffsetIndex(offset_index.OffsetIndex):
        """The offset index."""

    @guarded("maybe_append sanity_check", abstract_index.AbstractIndex.check_mapped)
    class TimeIndex(time_index.TimeIndex):
        """The time index."""

    @guarded(
        "all_aborted_txns collect_aborted_txns append truncate_to reset sanity_check flush",
        check_open,
    )
    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        is_closed = False
        """Whether it was closed or deleted."""

        @override
        def close(self) -> None:
            super().close()
            self.is_closed = True
