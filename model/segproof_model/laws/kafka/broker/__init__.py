# SPDX-License-Identifier: Apache-2.0
"""The laws of the structures of a broker: logs, producers, epochs, checkpoints."""
