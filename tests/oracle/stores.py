# SPDX-License-Identifier: Apache-2.0
"""Real message stores of RocketMQ, each in its own process; and stores that segproof writes."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from segproof.files import REAL_FILES
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.consume_queue import ConsumeQueue
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import BORN_HOST_V6, Message, dispatch_request_of
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, message_of, write_log
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.releases import release_named
from segproof_model.rocketmq.broker.index_service_releases import TagsAreNotIndexed
from segproof_model.rocketmq.broker.message_store import MessageStore as ModelStore
from segproof_model.rocketmq.broker.message_store import MessageStoreConfig as ModelConfig

NEWEST, OLD = "rocketmq-5.5.1", "rocketmq-4.9.8"
INT64_MAX = 2**63 - 1
ANSWER_SECONDS = 90.0
LOG_BYTES, QUEUE_BYTES, SLOTS, ENTRIES = 16_384, 2_000, 16, 40
"""A file of the log, of a queue; slots and entries of an index file: many files, long chains."""
CONFIG = {
    "mappedFileSizeCommitLog": LOG_BYTES,
    "mappedFileSizeConsumeQueue": QUEUE_BYTES,
    "maxHashSlotNum": SLOTS,
    "maxIndexNum": ENTRIES,
}
HOST_V6 = bytes(15) + b"\1" + (10911).to_bytes(4, "big")
LISTENING_ON_LOOPBACK = "0100007F"
"""How Linux writes 127.0.0.1, also at the end of an address of IPv6."""


class StoreProcess:
    """A real store: made, then asked by the names of the driver's methods; killed at the end."""

    def __init__(self, release: str, path: Path, config: dict[str, Any] | None = None) -> None:
        driver = Path(__file__).with_name("store_driver.py")
        options = json.dumps(CONFIG if config is None else config)
        self._scratch = tempfile.TemporaryDirectory()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill
        self._process = subprocess.Popen(
            [sys.executable, str(driver), release, str(path), options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "TMPDIR": self._scratch.name},
            bufsize=0,
        )
        self._unread = b""
        assert self.answer() == {"answer": "made"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def ask(self, name: str, **arguments: Any) -> Any:
        """Ask for one thing, and return its answer. Raises: AssertionError where it fails."""
        self.tell(name, **arguments)
        return self.answer()["answer"]

    def tell(self, name: str, **arguments: Any) -> None:
        """Ask without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": name, **arguments}).encode() + b"\n")

    def answer(self) -> Any:
        """Return the next line. Raises: AssertionError for a failure, or none in time."""
        assert self._process.stdout is not None
        end = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self._unread:
            left = end - time.monotonic()
            ready = select.select([self._process.stdout], [], [], max(left, 0.0))[0]
            part = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            assert part, f"the store does not answer: {self._last_words()}"
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        answer = json.loads(line)
        assert "failed" not in answer, answer["failed"]
        return answer

    def _last_words(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace")[-2000:]

    def stop(self) -> None:
        """Shut the store down cleanly, and wait for its process."""
        self.ask("stop")
        self._process.wait(ANSWER_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill it with SIGKILL, if it still runs, and wait for it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            if pipe is not None:
                pipe.close()
        self._scratch.cleanup()


# --- what is put


def draft(number: int, topics: Sequence[str] = ("Orders", "Orders-2")) -> dict[str, Any]:
    """Return message `number` for the real store: keys of its own, shared ones, colliding ones."""
    keys = [f"k{number}", "everyone", ("AaAa", "BBBB", "AaBB")[number % 3]]
    properties = {"UNIQ_KEY": f"U{number:04d}", "KEYS": " ".join(keys[: 1 + number % 4])}
    if number % 2:
        properties["TAGS"] = f"tag{number % 5}"
    if number % 7 == 3:
        properties["KEYS"] += " schl\u00fcssel-\U0001f600"
    if number % 11 == 5:
        properties = {"WAIT": "true"}
    return {
        "topic": topics[number % len(topics)],
        "queue_id": number // 2 % 2,
        "body": f"body {number} ".ljust(10 + number * 13 % 300, "."),
        "properties": properties,
    }


def keys_of(draft: dict[str, Any], release: str = NEWEST) -> list[str]:
    """Return the keys of a message as a release indexes them, each once: topic, #, key."""
    properties, topic = draft["properties"], draft["topic"]
    keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
    keys += properties.get("KEYS", "").split()
    if "TAGS" in properties and not release_named(release).has(TagsAreNotIndexed):
        keys.append(f"T#{properties['TAGS']}")
    return [f"{topic}#{key}" for key in dict.fromkeys(keys)]


# --- what segproof writes


def our_messages(count: int) -> list[Message]:
    """Return messages of two topics and four queues.

    Each sixth one comes from a slower clock, each ninth one from a producer with IPv6.
    """
    seen: dict[tuple[str, int], int] = {}
    made = []
    for number in range(count):
        one = draft(number)
        place = (one["topic"], one["queue_id"])
        seen[place] = seen.get(place, -1) + 1
        time = FIRST_TIMESTAMP_MS + 700 * number - (5000 if number % 6 == 5 else 0)
        message = message_of(
            one["topic"], one["properties"], body=one["body"].encode(),
            store_timestamp=time, queue_offset=seen[place],
        )  # fmt: skip
        message = replace(message, queue_id=one["queue_id"])
        if number % 9 == 4:
            message = replace(message, sys_flag=BORN_HOST_V6, born_host=HOST_V6)
        made.append(message)
    return made


def all_keys(count: int) -> list[str]:
    """Return every key of the first messages, each once."""
    return list(dict.fromkeys(key for number in range(count) for key in keys_of(draft(number))))


def write_store(
    path: Path,
    messages: Sequence[Message],
    *,
    queued: int | None = None,
    index: bool = True,
    log_bytes: int = LOG_BYTES,
) -> list[int]:
    """Write a store as after a clean exit; return the offset of each message.

    `queued` is how many messages the consume queues have (None: all); `index`: whether it is built.
    """
    write_log(REAL_FILES, str(path), messages, log_bytes)
    found = [result.message for _, result in CommitLog.open(path, log_bytes).scan()]
    written = [message for message in found if message is not None]
    assert len(written) == len(messages)
    queues: dict[tuple[str, int], ConsumeQueue] = {}
    for message in written[:queued]:
        place = (message.topic, message.queue_id)
        if place not in queues:
            queues[place] = ConsumeQueue.open(path, *place, QUEUE_BYTES, create=True)
        request = dispatch_request_of(message)
        queues[place].put_message_position_info(
            message.physical_offset, message.total_size, request.tags_code, message.queue_offset
        )
    ticks = iter(range(1_700_000_000_000, 1_800_000_000_000, 1000))
    with IndexService.open(path, SLOTS, ENTRIES, create=True, time=lambda: next(ticks)) as service:
        for message in written if index else ():
            service.build_index(dispatch_request_of(message))
        service.store_checkpoint.set_physic_msg_timestamp(written[-1].store_timestamp)
        service.store_checkpoint.set_logics_msg_timestamp(written[-1].store_timestamp)
    return [message.physical_offset for message in written]


# --- what lies on the disk


def index_bytes(path: Path) -> dict[str, bytes]:
    """Return the index files of a store, by name."""
    return {file.name: file.read_bytes() for file in sorted(path.glob("index/*"))}


def recovered_by_model(
    path: Path, release: Release, entries: int = ENTRIES, log_bytes: int = LOG_BYTES
) -> list[bytes]:
    """Return the index files, oldest first, that a release has after loading and recovering."""
    images = {
        f"s/{file.relative_to(path).as_posix()}": file.read_bytes()
        for file in path.rglob("*")
        if file.is_file()
    }
    files = Files(images, time.time_ns() // 1_000_000)
    store = release.kind(ModelStore)(files, "s", ModelConfig(SLOTS, entries, log_bytes))
    assert store.load()
    store.recover()
    return [files.image(name) for name in files if name.startswith("s/index/")]
