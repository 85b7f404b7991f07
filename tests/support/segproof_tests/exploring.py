# SPDX-License-Identifier: Apache-2.0
"""How long an exploring test may look, and the seed of what it draws.

SEGPROOF_EXPLORE_SECONDS is the time of one environment of `tox -m explore`. Each test prints its
seed; SEGPROOF_EXPLORE_SEED draws the same again.
"""

import os
import random
import time
from collections.abc import Iterator

SECONDS = float(os.environ.get("SEGPROOF_EXPLORE_SECONDS", "60"))
SEED = int(os.environ.get("SEGPROOF_EXPLORE_SEED", random.SystemRandom().randrange(2**32)))


def rounds(what: str, share: int) -> Iterator[int]:
    """Tell the seed; yield 0, 1, 2, ... until one of `share` equal parts of the time is over."""
    print(f"\n{what}: SEGPROOF_EXPLORE_SEED={SEED}")
    until = time.monotonic() + SECONDS / share
    number = 0
    while number == 0 or time.monotonic() < until:
        yield number
        number += 1
    print(f"{what}: {number} rounds")
