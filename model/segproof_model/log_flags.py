# SPDX-License-Identifier: Apache-2.0
"""What differs in whole logs of Kafka, their text checkpoints and leader epochs.

Used by: flags, and through it the logs of partitions.
"""

from dataclasses import dataclass
from typing import Literal

from segproof_model.declaring import flag
from segproof_model.early_flags import EarlyFlags
from segproof_model.language.outcomes import ErrorKind

__all__ = ["LogFlags"]


@dataclass(frozen=True, slots=True)
class LogFlags(EarlyFlags):
    """The flags of a partition's log, beyond those of its segments and producers."""

    # Text checkpoints and leader epochs
    entry_number_kind: ErrorKind = flag(
        ErrorKind.NUMBER_FORMAT,
        "the error for a field of a checkpoint's entry that is no number",
        "CKPT-4",
    )
    text_damage_is_io_error: bool = flag(
        False,
        "a negative count of a checkpoint, and a partition.metadata that ends early or has no"
        " base64, raise the I/O error as other damage does, not one by accident",
        "CKPT-3",
        "META-2",
    )
    unreadable_text_is_refused: bool = flag(
        False,
        "what would not be read back as it was given is not written",
        "CKPT-6",
        "META-2",
    )
    metadata_version_is_exact: bool = flag(
        False, "partition.metadata is known in version 0 only", "META-2"
    )
    epoch_rules: Literal["1.1", "2.0", "2.7"] = flag(
        "2.7",
        "the first release with these rules: 1.1 ignores what does not continue the epochs, 2.0"
        " drops what conflicts, 2.7 does so when the file is loaded too",
        "EPOCH-1",
        "EPOCH-2",
        "EPOCH-3",
        "EPOCH-4",
        "EPOCH-7",
        "EPOCH-9",
    )
    epoch_truncation_is_deferred: bool = flag(
        True, "a truncation of the epochs schedules the write of their file", "EPOCH-11"
    )

    # Logs
    closed_log_is_refused: bool = flag(
        True,
        "what would change a closed log, or needs one of its bounds, is refused; else its files and"
        " indexes, which are closed, decide",
        "LOG-5",
        "LOG-9",
        "LOG-11",
        "LOG-13",
    )
    replaced_segment_loads_indexes: bool = flag(
        True,
        "rolling onto the active, empty segment loads its indexes, which creates their files",
        "LOG-12",
    )
    roll_knows_first_offset: bool = flag(
        True,
        "a segment that an append begins has the first offset as its base, if that is known",
        "LOG-11",
    )
    uncounted_batch: Literal["fails", "refused", "rewritten"] = flag(
        "fails",
        "what a leader does with a compressed batch whose records do not count from 0: it fails on"
        " one that would keep its codec, refuses it as an invalid record, or writes it anew",
        "BATCH-4",
        "LOG-10",
    )
    unplaced_bound_reads_nothing: bool = flag(
        True,
        "a segment behind the bound of a read, or one whose bound has no known place, gives no"
        " records; otherwise it is read to its end",
        "LOG-6",
    )
    rebuild_snapshots: Literal["ends", "segments", "replayed"] = flag(
        "ends",
        "where building the producer state anew writes snapshots: at its end and at the last two"
        " segments; at each segment that it reads, and in a recovery at that segment alone; or only"
        " at each segment that it reads, and in no recovery",
        "PROD-14",
    )
    flush_removes_snapshots: bool = flag(
        False,
        "what makes the log durable up to an offset removes the snapshots before that and before"
        " the last two segments",
        "PROD-6",
    )
    missing_index_is_seen_first: bool = flag(
        False,
        "loading asks for the offset index of a segment before it opens that; where opening makes"
        " what is missing, otherwise it is never built anew",
        "LOAD-5",
    )
    corrupt_indexes_are_removed: bool = flag(
        False,
        "loading removes the indexes of a segment before it builds them anew because one is"
        " corrupt; otherwise they are overwritten",
        "LOAD-5",
    )
    index_swaps_stay: bool = flag(
        True,
        "an index swap without its log lets loading remove the indexes at its offset, and stays;"
        " otherwise it goes itself, whatever its name",
        "LOAD-18",
    )
    empty_marker_is_passed: bool = flag(
        True,
        "a batch of markers without a record changes nothing; otherwise its first record is missed",
        "PROD-9",
    )
    append_ends_log_first: bool = flag(
        True,
        "an append moves the log end before producers and transactions know of its batches, and"
        " enters a transaction into its index before that is no longer open; otherwise the other"
        " way round, and not where they fail",
        "LOG-9",
        "PROD-11",
    )
    removed_segments_go_together: bool = flag(
        True,
        "segments that are removed are all forgotten before the first file is renamed; otherwise"
        " one after the other, and none behind one whose files can't be renamed",
        "LOG-13",
        "LOG-14",
        "LOG-17",
    )
    swap_may_be_unfinished: bool = flag(
        True,
        "a swap at or behind the first .cleaned file is that of a split that was not finished, and"
        " goes; otherwise each swap is completed, and a .cleaned file goes whatever its name",
        "LOAD-2",
    )
    swap_spares_what_ends_before: bool = flag(
        True,
        "a swap takes the place of segments that reach into its range; otherwise of the one below,"
        " too, where that ends before",
        "LOAD-3",
    )
    rebuild_ends_in_one_segment: bool = flag(
        True,
        "building the producer state anew looks its end up in the segment that holds it, and reads"
        " others whole; otherwise in each that it reads",
        "PROD-14",
    )
    recovery_asks_own_producers: bool = flag(
        False,
        "what a recovery reads of the log below a segment is appended to what the log's own"
        " producer state knows, which is nothing yet: an open transaction of the snapshot is lost,"
        " or begins anew with the next batch",
        "PROD-14",
        "LOAD-8",
    )
    opening_recovers_unflushed: bool = flag(
        True,
        "loading recovers a segment whose index is missing or corrupt when it opens it, also one"
        " that is not flushed: what that cuts does not end the log",
        "LOAD-8",
        "LOAD-17",
    )
    recovery_point_survives_loading: bool = flag(
        True, "a load after a crash keeps the recovery point, not above the log end", "LOAD-13"
    )
    recovery_point_is_bounded: bool = flag(
        True,
        "a load after a crash bounds the recovery point by the log end, or moves it there;"
        " otherwise it stays",
        "LOAD-13",
    )
    log_begins_at_checkpoint: bool = flag(
        True,
        "a log without segments, or that ends below its checkpointed start, begins anew at that"
        " start; otherwise the former begins at 0, and the latter stays",
        "LOAD-12",
    )
    looked_up_bound_moves: bool = flag(
        True,
        "a high watermark or first unstable offset whose place is looked up becomes what the "
        "search answers, be it the base offset of its batch",
        "LOG-7",
        "PROD-10",
    )
    truncation_loads_indexes_first: bool = flag(
        True,
        "truncating a segment opens both indexes before it cuts one",
        "SEG-31",
    )
    truncation_forgets_maximum: bool = flag(
        True,
        "truncating a segment whose largest timestamp was not asked for since its opening takes"
        " it from the entries that are left, and none from the batches",
        "SEG-34",
    )
    bound_stays_in_removed_segment: bool = flag(
        True,
        "a high watermark before a gap keeps its place in a segment behind it that is removed: "
        "reads pass the high watermark until it moves",
        "LOG-6",
    )
    truncation_keeps_unstable: bool = flag(
        True,
        "a truncation below which the high watermark lies leaves the last stable offset as it was "
        "until the next append",
        "LOG-13",
        "PROD-10",
    )
    swap_stays_open: bool = flag(
        True,
        "loading leaves the index that it makes beside a .swap log at full size, all zeros",
        "LOAD-2",
    )

    segment_names_exact: bool = flag(
        False,
        "loading raises, before it changes anything, where a file of a segment, a .cleaned or a"
        " .swap is not named just as Kafka names it, and a swap takes the place of no others;"
        " otherwise the number before the first dot is enough",
        "FILE-1",
        "FILE-2",
        "LOAD-2",
    )
    log_names_end_at_first_dot: bool = flag(
        True,
        "the offset of a log stands before the first dot of its name, and an index goes where no"
        " log has its offset; otherwise it stands before .log, an index goes where no log has its"
        " name, and transaction indexes are left alone",
        "FILE-2",
        "LOAD-4",
    )
    deleted_checkpoints_stay: bool = flag(
        True,
        "loading leaves the *.checkpoint.deleted of a metadata log; otherwise they go as all"
        " .deleted files do",
        "LOAD-18",
    )
    swap_keeps_indexes: bool = flag(
        True,
        "a swap is renamed with its indexes, and what lies in its range removed, before a segment"
        " is opened; otherwise it is recovered behind them, takes the place of those that reach"
        " into its range, and a .swap that is neither a log nor an index stays",
        "LOAD-2",
        "LOAD-3",
        "LOAD-18",
    )
    epochs_begin_at_checkpoint: bool = flag(
        True,
        "loading cuts the epochs at the checkpointed start, be it before the first segment;"
        " otherwise where the log begins",
        "LOAD-15",
    )
    truncation_sets_high_watermark: bool = flag(
        False,
        "a truncation sets the high watermark anew, be it below the cut: its place is looked up,"
        " and the first unstable offset",
        "LOG-6",
        "LOG-13",
        "PROD-10",
    )
    high_watermark_at_end_is_placed: bool = flag(
        True,
        "a high watermark at the end of the log, or beyond, gets the place of the end; otherwise"
        " none before a read looks it up",
        "LOG-6",
    )
    stable_bound_places_high_watermark: bool = flag(
        True,
        "a read up to the last stable offset looks the place of the high watermark up as well;"
        " otherwise only where that is the bound",
        "LOG-6",
    )
    read_at_bound_is_empty: bool = flag(
        True,
        "a read that begins at its bound gives no records; otherwise one at the log end gives none,"
        " before its bound is looked up, and another reads of the segments what is left there",
        "LOG-5",
        "LOG-6",
    )
    bound_outside_is_refused: bool = flag(
        False,
        "a bound whose place is looked up, and that lies outside of the log, raises the"
        " out-of-range error; otherwise it stays without a place",
        "LOG-6",
        "LOG-13",
        "PROD-10",
    )
    truncation_at_end_cuts_epochs: bool = flag(
        True, "a truncation at the log end or behind it cuts the epochs there", "LOG-13"
    )
    bounds_follow_end_at_once: bool = flag(
        False,
        "wherever the log end moves, the high watermark is fitted to it first, then the recovery"
        " point: so in a truncation, before epochs and producers are cut",
        "LOG-13",
        "PROD-10",
    )
    bounds_follow_start: bool = flag(
        False,
        "where a truncation lets the log begin at another offset, the high watermark and the"
        " recovery point are not left below it",
        "LOG-14",
        "PROD-10",
    )
    full_truncation_rebuilds: bool = flag(
        True,
        "a log that begins anew loads its producers, and writes a snapshot of none; otherwise it"
        " only forgets them, and its high watermark is lowered to the end",
        "LOG-14",
        "PROD-14",
    )
    equal_bounds_touch_nothing: bool = flag(
        True,
        "an empty range of offsets touches no segment, and one that ends before it begins is"
        " refused; otherwise both touch the one below, and only an end before that one is refused",
        "LOG-2",
        "LOAD-3",
    )
    emptied_log_forgets: bool = flag(
        True,
        "a log that is emptied because it ends below its start forgets its epochs, and removes its"
        " snapshots",
        "LOAD-12",
    )
    follower_size_is_limited: bool = flag(
        False, "a follower refuses batches above max.message.bytes, too", "LOG-10", "LOG-21"
    )
    first_refused_names_error: bool = flag(
        False,
        "of several records that are refused the first names the error; otherwise one with a"
        " timestamp that is refused does",
        "LOG-10",
    )
    producers_checked_before_roll: bool = flag(
        False,
        "what a producer sends is checked before a new segment is begun for it, not behind that",
        "LOG-9",
        "LOG-11",
    )
    compaction_lag_limits_segments: bool = flag(
        True,
        "a segment of a compacted log takes no more after max.compaction.lag.ms, if that is less"
        " than segment.ms",
        "LOG-11",
    )
    empty_segment_is_replaced: bool = flag(
        True,
        "a roll to where the active segment begins replaces it if it is empty; otherwise that is"
        " refused when its files are removed and the segment is begun",
        "LOG-12",
    )
    legacy_batch_forgets_epochs: bool = flag(
        True,
        "a message of magic 0 or 1 that is appended lets the log forget its epochs; otherwise it"
        " leaves them",
        "LOG-9",
    )
    first_offset_is_named: bool = flag(
        True,
        "an append tells the first offset if it knows it, and the last one of the first batch;"
        " otherwise one of the two as the first",
        "LOG-9",
    )
    append_tells_log_start: bool = flag(True, "an append tells where the log begins", "LOG-9")
    leader_compares_count: bool = flag(
        True,
        "a leader refuses a client's batch whose offsets are not as many as its records",
        "LOG-10",
    )
    leader_takes_one_batch: bool = flag(
        True,
        "a leader refuses a call with several batches, but for messages of magic 0 and 1 that are"
        " not compressed",
        "LOG-10",
    )
    batches_share_magic: bool = flag(
        True,
        "a leader refuses several magics in one call; otherwise it writes all batches anew",
        "LOG-10",
    )
    log_knows_high_watermark: bool = flag(
        True,
        "the log itself knows the high watermark, which begins at the log start and follows the log"
        " end; otherwise its replica does, and tells it",
        "LOG-6",
        "LOG-13",
        "PROD-10",
    )
    txn_places_of_each_batch: bool = flag(
        True,
        "where a transaction begins is remembered of each batch of a call but markers, and else"
        " looked up; otherwise of the first batch alone, whatever it is",
        "PROD-10",
        "LOG-7",
    )
    bound_is_placed_first: bool = flag(
        True,
        "a read looks its bound up before it is refused as out of range",
        "LOG-5",
        "LOG-6",
    )
    retention_begins_at_start: bool = flag(
        True,
        "retention removes what lies before the log start, then by size, then by age; otherwise the"
        " other way round, by age first",
        "LOG-17",
        "LOG-18",
    )
    compacted_log_is_trimmed: bool = flag(
        True,
        "retention removes what lies before the start of a log that is only compacted, too",
        "LOG-17",
    )
    start_moves_before_removal: bool = flag(
        True,
        "retention moves the log start before it removes the segments below; otherwise behind that,"
        " so that they are gone if it fails",
        "LOG-17",
    )
    flush_can_be_forced: bool = flag(
        True,
        "a flush may be told to take an active, empty segment, too; otherwise that goes unheard",
        "LOAD-13",
    )
    index_rebuild_learns_epochs: bool = flag(
        True,
        "building the missing or corrupt index of a segment anew at loading enters the epochs of"
        " its batches, be it before those of earlier segments",
        "LOAD-5",
    )
    snapshot_of_removed_is_renamed: bool = flag(
        True,
        "the snapshot at the beginning of a removed segment is renamed at once, and forgotten;"
        " otherwise it goes with the files of the segment",
        "LOAD-1",
    )
    aborted_since_log_start: bool = flag(
        True,
        "aborted transactions that are asked for alone are those that ended since the log start,"
        " be it before the offset that is asked for",
        "LOG-8",
    )
    follower_knows_epoch: bool = flag(
        True,
        "a follower leaves out batches from the first of a later epoch than its leader's on",
        "LOG-21",
    )
    order_checked_each_batch: bool = flag(
        True,
        "offsets that a follower is given and that do not increase are refused where they are met,"
        " whatever follows; otherwise behind all other checks",
        "LOG-21",
    )
    order_error_names_records: bool = flag(
        True,
        "the error for offsets that a follower is given out of order, or below the log's end, names"
        " the offsets of the records, and gives way to what can't be read of these",
        "LOG-21",
    )
    leader_indexes_record: bool = flag(
        False,
        "with the largest timestamp of an uncompressed batch a leader enters the offset of its"
        " record into the time index, not the last one of the batch",
        "LOG-9",
    )
    early_has_own_limit: bool = flag(
        True,
        "a timestamp after now has a limit of its own, not that of one before",
        "LOG-10",
    )
    given_time_is_refused: bool = flag(
        False,
        "a leader refuses every batch that says that its log gave it its time, not only one whose"
        " own time is not looked at",
        "LOG-10",
    )
    special_timestamps: Literal[2, 3, 4] = flag(
        4,
        "how many negative timestamps stand for an offset: the latest, the earliest, that of the"
        " largest timestamp, the earliest local one",
        "LOG-15",
        "LOG-16",
    )
    largest_timestamp_is_searched: bool = flag(
        True,
        "asked for the record with the largest timestamp, a log reads the batch that holds it",
        "LOG-16",
    )
    largest_timestamp_is_streamed: bool = flag(
        True,
        "of that batch no more is read than up to that record, so that damage behind it goes"
        " unseen",
        "LOG-16",
    )
    cut_leaves_time_search: bool = flag(
        False,
        "a truncation that lowers the log start leaves where a search by timestamp begins",
        "LOG-15",
    )
    full_truncation_takes_start: bool = flag(
        True,
        "a log that begins anew may be told a log start below its first segment",
        "LOG-14",
    )
