# SPDX-License-Identifier: Apache-2.0
"""The records of a compressed batch, read one by one until damage is met.

Used by: the tox environments `quick`, `py311` to `py313`, `oldest`, `interpreted`.
"""

import pytest

from segproof_harness.codecs import CODECS
from segproof_model.kafka.record_batch import Record, RecordBatch, read_batch, write_batch


@pytest.mark.checks("LOG-16")
@pytest.mark.parametrize("damage", ["none", "checksum", "cut", "deflate"])
def test_streamed_times_end_where_inflating_does(damage: str) -> None:
    """Read record by record, a batch tells of those before damage, but not of the last one; where
    its data is damaged, and not its end, of none, as read as a whole."""
    wanted = [(10, 0), (30, 1), (20, 2)]
    records = [Record(offset, timestamp, None, b"v") for timestamp, offset in wanted]
    data = write_batch(records, base_offset=0, compression="gzip", codecs=CODECS)
    assert isinstance(data, bytes)
    damaged = {
        "none": data,
        "checksum": data[:-8] + bytes(8),
        "cut": data[:8] + (len(data) - 12 - 9).to_bytes(4, "big") + data[12:-9],
        "deflate": data[:71] + b"\x07" + data[72:],
    }[damage]
    batch = read_batch(damaged, codecs=CODECS)
    assert isinstance(batch, RecordBatch)
    told = {"none": wanted, "deflate": []}.get(damage, wanted[:-1])
    assert told == list(batch.times_until_error(is_streamed=True).times)
    assert (wanted if damage == "none" else []) == list(batch.times_until_error().times)
