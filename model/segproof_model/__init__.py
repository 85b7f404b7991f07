# SPDX-License-Identifier: Apache-2.0
"""The reference model: what index and segment files mean, as short, pure Python."""
