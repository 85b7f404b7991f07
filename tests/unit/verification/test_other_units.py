# SPDX-License-Identifier: Apache-2.0
"""Timestamps in another unit than milliseconds, and wrong messages inside compressed ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Finding, Severity, Verdict
from segproof.verification import verify
from segproof_harness.files.codecs import CODECS
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws.borders.log_files import message, wrapper
from segproof_harness.laws.every_law import LAWS
from segproof_tests.partition_files import name_of, write_segment
from segproof_tests.small_logs import log_at

NOW = 1_795_223_261_579
LAST, SECONDS, SECONDS_END, HISTORY_END = 253_402_300_799_999, 10**9, 42 * 10**8, 10**12


def judged(log: bytes, law: str, *, deep: bool = False) -> list[Finding]:
    """Return the findings of a law in a log."""
    files = MemoryFiles()
    write_file(files, f"t-0/{name_of(0, '.log')}", log)
    return list(verify("t-0", files=files, laws=[law], deep=deep))


@pytest.mark.checks("DISK-57")
@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([NOW, NOW * 1000], "as microseconds it is 2026-11-21T"),
        ([NOW * 10**6], "as nanoseconds it is 2026-11-21T"),
        ([NOW // 1000, NOW // 1000 + 1], "2 batches have timestamps of early 1970"),
        ([NOW, NOW // 1000], "as seconds it is 2026-11-21T"),
        ([LAST + 1], "beyond the year 9999"),
        ([10**13 - 1], ""),
        ([NOW, NOW * 10], "with one digit less it is 2026-11-21T"),
        ([NOW, 5, -1], ""),
        ([SECONDS - 1, SECONDS_END], ""),
        ([SECONDS], "of early 1970"),
        ([SECONDS_END - 1, NOW], "of early 1970"),
        ([SECONDS, SECONDS_END, NOW], ""),
        ([SECONDS, HISTORY_END - 1], ""),
        ([SECONDS, HISTORY_END], "of early 1970"),
    ],
)
@pytest.mark.parametrize("magic", [1, 2])
def test_timestamps_of_another_unit(times: list[int], words: str, magic: int) -> None:
    """Retention by time never reached them, and searches ended there: `verify` said sound."""
    if magic == 1:
        times = [max(time, -1) for time in times]
    log = log_at(*times, magic=magic)
    found = judged(log, "DISK-57")
    assert LAWS["DISK-57"].predicate(log) == (not words)
    assert [words in one.message for one in found] == [True] * bool(words)
    assert all(one.severity is Severity.WARNING for one in found)


@pytest.mark.checks("DISK-57")
@given(
    st.lists(
        st.sampled_from(
            (
                -2,
                -1,
                0,
                1,
                10**13 - 1,
                10**13,
                SECONDS - 1,
                SECONDS,
                SECONDS_END - 1,
                SECONDS_END,
                HISTORY_END - 1,
                HISTORY_END,
                NOW,
                LAST,
                LAST + 1,
                2**62,
            )
        ),
        max_size=4,
    )
)
def test_units_are_judged_as_the_law_says(times: list[int]) -> None:
    """Whatever times lie beside each other."""
    log = log_at(*times)
    assert LAWS["DISK-57"].predicate(log) == (not judged(log, "DISK-57"))


@pytest.mark.checks("DISK-57")
@pytest.mark.parametrize(
    ("times", "severity"),
    [
        ([0, NOW], Severity.NOTE), ([-2, NOW], Severity.WARNING), ([-NOW, NOW], Severity.WARNING),
        ([NOW * 10, NOW], Severity.WARNING), ([NOW * 10, NOW * 10 + 5], Severity.NOTE),
    ],
)  # fmt: skip
def test_impossible_times_are_told(times: list[int], severity: Severity) -> None:
    """They were "sound": 0, a negative time, and one with a digit too many."""
    (one,) = judged(log_at(*times), "DISK-57")
    assert (one.severity, one.actual, one.position) == (severity, str(times[0]), 0)
    assert "Retention by time" in one.message
    assert "search" in one.message


def messages(magic: int, count: int = 3) -> bytes:
    """Return messages that are not compressed, one after the other."""
    return b"".join(message(n, b"value", magic) for n in range(count))


@pytest.mark.checks("DISK-56")
@given(
    magic=st.sampled_from([0, 1]),
    at=st.integers(0, 200),
    bit=st.integers(0, 7),
    cut=st.integers(0, 60) | st.none(),
)
def test_inner_messages_are_judged_as_the_law_says(
    magic: int, at: int, bit: int, cut: int | None
) -> None:
    """One bit is wrong inside, or the last message is cut; the checksum around it is right."""
    inner = bytearray(messages(magic))
    if cut is None:
        inner[at % len(inner)] ^= 1 << bit
    else:
        del inner[len(inner) - cut :]
    log = wrapper(2, bytes(inner), magic=magic)
    found = judged(log, "DISK-56", deep=True)
    assert LAWS["DISK-56"].predicate(log, CODECS) == (not found)
    # Each change is told: as this, or as records that can't be read or have wrong offsets.
    files = MemoryFiles()
    write_file(files, f"t-0/{name_of(0, '.log')}", log)
    is_whole = bytes(inner) == messages(magic)[: len(inner)] and (cut or 0) % len(
        messages(magic, 1)
    ) == 0  # fmt: skip
    assert is_whole or any(one.is_defect for one in verify("t-0", files=files, deep=True))


@pytest.mark.checks("DISK-56")
def test_inner_checksums_that_are_wrong_are_counted(tmp_path: Path) -> None:
    """A gzip wrapper hid them, also from a deep run; a run that is not deep inflates nothing."""
    inner = bytearray(messages(1))
    size = len(inner) // 3
    for number in (1, 2):
        inner[size * (number + 1) - 1] ^= 1
    folder = write_segment(tmp_path / "t-0", wrapper(2, bytes(inner)), index=b"", timeindex=b"")
    verdicts: list[Verdict] = []
    (found,) = (one for one in verify(folder, deep=True) if one.is_defect)
    assert ("DISK-56", 0, "2") == (found.law, found.position, found.actual)
    assert (
        "message 1 of 3 inside a compressed one has a wrong checksum, and 1 more" in found.message
    )
    list(verify(folder, deep=True, on_summary=lambda one: verdicts.append(one.verdict)))
    assert [Verdict.READABLE_WITH_DEFECTS] == verdicts
    assert not any(one.is_defect for one in verify(folder))
