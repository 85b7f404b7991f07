# SPDX-License-Identifier: Apache-2.0
"""Verifying on Spark: what is planned, what each task does, and how the results are joined."""
