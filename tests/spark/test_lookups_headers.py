# SPDX-License-Identifier: Apache-2.0
"""The headers of batches that bulk lookups read for themselves, beside the implementation."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from segproof.files import RealFiles
from segproof.kafka import Record, RecordFile, write_batch
from segproof_spark.lookups.batch_headers import Headers, walk_headers
from segproof_spark.lookups.random_numbers import Draw


def written_log(path: Path, sizes: Sequence[int]) -> bytes:
    """Write batches of so many bytes of value into a file."""
    records = [
        Record(number, 1000 + number, None, bytes(size)) for number, size in enumerate(sizes)
    ]
    data = b"".join(write_batch([one], base_offset=one.offset) for one in records)
    path.write_bytes(data)
    return data


def told(path: Path, limit: int = 10**6) -> Headers:
    """Return the headers of magic 2 in a file."""
    file = RealFiles().open(str(path))
    found = walk_headers(file, limit)
    file.close()
    assert found is not None
    return found


def test_headers_are_those_of_the_batches(tmp_path: Path) -> None:
    """Small and large batches, and a file that ends inside the last one."""
    path = tmp_path / "00000000000000000000.log"
    draw = Draw("headers")
    sizes = [draw.one_of((0, 1, 500, 65_000, 200_000)) for _ in range(300)]
    data = written_log(path, sizes)
    with RecordFile.open(path) as log:
        right = [
            (one.position, one.size_bytes, one.last_offset, one.max_timestamp)
            for one in log.batches()
        ]
    found = told(path)
    assert (right, len(data), "") == (
        list(map(tuple, found.columns.T.tolist())),
        found.end_position,
        found.reason,
    )
    few = told(path, 7)
    assert (right[:7], "enough batches") == (list(map(tuple, few.columns.T.tolist())), few.reason)
    for cut in (1, 16, 17, 18, 60, 61, 62):
        start = right[-1][0]
        path.write_bytes(data[: start + cut])
        found = told(path)
        assert (len(right) - 1, start, "") == (
            found.columns.shape[1],
            found.end_position,
            found.reason,
        )


@pytest.mark.parametrize(
    ("at", "damage", "reason"),
    [
        (8, b"\0\0\0\x0d", "a length of 13"),
        (8, b"\xff\xff\xff\xff", "a length of -1"),
        (8, b"\0\0\0\x30", "magic 2, a length of 48"),
        (16, b"\3", "magic 3, a length of 59"),
    ],
)
def test_headers_end_before_a_damaged_one(
    tmp_path: Path, at: int, damage: bytes, reason: str
) -> None:
    """What lies behind is not told, and the reason is."""
    path = tmp_path / "00000000000000000000.log"
    data = bytearray(written_log(path, [1, 2, 3, 4]))
    start = told(path).columns[0, 2]
    data[start + at : start + at + len(damage)] = damage
    path.write_bytes(data)
    found = told(path)
    assert (2, start, reason) == (found.columns.shape[1], found.end_position, found.reason)
