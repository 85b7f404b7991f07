# SPDX-License-Identifier: Apache-2.0
"""Findings as output: text for people, JSON lines for programs.

Used by: the verbs that find something, Spark's verbs.
"""

from segproof_harness.report.jsonl import write_jsonl
from segproof_harness.report.text import write_text

__all__ = ["write_jsonl", "write_text"]
