# SPDX-License-Identifier: Apache-2.0
"""What the logs of Kafka's releases do against their own contract, on the smallest history.

Each test states what the real log does, so that a release which mends it is noticed.

Used by: the tox environment `oracle`.
"""

from pathlib import Path
from typing import Any

import pytest

from segproof_harness.oracle.messages import reason_without
from segproof_harness.oracle.releases import RELEASES
from segproof_harness.structures import structure_named
from segproof_harness.subjects import OracleSubject
from segproof_harness.traces import read_trace

pytestmark = pytest.mark.needs("java", "jpype")

PARTITION_LOG = "partition-log"
TRACES = Path(__file__).parent / "upstream"
SERVED = [
    name
    for name, release in RELEASES.items()
    if release.system == "kafka" and reason_without(PARTITION_LOG, release) is None
]
IS_OLD = {name: RELEASES[name].number < (3,) for name in SERVED}
"""By release: whether it has the class Log, which came before UnifiedLog."""


def answers(name: str, release: str) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return (operation, answer, accessors) for each operation of a trace, on a real log."""
    trace = read_trace(TRACES / f"{name}.jsonl")
    subject = OracleSubject(structure_named(PARTITION_LOG), RELEASES[release])
    subject.prepare(trace.setup, trace.operations, 1)
    assert subject.start(trace.setup).error is None
    found = []
    for operation in trace.operations:
        outcome = subject.apply(operation)
        assert outcome.error is None, outcome.detail
        seen = {name: one.value for name, one in subject.observe().items()}
        found.append((operation.name, outcome.value, seen))
    subject.stop()
    return found


@pytest.mark.checks("PROD-14", "LOG-13", "LOG-8")
@pytest.mark.parametrize("release", SERVED)
def test_truncation_brings_an_ended_transaction_back(release: str) -> None:
    """With every producer expired, a truncation loads a snapshot and reads no log behind it.

    The transaction that the snapshot holds as open was aborted and replicated; it is open again:
    the last stable offset falls from 4 to 0 and stays, so that readers of committed records get
    nothing. The next marker writes a second entry into the transaction index.
    """
    found = answers("ended_transaction_comes_back", release)
    names = [name for name, _, _ in found]
    before = found[names.index("truncate_to") - 1]
    after = found[names.index("truncate_to") + 1]
    assert before[1][:2] == ((), ())
    assert before[2]["last_stable_offset"] == 4
    assert after[1][1] == ((1, 0, None),)
    assert after[2]["last_stable_offset"] == 0
    _, read, seen = found[names.index("read")]
    assert read[1] is None
    assert seen["high_watermark"] == 4
    assert found[-1][1] == ((0, 1, 0, 1, 2), (0, 1, 0, 4, 5))


@pytest.mark.checks("LOG-6")
@pytest.mark.parametrize("release", SERVED)
def test_reads_pass_a_high_watermark_in_a_removed_segment(release: str) -> None:
    """A high watermark whose place was in a segment that a truncation removed bounds no read.

    It is 5; the batch at offset 10, which nobody has replicated, is read until it is set anew. In
    2.8 a truncation sets it anew, so that it bounds.
    """
    found = answers("reads_pass_a_high_watermark_in_a_removed_segment", release)
    before, passing, mended = [one for one in found if one[0] == "read"]
    sizes = [read[1][1] for _, read, _ in (before, passing, mended)]
    assert sizes == [106, 106 if IS_OLD[release] else 180, 106]
    assert before[2]["high_watermark"] == passing[2]["high_watermark"] == 5


@pytest.mark.checks("LOAD-5", "LOAD-15")
@pytest.mark.parametrize("release", SERVED)
def test_an_epoch_begins_late_after_a_rebuilt_index(release: str) -> None:
    """With the file of the epochs gone too, a rebuilt index teaches epochs before older segments.

    Epoch 0 begins at offset 0; after a crash that took the index of the second segment and the file
    of the epochs, it begins at 1, where that segment does: the recovery of the first one, which
    follows, does not enter an epoch that is known. Up to 2.8 a rebuilt index teaches none.
    """
    found = answers("epoch_begins_late_after_a_rebuilt_index", release)
    known = [answer for name, answer, _ in found if name == "leader_epoch_cache"]
    assert known == [((0, 0),), ((0, 0 if IS_OLD[release] else 1),)]
