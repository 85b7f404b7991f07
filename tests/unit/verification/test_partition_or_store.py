# SPDX-License-Identifier: Apache-2.0
"""A folder with files of both systems: what its name and its files say is judged, and no other."""

from pathlib import Path

import pytest

from segproof.salvaging.salvage import salvage
from segproof.salvaging.store_salvage import salvage_store
from segproof.verification import verify
from segproof_tests.partition_files import copied_partition
from segproof_tests.store_files import LOG, copied_store


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize("name", ["commitlog", "consumequeue", "index"])
def test_a_folder_of_a_store_makes_no_store_of_a_partition(name: str, tmp_path: Path) -> None:
    """The partition was judged as a store without messages, and a salvage kept none of them."""
    partition = copied_partition("v1-gzip", tmp_path)
    (healthy,) = salvage(partition, tmp_path / "healthy")
    (partition / name).mkdir()
    (partition / name / "00000000001073741824").touch()
    found = list(verify(partition))
    assert [] == [one for one in found if one.is_defect]
    assert str(partition / name) in [one.path for one in found if one.law == "DISK-3"]
    (saved,) = salvage(partition, tmp_path / "saved")
    assert saved.is_whole
    assert 0 < healthy.records == saved.records


def test_what_lies_beside_a_log_without_a_message_is_told(tmp_path: Path) -> None:
    """A salvage made no store, and said nothing of the files that it did not copy."""
    store = copied_store(tmp_path)
    (store / LOG).write_bytes(bytes(16384))
    for name in ("config", "timerlog"):
        (store / name).mkdir()
        (store / name / "topics.json").write_text("{}")
    (store / "notes").write_text("x")
    told = salvage_store(store, tmp_path / "saved")
    assert not told.is_whole
    assert {"commitlog", "config", "timerlog", "notes"} == {
        Path(words.split(":")[0]).name for words in told.left_out
    }
