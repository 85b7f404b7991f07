# SPDX-License-Identifier: Apache-2.0
"""Look keys and offsets up in a store of RocketMQ, read-only."""

from segproof.reading.store_reader import KeyAnswer, StoreReader

__all__ = ["KeyAnswer", "StoreReader"]
