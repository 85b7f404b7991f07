# SPDX-License-Identifier: Apache-2.0
"""Verify beside a broker that writes: before each read of verify the store goes on by some steps.

The steps are a broker's: the record into the log, the unit into the queue, the keys into the index;
files of each are begun on the way. So each schedule is one of its seed, without threads.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from segproof.files import File, FileStatus
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import (
    MAGIC_V1,
    Message,
    blank_tail,
    dispatch_request_of,
    encode_message,
)
from segproof.verification import verify
from segproof_harness.files.memory_files import MemoryFiles, write_file

LOG_BYTES, QUEUE_BYTES = 2000, 20 * 16
SLOTS, ENTRIES = 5, 24
BEGIN_MS = 1_700_000_000_000
MESSAGES = 600


class _SteppedFile:
    def __init__(self, file: File, files: "SteppedFiles") -> None:
        self._file, self._files = file, files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def pread(self, size: int, position: int) -> bytes:
        """Read, a step later."""
        self._files.tick()
        return self._file.pread(size, position)


class SteppedFiles(MemoryFiles):
    """Files in memory in which something happens before each read."""

    step: Callable[[], None] | None = None

    def tick(self) -> None:
        """Let it happen; what it reads itself lets nothing happen."""
        step, self.step = self.step, None
        if step is not None:
            step()
        self.step = step

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file, a step later."""
        self.tick()
        opened: Any = super().open(path, writable=writable, create=create)
        if not writable:
            opened = _SteppedFile(opened, self)
        found: File = opened
        return found

    def status(self, path: str) -> FileStatus | None:
        """Look at a path, a step later."""
        self.tick()
        return super().status(path)

    def list_directory(self, path: str) -> list[str]:
        """List a folder, a step later."""
        self.tick()
        return super().list_directory(path)


class Broker:
    """Writes a store, step by step."""

    def __init__(self, files: SteppedFiles) -> None:
        self._files = files
        self._now = BEGIN_MS
        self._service = IndexService.open(
            "/store", SLOTS, ENTRIES, create=True, files=files, time=self._time
        )
        self._service.load(True)
        self._offset = 0
        self.sent = 0
        self._steps = self._all_steps()
        write_file(files, "/store/abort", b"")
        self._new_log(0)

    def _time(self) -> int:
        self._now += 1
        return self._now

    def go_on(self) -> None:
        """Do the next step."""
        next(self._steps, None)

    def _new_log(self, start: int) -> None:
        write_file(self._files, f"/store/commitlog/{start:020d}", bytes(LOG_BYTES))

    def _write(self, path: str, position: int, data: bytes) -> None:
        file = self._files.open(path, writable=True)
        file.pwrite(data, position)
        file.close()

    def _append(self, number: int) -> Message:
        """Write a record; before it does not fit into its file, the next file is there."""
        message = self._message(number)
        size = len(encode_message(message))
        start = self._offset // LOG_BYTES * LOG_BYTES
        left = start + LOG_BYTES - self._offset
        if size + 8 > left:
            self._new_log(start + LOG_BYTES)
            path = f"/store/commitlog/{start:020d}"
            self._write(path, self._offset - start, blank_tail(left))
            self._offset = start = start + LOG_BYTES
            message = self._message(number)
        record = encode_message(message)
        self._write(f"/store/commitlog/{start:020d}", self._offset - start, record)
        self._offset += len(record)
        return message

    def _message(self, number: int) -> Message:
        time_ms = BEGIN_MS + 400 * number
        properties = f"KEYS\x01k{number} all\x02UNIQ_KEY\x01u{number}\x02"
        return Message(
            0, MAGIC_V1, 0, number % 3, 0, number // 3, self._offset, 0, time_ms, bytes(8),
            time_ms, bytes(8), 0, 0, b"body", "T", properties,
        )  # fmt: skip

    def _unit(self, message: Message, size: int) -> None:
        at = message.queue_offset * 20
        start = at // QUEUE_BYTES * QUEUE_BYTES
        path = f"/store/consumequeue/T/{message.queue_id}/{start:020d}"
        if at == start:
            write_file(self._files, path, bytes(QUEUE_BYTES))
        unit = message.physical_offset.to_bytes(8, "big") + size.to_bytes(4, "big") + bytes(8)
        self._write(path, at - start, unit)

    def _all_steps(self) -> Iterator[None]:
        for number in range(MESSAGES):
            message = self._append(number)
            yield
            self._unit(message, len(encode_message(message)))
            yield
            self._service.build_index(dispatch_request_of(message))
            self.sent += 1
            yield


@pytest.mark.checks("RMQDISK-31", "RMQDISK-32", "RMQDISK-33", "RMQDISK-37")
@pytest.mark.parametrize("seed", range(6))
def test_verify_finds_no_defect_beside_a_broker(seed: int) -> None:
    """A store that grows is healthy at every moment, and so is the one that a kill leaves."""
    files = SteppedFiles(clock_ms=lambda: time.time_ns() // 10**6)
    broker, drawn = Broker(files), random.Random(seed)
    for _ in range(20 * seed):
        broker.go_on()
    before = broker.sent
    for _ in range(3):
        most = drawn.choice((1, 2, 9))

        def step(most: int = most) -> None:
            for _ in range(drawn.randrange(most + 1)):
                broker.go_on()

        files.step = step
        found = list(verify("/store", files=files, hash_slots=SLOTS))
        files.step = None
        assert [] == [str(one) for one in found if one.is_defect]
        found = list(verify("/store", files=files, hash_slots=SLOTS))
        assert [] == [str(one) for one in found if one.is_defect]
    assert broker.sent > before + 30
