# SPDX-License-Identifier: Apache-2.0
"""Real segments opened for writing: reads, searches and recovery answer as the real classes did.

The recorded answers are those of `LogSegment` 4.3.1 on the files as found. Model and implementation
are both asked, on a copy: opening a segment takes its files over.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segproof.kafka import LogConfig, LogSegment, PartitionLog, ProducerStateManager
from segproof.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.shipped_directories import load_expected, partition_of, scenarios
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache as ModelEpochs
from segproof_model.kafka.broker.producer_state import ProducerStateManager as ModelProducers
from segproof_model.kafka.format.log_config import LogConfig as ModelConfig
from segproof_model.kafka.format.log_segment import LogSegment as ModelSegment
from segproof_model.language.files import Files
from segproof_model.releases import release_named

KAFKA_4_3_1 = release_named("kafka-4.3.1")
LARGE_READ_BYTES = 100_000
NOT_COMPARABLE = {"leader-epoch-checkpoint"}
"""The broker that recovered became leader of a new epoch before the copy was made."""


def name(scenario: Path) -> str:
    """Return a scenario's name, for a test's id."""
    return scenario.name


@pytest.fixture
def copy(scenario: Path, tmp_path: Path) -> Path:
    """Return a copy of the scenario's partition."""
    return Path(
        shutil.copytree(partition_of(scenario), tmp_path / "t-0", copy_function=shutil.copy)
    )


def options(expected: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the recorded answers were made with."""
    return {
        "index_interval_bytes": expected["index_interval_bytes"],
        "segment_index_bytes": expected["segment_index_bytes"],
    }


def entries(segment: dict[str, Any], kind: str) -> list[list[int]]:
    """Return the entries that the real recovery left."""
    found = segment["recover"][kind]
    wanted: list[list[int]] = segment[kind] if isinstance(found, str) else found
    return wanted


def read_row(found: Any) -> list[Any] | None:
    """Return a read of one byte as it is recorded: base offset, position, bytes, incomplete."""
    if found is None:
        return None
    at = found.fetch_offset_metadata
    size = 0 if found.records is None else found.records.size_in_bytes()
    return [at.message_offset, at.relative_position_in_segment, size, found.first_entry_incomplete]


def size_of(found: Any) -> int | None:
    """Return how many bytes a read found."""
    return None if found is None or found.records is None else int(found.records.size_in_bytes())


def ask(segment: Any, recorded: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (kind, expected, actual) of all that is recorded of reads and searches."""
    for row in recorded["offset_queries"]:
        yield "read", row[3], read_row(segment.read(row[0], 1))
        yield "large read", row[4], size_of(segment.read(row[0], LARGE_READ_BYTES))
    for row in recorded["time_queries"]:
        found = segment.find_offset_by_timestamp(row[0], recorded["base"])
        yield "time", row[3], None if found is None else list(found[:2])


def tally(asked: Iterator[tuple[str, Any, Any]]) -> tuple[Counter[str], list[Any]]:
    """Count what was compared, and return the first differences."""
    counted: Counter[str] = Counter()
    different = []
    for kind, expected, actual in asked:
        counted[kind] += 1
        if expected != actual:
            different.append((kind, expected, actual))
    return counted, different[:5]


def model_segment(partition: Path, expected: dict[str, Any], base_offset: int) -> ModelSegment:
    """Return the model of one segment in the release that answered."""
    files = Files({path.name: path.read_bytes() for path in partition.iterdir()})
    config = ModelConfig(**options(expected))
    return KAFKA_4_3_1.kind(ModelSegment)(files, "", base_offset, config, True, codecs=CODECS)


def implemented(partition: Path, expected: dict[str, Any], base_offset: int) -> LogSegment:
    """Return one segment, opened for writing."""
    return LogSegment.open(
        str(partition), base_offset, LogConfig(**options(expected)), True, create=True
    )


SIDES: dict[str, tuple[Any, int]] = {
    "model": (model_segment, 8),
    "implementation": (implemented, 1),
}
"""How a side opens a segment; and of how many questions it is asked one: the model is slow."""


@pytest.mark.checks("SEG-12", "SEG-14", "SEG-15", "SEG-16", "SEG-17", "SEG-39")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("scenario", scenarios(), ids=name)
def test_reads_and_searches_answer_as_the_release_did(
    side: str, scenario: Path, copy: Path
) -> None:
    """Each recorded offset and timestamp, on the files as found, zero tail and all."""
    expected = load_expected(scenario)
    opened, step = SIDES[side]
    for recorded in expected["segments"]:
        kinds = ("offset_queries", "time_queries")
        some = {**recorded, **{kind: recorded[kind][::step] for kind in kinds}}
        segment = opened(copy, expected, recorded["base"])
        counted, different = tally(ask(segment, some))
        segment.close_handlers()
        assert [] == different
        assert counted["read"] > 30 // step
        assert counted["time"] > 15 // step


@pytest.mark.checks("SEG-20", "SEG-22", "SEG-23", "SEG-30", "SEG-35")
@pytest.mark.parametrize("scenario", scenarios(), ids=name)
def test_recovery_leaves_what_the_real_one_left(scenario: Path, copy: Path) -> None:
    """Bytes cut, entries of all three indexes and the next offset, segment by segment."""
    expected = load_expected(scenario)
    # From the last one on: loading the producers of a segment removes the later snapshots.
    for recorded in reversed(expected["segments"]):
        base = recorded["base"]
        producers = ProducerStateManager.open(str(copy), writable=True)
        producers.truncate_and_reload(0, base, 0)
        segment = implemented(copy, expected, base)
        cut = segment.recover(producers, LeaderEpochFileCache.in_memory())
        wanted = recorded["recover"]
        assert (wanted["truncated"], wanted["size"]) == (cut, segment.size)
        assert entries(recorded, "index") == [list(entry) for entry in segment.offset_index]
        assert entries(recorded, "timeindex") == [list(entry) for entry in segment.time_index]
        assert wanted["next_offset"] == segment.read_next_offset()
        aborted = segment.txn_index.all_aborted_txns()
        assert wanted["aborted"] == [list(entry[1:]) for entry in aborted]
        segment.close()


@pytest.mark.checks("SEG-20", "SEG-22", "SEG-23", "SEG-24")
@pytest.mark.parametrize("scenario", scenarios(), ids=name)
def test_model_recovers_what_the_real_one_left(scenario: Path, copy: Path) -> None:
    """The same of the model, which also says which bytes the index files then have."""
    expected = load_expected(scenario)
    for recorded in expected["segments"]:
        segment = model_segment(copy, expected, recorded["base"])
        files = segment.files
        cut = segment.recover(
            KAFKA_4_3_1.kind(ModelProducers)(files), KAFKA_4_3_1.kind(ModelEpochs)(files, None)
        )
        assert recorded["recover"]["truncated"] == cut
        index = files.image(f"{recorded['base']:020d}.index")
        times = files.image(f"{recorded['base']:020d}.timeindex")
        assert 8 * len(entries(recorded, "index")) == len(index)
        assert 12 * len(entries(recorded, "timeindex")) == len(times)


@pytest.mark.checks("LOAD-7", "LOAD-14", "LOAD-16")
def test_an_unclean_log_is_recovered_to_the_bytes_the_broker_left(tmp_path: Path) -> None:
    """Loading what a killed broker left gives what its restart gave, in every file there is."""
    before = next(each for each in scenarios() if each.name == "unclean-before")
    partition = Path(shutil.copytree(partition_of(before), tmp_path / "t-0"))
    after = json.loads((before / "after-restart.json").read_text())["files"]
    options_of_topic = options(load_expected(before))
    config = LogConfig(segment_bytes=1_000_000, **options_of_topic)
    log = PartitionLog.open(str(partition), config, last_shutdown_clean=False, create=True)
    assert 2847 == log.log_end_offset
    log.close_handlers()
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in partition.iterdir()
    }
    different = {each for each in after.keys() | found.keys() if after.get(each) != found.get(each)}
    assert NOT_COMPARABLE == different
