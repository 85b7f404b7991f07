# SPDX-License-Identifier: Apache-2.0
"""How a flag of a profile is declared.

Used by: early_flags, flags, log_flags, rocketmq_flags.
"""

from dataclasses import field
from typing import Any

__all__ = ["flag"]


def flag(newest: Any, sentence: str, *laws: str) -> Any:
    """Declare a flag: the newest release's value, what it means, and the laws it bends."""
    return field(default=newest, metadata={"sentence": sentence, "laws": laws})
