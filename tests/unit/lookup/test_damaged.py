# SPDX-License-Identifier: Apache-2.0
"""A lookup that finds something damaged names it, and says that it is damaged."""

import json
from pathlib import Path
from typing import Any

import pytest

from segproof.checksums import crc32c
from segproof.kafka import Record, write_batch
from segproof.lookup import PartitionReader
from segproof.rocketmq.message import dispatch_request_of
from segproof.store_lookup import StoreReader
from segproof_harness.cli import run
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.partition_files import copied_partition
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import LOG, copied_store, long_store

KEY = "TopicTest#order-1"
SECOND_BATCH = 11394
"""Where the second batch of the partition begins; it has the offsets from 3 on."""


def answered(capsys: Capsys, code: int, *words: str) -> list[dict[str, Any]]:
    """Return the rows of a lookup that ends with `code`."""
    assert code == run(["lookup", *words, "--format", "jsonl"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.checks("BATCH-14")
def test_a_batch_with_a_wrong_checksum(tmp_path: Path, capsys: Capsys) -> None:
    """`lookup` of an offset and of a time named a damaged batch without a word, and ended with 0.
    The batches beside it are answered as before."""
    folder = copied_partition("plain", tmp_path)
    (whole,) = answered(capsys, 0, str(folder), "--timestamp", "0")
    assert "reason" not in whole
    flip_bits(folder / f"{0:020d}.log", 90)
    first, second = answered(capsys, 1, str(folder), "--offset", "2", "--offset", "3")
    assert (0, True) == (first["batch_position"], first["is_damaged"])
    assert "checksum of the batch at byte 0" in first["reason"]
    assert SECOND_BATCH == second["batch_position"]
    assert not {"is_damaged", "reason"} & second.keys()
    (by_time,) = answered(capsys, 1, str(folder), "--timestamp", "0")
    assert (whole["offset"], True) == (by_time["offset"], by_time["is_damaged"])
    assert 0 == run(["lookup", str(folder), "--offset", "3"])
    with PartitionReader(folder) as reader:
        plain, told = reader.lookup_timestamp(0), reader.lookup_timestamp(0, explain=True)
        assert (plain, ()) == (told, plain.steps)
        assert "largest-timestamp" in [step.action for step in told.steps]


@pytest.mark.checks("BATCH-14")
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy"])
def test_a_block_that_a_disk_broke_has_a_wrong_checksum(
    codec: str, magic: int, tmp_path: Path, capsys: Capsys
) -> None:
    """`lookup --timestamp` said that it was damaged before its checksum was made: a producer's
    fault. That stays the reason if the checksum is right.
    """
    records = [Record(n, 1000 + n, None, b"value " * 40) for n in range(5)]
    whole = write_batch(records, base_offset=0, compression=codec, magic=magic)
    begin = len(whole) * 3 // 4
    data = whole[:begin] + bytes(len(whole) - begin)
    log = tmp_path / "t-0" / f"{0:020d}.log"
    log.parent.mkdir()
    log.write_bytes(data)
    (row,) = answered(capsys, 1, str(log.parent), "--timestamp", "0")
    assert "the checksum of the batch at byte 0 is wrong" in row["reason"]
    assert "it was damaged before" not in row["reason"]
    assert row["offset"] is None
    if magic == 2:
        log.write_bytes(data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:])
        (row,) = answered(capsys, 1, str(log.parent), "--timestamp", "0")
        assert "if the checksum of the batch is right, it was damaged before" in row["reason"]


@pytest.mark.checks("RMQLOG-2")
def test_a_message_with_a_wrong_checksum(tmp_path: Path, capsys: Capsys) -> None:
    """`lookup --key` and `--phy-offset` named a damaged message and ended with 0; the other
    messages of the key are sound. Beyond three, offsets are counted."""
    store = copied_store(tmp_path)
    (whole,) = answered(capsys, 0, str(store), "--key", KEY)
    assert 0 in whole["phy_offsets"]
    flip_bits(store / LOG, 88)
    (row,) = answered(capsys, 1, str(store), "--key", KEY)
    assert (whole["phy_offsets"], [0]) == (row["phy_offsets"], row["damaged"])
    assert "the checksum of the body is wrong at 0" in row["reason"]
    (message,) = answered(capsys, 1, str(store), "--phy-offset", "0")
    assert "the checksum of its body is wrong" in message["reason"]
    assert 0 == run(["lookup", str(store), "--phy-offset", "142"])
    assert (0,) == StoreReader(store).lookup_key(KEY).damaged
    assert () == StoreReader(store).lookup_key(KEY, raw=True).damaged


@pytest.mark.checks("RMQLOG-2")
@pytest.mark.parametrize("how", [("--raw",), ("--profile", "rocketmq-5.5.1")])
@pytest.mark.parametrize("place", [88, 4])
@pytest.mark.parametrize("output_format", ["text", "jsonl"])
def test_a_raw_answer_with_a_damaged_message(
    how: tuple[str, ...],
    place: int,
    output_format: str,
    tmp_path: Path,
    capsys: Capsys,
) -> None:
    """A broker's answer names a damaged message like any other, with exit code 0 and no word. The
    answer stays that of a broker; what is wrong with the body or the head is told on stderr.
    """
    store = copied_store(tmp_path)
    asked = ["lookup", str(store), "--key", KEY, *how, "--format", output_format]
    assert 0 == run(asked)
    whole = capsys.readouterr()
    assert "" == whole.err
    flip_bits(store / LOG, place)
    assert 1 == run(asked)
    shown = capsys.readouterr()
    assert whole.out == shown.out
    words = "the message is damaged" if place == 88 else "has no message at offset 0"
    assert f"segproof: {KEY}: " in shown.err
    assert words in shown.err
    assert "offset 0" in shown.err
    (store / LOG).unlink()  # the offsets are in no file: nothing is known of the messages
    assert 0 == run(asked)


@pytest.mark.checks("RMQIDX-34")
@pytest.mark.parametrize("change", ["swapped", "copied", "an index of another log"])
def test_an_index_that_does_not_fit_its_log_is_no_answer(
    change: str, tmp_path: Path, capsys: Capsys
) -> None:
    """ "No message has this key", with exit code 0: the entry led to a message with other keys."""
    store = long_store(tmp_path / "store")
    logs = sorted((store / "commitlog").iterdir())
    images = [path.read_bytes() for path in logs]
    message = StoreReader(store).look_message(int(logs[1].name))
    assert message is not None
    key = f"T#{dispatch_request_of(message).keys}"
    assert "reason" not in answered(capsys, 0, str(store), "--key", key)[0]
    if change == "swapped":
        logs[1].write_bytes(images[2])
        logs[2].write_bytes(images[1])
    elif change == "copied":
        logs[1].write_bytes(images[2])
    else:
        other = long_store(tmp_path / "other", topic="U")
        for path, new in zip(logs, sorted((other / "commitlog").iterdir()), strict=False):
            path.write_bytes(new.read_bytes())
    (row,) = answered(capsys, 1, str(store), "--key", key)
    assert "no message has this key" not in row["reason"]
