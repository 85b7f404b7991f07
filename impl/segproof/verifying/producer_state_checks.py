# SPDX-License-Identifier: Apache-2.0
"""Producers and their transactions together, as they stand at each producer snapshot of a log.

Upstream: Kafka since 0.11.0: ProducerStateManager.
Laws: those of verifying/producer_checks.py and verifying/transaction_checks.py.
"""

from collections.abc import Iterator

import numpy as np

from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.producer_checks import ProducerCheck
from segproof.verifying.segment_carry import Cut, LogCarry
from segproof.verifying.transaction_checks import TransactionMarkers


class ProducerStateCheck(LogCheck):
    """Runs both checks, and keeps what they know at the offset of each snapshot."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._producers = ProducerCheck(log)
        self._markers = TransactionMarkers(log)
        self._cuts: list[Cut] = []

    def check(self, block: Block) -> None:
        """Judge one block, in parts where a snapshot lies inside it."""
        for part in self._parts(block):
            if part is None:
                self._cut()
                continue
            self._producers.check(part)
            self._markers.check(part)

    def _parts(self, block: Block) -> Iterator[Block | None]:
        """Yield the block in parts, and None at the offset of each snapshot inside it."""
        base = self._segment.base_offset
        done, end = 0, base + int(block.reach[-1])
        for offset in self._segment.snapshots[len(self._cuts) :]:
            if offset > end:
                break
            rows = int(np.searchsorted(block.reach, offset - base))
            if rows > done:
                yield block.rows(done, rows)
            yield None
            done = max(done, rows)
        if done < len(block.table):
            yield block if done == 0 else block.rows(done, len(block.table))

    def _cut(self) -> None:
        producers, markers = self._producers, self._markers
        self._cuts.append(
            Cut(
                self._segment.snapshots[len(self._cuts)],
                producers.table.copy(),
                dict(markers.carry.opened),
                markers.closed,
                producers.missing,
                producers.unread,
            )
        )

    def finish(self) -> None:
        """Judge the transaction index."""
        self._markers.finish()

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on producers, transactions and what was known at the snapshots."""
        self._producers.hand_on(carry)
        self._markers.hand_on(carry)
        carry.cuts = self._cuts
