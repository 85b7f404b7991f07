# SPDX-License-Identifier: Apache-2.0
"""What `segproof.verify` checks in RocketMQ's files: index files, the store's log and queues."""
