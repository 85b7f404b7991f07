# SPDX-License-Identifier: Apache-2.0
"""A lookup searches each index once, and the steps tell what the searches found."""

import pytest

from segproof.kafka.abstract_index import AbstractIndex
from segproof.lookup import PartitionReader
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.reading.partition_under_profile import PartitionAsFound
from segproof_model.releases import release_named

PLAIN = KAFKA / "plain" / "plain-0"


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the suffixes of the indexes that are searched, as they are."""
    found: list[str] = []
    right = AbstractIndex.lookup_slot

    def noted(index: AbstractIndex, target: int) -> int:
        found.append(index.file[index.file.rindex(".") :])
        return right(index, target)

    monkeypatch.setattr(AbstractIndex, "lookup_slot", noted)
    return found


@pytest.mark.parametrize("explain", [False, True])
def test_each_index_is_searched_once(searched: list[str], explain: bool) -> None:
    """An index was searched three times: for the answer, for the scan, and for the slot shown."""
    with PartitionReader(PLAIN) as reader:
        base_offset = reader.base_offsets[0]
        assert reader.lookup_offset(base_offset + 20, explain=explain).batch_position is not None
        assert [".index"] == searched
        reader.lookup_timestamp(0)
        searched.clear()
        assert reader.lookup_timestamp(0, explain=explain).offset is not None
        assert [".timeindex", ".index"] == searched


def test_the_slot_is_that_of_the_entry() -> None:
    """For targets below, at and behind each entry the slot leads to the entry of `lookup`."""
    with PartitionReader(PLAIN) as reader:
        for base_offset in reader.base_offsets:
            segment = reader.segment(base_offset)
            for index in (segment.offset_index, segment.time_index):
                assert index is not None
                for target in {entry[0] + step for entry in index for step in (-1, 0, 1)}:
                    slot = index.lookup_slot(target)
                    entry = index.lookup(target)
                    assert (index.entry(slot) if slot >= 0 else entry) == entry
                    assert (slot < 0) == (target < index.entry(0)[0])


def test_a_release_tells_the_same_steps() -> None:
    """Its segments are searched by the same code, so it names the same files in the same order."""
    release = PartitionAsFound(str(PLAIN), release_named("kafka-4.3.1"))
    with PartitionReader(PLAIN) as reader:
        for base_offset in reader.base_offsets[:-1]:
            told = [
                [(step.action, step.path) for step in one.lookup_offset(target, explain=True).steps]
                for one in (reader, release)
                for target in (base_offset, base_offset + 7)
            ]
            assert told[:2] == told[2:]
