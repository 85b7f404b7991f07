# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's structures, described one module each."""
