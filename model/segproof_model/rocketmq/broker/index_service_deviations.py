# SPDX-License-Identifier: Apache-2.0
"""What segproof does otherwise on purpose with a store's index and its checkpoint.

One that concerns the index file too stands here.
"""

from operator import attrgetter

from segproof_model.language.behaviours import Behaviour, override
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse
from segproof_model.rocketmq.broker import index_service, store_checkpoint
from segproof_model.rocketmq.broker.store_checkpoint import SAFETY_MS
from segproof_model.rocketmq.format import index_file
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.message import DispatchRequest


class SafeTimeDoesNotWrap(Behaviour):
    """The safety of 3 s is taken from the least time without wrapping at 64 bits."""

    laws = ("RMQCKPT-4",)
    of_segproof = True

    class StoreCheckpoint(store_checkpoint.StoreCheckpoint):
        """The checkpoint."""

        @property
        @override
        def min_timestamp(self) -> int:
            return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MS)


class OpeningReadsHeader(Behaviour):
    """Opening an existing index file reads its header, so that a full one that is made anew stays
    full.
    """

    laws = ("RMQIDX-7", "RMQIDX-11")
    of_segproof = True

    class IndexFile(index_file.IndexFile):
        """The index file."""

        @override
        def map_file(self) -> None:
            is_new = self.file_name not in self.files
            super().map_file()
            if not is_new:
                self.load()

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def check_room(self) -> None:
            super().check_room()
            if self.index_files[-1].file_name == self.new_path(self.files.now_ms):
                refuse(ErrorKind.ENDLESS)


class NamesAreDistinct(Behaviour):
    """A new file whose name is taken gets the next free one."""

    laws = ("RMQSVC-9",)
    of_segproof = True

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def new_path(self, now_ms: int) -> str:
            path = super().new_path(now_ms)
            while any(name == path or name.startswith(f"{path}/") for name in self.files):
                now_ms += 1
                path = super().new_path(now_ms)
            return path


class FailedCreationIsTold(Behaviour):
    """Where a file cannot be created, the error says why."""

    laws = ("RMQSVC-8",)
    of_segproof = True

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def create_file(self, path: str, end_phy_offset: int, end_timestamp: int) -> IndexFile:
            return self.open_file(path, end_phy_offset, end_timestamp)


class MessageIsIndexedOnce(Behaviour):
    """The entries that a message has are not written again."""

    laws = ("RMQSVC-12",)
    of_segproof = True

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def keys_of(self, request: DispatchRequest) -> list[str]:
            keys, offset = super().keys_of(request), request.commit_log_offset
            if offset != self.index_files[-1].end_phy_offset:
                return keys
            entries = [entry for file in self.index_files for entry in file.entries_list()]
            while entries and entries[-1].phy_offset == offset:
                entries.pop()
                keys = keys[1:]
            return keys


class EmptyFileHidesNothing(Behaviour):
    """A query passes over files without entries, and over those that were destroyed."""

    laws = ("RMQSVC-19",)
    of_segproof = True

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def files_asked(self) -> list[IndexFile]:
            files = super().files_asked()
            return [file for file in files if file.index_count > 1 and file.is_available]


class LoadReplaces(Behaviour):
    """A second load lists the files anew, not once more."""

    laws = ("RMQSVC-5",)
    of_segproof = True

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def load(self, last_exit_ok: bool) -> bool:
            self.check_open()
            index_service.IndexService.shutdown(self)  # that of an old release does nothing
            return super().load(last_exit_ok)


class UnflushedFileIsDeleted(Behaviour):
    """After an abnormal exit the index files with entries are kept, in the order of their messages,
    up to the first full one that ends exactly at the checkpoint's index time, or by the rule of
    upstream if no file does, and nothing is deleted if not all could be listed.
    """

    laws = ("RMQSVC-4",)
    of_segproof = True

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def load(self, last_exit_ok: bool) -> bool:
            is_whole = super().load(True)
            kept = self.index_files
            if is_whole and not last_exit_ok:
                kept = self.durable_files()
            deleted = [file for file in self.index_files if file not in kept]
            self.is_shortened = any(self.is_covered(file) for file in deleted)
            self.index_files = tuple(file for file in self.index_files if file in kept)
            for file in deleted:
                file.destroy(0)
            return is_whole

        def durable_files(self) -> tuple[IndexFile, ...]:
            """Return the files that were flushed: they are, in the order of their messages."""
            begun = [file for file in self.index_files if file.index_count > 1]
            begun.sort(key=attrgetter("end_phy_offset"))
            time = self.store_checkpoint.index_msg_timestamp
            for number, file in enumerate(begun, 1):
                if file.is_write_full and file.end_timestamp == time:
                    return tuple(begun[:number])
            return tuple(file for file in begun if self.is_covered(file))


class FailingPutIsRefused(Behaviour):
    """A put that fails on a file with room raises, and is not tried for ever."""

    laws = ("RMQSVC-25",)
    of_segproof = True

    class IndexService(index_service.IndexService):
        """The service."""

        @override
        def check_room(self) -> None:
            if not self.index_files[-1].is_write_full:
                refuse(ErrorKind.CORRUPT_INDEX)
            super().check_room()
