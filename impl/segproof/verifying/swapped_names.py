# SPDX-License-Identifier: Apache-2.0
"""Logs of a partition that have each other's name.

Laws: DISK-62.
"""

import posixpath

from segproof.files import Files
from segproof.findings import Severity
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.log_order import NamedLog, in_order
from segproof.verifying.directory_checks import Partition
from segproof.verifying.reporting import Reporter
from segproof.verifying.rules import SALVAGE, declare

declare("partition-log", Severity.ERROR,
    SALVAGE.after("a salvage gives each log the name that its batches say: "),
    "DISK-62")  # fmt: skip


def check_names(partition: Partition, reporter: Reporter, files: Files) -> None:
    """Report each log whose batches belong under the name of another log."""
    logs = [
        NamedLog(one.path(".log"), one.base_offset)
        for one in partition.segments
        if ".log" in one.suffixes
    ]
    for log, placed in zip(logs, in_order(logs, files.open), strict=True):
        if placed.path != log.path:
            right = segment_file_name(log.base_offset, ".log")
            reporter.at(placed.path, shown_by=partition.directory).add(
                "DISK-62",
                f"its batches belong under the name {right}: logs of this partition have each"
                " other's name, and each batch of this one is whole in itself. A broker can read"
                " neither",
                expected=right,
                actual=posixpath.basename(placed.path),
            )
