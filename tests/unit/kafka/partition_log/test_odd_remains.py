# SPDX-License-Identifier: Apache-2.0
"""Rare remains of crashes: model and implementation load them alike, and go on alike.

Histories meet these hardly ever: a segment that overflows and whose split gives one part, a swap
file without the files that it replaces, files of an index at the base of the next segment.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from segproof.kafka import PartitionLog
from segproof_harness.histories.workloads import choose_for
from segproof_harness.laws.borders.log_files import offset_entries, time_entries
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import structure_named
from segproof_harness.subjects.implementation import ImplementationSubject
from segproof_harness.subjects.model import ModelSubject
from segproof_model.releases import SEGPROOF
from segproof_tests.memory_logs import START_MS, Place, batch
from segproof_tests.partition_files import name_of

FAR = 2**31 + 5
FOREIGN = offset_entries((3, 77))
OLD_TIME = time_entries((START_MS + 10**6, 3))
SWAP = {f"{name}.swap": data for name, data in (
    (name_of(6, ".log"), batch(3, 6)),
    (name_of(6, ".index"), offset_entries((2, 0))),
)}  # fmt: skip
REMAINS: dict[str, Mapping[str, bytes]] = {
    "overflow with one part": {name_of(0, ".log"): batch(3, FAR)},
    "overflow with one part, in the middle": {
        name_of(0, ".log"): batch(3),
        name_of(10, ".log"): batch(3, FAR + 10),
        name_of(FAR + 100, ".log"): batch(2, FAR + 100),
    },
    "overflow with two parts": {name_of(0, ".log"): batch(3) + batch(3, FAR)},
    "overflow with three parts": {
        name_of(0, ".log"): batch(3) + batch(3, FAR) + batch(2, 2 * FAR + 3)
    },
    "overflow at the last offset that fits": {
        name_of(0, ".log"): batch(3) + batch(1, 2**31 - 1) + batch(1, 2**31)
    },
    "a lone swap": {f"{name_of(0, '.log')}.swap": batch(3)},
    "a lone swap of a later base": SWAP,
    "a swap between segments": {
        **SWAP, name_of(0, ".log"): batch(6), name_of(9, ".log"): batch(2, 9),
    },
    "a swap over segments": {
        **SWAP, name_of(0, ".log"): batch(6), name_of(7, ".log"): batch(1, 7),
        name_of(8, ".log"): batch(3, 8),
    },
    "a swap of an index alone": {
        name_of(0, ".log"): batch(3), f"{name_of(0, '.index')}.swap": FOREIGN,
    },
    "a swap that is empty": {name_of(0, ".log"): batch(3), f"{name_of(3, '.log')}.swap": b""},
    "a swap and a cleaned file": {
        **SWAP, name_of(0, ".log"): batch(6), f"{name_of(6, '.log')}.cleaned": batch(3, 6),
    },
    "an offset index at the next base": {
        name_of(0, ".log"): batch(6), name_of(6, ".index"): FOREIGN,
    },
    "indexes at the next base": {
        name_of(0, ".log"): batch(6), name_of(6, ".index"): FOREIGN,
        name_of(6, ".timeindex"): OLD_TIME, name_of(6, ".txnindex"): bytes(34),
    },
    "a snapshot at the next base": {
        name_of(0, ".log"): batch(6), name_of(6, ".snapshot"): b"no snapshot",
    },
}  # fmt: skip
STEPS = [
    Operation("append_as_leader", {"call": (batch(4), 1, "client", -1)}),
    Operation("roll", {"expected_next_offset": None}),
    Operation("append_as_leader", {"call": (batch(2), 2, "client", -1)}),
    Operation("flush", {"force_flush_active_segment": True}),
    Operation("log_segments", {}),
]


def _setup(files: Mapping[str, bytes], is_clean: bool) -> Setup:
    structure = structure_named("partition-log")
    drawn = structure.draw_setup(choose_for("partition-log", 1, [SEGPROOF])).arguments
    given: Any = drawn["options"]
    options = {**dict(given), "cleanup_policy": "delete", "message_timestamp_before_max_ms": 10**9,
               "message_timestamp_after_max_ms": 10**9, "retention_ms": -1}  # fmt: skip
    arguments = {
        **drawn, "options": tuple(options.items()), "log_start_offset": 0, "recovery_point": 0,
        "last_shutdown_clean": is_clean,
    }  # fmt: skip
    return Setup(arguments, dict(files))


@pytest.mark.parametrize("is_clean", [False, True], ids=["after a crash", "after a clean stop"])
@pytest.mark.parametrize("name", REMAINS)
def test_remains_are_loaded_alike(name: str, is_clean: bool) -> None:
    """Each answer, and each file after it; and once more, from the files that are there then."""
    structure = structure_named("partition-log")
    files: Mapping[str, bytes] = REMAINS[name]
    for _ in ("first", "again"):
        setup = _setup(files, is_clean)
        model = ModelSubject(structure, SEGPROOF)
        ours = ImplementationSubject(structure, PartitionLog)
        assert model.start(setup) == ours.start(setup)
        assert model.image() == ours.image()
        for step in STEPS:
            assert model.apply(step) == ours.apply(step), step
            assert model.image() == ours.image(), step
        files = dict(model.image())
        ours.stop()


@pytest.mark.checks("LOG-11")
@pytest.mark.parametrize("append", [False, True], ids=["roll", "append that rolls"])
def test_foreign_files_at_the_next_base_before_a_roll(append: bool) -> None:
    """The new segment begins without them: its files are those that a roll makes alone."""
    images = []
    for foreign in ({}, {".index": FOREIGN * 9, ".timeindex": OLD_TIME, ".log": batch(2, 99)}):
        place = Place()
        log = place.open()
        for _ in range(3):
            log.append_as_leader(batch(6), 0)
        for suffix, data in foreign.items():
            place.put(name_of(18, suffix), data)
        if append:
            log.append_as_leader(batch(20), 0)
        else:
            log.roll()
        log.append_as_leader(batch(2), 0)
        log.close()
        images.append(place.image())
    assert name_of(18, ".log") in images[0]
    assert images[0] == images[1]
