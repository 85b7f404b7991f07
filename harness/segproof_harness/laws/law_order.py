# SPDX-License-Identifier: Apache-2.0
"""The order of law ids on pages and in messages."""


def order_of_law(law_id: str) -> tuple[str, int]:
    """Return the key that sorts ids as people count: BATCH-2 before BATCH-10."""
    area, _, number = law_id.rpartition("-")
    return area, int(number)
