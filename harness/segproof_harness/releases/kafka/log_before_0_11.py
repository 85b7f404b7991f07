# SPDX-License-Identifier: Apache-2.0
"""The log of a partition before 0.11, where it is called otherwise than later.

It knows no producers, no leader epochs and no high watermark, and begins with its first segment.

Upstream: kafka.log.Log, LogConfig and LogAppendInfo of 0.10.2.
"""

import os
from typing import Any

from jpype import JBoolean, JLong

EARLY = (0, 11)
"""The first version whose log is called as later ones are."""
LEFT_OUT = frozenset(
    {
        "split_overflowed_segment",
        "maybe_increment_log_start_offset",
        "remove_expired_producers",
        "collect_aborted_transactions",
        "producer_state_manager",
        "leader_epoch_cache",
    }
)
"""What the log has not."""
UNOBSERVED = frozenset({"high_watermark", "last_stable_offset"})
"""What only the replica knows."""
KINDS = {"java.util.NoSuchElementException": "index-error"}
"""What is looked for in a wrapper around nothing is its last message."""


def new_log(
    jvm: Any,
    directory: str,
    config: Any,
    recovery_point: int,
    clock: Any,
    scheduler: Any,
) -> Any:
    """Return a partition's log, loaded from its directory."""
    list_by_name(directory)
    kind = jvm.java("kafka.log.Log")
    return kind(jvm.file(directory), config, JLong(recovery_point), scheduler, clock)


def list_by_name(directory: str) -> None:
    """Let a directory in memory list its files by name: Linux lists the newest first, or last.

    The log takes them as they are listed, and an error on the way leaves those behind it alone.
    """
    names = sorted(os.listdir(directory))
    for order in (names[::-1], names):
        for name in order:
            path = f"{directory}/{name}"
            os.rename(path, f"{path}~")
            os.rename(f"{path}~", path)
        if os.listdir(directory) == names:
            return


def append(log: Any, records: Any, is_leader: bool) -> Any:
    """Call append; a leader's call gives the messages their offsets."""
    return log.append(records, JBoolean(is_leader))
