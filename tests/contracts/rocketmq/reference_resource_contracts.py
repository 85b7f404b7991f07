# SPDX-License-Identifier: Apache-2.0
"""Contracts of the count of users: holding, releasing, and shutting down.

Mirrors: model/segproof_model/rocketmq/format/reference_resource.py,
    impl/segproof/rocketmq/reference_resource.py.
"""

import contextlib
from typing import Any

from segproof.rocketmq import reference_resource as implementation
from segproof_model.rocketmq.format.reference_resource import ReferenceResource
from segproof_tests.contracts import Mutant, contract

RESOURCE = "segproof.rocketmq.reference_resource"

Counts = tuple[int, bool, bool, int]
"""Users, whether it may be held, whether it was cleaned up, and when it was first shut down."""


def _with(resource: Any, counts: Counts) -> Any:
    """Return the resource with these counts."""
    resource.ref_count, resource.is_available, resource.cleanup_over = counts[:3]
    resource.first_shutdown_timestamp_ms = counts[3]
    return resource


def _implemented(counts: Counts, now_ms: int = 0) -> Any:
    """Return the implementation's resource, without a lock: one thread looks at it."""
    resource: Any = implementation.ReferenceResource(lambda: True, time=lambda: now_ms)
    resource._lock = contextlib.nullcontext()
    return _with(resource, counts)


def _counts(resource: Any) -> Counts:
    """Return the counts of a resource."""
    first = resource.first_shutdown_timestamp_ms
    return resource.ref_count, resource.is_available, resource.cleanup_over, first


@contract(
    f"{RESOURCE}:ReferenceResource.hold",
    "RMQREF-1",
    "any count, available or not, cleaned up or not",
    Mutant("self.ref_count <= 0", "self.ref_count < 0"),
    Mutant("self.ref_count <= 0", "self.ref_count < 0", "ReferenceResource._release"),
    Mutant("not self.is_available and ", "", "ReferenceResource._release"),
)
def hold_and_release(ref_count: int, is_available: bool, is_over: bool, is_held: bool) -> bool:
    """A resource is held while it is available and used; the last who releases it cleans up.

    post: _
    """
    counts = ref_count, is_available, is_over, 0
    model, resource = _with(ReferenceResource(), counts), _implemented(counts)
    if is_held:
        return resource.hold() == model.hold() and _counts(resource) == _counts(model)
    resource.release()
    model.release_hold()
    return _counts(resource) == _counts(model)


@contract(
    f"{RESOURCE}:ReferenceResource.shutdown",
    "RMQREF-2 RMQREF-3",
    "any count, available or not, any times and any interval",
    Mutant("self._waited_ms() >= interval", "self._waited_ms() > interval"),
    Mutant("-1000 - self.ref_count", "-1000"),
)
def shutdowns(
    ref_count: int, is_available: bool, is_over: bool, first: int, now: int, interval: int
) -> bool:
    """The first shutdown releases it; a later one takes it away once the interval has passed.

    post: _
    """
    counts = ref_count, is_available, is_over, first
    model, resource = _with(ReferenceResource(), counts), _implemented(counts, now)
    resource.shutdown(interval)
    model.shutdown(interval, now_ms=now)
    is_over = model.is_cleanup_over
    return _counts(resource) == _counts(model) and resource.is_cleanup_over == is_over
