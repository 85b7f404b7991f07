# SPDX-License-Identifier: Apache-2.0
"""The store as far as its index goes: loading, recovering, finding messages, by release.

Each number was seen in the answers of the real classes 4.7.0, 4.9.8 or 5.5.1.
"""

import pytest

from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import opened
from segproof_model.laws.register import broken_state_laws
from segproof_model.laws.rocketmq.broker import message_store as laws
from segproof_model.releases import NEWEST_ROCKETMQ, RELEASES, SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.broker.message_store import (
    MessageStore,
    MessageStoreConfig,
    rebuild_index,
)
from segproof_model.rocketmq.broker.message_store_releases import (
    EmptyLogFileIsRefused,
    LoadedIndexIsNotAsked,
    OneTimeDecidesRecovery,
)
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.consume_queue import ConsumeQueue
from segproof_model.rocketmq.format.message import MAGIC_V1, Message, blank_tail

CLOCK_MS = 1795223767450
TIME_MS = 1700000000000
MAX_INT64 = 2**63 - 1
CONFIG = MessageStoreConfig(4, 200, 1000)


def offset_of(number: int) -> int:
    """Return where a message lies: four are in a file of 1000 bytes."""
    return number // 4 * 1000 + number % 4 * 200


def message(number: int) -> Message:
    """Return a message whose record has 200 bytes, one second after the one before."""
    properties = f"KEYS\x01k{number % 3} all\x02"
    head = (0, MAGIC_V1, 0, 0, 0, number, offset_of(number), 0, 0)
    tail = (TIME_MS + 1000 * number, bytes(8), 0, 0, bytes(96), "T", properties)
    return Message(*head, bytes(8), *tail)


def stored(count: int = 20, reached: int = 20, more: dict[str, bytes] | None = None) -> Files:
    """Return a log of so many messages, and a queue of the first of them."""
    files = Files(more or {}, CLOCK_MS)
    for start in range(0, count, 4):
        here = range(start, min(start + 4, count))
        data = b"".join(message(number).to_bytes() for number in here)
        tail = blank_tail(200) if len(here) == 4 else bytes(1000 - len(data))
        files.write(f"commitlog/{start // 4 * 1000:020d}", data + tail)
    queue = ConsumeQueue(files, "consumequeue/T/0", 100)
    for number in range(reached):
        queue.put_message_position_info(offset_of(number), 200, 0, number)
    return files


def store_of(release: Release, files: Files, config: MessageStoreConfig = CONFIG) -> MessageStore:
    """Return a store with files of four messages, which is not loaded."""
    return release.kind(MessageStore)(files, "", config)


def recovered(store: MessageStore) -> list[int]:
    """Load and recover, and return the offsets that are entered then, the newest first."""
    assert store.load()
    store.recover()
    return list(store.index_service.query_offset("T", "all", 64, 0, MAX_INT64).phy_offsets)


# --- recovering ----------------------------------------------------------------------------------

MISSING = [4600, 4400, 4200, 4000, 3600, 3400, 3200, 3000, 2600, 2400]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("segproof", MISSING),
        ("rocketmq-5.5.1", MISSING[:-1]),
        ("rocketmq-5.3.3", MISSING[:-1]),
        ("rocketmq-5.1.4", []),
        ("rocketmq-5.0.0", []),
        ("rocketmq-4.9.8", MISSING),
        ("rocketmq-4.7.0", MISSING),
    ],
)
def test_what_the_queues_lack_is_indexed_after_a_clean_exit(name: str, wanted: list[int]) -> None:
    """From 5.3.2 on the message that begins where the queues end is lost, but not in segproof.

    Releases from 5.0.0 to 5.1.4 read on at the end of the log.
    """
    store = store_of(RELEASES[name], stored(20, 10))
    assert (2400, True) == (store.max_physic_offset(), store.last_exit_ok)
    assert wanted == recovered(store)


class Trusting(MessageStore):
    """Takes every exit for a clean one."""

    last_exit_ok = True


@pytest.mark.checks("RMQCKPT-5")
def test_marker_that_is_not_seen() -> None:
    """The law of clean exits sees a marker that the store does not."""
    for kind, broken in ((MessageStore, []), (Trusting, ["RMQCKPT-5"])):
        assert broken == broken_state_laws(kind(Files({"abort": b"77"}), "", CONFIG))


@pytest.mark.checks("RMQCKPT-5")
def test_recovery_after_a_crash(any_rocketmq: Release) -> None:
    """From the newest file that begins 3 s before what is durable; 5.5.1 asks for no 3 s."""
    crashed = store_of(any_rocketmq, stored(more={"abort": b"77"}))
    assert not crashed.last_exit_ok
    assert laws.exit_was_clean_without_marker(crashed)
    assert 20 == len(recovered(crashed))
    for safe in (False, True):
        files = stored(more={"abort": b"77"})
        store = store_of(any_rocketmq, files, CONFIG._replace(message_index_safe=safe))
        store.store_checkpoint.set_physic_msg_timestamp(TIME_MS + 13_000)
        store.store_checkpoint.set_logics_msg_timestamp(TIME_MS + 13_000)
        asks_each = any_rocketmq in (SEGPROOF, NEWEST_ROCKETMQ)
        assert (20 if safe else 8 if asks_each else 12) == len(recovered(store))


def test_how_far_the_queues_are_counts_in_the_newest() -> None:
    """The sixth field of the checkpoint says where recovery begins, if it is above 0."""
    for name, count in (("segproof", 8), ("rocketmq-5.5.1", 8), ("rocketmq-5.3.3", 20)):
        files = stored(more={"abort": b""})
        checkpoint = MessageStore(files, "", CONFIG).store_checkpoint
        checkpoint.set_logics_physical_offset(3200)
        checkpoint.flush()
        assert count == len(recovered(store_of(RELEASES[name], files)))


def test_recovery_goes_back_ten_files(any_rocketmq: Release) -> None:
    """Since 5.4.0; older releases go back to the first file."""
    store = store_of(any_rocketmq, stored(60, more={"abort": b""}))
    assert (60 if any_rocketmq.has(OneTimeDecidesRecovery) else 40) == len(recovered(store))


# --- loading -------------------------------------------------------------------------------------


def test_a_store_is_loaded_with_whole_log_files_only(any_rocketmq: Release) -> None:
    """A file of another length refuses the store; an empty last one only in 4.7 to 5.0."""
    cut, empty = stored(), stored()
    cut.write("commitlog/00000000000000004000", bytes(999))
    empty.write("commitlog/00000000000000005000", b"")
    assert not store_of(any_rocketmq, cut).load()
    is_taken = not any_rocketmq.has(EmptyLogFileIsRefused)
    assert is_taken is store_of(any_rocketmq, empty).load()


def test_an_index_that_is_not_loaded_is_looked_at_since_5_1(any_rocketmq: Release) -> None:
    """A folder in the way: up to 5.0 a store starts all the same."""
    store = store_of(any_rocketmq, stored(more={"index/6/x": b""}))
    assert any_rocketmq.has(LoadedIndexIsNotAsked) is store.load()


# --- queries -------------------------------------------------------------------------------------


def test_messages_are_found_in_the_order_of_the_log() -> None:
    """The newest ones that the number allows, oldest first; none at an offset without a record."""
    store = store_of(NEWEST_ROCKETMQ, stored(more={"abort": b""}))
    assert 20 == len(recovered(store))
    messages, *reached = store.query_message("T", "k1", 3, 0, MAX_INT64)
    assert [3200, 4000, 4600] == [one.physical_offset for one in messages]
    assert [TIME_MS + 19_000, 4600] == reached
    assert ((), 0, 0) == store.query_message("T", "none", 3, 0, MAX_INT64)
    lost = message(0).dispatch_request()._replace(commit_log_offset=9999, keys="gone")
    store.do_dispatch(lost)
    assert ((), TIME_MS, 9999) == store.query_message("T", "gone", 3, 0, MAX_INT64)


def test_no_index_is_no_index() -> None:
    """A store without an index tells it nothing."""
    store = store_of(SEGPROOF, stored(), CONFIG._replace(message_index_enable=False))
    store.recover()
    assert () == store.index_service.index_files
    config = CONFIG._replace(mapped_file_size_commit_log=0)
    refused = opened(MessageStore, stored(), "", config)
    assert Raised(ErrorKind.INVALID_ARGUMENT) == refused.outcome


@pytest.mark.checks("RMQLOG-7")
def test_a_rebuilt_index_has_the_same_bytes(any_rocketmq: Release) -> None:
    """Whatever the names: told of the messages one by one, or made from the log."""
    fed = any_rocketmq.kind(IndexService)(Files(now_ms=CLOCK_MS), "", 4, 7)
    for number in range(20):
        fed.build_index(message(number).dispatch_request())
        fed.files.now_ms += 1
    log = any_rocketmq.kind(CommitLog)(stored(), "")
    rebuilt = rebuild_index(Files(now_ms=5), log, "", 4, 7)
    assert 7 == len(rebuilt.index_files)
    assert laws.rebuilt_index_is_the_same(fed, rebuilt)
    fed.delete_expired_file(900)
    assert not laws.rebuilt_index_is_the_same(fed, rebuilt)
    assert not laws.rebuilt_index_is_the_same(fed, Raised(ErrorKind.IO_ERROR))
