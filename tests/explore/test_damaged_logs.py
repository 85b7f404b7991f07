# SPDX-License-Identifier: Apache-2.0
"""New damages of real logs in each run: no batch that is whole is lost, and none is made up."""

from pathlib import Path
from random import Random

from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_tests.exploring import SEED, rounds
from segproof_tests.random_damages import check_pieces, damaged


def test_no_whole_batch_is_lost(tmp_path: Path) -> None:
    """A failure prints the seed; the same seed makes the same damages."""
    paths = [path for one in scenarios() for path in sorted(partition_of(one).glob("*.log"))]
    logs = [data for path in paths if (data := path.read_bytes())]
    for number in rounds("a damaged log", 1):
        random = Random(f"{SEED} {number}")
        log = random.choice(logs)
        check_pieces(log, damaged(log, random), tmp_path / "damaged.log")
