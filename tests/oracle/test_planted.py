# SPDX-License-Identifier: Apache-2.0
"""Defects planted in the model, which no law sees, are caught by the real class alone.

Each is a belief about Kafka that one could well have: a behaviour of an older release, a state that
is forgotten. The implementation follows `segproof` and is not asked.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.oracle.planted import first_finding, flip

from segproof.findings import Finding
from segproof_model.kafka.format.index_releases import BaseIsInsane, PlainSearch
from segproof_model.kafka.format.transaction_index import TransactionIndex

RELEASE = "kafka-4.3.1"
LENGTH = 100

pytestmark = pytest.mark.needs("java", "jpype", RELEASE)


def _refuse_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sanity_check refuse a last offset equal to the base, as it did up to 1.1."""
    flip(monkeypatch, RELEASE, BaseIsInsane)


def _search_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search halve the whole index from the start, as it did up to 2.0."""
    flip(monkeypatch, RELEASE, PlainSearch)


def _forget_at_a_rename(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a transaction index forget the last offset with the old path."""
    rename = TransactionIndex.rename_to

    def wrong(index: TransactionIndex, file: str) -> None:
        rename(index, file)
        index.last_offset = None

    monkeypatch.setattr(TransactionIndex, "rename_to", wrong)


@dataclass(frozen=True)
class Planted:
    """One defect."""

    structure: str
    plant: Callable[[pytest.MonkeyPatch], None]
    operations: frozenset[str]
    """The operations that show it."""
    seeds: int
    """It is caught within so many."""


PLANTED = (
    Planted("offset-index", _refuse_the_base, frozenset({"sanity_check"}), 10),
    Planted("time-index", _search_plainly, frozenset({"lookup", "lookup_many", "truncate_to"}), 10),
    Planted("transaction-index", _forget_at_a_rename, frozenset({"append"}), 20),
)


def _found(planted: Planted, *subjects: str) -> Finding | None:
    return first_finding(planted.structure, RELEASE, planted.seeds, LENGTH, *subjects)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.structure)
def test_planted(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the defect the real class agrees; with it all laws still do, the class does not."""
    assert _found(planted, "model", RELEASE) is None
    planted.plant(monkeypatch)
    assert _found(planted, "model") is None, "a law sees it, so that it shows nothing of the oracle"
    finding = _found(planted, "model", RELEASE)
    assert finding is not None
    assert any(f" {name}(" in finding.message for name in planted.operations), finding.message
