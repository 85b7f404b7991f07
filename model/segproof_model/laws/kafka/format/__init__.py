# SPDX-License-Identifier: Apache-2.0
"""The laws of the files of a log. Importing this package enters them into the register."""

from segproof_model.laws.kafka.format import (
    abstract_index,
    offset_index,
    time_index,
    transaction_index,
)

__all__ = ["abstract_index", "offset_index", "time_index", "transaction_index"]
