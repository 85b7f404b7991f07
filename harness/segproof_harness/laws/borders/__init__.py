# SPDX-License-Identifier: Apache-2.0
"""For each law that `verify` reports, the nearest lawful and the nearest unlawful files."""
