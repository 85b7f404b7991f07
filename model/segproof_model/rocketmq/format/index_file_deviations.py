# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with an index file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from segproof_model.language.behaviours import Behaviour, each, override
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse, undone_if_refused
from segproof_model.rocketmq.format import index_file
from segproof_model.rocketmq.format.index_file import ENTRY_SIZE, SLOT_SIZE
from segproof_model.rocketmq.format.index_header import HEADER_SIZE


class ChainsAreChecked(Behaviour):
    """A chain of entries that does not lead downwards is corrupt, and no put makes one."""

    laws = (
        "RMQIDX-20",
        "RMQIDX-29",
        "RMQIDX-32",
        "RMQIDX-35",
        "RMQIDX-36",
        "RMQIDX-37",
        "RMQIDX-38",
        "RMQIDX-40",
    )
    of_segproof = True

    class IndexFile(index_file.IndexFile):
        """The index file."""

        @override
        def accepted(self, index: int) -> int:
            return index if 0 < index < self.index_count else 0

        @override
        def walk(self, found: list[int], key_hash: int, max_num: int, begin: int, end: int) -> None:
            current = self.slot_value(key_hash)
            if current == 0 or self.index_count <= 1:
                return
            above = self.index_count
            while current is not None and 0 < current < above:
                if len(found) >= max_num:
                    return
                # A number without room is none, though its place may wrap into the file.
                entry = self.entry(current) if current < self.index_num else None
                if entry is None or entry.time_diff < 0:
                    break
                time_read = self.time_read(entry)
                if entry.key_hash == key_hash and begin <= time_read <= end:
                    found.append(entry.phy_offset)
                if entry.prev_index == 0 or time_read < begin:
                    return
                above, current = current, entry.prev_index
            refuse(ErrorKind.CORRUPT_INDEX)


class SizeIsChecked(Behaviour):
    """An index file of another size, or numbers of slots and entries that give none, are refused,
    and nothing is created or grown, but a file of no bytes.
    """

    laws = ("RMQHASH-4", "RMQIDX-9", "RMQIDX-10", "RMQSVC-2")
    of_segproof = True

    class IndexFile(index_file.IndexFile):
        """The index file."""

        @override
        def map_file(self) -> None:
            size = HEADER_SIZE + self.hash_slot_num * SLOT_SIZE + self.index_num * ENTRY_SIZE
            if self.hash_slot_num < 1 or self.index_num < 2 or size > INT32_MAX:
                refuse(ErrorKind.INVALID_ARGUMENT)
            if self.image and len(self.image) != size:
                refuse(ErrorKind.CORRUPT_INDEX)
            super().map_file()


class RefusedQueryLetsGo(Behaviour):
    """A query for a null key does not leave the file held."""

    laws = ("RMQIDX-39",)
    of_segproof = True

    class IndexFile(index_file.IndexFile):
        """The index file."""

        @override
        def select_phy_offset(
            self, phy_offsets: Sequence[int], key: str | None, max_num: int, begin: int, end: int
        ) -> tuple[int, ...]:
            with undone_if_refused(self.resource):
                return super().select_phy_offset(phy_offsets, key, max_num, begin, end)


@contextmanager
def while_mapped(file: index_file.IndexFile) -> Iterator[None]:
    """Refuse any use of a file that was closed."""
    file.check_mapped()
    yield


class ClosedFileIsClosed(Behaviour):
    """Every use of a closed index file raises the unmapped error, but closing it again does
    nothing.

    Upstream a query to a destroyed file finds nothing.
    """

    laws = ("RMQIDX-17", "RMQREF-4")
    of_segproof = True

    @each("put_key select_phy_offset", while_mapped)
    class IndexFile(index_file.IndexFile):
        """The index file."""

        @override
        def shutdown(self) -> None:
            super().shutdown()
            if self.is_available:
                self.resource.shutdown(0, self.files.now_ms)
