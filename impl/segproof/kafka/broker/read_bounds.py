# SPDX-License-Identifier: Apache-2.0
"""What readers may see of a log: its view, which the writer replaces, and the high watermark.

Upstream: Kafka, UnifiedLog (4.3.1).
Laws: LOG-6, LOG-7, PROD-10.
"""

from typing import TypedDict, Unpack

from segproof.errors import IndexClosedError
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.broker.log_view import LogView
from segproof.kafka.checkpoint_file import EpochEntry
from segproof.kafka.log_offset_metadata import LogOffsetMetadata
from segproof.kafka.producer_state import ProducerStateManager
from segproof.kernels.epochs import kept_from_end


class ViewChanges(TypedDict, total=False):
    """What a writer changes in the view of readers; `LogView` says what each is."""

    segments: LogSegments
    log_start_offset: int
    log_end: LogOffsetMetadata
    high_watermark: LogOffsetMetadata
    epochs: tuple[EpochEntry, ...]


class ReadBounds:
    """The bounds of one log; only its writer calls what changes them."""

    def __init__(self, path: str, producers: ProducerStateManager, view: LogView) -> None:
        self.path = path
        """The directory of the log."""
        self.view = view
        """What readers see now."""
        self.offline_cause: BaseException | None = None
        """The error that took the log offline."""
        self._producers = producers
        self.publish()

    def current(self) -> LogView:
        """Return the view. Raises: IndexClosedError."""
        view = self.view
        if view.is_closed:
            raise self._closed()
        return view

    def check_open(self) -> None:
        """Return if the log is open. Raises: IndexClosedError."""
        if self.view.is_closed:
            raise self._closed()

    def _closed(self) -> IndexClosedError:
        if self.offline_cause is None:
            return IndexClosedError("the log is closed", law="ABSIDX-15", path=self.path)
        return IndexClosedError(
            "the log is closed: an earlier I/O error took it offline",
            law="ABSIDX-15",
            path=self.path,
            actual=str(self.offline_cause),
            hint="open it again with last_shutdown_clean=False",
        )

    def publish(
        self, *, is_removal: bool = False, is_closed: bool = False, **changes: Unpack[ViewChanges]
    ) -> None:
        """Let readers see another state, all of it at once.

        The epochs stay as they are unless others are given, or the end falls: so they never belong
        to another end than the one beside them.
        """
        view = self.view
        end = changes.get("log_end", view.log_end).message_offset
        if "epochs" not in changes and end < view.log_end.message_offset:
            changes["epochs"] = view.epochs[: kept_from_end(view.epochs, end)]
        start = changes.get("log_start_offset", view.log_start_offset)
        unstable = self._producers.first_unstable_offset()
        self.view = view._replace(
            first_unstable_offset=-1 if unstable is None else max(unstable, start),
            removals=view.removals + is_removal,
            is_closed=view.is_closed or is_closed,
            **changes,
        )

    # --- the high watermark

    @property
    def high_watermark(self) -> int:
        """Where what is replicated ends, exclusive."""
        return self.view.high_watermark.message_offset

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, between log start and log end; return it."""
        view = self.view
        if high_watermark >= view.log_end.message_offset:
            self.update_high_watermark_metadata(view.log_end)
        else:
            offset = max(high_watermark, view.log_start_offset)
            self.update_high_watermark_metadata(LogOffsetMetadata(offset))
        return self.high_watermark

    def update_high_watermark_with_log_end_offset(self) -> None:
        """Let a high watermark at the log end, or above it, be the log end.

        One below it may have had its place in a segment that is no more.
        """
        view = self.view
        if self.high_watermark >= view.log_end.message_offset:
            self.update_high_watermark_metadata(view.log_end)
            return
        base = view.high_watermark.segment_base_offset
        if base >= 0 and not view.segments.contains(base):
            self.publish(high_watermark=LogOffsetMetadata(self.high_watermark))

    def update_high_watermark_metadata(self, metadata: LogOffsetMetadata) -> None:
        """Set the high watermark; completed transactions below it are no longer unstable."""
        self._producers.on_high_watermark_updated(metadata.message_offset)
        self.publish(high_watermark=metadata)
