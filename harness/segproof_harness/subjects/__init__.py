# SPDX-License-Identifier: Apache-2.0
"""Subjects: what runs operations on a structure, in this process."""
