# SPDX-License-Identifier: Apache-2.0
"""Logs that the next start deletes, or that take their place, with a frame that is broken."""

from pathlib import Path

import pytest

from segproof.verification import verify
from segproof_tests.partition_files import name_of
from segproof_tests.small_logs import log_of


def damaged(data: bytes, number: int) -> bytes:
    """Return batches, one with a length that leads beyond the log."""
    at = number * len(log_of(0, 1)) + 8
    return data[:at] + b"\x40" + data[at + 1 :]


FIRST, SECOND, THIRD = log_of(0, 4), log_of(4, 8), log_of(8, 10)
CASES = {
    "a log between two swaps": (
        {(0, ".log.swap"): FIRST, (4, ".log"): damaged(SECOND, 0), (8, ".log.swap"): THIRD},
        [(4, ".log")],
    ),
    "a swap that reaches beyond a log": (
        {(0, ".log.swap"): damaged(FIRST + SECOND, 2), (4, ".log"): SECOND},
        [(4, ".log")],
    ),
    "the last log before a removed one": (
        {(0, ".log"): damaged(FIRST, 1), (4, ".log.deleted"): SECOND},
        [(4, ".log.deleted")],
    ),
    "the first of two removed logs": (
        {(0, ".log"): FIRST, (4, ".log.deleted"): damaged(SECOND, 1), (8, ".log.deleted"): THIRD},
        [(4, ".log.deleted"), (8, ".log.deleted")],
    ),
    "a swap that holds a log": (
        {(0, ".log.swap"): FIRST + SECOND, (4, ".log"): damaged(SECOND, 0)},
        [],
    ),
}
"""The logs of a partition, and those that DISK-60 names."""


@pytest.mark.checks("DISK-60")
@pytest.mark.parametrize("case", CASES)
def test_what_follows_a_broken_frame_counts_as_the_log(case: str, tmp_path: Path) -> None:
    """A log was taken to end at its first broken frame, and so its removal cost nothing."""
    logs, due = CASES[case]
    folder = tmp_path / "t-0"
    folder.mkdir()
    for (base, suffix), data in logs.items():
        (folder / name_of(base, suffix)).write_bytes(data)
    found = [Path(one.path).name for one in verify(folder, laws=["DISK-60"])]
    assert [name_of(base, suffix) for base, suffix in due] == found
