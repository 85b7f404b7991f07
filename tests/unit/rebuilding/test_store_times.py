# SPDX-License-Identifier: Apache-2.0
"""Store times of a RocketMQ log, which no checksum covers: a wrong one makes no index wrong."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segproof.findings import Finding
from segproof.rebuilding.store_rebuild import RebuiltIndex
from segproof.repair import rebuild_index, salvage_store
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import dispatch_request_of
from segproof.verification import verify
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, message_of, write_log

SIZE = 1000
SLOTS, ENTRIES = 4, 7
NINE = 9 * 3600
"""Seconds."""


def stored_at(seconds: Sequence[float], born_before_ms: int = 0) -> MemoryFiles:
    """Return a store without an index, whose messages were stored at these seconds."""
    files = MemoryFiles()
    log = []
    for number, second in enumerate(seconds):
        time = FIRST_TIMESTAMP_MS + int(1000 * second)
        message = message_of("T", {"KEYS": f"k{number} l"}, store_timestamp=time)
        log.append(replace(message, born_timestamp=time - born_before_ms))
    write_log(files, "/s", log, SIZE)
    return files


def flip_time(files: MemoryFiles, number: int, bit: int) -> int:
    """Flip a bit of the store time of a message; return the offset of the message."""
    scan = CommitLog.open("/s", SIZE, files=files).scan()
    offset = [at for at, result in scan if result.message is not None][number]
    start = offset - offset % SIZE
    with closing(files.open(f"/s/commitlog/{start:020d}", writable=True)) as file:
        data = int.from_bytes(file.pread(8, offset - start + 56), "big") ^ (1 << bit)
        file.pwrite(data.to_bytes(8, "big"), offset - start + 56)
    return offset


def rebuilt(files: MemoryFiles, out: str | None) -> RebuiltIndex:
    """Rebuild the index into a directory; None: in place."""
    return rebuild_index("/s", out, SLOTS, ENTRIES, in_place=out is None, files=files)


def of_times(files: MemoryFiles) -> list[Finding]:
    """Return what is wrong with times."""
    return list(verify("/s", laws={"RMQDISK-32", "RMQDISK-40"}, files=files))


def images_of(files: MemoryFiles, directory: str) -> list[bytes]:
    """Return the bytes of the files of a directory, by name."""
    return [data for _, data in sorted(files.images(directory).items())]


@pytest.mark.checks("RMQDISK-32", "RMQDISK-40")
@settings(max_examples=60)
@given(number=st.integers(0, 11), bit=st.integers(11, 63), has_index=st.booleans())
def test_a_flipped_store_time(number: int, bit: int, has_index: bool) -> None:
    """The message is blamed, and not its right index, which stays; salvage puts the time right."""
    if not has_index:  # only what is an hour outside the times around it is found
        number, bit = min(max(number, 1), 10), max(bit, 23)
    files = stored_at([0.7 * place for place in range(12)])
    rebuilt(files, "/right")
    right = images_of(files, "/right")
    if has_index:
        rebuilt(files, None)
    offset = flip_time(files, number, bit)
    found = of_times(files)
    # An index file has 0 s for whatever lies before its begin, as if a clock went back.
    assert {"RMQDISK-40"} == {one.law for one in found} or (bit < 22 and not found)
    words = f"the message at offset {offset} has an impossible store time"
    assert all(words in one.message for one in found)
    done = rebuilt(files, "/new")
    assert (len(found), right) == (done.doubted_times, images_of(files, "/new"))
    told = salvage_store("/s", "/saved", hash_slot_num=SLOTS, index_num=ENTRIES, files=files)
    assert (len(found), right) == (told.restored_times, images_of(files, "/saved/index"))
    assert [] == [one.law for one in verify("/saved", files=files) if one.is_defect]


@pytest.mark.checks("RMQDISK-40")
@pytest.mark.parametrize(
    ("seconds", "without_index"),
    [
        ([0, 1, NINE, 2, 3, 4, 5], ["RMQDISK-40"]),
        ([0, 1, 2, NINE, NINE + 1, NINE + 2, 3, 4, 5], []),
        ([NINE, NINE + 1, 0, 1, 2, 3], []),
        ([NINE, NINE + 1, NINE + 2, 0, 1, 2], []),
        ([NINE, NINE + 1, NINE + 2, 0], ["RMQDISK-40"]),
        ([NINE, 0], []),
    ],
)
def test_a_clock_that_was_wrong(seconds: list[float], without_index: list[str]) -> None:
    """Where the index has the same time it is right, and made again byte for byte."""
    files = stored_at(seconds, born_before_ms=2000)
    with IndexService.open("/s", SLOTS, ENTRIES, create=True, files=files) as service:
        for _, result in CommitLog.open("/s", SIZE, files=files).scan():
            if result.message is not None:
                service.build_index(dispatch_request_of(result.message))
    assert [] == of_times(files)
    assert rebuilt(files, "/new").doubted_times == 0
    assert images_of(files, "/s/index") == images_of(files, "/new")
    for name in files.list_directory("/s/index"):
        files.remove(f"/s/index/{name}")
    assert without_index == [one.law for one in of_times(files)]
    assert [] == of_times(stored_at(seconds))


@pytest.mark.checks("RMQDISK-32")
@pytest.mark.parametrize(("at", "flip"), [(40 + 4 * SLOTS + 20 * 5 + 15, 16), (6, 64)])
def test_a_wrong_index_is_not_believed(at: int, flip: int) -> None:
    """A wrong difference, or begin, that lies between times far apart blames no right message."""
    files = stored_at([60 * place for place in range(4)], born_before_ms=300_000)
    rebuilt(files, None)
    right = images_of(files, "/s/index")
    name = files.list_directory("/s/index")[0]
    with closing(files.open(f"/s/index/{name}", writable=True)) as file:
        file.pwrite(bytes([file.pread(1, at)[0] ^ flip]), at)
    assert {"RMQDISK-32"} == {one.law for one in of_times(files)}
    assert (0, right) == (rebuilt(files, "/new").doubted_times, images_of(files, "/new"))
