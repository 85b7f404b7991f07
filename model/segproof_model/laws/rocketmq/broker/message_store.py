# SPDX-License-Identifier: Apache-2.0
"""The laws of a whole store: its last exit, and the rebuilding of its index."""

from typing import Any

from segproof_model.language.outcomes import Raised
from segproof_model.laws.register import law
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.broker.message_store import MessageStore


@law("RMQCKPT-5", MessageStore, "RocketMQ DefaultMessageStore.load")
def exit_was_clean_without_marker(state: Any) -> bool:
    """The last exit was clean exactly when the abort file does not exist; its content is never
    read."""
    folder = f"{state.store_path}/" if state.store_path else ""
    return state.last_exit_ok is (f"{folder}abort" not in state.files.images)


@law("RMQLOG-7", MessageStore, "RocketMQ IndexService, 4.0.0 to 5.5.1")
def rebuilt_index_is_the_same(fed: IndexService | Raised, rebuilt: IndexService | Raised) -> bool:
    """An index rebuilt from a complete log by an empty service has, file by file in order, the same
    bytes as that of a service fed the same records from empty without a restart; only the file
    names differ."""
    if isinstance(fed, Raised) or isinstance(rebuilt, Raised):
        return fed == rebuilt
    return [one.image for one in fed.index_files] == [one.image for one in rebuilt.index_files]
