# SPDX-License-Identifier: Apache-2.0
"""Laws of RocketMQ's files that speak of bytes, not of steps, on drawn puts and values."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws.every_law import LAWS
from segproof_harness.structures.rocketmq.index_drawing import KEYS
from segproof_model.laws.rocketmq.format.index_entries import IndexBytes
from segproof_model.rocketmq.broker.store_checkpoint import FIELDS

NAME = "20231114221320123"
INT64 = st.integers(-(2**63), 2**63 - 1)
PUTS = st.lists(st.tuples(st.sampled_from(KEYS), INT64, INT64), max_size=20)


@pytest.mark.checks("RMQIDX-30")
@given(slots=st.integers(1, 9), puts=PUTS)
def test_chains_of_completed_puts_lead_downwards(
    slots: int, puts: list[tuple[str, int, int]]
) -> None:
    """Whatever keys collide and however the clock runs; a slot beyond the count breaks it."""
    files = MemoryFiles()
    with IndexFile.open(f"/{NAME}", slots, 16, create=True, files=files) as file:
        for put in puts:
            file.put_key(*put)
    image = files.images("/")[NAME]
    law = LAWS["RMQIDX-30"].predicate
    assert law(IndexBytes(image, slots))
    assert not law(IndexBytes(image[:40] + b"\x7f" + image[41:], slots))


@pytest.mark.checks("RMQCKPT-1")
@given(values=st.tuples(*(INT64 for _ in FIELDS)), before=st.none() | st.binary(max_size=5000))
def test_fields_of_a_checkpoint_lie_in_order(values: tuple[int, ...], before: bytes | None) -> None:
    """In a new file as in one that was there, be it too short or too long."""
    files = MemoryFiles()
    if before is not None:
        write_file(files, "/checkpoint", before)
    checkpoint = StoreCheckpoint.open("/checkpoint", create=True, files=files)
    for field, value in zip(FIELDS, values, strict=True):
        getattr(checkpoint, f"set_{field}")(value)
    checkpoint.shutdown()
    image = files.images("/")["checkpoint"]
    assert LAWS["RMQCKPT-1"].predicate(image, values)
    assert max(4096, len(before or b"")) == len(image)


@pytest.mark.checks("RMQCKPT-5")
@given(content=st.none() | st.binary(max_size=20))
def test_the_marker_of_a_crash_is_not_read(content: bytes | None) -> None:
    """Only whether it is there counts."""
    files = MemoryFiles()
    files.make_directory("/store")
    if content is not None:
        write_file(files, "/store/abort", content)
    with MessageStore.open(
        "/store", MessageStoreConfig(4, 8, 1000), create=True, files=files
    ) as store:
        assert store.last_exit_ok is (content is None)


@pytest.mark.parametrize("count", [1, 40])
def test_long_names_of_one_hash_are_one_chain(count: int, tmp_path: Path) -> None:
    """On a real file: each put is found, newest first, though all slots but one stay empty."""
    keys = ["Aa" * (number % 7) + "BB" * (6 - number % 7) for number in range(count)]
    with IndexFile.open(tmp_path / NAME, 7, count + 1, create=True) as file:
        for number, key in enumerate(keys):
            assert file.put_key(key, number, 1_000_000 + number)
        found = file.select_phy_offset([], "AaAaAaAaAaAa", 1000, 0, 2**62)
        assert list(range(count))[::-1] == found
        assert 1 == file.hash_slot_count
