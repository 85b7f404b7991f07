# SPDX-License-Identifier: Apache-2.0
"""Drawn damage with known truth, and an independent judge of what a salvage makes of it."""
