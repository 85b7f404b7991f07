# SPDX-License-Identifier: Apache-2.0
"""Each law of a log directory that `verify` reports, at the nearest lawful and unlawful files."""

from pathlib import Path

import pytest

from segproof_harness.laws.borders.border import Border
from segproof_harness.laws.borders.log_directories import BORDERS
from segproof_tests.borders import check_border, name_of_border


@pytest.mark.parametrize("border", BORDERS, ids=name_of_border)
def test_the_border(border: Border, tmp_path: Path) -> None:
    """The law is reported on the unlawful side only, with the byte and both values."""
    check_border(border, tmp_path)
