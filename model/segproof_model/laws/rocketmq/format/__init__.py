# SPDX-License-Identifier: Apache-2.0
"""The laws of the files of a store, each by itself.

Importing this package enters them into the register.
"""

from segproof_model.laws.rocketmq.format import (
    consume_queue,
    index_chains,
    index_file,
    index_file_on_disk,
    key_hash,
    message,
    reference_resource,
)

__all__ = [
    "consume_queue",
    "index_chains",
    "index_file",
    "index_file_on_disk",
    "key_hash",
    "message",
    "reference_resource",
]
