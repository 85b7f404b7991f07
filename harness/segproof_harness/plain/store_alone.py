# SPDX-License-Identifier: Apache-2.0
"""Each behaviour of RocketMQ's log, queue and store alone, against its one flag moved.

python -m segproof_harness.plain.store_alone [--seeds 30] [--release rocketmq-5.5.1]
"""

import argparse
from dataclasses import replace
from typing import Any

from segproof_harness.plain.compare import Run, shown
from segproof_harness.plain.store_calls import compared
from segproof_model.language.behaviours import Behaviour
from segproof_model.profiles import profile_named
from segproof_model.releases import RELEASES

FLAGS: dict[str, tuple[str, Any, Any]] = {
    # behaviour: its flag, the value with it, the value without it
    "RecordRoomWraps": ("rmq_record_room", "wrapped", "all"),
    "RecordRoomIsNotAsked": ("rmq_record_room", "none", "all"),
    "SecondMagicIsUnknown": ("rmq_magic_v2", False, True),
    "BatchNumbersAreNotRead": ("rmq_property_numbers", "delay", "batch"),
    "PropertiesAreSplit": ("rmq_properties_split", True, False),
    "HostsAreShort": ("rmq_hosts_v6", False, True),
    "PropertiesNeedNoNumbers": ("rmq_property_numbers", "none", "batch"),
    "NearestUnitIsFound": ("rmq_queue_lookup", "nearest", "boundary"),
    "QueueReachesBegin": ("rmq_queue_knows_end", False, True),
    "LeastTimeSpeaksForQueues": ("rmq_recovery_trusts_queues", False, True),
    "OneTimeDecidesRecovery": ("rmq_recovery_asks_each", False, True),
    "NormalRecoveryTellsNothing": ("rmq_normal_recovery_dispatches", False, True),
    "LoadedIndexIsNotAsked": ("rmq_load_result_used", False, True),
    "EmptyLogFileIsRefused": ("rmq_empty_log_file_passed", False, True),
    "UnloadedStoreIsNotRecovered": ("rmq_recovers_unloaded", False, True),
    "MessageAtEndOfQueuesIsTold": ("rmq_recovery_passes_first", False, True),
}
STRUCTURES = ("commit-log", "consume-queue", "message-store")


def main() -> None:
    """Move one behaviour and one flag at a time, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--release", default="rocketmq-5.5.1")
    parser.add_argument("--structure", nargs="*", default=STRUCTURES)
    given = parser.parse_args()
    release = RELEASES[given.release]
    seeds = range(given.first, given.first + given.seeds)
    operations = bad = 0
    for behaviour in [one for one in Behaviour.known if one.__name__ in FLAGS]:
        flag, with_it, without = FLAGS[behaviour.__name__]
        value = without if release.has(behaviour) else with_it
        kept = profile_named(release.name)
        flipped, profile = release.flipped(behaviour), replace(kept, **{flag: value})
        if flag == "rmq_normal_recovery_dispatches":  # then older releases read on, or not
            profile = replace(profile, rmq_reads_on_from_queues=False)
        is_seen = any(compared(flipped, kept, seed)[1] is not None for seed in range(2000))
        for structure_id in given.structure:
            run = Run(structure_id, flipped, profile)
            seen = Run(structure_id, flipped, kept)
            for seed in seeds:
                is_seen = is_seen or seen.history(seed, given.length) is not None
                found = run.history(seed, given.length)
                if found is not None:
                    bad += 1
                    print(f"{behaviour.__name__}, {structure_id}\n{shown(found)}", flush=True)
                    break
            operations += sum(run.operations.values())
        for seed in seeds:
            count, other = compared(flipped, profile, seed)
            operations += count
            if other is not None:
                bad += 1
                print(f"{behaviour.__name__}, seed {seed}, {other!r:.600}", flush=True)
                break
        if not is_seen:
            print(f"{behaviour.__name__}: nothing seen of it")
    print(f"{given.release}: {len(FLAGS)} behaviours alone, {operations} operations, {bad} differ")


if __name__ == "__main__":
    main()
