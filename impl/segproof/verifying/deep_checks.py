# SPDX-License-Identifier: Apache-2.0
"""What the records of the batches say, compared with the batch headers.

Laws: BATCH-9, BATCH-10, BATCH-11, BATCH-16, BATCH-18, DISK-16, DISK-17, DISK-18.
Used by: verifying/segment_checks.py.
"""

import numpy as np

from segproof.errors import SegproofError
from segproof.findings import Severity
from segproof.verifying.log_checks import Block
from segproof.verifying.reporting import Described, Reporter
from segproof.verifying.rules import RULES

__all__ = ["MAX_BATCH_BYTES", "check_records"]

MAX_BATCH_BYTES = 16 << 20
"""A larger batch is summed in pieces and its records are not read: a warning says so."""


def check_records(block: Block, path: str, reporter: Reporter) -> None:
    """Judge the records of the batches whose checksums are right."""
    if block.summaries is None:
        return
    for row in sorted(block.errors):
        if block.crc_valid[row]:
            _report_error(block.errors[row], block, row, path, reporter)
    is_read = block.crc_valid.copy()
    is_read[list(block.errors)] = False
    rows = np.flatnonzero(is_read & (block.summaries["record_count"] > 0))
    table, summaries = block.table[rows], block.summaries[rows]
    is_new = table["magic"] == 2
    # A message of magic 0 or 1 is called by the offset of its last record.
    too_far = np.where(
        is_new,
        summaries["last_offset"] > table["last_offset"],
        summaries["last_offset"] != table["last_offset"],
    )
    for law, is_broken in (
        ("DISK-16", is_new & (too_far | ~summaries["offsets_rise"])),
        ("BATCH-9", ~is_new & (too_far | ~summaries["offsets_rise"])),
    ):
        broken = np.flatnonzero(is_broken)
        reporter.add_rows(
            law,
            path,
            table["position"][broken],
            lambda row, broken=broken: Described(  # type: ignore[misc]
                "the offsets of the records do not rise to the batch's last offset"
                f" {table['last_offset'][broken[row]]}: they fall, or end at"
                f" {summaries['last_offset'][broken[row]]}",
                int(table["last_offset"][broken[row]]),
                int(summaries["last_offset"][broken[row]]),
            ),
        )
    late = np.flatnonzero(
        (table["magic"] > 0) & (summaries["max_timestamp"] != table["max_timestamp"])
    )
    reporter.add_rows(
        "DISK-17",
        path,
        table["position"][late],
        lambda row: Described(
            f"the largest timestamp of the records is {summaries['max_timestamp'][late[row]]}, and"
            f" the batch says {table['max_timestamp'][late[row]]}",
            int(summaries["max_timestamp"][late[row]]),
            int(table["max_timestamp"][late[row]]),
        ),
    )


def _report_error(
    error: SegproofError, block: Block, row: int, path: str, reporter: Reporter
) -> None:
    """Report why the records of a batch could not be read."""
    law = error.law if error.law in RULES else None
    is_compressed = bool(block.table["attributes"][row] & 7)
    is_too_large = bool(block.table["size_bytes"][row] > MAX_BATCH_BYTES)
    law = law or ("DISK-18" if is_compressed or is_too_large else "BATCH-16")
    expected, actual = (
        part if isinstance(part, int | str | None) else str(part)
        for part in (error.expected, error.actual)
    )
    reporter.add(
        law,
        path,
        f"the records cannot be read: {error.message}",
        position=int(block.table["position"][row]),
        expected=expected,
        actual=actual,
        severity=Severity.WARNING if is_too_large else None,
        hint=error.hint,
    )
