# SPDX-License-Identifier: Apache-2.0
"""The commit log of RocketMQ: its messages as facts, and what becomes of each."""
