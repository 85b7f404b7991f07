# SPDX-License-Identifier: Apache-2.0
"""`segproof explain`: a law in words, an example, what to do, what is proved."""

import pytest

from segproof_harness import cli
from segproof_harness.laws.every_law import RETIRED
from segproof_tests.printed_rows import jsonl


def test_explain_a_law_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    """A law that verify checks comes with sentence, remedy and a real finding."""
    assert 0 == cli.run(["explain", "offidx-2"])
    shown = capsys.readouterr().out
    assert shown.startswith("OFFIDX-2 (offset-index)\n")
    assert "what to do: " in shown
    assert f"error OFFIDX-2 plain-0/{0:020}.index: byte 16: " in shown


def test_explain_a_retired_law(capsys: pytest.CaptureFixture[str]) -> None:
    """A law that an operation of the model says comes with its sentence and that operation."""
    assert 0 == cli.run(["explain", "ABSIDX-10"])
    shown = capsys.readouterr().out
    assert RETIRED["ABSIDX-10"].sentence in shown
    assert "said by:    kafka/format/abstract_index.py: AbstractIndex.fail_resize" in shown
    assert "checked by" not in shown


def test_explain_knows_every_law(capsys: pytest.CaptureFixture[str]) -> None:
    """Every law that the model states or verify reports has a sentence."""
    laws = jsonl(capsys, "explain")
    assert len(laws) > 100
    assert all(row["sentence"] for row in laws)


def test_explain_names_what_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    """The kernels, what they require, and what their results obey."""
    assert 0 == cli.run(["explain", "OFFIDX-17"])
    said = capsys.readouterr().out
    assert "proved for every length: kernel index_rules:kept_entries\n" in said
    assert "            ensures:  0 <= result <= entries\n" in said
    (row,) = jsonl(capsys, "explain", "OFFIDX-17")
    assert ["index_rules:kept_entries"] == row["proofs"]
