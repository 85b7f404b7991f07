# SPDX-License-Identifier: Apache-2.0
"""Kernels: inner loops that are proved, interpreted and compiled from one source."""
