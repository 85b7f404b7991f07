# SPDX-License-Identifier: Apache-2.0
"""The decisions about producers: sequence numbers, epochs, the last stable offset, expiry.

Each is a pure function of ints, so that the decision the producer state takes is the very one that
is proved and confirmed. -1 stands for an epoch or a sequence number that is not there.

Mirrors: segproof_model/kafka/broker/producer_append_info.py and producer_state.py.
Upstream: Kafka, ProducerAppendInfo, ProducerStateManager (4.3.1).
Laws: PROD-10, PROD-12; BATCH-5.
"""

from collections.abc import Iterable


def is_in_sequence(last_sequence: int, next_sequence: int) -> bool:
    """Return whether a sequence number follows another; 0 follows 2147483647 and -1."""
    if last_sequence == 2147483647 and next_sequence == 0:
        return True
    return next_sequence == last_sequence + 1


def accepts_sequence(
    producer_epoch: int,
    first_sequence: int,
    current_epoch: int,
    current_last_sequence: int,
    updated_epoch: int,
    updated_last_sequence: int,
    updated_has_batch: bool,
) -> bool:
    """Return whether a client may append a batch that begins with `first_sequence`.

    `current` is what was known before the append began, `updated` what it has added so far. A new
    epoch begins with 0; of a producer that is not known any sequence number is taken.
    """
    if producer_epoch != updated_epoch:
        return first_sequence == 0 or updated_epoch == -1
    if current_epoch == -1:
        return True
    if updated_has_batch:
        return is_in_sequence(updated_last_sequence, first_sequence)
    if producer_epoch == current_epoch:
        return is_in_sequence(current_last_sequence, first_sequence)
    return is_in_sequence(-1, first_sequence)


def accepts_epoch(
    producer_epoch: int, known_epoch: int, has_open_transaction: bool, transaction_version: int
) -> bool:
    """Return whether a batch of this epoch is not fenced off by a newer one.

    From version 2 of transactions on a marker's epoch must exceed the known one, unless it repeats
    the marker of a transaction that is closed, or there is no larger epoch.
    """
    if producer_epoch > known_epoch:
        return True
    if producer_epoch < known_epoch:
        return False
    return transaction_version < 2 or not has_open_transaction or known_epoch == 32767


def stable_offset(open_txns: Iterable[tuple[int, int]], producer_id: int, last_offset: int) -> int:
    """Return the last stable offset once a producer's marker at `last_offset` counts.

    `open_txns` are (producer id, first offset), by first offset. Law: PROD-10.
    """
    for other_id, first_offset in open_txns:
        if other_id != producer_id:
            return first_offset
    return last_offset + 1


def is_expired(
    has_open_transaction: bool, last_timestamp: int, now_ms: int, expiration_ms: int
) -> bool:
    """Return whether a producer is silent for too long. Law: PROD-12."""
    return not has_open_transaction and now_ms - last_timestamp >= expiration_ms
