# SPDX-License-Identifier: Apache-2.0
"""What older releases do otherwise when they load a log, newest first.

Those before 2.0 do more otherwise: log_loader_releases_before_2.

Not covered: in which order swaps are completed; the marker of a clean shutdown, which goes after
    loading up to 2.7, and is empty up to 3.6.
"""

from collections.abc import Iterable, Sequence

from segproof_model.kafka.broker import crash_remains, log_loader, log_segments
from segproof_model.kafka.broker.crash_remains import DELETED, INDEXES, LOG, SWAP
from segproof_model.kafka.broker.producer_append_info import ProducerAppendInfo
from segproof_model.kafka.broker.producer_rebuild import ProducerRebuild
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.broker.segment_replacing import SegmentReplacing
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.behaviours import Behaviour, override, up_to
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Released, refuse


class DeletedCheckpointsGo(Behaviour):
    """Loading removes the `.checkpoint.deleted` of a metadata log as all `.deleted` files."""

    laws = ("LOAD-18",)
    releases = up_to("2.8.2")

    class CrashRemains(crash_remains.CrashRemains):
        """What a crash left."""

        @override
        def was_to_be_removed(self, name: str) -> bool:
            return name.endswith(DELETED)


class SwapsAreRecovered(Behaviour):
    """Loading recovers a swap without its indexes when the segments are open, and lets it take the
    place of the segments that reach into its range.
    """

    laws = ("LOAD-2", "LOAD-3", "LOAD-18")
    releases = up_to("2.8.2")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def swaps_to_remove(self, names: Iterable[str], first_offset: int) -> list[str]:
            """A `.swap` that is neither a log nor an index stays.

            An index swap without its log stays, too, but the indexes at its offset go.
            """
            kinds = tuple([kind + SWAP for kind in (LOG, *INDEXES)])
            offsets = {name: offset_of_name(name) for name in names if name.endswith(kinds)}
            logs = [name for name in offsets if name.endswith(LOG + SWAP)]
            gone = [name for name in logs if offsets[name] >= first_offset]
            return [
                *gone,
                *(
                    segment_file_name(offsets[name], kind + SWAP)
                    for name in gone
                    for kind in INDEXES
                ),
                *(
                    segment_file_name(offset, kind)
                    for offset in offsets.values()
                    for kind in INDEXES
                ),
            ]

        @override
        def load_segments(self) -> None:
            swaps = [name for name in self.names() if name.endswith(LOG + SWAP)]
            self.retry_on_offset_overflow(self.load_segment_files)
            for base_offset in [self.offset_of_log(name) for name in swaps]:
                self.kind(SwapRecovery)(self).recover(base_offset)


class SwapRecovery(Released):
    """What completes a swap behind the segments, in releases that do so."""

    def __init__(self, loader: log_loader.LogLoader) -> None:
        self.loader = loader

    def recover(self, base_offset: int) -> None:
        """Recover a swap, and let it take the place of what it replaces.

        One that a split has taken for its part is created anew, empty.
        """
        loader, name = self.loader, segment_file_name(base_offset, LOG + SWAP)
        if not loader.has(name):
            loader.remove([name])  # and its time
            loader.files.write(loader.prefix + name, b"")
        swap = loader.open_segment(base_offset, SWAP)
        loader.recover_segment(swap, None)
        replaced = self.replaced(swap.base_offset, swap.read_next_offset())
        loader.kind(SegmentReplacing)(loader.log).replace(replaced, [swap])

    def replaced(self, base_offset: int, end: int) -> Sequence[LogSegment]:
        """Return the segments that reach into the range of a swap (LOAD-3)."""
        touched = self.loader.log.log_segments.values(base_offset, end)
        return [segment for segment in touched if segment.read_next_offset() > base_offset]


class EpochsBeginWithLog(Behaviour):
    """Loading cuts the epochs where the log begins, not at the checkpointed start before that."""

    laws = ("LOAD-15",)
    releases = up_to("2.8.2")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def fit_epochs(self, end: int) -> None:
            begin = max(self.log.log_start_offset, self.first_offset_of_log())
            self.log.leader_epoch_cache.truncate_from_end(end)
            self.log.leader_epoch_cache.truncate_from_start(begin)


class IndexRebuildLearnsNoEpochs(Behaviour):
    """Building the missing or corrupt index of a segment anew leaves the epochs alone."""

    laws = ("LOAD-5",)
    releases = up_to("2.8.2")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def rebuild_indexes(self, segment: LogSegment, found: ErrorKind) -> None:
            self.recover_segment(segment, None)


class EqualBoundsTouchFloor(Behaviour):
    """An empty range of offsets, or one that ends before it begins, touches the segment below, and
    is refused only if it ends before that one.
    """

    laws = ("LOG-2", "LOAD-3")
    releases = up_to("2.4.1")

    class LogSegments(log_segments.LogSegments):
        """The segments."""

        @override
        def values(self, from_offset: int, to_offset: int) -> tuple[LogSegment, ...]:
            floor = self.floor_segment(from_offset)
            if floor is not None and to_offset < floor.base_offset:
                refuse(ErrorKind.INVALID_ARGUMENT)
            return self.between_floor_and(from_offset, to_offset)


class EmptiedLogKeepsEpochs(Behaviour):
    """A log that is emptied because it ends below its start keeps its epochs and its snapshots."""

    laws = ("LOAD-12",)
    releases = up_to("2.4.1")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def empty(self) -> None:
            self.log.local_log.remove_and_delete_segments(tuple(self.log.log_segments))


class RecoveryPointMovesToEnd(Behaviour):
    """A load after a crash moves the recovery point to the log end."""

    laws = ("LOAD-13",)
    releases = up_to("2.4.1")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def recovery_point_below(self, end: int, is_trusted: bool) -> int:
            return end


class RecoveryAsksOwnProducers(Behaviour):
    """A recovery appends what it reads of the log below a segment to what the log's own producer
    state knows, which is nothing yet.
    """

    laws = ("PROD-14", "LOAD-8")
    releases = up_to("2.4.1")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def rebuild_of(self, producers: ProducerStateManager) -> ProducerRebuild:
            """An open transaction of the snapshot is lost, or begins anew with the next batch."""
            log, asked = self.log, self.log.producer_state_manager
            kind = self.kind(RebuildAskingOthers)
            return kind(producers, log.log_segments, log.log_start_offset, asked)


class RebuildAskingOthers(ProducerRebuild):
    """What builds one producer state, and asks another one what batches are appended to."""

    def __init__(
        self,
        producers: ProducerStateManager,
        segments: log_segments.LogSegments,
        log_start_offset: int,
        asked: ProducerStateManager,
    ) -> None:
        super().__init__(producers, segments, log_start_offset)
        self.asked = asked

    @override
    def prepare_update(self, producer_id: int) -> ProducerAppendInfo:
        return self.asked.prepare_update(producer_id, "replication")


class LogBeginsAtZero(Behaviour):
    """A log without segments begins at 0 and keeps its recovery point, and one that ends below its
    checkpointed start stays.
    """

    laws = ("LOAD-12", "LOAD-13")
    releases = up_to("2.1.1")

    class LogLoader(log_loader.LogLoader):
        """What loads a log."""

        @override
        def find_end(self) -> int:
            if not self.log.log_segments.is_empty:
                return super().find_end()
            self.log.local_log.create_segment(0)
            self.log.local_log.recovery_point = self.recovery_point
            return self.log.log_segments.active_segment.read_next_offset()

        @override
        def end_above_start(self) -> int | None:
            return self.log.log_segments.active_segment.read_next_offset()
