# SPDX-License-Identifier: Apache-2.0
"""What a broker makes of the files: logs, their loading, producers, epochs, checkpoints."""
