# SPDX-License-Identifier: Apache-2.0
"""Who still uses a mapped file: a count that decides when it may be unmapped.

Upstream: RocketMQ 5.5.1, ReferenceResource, and cleanup of MappedFile.
Laws: RMQREF-1, RMQREF-2.
Not covered: threads; each call here is one step.
"""

from segproof_model.language.states import State


class ReferenceResource(State):
    """A resource that is cleaned up once nobody holds it.

    >>> resource = ReferenceResource()
    >>> resource.hold(), resource.shutdown(1000, now_ms=50), resource.hold()
    (True, None, False)
    >>> resource.is_cleanup_over, resource.release_hold(), resource.is_cleanup_over
    (False, None, True)
    """

    def __init__(self) -> None:
        self.ref_count = 1
        """How many use the resource, its owner included."""
        self.is_available = True
        """Whether it may be held: until the first shutdown."""
        self.cleanup_over = False
        """What the last cleaning up answered."""
        self.first_shutdown_timestamp_ms = 0
        """When the first shutdown was; 0 before it."""

    @property
    def is_cleanup_over(self) -> bool:
        """Whether nobody holds the resource and it was cleaned up."""
        return self.ref_count <= 0 and self.cleanup_over

    @property
    def can_be_held(self) -> bool:
        """Whether the resource is available, and not given up."""
        return self.is_available and self.ref_count > 0

    def hold(self) -> bool:
        """Count one user more, if the resource can be held; return whether (RMQREF-1)."""
        if not self.can_be_held:
            return False
        self.ref_count += 1
        return True

    def release_hold(self) -> None:
        """Count one user less; the last one cleans up (RMQREF-1).

        A resource that was never shut down is not cleaned up, however often it is released.
        """
        self.ref_count -= 1
        if self.ref_count <= 0:
            self.cleanup_over = not self.is_available

    def shutdown(self, interval_forcibly_ms: int, now_ms: int) -> None:
        """Make the resource unavailable, and release it for its owner (RMQREF-2).

        A later call, `interval_forcibly_ms` or more after the first, takes it from who holds it.
        """
        if self.is_available:
            self.is_available, self.first_shutdown_timestamp_ms = False, now_ms
            self.release_hold()
        elif (
            self.ref_count > 0 and now_ms - self.first_shutdown_timestamp_ms >= interval_forcibly_ms
        ):
            self.ref_count = -1000 - self.ref_count
            self.release_hold()
