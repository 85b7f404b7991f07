# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.producer_rules` and of `segproof.kernels.epochs`."""

from segproof_harness.claims.claim import Loop, claim, define

define("follows(last, next)", "next == last + 1 or (last == 2147483647 and next == 0)")

claim(
    "producer_rules:is_in_sequence",
    ensures="result == follows(last_sequence, next_sequence)",
    laws="BATCH-5",
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

claim(
    "epochs:kept_by_assign",
    ensures="""
        -1 <= result <= len(entries)
        iff(result == -1, len(entries) > 0 and entries[-1][0] == epoch
            and entries[-1][1] <= start_offset)
        implies(result > 0, entries[result - 1][0] < epoch
            and entries[result - 1][1] < start_offset)
        implies(result >= 0, each(result, len(entries), lambda n: entries[n][0] >= epoch
            or entries[n][1] >= start_offset))
    """,
    loops=(
        Loop(
            """
            0 <= kept <= len(entries)
            each(kept, len(entries), lambda n: entries[n][0] >= epoch
                or entries[n][1] >= start_offset)
            """,
            "kept",
        ),
    ),
    laws="EPOCH-3 EPOCH-4",
)
claim(
    "epochs:end_offset",
    ensures="""
        implies(requested_epoch == -1 or len(entries) == 0, result[0] == -1 and result[1] == -1)
        implies(requested_epoch != -1 and len(entries) > 0 and entries[-1][0] < requested_epoch,
            result[0] == -1 and result[1] == -1)
        implies(requested_epoch != -1 and len(entries) > 0 and entries[-1][0] == requested_epoch,
            result[0] == requested_epoch and result[1] == log_end_offset)
        implies(requested_epoch != -1 and len(entries) > 0 and entries[-1][0] > requested_epoch,
            result[0] <= requested_epoch and some(0, len(entries), lambda n:
            result[1] == entries[n][1] and entries[n][0] > requested_epoch
            and (result[0] == entries[n - 1][0] if n > 0 else result[0] == requested_epoch)))
    """,
    loops=(Loop("0 <= higher < len(entries)\nentries[higher][0] > requested_epoch", "higher"),),
    laws="EPOCH-5 EPOCH-6 EPOCH-7",
)
claim(
    "epochs:kept_from_end",
    ensures="""
        0 <= result <= len(entries)
        implies(end_offset < 0, result == len(entries))
        implies(end_offset >= 0 and result > 0, entries[result - 1][1] < end_offset)
        implies(end_offset >= 0, each(result, len(entries), lambda n:
            entries[n][1] >= end_offset))
    """,
    loops=(
        Loop(
            """
            0 <= kept <= len(entries)
            implies(end_offset < 0, kept == len(entries))
            each(kept, len(entries), lambda n: entries[n][1] >= end_offset)
            """,
            "kept",
        ),
    ),
    laws="EPOCH-8",
)
claim(
    "epochs:last_not_behind",
    ensures="""
        -1 <= result < len(entries)
        implies(result >= 0, entries[result][1] <= offset)
        each(result + 1, len(entries), lambda n: entries[n][1] > offset)
    """,
    loops=(
        Loop(
            """
            -1 <= place < len(entries)
            each(place + 1, len(entries), lambda n: entries[n][1] > offset)
            """,
            "place + 1",
        ),
    ),
    laws="EPOCH-9 EPOCH-10",
)
