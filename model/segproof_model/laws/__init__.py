# SPDX-License-Identifier: Apache-2.0
"""Laws: the sentences of the contract, each with a predicate.

Importing this package enters every law into `registry.LAWS`.
"""

from segproof_model.laws import (
    abstract_index,
    disk,
    files,
    offset_index,
    record_batch,
    record_file,
    time_index,
    transaction_index,
)

__all__ = [
    "abstract_index",
    "disk",
    "files",
    "offset_index",
    "record_batch",
    "record_file",
    "time_index",
    "transaction_index",
]
