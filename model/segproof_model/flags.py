# SPDX-License-Identifier: Apache-2.0
"""A profile, with the flags of Kafka: what can differ between releases, or from segproof.

Used by: profiles, and through it every structure.
"""

from dataclasses import dataclass
from typing import Literal

from segproof_model.declaring import flag
from segproof_model.language.outcomes import ErrorKind
from segproof_model.log_flags import LogFlags

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True)
class Profile(LogFlags):
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
    close_writes: bool = flag(
        False,
        "closing trims indexes and record files, and writes the last time entry of a segment;"
        " otherwise it changes no file: the log manager does so before, to each active segment",
        "ABSIDX-14",
        "SCAN-13",
        "SEG-44",
        "LOAD-11",
    )
    unmapped_index_flushes: bool = flag(
        True, "a flush of an unmapped index does nothing", "ABSIDX-17"
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
        "sanity_check asks for the length of the file by the name that it was opened by, which is"
        " 0 once it is renamed, not for the length that it was opened or resized to",
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
        True,
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
