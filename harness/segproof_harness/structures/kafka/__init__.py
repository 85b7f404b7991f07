# SPDX-License-Identifier: Apache-2.0
"""Kafka's structures, described one module each."""
