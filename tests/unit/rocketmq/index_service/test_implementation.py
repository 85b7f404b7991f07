# SPDX-License-Identifier: Apache-2.0
"""The key index of a RocketMQ store, its checkpoint and its queues, beside the model."""

import datetime

import pytest

from segproof.errors import CorruptIndexError, IndexClosedError, InvalidArgumentError
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.index_service import IndexService, QueryOffsetResult, index_file_name
from segproof.rocketmq.message import DispatchRequest
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.machine.simulated_files import SimulatedFiles, crashes_in

NOW_MS = 1_795_223_767_450
MOST = 2**63 - 1


class Clock:
    """Milliseconds that a test moves."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        """Return the time that it is."""
        return self.now_ms


def opened(files: MemoryFiles, clock: Clock, slots: int = 3, entries: int = 4) -> IndexService:
    """Return a service of small files on a store in memory."""
    return IndexService.open(
        "/s", slots, entries, create=True, files=files, time=clock, zone=datetime.UTC
    )


def request(
    offset: int, keys: str | None = "a", time_ms: int = 1000, *, uniq: str | None = None,
    flags: int = 0, tags: str | None = None, topic: str | None = "T",
) -> DispatchRequest:  # fmt: skip
    """Return what the index is told of one message."""
    pairs = None if tags is None else (("TAGS", tags),)
    return DispatchRequest(topic, offset, 100, 0, time_ms, 0, keys, uniq, flags, 0, pairs)


@pytest.mark.checks("RMQSVC-9")
def test_two_files_of_one_millisecond_have_two_names() -> None:
    """The second one gets the next millisecond, and both keep their entries."""
    files, clock = MemoryFiles(), Clock()
    with opened(files, clock, 3, 2) as service:
        service.build_index(request(100, "a b", 5000))
        names = [one.file_name for one in service.index_files]
        assert ["/s/index/20261121011607450", "/s/index/20261121011607451"] == names
        assert service.query_offset("T", "b", 9, 0, MOST).phy_offsets == (100,)
        assert service.query_offset("T", "a", 9, 0, MOST).phy_offsets == (100,)


@pytest.mark.checks("RMQSVC-12")
def test_a_message_that_lies_in_two_files_is_completed_not_repeated() -> None:
    """After a crash only the entries of the newest file are lost: the others are not repeated."""
    files, clock = MemoryFiles(), Clock()
    with opened(files, clock) as service:
        service.build_index(request(100, "a b c d e", 5000))
        newest = service.index_files[-1]
        assert [3, 2] == [len(one) for one in service.index_files]
        assert newest.destroy(0)
    with opened(files, clock) as service:
        assert service.load(True)
        service.build_index(request(100, "a b c d e", 5000))
        assert [3, 2] == [len(one) for one in service.index_files]
        assert service.query_offset("T", "d", 9, 0, MOST).phy_offsets == (100,)


@pytest.mark.checks("RMQSVC-2", "RMQSVC-4", "RMQSVC-10")
def test_power_is_lost_at_any_step() -> None:
    """What the checkpoint calls indexed is found after a loss of power, whenever it comes."""
    files, clock = SimulatedFiles(), Clock()
    files.make_directory("/s/index")
    service = opened(files, clock)
    files.settle()

    def build() -> None:
        for number in range(1, 13):
            clock.now_ms += 1000
            service.build_index(request(100 * number, "k", 1000 * number))

    known, begun = set(), False
    for image in crashes_in(files, build):
        after = MemoryFiles()
        after.make_directory("/s/index")
        for path, data in image.items():
            write_file(after, path, data)
        with opened(after, clock) as again:
            # A file that was begun and has no bytes gets its length, as RocketMQ gives it.
            begun |= not all(image.values())
            assert again.load(False)
            assert len({len(data) for data in after.images("/s/index").values()}) <= 1
            indexed = again.store_checkpoint.index_msg_timestamp // 1000
            known.add(indexed)
            found = again.query_offset("T", "k", 64, 0, MOST).phy_offsets
            assert sorted(found) == [100 * number for number in range(1, indexed + 1)]
    assert known == {0, 3, 6, 9}
    assert begun


@pytest.mark.checks("RMQSVC-2", "RMQSVC-3")
def test_loading_ends_at_a_folder_with_a_number_for_a_name() -> None:
    """The files before it stay listed; a missing folder is no index at all."""
    files, clock = MemoryFiles(), Clock()
    with opened(files, clock) as service:
        assert service.load(False)
        service.build_index(request(100))
        service.shutdown()
        files.make_directory("/s/index/30001121011607450")
        assert not service.load(True)
        assert len(service.index_files) == 1
        assert QueryOffsetResult((100,), 1000, 100) == service.query_offset("T", "a", 1, 0, MOST)


def test_a_corrupt_file_ends_a_query_with_its_error() -> None:
    """Nothing of what was found before it is told as if it were all."""
    files, clock = MemoryFiles(), Clock()
    with opened(files, clock, 1, 9) as service:
        service.build_index(request(100))
        service.flush(0)
        file = files.open(service.index_files[0].file_name, writable=True)
        file.pwrite(b"\0\0\0\x07", 40)
        file.close()
        with pytest.raises(CorruptIndexError):
            service.query_offset("T", "a", 9, 0, MOST)


def test_names_of_times() -> None:
    """Seventeen digits in the zone that is given; a time without a year of four digits has none."""
    zone = datetime.timezone(datetime.timedelta(hours=8))
    assert index_file_name(NOW_MS, zone) == "20261121091607450"
    assert index_file_name(-1, datetime.UTC) == "19691231235959999"
    for time_ms in (2**60, -(2**60)):
        with pytest.raises(InvalidArgumentError):
            index_file_name(time_ms, datetime.UTC)


# --- the checkpoint


@pytest.mark.checks("RMQCKPT-1", "RMQCKPT-3", "RMQCKPT-4")
def test_checkpoint() -> None:
    """Numbers are in the file once they are flushed, and only then; other bytes stay."""
    files = MemoryFiles()
    checkpoint = StoreCheckpoint.open("/s/checkpoint", create=True, files=files)
    assert bytes(4096) == files.images("/s")["checkpoint"]
    checkpoint.set_physic_msg_timestamp(43707)
    checkpoint.set_logics_msg_timestamp(52445)
    assert (40707, 0) == (checkpoint.min_timestamp, checkpoint.min_timestamp_index)
    assert bytes(4096) == files.images("/s")["checkpoint"]
    checkpoint.set_index_msg_timestamp(-5)
    checkpoint.set_logics_physical_offset(7)
    file = files.open("/s/checkpoint", writable=True)
    file.pwrite(b"x", 4096)
    file.close()
    checkpoint.shutdown()
    checkpoint.shutdown()
    with pytest.raises(IndexClosedError):
        checkpoint.flush()
    image = files.images("/s")["checkpoint"]
    assert (4097, b"x") == (len(image), image[4096:])
    with StoreCheckpoint.open("/s/checkpoint", create=True, files=files) as again:
        assert (43707, 52445, -5, 7) == (
            again.physic_msg_timestamp, again.logics_msg_timestamp, again.index_msg_timestamp,
            again.logics_physical_offset,
        )  # fmt: skip
        assert again.min_timestamp_index == -5
        with pytest.raises(InvalidArgumentError):
            again.set_confirm_phy_offset(2**63)


# --- consume queues


def test_a_topic_is_no_path() -> None:
    """A name from a record can't lead out of the store."""
    for topic in ("", ".", "..", "a/b", "a\0"):
        with pytest.raises(InvalidArgumentError):
            ConsumeQueue.open("/s", topic, 0, create=True, files=MemoryFiles())
    with pytest.raises(InvalidArgumentError):
        ConsumeQueue.open("/s", "T", 0, 30, create=True, files=MemoryFiles())
