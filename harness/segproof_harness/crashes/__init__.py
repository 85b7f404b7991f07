# SPDX-License-Identifier: Apache-2.0
"""Histories that crash behind each of their effects: what is found then is loaded and judged."""
