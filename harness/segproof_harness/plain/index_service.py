# SPDX-License-Identifier: Apache-2.0
"""How the plain index service is driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.descriptions.index_service import show_file
from segproof_harness.operations import Value
from segproof_harness.plain import Plain, index_file, store_checkpoint
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.rocketmq.broker.index_service import IndexService

SHOWN = (
    "physic_msg_timestamp logics_msg_timestamp index_msg_timestamp min_timestamp"
    " min_timestamp_index"
)
COUNTERS = "store_path hash_slot_num index_num max_msgs_num_batch"


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open an index service at a time."""

    def made(draft: Files) -> IndexService:
        given: Any = arguments
        draft.now_ms = given["now_ms"]
        return release.kind(IndexService)(draft, "", *given["geometry"])

    return opened(made, files)


def last_file(service: IndexService) -> Any:
    """Return the last file, made where there is none with room."""
    service.retry_get_and_create_index_file()
    return show_file(service.index_files[-1])


def index_files(service: IndexService) -> Any:
    """Return what the files of the list say of themselves."""
    return [show_file(file) for file in service.index_files]


def checkpoint(service: IndexService) -> Any:
    """Return what the checkpoint says of itself."""
    return [getattr(service.store_checkpoint, name) for name in SHOWN.split()]


def seen(service: Any) -> Any:
    """Return what a state holds beside the files."""
    return (
        [getattr(service, name) for name in COUNTERS.split()],
        store_checkpoint.seen(service.store_checkpoint),
        [index_file.seen(file) for file in service.index_files],
        service.files.now_ms,
    )


def seen_of_old(service: Any) -> Any:
    """Return the same of the older model."""
    return (
        [getattr(service, name) for name in COUNTERS.split()],
        store_checkpoint.seen(service.store_checkpoint),
        [index_file.seen_of_old(file) for file in service.index_files],
        service.now_ms,
    )


PLAIN = Plain(
    open_it,
    {
        "get_and_create_last_index_file": last_file,
        "retry_get_and_create_index_file": last_file,
        "index_files": index_files,
        "store_checkpoint": checkpoint,
    },
    shows=dict.fromkeys(
        (
            "get_and_create_last_index_file",
            "retry_get_and_create_index_file",
            "index_files",
            "store_checkpoint",
        ),
        lambda shown: shown,
    ),
    seen=seen,
    seen_of_old=seen_of_old,
    kind=IndexService,
)
