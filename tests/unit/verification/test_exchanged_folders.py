# SPDX-License-Identifier: Apache-2.0
"""Two partition folders that have each other's name."""

import os
import shutil
from pathlib import Path

import pytest

from segproof.findings import Summary
from segproof.salvaging.salvage import salvage
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA, partition_of


@pytest.mark.checks("DISK-38")
@pytest.mark.parametrize("wrong", ["", "other end", "one checkpoint", "cut"])
def test_folders_that_exchanged_names_lost_nothing(tmp_path: Path, wrong: str) -> None:
    """The longer one's records were told lost, and no word named the other folder."""
    data = tmp_path / "data"
    data.mkdir()
    for name, source in (("a-0", "plain"), ("b-0", "v1-gzip"), ("c-0", "plain")):
        shutil.copytree(partition_of(KAFKA / source), data / name)
    ends: dict[str, int] = {}

    def take(summary: Summary) -> None:
        ends[os.path.basename(summary.path)] = summary.end_offset or 0

    list(verify(data, on_summary=take))
    longer, shorter = sorted(("a-0", "b-0"), key=ends.__getitem__, reverse=True)
    (data / "a-0").rename(data / "x")
    (data / "b-0").rename(data / "a-0")
    (data / "x").rename(data / "b-0")
    told = {"a 0": ends["a-0"], "b 0": ends["b-0"], "c 0": ends["c-0"]}
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        lines = dict(told)
        if wrong == "other end" or (wrong == "one checkpoint" and name.startswith("rep")):
            lines[shorter.replace("-", " ")] += 1
        text = "\n".join(["0", "3", *(f"{key} {end}" for key, end in lines.items()), ""])
        (data / name).write_text(text)
    if wrong == "cut":  # the log of the longer name has lost its end, and so ends elsewhere
        log = max((data / longer).glob("*.log"))
        log.write_bytes(log.read_bytes()[:-1])
    summaries: list[Summary] = []
    found = list(verify(data, on_summary=summaries.append))
    about = [one for one in found if one.law == "DISK-38"]
    assert about
    is_named = [f"{data / shorter} may have exchanged names" in one.message for one in about]
    assert [not wrong] * len(about) == is_named
    (summary,) = [one for one in summaries if one.path == str(data / longer)]
    assert wrong or not summary.lost_at_least
    done = {os.path.basename(one.directory): one for one in salvage(data, tmp_path / "saved")}
    assert (not wrong) is (not done[longer].lost_offsets)
