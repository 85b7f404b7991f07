# SPDX-License-Identifier: Apache-2.0
"""The laws of the files of a log."""
