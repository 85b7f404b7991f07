# SPDX-License-Identifier: Apache-2.0
"""What the dump tools of old releases say of snapshots that no log of theirs shows.

A log up to 2.2 forgets at once a producer that has no batch, since its last offset lies before the
log start; so only the tool tells whether such an entry stands for a batch.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from segproof_harness.releases.dump_tool import dump_tool
from segproof_harness.releases.jars import problem_of
from segproof_harness.releases.pinned import release_named
from segproof_model import releases
from segproof_model.kafka.broker.producer_snapshot import ProducerStateEntry, write_snapshot
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.language.files import Files

pytestmark = pytest.mark.needs("java")

DATA = write_snapshot([ProducerStateEntry(7, last_timestamp=9000)])


@pytest.mark.checks("PROD-5")
@pytest.mark.parametrize(
    ("name", "has_batch"), [("kafka-2.0.1", True), ("kafka-2.2.2", True), ("kafka-2.4.1", False)]
)
def test_producer_without_a_batch(
    name: str, has_batch: bool, tmp_path: Path, not_run: Callable[[str], NoReturn]
) -> None:
    """Up to 2.2 its entry is read as one with a batch, as the model says."""
    release = release_named(name)
    problem = problem_of(release)
    if problem is not None:
        not_run(f"oracle {name}: {problem}")
    path = tmp_path / "00000000000000000005.snapshot"
    path.write_bytes(DATA)
    told = dump_tool(release, [path])
    assert "producerId: 7 " in told.stdout
    assert ("lastSequence: -1" in told.stdout) is has_batch
    kind = releases.release_named(name).kind(ProducerStateManager)
    (entry,) = kind(Files({"x": DATA})).read_snapshot("x")
    assert bool(entry.batch_metadata) is has_batch
