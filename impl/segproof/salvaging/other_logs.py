# SPDX-License-Identifier: Apache-2.0
"""Logs that are not those of their segment, and what a salvage reads of a log before it saves it.

Laws: DISK-69.
"""

from collections.abc import Sequence
from contextlib import closing

from segproof.files import Files
from segproof.reading.log_order import NamedLog
from segproof.reading.log_pieces import LogPieces, entries_in
from segproof.salvaging.unreadable_blocks import ReadableParts
from segproof.verifying.foreign_segments import ASKED_MAX, foreign_log_of
from segproof.verifying.segment_files import Segment


def paths_of_other_logs(segments: Sequence[Segment], files: Files) -> frozenset[str]:
    """Return the logs that no index of the partition was made of: of other topics, as a rule.

    A log that has changed names with another one has its index beside that one.
    """
    return frozenset(
        one.path(".log")
        for one in segments
        if foreign_log_of(one, files)
        and not any(_is_of_index(one.path(".log"), each, files) for each in segments)
    )


def _is_of_index(log: str, segment: Segment, files: Files) -> bool:
    """Return whether entries of a segment's offset index lead to the batches of a log.

    All that are asked do, and they are two at least. Raises: OSError.
    """
    if ".index" not in segment.suffixes:
        return False
    entries = entries_in(segment.path(".index"), segment.base_offset, files)
    step = max(1, len(entries.positions) // ASKED_MAX)
    asked = zip(entries.offsets[::step].tolist(), entries.positions[::step].tolist(), strict=True)
    right = 0
    with closing(ReadableParts(files.open(log))) as file:
        pieces = LogPieces(file, 0, file.size())
        for offset, position in asked:
            batch = pieces.batch_at(position) if position < file.size() else None
            if batch is None or not batch.first_offset <= offset <= batch.last_offset:
                return False
            right += 1
    return right > 1


def first_offset_of(log: NamedLog, files: Files) -> int:
    """Return where a log begins, by its name and its first batch: the later one.

    What compaction took away at its begin lies before that. The name alone is the limit of the log
    before: a base offset may be wrong.
    """
    try:
        with closing(ReadableParts(files.open(log.path))) as file:
            first = LogPieces(file, 0, file.size()).batch_at(0)
    except OSError:
        first = None
    return log.base_offset if first is None else max(log.base_offset, first.first_offset)
