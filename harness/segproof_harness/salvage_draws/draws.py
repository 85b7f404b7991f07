# SPDX-License-Identifier: Apache-2.0
"""One draw: a sound log, damage, a salvage, and a verdict; all of it follows from the seed."""

import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from random import Random

from segproof.salvaging.salvage import SalvagedPartition, salvage
from segproof_harness.salvage_draws.disk_damages import Damaged
from segproof_harness.salvage_draws.kafka_damages import damage_partition
from segproof_harness.salvage_draws.kafka_judge import Input, judge_partition, read_output
from segproof_harness.salvage_draws.kafka_partitions import Partition, draw_partition
from segproof_harness.salvage_draws.verdict import Salvager, Told, Verdict

PARTITION = "topic-0"
"""The name of the directory of a drawn partition."""
FILES_KEPT = 0.7
"""How often a file beside the logs is still there."""
STACK = 3
"""Calls of an exception that a verdict keeps."""


def salvage_of_kafka(source: Path, target: Path) -> Told:
    """Save a partition by `segproof salvage`; return how many offsets that calls lost."""
    (told,) = salvage(source, target)
    return told_of(told)


def told_of(told: SalvagedPartition) -> Told:
    """Return how many offsets a salvage of today calls lost."""
    is_open = told.is_end_lost or told.are_more_lost
    most = None if is_open else told.lost_offsets + told.unproven_offsets
    return Told(told.lost_offsets, most == told.lost_offsets, most)


def drawn_partition(seed: int) -> tuple[Partition, Damaged, dict[str, bytes]]:
    """Return a sound partition, its logs after damage, and the other files that are left."""
    random = Random(seed)
    partition, foreign = draw_partition(random)
    damaged = damage_partition(partition, foreign, random)
    others = partition.others.items()
    return partition, damaged, {name: data for name, data in others if random.random() < FILES_KEPT}


def judge_draw(seed: int, salvager: Salvager = salvage_of_kafka) -> Verdict:
    """Draw a damaged partition by its seed, let it be saved, and judge what was saved."""
    with tempfile.TemporaryDirectory(prefix="salvage-draw-") as folder:
        verdict = judge_damaged(*drawn_partition(seed), Path(folder), salvager)
    verdict.seed = seed
    return verdict


def judge_damaged(
    partition: Partition,
    damaged: Damaged,
    others: Mapping[str, bytes],
    folder: Path,
    salvager: Salvager = salvage_of_kafka,
) -> Verdict:
    """Write a damaged partition below `folder`, let it be saved beside it, and judge the output."""
    source, target = folder / "in" / PARTITION, folder / "out"
    source.mkdir(parents=True)
    logs = dict(zip(damaged.names, map(bytes, damaged.files), strict=True))
    for name, data in {**logs, **others}.items():
        (source / name).write_bytes(data)
    verdict = Verdict("kafka", partition.words, [str(one) for one in damaged.done])
    try:
        told = salvager(source, target)
    except Exception:
        verdict.counts["raised"] += 1
        verdict.error = traceback.format_exc(limit=-STACK)
        return verdict
    judge_partition(Input(partition, damaged, others), read_output(target), told, verdict)
    return verdict
