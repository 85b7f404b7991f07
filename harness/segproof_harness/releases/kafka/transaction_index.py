# SPDX-License-Identifier: Apache-2.0
"""Kafka's TransactionIndex as the harness calls it.

Upstream: kafka.log.TransactionIndex (0.11 to 3.4), the same name in
org.apache.kafka.storage.internals.log since.
"""

from typing import Any, ClassVar

from jpype import JLong

from segproof.errors import InvalidArgumentError
from segproof_harness.releases.jvm import Adapter
from segproof_harness.releases.kafka.classes import get, items, storage_class, txn_fields
from segproof_model.kafka.format.transaction_index import AbortedTxn

IS_EMPTY_SINCE = (4, 0)
"""The first version that can be asked whether the index is empty."""
NEW_NAMES_SINCE = (1, 1)
"""The first version with deleteIfExists and reset; before, they are delete and truncate."""
VERSION_UNTIL = (4, 4)
"""The first version whose entries are not kept as bytes, with a version."""


class TransactionIndex(Adapter):
    """The transaction index. The real class has no read-only form: `writable` says nothing."""

    _kind: ClassVar[Any]
    _txn_kind: ClassVar[Any]
    _txn_from_bytes: ClassVar[Any]
    _wrap: ClassVar[Any]
    _has_new_names: ClassVar[bool]
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
            cls._txn_from_bytes = cls._constructor_from_bytes()
        else:
            cls._txn_kind = cls.jvm.java("org.apache.kafka.common.message.AbortedTxn")
        cls._wrap = cls.jvm.java("java.nio.ByteBuffer").wrap
        cls._has_new_names = number >= NEW_NAMES_SINCE

    @classmethod
    def _constructor_from_bytes(cls) -> Any:
        """Return the constructor of an AbortedTxn from bytes, which is not public in Java."""
        kind = cls._txn_kind.class_
        found = kind.getDeclaredConstructor(cls.jvm.java("java.nio.ByteBuffer").class_)
        found.setAccessible(True)
        return found

    def __init__(self, start_offset: int, file: str, writable: bool, files: Any) -> None:
        self._index = self._kind(JLong(start_offset), self.jvm.file(file))

    is_empty = property(lambda self: bool(self._index.isEmpty()))

    def append(self, aborted_txn: AbortedTxn) -> None:
        """Call append; other versions than 0 are made from bytes, since only those know them.

        Raises InvalidArgumentError for such a version if entries are not kept as bytes.
        """
        if not self._keeps_version:
            self._index.append(self._new_txn(aborted_txn))
            return
        if aborted_txn.version == 0:
            self._index.append(self._txn_kind(*aborted_txn[1:]))
            return
        buffer = self._wrap(aborted_txn.to_bytes())
        self._index.append(self._txn_from_bytes.newInstance(buffer))

    def _new_txn(self, aborted_txn: AbortedTxn) -> Any:
        if aborted_txn.version != 0:
            raise InvalidArgumentError(f"version {aborted_txn.version} can't be given")
        made = self._txn_kind().setProducerId(JLong(aborted_txn.producer_id))
        made.setFirstOffset(JLong(aborted_txn.first_offset))
        made.setLastOffset(JLong(aborted_txn.last_offset))
        return made.setLastStableOffset(JLong(aborted_txn.last_stable_offset))

    def all_aborted_txns(self) -> tuple[tuple[int, ...], ...]:
        """Call allAbortedTxns."""
        return tuple(map(txn_fields, items(self._index.allAbortedTxns())))

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> Any:
        """Call collectAbortedTxns."""
        found = self._index.collectAbortedTxns(fetch_offset, upper_bound_offset)
        transactions = tuple(map(txn_fields, items(get(found, "abortedTransactions"))))
        return transactions, bool(get(found, "isComplete"))

    def truncate_to(self, offset: int) -> None:
        """Call truncateTo."""
        self._index.truncateTo(offset)

    def reset(self) -> None:
        """Call reset, or truncate."""
        if self._has_new_names:
            self._index.reset()
        else:
            self._index.truncate()

    def sanity_check(self) -> None:
        """Call sanityCheck."""
        self._index.sanityCheck()

    def flush(self) -> None:
        """Call flush."""
        self._index.flush()

    def rename_to(self, file: str) -> None:
        """Call renameTo."""
        self._index.renameTo(self.jvm.file(file))

    def close(self) -> None:
        """Call close."""
        self._index.close()

    def delete_if_exists(self) -> bool:
        """Call deleteIfExists, or delete."""
        if self._has_new_names:
            return bool(self._index.deleteIfExists())
        return bool(self._index.delete())
