# SPDX-License-Identifier: Apache-2.0
"""Replacing a segment of a log: one that overflows by several, an empty one by a new one.

A new file is written as `.cleaned`, waits as `.swap`, and then has its final name.

Upstream: Kafka 4.3.1: UnifiedLog.splitOverflowedSegment, LocalLog.replaceSegments.
Laws: LOG-19, LOG-20, LOAD-1.
"""

from segproof.closing import attempt_all, undone_if_it_fails
from segproof.errors import IndexStateError, InvalidArgumentError
from segproof.kafka.broker.log_directory import LogDirectory
from segproof.kafka.broker.log_segments import LogSegments
from segproof.kafka.segment_names import CLEANED_SUFFIX, SWAP_SUFFIX
from segproof.kafka.segments.log_segment import LogSegment


def split_segment(
    directory: LogDirectory, segments: LogSegments, segment: LogSegment
) -> tuple[list[LogSegment], list[LogSegment]]:
    """Put segments without overflow in place of one that has it.

    Return the new ones, and those removed whose base offset no new one has. The new files are whole
    and durable before one of them gets its name, so a crash at any point leaves the old segment, or
    swap files which loading completes. Laws: LOG-19, LOG-20.

    Raises: InvalidArgumentError for a segment without overflow; IndexStateError for a log that
    ends inside a batch. The old segment stays then.
    """
    if not segment.has_overflow():
        raise InvalidArgumentError(
            "only a segment whose offsets do not fit it is split",
            law="LOG-20",
            path=segment.log.name,
        )
    new: list[LogSegment] = []
    with undone_if_it_fails(lambda: attempt_all(*(part.delete_if_exists for part in new))):
        _copy_into_new(directory, segment, new)
    with undone_if_it_fails(*(part.close_handlers for part in new)):
        return new, _replace(directory, segments, new, segment)


def replace_empty_segment(directory: LogDirectory, segments: LogSegments, old: LogSegment) -> None:
    """Put a new segment with the same base offset in the place of an empty one.

    The new one is there, as a swap file, before the old one goes: without any segment of this base
    offset a log that a crash leaves would end earlier, or be empty. It is preallocated only when it
    has its name: loading reads a swap file, and preallocated zeros are no batch. Raises: OSError.
    """
    directory.remove_files_of_segment(old.base_offset, CLEANED_SUFFIX)
    new = directory.new_segment(old.base_offset, file_suffix=CLEANED_SUFFIX)
    with undone_if_it_fails(new.close_handlers):
        if directory.config.preallocate:
            new.log.trim()
            new.log.flush()
        _replace(directory, segments, [new], old)
        if directory.config.preallocate:
            new.log.preallocate(directory.config.segment_bytes)


def _copy_into_new(directory: LogDirectory, segment: LogSegment, new: list[LogSegment]) -> None:
    source, position = segment.log, 0
    while position < source.size_in_bytes():
        first = next(source.batches(position), None)
        copied = 0
        if first is not None:
            directory.remove_files_of_segment(first.base_offset, CLEANED_SUFFIX)
            new.append(directory.new_segment(first.base_offset, file_suffix=CLEANED_SUFFIX))
            copied = new[-1].append_from_file(source, position)
        if not copied:
            raise IndexStateError(
                "the log to be split ends inside a batch",
                law="LOG-19",
                path=source.name,
                position=position,
                hint="verify the segment: what follows is out of a broker's reach",
            )
        position += copied
    for part in new:
        part.on_become_inactive_segment()
        part.flush()
        part.set_last_modified(segment.last_modified)
    if sum(part.size for part in new) != source.size_in_bytes():
        raise IndexStateError("the parts have not the size of the whole", law="LOG-19")


def _replace(
    directory: LogDirectory, segments: LogSegments, new: list[LogSegment], old: LogSegment
) -> list[LogSegment]:
    """Let the new segments take the place of the old one."""
    directory.sync()
    for part in reversed(new):
        part.change_file_suffixes(CLEANED_SUFFIX, SWAP_SUFFIX)
    directory.sync()
    bases = {part.base_offset for part in new}
    is_loaded = segments.get(old.base_offset) is old
    if old.base_offset not in bases:
        segments.remove(old.base_offset)
    for part in reversed(new):
        segments.add(part)
    if is_loaded or old.base_offset not in bases:
        directory.delete_segment_files([old])
    else:
        # While loading nobody reads it: the new segment of its name takes its place.
        old.close_handlers()
    for part in new:
        part.change_file_suffixes(SWAP_SUFFIX, "")
    directory.sync()
    return [] if old.base_offset in bases else [old]
