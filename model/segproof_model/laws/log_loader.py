# SPDX-License-Identifier: Apache-2.0
"""The laws of loading a log from its directory.

They judge the transition of an opening (no state before; its arguments tell the directory) that
raised nothing, one of them what a log manager does, and one a log before a crash and after it.
LOAD-1 is stated with the laws of directories.

Used by: the harness, the generated pages.
"""

import re
from collections.abc import Mapping
from typing import Any

from segproof_model.directory import Directory
from segproof_model.kafka.log_leftovers import is_odd
from segproof_model.kafka.log_manager import CLEAN_SHUTDOWN, LogManager
from segproof_model.kafka.partition_log import PartitionLog
from segproof_model.kafka.segment_names import offset_of_name
from segproof_model.language.integers import wrap32
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.loading_judging import (
    Loading,
    is_untouched,
    loading_of,
    names_in,
    offset_in,
    overflows,
    range_of_swaps,
    swaps_of,
)
from segproof_model.laws.log_judging import (
    STRUCTURE,
    bases_of,
    batches_of_file,
    batches_of_segment,
    file_of,
    index_entries,
    is_far,
    is_sound,
    log_images,
)
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.segment_judging import Batch, indexed_by_recovery
from segproof_model.profiles import NEWEST_KAFKA

CLASS = "Kafka LogLoader, since 3.0"
TEMPORARY = (".deleted", ".cleaned", ".swap")
INDEXES = (".index", ".timeindex", ".txnindex")
SEGMENT_SWAP = re.compile(r"[0-9]{20}[.](log|index|timeindex|txnindex)[.]swap", re.ASCII)


@law("LOAD-2", structure=STRUCTURE, scope="step", source=CLASS)
def swaps_are_completed(transition: Transition) -> bool:
    """A swap file with base >= the smallest `.cleaned` base is deleted; every other swap is
    completed by deleting the normal files with base in [min base, max next offset) and renaming.

    Releases up to 2.8, where a swap is recovered, are not judged.
    """
    loading = loading_of(transition)
    if loading is None or not is_untouched(loading) or (swapped := range_of_swaps(loading)) is None:
        return True
    swaps, (first, end) = swaps_of(loading), swapped
    kept = [base for base in bases_of(loading.found, loading.prefix) if not first <= base < end]
    images = dict(log_images(loading.log))
    return sorted(images) == sorted({*kept, *swaps}) and all(
        images[base] == loading.found.read(file_of(loading.prefix, base, ".log.swap"))
        for base in swaps
    )


@law("LOAD-3", structure=STRUCTURE, scope="step", source=CLASS)
def other_segments_stay(transition: Transition) -> bool:
    """No segment outside the completed swap's range is touched.

    Releases up to 2.8 replace a segment that reaches into it, so they are not judged.
    """
    loading = loading_of(transition)
    if loading is None or not is_untouched(loading) or (swapped := range_of_swaps(loading)) is None:
        return True
    first, end = swapped
    images = dict(log_images(loading.log))
    return all(
        images.get(base) == (loading.found.read(file_of(loading.prefix, base, ".log")) or b"")
        for base in bases_of(loading.found, loading.prefix)
        if not first <= base < end and base not in swaps_of(loading)
    )


@law("LOAD-4", structure=STRUCTURE, scope="step", source=CLASS)
def indexes_have_a_log(transition: Transition) -> bool:
    """An index file without its `.log` is deleted.

    Releases before 0.11 know no transaction index.
    """
    loading = loading_of(transition)
    if loading is None:
        return True
    directory, prefix = loading.log.directory, loading.prefix
    kinds = INDEXES if loading.log.profile.log_names_end_at_first_dot else INDEXES[:2]
    return all(
        file_of(prefix, offset_in(name), ".log") in directory
        for name in names_in(directory, prefix)
        if name.endswith(kinds)
    )


def _wrapped(offset: int, base_offset: int) -> int:
    """Return the offset that an entry of four bytes tells, where its writer does not check it."""
    return base_offset + wrap32(offset - base_offset)


def _is_recovered(log: PartitionLog, base_offset: int) -> bool:
    """Return whether a segment is what a recovery leaves: valid batches, and their entries.

    One that was cut to its base, at an entry that was refused, keeps the batches before that, and
    the entries that were made until then.
    """
    segment = log.log_segments.get(base_offset)
    assert segment is not None
    batches = batches_of_segment(log, base_offset)
    is_whole = sum(batch.size_bytes for batch in batches) == segment.size
    are_valid = all(batch.is_valid() is True for batch in segment.log.batches().batches)
    entries = indexed_by_recovery(segment, batches)[0]
    if not log.profile.check_relative_offset:
        entries = [(_wrapped(offset, base_offset), position) for offset, position in entries]
    found = index_entries(log, base_offset)
    is_before = all(batch.last_offset < base_offset for batch in batches)
    if is_before:
        entries = entries[: len(found)]
    is_indexed = segment.offset_index is None or found == entries
    return is_whole and are_valid and is_indexed


@law("LOAD-5", structure=STRUCTURE, scope="step", source=f"{CLASS}: loadSegmentFiles")
def missing_indexes_are_built(transition: Transition) -> bool:
    """A missing offset index makes the loader recover that segment; so does the corrupt-index error
    of its transaction index.

    One that overflows is split, and stays as well where no part has its base offset. Releases from
    1.0 to 2.2 open indexes at once, and make the missing one before they look for it.
    """
    loading = loading_of(transition)
    if (
        loading is None
        or names_in(loading.found, loading.prefix, ".swap")
        or overflows(loading.found, loading.prefix)
    ):
        return True
    profile = loading.log.profile
    if not (profile.indexes_open_lazily or profile.missing_index_is_seen_first):
        return True
    known = loading.log.log_segments.base_offsets()
    return all(
        base not in known
        or file_of(loading.prefix, base, ".index") in loading.found
        or _is_recovered(loading.log, base)
        for base in bases_of(loading.found, loading.prefix)
    )


def _recovered_bases(loading: Loading) -> list[int]:
    """Return the base offsets that a load after a crash has recovered."""
    bases = loading.log.log_segments.base_offsets()
    floor = max((base for base in bases if base <= loading.recovery_point), default=bases[0])
    return [] if loading.is_clean else [base for base in bases if base >= floor]


@law("LOAD-6", structure=STRUCTURE, scope="step", source=f"{CLASS}: retryOnOffsetOverflow")
def overflow_is_split(transition: Transition) -> bool:
    """A segment that overflows is split and loading starts again.

    From 2.0 to 2.2 that has no end where a corrupt index makes the loader recover a segment which
    does not begin with its first batch.
    """
    loading = loading_of(transition)
    if loading is None or not loading.log.profile.check_relative_offset:
        return True
    return not any(
        is_far(batches_of_segment(loading.log, base), base) for base in _recovered_bases(loading)
    )


@law("LOAD-7", structure=STRUCTURE, scope="step", source=f"{CLASS}: recoverLog")
def unflushed_segments_are_recovered(transition: Transition) -> bool:
    """Without the clean marker every segment from the one containing the recovery point is
    recovered, in order.

    One that an invalid offset has cut to its base keeps the batches before that, and the entries
    that were made until then.
    """
    loading = loading_of(transition)
    return loading is None or all(
        _is_recovered(loading.log, base) for base in _recovered_bases(loading)
    )


@law("LOAD-8", structure=STRUCTURE, scope="step", source=f"{CLASS}: recoverLog")
def nothing_follows_a_cut(transition: Transition) -> bool:
    """The first segment that loses bytes in recovery is the last one kept.

    But for a segment whose indexes are missing or corrupt, which a release recovers before: those
    that check all indexes are not judged.
    """
    loading = loading_of(transition)
    if loading is None or not loading.log.profile.sanity_checks_transactions_only:
        return True
    if names_in(loading.found, loading.prefix, ".swap"):
        return True
    found, prefix = loading.found, loading.prefix
    images = dict(log_images(loading.log))
    is_judged = not loading.log.profile.opening_recovers_unflushed
    cut = [
        base
        for base in _recovered_bases(loading)
        if (is_judged or _has_sound_indexes(found, prefix, base))
        and len(images[base]) < len(found.read(file_of(prefix, base, ".log")) or b"")
    ]
    return overflows(found, prefix) or not cut or cut == [max(images)]


def _has_sound_indexes(found: Directory, prefix: str, base: int) -> bool:
    """Return whether opening a segment does not recover it, whatever its indexes hold."""
    has_index = file_of(prefix, base, ".index") in found
    return has_index and file_of(prefix, base, ".txnindex") not in found


@law("LOAD-9", structure=STRUCTURE, scope="step", source=f"{CLASS}: recoverLog")
def invalid_offsets_empty_the_segment(transition: Transition) -> bool:
    """An invalid-offset error during recovery truncates that segment to its base and the load goes
    on.

    But for a segment whose offset index is missing, which is recovered before; releases that check
    the other indexes as well recover one with a corrupt index before, so they are not judged.
    """
    profile = transition.arguments.get("profile", NEWEST_KAFKA)
    if not profile.sanity_checks_transactions_only:
        return True
    if transition.operation != "open" or transition.arguments.get("last_shutdown_clean", True):
        return True
    directory = transition.arguments["directory"]
    if not isinstance(directory, Directory) or "dir" not in transition.arguments:
        return True
    name = transition.arguments["dir"]
    prefix = f"{name}/" if name else ""
    has_indexes = all(
        file_of(prefix, base, ".index") in directory for base in bases_of(directory, prefix)
    )
    is_plain = has_indexes and not names_in(directory, prefix, ".swap")
    is_plain = is_plain and not overflows(directory, prefix)
    return not is_plain or transition.outcome != Raised(ErrorKind.INVALID_OFFSET)


@law("LOAD-10", structure=STRUCTURE, scope="step", source=f"{CLASS}; Log since 2.3")
def clean_loads_trust_the_indexes(transition: Transition) -> bool:
    """With the clean marker no segment is scanned unless LOAD-5 or LOAD-6 applies, so offset and
    time indexes are trusted as they are (releases >= 2.3)."""
    loading = loading_of(transition)
    if loading is None or not is_untouched(loading):
        return True
    if names_in(loading.found, loading.prefix, ".swap"):
        return True
    return all(
        loading.log.directory.read(loading.prefix + name)
        == loading.found.read(loading.prefix + name)
        for base in loading.log.log_segments.base_offsets()[:-1]
        for suffix in (".index", ".timeindex")
        if (name := file_of("", base, suffix)) in names_in(loading.found, loading.prefix)
    )


@law("LOAD-11", structure=STRUCTURE, scope="step", source="Kafka LogManager.loadLogs, since 2.8")
def marker_goes_first(transition: Transition) -> bool:
    """The clean marker is removed before loading begins (releases >= 2.8), so a crash inside
    loading is followed by an unclean load."""
    manager = transition.after
    if transition.operation != "load_logs" or not isinstance(manager, LogManager):
        return True
    return manager.prefix + CLEAN_SHUTDOWN not in manager.directory


def _has_more(directory: Directory, name: str) -> bool:
    """Return whether there is something behind the batches of a log's file that is no zero."""
    batches = batches_of_file(directory, name) or [Batch(0, 0, 0, 0, 0)]
    end = batches[-1].position + batches[-1].size_bytes
    return any((directory.read(name) or b"")[end:])


@law("LOAD-12", structure=STRUCTURE, scope="step", source=f"{CLASS}; Log since 2.2")
def logs_below_their_start_begin_anew(transition: Transition) -> bool:
    """A log end below the checkpointed log start removes all segments and leaves one empty segment
    at log start (releases >= 2.2)."""
    loading = loading_of(transition)
    if loading is None or not loading.log.profile.log_begins_at_checkpoint:
        return True
    log = loading.log
    if log.log_end_offset < loading.start:
        return False
    names = names_in(loading.found, loading.prefix, ".log")
    files = [batches_of_file(loading.found, loading.prefix + name) for name in names]
    if None in files or names_in(loading.found, loading.prefix, ".swap"):
        return True
    if any(_has_more(loading.found, loading.prefix + name) for name in names):
        return True  # an index may lead behind what a scan of damage reaches
    ends = [batch.last_offset + 1 for batches in files for batch in batches or ()]
    if max([*ends, *bases_of(loading.found, loading.prefix)], default=0) >= loading.start:
        return True
    return log.log_segments.base_offsets() == [loading.start] and log.size == 0


@law("LOAD-13", structure=STRUCTURE, scope="step", source=f"{CLASS}; Log since 2.8")
def recovery_point_after_loading(transition: Transition) -> bool:
    """After loading, recovery point = log end after a clean stop and min(checkpoint, log end)
    otherwise (releases >= 2.8).

    Never below the log's start, but for releases up to 2.2, whose logs may end before it. A log
    that was empty, or that was emptied, counts as not clean. Before 1.0 the checkpoint stands as it
    is, up to 2.1 for a log without segments.
    """
    loading = loading_of(transition)
    if loading is None:
        return True
    log = loading.log
    known = max(log.log_start_offset, min(loading.recovery_point, log.log_end_offset))
    is_new = not (bases_of(loading.found, loading.prefix) or log.profile.log_begins_at_checkpoint)
    is_kept = bool(log.recovery_point == loading.recovery_point)
    if not (log.profile.recovery_point_is_bounded or loading.is_clean):
        return is_kept
    if is_new and is_kept:
        return True
    if not log.profile.recovery_point_survives_loading:
        start = log.log_start_offset if log.profile.log_knows_high_watermark else 0
        return log.recovery_point == max(start, log.log_end_offset)
    allowed = [log.log_end_offset] if loading.is_clean and log.size > 0 else [known]
    if loading.is_clean and log.size == 0:
        allowed = [known, log.log_end_offset]
    return log.recovery_point in allowed


@law("LOAD-14", structure=STRUCTURE, scope="step", source=f"{CLASS}: resizeIndexes")
def active_indexes_have_full_capacity(transition: Transition) -> bool:
    """After loading, the active segment's indexes have full capacity."""
    loading = loading_of(transition)
    if loading is None:
        return True
    size = loading.log.config.segment_index_bytes
    names = loading.log.log_segments.active_segment.names
    images = [loading.log.directory.read(name) for name in names[1:3]]
    return [len(image or b"") for image in images] == [size // 8 * 8, size // 12 * 12]


@law("LOAD-15", structure=STRUCTURE, scope="step", source=f"{CLASS}; see EPOCH-8 and EPOCH-9")
def epochs_fit_the_log(transition: Transition) -> bool:
    """After loading, the epoch cache has no entry with start >= log end and none superseded at the
    log start.

    A log that does not end behind its start may keep the entry that was moved there, and all of its
    entries where a log that is emptied does not forget them. Releases up to 1.1 move entries in
    another way.
    """
    loading = loading_of(transition)
    if loading is None or loading.log.profile.epoch_rules == "1.1":
        return True
    is_emptied = loading.log.size == 0
    if is_emptied and not loading.log.profile.emptied_log_forgets:
        return True
    starts = [entry.start_offset for entry in loading.log.leader_epoch_cache.entries]
    at_checkpoint = loading.log.profile.epochs_begin_at_checkpoint
    begin = loading.start if at_checkpoint else loading.log.log_start_offset
    end = loading.log.log_end_offset
    is_moved = starts == [begin] and end <= begin
    is_within = is_moved or all(one < end for one in starts)
    return is_within and all(one > begin for one in starts[1:])


@law("LOAD-16", structure=STRUCTURE, scope="step", source=CLASS)
def loading_twice_is_loading_once(transition: Transition) -> bool:
    """Loading twice in a row without appends yields the same segments, the same log bytes and the
    same log end.

    Between the two the log is closed, if the loads are those after a clean stop. Releases that
    check all indexes may recover in the second load what the first has left, cut it at a batch that
    is not valid, so that it ends before, and fail where an index is too small for that. A log whose
    name is not as Kafka writes it begins a segment in each load of a release that takes it.
    """
    loading = loading_of(transition)
    if loading is None or any(map(is_odd, names_in(loading.log.directory, loading.prefix, ".log"))):
        return True
    log = loading.log
    left = log.prepare_active_segment_for_close().after.close().after if loading.is_clean else log
    again = PartitionLog.open(
        log.dir,
        log.config,
        loading.start,
        loading.recovery_point,
        loading.is_clean,
        directory=left.directory,
        profile=log.profile,
        codecs=log.codecs,
        now_ms=log.now_ms,
        draw=log.draw,
    ).after
    checks_all = not log.profile.sanity_checks_transactions_only
    if not isinstance(again, PartitionLog):
        return checks_all
    if checks_all and not _are_valid(log):
        return again.log_end_offset <= log.log_end_offset
    return log_images(again) == log_images(log) and again.log_end_offset == log.log_end_offset


def _are_valid(log: Any) -> bool:
    """Return whether a recovery would keep every byte of a log."""
    found = [(one.size, one.log.batches().batches) for one in log.log_segments]
    return all(
        sum(batch.size_bytes for batch in batches) == size
        and all(batch.is_valid() is True for batch in batches)
        for size, batches in found
    )


def _written(log: Any) -> list[tuple[int, bytes]]:
    """Return last offset and bytes of each batch of a log."""
    return [
        (batch.last_offset, segment.log.image[batch.position : batch.position + batch.size_bytes])
        for segment in log.log_segments
        for batch in batches_of_segment(log, segment.base_offset)
    ]


@law("LOAD-17", structure=STRUCTURE, scope="pure", source=CLASS)
def crashes_leave_a_prefix(before: PartitionLog, recovery_point: int, after: PartitionLog) -> bool:
    """After any crash followed by an unclean load with recovery point p, the log holds every
    flushed batch below p and a hole-free prefix of the batches after it.

    `before` is the log that crashed, `after` the loaded one.
    """
    if not is_sound(before):
        return True
    old, new = _written(before), _written(after)
    flushed = [one for one in old if one[0] < recovery_point]
    return new == old[: len(new)] and new[: len(flushed)] == flushed


@law("LOAD-18", structure=STRUCTURE, scope="step", source=CLASS)
def loading_leaves_no_temporary_file(transition: Transition) -> bool:
    """Of all `.deleted`, `.cleaned` and `.swap` files, loading leaves those `.deleted` ones that it
    renamed itself, which go later, and `*.checkpoint.deleted`.

    One with `.swap` behind it is renamed, too. Releases from 1.0 to 2.8 leave an index `.swap`
    without its log, and those up to 2.8 each `.swap` that a log or an index of theirs would not be
    named; 0.10 may leave some.
    """
    loading = loading_of(transition)
    if loading is None:
        return True
    kept = {name for one in loading.log.pending_deletions for name in one.names}
    swaps = names_in(loading.found, loading.prefix, ".swap")
    kept |= {loading.prefix + name.removesuffix(".swap") for name in swaps}
    profile = loading.log.profile
    if not profile.swap_keeps_indexes:
        kept |= {loading.prefix + name for name in swaps if not SEGMENT_SWAP.fullmatch(name)}
    may_stay = profile.index_swaps_stay or profile.swap_spares_time_indexes
    if may_stay and not profile.swap_keeps_indexes:
        kept |= {loading.prefix + name for name in _lone_index_swaps(loading)}
    return not any(
        name.endswith(TEMPORARY)
        for name in names_in(loading.log.directory, loading.prefix)
        if not name.endswith(".checkpoint.deleted") and loading.prefix + name not in kept
    )


def _lone_index_swaps(loading: Loading) -> list[str]:
    """Return the names of the `.swap` files of indexes whose log has none."""
    logs = {offset_in(name) for name in names_in(loading.found, loading.prefix, ".log.swap")}
    return [
        name
        for kind in INDEXES
        for name in names_in(loading.found, loading.prefix, f"{kind}.swap")
        if offset_of_name(name) not in logs
    ]


@law("LOAD-19", structure=STRUCTURE, scope="step", source=f"{CLASS}: resizeIndexes; Log before")
def long_indexes_end_a_loading(transition: Transition) -> bool:
    """An index of the last segment whose entries are longer than `segment.index.bytes` ends a load
    after a clean stop with the invalid-argument error, and the first such index is cut to that
    size; an offset index before it has got that size. A part of an entry counts for nothing.

    So the third load succeeds, if each is one after a clean stop. Where the marker is gone by then,
    the segment is recovered instead, and that fails each time if its entries do not fit. Releases
    that check all indexes are not judged, nor is segproof, which cuts none.
    """
    arguments, after = transition.arguments, transition.after
    size = _index_bytes(arguments)
    is_clean = arguments.get("last_shutdown_clean", True)
    if transition.operation != "open" or size is None or not is_clean:
        return True
    profile, found = arguments["profile"], arguments["directory"]
    if profile.sanity_checks_all or not profile.sanity_checks_transactions_only:
        return True
    prefix = f"{arguments['dir']}/" if arguments.get("dir") else ""
    bases = bases_of(found, prefix)
    before = [[found.read(file_of(prefix, one, kind)) for kind in INDEXES[:2]] for one in bases]
    others = [one for one in names_in(found, prefix) if one.endswith((*TEMPORARY, INDEXES[2]))]
    if not bases or others or any(None in one for one in before):
        return True
    limits = [size // 8 * 8, size // 12 * 12]
    images = before[bases.index(max(bases))]
    lengths = [len(image or b"") for image in images]
    long = [place for place in (0, 1) if lengths[place] >= limits[place] + (8, 12)[place]]
    if isinstance(after, PartitionLog):
        return not long or after.size == 0
    if not long or transition.outcome != Raised(ErrorKind.INVALID_ARGUMENT):
        return True
    left = [after.read(file_of(prefix, max(bases), kind)) for kind in INDEXES[:2]]
    for place in range(long[0] + 1):
        images[place] = (images[place] or b"")[: limits[place]].ljust(limits[place], b"\0")
    return left == images


def _index_bytes(arguments: Mapping[str, Any]) -> int | None:
    """Return the size of indexes that an opening asks for: of its config, or of its options."""
    if "config" in arguments:
        return int(arguments["config"].segment_index_bytes)
    found: int | None = dict(arguments.get("options", ())).get("segment_index_bytes")
    return found
