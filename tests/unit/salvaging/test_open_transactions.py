# SPDX-License-Identifier: Apache-2.0
"""A batch of a producer outside of its open transaction ends the load of a log: salvage goes on."""

from contextlib import closing
from pathlib import Path

import pytest

from segproof.checksums import crc32c
from segproof.files import REAL_FILES
from segproof.kafka.batch_table import CONTROL, TRANSACTIONAL, read_batch_headers
from segproof.repair import salvage
from segproof_tests.partition_files import copied_partition


def clear_flag(log: Path, times: int) -> list[int]:
    """Let some batches inside of open transactions say that they are in none; return where."""
    with closing(REAL_FILES.open(str(log))) as file:
        table = read_batch_headers(file, 0, file.size()).table
    data, begun, changed = bytearray(log.read_bytes()), set[int](), list[int]()
    for row in table:
        at, producer, bits = (int(row[it]) for it in ("position", "producer_id", "attributes"))
        if bits & CONTROL:
            begun.discard(producer)
        elif bits & TRANSACTIONAL and producer in begun and len(changed) < times:
            data[at + 22] ^= TRANSACTIONAL
            end = at + int(row["size_bytes"])
            data[at + 17 : at + 21] = crc32c(data[at + 21 : end]).to_bytes(4, "big")
            changed.append(at)
        elif bits & TRANSACTIONAL:
            begun.add(producer)
    log.write_bytes(data)
    return changed


@pytest.mark.checks("PROD-8")
@pytest.mark.parametrize("times", [1, 3])
def test_a_batch_outside_of_its_transaction_is_set_aside(times: int, tmp_path: Path) -> None:
    """The salvage ended with code 2, and named no file."""
    partition = copied_partition("txn-a", tmp_path / "in")
    log = min(partition.glob("*.log"))
    whole = next(iter(salvage(partition, tmp_path / "whole")))
    changed = clear_flag(log, times)
    assert times == len(changed)
    (told,) = salvage(partition, tmp_path / "out")
    assert (times, whole.batches - times) == (told.set_aside_batches, told.batches)
    assert [("unloadable", str(log), at) for at in changed] == [
        (one.kind, one.path, one.position) for one in told.gaps
    ]
    assert whole.records - told.records == told.lost_offsets > 0
