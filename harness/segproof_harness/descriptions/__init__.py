# SPDX-License-Identifier: Apache-2.0
"""The descriptions of structures, one module each.

Used by: structures, which lists them.
"""
