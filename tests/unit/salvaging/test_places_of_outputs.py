# SPDX-License-Identifier: Apache-2.0
"""Where a salvage and a rebuild write: never among the partitions of a broker.

A salvage into a broker's data directory was accepted, as a hint had printed it: the next start of
the broker ends at the new folder.
"""

import re
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.repair import rebuild, rebuild_all, rebuild_index, salvage, salvage_store
from segproof.verification import verify
from segproof_tests.partition_files import copied_partition
from segproof_tests.reported_findings import state_of
from segproof_tests.store_files import copied_store

OWN_FILES = ("meta.properties", "replication-offset-checkpoint", ".kafka_cleanshutdown")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with two partitions, and nothing else of a broker."""
    for name in ("plain", "compacted"):
        copied_partition(name, tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.checks("DISK-47")
@pytest.mark.parametrize("out", ["saved", "new/saved", "plain-0/saved", "compacted-0/new/saved"])
def test_no_verb_writes_among_partitions(data: Path, out: str, tmp_path: Path) -> None:
    """Nor a salvage or a rebuild of something else; all stays as it is."""
    store = copied_store(tmp_path / "store")
    other = copied_partition("unclean-before", tmp_path / "other")
    before, target = state_of(tmp_path), data / out
    with pytest.raises(InvalidArgumentError, match="directory of a broker's data"):
        list(salvage(other, target))
    with pytest.raises(InvalidArgumentError, match="directory of a broker's data"):
        rebuild(other, target)
    with pytest.raises(InvalidArgumentError, match="directory of a broker's data"):
        list(rebuild_all([other.parent], target))
    with pytest.raises(InvalidArgumentError, match="directory of a broker's data"):
        salvage_store(store, target)
    with pytest.raises(InvalidArgumentError, match="directory of a broker's data"):
        rebuild_index(store, target)
    assert before == state_of(tmp_path)


@pytest.mark.checks("DISK-47")
@pytest.mark.parametrize("own", OWN_FILES)
def test_a_file_of_a_broker_tells_its_directory(tmp_path: Path, own: str) -> None:
    """Also where it has one partition, or none, and the output has a partition's name."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / own).touch()
    other = copied_partition("unclean-before", tmp_path / "other")
    for out in ("saved", "unclean-before-0"):
        with pytest.raises(InvalidArgumentError, match="directory of a broker's data"):
            list(salvage(other, tmp_path / "data" / out))


def test_a_copy_in_a_working_directory_is_saved_beside_it(tmp_path: Path) -> None:
    """One partition makes no data directory; nor do folders that have only a partition's name."""
    copied_partition("plain", tmp_path)
    (tmp_path / "notes-1").mkdir()
    assert [told.is_whole for told in salvage(tmp_path / "plain-0", tmp_path / "saved")] == [True]


@pytest.mark.checks("DISK-47")
@pytest.mark.parametrize(("here", "given"), [("data", "."), ("data", "plain-0"), ("", "data")])
def test_a_printed_output_lies_outside(
    data: Path, here: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the working directory is, and also for one partition alone."""
    log = data / "plain-0" / "00000000000000000162.log"
    log.write_bytes(log.read_bytes()[:200] + b"x" + log.read_bytes()[201:])
    (data / "plain-0" / "00000000000000000060.index").write_bytes(b"wrong!!!")
    monkeypatch.chdir(tmp_path / here)
    hints = [one.hint for one in verify(Path(given))]
    outs = {out for hint in hints for out in re.findall(r"--out ([^ `]+)", str(hint))}
    assert {"saved"} <= {Path(out).name for out in outs}
    for out in outs:
        new = (tmp_path / here / out).resolve()
        assert new.parent in (tmp_path, tmp_path / "rebuilt")


@pytest.mark.checks("DISK-48")
def test_the_partition_itself_comes_before_a_copy_in_a_folder(tmp_path: Path) -> None:
    """A backup in a folder whose name is that of a partition was saved, and the partition not."""
    data = tmp_path / "data"
    own = copied_partition("plain", data)
    copied_partition("plain", data / "backup-2024")
    first, second = salvage(data, tmp_path / "out")
    assert (str(own), str(tmp_path / "out/plain-0")) == (first.directory, first.target)
    assert (str(data / "backup-2024/plain-0"), None) == (second.directory, second.target)


def test_a_partition_that_is_there_already_costs_no_other_one(tmp_path: Path) -> None:
    """The others are saved, and it is told; what is there stays as it is."""
    source, out = copied_partition("plain", tmp_path / "data").parent, tmp_path / "out"
    list(salvage(source, out))
    before = state_of(out)
    copied_partition("compacted", source)
    saved_now, left = salvage(source, out)
    assert str(out / "compacted-0") == saved_now.target
    assert (str(source / "plain-0"), None) == (left.directory, left.target)
    (why,) = left.left_out
    assert f"{out}/plain-0 is there already" in why
    after = state_of(out)
    assert all(after[path] == state for path, state in before.items() if "plain-0" in str(path))


def test_empty_logs_are_told_as_the_reason(tmp_path: Path) -> None:
    """A topic that was made on a full disk has one empty log: nothing said why it was not saved."""
    folder = tmp_path / "data/new-3"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").touch()
    (told,) = salvage(folder, tmp_path / "out")
    assert told.target is None
    assert [f"{folder}: its logs are empty, so there is nothing to save"] == told.left_out
