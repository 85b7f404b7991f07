# SPDX-License-Identifier: Apache-2.0
"""New damaged partitions in each run: `salvage` loses no whole batch, and gives none a new offset.

SEGPROOF_EXPLORE_LOGS may name a directory with more partitions to draw from.
"""

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random

from segproof.salvaging.salvage import salvage
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_tests.drawn_partitions import draw, judge, partitions_in
from segproof_tests.exploring import SEED, rounds

MADE_UP_MAX = 0.02
"""Share of draws in which a block of another topic may stay: where it lies its offsets fit, and no
header says anything else."""


def test_no_batch_is_lost_or_given_another_offset(tmp_path: Path) -> None:
    """A failure prints the seed; the same seed makes the same damages."""
    more = os.environ.get("SEGPROOF_EXPLORE_LOGS")
    partitions = [partition_of(one) for one in scenarios()]
    partitions += partitions_in([Path(more)]) if more else []
    seen = Counter[str]()
    for number in rounds("a damaged partition", 1):
        folder = tmp_path / str(number)
        drawn = draw(Random(f"{SEED} {number}"), partitions, folder / "in" / "topic-0")
        list(salvage(folder / "in" / "topic-0", folder / "out"))
        aside = folder / "out" / "salvage-set-aside.topic-0.log"
        faults = judge(drawn, folder / "out" / "topic-0", aside).faults
        seen["draws"] += 1
        seen["made up"] += "made up" in faults
        assert not faults.keys() & {"twice", "falling", "unframed", "nowhere"}, (
            number,
            drawn.kinds,
        )
        shutil.rmtree(folder)
    print(dict(seen))
    assert seen["made up"] <= max(2, MADE_UP_MAX * seen["draws"])
