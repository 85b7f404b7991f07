# SPDX-License-Identifier: Apache-2.0
"""Defects planted in the model of batches and record files are caught by the real class alone.

Two are wrong borders; the others are behaviours of an older release, or of `segproof`. No law sees
them in histories, and the implementation is not asked.
"""

from collections.abc import Callable

import pytest
from tests.oracle.planted import first_finding, flip

from segproof.findings import Finding
from segproof_model.kafka.format import record, varint
from segproof_model.kafka.format.record_deviations import EmptyChangeIsRefused
from segproof_model.kafka.format.record_file_releases import SecondCloseFails
from segproof_model.kafka.format.record_releases import VotersAreUnknown
from segproof_model.language.integers import INT32_MAX, wrap32
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse

RELEASE = "kafka-4.3.1"
SEEDS = 25
LENGTH = 100

pytestmark = pytest.mark.needs("java", "jpype", RELEASE)


def _wrap_one_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sequence numbers wrap one early: >= instead of >."""

    def wrong(sequence: int, increment: int) -> int:
        if sequence >= wrap32(INT32_MAX - increment):
            return wrap32(increment - (INT32_MAX - sequence) - 1)
        return wrap32(sequence + increment)

    monkeypatch.setattr(record, "increment_sequence", wrong)


def _read_four_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a varint have four bytes at most."""

    decode = varint.decode_varint

    def wrong(data: bytes, position: int) -> tuple[int, int]:
        found = decode(data, position)
        return refuse(ErrorKind.INVALID_ARGUMENT) if found[1] - position > 4 else found

    monkeypatch.setattr(varint, "decode_varint", wrong)


def _know_fewer_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let control records have the types of 3.4."""
    flip(monkeypatch, RELEASE, VotersAreUnknown)


def _refuse_empty_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file that can't be written refuse to append nothing, as ours does."""
    flip(monkeypatch, RELEASE, EmptyChangeIsRefused)


def _close_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second close fail, as it did up to 4.0."""
    flip(monkeypatch, RELEASE, SecondCloseFails)


def _first_finding(structure: str, *subjects: str) -> Finding | None:
    return first_finding(structure, RELEASE, SEEDS, LENGTH, *subjects)


@pytest.mark.parametrize("structure", ["record-batch", "record-file"])
def test_clean(structure: str) -> None:
    """Without a defect the real class agrees."""
    assert _first_finding(structure, "model", RELEASE) is None


@pytest.mark.parametrize(
    ("structure", "plant"),
    [
        ("record-batch", _wrap_one_early),
        ("record-batch", _read_four_bytes),
        ("record-batch", _know_fewer_types),
        ("record-file", _refuse_empty_changes),
        ("record-file", _close_once),
    ],
)
def test_planted(
    structure: str, plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the defect the laws hold, and the real class differs."""
    plant(monkeypatch)
    assert _first_finding(structure, f"model:{RELEASE}") is None, "a law sees it already"
    assert _first_finding(structure, "model", RELEASE) is not None
