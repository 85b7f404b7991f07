# SPDX-License-Identifier: Apache-2.0
"""Contracts of the index service: which messages are entered, and what of one is entered already.

The service of the implementation is one without files on disk: its files are stand-ins that have
what the decision asks for.

Mirrors: model/segproof_model/rocketmq/broker/index_service.py,
    impl/segproof/rocketmq/index_service.py.
"""

from dataclasses import dataclass
from typing import Any

from segproof.rocketmq import index_service as implementation
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.format.message import DispatchRequest
from segproof_tests.contracts import Mutant, contract

SERVICE = "segproof.rocketmq.index_service"


@dataclass
class _Entry:
    """An entry, as far as it is asked for."""

    phy_offset: int


@dataclass
class _File:
    """A file of the service, as both sides ask it; it takes what is put, as long as it has room."""

    offsets: list[int]
    end_phy_offset: int = 0
    room: int = 0

    @property
    def index_count(self) -> int:
        """The number of the next entry."""
        return len(self.offsets) + 1

    def __len__(self) -> int:
        return len(self.offsets)

    def is_write_full(self) -> bool:
        """Whether no entry has room."""
        return self.room == 0

    def entry(self, index: int) -> _Entry:
        """Return an entry by its number."""
        return _Entry(self.offsets[index - 1])

    def entries_list(self) -> list[_Entry]:
        """Return all entries."""
        return [_Entry(offset) for offset in self.offsets]

    def put_key(self, key: str, phy_offset: int, store_timestamp: int) -> bool:
        """Take an entry."""
        self.offsets.append(phy_offset)
        self.end_phy_offset = phy_offset
        self.room -= 1
        return True


def _implemented(*files: _File) -> Any:
    service: Any = implementation.IndexService.__new__(implementation.IndexService)
    service._list, service._is_closed, service.index_tags = list(files), False, True
    service.writable = True
    return service


def _request(phy_offset: int, sys_flag: int, keys: str = "a b") -> Any:
    return DispatchRequest("T", phy_offset, 100, 0, 1000, 0, keys, None, sys_flag, 0, None)


@contract(
    f"{SERVICE}:IndexService._entries_at_end",
    "RMQSVC-12",
    "2 files with any 4 offsets between them, any offset, counting up to 0 to 5",
    Mutant("count == limit", "count > limit"),
    Mutant("range(len(file), 0, -1)", "range(len(file), 1, -1)"),
    Mutant("reversed(self._list)", "self._list[1:]"),
)
def entries_at_end(offsets: tuple[int, int, int, int], files: int, asked: int, limit: int) -> bool:
    """So many of the last entries as are of one message are counted, over two files.

    pre: 0 <= files <= 4
    pre: 0 <= limit <= 5
    post: _
    """
    older, newer = _File(list(offsets[:files])), _File(list(offsets[files:]), asked)
    service: Any = object.__new__(SEGPROOF.kind(IndexService))
    service.index_files = (older, newer)
    known = 5 - len(service.keys_of(_request(asked, 0, "a b c d e")))
    return bool(_implemented(older, newer)._entries_at_end(asked, limit) == min(limit, known))


@contract(
    f"{SERVICE}:IndexService.build_index",
    "RMQSVC-12",
    "any end of a file with 0 to 3 entries of it, any offset, a message with two keys",
    Mutant("commit_log_offset < file", "commit_log_offset <= file"),
    Mutant("commit_log_offset == file", "commit_log_offset > file"),
)
def offset_rule(end: int, phy_offset: int, known: int) -> bool:
    """A message is passed over below the end, and completed at it; what lies behind is entered.

    pre: 0 <= known <= 3
    post: _
    """
    file = _File([end] * known, end, 9)
    _implemented(file).build_index(_request(phy_offset, 0))
    added = len(file.offsets) - known
    if phy_offset < end:
        return added == 0
    if phy_offset > end:
        return added == 2
    return added == max(2 - known, 0)


@contract(
    f"{SERVICE}:IndexService.build_index",
    "RMQSVC-13",
    "every flag of 6 bits",
    Mutant(
        "request.sys_flag & ROLLED_BACK == ROLLED_BACK",
        "request.sys_flag & ROLLED_BACK == 8",
    ),
)
def rolled_back(sys_flag: int) -> bool:
    """A message is passed over exactly if both bits of its transaction are set.

    pre: 0 <= sys_flag < 64
    post: _
    """
    file = _File([], 0, 9)
    _implemented(file).build_index(_request(1, sys_flag))
    is_rolled_back = sys_flag // 4 % 2 == 1 and sys_flag // 8 % 2 == 1
    return len(file.offsets) == (0 if is_rolled_back else 2)
