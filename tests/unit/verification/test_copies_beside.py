# SPDX-License-Identifier: Apache-2.0
"""A damaged or missing log whose records lie in a file beside it: the finding names that file."""

import gzip
import shutil
from pathlib import Path

import pytest

from segproof.verification import verify
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.partition_files import aged, copied_partition, name_of


def damaged(folder: Path, base: int) -> None:
    """Overwrite some bytes in the middle of a log."""
    log = folder / name_of(base, ".log")
    put_bytes(log, 50_000, bytes(8_000))


@pytest.mark.slow
@pytest.mark.checks("DISK-4", "BATCH-3")
@pytest.mark.parametrize("suffix", [".bak", ".gz", ".deleted", ".1", ""])
@pytest.mark.parametrize("is_missing", [False, True])
def test_the_copy_is_named(suffix: str, *, is_missing: bool, tmp_path: Path) -> None:
    """Only a note named it, with a hint that gave no step."""
    folder = copied_partition("plain", tmp_path)
    log = folder / name_of(342, ".log")
    copy = log.with_name(log.name + suffix)
    if suffix == ".gz":
        copy.write_bytes(gzip.compress(log.read_bytes()))
    elif suffix:
        shutil.copyfile(log, copy)
    damaged(folder, 342)
    if is_missing:
        log.unlink()
    laws = {"DISK-4"} if is_missing else {"BATCH-3", "BATCH-2", "SCAN-2", "SCAN-10"}
    found = [one for one in verify(aged(folder)) if one.law in laws and one.is_defect]
    assert found
    for one in found:
        assert (copy.name in one.hint) == (suffix != "")
        assert (", unpacked," in one.hint) == (suffix == ".gz")
        if suffix:
            assert f"into another folder under the name {log.name}" in one.hint
