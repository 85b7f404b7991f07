# SPDX-License-Identifier: Apache-2.0
"""The offsets that no batch of a partition has, counted beside logs with wrong names."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.kafka import Record, write_batch
from segproof_tests.partition_files import in_memory, name_of
from segproof_tests.reported_findings import verified


def batch(first: int, last: int) -> bytes:
    """Return a batch with a first and a last offset."""
    offsets = sorted({first, last})
    return write_batch([Record(n, 1000 + n, b"k", b"v") for n in offsets], base_offset=first)


def missing_beside(names: list[int], logs: list[list[tuple[int, int]]]) -> int:
    """Return how many offsets the verdict says to be in no batch."""
    files = {
        name_of(name, ".log"): b"".join(batch(*one) for one in log)
        for name, log in zip(names, logs, strict=True)
    }
    _, told = verified("t-0", files=in_memory(files, "t-0"))
    return told[-1].missing_offsets


@pytest.mark.checks("DISK-62", "DISK-19")
@pytest.mark.parametrize("order", list(permutations(range(4)))[1:])
def test_logs_with_each_others_names_lack_nothing(order: tuple[int, ...]) -> None:
    """ "1340 of them in no batch": three names were rotated, and the last log had these offsets."""
    bases = [0, 3, 10, 12]
    logs = [[(0, 2)], [(3, 5), (6, 9)], [(10, 11)], [(12, 20)]]
    assert missing_beside([bases[number] for number in order], logs) == 0


@st.composite
def renamed_logs(draw: st.DrawFn) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """Draw logs with gaps, and a name for each; one may be free, or within another log."""
    offset, logs = draw(st.integers(0, 3)), []
    for _ in range(draw(st.integers(1, 4))):
        log = []
        for _ in range(draw(st.integers(1, 3))):
            last = offset + draw(st.integers(0, 3))
            log.append((offset, last))
            offset = last + 1 + draw(st.sampled_from([0, 0, 2]))
        logs.append(log)
    names = draw(st.permutations([log[0][0] for log in logs]))
    if draw(st.booleans()):
        names[0] = draw(st.integers(0, offset + 3).filter(lambda name: name not in names))
    return names, logs


@pytest.mark.checks("DISK-62", "DISK-65", "DISK-19")
@given(renamed_logs())
def test_no_name_makes_an_offset_missing_that_a_log_has(
    drawn: tuple[list[int], list[list[tuple[int, int]]]],
) -> None:
    """A name may claim offsets that no log has: before the first batch, or after the last.

    Gaps of a log below its name are not counted.
    """
    names, logs = drawn
    held = {n for log in logs for first, last in log for n in range(first, last + 1)}
    claimed = set()
    for name, log in zip(names, logs, strict=True):
        first, end = log[0][0], log[-1][1] + 1
        following = min((one for one in names if one > name), default=0)
        claimed |= {*range(name, first), *range(name, end), *range(max(name, end), following)}
        held |= {*range(first, min(name, end))}
    assert missing_beside(names, logs) == len(claimed - held)
