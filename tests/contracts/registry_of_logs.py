# SPDX-License-Identifier: Apache-2.0
"""The second part of the register: contracts of segments, logs, and what a log knows of itself.

Used by: registry, which says what the parts of a contract are, and gives this file its classes.
"""

from typing import Any

Contract: Any = globals()["Contract"]
"""Set by the registry before this file runs, and so is the next."""
Mutant: Any = globals()["Mutant"]

PRODUCERS = "segproof.kernels.producer_rules"
SNAPSHOT = "segproof.kafka.producer_snapshot"
EPOCHS = "segproof.kernels.epochs"
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
)
