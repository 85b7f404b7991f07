# SPDX-License-Identifier: Apache-2.0
"""Kafka structures of the reference model."""
