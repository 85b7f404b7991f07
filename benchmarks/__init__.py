# SPDX-License-Identifier: Apache-2.0
"""Measures segproof beside the alternatives of a user, in one run: `python -m benchmarks`."""
