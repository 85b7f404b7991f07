# SPDX-License-Identifier: Apache-2.0
"""Kafka's structures as worlds of crashes."""
