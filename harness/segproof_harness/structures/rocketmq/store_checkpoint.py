# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's store checkpoint, described for the harness.

Mirrors: segproof_model/rocketmq/broker/store_checkpoint.py, segproof/rocketmq/store_checkpoint.py.
"""

from collections.abc import Callable, Mapping
from typing import Any

from segproof_harness.structures.choices import INT64_MAX, INT64_MIN, Choose
from segproof_harness.structures.kinds import INT64, NAME
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Event, Setup, Situation, States
from segproof_harness.structures.structure import Parameter, Structure, creating, operation
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import int64_bytes
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.rocketmq.broker.store_checkpoint import (
    FIELDS,
    FILE_SIZE,
    SAFETY_MS,
    StoreCheckpoint,
)

FILE_NAMES = ("checkpoint", "c")
NOW_MS = 1_700_000_000_123
EDGES = (0, 1, -1, SAFETY_MS, INT64_MAX, INT64_MIN, INT64_MIN + SAFETY_MS)
BYTES_MAX = 2 * FILE_SIZE
"""A file that was there before has so many bytes at most."""


def _some_number(choose: Choose, near: int) -> int:
    """Draw a time or an offset: near another one, at an edge, or any."""
    kind = choose.weighted((8, 4, 1))
    if kind == 0:
        drawn = near + choose.one_of((0, 1, -1, SAFETY_MS, -SAFETY_MS, 50_000))
    elif kind == 1:
        drawn = choose.beside(choose.one_of(EDGES))
    else:
        drawn = choose.integer(INT64_MIN, INT64_MAX)
    return max(INT64_MIN, min(drawn, INT64_MAX))


def _some_value(choose: Choose, situation: Situation) -> int:
    known = [getattr(situation.state, name) for name in FIELDS]
    return _some_number(choose, choose.one_of((NOW_MS, *known)))


def _some_image(choose: Choose) -> bytes:
    """Draw a file: as a release writes it, with more or fewer fields, short, long, or anything."""
    written = b"".join(
        int64_bytes(_some_number(choose, NOW_MS)) for _ in range(choose.one_of((3, 4, 5, 6, 8)))
    )
    kind = choose.weighted((6, 2, 1, 1))
    if kind == 0:
        return written.ljust(FILE_SIZE, b"\0")
    if kind == 1:
        return written[: choose.integer(0, len(written))]
    if kind == 2:
        return written.ljust(FILE_SIZE, b"\0") + choose.data(choose.integer(1, 20))
    return choose.data(choose.integer(0, 100))


def _draw_setup(choose: Choose) -> Setup:
    name = FILE_NAMES[0]
    files = {name: _some_image(choose)} if not choose.one_in(3) else {}
    return Setup({"path": name}, files)


def _some_path(choose: Choose, situation: Situation) -> Value:
    return FILE_NAMES[choose.weighted((8, 1))]


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(release.kind(StoreCheckpoint), files, arguments["path"])


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    return impl_class.open(arguments["path"], **creating(impl_class.open), files=files)


# --- states --------------------------------------------------------------------------------------


def _opens(event: Event) -> bool:
    return event.before is None and event.after is not None


def _field_is_read(number: int) -> Callable[[Event], bool]:
    return lambda event: _opens(event) and getattr(event.after, FIELDS[number]) != 0


SOMETIMES: States = {
    "field-4-read": _field_is_read(3),
    "field-6-read": _field_is_read(5),
    "written": lambda event: event.done("flush") and event.before.files != event.after.files,
    "written-over-more-bytes": lambda event: (
        event.done("flush") and any(event.before.files.image(event.before.name)[48:])
    ),
    "safe-time": lambda event: event.after is not None and event.after.min_timestamp > 0,
    "safety-wraps": lambda event: (
        event.after is not None
        and min(event.after.physic_msg_timestamp, event.after.logics_msg_timestamp)
        < INT64_MIN + SAFETY_MS
    ),
    "index-is-behind": lambda event: (
        event.after is not None and 0 < event.after.min_timestamp_index < event.after.min_timestamp
    ),
    "closed": lambda event: event.outcome.error == "unmapped",
}
"""States of a checkpoint, by name."""


# --- the table -----------------------------------------------------------------------------------

VALUE = Parameter("value", INT64, _some_value)

OPERATIONS = (
    *(operation(f"set_{name}", 6, "RMQCKPT-3", VALUE) for name in FIELDS),
    operation("values", 6, "RMQCKPT-1 RMQCKPT-3"),
    operation("flush", 8, "RMQCKPT-3 RMQCKPT-2", errors={"unmapped": "RMQCKPT-3"}),
    operation("shutdown", 1, "RMQCKPT-3", ends=True),
    operation("close", 1, "RMQCKPT-3", ends=True, call_model=lambda state: state.shutdown()),
)

STORE_CHECKPOINT = Structure(
    structure_id="store-checkpoint",
    model="segproof_model.rocketmq.broker.store_checkpoint:StoreCheckpoint",
    opening=(Parameter("path", NAME, _some_path),),
    draw_setup=_draw_setup,
    operations=OPERATIONS,
    observed=(
        "physic_msg_timestamp",
        "logics_msg_timestamp",
        "index_msg_timestamp",
        "min_timestamp",
        "min_timestamp_index",
    ),
    sometimes=SOMETIMES,
    is_usable=lambda state: bool(state.is_mapped),
    open_model=_open_model,
    open_impl=_open_impl,
    laws=("RMQCKPT-3", "RMQCKPT-1"),
)
