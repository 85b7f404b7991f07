# SPDX-License-Identifier: Apache-2.0
"""Where a salvage and a rebuild write: never among the partitions of a broker.

A salvage into a broker's data directory was accepted, as a hint had printed it: the next start of
the broker ends at the new folder.
"""

import re
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.rebuilding.directory_rebuild import rebuild_all
from segproof.rebuilding.partition_rebuild import rebuild
from segproof.rebuilding.store_rebuild import rebuild_index
from segproof.salvaging.salvage import salvage
from segproof.salvaging.store_salvage import salvage_store
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
