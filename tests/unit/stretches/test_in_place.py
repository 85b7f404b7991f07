# SPDX-License-Identifier: Apache-2.0
"""What stays where it lies in one log that is placed by itself."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from segproof.files import REAL_FILES
from segproof.kafka import Record, write_batch
from segproof.stretches.kafka.facts import UNKNOWN_NAME
from segproof.stretches.kafka.framing import LogSource
from segproof.stretches.kafka.in_place import LogFates, byte_ranges_of, headers_of, place_log
from segproof.stretches.kafka.single_batch import OneBatch, batch_at
from segproof_tests.memory_logs import batch

BASE, COUNT = 1000, 40


def batches(first: int = BASE, count: int = COUNT) -> list[bytes]:
    """Return batches of one record each."""
    return [batch(1, first + number, number) for number in range(count)]


def around(inner: list[bytes]) -> bytes:
    """Return the batch after the first five, with others in its value."""
    return write_batch([Record(BASE + 5, 0, None, b"".join(inner))], base_offset=BASE + 5)


def placed(
    tmp_path: Path, log: bytes, *, base: int = BASE, start: int = 0, end: int | None = None
) -> LogFates:
    """Return what becomes of a log."""
    path = tmp_path / "some.log"
    path.write_bytes(log)
    opened = partial(REAL_FILES.open, str(path))
    return place_log(LogSource(base, None, opened, start=start, end=end))


def changed(one: bytes, at: int) -> bytes:
    """Return a batch with one wrong bit."""
    return one[:at] + bytes([one[at] ^ 1]) + one[at + 1 :]


@pytest.mark.checks("BATCH-3")
@pytest.mark.parametrize("number", [0, 1, 20, COUNT - 1])
def test_the_first_odd_byte_is_that_of_the_first_batch_that_does_not_stay(
    number: int, tmp_path: Path
) -> None:
    """All before it touch, from byte 0 on."""
    whole = batches()
    start = sum(map(len, whole[:number]))
    assert placed(tmp_path, b"".join(whole)).odd_from() == sum(map(len, whole))
    whole[number] = changed(whole[number], 62)
    found = placed(tmp_path, b"".join(whole))
    assert found.odd_from() == start
    ends = [start, start + len(whole[number])]
    wanted = [(0, ends[0]), (ends[1], sum(map(len, whole)))]
    assert byte_ranges_of(found.rows[found.is_sound]) == [one for one in wanted if one[0] < one[1]]


def test_a_log_without_batches_is_odd_from_its_first_byte(tmp_path: Path) -> None:
    """Whatever its bytes are."""
    for log in (b"", b"?" * 100, bytes(100)):
        found = placed(tmp_path, log)
        assert (found.odd_from(), byte_ranges_of(found.rows)) == (0, [])


@pytest.mark.checks("BATCH-2")
def test_a_mended_batch_stays_and_its_bytes_are_not_sound(tmp_path: Path) -> None:
    """A copy of its bytes is not what salvage writes."""
    whole = batches()
    sizes = [len(one) for one in whole]
    whole[20] = changed(whole[20], 11)  # the size
    found = placed(tmp_path, b"".join(whole))
    assert found.odd_from() == sum(sizes)
    bounds = sum(sizes[:20]), sum(sizes[:21])
    assert byte_ranges_of(found.rows[found.is_sound]) == [(0, bounds[0]), (bounds[1], sum(sizes))]
    assert np.array_equal(found.is_sound, found.is_whole)


def test_headers_are_those_of_the_rows(tmp_path: Path) -> None:
    """A batch between them that does not stay is passed over."""
    whole = batches()
    whole[7] = changed(whole[7], 62)
    found = placed(tmp_path, b"".join(whole))
    file = REAL_FILES.open(str(tmp_path / "some.log"))
    tables = headers_of(file, found.rows[found.is_sound])
    offsets = [int(one) for table in tables for one in table["base_offset"]]
    file.close()
    assert offsets == [BASE + number for number in range(COUNT) if number != 7]


@pytest.mark.parametrize("offset", [0, 1 << 40])
def test_a_log_whose_name_tells_nothing_has_any_offsets(offset: int, tmp_path: Path) -> None:
    """No offset is too large for it."""
    found = placed(tmp_path, b"".join(batches(offset)), base=UNKNOWN_NAME)
    assert found.is_sound.all()
    assert int(found.rows["batches"].sum()) == COUNT


def test_what_is_before_the_start_is_not_read(tmp_path: Path) -> None:
    """A wrong batch there is not seen."""
    whole = batches()
    start = sum(map(len, whole[:10]))
    whole[0] = changed(whole[0], 62)
    found = placed(tmp_path, b"".join(whole), start=start)
    assert byte_ranges_of(found.rows) == [(start, sum(map(len, whole)))]
    torn = placed(tmp_path, b"".join(whole)[: start + 30], start=start)
    assert torn.log.unsearched_from is None
    assert not len(torn.rows)


@pytest.mark.parametrize(
    ("tail", "is_broken"),
    [
        (batches()[5][:-1], True),
        (around(batches(count=3))[:-9], True),
        (around(batches(BASE + 6, 2))[:-9], False),
        (b"?" * 70, True),
        (b"?" * 70 + batches()[5], False),
        (b"?" * 70 + batches(0)[0], False),
        (bytes(70), True),
    ],
)
def test_a_log_is_broken_to_its_end_if_no_batch_follows(
    tail: bytes, is_broken: bool, tmp_path: Path
) -> None:
    """A batch that belongs elsewhere is one too."""
    head = b"".join(batches(count=5))
    found = placed(tmp_path, head + tail, base=BASE + 5, start=len(head))
    assert found.is_broken_from(len(head)) == is_broken


@pytest.mark.checks("BATCH-2", "BATCH-3")
def test_a_single_batch_is_read_where_its_checksum_and_its_end_are_right(tmp_path: Path) -> None:
    """It is read by its size, up to a limit."""
    data = b"".join(whole := batches(count=3))
    path = tmp_path / "some.log"
    for at, limit, is_there in [
        (0, len(data), True), (0, len(whole[0]), True), (0, len(whole[0]) - 1, False),
        (1, len(data), False), (-1, len(data), False), (len(data), len(data), False),
    ]:  # fmt: skip
        path.write_bytes(data)
        file = REAL_FILES.open(str(path))
        wanted = OneBatch(0, len(whole[0]), BASE, BASE, 0, is_loadable=True)
        assert batch_at(file, at, limit) == (wanted if is_there else None)
        file.close()
    path.write_bytes(changed(data, 62))
    file = REAL_FILES.open(str(path))
    assert batch_at(file, 0, len(data)) is None
    file.close()
