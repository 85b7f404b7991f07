# SPDX-License-Identifier: Apache-2.0
"""Histories: drawn, run on subjects, compared step by step, shrunk, and kept as traces."""
