# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's structures as worlds of crashes."""
