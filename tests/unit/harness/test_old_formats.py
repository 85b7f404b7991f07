# SPDX-License-Identifier: Apache-2.0
"""Histories for a release that knows messages of magic 0 and 1 only have no others."""

from typing import Any

import pytest

from segproof_harness.histories.workloads import choose_for, make_history
from segproof_harness.structures.kafka.codec_differences import bytes_in, has_messages_only
from segproof_harness.structures.kafka.log_drawing import ODD_NAMES, draw_damage
from segproof_harness.structures.structure import structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.releases import release_named
from segproof_tests.small_logs import batch

RELEASE = "kafka-0.10.2.2"
STRUCTURES = ("record-batch", "record-file", "log-segment")


@pytest.mark.parametrize("structure_id", STRUCTURES)
def test_only_messages_are_drawn(structure_id: str) -> None:
    """Whole batches among the arguments and files are such messages; the profile may be another."""
    seen = 0
    for seed in range(20):
        trace = make_history(structure_id, "segproof", seed, 40, releases=(RELEASE,))
        given = [data for step in trace.operations for data in bytes_in(step.arguments)]
        for data in (*given, *trace.setup.files.values()):
            assert has_messages_only(data)
            seen += len(data) > 26
        assert not any(".txnindex" in name for name in trace.setup.files)
    assert seen > 20


@pytest.mark.parametrize("structure_id", STRUCTURES)
def test_other_histories_have_batches_of_magic_2(structure_id: str) -> None:
    """Nobody else pays for it."""
    histories = [make_history(structure_id, "kafka-0.11.0.3", seed, 40) for seed in range(5)]
    given = [
        data for one in histories for step in one.operations for data in bytes_in(step.arguments)
    ]
    files = [data for one in histories for data in one.setup.files.values()]
    assert not all(map(has_messages_only, (*given, *files)))


def test_no_transaction_index_before_magic_2() -> None:
    """A crash leaves a whole log none either: that release would not touch it."""
    structure, release = structure_named("partition-log"), release_named(RELEASE)
    choose, model = choose_for("partition-log", 0, [release]), ModelSubject(structure, release)
    model.start(structure.draw_setup(choose))
    drawn: Any = [draw_damage(choose, model.situation()) for _ in range(3000)]
    names = {name for damage in drawn for name, *_ in damage} - set(ODD_NAMES)
    assert any(name.endswith(".timeindex") for name in names)
    assert not any(name.endswith(".txnindex") for name in names)


def test_formats_are_looked_for_wherever_a_scan_may_begin() -> None:
    """Behind the first batch, inside of it, and in a wrapper."""
    old = batch(0, magic=1)
    new = batch(1)
    assert has_messages_only(old + old)
    assert not has_messages_only(old + new)
    assert has_messages_only(new + old, len(new))
    assert has_messages_only(old + new[:-1])
