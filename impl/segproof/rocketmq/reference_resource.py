# SPDX-License-Identifier: Apache-2.0
"""Who still uses a mapped file: a count that decides when it may be unmapped.

Upstream: RocketMQ ReferenceResource (4.7.0 to 5.5.1).
Laws: RMQREF-1, RMQREF-2.
"""

import threading
from collections.abc import Callable

from segproof.integers import now_ms


class ReferenceResource:
    """A resource that is cleaned up once nobody holds it, by any number of threads.

    `cleanup` gives it back and returns whether it did; it is called once the resource was shut down
    and its count is 0 or less, while no thread can hold or release it. `time` is a clock in ms.
    """

    ref_count: int
    """How many use the resource, its owner included."""
    is_available: bool
    """Whether it may be held: until the first shutdown."""
    cleanup_over: bool
    """What the last cleaning up answered."""
    first_shutdown_timestamp_ms: int
    """When the first shutdown was; 0 before it."""

    def __init__(self, cleanup: Callable[[], bool], *, time: Callable[[], int] = now_ms) -> None:
        self._cleanup = cleanup
        self._time = time
        self._lock = threading.Lock()
        self.ref_count = 1
        self.is_available = True
        self.cleanup_over = False
        self.first_shutdown_timestamp_ms = 0

    @property
    def is_cleanup_over(self) -> bool:
        """Whether nobody holds the resource and it was cleaned up."""
        return self.ref_count <= 0 and self.cleanup_over

    def hold(self) -> bool:
        """Count one user more, if the resource is available and not given up (RMQREF-1)."""
        with self._lock:
            if not self.is_available or self.ref_count <= 0:
                return False
            self.ref_count += 1
            return True

    def release(self) -> None:
        """Count one user less; the last one cleans up (RMQREF-1).

        A resource that was never shut down is not cleaned up, however often it is released.
        """
        with self._lock:
            self._release()

    def _release(self) -> None:
        self.ref_count -= 1
        if self.ref_count <= 0:
            self.cleanup_over = not self.is_available and self._cleanup()

    def shutdown(self, interval_forcibly_ms: int) -> None:
        """Make the resource unavailable, and release it for its owner (RMQREF-2).

        A later call, `interval_forcibly_ms` or more after the first, takes it from who holds it.
        """
        with self._lock:
            if self.is_available:
                self.is_available = False
                self.first_shutdown_timestamp_ms = self._time()
                self._release()
            elif self.ref_count > 0 and self._waited_ms() >= interval_forcibly_ms:
                self.ref_count = -1000 - self.ref_count
                self._release()

    def _waited_ms(self) -> int:
        return self._time() - self.first_shutdown_timestamp_ms
