# SPDX-License-Identifier: Apache-2.0
"""What `verify` tells of records that a damage costs, beside what `salvage` tells of it."""

from pathlib import Path

import pytest

from segproof.kafka.batch_table import read_batch_headers
from segproof_tests.partition_files import copied_partition, name_of
from segproof_tests.printed_rows import jsonl, shown
from segproof_tests.store_files import LOG, copied_store


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
    assert told.count("hint:      save the log first, as the hint of BATCH-3 says: ") == 2
    begin = f"; this damage begins with the batch at byte {starts[5]}"
    assert begin in shown(capsys, "verify", str(log), "--law", "SCAN-2", code=1)


@pytest.mark.checks("DISK-19")
def test_a_wrong_bit_of_the_last_batch_comes_before_what_follows_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a warning, and the errors of the indexes and the epochs follow from it."""
    folder = copied_partition("txn-a", tmp_path)
    path = max(folder.glob("*.log"))
    log = bytearray(path.read_bytes())
    log[read_batch_headers(bytes(log)).table["position"].tolist()[-1] + 6] ^= 1 << 13 - 8
    path.write_bytes(log)
    told = shown(capsys, "verify", str(folder), "--no-notes", code=1)
    laws = [one.split()[1] for one in told.splitlines() if one.startswith(("error", "warning"))]
    assert ["DISK-19", "DISK-9", "DISK-37", "DISK-74"] == laws
    assert told.count("save the log first, as the hint of DISK-19 says: ") == 2
    assert f"    segproof salvage {folder} --out " in told


@pytest.mark.parametrize(
    ("damaged", "lost", "words", "kept"),
    [
        ([(60, 60000)], 3, "3 offsets", "offsets 0 to 745, 3 of them in no batch"),
        ([(693, 95000)], None, "an unknown number of offsets", "offsets 0 to 743"),
        (
            [(60, 60000), (693, 95000)],
            None,
            "at least 3 offsets",
            "offsets 0 to 743, 3 of them in no batch",
        ),
    ],
    ids=["between", "at the end", "both"],
)
def test_verify_and_salvage_tell_one_number(
    damaged: list[tuple[int, int]],
    lost: int | None,
    words: str,
    kept: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the partition that was saved the verdict says how many offsets are in no batch."""
    folder, out = copied_partition("plain", tmp_path), tmp_path / "saved"
    for base_offset, position in damaged:
        with (folder / name_of(base_offset, ".log")).open("r+b") as file:
            file.seek(position)
            file.write(b"oops")
    verdict = shown(capsys, "verify", str(folder), "--summary", code=1)
    assert f"; {words} lost" in verdict
    (told,) = jsonl(capsys, "verify", str(folder), "--summary", code=1)
    assert (lost, 3 * (len(damaged) > 1 or lost == 3)) == (
        told["lost_offsets"],
        told["lost_at_least"],
    )
    saved = shown(capsys, "salvage", str(folder), "--out", str(out), code=1)
    assert f"  lost: {words}\n" in saved
    assert shown(capsys, "verify", str(out), "--summary").endswith(f" batches, {kept}\n")


@pytest.mark.checks("RMQDISK-24")
def test_the_queues_tell_verify_and_salvage_how_many_messages_are_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What fills the gap of the new store is no message of it."""
    store, out = copied_store(tmp_path, "rolled-4.9.8"), tmp_path / "saved"
    with (store / LOG).open("r+b") as file:
        file.seek(15900)
        file.write(bytes(400))
    words = "3 messages"
    verdict, *_ = shown(capsys, "verify", str(store), code=1).splitlines()
    assert f"; {words} lost, as queues and index tell; " in verdict
    saved = shown(capsys, "salvage", str(store), "--out", str(out), code=1)
    assert f"  lost: {words}, as queues and index tell\n" in saved
    assert ": part kept: 217 messages of " in saved
    sound = shown(capsys, "verify", str(out), "--summary")
    assert " 217 messages, bytes 0 to 35896 of the log, 1 filler of a salvage in place of" in sound
