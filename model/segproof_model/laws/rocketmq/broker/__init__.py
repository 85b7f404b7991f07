# SPDX-License-Identifier: Apache-2.0
"""The laws of what a broker makes of the files, and of a store on disk as a whole.

Importing this package enters them into the register.
"""

from segproof_model.laws.rocketmq.broker import (
    index_building,
    index_service,
    message_store,
    store_checkpoint,
    store_on_disk,
)

__all__ = [
    "index_building",
    "index_service",
    "message_store",
    "store_checkpoint",
    "store_on_disk",
]
