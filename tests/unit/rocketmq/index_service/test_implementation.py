# SPDX-License-Identifier: Apache-2.0
"""The key index of a RocketMQ store, its checkpoint and its queues, beside the model."""

import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segproof.errors import CorruptIndexError, IndexClosedError, InvalidArgumentError, SegproofError
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue, max_physic_offset
from segproof.rocketmq.index_service import IndexService, QueryOffsetResult, index_file_name
from segproof.rocketmq.message import DispatchRequest
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.memory_stores import message_of, write_log
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import apply
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService as ModelService
from segproof_model.rocketmq.format.commit_log import CommitLog as ModelLog
from segproof_model.rocketmq.format.consume_queue import ConsumeQueue as ModelQueue
from segproof_model.rocketmq.format.message import DispatchRequest as ModelRequest
from segproof_tests.crashing_files import CrashingFiles, crash_images

NOW_MS = 1_795_223_767_450
MOST = 2**63 - 1
FOLDER = "s/consumequeue/T/0"
TIMES = st.sampled_from([-1, 0, 1, 999, 1000, 5000, 100_000, 2**40, MOST])
KEYS = st.sampled_from(["a", "b", "", "a b", " a  b ", "AaAa", "BBBB", "polygenelubricants"])


class Clock:
    """Milliseconds that a test moves."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        """Return the time that it is."""
        return self.now_ms


def opened(files: MemoryFiles, clock: Clock, slots: int = 3, entries: int = 4) -> IndexService:
    """Return a service of small files on a store in memory."""
    return IndexService.open("/s", slots, entries, files=files, time=clock, zone=datetime.UTC)


def request(
    offset: int, keys: str | None = "a", time_ms: int = 1000, *, uniq: str | None = None,
    flags: int = 0, tags: str | None = None, topic: str | None = "T",
) -> DispatchRequest:  # fmt: skip
    """Return what the index is told of one message."""
    pairs = None if tags is None else (("TAGS", tags),)
    return DispatchRequest(topic, offset, 100, 0, time_ms, 0, keys, uniq, flags, 0, pairs)


REQUESTS = st.builds(
    request,
    st.integers(0, 6).map(lambda number: number * 100),
    st.none() | KEYS,
    TIMES,
    uniq=st.none() | KEYS,
    flags=st.sampled_from([0, 4, 8, 12]),
    tags=st.none() | st.sampled_from(["", "t", "a"]),
    topic=st.sampled_from(["T", None]),
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("build_index"), st.tuples(REQUESTS)),
        st.tuples(
            st.just("query_offset"),
            st.tuples(
                st.sampled_from(["T", None]), KEYS, st.sampled_from([-1, 0, 1, 2, 64, 2**31 - 1]),
                TIMES, TIMES, st.sampled_from([None, "T", "K"]),
            ),
        ),
        st.tuples(st.just("load"), st.tuples(st.booleans())),
        st.tuples(st.just("flush"), st.tuples(st.integers(-1, 3))),
        st.tuples(st.just("delete_expired_file"), st.tuples(st.sampled_from([0, 100, 101, 400]))),
        st.tuples(st.just("destroy"), st.just(())),
        st.tuples(st.just("shutdown"), st.just(())),
        st.tuples(st.just("get_and_create_last_index_file"), st.just(())),
    ),
    max_size=14,
)  # fmt: skip


def plain(operation: str, value: Any) -> Any:
    """Return an answer that both sides can be compared by; a file's own are compared anyway."""
    if operation == "get_and_create_last_index_file":
        return None
    return tuple(value) if isinstance(value, tuple) else value


def heading(file: Any) -> tuple[int, int, int]:
    """Return what tells the files of a list apart."""
    return file.end_phy_offset, file.end_timestamp, file.index_count


@pytest.mark.checks(
    "RMQSVC-1", "RMQSVC-4", "RMQSVC-6", "RMQSVC-7", "RMQSVC-10", "RMQSVC-11", "RMQSVC-12",
    "RMQSVC-13", "RMQSVC-14", "RMQSVC-15", "RMQSVC-16", "RMQSVC-17", "RMQSVC-18", "RMQSVC-19",
    "RMQSVC-20", "RMQSVC-21", "RMQSVC-23", "RMQSVC-24",
)  # fmt: skip
@settings(max_examples=150)
@given(operations=OPERATIONS, names=st.lists(st.sampled_from(["9", "10", "x", "-1"]), max_size=2))
def test_histories_agree_with_the_model(operations: list[Any], names: list[str]) -> None:
    """Each answer, each error and all bytes of the store are those of the model."""
    files, clock = MemoryFiles(), Clock()
    for name in names:
        files.make_directory("/s/index")
        files.open(f"/s/index/{name}", writable=True, create=True).close()
    ours = opened(files, clock)
    images = files.images("/", with_folders=True)
    model = SEGPROOF.kind(ModelService)(Files(images, NOW_MS), "s", 3, 4)
    for operation, arguments in operations:
        given = (
            ModelRequest(*one) if isinstance(one, DispatchRequest) else one for one in arguments
        )
        theirs = apply(model, operation, *given)
        model = theirs.after
        try:
            answer: Any = plain(operation, getattr(ours, operation)(*arguments))
        except SegproofError as error:
            answer = error.kind
        expected = theirs.outcome
        if isinstance(expected, Raised):
            assert expected.kind.value == answer
        else:
            assert plain(operation, expected) == answer
        assert dict(model.files.images) == files.images("/", with_folders=True)
        assert model.total_size == ours.total_size
        assert list(map(heading, model.index_files)) == list(map(heading, ours.index_files))
    ours.close()


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
    """What the checkpoint calls indexed is found after a loss of power, whenever it comes.

    A file's name was not durable when the checkpoint counted its entries: recovery, which begins
    behind those, made none of them again.
    """
    files, clock = CrashingFiles(), Clock()
    files.make_directory("/s/index")
    service = opened(files, clock)
    files.make_durable()

    def build() -> None:
        for number in range(1, 13):
            clock.now_ms += 1000
            service.build_index(request(100 * number, "k", 1000 * number))

    known, begun = set(), False
    for image in crash_images(files, build):
        after = MemoryFiles()
        after.make_directory("/s/index")
        for path, data in image.items():
            after.open(path, writable=True, create=True).pwrite(data, 0)
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
    checkpoint = StoreCheckpoint.open("/s/checkpoint", files=files)
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
    with StoreCheckpoint.open("/s/checkpoint", files=files) as again:
        assert (43707, 52445, -5, 7) == (
            again.physic_msg_timestamp, again.logics_msg_timestamp, again.index_msg_timestamp,
            again.logics_physical_offset,
        )  # fmt: skip
        assert again.min_timestamp_index == -5
        with pytest.raises(InvalidArgumentError):
            again.set_confirm_phy_offset(2**63)


# --- consume queues


PUTS = st.lists(
    st.tuples(st.integers(0, 9).map(lambda n: n * 100), st.integers(0, 2).map(lambda n: n * 50),
              st.integers(-2, 2), st.integers(0, 12)),
    max_size=12,
)  # fmt: skip


@pytest.mark.checks("RMQCQ-1", "RMQCQ-2")
@given(puts=PUTS, cut=st.none() | st.integers(0, 39))
def test_queues_agree_with_the_model(
    puts: list[tuple[int, int, int, int]], cut: int | None
) -> None:
    """Units, ends and bytes are those of the model, before and after the queue is opened again."""
    files = MemoryFiles()
    ours = ConsumeQueue.open("/s", "T", 0, 40, files=files)
    kind = SEGPROOF.kind(ModelQueue)
    model = kind(Files(), FOLDER, 40)
    for put in puts:
        step = apply(model, "put_message_position_info", *put)
        model = step.after
        assert step.outcome == ours.put_message_position_info(*put)
        assert dict(model.files.images) == files.images("/", with_folders=True)
    if cut is not None and puts:
        name = sorted(files.images("/s/consumequeue/T/0"))[-1]
        file = files.open(f"/s/consumequeue/T/0/{name}", writable=True)
        file.pwrite(b"\xff" * 8, cut)
        file.close()
    ended = max_physic_offset("/s", files)
    images = files.images("/", with_folders=True)
    ours = ConsumeQueue.open("/s", "T", 0, 40, files=files)
    model = apply(kind(Files(images), FOLDER, 40), "truncate_dirty_files").after
    assert dict(model.files.images) == files.images("/", with_folders=True)
    assert [tuple(one) for one in model.units()] == [tuple(one) for one in ours.units()]
    for name in ("end", "max_physic_offset", "max_offset_in_queue", "min_offset_in_queue"):
        assert getattr(model, name) == getattr(ours, name)
    assert ours.max_physic_offset == ended


@pytest.mark.checks("RMQCQ-3")
@given(
    times=st.lists(st.integers(1, 6).map(lambda number: number * 1000), max_size=7),
    asked=st.integers(0, 7000).map(lambda time_ms: time_ms // 500 * 500),
    boundary=st.sampled_from(["lower", "upper"]),
    lost=st.sampled_from([0, 400]),
)
def test_lookups_by_time_agree_with_the_model(
    times: list[int], asked: int, boundary: Any, lost: int
) -> None:
    """Whether times rise or not, and where the log has lost its first file."""
    files = MemoryFiles()
    messages = [message_of(store_timestamp=time_ms) for time_ms in times]
    write_log(files, "/s", messages, 400)
    if lost:
        files.remove("/s/commitlog/" + "0" * 20)
    log = CommitLog.open("/s", 400, files=files)
    offsets = [(offset, result.size) for offset, result in log.scan() if result.success]
    ours = ConsumeQueue.open("/s", "T", 0, 60, files=files)
    for number, (offset, size) in enumerate([*([(0, 96)] if lost else []), *offsets]):
        ours.put_message_position_info(offset, size, 0, number)
    stored = Files(files.images("/", with_folders=True))
    model = SEGPROOF.kind(ModelQueue)(stored, FOLDER, 60)
    model_log = SEGPROOF.kind(ModelLog)(stored, "s", 400)
    ours = ConsumeQueue.open("/s", "T", 0, 60, files=files)
    expected = model.get_offset_in_queue_by_time(asked, model_log, boundary)
    assert expected == ours.get_offset_in_queue_by_time(asked, log, boundary)


def test_a_topic_is_no_path() -> None:
    """A name from a record can't lead out of the store."""
    for topic in ("", ".", "..", "a/b", "a\0"):
        with pytest.raises(InvalidArgumentError):
            ConsumeQueue.open("/s", topic, 0, files=MemoryFiles())
    with pytest.raises(InvalidArgumentError):
        ConsumeQueue.open("/s", "T", 0, 30, files=MemoryFiles())
