# SPDX-License-Identifier: Apache-2.0
"""Hold each behaviour of records and record files alone against the older model's flag, moved.

python -m segproof_harness.plain.records_alone [--seeds 30] [--release kafka-4.4.0]
"""

import argparse
from dataclasses import replace
from typing import Any

from segproof_harness.plain.compare import Run, shown
from segproof_model.language.outcomes import ErrorKind
from segproof_model.profiles import profile_named
from segproof_model.releases import BEHAVIOURS, RELEASES

FLAGS: dict[str, tuple[str, Any, Any]] = {
    # behaviour: its flag, the value with it, the value without it
    "VotersAreUnknown": ("control_record_types", "3.4", "3.9"),
    "InflatedLengthIsInvalidArgument": (
        "inflated_length_kind",
        ErrorKind.INVALID_ARGUMENT,
        ErrorKind.INVALID_RECORD,
    ),
    "DeleteHorizonIsUnknown": ("delete_horizon_known", False, True),
    "LongRecordIsNull": ("long_record_is_null", True, False),
    "QuorumIsReassigned": ("control_record_types", "2.8", "3.9"),
    "ControlRecordsEndTransactions": ("control_record_types", "0.11", "3.9"),
    "InvalidBatchIsInvalidRecord": (
        "ensure_valid_kind",
        ErrorKind.INVALID_RECORD,
        ErrorKind.CORRUPT_RECORD,
    ),
    "ZstdIsUnknown": ("zstd_known", False, True),
    "SizeIsCheckedBeforeMagic": ("memory_scanner_checks_magic_first", False, True),
    "ScannersAskForSizes": ("scanner_reads_magic", False, True),
    "WholeBatchIsRead": ("header_is_read_alone", False, True),
    "WrapperIsNotChecked": ("wrapper_is_checked", False, True),
    "MessagesAloneAreWritten": ("magic_2_is_written", False, True),
    "MissingTypeIsLogAppendTime": ("timestamp_type_is_needed", False, True),
    "ClosingTrimsRecordFiles": ("close_writes", True, False),
    "TimeSearchReadsWholeBatch": ("time_search_is_streamed", False, True),
    "SliceOfSliceIsRefused": ("slice_start_refused", True, False),
    "SearchComparesLastOffsets": ("search_compares_base_offsets", False, True),
    "SecondCloseFails": ("second_close_fails", True, False),
    "SearchAnswersLastOffset": ("search_answers_base_offset", False, True),
    "ShortFileIsKafkaError": ("scanner_eof_kind", ErrorKind.KAFKA_ERROR, ErrorKind.CORRUPT_RECORD),
    "FoundTimeHasNoEpoch": ("found_time_has_epoch", False, True),
    "SliceBeginsAnywhere": ("slice_start_checked", False, True),
    "SliceEndsAtSize": ("slice_end_is_size", True, False),
    "ScannerLimitsWrap": ("scanner_limits_wrap", True, False),
    "AnyOffsetHasTime": ("time_search_has_start", False, True),
    "HugeSizeEndsScan": ("memory_scanner_wraps", False, True),
    "MagicIsCheckedInFiles": ("magic_checked_in_files", True, False),
    "EmptyChangeIsRefused": ("empty_change_is_refused", True, False),
    "HugePreallocationIsRefused": ("checks_before_changing", True, False),
}


def main() -> None:
    """Move one behaviour and one flag at a time, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--release", default="kafka-4.4.0")
    parser.add_argument("--only", nargs="*", default=list(FLAGS))
    given = parser.parse_args()
    release, operations, bad = RELEASES[given.release], 0, 0
    for behaviour in BEHAVIOURS:
        if behaviour.__name__ not in given.only:
            continue
        flag, with_it, without = FLAGS[behaviour.__name__]
        value = without if release.has(behaviour) else with_it
        profile = replace(profile_named(release.name), **{flag: value})
        for structure_id in ("record-batch", "record-file"):
            run = Run(structure_id, release.flipped(behaviour), profile)
            for seed in range(given.seeds):
                found = run.history(seed, given.length)
                if found is not None:
                    bad += 1
                    print(f"{behaviour.__name__}, {structure_id}\n{shown(found)}", flush=True)
                    break
            operations += sum(run.operations.values())
    print(f"{given.release}: {len(given.only)} behaviours, {operations} operations, {bad} bad")


if __name__ == "__main__":
    main()
