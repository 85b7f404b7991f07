# SPDX-License-Identifier: Apache-2.0
"""What shows that a log need not be read again where another log of its partition is damaged."""

import numpy as np

from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL
from segproof.verifying.log_blocks import Block
from segproof.verifying.log_check import LogCheck, LogPass
from segproof.verifying.segment_carry import LogCarry


class PlainBatches(LogCheck):
    """Notes whether all batches are of magic 2 and one epoch, and of no transaction."""

    def __init__(self, log: LogPass) -> None:
        super().__init__(log)
        self._epoch: int | None = None
        self._least = np.iinfo(np.int64).max
        """The fewest bytes of an offset so far; 0 behind a batch that is not plain."""

    def check(self, block: Block) -> None:
        """Take in the batches of one block."""
        if not self._least:
            return
        table, first = block.table, int(block.table["partition_leader_epoch"][0])
        self._epoch = first if self._epoch is None else self._epoch
        spans = table["last_offset_delta"].astype(np.int64) + 1
        is_plain = (table["magic"] == 2).all() and (spans > 0).all()
        is_plain = is_plain and not (table["attributes"] & (CONTROL | TRANSACTIONAL)).any()
        if not is_plain or not (table["partition_leader_epoch"] == self._epoch).all():
            self._least = 0
            return
        self._least = min(self._least, max(1, int((table["size_bytes"] // spans).min())))

    def hand_on(self, carry: LogCarry) -> None:
        """Hand on the fewest bytes of an offset if all batches are plain."""
        carry.least = self._least if self._epoch is not None else 0
