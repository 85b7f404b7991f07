# SPDX-License-Identifier: Apache-2.0
"""Which offset a file's name means."""

import pytest

from segproof_model.kafka.format.segment_names import offset_of_name
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of


@pytest.mark.parametrize(
    ("number", "offset"),
    [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("\u0967", 1),
        ("0" * 5000 + "7", 7),
        (str(-(2**63)), -(2**63)),
    ],
)
def test_what_java_parses_is_an_offset(number: str, offset: int) -> None:
    """Digits of any script below U+10000, with a sign or without, however many."""
    assert offset == outcome_of(offset_of_name, f"{number}.log")


@pytest.mark.parametrize(
    "number", ["", "-", "+-7", " 7", "7_0", "\U0001d7d0", str(2**63), "9" * 5000]
)
def test_what_java_does_not_parse_is_no_number(number: str) -> None:
    """Java reads char by char, and a digit above U+FFFF is two: it was taken for a number."""
    assert Raised(ErrorKind.NUMBER_FORMAT) == outcome_of(offset_of_name, f"{number}.log")
