# SPDX-License-Identifier: Apache-2.0
"""The laws of the store checkpoint."""

import struct
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from segproof_model.laws.register import Transition, has, law
from segproof_model.rocketmq.broker.index_service_deviations import SafeTimeDoesNotWrap
from segproof_model.rocketmq.broker.store_checkpoint import StoreCheckpoint

CLASS = "RocketMQ StoreCheckpoint, 4.0.0 to 5.5.1"
TIMES = "physic_msg_timestamp logics_msg_timestamp index_msg_timestamp"
OFFSETS = "master_flushed_offset confirm_phy_offset logics_physical_offset"
in_memory = attrgetter(*f"{TIMES} {OFFSETS}".split())
"""Returns the fields in memory, in the order of the file."""


def stored(checkpoint: bytes, count: int) -> tuple[int, ...]:
    """Return the first fields of a file; zeros stand for what is missing."""
    return struct.unpack_from(f">{count}q", checkpoint.ljust(8 * count, b"\0"))


@law("RMQCKPT-1", StoreCheckpoint, CLASS)
def fields_lie_in_order(checkpoint: bytes, values: Sequence[int]) -> bool:
    """The checkpoint file is 4096 bytes with big-endian int64 fields: physic @0, logics @8, index
    @16, and, in releases that know them, master flushed offset @24, confirmed offset @32 and the
    offset that the queues have reached @40.

    `values` are the flushed values of the known fields; a longer file stays longer.
    """
    return len(checkpoint) >= 4096 and stored(checkpoint, len(values)) == tuple(values)


@law("RMQCKPT-2", StoreCheckpoint, CLASS)
def unknown_fields_stay(step: Transition) -> bool:
    """A release keeps the bytes of fields that it does not know."""
    if step.operation == "open":
        return True
    unknown = 8 * step.before.field_count
    old, new = (one.files.image(one.name)[unknown:] for one in (step.before, step.after))
    return bool(old == new)


@law("RMQCKPT-3", StoreCheckpoint, CLASS)
def only_flushing_writes(step: Transition) -> bool:
    """Setters change memory only; flush writes every known field; an existing file is read when it
    is opened, and a new one gives zeros."""
    before, after, known = step.before, step.after, step.after.field_count
    if step.operation == "open":
        read = (*stored(before.image(after.name), known), 0, 0, 0)
        return in_memory(after) == read[:6]
    if step.operation in ("flush", "shutdown", "close") and before.is_mapped:
        is_written = stored(after.files.image(after.name), known) == in_memory(after)[:known]
        return is_written and step.changed_only("files is_mapped")
    if not step.operation.startswith("set_") or not step.succeeded:
        return step.is_unchanged
    name = step.operation.removeprefix("set_")
    return step.changed_only(name) and bool(getattr(after, name) == step.arguments["value"])


@law("RMQCKPT-4", StoreCheckpoint, CLASS)
def least_time_is_safe(state: Any) -> bool:
    """The least time is max(0, min(physic, logics) - 3000), and the least index time is min(least
    time, index).

    Upstream the difference wraps at 64 bits.
    """
    physic, logics, index = in_memory(state)[:3]
    safe = min(physic, logics) - 3000
    if safe < -(2**63) and not has(state, SafeTimeDoesNotWrap):
        safe += 2**64
    least = max(safe, 0)
    return (state.min_timestamp, state.min_timestamp_index) == (least, min(least, index))
