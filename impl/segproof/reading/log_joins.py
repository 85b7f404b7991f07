# SPDX-License-Identifier: Apache-2.0
"""Whether logs whose offsets follow each other can be of one partition.

In a partition the leader epochs of batches never fall. For each producer id, the epoch of the
producer never falls, and within one epoch the sequence numbers rise. Producer ids are of a whole
cluster: a producer that writes to several partitions has sequence numbers of its own in each.

Laws: DISK-3.
Not covered: timestamps, which a client sets; a producer of a release before 2.5 that begins its
    sequence numbers again within one epoch, as after all its records had expired.
"""

from contextlib import closing
from typing import NamedTuple

import numpy as np

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.kafka.batch_table import BatchScan, BatchTable

PRODUCERS_MAX = 10_000
"""Producers that are followed; more would take too much memory."""
WRAPS_FROM = 1 << 30
"""A sequence number from here on may be near the largest one, after which 0 follows."""


class _Sent(NamedTuple):
    """The last batch of a producer."""

    epoch: int
    sequence: int


class LogChain:
    """Takes logs in the order of their offsets."""

    def __init__(self) -> None:
        self._leader_epoch = -1
        self._sent: dict[int, _Sent] = {}

    def take(self, path: str, files: Files) -> str:
        """Return in words why the next log is not of the partition of the logs before; else "".

        Only batches with right checksums count. What can't be read contradicts nothing.
        """
        epochs: list[int] = []
        words = ""
        begun: set[int] = set()
        try:
            with closing(files.open(path)) as file:
                for checked in BatchScan(file, 0, file.size(), deep=False):
                    table = checked.table[checked.crc_valid & (checked.table["magic"] == 2)]
                    epochs = sorted([*epochs, *table["partition_leader_epoch"].tolist()])[-2:]
                    words = words or self._of_producers(table, begun)
        except (OSError, SegproofError):
            return words
        if epochs and 0 <= epochs[-1] < self._leader_epoch:
            words = (
                f"its leader epochs reach to {epochs[-1]}, those of the logs before to"
                f" {self._leader_epoch}"
            )
        # No checksum covers a leader epoch: one batch of several proves none.
        self._leader_epoch = max([self._leader_epoch, *epochs[:1]])
        return words

    def _of_producers(self, table: BatchTable, begun: set[int]) -> str:
        """Take batches; return in words if the first one of a producer in this log contradicts.

        `begun` are the producers that have a batch in this log so far.
        """
        table = table[(table["producer_id"] >= 0) & (table["base_sequence"] >= 0)]
        words = ""
        producers, firsts = np.unique(table["producer_id"], return_index=True)
        lasts = len(table) - 1 - np.unique(table["producer_id"][::-1], return_index=True)[1]
        for producer, first, last in zip(producers.tolist(), firsts, lasts, strict=True):
            row, sent = table[first], self._sent.get(producer)
            if sent is not None and producer not in begun and not words:
                words = _against(producer, sent, row)
            begun.add(producer)
            if sent is not None or len(self._sent) < PRODUCERS_MAX:
                end = table[last]
                sequence = int(end["base_sequence"]) + int(end["last_offset_delta"])
                self._sent[producer] = _Sent(int(end["producer_epoch"]), sequence)
        return words


def _against(producer: int, sent: _Sent, row: np.void) -> str:
    """Return in words why a batch can't follow what a producer sent before; else ""."""
    epoch, sequence = int(row["producer_epoch"]), int(row["base_sequence"])
    if epoch < sent.epoch:
        return (
            f"it has a batch of producer {producer} with epoch {epoch}, after one with epoch"
            f" {sent.epoch}"
        )
    if epoch == sent.epoch and sequence <= sent.sequence < WRAPS_FROM:
        return (
            f"it has a batch of producer {producer} with sequence number {sequence}, after one"
            f" with {sent.sequence}"
        )
    return ""
