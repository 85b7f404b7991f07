# SPDX-License-Identifier: Apache-2.0
"""The files of a store: what their bytes say, and how they are searched and changed."""
