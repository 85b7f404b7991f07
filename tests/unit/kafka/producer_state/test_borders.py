# SPDX-License-Identifier: Apache-2.0
"""Each law along a whole log, at the nearest lawful and unlawful files."""

from segproof_harness.laws.borders.producers import BORDERS
from segproof_tests.borders import border_test

test_the_border = border_test(BORDERS)
