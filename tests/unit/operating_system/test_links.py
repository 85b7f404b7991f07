# SPDX-License-Identifier: Apache-2.0
"""Symbolic links among a log's files: what they lead to is read, and never written."""

from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.kafka import LeaderEpochFileCache, LogConfig, PartitionLog

LOG = "0" * 20 + ".log"


@pytest.mark.parametrize("is_clean", [True, False])
def test_recovery_does_not_cut_what_a_link_leads_to(tmp_path: Path, is_clean: bool) -> None:
    """A link called like a segment emptied the file outside, which held no batch."""
    outside, folder = tmp_path / "outside", tmp_path / "t-0"
    outside.write_bytes(b"no batch at all")
    folder.mkdir()
    (folder / LOG).symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link is not written through"):
        PartitionLog.open(folder, LogConfig(), last_shutdown_clean=is_clean, create=True)
    assert outside.read_bytes() == b"no batch at all"


def test_no_file_is_made_where_a_link_leads(tmp_path: Path) -> None:
    """A link to nothing made a file outside of the directory."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / LOG).symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic link is not written through"):
        PartitionLog.open(folder, LogConfig(), create=True)
    assert not (tmp_path / "outside").exists()


def test_a_checkpoint_is_not_written_through_a_link(tmp_path: Path) -> None:
    """The file beside, by way of which a checkpoint is written, may be a link too."""
    outside, file = tmp_path / "outside", tmp_path / "leader-epoch-checkpoint"
    outside.write_bytes(b"kept")
    (tmp_path / "leader-epoch-checkpoint.tmp").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link is not written through"):
        LeaderEpochFileCache.open(file, create=True).assign(1, 0)
    assert outside.read_bytes() == b"kept"


def test_a_link_to_itself_is_told_as_one(tmp_path: Path) -> None:
    """Who only reads is not told of writing."""
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        REAL_FILES.open(str(link))
    with pytest.raises(OSError, match="symbolic link is not written through"):
        REAL_FILES.open(str(link), writable=True)


def test_a_link_is_read(tmp_path: Path) -> None:
    """For reading, links are followed, also those of the directories above."""
    (tmp_path / "outside").write_bytes(b"bytes")
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "folder").symlink_to(tmp_path)
    for path in (tmp_path / "link", tmp_path / "folder" / "outside"):
        file = REAL_FILES.open(str(path))
        assert file.pread(5, 0) == b"bytes"
        file.close()
    file = REAL_FILES.open(str(tmp_path / "folder" / "outside"), writable=True)
    file.close()
