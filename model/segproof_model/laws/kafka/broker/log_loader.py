# SPDX-License-Identifier: Apache-2.0
"""The laws of loading a log from its directory; most compare the loaded log with the directory.

LOAD-1 is a law of files.
"""

from typing import Any

from segproof_model.kafka.broker import log_loader_releases as older
from segproof_model.kafka.broker.epoch_releases import FirstEpochDecidesOnTruncation
from segproof_model.kafka.broker.log_loader_deviations import UnflushedIsRecoveredLater, is_odd
from segproof_model.kafka.broker.log_loader_releases_before_2 import LogNameEndsBeforeSuffix
from segproof_model.kafka.broker.log_manager import CLEAN_SHUTDOWN, LogManager
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.broker.partition_log_releases_before_2 import LogBeginsWithSegment
from segproof_model.kafka.broker.partition_log_releases_before_2_3 import ReplicaKnowsHighWatermark
from segproof_model.kafka.format.index_deviations import SanityChecksAll
from segproof_model.kafka.format.log_segment_releases import IndexesOpenAtOnce, SanityChecksIndexes
from segproof_model.kafka.format.log_segment_releases_before_2 import FarOffsetIsInvalidArgument
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import apply, opened
from segproof_model.laws.kafka.broker.loading_views import Directory, Loading, loaded, loading_of
from segproof_model.laws.kafka.broker.log_views import is_whole, log_view, overflows
from segproof_model.laws.kafka.format.segment_views import SegmentView, due
from segproof_model.laws.register import Transition, has, law

CLASS = "Kafka LogLoader, since 3.0"
RECOVER = f"{CLASS}: recoverLog"
RESIZING = f"{CLASS}: resizeIndexes; Log before"
TEMPORARY = (".deleted", ".cleaned", ".swap")
INDEXES = (".index", ".timeindex", ".txnindex")


# --- what a crash left ---------------------------------------------------------------------------


@loaded("LOAD-2", CLASS, older.SwapsAreRecovered)
def swaps_are_completed(loading: Loading) -> bool:
    """A swap file with base >= the smallest `.cleaned` base is deleted; every other swap is
    completed by deleting the normal files with base in [min base, max next offset) and renaming.

    Not judged: releases up to 2.8, which recover swaps.
    """
    swaps, others = loading.completed
    is_all = loading.images.keys() == {*swaps, *others}
    return is_all and all(loading.images[base] == image for base, image in swaps.items())


@loaded("LOAD-3", CLASS, older.SwapsAreRecovered)
def other_segments_stay(loading: Loading) -> bool:
    """No segment outside the completed swap's range is touched.

    Not judged: releases up to 2.8, which also replace a segment that reaches into the range.
    """
    _, others = loading.completed
    return all(loading.images.get(base) == image for base, image in others.items())


@loaded("LOAD-4", CLASS, LogNameEndsBeforeSuffix)
def indexes_have_a_log(loading: Loading) -> bool:
    """An index file without its `.log` is deleted.

    Releases before 0.11 know no transaction index.
    """
    return loading.left.offsets(*INDEXES) <= loading.left.offsets(".log")


@loaded("LOAD-18", CLASS)
def loading_leaves_no_temporary_file(loading: Loading) -> bool:
    """Loading deletes all `.deleted`, `.cleaned` and `.swap` files, except the `.deleted` files
    that it renamed itself, which are deleted later, and `*.checkpoint.deleted`.

    It renames a file that ends in `.deleted.swap`. Up to 2.8 some `.swap` files stay.
    """
    pending = [name for one in loading.log.local_log.pending_deletions for name in one.names]
    renamed = [name.removesuffix(".swap") for name in loading.named(".swap")]
    may_stay = {*(name.removeprefix(loading.prefix) for name in pending), *renamed}
    suffixes = TEMPORARY[:2] if has(loading.log, older.SwapsAreRecovered) else TEMPORARY
    left = set(loading.left.named(*suffixes)) - set(loading.left.named(".checkpoint.deleted"))
    return left <= may_stay


# --- segments ------------------------------------------------------------------------------------


def _is_recovered(one: SegmentView) -> bool:
    """Return whether a segment is what a recovery leaves: valid batches, and their entries.

    One that was cut to its base, at an entry that was refused, keeps the batches before that, and
    the entries that were made until then.
    """
    batches = due(one.batches, 0, one.segment.config.index_interval_bytes)
    entries = [(one.stored(one.key_of(batch)), batch.position) for batch in batches]
    if all(batch.last_offset < one.base_offset for batch in one.batches):
        entries = entries[: len(one.offsets)]
    are_valid = is_whole(one) and all(batch.is_valid() for batch in one.segment.log.batches())
    return are_valid and (one.indexes[0] is None or one.offsets == entries)


@loaded("LOAD-5", f"{CLASS}: loadSegmentFiles", IndexesOpenAtOnce)
def missing_indexes_are_built(loading: Loading) -> bool:
    """A missing offset index makes the loader recover that segment; then each has one.

    Up to 2.2 indexes are opened at once, which makes the missing one.
    """
    known = loading.offsets(".index")
    unknown = [one for one in loading.segments if one.base_offset not in known]
    are_built = loading.images.keys() <= loading.left.offsets(".index")
    return not loading.is_plain or (are_built and all(map(_is_recovered, unknown)))


@loaded("LOAD-6", f"{CLASS}: retryOnOffsetOverflow", FarOffsetIsInvalidArgument)
def overflow_is_split(loading: Loading) -> bool:
    """A segment that is recovered and overflows is split, and loading starts again."""
    return not any(map(overflows, loading.recovered))


@loaded("LOAD-7", RECOVER)
def unflushed_segments_are_recovered(loading: Loading) -> bool:
    """Without the clean marker every segment from the one containing the recovery point is
    recovered.

    A segment that an invalid offset has cut to its base keeps the batches before its base, and the
    entries made until then.
    """
    return all(map(_is_recovered, loading.recovered))


@loaded("LOAD-8", RECOVER, SanityChecksIndexes)
def nothing_follows_a_cut(loading: Loading) -> bool:
    """The first segment that loses bytes in recovery is the last one kept.

    Exception: a segment whose indexes are missing or corrupt, which a release recovers earlier. Not
    judged: releases that check all indexes.
    """
    if not loading.is_plain:
        return True
    untold = loading.offsets(".log") - loading.offsets(".index") | loading.offsets(".txnindex")
    cut = [
        one.base_offset
        for one in loading.recovered
        if len(one.image) < len(loading.image(one.base_offset, ".log"))
        and (has(loading.log, UnflushedIsRecoveredLater) or one.base_offset not in untold)
    ]
    return cut in ([], [max(loading.images)])


@law("LOAD-9", PartitionLog, RECOVER, on="open", unless=SanityChecksIndexes)
def invalid_offsets_empty_the_segment(step: Transition) -> bool:
    """An invalid-offset error during recovery truncates that segment to its base and the load
    continues.

    Exception: a segment whose offset index is missing, which is recovered earlier. Not judged:
    releases that check the other indexes too, which recover a segment with a corrupt index earlier.
    """
    found = Directory(step.before, step.arguments["dir"])
    is_plain = found.is_plain and found.offsets(".log") <= found.offsets(".index")
    is_clean = step.arguments["last_shutdown_clean"]
    return is_clean or not is_plain or not step.raised(ErrorKind.INVALID_OFFSET)


@loaded("LOAD-10", f"{CLASS}; Log since 2.3", SanityChecksIndexes)
def clean_loads_trust_the_indexes(loading: Loading) -> bool:
    """With the clean marker no segment is scanned unless LOAD-5 or LOAD-6 applies, so offset and
    time indexes are trusted as they are (releases >= 2.3)."""
    if not (loading.trusts_indexes and loading.is_plain):
        return True
    bases = [one.base_offset for one in loading.segments[:-1]]
    names = [segment_file_name(base, kind) for base in bases for kind in INDEXES[:2]]
    both = [(loading.files.get(name), loading.left.files.get(name)) for name in names]
    return all(found is None or found == left for found, left in both)


@loaded("LOAD-14", f"{CLASS}: resizeIndexes")
def active_indexes_have_full_capacity(loading: Loading) -> bool:
    """After loading, the active segment's indexes have full capacity."""
    base, size = loading.segments[-1].base_offset, loading.log.config.segment_index_bytes
    lengths = [len(loading.left.image(base, kind)) for kind in INDEXES[:2]]
    return lengths == [size // 8 * 8, size // 12 * 12]


@law("LOAD-19", PartitionLog, RESIZING, on="open", unless=(SanityChecksIndexes, SanityChecksAll))
def long_indexes_end_a_loading(step: Transition) -> bool:
    """If the entries of an index of the last segment are longer than `segment.index.bytes`, a load
    after a clean stop ends with the invalid-argument error, and the first such index is cut to that
    size. A partial entry does not count.

    So the third load succeeds, if each follows a clean stop. Not judged: releases that check all
    indexes, and segproof, which cuts no index.
    """
    found = Directory(step.before, step.arguments["dir"])
    others, bases = found.named(*TEMPORARY, INDEXES[2]), found.offsets(".log")
    has_indexes = bases and all(bases <= found.offsets(kind) for kind in INDEXES[:2])
    if not step.arguments["last_shutdown_clean"] or others or not has_indexes:
        return True
    size, last = step.arguments["config"].segment_index_bytes, max(bases)
    entries = (INDEXES[0], 8), (INDEXES[1], 12)
    long = [one for one in entries if len(found.image(last, one[0])) // one[1] > size // one[1]]
    if step.succeeded:
        return not long or step.after.size == 0
    left = Directory(step.after, step.arguments["dir"])
    return not step.raised(ErrorKind.INVALID_ARGUMENT) or all(
        left.image(last, kind) == found.image(last, kind)[: size // entry * entry]
        for kind, entry in long[:1]
    )


# --- what bounds the log -------------------------------------------------------------------------


@law("LOAD-11", LogManager, "Kafka LogManager.loadLogs, since 2.8", on="load_logs")
def marker_goes_first(step: Transition) -> bool:
    """The clean marker is removed before loading begins (releases >= 2.8), so a crash inside
    loading is followed by an unclean load."""
    return step.after.prefix + CLEAN_SHUTDOWN not in step.after.files


@loaded("LOAD-12", f"{CLASS}; Log since 2.2", older.LogBeginsAtZero)
def logs_below_their_start_begin_anew(loading: Loading) -> bool:
    """A log end below the checkpointed log start removes all segments and leaves one empty segment
    at log start (releases >= 2.2)."""
    bases = loading.offsets(".log")
    logs = [loading.batches(base) for base in bases]
    ends = [one.last_offset + 1 for batches, _ in logs for one in batches]
    is_known = all(is_all for _, is_all in logs) and not loading.named(".swap")
    if is_known and max([0, *ends, *bases]) < loading.start:
        return loading.images == {loading.start: b""}
    return bool(loading.log.log_end_offset >= loading.start)


@loaded(
    "LOAD-13",
    f"{CLASS}; Log since 2.8",
    older.RecoveryPointMovesToEnd,
    older.LogBeginsAtZero,
    ReplicaKnowsHighWatermark,
)
def recovery_point_after_loading(loading: Loading) -> bool:
    """After loading, recovery point = log end after a clean stop and min(checkpoint, log end)
    otherwise (releases >= 2.8), never below the log's start.

    An empty log, or a log that loading emptied, counts as not clean.
    """
    log, end = loading.log, loading.log.log_end_offset
    known = max(log.log_start_offset, min(loading.recovery_point, end))
    may_be_known = not loading.is_clean or log.size == 0
    is_end = loading.is_clean and log.recovery_point == end
    return bool(is_end or (may_be_known and log.recovery_point == known))


@loaded("LOAD-15", f"{CLASS}; see EPOCH-8 and EPOCH-9", FirstEpochDecidesOnTruncation)
def epochs_fit_the_log(loading: Loading) -> bool:
    """After loading, the epoch cache has no entry with start >= log end and none superseded at the
    log start.

    A log that ends at or before its start may keep the entry that was moved to the start, and all
    its entries in releases that keep the epochs of an emptied log. Releases up to 1.1 move entries
    differently.
    """
    if loading.log.size == 0 and has(loading.log, older.EmptiedLogKeepsEpochs):
        return True
    log, starts = loading.log, [one.start_offset for one in loading.log.leader_epoch_cache.entries]
    is_cut_at_log = has(log, older.EpochsBeginWithLog) or has(log, LogBeginsWithSegment)
    begin = log.log_start_offset if is_cut_at_log else loading.start
    is_moved = starts == [begin] and log.log_end_offset <= begin
    is_within = is_moved or all(one < log.log_end_offset for one in starts)
    return is_within and all(one > begin for one in starts[1:])


# --- loading again -------------------------------------------------------------------------------


def _close(log: Any) -> None:
    log.prepare_active_segment_for_close()
    log.close()


@law("LOAD-16", PartitionLog, CLASS, on="open", unless=SanityChecksIndexes)
def loading_twice_is_loading_once(step: Transition) -> bool:
    """Loading twice in a row without appends yields the same segments, the same log bytes and the
    same log end.

    Between the two the log is closed, if the loads follow a clean stop. Releases that check all
    indexes may recover in the second load a segment that the first has left. A log whose name Kafka
    would write differently begins a segment in each load of a release that accepts it.
    """
    loading = loading_of(step)
    if loading is None or any(map(is_odd, loading.left.named(".log"))):
        return True
    left = apply(loading.log, _close).after if loading.is_clean else loading.log
    if left.files == step.before:
        return True  # the same load of the same files
    kind: Any = step.kind
    again = opened(kind, left.files, **loading.given).after
    if not isinstance(again, PartitionLog):
        return False
    is_end = again.log_end_offset == loading.log.log_end_offset
    return is_end and log_view(again).images == loading.images


@law("LOAD-17", PartitionLog, CLASS)
def crashes_leave_a_prefix(before: Any, recovery_point: int, after: Any) -> bool:
    """After any crash followed by an unclean load with recovery point p, the log holds every
    flushed batch below p and a hole-free prefix of the batches after it.

    `before` is the log that crashed, `after` the loaded one.
    """
    old, new = (
        [
            (batch.last_offset, one.image[batch.position : batch.position + batch.size_bytes])
            for one in log_view(log).segments
            for batch in one.batches
        ]
        for log in (before, after)
    )
    flushed = [one for one in old if one[0] < recovery_point]
    is_prefix = new == old[: len(new)] and len(new) >= len(flushed)
    return is_prefix or not log_view(before).is_sound
