# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's index service, described for the harness: the index files of a store.

Mirrors: segproof_model/rocketmq/broker/index_service.py, segproof/rocketmq/index_service.py.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC
from operator import attrgetter
from typing import Any

from segproof_harness.structures.kinds import FLAG, INT32, INT64, Optional
from segproof_harness.structures.rocketmq import dispatch_drawing
from segproof_harness.structures.rocketmq import index_drawing as draw
from segproof_harness.structures.rocketmq.index_file import GEOMETRY
from segproof_harness.structures.rocketmq.index_service_states import SOMETIMES
from segproof_harness.structures.steps import Event
from segproof_harness.structures.structure import Parameter, Structure, creating, operation
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Step
from segproof_model.language.states import opened
from segproof_model.rocketmq.broker.index_service import IndexService

OPENING = (
    Parameter("geometry", GEOMETRY, dispatch_drawing.geometry_again),
    draw.NOW,
    Parameter("damage", dispatch_drawing.DAMAGE, dispatch_drawing.draw_damage),
)


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(release.kind(IndexService), files, "", *arguments["geometry"])


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    return impl_class.open(
        arguments["directory"],
        *arguments["geometry"],
        **creating(impl_class.open),
        files=files,
        time=arguments["clock"],
        zone=UTC,
    )


# --- calls ---------------------------------------------------------------------------------------


def show_file(file: Any) -> Any:
    """Return the name of an index file, without its folder, and its header; None for none."""
    if file is None:
        return None
    return (
        str(file.file_name).rpartition("/")[2],
        file.begin_timestamp,
        file.end_timestamp,
        file.begin_phy_offset,
        file.end_phy_offset,
        file.hash_slot_count,
        file.index_count,
        file.is_available,
    )


def _show_files(files: Iterable[Any]) -> Any:
    return tuple(map(show_file, files))


def _last_file_of_model(service: IndexService) -> Any:
    """Make a file where there is none with room, and show the last."""
    service.retry_get_and_create_index_file()
    return show_file(service.index_files[-1])


_show_checkpoint = attrgetter(
    "physic_msg_timestamp",
    "logics_msg_timestamp",
    "index_msg_timestamp",
    "min_timestamp",
    "min_timestamp_index",
)


def _is_asked(event: Event) -> bool:
    """Return whether a release is asked: not for two files of one name.

    Upstream they share their bytes, and a thread of the first one writes into the second at a
    time of its own. Nor for a file that is listed twice, and deleted once: the other is mapped on.
    """
    if event.outcome.error == ErrorKind.ENDLESS:
        return False
    if event.before is None or event.after is None:
        return True
    if not {file.file_name for file in event.after.index_files} <= set(event.after.files):
        return False
    if event.does("load"):
        return True
    made = [file.file_name for file in event.after.index_files[len(event.before.index_files) :]]
    return len(set(made)) == len(made) and not set(made) & set(event.before.files)


# --- the table -----------------------------------------------------------------------------------

TOPIC = Parameter(
    "topic",
    Optional(draw.TEXT),
    lambda choose, _: dispatch_drawing.some_topic(choose) if choose.one_in(4) else draw.TOPIC,
)
OPERATIONS = (
    operation(
        "load",
        10,
        "RMQSVC-1 RMQSVC-2 RMQSVC-3 RMQSVC-4 RMQSVC-5",
        Parameter("last_exit_ok", FLAG, dispatch_drawing.some_exit),
    ),
    operation(
        "build_index",
        44,
        "RMQSVC-14 RMQSVC-11 RMQSVC-12 RMQSVC-13 RMQSVC-15 RMQSVC-16",
        Parameter("request", dispatch_drawing.REQUEST, dispatch_drawing.some_request),
        errors={"io-error": "RMQSVC-8", "null": "RMQSVC-14"},
    ),
    operation(
        "query_offset",
        24,
        "RMQSVC-17 RMQSVC-18 RMQSVC-19",
        TOPIC,
        Parameter("key", Optional(draw.TEXT), dispatch_drawing.some_query_key),
        Parameter("max_num", INT32, dispatch_drawing.some_max_num),
        Parameter("begin", INT64, dispatch_drawing.some_begin),
        Parameter("end", INT64, dispatch_drawing.some_end),
        Parameter(
            "index_type",
            Optional(draw.TEXT),
            lambda choose, _: choose.one_of((None, None, "T", "K")),
        ),
        errors={"invalid-argument": "RMQSVC-20", "corrupt-index": "RMQIDX-40"},
    ),
    operation(
        "get_and_create_last_index_file",
        2,
        "RMQSVC-6 RMQSVC-7",
        errors={"io-error": "RMQSVC-8"},
        reads=show_file,
        call_model=_last_file_of_model,
    ),
    operation(
        "retry_get_and_create_index_file",
        2,
        "RMQSVC-6 RMQSVC-7",
        errors={"io-error": "RMQSVC-8"},
        reads=show_file,
        call_model=_last_file_of_model,
    ),
    operation(
        "flush",
        3,
        "RMQSVC-10",
        Parameter("position", INT32, lambda choose, _: choose.integer(-1, 4)),
    ),
    operation(
        "delete_expired_file",
        4,
        "RMQSVC-21 RMQSVC-22",
        Parameter("offset", INT64, dispatch_drawing.some_expired),
    ),
    operation("index_files", 4, "RMQSVC-6 RMQSVC-1", reads=_show_files),
    operation("store_checkpoint", 2, "RMQSVC-10", reads=_show_checkpoint),
    operation("now", 10, "", draw.NOW, sets_clock=True),
    operation("destroy", 1, "RMQSVC-23"),
    operation("shutdown", 1, "RMQSVC-23"),
    operation("close", 1, "RMQSVC-23", ends=True),
)

INDEX_SERVICE = Structure(
    structure_id="index-service",
    model="segproof_model.rocketmq.broker.index_service:IndexService",
    opening=OPENING,
    draw_setup=dispatch_drawing.draw_setup,
    operations=OPERATIONS,
    observed=("total_size",),
    sometimes=SOMETIMES,
    is_usable=lambda state: state.store_checkpoint.is_mapped,
    open_model=_open_model,
    open_impl=_open_impl,
    takes_directory=True,
    takes_clock=True,
    takes_folders=True,
    damage=dispatch_drawing.with_damage,
    parts=lambda state: state.index_files,
    laws=("RMQSVC-2", "RMQCKPT-1"),
    is_asked=_is_asked,
)
