# SPDX-License-Identifier: Apache-2.0
"""Hold the plain log against the older one where snapshots of many segments are lost.

    python -m segproof_harness.plain.lost_snapshots [RELEASE ...]

Then the producers are built anew from several segments, which drawn histories seldom come to.
"""

import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

from segproof_harness.operations import Operation
from segproof_harness.plain.compare import Run, shown
from segproof_harness.plain.partition_log import has
from segproof_harness.structures import Setup, structure_named
from segproof_model.kafka.record_batch import Record, write_batch, write_end_transaction_marker
from segproof_model.releases import RELEASES

SIZES = {"segment_bytes": 400, "segment_index_bytes": 120, "index_interval_bytes": 50}
OPENING: dict[str, Any] = {
    "options": tuple(SIZES.items()),
    "log_start_offset": 0,
    "recovery_point": 0,
    "last_shutdown_clean": False,
    "draw": 0,
    "now_ms": 1_000_000,
    "modified_ms": 999_500,
    "damage": (),
}


def appended() -> Iterator[Operation]:
    """Yield appends of two producers, one of them in transactions, and rolls between them."""
    offset = 0
    for turn in range(7):
        for producer_id in (1, 2):
            records = [Record(offset + i, 1_000_000 + offset + i, b"k", b"v") for i in range(2)]
            batch = write_batch(
                records,
                base_offset=offset,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=2 * turn,
                is_transactional=producer_id == 2,
                partition_leader_epoch=1,
            )
            yield Operation("append_as_follower", {"call": (batch, 1)})
            offset += 2
        marker = write_end_transaction_marker(
            "ABORT" if turn % 2 else "COMMIT",
            offset=offset,
            timestamp=1_000_000,
            producer_id=2,
            producer_epoch=0,
            coordinator_epoch=0,
            partition_leader_epoch=1,
        )
        yield Operation("append_as_follower", {"call": (marker, 1)})
        offset += 1
        if turn % 2 == 0:
            yield Operation("roll", {"expected_next_offset": None})
    yield Operation("update_high_watermark", {"high_watermark": offset})


def reopened(run: Run, is_clean: bool, kept: int, start: int) -> Iterator[Operation]:
    """Yield the opening without the snapshots but the first ones, and what looks at the state."""
    names = sorted(name for name in run.old.image() if name.endswith(".snapshot"))
    damage = tuple((name, "removed", 0, b"") for name in names[kept:])
    more: dict[str, Any] = {
        "last_shutdown_clean": is_clean,
        "log_start_offset": start,
        "damage": damage,
    }
    yield Operation("crash_reopen", {**OPENING, **more})
    yield Operation("truncate_to", {"target_offset": 30})
    yield Operation("producer_state_manager", {})


def main() -> None:
    """Compare, and print what was found."""
    known = structure_named("partition-log").profile_names
    bad = operations = 0
    for name in sys.argv[1:] or known:
        release = RELEASES[name]
        if not has(release, next(appended())):
            continue
        for is_clean, kept, start in product((False, True), (0, 1, 2), (0, 9)):
            run = Run("partition-log", release)
            run.begun((is_clean, kept, start), Setup(OPENING))
            for operation in appended():
                run.do(operation)
            for operation in reopened(run, is_clean, kept, start):
                run.do(operation)
            operations += run.step
            if run.found is not None:
                bad += 1
                print(name, shown(run.found))
    print(f"{operations} operations, {bad} differences")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
