# SPDX-License-Identifier: Apache-2.0
"""Files of a commit log over which another file was copied: one of this log, or of another store.

Each message of such a file is sound, and what the file had is lost. The placement of the log tells
copies of messages that are kept elsewhere, and messages of another store. A salvage leaves both
out.

Laws: RMQDISK-25, RMQDISK-44.
"""

import posixpath
from collections.abc import Iterable

from segproof.counts import QUEUES_TELL, lost_words, plural, verb
from segproof.hints import writes
from segproof.reading.log_in_order import LeftRange
from segproof.rocketmq.commit_log import COMMIT_LOG
from segproof.verifying.rocketmq.log_records import LogRecords
from segproof.wording.reporting import Reporter

NAMED_MAX = 4
"""A finding names at most this many files."""
REPLACED_HINT = writes(
    "look for the former file where else the broker keeps files of its log, in lost+found and on a"
    " replica, and keep index and queues until then: they tell what it had. If it is gone for good,"
    " `segproof salvage STORE --out DIR2` makes a store of the messages that belong here"
)


def report_replaced_files(store: str, records: LogRecords, reporter: Reporter) -> None:
    """Report files that have messages of another file, and count what is lost of the log.

    Copies after the last message of the log have overwritten
    nothing that is known: they are no loss.
    """
    found, in_order = records.whole_map(), records.damaged.in_order
    left, at_home = list[LeftRange](), list[LeftRange]()
    for one in in_order.left():
        if one.is_of_others:
            is_here = records.offset_of(one.path, one.position) == one.says
            (at_home if is_here else left).append(one)
    copies = _by_file(records, in_order.copied())
    others, here = _by_file(records, left), _by_file(records, at_home)
    if records.lacks_files or records.without_body or copies or others or here:
        records.count_lost(found)
    replaced = {**copies, **others, **here}
    if not replaced:
        return
    count = sum(sum(one.values()) for one in (copies, others, here))
    lost = records.lost
    is_known = lost is not None and lost.known > 0
    if not (is_known or others or here) and min(copies) >= found.sound_end:
        return
    words = lost_words(None, 0 if lost is None else lost.known, "message")
    told = f"what was there is lost, with {words} of this log"
    told += f", {QUEUES_TELL}" * is_known
    why_others = (
        "of another store, whose file was copied here: they say other offsets, and queues, index"
        " and numbers of this store know none of them"
    )
    why_copies = "that lie at their own offsets too: a part of this log was copied here"
    kinds = ((copies, why_copies), (others, why_others))
    parts = [f"{_named(records, one)} {why}" for one, why in kinds if one]
    if parts:
        reporter.at(posixpath.join(store, COMMIT_LOG)).add(
            "RMQDISK-25", f"{'; '.join(parts)}; {told}", actual=count, hint=REPLACED_HINT
        )
    for start, messages in here.items():
        path, position = records.file_of(start)
        reporter.at(path).add(
            "RMQDISK-44",
            f"this file has {plural(messages, 'message')} of another store, whose file was copied"
            " over it: queues and index know none of them here, and agree with other files of the"
            f" log; {told}",
            position=position,
            actual=messages,
            hint=REPLACED_HINT,
        )


def _by_file(records: LogRecords, ranges: Iterable[LeftRange]) -> dict[int, int]:
    """Return how many messages are in the ranges of each file, by the offset of the first one.

    Files that the log does not have, as others tell, are left out.
    """
    found: dict[str, tuple[int, int]] = {}
    for one in ranges:
        at = records.offset_of(one.path, one.position)
        if at is not None:
            start, messages = found.get(one.path, (at, 0))
            found[one.path] = start, messages + one.messages
    return dict(sorted(found.values()))


def _named(records: LogRecords, found: dict[int, int]) -> str:
    """Return in words how many messages some files have, and which files these are."""
    names = [posixpath.basename(records.file_of(start)[0]) for start in found]
    more = f" and {len(names) - NAMED_MAX} more" * (len(names) > NAMED_MAX)
    has = verb(len(names), "has", "have")
    count = sum(found.values())
    return f"{', '.join(names[:NAMED_MAX])}{more} {has} {plural(count, 'message')}"
