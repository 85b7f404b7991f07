# SPDX-License-Identifier: Apache-2.0
"""Rebuilding a RocketMQ index: the bytes of a service fed one by one, and nothing half done.

What a store of any release has for one key must be found again; what can't be rebuilt is a finding
or a refusal, and then nothing has changed.
"""

import contextlib
import datetime
import errno
import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segproof.errors import InvalidArgumentError, SegproofError, TooLargeError
from segproof.files import REAL_FILES
from segproof.kernels import rocketmq_index, rocketmq_records
from segproof.kernels.dispatch import Kernel
from segproof.reading.unfinished import MARKER
from segproof.rebuilding import store_rebuild as module
from segproof.rebuilding.store_rebuild import RebuiltIndex
from segproof.repair import rebuild_index
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import MAGIC_V2, Message, dispatch_request_of, encode_message
from segproof.stretches.rocketmq import message_blocks
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.memory_stores import (
    FIRST_TIMESTAMP_MS,
    log_images,
    message_of,
    write_log,
)
from segproof_harness.machine.simulated_files import POWER_LOSS, SimulatedFiles, crashes_in
from segproof_tests.failing_files import EndingFiles, each_end

SIZE = 1000
SLOTS, ENTRIES = 4, 7
KEYS = st.sampled_from(["a", "a b", " a  b c ", "\u4e2d \U0001f600", ""])
KERNELS: tuple[Kernel[..., Any], ...] = (
    rocketmq_records.walk_messages,
    rocketmq_records.hash_keys,
    rocketmq_index.put_entries,
)


@st.composite
def messages(draw: st.DrawFn, time: int) -> Message:
    """Draw a message with some of the properties that an index is made of."""
    properties = {}
    for name, values in (
        ("KEYS", KEYS),
        ("UNIQ_KEY", st.sampled_from(["u", "v\ufffd", ""])),
        ("TAGS", st.sampled_from(["t", "t s"])),
    ):
        if draw(st.booleans()):
            properties[name] = draw(values)
    return message_of(
        draw(st.sampled_from(["T", "U", "", "\u00e9"])),
        properties,
        body=draw(st.sampled_from([b"", b"body", bytes(300)])),
        store_timestamp=draw(st.integers(0, 9)) * 700 + time,
        sys_flag=draw(st.sampled_from([0, 0, 4, 8, 12])),
    )


def stored(log: list[Message]) -> MemoryFiles:
    """Return files in memory with a store that has these messages in its commit log."""
    files = MemoryFiles()
    write_log(files, "/s", log, SIZE)
    return files


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.needs("numba"))])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run with the kernels as they are written, and again with what numba makes of them."""
    if request.param == "compiled":
        for kernel in KERNELS:
            kernel.compile()
        yield
        return
    with contextlib.ExitStack() as stack:
        for kernel in KERNELS:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(kernel, "call", kernel.interpreted)
            patch.setattr(kernel, "is_compiled", False)
        yield


def fed(files: MemoryFiles, store: str, out: str, index_tags: bool = True) -> list[bytes]:
    """Return the files of an empty service that is told of each message of a log."""
    times = iter(range(FIRST_TIMESTAMP_MS, FIRST_TIMESTAMP_MS + 10**6))
    with IndexService.open(
        out,
        SLOTS,
        ENTRIES,
        index_tags=index_tags,
        create=True,
        files=files,
        time=lambda: next(times),
    ) as service:
        for _, result in CommitLog.open(store, SIZE, files=files).scan():
            if result.message is not None:
                service.build_index(dispatch_request_of(result.message))
    return images_of(files, f"{out}/index")


def images_of(files: MemoryFiles, directory: str) -> list[bytes]:
    """Return the bytes of the files of a directory, by name."""
    if files.status(directory) is None:
        return []
    return [data for _, data in sorted(files.images(directory).items())]


def rebuilt(files: MemoryFiles, **options: Any) -> RebuiltIndex:
    """Rebuild the store /s into /new, or in place."""
    out = None if options.get("in_place") else "/new"
    return rebuild_index(
        "/s", out, SLOTS, ENTRIES, mapped_file_size=SIZE, zone=datetime.UTC, files=files, **options
    )


# --- the right bytes


@pytest.mark.usefixtures("mode")
@pytest.mark.checks("RMQLOG-5", "RMQLOG-7", "RMQSVC-6", "RMQSVC-11", "RMQSVC-14", "RMQSVC-16")
@settings(max_examples=60)
@given(
    log=st.sampled_from([0, 10**12]).flatmap(lambda at: st.lists(messages(at), max_size=25)),
    index_tags=st.booleans(),
    chunk=st.sampled_from([300, 1000, 1 << 20]),
    rows=st.sampled_from([1, 3, 64]),
)
def test_the_bytes_of_a_service(
    log: list[Message], index_tags: bool, chunk: int, rows: int
) -> None:
    """Whatever lies in the log, and in whatever pieces it is read."""
    files = stored(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_blocks, "CHUNK_BYTES", chunk)
        patch.setattr(message_blocks, "ROWS", rows)
        done = rebuilt(files, index_tags=index_tags)
    assert (len(log), ()) == (done.messages, done.findings)
    assert fed(files, "/s", "/fed", index_tags) == images_of(files, "/new")
    assert len(done.files) == len(images_of(files, "/new"))


@pytest.mark.usefixtures("mode")
def test_bytes_that_are_not_utf_8() -> None:
    """They are hashed as a JVM decodes them, one key or all of a message."""
    files = MemoryFiles()
    names = [b"\xff", b"\xed\xa0\xbd", b"a\xc3", b"\xf0\x9f\x98\x80"]
    log = [message_of("T", {"KEYS": "#### b", "TAGS": "####"}) for _ in names]
    write_log(files, "/s", [*log, message_of("T", {"KEYS": "c"})], SIZE)
    path = "/s/commitlog/" + "0" * 20
    image = files.images("/s/commitlog")["0" * 20]
    for name in names:
        image = image.replace(b"####", name.ljust(4, b"."), 2)
    file = files.open(path, writable=True)
    file.pwrite(image, 0)
    file.close()
    assert rebuilt(files).messages == 5
    assert fed(files, "/s", "/fed") == images_of(files, "/new")


@pytest.mark.parametrize("places", [(0, 0, 0, 0), (300, 200, 100, 0), (-5, -5, 0, 7), (9, 9, 1, 9)])
def test_records_that_say_another_place(places: tuple[int, ...]) -> None:
    """The offset that counts is the one in the record, by the rules of the service."""
    files = MemoryFiles()
    data = b"".join(
        encode_message(replace(message_of("T", {"KEYS": f"k{number} l"}), physical_offset=place))
        for number, place in enumerate(places)
    )
    write_file(files, "/s/commitlog/" + "0" * 20, data.ljust(SIZE, b"\0"))
    assert ["RMQDISK-25"] == [one.law for one in rebuilt(files).findings]
    assert rebuilt(files, cut_tail=True).messages == len(places)
    assert fed(files, "/s", "/fed") == images_of(files, "/new")


def test_a_record_longer_than_what_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read alone; what comes before and behind it is as usual."""
    monkeypatch.setattr(message_blocks, "CHUNK_BYTES", 256)
    log = [message_of("T", {"KEYS": "k"}, body=bytes(size)) for size in (9, 700, 9, 800, 9)]
    files = stored(log)
    assert rebuilt(files).messages == 5
    assert fed(files, "/s", "/fed") == images_of(files, "/new")


def test_one_record_with_very_many_keys() -> None:
    """Each key is a hash of the topic and itself: the topic is not copied for each of them."""
    files = MemoryFiles()
    message = message_of("t" * 30000, {"KEYS": "k " * 10000}, magic=MAGIC_V2)
    write_log(files, "/s", [message], 60000)
    done = rebuild_index("/s", "/new", 64, 20000, files=files)
    assert [10000] == [one.entries for one in done.files]


# --- names


def test_names_of_the_old_files_where_they_are_as_many() -> None:
    """Else that of the store time of the first message, later where one is taken."""
    log = [message_of("T", {"KEYS": "a b c d e f"}, store_timestamp=NOW) for _ in range(3)]
    files = stored(log)
    first = [os.path.basename(one.path) for one in rebuilt(files).files]
    assert first == ["20231114221320000", "20231114221320001", "20231114221320002"]
    old = ["20200101000000000", "20200101000000001", "20210101000000000"]
    for name in [*old, "not-a-file"]:
        write_file(files, f"/s/index/{name}", b"")
    done = rebuilt(files, in_place=True)
    assert old == [os.path.basename(one.path) for one in done.files]
    assert [*old, "not-a-file"] == files.list_directory("/s/index")
    assert [(None, True)] * 3 == [(one.old_entries, one.changed) for one in done.files]
    again = rebuilt(files, in_place=True)
    assert [(6, False)] * 3 == [(one.old_entries, one.changed) for one in again.files]


NOW = FIRST_TIMESTAMP_MS


def test_old_files_of_other_names_are_removed_in_place() -> None:
    """They hold the same messages once more, under another name."""
    files = stored([message_of("T", {"KEYS": "a"})])
    for name in ("20200101000000000", "20200101000000001"):
        write_file(files, f"/s/index/{name}", b"")
    before = files.images("/", with_folders=True)
    dry = rebuilt(files, in_place=True, dry_run=True)
    assert nothing_changed(files, before)
    done = rebuilt(files, in_place=True)
    assert dry == done
    assert done.removed == ("20200101000000000", "20200101000000001")
    assert ["20231114221320000"] == files.list_directory("/s/index")


@pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])
def test_the_index_of_a_sound_store_stays(in_place: bool) -> None:
    """Retention has removed the first messages: an index of the rest of the log is another one."""
    log = [message_of("T", {"KEYS": f"k{number}"}, store_timestamp=NOW) for number in range(30)]
    files = stored(log)
    rebuilt(files, in_place=True)
    oldest = files.list_directory("/s/commitlog")[0]
    files.remove(f"/s/commitlog/{oldest}")
    before = files.images("/s/index")
    dry = rebuilt(files, in_place=in_place, all_files=False, dry_run=True)
    done = rebuilt(files, in_place=in_place, all_files=False)
    assert dry == done
    assert [(True, False)] * len(before) == [(one.is_kept, one.changed) for one in done.files]
    assert before == files.images("/s/index" if in_place else "/new")
    assert before == files.images("/s/index")
    assert any(one.changed for one in rebuilt(files, in_place=True).files)
    last = files.list_directory("/s/index")[-1]
    with contextlib.closing(files.open(f"/s/index/{last}", writable=True)) as file:
        file.truncate(50)
    assert not any(one.is_kept for one in rebuilt(files, in_place=True, all_files=False).files)


@pytest.mark.checks("RMQSVC-14")
@pytest.mark.parametrize("has_tags", [False, True])
def test_tags_as_the_old_index_has_them(has_tags: bool) -> None:
    """Its newest file that has the entries of a message with tags decides."""
    log = [message_of("T", {"KEYS": f"k{number}", "TAGS": "t"}) for number in range(20)]
    files = stored(log)
    first = rebuilt(files, index_tags=has_tags, in_place=True)
    assert (has_tags, "given") == (first.index_tags, first.tags_from)
    second = rebuilt(files)
    assert (has_tags, "old index") == (second.index_tags, second.tags_from)
    assert not any(one.changed for one in second.files)


def test_tags_without_an_old_index_that_tells() -> None:
    """Files that are no index of these numbers tell nothing: then tags are indexed."""
    files = stored([message_of("T", {"TAGS": "t"})])
    for number, size in enumerate((0, 39, 40 + 4 * SLOTS + 20 * ENTRIES)):
        image = (b"\xff" * min(size, 40)).ljust(size, b"\0")
        write_file(files, f"/s/index/2020010100000000{number}", image)
    done = rebuilt(files)
    assert (True, "default", 1) == (done.index_tags, done.tags_from, done.files[0].entries)


# --- what can't be rebuilt


def nothing_changed(files: MemoryFiles, before: dict[str, bytes]) -> bool:
    """Return whether all files are what they were."""
    return files.images("/", with_folders=True) == before


def test_a_broken_record_is_a_finding() -> None:
    """With `cut_tail` what is before it is taken, and the rest is told."""
    log = [message_of("T", {"KEYS": f"k{number}"}) for number in range(5)]
    files = stored(log)
    file = files.open("/s/commitlog/" + "0" * 20, writable=True)
    file.pwrite(b"\xff", 2 * 104 + 88)
    file.close()
    before = files.images("/", with_folders=True)
    for options in ({}, {"in_place": True}):
        done = rebuilt(files, **options)
        assert ((), 2 * 104) == (done.files, done.findings[0].position)
        assert nothing_changed(files, before)
    cut = rebuilt(files, cut_tail=True)
    assert ([2], SIZE - 2 * 104) == ([one.entries for one in cut.files], cut.left_bytes)


def test_a_file_that_a_broker_made_before_it_needs_it() -> None:
    """It is all zeros and ends nothing; what stands in it counts as left out."""
    files = stored([message_of("T", {"KEYS": "k"})])
    next_file = files.open("/s/commitlog/" + "0" * 16 + "1000", writable=True, create=True)
    next_file.truncate(SIZE)
    done = rebuilt(files)
    assert (1, (), 0) == (done.messages, done.findings, done.left_bytes)
    next_file.pwrite(b"x", 5)
    assert len(rebuilt(files, in_place=True).findings) == 1
    cut = rebuilt(files, in_place=True, cut_tail=True)
    assert (1, 2 * SIZE - 103) == (cut.messages, cut.left_bytes)
    next_file.close()


def test_a_hole_in_the_log_is_a_finding() -> None:
    """An index of what is left would say that the rest was never there."""
    files = stored([message_of("T", {"KEYS": "k"}) for _ in range(30)])
    files.remove("/s/commitlog/" + "0" * 16 + "1000")
    assert ["RMQDISK-23"] == [one.law for one in rebuilt(files).findings]
    assert files.status("/new") is None


def test_a_blank_end_is_no_finding_and_a_log_that_begins_late_none_either() -> None:
    """A broker removes the oldest files, and their messages leave the index."""
    files = MemoryFiles()
    images = log_images([message_of("T", {"KEYS": "k"}) for _ in range(20)], SIZE, start=9000)
    for name, data in list(images.items())[:-1]:
        write_file(files, f"/s/commitlog/{name}", data)
    done = rebuilt(files)
    assert ((), 0) == (done.findings, done.left_bytes)
    assert done.messages == 9 * (len(images) - 1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"out": None}, InvalidArgumentError),
        ({"out": "/new", "in_place": True}, InvalidArgumentError),
        ({"out": "/s/index"}, InvalidArgumentError),
        ({"out": "/"}, InvalidArgumentError),
        ({"out": "/new", "hash_slot_num": 0}, InvalidArgumentError),
        ({"out": "/new", "index_num": 1}, InvalidArgumentError),
        ({"out": "/new", "index_num": 2**31}, InvalidArgumentError),
        ({"out": "/new", "mapped_file_size": 0}, InvalidArgumentError),
        ({"out": "/full"}, FileExistsError),
        ({"out": "/full/x"}, NotADirectoryError),
        ({"store_path": "/empty", "out": "/new"}, InvalidArgumentError),
    ],
)
def test_refusals_change_nothing(options: dict[str, object], error: type[Exception]) -> None:
    """Arguments that don't fit, and places that are taken."""
    files = stored([message_of("T", {"KEYS": "k"})])
    files.make_directory("/empty")
    write_file(files, "/full/x", b"")
    before = files.images("/", with_folders=True)
    given = {"store_path": "/s", "files": files, "hash_slot_num": 9, "index_num": 9, **options}
    with pytest.raises(error):
        rebuild_index(**given)  # type: ignore[arg-type]
    assert nothing_changed(files, before)
    assert files.status("/new") is None


def test_a_log_that_changes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker is at work; nothing is put in place, and what was built is gone."""
    files = stored([message_of("T", {"KEYS": "k"})])
    feed = module._feed

    def feeding(service: IndexService, block: message_blocks.MessageBlock) -> None:
        feed(service, block)
        file = files.open("/s/commitlog/" + "0" * 20, writable=True)
        file.pwrite(b"x", 999)
        file.close()

    monkeypatch.setattr(module, "_feed", feeding)
    for options in ({}, {"in_place": True}):
        with pytest.raises(SegproofError, match="changed while it was read"):
            rebuilt(files, **options)
        assert {"commitlog/" + "0" * 20} == set(files.images("/s", with_folders=True))
        assert files.status("/new") is None


def test_what_a_killed_run_has_left_is_replaced() -> None:
    """The next run completes it, in a new directory and in place."""
    files = stored([message_of("T", {"KEYS": "k"})])
    for top in ("/new", "/s"):
        files.make_directory(f"{top}/{MARKER}/index")
        for name in ("index/20000101000000001", "checkpoint"):
            write_file(files, f"{top}/{MARKER}/{name}", b"")
    write_file(files, "/new/20000101000000001", b"")
    assert len(rebuilt(files).files) == 1
    assert ["20231114221320000"] == files.list_directory("/new")
    assert len(rebuilt(files, in_place=True).files) == 1
    assert ["commitlog", "index"] == files.list_directory("/s")


def test_a_directory_with_the_mark_of_a_rebuild_and_other_files() -> None:
    """What is not an index file is somebody's, and nothing is removed."""
    files = stored([message_of("T", {"KEYS": "k"})])
    files.make_directory(f"/new/{MARKER}")
    write_file(files, "/new/letter", b"")
    with pytest.raises(FileExistsError):
        rebuilt(files)
    assert {"letter"} == set(files.images("/new"))


# --- ends


OLD_NAMES = ("20200101000000000", "20200101000000001", "20210101000000000")


Kind = TypeVar("Kind", EndingFiles, SimulatedFiles)


def ending_store(files: Kind, old_names: tuple[str, ...]) -> Kind:
    """Return a store with a log for three index files, and old ones that hold something else."""
    write_log(files, "/s", [message_of("T", {"KEYS": "a b c d e f"}) for _ in range(3)], SIZE)
    files.make_directory("/s/index")
    for name in old_names:
        write_file(files, f"/s/index/{name}", bytes(range(1, 100)))
    return files


@pytest.mark.parametrize("old_names", [OLD_NAMES, OLD_NAMES[:2]], ids=["as many", "fewer"])
@pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])
def test_an_end_at_any_change(in_place: bool, old_names: tuple[str, ...]) -> None:
    """Each name has its old file or its new one, whole, and a second run completes the work."""
    place = "/s/index" if in_place else "/new"
    complete = ending_store(EndingFiles(), old_names)
    old = complete.images("/s/index")
    rebuilt(complete, in_place=in_place)
    new = complete.images(place)
    ends = 0
    for files in each_end(
        lambda: ending_store(EndingFiles(), old_names), partial(rebuilt, in_place=in_place)
    ):
        ends += 1
        for name, data in files.images("/s/index").items():
            assert data in (old.get(name), new.get(name))
        if not in_place:
            assert old == files.images("/s/index")
            left = files.images("/new") if files.status("/new") is not None else {}
            assert all(data == new[name] for name, data in left.items())
            if left and left.keys() != new.keys():
                assert files.status(f"/new/{MARKER}") is not None
            if left == new:
                continue
        dry = rebuilt(files, in_place=True, dry_run=True) if in_place else None
        assert rebuilt(files, in_place=in_place) == dry or not in_place
        assert images_of(complete, place) == images_of(files, place)
        assert files.status(f"/s/{MARKER}") is None
    assert ends > 15


@pytest.mark.parametrize("old_names", [OLD_NAMES, OLD_NAMES[:2]], ids=["as many", "fewer"])
@pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])
def test_a_full_device(in_place: bool, old_names: tuple[str, ...]) -> None:
    """Wherever the room ends: one error that says so, each old file or its new one, no leftover."""
    place = "/s/index" if in_place else "/new"
    complete = ending_store(EndingFiles(), old_names)
    old = complete.images("/s/index")
    rebuilt(complete, in_place=in_place)
    new = complete.images(place)
    ends: list[tuple[int | None, bool]] = []
    for changes in range(1000):
        files = ending_store(EndingFiles(), old_names)
        files.left, files.is_full = changes, True
        try:
            rebuilt(files, in_place=in_place)
        except OSError as error:
            ends.append((error.errno, bool(error.filename)))
        else:
            break
        assert files.status(f"/s/{MARKER}") is None
        assert in_place or files.status("/new") is None
        for name, data in files.images("/s/index").items():
            assert data in (old.get(name), new.get(name))
        assert in_place or old == files.images("/s/index")
    assert len(ends) > 12
    assert {(errno.ENOSPC, True)} == set(ends)


@pytest.mark.parametrize("count_puts", [False, True], ids=["", "puts"])
@pytest.mark.parametrize("old_names", [OLD_NAMES, OLD_NAMES[:2], ()], ids=["many", "fewer", "none"])
@pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])
def test_a_loss_of_power_at_any_change(
    in_place: bool, old_names: tuple[str, ...], count_puts: bool
) -> None:
    """No name stands for a file whose bytes were not durable before it had that name.

    In place the old files go when the new ones are durable.
    """
    files = ending_store(SimulatedFiles(), old_names)
    if not old_names:
        files.remove_directory("/s/index")
    files.settle()
    old = files.images("/s/index")
    again = partial(rebuilt, files, in_place=in_place, count_puts=count_puts)
    images = crashes_in(files, again, POWER_LOSS)
    top = "/s/index" if in_place else "/new"
    new = files.images(top)
    assert len(images) > 5
    for image in images:
        found = {p.removeprefix(f"{top}/"): data for p, data in image.items() if _lies_in(top, p)}
        assert all(data in (old.get(name), new.get(name)) for name, data in found.items())
        assert not in_place or set(old) <= set(found) or set(new) <= set(found)
    durable = files.durable()
    assert new == {p.removeprefix(f"{top}/"): d for p, d in durable.items() if _lies_in(top, p)}


def _lies_in(folder: str, path: str) -> bool:
    """Return whether a file lies in a folder itself."""
    return os.path.dirname(path) == folder


# --- on a disk


def _hold(path: str, begun: "multiprocessing.Queue[int]") -> None:
    lock = REAL_FILES.lock_file(path)
    begun.put(0 if lock is None else 1)
    multiprocessing.Event().wait(60)


def test_a_broker_that_runs_keeps_its_index(tmp_path: Path) -> None:
    """It has the file `lock` locked; a new directory may be made all the same."""
    write_log(REAL_FILES, os.fspath(tmp_path / "s"), [message_of("T", {"KEYS": "k"})], SIZE)
    (tmp_path / "s" / "lock").write_bytes(b"lock")
    context = multiprocessing.get_context("spawn")
    begun = context.Queue()
    broker = context.Process(target=_hold, args=(os.fspath(tmp_path / "s" / "lock"), begun))
    broker.start()
    try:
        assert begun.get(timeout=60) == 1
        with pytest.raises(SegproofError, match="a broker runs here"):
            rebuild_index(tmp_path / "s", None, SLOTS, ENTRIES, in_place=True)
        assert ["commitlog", "lock"] == sorted(os.listdir(tmp_path / "s"))
        assert len(rebuild_index(tmp_path / "s", tmp_path / "new", SLOTS, ENTRIES).files) == 1
    finally:
        broker.kill()
        broker.join()
    assert len(rebuild_index(tmp_path / "s", None, SLOTS, ENTRIES, in_place=True).files) == 1


def test_a_new_file_has_the_rights_of_the_old_one(tmp_path: Path) -> None:
    """Else a broker could not write to it."""
    write_log(REAL_FILES, os.fspath(tmp_path), [message_of("T", {"KEYS": "k"})], SIZE)
    (tmp_path / "index").mkdir()
    old = tmp_path / "index" / "20200101000000000"
    old.write_bytes(b"")
    old.chmod(0o640)
    rebuild_index(tmp_path, None, SLOTS, ENTRIES, in_place=True)
    assert (0o640, 40 + 4 * SLOTS + 20 * ENTRIES) == (
        old.stat().st_mode & 0o777,
        old.stat().st_size,
    )


def test_a_record_too_large_for_memory(tmp_path: Path) -> None:
    """It is refused by name, and nothing is left behind."""
    path = tmp_path / "commitlog" / ("0" * 20)
    path.parent.mkdir()
    path.write_bytes((900 << 20).to_bytes(4, "big") + encode_message(message_of())[4:])
    os.truncate(path, 1 << 30)
    with pytest.raises(TooLargeError):
        rebuild_index(tmp_path, None, SLOTS, ENTRIES, in_place=True)
    assert ["commitlog"] == os.listdir(tmp_path)


def test_progress() -> None:
    """It never goes back, and is told of both numbers."""
    files = stored([message_of("T", {"KEYS": "k"}) for _ in range(30)])
    told: list[tuple[int, int]] = []
    rebuilt(files, on_progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert {4 * SIZE} == {total for _, total in told}
