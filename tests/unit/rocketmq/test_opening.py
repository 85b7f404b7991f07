# SPDX-License-Identifier: Apache-2.0
"""What opening does to the files of a store: nothing, unless writing or creating is asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import IndexClosedError, ReadOnlyError, SegproofError
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.key_hash import build_key
from segproof.rocketmq.message import DispatchRequest
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_tests.reported_findings import contents

BEGIN = 1_700_000_000_000
GEOMETRY = 4, 6
OPTIONS = MessageStoreConfig(*GEOMETRY, mapped_file_size_commit_log=1000)


def request(offset: int) -> DispatchRequest:
    """Return what the index is told of a message."""
    return DispatchRequest("T", offset, 100, 0, BEGIN + offset, 0, "k", None, 0, 0, None)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two index files, the second newer than the checkpoint, and a queue."""
    with IndexService.open(tmp_path, *GEOMETRY, create=True) as service:
        for offset in range(0, 1400, 200):
            service.build_index(request(offset))
    with ConsumeQueue.open(tmp_path, "T", 0, 40, create=True) as queue:
        for number in range(3):
            queue.put_message_position_info(100 * number, 100, 0, number)
    (tmp_path / "consumequeue" / "T" / "0" / f"{120:020d}").write_bytes(bytes(40))
    (tmp_path / "index" / "20301114221320000").write_bytes(b"")
    return tmp_path


def refuse(changes: dict[str, Callable[[], object]]) -> None:
    """Check that each change is refused, and says how to ask for it."""
    for name, change in changes.items():
        with pytest.raises(ReadOnlyError, match=r"/.*: .*opened for reading.*writable=True"):
            pytest.fail(f"{name} gave {change()!r}")


def test_a_store_that_is_read_is_as_it_was(store: Path) -> None:
    """Listing after a crash removed index files, and flushing wrote the checkpoint."""
    before = contents(store)
    for is_clean, entries, counted in ((True, [5, 2], "2 files"), (False, [5], "1 file")):
        with IndexService.open(store, *GEOMETRY) as service:
            assert service.load(is_clean)
            assert entries == [len(file) for file in service.index_files]
            found = service.query_offset("T", "k", 10, BEGIN, BEGIN + 9999).phy_offsets
            assert sum(entries) == len(found)
            assert f"IndexService({str(store)!r}, {counted}, read-only)" == repr(service)
            refuse(
                {
                    "build": lambda: service.build_index(request(5000)),
                    "flush": lambda: service.flush(0),
                    "destroy": service.destroy,
                    "expire": lambda: service.delete_expired_file(10**9),
                    "checkpoint": service.store_checkpoint.flush,
                    "make": service.get_and_create_last_index_file,
                }
            )
        assert repr(service).endswith("closed)")
    with MessageStore.open(store, OPTIONS) as whole:
        assert whole.load()
        assert 2 == len(whole.index_service.index_files)
        assert "read-only" in repr(whole)
        refuse({"recover": whole.recover, "dispatch": lambda: whole.do_dispatch(request(9000))})
    assert before == contents(store)


def test_an_index_file_that_is_read_is_as_it_was(store: Path) -> None:
    """Its header was written again, and a wrong path made a file of the full length."""
    before = contents(store)
    path = min((store / "index").iterdir())
    with IndexFile.open(path, *GEOMETRY, 77, 88) as file:
        assert (5, 800) == (len(file), file.end_phy_offset)
        assert [800, 600, 400, 200, 0] == file.select_phy_offset([], "T#k", 9, BEGIN, BEGIN + 9999)
        refuse(
            {
                "put": lambda: file.put_key("a", 1, BEGIN),
                "puts": lambda: file.put_keys(["a"], [1], [BEGIN]),
                "destroy": lambda: file.destroy(0),
            }
        )
        file.flush()
    assert before == contents(store)


@pytest.mark.parametrize("is_writable", [False, True])
def test_nothing_is_made_at_a_wrong_path(tmp_path: Path, is_writable: bool) -> None:
    """A path with a typing error made a checkpoint, an index folder and a file of 420 MB."""
    wrong = tmp_path / "wrong"
    asked: Any = {"writable": is_writable}
    openings: dict[str, Callable[[], Any]] = {
        "file": lambda: IndexFile.open(wrong / "20231114221320000", **asked, **GIVEN),
        "service": lambda: IndexService.open(wrong, **asked),
        "store": lambda: MessageStore.open(wrong, OPTIONS, **asked),
        "checkpoint": lambda: StoreCheckpoint.open(wrong / "checkpoint", **asked),
    }
    for name, opening in openings.items():
        with pytest.raises(FileNotFoundError):
            pytest.fail(f"{name} gave {opening()!r}")
    queue = ConsumeQueue.open(wrong, "T", 0, **asked)
    assert [] == list(queue)
    with pytest.raises((ReadOnlyError, FileNotFoundError), match=r"(writable|create)=True"):
        queue.put_message_position_info(0, 100, 0, 0)
    assert [] == list(tmp_path.iterdir())


GIVEN: Any = {"hash_slot_num": 4, "index_num": 6}


def test_a_queue_that_is_read_keeps_its_files(store: Path) -> None:
    """Opening removed the files behind the last valid unit."""
    before = contents(store)
    with ConsumeQueue.open(store, "T", 0, 40) as queue:
        assert (
            [0, 100, 200]
            == [unit.commit_log_offset for unit in queue]
            == [unit.commit_log_offset for unit in queue.units()]
        )
        assert repr(queue).endswith("/T/0', units 0 to 3, read-only)")
        refuse({"put": lambda: queue.put_message_position_info(300, 100, 0, 3)})
    with pytest.raises(IndexClosedError):
        list(queue)
    assert repr(queue).endswith("/T/0', closed)")
    assert before == contents(store)
    with ConsumeQueue.open(store, "T", 0, 40, writable=True) as queue:
        queue.put_message_position_info(300, 100, 0, 3)
        assert 4 == queue.max_offset_in_queue
    assert before.keys() - contents(store).keys() == {f"consumequeue/T/0/{120:020d}"}


@pytest.mark.parametrize("key", [b"k", 5, ["k"]])
def test_a_key_that_is_no_text_is_refused(store: Path, key: Any) -> None:
    """Bytes gave an AttributeError, or were taken for the text that shows them."""
    path = min((store / "index").iterdir())
    with IndexFile.open(path, *GEOMETRY, writable=True) as file:
        calls: list[Callable[[], object]] = [
            lambda: file.select_phy_offset([], key, 9, 0, BEGIN),
            lambda: build_key(key, "k"),
            lambda: build_key("T", key),
        ]
        with IndexFile.open(store / "index" / "20401114221320000", **GIVEN, create=True) as new:
            calls.append(lambda: new.put_key(key, 1, BEGIN))
            for call in calls:
                with pytest.raises(SegproofError, match="not str") as caught:
                    call()
                assert isinstance(caught.value, TypeError)
