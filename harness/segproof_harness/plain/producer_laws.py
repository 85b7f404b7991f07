# SPDX-License-Identifier: Apache-2.0
"""Ask the laws of producers that take what is written and read: snapshots, and whole logs.

python -m segproof_harness.plain.producer_laws [--seeds 100] [--first 0] [--release NAME ...]
"""

import argparse
from collections.abc import Iterator
from random import Random
from typing import Any

from segproof_model.kafka.broker.producer_append_info import CompletedTxn
from segproof_model.kafka.broker.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    write_snapshot,
)
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.batch_writing import write_batch, write_end_transaction_marker
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.states import Refused, outcome_of
from segproof_model.laws.kafka.broker import producer_state as laws  # noqa: F401
from segproof_model.laws.register import LAWS
from segproof_model.releases import RELEASES


def broken_law(law_id: str, release: Release | None, *given: Any) -> list[str]:
    """Return the law, which judges what is given, if a release breaks it."""
    one = LAWS[law_id]
    return [law_id] if one.speaks_of(release) and not one.predicate(*given) else []


def name_of(offset: int) -> str:
    """Return the name of the snapshot at an offset."""
    return segment_file_name(offset, ".snapshot")


def manager_of(release: Release, images: dict[int, bytes]) -> ProducerStateManager:
    """Return a manager beside these snapshots."""
    files = Files({name_of(offset): image for offset, image in images.items()})
    return release.kind(ProducerStateManager)(files)


def draw_entry(random: Random, producer_id: int) -> ProducerStateEntry:
    """Return what is known of a producer."""
    batch = BatchMetadata(random.choice((0, 7, INT32_MAX)), random.randrange(99), 3, 1_000)
    return ProducerStateEntry(
        producer_id,
        random.choice((-1, 0, 32767)),
        random.choice((-1, 4)),
        batch.timestamp if (count := random.randrange(3)) else random.choice((-1, 5)),
        random.choice((None, 3 * producer_id)),
        (batch,) * count,
    )


def stored(random: Random, release: Release) -> Iterator[str]:
    """Yield the laws of snapshots that are broken."""
    ids = random.sample((0, 1, 2, 9, 2**40), random.randrange(4))
    entries = [draw_entry(random, producer_id) for producer_id in ids]
    snapshot = write_snapshot(entries)
    yield from broken_law("PROD-1", release, entries, snapshot)
    for entry in entries:
        alone = write_snapshot([entry])
        found = manager_of(release, {7: alone}).read_snapshot(name_of(7))
        yield from broken_law("PROD-5", release, entry, alone, found)
    place, bit = random.randrange(len(snapshot)), 1 << random.randrange(8)
    flipped = snapshot[:place] + bytes([snapshot[place] ^ bit]) + snapshot[place + 1 :]
    for image in (snapshot, snapshot[:place], flipped, snapshot + bytes(place)):
        manager = manager_of(release, {7: image})
        read = outcome_of(manager.read_snapshot, name_of(7))
        yield from broken_law("PROD-2", release, image, read)
    both = [manager_of(release, {7: write_snapshot(one)}) for one in (entries, entries[::-1])]
    for manager in both:
        manager.truncate_and_reload(0, 8, 0)
    yield from broken_law("PROD-4", release, *both)


def draw_log(random: Random) -> list[bytes]:
    """Return the batches of a log: records of some producers or of none, and markers."""
    images: list[bytes] = []
    open_ids: set[int] = set()
    offset, sequences = 0, {1: 0, 2: INT32_MAX - 1}
    for _ in range(random.randrange(12)):
        producer_id, stamp = random.choice((-1, 1, 1, 2)), random.randrange(1, 50)
        if producer_id in open_ids and random.random() < 0.5:
            given = {"producer_id": producer_id, "producer_epoch": 0}
            kind = random.choice(("ABORT", "COMMIT"))
            marker = write_end_transaction_marker(
                kind, offset=offset, timestamp=stamp, coordinator_epoch=len(images), **given
            )
            images.append(marker)
            open_ids.discard(producer_id)
            offset += 1
            continue
        count, more = random.randrange(1, 4), dict[str, Any]()
        if producer_id >= 0:
            is_open = producer_id in open_ids or random.random() < 0.5
            open_ids |= {producer_id} if is_open else set()
            more = {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": is_open}
            more["base_sequence"] = sequences[producer_id]
            sequences[producer_id] = (sequences[producer_id] + count) % 2**31
        records = [Record(offset + row, stamp, None, b"v") for row in range(count)]
        images.append(write_batch(records, base_offset=offset, **more))
        offset += count
    return images


def replay(manager: ProducerStateManager, log: bytes) -> None:
    """Tell a manager of batches as a recovery does, up to one that is refused."""
    try:
        for batch in manager.kind(MemoryRecords)(log).batches():
            completed = manager.update_producers(batch)
            manager.update_map_end_offset(batch.next_offset)
            if isinstance(completed, CompletedTxn):
                manager.complete_txn(completed)
    except Refused:
        pass


def rebuilt(random: Random, release: Release) -> Iterator[str]:
    """Yield the laws of recovery that are broken."""
    images = draw_log(random)
    half = random.randrange(len(images) + 1)
    live = manager_of(release, {})
    replay(live, b"".join(images[:half]))
    live.take_snapshot()
    replay(live, b"".join(images[half:]))
    again = release.kind(ProducerStateManager)(live.files)
    again.truncate_and_reload(0, live.map_end_offset, 0)
    snapshot_offset = again.map_end_offset
    rest = [image for image in images if int.from_bytes(image[:8], "big") >= snapshot_offset]
    replay(again, b"".join(rest))
    yield from broken_law("PROD-14", release, live, snapshot_offset, again)
    log, taught = b"".join(images), manager_of(release, {})
    torn = log[: len(log) - random.choice((0, 0, 1, 20))]
    files = Files({segment_file_name(0, ".log"): torn})
    segment = release.kind(LogSegment)(files, "", 0, LogConfig(), True)
    try:
        segment.recover(taught, None)
    except Refused:
        return
    yield from broken_law("PROD-15", release, segment.log.image, taught.map_end_offset)


def broken(release: Release, seed: int) -> list[str]:
    """Return the laws that one seed breaks."""
    return [*stored(Random(seed), release), *rebuilt(Random(seed), release)]


def main() -> None:
    """Ask the laws, and print which are broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    names = [name for name in RELEASES if not name.startswith("rocketmq")]
    parser.add_argument("--release", nargs="*", default=names)
    given = parser.parse_args()
    for name in given.release:
        seeds = range(given.first, given.first + given.seeds)
        found = {(seed, law) for seed in seeds for law in broken(RELEASES[name], seed)}
        print(f"{name}: {len(seeds)} seeds, {len(found)} broken {sorted(found)[:3]}", flush=True)


if __name__ == "__main__":
    main()
