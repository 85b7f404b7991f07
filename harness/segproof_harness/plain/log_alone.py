# SPDX-License-Identifier: Apache-2.0
"""Hold each behaviour of a partition's log, alone on the newest release, against the older flag.

    python -m segproof_harness.plain.log_alone [--seeds 30] [--first 0] [--only NAME ...]
        [--release kafka-4.4.0]

On another release, a behaviour that it has is taken away.

A flag that several files ask is several behaviours: they are moved together.
"""

import argparse
import sys
from dataclasses import replace
from typing import Any

from segproof_harness.plain.compare import Run, shown
from segproof_model.profiles import NEWEST_KAFKA as NEWEST_PROFILE
from segproof_model.profiles import profile_named
from segproof_model.releases import BEHAVIOURS, RELEASES

FLAGS: dict[str, tuple[str, Any]] = {
    # behaviours: the flag, its value with them
    "ClosedLogIsAsked": ("closed_log_is_refused", False),
    "ActiveSegmentIsNotPrepared ClosingTrimsIndexes ClosingTrimsRecordFiles ClosingWritesLastEntry":
    ("close_writes", True),
    "AppendTellsMaximum CallIsIndexedAsAWhole": ("index_per_batch", False),
    "FirstAppendAgesSegment": ("append_sets_rolling_timestamp", True),
    "ReplacedSegmentLoadsNothing": ("replaced_segment_loads_indexes", False),
    "BoundOutsideIsRefused": ("bound_outside_is_refused", True),
    "UnplacedBoundReadsToEnd": ("unplaced_bound_reads_nothing", False),
    "LargestTimestampIsRemembered": ("largest_timestamp_is_searched", False),
    "RefusedRollNamesMaximum OverflowNamesMaximum": ("overflow_names_maximum", True),
    "StartMovesAfterRemoval": ("start_moves_before_removal", False),
    "FullTruncationTakesNoStart": ("full_truncation_takes_start", False),
    "CutLeavesTimeSearch": ("cut_leaves_time_search", True),
    "EarliestLocalIsATime": ("special_timestamps", 3),
    "EarliestLocalIsATime MaxTimestampIsATime": ("special_timestamps", 2),
    "TruncationSetsHighWatermark": ("truncation_sets_high_watermark", True),
    "BoundIsPlacedLast": ("bound_is_placed_first", False),
    "RetentionBeginsWithAge": ("retention_begins_at_start", False),
    "FlushIsNotForced": ("flush_can_be_forced", False),
    "SnapshotGoesWithSegment": ("snapshot_of_removed_is_renamed", False),
    "HighWatermarkAtEndHasNoPlace": ("high_watermark_at_end_is_placed", False),
    "StableBoundIsPlacedAlone": ("stable_bound_places_high_watermark", False),
    "ReadAtBoundGoesOn": ("read_at_bound_is_empty", False),
    "TruncationAtEndKeepsEpochs": ("truncation_at_end_cuts_epochs", False),
    "BoundsFollowEndAtOnce": ("bounds_follow_end_at_once", True),
    "BoundsFollowStart": ("bounds_follow_start", True),
    "FullTruncationOnlyForgets": ("full_truncation_rebuilds", False),
    "FollowerSizeIsLimited": ("follower_size_is_limited", True),
    "RemovedSnapshotStays SnapshotsAreListed": ("snapshots_are_listed", True),
    "SegmentsAreRemovedOneByOne": ("removed_segments_go_together", False),
    "RebuildEndsInEachSegment": ("rebuild_ends_in_one_segment", False),
    "ReplicaKnowsHighWatermark": ("log_knows_high_watermark", False),
    "OneTransactionIsPlaced": ("txn_places_of_each_batch", False),
    "CompactionLagLimitsNothing": ("compaction_lag_limits_segments", False),
    "ProducersAreCheckedFirst": ("producers_checked_before_roll", True),
    "AppendEndsLogLast": ("append_ends_log_first", False),
    "LegacyBatchKeepsEpochs": ("legacy_batch_forgets_epochs", False),
    "CompactedLogIsNotTrimmed": ("compacted_log_is_trimmed", False),
    "EmptySegmentIsNotReplaced": ("empty_segment_is_replaced", False),
    "RebuildWritesAtSegments RecoveryReadsWholeSegments": ("rebuild_snapshots", "segments"),
    "FirstOffsetStandsForLast": ("first_offset_is_named", False),
    "RollKnowsLastOffset": ("roll_knows_first_offset", False),
    "RollTrimsSegment InactiveSegmentIsLeft": ("inactive_segment_is_trimmed", False),
    "FlushRemovesSnapshots": ("flush_removes_snapshots", True),
    "AppendHidesLogStart": ("append_tells_log_start", False),
    "UnopenedTransactionsStay DeletionNeedsChannel": ("txn_deletion_needs_channel", True),
    "LogKnowsNoProducers": ("log_knows_producers", False),
    "LogBeginsWithSegment": ("log_start_is_kept", False),
    "RetentionWaitsForNobody": ("retention_waits_for_replicas", False),
    "TruncationAtEndIsDone": ("truncation_at_end_is_done", True),
    "FoundBoundDoesNotMove": ("looked_up_bound_moves", False),
    "BoundLeavesRemovedSegment": ("bound_stays_in_removed_segment", False),
    "TruncationMovesUnstable": ("truncation_keeps_unstable", False),
    "AbortedSinceOffset": ("aborted_since_log_start", False),
    "NewestBatchIsReadWhole": ("largest_timestamp_is_streamed", False),
    "ClosedLogIsClosed ClosedIndexIsClosed ClosedSegmentIsClosed": ("closed_is_closed", True),
    "FailedIndexChangeIsUndone HugePreallocationIsRefused FailedSegmentChangeIsUndone"
    " BatchesAreReadFirst IndexesAreLoadedFirst BatchIsRefusedFirst FailedAppendIsUndone"
    " AppendIsCheckedFirst FailedCutEndsLog SplitEndsLog FailedRollRemovesNothing"
    " SplitLeavesNoOriginal": ("checks_before_changing", True),
}  # fmt: skip


def main() -> None:
    """Move behaviours and flags, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--show", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--release", default="kafka-4.4.0")
    given = parser.parse_args()
    by_name = {behaviour.__name__: behaviour for behaviour in BEHAVIOURS}
    operations = bad = 0
    for names, (flag, value) in FLAGS.items():
        if given.only is not None and not set(given.only) & set(names.split()):
            continue
        release = RELEASES[given.release]
        is_taken = any(release.has(by_name[name]) for name in names.split())
        for name in names.split():
            if release.has(by_name[name]) == is_taken:
                release = release.flipped(by_name[name])
        moved = getattr(NEWEST_PROFILE, flag) if is_taken else value
        profile = replace(profile_named(release.name), **{flag: moved})
        run = Run("partition-log", release, profile)
        seeds = range(given.first, given.first + given.seeds)
        found = [one for seed in seeds if (one := run.history(seed, given.length)) is not None]
        count = sum(run.operations.values())
        operations, bad = operations + count, bad + len(found)
        print(f"{names}: {count} operations, {len(found)} differences", flush=True)
        for one in found[: given.show]:
            print(shown(one))
    print(f"{len(FLAGS)} flags moved alone: {operations} operations, {bad} differences")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
