# SPDX-License-Identifier: Apache-2.0
"""The laws of counting who holds a file, and of giving it back.

They judge the steps of a `ReferenceResource` alone, and those of an index file that has one.

Used by: the harness, the generated pages.
"""

from typing import Any

from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.judging import raised
from segproof_model.laws.key_judging import is_of_file, is_refused
from segproof_model.laws.registry import Transition, law
from segproof_model.rocketmq.index_file import IndexFile
from segproof_model.rocketmq.reference_resource import ReferenceResource

STRUCTURE = "index-file"
RESOURCE = "RocketMQ ReferenceResource, 4.0.0 to 5.5.1"
DESTROY = "RocketMQ MappedFile.destroy, 4.0.0 to 5.5.1"


def _numbers(resource: ReferenceResource) -> tuple[int, bool]:
    return resource.ref_count, resource.is_available


def _is_of_resource(transition: Transition, operation: str) -> bool:
    is_resource = isinstance(transition.before, ReferenceResource)
    return is_resource and transition.operation == operation


@law("RMQREF-1", structure=STRUCTURE, scope="step", source=RESOURCE)
def holding_counts_while_available(transition: Transition) -> bool:
    """Holding succeeds exactly while the resource is available and its count is > 0, and adds one;
    releasing takes one off and cleans up at <= 0."""
    before, after = transition.before, transition.after
    if _is_of_resource(transition, "hold"):
        succeeds = before.is_available and before.ref_count > 0
        expected = (before.ref_count + succeeds, before.is_available)
        return transition.outcome is succeeds and _numbers(after) == expected
    if _is_of_resource(transition, "release"):
        cleans = before.ref_count <= 1
        expected_cleanup = not before.is_available if cleans else before.cleanup_over
        counted = _numbers(after) == (before.ref_count - 1, before.is_available)
        return counted and after.cleanup_over is expected_cleanup
    if is_of_file(transition, "select_phy_offset", "flush") and not before.is_available:
        return bool(after == before)
    return True


def _is_shut(before: ReferenceResource, after: ReferenceResource, now: int, interval: int) -> bool:
    """Return whether `after` is what a shutdown at the time `now` leaves of `before`."""
    if before.is_available:
        expected = (before.ref_count - 1, False, now)
    else:
        first = before.first_shutdown_timestamp_ms
        count = before.ref_count
        if count > 0 and now - first >= interval:
            count = -1001 - count
        expected = (count, False, first)
    return expected == (*_numbers(after), after.first_shutdown_timestamp_ms)


@law("RMQREF-2", structure=STRUCTURE, scope="step", source=RESOURCE)
def second_shutdown_forces(transition: Transition) -> bool:
    """The first shutdown makes the resource unavailable and releases it once; a later one takes it
    from who holds it only when the interval has passed since the first."""
    before, after, arguments = transition.before, transition.after, transition.arguments
    if _is_of_resource(transition, "shutdown"):
        now = arguments.get("now_ms", 0)
        return _is_shut(before, after, now, arguments["interval_forcibly_ms"])
    if is_of_file(transition, "destroy"):
        resources = before.resource, after.resource
        return _is_shut(*resources, before.now_ms, arguments["interval_forcibly_ms"])
    return True


@law("RMQREF-3", structure=STRUCTURE, scope="step", source=DESTROY)
def destroying_deletes_what_nobody_holds(transition: Transition) -> bool:
    """Destroying deletes the file and answers yes when the count is <= 0 after the shutdown, be the
    file gone already; else it answers no, and the file stays."""
    if not is_of_file(transition, "destroy"):
        return True
    before, after = transition.before, transition.after
    if after.ref_count > 0:
        return transition.outcome is False and bool(after.directory == before.directory)
    others = tuple(pair for pair in before.directory.files if pair[0] != before.file_name)
    return transition.outcome is True and bool(after.directory.files == others)


def _finds_nothing(file: Any) -> bool:
    """Return whether queries to the file have no answer of its own."""
    return not file.is_available or is_refused(file)


@law("RMQREF-4", structure=STRUCTURE, scope="step", source=DESTROY)
def destroyed_file_finds_nothing(transition: Transition) -> bool:
    """After the resource was shut down or destroyed, a query finds nothing.

    In segproof it raises the unmapped error, and so does a put.
    """
    if not is_of_file(transition, "select_phy_offset", "put_key"):
        return True
    before = transition.before
    if not isinstance(before, IndexFile) or not _finds_nothing(before):
        return True
    if is_refused(before):
        return raised(transition, ErrorKind.UNMAPPED) and transition.after == before
    if transition.operation == "put_key":
        return True
    return bool(transition.outcome == tuple(transition.arguments["phy_offsets"]))
