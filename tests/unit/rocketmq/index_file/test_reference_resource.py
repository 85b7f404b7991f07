# SPDX-License-Identifier: Apache-2.0
"""Who holds a mapped file, and when it is cleaned up."""

from segproof_model.language.outcomes import Step
from segproof_model.language.states import apply
from segproof_model.rocketmq.format.reference_resource import ReferenceResource


def test_resource_released_too_often() -> None:
    """One that was not shut down is not cleaned up, and not to be held again."""
    resource = ReferenceResource()
    resource.release_hold()
    assert (0, True, False) == (
        resource.ref_count,
        resource.is_available,
        resource.is_cleanup_over,
    )
    assert not resource.hold()
    resource.release_hold()
    assert -1 == resource.ref_count


def test_second_shutdown_changes_nothing() -> None:
    """Where nobody holds it any more."""
    ended = ReferenceResource()
    ended.shutdown(0, now_ms=5)
    assert (0, 5, True) == (
        ended.ref_count,
        ended.first_shutdown_timestamp_ms,
        ended.is_cleanup_over,
    )
    assert Step(ended) == apply(ended, "shutdown", 0, now_ms=9)
