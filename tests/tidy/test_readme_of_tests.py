# SPDX-License-Identifier: Apache-2.0
"""tests/README.md names each folder, environment and profile; CONTRIBUTING.md, where things are."""

import configparser
import re
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| `")]
FOLDERS = [row for row in ROWS if "/`" in row[0]]


def in_quotes(text: str) -> list[str]:
    """Return what stands in backquotes."""
    return re.findall(r"`([^`]+)`", text)


def test_the_page_lists_each_folder() -> None:
    """A folder of `unit` stands for itself; its own folders are the structures."""
    tests = ROOT / "tests"
    there = {path.name for path in tests.iterdir() if path.is_dir()} - {"unit", "__pycache__"}
    there |= {f"unit/{path.name}" for path in (tests / "unit").iterdir() if path.is_dir()}
    listed = [name.rstrip("/") for row in FOLDERS for name in in_quotes(row[0])]
    assert sorted(there - {"unit/__pycache__"}) == sorted(listed)


def test_the_page_names_environments_that_exist() -> None:
    """In the last column, and in the first table as commands."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    names = {name.removeprefix("testenv:") for name in tox.sections()}
    names |= {"py311", "py311-damage", "py312", "py313"}
    asked = {name for row in FOLDERS for name in in_quotes(row[2])} - {"tox -m explore"}
    asked |= set(re.findall(r"`tox -e ([a-z]+)", PAGE))
    assert set() == asked - names
    assert "labels = explore" in (ROOT / "tox.ini").read_text(encoding="utf-8")


def test_the_page_tells_what_a_profile_draws() -> None:
    """The numbers are those of the profiles."""
    rows = [row for row in ROWS if len(row) == 4]
    assert len(rows) == 4
    for name, examples, steps, cases in rows:
        profile = settings.get_profile(in_quotes(name)[0])
        assert int(examples.replace(" ", "")) == profile.max_examples
        assert int(steps) == profile.stateful_step_count
        assert ("random" in cases) is not profile.derandomize


def test_contributing_names_files_that_exist() -> None:
    """SYSTEM, STRUCTURE and MODULE stand for names."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Where to change what")[2].partition("## ")[0]
    paths = [one for one in in_quotes(table) if re.match(r"(model|impl|harness|tests)/", one)]
    assert len(paths) > 10
    missing = [
        one for one in paths if not any(ROOT.glob(re.sub("SYSTEM|STRUCTURE|MODULE", "*", one)))
    ]
    assert [] == missing
