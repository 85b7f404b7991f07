# SPDX-License-Identifier: Apache-2.0
"""Each law of a partition that `verify` reports, at the nearest lawful and unlawful files."""

from segproof_harness.laws.borders.partition_log import BORDERS
from segproof_tests.borders import border_test

test_the_border = border_test(BORDERS)
