# SPDX-License-Identifier: Apache-2.0
"""A commit log with the sound messages of another one, each at its own offset.

A broker finds messages by their offsets, so each stays where it was. A reader of the log goes from
message to message, so no bytes between them may stop it. A gap before a sound message of the same
file is filled with messages that say that they are rolled back: a broker passes them over, and no
queue and no index gets them. A gap up to the end of a file becomes its blank end, and a file that
is missing one that is blank from its begin on.

Upstream: RocketMQ 4.7.0 to 5.5.1: CommitLog.checkMessageAndReturnSize,
CommitLogDispatcherBuildConsumeQueue, IndexService.buildIndex.
Laws: RMQLOG-1 to RMQLOG-3, RMQSVC-13.
"""

import os
from contextlib import closing

from segproof.errors import SegproofError
from segproof.files import File, Files
from segproof.hints import writes
from segproof.layouts.rocketmq import MESSAGE, MESSAGE_BYTES_MIN
from segproof.rocketmq.commit_log import COMMIT_LOG, log_file_name
from segproof.rocketmq.message import (
    MAGIC_V1,
    ROLLED_BACK,
    Message,
    blank_head,
    encode_message,
)
from segproof.stretches.rocketmq.candidates import FILLER_TOPIC

FILLER_BYTES_MAX = 1 << 20
FILLER_TAIL_BYTES = 1 + len(FILLER_TOPIC) + 2
"""The topic with its length, and the length of the properties."""
MISSING_FILES_MAX = 1024
"""So many files are made for those that are missing: a name may say any offset."""
HOST = bytes(8)


def fits_between(size_bytes: int) -> bool:
    """Return whether nothing, or a message, has room in so many bytes."""
    return size_bytes == 0 or size_bytes >= MESSAGE_BYTES_MIN


class CommitLogCopy:
    """Takes sound messages in the order of their offsets; each file is durable when it ends."""

    def __init__(self, store: str, mapped_file_size: int, files: Files) -> None:
        self.folder = os.path.join(store, COMMIT_LOG)
        self._size = mapped_file_size
        self._files = files
        self._file: File | None = None
        self._start = 0
        self._end = 0
        """The offset behind what the present file holds."""
        self._time = 0

    def put(self, start: int, offset: int, data: bytes | memoryview, time: int) -> list[int]:
        """Copy messages to an offset, in the file that begins at `start`.

        Return the offsets of the messages that fill the room before them.
        `time` is the store time of the first one, and `fits_between` holds of the room before it.
        Raises: SegproofError where too many files are missing before this one; OSError.
        """
        if self._file is None or self._start != start:
            self._begin(start)
        file = self._file
        assert file is not None
        fillers = self._fill(file, offset, time)
        file.pwrite(data, offset - self._start)
        self._end = offset + len(data)
        return fillers

    def restore(self, start: int, offset: int, store_timestamp: int) -> None:
        """Write a store time to an offset in the file that begins at `start`; before `close`."""
        data, file = store_timestamp.to_bytes(8, "big", signed=True), self._file
        assert file is not None
        if start == self._start:
            file.pwrite(data, offset - start)
            return
        path = os.path.join(self.folder, log_file_name(start))
        with closing(self._files.open(path, writable=True)) as earlier:
            earlier.pwrite(data, offset - start)
            earlier.sync()

    def close(self) -> None:
        """End the last file: zeros follow its messages."""
        if self._file is not None:
            self._file.truncate(self._size)
            self._file.sync()
            self._file.close()
            self._file = None
        if self._files.status(self.folder) is not None:
            self._files.sync_directory(self.folder)

    def _begin(self, start: int) -> None:
        if self._file is None:
            self._files.make_directory(self.folder)
        else:
            following = self._start + self._size
            if start - following > MISSING_FILES_MAX * self._size:
                raise SegproofError(
                    f"{(start - following) // self._size} files of the log are missing before the"
                    f" one that begins at offset {start}",
                    path=os.path.join(self.folder, log_file_name(start)),
                    hint=writes(
                        "copy the store without the files that do not belong there, and save that"
                    ),
                )
            self._end_file()
            for missing in range(following, start, self._size):
                self._open(missing)
                self._end_file()
        self._open(start)

    def _open(self, start: int) -> None:
        path = os.path.join(self.folder, log_file_name(start))
        self._file = self._files.open(path, writable=True, create=True)
        self._start = self._end = start

    def _end_file(self) -> None:
        """Give a file its blank end."""
        file = self._file
        assert file is not None
        position = self._end - self._start
        file.pwrite(blank_head(self._size - position), position)
        file.truncate(self._size)
        file.sync()
        file.close()

    def _fill(self, file: File, end: int, time: int) -> list[int]:
        at, fillers = self._end, []
        while at < end:
            size = min(end - at, FILLER_BYTES_MAX)
            if not fits_between(end - at - size):
                size -= MESSAGE_BYTES_MIN
            data = _filler(at, size, time)
            tail = size - FILLER_TAIL_BYTES
            # The zeros of its body stay a hole of the file.
            file.pwrite(data[: MESSAGE.size], at - self._start)
            file.pwrite(data[max(tail, MESSAGE.size) :], at - self._start + max(tail, MESSAGE.size))
            fillers.append(at)
            at += size
        return fillers


def _filler(offset: int, size: int, time: int) -> bytes:
    topic = FILLER_TOPIC[: size - MESSAGE_BYTES_MIN]
    body = bytes(size - MESSAGE_BYTES_MIN - len(topic))
    return encode_message(
        Message(
            0, MAGIC_V1, 0, 0, 0, 0, offset, ROLLED_BACK, time, HOST, time, HOST, 0, 0, body, topic,
            "",
        )
    )  # fmt: skip
