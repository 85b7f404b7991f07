# SPDX-License-Identifier: Apache-2.0
"""The laws of the epochs and producers after a segment's recovery."""

from contextlib import suppress

from segproof_model.kafka.broker.producer_releases import MarkerAloneCompletes
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_releases import EpochZeroIsPassedOver
from segproof_model.language.states import Refused
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.kafka.format.log_bytes import ended_transactions
from segproof_model.laws.kafka.format.segment_views import segment_view
from segproof_model.laws.kafka.format.transaction_index import slots_of
from segproof_model.laws.register import Transition, has, law

RECOVER = "Kafka LogSegment.recover, since 1.1.1"


@law("SEG-28", LogSegment, RECOVER, on="recover")
def recovery_assigns_new_epochs(step: Transition) -> bool:
    """Recovery assigns an epoch at a batch's base offset exactly when the batch has magic 2 and an
    epoch of 0 or more that is newer than the latest, or the first; from 2.1.1 to 2.6, above 0.

    Not judged: an epoch that begins before an older one and replaces it (EPOCH-4).
    """
    if not step.succeeded or step.arguments["epochs"] is None:
        return True
    assigned = list(step.arguments["epochs"])
    smallest = 1 if has(step.before, EpochZeroIsPassedOver) else 0
    with suppress(Refused):
        for batch in step.after.log.batches():
            epoch = -1 if batch.is_legacy else batch.partition_leader_epoch
            if epoch >= smallest and (not assigned or epoch > assigned[-1][0]):
                assigned.append((epoch, batch.base_offset))
    is_judged = is_rising([start_offset for _, start_offset in assigned])
    return not is_judged or list(step.answer[2]) == assigned


@law("SEG-30", LogSegment, RECOVER, on="recover", unless=MarkerAloneCompletes)
def recovery_finds_aborted_transactions(step: Transition) -> bool:
    """Recovery rebuilds the transaction index to exactly the aborted transactions whose markers
    are in the kept log, given an empty producer state; without one, to nothing.

    Their last stable offsets are at most the offset after the marker (PROD-10). Not judged: a log
    whose batches are out of order.
    """
    after = step.after
    if not step.succeeded or not segment_view(after).is_ordered:
        return True
    slots = slots_of(after.txn_index.image) if after.txn_index.is_open else []
    logs = [] if step.answer[1] is None else [segment_view(after).image]
    aborted = [
        (producer, first, end)
        for _, producer, end, kind, first, _ in ended_transactions(logs, after.log.codecs)
        if kind == "ABORT" and first is not None
    ]
    are_right = all(slot.last_stable_offset <= slot.last_offset + 1 for slot in slots)
    return are_right and [slot[1:4] for slot in slots] == aborted
