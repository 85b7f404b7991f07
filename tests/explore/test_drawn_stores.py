# SPDX-License-Identifier: Apache-2.0
"""New stores of RocketMQ with known messages and new damage in each run."""

import shutil
from pathlib import Path

from segproof_tests.drawn_stores import judge_draw
from segproof_tests.exploring import SEED, rounds


def test_no_message_of_a_drawn_store_is_lost(tmp_path: Path) -> None:
    """A failure tells the seed of its draw, for `judge_draw`."""
    for number in rounds("a drawn store", 1):
        folder = tmp_path / str(number)
        assert [] == judge_draw(SEED + number, folder).violations
        shutil.rmtree(folder)
