# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's message-key index, the files it is made of, and what it is made new from."""
