# SPDX-License-Identifier: Apache-2.0
"""Logs that are not those of their segment, and what a salvage reads of a log before it saves it.

Laws: DISK-69.
"""

from collections.abc import Sequence
from contextlib import closing

from segproof.files import Files
from segproof.reading.log_order import NamedLog
from segproof.reading.log_pieces import LogPieces
from segproof.salvaging.unreadable_blocks import ReadableParts
from segproof.verifying.foreign_segments import foreign_log_of
from segproof.verifying.segment_files import Segment


def paths_of_other_logs(segments: Sequence[Segment], files: Files) -> frozenset[str]:
    """Return the logs that the indexes beside them were not made of: of other topics, as a rule."""
    return frozenset(one.path(".log") for one in segments if foreign_log_of(one, files))


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
