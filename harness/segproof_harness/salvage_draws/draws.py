# SPDX-License-Identifier: Apache-2.0
"""One draw: a sound log, damage, a salvage, and a verdict; all of it follows from the seed."""

import os
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from random import Random

from segproof.repair import salvage, salvage_store
from segproof.salvaging.salvage import SalvagedPartition
from segproof.salvaging.store_salvage import SalvagedStore
from segproof.verification import Severity, Summary, verify
from segproof_harness.salvage_draws.disk_damages import Damaged
from segproof_harness.salvage_draws.kafka_damages import damage_partition
from segproof_harness.salvage_draws.kafka_judge import Input, judge_partition, read_output
from segproof_harness.salvage_draws.kafka_partitions import Partition, draw_partition
from segproof_harness.salvage_draws.rocketmq_damages import draw_store
from segproof_harness.salvage_draws.rocketmq_judge import StoreInput, judge_store
from segproof_harness.salvage_draws.rocketmq_stores import DrawnStore
from segproof_harness.salvage_draws.verdict import Salvager, Told, Verdict

PARTITION = "topic-0"
"""The name of the directory of a drawn partition."""
FILES_KEPT = 0.7
"""How often a file beside the logs is still there."""
TORN, WRONG_NAME = "DUMP-6", "DISK-62"
"""The laws of a batch that the end of its log cuts off, and of a log under another one's name."""
WRITTEN_SECONDS = (1_700_000_000, 1_700_000_000)
"""When the files of a partition were read and written: `verify` waits for a broker that has written
within the last second."""
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


def told_by_verify(source: Path) -> Told | None:
    """Return how many offsets `segproof verify` calls lost of a partition; None without a log.

    After a batch that a killed broker has torn it counts no loss, and a salvage knows of no end: a
    warning of such a batch stands for that, unless its log has the name of an earlier one.
    """
    told = list[Summary]()
    found = [*verify(source, on_summary=told.append)]
    renamed = {one.path for one in found if one.law == WRONG_NAME}
    is_torn = any(
        (one.law, one.severity) == (TORN, Severity.WARNING) and one.path not in renamed
        for one in found
    )
    for one in told:
        if one.kind == "partition":
            least, unproven = one.lost_at_least, one.unproven_offsets
            is_open = is_torn or (one.lost_offsets is None and not unproven)
            most = None if is_open else least + unproven
            return Told(least, most == least, most)
    return None


def drawn_partition(seed: int) -> tuple[Partition, Damaged, dict[str, bytes]]:
    """Return a sound partition, its logs after damage, and the other files that are left."""
    random = Random(seed)
    partition, foreign = draw_partition(random)
    damaged = damage_partition(partition, foreign, random)
    others = partition.others.items()
    return partition, damaged, {name: data for name, data in others if random.random() < FILES_KEPT}


def salvage_of_rocketmq(source: Path, target: Path) -> Told:
    """Save a store by `segproof salvage`; return how many messages that calls lost."""
    return told_of_store(salvage_store(source, target))


def told_of_store(told: SalvagedStore) -> Told:
    """Return how many messages a salvage of today calls lost; none saved is never exact."""
    is_exact = told.target is not None and (told.is_lost_exact or told.is_whole)
    return Told(told.lost_messages or 0, is_exact)


SALVAGERS: Mapping[str, Salvager] = {"kafka": salvage_of_kafka, "rocketmq": salvage_of_rocketmq}
"""The salvage of today by system."""


def judge_draw(system: str, seed: int, salvager: Salvager | None = None) -> Verdict:
    """Draw a damaged partition or store by its seed, let it be saved, and judge what was saved.

    `system` is `kafka` or `rocketmq`. Without a salvager it is `segproof salvage`.
    """
    own = SALVAGERS[system] if salvager is None else salvager
    with tempfile.TemporaryDirectory(prefix="salvage-draw-") as name:
        folder = Path(name)
        if system == "kafka":
            verdict = judge_damaged(*drawn_partition(seed), folder, own)
        else:
            store = draw_store(seed, folder)
            verdict = judge_damaged_store(
                store.sound, store.files(), folder, own, store.log.foreign
            )
            verdict.damages = [str(one) for one in store.damages]
    verdict.seed = seed
    return verdict


def write_damaged(source: Path, damaged: Damaged, others: Mapping[str, bytes]) -> None:
    """Write a damaged partition into a new directory, as one that nothing writes to any more."""
    source.mkdir(parents=True)
    logs = dict(zip(damaged.names, map(bytes, damaged.files), strict=True))
    for name, data in {**logs, **others}.items():
        (source / name).write_bytes(data)
        os.utime(source / name, WRITTEN_SECONDS)
    os.utime(source, WRITTEN_SECONDS)


def judge_damaged(
    partition: Partition,
    damaged: Damaged,
    others: Mapping[str, bytes],
    folder: Path,
    salvager: Salvager = salvage_of_kafka,
) -> Verdict:
    """Write a damaged partition below `folder`, let it be saved beside it, and judge the output."""
    source, target = folder / "in" / PARTITION, folder / "out"
    write_damaged(source, damaged, others)
    verdict = Verdict("kafka", partition.words, [str(one) for one in damaged.done])
    saved = _saved(source, target, salvager, verdict)
    if saved is not None:
        is_own = salvager is salvage_of_kafka
        verdict.counts["verify tells otherwise"] += is_own and saved[0] != told_by_verify(source)
        given = Input(partition, damaged, others)
        output = read_output(target)
        judge_partition(given, output, saved[0], verdict)
        if output.logs and _saved(target / PARTITION, folder / "again", salvager, verdict):
            _count_changes(output.logs, read_output(folder / "again").logs, verdict)
    return verdict


def judge_damaged_store(
    sound: DrawnStore,
    files: Mapping[str, bytes],
    folder: Path,
    salvager: Salvager = salvage_of_rocketmq,
    foreign: bytes = b"",
) -> Verdict:
    """Write the files of a damaged store below `folder`, let it be saved, and judge the output.

    `foreign` is what may be in the log of another store.
    """
    source, target = folder / "in", folder / "out"
    (source / "commitlog").mkdir(parents=True)
    for path, data in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(data)
    words = f"{len(sound.messages)} messages, files of {sound.file_size} bytes"
    verdict = Verdict("rocketmq", words)
    saved = _saved(source, target, salvager, verdict)
    if saved is not None:
        judge_store(StoreInput(sound, files, foreign), target, saved[0], verdict)
        log = _log_and_queues(target)
        if log and _saved(target, folder / "again", salvager, verdict):
            _count_changes(log, _log_and_queues(folder / "again"), verdict)
    return verdict


def _log_and_queues(store: Path) -> dict[str, bytes]:
    parts = ("commitlog", "consumequeue")
    paths = [path for part in parts for path in (store / part).rglob("*") if path.is_file()]
    return {str(path.relative_to(store)): path.read_bytes() for path in paths}


def _count_changes(one: Mapping[str, bytes], two: Mapping[str, bytes], verdict: Verdict) -> None:
    """Count the files that a salvage of what was saved has changed."""
    changed = [name for name in {**one, **two} if one.get(name) != two.get(name)]
    verdict.counts["changed when saved again"] += len(changed)


def _saved(
    source: Path, target: Path, salvager: Salvager, verdict: Verdict
) -> tuple[Told | None] | None:
    """Run a salvager. Return its counts; or None if it raised: then the verdict has the error."""
    try:
        return (salvager(source, target),)
    except Exception:
        verdict.counts["raised"] += 1
        verdict.error = traceback.format_exc(limit=-STACK)
        return None
