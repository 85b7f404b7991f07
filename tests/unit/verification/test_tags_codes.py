# SPDX-License-Identifier: Apache-2.0
"""The tags code of a unit of a queue, compared with the tags of its message."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.repair import salvage_store
from segproof.rocketmq.consume_queue import EXTENSION_MAX, UNIT_BYTES, read_units
from segproof.rocketmq.key_hash import hash_code
from segproof.verification import verify
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import log_images, message_of
from segproof_harness.laws.judged_store import StoreJudge
from segproof_tests.reported_findings import contents
from segproof_tests.store_files import QUEUE, copied_store

CODE_AT = 12
NUMBER = 5


def set_code(path: Path, number: int, code: int) -> None:
    """Give a unit of a queue another tags code."""
    data = bytearray(path.read_bytes())
    at = number * UNIT_BYTES + CODE_AT
    data[at : at + 8] = code.to_bytes(8, "big", signed=True)
    path.write_bytes(data)


@pytest.mark.checks("RMQDISK-50")
@pytest.mark.parametrize(
    ("code", "is_wrong"),
    [
        (None, False), (1, True), (12345, True), (-1, True), (1 << 40, True),
        (EXTENSION_MAX + 1, True), (EXTENSION_MAX, False), (-(1 << 63), False),
    ],
)  # fmt: skip
def test_a_wrong_tags_code_is_told_and_not_saved(
    code: int | None, is_wrong: bool, tmp_path: Path
) -> None:
    """Any other code than that of the message's tags passed `verify --deep`, and `salvage` copied
    it. From the addresses of extension files on, no code can be told. The model agrees."""
    store = copied_store(tmp_path)
    before = contents(store)
    if code is not None:
        set_code(store / QUEUE, NUMBER, code)
    for deep in (False, True):
        found = [one for one in verify(store, deep=deep) if one.is_defect]
        assert [(NUMBER * UNIT_BYTES, str(code))] * is_wrong == [
            (one.position, one.actual) for one in found if one.law == "RMQDISK-50"
        ]
        assert len(found) == is_wrong
    assert is_wrong is StoreJudge(contents(store), 16).breaks("RMQDISK-50")
    told = salvage_store(store, tmp_path / "out")
    assert told.is_whole
    assert before[QUEUE] == (tmp_path / "out" / QUEUE).read_bytes()


def store_with(
    folder: Path, topic: str, properties: Sequence[dict[str, str]], codes: Sequence[int]
) -> Path:
    """Write a store of one queue whose units have these tags codes."""
    messages = [message_of(topic, one, queue_offset=at) for at, one in enumerate(properties)]
    (image,) = log_images([replace(one, queue_id=0) for one in messages], 2000).values()
    units, at = b"", 0
    for code in codes:
        size = int.from_bytes(image[at : at + 4], "big")
        units += at.to_bytes(8, "big") + size.to_bytes(4, "big")
        units += code.to_bytes(8, "big", signed=True)
        at += size
    name = "0" * 20
    write_file(REAL_FILES, str(folder / "commitlog" / name), image)
    write_file(
        REAL_FILES, str(folder / "consumequeue" / topic / "0" / name), units.ljust(400, b"\0")
    )
    return folder


@pytest.mark.checks("RMQDISK-50")
def test_delayed_messages_have_the_time_of_delivery(tmp_path: Path) -> None:
    """Only in the broker's own topic, and only with a delay level; `salvage` keeps that time."""
    tags = {"TAGS": "a", "KEYS": "k"}
    properties = [tags | {"DELAY": "3"}, tags, tags]
    codes = [1_700_000_000_000, hash_code("a"), 7]
    for topic, wrong in (("SCHEDULE_TOPIC_XXXX", [40]), ("T", [0, 40])):
        store = store_with(tmp_path / topic, topic, properties, codes)
        found = [one for one in verify(store) if one.law == "RMQDISK-50"]
        assert wrong == [one.position for one in found]
        assert StoreJudge(contents(store), 16).breaks("RMQDISK-50")
        salvage_store(store, tmp_path / f"{topic}-saved", hash_slot_num=4, index_num=20)
        queue = tmp_path / f"{topic}-saved" / "consumequeue" / topic / "0" / ("0" * 20)
        units = read_units(queue.read_bytes())
        delivery = codes[0] if topic.startswith("SCHEDULE") else hash_code("a")
        assert delivery == units[0].tags_code
