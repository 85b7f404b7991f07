# SPDX-License-Identifier: Apache-2.0
"""What `verify` tells of records that a damage costs, beside what `salvage` tells of it."""

from pathlib import Path

import pytest

from segproof.kafka.batch_table import read_batch_headers
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.printed_rows import shown


@pytest.mark.checks("BATCH-3", "SCAN-2")
def test_one_gap_is_one_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken batch and the zeros behind it; no index is made new before the log is saved."""
    folder = copied_partition("txn-a", tmp_path)
    log = folder / name_of(0, ".log")
    data = bytearray(log.read_bytes())
    starts = read_batch_headers(bytes(data)).table["position"].tolist()
    data[starts[5] + 70 : starts[6] + 30] = bytes(starts[6] + 30 - starts[5] - 70)
    data[starts[2] + 70] ^= 1
    log.write_bytes(data)
    sound = next(one for one in sorted(folder.glob("*.index")) if one.stem != log.stem)
    sound.write_bytes(sound.read_bytes()[:-3])
    sound.with_suffix(".timeindex").unlink()
    told = shown(capsys, "verify", str(folder), "--no-notes", code=1)
    assert f"error BATCH-3 (2), SCAN-2 (1) {log}: 3 places, the first at bytes " in told
    assert f" at bytes {starts[2]}, {starts[5]}, {starts[6]}: " in told
    assert "error SCAN-2 " not in told
    assert "segproof rebuild" not in told
    assert "stop the broker" not in told
    assert told.count("hint:      save the log first") == 2
    begin = f"; this damage begins with the batch at byte {starts[5]}"
    assert begin in shown(capsys, "verify", str(log), "--law", "SCAN-2", code=1)
