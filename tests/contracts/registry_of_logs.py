# SPDX-License-Identifier: Apache-2.0
"""The second part of the register: contracts of segments, logs, and what a log knows of itself."""

from typing import Any

Contract: Any = globals()["Contract"]
"""Set by the registry before this file runs, and so is the next."""
Mutant: Any = globals()["Mutant"]

PRODUCERS = "segproof.kernels.producer_rules"
SNAPSHOT = "segproof.kafka.producer_snapshot"
EPOCHS = "segproof.kernels.epochs"
SEGMENTS = "segproof.kernels.segment_rules"
SEARCHES = "segproof.kernels.segment_search"
LOGS = "segproof.kernels.log_rules"
EPOCH_BOUND = "any 0 to 4 entries with strictly increasing epochs and start offsets from 0 on"

CONTRACTS = (
    Contract(
        "leader_epoch_cache.assign_keeps",
        f"{EPOCHS}:kept_by_assign",
        ("EPOCH-3", "EPOCH-4"),
        f"{EPOCH_BOUND}, any epoch, any offset",
        (
            Mutant("[0] >= epoch", "[0] > epoch"),
            Mutant("[1] >= start_offset", "[1] > start_offset"),
            Mutant("[1] <= start_offset", "[1] < start_offset"),
        ),
    ),
    Contract(
        "leader_epoch_cache.end_of_epoch",
        f"{EPOCHS}:end_offset",
        ("EPOCH-5", "EPOCH-6", "EPOCH-7"),
        f"{EPOCH_BOUND}, any epoch, any log end",
        (
            Mutant("[0] > requested_epoch", "[0] >= requested_epoch"),
            Mutant("if higher else requested_epoch", "if higher else -1"),
            Mutant("requested_epoch == -1 or ", ""),
            Mutant(
                "return epoch, entries[higher][1]", "return requested_epoch, entries[higher][1]"
            ),
            Mutant("return -1, -1", "return -1, -1 if entries else log_end_offset"),
        ),
    ),
    Contract(
        "leader_epoch_cache.end_keeps",
        f"{EPOCHS}:kept_from_end",
        ("EPOCH-8",),
        f"{EPOCH_BOUND}, any offset",
        (
            Mutant("[1] >= end_offset", "[1] > end_offset"),
            Mutant("end_offset >= 0 and ", ""),
        ),
    ),
    Contract(
        "leader_epoch_cache.start_keeps",
        f"{EPOCHS}:last_not_behind",
        ("EPOCH-9", "EPOCH-10"),
        f"{EPOCH_BOUND}, any offset",
        (Mutant("[1] > offset", "[1] >= offset"),),
    ),
    Contract(
        "producer_state.in_sequence",
        f"{PRODUCERS}:is_in_sequence",
        ("BATCH-5",),
        "any two sequence numbers",
        (
            Mutant("last_sequence + 1", "last_sequence + 2"),
            Mutant("== 2147483647", "== 2147483646"),
            Mutant("next_sequence == 0", "next_sequence == 1"),
        ),
    ),
    Contract(
        "producer_state.sequence_accepted",
        f"{PRODUCERS}:accepts_sequence",
        ("BATCH-5", "PROD-7"),
        "any epochs and sequence numbers, with and without batches",
        (
            Mutant("first_sequence == 0 or", "first_sequence <= 1 or"),
            Mutant("or updated_epoch == -1", "or current_epoch == -1"),
            Mutant("is_in_sequence(-1, first_sequence)", "True"),
            Mutant("if current_epoch == -1", "if updated_epoch == -1"),
        ),
    ),
    Contract(
        "producer_state.epoch_accepted",
        f"{PRODUCERS}:accepts_epoch",
        ("PROD-9",),
        "any epochs, with and without an open transaction, any version of transactions",
        (
            Mutant("producer_epoch < known_epoch", "producer_epoch <= known_epoch"),
            Mutant("transaction_version < 2", "transaction_version < 1"),
            Mutant("== 32767", "== 32766"),
        ),
    ),
    Contract(
        "producer_state.stable_offset",
        f"{PRODUCERS}:stable_offset",
        ("PROD-10",),
        "any 3 open transactions with rising first offsets, any producer, any marker",
        (
            Mutant("other_id != producer_id", "other_id == producer_id"),
            Mutant("last_offset + 1", "last_offset"),
        ),
    ),
    Contract(
        "producer_state.expiry",
        f"{PRODUCERS}:is_expired",
        ("PROD-12",),
        "any times",
        (
            Mutant(">= expiration_ms", "> expiration_ms"),
            Mutant("not has_open_transaction and ", ""),
        ),
    ),
    Contract(
        "producer_state.entry_decode",
        f"{SNAPSHOT}:_entry_of",
        ("PROD-1", "PROD-5"),
        "any 46 raw bytes",
        (
            Mutant("first_offset >= 0", "first_offset > 0"),
            Mutant("last_offset >= 0", "last_offset > 0"),
            Mutant('">qhiqiqiq"', '">qhiqiiqq"', "*"),
        ),
    ),
    Contract(
        "producer_state.entry_encode",
        f"{SNAPSHOT}:_numbers_of",
        ("PROD-1",),
        "every number that the fields hold",
        (
            Mutant("entry.last_offset_delta", "entry.last_offset"),
            Mutant('">qhiqiqiq"', '"<qhiqiqiq"', "*"),
        ),
    ),
    Contract(
        "log_segment.offsets_that_fit",
        f"{SEGMENTS}:fits_segment",
        ("SEG-2", "SEG-41"),
        "every offset, every int64 base offset",
        (Mutant("<= 2147483647", "<= 2147483648"), Mutant("0 <= offset", "-1 <= offset")),
    ),
    Contract(
        "log_segment.roll_decision",
        f"{SEGMENTS}:roll_is_due",
        ("SEG-37",),
        "every integer",
        (
            Mutant("size > max_segment_bytes", "size >= max_segment_bytes"),
            Mutant("size > 0", "size >= 0"),
            Mutant("max_segment_ms - roll", "max_segment_ms + roll"),
        ),
    ),
    Contract(
        "log_segment.waited_for_roll",
        f"{SEGMENTS}:time_waited",
        ("SEG-36",),
        "every integer",
        (Mutant("first_timestamp >= 0", "first_timestamp > 0"), Mutant("- created", "+ created")),
    ),
    Contract(
        "log_segment.size_of_read",
        f"{SEGMENTS}:read_size",
        ("SEG-16",),
        "every size that is not negative, every batch of at least one byte, every position",
        (
            Mutant("if max_position - start < adjusted", "if max_position < adjusted"),
            Mutant("batch_size > max_size", "batch_size > max_size + 1"),
            Mutant("min_one_message and", "not min_one_message and"),
        ),
    ),
    Contract(
        "log_segment.entries_by_positions",
        f"{SEGMENTS}:indexed_batches",
        ("SEG-4", "SEG-22", "SEG-25"),
        "any 4 batches, any interval, any bytes since the last entry",
        (
            Mutant("bytes_since > interval", "bytes_since >= interval"),
            Mutant("bytes_since = 0", "bytes_since = 1"),
            Mutant("rows[entries] = number", "rows[entries] = number + 1"),
        ),
    ),
    Contract(
        "log_segment.entries_of_pieces",
        f"{SEGMENTS}:indexed_batches",
        ("SEG-4", "SEG-26"),
        "any 3 batches in any two pieces, any interval",
        (Mutant("return entries, bytes_since", "return entries, bytes_since + 1"),),
    ),
    Contract(
        "log_segment.batch_of_offset",
        f"{SEARCHES}:find_batch",
        ("SEG-12",),
        "two empty batches with any offsets that rise, any target",
        (
            Mutant("previous_last = last", "previous_last = base"),
            Mutant("previous = position", "previous = start - 1"),
            Mutant("position + 23", "position + 22"),
        ),
    ),
    Contract(
        "log_segment.batches_of_any_bytes",
        f"{SEARCHES}:find_batch",
        ("SEG-12",),
        "any 40 raw bytes, any start, any part of them read, any target",
        (
            Mutant("position > end - 12 - size", "position > end - size"),
            Mutant("if size < 14:", "if size < 13:"),
        ),
    ),
    Contract(
        "partition_log.floor_by_definition",
        f"{LOGS}:floor_place",
        ("LOG-1",),
        "any 0 to 5 strictly rising bases, any offset",
        (
            Mutant("bases[middle] <= offset", "bases[middle] < offset"),
            Mutant("high = middle", "high = middle - 1"),
            Mutant("return low - 1", "return low"),
        ),
    ),
    Contract(
        "partition_log.base_of_roll",
        f"{LOGS}:roll_base",
        ("LOG-11",),
        "any first offset from -1 on, any last offset not below it, any log end from 0 on",
        (
            Mutant("2147483647", "2147483648"),
            Mutant("first_offset == -1", "first_offset <= 0"),
            Mutant("max(expected, log_end_offset)", "expected"),
        ),
    ),
    Contract(
        "partition_log.bound_of_read",
        f"{LOGS}:max_position_of",
        ("LOG-6", "LOG-7"),
        "any base and size from 0 on, any bound, known or not",
        (
            Mutant("segment_base < bound_base", "segment_base <= bound_base"),
            Mutant("segment_base == bound_base and ", ""),
            Mutant("bound_position >= 0", "bound_position > 0"),
        ),
    ),
    Contract(
        "partition_log.stable_below_high_watermark",
        f"{LOGS}:stable_bound",
        ("LOG-6", "PROD-10"),
        "any high watermark from 0 on, any first unstable offset or none",
        (
            Mutant("0 <= first_unstable_offset", "0 < first_unstable_offset"),
            Mutant("return first_unstable_offset", "return high_watermark"),
        ),
    ),
    Contract(
        "partition_log.removal_below_high_watermark",
        f"{LOGS}:offsets_may_go",
        ("LOG-17",),
        "any ints",
        (
            Mutant("high_watermark >= upper_bound", "high_watermark > upper_bound"),
            Mutant(" and not is_last_and_empty", ""),
        ),
    ),
    Contract(
        "partition_log.retention_by_size",
        f"{LOGS}:breached_by_size",
        ("LOG-18",),
        "any 0 to 4 sizes from 0 on, any limit",
        (
            Mutant("if excess < 0", "if excess <= 0"),
            Mutant("if retention_bytes < 0", "if retention_bytes < -1"),
            Mutant("excess -= size", "excess -= 0"),
        ),
    ),
    Contract(
        "log_segment.record_of_time",
        f"{SEARCHES}:find_in_batch",
        ("SCAN-18", "SEG-39"),
        "two small records with any attributes, both timestamps of the batch from 0 to 127, deltas "
        "of one byte (one for timestamp and offset), any target, any starting offset",
        (
            Mutant("timestamp >= target", "timestamp > target"),
            Mutant("offset >= starting_offset", "offset > starting_offset"),
            Mutant("largest if is_log_append", "first_timestamp if is_log_append"),
            Mutant("position + 27", "position + 35"),
        ),
    ),
)
