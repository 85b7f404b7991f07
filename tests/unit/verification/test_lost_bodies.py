# SPDX-License-Identifier: Apache-2.0
"""Messages without a body that have the checksum of one: a broker reads them, the body is lost."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Summary, Verdict
from segproof.repair import salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.message import Message, check_message_and_return_size, encode_message
from segproof.verification import verify
from segproof_harness.laws.judged_store import store_disagreements
from segproof_model.laws.rocketmq.broker.store_on_disk import (
    messages_without_body_have_no_checksum,
)
from segproof_model.laws.rocketmq.broker.store_views import StoreFiles
from segproof_tests.store_files import LOG_BYTES, long_store

COUNT = 24


def lose_body(store: Path, number: int) -> int:
    """Take the body of a message away, and keep its size and its checksum; return its offset."""
    log = CommitLog.open(str(store), LOG_BYTES)
    messages = [one.message for _, one in log.scan(0) if one.message is not None]
    old = messages[number]
    longer = f"{old.properties}x\x01{'y' * (len(old.body) - 3)}\x02"
    raw = bytearray(encode_message(replace(old, body=b"", properties=longer)))
    assert len(raw) == old.total_size
    struct.pack_into(">i", raw, 8, old.body_crc)
    path = store / "commitlog" / f"{old.physical_offset // LOG_BYTES * LOG_BYTES:020d}"
    data = bytearray(path.read_bytes())
    at = old.physical_offset % LOG_BYTES
    data[at : at + len(raw)] = raw
    path.write_bytes(data)
    return old.physical_offset


@pytest.mark.checks("RMQDISK-55")
@pytest.mark.parametrize("number", [2, 11, COUNT - 1])
def test_a_message_that_lost_its_body_is_told_and_counted(number: int, tmp_path: Path) -> None:
    """`salvage` saved it as a message with an empty body, and said that nothing was lost."""
    store = long_store(tmp_path / "store", COUNT)
    offset = lose_body(store, number)
    summaries: list[Summary] = []
    (one,) = (each for each in verify(store, on_summary=summaries.append) if each.is_defect)
    assert ("RMQDISK-55", offset % LOG_BYTES) == (one.law, one.position)
    assert [] == list(store_disagreements(store))
    assert (1, COUNT - 1) == (summaries[0].lost_at_least, summaries[0].batches)
    assert Verdict.READABLE_WITH_GAPS is summaries[0].verdict
    told = salvage_store(store, tmp_path / "out", mapped_file_size=LOG_BYTES)
    assert (COUNT - 1, 1, 1) == (told.messages, told.lost_messages, told.gap_count)
    assert [] == [each for each in verify(tmp_path / "out", deep=True) if each.is_defect]


@pytest.mark.checks("RMQDISK-55")
def test_an_empty_body_with_its_checksum_is_lawful(tmp_path: Path) -> None:
    """A broker stores 0 with it."""
    store = long_store(tmp_path / "store", COUNT)
    offset = lose_body(store, 2)
    path = store / "commitlog" / f"{offset // LOG_BYTES * LOG_BYTES:020d}"
    data = bytearray(path.read_bytes())
    struct.pack_into(">i", data, offset % LOG_BYTES + 8, 0)
    path.write_bytes(data)
    assert [] == [each for each in verify(store) if each.is_defect]
    assert salvage_store(store, tmp_path / "out", mapped_file_size=LOG_BYTES).is_whole


@pytest.mark.checks("RMQDISK-55")
@given(body=st.binary(max_size=3), checksum=st.integers(0, 3), length=st.integers(-2, 0))
def test_what_the_law_says(body: bytes, checksum: int, length: int) -> None:
    """A body length of 0 or less is no body; a checksum that is not 0 is of a body then."""
    message = Message(
        0, -626843481, 0, 0, 0, 0, 0, 0, 1, bytes(8), 1, bytes(8), 0, 0, body, "T", "k\x01v\x02"
    )
    raw = bytearray(encode_message(message))
    if not body:
        struct.pack_into(">i", raw, 8, checksum)
        struct.pack_into(">i", raw, 84, length)
    assert check_message_and_return_size(bytes(raw), 0).success
    files = {f"commitlog/{0:020d}": bytes(raw).ljust(256, b"\0")}
    holds = messages_without_body_have_no_checksum(StoreFiles(files))
    assert holds == (bool(body) or not checksum)
