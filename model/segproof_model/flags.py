# SPDX-License-Identifier: Apache-2.0
"""A profile, with the flags of Kafka: what can differ between releases, or from segproof.

Used by: profiles, and through it every structure.
"""

from dataclasses import dataclass
from typing import Literal

from segproof_model.declaring import flag
from segproof_model.early_flags import EarlyFlags
from segproof_model.outcomes import ErrorKind

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True)
class Profile(EarlyFlags):
    """A named set of behaviours."""

    # Index files
    search: Literal["plain", "warm"] = flag(
        "warm", "where a slot search begins; seen only where keys repeat", "ABSIDX-23", "ABSIDX-26"
    )
    check_relative_offset: bool = flag(
        True,
        "an offset too far from the base is refused, not cut to 32 bits",
        "OFFIDX-6",
        "OFFIDX-7",
    )
    absolute_entry: bool = flag(
        True, "entry(n) carries the absolute offset, not the relative one", "OFFIDX-14"
    )
    sanity_allows_base: bool = flag(
        True, "sanity_check accepts a last offset equal to the base", "OFFIDX-20", "OFFIDX-21"
    )
    close_unmaps: bool = flag(True, "a closed index can no longer be used", "ABSIDX-15")
    mismatch_kind: ErrorKind = flag(
        ErrorKind.ILLEGAL_STATE,
        "the error for a position that is not that of the count",
        "ABSIDX-9",
        "TIMEIDX-14",
    )
    failed_resize_unmaps: bool = flag(
        True, "a resize to a negative size leaves the index unmapped", "ABSIDX-10"
    )
    trim_after_close_handler_fails: bool = flag(
        False, "trimming an unmapped, untrimmed index raises the unmapped error", "ABSIDX-12"
    )
    resize_short_cut: bool = flag(
        True,
        "a resize to the length that the index has does nothing and answers False, another one"
        " True; otherwise each is made, and answers nothing",
        "ABSIDX-7",
        "ABSIDX-8",
        "ABSIDX-12",
    )
    last_entry_remembered: bool = flag(
        True,
        "a time index remembers its last entry, and does not read it each time that it is asked",
        "TIMEIDX-9",
        "TIMEIDX-13",
    )
    sanity_kind: ErrorKind = flag(
        ErrorKind.CORRUPT_INDEX,
        "the error of a sanity_check that fails",
        "OFFIDX-20",
        "TIMEIDX-17",
        "TXNIDX-15",
    )
    sanity_measures_file: bool = flag(
        False,
        "sanity_check asks for the length of the file, not for the one it was opened or resized to",
        "OFFIDX-20",
        "TIMEIDX-17",
    )
    txn_deletion_needs_channel: bool = flag(
        False,
        "deleting a transaction index without a channel leaves the file, and answers True",
        "TXNIDX-17",
        "SEG-47",
    )
    opens_read_only: bool = flag(
        True,
        "an offset or a time index can be opened for reading only",
        "ABSIDX-3",
        "ABSIDX-11",
        "OFFIDX-23",
    )
    # Deviations of segproof
    checks_before_changing: bool = flag(
        False,
        "an operation that fails has changed nothing",
        "ABSIDX-9",
        "ABSIDX-10",
        "TIMEIDX-14",
        "TIMEIDX-16",
        "TXNIDX-6",
        "ABSIDX-19",
    )
    closed_is_closed: bool = flag(
        False,
        "every use of a closed index raises the unmapped error",
        "ABSIDX-17",
        "TXNIDX-9",
        "TXNIDX-17",
    )
    resize_keeps_read_only: bool = flag(False, "a read-only index refuses a resize", "ABSIDX-11")
    upper_bound_exact: bool = flag(
        False,
        "an upper bound search finds the first entry and does not wrap at 32 bits",
        "ABSIDX-24",
        "OFFIDX-15",
        "OFFIDX-16",
    )
    zero_tail_is_free: bool = flag(
        False,
        "the zero slots at the end of an existing file are no entries, but for the only slot of a"
        " time index, which is timestamp 0",
        "ABSIDX-4",
    )
    sanity_checks_all: bool = flag(
        False, "sanity_check looks at every entry", "OFFIDX-20", "TIMEIDX-17", "TXNIDX-15"
    )
    txn_version_exact: bool = flag(
        False,
        "an aborted transaction's version is both of its bytes, and only 0 is known",
        "TXNIDX-2",
        "TXNIDX-5",
    )
    txn_follows_file: bool = flag(
        False,
        "a transaction index that is not closed knows the file at its path: its last offset from"
        " the start, its entries after a rename",
        "TXNIDX-4",
        "TXNIDX-18",
    )
    txn_refuses_partial_tail: bool = flag(
        False, "an append behind a partial tail raises the corrupt-index error", "TXNIDX-16"
    )
    txn_opens_read_only: bool = flag(
        False, "a transaction index can be opened for reading only", "TXNIDX-6"
    )

    # Records and record files
    slice_start_refused: bool = flag(
        False, "slicing a slice compares the position with size - start", "SCAN-16"
    )
    slice_start_checked: bool = flag(
        True, "a slice that begins beyond the end is refused, not empty", "SCAN-14"
    )
    slice_end_is_size: bool = flag(
        False,
        "a slice of a slice ends at the outer one's size, not at its end, if that is less",
        "SCAN-14",
        "SCAN-16",
    )
    scanner_limits_wrap: bool = flag(False, "the scanner computes its limits in 32 bits", "SCAN-6")
    scanner_eof_kind: ErrorKind = flag(
        ErrorKind.CORRUPT_RECORD, "the error for a file shorter than believed", "SCAN-7"
    )
    ensure_valid_kind: ErrorKind = flag(
        ErrorKind.CORRUPT_RECORD, "the error of a batch that is not valid", "BATCH-14"
    )
    magic_checked_in_files: bool = flag(
        False, "the file scanner refuses a magic outside 0..2", "SCAN-4"
    )

    memory_scanner_wraps: bool = flag(
        True,
        "the scanner of records in memory adds 12 to a size in 32 bits: one near 2^31 raises"
        " invalid-argument instead of ending the scan",
        "SCAN-9",
    )
    empty_change_is_refused: bool = flag(
        False,
        "a record file that can't be written refuses to append no bytes and to cut none, and one"
        " that is open for reading only is closed without a truncation",
        "SCAN-11",
        "SCAN-12",
        "SCAN-13",
    )
    memory_scanner_checks_magic_first: bool = flag(
        True,
        "the scanner of records in memory refuses a magic outside 0..2 before it asks whether the"
        " batch is whole, or its size near 2^31",
        "SCAN-9",
    )
    second_close_fails: bool = flag(
        False, "closing a closed record file raises the I/O error", "SCAN-13"
    )
    zstd_known: bool = flag(True, "codec 4 is zstd, not an unknown codec", "BATCH-11", "BATCH-18")
    control_record_types: Literal["0.11", "2.8", "3.4", "3.9"] = flag(
        "3.9",
        "the first release with these types of control records: 0.11 knows the two that end a"
        " transaction; 2 and 3 have another meaning in 2.8; 3.4 knows 2 to 4 and 3.9 all",
        "BATCH-19",
    )
    delete_horizon_known: bool = flag(
        True, "a bit of a batch's attributes says that it has a delete horizon", "BATCH-15"
    )
    long_record_is_null: bool = flag(
        False,
        "for a record that is longer than what is left a null is handed out, which the caller trips"
        " over; otherwise it is an invalid record",
        "BATCH-16",
    )
    inflated_length_kind: ErrorKind = flag(
        ErrorKind.INVALID_RECORD,
        "the error of a record in a compressed batch whose length is negative or over-long",
        "BATCH-16",
        "BATCH-18",
    )
    found_time_has_epoch: bool = flag(
        True, "a search by time answers the leader epoch too", "SCAN-18", "SCAN-19"
    )
    search_answers_base_offset: bool = flag(
        True, "a search for an offset answers the batch's base offset, not its last", "SCAN-17"
    )
    search_compares_base_offsets: bool = flag(
        True, "a search for an offset compares base offsets and looks one batch back", "SCAN-17"
    )

    # Producer state
    snapshot_without_batch: bool = flag(
        True, "a stored producer whose last offset is negative has no batch", "PROD-5"
    )
    snapshot_overwrites_in_place: bool = flag(
        True, "a snapshot leaves the tail of a longer file that it overwrites", "PROD-2"
    )
    snapshot_names_exact: bool = flag(
        False, "a file whose name is not just as Kafka writes it is no snapshot", "PROD-6"
    )
    missing_snapshot_is_skipped: bool = flag(
        False, "a snapshot that is gone when it is to be loaded is passed over", "PROD-3"
    )
    marker_needs_transaction_version: bool = flag(
        True,
        "a marker that is not replicated must say the version of its transaction; otherwise the"
        " version does not count",
        "PROD-9",
    )

    producer_entry_is_flat: bool = flag(
        False,
        "of a producer the last batch alone is remembered, be it a marker's, which keeps the"
        " sequence number before it",
        "PROD-7",
    )
    producer_time_is_of_batches: bool = flag(
        False,
        "a producer was last heard of when its last remembered batch was; otherwise a marker"
        " counts, too",
        "PROD-7",
        "PROD-9",
    )
    batch_begins_by_sequences: bool = flag(
        False,
        "the first offset of a producer's batch is counted back from its last by the sequence"
        " numbers, in 32 bits",
        "PROD-7",
        "PROD-8",
        "SEG-30",
    )
    replicated_markers_are_checked: bool = flag(
        False,
        "a marker of an old epoch or an old coordinator is refused even if it is replicated",
        "PROD-9",
    )
    unknown_producer_begins_anywhere: bool = flag(
        True,
        "a producer of which nothing is known may begin with any sequence number; otherwise with 0"
        " alone, as one whose epoch is new",
        "PROD-8",
    )
    log_start_evicts_producers: bool = flag(
        False,
        "a producer without a batch at the log start or behind it is forgotten when that moves and"
        " when a snapshot is loaded, with its open transaction",
        "PROD-12",
        "PROD-13",
    )
    snapshots_are_listed: bool = flag(
        False,
        "snapshots are listed anew each time that they are asked for; none goes with its segment,"
        " nor is a stray one removed by a load, but those before the log start are when that moves",
        "PROD-13",
        "LOAD-1",
        "LOAD-14",
    )
    marker_alone_completes: bool = flag(
        False,
        "a marker of a producer without an open transaction begins and ends one",
        "PROD-9",
        "SEG-30",
    )
    stable_offset_by_producer: bool = flag(
        True,
        "the last stable offset at a marker is that of an open transaction of another producer;"
        " otherwise of one that begins elsewhere",
        "PROD-10",
        "SEG-30",
    )

    # Writing
    index_key: Literal["first_offset", "last_offset"] = flag(
        "last_offset", "which offset of an appended call or batch the offset index keeps", "SEG-4"
    )

    # Segments
    index_per_batch: bool = flag(
        True,
        "append looks at each batch for an index entry, not once for the whole call",
        "SEG-4",
        "SEG-5",
        "SEG-26",
    )
    append_sets_rolling_timestamp: bool = flag(
        False,
        "the first append keeps its largest timestamp for rolling, even if it fails",
        "SEG-2",
        "SEG-36",
    )
    indexes_open_lazily: bool = flag(
        True, "opening a segment creates no index file", "FILE-4", "LAZY-1", "SEG-48", "SEG-49"
    )
    unloaded_index_stays_unloaded: bool = flag(
        True, "renaming, deleting and closing an index that is not loaded do not load it", "LAZY-1"
    )
    segment_close_raises: bool = flag(
        True, "closing a segment stops at the first part that fails, and raises its error", "SEG-44"
    )
    close_writes_unknown_maximum: bool = flag(
        False, "closing loads the largest timestamp to write its entry", "SEG-44"
    )
    recovery_has_producers: bool = flag(
        True,
        "a recovery that is given no producer state begins with an empty one; otherwise it looks"
        " for no transactions",
        "SEG-30",
    )
    unknown_maximum_is_a_value: bool = flag(
        False,
        "a largest timestamp of -1 with offset -1 counts as unknown: it is asked of the time index"
        " again",
        "SEG-8",
        "SEG-49",
    )
    recovery_keeps_offset_of_maximum: bool = flag(
        False,
        "recovery forgets the largest timestamp, but not its offset",
        "SEG-29",
    )
    truncation_needs_match: bool = flag(
        False,
        "a truncation behind the last batch leaves the indexes alone, too",
        "SEG-31",
        "SEG-32",
        "SEG-33",
    )
    inactive_segment_is_trimmed: bool = flag(
        True, "a segment that becomes inactive cuts what no entry and no batch uses", "SEG-38"
    )
    failed_reload_takes_entry: bool = flag(
        False,
        "after a truncation that leaves what can't be read, the last time entry's timestamp is the"
        " largest; otherwise the former stays",
        "SEG-34",
    )
    overflow_names_maximum: bool = flag(
        False,
        "the segment-overflow error names the largest timestamp, for which the time index is"
        " loaded, so made; so does that of a roll to where no segment may begin",
        "SEG-2",
        "SEG-27",
        "LOG-12",
    )
    recover_assigns_epoch_zero: bool = flag(
        True, "recover enters leader epoch 0 into the epoch cache", "SEG-28"
    )
    sanity_checks_transactions_only: bool = flag(
        True, "sanity_check of a segment leaves the offset and the time index alone", "SEG-43"
    )
    read_size_wraps: bool = flag(
        True, "the room up to the largest position is cut to 32 bits", "SEG-16"
    )
    age_wraps: bool = flag(
        True, "the age of a segment and its limit are cut to 64 bits", "SEG-36", "SEG-37"
    )
    small_batch_is_refused: bool = flag(
        False, "append refuses a batch that is smaller than its header", "SEG-3", "BATCH-14"
    )
    entry_outside_is_corrupt: bool = flag(
        False,
        "a search that an index entry sends outside of the log raises the corrupt-index error",
        "SEG-7",
        "SEG-12",
    )

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
    uncounted_batch_is_rewritten: bool = flag(
        False,
        "a leader writes a compressed batch anew whose records do not count from 0; otherwise it"
        " fails on one that would keep its codec",
        "BATCH-4",
    )
    unplaced_bound_reads_nothing: bool = flag(
        True,
        "a segment behind the bound of a read, or one whose bound has no known place, gives no"
        " records; otherwise it is read to its end",
        "LOG-6",
    )
    rebuild_snapshots: Literal["always", "recovery", "never"] = flag(
        "always",
        "when building the producer state anew writes a snapshot at its end, and at the last two"
        " segments: always, at the segment that is recovered alone, or never but after a clean stop"
        " that left none",
        "PROD-14",
    )
    recovery_asks_own_producers: bool = flag(
        False,
        "what a recovery reads of the log below a segment is appended to what the log's own producer"
        " state knows, which is nothing yet: an open transaction of the snapshot is lost, or begins"
        " anew with the next batch",
        "PROD-14",
        "LOAD-8",
    )
    recovery_point_survives_loading: bool = flag(
        True, "a load after a crash keeps the recovery point, not above the log end", "LOAD-13"
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

    swap_keeps_indexes: bool = flag(
        True,
        "a swap is renamed with its indexes, and what lies in its range removed, before a segment"
        " is opened; otherwise it is recovered behind them, and takes the place of those that reach"
        " into its range",
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
        "a bound whose place is looked up, and that lies outside of the log, raises the out-of-range"
        " error; otherwise it stays without a place",
        "LOG-6",
        "LOG-13",
        "PROD-10",
    )
    truncation_at_end_cuts_epochs: bool = flag(
        True, "a truncation at the log end or behind it cuts the epochs there", "LOG-13"
    )
    bounds_follow_at_once: bool = flag(
        False,
        "wherever the log end moves, the high watermark is fitted to it first, then the recovery"
        " point; wherever the log start does, both follow it: so in a truncation, before epochs and"
        " producers are cut",
        "LOG-13",
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
    leader_takes_one_batch: bool = flag(
        True,
        "a leader refuses a call with several batches, but for messages of magic 0 and 1 that are"
        " not compressed",
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
    full_truncation_takes_start: bool = flag(
        True,
        "a log that begins anew may be told a log start below its first segment",
        "LOG-14",
    )
