# SPDX-License-Identifier: Apache-2.0
"""Commit logs of RocketMQ made from nothing, for tests, workloads and benchmarks."""

import os
from collections.abc import Iterable
from dataclasses import replace

from segproof.files import Files
from segproof.rocketmq.commit_log import COMMIT_LOG, log_file_name
from segproof.rocketmq.message import MAGIC_V1, Message, blank_tail, encode_message
from segproof_harness.files.memory_files import write_file

FIRST_TIMESTAMP_MS = 1_700_000_000_000
BLANK_BYTES = 8
HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))


def message_of(
    topic: str = "T",
    properties: dict[str, str] | None = None,
    *,
    body: bytes = b"body",
    store_timestamp: int = FIRST_TIMESTAMP_MS,
    sys_flag: int = 0,
    queue_offset: int = 0,
    magic: int = MAGIC_V1,
) -> Message:
    """Return a message with IPv4 hosts; where it lies is given to it when it is written."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in (properties or {}).items())
    return Message(
        0, magic, 0, 0, 0, queue_offset, 0, sys_flag, store_timestamp, HOST, store_timestamp, HOST,
        0, 0, body, topic, text,
    )  # fmt: skip


def log_images(
    messages: Iterable[Message], mapped_file_size: int, start: int = 0
) -> dict[str, bytes]:
    """Return the files of a log with these messages, by name, the last one filled with zeros.

    Each message gets the offset at which it lies.
    """
    images: dict[str, bytes] = {}
    data = bytearray()
    for message in messages:
        size = len(encode_message(message))
        if len(data) + size + BLANK_BYTES > mapped_file_size:
            images[log_file_name(start)] = bytes(data + blank_tail(mapped_file_size - len(data)))
            start += mapped_file_size
            data.clear()
        data += encode_message(replace(message, physical_offset=start + len(data)))
    images[log_file_name(start)] = bytes(data).ljust(mapped_file_size, b"\0")
    return images


def write_log(
    files: Files,
    store_path: str,
    messages: Iterable[Message],
    mapped_file_size: int,
    start: int = 0,
) -> None:
    """Write the commit log of a store."""
    for name, data in log_images(messages, mapped_file_size, start).items():
        write_file(files, os.path.join(store_path, COMMIT_LOG, name), data)
