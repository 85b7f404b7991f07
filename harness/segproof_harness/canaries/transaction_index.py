# SPDX-License-Identifier: Apache-2.0
"""Planted defects of the transaction index."""

from segproof.kafka.transaction_index import AbortedTxn, TransactionIndex, TxnIndexSearchResult
from segproof_harness.canaries.register import canary


@canary("K-62", "transaction-index", "TXNIDX-8")
class K62TransactionIndex(TransactionIndex):
    """The listing goes on while any byte is left."""

    def all_aborted_txns(self) -> list[AbortedTxn]:
        """Return every entry, and one made of a partial tail."""
        listed = super().all_aborted_txns()
        tail = self.to_bytes()[len(listed) * self.ENTRY_SIZE :]
        return (
            [*listed, AbortedTxn.from_bytes(tail.ljust(self.ENTRY_SIZE, b"\0"))] if tail else listed
        )


@canary("K-63", "transaction-index", "TXNIDX-10", "TXNIDX-11")
class K63TransactionIndex(TransactionIndex):
    """Collecting stops before the entry whose last stable offset reaches the bound."""

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        """Return the entries that meet the offsets, but for the last one."""
        found: list[AbortedTxn] = []
        for entry in self:
            if entry.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(found, True)
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                found.append(entry)
        return TxnIndexSearchResult(found, False)


@canary("K-64", "transaction-index", "TXNIDX-10")
class K64TransactionIndex(TransactionIndex):
    """Collecting takes the upper bound as inclusive."""

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        """Return the entries that meet the offsets, one too many at the bound."""
        found: list[AbortedTxn] = []
        for entry in self:
            if entry.last_offset >= fetch_offset and entry.first_offset <= upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(found, True)
        return TxnIndexSearchResult(found, False)


@canary("K-65", "transaction-index", "TXNIDX-12")
class K65TransactionIndex(TransactionIndex):
    """The transaction index is truncated by first offset."""

    def truncate_to(self, offset: int) -> None:
        """Cut at the first entry whose first offset is not below `offset`."""
        beyond = (entry.last_offset for entry in self if entry.first_offset >= offset)
        super().truncate_to(next(beyond, 2**63 - 1))
