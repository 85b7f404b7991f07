# SPDX-License-Identifier: Apache-2.0
"""Defects planted in the model are caught by the real class.

Each is a belief that one could well have: a behaviour of an older release or of `segproof`, a wrong
border, a state that is forgotten. The implementation is not asked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from segproof.findings import Finding
from segproof_harness.histories.compare import Comparison
from segproof_harness.histories.replay import replay_seeds
from segproof_model.kafka.broker.producer_releases import MarkerAloneCompletes
from segproof_model.kafka.format import record, varint
from segproof_model.kafka.format.index_releases import BaseIsInsane, PlainSearch
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_releases import CallIsIndexedAsAWhole
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_deviations import EmptyChangeIsRefused
from segproof_model.kafka.format.record_file_releases import SecondCloseFails
from segproof_model.kafka.format.record_releases import VotersAreUnknown
from segproof_model.kafka.format.transaction_index import TransactionIndex
from segproof_model.language.behaviours import Behaviour
from segproof_model.language.integers import INT32_MAX, wrap32
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse
from segproof_model.releases import RELEASES
from segproof_model.rocketmq.broker.index_service_deviations import MessageIsIndexedOnce
from segproof_model.rocketmq.broker.index_service_releases import (
    ShutdownDoesNothing,
    TagsAreNotIndexed,
)
from segproof_model.rocketmq.format.index_file_releases import EachPutIsCounted

KAFKA, ROCKETMQ = "kafka-4.3.1", "rocketmq-5.5.1"
LENGTH = 100


def _forget_at_a_rename(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a transaction index forget the last offset with the old path."""
    rename = TransactionIndex.rename_to

    def wrong(index: TransactionIndex, file: str) -> None:
        rename(index, file)
        index.last_offset = None

    monkeypatch.setattr(TransactionIndex, "rename_to", wrong)


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


def _reach_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch be indexed where the bytes before it reach the interval: >= instead of >."""
    append = LogSegment.append

    def wrong(segment: LogSegment, largest_offset: int, records: MemoryRecords) -> None:
        config = segment.config
        narrower = replace(config, index_interval_bytes=config.index_interval_bytes - 1)
        segment.config = narrower
        try:
            append(segment, largest_offset, records)
        finally:
            segment.config = config

    monkeypatch.setattr(LogSegment, "append", wrong)


@dataclass(frozen=True)
class Planted:
    """One defect."""

    structure: str
    plant: Callable[[pytest.MonkeyPatch], None] | type[Behaviour]
    """A behaviour is given to the release that lacks it."""
    seeds: int = 25
    """It is caught within so many."""
    length: int = LENGTH
    operations: tuple[str, ...] = ("",)
    """The operations that show it; the empty text is any."""
    is_seen_by_laws: bool = False
    """Whether a law sees it too: then the laws are not asked."""

    @property
    def release(self) -> str:
        """The release that is asked."""
        return ROCKETMQ if self.structure.startswith("index-") else KAFKA

    def found(self, *subjects: str) -> Finding | None:
        """Return the first finding of random histories."""
        seeds = range(self.seeds)
        result = replay_seeds(
            self.structure, self.release, seeds, self.length, subjects, findings_max=1
        )
        return result.findings[0] if result.findings else None


PLANTED = (
    Planted("offset-index", BaseIsInsane, 10, operations=("sanity_check",)),
    Planted("time-index", PlainSearch, 10, operations=("lookup", "lookup_many", "truncate_to")),
    Planted("transaction-index", _forget_at_a_rename, 20, operations=("append",)),
    Planted("record-batch", _wrap_one_early),
    Planted("record-batch", _read_four_bytes),
    Planted("record-batch", VotersAreUnknown),
    Planted("record-file", EmptyChangeIsRefused),
    Planted("record-file", SecondCloseFails),
    Planted("log-segment", _reach_the_interval, 15, 60, is_seen_by_laws=True),
    Planted("log-segment", CallIsIndexedAsAWhole, 15, 60, is_seen_by_laws=True),
    Planted("log-segment", MarkerAloneCompletes, 15, 60, is_seen_by_laws=True),
    Planted("index-file", EachPutIsCounted, 20),
    Planted("index-service", TagsAreNotIndexed, 20),
    Planted("index-service", ShutdownDoesNothing, 20),
    Planted("index-service", MessageIsIndexedOnce, 20),
)


def _cases(planted: Iterator[Planted]) -> list[Any]:
    return [
        pytest.param(
            one.release,
            one,
            marks=pytest.mark.needs("java", "jpype", one.release),
            id=f"{one.structure}-{one.plant.__name__.strip('_')}",
        )
        for one in planted
    ]


@pytest.mark.parametrize(
    ("release", "planted"), _cases(iter({one.structure: one for one in PLANTED}.values()))
)
def test_clean(release: str, planted: Planted) -> None:
    """Without a defect the real class agrees."""
    assert planted.found("model", release) is None


@pytest.mark.parametrize(("release", "planted"), _cases(iter(PLANTED)))
def test_planted(release: str, planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the defect the laws hold, unless they see it too, and the real class differs."""
    if isinstance(planted.plant, type):
        monkeypatch.setitem(RELEASES, release, RELEASES[release].flipped(planted.plant))
    else:
        planted.plant(monkeypatch)
    if planted.is_seen_by_laws:
        monkeypatch.setattr(Comparison, "_broken_law", lambda *arguments: None)
    assert planted.found("model") is None, "a law sees it: it shows nothing of the oracle"
    finding = planted.found("model", release)
    assert finding is not None
    assert f" of {release} is " in finding.message
    assert any(f" {name}(" in finding.message or not name for name in planted.operations)
