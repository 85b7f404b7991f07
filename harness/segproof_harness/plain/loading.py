# SPDX-License-Identifier: Apache-2.0
"""Hold the plain loading of logs against the older one: the same files and arguments, both opened.

    python -m segproof_harness.plain.loading [--seeds 50] [--first 0] [--length 40]
        [--release NAME ...] [--show 1]

Histories run on the older model alone; behind each operation both load what a crash would leave.
"""

import argparse
import sys
import traceback
from collections import Counter
from time import perf_counter
from typing import Any

from segproof_harness.operations import Operation
from segproof_harness.outcomes import of_model
from segproof_harness.plain.partition_log import open_it
from segproof_harness.structures import structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_harness.workloads import choose_for, draw_operation
from segproof_model.directory import Directory
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.profiles import Profile, profile_named
from segproof_model.releases import RELEASES

LOG = structure_named("partition-log")
BOUNDS = [
    "log_start_offset",
    "log_end_offset",
    "recovery_point",
    "high_watermark",
    "last_stable_offset",
]


def named(state: Any, names: str) -> Any:
    """Return attributes of a part, or of the index that it holds lazily; None if there is none."""
    return None if state is None else [getattr(state, name, None) for name in names.split()]


def seen_of_old(log: Any) -> dict[str, Any]:
    """Return what the older log holds beside the files."""
    return {
        **{name: getattr(log, name) for name in BOUNDS},
        "log_end": log.log_end,
        "first_unstable": log.first_unstable,
        "segments": [
            [
                segment.base_offset,
                named(segment.log, "name size"),
                segment.bytes_since_last_index_entry,
                segment.created_ms,
                segment.rolling_based_timestamp,
                segment.last_modified,
                named(segment.offset_index, "name length entries last_offset"),
                named(segment.time_index, "name length entries"),
                named(segment.txn_index, "name is_open"),
            ]
            for segment in log.log_segments
        ],
        "producers": producers_of(log.producer_state_manager),
        "epochs": list(log.leader_epoch_cache.epoch_entries()),
        "pending": sorted(name for one in log.pending_deletions for name in one.names),
    }


def producers_of(manager: Any) -> list[Any]:
    """Return what a producer state holds."""
    names = "ongoing_txns unreplicated_txns map_end_offset last_snapshot_offset"
    by_id = sorted(manager.active_producers.items())
    held = [dict(manager.snapshots), *map(list_of, named(manager, names))]
    return [[repr(entry) for _, entry in by_id], *held]


def list_of(value: Any) -> Any:
    """Return a list where there may be a tuple of either model's own values."""
    return [tuple(one) for one in value] if isinstance(value, tuple) else value


def seen(log: Any) -> dict[str, Any]:
    """Return what the plain log holds beside the files."""
    local = log.local_log
    return {
        **{name: getattr(log, name) for name in BOUNDS},
        "log_end": local.log_end,
        "first_unstable": log.first_unstable,
        "segments": [
            [
                segment.base_offset,
                named(segment.log, "name size"),
                segment.bytes_since_last_index_entry,
                segment.created_ms,
                segment.rolling_based_timestamp,
                segment.last_modified,
                named(segment.lazy_offset_index.index, "name length entries last_offset"),
                named(segment.lazy_time_index.index, "name length entries"),
                named(segment.txn_index, "name is_open"),
            ]
            for segment in log.log_segments
        ],
        "producers": producers_of(log.producer_state_manager),
        "epochs": list(log.leader_epoch_cache.epoch_entries()),
        "pending": sorted(name for one in local.pending_deletions for name in one.names),
    }


class Loadings:
    """Logs that both models load."""

    def __init__(self, release: Release, profile: Profile) -> None:
        self.release, self.profile = release, profile
        self.outcomes: Counter[str] = Counter()
        self.seconds = {"old": 0.0, "plain": 0.0}
        self.found: list[str] = []

    def history(self, seed: int, length: int) -> None:
        """Load what each operation of a history leaves."""
        choose = choose_for(LOG.structure_id, seed, (self.profile,))
        old = ModelSubject(LOG, self.profile)
        old.start(LOG.draw_setup(choose))
        for step in range(length):
            old.apply(draw_operation(choose, old))
            reopening = LOG.by_name()["crash_reopen"].draw(choose, old.situation())
            if difference := self.load(reopening, old.directory):
                self.found.append(f"seed {seed} step {step} {reopening!r:.600}\n{difference}")
                return

    def load(self, operation: Operation, directory: Directory) -> str:
        """Load on both; return a difference, if any."""
        assert LOG.damage is not None
        images = dict(LOG.damage(operation.arguments, dict(directory.files)))
        begun = perf_counter()
        directory = Directory(tuple(sorted(images.items())))
        old = LOG.open_model(operation.arguments, directory, self.profile)
        middle = perf_counter()
        try:
            new = open_it(operation.arguments, Files(images), self.release)
        except Exception:
            return traceback.format_exc()[-2500:]
        self.seconds["old"] += middle - begun
        self.seconds["plain"] += perf_counter() - middle
        error = of_model(old.outcome).error
        self.outcomes[error or "loaded"] += 1
        if error != of_model(new.outcome).error:
            return f"    answer: {old.outcome} / {new.outcome}"
        if isinstance(old.outcome, Raised):
            held: Any = ({}, {})
            after = dict(old.after.files), dict(new.after.images)
        else:
            held = seen_of_old(old.after), seen(new.after)
            after = dict(old.after.directory.files), dict(new.after.files.images)
        lines = [
            f"    {name}:\n      {one.get(name)}\n      {other.get(name)}"
            for one, other in (after, held)
            for name in sorted({**one, **other})
            if one.get(name) != other.get(name)
        ]
        return "\n".join(lines)


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--release", nargs="*", default=None)
    parser.add_argument("--show", type=int, default=1)
    given = parser.parse_args()
    bad = 0
    for name in given.release or LOG.profile_names:
        run = Loadings(RELEASES[name], profile_named(name))
        for seed in range(given.first, given.first + given.seeds):
            run.history(seed, given.length)
        count = sum(run.outcomes.values())
        speed = {who: round(count / (one or 1)) for who, one in run.seconds.items()}
        print(f"{name}: {dict(run.outcomes)}, {len(run.found)} differences; per second {speed}")
        for line in run.found[: given.show]:
            print(f"  {line}")
        bad += len(run.found)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
