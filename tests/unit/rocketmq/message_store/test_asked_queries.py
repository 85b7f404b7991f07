# SPDX-License-Identifier: Apache-2.0
"""Which queries a real store is asked: not for what its recovery has cut off."""

from dataclasses import replace

import pytest

from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, log_images, message_of
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.rocketmq.message_store import LOG_FILE_SIZE, MESSAGE_STORE
from segproof_harness.structures.steps import Event
from segproof_model.language.files import Files
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.broker.message_store import MessageStore, MessageStoreConfig

BODY = 88


def first_log(damaged: int | None) -> bytes:
    """Return a log of two messages; the body of one of them has a flipped bit."""
    messages = [
        message_of("T", {"KEYS": "k"}, queue_offset=at, store_timestamp=FIRST_TIMESTAMP_MS)
        for at in range(2)
    ]
    (image,) = log_images([replace(one, queue_id=0) for one in messages], LOG_FILE_SIZE).values()
    data = bytearray(image)
    if damaged is not None:
        data[damaged * int.from_bytes(image[:4], "big") + BODY] ^= 1
    return bytes(data)


@pytest.mark.checks("RMQLOG-5")
@pytest.mark.parametrize(("damaged", "asked"), [(None, 2), (1, 1), (0, 0)])
def test_no_query_for_a_message_at_or_after_damage(damaged: int | None, asked: int) -> None:
    """A query for the damaged message itself was asked: the end of the log was where the scan
    failed. At offset 0 that was so for every log that is damaged from its begin."""
    files = Files({"commitlog/" + "0" * 20: first_log(damaged)})
    store = SEGPROOF.kind(MessageStore)(files, "", MessageStoreConfig(4, 200, LOG_FILE_SIZE))
    size = int.from_bytes(first_log(None)[:4], "big")
    answers = [((at,), 0, 0) for at in (0, size)]
    events = [Event(store, Operation("query_message", {}), store, Outcome(one)) for one in answers]
    assert [True] * asked + [False] * (2 - asked) == [
        MESSAGE_STORE.is_asked(event) for event in events
    ]
