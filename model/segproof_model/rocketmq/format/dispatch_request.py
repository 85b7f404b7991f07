# SPDX-License-Identifier: Apache-2.0
"""What the commit log passes on for each message, to the consume queues and to the index.

Mirrors: impl/segproof/rocketmq/message.py.
Upstream: RocketMQ 5.5.1, DispatchRequest.
"""

from typing import NamedTuple

__all__ = ["DispatchRequest"]


class DispatchRequest(NamedTuple):
    """What the log passes on for a message."""

    topic: str | None
    commit_log_offset: int
    msg_size: int
    tags_code: int
    store_timestamp: int
    consume_queue_offset: int
    keys: str | None
    """Keys with spaces between them; empty for a message without properties."""
    uniq_key: str | None
    sys_flag: int
    prepared_transaction_offset: int
    properties_map: tuple[tuple[str, str], ...] | None
    """None for a message without properties."""
