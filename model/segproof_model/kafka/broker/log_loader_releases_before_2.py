# SPDX-License-Identifier: Apache-2.0
"""What releases before 2.0 do otherwise when they load a log, newest first."""

from collections.abc import Iterable, Sequence

from segproof_model.kafka.broker import crash_remains, log_loader, log_loader_releases
from segproof_model.kafka.broker.crash_remains import INDEXES, LOG, SWAP
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.integers import INT32_MAX, INT64_MAX
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


class EverySwapIsCompleted(Behaviour):
    """A `.cleaned` file says nothing about swaps: it goes whatever its name, and each swap takes
    its place.
    """

    laws = ("LOAD-2",)
    releases = up_to("1.1.1")

    class CrashRemains(crash_remains.CrashRemains):
        """What a crash left."""

        @override
        def first_offset(self, cleaned: Iterable[str]) -> int:
            return INT64_MAX


class SwapReplacesFloor(Behaviour):
    """A swap that is recovered replaces the segment below, too, where that ends before."""

    laws = ("LOAD-3",)
    releases = up_to("1.1.1")

    class SwapRecovery(log_loader_releases.SwapRecovery):
        """What completes a swap."""

        @override
        def replaced(self, base_offset: int, end: int) -> Sequence[LogSegment]:
            return self.loader.log.log_segments.values(base_offset, end)


class RecoveryReadsWholeSegments(Behaviour):
    """The producer state below a segment that is recovered is built of every byte of the segments
    there, and written.
    """

    laws = ("PROD-14",)
    releases = up_to("1.1.1")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def producers_below(self, offset: int) -> ProducerStateManager:
            producers = replayed_below(self, offset)
            producers.take_snapshot()
            return producers


def replayed_below(loader: log_loader.LogLoader, offset: int) -> ProducerStateManager:
    """Return the producer state of every byte of the segments below an offset."""
    log, producers = loader.log, loader.log.new_producer_state()
    producers.truncate_and_reload(log.log_start_offset, offset, log.files.now_ms)
    rebuild, map_end = loader.rebuild_of(producers), producers.map_end_offset
    for segment in log.log_segments.values(map_end, offset):
        start = max(segment.base_offset, map_end)
        rebuild.learn(segment.read(start, INT32_MAX, segment.size))
    producers.update_map_end_offset(offset)
    return producers


class ReplayBeforeRecoveryIsNotWritten(Behaviour):
    """The producer state below a segment that is recovered is built of every byte of the segments
    there, and not written.
    """

    laws = ("PROD-14",)
    releases = up_to("0.11.0.3")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def producers_below(self, offset: int) -> ProducerStateManager:
            return replayed_below(self, offset)


class RecoveryPointStays(Behaviour):
    """A load after a crash leaves the recovery point where it was, be it behind the log end."""

    laws = ("LOAD-13",)
    releases = up_to("0.11.0.3")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def recovery_point_below(self, end: int, is_trusted: bool) -> int:
            return end if is_trusted else self.recovery_point


class MissingIndexIsSeenFirst(Behaviour):
    """Loading asks for the offset index of a segment before it opens that, which makes a missing
    one.
    """

    laws = ("LOAD-5",)
    releases = up_to("0.11.0.3")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def load_segment(self, base_offset: int) -> None:
            if self.has(segment_file_name(base_offset, ".index")):
                super().load_segment(base_offset)
                return
            segment = self.open_segment(base_offset)
            self.rebuild_indexes(segment, ErrorKind.FILE_NOT_FOUND)
            self.log.log_segments.add(segment)


class CorruptIndexesAreRemoved(Behaviour):
    """Loading removes the indexes of a segment, one of which is corrupt, before it builds them."""

    laws = ("LOAD-5",)
    releases = up_to("0.11.0.3")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def rebuild_indexes(self, segment: LogSegment, found: ErrorKind) -> None:
            if found is segment.txn_index.corrupt_kind:
                segment.txn_index.delete_if_exists()
                self.remove([segment_file_name(segment.base_offset, kind) for kind in INDEXES[:2]])
            super().rebuild_indexes(segment, found)


class IndexSwapsGo(Behaviour):
    """An index swap goes, whatever its name."""

    laws = ("LOAD-18",)
    releases = up_to("0.11.0.3")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def swaps_to_remove(self, names: Iterable[str], first_offset: int) -> list[str]:
            swaps = [name for name in names if name.endswith(INDEX_SWAPS)]
            others = [name for name in names if name not in swaps]
            return [*super().swaps_to_remove(others, first_offset), *swaps]


INDEX_SWAPS = tuple([kind + SWAP for kind in INDEXES])


class SwapSparesTimeIndexes(Behaviour):
    """Loading removes the offset index of a swap, and the one in whose place it will be, but no
    time index.
    """

    laws = ("LOAD-2",)
    releases = up_to("0.10.2.2")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def swaps_to_remove(self, names: Iterable[str], first_offset: int) -> list[str]:
            logs = [name for name in names if name.endswith(LOG + SWAP)]
            return [
                *(name for name in names if name.endswith(INDEX_SWAPS[0])),
                *(name.removesuffix(LOG + SWAP) + INDEXES[0] for name in logs),
            ]


class LogNameEndsBeforeSuffix(Behaviour):
    """The offset of a log stands before `.log` in its name, not before the first dot."""

    laws = ("FILE-2", "LOAD-4")
    releases = up_to("0.10.2.2")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def offset_of_log(self, name: str) -> int:
            if "." in name.removesuffix(SWAP).removesuffix(LOG):
                refuse(ErrorKind.NUMBER_FORMAT)
            return offset_of_name(name)

        @override
        def is_index_without_log(self, name: str) -> bool:
            """An index goes where no log has its name, but a transaction index is left alone."""
            kind = next((suffix for suffix in INDEXES[:2] if name.endswith(suffix)), None)
            return kind is not None and not self.has(name.removesuffix(kind) + LOG)
