# SPDX-License-Identifier: Apache-2.0
"""The methods of a release as they result, and what `explain` says of releases and behaviours."""

import json

import pytest

from segproof_harness import cli
from segproof_harness.reports.release_methods import Words, classes_of, methods_of, structures_of
from segproof_model.kafka.format.abstract_index import AbstractIndex
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.kafka.format.transaction_index import TransactionIndex
from segproof_model.releases import NEWEST_KAFKA, RELEASES, SEGPROOF
from segproof_tests.printed_rows import jsonl


def said_by(words: list[Words]) -> list[str | None]:
    """Return the names of the behaviours, None for the newest release."""
    return [one.behaviour.__name__ if one.behaviour else None for one in words]


def test_methods_are_in_the_order_of_their_calls() -> None:
    """What does not call the next one is the last."""
    append = methods_of(RELEASES["kafka-2.8.2"], LogSegment)["append"]
    assert ["FirstAppendAgesSegment", "CallIsIndexedAsAWhole"] == said_by(append)
    assert append[1].source.startswith("def append(\n    self, largest_offset: int")
    close = methods_of(RELEASES["kafka-2.8.2"], AbstractIndex)["close"]
    assert ["ClosingTrimsIndexes", None] == said_by(close)
    close = methods_of(RELEASES["kafka-2.1.1"], TimeIndex)["close"]
    assert ["CloseKeepsMapping", "ClosingTrimsIndexes", None] == said_by(close)


def test_attributes_and_what_is_around_are_shown() -> None:
    """A class may hold another value, and a behaviour may only put a check before a method."""
    kind = methods_of(RELEASES["kafka-3.4.1"], AbstractIndex)["mismatch_kind"]
    assert ["mismatch_kind = ErrorKind.INVALID_ARGUMENT"] == [one.source for one in kind[:1]]
    checked, newest = methods_of(SEGPROOF, TransactionIndex)["flush"]
    assert ", behind `check_open`" == checked.around
    assert ("", None) == (checked.source, newest.behaviour)


def test_only_what_is_otherwise_is_shown() -> None:
    """Nothing of the newest release; of a derived class, if wanted, only what is its own."""
    assert [] == structures_of(NEWEST_KAFKA) == classes_of(NEWEST_KAFKA)
    release = RELEASES["kafka-4.3.1"]
    assert OffsetIndex not in structures_of(release)
    assert OffsetIndex in classes_of(release)
    assert {"flush", "close"} == set(methods_of(release, OffsetIndex))
    assert {} == methods_of(release, OffsetIndex, own=True)
    canary = type("TimeIndex", (TimeIndex,), {"__module__": "segproof_harness.canaries"})
    assert canary not in classes_of(release)


def test_explain_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    """Its behaviours, the latest first; the newest has none."""
    rows = jsonl(capsys, "explain", "kafka-4.3.1")
    assert len(RELEASES["kafka-4.3.1"].behaviours) == len(rows)
    assert ["behaviour", "sentence", "laws", "releases"] == list(rows[0])
    assert 0 == cli.run(["explain", "kafka-4.4.0"])
    shown = capsys.readouterr()
    assert ("", "kafka-4.4.0: the newest release") == (shown.out, shown.err[:31])


def test_explain_methods(capsys: pytest.CaptureFixture[str]) -> None:
    """A class of a release; one that it has not otherwise is refused, with those that it has."""
    assert 0 == cli.run(["explain", "kafka-4.3.1", "LogSegment"])
    shown = capsys.readouterr().out
    assert shown.startswith("--- LogSegment.close\n# `ClosingWritesLastEntry`: Closing a segment")
    assert "\n# The newest release:\ndef close(self) -> None:\n" in shown
    rows = jsonl(capsys, "explain", "kafka-4.3.1", "TimeIndex")
    names = [(row["method"], row["behaviour"]) for row in rows]
    assert [("flush", "UnmappedIndexIsNotFlushed"), ("close", "ClosingTrimsIndexes")] == names[:2]
    assert 2 == cli.run(["explain", "kafka-4.3.1", "LogSegmen"])
    assert "did you mean LogSegment?" in capsys.readouterr().err


def test_explain_a_behaviour(capsys: pytest.CaptureFixture[str]) -> None:
    """Its sentence, who has it, and where it stands."""
    assert 0 == cli.run(["explain", "SecondCloseFails"])
    shown = capsys.readouterr().out
    assert "  Closing a closed record file raises the I/O error.\n" in shown
    assert "releases: up to 4.0.0\n" in shown
    assert "file:     segproof_model/kafka/format/record_file_releases.py\n" in shown
    assert 0 == cli.run(["explain", "SecondCloseFails", "--format", "jsonl"])
    assert ["SCAN-13"] == json.loads(capsys.readouterr().out)["laws"]
