# SPDX-License-Identifier: Apache-2.0
"""Every law is stated, checked by random histories or drawn values, and by one more layer.

What is missing needs a reason in `segproof_tests.traceability.REASONS`.
"""

from pathlib import Path

import pytest

from segproof_tests import traceability
from segproof_tests.traceability import layers_of_laws, problems, unknown_ids

ROOT = Path(__file__).resolve().parents[2]


def test_every_law_is_checked() -> None:
    """No unknown id, no law without predicate, stateful check and one more layer."""
    assert [] == problems(ROOT)


def write_test(root: Path, text: str) -> None:
    """Write a test file below an otherwise empty tree."""
    folder = root / "tests" / "unit"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(text)


def test_a_mark_without_drawn_values_is_an_example(tmp_path: Path) -> None:
    """Only `given`, or the name of a machine's file, makes a check stateful."""
    write_test(
        tmp_path,
        "TABLE = {'BATCH-2': 'BATCH-3'}\n"
        "@pytest.mark.checks('BATCH-6')\n"
        "@given(st.integers())\n"
        "def test_a(n): ...\n"
        "@pytest.mark.checks('BATCH-7', *TABLE)\n"
        "def test_b(): ...\n"
        "@given(st.integers())\n"
        "def test_c(n): 'BATCH-8'\n",
    )
    layers = layers_of_laws(tmp_path)
    assert "stateful" in layers["BATCH-6"]
    assert "examples" not in layers["BATCH-6"]
    for law in ("BATCH-7", "BATCH-2"):
        assert "examples" in layers[law]
        assert "stateful" not in layers[law]
    for law in ("BATCH-3", "BATCH-8"):
        assert not {"examples", "stateful"} & set(layers[law])


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that no law has, a law without a check, and a reason that nothing needs."""
    unknown = "BATCH-" + "99"
    write_test(tmp_path, f"@pytest.mark.checks('{unknown}')\ndef test_a(): ...\n")
    assert [f"tests/unit/test_it.py:1: {unknown}"] == unknown_ids(tmp_path)
    found = problems(tmp_path)
    assert f"unknown law: tests/unit/test_it.py:1: {unknown}" in found
    assert "BATCH-20: no stateful check" in found
    assert "BATCH-20: no layer beside model and stateful" in found
    monkeypatch.setattr(traceability, "REASONS", {"BATCH-20": "written"})
    assert not any(line.startswith("BATCH-20:") for line in problems(tmp_path))
    monkeypatch.setattr(traceability, "LAWS", {})
    lost = "META: 0 ids, and 2 in law_ids.json: count a new law there"
    assert lost in problems(tmp_path)
    folder = tmp_path / "tests" / "unit" / "kafka"
    folder.mkdir()
    text = "@pytest.mark.checks('BATCH-14')\ndef test_a(): ...\n"
    (folder / "test_machine_more.py").write_text(text)
    (tmp_path / "tests" / "unit" / "test_it.py").write_text(text)
    monkeypatch.undo()
    monkeypatch.setattr(traceability, "REASONS", {"BATCH-14": "written"})
    assert "BATCH-14: the reason in REASONS is not needed any more" in problems(tmp_path)
