# SPDX-License-Identifier: Apache-2.0
"""Our side of what is measured of a segment and of a log; see passes.py for how."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import workloads
from benchmarks.modes import Pass, Prepared, mode

if TYPE_CHECKING:
    from segproof.kafka.log_config import LogConfig
    from segproof.kafka.segments.log_segment import LogSegment


def config() -> "LogConfig":
    """Return what KafkaBench.java has."""
    from segproof.kafka.log_config import LogConfig

    return LogConfig(
        index_interval_bytes=workloads.INDEX_INTERVAL_BYTES,
        segment_index_bytes=workloads.INDEX_BYTES,
    )


def open_segment(directory: str, already_exists: bool = True) -> "LogSegment":
    """Open the segment 0 of a directory as KafkaBench.java does."""
    from segproof.kafka.segments.log_segment import LogSegment

    return LogSegment.open(directory, 0, config(), already_exists, create=True)


@mode
def recover(directory: str) -> Prepared:
    """Recover the segment; only that is timed, as opening is lazy. The bytes cut off."""
    from segproof.kafka.producer_state import ProducerStateManager

    def prepare() -> Pass:
        segment = open_segment(directory)
        producers = ProducerStateManager.open(directory, writable=True)

        def one_pass() -> Callable[[], int]:
            truncated = segment.recover(producers)

            def checksum() -> int:
                segment.close()
                return truncated

            return checksum

        return one_pass

    return Prepared(prepare)


@mode
def rebuild(directory: str) -> Pass:
    """Rebuild a partition in place, with the interval given; findings and bytes cut off."""
    from segproof.repair import rebuild as rebuild_partition

    def one_pass() -> Callable[[], int]:
        rebuilt = rebuild_partition(
            directory, in_place=True, index_interval_bytes=workloads.INDEX_INTERVAL_BYTES
        )
        return lambda: len(rebuilt.findings) + len(rebuilt.left_out)

    return one_pass


@mode
def open_log(directory: str) -> Prepared:
    """Open a log that was closed cleanly; only that is timed. Its segments, and its end."""
    from segproof.kafka.broker.partition_log import PartitionLog

    def prepare() -> Pass:
        options = config()

        def one_pass() -> Callable[[], int]:
            log = PartitionLog.open(directory, options, create=True)

            def checksum() -> int:
                log.close()
                return log.log_segments.number_of_segments + log.log_end_offset

            return checksum

        return one_pass

    return Prepared(prepare)


@mode
def segment_read_many(directory: str, targets: str) -> Pass:
    """Find where all reads begin at once; the sum of the positions."""
    segment, asked = open_segment(directory), workloads.read_targets(Path(targets))

    def one_pass() -> Callable[[], int]:
        positions, _ = segment.read_many(asked)
        return lambda: int(positions.sum())

    return one_pass


@mode
def segment_time_many(directory: str, targets: str) -> Pass:
    """Find the first record at or after every timestamp at once; the sum of the offsets."""
    segment, asked = open_segment(directory), workloads.read_targets(Path(targets))

    def one_pass() -> Callable[[], int]:
        _, offsets = segment.find_offset_by_timestamp_many(asked, 0)
        return lambda: int(offsets.sum())

    return one_pass


@mode
def segment_read(directory: str, targets: str) -> Pass:
    """Read one byte at each offset by a call from Python; the sum of the positions."""
    read = open_segment(directory).read
    return _each(lambda asked: [read(target, 1) for target in asked], targets, _position_of_read)


@mode
def segment_translate(directory: str, targets: str) -> Pass:
    """Find the batch of each offset by a call from Python; the sum of the positions."""
    translate = open_segment(directory).translate_offset
    return _each(lambda asked: [translate(target) for target in asked], targets, _position)


@mode
def segment_time(directory: str, targets: str) -> Pass:
    """Find the first record at or after each timestamp by a call; the sum of the offsets."""
    find = open_segment(directory).find_offset_by_timestamp
    return _each(lambda asked: [find(target, 0) for target in asked], targets, _offset)


def _each(
    call: Callable[[list[int]], list[Any]], targets: str, number: Callable[[Any], int]
) -> Pass:
    asked = workloads.read_targets(Path(targets)).tolist()

    def one_pass() -> Callable[[], int]:
        found = call(asked)
        return lambda: sum(-1 if one is None else number(one) for one in found)

    return one_pass


def _position_of_read(found: Any) -> int:
    return int(found.fetch_offset_metadata.relative_position_in_segment)


def _position(found: Any) -> int:
    return int(found.position)


def _offset(found: Any) -> int:
    return int(found.offset)


@mode
def segment_append(directory: str, log: str) -> Prepared:
    """Append each batch of a log by a call; bytes and index entries."""
    from segproof.kafka.batch_table import read_batch_headers

    data = Path(log).read_bytes()
    table = read_batch_headers(data).table
    ends = (table["position"] + table["size_bytes"]).tolist()
    batches = [data[a:b] for a, b in zip(table["position"].tolist(), ends, strict=True)]
    asked = list(zip(table["last_offset"].tolist(), batches, strict=True))

    def append_all(segment: "LogSegment") -> None:
        append = segment.append
        for last_offset, batch in asked:
            append(last_offset, batch)

    return _appended(directory, append_all)


@mode
def segment_append_many(directory: str, log: str, piece_bytes: str) -> Prepared:
    """Append the batches of a log in buffers of at most so many bytes; bytes and index entries."""
    pieces = batches_in_pieces(Path(log).read_bytes(), int(piece_bytes))

    def append_all(segment: "LogSegment") -> None:
        for piece in pieces:
            segment.append_many(piece)

    return _appended(directory, append_all)


def batches_in_pieces(data: bytes, piece_bytes: int) -> list[bytes]:
    """Return whole batches, as many as fit into so many bytes but at least one, as buffers."""
    from segproof.kafka.batch_table import read_batch_headers

    table = read_batch_headers(data).table
    ends = table["position"] + table["size_bytes"]
    pieces, start = [], 0
    while start < len(data):
        behind = int(ends.searchsorted(start + piece_bytes, side="right")) - 1
        end = max(int(ends[max(behind, 0)]), int(ends[ends.searchsorted(start, side="right")]))
        pieces.append(data[start:end])
        start = end
    return pieces


def _appended(directory: str, append_all: Callable[["LogSegment"], None]) -> Prepared:
    """Return passes that fill a new segment; making and removing it is no part of the work."""

    def prepare() -> Pass:
        segment = open_segment(directory, already_exists=False)

        def one_pass() -> Callable[[], int]:
            append_all(segment)

            def checksum() -> int:
                entries = segment.offset_index.entries + segment.time_index.entries
                size = segment.size
                segment.delete_if_exists()
                return size + entries

            return checksum

        return one_pass

    return Prepared(prepare)
