# SPDX-License-Identifier: Apache-2.0
"""Which findings a text shows as one cause, and which causes as one group."""

from dataclasses import replace
from pathlib import Path

import pytest

from segproof.findings import FURTHER, Finding, Severity
from segproof.verification import verify
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.reports.causes import Causes, in_groups
from segproof_harness.reports.consumers import what_consumers_see
from segproof_harness.reports.terminal import Lines
from segproof_harness.reports.verdicts import write_group_lines
from segproof_tests.partition_files import batches_of, copied_partition, name_of
from segproof_tests.printed_rows import Capsys
from segproof_tests.small_logs import log_at


def test_a_cause_never_speaks_of_another_kind_of_place() -> None:
    """A time of -5 was told as "beyond the year 9999", with the hint of microseconds."""
    now = 1_795_222_321_537
    times = [now, now * 1000, now, -5, now // 1000, now * 10**6, 2**63 - 1]
    files, causes = MemoryFiles(), Causes()
    write_file(files, f"t-0/{name_of(0, '.log')}", log_at(*times))
    found = list(verify("t-0", files=files, laws=["DISK-57"]))
    for finding in found:
        causes.add(finding)
    told = list(causes.take())
    assert {(one.first.message, one.first.hint) for one in told} == {
        (one.message, one.hint) for one in found
    }
    assert len(told) == len(in_groups(told)) == 3


def place(message: str, position: int | None = 0, actual: str = "1") -> Finding:
    """Return a finding in a log."""
    facts = Severity.ERROR, "log-segment", "/t/0.log", position, None, actual
    return Finding("DISK-13", *facts, message, "h", "segproof verify /t/0.log --law DISK-13")


BACK, FAR = "the batch begins at offset {}, below 9", "last offset {} is too far from the base"


@pytest.mark.parametrize(
    ("messages", "counts"),
    [
        ([BACK.format(5), BACK.format(7), FAR.format(5)], [2, 1]),
        ([BACK.format(5), FAR.format(5), BACK.format(7)], [2, 1]),
        ([BACK.format(5), BACK.format(5) + "; 2 bytes are lost"], [2]),
        ([BACK.format(5), f"9{FURTHER}"], [10]),
        ([f"9{FURTHER}", BACK.format(5)], [10]),
        ([BACK.format(5), FAR.format(5), f"9{FURTHER}"], [1, 1, 9]),
        (["it cannot be read: no rights", "it cannot be read: a directory"], [2]),
        (["group g has consumed Orders up to 9", "group h has consumed Pay up to 7"], [2]),
    ],
)
def test_places_of_one_kind_are_one_cause(messages: list[str], counts: list[int]) -> None:
    """Values, names and the cost of a damage may differ. Places that were only counted stay apart
    where a law has two kinds of places.
    """
    causes = Causes()
    for message in messages:
        causes.add(place(message, None if message.endswith(FURTHER) else 0, actual="9"))
    told = list(causes.take())
    assert [one.count for one in told] == counts
    assert [len(one) for one in in_groups(told)] == [1] * len(counts)


def test_places_with_another_hint_are_another_cause() -> None:
    """The text shows the hint of the first one."""
    causes = Causes()
    for hint in ("look", "save", "look"):
        causes.add(replace(place(BACK.format(5)), hint=hint))
    assert [(one.first.hint, one.count) for one in causes.take()] == [("look", 2), ("save", 1)]


@pytest.mark.checks("DISK-65", "SEG-7")
def test_no_rebuild_is_advised_that_is_refused(tmp_path: Path) -> None:
    """A log was named one too low: a salvage for the log, and a rebuild for its index, which the
    rebuild refuses.
    """
    folder, causes = copied_partition("plain", tmp_path), Causes()
    for suffix in (".log", ".index", ".timeindex"):
        (folder / name_of(420, suffix)).rename(folder / name_of(419, suffix))
    for finding in verify(folder):
        causes.add(finding)
    hints = {law: one.first.hint for one in causes.take() for law in one.laws}
    assert not [law for law, hint in hints.items() if "`segproof rebuild" in hint]
    assert "as the hint of DISK-65 says" in hints["SEG-7"]
    assert "`segproof salvage" in hints["DISK-65"]


@pytest.mark.checks("DISK-6", "DISK-25", "SEG-7")
def test_the_step_that_comes_first_is_of_the_worst_finding(tmp_path: Path) -> None:
    """Zeros at the end of a log are a note, and its lost end is an error: the note was named."""
    folder, causes = copied_partition("txn-a", tmp_path), Causes()
    log = max(folder.glob("*.log"))
    data = log.read_bytes()
    batches = batches_of(data)
    cut = sum(map(len, batches[: len(batches) // 2]))
    log.write_bytes(data[:cut] + bytes(-cut % 4096))
    for finding in verify(folder):
        causes.add(finding)
    told = list(causes.take())
    severities = {law: one.first.severity for one in reversed(told) for law in one.laws}
    assert (Severity.NOTE, Severity.ERROR) == (severities["DISK-6"], severities["DISK-25"])
    hints = [one.first.hint for one in told if one.first.hint.startswith("save the log first")]
    assert hints
    assert all("as the hint of DISK-25 says" in one for one in hints)


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_no_path_is_hidden_where_it_takes_one_line(count: int, capsys: Capsys) -> None:
    """The folder that the hint of DISK-47 is about was hidden as "1 more file"."""
    causes = Causes()
    for number in range(count):
        causes.add(replace(place(BACK.format(number)), path=f"/t/{number}"))
    (group,) = in_groups(causes.take())
    write_group_lines(Lines(), group)
    told = capsys.readouterr().out
    assert (count if count < 5 else 3) == told.count("error ")
    assert (count > 4) == (f"  and {count - 3} more paths\n" in told)
    assert (count > 4) == (" more path" in told)


@pytest.mark.parametrize("law", ["CKPT-3", "META-2"])
def test_consumers_of_a_directory_that_goes_offline(law: str) -> None:
    """ "Nothing, while the broker is down" was read as that they get nothing, or lose nothing."""
    told = what_consumers_see(replace(place("it is zeros"), law=law)) or ""
    assert "serve no partition of this data directory; the logs have the records" in told


def test_a_group_counts_files_of_one_kind() -> None:
    """ "And 2 more files" never stands for a second kind of place in the same file."""
    causes = Causes()
    for number in range(5):
        for words in (BACK, FAR):
            causes.add(replace(place(words.format(number)), path=f"/t/{number}.log"))
    assert [len(one) for one in in_groups(causes.take())] == [5, 5]
