# SPDX-License-Identifier: Apache-2.0
"""The large data directory: its fifty corruptions are found, and nothing else is wrong."""

from pathlib import Path

import pytest

from segproof.verification import verify
from segproof_tests.big_dump import CODECS, CORRUPTIONS, write_dump

SIZE_BYTES = 30 << 20


@pytest.mark.slow
def test_all_corruptions_are_found_and_nothing_else(tmp_path: Path) -> None:
    """Each in its partition, in the file and by the law that it names; of each codec some."""
    expected = write_dump(tmp_path / "data", SIZE_BYTES)
    found = [one for one in verify(tmp_path / "data") if one.is_defect]
    assert sorted({(one.law, one.path) for one in found}) == expected
    damaged = {Path(path).parent for _, path in expected}
    assert 50 == len(CORRUPTIONS) == len(damaged) == len({one.name for one in CORRUPTIONS})
    assert {one.kind for one in CORRUPTIONS} >= {*CODECS, "transactions", "large"}
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    assert 0.8 * SIZE_BYTES < size < 1.3 * SIZE_BYTES
