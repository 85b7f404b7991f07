# SPDX-License-Identifier: Apache-2.0
"""A store of RocketMQ as a release finds it, read through the model.

The index files are read into memory and loaded as after a clean stop; nothing is checked first, so
a damaged chain answers as the release would, or ends in the error that the model names.

Upstream: RocketMQ IndexService.queryOffset, CommitLog.checkMessageAndReturnSize.
Laws: RMQSVC-17 to RMQSVC-20, RMQLOG-3.
Not covered: files beyond memory.
"""

import os
from functools import cached_property
from typing import Any

from segproof.errors import CorruptIndexError, SegproofError
from segproof.files import REAL_FILES, Files
from segproof.reading.lookup_answers import LookupStep
from segproof.reading.store_reader import NO_INDEX, NOT_FOUND, KeyAnswer, StoreReader
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.geometry import find_geometries
from segproof.rocketmq.index_table import Geometry
from segproof_harness.reading.partition_under_profile import answered, read_whole
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files as ModelFiles
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.format.message import Message

RECORD_LIMIT_BYTES = 64 << 20
INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1


def contents(path: str, files: Files, limit: int | None = None, position: int = 0) -> bytes:
    """Return the bytes of a file, at most `limit` of them.

    Raises: OSError; TooLargeError where all are asked for and no release maps so many.
    """
    if limit is None:
        return read_whole(path, INT32_MAX, files)
    file = files.open(path)
    try:
        return file.pread(limit, position)
    finally:
        file.close()


class StoreAsFound:
    """Answers as one release. Raises as `StoreReader`."""

    steps: tuple[LookupStep, ...] = ()
    """None: a release does not tell its steps."""

    def __init__(
        self,
        path: str,
        release: Release,
        *,
        hash_slot_num: int | None = None,
        files: Files = REAL_FILES,
    ) -> None:
        self._reader = StoreReader(path, hash_slot_num=hash_slot_num, files=files)
        self._release = release
        self._slots = hash_slot_num
        self._files = files
        self.path = path

    @property
    def log(self) -> CommitLog | None:
        """The commit log, or None where there is none."""
        return self._reader.log

    def damage_at(self, phy_offset: int) -> str | None:
        """Return as `StoreReader.damage_at`: a release answers a damaged message like any other."""
        return self._reader.damage_at(phy_offset)

    @cached_property
    def service(self) -> IndexService:
        """The service that has loaded the files. Raises: SegproofError, OSError."""
        paths = self._reader.index_paths()
        geometry = self._geometry(paths)
        images = {f"index/{os.path.basename(one)}": self._image(one) for one in paths}
        service = self._release.kind(IndexService)(ModelFiles(images), "", *geometry)
        with answered(self.path):
            service.load(True)
        return service

    def _image(self, path: str) -> bytes:
        """Return the bytes of an index file. Raises: CorruptIndexError for a file of over 2 GiB."""
        status = self._files.status(path)
        if status is not None and status.size_bytes > INT32_MAX:
            raise CorruptIndexError(
                f"no index file has {status.size_bytes} bytes", law="RMQDISK-1", path=path
            )
        return contents(path, self._files)

    def _geometry(self, paths: list[str]) -> Geometry:
        """Return what a broker would be configured for: that of the newest file that tells it."""
        names = [os.path.basename(one) for one in paths]
        folder = os.path.dirname(paths[0]) if paths else ""
        found = find_geometries(folder, names, hash_slot_num=self._slots, files=self._files)
        for name in reversed(names):
            answer = found.get(name)
            if answer is not None and answer.geometry is not None:
                return answer.geometry
        raise SegproofError(
            "no index file tells how many slots it has",
            path=self.path,
            hint="say it with --hash-slots",
        )

    def lookup_key(
        self,
        target: str,
        begin: int = 0,
        end: int = INT64_MAX,
        max_num: int = 64,
        *,
        raw: bool = False,
        explain: bool = False,
    ) -> KeyAnswer:
        """Return what `queryOffset` answers: raw, whatever `raw` says, and with its limit of 64.

        Raises: ModelRaisedError; SegproofError; OSError.
        """
        topic, _, key = target.partition("#")
        if not self._reader.index_paths():
            return KeyAnswer(target, (), NO_INDEX)
        with answered(self.path):
            found = self.service.query_offset(topic, key, max_num, begin, end).phy_offsets
        return KeyAnswer(target, found, None if found else NOT_FOUND)

    def look_message(self, phy_offset: int) -> Any:
        """Return the record that the release finds at an offset of the log, or None."""
        if self.log is None:
            raise SegproofError("there is no commit log here", path=self.path)
        log_file = self.log.file_of(phy_offset)
        if log_file is None:
            return None
        position = phy_offset - log_file.start
        head = contents(log_file.path, self._files, 8, position)
        size = int.from_bytes(head[:4], "big", signed=True)
        left = log_file.size_bytes - position
        wanted = min(max(size, 8), RECORD_LIMIT_BYTES, max(left, 0))
        data = contents(log_file.path, self._files, wanted, position)
        return self._release.kind(Message).check_message_and_return_size(data, 0, False).message
