# SPDX-License-Identifier: Apache-2.0
"""The adapters of RocketMQ's classes, a module for each structure; imported in the child alone."""
