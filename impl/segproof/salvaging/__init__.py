# SPDX-License-Identifier: Apache-2.0
"""Saving what is sound in damaged files into a directory that a broker loads."""
