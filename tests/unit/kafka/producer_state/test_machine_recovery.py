# SPDX-License-Identifier: Apache-2.0
"""What a log says of its producers is what they were, from any snapshot on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof import kafka
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.segment_names import segment_file_name
from segproof_model.language.files import Files
from segproof_model.language.integers import int64_at
from segproof_model.laws.kafka.broker.producer_state import (
    rebuilding_gives_the_same_producers,
    recovery_advances_the_map,
)

LARGEST = 2**31 - 1


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Return the batches of a log: records of some producers or of none, and markers."""
    images: list[bytes] = []
    open_ids: set[int] = set()
    offset = 0
    sequences = {1: 0, 2: LARGEST - 1}
    for _ in range(draw(st.integers(0, 12))):
        producer_id = draw(st.sampled_from((-1, 1, 1, 2)))
        stamp = draw(st.integers(1, 50))
        if producer_id in open_ids and draw(st.booleans()):
            kind = draw(st.sampled_from(("ABORT", "COMMIT")))
            images.append(
                kafka.write_end_transaction_marker(
                    kind, offset=offset, timestamp=stamp, producer_id=producer_id,
                    producer_epoch=0, coordinator_epoch=len(images),
                )
            )  # fmt: skip
            open_ids.discard(producer_id)
            offset += 1
            continue
        count = draw(st.integers(1, 3))
        extra: dict[str, Any] = {}
        if producer_id >= 0:
            is_open = producer_id in open_ids or draw(st.booleans())
            open_ids |= {producer_id} if is_open else set()
            extra = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequences[producer_id],
                "is_transactional": is_open,
            }
            sequences[producer_id] = (sequences[producer_id] + count) % 2**31
        records = [kafka.Record(offset + row, stamp, None, b"v") for row in range(count)]
        images.append(kafka.write_batch(records, base_offset=offset, **extra))
        offset += count
    return images


def replay(manager: ProducerStateManager, log: list[bytes]) -> None:
    """Tell a manager of batches as a recovery does."""
    for batch in MemoryRecords(b"".join(log)).batches():
        completed = manager.update_producers(batch)
        manager.update_map_end_offset(batch.next_offset)
        if completed is not None:
            manager.complete_txn(completed)


@pytest.mark.checks("PROD-14", "PROD-15")
@given(logs(), st.integers(0, 12))
def test_a_log_gives_its_producers_back(log: list[bytes], snapshot_after: int) -> None:
    """From a snapshot anywhere in the log, or from none, recovery ends in the same state."""
    live = ProducerStateManager(Files())
    replay(live, log[:snapshot_after])
    live.take_snapshot()
    replay(live, log[snapshot_after:])
    rebuilt = ProducerStateManager(live.files)
    rebuilt.truncate_and_reload(0, live.map_end_offset, 0)
    snapshot_offset = rebuilt.map_end_offset
    replay(rebuilt, [image for image in log if int64_at(image, 0) >= snapshot_offset])
    assert rebuilding_gives_the_same_producers(live, snapshot_offset, rebuilt)
    files, taught = (
        Files({segment_file_name(0, ".log"): b"".join(log)}),
        ProducerStateManager(Files()),
    )
    segment = LogSegment(files, "", 0, LogConfig(), True)
    segment.recover(taught, None)
    assert segment.log.image == b"".join(log)
    assert recovery_advances_the_map(segment.log.image, taught.map_end_offset)
