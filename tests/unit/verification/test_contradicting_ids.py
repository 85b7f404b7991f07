# SPDX-License-Identifier: Apache-2.0
"""Topic ids that contradict each other: each folder is told, and salvage tells it too."""

from pathlib import Path

import pytest

from segproof.findings import Severity, Verdict
from segproof.verification import partition_places, verify
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_tests.partition_files import name_of
from segproof_tests.printed_rows import Capsys, shown
from segproof_tests.reported_findings import verified
from segproof_tests.small_logs import batch

A, B, C = ("B" * 21 + last for last in "AQg")
LOG = batch(0)
LIKELY = "Likely the id of {} is the wrong one"


def lay(folder: Path, ids: dict[str, str]) -> Path:
    """Write a data directory in which each partition has a topic id."""
    for name, topic_id in ids.items():
        (folder / name).mkdir(parents=True)
        (folder / name / name_of(0, ".log")).write_bytes(LOG)
        (folder / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    (folder / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    return folder


def told(*paths: Path) -> dict[str, str]:
    """Return the messages of DISK-50, by the name of the partition's folder."""
    beside = partition_places(paths)
    found = [one for path in paths for one in verify(path, laws=["DISK-50"], beside=beside)]
    assert {Severity.WARNING} >= {one.severity for one in found}
    return {Path(one.path).parent.name: one.message for one in found}


@pytest.mark.checks("DISK-50")
@pytest.mark.parametrize(
    ("ids", "names", "likely"),
    [
        ({"plain-0": B, "txn-0": B}, ["plain-0", "txn-0"], ""),
        ({"plain-0": B, "txn-0": B, "txn-1": B}, ["plain-0", "txn-0", "txn-1"], "plain-0"),
        ({"a-0": A, "plain-0": B, "plain-1": A}, ["a-0", "plain-0", "plain-1"], "plain-1"),
        ({"a-0": A, "plain-0": B, "plain-1": C, "z-0": A}, ["a-0", "plain-0", "plain-1", "z-0"],
         ""),
        ({"plain-0": A, "plain-1": B, "plain-2": B, "z-0": C},
         ["plain-0", "plain-1", "plain-2"], "plain-0"),
        ({"plain-0": A, "plain-1": B, "z-0": C}, ["plain-0", "plain-1"], ""),
    ],
)  # fmt: skip
def test_each_folder_of_a_contradiction_is_told(
    tmp_path: Path, ids: dict[str, str], names: list[str], likely: str
) -> None:
    """The first folder was sound, though it may be the one that the broker sets aside."""
    data = lay(tmp_path / "data", ids)
    found = told(data)
    assert names == sorted(found)
    for name, message in found.items():
        assert any(other in message for other in names if other != name)
        assert (LIKELY.format(likely) in message) is bool(likely)
        assert ("Likely" in message) is bool(likely)
        (alone,) = verify(data / name, laws=["DISK-50"])
        assert ("Likely" in alone.message) is bool(likely)
    _, summaries = verified(data)
    sound = {Path(one.path).name for one in summaries if one.verdict is Verdict.SOUND}
    assert not sound & set(names)


@pytest.mark.checks("DISK-50")
def test_in_other_paths_each_side_says_which_one_is_alone(tmp_path: Path) -> None:
    """What agrees is counted in all paths of the call."""
    one = lay(tmp_path / "one", {"plain-0": A})
    two = lay(tmp_path / "two", {"plain-0": B, "plain-1": B})
    found = told(one, two)
    assert {"plain-0", "plain-1"} == set(found)
    assert all(LIKELY.format(one / "plain-0") in message for message in found.values())


@pytest.mark.checks("DISK-50")
def test_a_topic_id_of_many_topics_costs_each_a_line(tmp_path: Path) -> None:
    """A script that writes one id into each partition of a broker: no finding grows with them."""
    files = MemoryFiles()
    for number in range(300):
        write_file(files, f"d/t{number}-0/{name_of(0, '.log')}", LOG)
        write_file(
            files, f"d/t{number}-0/partition.metadata", f"version: 0\ntopic_id: {A}".encode()
        )
    found = list(verify("d", files=files, laws=["DISK-50"]))
    assert 300 == len(found)
    assert max(len(one.message) for one in found) < 500


@pytest.mark.checks("DISK-50")
def test_a_salvage_tells_of_the_id_that_it_copies(tmp_path: Path, capsys: Capsys) -> None:
    """It said "everything kept", and a broker sets the saved partition aside."""
    data = lay(tmp_path / "data", {"plain-0": B, "txn-0": B})
    for source in (data, data / "plain-0"):
        out = tmp_path / f"saved-{source.name}"
        said = shown(capsys, "salvage", source, "--out", out, "--jobs", "1", code=1)
        assert "everything kept" not in said
        assert "every batch kept" in said
        assert "plain-0/partition.metadata: " in said
        assert "kafka-topics.sh --describe" in said
        assert B in (out / "plain-0" / "partition.metadata").read_text()
