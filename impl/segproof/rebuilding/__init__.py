# SPDX-License-Identifier: Apache-2.0
"""Making index files new from their logs: of a partition (Kafka), or of a store (RocketMQ)."""
