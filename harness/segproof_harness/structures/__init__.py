# SPDX-License-Identifier: Apache-2.0
"""What the harness knows of each structure: operations, how arguments are drawn, states."""
