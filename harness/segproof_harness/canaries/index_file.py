# SPDX-License-Identifier: Apache-2.0
"""Planted defects of RocketMQ's index file."""

import struct
from typing import Any

from segproof.rocketmq.index_file import IndexEntry, IndexFile
from segproof.rocketmq.key_hash import hash_code
from segproof_harness.canaries.register import canary

LEAST = -(2**31)
_INT32 = struct.Struct(">i")


class _Patched(IndexFile):
    """An index file whose entries are changed once they are put."""

    def _put(self, published: Any, key_hash: int, phy_offset: int, store_timestamp: int) -> None:
        view, index, begin = published
        slot_value = _INT32.unpack_from(view, 40 + key_hash % self.hash_slot_num * 4)[0]
        end = self.end_timestamp
        super()._put(published, key_hash, phy_offset, store_timestamp)
        self._after_put(self.entry(index), slot_value, store_timestamp, begin, end)

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        """Plant the defect; `begin` and `end` are those of the header before the put."""
        raise NotImplementedError

    def _set(self, index: int, place: int, value: int) -> None:
        """Write an int32 into an entry."""
        at = 40 + self.hash_slot_num * 4 + index * 20 + place
        _INT32.pack_into(self._current()[0], at, max(min(value, 2**31 - 1), LEAST))


@canary("R-01", "index-file", "RMQHASH-2", "RMQHASH-6")
class R01IndexFile(IndexFile):
    """The least hash, which has no absolute value, is kept as it is."""

    def index_key_hash_method(self, key: str) -> int:
        """Return the hash without the rule for the least one."""
        found = super().index_key_hash_method(key)
        return LEAST if hash_code(key) == LEAST else found


@canary("R-01b", "index-file", "RMQIDX-3", "RMQHASH-2")
class R01bIndexFile(_Patched):
    """An entry keeps the signed hash, as releases before 3.1 did."""

    signed = 0

    def index_key_hash_method(self, key: str) -> int:
        """Remember the signed hash."""
        found = super().index_key_hash_method(key)
        self.signed = hash_code(key)
        return found

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        if abs(self.signed) == entry.key_hash:
            self._set(entry.index, 0, self.signed)


@canary("R-02", "index-file", "RMQIDX-21")
class R02IndexFile(_Patched):
    """The time difference is kept in milliseconds."""

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        if entry.time_diff > 0:
            self._set(entry.index, 12, store_timestamp - begin)


@canary("R-09", "index-file", "RMQIDX-24", "RMQIDX-30")
class R09IndexFile(_Patched):
    """The slot count grows with every put, as in releases up to 4.7.0."""

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        if entry.prev_index != 0:
            self._header.hash_slot_count += 1
            self._header.update_byte_buffer()


@canary("R-16", "index-file", "RMQIDX-26")
class R16IndexFile(_Patched):
    """The first entry is dated from itself, not from the end of the file before."""

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        if entry.index == 1:
            self._set(entry.index, 12, 0)


@canary("R-20", "index-file", "RMQIDX-25")
class R20IndexFile(_Patched):
    """The end timestamp is the largest one, not the last."""

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        self._header.end_timestamp = max(end, store_timestamp)
        self._header.update_byte_buffer()


@canary("R-21", "index-file", "RMQIDX-29", "RMQIDX-20")
class R21IndexFile(_Patched):
    """A slot that a crash left at the count makes the new entry follow itself."""

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        if slot_value == entry.index:
            self._set(entry.index, 16, entry.index)


@canary("R-23", "index-file", "RMQIDX-39")
class R23IndexFile(IndexFile):
    """A query for a null key takes the reference and never gives it back."""

    def select_phy_offset(
        self, phy_offsets: list[int], key: str, max_num: int, begin: int, end: int
    ) -> list[int]:
        """Hold, then look at the key."""
        self._resource.hold()
        found = super().select_phy_offset(phy_offsets, key, max_num, begin, end)
        self._resource.release()
        return found


@canary("R-31", "index-file", "RMQIDX-21", "RMQIDX-33")
class R31IndexFile(_Patched):
    """The time difference is rounded to the nearest second, not cut."""

    def _after_put(
        self, entry: IndexEntry, slot_value: int, store_timestamp: int, begin: int, end: int
    ) -> None:
        if entry.time_diff > 0:
            self._set(entry.index, 12, (store_timestamp - begin + 500) // 1000)


@canary("R-35", "index-file", "RMQIDX-36")
class R35IndexFile(IndexFile):
    """A walk goes on behind an entry that is older than the window."""

    def _found(self, key_hash: int, room: int, begin: int, end: int) -> list[int]:
        """Walk from the beginning of time, then look at the window."""
        every = super()._found(key_hash, room and 10**6, -(2**63), end)
        chain = {entry.phy_offset: entry for entry in self if entry.key_hash == key_hash}
        times = {one: self.begin_timestamp + 1000 * chain[one].time_diff for one in every}
        return [one for one in every if times[one] >= begin][: max(room, 0)]


@canary("R-36", "index-file", "RMQIDX-31")
class R36IndexFile(IndexFile):
    """What a query finds comes oldest first."""

    def _found(self, key_hash: int, room: int, begin: int, end: int) -> list[int]:
        """Turn it around."""
        return super()._found(key_hash, room, begin, end)[::-1]


@canary("R-37", "index-file", "RMQIDX-31")
class R37IndexFile(IndexFile):
    """The offsets that a query was given do not count towards the most it may find."""

    def select_phy_offset(
        self, phy_offsets: list[int], key: str, max_num: int, begin: int, end: int
    ) -> list[int]:
        """Ask for as many again."""
        return super().select_phy_offset(phy_offsets, key, max_num + len(phy_offsets), begin, end)
