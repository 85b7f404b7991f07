# SPDX-License-Identifier: Apache-2.0
"""The worlds by their names."""

from segproof_harness.crashes.kafka.log_manager import LogManagerWorld
from segproof_harness.crashes.kafka.partition_log import PartitionLogWorld
from segproof_harness.crashes.rocketmq.message_index import MessageIndexWorld
from segproof_harness.crashes.worlds import World

__all__ = ["WORLDS", "world_named"]

WORLDS: dict[str, type[World]] = {
    "partition-log": PartitionLogWorld,
    "log-manager": LogManagerWorld,
    "message-index": MessageIndexWorld,
}


def world_named(name: str) -> type[World]:
    """Return a world. Raises: ValueError."""
    if name not in WORLDS:
        raise ValueError(f"no world {name}: one of {', '.join(WORLDS)}")
    return WORLDS[name]
