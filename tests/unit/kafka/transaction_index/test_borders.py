# SPDX-License-Identifier: Apache-2.0
"""Each law of this file that `verify` reports, at the nearest lawful and unlawful files."""

from segproof_harness.laws.borders.transaction_index import BORDERS
from segproof_tests.borders import border_test

test_the_border = border_test(BORDERS)
