# SPDX-License-Identifier: Apache-2.0
"""Contracts of the count of users: holding, releasing, and shutting down.

Mirrors: model/segproof_model/rocketmq/reference_resource.py,
    impl/segproof/rocketmq/reference_resource.py.
Used by: registry.
"""

import contextlib
from typing import Any

from segproof.rocketmq import reference_resource as implementation
from segproof_model.rocketmq.reference_resource import ReferenceResource


def _implemented(state: ReferenceResource, now_ms: int) -> Any:
    """Return the resource in a state, without a lock: one thread looks at it."""
    resource: Any = implementation.ReferenceResource(lambda: True, time=lambda: now_ms)
    resource._lock = contextlib.nullcontext()
    resource.ref_count, resource.is_available = state.ref_count, state.is_available
    resource.cleanup_over = state.cleanup_over
    resource.first_shutdown_timestamp_ms = state.first_shutdown_timestamp_ms
    return resource


def _state(resource: Any) -> ReferenceResource:
    """Return the state of a resource."""
    return ReferenceResource(
        resource.ref_count,
        resource.is_available,
        resource.cleanup_over,
        resource.first_shutdown_timestamp_ms,
    )


def hold_and_release(ref_count: int, is_available: bool, is_over: bool, is_held: bool) -> bool:
    """A resource is held while it is available and used; the last who releases it cleans up.

    post: _
    """
    state = ReferenceResource(ref_count, is_available, is_over)
    resource = _implemented(state, 0)
    if is_held:
        held = state.hold()
        return resource.hold() == held.outcome and _state(resource) == held.after
    resource.release()
    return _state(resource) == state.release().after


def shutdowns(
    ref_count: int, is_available: bool, is_over: bool, first: int, now: int, interval: int
) -> bool:
    """The first shutdown releases it; a later one takes it away once the interval has passed.

    post: _
    """
    state = ReferenceResource(ref_count, is_available, is_over, first)
    resource = _implemented(state, now)
    resource.shutdown(interval)
    after = state.shutdown(interval, now_ms=now).after
    return _state(resource) == after and resource.is_cleanup_over == after.is_cleanup_over
