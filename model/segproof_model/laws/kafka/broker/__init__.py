# SPDX-License-Identifier: Apache-2.0
"""The laws of what a broker holds. Importing this package enters them into the register."""

from segproof_model.laws.kafka.broker import (
    learned_by_recovery,
)

__all__ = [
    "learned_by_recovery",
]
