# SPDX-License-Identifier: Apache-2.0
"""The commit log: scanning its files, and looking a message up."""

from segproof_model.language.files import Files
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.message import MAGIC_V1, Message, blank_tail

NOW_MS = 1700000000000


def record(body_bytes: int) -> bytes:
    """Return the record of a message with a body of so many bytes."""
    head = (0, MAGIC_V1, 0, 3, 5, 7, 0, 0, NOW_MS - 1, bytes(8), NOW_MS, bytes(8), 0, 0)
    return Message(*head, bytes(body_bytes), "T", "KEYS\x01a").to_bytes()


def test_a_scan_crosses_blank_tails() -> None:
    """Records in order, over two files, and last where it stops."""
    records = [record(body) for body in (250, 100, 50)]
    first = records[0] + blank_tail(400 - len(records[0]))
    second = (records[1] + records[2]).ljust(400, b"\0")
    log = CommitLog(Files({f"commitlog/{0:020d}": first, f"commitlog/{400:020d}": second}), "")
    ends = [400 + len(records[1]), 400 + len(records[1]) + len(records[2])]
    scanned = list(log.scan())
    assert [0, 400, *ends] == [offset for offset, _ in scanned]
    assert [True, True, True, False] == [result.success for _, result in scanned]
    assert (400, 0, 800) == (log.mapped_file_size, log.min_offset, log.max_offset)
    assert ends[:1] == [offset for offset, result in log.scan(ends[0]) if result.success]
    assert [] == list(log.scan(800))


def test_a_message_is_looked_up_whatever_its_checksum() -> None:
    """A wrong offset gives none."""
    data = record(4)
    damaged = data[:88] + b"\1" + data[89:]
    log = CommitLog(Files({f"commitlog/{0:020d}": damaged.ljust(400, b"\0")}), "")
    found = log.look_message(0)
    assert found is not None
    assert NOW_MS == found.store_timestamp
    assert [None, None, None] == [log.look_message(offset) for offset in (1, -1, 400)]
    assert [NOW_MS, -1] == [log.pickup_store_timestamp(0, size) for size in (99, 401)]
