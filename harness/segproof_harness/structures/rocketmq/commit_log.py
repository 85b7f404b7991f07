# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's commit log, described for the harness: what stands at which place of it.

Mirrors: segproof_model/rocketmq/format/commit_log.py, segproof/rocketmq/commit_log.py.
"""

from collections.abc import Mapping
from typing import Any

from segproof.rocketmq import message as impl_message
from segproof_harness.structures.choices import Choose
from segproof_harness.structures.kinds import FLAG, INT32, INT64, OneOf
from segproof_harness.structures.rocketmq import message_drawing as draw
from segproof_harness.structures.steps import Event, Setup, Situation, States
from segproof_harness.structures.structure import Parameter, Structure, operation
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import int32_at
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.rocketmq.format.commit_log import CommitLog
from segproof_model.rocketmq.format.message import SCHEDULE_TOPIC

FILE_SIZES = (400, 700, 512)
MUCH_BYTES = 1 << 20
"""More than a file of a history holds: releases that do not look first ask memory for it."""
Dispatched = tuple[bool, int, tuple[Any, ...] | None]
"""Whether the check succeeded, its size, and what a log passes on for the message."""


# --- opening -------------------------------------------------------------------------------------


def _draw_setup(choose: Choose) -> Setup:
    size = choose.one_of(FILE_SIZES)
    start = choose.one_of((0, 0, size * 3, size * 2**33))
    files = draw.log_files(draw.some_messages(choose), size, start)
    return Setup({"mapped_file_size": size, "damage": ()}, files)


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(release.kind(CommitLog), files, "", arguments["mapped_file_size"])


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    return impl_class.open(arguments["directory"], arguments["mapped_file_size"], files=files)


def _damaged(arguments: Mapping[str, Any], images: Mapping[str, bytes]) -> Mapping[str, bytes]:
    return draw.with_damage(arguments["damage"], images)


# --- arguments -----------------------------------------------------------------------------------


def some_offset(choose: Choose, situation: Situation) -> int:
    """Draw a place in the log: mostly the begin of a record."""
    starts = draw.record_starts(situation.files.images)
    kind = choose.weighted((16, 2, 1))
    if kind == 0 and starts:
        return choose.one_of(starts)
    if kind == 1 and starts:
        return max(0, choose.beside(choose.one_of(starts)))
    left: int = choose.one_of((0, 1, 4, 5, 7, 8, 9, situation.state.max_offset))
    return max(0, int(situation.state.max_offset) - left)


# --- calls ---------------------------------------------------------------------------------------


def dispatched(result: Any, request: Any) -> Dispatched:
    """Return what a check comes to, with what the log passes on for a message."""
    if request is None:
        return result.success, result.size, None
    found = request._asdict()
    pairs = found.pop("properties_map")
    properties = None if pairs is None else tuple(sorted(pairs))
    if found["topic"] == SCHEDULE_TOPIC and "DELAY" in dict(pairs or ()):
        found.pop("tags_code")  # when it is to be delivered, by a table of the broker
    return result.success, result.size, (*found.values(), properties)


def _check_of_model(log: CommitLog, phy_offset: int, check_crc: bool) -> Dispatched:
    result = log.check(phy_offset, check_crc)
    message = result.message
    return dispatched(result, None if message is None else message.dispatch_request())


def _check_of_impl(log: Any, phy_offset: int, check_crc: bool) -> Dispatched:
    result = log.check(phy_offset, check_crc)
    if hasattr(result, "request"):  # a real class, which makes no message
        return dispatched(result, result.request)
    if result.message is None:
        return dispatched(result, None)
    return dispatched(result, impl_message.dispatch_request_of(result.message))


def _is_asked(event: Event) -> bool:
    """Return whether a release is asked: a place in a file, and no size beyond all memory."""
    if event.before is None or not event.does("check"):
        return True
    offset = event.argument("phy_offset")
    start = event.before.start_of(offset)
    if start is None:
        return False
    head = event.before.mapped(start)[offset - start :][:4]
    return len(head) < 4 or int32_at(head, 0) <= MUCH_BYTES


# --- states --------------------------------------------------------------------------------------


def _checked(event: Event) -> Any:
    return event.outcome.value if event.done("check") else (None, None, None)


def _at(event: Event, position: int) -> bytes:
    """Return a field of the record that is checked."""
    offset = event.argument("phy_offset")
    start = event.before.start_of(offset)
    data = b"" if start is None else event.before.mapped(start)[offset - start :]
    return bytes(data[position : position + 4])


SOMETIMES: States = {
    "message": lambda event: _checked(event)[2] is not None,
    "message-of-magic-2": lambda event: (
        _checked(event)[2] is not None and _at(event, 4)[3:] == b"\xab"
    ),
    "message-with-properties": lambda event: (
        _checked(event)[2] is not None and bool(_checked(event)[2][-1])
    ),
    "blank": lambda event: _checked(event)[:2] == (True, 0),
    "damaged": lambda event: _checked(event)[:2] == (False, -1),
    "parts-do-not-add-up": lambda event: _checked(event)[0] is False and _checked(event)[1] > 0,
    "negative-size": lambda event: _checked(event)[0] is False and _at(event, 0)[:1] >= b"\x80",
    "scanned": lambda event: event.does("scan") and len(event.outcome.value) > 2,
}
"""States of a commit log, by name."""


# --- the table -----------------------------------------------------------------------------------

OFFSET = Parameter("phy_offset", INT64, some_offset)


def _results(found: Any) -> tuple[Any, ...]:
    """Return where each record of a scan lies, and what it is."""
    return tuple((offset, result.success, result.size) for offset, result in found)


OPERATIONS = (
    operation(
        "check",
        40,
        "RMQLOG-3 RMQLOG-1 RMQLOG-2 RMQLOG-4 RMQLOG-5 RMQLOG-6",
        OFFSET,
        Parameter("check_crc", FLAG, lambda choose, _: not choose.one_in(4)),
        call_model=_check_of_model,
        call_impl=_check_of_impl,
    ),
    operation(
        "scan", 6, "RMQLOG-3", OFFSET, call=lambda log, phy_offset: _results(log.scan(phy_offset))
    ),
    operation("look_message", 4, "RMQLOG-1", OFFSET),
    operation(
        "pickup_store_timestamp",
        4,
        "RMQLOG-1",
        OFFSET,
        Parameter("size", INT32, lambda choose, _: choose.integer(70, 130)),
    ),
    operation("close", 1, "", call=lambda log: None),
)

COMMIT_LOG = Structure(
    structure_id="commit-log",
    model="segproof_model.rocketmq.format.commit_log:CommitLog",
    opening=(
        Parameter("mapped_file_size", OneOf(FILE_SIZES)),
        Parameter(
            "damage",
            draw.CHANGES,
            lambda choose, situation: draw.some_damage(choose, situation.files.images),
        ),
    ),
    draw_setup=_draw_setup,
    operations=OPERATIONS,
    observed=("mapped_file_size", "min_offset", "max_offset"),
    sometimes=SOMETIMES,
    open_model=_open_model,
    open_impl=_open_impl,
    takes_directory=True,
    takes_folders=True,
    damage=_damaged,
    laws=("RMQLOG-3",),
    is_asked=_is_asked,
)
