# SPDX-License-Identifier: Apache-2.0
"""Every claim, and the kernels of which none is proved, each with the reason."""

from segproof_harness.claims import (  # noqa: F401
    epochs,
    index_rules,
    legacy_records,
    log_rules,
    producer_rules,
    records,
    rocketmq_index,
    rocketmq_records,
    segment_rules,
    segment_search,
    slot_search,
    words,
)
from segproof_harness.claims.claim import CLAIMS

__all__ = ["CLAIMS", "NOT_PROVED"]

NOT_PROVED = {
    "rocketmq_index:walk_chains": "what it finds fits into `found` only because the counts of all"
    " chains add up to the total, which needs an induction over counts; the walk itself is"
    " `follow_chains`, which is proved, and the contract `walks_side_by_side` confirms the rest up"
    " to a bound",
}
