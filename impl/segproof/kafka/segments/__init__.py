# SPDX-License-Identifier: Apache-2.0
"""One segment: opened, appended to, searched and recovered."""
