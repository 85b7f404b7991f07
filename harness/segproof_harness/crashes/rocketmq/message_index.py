# SPDX-License-Identifier: Apache-2.0
"""The key index of a store as a world of crashes: each message is found by its keys, and once.

The log is durable from the beginning, and its messages are told to the index one after the other.
After a crash the store is loaded and recovered with `message_index_safe`.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from segproof.rocketmq.message import Message, dispatch_request_of
from segproof.rocketmq.message_store import MessageStore, MessageStoreConfig
from segproof_harness.crashes.worlds import Fault, Operation
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS, message_of, write_log
from segproof_harness.machine.simulated_files import SimulatedFiles

__all__ = ["Found", "MessageIndexWorld"]

STORE = "/data/s"
LOG_FILE_BYTES = 1000
MESSAGES = 24
SLOTS = 4
NOW_MS, LATER_MS = 10**12, 10**12 + 99
NEVER = 2**63 - 1


class Found(NamedTuple):
    """What a load after a crash found."""

    covered_ms: int
    """The index time of the checkpoint, before the recovery."""
    kept: Mapping[str, tuple[int, ...]]
    """The offsets of each key in the index files that the load kept, before the recovery."""
    answers: Mapping[str, tuple[int, ...]]
    """The offsets of each key after the recovery."""


class MessageIndexWorld:
    """One store; its class may be another implementation."""

    weights: dict[str, int] = {  # noqa: RUF012 -- nobody changes it
        "put": 6, "queue": 2, "flush": 1,
    }  # fmt: skip

    next_steps: tuple[Operation, ...] = (Operation("queue", 1), Operation("flush", 1))

    store_class: type[MessageStore] = MessageStore

    def __init__(self, draw: random.Random) -> None:
        self.config = MessageStoreConfig(
            SLOTS, draw.choice((4, 7)), LOG_FILE_BYTES, message_index_safe=True
        )
        step_ms = draw.choice((0, 400, 1000, 5000))
        self._log = [
            message_of(
                "T",
                {"KEYS": draw.choice((f"k{number % 5}", f"k{number} m{number % 3}"))},
                store_timestamp=FIRST_TIMESTAMP_MS + step_ms * number,
            )
            for number in range(MESSAGES)
        ]
        self._told = self._begun = 0

    def _opened(self, files: MemoryFiles, now_ms: int) -> MessageStore:
        store = self.store_class.open(
            STORE, self.config, create=True, files=files, time=lambda: now_ms
        )
        if not store.load():
            raise OSError("the store is not loaded")
        return store

    # --- the life before a crash

    def begin(self, files: SimulatedFiles) -> None:
        """Write a log, and the marker of a store that runs."""
        write_log(files, STORE, self._log, LOG_FILE_BYTES)
        write_file(files, f"{STORE}/abort", b"")
        files.make_directory(f"{STORE}/index")
        self._store = self._opened(files, NOW_MS)
        files.settle()
        found = [result.message for _, result in self._store.commit_log.scan()]
        self._messages = [message for message in found if message is not None]

    def apply(self, operation: Operation) -> None:
        """Tell the index of messages, write the checkpoint of the queues, or flush a file."""
        service, checkpoint = self._store.index_service, self._store.store_checkpoint
        if operation.name == "put":
            for message in self._messages[self._told : self._told + 1 + operation.number % 3]:
                self._begun = self._told + 1
                self._store.do_dispatch(dispatch_request_of(message))
                self._told += 1
        elif operation.name == "flush":
            service.flush(len(service.index_files) - 1)
        elif self._told:
            last = self._messages[self._told - 1]
            checkpoint.set_physic_msg_timestamp(last.store_timestamp)
            checkpoint.set_logics_msg_timestamp(last.store_timestamp)
            if operation.number % 2:
                checkpoint.set_logics_physical_offset(last.physical_offset)
            checkpoint.flush()

    def state(self) -> int:
        """Return how many messages the index was told of; the log has all of them."""
        return self._told

    def is_closed(self) -> bool:
        """Return False: a store is closed by nobody but its user."""
        return False

    def live_faults(self, before: int, after: int) -> Iterator[Fault]:
        """Yield the keys that do not lead to a message that was told, or lead to one twice."""
        answers = self._answers(self._store)
        for number, message in enumerate(self._messages):
            for key in self._keys_of(message):
                count = answers[key].count(message.physical_offset)
                is_open = before <= number < max(after, self._begun)
                if count > 1 or (not is_open and count != (number < before)):
                    words = f"{key} leads to message {number} {count} times"
                    yield Fault("wrong key", f"{words}, of {before} then {after} that were told")

    def open_again(self) -> None:
        """Do nothing: it is open."""

    # --- the life after it

    def load(self, files: MemoryFiles) -> tuple[MessageStore, int, Mapping[str, tuple[int, ...]]]:
        """Load and recover the store."""
        store = self._opened(files, LATER_MS)
        covered_ms = store.store_checkpoint.index_msg_timestamp
        kept = self._answers(store)
        store.recover()
        return store, covered_ms, kept

    def look_at(
        self,
        loaded: tuple[MessageStore, int, Mapping[str, tuple[int, ...]]],
        files: MemoryFiles,
    ) -> Found:
        """Ask for each key."""
        store, covered_ms, kept = loaded
        with store:
            return Found(covered_ms, kept, self._answers(store))

    def _keys_of(self, message: Message) -> list[str]:
        fields = [one.partition("\x01") for one in message.properties.split("\x02")]
        return next(value.split() for name, _, value in fields if name == "KEYS")

    def _answers(self, store: MessageStore) -> dict[str, tuple[int, ...]]:
        keys = {key for message in self._log for key in self._keys_of(message)}
        query = store.index_service.query_offset
        return {key: query("T", key, 64, 0, NEVER).phy_offsets for key in sorted(keys)}

    def judge(self, found: Found, before: int, after: int) -> Sequence[Fault]:
        """Return what is missing, or there twice; the recovery enters what the crash has cost."""
        return [*self._lost(found), *self._wrong(found)]

    def _lost(self, found: Found) -> Iterator[Fault]:
        for message in self._messages:
            if message.store_timestamp < found.covered_ms:
                for key in self._keys_of(message):
                    if message.physical_offset not in found.kept[key]:
                        words = f"{key} does not lead to {message.physical_offset}"
                        yield Fault("lost key", f"{words}, stored before {found.covered_ms}")

    def _wrong(self, found: Found) -> Iterator[Fault]:
        for key, answer in found.answers.items():
            right = [one.physical_offset for one in self._messages if key in self._keys_of(one)]
            if sorted(answer) != right:
                is_twice = len(set(answer)) < len(answer)
                words = f"{key} leads to {sorted(answer)}, and by the log to {right}"
                yield Fault("key twice" if is_twice else "wrong key", words)
