# SPDX-License-Identifier: Apache-2.0
"""Each law that `verify` reports has its border, and each table of borders its test."""

from pathlib import Path

from segproof.verification import VERIFIED_LAWS
from segproof_harness.laws.borders.every_border import TABLES, WITHOUT

TESTS = Path(__file__).resolve().parents[1]


def test_each_verified_law_has_a_border() -> None:
    """Or a reason beside the tables. A new law needs a line in a table of
    `segproof_harness.laws.borders`: the nearest lawful and the nearest unlawful files."""
    with_border = {border.law for table in TABLES.values() for border in table}
    assert set() == VERIFIED_LAWS - with_border - set(WITHOUT)
    assert set() == set(WITHOUT) & with_border
    assert with_border | set(WITHOUT) <= VERIFIED_LAWS


def test_each_border_has_a_name_of_its_own() -> None:
    """A failure names its border."""
    names = [(border.law, border.bound) for table in TABLES.values() for border in table]
    twice = {one for one in names if names.count(one) > 1}
    assert set() == twice


def test_each_table_is_run() -> None:
    """A test imports it, and is not slow: `fast` and `quick` run it."""
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_borders.py")]
    for table in TABLES:
        own = [text for text in texts if f"laws.borders.{table} import BORDERS" in text]
        assert 1 == len(own), table
        assert "slow" not in own[0]


def test_both_sides_differ() -> None:
    """The two sides of a border are not the same files, and the unlawful one has a finding."""
    for table in TABLES.values():
        for border in table:
            assert border.lawful != border.unlawful, border.bound
            assert border.dues(border.due), border.bound
