# SPDX-License-Identifier: Apache-2.0
"""Kafka's TransactionIndex as the harness calls it.

Upstream: kafka.log.TransactionIndex (0.11 to 3.4), the same name in
org.apache.kafka.storage.internals.log since.
"""

from typing import Any, ClassVar

from jpype import JLong

from segproof.errors import InvalidArgumentError
from segproof_harness.releases.jvm import Adapter, constructor, named_alike
from segproof_harness.releases.kafka.answers import aborted_txns, collected
from segproof_harness.releases.kafka.classes import storage_class
from segproof_model.kafka.format.transaction_index import AbortedTxn

IS_EMPTY_SINCE = (4, 0)
"""The first version that can be asked whether the index is empty."""
VERSION_UNTIL = (4, 4)
"""The first version whose entries are not kept as bytes, with a version."""


class TransactionIndex(Adapter):
    """The transaction index. The real class has no read-only form: `writable` says nothing."""

    calls: ClassVar = {
        **named_alike("is_empty", "truncate_to", "sanity_check", "flush", "close"),
        "reset": ("reset", "truncate"),
        "delete_if_exists": ("deleteIfExists", "delete"),
    }
    """The later names are those up to 1.0."""

    _kind: ClassVar[Any]
    _txn_kind: ClassVar[Any]
    _keeps_version: ClassVar[bool]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "jvm"):
            return
        number = cls.jvm.release.number
        cls.unobserved = frozenset({"is_empty"} if number < IS_EMPTY_SINCE else ())
        cls._kind = storage_class(cls.jvm, "TransactionIndex")
        cls._keeps_version = number < VERSION_UNTIL
        if cls._keeps_version:
            cls._txn_kind = storage_class(cls.jvm, "AbortedTxn")
        else:
            cls._txn_kind = cls.jvm.java("org.apache.kafka.common.message.AbortedTxn")

    def __init__(self, start_offset: int, file: str, writable: bool, files: Any) -> None:
        self._real = self._kind(JLong(start_offset), self.jvm.file(file))

    def append(self, aborted_txn: AbortedTxn) -> None:
        """Call append; other versions than 0 are made from bytes, since only those know them.

        Raises InvalidArgumentError for such a version if entries are not kept as bytes.
        """
        if not self._keeps_version:
            self._real.append(self._new_txn(aborted_txn))
            return
        if aborted_txn.version == 0:
            self._real.append(self._txn_kind(*aborted_txn[1:]))
            return
        buffer = self.jvm.java("java.nio.ByteBuffer")
        from_bytes = constructor(self._txn_kind, buffer)
        self._real.append(from_bytes.newInstance(buffer.wrap(aborted_txn.to_bytes())))

    def _new_txn(self, aborted_txn: AbortedTxn) -> Any:
        if aborted_txn.version != 0:
            raise InvalidArgumentError(f"version {aborted_txn.version} can't be given")
        made = self._txn_kind().setProducerId(JLong(aborted_txn.producer_id))
        made.setFirstOffset(JLong(aborted_txn.first_offset))
        made.setLastOffset(JLong(aborted_txn.last_offset))
        return made.setLastStableOffset(JLong(aborted_txn.last_stable_offset))

    def all_aborted_txns(self) -> tuple[tuple[int, ...], ...]:
        """Call allAbortedTxns."""
        return aborted_txns(self._real.allAbortedTxns())

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> Any:
        """Call collectAbortedTxns."""
        return collected(self._real.collectAbortedTxns(fetch_offset, upper_bound_offset))

    def rename_to(self, file: str) -> None:
        """Call renameTo."""
        self._real.renameTo(self.jvm.file(file))
