# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.producer_rules`."""

from segproof_harness.claims.claim import Loop, claim, define

define("follows(last, next)", "next == last + 1 or (last == 2147483647 and next == 0)")

claim(
    "producer_rules:is_in_sequence",
    ensures="result == follows(last_sequence, next_sequence)",
)
claim(
    "producer_rules:accepts_sequence",
    ensures="""
        implies(producer_epoch != updated_epoch, result == (first_sequence == 0
            or updated_epoch == -1))
        implies(producer_epoch == updated_epoch and current_epoch == -1, result)
        implies(producer_epoch == updated_epoch and current_epoch != -1 and updated_has_batch,
            result == follows(updated_last_sequence, first_sequence))
        implies(producer_epoch == updated_epoch and current_epoch != -1 and not updated_has_batch
            and producer_epoch == current_epoch, result == follows(current_last_sequence,
            first_sequence))
        implies(producer_epoch == updated_epoch and current_epoch != -1 and not updated_has_batch
            and producer_epoch != current_epoch, result == (first_sequence == 0))
    """,
)
claim(
    "producer_rules:accepts_epoch",
    ensures="""
        implies(producer_epoch != known_epoch, result == (producer_epoch > known_epoch))
        implies(producer_epoch == known_epoch, result == (transaction_version < 2
            or not has_open_transaction or known_epoch == 32767))
    """,
)
claim(
    "producer_rules:stable_offset",
    ensures="""
        implies(each(0, len(open_txns), lambda n: open_txns[n][0] == producer_id),
            result == last_offset + 1)
        implies(not each(0, len(open_txns), lambda n: open_txns[n][0] == producer_id), some(0,
            len(open_txns), lambda n: open_txns[n][0] != producer_id
            and result == open_txns[n][1] and each(0, n, lambda m:
            open_txns[m][0] == producer_id)))
    """,
    loops=(Loop("each(0, next_item, lambda n: open_txns[n][0] == producer_id)"),),
    laws="PROD-10",
)
claim(
    "producer_rules:is_expired",
    ensures="result == (not has_open_transaction and last_timestamp + expiration_ms <= now_ms)",
    laws="PROD-12",
)
