# SPDX-License-Identifier: Apache-2.0
"""Findings as output: text for people, JSON lines for programs."""

from segproof_harness.reports.jsonl import write_jsonl
from segproof_harness.reports.text import write_text

__all__ = ["write_jsonl", "write_text"]
