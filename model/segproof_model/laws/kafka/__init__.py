# SPDX-License-Identifier: Apache-2.0
"""The laws of Kafka's structures. Importing this package enters them into the register."""

from segproof_model.laws.kafka import format

__all__ = ["format"]
