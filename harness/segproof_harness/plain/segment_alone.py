# SPDX-License-Identifier: Apache-2.0
"""Hold each behaviour of a segment, alone on the newest release, against the older model's flag.

    python -m segproof_harness.plain.segment_alone [--seeds 30] [--first 0] [--only NAME ...]
        [--release kafka-4.4.0]

On another release, a behaviour that it has is taken away.

A flag that several files ask is several behaviours: they are moved together.
"""

import argparse
import sys
from dataclasses import replace
from typing import Any

from segproof_harness.plain.compare import Run, shown
from segproof_model.profiles import NEWEST_KAFKA, profile_named
from segproof_model.releases import BEHAVIOURS, RELEASES

FLAGS: dict[str, tuple[str, Any]] = {
    # behaviours: the flag, its value with them
    "ClosingTrimsIndexes ClosingTrimsRecordFiles ClosingWritesLastEntry": ("close_writes", True),
    "CallIsIndexedAsAWhole": ("index_per_batch", False),
    "FirstAppendAgesSegment": ("append_sets_rolling_timestamp", True),
    "CloseHidesErrors": ("segment_close_raises", False),
    "SearchAnswersLastOffset ReadAnswersOffsetAskedFor": ("search_answers_base_offset", False),
    "UnknownMaximumIsAValue": ("unknown_maximum_is_a_value", True),
    "TruncationLoadsIndexesLate": ("truncation_loads_indexes_first", False),
    "OverflowNamesMaximum": ("overflow_names_maximum", True),
    "FailedReloadTakesEntry": ("failed_reload_takes_entry", True),
    "RecoveryKeepsOffsetOfMaximum": ("recovery_keeps_offset_of_maximum", True),
    "ClosingLoadsIndexes": ("unloaded_index_stays_unloaded", False),
    "ClosingAsksForMaximum": ("close_writes_unknown_maximum", True),
    "EpochZeroIsPassedOver": ("recover_assigns_epoch_zero", False),
    "IndexesOpenAtOnce": ("indexes_open_lazily", False),
    "SanityChecksIndexes": ("sanity_checks_transactions_only", False),
    "DistanceIsCut FarOffsetIsInvalidArgument": ("check_relative_offset", False),
    "FirstOffsetIsKey": ("index_key", "first_offset"),
    "TruncationNeedsMatch": ("truncation_needs_match", True),
    "InactiveSegmentIsLeft": ("inactive_segment_is_trimmed", False),
    "AnyOffsetHasTime TimeSearchBeginsAtEntry": ("time_search_has_start", False),
    "DatingPassesMissingFiles": ("dating_needs_files", False),
    "RecoveryLimitsMessages": ("recovery_limits_messages", True),
    "FailedIndexChangeIsUndone HugePreallocationIsRefused FailedSegmentChangeIsUndone"
    " BatchesAreReadFirst IndexesAreLoadedFirst": (
        "checks_before_changing",
        True,
    ),
    "TruncationAsksForMaximum": ("truncation_forgets_maximum", False),
    "SmallBatchIsRefused": ("small_batch_is_refused", True),
    "EntryOutsideIsCorrupt": ("entry_outside_is_corrupt", True),
    "ClosedIndexIsClosed ClosedSegmentIsClosed": ("closed_is_closed", True),
    "NumbersOfSegmentDoNotWrap": ("read_size_wraps age_wraps", False),
}


def main() -> None:
    """Move behaviours and flags, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--release", default="kafka-4.4.0")
    given = parser.parse_args()
    by_name = {behaviour.__name__: behaviour for behaviour in BEHAVIOURS}
    operations = bad = 0
    for names, (flags, value) in FLAGS.items():
        if given.only is not None and not set(given.only) & set(names.split()):
            continue
        release = RELEASES[given.release]
        is_taken = any(release.has(by_name[name]) for name in names.split())
        for name in names.split():
            if release.has(by_name[name]) == is_taken:
                release = release.flipped(by_name[name])
        moved = {flag: getattr(NEWEST_KAFKA, flag) if is_taken else value for flag in flags.split()}
        profile = replace(profile_named(release.name), **moved)
        run = Run("log-segment", release, profile)
        seeds = range(given.first, given.first + given.seeds)
        found = [one for seed in seeds if (one := run.history(seed, given.length)) is not None]
        count = sum(run.operations.values())
        operations, bad = operations + count, bad + len(found)
        print(f"{names}: {count} operations, {len(found)} differences", flush=True)
        for one in found[:1]:
            print(shown(one))
    print(f"{len(FLAGS)} flags moved alone: {operations} operations, {bad} differences")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
