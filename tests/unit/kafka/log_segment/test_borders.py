# SPDX-License-Identifier: Apache-2.0
"""Each law of a segment that `verify` reports, at the nearest lawful and unlawful files."""

from segproof_harness.laws.borders.log_segment import BORDERS
from segproof_tests.borders import border_test

test_the_border = border_test(BORDERS)
