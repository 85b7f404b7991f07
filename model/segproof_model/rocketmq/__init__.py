# SPDX-License-Identifier: Apache-2.0
"""RocketMQ structures of the reference model."""
