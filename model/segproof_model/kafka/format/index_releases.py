# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise with the offset, time and transaction index, newest first."""

from typing import Any

from segproof_model.kafka.format import abstract_index, offset_index, time_index, transaction_index
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.time_index import TimestampOffset
from segproof_model.kafka.format.transaction_index import AbortedTxn
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class ClosingTrimsIndexes(Behaviour):
    """Closing an offset or a time index trims it first."""

    laws = ("ABSIDX-14",)
    releases = up_to("4.3.1")
    of_segproof = True

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def close(self) -> None:
            self.trim_to_valid_size()
            super().close()


class UnmappedIndexIsNotFlushed(Behaviour):
    """A flush of an unmapped index raises the unmapped error."""

    laws = ("ABSIDX-17",)
    releases = up_to("4.3.1")
    of_segproof = True

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def flush(self) -> None:
            self.check_mapped()


class VersionIsFirstByte(Behaviour):
    """Of an aborted transaction's version the first byte is read, any up to 0 is known, any is
    written.
    """

    laws = ("TXNIDX-2", "TXNIDX-5")
    releases = up_to("4.3.1")

    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        @override
        def entries_list(self) -> list[AbortedTxn]:
            entries = super().entries_list()
            return [entry._replace(version=entry.version // 256) for entry in entries]

        @override
        def is_known(self, version: int) -> bool:
            return version <= 0

        @override
        def can_write(self, version: int) -> bool:
            return True


class FailedResizeKeepsMapping(Behaviour):
    """A resize to a negative size leaves the index mapped."""

    laws = ("ABSIDX-10",)
    releases = up_to("4.0.0", but=("3.9.2",))
    of_segproof = True

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def fail_resize(self) -> None:
            refuse(ErrorKind.IO_ERROR)


class TrimOfUnmappedFails(Behaviour):
    """Trimming an unmapped, untrimmed index raises the unmapped error."""

    laws = ("ABSIDX-12",)
    releases = up_to("4.0.0", but=("3.9.2",))

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def trim_to_valid_size(self) -> None:
            self.resize(self.size_in_bytes)


class MismatchIsInvalidArgument(Behaviour):
    """A position that is not that of the count is an invalid argument, not an illegal state."""

    laws = ("ABSIDX-9", "TIMEIDX-14")
    releases = up_to("3.4.1")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        mismatch_kind = ErrorKind.INVALID_ARGUMENT


class EntryIsRelative(Behaviour):
    """entry(n) carries the relative offset, not the absolute one."""

    laws = ("OFFIDX-14",)
    releases = up_to("2.2.2")

    class OffsetIndex(offset_index.OffsetIndex):
        """The offset index."""

        @override
        def entry(self, n: int) -> OffsetPosition:
            found = super().entry(n)
            return found._replace(offset=found.offset - self.base_offset)

    class TimeIndex(time_index.TimeIndex):
        """The time index."""

        @override
        def entry(self, n: int) -> TimestampOffset:
            found = super().entry(n)
            return found._replace(offset=found.offset - self.base_offset)


class CloseKeepsMapping(Behaviour):
    """A closed index can still be used."""

    laws = ("ABSIDX-15",)
    releases = up_to("2.1.1")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def close(self) -> None:
            was_mapped = self.is_mapped
            super().close()
            self.is_mapped = was_mapped


class PlainSearch(Behaviour):
    """A slot search begins in the middle of all entries, which is seen only where keys repeat."""

    laws = ("ABSIDX-23", "ABSIDX-26")
    releases = up_to("2.0.1")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def probed(self, keys: list[int], target: int) -> tuple[int, int]:
            return (-1, 0) if keys[0] > target else self.halved(keys, target, 0, self.entries - 1)


class DistanceIsCut(Behaviour):
    """An index keeps an offset too far from its base cut to 32 bits, and does not refuse it."""

    laws = ("OFFIDX-6", "OFFIDX-7", "TIMEIDX-16")
    releases = up_to("1.1.1")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def check_distance(self, offset: int) -> None:
            pass


class BaseIsInsane(Behaviour):
    """sanity_check refuses a last offset equal to the base."""

    laws = ("OFFIDX-20", "OFFIDX-21")
    releases = up_to("1.1.1")

    class OffsetIndex(offset_index.OffsetIndex):
        """The offset index."""

        @override
        def is_sane(self) -> bool:
            return not self.entries or self.last_offset > self.base_offset


class EveryResizeIsMade(Behaviour):
    """A resize to the length that the index has is made too, and none answers."""

    laws = ("ABSIDX-7", "ABSIDX-8", "ABSIDX-12")
    releases = up_to("0.11.0.3")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        resized = None

        @override
        def has_length(self, size: int) -> bool:
            return False


class LastEntryIsRead(Behaviour):
    """A time index reads its last entry from the file each time that it is asked."""

    laws = ("TIMEIDX-4", "TIMEIDX-5", "TIMEIDX-6", "TIMEIDX-9", "TIMEIDX-13")
    releases = up_to("0.11.0.3")

    class TimeIndex(time_index.TimeIndex):
        """The time index."""

        @property
        @override
        def last_entry(self) -> TimestampOffset:
            if not self.entries:
                return self.no_entry
            self.check_mapped()
            if self.size_in_bytes > self.length:
                refuse(ErrorKind.INDEX_ERROR)
            return self.stored(self.entries - 1)


class InsaneIsInvalidArgument(Behaviour):
    """A sanity_check that fails raises invalid-argument, not the corrupt-index error."""

    laws = ("OFFIDX-20", "TIMEIDX-17", "TXNIDX-15")
    releases = up_to("0.11.0.3")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        corrupt_kind = ErrorKind.INVALID_ARGUMENT

    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        corrupt_kind = ErrorKind.INVALID_ARGUMENT


class SanityMeasuresFile(Behaviour):
    """sanity_check asks for the length of the file by the name that it was opened by, which is 0
    once it is renamed, not for the length that it was opened or resized to.
    """

    laws = ("OFFIDX-20", "TIMEIDX-17")
    releases = up_to("0.11.0.3")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        def __init__(self, files: Files, name: str, *arguments: Any, **named: Any) -> None:
            self.opened_name = name
            super().__init__(files, name, *arguments, **named)

        @override
        def check_length(self) -> None:
            if len(self.files.image(self.opened_name)) % self.entry_size:
                refuse(self.corrupt_kind)


class DeletionNeedsChannel(Behaviour):
    """Deleting a transaction index without a channel leaves the file, and answers True."""

    laws = ("TXNIDX-17", "SEG-47")
    releases = up_to("0.11.0.3")

    class TransactionIndex(transaction_index.TransactionIndex):
        """The transaction index."""

        @override
        def delete_if_exists(self) -> bool:
            return super().delete_if_exists() if self.is_open else True


class AlwaysWritable(Behaviour):
    """An offset or a time index cannot be opened for reading only."""

    laws = ("ABSIDX-3", "ABSIDX-11", "OFFIDX-23")
    releases = up_to("0.10.2.2")

    class AbstractIndex(abstract_index.AbstractIndex):
        """Either index."""

        @override
        def open_file(self) -> None:
            self.writable = True
            super().open_file()
