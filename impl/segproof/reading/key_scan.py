# SPDX-License-Identifier: Apache-2.0
"""Messages of keys, found without an index: the whole commit log is read.

Keys are compared as texts, not by their hashes alone. Damage in the log is passed over: sound
messages behind it are found too.

Laws: RMQSVC-13 to RMQSVC-15, RMQLOG-3.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from segproof.files import Files
from segproof.reading.log_gaps import GapKind, Gaps
from segproof.reading.log_in_order import LogInOrder
from segproof.reading.record_keys import keys_of, tag_key_of
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.key_hash import index_key_hash
from segproof.rocketmq.message import dispatch_request_of
from segproof.stretches.rocketmq.message_blocks import Int64Array, MessageBlock


class KeyScan(NamedTuple):
    """What one pass through a commit log found."""

    phy_offsets: dict[str, tuple[int, ...]]
    """By key: where its messages lie, newest first; only those that a salvage keeps."""
    messages: int
    """How many of these there are in all."""
    gaps: Gaps
    """Where messages may be lost."""


def scan_for_keys(
    log: CommitLog,
    keys: Iterable[str],
    begin: int,
    end: int,
    max_num: int,
    files: Files,
    advance: Callable[[int], None] = lambda count: None,
) -> KeyScan:
    """Return where the newest messages of some keys lie whose store time is in begin..end.

    Keys are topic, `#` and key. Times are milliseconds, both inclusive; of each key the last
    `max_num` messages of the log are told, a message once. `advance` gets the bytes read since its
    last call. What is kept is read once more if messages do not lie where they belong. Memory: as
    `LogInOrder`, and the answers. Raises: OSError.
    """
    found: dict[str, deque[int]] = {key: deque(maxlen=max(0, max_num)) for key in keys}
    hashes = np.array([index_key_hash(key) for key in found], np.int64)

    def look(block: MessageBlock) -> None:
        for number in _may_have(block, hashes, begin, end):
            request = dispatch_request_of(block.message(number))
            for key in dict.fromkeys([*keys_of(request), tag_key_of(request)]):
                if key in found:
                    found[key].append(int(block.lies_at[number]))

    placed = LogInOrder(log, files, open_file=files.open, advance=advance, see=look)
    if not placed.is_all_in_place:
        for offsets in found.values():
            offsets.clear()
        for block in placed.kept_on_disk():
            look(block)
    newest_first = {key: tuple(reversed(offsets)) for key, offsets in found.items()}
    return KeyScan(newest_first, placed.kept_messages, _lost(placed))


def _lost(placed: LogInOrder) -> Gaps:
    """Return the gaps in which messages may be lost: all but the zeros that end the log."""
    found = Gaps()
    for gap in placed.gaps():
        if gap.start < placed.end or gap.kind in (GapKind.BROKEN, GapKind.UNSEARCHED):
            found.add(gap)
    return found


def _may_have(block: MessageBlock, hashes: Int64Array, begin: int, end: int) -> list[int]:
    """Return the numbers of the messages of these times that have a key of one of the hashes."""
    entries = block.entries(index_tags=True)
    times = entries.store_timestamps
    is_asked = np.isin(entries.hashes, hashes) & (begin <= times) & (times <= end)
    numbers: list[int] = np.unique(entries.messages[is_asked]).tolist()
    return numbers
