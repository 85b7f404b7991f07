# SPDX-License-Identifier: Apache-2.0
"""The laws of holding and releasing a file."""

from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.register import Transition, law
from segproof_model.laws.rocketmq.format.index_entries import is_refused
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.reference_resource import ReferenceResource

RESOURCE = "RocketMQ ReferenceResource, 4.0.0 to 5.5.1"
DESTROY = "RocketMQ MappedFile.destroy, 4.0.0 to 5.5.1"


@law("RMQREF-1", ReferenceResource, RESOURCE, on="hold release_hold")
def holding_counts_while_available(step: Transition) -> bool:
    """Holding succeeds exactly while the resource is available and its count is > 0, and adds one;
    releasing takes one off and cleans up at <= 0."""
    before, after = step.before, step.after
    if step.operation == "hold":
        holds = before.is_available and before.ref_count > 0
        is_counted = after.ref_count == before.ref_count + holds
        return step.outcome is holds and is_counted and step.changed_only("ref_count")
    cleaned = before.cleanup_over if before.ref_count > 1 else not before.is_available
    counted = after.ref_count, after.cleanup_over
    is_kept = step.changed_only("ref_count cleanup_over")
    return is_kept and counted == (before.ref_count - 1, cleaned)


@law("RMQREF-2", IndexFile, RESOURCE, on="destroy")
def second_shutdown_forces(step: Transition) -> bool:
    """The first shutdown makes the resource unavailable and releases it once; a later shutdown
    takes it from its holders only after the interval since the first.
    """
    before, after, now = step.before.resource, step.after.resource, step.before.files.now_ms
    first, count = before.first_shutdown_timestamp_ms, before.ref_count
    if before.is_available:
        first, count = now, count - 1
    elif count > 0 and now - first >= step.arguments["interval_forcibly_ms"]:
        count = -1001 - count
    left = after.first_shutdown_timestamp_ms, after.ref_count, after.is_available
    return left == (first, count, False)


@law("RMQREF-3", IndexFile, DESTROY, on="destroy")
def destroying_deletes_what_nobody_holds(step: Transition) -> bool:
    """Destroying deletes the file and answers true if the count is <= 0 after the shutdown, even if
    the file is already gone; else it answers false, and the file stays.
    """
    is_gone, left = step.after.ref_count <= 0, dict(step.before.files.images)
    if is_gone:
        left.pop(step.before.file_name, None)
    return step.outcome is is_gone and bool(step.after.files.images == left)


@law("RMQREF-4", IndexFile, DESTROY, on="select_phy_offset put_key")
def destroyed_file_finds_nothing(step: Transition) -> bool:
    """After the resource was shut down or destroyed, a query finds nothing.

    In segproof it raises the unmapped error, and so does a put.
    """
    if is_refused(step.before):
        return step.refused(ErrorKind.UNMAPPED)
    if step.before.is_available or step.operation == "put_key":
        return True
    return step.outcome == tuple(step.arguments["phy_offsets"]) and step.is_unchanged
