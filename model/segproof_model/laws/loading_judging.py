# SPDX-License-Identifier: Apache-2.0
"""What the laws of loading ask of an opening: what it found, and what its swaps replace.

Used by: laws.log_loader.
"""

from typing import NamedTuple

from segproof_model.directory import Directory
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.segment_names import offset_of_name
from segproof_model.language.integers import INT64_MAX, int32_at
from segproof_model.laws.log_judging import bases_of, batches_of_file, file_of, is_far
from segproof_model.laws.registry import Transition
from segproof_model.laws.segment_judging import Batch


class Loading(NamedTuple):
    """An opening that raised nothing."""

    log: PartitionLog
    found: Directory
    """The directory before."""
    prefix: str
    start: int
    """The checkpointed start of the log."""
    recovery_point: int
    """The checkpointed one."""
    is_clean: bool


def loading_of(transition: Transition) -> Loading | None:
    """Return what was loaded, or None for any other step, and for names below offset 0."""
    log, arguments = transition.after, transition.arguments
    if transition.operation != "open" or not isinstance(log, PartitionLog):
        return None
    found = arguments["directory"]
    if any(name.startswith("-") for name in names_in(found, log.prefix)):
        return None
    return Loading(
        log,
        found,
        log.prefix,
        arguments.get("log_start_offset", 0),
        arguments.get("recovery_point", 0),
        arguments.get("last_shutdown_clean", True),
    )


def names_in(directory: Directory, prefix: str, suffix: str = "") -> list[str]:
    """Return the names of the partition's files, without its directory."""
    names = [name.removeprefix(prefix) for name in directory if name.startswith(prefix)]
    return [name for name in names if name.endswith(suffix)]


def offset_in(name: str) -> int:
    """Return the base offset that a file's name tells."""
    offset = offset_of_name(name)
    assert isinstance(offset, int)
    return offset


def swaps_of(loading: Loading) -> list[int]:
    """Return the base offsets of the swaps that are to be completed."""
    counts = loading.log.profile.swap_may_be_unfinished
    names = names_in(loading.found, loading.prefix, ".cleaned") if counts else []
    first = min((offset_in(name) for name in names), default=INT64_MAX)
    swaps = map(offset_in, names_in(loading.found, loading.prefix, ".log.swap"))
    return [base for base in swaps if base < first]


def range_of_swaps(loading: Loading) -> tuple[int, int] | None:
    """Return which base offsets the swaps replace, the end exclusive; None if it is not known."""
    swaps = swaps_of(loading)
    end = -INT64_MAX - 1
    for base in swaps:
        name = file_of(loading.prefix, base, ".log.swap")
        batches = batches_of_file(loading.found, name)
        if batches is None or not _shows_end(loading, base, batches):
            return None
        end = max([end, base, *(batch.last_offset + 1 for batch in batches)])
    return min(swaps, default=INT64_MAX), end


def _shows_end(loading: Loading, base: int, batches: list[Batch]) -> bool:
    """Return whether the last entry of a swap's index leads to a batch before its end.

    From there Kafka reads on to find the end.
    """
    index = loading.found.read(file_of(loading.prefix, base, ".index.swap")) or b""
    entry = index[: len(index) // 8 * 8][-8:]
    return not entry or (
        int32_at(entry, 4) in [batch.position for batch in batches]
        and base + int32_at(entry, 0) <= batches[-1].last_offset
    )


def is_untouched(loading: Loading) -> bool:
    """Return whether nothing but swaps could change a log: no scan, no split, no wipe.

    Where a swap is recovered, its release is not judged.
    """
    has_swaps = bool(names_in(loading.found, loading.prefix, ".swap"))
    if has_swaps and not loading.log.profile.swap_keeps_indexes:
        return False
    has_indexes = all(
        file_of(loading.prefix, base, ".index") in loading.found
        for base in bases_of(loading.found, loading.prefix)
    )
    has_txns = bool(names_in(loading.found, loading.prefix, ".txnindex"))
    first = loading.log.log_segments.base_offsets()[0]
    is_new = not bases_of(loading.found, loading.prefix)
    is_wiped = loading.log.size == 0 and (is_new or first == loading.start)
    trusts_indexes = loading.log.profile.sanity_checks_transactions_only
    indexed = {offset_in(name) for name in names_in(loading.found, loading.prefix, ".index.swap")}
    are_whole = set(swaps_of(loading)) <= indexed
    is_trusting = loading.is_clean and trusts_indexes and not has_txns
    return is_trusting and has_indexes and are_whole and not is_wiped


def overflows(directory: Directory, prefix: str) -> bool:
    """Return whether a file is too long for its base offset, and so may be split."""
    return any(
        is_far(batches_of_file(directory, prefix + name) or [], offset_in(name))
        for name in names_in(directory, prefix, ".log")
    )
