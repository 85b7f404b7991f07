# SPDX-License-Identifier: Apache-2.0
"""A rebuild beside a broker that removes files: one clear refusal, and nothing is left."""

import shutil
from pathlib import Path

import pytest

from segproof import rebuild
from segproof.errors import SegproofError
from segproof.files import RealFiles
from segproof_harness.files.shipped_directories import KAFKA

TXN = KAFKA / "txn-a" / "txn-a-0"


class Vanishing(RealFiles):
    """Real files; one is removed before it is linked."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def link(self, source: str, target: str) -> None:
        """Link a file, or remove it and fail."""
        if source.endswith(self._suffix):
            Path(source).unlink()
        super().link(source, target)


@pytest.mark.parametrize("suffix", [".log", ".snapshot"])
def test_a_file_that_vanishes_is_a_refusal(tmp_path: Path, suffix: str) -> None:
    """Retention removed a file that was listed: it was an error of the operating system."""
    folder = tmp_path / "txn-a-0"
    shutil.copytree(TXN, folder)
    out = tmp_path / "out" / "txn-a-0"
    out.parent.mkdir()
    with pytest.raises(SegproofError, match="a broker is at work here"):
        rebuild(folder, out, files=Vanishing(suffix))
    assert not out.exists()


def test_a_directory_that_is_not_there_stays_an_error(tmp_path: Path) -> None:
    """A wrong path is no broker at work."""
    with pytest.raises(FileNotFoundError):
        rebuild(tmp_path / "none-0", tmp_path / "out")
