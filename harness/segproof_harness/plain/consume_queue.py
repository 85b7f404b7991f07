# SPDX-License-Identifier: Apache-2.0
"""How the plain consume queue is driven, beside a commit log."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.descriptions.consume_queue import LOG_FILE_SIZE, QUEUE_ID, TOPIC
from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.consume_queue import CONSUME_QUEUE, ConsumeQueue
from segproof_model.rocketmq.format.consume_queue_releases import NearestUnitIsFound


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open a queue, and remove the files behind its end."""

    def made(files: Any, folder: str, size: Any) -> ConsumeQueue:
        queue = release.kind(ConsumeQueue)(files, folder, size)
        queue.truncate_dirty_files()
        return queue

    folder = f"{CONSUME_QUEUE}/{TOPIC}/{QUEUE_ID}"
    return opened(made, files, folder, arguments["mapped_file_size"])


def lookup(
    queue: ConsumeQueue, timestamp: int, boundary_type: Any, modified: tuple[int, ...]
) -> int:
    """Look a time up; older releases are told when the files were modified."""
    log = queue.kind(CommitLog)(queue.files, "", LOG_FILE_SIZE)
    named: dict[str, Any] = {}
    if queue.release is not None and queue.release.has(NearestUnitIsFound):
        named["modified_ms"] = dict(zip(queue.starts(), modified, strict=False))
    return queue.get_offset_in_queue_by_time(timestamp, log, boundary_type, **named)


def seen(queue: Any) -> Any:
    """Return what a queue holds."""
    names = ("folder", "mapped_file_size", "end", "max_physic_offset", "min_logic_offset")
    return [getattr(queue, name) for name in names], queue.starts(), list(map(tuple, queue.units()))


CALLS: Mapping[str, Any] = {"get_offset_in_queue_by_time": lookup, "close": lambda queue: None}
PLAIN = Plain(open_it, CALLS, seen=seen, seen_of_old=seen, kind=ConsumeQueue)
