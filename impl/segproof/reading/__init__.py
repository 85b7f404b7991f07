# SPDX-License-Identifier: Apache-2.0
"""The one reader of a partition or a store: read-only, by `pread`, into private memory."""
