# SPDX-License-Identifier: Apache-2.0
"""A small store that a broker wrote, and copies of it and of others."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from segproof.files import REAL_FILES
from segproof.repair import rebuild_index
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.message import STORE_HOST_V6, Message, dispatch_request_of
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof.stretches.rocketmq.candidates import FILLER_TOPIC
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, message_of, write_log
from segproof_harness.files.shipped_directories import ROCKETMQ

__all__ = [
    "ENTRIES",
    "INDEX",
    "LOG",
    "LOG_BYTES",
    "OURS",
    "QUEUE",
    "SLOTS",
    "SMALL",
    "copied_store",
    "drawn_messages",
    "long_store",
    "messages_of",
]

SMALL = "small-4.9.8"
INDEX = "index/20261121011453849"
LOG = "commitlog/00000000000000000000"
QUEUE = "consumequeue/TopicTest/0/00000000000000000000"
"""Files of that store."""
LOG_BYTES = 1500
"""Length of each log file of a store that is written here."""
OURS = (bytes((127, 0, 0, 1)) + (10911).to_bytes(4, "big"), b"b")
"""The address of the broker of such a store, and the byte of all bodies."""
QUEUE_FILE_BYTES = 20 * 8
SLOTS, ENTRIES = 16, 64
"""Of each index file of such a store."""


def copied_store(target: Path, name: str = SMALL) -> Path:
    """Return a copy, in `target`, of the store that a broker wrote."""
    return shutil.copytree(
        ROCKETMQ / name / "store", target / "store", copy_function=shutil.copyfile
    )


def logs(store: Path) -> list[Path]:
    """Return the files of the log in order."""
    return sorted((store / "commitlog").iterdir())


def write_config(store: Path, text: str, name: str = "consumerOffset.json") -> None:
    """Write a file of `config`."""
    (store / "config").mkdir(exist_ok=True)
    (store / "config" / name).write_text(text)


def keep(store: Path, parts: str) -> None:
    """Remove the index or the queues, unless they are named."""
    for name in ("index", "consumequeue"):
        if name not in parts:
            shutil.rmtree(store / name)


def drawn_messages(count: int, topic: str = "T", step: int = 37) -> Iterator[Message]:
    """Yield messages of three queues, with keys and tags; `step` makes their sizes."""
    numbers = [0, 0, 0]
    for number in range(count):
        queue = number * 7 % 3
        message = message_of(
            topic, {"KEYS": f"k{number}", "TAGS": "t"}, body=b"b" * (number * step % 200 + 1),
            queue_offset=numbers[queue], store_timestamp=FIRST_TIMESTAMP_MS + 1000 * number,
        )  # fmt: skip
        numbers[queue] += 1
        yield replace(message, queue_id=queue)


def messages_of(store: Path, file_size: int | None = None) -> dict[int, Message]:
    """Return the messages of a log by the place of each, without those that fill gaps."""
    found = CommitLog.open(store, file_size).scan()
    messages = {at: one.message for at, one in found if one.message is not None}
    return {at: one for at, one in messages.items() if not FILLER_TOPIC.startswith(one.topic)}


def _sent_to(host: bytes, body: bytes, messages: Iterator[Message]) -> Iterator[Message]:
    """Yield messages of the same sizes that the broker at `host` stored, with another body."""
    flag = STORE_HOST_V6 if len(host) > 8 else 0
    for one in messages:
        yield replace(one, body=body * len(one.body), store_host=host, sys_flag=flag)


def long_store(
    store: Path, count: int = 24, topic: str = "T", step: int = 37, sent: tuple[bytes, bytes] = OURS
) -> Path:
    """Write a store whose log has several files, with queues, an index and a checkpoint.

    `sent` are the address of its broker, and the byte of all bodies.
    """
    for name, image in _long_store(count, topic, step, sent).items():
        write_file(REAL_FILES, str(store / name), image)
    return store


@cache
def _long_store(count: int, topic: str, step: int, sent: tuple[bytes, bytes]) -> dict[str, bytes]:
    """Return the files of such a store by their paths in it: many tests begin with the same one."""
    with TemporaryDirectory() as folder:
        store = _written_store(
            Path(folder), _sent_to(*sent, drawn_messages(count, topic, step)), topic
        )
        return {
            str(path.relative_to(store)): path.read_bytes()
            for path in sorted(store.rglob("*"))
            if path.is_file()
        }


def _written_store(store: Path, messages: Iterator[Message], topic: str) -> Path:
    write_log(REAL_FILES, str(store), messages, LOG_BYTES)
    queues = [
        ConsumeQueue.open(store, topic, queue, QUEUE_FILE_BYTES, create=True) for queue in range(3)
    ]
    last = 0
    for at, result in CommitLog.open(store).scan():
        message = result.message
        if message is not None:
            request = dispatch_request_of(message)
            queues[message.queue_id].put_message_position_info(
                at, message.total_size, request.tags_code, message.queue_offset
            )
            last = message.store_timestamp
    for queue in queues:
        queue.close()
    rebuild_index(store, None, SLOTS, ENTRIES, in_place=True)
    with StoreCheckpoint.open(store / "checkpoint", create=True) as checkpoint:
        checkpoint.set_physic_msg_timestamp(last)
        checkpoint.set_logics_msg_timestamp(last)
        checkpoint.flush()
    return store
