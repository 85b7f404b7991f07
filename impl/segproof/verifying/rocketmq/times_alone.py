# SPDX-License-Identifier: Apache-2.0
"""The store times of a log that has no index beside it.

Laws: RMQDISK-40.
"""

from segproof.reading.store_times import Bounds
from segproof.verifying.rocketmq.log_records import LogBlock, LogRecords


class TimesAlone:
    """Judges the store times of a log that no index is compared with."""

    def __init__(self, records: LogRecords) -> None:
        self._records = records

    def add(self, block: LogBlock) -> None:
        """Take the next block."""
        self._records.likely_times(block, Bounds.none(len(block.offsets)))

    def finish(self) -> None:
        """Nothing is left to judge."""
