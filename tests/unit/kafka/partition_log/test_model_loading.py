# SPDX-License-Identifier: Apache-2.0
"""What loading makes of files that crashes leave: what random histories once showed."""

from typing import Any

import pytest

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.compression import NO_CODECS
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.record import Record
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import opened
from segproof_model.laws.register import Transition, broken_step_laws
from segproof_model.releases import RELEASES

CONFIG = LogConfig(segment_index_bytes=240)
LOG, OTHER = f"{0:020d}.log", f"{5:020d}.log"


def stored(offset: int) -> bytes:
    """Return a batch with one record, as a leader has written it."""
    records = [Record(offset, 1000, None, b"v")]
    return write_batch(records, base_offset=offset, partition_leader_epoch=0)


@pytest.mark.parametrize("name", ["segproof", "kafka-4.3.1"])
def test_a_split_ends_where_no_batch_is(name: str) -> None:
    """A segment that overflows and ends in no batch is not split; the model stopped instead."""
    data = stored(0) + stored(2**31 + 5) + bytes(30)
    kind = RELEASES[name].kind(PartitionLog)
    step = opened(kind, Files({LOG: data}), "", CONFIG, 0, 0, False)
    assert isinstance(step.outcome, Raised)
    assert isinstance(step.after, Files)
    assert data == step.after.image(LOG)


@pytest.mark.parametrize(("name", "bases"), [("kafka-4.3.1", [0, 5]), ("kafka-2.8.2", [5])])
def test_a_swap_within_a_segment(name: str, bases: list[int]) -> None:
    """Up to 2.8 a swap replaces the segment that reaches into its range, as the real class says."""
    files = Files({LOG: stored(0) + stored(10), f"{OTHER}.swap": stored(5)})
    log = RELEASES[name].kind(PartitionLog)(files, "", CONFIG)
    assert bases == log.log_segments.base_offsets()


def test_a_completed_swap_keeps_its_time() -> None:
    """A swap is renamed, so its log is as old as before: retention by time goes by it. The model
    took it for new."""
    files = Files({f"{LOG}.swap": stored(0), f"{0:020d}.index.swap": b""}, 5_000)
    log = PartitionLog(files, "", CONFIG, modified_ms={f"{LOG}.swap": 3_000})
    assert [3_000] == [one.last_modified for one in log.log_segments]


@pytest.mark.checks("LOAD-8", "LOAD-9", "LOAD-16")
@pytest.mark.parametrize(
    ("name", "images", "recovery_point", "outcome"),
    [
        pytest.param(
            "kafka-2.2.2",
            {LOG: stored(0) + b"torn", f"{0:020d}.index": bytes(9), OTHER: stored(5)},
            0,
            None,
            id="LOAD-8 of a segment that is cut when its corrupt index is found",
        ),
        pytest.param(
            "kafka-2.2.2",
            {OTHER: stored(5) + stored(8) + stored(7), f"{5:020d}.index": bytes(9)},
            0,
            Raised(ErrorKind.INVALID_OFFSET),
            id="LOAD-9 of an invalid offset behind a corrupt index",
        ),
        pytest.param(
            "kafka-1.1.1",
            {
                LOG: b"".join(map(stored, range(8))),
                f"{0:020d}.timeindex": bytes(12),
                f"{9:020d}.log": stored(9),
            },
            9,
            None,
            id="LOAD-16 of an index too small for the second load",
        ),
    ],
)
def test_laws_once_blamed_releases_that_check_all_indexes(
    name: str, images: dict[str, bytes], recovery_point: int, outcome: object
) -> None:
    """They recover a segment with a corrupt index before the recovery that the laws speak of."""
    given: dict[str, Any] = {
        "dir": "",
        "config": LogConfig(segment_index_bytes=24, index_interval_bytes=0),
        "log_start_offset": 0,
        "recovery_point": recovery_point,
        "last_shutdown_clean": False,
    }
    kind, files = RELEASES[name].kind(PartitionLog), Files(images)
    step = opened(kind, files, **given)
    assert outcome == step.outcome
    given |= {"codecs": NO_CODECS, "draw": 0}
    assert [] == broken_step_laws(Transition(kind, files, "open", given, step.after, step.outcome))
