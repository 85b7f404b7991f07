# SPDX-License-Identifier: Apache-2.0
"""Verifying on Spark: the plan, the tasks, and the joining of their results."""
