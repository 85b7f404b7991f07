# SPDX-License-Identifier: Apache-2.0
"""The laws of RocketMQ's structures. Importing this package enters them into the register."""

import segproof_model.laws.rocketmq.broker
import segproof_model.laws.rocketmq.format  # noqa: F401
