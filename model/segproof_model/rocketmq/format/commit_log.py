# SPDX-License-Identifier: Apache-2.0
"""The commit log of a store: its files, and the messages in them in order.

Upstream: RocketMQ 5.5.1, CommitLog.
Layout: `<store>/commitlog/<20 digits>`: the offset of the file's first byte in the log. A record
    does not cross the end of a file; what is left there begins with a size and the blank magic.
Laws: RMQLOG-1 to RMQLOG-3.
Not covered: writing.
"""

from collections.abc import Iterator
from itertools import pairwise

from segproof_model.language.files import Files, path_in
from segproof_model.language.integers import INT32_MAX, int32_at, int64_at
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse
from segproof_model.rocketmq.format.mapped_file_queue import MappedFileQueue
from segproof_model.rocketmq.format.message import BORN_HOST_V6, FAILED, CheckResult, Message

COMMIT_LOG = "commitlog"
STORE_TIME_END = 76
"""Where the store time of any record ends at the latest."""
MAPPED_FILE_SIZE = 1 << 30
"""Length of a file where nothing says another one."""


class CommitLog(MappedFileQueue):
    """The files of a commit log.

    >>> log = CommitLog(Files({"commitlog/" + "0" * 20: bytes(99)}), "")
    >>> log.mapped_file_size, list(log.scan())
    (99, [(0, CheckResult(success=False, size=-1, message=None))])
    """

    def __init__(self, files: Files, store_path: str, mapped_file_size: int | None = None) -> None:
        """Name the log; nothing is made. A size outside 1..2^31-1 is an invalid argument."""
        super().__init__(files, path_in(store_path, COMMIT_LOG), 0)
        size = self.inferred_size() if mapped_file_size is None else mapped_file_size
        if not 0 < size <= INT32_MAX:
            refuse(ErrorKind.INVALID_ARGUMENT)
        self.mapped_file_size = size

    def inferred_size(self) -> int:
        """Return what most lengths of files, and steps from one to the next, are.

        Of several sizes it is the smallest.
        """
        starts = self.starts()
        sizes = [after - before for before, after in pairwise(starts)]
        sizes += [len(self.image(start)) for start in starts]
        lawful = sorted(size for size in sizes if 0 < size <= INT32_MAX)
        return max(lawful, key=lawful.count, default=MAPPED_FILE_SIZE)

    @property
    def min_offset(self) -> int:
        """The offset of the first byte; -1 without files."""
        return next(iter(self.starts()), -1)

    @property
    def max_offset(self) -> int:
        """The offset behind the last file, whatever it holds; 0 without files."""
        return max((start + self.mapped_file_size for start in self.starts()), default=0)

    def scan(self, phy_offset: int | None = None) -> Iterator[tuple[int, CheckResult]]:
        """Yield (offset, result) from a record on, the first one for None (RMQLOG-3).

        A blank tail leads to the next file and is not told; the first failure is told last. An
        offset that no file takes gives nothing.
        """
        first = self.min_offset if phy_offset is None else phy_offset
        if self.start_of(first) is None:
            return
        check = self.kind(Message).check_message_and_return_size
        for start in self.starts():
            data, position = self.mapped(start), max(0, first - start)
            while start + self.mapped_file_size > first:
                result = check(data, position)
                if result.success and result.size == 0:
                    break
                yield start + position, result
                if not result.success:
                    return
                position += result.size

    def check(self, phy_offset: int, check_crc: bool = True) -> CheckResult:
        """Return what stands at an offset."""
        start = self.start_of(phy_offset)
        if start is None:
            return FAILED
        check = self.kind(Message).check_message_and_return_size
        return check(self.mapped(start), phy_offset - start, check_crc)

    def look_message(self, phy_offset: int) -> Message | None:
        """Return the record at an offset, with any checksum; None without a record."""
        return self.check(phy_offset, check_crc=False).message

    def pickup_store_timestamp(self, phy_offset: int, size: int) -> int:
        """Return the store time of a record of `size` bytes, unchecked; -1 where none can lie.

        A size that is too small for a record is -1 too; upstream it raises the index error.
        """
        start = self.start_of(phy_offset)
        if start is None:
            return -1
        record = self.mapped(start)[phy_offset - start :][:size]
        if not STORE_TIME_END <= size <= len(record):
            return -1
        born_host_size = self.kind(Message).host_size(int32_at(record, 36), BORN_HOST_V6)
        return int64_at(record, 48 + born_host_size)
