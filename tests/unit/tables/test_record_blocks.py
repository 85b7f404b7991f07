# SPDX-License-Identifier: Apache-2.0
"""What is decoded together is what each batch says by itself, whatever is wrong with another."""

import struct
from typing import Any

import numpy as np
import pytest

from segproof.checksums import crc32c
from segproof.kafka import Record, write_batch
from segproof.kafka.batch_table import check_batches
from segproof.kafka.record import RecordHeader
from segproof.kafka.record_batch import read_batch
from segproof.reading import record_blocks as blocks
from segproof.reading.record_blocks import (
    RecordBlock,
    gathered,
    header_places,
    joined,
    record_blocks,
)

HEADERS = (RecordHeader("one", b"1"), RecordHeader("", None), RecordHeader("two" * 50, b""))


def batch(base: int, count: int, **how: Any) -> bytes:
    """Return a batch in which some records have headers, and some keys and values are null."""
    records = [
        Record(
            base + number,
            1000 - number,
            None if number % 3 else b"k" * number,
            None if number % 4 == 1 else b"v" * 9,
            HEADERS[: number % 4],
        )
        for number in range(count)
    ]
    return write_batch(records, base_offset=base, **how)


def sealed(data: bytes) -> bytes:
    """Return a batch that was changed with the checksum that fits."""
    return data[:17] + struct.pack(">I", crc32c(data[21:])) + data[21:]


def read(data: bytes, limit: int | None = None) -> list[RecordBlock | int]:
    """Return the blocks of a log, and the batches that are left to be read by themselves."""
    return [
        block
        for part in check_batches(data, holds=True)
        for block in record_blocks(part.table, part.crc_valid, part.held, part.crc_valid, limit)
    ]


def test_a_block_has_the_records_of_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their headers, however many batches share a block, and joined too."""
    made = [batch(0, 5), batch(5, 1), batch(6, 9, producer_id=7, producer_epoch=1, base_sequence=3)]
    expected = [one for data in made for one in read_batch(data).records()]
    for most in (1, 6, 100):
        monkeypatch.setattr(blocks, "ROWS_AT_ONCE", most)
        found = [block for block in read(b"".join(made)) if isinstance(block, RecordBlock)]
        assert expected == [one for block in found for one in block.columns]
        whole = joined(found)
        assert expected == list(whole.columns)
        assert [5, 1, 9] == whole.counts.tolist()
        places = header_places(whole.columns)
        keys = zip(places.key_positions.tolist(), places.key_lengths.tolist(), strict=True)
        shown = [bytes(whole.columns.data[at : at + size]).decode() for at, size in keys]
        assert [each.key for one in expected for each in one.headers] == shown


def left(data: bytes) -> list[int]:
    """Return the batches that are not decoded with the others."""
    return [block for block in read(data) if isinstance(block, int)]


def test_what_is_damaged_is_left_to_be_read_by_itself() -> None:
    """And the batches before and behind it are in blocks, in the order of the file."""
    sound, base = batch(0, 3), batch(3, 3)
    one_less = sealed(base[:57] + struct.pack(">i", 2) + base[61:])
    one_more = sealed(base[:57] + struct.pack(">i", 4) + base[61:])
    below = sealed(base[:64] + b"\x01" + base[65:])  # offset delta -1
    wrong_sum = base[:-1] + bytes([base[-1] ^ 1])
    codec = sealed(base[:22] + b"\x02" + base[23:])
    none_with_rest = sealed(base[:57] + bytes(4) + base[61:])
    for damaged in (one_less, one_more, below, wrong_sum, codec):
        found = read(sound + damaged + sound)
        assert [True, False, True] == [isinstance(each, RecordBlock) for each in found]
        assert [1] == left(sound + damaged + sound)
    assert [] == left(sound + none_with_rest + sound)
    assert [] == list(read_batch(none_with_rest).records())


def test_a_large_batch_is_left_to_be_read_by_itself() -> None:
    """One above the limit, and one whose bytes a scan does not hold."""
    data = batch(0, 3)
    assert [0] == read(data, limit=len(data) - 1)
    part = next(iter(check_batches(data)))
    assert part.held is None
    every = np.ones(1, np.bool_)
    assert [0] == list(record_blocks(part.table, part.crc_valid, part.held, every))


def test_chosen_and_first_records_come_with_their_batches() -> None:
    """A batch without a chosen record is left out; the first records reach into the last batch."""
    (block,) = read(batch(0, 5) + batch(5, 1) + batch(6, 9))
    assert isinstance(block, RecordBlock)
    records = list(block.columns)
    some = block.chosen(block.columns.offsets % 3 == 1)
    assert [one for one in records if one.offset % 3 == 1] == list(some.columns)
    assert ([0, 6], [2, 3]) == (some.table["base_offset"].tolist(), some.counts.tolist())
    for count, counts in ((3, [3]), (5, [5]), (7, [5, 1, 1]), (15, [5, 1, 9]), (99, [5, 1, 9])):
        first = block.first(count)
        assert records[:count] == list(first.columns)
        assert counts == first.counts.tolist()
        assert len(counts) == len(first.table)


def test_small_blocks_are_gathered_before_what_lies_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All else keeps its place, and a large block shares its bytes with who has read it."""
    small = [read(batch(base, 2))[0] for base in (0, 2, 4)]
    monkeypatch.setattr(blocks, "OWN_ROWS", 9)
    large = read(batch(6, 9))[0]
    found = list(gathered([small[0], small[1], "word", small[2], large]))
    assert ["word"] == [one for one in found if isinstance(one, str)]
    assert "word" == found[1]
    assert large is found[3]
    offsets = [one.columns.offsets.tolist() for one in found if isinstance(one, RecordBlock)]
    assert [[0, 1, 2, 3], [4, 5]] == offsets[:2]
