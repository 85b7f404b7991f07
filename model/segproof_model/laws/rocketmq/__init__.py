# SPDX-License-Identifier: Apache-2.0
"""The laws of RocketMQ's structures."""
