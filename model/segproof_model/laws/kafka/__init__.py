# SPDX-License-Identifier: Apache-2.0
"""The laws of Kafka's structures. Importing this package enters them into the register."""

import segproof_model.laws.kafka.format  # noqa: F401
