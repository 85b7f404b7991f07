# SPDX-License-Identifier: Apache-2.0
"""The laws of the store checkpoint, and of the marker of a clean exit.

Used by: the harness, the generated pages.
"""

from collections.abc import Sequence

from segproof_model.language.integers import int64_at
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.registry import Transition, law
from segproof_model.profiles import ROCKETMQ_5_5_1, Profile
from segproof_model.rocketmq.store_checkpoint import StoreCheckpoint

STRUCTURE = "index-service"
CLASS = "RocketMQ StoreCheckpoint, 4.0.0 to 5.5.1"
SIZE = 4096
SAFETY_MS = 3000


def _fields(checkpoint: StoreCheckpoint) -> tuple[int, ...]:
    return (
        checkpoint.physic_msg_timestamp,
        checkpoint.logics_msg_timestamp,
        checkpoint.index_msg_timestamp,
        checkpoint.master_flushed_offset,
        checkpoint.confirm_phy_offset,
        checkpoint.logics_physical_offset,
    )


def _stored(checkpoint: StoreCheckpoint) -> tuple[int, ...]:
    data = checkpoint.directory.read(checkpoint.name) or b""
    return tuple(int64_at(data, position) for position in range(0, 48, 8))


@law("RMQCKPT-1", structure=STRUCTURE, scope="pure", source=CLASS)
def fields_lie_in_order(
    data: bytes, values: Sequence[int], profile: Profile = ROCKETMQ_5_5_1
) -> bool:
    """The checkpoint file is 4096 bytes with big-endian int64 fields: physic @0, logics @8, index
    @16, and, in releases that know them, master flushed offset @24, confirmed offset @32 and the
    offset that the queues have reached @40.

    `values` are those that were flushed, in this order; a file that was longer stays so.
    """
    known = profile.rmq_checkpoint_fields
    found = [int.from_bytes(data[8 * n : 8 * n + 8], "big", signed=True) for n in range(known)]
    return len(data) >= SIZE and found == list(values[:known])


@law("RMQCKPT-2", structure=STRUCTURE, scope="step", source=CLASS)
def unknown_fields_stay(transition: Transition) -> bool:
    """A release that does not know a field leaves its bytes as they are."""
    before, after = transition.before, transition.after
    if not isinstance(before, StoreCheckpoint):
        return True
    unknown = 8 * before.profile.rmq_checkpoint_fields
    old, new = (one.directory.read(one.name) or b"" for one in (before, after))
    return old[unknown:] == new[unknown:]


@law("RMQCKPT-3", structure=STRUCTURE, scope="step", source=CLASS)
def only_flushing_writes(transition: Transition) -> bool:
    """Setters change memory only; flush writes every known field; an existing file is read when it
    is opened, and a new one gives zeros."""
    before, after, arguments = transition.before, transition.after, transition.arguments
    if before is None and isinstance(after, StoreCheckpoint):
        known = after.profile.rmq_checkpoint_fields
        found = arguments["directory"].read(after.name) or b""
        read = [int64_at(found.ljust(SIZE, b"\0"), 8 * n) for n in range(known)]
        return list(_fields(after)) == read + [0] * (6 - known)
    if not isinstance(before, StoreCheckpoint):
        return True
    if transition.operation in ("flush", "shutdown", "close") and before.is_mapped:
        known = before.profile.rmq_checkpoint_fields
        same = _fields(after) == _fields(before)
        return same and _stored(after)[:known] == _fields(after)[:known]
    kept = bool(before.directory == after.directory)
    if not transition.operation.startswith("set_") or isinstance(transition.outcome, Raised):
        return kept and _fields(before) == _fields(after)
    changed = getattr(after, transition.operation.removeprefix("set_"))
    unlike = sum(old != new for old, new in zip(_fields(before), _fields(after), strict=True))
    return kept and bool(changed == arguments["value"]) and unlike <= 1


@law("RMQCKPT-4", structure=STRUCTURE, scope="state", source=CLASS)
def least_time_is_safe(state: object) -> bool:
    """The least time is max(0, min(physic, logics) - 3000), and that of the index is min(least
    time, index).

    Upstream the difference wraps at 64 bits.
    """
    if not isinstance(state, StoreCheckpoint):
        return True
    physic, logics, index = _fields(state)[:3]
    safe = min(physic, logics) - SAFETY_MS
    if safe < -(2**63) and state.profile.rmq_checkpoint_wraps:
        safe += 2**64
    least = max(safe, 0)
    return state.min_timestamp == least and state.min_timestamp_index == min(least, index)


@law("RMQCKPT-5", structure=STRUCTURE, scope="pure", source="RocketMQ DefaultMessageStore.load")
def exit_was_clean_without_marker(content: bytes | None, outcome: object) -> bool:
    """The last exit was clean exactly when the abort file does not exist; its content is never
    read.

    `content` is that of the file, None without one; `outcome` what the store says of the exit.
    """
    return outcome is (content is None) or outcome == Raised(ErrorKind.UNMAPPED)
