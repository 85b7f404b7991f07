# SPDX-License-Identifier: Apache-2.0
"""Measures segproof beside what a user would take instead, in one run: `python -m benchmarks`."""
