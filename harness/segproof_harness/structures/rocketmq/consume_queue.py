# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's consume queue, described for the harness, beside a commit log that never changes.

Mirrors: segproof_model/rocketmq/format/consume_queue.py, segproof/rocketmq/consume_queue.py.
"""

from collections.abc import Mapping
from typing import Any

from segproof.rocketmq.commit_log import CommitLog as ImplCommitLog
from segproof_harness.files.memory_stores import FIRST_TIMESTAMP_MS
from segproof_harness.structures.choices import INT32_MAX, INT64_MAX, Choose
from segproof_harness.structures.kinds import INT64, SIZE_MAX, Integer, OneOf, Row, Together
from segproof_harness.structures.operations import Value
from segproof_harness.structures.rocketmq import message_drawing as draw
from segproof_harness.structures.steps import Event, Setup, Situation, States
from segproof_harness.structures.structure import Parameter, Structure, creating, operation
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.laws.register import has
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.consume_queue import CONSUME_QUEUE as FOLDER
from segproof_model.rocketmq.format.consume_queue import UNIT_SIZE, ConsumeQueue
from segproof_model.rocketmq.format.consume_queue_releases import NearestUnitIsFound

TOPIC, QUEUE_ID = "T", 0
BOUNDARIES = ("lower", "upper")
FILE_SIZES = (60, 100, 40)
LOG_FILE_SIZE = 700
"""Of each file of the commit log."""
SMALLEST_RECORD = 91
"""Bytes of the smallest record: no unit says less, since upstream raises the index error there."""


class WithLog:
    """A queue with the commit log that it leads into."""

    def __init__(self, queue: Any, commit_log: ImplCommitLog) -> None:
        self.queue = queue
        self.commit_log = commit_log

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)


def log_of(files: Files) -> CommitLog:
    """Return the commit log of a history, as segproof reads it."""
    return SEGPROOF.kind(CommitLog)(files, "", LOG_FILE_SIZE)


# --- opening -------------------------------------------------------------------------------------


def _draw_setup(choose: Choose) -> Setup:
    size = choose.one_of(FILE_SIZES)
    start = LOG_FILE_SIZE * choose.one_of((0, 0, 2))
    messages = [one for _ in range(choose.integer(1, 3)) for one in draw.some_messages(choose)]
    files = draw.log_files(messages, LOG_FILE_SIZE, start)
    if not choose.one_in(3):
        files |= _some_queue(choose, size, Files(files))
    return Setup({"mapped_file_size": size}, files)


def _some_queue(choose: Choose, size: int, log: Files) -> Mapping[str, bytes]:
    """Draw the files of a queue that leads into a log; of some one unit is damaged."""
    queue = _queue(Files(), size, SEGPROOF)
    number = choose.one_of((0, 0, 0, 4, 10))
    for place, size_bytes in _records(log):
        queue.put_message_position_info(place, size_bytes, 0, number)
        number += 1
    files = dict(queue.files.images)
    if choose.one_in(3):
        name = choose.one_of(sorted(files))
        at = UNIT_SIZE * choose.integer(0, size // UNIT_SIZE - 1) + choose.one_of((0, 8))
        new = choose.one_of((b"\xff", b"\0\0\0\0"))
        files[name] = files[name][:at] + new + files[name][at + len(new) :]
    return files


def _records(files: Files) -> list[tuple[int, int]]:
    """Return the offset and the size of each record of the log, in order."""
    results = log_of(files).scan()
    return [(offset, result.size) for offset, result in results if result.message is not None]


def _queue(files: Files, mapped_file_size: int, release: Release) -> ConsumeQueue:
    """Open a queue, and remove the files behind its end."""
    folder = f"{FOLDER}/{TOPIC}/{QUEUE_ID}"
    queue = release.kind(ConsumeQueue)(files, folder, mapped_file_size)
    queue.truncate_dirty_files()
    return queue


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(_queue, files, arguments["mapped_file_size"], release)


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    store, size = arguments["directory"], arguments["mapped_file_size"]
    queue = impl_class.open(store, TOPIC, QUEUE_ID, size, **creating(impl_class.open), files=files)
    return WithLog(queue, ImplCommitLog.open(store, LOG_FILE_SIZE, files=files))


# --- arguments -----------------------------------------------------------------------------------


def _some_message(choose: Choose, situation: Situation) -> Value:
    """Draw (offset, size, number) of a message: mostly the next one of the log for the queue."""
    state = situation.state
    records = _records(situation.files)
    behind = [one for one in records if one[0] >= state.max_physic_offset]
    number = state.max_offset_in_queue if state.starts() else choose.one_of((0, 0, 4, 10))
    kind = choose.weighted((12, 3, 2))
    if kind == 0 and behind:
        return (*behind[0], number)
    if kind == 1 and records:
        return (*choose.one_of(records), max(0, number + choose.one_of((0, 1, -1, 3))))
    offset = max(0, state.max_physic_offset + choose.one_of((-1, 0, 1, 10_000)))
    return offset, SMALLEST_RECORD + choose.integer(0, 60), choose.one_of((number, 0, number + 7))


def _times(situation: Situation) -> list[int]:
    log = log_of(situation.files)
    found = (log.look_message(offset) for offset, _ in _records(situation.files))
    return [one.store_timestamp for one in found if one is not None]


def _some_time(choose: Choose, situation: Situation) -> int:
    times = _times(situation)
    if times and not choose.one_in(6):
        return choose.beside(choose.one_of(times)) + choose.one_of((0, 0, 0, 400, 500))
    return choose.one_of((0, INT64_MAX, FIRST_TIMESTAMP_MS - 1, FIRST_TIMESTAMP_MS + 10**6, -1))


def _some_modified(choose: Choose, situation: Situation) -> Value:
    """Draw when each file of the queue was modified, in milliseconds."""
    times = (0, FIRST_TIMESTAMP_MS, FIRST_TIMESTAMP_MS + 2000, FIRST_TIMESTAMP_MS + 10**7)
    return tuple(choose.one_of(times) for _ in situation.state.starts())


# --- calls ---------------------------------------------------------------------------------------


def _lookup_in_model(
    queue: ConsumeQueue, timestamp: int, boundary_type: Any, modified: tuple[int, ...]
) -> int:
    """Look a time up; older releases are told when the files were modified."""
    log = queue.kind(CommitLog)(queue.files, "", LOG_FILE_SIZE)
    named: dict[str, Any] = {}
    if has(queue, NearestUnitIsFound):
        named["modified_ms"] = dict(zip(queue.starts(), modified, strict=False))
    return queue.get_offset_in_queue_by_time(timestamp, log, boundary_type, **named)


def _lookup_in_impl(
    with_log: WithLog, timestamp: int, boundary_type: Any, modified: tuple[int, ...]
) -> Any:
    if hasattr(with_log.queue, "set_modified"):  # only releases ask when a file was modified
        with_log.queue.set_modified(modified)
    return with_log.get_offset_in_queue_by_time(timestamp, with_log.commit_log, boundary_type)


def _is_asked(event: Event) -> bool:
    """Return whether a release is asked: not for a time where a unit leads to less than a record.

    Such a unit may stand in a file before the last three, which are all that an opening looks at.
    """
    if event.before is None or not event.does("get_offset_in_queue_by_time"):
        return True
    return all(unit.size >= SMALLEST_RECORD for unit in event.before.units())


# --- states --------------------------------------------------------------------------------------


def _is_lookup(event: Event, boundary_type: str) -> bool:
    """Return whether a lookup finds a unit behind the first one."""
    return (
        event.does("get_offset_in_queue_by_time")
        and event.argument("boundary_type") == boundary_type
        and event.outcome.error is None
        and event.outcome.value > event.before.min_offset_in_queue
    )


def _is_put(event: Event) -> bool:
    return event.does("put_message_position_info")


SOMETIMES: States = {
    "put": lambda event: _is_put(event) and event.after.end > event.before.end,
    "passed-over": lambda event: _is_put(event) and event.after.end == event.before.end,
    "begins-later": lambda event: _is_put(event) and event.after.min_offset_in_queue > 0,
    "next-file": lambda event: (
        _is_put(event) and len(event.after.starts()) > len(event.before.starts()) > 0
    ),
    "opened-with-units": lambda event: event.before is None and event.after.end > 0,
    "lower-found": lambda event: _is_lookup(event, "lower"),
    "upper-found": lambda event: _is_lookup(event, "upper"),
    "found-in-second-file": lambda event: (
        _is_lookup(event, "lower")
        and len(event.before.starts()) > 1
        and event.outcome.value * UNIT_SIZE >= event.before.starts()[1]
    ),
}
"""States of a consume queue, by name."""


# --- the table -----------------------------------------------------------------------------------

OPERATIONS = (
    operation(
        "put_message_position_info",
        20,
        "RMQCQ-2 RMQCQ-1",
        Parameter(
            "message",
            Together(
                offset=Integer(0, 2**62 - 1),
                size=Integer(SMALLEST_RECORD, INT32_MAX),
                cq_offset=Integer(0, 2**40 - 1),
            ),
            _some_message,
        ),
        Parameter("tags_code", INT64, lambda choose, _: choose.one_of((0, 2598919, -7))),
    ),
    operation(
        "get_offset_in_queue_by_time",
        30,
        "RMQCQ-3",
        Parameter("timestamp", INT64, _some_time),
        Parameter("boundary_type", OneOf(BOUNDARIES), lambda choose, _: choose.one_of(BOUNDARIES)),
        Parameter("modified", Row(Integer(0, 2**41 - 1), SIZE_MAX), _some_modified),
        call_model=_lookup_in_model,
        call_impl=_lookup_in_impl,
    ),
    operation("units", 4, "RMQCQ-1"),
    operation("close", 1, "", call=lambda queue: None),
)

CONSUME_QUEUE = Structure(
    structure_id="consume-queue",
    model="segproof_model.rocketmq.format.consume_queue:ConsumeQueue",
    opening=(Parameter("mapped_file_size", OneOf(FILE_SIZES)),),
    draw_setup=_draw_setup,
    operations=OPERATIONS,
    observed=("min_offset_in_queue", "max_offset_in_queue", "max_physic_offset"),
    sometimes=SOMETIMES,
    open_model=_open_model,
    open_impl=_open_impl,
    takes_directory=True,
    takes_folders=True,
    laws=("RMQCQ-1",),
    is_asked=_is_asked,
)
