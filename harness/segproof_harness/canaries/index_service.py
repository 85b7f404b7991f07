# SPDX-License-Identifier: Apache-2.0
"""Planted defects of RocketMQ's index service."""

import contextlib
from typing import Any, Self

from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_service import IndexService, QueryOffsetResult, index_file_name
from segproof.rocketmq.key_hash import build_key
from segproof.rocketmq.message import DispatchRequest
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.canaries.register import canary

TRANSACTION_BITS = 12
COMMIT = 8


@canary("R-03", "index-service", "RMQSVC-21")
class R03IndexService(IndexService):
    """Expired files leave the list and stay on disk."""

    def delete_expired_file(self, offset: int) -> None:
        """Close them only."""
        self._check_open()
        while len(self._list) > 1 and self._list[0].end_phy_offset < offset:
            self._list.pop(0).shutdown()


class _NoMargin(StoreCheckpoint):
    """A checkpoint that trusts its two times to the millisecond."""

    @property
    def min_timestamp(self) -> int:
        """The earlier of the two."""
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp))


@canary("R-04", "index-service", "RMQCKPT-4")
class R04IndexService(IndexService):
    """The checkpoint's time has no safety margin."""

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> Self:
        """Open with such a checkpoint."""
        service = super().open(*arguments, **options)
        service.store_checkpoint.__class__ = _NoMargin
        return service


@canary("R-05a", "index-service", "RMQSVC-13")
class R05aIndexService(IndexService):
    """A committed transaction is not indexed, since its prepared message was."""

    def build_index(self, request: DispatchRequest) -> None:
        """Skip it."""
        if request.sys_flag & TRANSACTION_BITS == COMMIT:
            self.retry_get_and_create_index_file()
        else:
            super().build_index(request)


@canary("R-05b", "index-service", "RMQSVC-13")
class R05bIndexService(IndexService):
    """A rolled back transaction is indexed."""

    def build_index(self, request: DispatchRequest) -> None:
        """Take it for any other message."""
        super().build_index(request._replace(sys_flag=0))


@canary("R-07a", "index-service", "RMQSVC-14", "RMQHASH-5")
class R07aIndexService(IndexService):
    """The unique key is entered without its topic."""

    def _keys_of(self, request: DispatchRequest) -> list[str]:
        keys = super()._keys_of(request)
        return keys if request.uniq_key is None else [request.uniq_key, *keys[1:]]


@canary("R-07b", "index-service", "RMQSVC-14")
class R07bIndexService(IndexService):
    """A message without a unique key is entered under null."""

    def _keys_of(self, request: DispatchRequest) -> list[str]:
        keys = super()._keys_of(request)
        return [build_key(request.topic, None), *keys] if request.uniq_key is None else keys


@canary("R-18", "index-service", "RMQSVC-9")
class R18IndexService(IndexService):
    """Two files of one millisecond share a name."""

    def _free_name(self) -> str:
        return index_file_name(self._time(), self._zone)


@canary("R-19", "index-service", "RMQSVC-12")
class R19IndexService(IndexService):
    """A message at the end of the index has all its entries, whatever a crash left."""

    def build_index(self, request: DispatchRequest) -> None:
        """Skip what is not behind the end."""
        file = self.retry_get_and_create_index_file()
        if file.index_count == 1 or request.commit_log_offset != file.end_phy_offset:
            super().build_index(request)


@canary("R-24", "index-service", "RMQSVC-4")
class R24IndexService(IndexService):
    """After a crash a file goes though its end is just what the checkpoint covers."""

    def load(self, last_exit_ok: bool) -> bool:
        """Compare with >=."""
        checkpoint = self.store_checkpoint
        before = checkpoint.index_msg_timestamp
        checkpoint.index_msg_timestamp = before - 1
        try:
            return super().load(last_exit_ok)
        finally:
            checkpoint.index_msg_timestamp = before


@canary("R-25", "index-service", "RMQSVC-19")
class R25IndexService(IndexService):
    """A file without entries ends a query, as in every release."""

    def query_offset(
        self,
        topic: str | None,
        key: str | None,
        max_num: int,
        begin: int,
        end: int,
        index_type: str | None = None,
    ) -> QueryOffsetResult:
        """Find nothing behind it."""
        found = super().query_offset(topic, key, max_num, begin, end, index_type)
        hidden = bool(self._list) and self._list[-1].index_count == 1
        return found._replace(phy_offsets=()) if hidden and begin > 0 else found


@canary("R-32", "index-service", "RMQSVC-15")
class R32IndexService(IndexService):
    """Keys are split at any white space."""

    def _keys_of(self, request: DispatchRequest) -> list[str]:
        keys = " ".join((request.keys or "").split())
        return super()._keys_of(request._replace(keys=keys))


@canary("R-33", "index-service", "RMQSVC-1")
class R33IndexService(IndexService):
    """The files are listed by the number that their name is."""

    def load(self, last_exit_ok: bool) -> bool:
        """Sort again."""
        answer = super().load(last_exit_ok)
        with contextlib.suppress(ValueError):
            self._list.sort(key=lambda file: int(file.file_name.rpartition("/")[2]))
        return answer


@canary("R-34", "index-service", "RMQSVC-21")
class R34IndexService(IndexService):
    """Expiry takes the last file too."""

    def delete_expired_file(self, offset: int) -> None:
        """Go on to the end."""
        super().delete_expired_file(offset)
        if len(self._list) == 1 and self._list[0].end_phy_offset < offset:
            self._list.pop().destroy(0)


@canary("R-38", "index-service", "RMQSVC-6")
class R38IndexService(IndexService):
    """A new file does not begin with the end of the full one."""

    def _open_file(
        self, name: str, end_phy_offset: int, end_timestamp: int, *, create: bool
    ) -> IndexFile:
        return super()._open_file(name, 0, 0, create=create)


@canary("R-39", "index-service", "RMQSVC-10")
class R39IndexService(IndexService):
    """The checkpoint keeps the largest end of a full file, not the last one."""

    def _flush(self, file: IndexFile) -> None:
        before = self.store_checkpoint.index_msg_timestamp
        super()._flush(file)
        if self.store_checkpoint.index_msg_timestamp < before:
            self.store_checkpoint.set_index_msg_timestamp(before)
            self.store_checkpoint.flush()
