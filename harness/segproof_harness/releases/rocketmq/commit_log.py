# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's CommitLog as the harness calls it: what it makes of the bytes at a place of a file.

Upstream: org.apache.rocketmq.store.CommitLog, of a store that is never loaded: the bytes from a
place to the end of its file are given to the class as a recovery does it.
What is not asked: the log as a whole, which only a loaded store has. The buffer that newer releases
keep for the next record is switched off, by which damage would be told otherwise behind a record
that is longer.
"""

import os
from typing import Any, ClassVar, NamedTuple

from jpype import JBoolean, JInt

from segproof.rocketmq.message import DispatchRequest
from segproof_harness.releases.jvm import Adapter
from segproof_harness.releases.rocketmq.idle_store import store_of

DUPLICATES_SINCE = (5, 0)
"""From here on the third argument asks for the information of duplicates; before, for the body."""


class Checked(NamedTuple):
    """What the class made of a place."""

    success: bool
    size: int
    request: DispatchRequest | None


class CommitLog(Adapter):
    """The commit log."""

    left_out: ClassVar[frozenset[str]] = frozenset({
        "scan", "look_message", "pickup_store_timestamp"
    })  # fmt: skip
    unobserved: ClassVar[frozenset[str]] = frozenset({
        "mapped_file_size", "min_offset", "max_offset"
    })  # fmt: skip

    def __init__(self, folder: str, mapped_file_size: int) -> None:
        self._folder = folder
        self._size = mapped_file_size
        store = store_of(self.jvm)
        if hasattr(store.options, "setMaxCheckMessageReuseBufferSize"):
            store.options.setMaxCheckMessageReuseBufferSize(JInt(0))
        self._log = store.java.getCommitLog()
        self._third = self.jvm.release.number < DUPLICATES_SINCE
        self._wrap = self.jvm.java("java.nio.ByteBuffer").wrap

    @classmethod
    def open(cls, store_path: str, mapped_file_size: int, *, files: Any) -> "CommitLog":
        """Remember where the files lie."""
        return cls(f"{store_path}/commitlog", mapped_file_size)

    def check(self, phy_offset: int, check_crc: bool) -> Checked:
        """Call checkMessageAndReturnSize."""
        buffer = self._wrap(self.jvm.to_bytes(self._bytes_at(phy_offset)))
        flags = JBoolean(check_crc), JBoolean(self._third)
        found = self._log.checkMessageAndReturnSize(buffer, *flags)
        success, size = bool(found.isSuccess()), int(found.getMsgSize())
        return Checked(success, size, _request_of(found) if success and size > 0 else None)

    def _bytes_at(self, phy_offset: int) -> bytes:
        """Return what lies from a place to the end of its file; nothing where no file is."""
        names = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        start = max((int(name) for name in names if int(name) <= phy_offset), default=None)
        if start is None:
            return b""
        with open(f"{self._folder}/{start:020d}", "rb") as file:
            return file.read()[: self._size][phy_offset - start :]


def _request_of(found: Any) -> DispatchRequest:
    """Return a request of Java as ours."""
    pairs = found.getPropertiesMap()
    return DispatchRequest(
        str(found.getTopic()),
        int(found.getCommitLogOffset()),
        int(found.getMsgSize()),
        int(found.getTagsCode()),
        int(found.getStoreTimestamp()),
        int(found.getConsumeQueueOffset()),
        _text(found.getKeys()),
        _text(found.getUniqKey()),
        int(found.getSysFlag()),
        int(found.getPreparedTransactionOffset()),
        None if pairs is None else tuple((str(pair.getKey()), str(pair.getValue()))
            for pair in pairs.entrySet()),
    )  # fmt: skip


def _text(text: Any) -> str | None:
    return None if text is None else str(text)
