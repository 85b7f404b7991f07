# SPDX-License-Identifier: Apache-2.0
"""Findings as output: text for people, JSON lines for programs."""
