# SPDX-License-Identifier: Apache-2.0
"""Who still uses a mapped file: a count that decides when it may be unmapped.

Mirrors: impl/segproof/rocketmq/reference_resource.py.
Upstream: RocketMQ ReferenceResource, and cleanup of MappedFile (4.7.0 to 5.5.1).
Laws: RMQREF-1, RMQREF-2.
Not covered: threads; each call here is one step.
Used by: index_file.
"""

from dataclasses import dataclass
from typing import Self

from segproof_model.language.outcomes import Step
from segproof_model.values import replace


@dataclass(frozen=True, slots=True)
class ReferenceResource:
    """A resource that is cleaned up once nobody holds it.

    >>> resource = ReferenceResource().hold().after
    >>> waiting = resource.shutdown(1000, now_ms=50).after
    >>> waiting.hold().outcome, waiting.is_cleanup_over, waiting.release().after.is_cleanup_over
    (False, False, True)
    """

    ref_count: int = 1
    """How many use the resource, its owner included."""
    is_available: bool = True
    """Whether it may be held: until the first shutdown."""
    cleanup_over: bool = False
    """What the last cleaning up answered."""
    first_shutdown_timestamp_ms: int = 0
    """When the first shutdown was; 0 before it."""

    @property
    def is_cleanup_over(self) -> bool:
        """Whether nobody holds the resource and it was cleaned up."""
        return self.ref_count <= 0 and self.cleanup_over

    def hold(self) -> Step[Self]:
        """Count one user more, if the resource is available and not given up (RMQREF-1)."""
        if not self.is_available or self.ref_count <= 0:
            return Step(self, False)
        return Step(replace(self, ref_count=self.ref_count + 1), True)

    def release(self) -> Step[Self]:
        """Count one user less; the last one cleans up (RMQREF-1).

        A resource that was never shut down is not cleaned up, however often it is released.
        """
        left = replace(self, ref_count=self.ref_count - 1)
        if left.ref_count > 0:
            return Step(left)
        return Step(replace(left, cleanup_over=not left.is_available))

    def shutdown(self, interval_forcibly_ms: int, *, now_ms: int = 0) -> Step[Self]:
        """Make the resource unavailable, and release it for its owner (RMQREF-2).

        A later call, `interval_forcibly_ms` or more after the first, takes it from who holds it.
        """
        if self.is_available:
            ended = replace(self, is_available=False, first_shutdown_timestamp_ms=now_ms)
            return ended.release()
        if self.ref_count <= 0 or now_ms - self.first_shutdown_timestamp_ms < interval_forcibly_ms:
            return Step(self)
        return replace(self, ref_count=-1000 - self.ref_count).release()
