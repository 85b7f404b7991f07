# SPDX-License-Identifier: Apache-2.0
"""Batches with which no broker loads a log: a producer sends records outside of its transaction.

A producer has a transaction open from its first transactional batch to its marker. A batch of it
between these that says that it is in no transaction has damaged attributes, or the marker before it
is lost. A broker ends the load of the log there.

Upstream: Kafka 4.3.1: ProducerAppendInfo.appendDataBatch.
Laws: PROD-8.
"""

import numpy as np

from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, BatchTable


class OpenTransactions:
    """Follows which producers have an open transaction, from batch to batch of a partition."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    @property
    def is_any_open(self) -> bool:
        """Whether a transaction is open after the batches so far."""
        return bool(self._open)

    def refused(self, table: BatchTable) -> list[int]:
        """Take the next batches; return the rows of those that end a load."""
        refused = list[int]()
        attributes, producers = table["attributes"], table["producer_id"]
        of_producers = (table["magic"] == 2) & (producers >= 0)
        for row in np.flatnonzero(of_producers).tolist():
            producer, bits = int(producers[row]), int(attributes[row])
            if bits & CONTROL:
                self._open.discard(producer)
            elif bits & TRANSACTIONAL:
                self._open.add(producer)
            elif producer in self._open:
                refused.append(row)
        return refused
