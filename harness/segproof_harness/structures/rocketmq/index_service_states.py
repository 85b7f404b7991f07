# SPDX-License-Identifier: Apache-2.0
"""States of RocketMQ's index service that histories must really reach."""

from typing import Any

from segproof_harness.structures.rocketmq.dispatch_drawing import FOLDER, REQUEST
from segproof_harness.structures.steps import Event, States
from segproof_model.rocketmq.broker.index_service import file_name_of
from segproof_model.rocketmq.format.message import DispatchRequest

ROLLED_BACK = 12


def _is_built(event: Event) -> bool:
    return event.done("build_index")


def _request(event: Event) -> DispatchRequest:
    request: DispatchRequest = REQUEST.built(event.argument("request"), DispatchRequest)
    return request


def _new_entries(event: Event) -> int:
    """Return how many entries a message got, over all files."""
    return _entries(event.after) - _entries(event.before)


def _entries(state: Any) -> int:
    return sum(file.index_count - 1 for file in state.index_files)


def _new_files(event: Event) -> int:
    return len(event.after.index_files) - len(event.before.index_files)


def _index_names(state: Any) -> set[str]:
    return {name for name in state.files if name.startswith(FOLDER)}


def _is_load(event: Event, last_exit_ok: bool) -> bool:
    return event.does("load") and event.argument("last_exit_ok") is last_exit_ok


def _in_two_files(event: Event) -> bool:
    """Return whether the keys of one message lie in the old file and in a new one."""
    if not _is_built(event) or _new_files(event) < 1 or not event.before.index_files:
        return False
    place = len(event.before.index_files) - 1
    old, now = event.before.index_files[place], event.after.index_files[place]
    return bool(now.index_count > old.index_count)


def _comes_again(event: Event) -> bool:
    files: Any = event.before.index_files if event.before is not None else ()
    return (
        _is_built(event)
        and bool(files)
        and files[-1].index_count > 1
        and _request(event).commit_log_offset == files[-1].end_phy_offset
        and _request(event).sys_flag & ROLLED_BACK != ROLLED_BACK
    )


def _found(event: Event) -> tuple[int, ...]:
    if not event.done("query_offset"):
        return ()
    return tuple(event.outcome.value[0])


SOMETIMES: States = {
    "loaded-2-files": lambda event: (
        event.does("load") and event.outcome.value is True and len(event.after.index_files) >= 2
    ),
    "load-refused": lambda event: (
        event.does("load") and (event.outcome.value is False or event.outcome.error is not None)
    ),
    "deleted-after-crash": lambda event: (
        _is_load(event, False) and _index_names(event.after) < _index_names(event.before)
    ),
    "kept-after-crash": lambda event: (
        _is_load(event, False) and any(file.end_timestamp > 0 for file in event.after.index_files)
    ),
    "built": lambda event: _is_built(event) and _new_entries(event) > 0,
    "rolled": lambda event: _is_built(event) and _new_files(event) == 1,
    "rolled-twice": lambda event: _is_built(event) and _new_files(event) >= 2,
    "in-two-files": _in_two_files,
    "same-millisecond": lambda event: (
        _is_built(event)
        and _new_files(event) >= 1
        and len(event.after.index_files) >= 2
        and event.after.index_files[-1].file_name > FOLDER + file_name_of(event.after.files.now_ms)
    ),
    "comes-again": lambda event: _comes_again(event),
    "comes-again-with-more": lambda event: _comes_again(event) and _new_entries(event) > 0,
    "before-the-end": lambda event: (
        _is_built(event)
        and bool(event.before.index_files)
        and _request(event).commit_log_offset < event.before.index_files[-1].end_phy_offset
    ),
    "rolled-back": lambda event: (
        _is_built(event) and _request(event).sys_flag & ROLLED_BACK == ROLLED_BACK
    ),
    "prepared": lambda event: (
        _is_built(event) and _new_entries(event) > 0 and _request(event).sys_flag & ROLLED_BACK == 4
    ),
    "without-keys": lambda event: (
        _is_built(event) and _new_entries(event) == 0 and _new_files(event) == 1
    ),
    "several-keys": lambda event: _is_built(event) and _new_entries(event) >= 3,
    "tags-indexed": lambda event: (
        _is_built(event)
        and _new_entries(event) > 0
        and bool(dict(_request(event).properties_map or ()).get("TAGS"))
    ),
    "found-2": lambda event: len(_found(event)) >= 2,
    "found-in-2-files": lambda event: (
        bool(_found(event))
        and sum(
            any(entry.phy_offset in _found(event) for entry in file.entries_list())
            for file in event.before.index_files
        )
        >= 2
    ),
    "list-cut": lambda event: (
        len(_found(event)) > 0 and len(_found(event)) == event.argument("max_num")
    ),
    "nothing-found": lambda event: (
        event.done("query_offset") and not _found(event) and event.outcome.value[1] > 0
    ),
    "negative-refused": lambda event: event.refused("invalid-argument", "query_offset"),
    "corrupt-found": lambda event: event.outcome.error == "corrupt-index",
    "creation-refused": lambda event: event.outcome.error == "io-error",
    "checkpoint-moved": lambda event: (
        event.before is not None
        and event.after is not None
        and event.before.store_checkpoint.index_msg_timestamp
        != event.after.store_checkpoint.index_msg_timestamp
        and _is_built(event)
    ),
    "expired": lambda event: event.does("delete_expired_file") and _new_files(event) < 0,
    "last-is-kept": lambda event: (
        event.does("delete_expired_file")
        and bool(event.after.index_files)
        and event.after.index_files[-1].end_phy_offset < event.argument("offset")
    ),
    "destroyed": lambda event: event.does("destroy") and _new_files(event) < 0,
    "empty-file-passed-over": lambda event: (
        bool(_found(event)) and event.before.index_files[-1].index_count == 1
    ),
}
"""States of an index service, by name."""
