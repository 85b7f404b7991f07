# SPDX-License-Identifier: Apache-2.0
"""A segment as it was while it was the active one, put over the closed one."""

from collections.abc import Iterable
from pathlib import Path

from segproof.kafka.batch_table import read_batch_headers
from segproof_tests.partition_files import name_of

INDEXES = {".index": (8, slice(0, 4)), ".timeindex": (12, slice(8, 12))}
"""Bytes of an entry, and where its offset lies."""
MAX_INDEX_BYTES = 8192


def put_back(folder: Path, base: int, batches: int, untrimmed: Iterable[str] = INDEXES) -> int:
    """Leave so many batches of a log and their entries; return the offset after them.

    The `untrimmed` indexes get zeros up to the size that a broker preallocates.
    """
    log = folder / name_of(base, ".log")
    data = log.read_bytes()
    table = read_batch_headers(data).table
    log.write_bytes(data[: int(table["position"][batches])])
    end = int(table["last_offset"][batches - 1]) + 1
    for suffix, (size, field) in INDEXES.items():
        index = folder / name_of(base, suffix)
        old = index.read_bytes()
        entries = [old[at : at + size] for at in range(0, len(old), size)]
        kept = b"".join(one for one in entries if int.from_bytes(one[field], "big") < end - base)
        is_trimmed = suffix not in [*untrimmed]
        index.write_bytes(kept if is_trimmed else kept.ljust(MAX_INDEX_BYTES // size * size, b"\0"))
    return end
