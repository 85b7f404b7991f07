# SPDX-License-Identifier: Apache-2.0
"""What an old index shows of the release that wrote it: entries for tags, and what it counts.

Upstream: RocketMQ 5.4.0 to 5.5.1: IndexService.buildIndex; up to 4.7.0: IndexFile.putKey.
Laws: RMQSVC-14, RMQIDX-24.
"""

from collections.abc import Sequence
from contextlib import closing
from itertools import islice

import numpy as np

from segproof.files import Files
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.geometry import find_geometry
from segproof.rocketmq.index_table import Geometry, entry_blocks, read_slots, read_stored_header
from segproof.rocketmq.key_hash import build_key, index_key_hash
from segproof.rocketmq.message import dispatch_request_of

ENTRIES = 1 << 16
MESSAGES = 4096
"""So many of a file are looked at."""
MISSES = 16
"""After this many messages without an entry for their tags, no more are looked at."""


def tags_in_old_index(
    paths: Sequence[str], geometry: Geometry, log: CommitLog, files: Files
) -> bool | None:
    """Return whether the first of the files that can tell has entries for tags; None: none can.

    A file tells if it has the entries of a message with tags that the log still has: the tags of
    one message are enough to show such entries, and up to MISSES messages without theirs to show
    that the file has no such entries, since damage may have changed the tags of some. A file of
    another length than `geometry` gives has the geometry that it tells itself.
    Raises: TooLargeError; OSError.
    """
    for path in paths:
        found = _in_file(path, geometry, log, files, is_alone=len(paths) == 1)
        if found is not None:
            return found
    return None


def counts_puts_in_old_index(paths: Sequence[str], geometry: Geometry, files: Files) -> bool:
    """Return whether the slot count of a header is that of the entries, more than there are slots.

    False where none of the files can tell. Raises: OSError.
    """
    for path in paths:
        with closing(files.open(path)) as file:
            header = read_stored_header(file)
            if header is None or file.size() != geometry.file_size:
                continue
            entries, counted = header.index_count - 1, header.hash_slot_count
            used = int(np.count_nonzero(read_slots(file, geometry)))
            if used < entries and counted in (used, entries):
                return counted == entries
    return False


def _in_file(
    path: str, geometry: Geometry, log: CommitLog, files: Files, *, is_alone: bool
) -> bool | None:
    with closing(files.open(path)) as file:
        header = read_stored_header(file)
        if header is None or header.index_count <= 1:
            return None
        if file.size() != geometry.file_size:
            answer = find_geometry(path, files=files)
            if answer.geometry is None or answer.origin == "ambiguous":
                return None
            geometry = answer.geometry
        stop = min(header.index_count, geometry.index_num, ENTRIES + 1)
        first = max(header.begin_phy_offset, log.min_offset)
        known: dict[int, set[int]] = {}
        for _, block in entry_blocks(file, geometry, 1, stop):
            hashes, offsets = block["key_hash"].tolist(), block["phy_offset"].tolist()
            for key_hash, offset in zip(hashes, offsets, strict=True):
                known.setdefault(offset, set()).add(key_hash)
    # The entries of the first and the last message may lie in other files in part.
    edges = () if is_alone else (header.begin_phy_offset, header.end_phy_offset, max(known))
    misses = 0
    for _, result in islice(log.scan(first), MESSAGES):
        if result.message is None:
            break
        request = dispatch_request_of(result.message)
        tags = dict(request.properties_map or ()).get("TAGS")
        entries = known.get(request.commit_log_offset)
        if tags and entries:
            key = build_key(request.topic, build_key("T", tags))
            if index_key_hash(key) in entries:
                return True
            misses += request.commit_log_offset not in edges
            if misses >= MISSES:
                break
    return False if misses else None
