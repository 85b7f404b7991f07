# SPDX-License-Identifier: Apache-2.0
"""Profiles: what differs between releases, and between them and segproof, as data.

Nothing else in the model names a release. A flag has the value of the newest release as its
default; an older release, and `segproof` itself, state only what differs.

Used by: every structure; `PROFILES` is where further releases go.
"""

from dataclasses import fields, replace
from typing import Any

from segproof_model.flags import Profile
from segproof_model.language.outcomes import ErrorKind

__all__ = [
    "KAFKA_PROFILES",
    "NEWEST_KAFKA",
    "PROFILES",
    "ROCKETMQ_PROFILES",
    "SEGPROOF",
    "Profile",
    "differences",
    "profile_named",
]

KAFKA_4_4_0 = Profile(name="kafka-4.4.0")
NEWEST_KAFKA = KAFKA_4_4_0
"""What the structures are by default."""
KAFKA_4_3_1 = replace(
    KAFKA_4_4_0,
    name="kafka-4.3.1",
    close_writes=True,
    closed_log_is_refused=False,
    unmapped_index_flushes=False,
    txn_version_exact=False,
    time_search_is_streamed=False,
)
KAFKA_4_2_2 = replace(KAFKA_4_3_1, name="kafka-4.2.2", time_search_is_streamed=True)
KAFKA_4_2_1 = replace(KAFKA_4_3_1, name="kafka-4.2.1")
KAFKA_4_1_2 = replace(KAFKA_4_2_1, name="kafka-4.1.2", marker_needs_transaction_version=False)
KAFKA_4_0_2 = replace(
    KAFKA_4_1_2,
    name="kafka-4.0.2",
    slice_start_refused=True,
    search_compares_base_offsets=False,
    order_checked_each_batch=False,
)
KAFKA_4_0_0 = replace(
    KAFKA_4_0_2,
    name="kafka-4.0.0",
    failed_resize_unmaps=False,
    trim_after_close_handler_fails=True,
    second_close_fails=True,
    index_per_batch=False,
    append_sets_rolling_timestamp=True,
    segment_close_raises=False,
    follower_knows_epoch=False,
)
KAFKA_3_9_0 = replace(
    KAFKA_4_0_0,
    name="kafka-3.9.0",
    search_answers_base_offset=False,
    replaced_segment_loads_indexes=False,
)
KAFKA_3_9_2 = replace(
    KAFKA_3_9_0,
    name="kafka-3.9.2",
    failed_resize_unmaps=True,
    trim_after_close_handler_fails=False,
    index_per_batch=True,
    append_sets_rolling_timestamp=False,
    follower_knows_epoch=True,
)
KAFKA_3_7_2 = replace(
    KAFKA_3_9_0,
    name="kafka-3.7.2",
    bound_outside_is_refused=True,
    unplaced_bound_reads_nothing=False,
    control_record_types="3.4",
    epoch_truncation_is_deferred=False,
    largest_timestamp_is_searched=False,
)
KAFKA_3_6_2 = replace(
    KAFKA_3_7_2,
    name="kafka-3.6.2",
    unknown_maximum_is_a_value=True,
    truncation_loads_indexes_first=False,
    leader_indexes_record=True,
    start_moves_before_removal=False,
    metadata_version_is_exact=True,
    overflow_names_maximum=True,
    failed_reload_takes_entry=True,
)
KAFKA_3_5_2 = replace(
    KAFKA_3_6_2,
    name="kafka-3.5.2",
    early_has_own_limit=False,
    given_time_is_refused=True,
    full_truncation_takes_start=False,
    cut_leaves_time_search=True,
    inflated_length_kind=ErrorKind.INVALID_ARGUMENT,
)
KAFKA_3_4_1 = replace(
    KAFKA_3_5_2,
    name="kafka-3.4.1",
    special_timestamps=3,
    mismatch_kind=ErrorKind.INVALID_ARGUMENT,
    cut_leaves_time_search=False,
)
KAFKA_2_8_2 = replace(
    KAFKA_3_4_1,
    name="kafka-2.8.2",
    unknown_maximum_is_a_value=False,
    recovery_keeps_offset_of_maximum=True,
    control_record_types="2.8",
    delete_horizon_known=False,
    long_record_is_null=True,
    special_timestamps=2,
    swap_keeps_indexes=False,
    deleted_checkpoints_stay=False,
    truncation_sets_high_watermark=True,
    retention_begins_at_start=False,
    bound_is_placed_first=False,
    epochs_begin_at_checkpoint=False,
    flush_can_be_forced=False,
    index_rebuild_learns_epochs=False,
    snapshot_of_removed_is_renamed=False,
    entry_number_kind=ErrorKind.IO_ERROR,
    text_damage_is_io_error=True,
)
KAFKA_2_4_1 = replace(
    KAFKA_2_8_2,
    name="kafka-2.4.1",
    unknown_producer_begins_anywhere=False,
    recovery_asks_own_producers=True,
    snapshots_are_listed=True,
    high_watermark_at_end_is_placed=False,
    stable_bound_places_high_watermark=False,
    read_at_bound_is_empty=False,
    truncation_at_end_cuts_epochs=False,
    bounds_follow_end_at_once=True,
    bounds_follow_start=True,
    truncation_sets_high_watermark=False,
    full_truncation_rebuilds=False,
    equal_bounds_touch_nothing=False,
    emptied_log_forgets=False,
    follower_size_is_limited=True,
    uncounted_batch="refused",
    first_refused_names_error=True,
    marker_alone_completes=True,
    control_record_types="0.11",
    scanner_eof_kind=ErrorKind.KAFKA_ERROR,
    unloaded_index_stays_unloaded=False,
    close_writes_unknown_maximum=True,
    recover_assigns_epoch_zero=False,
    epoch_rules="2.0",
    recovery_point_survives_loading=False,
)
KAFKA_2_2_2 = replace(
    KAFKA_2_4_1,
    name="kafka-2.2.2",
    bounds_follow_start=False,
    uncounted_batch="rewritten",
    snapshot_without_batch=False,
    removed_segments_go_together=False,
    rebuild_ends_in_one_segment=False,
    bound_outside_is_refused=False,
    log_knows_high_watermark=False,
    leader_takes_one_batch=False,
    batches_share_magic=False,
    txn_places_of_each_batch=False,
    compaction_lag_limits_segments=False,
    log_start_evicts_producers=True,
    producers_checked_before_roll=True,
    replicated_markers_are_checked=True,
    producer_time_is_of_batches=True,
    absolute_entry=False,
    ensure_valid_kind=ErrorKind.INVALID_RECORD,
    indexes_open_lazily=False,
    sanity_checks_transactions_only=False,
)
KAFKA_2_1_1 = replace(
    KAFKA_2_2_2,
    name="kafka-2.1.1",
    append_ends_log_first=False,
    legacy_batch_forgets_epochs=False,
    stable_offset_by_producer=False,
    found_time_has_epoch=False,
    close_unmaps=False,
    log_begins_at_checkpoint=False,
)
KAFKA_2_0_1 = replace(
    KAFKA_2_1_1,
    name="kafka-2.0.1",
    compacted_log_is_trimmed=False,
    empty_segment_is_replaced=False,
    batch_begins_by_sequences=True,
    search="plain",
    slice_start_refused=False,
    slice_start_checked=False,
    zstd_known=False,
    snapshot_overwrites_in_place=False,
    recover_assigns_epoch_zero=True,
)
KAFKA_1_1_1 = replace(
    KAFKA_2_0_1,
    name="kafka-1.1.1",
    empty_marker_is_passed=False,
    first_offset_is_named=False,
    rebuild_snapshots="segments",
    swap_may_be_unfinished=False,
    swap_spares_what_ends_before=False,
    check_relative_offset=False,
    sanity_allows_base=False,
    index_key="first_offset",
    epoch_rules="1.1",
    roll_knows_first_offset=False,
    memory_scanner_checks_magic_first=False,
)
KAFKA_0_11_0_3 = replace(
    KAFKA_1_1_1,
    name="kafka-0.11.0.3",
    rebuild_snapshots="replayed",
    recovery_point_is_bounded=False,
    flush_removes_snapshots=True,
    leader_compares_count=False,
    missing_index_is_seen_first=True,
    corrupt_indexes_are_removed=True,
    index_swaps_stay=False,
    append_tells_log_start=False,
    producer_entry_is_flat=True,
    producer_time_is_of_batches=False,
    truncation_needs_match=True,
    inactive_segment_is_trimmed=False,
    resize_short_cut=False,
    last_entry_remembered=False,
    sanity_kind=ErrorKind.INVALID_ARGUMENT,
    sanity_measures_file=True,
    txn_deletion_needs_channel=True,
    slice_end_is_size=True,
    scanner_limits_wrap=True,
)
KAFKA_0_10_2_2 = replace(
    KAFKA_0_11_0_3,
    name="kafka-0.10.2.2",
    opens_read_only=False,
    scanner_reads_magic=False,
    header_is_read_alone=False,
    time_search_has_start=False,
    wrapper_is_checked=False,
    magic_2_is_written=False,
    timestamp_type_is_needed=False,
    dating_needs_files=False,
    swap_spares_time_indexes=True,
    log_names_end_at_first_dot=False,
    truncation_at_end_is_done=True,
    log_knows_producers=False,
    log_start_is_kept=False,
    leader_keeps_messages=True,
    missing_time_is_taken=False,
    retention_waits_for_replicas=False,
    recovery_limits_messages=True,
)
ROCKETMQ_5_5_1 = Profile(name="rocketmq-5.5.1")
ROCKETMQ_5_4_0 = replace(
    ROCKETMQ_5_5_1,
    name="rocketmq-5.4.0",
    rmq_checkpoint_fields=5,
    rmq_query_list_capped_first="untyped",
    rmq_recovery_trusts_queues=False,
    rmq_record_room="wrapped",
)
ROCKETMQ_5_3_3 = replace(
    ROCKETMQ_5_4_0,
    name="rocketmq-5.3.3",
    rmq_tags_indexed=False,
    rmq_shutdown_hides_errors=False,
    rmq_query_list_capped_first="all",
    rmq_recovery_asks_each=False,
)
ROCKETMQ_5_1_4 = replace(
    ROCKETMQ_5_3_3,
    name="rocketmq-5.1.4",
    rmq_record_room="none",
    rmq_query_list_capped_first="none",
    rmq_normal_recovery_dispatches=False,
    rmq_reads_on_from_queues=False,
)
ROCKETMQ_5_0_0 = replace(
    ROCKETMQ_5_1_4,
    name="rocketmq-5.0.0",
    rmq_load_result_used=False,
    rmq_empty_log_file_passed=False,
    rmq_checkpoint_fields=4,
    rmq_magic_v2=False,
    rmq_queue_lookup="nearest",
)
ROCKETMQ_4_9_8 = replace(
    ROCKETMQ_5_0_0,
    name="rocketmq-4.9.8",
    rmq_reads_on_from_queues=True,
    rmq_property_numbers="delay",
    rmq_shutdown_clears_list=False,
    rmq_checkpoint_fields=3,
)
ROCKETMQ_4_9_3 = replace(ROCKETMQ_4_9_8, name="rocketmq-4.9.3")
ROCKETMQ_4_7_1 = replace(ROCKETMQ_4_9_3, name="rocketmq-4.7.1", rmq_properties_split=True)
ROCKETMQ_4_7_0 = replace(ROCKETMQ_4_7_1, name="rocketmq-4.7.0", rmq_slot_count_each_put=True)
ROCKETMQ_4_3_2 = replace(
    ROCKETMQ_4_7_0,
    name="rocketmq-4.3.2",
    rmq_hosts_v6=False,
    rmq_reads_on_from_queues=False,
    rmq_queue_knows_end=False,
    rmq_empty_log_file_passed=True,
)
ROCKETMQ_3_2_6 = replace(
    ROCKETMQ_4_3_2,
    name="rocketmq-3.2.6",
    rmq_unique_key_indexed=False,
    rmq_strange_name_skipped=False,
    rmq_committed_indexed=False,
)
SEGPROOF = replace(
    KAFKA_4_4_0,
    name="segproof",
    close_writes=True,
    closed_log_is_refused=False,
    unmapped_index_flushes=False,
    time_search_is_streamed=False,
    failed_resize_unmaps=False,
    checks_before_changing=True,
    closed_is_closed=True,
    resize_keeps_read_only=True,
    upper_bound_exact=True,
    zero_tail_is_free=True,
    sanity_checks_all=True,
    txn_follows_file=True,
    txn_refuses_partial_tail=True,
    txn_opens_read_only=True,
    magic_checked_in_files=True,
    memory_scanner_wraps=False,
    empty_change_is_refused=True,
    snapshot_overwrites_in_place=False,
    snapshot_names_exact=True,
    missing_snapshot_is_skipped=True,
    recovery_has_producers=False,
    opening_recovers_unflushed=False,
    read_size_wraps=False,
    age_wraps=False,
    small_batch_is_refused=True,
    entry_outside_is_corrupt=True,
    text_damage_is_io_error=True,
    unreadable_text_is_refused=True,
    epoch_truncation_is_deferred=False,
    replaced_segment_loads_indexes=False,
    uncounted_batch="rewritten",
    looked_up_bound_moves=False,
    truncation_forgets_maximum=False,
    truncation_keeps_unstable=False,
    bound_stays_in_removed_segment=False,
    swap_stays_open=False,
    segment_names_exact=True,
    aborted_since_log_start=False,
    order_checked_each_batch=False,
    order_error_names_records=False,
    largest_timestamp_is_streamed=False,
    rmq_recovery_passes_first=False,
    rmq_recovers_unloaded=False,
    rmq_checkpoint_wraps=False,
    rmq_property_numbers="none",
    rmq_checks_chains=True,
    rmq_opening_loads=True,
    rmq_checks_geometry=True,
    rmq_null_key_leaks=False,
    rmq_closed_answers_nothing=False,
    rmq_names_distinct=True,
    rmq_creation_error=ErrorKind.IO_ERROR,
    rmq_message_indexed_once=True,
    rmq_empty_file_hides=False,
    rmq_load_replaces=True,
    rmq_failing_put_raises=True,
)

KAFKA_PROFILES = (
    KAFKA_4_4_0,
    KAFKA_4_3_1,
    KAFKA_4_2_2,
    KAFKA_4_2_1,
    KAFKA_4_1_2,
    KAFKA_4_0_2,
    KAFKA_4_0_0,
    KAFKA_3_9_2,
    KAFKA_3_9_0,
    KAFKA_3_7_2,
    KAFKA_3_6_2,
    KAFKA_3_5_2,
    KAFKA_3_4_1,
    KAFKA_2_8_2,
    KAFKA_2_4_1,
    KAFKA_2_2_2,
    KAFKA_2_1_1,
    KAFKA_2_0_1,
    KAFKA_1_1_1,
    KAFKA_0_11_0_3,
    KAFKA_0_10_2_2,
)
"""The releases of Kafka, the newest first."""
ROCKETMQ_PROFILES = (
    ROCKETMQ_5_5_1,
    ROCKETMQ_5_4_0,
    ROCKETMQ_5_3_3,
    ROCKETMQ_5_1_4,
    ROCKETMQ_5_0_0,
    ROCKETMQ_4_9_8,
    ROCKETMQ_4_9_3,
    ROCKETMQ_4_7_1,
    ROCKETMQ_4_7_0,
    ROCKETMQ_4_3_2,
    ROCKETMQ_3_2_6,
)
"""The releases of RocketMQ, the newest first."""
PROFILES = {profile.name: profile for profile in (SEGPROOF, *KAFKA_PROFILES, *ROCKETMQ_PROFILES)}
"""Every profile by name."""


def profile_named(name: str) -> Profile:
    """Return the profile. Raises KeyError with the known names."""
    if name not in PROFILES:
        raise KeyError(f"no profile {name!r}; known: {', '.join(PROFILES)}")
    return PROFILES[name]


def differences(one: Profile, other: Profile) -> list[tuple[str, Any, Any, str, tuple[str, ...]]]:
    """Return (flag, value in one, value in other, sentence, laws) where two profiles differ."""
    return [
        (
            item.name,
            getattr(one, item.name),
            getattr(other, item.name),
            item.metadata["sentence"],
            item.metadata["laws"],
        )
        for item in fields(Profile)
        if item.name != "name" and getattr(one, item.name) != getattr(other, item.name)
    ]
