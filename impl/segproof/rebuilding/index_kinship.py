# SPDX-License-Identifier: Apache-2.0
"""Which old index files are of another log than the one beside them: they tell nothing of it.

The sound messages at the begin of some log files are read, and the entries of the index that lead
into these bytes. In an index of this log, whatever its state, most of these entries lead to a
message with a key of their hash. Damaged bytes of the log prove nothing: no entry that leads there
is counted, nor one that leads beyond the last file, since later files may be lost. The share of
wrong entries is that by which `verify` judges the whole index.

Laws: RMQDISK-44.
"""

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from segproof.errors import SegproofError
from segproof.files import File, Files
from segproof.reading.log_kinship import Kin, Kinship
from segproof.reading.record_keys import keys_of, tag_key_of
from segproof.rocketmq.commit_log import CommitLog, LogFile
from segproof.rocketmq.index_table import Geometry, entry_blocks, read_stored_header
from segproof.rocketmq.key_hash import index_key_hash_many
from segproof.rocketmq.message import dispatch_request_of

LOG_FILES_MAX = 8
"""At most this many files of the log are read, from the first to the last."""
MESSAGES_MAX = 256
"""At most this many messages of each log file are read."""
RANGE_BYTES = 1 << 20
"""Only messages that begin in the first bytes of a log file, this many, are read."""
ENTRIES_MAX = 1024
"""At most this many entries of each index file are compared in each range."""
COUNTED_MAX = 4096
"""After more compared entries than this, the other files of the index are not looked into."""


@dataclass(slots=True)
class _Range:
    """Sound messages of the log that follow each other."""

    start: int
    end: int
    """The offset after the last one."""
    zeros_end: int
    """The offset after the zeros that follow it in the last file of the log, else its end."""
    hashes: dict[int, set[int]] = field(default_factory=dict)
    """Of the keys of each message, by its offset."""


def files_of_other_log(
    geometries: Mapping[str, Geometry], log: CommitLog, files: Files
) -> set[str]:
    """Return which index files are of another log; all of them if most entries say so.

    What can't be read is of no other log. Cost: bounded, whatever the size of the log.
    """
    ranges = _sound_ranges(log, files)
    if not any(hashes for one in ranges for hashes in one.hashes.values()):
        return set()
    whole, others = Kinship(), set()
    for path in sorted(geometries, reverse=True):
        if whole.right + whole.inside > COUNTED_MAX:
            break
        with suppress(OSError), closing(files.open(path)) as file:
            one = _kinship(file, geometries[path], ranges)
            whole.right += one.right
            whole.inside += one.inside
            whole.beyond += one.beyond
            if one.kin is Kin.OTHER:
                others.add(path)
    return set(geometries) if whole.kin is Kin.OTHER else others


def _sound_ranges(log: CommitLog, files: Files) -> list[_Range]:
    """Return the messages at the begin of some log files, at the offsets that they say."""
    count = len(log.log_files)
    chosen = {round(one) for one in np.linspace(0, count - 1, min(count, LOG_FILES_MAX))}
    found: list[_Range] = []
    for number in sorted(chosen):
        with suppress(OSError, SegproofError):
            found += _sound_range(log, log.log_files[number], files)
    return found


def _sound_range(log: CommitLog, log_file: LogFile, files: Files) -> list[_Range]:
    """Return the range of the first messages of a log file, if there are any.

    Raises: SegproofError; OSError.
    """
    found: list[_Range] = []
    stop = log_file.start + min(log.mapped_file_size, RANGE_BYTES)
    for lies_at, result in islice(log.scan(log_file.start), MESSAGES_MAX):
        message = result.message
        if not result.success or message is None or lies_at >= stop:
            break
        offset = message.physical_offset
        if not found:
            found.append(_Range(offset, offset, offset))
        elif offset != found[0].end:
            break
        request = dispatch_request_of(message)
        named = {*keys_of(request), tag_key_of(request)}
        keys = [key for key in named if key is not None]
        hashes = np.asarray(index_key_hash_many(keys)).tolist() if keys else []
        found[0].hashes[offset] = set(hashes)
        found[0].end = found[0].zeros_end = offset + result.size
    for one in found:
        if log_file == log.log_files[-1]:
            with closing(files.open(log_file.path)) as file:
                if not any(file.pread(RANGE_BYTES, one.end - one.start)):
                    one.zeros_end = one.start + log.mapped_file_size
    return found


def _kinship(file: File, geometry: Geometry, ranges: list[_Range]) -> Kinship:
    """Return how many of a file's entries that lead into the ranges are right. Raises: OSError."""
    told = Kinship()
    header = read_stored_header(file)
    if header is None:
        return told
    stop = min(header.index_count, geometry.index_num)
    for one in ranges:
        first = _first_from(file, geometry, stop, one.start)
        for _, block in islice(entry_blocks(file, geometry, first, stop, ENTRIES_MAX), 1):
            pairs = zip(block["phy_offset"].tolist(), block["key_hash"].tolist(), strict=True)
            for offset, key_hash in pairs:
                if one.start <= offset < one.end:
                    is_right = key_hash in one.hashes.get(offset, ())
                    told.right += is_right
                    told.inside += not is_right
    last = ranges[-1]
    if last.zeros_end > last.end:
        from_end = _first_from(file, geometry, stop, last.end)
        told.beyond = _first_from(file, geometry, stop, last.zeros_end) - from_end
    return told


def _first_from(file: File, geometry: Geometry, stop: int, offset: int) -> int:
    """Return the first entry that leads to an offset or further, where offsets rise."""
    low, high = 1, max(1, stop)
    while low < high:
        middle = (low + high) // 2
        _, block = next(entry_blocks(file, geometry, middle, middle + 1), (0, None))
        if block is None or int(block["phy_offset"][0]) >= offset:
            high = middle
        else:
            low = middle + 1
    return low
