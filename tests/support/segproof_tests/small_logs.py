# SPDX-License-Identifier: Apache-2.0
"""Batches of one record, and logs of them: what most tests of the files of Kafka begin with.

Batches of several records, markers, messages of magic 0 and 1 and entries of indexes are in
`segproof_harness.laws.borders.log_files`.
"""

from typing import Any

from segproof.kafka import Record, write_batch
from segproof_harness.laws.borders.log_files import patched


def batch(
    offset: int,
    value: bytes | None = b"value",
    key: bytes | None = None,
    *,
    time: int | None = None,
    **options: Any,
) -> bytes:
    """Return a batch of one record; without a key, no compaction takes it.

    Its timestamp is as many milliseconds after 1 s as its offset says, if no `time` is given.
    """
    record = Record(offset, 1000 + offset if time is None else time, key, value)
    return write_batch([record], base_offset=offset, **options)


def log_of(first: int, end: int, **options: Any) -> bytes:
    """Return a batch for each offset from `first` to before `end`."""
    return b"".join(batch(offset, **options) for offset in range(first, end))


def log_at(*times: int, magic: int = 2) -> bytes:
    """Return a batch with each of these timestamps, which no writer gives below -1."""
    batches = (batch(n, time=max(time, -1), magic=magic) for n, time in enumerate(times))
    return b"".join(
        patched(one, base_timestamp=time, max_timestamp=time) if time < -1 else one
        for one, time in zip(batches, times, strict=True)
    )
