# SPDX-License-Identifier: Apache-2.0
"""How the plain message store is driven: opened, loaded and recovered as one step."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.descriptions.message_store import ENTRIES, LOG_FILE_SIZE, SLOTS, TOPIC
from segproof_harness.generation import INT64_MAX
from segproof_harness.operations import Value
from segproof_harness.plain import Plain, index_service
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Step
from segproof_model.language.states import opened, refuse
from segproof_model.rocketmq.broker.message_store import MessageStore, MessageStoreConfig


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open, load and recover; a store that cannot be loaded is not open."""

    def made(draft: Files) -> MessageStore:
        given: Any = arguments
        draft.now_ms = given["now_ms"]
        config = MessageStoreConfig(SLOTS, ENTRIES, LOG_FILE_SIZE)
        store = release.kind(MessageStore)(draft, "", config)
        return store if store.load_and_recover() else refuse(ErrorKind.UNMAPPED)

    return opened(made, files)


def query(store: MessageStore, key: str, max_num: int) -> Any:
    """Return the offsets of a key."""
    return store.index_service.query_offset(TOPIC, key, max_num, 0, INT64_MAX).phy_offsets


def seen(store: Any) -> Any:
    """Return what a store holds."""
    log = store.commit_log.min_offset, store.commit_log.max_offset
    shown = store.store_path, store.last_exit_ok, store.log_is_whole
    return shown, log, index_service.seen(store.index_service)


def seen_of_old(store: Any) -> Any:
    """Return the same of the older model."""
    log = store.commit_log.min_offset, store.commit_log.max_offset
    shown = store.store_path, store.last_exit_ok, store.log_is_whole
    return shown, log, index_service.seen_of_old(store.index_service)


CALLS: Mapping[str, Any] = {"query": query, "close": lambda store: None}
PLAIN = Plain(open_it, CALLS, seen=seen, seen_of_old=seen_of_old, kind=MessageStore)
