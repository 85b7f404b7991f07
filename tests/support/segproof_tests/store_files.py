# SPDX-License-Identifier: Apache-2.0
"""A small store that a broker wrote, and copies of it and of others."""

import shutil
from pathlib import Path

from segproof_harness.files.shipped_directories import ROCKETMQ

__all__ = ["INDEX", "LOG", "QUEUE", "SMALL", "copied_store"]

SMALL = "small-4.9.8"
INDEX = "index/20261121011453849"
LOG = "commitlog/00000000000000000000"
QUEUE = "consumequeue/TopicTest/0/00000000000000000000"
"""Files of that store."""


def copied_store(target: Path, name: str = SMALL) -> Path:
    """Return a copy, in `target`, of the store that a broker wrote."""
    return shutil.copytree(
        ROCKETMQ / name / "store", target / "store", copy_function=shutil.copyfile
    )
