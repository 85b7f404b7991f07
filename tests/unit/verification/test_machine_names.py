# SPDX-License-Identifier: Apache-2.0
"""Drawn names and marks in a partition: `verify` reports what the model's laws say."""

from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.reading.unfinished import MARKER, SALVAGE_MARKER
from segproof.verification import verify
from segproof_model.laws.kafka.broker.partition_on_disk import (
    logs_have_their_own_names,
    no_output_is_unfinished,
)
from segproof_tests.small_logs import log_of

BASES = (0, 3, 10)
NAMES = tuple(f"{base:020d}.log" for base in BASES)


def found(files: dict[str, bytes], law: str) -> set[str]:
    """Return the names for which a law is reported."""
    with TemporaryDirectory() as folder:
        partition = Path(folder, "t-0")
        partition.mkdir()
        for name, data in files.items():
            (partition / name).write_bytes(data)
        reported = {one.path for one in verify(partition) if one.law == law}
        return {Path(path).name for path in reported}


@pytest.mark.checks("DISK-61")
@given(st.sets(st.sampled_from([MARKER, SALVAGE_MARKER, "notes", "segproof-salvage.complete"])))
def test_marks_of_unfinished_outputs(names: set[str]) -> None:
    """Any mark makes the partition a part of one, and nothing else does."""
    files = {NAMES[0]: log_of(0, 3), **dict.fromkeys(names, b"")}
    assert no_output_is_unfinished(files) == (not found(files, "DISK-61"))


@pytest.mark.checks("DISK-62")
@given(st.permutations(BASES), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_names_of_other_logs(bases: list[int], counts: list[int]) -> None:
    """Logs of any length, empty ones too, in any order."""
    logs = (log_of(base, base + count) for base, count in zip(bases, counts, strict=True))
    files = dict(zip(NAMES, logs, strict=True))
    assert logs_have_their_own_names(files) == (not found(files, "DISK-62"))


@pytest.mark.checks("DISK-62")
def test_each_order_of_three_logs() -> None:
    """A log is named if and only if it lies under the name of another one."""
    for order in permutations(BASES):
        files = {name: log_of(base, base + 2) for name, base in zip(NAMES, order, strict=True)}
        wrong = {name for name, base, own in zip(NAMES, order, BASES, strict=True) if base != own}
        assert wrong == found(files, "DISK-62"), order
